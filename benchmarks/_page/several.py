"""The section on several subspaces in the same rows."""

from typing import Any

from _text import percent

from _page.drawing import level_bars, upright_line
from _page.section import Result, Section, Target
from perpend.plots import COLORS, figure
from perpend.plots._style import MUTED


def _name(row: dict[str, Any]) -> str:
    return f"{row['name']}, noise {row['noise']:g}"


def targets(result: Result) -> list[Target]:
    """Return the settings with a target."""
    return [
        Target(
            _name(row),
            f"{percent(row['least'])} all right",
            f"{row['right']} of {row['seeds']}",
            row["right"] >= row["least"] * row["seeds"],
        )
        for row in result["results"]
        if row["least"] is not None
    ]


def draw(result: Result) -> dict[str, Any]:
    """Draw the share of right estimates, with and without subspaces to be found."""
    rows = [row for row in result["results"] if row["parts"]]
    with figure(1, 1, panel=(6.0, 0.3 * len(rows) + 0.8)) as (drawing, axes):
        ax = axes.flat[0]
        level_bars(
            ax,
            {_name(row): row["right"] / row["seeds"] for row in rows},
            [f"{row['right']} of {row['seeds']}" for row in rows],
            [MUTED if row["least"] is None else COLORS[0] for row in rows],
        )
        upright_line(ax, 0.9, "target 90 %")
        ax.set(xlabel="share of the seeds; with a target in colour", xlim=(0, 1.2))
        ax.set_xticks([0, 0.25, 0.5, 0.75, 1])
    return {"several": drawing}


SECTION = Section(
    "peeling", "Several subspaces", ("results", "targets"), draw, targets, lambda _: {"name": _name}
)

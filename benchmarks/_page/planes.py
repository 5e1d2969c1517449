"""The section on planes: how uncertain they are, and frame after frame."""

from typing import Any

from _text import percent

from _page.drawing import Dots, dot_plot, upright_line
from _page.section import Result, Section, Target
from perpend.plots import figure


def _name(row: Result) -> str:
    return f"{row['kind']}, {percent(row['outliers'])} outliers"


def targets(result: Result) -> list[Target]:
    """Every setting covers the truth as often as it says."""
    least, most = result["least"], result["most"]
    return [
        Target(
            f"95 % region, {_name(row)}",
            f"{percent(least)} to {percent(most)} of the draws",
            f"{row['inside']} of {row['draws']}",
            least * row["draws"] <= row["inside"] <= most * row["draws"],
        )
        for row in result["coverage"]
    ]


def draw(result: Result) -> dict[str, Any]:
    """Draw the share of each setting between its limits."""
    rows = result["coverage"]
    with figure(1, 1, panel=(6.0, 0.3 * len(rows) + 0.8)) as (drawing, axes):
        ax = axes.flat[0]
        shares = [row["inside"] / row["draws"] for row in rows]
        dot_plot(ax, [_name(row) for row in rows], {"truth inside": Dots(shares)})
        for limit in (result["least"], result["most"]):
            upright_line(ax, limit, percent(limit))
        ax.set(xlabel="share of the draws", xlim=(0.9, 1.0))
    return {"planes": drawing}


SECTION = Section("planes", "Planes", ("least", "most", "coverage", "frames"), draw, targets)

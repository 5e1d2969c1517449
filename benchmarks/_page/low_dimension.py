"""The section on low dimension among many features."""

from typing import Any

from _page.drawing import Dots, dot_plot, upright_bar
from _page.section import Bar, Result, Section, at_least, at_most
from perpend.plots import COLORS, figure

RATIO = 1.0


def _name(row: dict[str, Any]) -> str:
    share = f"{100 * row['outliers']:.0f} %"
    return f"{row['rows']:,} × {row['features']:,}, d = {row['dimension']}, {share}"


def bars(result: Result) -> list[Bar]:
    """Right, and not slower than being told."""
    rows = result["results"]
    right = [row["right"] / row["seeds"] for row in rows]
    times = [
        at_most(
            f"{n:,} rows: time over 30 steps of reweighted PCA told d",
            [row["over_thirty_steps"] for row in rows if row["rows"] == n],
            RATIO,
        )
        for n in dict.fromkeys(row["rows"] for row in rows)
    ]
    return [at_least("share of fits with the right dimension, each setting", right, 1), *times]


def draw(result: Result) -> dict[str, Any]:
    """Draw both ratios for each setting."""
    rows = result["results"]
    with figure(1, 1, panel=(6.4, 0.34 * len(rows) + 1.0)) as (drawing, axes):
        ax = axes[0, 0]
        thirty = [row["over_thirty_steps"] for row in rows]
        stopped = [row["over_stopped"] for row in rows]
        series = {
            "30 steps": Dots(thirty),
            "stopped at rest": Dots(stopped, COLORS[1], "s", filled=False),
        }
        dot_plot(ax, [_name(row) for row in rows], series)
        upright_bar(ax, RATIO, f"bar {RATIO:g}")
        ax.set(xscale="log", xlabel="time of DPCP() over reweighted PCA told d")
        ax.xaxis.set_major_formatter("{x:g}")
        ax.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2)  # beside no dot
    return {"low-dimension": drawing}


SECTION = Section(
    "low_dimension",
    "Low dimension, many features",
    ("results", "noise", "steps", "tol"),
    draw,
    bars,
    lambda _: {"name": _name},
)

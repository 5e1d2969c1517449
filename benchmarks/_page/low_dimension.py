"""The section on low dimension among many features."""

from typing import Any

from _page.drawing import Dots, dot_panels
from _page.section import Result, Section, Target, at_least, at_most
from perpend.plots import COLORS

RATIO = 1.0


def _name(row: dict[str, Any]) -> str:
    share = f"{100 * row['outliers']:.0f} %"
    return f"{row['rows']:,} × {row['features']:,}, d = {row['dimension']}, {share}"


def targets(result: Result) -> list[Target]:
    """Right, and not slower than with d given."""
    rows = result["results"]
    right = [row["right"] / row["seeds"] for row in rows]
    times = [
        at_most(
            f"{n:,} rows: time over 30 steps of reweighted PCA given d",
            [row["over_thirty_steps"] for row in rows if row["rows"] == n],
            RATIO,
        )
        for n in dict.fromkeys(row["rows"] for row in rows)
    ]
    return [at_least("share of fits with the right dimension, each setting", right, 1), *times]


def draw(result: Result) -> dict[str, Any]:
    """Draw both ratios for each setting."""
    rows = result["results"]
    series = {
        "30 steps": Dots([row["over_thirty_steps"] for row in rows]),
        "stopped where it converges": Dots(
            [row["over_stopped"] for row in rows], COLORS[1], "s", filled=False
        ),
    }
    label = "time of DPCP() over reweighted PCA given d"
    lines, ticks = {f"target {RATIO:g}": RATIO}, [0.2, 0.5, 1, 2, 5, 10, 20]
    names = [_name(row) for row in rows]
    return {
        "low-dimension": dot_panels({"": series}, names, xlabel=label, lines=lines, ticks=ticks)
    }


SECTION = Section(
    "low_dimension",
    "Low dimension, many features",
    ("results", "noise", "steps", "tol"),
    draw,
    targets,
    lambda _: {"name": _name},
)

"""The section on what certifying costs."""

from typing import Any

from _text import percent

from _page.drawing import Dots, dot_plot, upright_line, whole_ticks
from _page.section import Result, Section, Target, at_most, number
from perpend.plots import COLORS, figure


def targets(result: Result) -> list[Target]:
    """For every clear fit."""
    return [
        at_most(
            f"{row['D']} features, {percent(row['r'])} outliers, noise {row['noise']:g}, "
            f"the costliest of {row['clear']} clear fits",
            [row["clear_grams"][2]],
            result["target"],
            " weighted grams",
            f" (median {number(row['clear_grams'][0])})",
        )
        for row in result["results"]
        if row["clear"]
    ]


def draw(result: Result) -> dict[str, Any]:
    """Draw the clear fits' median and largest, and the median of the others, a panel a shape."""
    shapes = list(dict.fromkeys((row["D"], row["r"]) for row in result["results"]))
    with figure(1, len(shapes), panel=(2.7, 2.2), sharex=True) as (drawing, axes):
        for ax, (D, r) in zip(axes.flat, shapes, strict=True):
            rows = [row for row in result["results"] if (row["D"], row["r"]) == (D, r)]
            series = {
                "not clear: median": Dots([_at(row["other_grams"], 0) for row in rows], COLORS[1]),
                "clear: largest": Dots([_at(row["clear_grams"], 2) for row in rows], filled=False),
                "clear: median": Dots([_at(row["clear_grams"], 0) for row in rows]),
            }
            dot_plot(ax, [f"noise {row['noise']:g}" for row in rows], series)
            upright_line(ax, result["target"], f"target {result['target']}")
            ax.set(xscale="log", xlim=(1.5, 90))
            whole_ticks(ax.xaxis, [2, 3, 5, 10, 20, 50])
            ax.set_title(f"{D} features, {percent(r)} outliers", loc="left", fontsize=10, pad=15)
        axes.flat[0].legend(fontsize=8, loc="lower right")
        drawing.supxlabel("weighted gram matrices of a whole fit", fontsize=9)
    return {"certifying": drawing}


def _at(counts: list[float] | None, place: int) -> float:
    return float("nan") if counts is None else counts[place]


SECTION = Section("certifying", "What certifying costs", ("target", "results"), draw, targets)

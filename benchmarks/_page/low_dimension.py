"""The section on low dimension among many features."""

from typing import Any

from _page.drawing import Dots, dot_plot, upright_bar
from _page.section import Bar, Result, Section, at_least, at_most, image, number, span
from perpend.experiments._text import table
from perpend.plots import COLORS, figure

RATIO = 1.0


def _name(row: dict[str, Any]) -> str:
    share = f"{100 * row['outliers']:.0f} %"
    return f"{row['rows']:,} × {row['features']:,}, d = {row['dimension']}, {share}"


def describe(result: Result) -> str:
    """Say what it costs not to tell the dimension."""
    rows = result["results"]
    right, fits = sum(row["right"] for row in rows), sum(row["seeds"] for row in rows)
    header = ["rows, features, dimension, outliers", "right (sure)", "error", "told d"]
    header += ["PCA of the inliers", "ms", "over 30 steps told d", "over a stopped one"]
    cells = [
        [
            _name(row),
            f"{row['right']} of {row['seeds']} ({row['sure']})",
            *(f"{row[name]:.2g}" for name in ("error", "error_told", "error_of_inliers_pca")),
            number(row["milliseconds"]["dpcp"]),
            f"{row['over_thirty_steps']:.2f}",
            f"{row['over_stopped']:.1f}",
        ]
        for row in rows
    ]
    stopped = span([row["over_stopped"] for row in rows])
    return "\n\n".join(
        [
            "A subspace of low dimension among many features, also with fewer rows than features. "
            f"`DPCP()`, told nothing, finds the dimension in {right} of {fits} fits, with the "
            "error of reweighted PCA that is told it.",
            image("low-dimension", "Time of a fit over reweighted PCA that is told the dimension"),
            table(header, cells),
            f"Noise {result['noise']}. Reweighted PCA takes {result['steps']} steps, or stops "
            f"when a step lowers the sum of distances by less than {result['tol']:g} of it, which "
            "on these data is after three to six: near the start, PCA of the unit rows. Against "
            f"that, `DPCP()` takes {stopped} times as long: it looks from several starts, weighs "
            "what they lead to, and writes down all normals. Processor time, one thread.",
        ]
    )


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
    "python benchmarks/low_dimension.py",
    ("results", "noise", "steps", "tol"),
    describe,
    bars,
    draw,
)

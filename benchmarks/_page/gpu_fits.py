"""The section on whole fits on a GPU."""

from typing import Any

from _page.drawing import Dots, dot_plot, upright_bar, whole_ticks
from _page.section import Bar, Result, Section, image, number, span
from perpend.experiments._text import table
from perpend.plots import COLORS, figure

SAMPLED = {"auto": "with sampling", None: "all rows from the beginning"}


def describe(result: Result) -> str:
    """Say what a tensor on the device gains, and that the answers are the same."""
    rows = result["results"]
    others = sum(row["other_labels"] for row in rows)
    header = [
        "rows × features", "precision", "", "ms", "times faster than in memory", "gram-PCAs",
        "sure", "error", "distance to the answer in memory",
    ]  # fmt: skip
    lines = [
        [
            _size(row),
            row["dtype"],
            SAMPLED[row["sample_size"]],
            *map(number, (row["milliseconds"], row["times_faster_than_memory"], row["gram_pcas"])),
            "yes" if row["sure"] else "no",
            f"{row['error']:.0e}",
            f"{row['distance_to_memory']:.0e}",
        ]
        for row in rows
    ]
    return "\n\n".join(
        [
            "Hand `DPCP` a tensor that is on the GPU, and the fit runs there: "
            f"{span(row['times_faster_than_memory'] for row in rows)} times faster than on the "
            "same rows in the memory of that machine, whose fit is timed once. Against the answers "
            f"there, {others} labels differ in all of these fits together.",
            image("cuda-fits", "How many times faster than the same fit in memory"),
            table(header, lines),
            "Codimension 10, 40 % outliers, no noise; the first fit, which compiles the kernels, "
            "is not timed. A gram-PCA is `eigh(X.T @ X)` of the same tensor.",
        ]
    )


def _size(row: Result) -> str:
    n, D = row["shape"]
    return f"{n:,} × {D}"


def bars(result: Result) -> list[Bar]:
    """No bar was set here."""
    del result
    return []


def draw(result: Result) -> dict[str, Any]:
    """Draw the ratios, a panel for each precision."""
    names = list(dict.fromkeys(map(_size, result["results"])))
    values = [row["times_faster_than_memory"] for row in result["results"]]
    with figure(1, 2, panel=(4.6, 2.5), sharex=True, sharey=True) as (drawing, axes):
        for ax, dtype in zip(axes.flat, ("float64", "float32"), strict=True):
            rows = [row for row in result["results"] if row["dtype"] == dtype]
            series = {
                word: Dots(_column(rows, names, sample), COLORS[i], "os"[i])
                for i, (sample, word) in enumerate(SAMPLED.items())
            }
            dot_plot(ax, names, series)
            upright_bar(ax, 1, "in memory")
            ax.set_title(dtype, pad=16)
        axes[0, 0].set_xscale("log")
        whole_ticks(axes[0, 0].xaxis, [0.5, 1, 2, 5, 10, 20, 50, 100, 200])
        axes[0, 0].set_xlim(0.8 * min(1, *values), 1.3 * max(values))
        axes[0, 0].set_ylabel("rows × features")
        drawing.supxlabel("times faster than the same fit in memory", fontsize=10)
        handles, labels = axes[0, 0].get_legend_handles_labels()
        drawing.legend(handles, labels, loc="outside upper center", ncols=2)
    return {"cuda-fits": drawing}


def _column(rows: list[Result], names: list[str], sample: str | None) -> list[float]:
    found = {_size(r): r["times_faster_than_memory"] for r in rows if r["sample_size"] == sample}
    return [found.get(name, float("nan")) for name in names]


SECTION = Section(
    "cuda_fits",
    "Whole fits on a GPU",
    "python benchmarks/cuda_fits.py",
    ("results",),
    describe,
    bars,
    draw,
)

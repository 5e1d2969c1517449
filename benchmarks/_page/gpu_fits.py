"""The section on whole fits on a GPU."""

from typing import Any

from _page.drawing import Dots, dot_plot, upright_bar, whole_ticks
from _page.section import Result, Section
from perpend.plots import COLORS, figure

SAMPLED = {"auto": "with sampling", None: "all rows from the beginning"}


def _size(row: Result) -> str:
    n, D = row["shape"]
    return f"{n:,} × {D}"


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
    "cuda_fits", "Whole fits on a GPU", ("results",), draw, numbers=lambda _: {"sampled": SAMPLED}
)

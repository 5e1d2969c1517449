"""The section on whole fits on a GPU."""

from typing import Any

from _page.drawing import Dots, dot_panels
from _page.section import Result, Section
from perpend.plots import COLORS

SAMPLED = {"auto": "with sampling", None: "all rows from the beginning"}


def _size(row: Result) -> str:
    n, D = row["shape"]
    return f"{n:,} × {D}"


def draw(result: Result) -> dict[str, Any]:
    """Draw the ratios, a panel for each precision."""
    names = list(dict.fromkeys(map(_size, result["results"])))
    values = [row["times_faster_than_memory"] for row in result["results"]]
    panels = {
        dtype: {
            word: Dots(_column(rows, names, sample), COLORS[i], "os"[i])
            for i, (sample, word) in enumerate(SAMPLED.items())
        }
        for dtype in ("float64", "float32")
        for rows in [[row for row in result["results"] if row["dtype"] == dtype]]
    }
    drawing = dot_panels(
        panels,
        names,
        xlabel="times faster than the same fit in memory",
        ylabel="rows × features",
        lines={"in memory": 1},
        width=9.2,
        ticks=[0.5, 1, 2, 5, 10, 20, 50, 100, 200],
        xlim=(0.8 * min(1, *values), 1.3 * max(values)),
    )
    return {"cuda-fits": drawing}


def _column(rows: list[Result], names: list[str], sample: str | None) -> list[float]:
    found = {_size(r): r["times_faster_than_memory"] for r in rows if r["sample_size"] == sample}
    return [found.get(name, float("nan")) for name in names]


SECTION = Section(
    "cuda_fits", "Whole fits on a GPU", ("results",), draw, numbers=lambda _: {"sampled": SAMPLED}
)

"""The section on the CPU hot loop."""

from typing import Any

from _page.drawing import Dots, dot_panels
from _page.section import Result, Section, Target, at_least, sizes
from perpend.plots import COLORS
from perpend.plots._style import MUTED

COMPILED, NUMPY, FREE = COLORS[0], COLORS[1], COLORS[2]
LINES = "rows × features, starts"
WIDE, MANY, NARROW = 200, 30, 20  # features and starts of the shapes that have targets
SHAPES = f"float64, {WIDE} features and {MANY} starts or more"
SHARE, TWO_THREADS, TIMES_PLAIN = 0.6, 1.6, 2.0


def numbers(result: Result) -> dict[str, Any]:
    """Return the passes in float64, and how many an iteration takes."""
    each = [row["evaluations"] / row["iterations"] for row in result["iterations"]]
    return {"double": _of(result["passes"], "float64"), "passes_each": each, "sizes": sizes}


def targets(result: Result) -> list[Target]:
    """A share of the limit, use of two threads, and more than plain NumPy."""
    large = [
        row for row in result["iterations"] if row["shape"][1] >= WIDE and row["shape"][2] >= MANY
    ]
    narrow = [row for row in result["iterations"] if row["shape"][1] < NARROW]
    passes = [
        row
        for row in result["passes"]
        if row["dtype"] == "float64" and row["shape"] in [other["shape"] for other in large]
    ]
    return [
        at_least(
            f"share of the limit, one pass of all starts, one thread, {SHAPES}",
            (row["share_of_gemm_rate"]["compiled"] for row in passes),
            SHARE,
        ),
        at_least(
            f"share of the limit, one accepted iteration, one thread, {SHAPES}",
            (row["share_of_gemm_rate"]["compiled"] for row in large),
            SHARE,
            note=", as refused trials count",
        ),
        at_least(
            f"two threads over one, one pass, {SHAPES}",
            (row["two_threads_over_one"]["compiled"] for row in passes),
            TWO_THREADS,
        ),
        at_least(
            "times plain NumPy, one accepted iteration with 10 features",
            (row["faster_than_plain"] for row in narrow),
            TIMES_PLAIN,
        ),
    ]


def draw(result: Result) -> dict[str, Any]:
    """Draw the shares of the limit, and the ratios to plain NumPy."""
    return {"hotloop": _draw_shares(result), "hotloop-ratio": _draw_ratios(result)}


def _of(passes: list[Result], dtype: str) -> list[Result]:
    return [row for row in passes if row["dtype"] == dtype]


def _draw_shares(result: Result) -> Any:
    def share(rows: list[Result], way: str, threads: int) -> list[float]:
        """Of one thread's limit, whatever the number of threads."""
        one = [row["share_of_gemm_rate"][way] for row in rows]
        two = [row["two_threads_over_one"].get(way, 1.0) for row in rows]
        return [a * (b if threads == 2 else 1) for a, b in zip(one, two, strict=True)]

    panels = {
        dtype: {
            "plain NumPy": Dots(share(rows, "plain", 1), MUTED, "|"),
            "NumPy path": Dots(share(rows, "numpy", 1), NUMPY, "s"),
            "on two threads": Dots(share(rows, "numpy", 2), NUMPY, "s", filled=False),
            "compiled path": Dots(share(rows, "compiled", 1), COMPILED),
            "on two threads ": Dots(share(rows, "compiled", 2), COMPILED, filled=False),
        }
        for dtype in ("float64", "float32")
        for rows in [_of(result["passes"], dtype)]
    }
    names = [sizes(row["shape"]) for row in _of(result["passes"], "float64")]
    lines = {"one thread's limit": 1, "of two": 2}
    label = "share of the GEMM limit of one thread"
    return dot_panels(
        panels, names, xlabel=label, ylabel=LINES, lines=lines, width=9.2, xlim=(0, 2.15)
    )


def _draw_ratios(result: Result) -> Any:
    panels = {
        f"one pass, {dtype}": {
            "compiled path": Dots([row["faster_than_plain"]["compiled"] for row in rows], COMPILED),
            "NumPy path": Dots([row["faster_than_plain"]["numpy"] for row in rows], NUMPY, "s"),
        }
        for dtype in ("float64", "float32")
        for rows in [_of(result["passes"], dtype)]
    }
    times = [row["ms_per_iteration"] for row in result["iterations"]]

    def ratios(way: str) -> list[float]:
        return [ms["plain"] / ms[way] for ms in times]

    panels["one iteration, float64"] = {
        "compiled path": Dots(ratios("compiled"), COMPILED),
        "NumPy path": Dots(ratios("numpy"), NUMPY, "s"),
        "free line search": Dots(ratios("free"), FREE, "^"),
    }
    names = [sizes(row["shape"]) for row in result["iterations"]]
    values = [v for series in panels.values() for dots in series.values() for v in dots.values]
    return dot_panels(
        panels,
        names,
        xlabel="times faster than plain NumPy, one thread",
        ylabel=LINES,
        lines={"plain": 1},
        width=10.2,
        ticks=[0.2, 0.5, 1, 2, 5, 10, 20],
        xlim=(0.85 * min(1, *values), 1.2 * max(values)),
    )


SECTION = Section(
    "hotloop", "The hot loop on the CPU", ("passes", "iterations"), draw, targets, numbers
)

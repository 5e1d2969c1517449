"""The section on the CPU hot loop."""

from typing import Any

from _page.drawing import Dots, dot_plot, upright_bar, whole_ticks
from _page.section import Bar, Result, Section, at_least, sizes
from perpend.plots import COLORS, figure
from perpend.plots._style import MUTED

COMPILED, NUMPY, FREE = COLORS[0], COLORS[1], COLORS[2]
LINES = "rows × features, starts"
WIDE, MANY, NARROW = 200, 30, 20  # features and starts of the shapes that have bars
SHAPES = f"float64, {WIDE} features and {MANY} starts or more"
SHARE, TWO_THREADS, TIMES_PLAIN = 0.6, 1.6, 2.0


def numbers(result: Result) -> dict[str, Any]:
    """Return the passes in float64, and how many an iteration takes."""
    each = [row["evaluations"] / row["iterations"] for row in result["iterations"]]
    return {"double": _of(result["passes"], "float64"), "passes_each": each, "sizes": sizes}


def bars(result: Result) -> list[Bar]:
    """Ask for a share of the limit, for a use of two threads, and for more than plain NumPy."""
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
    with figure(1, 2, panel=(4.6, 3.5), sharex=True, sharey=True) as (drawing, axes):
        for ax, dtype in zip(axes.flat, ("float64", "float32"), strict=True):
            rows = _of(result["passes"], dtype)

            def share(way: str, threads: int, rows: list[Result] = rows) -> list[float]:
                """Of one thread's limit, whatever the number of threads."""
                one = [row["share_of_gemm_rate"][way] for row in rows]
                two = [row["two_threads_over_one"].get(way, 1.0) for row in rows]
                return [a * (b if threads == 2 else 1) for a, b in zip(one, two, strict=True)]

            series = {
                "plain NumPy": Dots(share("plain", 1), MUTED, "|"),
                "NumPy path": Dots(share("numpy", 1), NUMPY, "s"),
                "on two threads": Dots(share("numpy", 2), NUMPY, "s", filled=False),
                "compiled path": Dots(share("compiled", 1), COMPILED),
                "on two threads ": Dots(share("compiled", 2), COMPILED, filled=False),
            }
            dot_plot(ax, [sizes(row["shape"]) for row in rows], series)
            upright_bar(ax, 1, "one thread's limit")
            upright_bar(ax, 2, "of two")
            ax.set_title(dtype, pad=16)
            ax.set_xlim(0, 2.15)
        drawing.supxlabel("share of the GEMM limit of one thread", fontsize=10)
        axes[0, 0].set_ylabel(LINES)
        handles, names = axes[0, 0].get_legend_handles_labels()
        drawing.legend(handles, names, loc="outside upper center", ncols=5, columnspacing=1.2)
    return drawing


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
    with figure(1, 3, panel=(3.4, 3.4), sharex=True, sharey=True) as (drawing, axes):
        for ax, (title, series) in zip(axes.flat, panels.items(), strict=True):
            dot_plot(ax, names, series)
            upright_bar(ax, 1, "plain")
            ax.set_title(title, pad=16)
        values = [v for series in panels.values() for dots in series.values() for v in dots.values]
        axes[0, 0].set_xscale("log")
        whole_ticks(axes[0, 0].xaxis, [0.2, 0.5, 1, 2, 5, 10, 20])
        axes[0, 0].set_xlim(0.85 * min(1, *values), 1.2 * max(values))
        axes[0, 0].set_ylabel(LINES)
        drawing.supxlabel("times faster than plain NumPy, one thread", fontsize=10)
        handles, labels = axes[0, 2].get_legend_handles_labels()
        drawing.legend(handles, labels, loc="outside upper center", ncols=3)
    return drawing


SECTION = Section(
    "hotloop", "The hot loop on the CPU", ("passes", "iterations"), draw, bars, numbers
)

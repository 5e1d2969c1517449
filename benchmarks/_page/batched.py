"""The section on small problems and stacks of problems on a GPU."""

from typing import Any

from _page.drawing import beside, level_bars, name_lines, upright_line
from _page.section import Result, Section, Target, at_most, number
from perpend.plots import COLORS, figure
from perpend.plots._style import MUTED

ITERATION_US, FIT_MS, GRID_SECONDS = 10, 5, 60
KERNELS = {"pair": "fused, bf16 high + low", "double": "fused, float64", "eager": "eager torch"}
FITS = {
    "fit": "`dpcp_batch`, whole fit",
    "fit_without_finish": "the same without its finish",
    "fit_in_plain_torch": "the same in eager torch",
}


PARTS = {"data": MUTED, "copy": COLORS[2], "solve": COLORS[0], "measure": COLORS[1]}


def targets(result: Result) -> list[Target]:
    """An iteration, a fit, and each run of the grid."""
    small = result["small"]
    size = "{:,} × {}, {} starts".format(*small["shape"])
    us, ms = small["iteration_us"], small["fit_ms"]
    double = f" ({number(us['double'])} in float64)"
    return [
        at_most(f"an iteration, {size}", [us["pair"]], ITERATION_US, " microseconds", double),
        at_most(f"a whole warm fit, {size}", [ms["fit"]], FIT_MS, " ms"),
        *(
            at_most(f"the grid, {name}", [run["seconds"]["total"]], GRID_SECONDS, " s")
            for name, run in result["grid"].items()
        ),
    ]


def draw(result: Result) -> dict[str, Any]:
    """Draw one small problem, and the grid."""
    return {"cuda-small": _draw_small(result["small"]), "cuda-grid": _draw_grid(result["grid"])}


def _draw_small(small: Result) -> Any:
    names = {key: name.replace("`", "") for key, name in FITS.items()}
    with figure(1, 2, panel=(5.0, 2.1)) as (drawing, axes):
        one, two = axes.flat
        _bars_of(one, small["iteration_us"], KERNELS, ITERATION_US, "µs")
        one.set(xlabel="microseconds for an iteration")
        _bars_of(two, small["fit_ms"], names, FIT_MS, "ms")
        two.set(xlabel="milliseconds for a warm fit")
    return drawing


def _bars_of(
    ax: Any, values: dict[str, float], names: dict[str, str], target: float, unit: str
) -> None:
    shown = {name: values[key] for key, name in names.items()}
    colors = [MUTED if "eager" in name else COLORS[0] for name in shown]
    level_bars(ax, shown, [number(value) for value in shown.values()], colors)
    upright_line(
        ax, target, f"target {target} {unit}", (1 - 1 / len(names), 1)
    )  # of the first line alone
    ax.set_xlim(0, 1.2 * max(target, *shown.values()))


def _draw_grid(grid: dict[str, Result]) -> Any:
    """Stack the parts of each run's time."""
    with figure(1, 1, panel=(7.4, 2.3)) as (drawing, axes):
        ax = axes[0, 0]
        for i, run in enumerate(grid.values()):
            start = 0.0
            for part, color in PARTS.items():
                name = None if i else part
                ax.barh(i, run["seconds"][part], 0.5, left=start, color=color, label=name)
                start += run["seconds"][part]
            beside(ax, start, i, f"{number(run['seconds']['total'])} s")
        name_lines(ax, list(grid))
        upright_line(ax, GRID_SECONDS, f"target {GRID_SECONDS} s")
        largest = max(run["seconds"]["total"] for run in grid.values())
        ax.set(xlabel="seconds for the whole grid", xlim=(0, 1.2 * max(GRID_SECONDS, largest)))
        drawing.legend(loc="outside right center")
    return drawing


SECTION = Section(
    "cuda_batched",
    "Small problems and many at once, on a GPU",
    ("small", "many", "grid"),
    draw,
    targets,
    lambda _: {"kernels": KERNELS, "fits": FITS},
)

"""The section on Dask."""

from typing import Any

from _page.drawing import level_bars, upright_line
from _page.section import Result, Section, Target, at_most
from perpend.plots import COLORS, figure
from perpend.plots._style import MUTED

OVERHEAD_MS = 50.0


def targets(result: Result) -> list[Target]:
    """The overhead of a pass, and fits that end with the same bits."""
    overhead, kills = result["overhead"], result["kills"]
    equal, trials = kills["equal"], kills["trials"]
    return [
        at_most(
            f"overhead of a pass, {overhead['workers']} workers, {overhead['blocks']} blocks",
            [overhead["overhead_ms"]["median"]],
            OVERHEAD_MS,
            " ms",
        ),
        Target(
            "complete and equal to the undisturbed fit, one of three workers killed",
            "100 of 100",
            f"{equal} of {trials}",
            equal == trials >= 100,
        ),
    ]


def draw(result: Result) -> dict[str, Any]:
    """Draw the work of a pass and what comes on top."""
    part = result["overhead"]
    times = {"the work": part["ms_of_work"], "on top": part["overhead_ms"]["median"]}
    with figure(1, 1, panel=(4.8, 1.6)) as (drawing, axes):
        ax = axes.flat[0]
        level_bars(ax, times, [f"{ms:.0f} ms" for ms in times.values()], (MUTED, COLORS[0]))
        upright_line(ax, OVERHEAD_MS, f"target {OVERHEAD_MS:g} ms", (0, 0.5))
        ax.set(xlabel="one pass (ms)", xlim=(0, 1.25 * max(OVERHEAD_MS, *times.values())))
    return {"dask": drawing}


SECTION = Section("dask_cluster", "Dask", ("overhead", "scaling", "kills"), draw, targets)

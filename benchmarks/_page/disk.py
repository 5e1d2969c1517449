"""The section on rows from disk."""

from typing import Any

from _page.drawing import level_bars, upright_line
from _page.section import Result, Section, Target, at_most
from perpend.plots import COLORS, figure
from perpend.plots._style import MUTED

BEYOND_MIB = 300.0  # beside the memory limit
SLOWER = 1.3  # times the larger of reading and the fit in memory


def targets(result: Result) -> list[Target]:
    """Memory and time beside a fit in memory, and a fit under a limit of the system."""
    half, limited = result["half"], result["limited"]
    most = int(result["limit"].removesuffix("MiB")) + BEYOND_MIB
    by = {"in Python": limited, "by `perpend fit`": limited["command"]}
    return [
        at_most("anonymous memory of the fit", [half["anonymous_mib"]], most, " MiB"),
        at_most("time over the larger of reading and memory", [half["ratio"]], SLOWER),
        *(_in_limit(result, how, found) for how, found in by.items()),
    ]


def _in_limit(result: Result, how: str, found: dict[str, Any]) -> Target:
    limited = result["limited"]
    ended = found.get("codimension") == result["codimension"]
    measured = f"right, {found['anonymous_mib']:.0f} MiB" if ended else "no"
    what = f"{limited['gib']:g} GiB fitted and labelled in {limited['mib']} MiB, {how}"
    return Target(what, "yes", measured, ended)


def draw(result: Result) -> dict[str, Any]:
    """Draw the times."""
    half = result["half"]
    names = {"disk": "from disk", "memory": "in memory", "reading": "reading alone"}
    times = {names[key]: seconds for key, seconds in half["seconds"].items()}
    largest = max(half["seconds"]["memory"], half["seconds"]["reading"])
    with figure(1, 1, panel=(4.8, 1.8)) as (drawing, axes):
        ax = axes.flat[0]
        colors = (COLORS[0], MUTED, MUTED)
        level_bars(ax, times, [f"{seconds:.1f} s" for seconds in times.values()], colors)
        upright_line(ax, SLOWER * largest, f"target {SLOWER:g} x", (0, 0.5))
        ax.set(xlabel="seconds", xlim=(0, 1.3 * max(SLOWER * largest, *times.values())))
    return {"disk": drawing}


SECTION = Section("disk", "Rows from disk", ("half", "limited"), draw, targets)

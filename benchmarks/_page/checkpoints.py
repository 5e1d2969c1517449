"""The section on fits that are killed and go on."""

from typing import Any

from _page.drawing import Dots, dot_panels
from _page.section import Result, Section, Target, at_most
from perpend.plots import COLORS


def targets(result: Result) -> list[Target]:
    """All trials end the same, no checkpoint is ever corrupt, and saving costs little."""
    rows = result["settings"].values()
    trials, equal, found, corrupt = (
        sum(row[key] for row in rows) for key in ("trials", "equal", "found", "corrupt")
    )
    ratios = [one["saving"] / one["plain"] for one in result["costs"].values()]
    return [
        Target("killed fits that complete and are equal", "all", f"{equal} of {trials}",
               equal == trials >= result["least_trials"]),
        Target("corrupt checkpoints after a kill", "none", f"{corrupt} of {found}", corrupt == 0),
        at_most("CPU time with a checkpoint over that without", ratios, result["most_cost"]),
    ]  # fmt: skip


def draw(result: Result) -> dict[str, Any]:
    """Draw what a fit costs without a checkpoint, with one, and when it is replayed."""
    costs = result["costs"]
    words = {"plain": "no checkpoint", "saving": "with a checkpoint", "replay": "replay"}
    series = {
        word: Dots([one[key] for one in costs.values()], COLORS[i], "Dos"[i], filled=i > 0)
        for i, (key, word) in enumerate(words.items())
    }
    label = "CPU seconds"
    return {"checkpoints": dot_panels({"": series}, list(costs), xlabel=label, lines={})}


SECTION = Section("checkpoints", "Killed and resumed", ("settings", "costs"), draw, targets)

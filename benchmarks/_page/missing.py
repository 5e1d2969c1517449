"""The section on missing entries."""

from typing import Any

from _text import percent

from _page.drawing import Dots, dot_panels
from _page.section import Result, Section, Target, at_most
from perpend.plots import COLORS


def _name(row: Result) -> str:
    return f"codimension {row['c']}, {percent(row['share'])} missing"


def targets(result: Result) -> list[Target]:
    """The codimension and the error of the settings with a target, and the clouds."""
    found = []
    for row in result["mixed"]:
        if row["target"] is None:
            continue
        right, seeds = round(row["ways"]["mask"]["right"]), row["seeds"]
        found += [
            Target(
                f"right codimension, {_name(row)}", "all", f"{right} of {seeds}", right == seeds
            ),
            at_most(
                f"mean error over that of complete rows, {_name(row)}",
                [row["ratio"]],
                row["target"],
            ),
        ]
    sure, seeds = (sum(row[key] for row in result["clouds"]) for key in ("sure", "seeds"))
    found.append(Target("sure in clouds with gaps", "none", f"{sure} of {seeds}", sure == 0))
    return found


def draw(result: Result) -> dict[str, Any]:
    """Draw the mean error of each way."""
    labels = {"complete": "complete rows", "mask": 'missing="mask"', "mean": "column means"}
    marks = {"complete": "D", "mask": "o", "mean": "s"}
    series = {
        label: Dots([row["ways"][way]["error"] for row in result["mixed"]], COLORS[i], marks[way])
        for i, (way, label) in enumerate(labels.items())
    }
    names = [_name(row) for row in result["mixed"]]
    label = "mean subspace error (1 where the codimension is wrong)"
    return {"missing": dot_panels({"": series}, names, xlabel=label, lines={}, xscale="log")}


SECTION = Section("missing", "Missing entries", ("mixed", "clouds"), draw, targets)

"""The section on the CPU time of the tests."""

from typing import Any

from _page.drawing import Dots, dot_panels
from _page.section import Result, Section, Target, at_most
from perpend.plots import COLORS

NAMES = {"before": "version 0.1", "now": "now"}


def targets(result: Result) -> list[Target]:
    """At most half the time of version 0.1's suite."""
    what = "CPU time of the tests of `make test` over that of version 0.1's"
    return [at_most(what, [result["ratio"]], result["limit"])]


def draw(result: Result) -> dict[str, Any]:
    """Draw the CPU minutes of both suites beside the target."""
    minutes = {name: result["suites"][name]["cpu_seconds"] / 60 for name in NAMES}
    most = result["limit"] * minutes["before"]
    series = {
        "measured": Dots(list(minutes.values())),
        "target": Dots([float("nan"), most], COLORS[1], "|"),
    }
    limits = (0.0, 1.1 * max(minutes.values()))
    label = "CPU time in minutes"
    names = list(NAMES.values())
    return {"suite": dot_panels({"": series}, names, xlabel=label, lines={}, xlim=limits)}


SECTION = Section(
    "suite",
    "The time of the tests",
    ("suites", "ratio"),
    draw,
    targets,
    lambda _: {"names": NAMES},
    script="suite.py CHECKOUT",
)

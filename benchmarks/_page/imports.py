"""The section on importing perpend and showing its help."""

from typing import Any

from _page.drawing import Dots, dot_panels
from _page.section import Result, Section, Target, at_most
from perpend.plots import COLORS


def targets(result: Result) -> list[Target]:
    """Two times, as multiples of what they are built on."""
    return [
        at_most(f"time of {_name(row)}", [row["ratio"]], row["limit"]) for row in result["results"]
    ]


def _name(row: Result) -> str:
    return f"`{row['ours']}` over `{row['theirs']}`"


def draw(result: Result) -> dict[str, Any]:
    """Draw the ratios beside their targets."""
    rows = result["results"]
    series = {
        "measured": Dots([row["ratio"] for row in rows]),
        "target": Dots([row["limit"] for row in rows], COLORS[1], "|"),
    }
    names = [row["ours"] for row in rows]
    label = "time over that of what it is built on"
    return {"imports": dot_panels({"": series}, names, xlabel=label, lines={}, xlim=(0, 2.2))}


SECTION = Section(
    "imports", "Imports and help", ("results",), draw, targets, lambda _: {"name": _name}
)

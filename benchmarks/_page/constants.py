"""The section on the constants: how far estimates move when one of them is another."""

from typing import Any

from _page.drawing import Dots, dot_panels
from _page.section import Result, Section
from perpend.plots import COLORS


def _most(row: Result) -> int:
    return max(step["moved"] for step in row["changes"])


def _moving(result: Result) -> list[Result]:
    """Return the constants that move an estimate, those that move most first."""
    return sorted((row for row in result["results"] if _most(row)), key=_most, reverse=True)


def numbers(result: Result) -> dict[str, Any]:
    """Return the constants that move an estimate, and those that move none, read or not."""
    moving = _moving(result)
    still = [row for row in result["results"] if row not in moving]
    return {
        "n": sum(result["problems"].values()),
        "moving": moving,
        "most": max(map(_most, result["results"])),
        "used": [f"`{row['name']}`" for row in still if row["read_in"]],
        "unused": [f"`{row['name']}`" for row in still if not row["read_in"]],
    }


def draw(result: Result) -> dict[str, Any]:
    """Draw the share of estimates that move, a line for each constant that moves any."""
    moving, n = _moving(result), sum(result["problems"].values())
    if not moving:
        return {}
    smaller, larger = ([100 * row["changes"][way]["moved"] / n for row in moving] for way in (0, 1))
    series = {
        "smaller": Dots(smaller, marker="<"),
        "larger": Dots(larger, COLORS[1], ">", filled=False),
    }
    names = [row["name"] for row in moving]
    lines = {"other starts": 100 * result["other_starts"]["moved"] / n}
    drawing = dot_panels({"": series}, names, xlabel="% of the estimates that move", lines=lines)
    return {"constants": drawing}


SECTION = Section(
    "constants",
    "What the constants decide",
    ("first_seed", "full", "problems", "default", "other_starts", "results"),
    draw,
    numbers=numbers,
)

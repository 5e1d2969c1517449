"""The sections on released code and on schedules of steps."""

from typing import Any

from _page.drawing import Dots, dot_panels
from _page.section import Result, Section, Target, at_most
from perpend.plots import COLORS

RATIO = 1.0


def _name(row: Result) -> str:
    return f"{row['method']}, {row['rows']:,} × {row['features']}, c = {row['codimension']}"


def _ratio(row: Result, what: str) -> float:
    times: dict[str, float] = row["milliseconds"]
    return times[what] / times["released"]


def _behind(rows: list[Result], n_rows: int) -> float:
    """Return the milliseconds by which the search for one normal of `RSGM` is behind, or 0."""
    times = [
        row["milliseconds"]
        for row in rows
        if (row["method"], row["rows"], row["codimension"]) == ("RSGM", n_rows, 1)
    ]
    return max((time["search"] - time["released"] for time in times), default=0.0)


def _each(rows: list[Result]) -> list[float]:
    """Return the times of one iteration of `STE` over those of the port."""
    counts = [(row, row["iterations"]) for row in rows if row["method"] == "STE"]
    return [_ratio(row, "search") * n["released"] / n["search"] for row, n in counts]


def targets(result: Result) -> list[Target]:
    """The search at least as fast as released code."""
    return [
        at_most(f"search over released code, {_name(row)}", [_ratio(row, "search")], RATIO)
        for row in result["results"]
    ]


def draw(result: Result) -> dict[str, Any]:
    """Draw the ratios."""
    rows = result["results"]
    series = {
        "search": Dots([_ratio(row, "search") for row in rows]),
        "fit": Dots([_ratio(row, "fit") for row in rows], COLORS[1], "s", filled=False),
    }
    names, ticks = [_name(row) for row in rows], [0.2, 0.5, 1, 2, 5, 10, 20]
    lines, label = {f"target {RATIO:g}": RATIO}, "time over that of the released code"
    return {"released": dot_panels({"": series}, names, xlabel=label, lines=lines, ticks=ticks)}


def draw_schedules(result: Result) -> dict[str, Any]:
    """Draw how many starts arrive, and how diverse their ends are."""
    rows = result["results"]
    names = list(dict.fromkeys(row["rule"] for row in rows))
    panels = {
        where: {
            label: Dots(
                [row[key] for row in rows if row["settings"] == where], color, mark, filled=filled
            )
            for key, label, color, mark, filled in (
                ("arrived", "share of starts at normals", COLORS[0], "o", True),
                ("spread", "c-th over largest singular value", COLORS[1], "s", False),
            )
        }
        for where in dict.fromkeys(row["settings"] for row in rows)
    }
    return {"schedules": dot_panels(panels, names, xlabel="", lines={}, xscale="linear")}


RELEASED = Section(
    "released",
    "Beside released code",
    ("results", "outliers"),
    draw,
    targets,
    lambda _: {"name": _name, "ratio": _ratio, "behind": _behind, "each": _each},
    "released.py FOLDER",
)
SCHEDULES = Section(
    "schedules",
    "Escape and diversity of step rules",
    ("results", "first_seed"),
    draw_schedules,
)

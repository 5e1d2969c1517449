"""The section on the constants: how far answers move when one of them is another."""

from typing import Any

from _page.drawing import Dots, dot_plot, upright_bar
from _page.section import Bar, Result, Section, image
from perpend.experiments._text import listed, table
from perpend.plots import COLORS, figure

HEADER = ("constant", "value", "read in", "smaller", "moved", "right", "sure and wrong")
HEADER += ("larger", *HEADER[4:])


def describe(result: Result) -> str:
    """Say how many answers move, constant by constant."""
    n = sum(result["problems"].values())
    moving, most = _moving(result), max(map(_most, result["results"]))
    default, other = result["default"], result["other_starts"]
    still = [row for row in result["results"] if row not in moving]
    read = {row["name"]: row["read_in"] for row in still}
    parts = [
        "Each limit in `perpend.structure.constants` was made smaller and larger, one at a time: "
        "by factors of 0.8 and 1.25, those near one by the same factors of their distance to "
        f"one, small whole numbers by one. {n} problems of the suites above, at most 30 features, "
        f"seeds from {result['first_seed']}. An answer has *moved* if its codimension is another "
        "one, if it became sure or unsure, or if more than 1 % of the rows have another label. "
        f"With other starts alone {other['moved']} of {n} move; no change of a constant moves "
        f"more than {most}.",
        f"As the constants are, {default['right']} answers are right and "
        f"{default['sure_and_wrong']} sure and wrong.",
    ]
    if moving:
        parts += [
            image("constants", "Answers that move when one constant is changed"),
            table(HEADER, [_cells(row) for row in moving]),
            "In brackets: by codimension, sureness, labels. *Read in*: problems whose fit asks for "
            "the constant.",
        ]
    used, unused = ([name for name in read if bool(read[name]) == asked] for asked in (True, False))
    if used:
        parts.append(f"Read, and no answer moves: {_names(used)}.")
    if unused:
        parts.append(f"Not read on these problems, so nothing is said of them: {_names(unused)}.")
    if n < result["full"]:
        parts.append(f"**A small run**: {n} of {result['full']} problems.")
    return "\n\n".join(parts)


def _names(names: list[str]) -> str:
    return listed([f"`{name}`" for name in names], at_most=len(names))


def _most(row: Result) -> int:
    return max(step["moved"] for step in row["changes"])


def _moving(result: Result) -> list[Result]:
    """Return the constants that move an answer, those that move most first."""
    return sorted((row for row in result["results"] if _most(row)), key=_most, reverse=True)


def _cells(row: Result) -> list[Any]:
    cells: list[Any] = [f"`{row['name']}`", f"{row['value']:.4g}", row["read_in"]]
    for step in row["changes"]:
        ways = f"{step['codimension']}, {step['sureness']}, {step['labels']}"
        moved = f"{step['moved']} ({ways})"
        cells += [f"{step['to']:.4g}", moved, step["right"], step["sure_and_wrong"]]
    return cells


def bars(result: Result) -> list[Bar]:
    """No bar was set here."""
    del result
    return []


def draw(result: Result) -> dict[str, Any]:
    """Draw the share of answers that move, a line for each constant that moves any."""
    moving, n = _moving(result), sum(result["problems"].values())
    if not moving:
        return {}
    smaller, larger = ([100 * row["changes"][way]["moved"] / n for row in moving] for way in (0, 1))
    with figure(1, 1, panel=(5.6, 0.22 * len(moving) + 1.0)) as (drawing, axes):
        ax = axes[0, 0]
        series = {
            "smaller": Dots(smaller, marker="<"),
            "larger": Dots(larger, COLORS[1], ">", filled=False),
        }
        dot_plot(ax, [row["name"] for row in moving], series)
        upright_bar(ax, 100 * result["other_starts"]["moved"] / n, "other starts")
        ax.set(xlabel="% of the answers that move")
        ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1), fontsize=8)
    return {"constants": drawing}


SECTION = Section(
    "constants",
    "What the constants decide",
    "python benchmarks/constants.py",
    ("first_seed", "full", "problems", "default", "other_starts", "results"),
    describe,
    bars,
    draw,
)

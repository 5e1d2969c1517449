"""The table of outliers, with its numbers as text."""

from typing import NamedTuple

from perpend.plots._words import number
from perpend.report._facts import Facts
from perpend.report._outliers import Blame, OutlierRow
from perpend.report._text import COEFFICIENT, column_name, digits_needed, percent, short


class Row(NamedTuple):
    """One row: its name, its place among all, numbers and the columns to blame."""

    name: str
    place: int
    numbers: list[tuple[str, str, float]]  # name, text and value
    blame: list[tuple[str, str]]  # column, and its change


class Table(NamedTuple):
    """The table; there is a column for each of `numbers`."""

    rows: list[Row]
    total: int
    numbers: list[str]
    blamed: bool
    image: bool


def outlier_table(facts: Facts) -> Table | None:
    """Return the strongest outliers and the columns that make each of them one."""
    outliers = facts["outliers"]
    if outliers is None or not outliers["rows"]:
        return None
    rows = [_row(row, facts) for row in outliers["rows"]]
    return Table(
        rows,
        outliers["total"],
        [name for name, *_ in rows[0].numbers],
        blamed=any(row.blame for row in rows),
        image=outliers["rows"][0]["pixel"] is not None,
    )


def _row(row: OutlierRow, facts: Facts) -> Row:
    pixel, p, names = row["pixel"], row["probability"], facts["data"]["columns"]
    cloud = facts["pictures"]["cloud"]
    error = cloud["size"] / 2000 if cloud else 0.0  # of a coordinate
    numbers = [
        (short(column_name(names, j), 20), number(v, digits_needed(v, 1.0, error)), v)
        for j, v in enumerate(row.get("place") or [])
    ]
    shown = "unknown" if p is None else percent(p)
    numbers.append(("Distance", number(row["distance"]), row["distance"]))
    numbers.append(("Probability", shown, -1.0 if p is None else p))
    return Row(
        f"{pixel[0]}, {pixel[1]}" if pixel else str(row["row"]),
        row["row"],
        numbers,
        [(column_name(names, blame["column"]), _change(blame)) for blame in row["blame"]],
    )


def _change(blame: Blame) -> str:
    """Say how a column would have to change."""
    before, after = blame["value"], blame["fits"]
    error = abs(before - after) / 20  # far from the origin both may have the same first digits
    change = " → ".join(number(v, _digits(v, error)) for v in (before, after))
    if "moves" not in blame:
        return f" {blame['share']:.0%}: {change}"
    moves = blame["moves"]
    return f": {change}" if moves is None else f" {number(moves, 2)} spreads: {change}"


def _digits(value: float, error: float) -> int:
    """Return three digits, or more if the error needs them."""
    needed = digits_needed(value, 1.0, error)
    return needed if needed > COEFFICIENT[0] else 3

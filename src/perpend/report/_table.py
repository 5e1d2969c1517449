"""The numbers of the table of outliers as people read them."""

from typing import NamedTuple

from perpend.plots._words import number
from perpend.report._facts import Facts
from perpend.report._outliers import Blame, OutlierRow
from perpend.report._text import COEFFICIENT, column_name, digits_needed, percent, short


class Row(NamedTuple):
    """One row: its name, its place among all, numbers and the columns to blame."""

    name: str
    place: int
    numbers: list[tuple[str, str, float]]  # of what, in words, and itself
    blame: list[tuple[str, str]]  # column, and how


class Table(NamedTuple):
    """The table; there is a column for each of `numbers`."""

    rows: list[Row]
    total: int
    numbers: list[str]
    blamed: bool
    image: bool


def outlier_table(facts: Facts) -> Table | None:
    """Return the strongest outliers and the columns that make each of them one."""
    found = facts["outliers"]
    if found is None or not found["rows"]:
        return None
    rows = [_row(row, facts) for row in found["rows"]]
    return Table(
        rows,
        found["total"],
        [name for name, *_ in rows[0].numbers],
        blamed=any(row.blame for row in rows),
        image=found["rows"][0]["pixel"] is not None,
    )


def _row(row: OutlierRow, facts: Facts) -> Row:
    pixel, p, names = row["pixel"], row["probability"], facts["data"]["columns"]
    cloud = facts["pictures"]["cloud"]
    error = cloud["size"] / 2000 if cloud else 0.0  # that a coordinate may be off
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
        [(column_name(names, blame["column"]), _how(blame)) for blame in row["blame"]],
    )


def _how(blame: Blame) -> str:
    """Say what a column would have to do."""
    before, after = blame["value"], blame["fits"]
    seen = abs(before - after) / 20  # far from the origin both look alike in a few digits
    change = " → ".join(number(v, _digits(v, seen)) for v in (before, after))
    if "moves" not in blame:
        return f" {blame['share']:.0%}: {change}"
    moves = blame["moves"]
    return f": {change}" if moves is None else f" {number(moves, 2)} spreads: {change}"


def _digits(value: float, error: float) -> int:
    """Three digits, or as many more as the error asks for."""
    needed = digits_needed(value, 1.0, error)
    return needed if needed > COEFFICIENT[0] else 3

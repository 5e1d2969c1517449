"""Markdown for the pages."""

from collections.abc import Iterable, Sequence
from typing import Any


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a Markdown table.

    >>> print(table(["method", "F1"], [["RSGM", 0.5]]))
    | method | F1 |
    |---|---|
    | RSGM | 0.5 |
    """
    lines = [header, ["---"] * len(header), *rows]
    first, rule, *rest = ["| " + " | ".join(str(cell) for cell in line) + " |" for line in lines]
    return "\n".join([first, rule.replace(" ", ""), *rest])


def percent(share: float) -> str:
    """Return a share as a percentage; only all and nothing are written as such.

    >>> percent(1.0), percent(0.996), percent(0.5), percent(0.9999), percent(0.0001)
    ('100 %', '99.6 %', '50 %', '99.9 %', '0.1 %')
    """
    value = round(100 * float(share), 6)
    if value.is_integer():
        return f"{value:.0f} %"
    return f"{min(max(round(value, 1), 0.1), 99.9):.1f} %"


def listed(items: Iterable[Any], *, at_most: int = 12) -> str:
    """Return items with commas; the end of a long list is counted, not written.

    >>> listed([1, 2, 3], at_most=2)
    '1, 2 and 1 more'
    """
    texts = [str(item) for item in items]
    if not texts:
        return "none"
    more = len(texts) - at_most
    return ", ".join(texts[:at_most]) + (f" and {more} more" if more > 0 else "")

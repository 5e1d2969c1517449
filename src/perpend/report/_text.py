"""Numbers and names as text; the rows of an image are pixels, those of a cloud are points."""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

from perpend.plots._words import number

Facts: TypeAlias = dict[str, Any]
"""Numbers and texts that can be kept as JSON."""

NAME_LENGTH = 48  # characters of a name that are shown
COEFFICIENT = (4, 12)  # digits, at least and at most


def column_labels(names: Iterable[Any], kind: str = "table") -> list[str]:
    """Return names of columns for sentences and equations.

    Numbers get a word before them: a column without a name is "column 3", counted from 1 as in
    ``--columns``, and a band of an image is "band 3".

    >>> column_labels(["red", "7", "", 410.5])
    ['red', 'column 7', 'column 3', 'column 410.5']
    """
    word = "band" if kind == "image" else "column"
    texts = [str(name) or str(j + 1) for j, name in enumerate(names)]
    return [f"{word} {text}" if is_number(text) else text for text in texts]


def is_number(text: str) -> bool:
    """Say whether a text reads as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def column_name(names: list[str], j: int) -> str:
    """Return the name of a column, or its number if its name was not kept."""
    return names[j] if j < len(names) else f"column {j + 1}"


def digits_needed(value: float, factor: float, error: float) -> int:
    """Return the digits of a value that keep it, times a factor, within an error.

    >>> digits_needed(0.01000319, 5e6, 0.0025), digits_needed(42288.2, 1.0, 0.001)
    (8, 8)
    """
    least, most = COEFFICIENT
    if error <= 0 or value == 0 or factor == 0:
        return least
    decimals = math.ceil(math.log10(abs(factor) / (2 * error)))  # 10^-decimals / 2 is its rounding
    return min(max(decimals + math.floor(math.log10(abs(value))) + 1, least), most)


def moved(value: float, to: float) -> str:
    """Return a change from one value to another, with three digits or as many as show it.

    >>> moved(1000.5, 1000.0), moved(2.0, 0.12345)
    ('1000.5 → 1000', '2 → 0.123')
    """
    error = abs(value - to) / 20  # far from the origin both may have the same first digits
    digits = (digits_needed(v, 1.0, error) for v in (value, to))
    shown = [n if n > COEFFICIENT[0] else 3 for n in digits]
    return f"{number(value, shown[0])} → {number(to, shown[1])}"


def percent(share: float) -> str:
    """Return a share in percent; 0 and 100 only if they are exact.

    >>> percent(0.4), percent(0.12345), percent(1e-6), percent(0.99999), percent(1.0)
    ('40 %', '12.3 %', 'under 0.1 %', 'over 99.9 %', '100 %')
    """
    if 0 < share < 0.001:
        return "under 0.1 %"
    if 0.999 < share < 1:
        return "over 99.9 %"
    return f"{100 * share:.3g} %"


def short(text: Any, shown: int = NAME_LENGTH) -> str:
    """Return a text on one line, cut if it is long.

    >>> short("a" * 60, 8)
    'aaaaaaa…'
    """
    line = " ".join(str(text).split())
    return line if len(line) <= shown else line[: shown - 1] + "…"


def readable(value: Any) -> Any:
    r"""Return facts without characters that cannot be shown or encoded: controls, lone surrogates.

    >>> readable({"names": ["a\x00b\ud800c\u202e"]})
    {'names': ['a�b�c�']}
    """
    if isinstance(value, dict):
        return {readable(key): readable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [readable(item) for item in value]
    if isinstance(value, str):
        kept = "\n\t\u202f\u00a0"
        return "".join(c if c.isprintable() or c in kept else "\ufffd" for c in value)
    return value


def png(address: str) -> str:
    """Return the address of a picture that is part of the page; refuse any other."""
    if not str(address).startswith("data:image/png;base64,"):
        raise ValueError(f"{str(address)[:40]!r} is not a picture inside the page.")
    return address


class Nouns(NamedTuple):
    """The words for rows and columns."""

    row: str
    rows: str
    column: str
    columns: str


def nouns(kind: str, n_columns: int) -> Nouns:
    """Return the words that fit the kind of data; points with more than x, y and z have columns."""
    row, column = {"image": ("pixel", "band"), "cloud": ("point", "coordinate")}.get(
        kind, ("row", "column")
    )
    if kind == "cloud" and n_columns > 3:
        column = "column"
    return Nouns(row, f"{row}s", column, f"{column}s")

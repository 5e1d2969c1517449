"""Columns that number the rows of a table: not measurements, but a fit cannot know that."""

import shlex
from typing import TYPE_CHECKING, Any

from perpend.cli._input import feature_name

if TYPE_CHECKING:
    import numpy as np

    from perpend.formats import Dataset

ID_NAMES = {"id", "index", "row"}  # columns of these names need not go up in equal steps
LEAST_ROWS = 10  # with fewer rows, equal steps may be chance
COLUMNS_IN_MESSAGE = 12


def likely_ids(data: "Dataset") -> list[int]:
    """Return the indices of the columns that most likely number the rows of a table.

    Their values go up by the same whole number from row to row, even if rows in between were left
    out. Or they are different whole numbers in a column called "id", "index" or "row". Arrays
    without names are not checked: evenly spaced values may well be measured there.
    """
    if data.kind != "table" or (data.columns is None and data.stored_dtype != "text"):
        return []
    names = data.columns or ("",) * data.X.shape[1]
    return [
        j
        for j, name in enumerate(names)
        if _counts(data, j) or (name.strip().casefold() in ID_NAMES and _distinct(data.X[:, j]))
    ]


def remark_on_ids(data: "Dataset") -> list[str]:
    """Say which columns are most likely ids, and how to leave them out.

    There is no remark if there are no such columns, or no others.
    """
    ids = likely_ids(data)
    others = [j for j in range(data.X.shape[1]) if j not in ids]
    if not ids or not others:
        return []
    named = ", ".join(feature_name(data, j) for j in ids)
    if len(ids) == 1:
        what, them = f"column {named} most likely numbers the rows and is no measurement", "it"
    else:
        what, them = f"columns {named} most likely number the rows and are no measurements", "them"
    names = [data.columns[j] if data.columns else str(j + 1) for j in others]
    can_be_named = len(set(names)) == len(names) and all(n and "," not in n for n in names)
    advice = f"add --columns {shlex.quote(','.join(names))}"
    if len(names) > COLUMNS_IN_MESSAGE or not can_be_named:
        advice = "name all others by --columns"
    return [f"{what}. To leave {them} out, {advice}."]


def _counts(data: "Dataset", column: int) -> bool:
    """Whether the values are whole numbers that go up in equal steps."""
    import numpy as np

    if len(data.X) < LEAST_ROWS:
        return False
    row = np.arange(len(data.X)) if data.positions is None else data.positions
    first, second = map(float, data.X[:2, column])
    step = (second - first) / float(row[1] - row[0])
    if not (step >= 1 and step.is_integer() and first.is_integer()):
        return False
    return bool(np.array_equal(data.X[:, column], first + step * (row - row[0])))


def _distinct(values: "np.ndarray[Any, Any]") -> bool:
    """Whether the values are whole numbers, no two of them equal."""
    import numpy as np

    return bool(np.all(values == np.floor(values)) and len(np.unique(values)) == len(values))

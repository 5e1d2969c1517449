"""Columns of a table that are no measurements: empty, constant, or numbering the rows."""

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from perpend.cli._options import STANDARDIZED
from perpend.exceptions import InputError

if TYPE_CHECKING:
    from perpend._typing import Array
    from perpend.formats import Dataset

TEXT, EMPTY, CONSTANT, COUNTS = "text or dates", "empty", "constant", "numbers the rows"
GAPS = "missing values"
# Columns of these names, such as "id", "customer_id" and "PassengerId", need no equal steps.
ID_NAMES = re.compile(r"(?i:\s*(id|index|row|.*[ _.-]id)\s*)|.*[a-z]I[dD]")
LEAST_ROWS = 10  # with fewer rows, equal steps may be chance
MANY_MORE = 4  # times as many columns as rows: the table may lie on its side


def feature_name(data: "Dataset", column: int) -> str:
    """Return the name of a column for a message, or its number from 1."""
    name = data.columns[column] if data.columns else ""
    return f'"{name}"' if name else str(column + 1)


def idle_columns(data: "Dataset") -> dict[str, list[int]]:
    """Return the columns that a fit leaves out, by the reason why; none if none would be left.

    Columns that number the rows go up by the same whole number from row to row. Or they are
    different whole numbers in a column called "id", "index" or "row". Arrays and scans are not
    checked: a column of ones or evenly spaced values may well be meant there.
    """
    import numpy as np

    if data.format not in STANDARDIZED:
        return {}
    low, high = np.fmin.reduce(data.X, axis=0), np.fmax.reduce(data.X, axis=0)  # without NaN
    names = data.columns or ("",) * data.X.shape[1]
    found: dict[str, list[int]] = {
        EMPTY: np.flatnonzero(np.isnan(low)).tolist(),
        CONSTANT: np.flatnonzero((low == high) & (np.isfinite(data.X).sum(axis=0) > 1)).tolist(),
    }
    rest = set(range(len(names))) - set(found[EMPTY]) - set(found[CONSTANT])
    found[COUNTS] = [j for j in sorted(rest) if _numbers_rows(data.X[:, j], names[j])]
    if len(found[COUNTS]) == len(rest):
        found[COUNTS] = []
    return {why: columns for why, columns in found.items() if columns}


def without_idle(data: "Dataset") -> "Dataset":
    """Leave out the columns that are no measurements."""
    idle = idle_columns(data)
    gone = {j for columns in idle.values() for j in columns}
    if not gone:
        return data
    D = data.X.shape[1]
    if len(gone) == D:
        raise InputError(
            f"{data.source}: every column of numbers is constant or empty, so there is nothing to "
            "find."
        )
    names = data.columns or tuple(str(j + 1) for j in range(D))
    kept = [j for j in range(D) if j not in gone]
    lost = {why: tuple(names[j] or str(j + 1) for j in js) for why, js in idle.items()}
    dropped = (*data.counts.dropped_columns, *(name for some in lost.values() for name in some))
    return replace(
        data,
        X=data.X[:, kept],
        columns=tuple(names[j] for j in kept),
        counts=data.counts._replace(dropped_columns=dropped),
        left_out={**data.left_out, **lost},
    )


def left_out(data: "Dataset") -> dict[str, list[str]]:
    """Return the names of all columns that were left out, by the reason why."""
    ours = {name for names in data.left_out.values() for name in names}
    by_reader = [name for name in data.counts.dropped_columns if name not in ours]
    reason = TEXT if data.kind == "table" else ""
    found = {reason: by_reader} | {why: list(names) for why, names in data.left_out.items()}
    return {why: names for why, names in found.items() if names}


def remarks(data: "Dataset") -> list[str]:
    """Say what a fit will leave out, and whether the table may lie on its side."""
    said = []
    for why, columns in idle_columns(data).items():
        which = ", ".join(feature_name(data, j) for j in columns)
        said.append(
            f"perpend fit leaves out column{'s' * (len(columns) > 1)} {which} ({why}). "
            "To keep such columns, name all that you want by --columns."
        )
    hint = wide(data)
    return [*said, hint] if hint else said


def wide(data: "Dataset") -> str:
    """Return a hint for tables with many more columns than rows."""
    n, D = data.X.shape
    if data.kind != "table" or MANY_MORE * n > D:
        return ""
    return f"{n} rows, {D} columns. Rows are points; if your points are columns, use --transpose."


def _numbers_rows(values: "Array", name: str) -> bool:
    import numpy as np

    if not np.all(values == np.floor(values)):  # nor NaN
        return False
    steps = np.diff(values)
    if len(values) >= LEAST_ROWS and steps[0] >= 1 and np.all(steps == steps[0]):
        return True
    return bool(ID_NAMES.fullmatch(name) and len(np.unique(values)) == len(values))

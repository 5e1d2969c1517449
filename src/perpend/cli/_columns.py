"""Columns of a table that are no measurements: empty, constant, dates, or numbering the rows."""

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from perpend.cli._options import STANDARDIZED
from perpend.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from perpend._typing import Array
    from perpend.formats import Dataset

TEXT, EMPTY, CONSTANT = "text or dates", "empty", "constant"
DATES, COUNTS = "dates", "numbers the rows"
GAPS, NEARLY = "missing values", "nearly constant"
# Columns of these names, such as "id", "customer_id" and "PassengerId", need no equal steps; nor
# does one without a name beside others that have one: the numbers of rows before some were dropped.
ID_NAMES = re.compile(r"(?i:\s*(id|index|row|unnamed: 0|.*[ _.-]id)?\s*)|.*[a-z]I[dD]")
NO_NAME = "column"  # of tables without names
FIRST, LAST = 19000101, 20991231  # that are days
LEAST_ROWS = 10  # with fewer rows, equal steps may be chance
MANY_MORE = 4  # times as many columns as rows: the table may lie on its side


def feature_name(data: "Dataset", column: int) -> str:
    """Return the name of a column for a message, or its number from 1."""
    name = data.columns[column] if data.columns else ""
    return f'"{name}"' if name else str(column + 1)


def idle_columns(data: "Dataset") -> dict[str, list[int]]:
    """Return the columns that a fit leaves out, by the reason why; none if none would be left.

    Columns that number the rows go up by the same whole number from row to row. Or they are
    different whole numbers in a column called "id", "index", "row" or nothing. Arrays and scans
    are not checked: a column of ones or evenly spaced values may well be meant there.
    """
    import numpy as np

    if data.format not in STANDARDIZED:
        return {}
    low, high = np.fmin.reduce(data.X, axis=0), np.fmax.reduce(data.X, axis=0)  # without NaN
    names = data.columns or (NO_NAME,) * data.X.shape[1]
    finite = np.isfinite(data.X).sum(axis=0)
    return idle_of(
        low,
        high,
        finite,
        lambda j: bool(are_dates(data.X[:, j]).all()),
        lambda j: _numbers_rows(data.X[:, j], names[j]),
    )


def idle_of(
    low: "Array",
    high: "Array",
    finite: "Array",
    holds_dates: "Callable[[int], bool]",
    numbers_rows: "Callable[[int], bool]",
) -> dict[str, list[int]]:
    """Return the same, from what is known of each column; `low` and `high` are without NaN."""
    import numpy as np

    found: dict[str, list[int]] = {
        EMPTY: np.flatnonzero(np.isnan(low)).tolist(),
        CONSTANT: np.flatnonzero((low == high) & (finite > 1)).tolist(),
    }
    rest = set(range(len(low))) - set(found[EMPTY]) - set(found[CONSTANT])
    near = may_be_dates(low, high)
    found[DATES] = [j for j in sorted(rest) if near[j] and holds_dates(j)]
    found[COUNTS] = [j for j in sorted(rest - set(found[DATES])) if numbers_rows(j)]
    if len(found[DATES] + found[COUNTS]) == len(rest):
        found[DATES], found[COUNTS] = [], []
    return {why: columns for why, columns in found.items() if columns}


def without_idle(data: "Dataset") -> "Dataset":
    """Leave out the columns that are no measurements."""
    less, kept = without_columns(data, idle_columns(data))
    return replace(less, X=data.X[:, kept]) if less is not data else data


def without_columns(data: "Dataset", idle: dict[str, list[int]]) -> tuple["Dataset", list[int]]:
    """Return what is known without some columns, and which are left; `X` stays as it is."""
    gone = {j for columns in idle.values() for j in columns}
    D = data.X.shape[1]
    if not gone:
        return data, list(range(D))
    if len(gone) == D:
        raise InputError(
            f"{data.source}: every column of numbers is constant or empty, so there is nothing to "
            "find."
        )
    names = data.columns or tuple(str(j + 1) for j in range(D))
    kept = [j for j in range(D) if j not in gone]
    lost = {why: tuple(names[j] or str(j + 1) for j in js) for why, js in idle.items()}
    dropped = (*data.counts.dropped_columns, *(name for some in lost.values() for name in some))
    less = replace(
        data,
        columns=tuple(names[j] for j in kept),
        counts=data.counts._replace(dropped_columns=dropped),
        left_out={**data.left_out, **lost},
    )
    return less, kept


def left_out(data: "Dataset") -> dict[str, list[str]]:
    """Return the names of all columns that were left out, by the reason why."""
    ours = {name for names in data.left_out.values() for name in names}
    by_reader = [name for name in data.counts.dropped_columns if name not in ours]
    reason = TEXT if data.kind == "table" else ""
    found = {reason: by_reader} | {why: list(names) for why, names in data.left_out.items()}
    return {why: names for why, names in found.items() if names}


NINES = re.compile(r"-?99+")  # as %g writes -999 and 9999
LEAST_TIMES = 3  # that a number comes again where it may mean a missing value
FEW = 100_000  # rows that are looked at for that
TEXT_FORMATS = ("csv", "tsv", "txt")


def remarks(data: "Dataset", idle: dict[str, list[int]]) -> list[str]:
    """Say what a fit will leave out, and whether the table may lie on its side."""
    said = []
    for why, columns in idle.items():
        which = ", ".join(feature_name(data, j) for j in columns)
        said.append(
            f"perpend fit leaves out column{'s' * (len(columns) > 1)} {which} ({why}). "
            "To keep such columns, name all that you want by --columns."
        )
    return [*said, *data.notes, *hints(data)]


def hints(data: "Dataset") -> list[str]:
    """Return what may be wrong with a table as it was read."""
    return [hint for hint in (wide(data), sentinels(data)) if hint]


def sentinels(data: "Dataset") -> str:
    """Return a hint for numbers that may stand for missing values.

    Such a number has only nines, and is far out, several times, in more than one column.
    """
    if data.kind != "table" or data.format not in TEXT_FORMATS:
        return ""
    import numpy as np

    found: dict[float, list[str]] = {}
    head = data.X[: min(FEW, getattr(data.X, "window_rows", FEW))]  # read once, if from a file
    for j in range(data.X.shape[1]):
        x = np.asarray(head[:, j], dtype=float)
        x = np.sort(x[np.isfinite(x)])
        for value, rest in ((x[0], x[x > x[0]]), (x[-1], x[x < x[-1]])) if len(x) else ():
            far = len(rest) > 1 and min(abs(rest[[0, -1]] - value)) > np.subtract(
                *np.quantile(rest, [0.75, 0.25])
            )
            if far and NINES.fullmatch(f"{value:g}") and len(x) - len(rest) >= LEAST_TIMES:
                found.setdefault(float(value), []).append(feature_name(data, j))
    found = {value: names for value, names in found.items() if len(names) > 1}
    if not found:
        return ""
    values = ",".join(f"{value:g}" for value in found)
    columns = ", ".join(dict.fromkeys(name for names in found.values() for name in names))
    verb = "stands" if len(found) == 1 else "stand"
    return (
        f"{values.replace(',', ' and ')} {verb} far out again and again in columns {columns}. If "
        f"missing values are meant, add --missing-value {values} --nan mask."
    )


def wide(data: "Dataset") -> str:
    """Return a hint for tables with many more columns than rows."""
    n, D = data.X.shape
    if data.kind != "table" or MANY_MORE * n > D:
        return ""
    return f"{n} rows, {D} columns. Rows are points; if your points are columns, use --transpose."


def may_be_dates(low: "Array", high: "Array") -> "Array":
    """Say where numbers from low to high may be days; NaN may."""
    return ~((low < FIRST) | (high > LAST))


def are_dates(X: "Array") -> "Array":
    """Say which values are missing, or end as days that are written like 20260131."""
    import numpy as np

    with np.errstate(invalid="ignore"):  # infinite values
        month, day = X // 100 % 100, X % 100
    there = (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31) & (day == np.floor(day))
    return there | np.isnan(X)


def _numbers_rows(values: "Array", name: str) -> bool:
    import numpy as np

    if not np.all(values == np.floor(values)):  # nor NaN
        return False
    steps = np.diff(values)
    if len(values) >= LEAST_ROWS and steps[0] >= 1 and np.all(steps == steps[0]):
        return True
    return bool(ID_NAMES.fullmatch(name) and len(np.unique(values)) == len(values))

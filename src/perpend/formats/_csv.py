"""Text tables: ``.csv`` (comma, semicolon or tab, found out from the first lines) and ``.tsv``.

The text is UTF-8, with or without a byte order mark. A first row that begins with text is taken as
the names of the columns; blank lines, and lines above the table that begin with ``#``, are skipped.
Empty cells and "nan" become NaN, which the validation of the data reports later by row and column.
Anything else that is no number is an error that names the line and the column.
"""

import csv
import math
import re
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.formats._table import Table, file_size, no_choice, quoted

DELIMITERS = ("\t", ";", ",")  # the comma last: it may also be a decimal comma
SAMPLE_BYTES = 1 << 16  # read ahead to find the delimiter,
SAMPLE_LINES = 10  # of which so many lines have a say
NOT_A_NAME = {"", "na", "n/a", "null", "none", "-", "?"}  # marks of a missing value


def read_csv(path: Path, variable: str | None = None) -> Table:
    """Read a text table.

    Parameters
    ----------
    path : Path
        The file; in a ``.tsv`` the cells are separated by tabs.
    variable : None
        There is nothing to choose.

    Returns
    -------
    Table
        float64 values, and the names of the columns if the first row holds them.
    """
    no_choice(path, variable)
    file_size(path)
    with path.open("rb") as stream:
        sample = stream.read(SAMPLE_BYTES)
    if b"\0" in sample:
        raise InputError(f"{path}: is not UTF-8 text (UTF-16, or binary?). Save it as UTF-8.")
    delimiter = "\t" if path.suffix.lower() == ".tsv" else _find_delimiter(sample)
    try:
        with path.open(encoding="utf-8-sig", newline="") as text:
            X, columns = _parse(str(path), _rows(str(path), text, delimiter))
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: line {_undecodable_line(path)}: is not UTF-8 text. Save the file as UTF-8."
        ) from error
    return Table(X, columns, str(path))


def _parse(
    source: str, rows: Iterator[tuple[int, list[str]]]
) -> tuple[Array, tuple[str, ...] | None]:
    """Collect the values of all rows."""
    values = array("d")
    columns: tuple[str, ...] | None = None
    width = first_line = 0
    for line, row in rows:
        if width == 0:
            if row[0].lstrip().startswith("#"):
                continue
            width, first_line = len(row), line
            if _names_columns(row):
                columns = tuple(cell.strip() for cell in row)
                continue
        if len(row) != width:
            raise InputError(
                f"{source}: line {line} has {len(row)} cells, "
                f"but line {first_line} has {width}. Make all rows equally long."
            )
        values.extend(_floats(row) or _floats_with_gaps(source, line, row, columns))
    if not values:
        what = "only a header" if columns else "no values"
        raise InputError(f"{source}: there are no rows in this table, {what}.")
    return np.frombuffer(values, dtype=np.float64).reshape(-1, width), columns


def _rows(source: str, text: Iterable[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Rows that are not blank, with the number of the line on which they end."""
    reader = csv.reader(text, delimiter=delimiter, strict=True)
    try:
        for row in reader:
            if len(row) > 1 or (row and row[0].strip()):
                yield reader.line_num, row
    except csv.Error as error:
        raise InputError(
            f"{source}: line {reader.line_num}: {error}. Is a quotation mark missing?"
        ) from error


def _floats(row: list[str]) -> list[float] | None:
    """Read a row of numbers, all at once."""
    if "_" in "".join(row):  # to Python, 2024_05 is a way to write 202405
        return None
    try:
        return list(map(float, row))
    except ValueError:
        return None


def _floats_with_gaps(
    source: str, line: int, row: list[str], columns: tuple[str, ...] | None
) -> Iterator[float]:
    """Read a row with empty or unreadable cells, one by one."""
    for j, cell in enumerate(row):
        if not cell.strip():
            yield math.nan
        elif _is_number(cell):
            yield float(cell)
        else:
            name = quoted(columns[j]) if columns and columns[j] else str(j + 1)
            raise InputError(
                f"{source}: line {line}, column {name}: "
                f"cannot read {quoted(cell)} as a number. {_advice(cell)}"
            )


def _advice(cell: str) -> str:
    if re.fullmatch(r"\s*[-+]?\d+,\d+\s*", cell):
        return "Write a decimal point instead of the comma."
    parts = cell.split()
    if len(parts) > 1 and all(map(_is_number, parts)):
        return "Separate the cells by commas, semicolons or tabs."
    return "Replace or remove it."


def _is_number(cell: str) -> bool:
    if "_" in cell:
        return False
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _names_columns(row: list[str]) -> bool:
    """Whether a first row is a header: its first filled cell is text."""
    first = next((cell for cell in row if cell.strip()), "")
    return first.strip().lower() not in NOT_A_NAME and not _is_number(first)


def _find_delimiter(sample: bytes) -> str:
    """Find the separator that occurs equally often in each of the first lines."""
    text = re.sub(r'"[^"]*"', "", sample.decode("utf-8-sig", errors="replace"))
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if len(sample) == SAMPLE_BYTES and len(lines) > 1:
        lines.pop()  # cut off
    for delimiter in DELIMITERS:
        counts = {line.count(delimiter) for line in lines[:SAMPLE_LINES]}
        if len(counts) == 1 and counts != {0}:
            return delimiter
    first = lines[0] if lines else ""
    return max(reversed(DELIMITERS), key=first.count)  # uneven rows: reported by line when read


def _undecodable_line(path: Path) -> int:
    with path.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return number
    return 1

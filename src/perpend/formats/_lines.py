"""The rows of a text: cells of equal numbers, without blank lines and remarks, or its columns."""

import csv
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from perpend.exceptions import InputError
from perpend.formats._dialect import Dialect, tidied
from perpend.formats._notation import MISSING_WORDS, Notation, is_missing

NOT_A_NAME = MISSING_WORDS | {"-"}
NEAR_TOP = 1  # line below the first row, which may have been a title


class Row(NamedTuple):
    """A row of a text."""

    line: int  # where it ends in the file
    cells: list[str]
    is_header: bool


def rows_of(path: Path, text: Iterable[str], dialect: Dialect, width: int = 0) -> Iterator[Row]:
    """Rows of equal length that are neither blank nor remarks; transposed, the columns of these.

    A `width` is known if the text does not begin at its first row.
    """
    rows = _rows_as_written(path, text, dialect, width)
    if not dialect.transposed:
        yield from rows
        return
    columns = zip(*[row.cells for row in rows], strict=True)
    for i, cells in enumerate(map(list, columns)):
        names = i == 0 and _names_columns(cells, dialect.notation)
        yield Row(i + 1, cells, names and _names_an_axis(cells[1:], dialect.notation))


def _rows_as_written(
    path: Path, text: Iterable[str], dialect: Dialect, width: int
) -> Iterator[Row]:
    reader = csv.reader(tidied(text, dialect), delimiter=dialect.delimiter, strict=True)
    first_line = 0
    blank: list[Row] = []  # they are rows only if others follow
    try:
        for cells in reader:
            if not "".join(cells).strip():
                if len(cells) == width > 1:
                    blank.append(Row(reader.line_num, cells, is_header=False))
                continue
            if width == 0:
                if cells[0].lstrip().startswith("#") and not is_missing(cells[0]):
                    continue
                width, first_line = len(cells), reader.line_num
                yield Row(first_line, cells, _names_columns(cells, dialect.notation))
            elif len(cells) != width:
                raise InputError(
                    f"{path}: line {reader.line_num} has {len(cells)} cells, "
                    f"but line {first_line} has {width}. "
                    f"{_about_width(cells, width, reader.line_num - first_line, dialect)}"
                )
            else:
                yield from blank
                blank = []
                yield Row(reader.line_num, cells, is_header=False)
    except csv.Error as error:
        raise InputError(
            f"{path}: line {reader.line_num}: {error}. Is a quotation mark missing?"
        ) from error


def _about_width(cells: list[str], width: int, n_before: int, dialect: Dialect) -> str:
    """Say what to do about a row that is longer or shorter than the first one."""
    longer = len(cells) > width
    thousands = any(re.fullmatch(r"\d{3}(\.\d+)?", cell.strip()) for cell in cells[1:])
    if longer and dialect.delimiter == "," and thousands and width > 1:
        return (
            "Make all rows equally long. Is a comma inside a number, as in 1,000? Put such numbers "
            "in quotes."
        )
    if longer and (width == 1 or n_before <= NEAR_TOP):
        return (
            "If the table begins below a title or settings, leave these lines out by skip_rows=N, "
            "their number; else make all rows equally long."
        )
    return "Make all rows equally long."


def _names_columns(row: list[str], notation: Notation) -> bool:
    """Whether a first row is a header: its first filled cell is text."""
    first = next((cell for cell in row if cell.strip()), "")
    return first.strip() not in NOT_A_NAME and not notation.is_number(first)


def _names_an_axis(cells: list[str], notation: Notation) -> bool:
    """Whether the cells of a transposed table behind a first text may be names of columns.

    That text may also be the name of a point. So numbers are names only if they go up or down, as
    times and wavelengths do.
    """
    values = notation.floats(cells)
    steps = [] if values is None else [b - a for a, b in pairwise(values)]
    return values is None or all(s > 0 for s in steps) or all(s < 0 for s in steps)

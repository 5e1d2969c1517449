"""Text tables: ``.csv``, ``.tsv``, ``.txt``, and point clouds in text: ``.xyz``.

Cells are separated by tabs in a ``.tsv``, otherwise by commas, semicolons or tabs, detected in the
first lines; in a ``.txt`` or ``.xyz`` also by any amount of white space. The file may be packed by
gzip: ``.csv.gz``.

The text is UTF-8, with or without a byte order mark. A first row that begins with text is taken as
the names of the columns; blank lines, and lines above the table that begin with ``#``, are skipped,
in a ``.txt`` or ``.xyz`` also between the rows.
Empty cells and the usual words for a missing value, such as "NA", "n/a", "null" or "?", become NaN,
which the validation of the data reports later by row and column.
A column without any number, such as names or dates, is left out and listed in the counts. Anything
else that is not a number is an error that names the line and the column.

In a ``.xyz``, the columns x, y and z are read, or the first three without such names, unless others
are chosen; points that are not finite are left out.
"""

import csv
import io
import math
from array import array
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from perpend._files import writing
from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.formats import _checks as check
from perpend.formats._checks import quoted
from perpend.formats._damage import changed
from perpend.formats._dataset import Answer, Dataset, Kind, Options
from perpend.formats._dialect import SAMPLE_BYTES, SPACE, Dialect, find_dialect, n_cells, tidied
from perpend.formats._notation import MISSING_WORDS, Notation, is_missing
from perpend.formats._packing import packed, plain_size, unpacked
from perpend.formats._points import PLACE
from perpend.formats._records import NO_DATA, added_values, from_records, select

CLOUD = "xyz"  # the format that is a point cloud
NOT_A_NAME = MISSING_WORDS | {"-"}
CELL_BYTES = 100  # of a cell that is kept as text, with its number
FORMULA = ("=", "+", "-", "@")  # what spreadsheets run


_Table = tuple[Array, tuple[str, ...] | None, tuple[str, ...]]


class _Row(NamedTuple):
    line: int  # where it ends in the file
    cells: list[str]
    is_header: bool


def read(path: Path, options: Options) -> Dataset:
    """Read a text table, or a point cloud."""
    with unpacked(path) as stream:
        sample = stream.read(SAMPLE_BYTES)
    if b"\0" in sample:
        raise InputError(f"{path}: is not UTF-8 text (UTF-16, or binary?). Save it as UTF-8.")
    if not sample:
        raise InputError(f"{path}: holds nothing once it is unpacked.")
    dialect = find_dialect(sample, options)
    cells = n_cells(sample, dialect) * plain_size(path) // len(sample)
    check.memory(str(path), cells * (CELL_BYTES if dialect.transposed else 8))
    try:
        with _text(path) as text:
            X, columns, dropped = _parse(path, _rows(path, text, dialect), options)
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: line {_undecodable_line(path)}: is not UTF-8 text. Save the file as UTF-8."
        ) from error
    kind: Kind = "cloud" if options.format == CLOUD else "table"
    return from_records(
        X, path, options, kind, columns=columns, dropped=dropped, stored="text", origin=dialect
    )


def write_answer(dataset: Dataset, answer: Answer, path: Path) -> Path:
    """Copy the text of the table, with three more columns; blank lines and remarks are left out."""
    source, dialect = Path(dataset.source), dataset.origin
    gap = "nan" if dialect.delimiter == SPACE else ""
    with _text(source) as text, writing(path) as file, packed(file, path) as stream:
        copy = io.TextIOWrapper(stream, "utf-8", newline="")
        writer = csv.writer(copy, delimiter=dialect.delimiter, lineterminator="\n")
        added: dict[str, Array] = {}
        n, records = 0, dataset.shape[0]
        for row in _rows(source, text, dialect):
            if not added:
                added = added_values(dataset, answer, [cell.strip() for cell in row.cells])
            if n < records or row.is_header:
                new = list(added) if row.is_header else _cells(added, n, gap)
                old = [_harmless(cell, dialect.notation) for cell in row.cells]
                writer.writerow([*old, *new])
            n += not row.is_header
        if n != records:
            raise changed(source)
        copy.flush()
        copy.detach()
    return path


def _text(path: Path) -> IO[str]:
    return io.TextIOWrapper(unpacked(path), "utf-8-sig", newline="")


def _harmless(cell: str, notation: Notation) -> str:
    """Return a cell as it is, or with an apostrophe if a spreadsheet would run it as a formula.

    >>> [_harmless(cell, Notation()) for cell in ("s1", "-1.5", "=A1+1")]
    ['s1', '-1.5', "'=A1+1"]
    """
    runs = cell.lstrip().startswith(FORMULA) and not notation.is_number(cell)
    return f"'{cell}" if runs else cell


def _cells(added: dict[str, Array], record: int, gap: str) -> list[str]:
    """Return three cells for a record, or three gaps if it has no data."""
    distance, probability, inlier = (values[record].item() for values in added.values())
    return [gap] * 3 if inlier == NO_DATA else [repr(distance), repr(probability), str(inlier)]


class _Collector:
    """The values of the rows so far, and which columns are text."""

    def __init__(self, path: Path, options: Options, *, droppable: bool) -> None:
        self.path = path
        self.columns: tuple[str, ...] | None = None
        self.notation = options.notation
        self.line = "line" if not options.transpose else "transposed, row"
        self.droppable = droppable  # columns of text may be left out
        self.values = array("d")
        self.text: dict[int, InputError] = {}  # columns, and the error if a number follows

    def add(self, line: int, cells: list[str]) -> None:
        """Add the values of a row; those of text are NaN."""
        for j, error in self.text.items():
            if self.notation.is_number(cells[j]) and not is_missing(cells[j]):
                raise error
            cells[j] = "nan"
        floats = self.notation.floats(cells)
        if floats is None:
            floats = [self._value(line, j, cell) for j, cell in enumerate(cells)]
        self.values.extend(floats)
        self.width = len(cells)

    def table(self) -> _Table:
        """All values, the names of the columns, and those of text, which are left out."""
        if not self.values:
            what = "only a header" if self.columns else "no values"
            raise InputError(f"{self.path}: there are no rows in this table, {what}.")
        X = np.frombuffer(self.values, dtype=np.float64).reshape(-1, self.width)
        if not self.text:
            return X, self.columns, ()
        if len(self.text) == self.width:
            such, _, _ = str(self.text[0]).partition(". ")
            advice = "Give a table with numbers in it."
            if self.width == 1 and self.notation.decimal == ",":
                advice = 'If commas separate the cells, leave out decimal=",".'
            raise InputError(
                f"{self.path}: holds text only, no column of numbers "
                f"({such.removeprefix(f'{self.path}: ')}). {advice}"
            )
        names = self.columns or tuple(str(j + 1) for j in range(self.width))
        keep = [j for j in range(self.width) if j not in self.text]
        dropped = tuple(names[j] or str(j + 1) for j in sorted(self.text))
        return X[:, keep], tuple(names[j] for j in keep), dropped

    def _value(self, line: int, j: int, cell: str) -> float:
        """Read a cell that may be missing or text."""
        if is_missing(cell):
            return math.nan
        if self.notation.is_number(cell):
            return float(self.notation.plain(cell))
        name = quoted(self.columns[j]) if self.columns and self.columns[j] else str(j + 1)
        advice = self.notation.advice(cell)
        usual = f"Replace or remove it, or leave out the column by exclude={name}."
        error = InputError(
            f"{self.path}: {self.line} {line}, column {name}: "
            f"cannot read {quoted(cell)} as a number. {advice or usual}"
        )
        above = np.array(self.values[j :: self.width] if self.values else [])
        if advice or not self.droppable or not np.isnan(above).all():
            raise error
        self.text[j] = error
        return math.nan


def _parse(path: Path, rows: Iterator[_Row], options: Options) -> _Table:
    """Collect the values of all rows."""
    is_cloud = options.format == CLOUD
    collected = _Collector(path, options, droppable=options.columns is None and not is_cloud)
    chosen: list[int] | None = None
    for n, (line, cells, is_header) in enumerate(rows):
        if n == 0:
            names = tuple(cell.strip() for cell in cells) if is_header else None
            if is_cloud:
                numbers = map(str, range(len(PLACE) + 1, len(cells) + 1))
                names = names or (*PLACE, *numbers)[: len(cells)]
            if is_cloud or options.columns is not None or options.exclude:
                names = names or tuple(str(j + 1) for j in range(len(cells)))
                place = _place(path, names) if is_cloud and options.columns is None else None
                chosen = select(path, options._replace(columns=place or options.columns), names)
                names = tuple(names[j] for j in chosen)
            collected.columns = names
            if is_header:
                continue
        collected.add(line, cells if chosen is None else [cells[j] for j in chosen])
    return collected.table()


def _rows(path: Path, text: Iterable[str], dialect: Dialect) -> Iterator[_Row]:
    """Rows of equal length that are neither blank nor remarks; transposed, the columns of these."""
    rows = _rows_as_written(path, text, dialect)
    if not dialect.transposed:
        yield from rows
        return
    columns = zip(*[row.cells for row in rows], strict=True)
    for i, cells in enumerate(map(list, columns)):
        names = i == 0 and _names_columns(cells, dialect.notation)
        yield _Row(i + 1, cells, names and _names_an_axis(cells[1:], dialect.notation))


def _rows_as_written(path: Path, text: Iterable[str], dialect: Dialect) -> Iterator[_Row]:
    reader = csv.reader(tidied(text, dialect), delimiter=dialect.delimiter, strict=True)
    width = first_line = 0
    try:
        for cells in reader:
            if len(cells) < 2 and not "".join(cells).strip():
                continue
            if width == 0:
                if cells[0].lstrip().startswith("#") and not is_missing(cells[0]):
                    continue
                width, first_line = len(cells), reader.line_num
                yield _Row(first_line, cells, _names_columns(cells, dialect.notation))
            elif len(cells) != width:
                hint = " Is a comma inside a number, as in 1,000? Put such numbers in quotes."
                raise InputError(
                    f"{path}: line {reader.line_num} has {len(cells)} cells, "
                    f"but line {first_line} has {width}. "
                    f"Make all rows equally long.{hint if dialect.delimiter == ',' else ''}"
                )
            else:
                yield _Row(reader.line_num, cells, is_header=False)
    except csv.Error as error:
        raise InputError(
            f"{path}: line {reader.line_num}: {error}. Is a quotation mark missing?"
        ) from error


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


def _place(path: Path, names: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the columns with the coordinates of a point: x, y and z, or the first three."""
    if len(names) < len(PLACE):
        raise InputError(
            f"{path}: has {len(names)} column(s), but a point has x, y and z. If it is not a point "
            'cloud, read it as format "txt".'
        )
    letters = [name.lstrip("/").lower() for name in names]  # some write //X Y Z
    if set(PLACE) <= set(letters):
        return tuple(names[letters.index(letter)] for letter in PLACE)
    return names[: len(PLACE)]


def _undecodable_line(path: Path) -> int:
    with unpacked(path) as stream:
        for number, line in enumerate(stream, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return number
    return 1

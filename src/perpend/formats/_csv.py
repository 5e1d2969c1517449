"""Text tables: ``.csv``, ``.tsv``, ``.txt``, and point clouds in text: ``.xyz``.

Cells are separated by tabs in a ``.tsv``, otherwise by commas, semicolons or tabs, detected in the
first lines; in a ``.txt`` or ``.xyz`` also by any amount of white space. The file may be packed by
gzip: ``.csv.gz``.

The text is UTF-8, with or without a byte order mark, or UTF-16; other text is read as Windows-1252,
which Latin-1 is part of. Excel's line ``sep=;``, lines above the table that are shorter than its
rows, and a row of units under the names are left out, with a note.

A first row that begins with text is taken as the names of the columns; blank lines, and lines above
the table that begin with ``#``, are skipped, in a ``.txt`` or ``.xyz`` also between the rows.
Empty cells and the usual words for a missing value, such as "NA", "n/a", "null" or "?", become NaN,
which the validation of the data reports later by row and column.
Rows without anything in them after the last one are none. Signs of currencies and of percent are
left off numbers, if all of a column have the same: 12 % is 12.
A column without any number, such as names or dates, is left out and listed in the counts. Anything
else that is not a number is an error that names the line and the column.

In a ``.xyz``, the columns x, y and z are read, or the first three without such names, unless others
are chosen; points that are not finite are left out.
"""

import csv
import io
import math
import re
from array import array
from bisect import bisect
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import islice, pairwise
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from perpend._files import writing
from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.formats import _checks as check
from perpend.formats._checks import quoted
from perpend.formats._damage import changed
from perpend.formats._dataset import Counts, Dataset, Kind, Labelled, Options
from perpend.formats._dialect import (
    SAMPLE_BYTES,
    SPACE,
    UTF_8,
    Dialect,
    decoded,
    encoding_of,
    find_dialect,
    n_cells,
    tidied,
)
from perpend.formats._notation import MISSING_WORDS, Notation, is_missing
from perpend.formats._packing import is_packed, packed, plain_size, unpacked
from perpend.formats._points import PLACE
from perpend.formats._records import NO_DATA, added_values, from_records, select
from perpend.formats._stream import Blocks
from perpend.rows.sequential import Sequential

CLOUD = "xyz"  # the format that is a point cloud
NOT_A_NAME = MISSING_WORDS | {"-"}
NEAR_TOP = 1  # line below the first row, which may have been a title
ROWS = 1 << 12  # rows of a block
CELL_BYTES = 100  # of a cell that is kept as text, with its number
FORMULA = ("=", "+", "-", "@")  # what spreadsheets run


class _Row(NamedTuple):
    line: int  # where it ends in the file
    cells: list[str]
    is_header: bool


def opened(path: Path, options: Options) -> Blocks:
    """Open a text table, or a point cloud."""
    with unpacked(path) as stream:
        sample = stream.read(SAMPLE_BYTES)
    if not sample:
        raise InputError(f"{path}: holds nothing once it is unpacked.")
    if "\0" in decoded(sample, encoding_of(sample)):
        raise InputError(f"{path}: is not text but binary. Save it as UTF-8 text.")
    dialect = find_dialect(sample, options)
    cells = n_cells(sample, dialect) * plain_size(path) // len(sample)
    return _Lines(path, options, dialect, cells * (CELL_BYTES if dialect.transposed else 8))


class _Lines(Blocks):
    """The rows of a text: how many there are is known when it has been read once."""

    _found = (*Blocks._found, "records", "_about", "_parser", "_marks")

    def __init__(self, path: Path, options: Options, dialect: Dialect, needed: int) -> None:
        self._dialect, self._needed = dialect, needed
        self._parser = _Parser(path, options)
        self._marks: list[tuple[int, int]] = []  # rows, and places in the text where they begin
        kind: Kind = "cloud" if options.format == CLOUD else "table"
        about: Any = {"shape": (0,), "width": 0, "dtype": float}
        super().__init__(path, options, kind, self._cut, **about, stored="text", origin=dialect)

    @property
    def nbytes(self) -> int:
        """Bytes of all rows; before they were read, an upper estimate."""
        return super().nbytes or self._needed

    def dataset(self) -> Dataset:
        """Read the text once."""
        check.memory(self.name, self._needed)
        values, parser = array("d"), self._parser
        for floats in self._values():
            values.extend(floats)
        self._close(len(values) // max(1, parser.width))
        X = np.frombuffer(values, dtype=np.float64).reshape(-1, parser.width)
        columns, dropped = self.columns, self.counts.dropped_columns
        about: Any = {"columns": columns, "dropped": dropped, "stored": "text"}
        about["origin"] = self._dialect
        X = X[:, parser.kept] if dropped else X
        found = from_records(X, self.path, self.options, self.kind, **about)
        return replace(found, notes=self._notes)

    @property
    def about(self) -> Dataset:
        """What is known of the file; its `X` are these blocks."""
        return replace(super().about, notes=self._notes)

    @property
    def _notes(self) -> tuple[str, ...]:
        return (*self._dialect.notes, *self._parser.notes())

    def ready(self, memory_limit: int | None = None) -> Blocks:
        """Read the text to its end: count the rows, and see which columns are text."""
        self.held = self._needed if self._dialect.transposed else 0
        self._close(sum(1 for _ in self._values(marked=True)))
        return super().ready(memory_limit)

    def _cut(self, begin: int, end: int) -> Array:
        return self._rows.read(begin, end)

    @cached_property
    def _rows(self) -> Sequential:
        """All rows, when they have been counted."""
        shape = self.n_records, len(self._parser.kept)
        return Sequential(self._near, shape=shape, dtype=float, name=self.name)

    def _close(self, n: int) -> None:
        """Note what is known after all rows."""
        self.columns, dropped = self._parser.finished(n)
        self.records, self.shape = (n,), (n, len(self._parser.kept))
        self.counts = Counts(dropped_columns=dropped)
        self._about = (None, None, dropped, "text", self._dialect)

    def _values(self, *, marked: bool = False) -> Iterator[list[float]]:
        """Yield the values of the rows; those of text are NaN."""
        marked = marked and not self._dialect.transposed and not is_packed(self.path)
        n = 0
        with self._text() as text:
            lines = iter(text.readline, "") if marked else text  # or it cannot tell where it is
            for row in _rows(self.path, lines, self._dialect):
                floats = self._parser.add(row)
                if floats is None:
                    continue
                yield floats
                n += 1
                if marked and n % ROWS == 0:
                    self._marks.append((n, text.tell()))

    def _near(self, row: int) -> tuple[int, Iterator[Array]]:
        at = bisect(self._marks, (row, math.inf))
        first, place = self._marks[at - 1] if at else (0, 0)
        return first, self._blocks(place)

    def _blocks(self, place: int) -> Iterator[Array]:
        """Yield blocks of rows from a place in the text on."""
        with self._text() as text:
            text.seek(place) if place else None
            width = self._parser.cells if place else 0
            # What is left out stands above.
            dialect = self._dialect._replace(skipped=frozenset()) if place else self._dialect
            rows = _rows(self.path, text, dialect, width)
            while True:
                values = array("d")
                for row in islice(rows, ROWS):
                    values.extend(self._parser.again(row))
                if not values:
                    return
                yield np.frombuffer(values).reshape(-1, len(self._parser.kept))

    @contextmanager
    def _text(self) -> Iterator[IO[str]]:
        """Open the text; errors about its bytes say in which line."""
        try:
            with _text(self.path, self._dialect) as text:
                yield text
        except UnicodeDecodeError as error:
            where, code = self.path, self._dialect.encoding
            line = f" line {_undecodable_line(where)}:" if code == UTF_8 else ""
            known = {UTF_8: "UTF-8", "cp1252": "UTF-8 or Windows-1252"}.get(code, "UTF-16")
            raise InputError(
                f"{where}:{line} is not {known} text. Save the file as UTF-8."
            ) from error


def write_labelled(dataset: Dataset, labelled: Labelled, path: Path) -> Path:
    """Copy the text of the table, with three more columns; blank lines and remarks are left out."""
    source, dialect = Path(dataset.source), dataset.origin
    gap = "nan" if dialect.delimiter == SPACE else ""
    with _text(source, dialect) as text, writing(path) as file, packed(file, path) as stream:
        copy = io.TextIOWrapper(stream, "utf-8", newline="")
        writer = csv.writer(copy, delimiter=dialect.delimiter, lineterminator="\n")
        added: dict[str, Array] = {}
        n, records = 0, dataset.shape[0]
        for row in _rows(source, text, dialect):
            if not added:
                added = added_values(dataset, labelled, [cell.strip() for cell in row.cells])
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


def _text(path: Path, dialect: Dialect) -> IO[str]:
    return io.TextIOWrapper(unpacked(path), dialect.encoding, newline="")


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


class _Parser:
    """Reads the cells of rows, and finds the columns that are text."""

    def __init__(self, path: Path, options: Options) -> None:
        self.path, self.options, self.notation = path, options, options.notation
        self.columns: tuple[str, ...] | None = None
        self.line = "line" if not options.transpose else "transposed, row"
        self.is_cloud = options.format == CLOUD
        self.droppable = options.columns is None and not self.is_cloud
        self.text: dict[int, InputError] = {}  # columns, and the error if a number follows
        self.signs: dict[int, str] = {}  # columns, and the sign that their numbers have
        self.chosen: list[int] | None = None
        self.cells = self.width = 0  # of a row, and those that are chosen

    def add(self, row: _Row) -> list[float] | None:
        """Return the values of the next row, NaN for text; None for the names of the columns."""
        if not self.cells:
            self._begin(row)
        if row.is_header:
            return None
        cells = row.cells if self.chosen is None else [row.cells[j] for j in self.chosen]
        for j, error in self.text.items():
            if self.notation.is_number(cells[j]) and not is_missing(cells[j]):
                raise error
            cells[j] = "nan"
        floats = self.notation.floats(cells)
        if floats is None or self.signs:
            floats = [self._value(row.line, j, cell) for j, cell in enumerate(cells)]
        floats = self._without_missing(floats)
        for j in list(self.empty):
            if not math.isnan(floats[j]):
                self.empty.remove(j)
        return floats

    def again(self, row: _Row) -> list[float]:
        """Return the values of a row that was read before, without text; none for the names."""
        if row.is_header:
            return []
        cells = row.cells if self.chosen is None else [row.cells[j] for j in self.chosen]
        if self.text:
            cells = [cells[j] for j in self.kept]
        floats = None if self.signs else self.notation.floats(cells)
        return self._without_missing(floats or list(map(self._number, cells)))

    def notes(self) -> list[str]:
        """Return what users should know about the columns."""
        by_sign: dict[str, list[str]] = {}
        for j, sign in sorted(self.signs.items()):
            by_sign.setdefault(sign, []).append(self._name(j))
        found = []
        for sign, names in by_sign.items():
            what = f"column{'s' * (len(names) > 1)} {', '.join(names)}"
            found.append(f"left the sign {sign} off the numbers of {what}")
        return found

    def _without_missing(self, floats: list[float]) -> list[float]:
        gaps = self.options.missing_values
        return [math.nan if x in gaps else x for x in floats] if gaps else floats

    def _number(self, cell: str) -> float:
        """Return a number that was read before, or NaN where it is missing."""
        if is_missing(cell):
            return math.nan
        bare = cell if self.notation.is_number(cell) else self.notation.unmarked(cell)[0]
        return float(self.notation.plain(bare))

    def _name(self, j: int) -> str:
        return quoted(self.columns[j]) if self.columns and self.columns[j] else str(j + 1)

    @property
    def kept(self) -> list[int]:
        """The columns that are not text."""
        return [j for j in range(self.width) if j not in self.text]

    def finished(self, n: int) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
        """After `n` rows, return the names of the columns, and of those that are text."""
        if n == 0:
            what = "only a header" if self.columns else "no values"
            raise InputError(f"{self.path}: there are no rows in this table, {what}.")
        if not self.text:
            return self.columns, ()
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
        dropped = tuple(names[j] or str(j + 1) for j in sorted(self.text))
        return tuple(names[j] for j in self.kept), dropped

    def _begin(self, row: _Row) -> None:
        """Choose the columns by the first row."""
        self.cells = len(row.cells)
        names = tuple(cell.strip() for cell in row.cells) if row.is_header else None
        if self.is_cloud:
            numbers = map(str, range(len(PLACE) + 1, self.cells + 1))
            names = names or (*PLACE, *numbers)[: self.cells]
        if self.is_cloud or self.options.columns is not None or self.options.exclude:
            names = names or tuple(str(j + 1) for j in range(self.cells))
            place = self.options.columns
            if self.is_cloud and place is None:
                place = _place(self.path, names)
            self.chosen = select(self.path, self.options._replace(columns=place), names)
            names = tuple(names[j] for j in self.chosen)
        self.columns = names
        self.width = self.cells if self.chosen is None else len(self.chosen)
        self.empty = set(range(self.width))  # columns without a number so far

    def _value(self, line: int, j: int, cell: str) -> float:
        """Read a cell that may be missing or text."""
        if is_missing(cell):
            return math.nan
        name = self._name(j)
        bare, sign = cell, ""
        if not (is_plain := self.notation.is_number(cell)):
            bare, sign = self.notation.unmarked(cell)
        if is_plain or sign:
            before = self.signs.get(j, "")
            if sign != before and j not in self.empty:
                both = [f"with {one}" if one else "without a sign" for one in (before, sign)]
                raise InputError(
                    f"{self.path}: {self.line} {line}, column {name}: {quoted(cell)} is a number "
                    f"{both[1]}, but those above are {both[0]}. Write all in the same unit, or "
                    f"leave out the column by exclude={name}."
                )
            if sign:
                self.signs[j] = sign
            return float(self.notation.plain(bare))
        advice = self.notation.advice(cell)
        usual = f"Replace or remove it, or leave out the column by exclude={name}."
        error = InputError(
            f"{self.path}: {self.line} {line}, column {name}: "
            f"cannot read {quoted(cell)} as a number. {advice or usual}"
        )
        if advice or not self.droppable or j not in self.empty:
            raise error
        self.text[j] = error
        return math.nan


def _rows(path: Path, text: Iterable[str], dialect: Dialect, width: int = 0) -> Iterator[_Row]:
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
        yield _Row(i + 1, cells, names and _names_an_axis(cells[1:], dialect.notation))


def _rows_as_written(
    path: Path, text: Iterable[str], dialect: Dialect, width: int
) -> Iterator[_Row]:
    reader = csv.reader(tidied(text, dialect), delimiter=dialect.delimiter, strict=True)
    first_line = 0
    blank: list[_Row] = []  # they are rows only if others follow
    try:
        for cells in reader:
            if not "".join(cells).strip():
                if len(cells) == width > 1:
                    blank.append(_Row(reader.line_num, cells, is_header=False))
                continue
            if width == 0:
                if cells[0].lstrip().startswith("#") and not is_missing(cells[0]):
                    continue
                width, first_line = len(cells), reader.line_num
                yield _Row(first_line, cells, _names_columns(cells, dialect.notation))
            elif len(cells) != width:
                raise InputError(
                    f"{path}: line {reader.line_num} has {len(cells)} cells, "
                    f"but line {first_line} has {width}. "
                    f"{_about_width(cells, width, reader.line_num - first_line, dialect)}"
                )
            else:
                yield from blank
                blank = []
                yield _Row(reader.line_num, cells, is_header=False)
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

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
from array import array
from bisect import bisect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from perpend._files import writing
from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.formats import _checks as check
from perpend.formats._cells import CLOUD, Parser
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
)
from perpend.formats._lines import rows_of
from perpend.formats._notation import Notation
from perpend.formats._packing import is_packed, packed, plain_size, unpacked
from perpend.formats._records import NO_DATA, added_values, from_records
from perpend.formats._stream import Blocks
from perpend.rows.sequential import Sequential

ROWS = 1 << 12  # rows of a block
CELL_BYTES = 100  # of a cell that is kept as text, with its number
FORMULA = ("=", "+", "-", "@")  # what spreadsheets run


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
        self._parser = Parser(path, options)
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
            for row in rows_of(self.path, lines, self._dialect):
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
            rows = rows_of(self.path, text, dialect, width)
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
        for row in rows_of(source, text, dialect):
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


def _undecodable_line(path: Path) -> int:
    with unpacked(path) as stream:
        for number, line in enumerate(stream, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return number
    return 1

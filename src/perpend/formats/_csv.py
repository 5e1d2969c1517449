"""Text tables: ``.csv``, ``.tsv``, ``.txt``, and point clouds in text: ``.xyz``.

Cells are separated by tabs in a ``.tsv``, otherwise by commas, semicolons or tabs, detected in the
first lines; in a ``.txt`` or ``.xyz`` also by any amount of white space.

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
import re
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from perpend._files import writing
from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.formats import _checks as check
from perpend.formats._checks import quoted
from perpend.formats._damage import changed
from perpend.formats._dataset import Answer, Dataset, Kind, Options
from perpend.formats._dialect import SAMPLE_BYTES, SPACE, Dialect, find_dialect, n_cells, tidied
from perpend.formats._points import PLACE
from perpend.formats._records import NO_DATA, added_values, from_records, select

CLOUD = "xyz"  # the format that is a point cloud
# Words for a missing value: those of pandas and R, and the question mark of older collections. Case
# matters: "Na" is sodium.
MISSING_WORDS = frozenset(
    ("", "NA", "N/A", "n/a", "#N/A", "NULL", "null", "NaN", "nan", "None", "<NA>", "?")
)
NOT_A_NAME = MISSING_WORDS | {"-"}
FORMULA = ("=", "+", "-", "@")  # what spreadsheets run


_Table = tuple[Array, tuple[str, ...] | None, tuple[str, ...]]


class _Row(NamedTuple):
    line: int  # where it ends in the file
    cells: list[str]
    is_header: bool


def read(path: Path, options: Options) -> Dataset:
    """Read a text table, or a point cloud."""
    with path.open("rb") as stream:
        sample = stream.read(SAMPLE_BYTES)
    if b"\0" in sample:
        raise InputError(f"{path}: is not UTF-8 text (UTF-16, or binary?). Save it as UTF-8.")
    dialect = find_dialect(sample, options.format)
    check.memory(str(path), 8 * n_cells(sample, dialect) * path.stat().st_size // len(sample))
    try:
        with path.open(encoding="utf-8-sig", newline="") as text:
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
    with source.open(encoding="utf-8-sig", newline="") as text, writing(path) as stream:
        copy = io.TextIOWrapper(stream, "utf-8", newline="")
        writer = csv.writer(copy, delimiter=dialect.delimiter, lineterminator="\n")
        added: dict[str, Array] = {}
        n, records = 0, dataset.shape[0]
        for row in _rows(source, text, dialect):
            if not added:
                added = added_values(dataset, answer, [cell.strip() for cell in row.cells])
            if n < records or row.is_header:
                new = list(added) if row.is_header else _cells(added, n, gap)
                writer.writerow([*map(_harmless, row.cells), *new])
            n += not row.is_header
        if n != records:
            raise changed(source)
        copy.flush()
        copy.detach()
    return path


def _harmless(cell: str) -> str:
    """Return a cell as it is, or with an apostrophe if a spreadsheet would run it as a formula.

    >>> _harmless("s1"), _harmless("-1.5"), _harmless("=A1+1")
    ('s1', '-1.5', "'=A1+1")
    """
    return f"'{cell}" if cell.lstrip().startswith(FORMULA) and not _is_number(cell) else cell


def _cells(added: dict[str, Array], record: int, gap: str) -> list[str]:
    """Return three cells for a record, or three gaps if it has no data."""
    distance, probability, inlier = (values[record].item() for values in added.values())
    return [gap] * 3 if inlier == NO_DATA else [repr(distance), repr(probability), str(inlier)]


class _Collector:
    """The values of the rows so far, and which columns are text."""

    def __init__(self, path: Path, columns: tuple[str, ...] | None, *, droppable: bool) -> None:
        self.path = path
        self.columns = columns
        self.droppable = droppable  # columns of text may be left out
        self.values = array("d")
        self.text: dict[int, InputError] = {}  # columns, and the error if a number follows

    def add(self, line: int, cells: list[str]) -> None:
        """Add the values of a row; those of text are NaN."""
        for j, error in self.text.items():
            if _is_number(cells[j]) and not _is_missing(cells[j]):
                raise error
            cells[j] = "nan"
        floats = _floats(cells)
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
            raise self.text[0]
        names = self.columns or tuple(str(j + 1) for j in range(self.width))
        keep = [j for j in range(self.width) if j not in self.text]
        dropped = tuple(names[j] or str(j + 1) for j in sorted(self.text))
        return X[:, keep], tuple(names[j] for j in keep), dropped

    def _value(self, line: int, j: int, cell: str) -> float:
        """Read a cell that may be missing or text."""
        if _is_missing(cell):
            return math.nan
        if _is_number(cell):
            return float(cell)
        name = quoted(self.columns[j]) if self.columns and self.columns[j] else str(j + 1)
        advice = _advice(cell)
        error = InputError(
            f"{self.path}: line {line}, column {name}: "
            f"cannot read {quoted(cell)} as a number. {advice or 'Replace or remove it.'}"
        )
        above = np.array(self.values[j :: self.width] if self.values else [])
        if advice or not self.droppable or not np.isnan(above).all():
            raise error
        self.text[j] = error
        return math.nan


def _parse(path: Path, rows: Iterator[_Row], options: Options) -> _Table:
    """Collect the values of all rows."""
    wanted = options.columns
    is_cloud = options.format == CLOUD
    collected = _Collector(path, None, droppable=wanted is None and not is_cloud)
    chosen: list[int] | None = None
    for n, (line, cells, is_header) in enumerate(rows):
        if n == 0:
            names = tuple(cell.strip() for cell in cells) if is_header else None
            if is_cloud:
                numbers = map(str, range(len(PLACE) + 1, len(cells) + 1))
                names = names or (*PLACE, *numbers)[: len(cells)]
                wanted = _place(path, names) if wanted is None else wanted
            if wanted is not None:
                chosen = select(path, wanted, names or [str(j + 1) for j in range(len(cells))])
                names = wanted
            collected.columns = names
            if is_header:
                continue
        collected.add(line, cells if chosen is None else [cells[j] for j in chosen])
    return collected.table()


def _rows(path: Path, text: Iterable[str], dialect: Dialect) -> Iterator[_Row]:
    """Rows of equal length that are neither blank nor remarks."""
    reader = csv.reader(tidied(text, dialect), delimiter=dialect.delimiter, strict=True)
    width = first_line = 0
    try:
        for cells in reader:
            if len(cells) < 2 and not "".join(cells).strip():
                continue
            if width == 0:
                if cells[0].lstrip().startswith("#") and not _is_missing(cells[0]):
                    continue
                width, first_line = len(cells), reader.line_num
                yield _Row(first_line, cells, _names_columns(cells))
            elif len(cells) != width:
                raise InputError(
                    f"{path}: line {reader.line_num} has {len(cells)} cells, "
                    f"but line {first_line} has {width}. Make all rows equally long."
                )
            else:
                yield _Row(reader.line_num, cells, is_header=False)
    except csv.Error as error:
        raise InputError(
            f"{path}: line {reader.line_num}: {error}. Is a quotation mark missing?"
        ) from error


def _floats(row: list[str]) -> list[float] | None:
    """Read a row of numbers, all at once."""
    if "_" in "".join(row):  # Python would read 2024_05 as 202405
        return None
    try:
        return list(map(float, row))
    except ValueError:
        return None


def _advice(cell: str) -> str:
    """What to do about numbers in another notation; nothing for plain text."""
    if re.fullmatch(r"\s*[-+]?\d+,\d+\s*", cell):
        return "Write a decimal point instead of the comma."
    parts = cell.split()
    if len(parts) > 1 and all(map(_is_number, parts)):
        return "Separate the cells by commas, semicolons or tabs, or name the file .txt."
    return ""


def _is_missing(cell: str) -> bool:
    return cell.strip() in MISSING_WORDS


def _is_number(cell: str) -> bool:
    return _floats([cell]) is not None


def _names_columns(row: list[str]) -> bool:
    """Whether a first row is a header: its first filled cell is text."""
    first = next((cell for cell in row if cell.strip()), "")
    return first.strip() not in NOT_A_NAME and not _is_number(first)


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
    with path.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return number
    return 1

"""What the cells of a text mean: numbers, missing values, columns of text, and their names."""

import math
from pathlib import Path

from perpend.exceptions import InputError
from perpend.formats._checks import quoted
from perpend.formats._dataset import Options
from perpend.formats._lines import Row
from perpend.formats._notation import is_missing
from perpend.formats._points import PLACE
from perpend.formats._records import select

CLOUD = "xyz"  # the format that is a point cloud


class Parser:
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

    def add(self, row: Row) -> list[float] | None:
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

    def again(self, row: Row) -> list[float]:
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

    def _begin(self, row: Row) -> None:
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

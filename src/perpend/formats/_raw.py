"""Numbers that a file has as memory has them: mapped as a whole, or read part by part.

A process that uses a map of a file is ended by the system (SIGBUS) if the file becomes shorter
meanwhile. So only rows that are fitted as an array in memory are a map; blocks of rows are read.
"""

import math
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.formats._records import BLOCK, together

PIECE = 1 << 16  # bytes: many smaller ones take longer to read


class Raw(NamedTuple):
    """An array in a file: `axes` says which of its sides are the lines, samples and features.

    A table has lines and features only; records without features of their own have lines only.
    """

    path: Path
    dtype: np.dtype[Any]
    start: int  # where it begins, in bytes
    sides: tuple[int, ...]  # slowest first
    axes: tuple[int, ...] = (0,)

    def mapped(self) -> Array:
        """Map the array, with its lines first and its features last."""
        values: Array = np.memmap(self.path, self.dtype, "r", self.start, self.sides)
        return np.asarray(values).transpose(self.axes)

    def records(self, begin: int, end: int) -> Array:
        """Read records that have lines only."""
        found: Array = np.empty(end - begin, self.dtype)
        with self.path.open("rb", buffering=0) as stream:
            self._read(stream, _bytes(found), begin)
        return found

    def readers(self, places: Sequence[int], dtype: np.dtype[Any]) -> dict[str, Any]:
        """Return what `Blocks` takes to read the features at some places."""
        raw = self._joined()
        is_table, where = len(raw.axes) == 2, together(places)
        readers: dict[str, Any] = {"take": partial(raw.take, places=places, dtype=dtype)}
        aligned = self.start % self.dtype.alignment == 0
        if is_table and isinstance(where, slice) and self.dtype == dtype and aligned:
            readers["view"] = lambda: raw.mapped()[:, where]
        if is_table and raw.axes[0] == 0:
            readers["pick"] = lambda rows: raw.pick(rows)[:, where]
        return readers

    def take(self, begin: int, end: int, *, places: Sequence[int], dtype: np.dtype[Any]) -> Array:
        """Read the records of a range, as a new array of features at some places."""
        inner = [self.sides[axis] for axis in self.axes[1:-1]]
        width = math.prod(inner)  # records of a line
        first, last = begin // width, -(-end // width)
        X: Array = np.empty((last - first, *inner, len(places)), dtype)
        in_order = self.axes == tuple(range(len(self.axes)))
        with self.path.open("rb", buffering=0) as stream:
            if in_order and self.dtype == dtype and list(places) == [*range(self.sides[-1])]:
                self._read(stream, _bytes(X), first * math.prod(X.shape[1:]))
            else:
                self._fill(X, stream, first, places)
        return X.reshape(-1, len(places))[begin - first * width : end - first * width]

    def _fill(self, X: Array, stream: IO[bytes], first: int, places: Sequence[int]) -> None:
        """Read lines from the first one on, some at a time; what lies between them is skipped."""
        sides, where, size = list(self.sides), together(places), self.dtype.itemsize
        line, *_, feature = self.axes
        before: list[Sequence[int]] = [range(side) for side in sides[:line]]
        if feature < line:  # the other features need not be read
            before[feature], sides[feature] = places, len(places)
            where = slice(None)
        apart = np.arange(math.prod(self.sides[:line])).reshape(self.sides[:line])
        # where the lines of each piece begin in the array, in values of `rest`
        begins = (apart[np.ix_(*before)].ravel() * self.sides[line] + first).tolist()
        rest = math.prod(sides[line + 1 :])
        step = max(1, BLOCK // (len(begins) * rest * size), PIECE // (rest * size) if line else 0)
        buffer: Array = np.empty(len(begins) * min(step, len(X)) * rest, self.dtype)
        for at in range(0, len(X), step):
            n = sides[line] = min(step, len(X) - at)
            part = buffer[: len(begins) * n * rest]
            values, length = _bytes(part), n * rest * size
            for i, begin in enumerate(begins):
                piece = values[i * length : (i + 1) * length]
                self._read(stream, piece, (begin + at) * rest)
            X[at : at + n] = part.reshape(sides).transpose(self.axes)[..., where]

    def pick(self, rows: Array) -> Array:
        """Read single rows of a table."""
        n, D = len(rows), self.sides[1]
        found: Array = np.empty((n, D), self.dtype)
        values, size = _bytes(found), D * self.dtype.itemsize
        ends = np.flatnonzero(np.diff(rows) != 1) + 1  # of rows that follow one another
        bounds = [0, *ends.tolist(), n] if n else []
        with self.path.open("rb", buffering=0) as stream:
            for first, last in pairwise(bounds):
                self._read(stream, values[first * size : last * size], int(rows[first]) * D)
        return found

    def _joined(self) -> "Raw":
        """Return the same as a table, if the samples of a line are beside one another."""
        line, *inner = self.axes
        if inner[:-1] != [line + 1]:
            return self
        sides = list(self.sides)
        sides[line : line + 2] = [sides[line] * sides[line + 1]]
        return self._replace(sides=tuple(sides), axes=(0, 1) if line == 0 else (1, 0))

    def _read(self, stream: IO[bytes], values: memoryview, at: int) -> None:
        """Fill a buffer with the bytes from the value at a place on."""
        stream.seek(self.start + at * self.dtype.itemsize)
        left = values
        while left and (n := stream.readinto(left)):  # type: ignore[attr-defined]
            left = left[n:]  # the system reads 2 GiB at most
        if left:
            raise InputError(
                f"{self.path}: ends {len(left)} bytes too early. Was it cut short while it was "
                "read?"
            )


def _bytes(values: Array) -> memoryview:
    return memoryview(values.reshape(-1).view(np.uint8))

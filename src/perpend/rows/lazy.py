"""Rows that are not in memory as one array: on disk, in blocks, sparse, or computed from others.

A `LazyRows` has the shape and type of an array (n, D), and gives its rows as NumPy arrays by slices
or sorted indices. Whatever reads an array of rows block by block reads these as well. They are read
in *windows* of consecutive rows, as large as the memory limit allows.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from perpend._typing import Array, Namespace
from perpend.exceptions import InputError
from perpend.rows.plan import WINDOWS

MEMORY_LIMIT = 2**30  # bytes, by default
GIB = 2**30
LARGE_SAMPLE = "take fewer rows, as nothing is sure in smaller samples of them"

Result = TypeVar("Result")


class LazyRows(ABC):
    """Rows (n, D) that are read when they are used."""

    is_lazy = True  # how others recognise it, without this module
    ndim = 2
    device = "cpu"
    how_to_raise = "Raise memory_limit"
    limit_given: int | None = None  # the memory limit, where somebody has set it
    elsewhere = False  # whether rows are, or come from rows that are, in other processes

    def __init__(
        self, shape: tuple[int, int], dtype: Any, memory_limit: int, window_bytes: int | None = None
    ) -> None:
        self.shape, self.dtype, self.memory_limit = shape, np.dtype(dtype), memory_limit
        row = max(1, shape[1] * self.dtype.itemsize)
        self.window_rows = max(1, (window_bytes or memory_limit // WINDOWS) // row)

    @abstractmethod
    def _read(self, start: int, stop: int) -> Array:
        """Return the rows of a range, within one window or not."""

    def _pick(self, indices: Array) -> Array:
        """Return the rows at ascending indices; every window that has some of them is read once."""
        rows = np.empty((len(indices), self.shape[1]), self.dtype)
        ends = np.searchsorted(indices, [w.stop for w in self.windows])
        for window, first, last in zip(self.windows, [0, *ends[:-1]], ends, strict=True):
            if first < last:
                rows[first:last] = self[window][indices[first:last] - window.start]
        return rows

    @cached_property
    def windows(self) -> list[slice]:
        """The ranges of rows that are read at once."""
        n, size = self.shape[0], self.window_rows
        return [slice(start, min(start + size, n)) for start in range(0, n, size)]

    def map(self, function: Callable[..., Result], *args: Any) -> list[Result]:
        """Return ``function(rows, *args)`` of every window, in their order."""
        return [function(self[window], *args) for window in self.windows]

    def __getitem__(self, key: Any) -> Array:
        """Return what an array would give; it may be read-only, as the window is for all."""
        rows, columns = key if isinstance(key, tuple) else (key, slice(None))
        if isinstance(rows, slice):
            start, stop, step = rows.indices(self.shape[0])
            if step == 1:
                block = self._range(start, stop)
            else:
                block = self._some(np.arange(start, stop, step))
            return block if _is_all(columns) else block[:, columns]
        indices = self._indices(rows)
        block = self._some(np.atleast_1d(indices))
        if _is_all(columns):
            return block if indices.ndim else block[0]
        return block[np.arange(len(block)) if indices.ndim else 0, columns]

    def _range(self, start: int, stop: int) -> Array:
        """Return consecutive rows."""
        if stop <= start:
            return np.empty((0, self.shape[1]), self.dtype)
        self.check_room(stop - start)
        return self._read(start, stop)

    def _some(self, indices: Array) -> Array:
        """Return the rows at indices in any order."""
        self.check_room(len(indices))
        return self.few(indices)

    def few(self, indices: Array) -> Array:
        """Return the rows at indices in any order, for which whoever asks has made room."""
        if not np.any(np.diff(indices) < 0):
            return self._pick(indices)
        order = np.argsort(indices, kind="stable")
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return self._pick(indices[order])[back]

    def _indices(self, rows: Any) -> Array:
        """Return one index of a row, or several, from 0 on; or say that there is no such row."""
        n, given = self.shape[0], np.asarray(rows)
        if given.dtype == bool and given.shape == (n,):
            return np.flatnonzero(given)
        if given.ndim > 1 or (given.dtype.kind not in "iu" and given.shape != (0,)):
            raise IndexError(
                f"Cannot take the rows {_short(rows)} of {self!r}; expected a slice, integers, or "
                f"{n} booleans, alone or before columns."
            )
        indices: Array = given.astype(np.intp)
        outside = (indices < -n) | (indices >= n)
        if np.any(outside):
            row = np.atleast_1d(given)[np.argmax(outside)]
            raise IndexError(f"There is no row {row} in {self!r}, only rows 0 to {n - 1}.")
        return np.where(indices < 0, indices + n, indices)

    def fetched(self, rows: slice) -> Callable[[], Array]:
        """Read rows now, one caller after the other; what is called then may take its time."""
        block = self[rows]
        return lambda: block

    def check_room(
        self, n_rows: int, instead: str = "use a method that scans rows, as DPCP does"
    ) -> None:
        """Say so if so many rows are more than the memory may hold, and what to do instead."""
        needed = n_rows * self.shape[1] * self.dtype.itemsize
        if needed > self.memory_limit and n_rows > self.window_rows:
            raise InputError(
                f"{n_rows} of {self.shape[0]} rows are needed in memory at once "
                f"({needed / GIB:.2f} GiB), and memory_limit is {self.memory_limit / GIB:.2f} GiB. "
                f"{self.how_to_raise}, or {instead}."
            )

    def lifted(self, centre: Array, scale: float) -> "LazyRows":
        """Return the rows ((x - centre) / scale, 1)."""
        from perpend.rows.centred import lift

        return Computed(self, lift, centre, scale, n_features=self.shape[1] + 1)

    @cached_property
    def survey(self) -> "Survey":
        """What the first pass shows: the norms of the rows, and which are not finite."""
        parts = self.map(surveyed)
        return Survey(np.concatenate([part.norms for part in parts]), [part.bad for part in parts])

    def place_of(self, row: int) -> str:  # noqa: ARG002
        """Say where a row is, for messages, if its number is not enough."""
        return ""

    def as_source(self, **how: Any) -> Any:
        """Return them as a source that solvers can scan."""
        from perpend.rows.windows import WindowRows

        return WindowRows(self, **how)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def nbytes(self) -> int:
        """Bytes of all rows, if they were in memory."""
        return self.shape[0] * self.shape[1] * int(self.dtype.itemsize)

    def __array_namespace__(self, api_version: str | None = None) -> Namespace:
        return np

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(self[:], dtype=dtype)  # or an error, if that is too large

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape}, dtype={self.dtype.name})"


def _is_all(columns: Any) -> bool:
    return isinstance(columns, slice) and columns == slice(None)


def _short(rows: Any) -> str:
    return f"of shape {np.shape(rows)}" if isinstance(rows, np.ndarray) else repr(rows)[:60]


class Survey(NamedTuple):
    """Norms of rows, and what of each window is not finite."""

    norms: Array  # (n,)
    bad: Any  # a NotFinite or None, of each window


def surveyed(rows: Array) -> Survey:
    """Return the norms of rows, if they are finite, and what is not finite in them."""
    from perpend.rows.preparation import not_finite, row_norms

    bad = not_finite(rows)
    return Survey(row_norms(rows) if bad is None else np.zeros(len(rows), rows.dtype), bad)


class Computed(LazyRows):
    """Rows that are computed from others whenever they are read.

    ``function(block, *args)`` gives as many rows as the block has. Each of `beside` has one value
    for each row, of which the function gets those of the block, before `args`.
    """

    def __init__(
        self,
        source: LazyRows,
        function: Callable[..., Array],
        *args: Any,
        n_features: int,
        beside: tuple[Array, ...] = (),
    ) -> None:
        window_bytes = source.window_rows * source.shape[1] * source.dtype.itemsize
        shape = (source.shape[0], n_features)
        super().__init__(shape, source.dtype, source.memory_limit, window_bytes)
        self.source, self.function, self.args, self.beside = source, function, args, beside
        self.window_rows, self.elsewhere = source.window_rows, source.elsewhere
        self.limit_given = source.limit_given

    def _read(self, start: int, stop: int) -> Array:
        return self.fetched(slice(start, stop))()

    def fetched(self, rows: slice) -> Callable[[], Array]:
        """Read the rows of the source now, and compute with them later."""
        given, own = self.source.fetched(rows), [values[rows] for values in self.beside]
        return lambda: self.function(given(), *own, *self.args)

    def _pick(self, indices: Array) -> Array:
        own = (values[indices] for values in self.beside)
        return self.function(self.source.few(indices), *own, *self.args)


class Picked(LazyRows):
    """Some rows of others, which are read with them: a sample that is too large to be held."""

    def __init__(self, source: LazyRows, indices: Array) -> None:
        window_bytes = source.window_rows * source.shape[1] * source.dtype.itemsize
        shape = (len(indices), source.shape[1])
        super().__init__(shape, source.dtype, source.memory_limit, window_bytes)
        self.source, self.indices = source, indices
        self.elsewhere, self.limit_given = source.elsewhere, source.limit_given

    def _read(self, start: int, stop: int) -> Array:
        return self.source.few(self.indices[start:stop])

    def _pick(self, indices: Array) -> Array:
        return self.source.few(self.indices[indices])

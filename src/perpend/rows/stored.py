"""Rows that are read from disk, or from anything that gives blocks of rows again and again.

A *reader* has `shape`, `dtype` and ``read(start, stop)``. It is mostly read from the first row to
the last, once for each pass; while one window is computed on, the next one is read ahead.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import RLock
from typing import Any, Literal, Protocol
from weakref import WeakSet

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.rows.lazy import MEMORY_LIMIT, LazyRows
from perpend.rows.plan import Fit, is_held
from perpend.rows.sequential import Sequential, ends_early
from perpend.rows.unchanged import Unchanged


class Reader(Protocol):
    """Rows of a file, or of blocks, by their place.

    It may have a `name` and ``place_of(row)`` for messages, and ``pick(indices)`` where single rows
    are quick to read.
    """

    shape: tuple[int, int]
    dtype: Any  # of what `read` returns: float32 or float64

    def read(self, start: int, stop: int) -> Array:
        """Return the rows from `start` up to `stop`, as an array (stop - start, D)."""


class StoredRows(LazyRows):
    """Rows of a reader, window by window; all are held if that takes no more than the windows do.

    `passes` says how often all rows have been read so far.
    """

    def __init__(self, reader: Reader, memory_limit: int = MEMORY_LIMIT) -> None:
        window_bytes = getattr(reader, "window_bytes", None)
        n, D = reader.shape
        super().__init__((n, D), reader.dtype, memory_limit, window_bytes)
        self.reader, self.name = reader, getattr(reader, "name", "the reader")
        self.limit_given = memory_limit
        self._is_held = is_held((n, D), self.dtype.itemsize, memory_limit)
        self._rows_read, self._unchanged = 0, Unchanged()
        self._begin()

    def _begin(self) -> None:
        """Begin with nothing read, and without threads."""
        self._lock = RLock()
        self._pool: ThreadPoolExecutor | None = None
        self._window: tuple[int, Array] | None = None
        self._held: dict[int, Array] | None = {} if self._is_held else None
        self._next: tuple[int, Future[Array]] | None = None
        _readers_here.add(self)

    def plan(
        self,
        *,
        affine: bool | Literal["auto"] = False,
        outliers: str = "across",
        sample_size: int | Literal["auto"] | None = "auto",
    ) -> str:
        """Return how much a fit of `DPCP` will read, in words.

        Parameters
        ----------
        affine : {False, True, "auto"}, default=False
            That of the fit: whether the subspace may miss the origin.
        outliers : {"across", "both"}, default="across"
            That of the fit.
        sample_size : "auto", int or None, default="auto"
            That of the fit; None if it has ``refine=False`` or an array as `init`.
        """
        (n, D), fit = self.shape, Fit(affine, outliers, sample_size)
        size, window = self.nbytes / 2**20, self.window_rows * D * self.dtype.itemsize / 2**20
        rows = f"{n:,} rows of {D} columns ({size:,.1f} MiB) are read"
        if self._held is not None:
            return f"{rows} once and held."
        return (
            f"{rows} in {len(self.windows)} windows of {window:,.1f} MiB, {fit.often(self.shape)}."
        )

    @property
    def passes(self) -> float:
        """How often all rows have been read so far."""
        return self._rows_read / max(1, self.shape[0])

    def _read(self, start: int, stop: int) -> Array:
        size, first, last = self.window_rows, start, max(start, stop - 1)
        if first // size == last // size:
            window = self._at(first // size)
            return window[start - first // size * size : stop - first // size * size]
        parts = (
            slice(max(start, w * size), min(stop, (w + 1) * size))
            for w in range(first // size, last // size + 1)
        )
        return np.concatenate([self._read(part.start, part.stop) for part in parts])

    def _pick(self, indices: Array) -> Array:
        direct = getattr(self.reader, "pick", None)  # where single rows are as quick to read
        if direct is None or self._held is not None:
            return super()._pick(indices)
        with self._lock:
            if self._next is not None:
                wait([self._next[1]])  # readers have one caller at a time
            self._rows_read += len(indices)
            rows: Array = direct(indices)
        return rows

    def place_of(self, row: int) -> str:
        """Say in which block or file a row is."""
        place = getattr(self.reader, "place_of", None)
        return str(place(row)) if place is not None else f" of {self.name}"

    def _at(self, number: int) -> Array:
        """Return a window, and begin to read the one after it."""
        with self._lock:
            if self._window is not None and self._window[0] == number:
                return self._window[1]
            if self._held is not None and number in self._held:
                return self._held[number]
            self._window = None
            if self._next is not None and self._next[0] == number:
                rows = self._next[1].result()
            else:
                self._forget_next()
                rows = self._load(number)
            self._window, self._next = (number, rows), None
            self._rows_read += len(rows)
            if self._held is not None:
                self._held[number] = rows
            if number + 1 < len(self.windows) and number + 1 not in (self._held or ()):
                self._read_ahead(number + 1)
            return rows

    def _load(self, number: int) -> Array:
        window = self.windows[number]
        rows = self.reader.read(window.start, window.stop)
        wanted = (window.stop - window.start, self.shape[1])
        if rows.shape[1:] == wanted[1:] and len(rows) < wanted[0]:
            raise ends_early(self.name, window.start + len(rows), window.stop, self.shape[0])
        if rows.shape != wanted:
            raise InputError(
                f"{self.name}: rows {window.start} to {window.stop} have the shape "
                f"{tuple(rows.shape)}; expected {wanted}. Has the data changed since it was opened?"
            )
        self._unchanged.require(number, rows, lambda i: self._named(window.start + i))
        rows = rows[:]
        rows.flags.writeable = False  # whoever reads them next gets the same window
        return rows

    def _named(self, row: int) -> str:
        return f"row {row}{self.place_of(row)}"

    def _read_ahead(self, number: int) -> None:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="perpend-read")
        self._next = number, self._pool.submit(self._load, number)

    def _forget_next(self) -> None:
        if self._next is not None and not self._next[1].cancel():
            self._next[1].exception()  # one caller at a time
        self._next = None

    def __getstate__(self) -> dict[str, Any]:
        unset = {"_lock": None, "_pool": None, "_window": None, "_next": None, "_held": None}
        return {**self.__dict__, **unset}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()


_readers_here: WeakSet[StoredRows] = WeakSet()


def _after_fork() -> None:
    """Forget threads and locks: neither survives a fork, and the child reads by its own."""
    for rows in list(_readers_here):
        rows._begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class GivenBlocks(Sequential):
    """A reader of blocks that can be iterated again and again; their rows are counted once."""

    def __init__(self, iterate: Callable[[], Iterator[Array]]) -> None:
        self._iterate, self.name = iterate, "blocks"
        sizes, width, dtype = list[int](), None, None
        for block in self._checked():
            floats = floats_for(block.dtype)
            sizes.append(len(block))
            width, dtype = block.shape[1], np.promote_types(floats, dtype or floats)
        self._ends = np.cumsum(sizes)
        if width is None or self._ends[-1] == 0:
            raise InputError("blocks has no rows: expected blocks of shape (rows, features).")
        shape = (int(self._ends[-1]), width)
        super().__init__(lambda _: (0, self._same()), shape=shape, dtype=dtype, name="blocks")

    def read(self, start: int, stop: int) -> Array:
        """Return these rows; after the last one, no more may come."""
        rows, n = super().read(start, stop), self.shape[0]
        if stop == n and (len(self._rest) or any(len(block) for block in self._blocks or ())):
            self._blocks = None
            raise InputError(
                f"blocks has more rows than the {n} that were counted when it was opened. The same "
                "rows must come in every pass: open it again, if there are new ones."
            )
        return rows

    def place_of(self, row: int) -> str:
        """Say in which block a row is."""
        j = int(np.searchsorted(self._ends, row, "right"))
        return f" = row {row - (self._ends[j - 1] if j else 0)} of block {j}"

    def _same(self) -> Iterator[Array]:
        """Yield the blocks again, if they fit the type of those that were counted."""
        for number, block in enumerate(self._checked()):
            if np.promote_types(floats_for(block.dtype), self.dtype) != self.dtype:
                raise InputError(
                    f"blocks, block {number} has entries of type {block.dtype.name}, and all had "
                    f"{self.dtype.name} when they were counted. The same rows must come in every "
                    "pass."
                )
            yield block

    def _checked(self) -> Iterator[Array]:
        """Yield the blocks as arrays with the same columns, or say which one is none."""
        width = None
        for number, block in enumerate(self._iterate()):
            A = np.asarray(block)
            where = f"{self.name}, block {number}"
            if A.ndim != 2:
                row = " If it is a row of X, pass [X]." if A.ndim == 1 else ""
                raise InputError(
                    f"{where} has the shape {A.shape}; expected (rows, features).{row}"
                )
            floats_for(A.dtype, where)
            if width is not None and A.shape[1] != width:
                raise InputError(
                    f"{where} has {A.shape[1]} columns, and those before it have {width}. "
                    "All blocks need the same columns."
                )
            width = A.shape[1]
            yield A


def blocks_reader(blocks: Iterable[Array] | Callable[[], Iterator[Array]]) -> Reader:
    """Return a reader of a reader, of an iterable of blocks, or of a function that returns one."""
    if hasattr(blocks, "read") and hasattr(blocks, "shape"):
        return blocks  # type: ignore[return-value]
    if len(getattr(blocks, "shape", ())) == 2:
        raise InputError(
            f"The source has all rows ({type(blocks).__name__}), and open_rows expects a path or "
            "blocks of rows. Pass it to fit as it is; open_rows([X]) takes an array as one block."
        )
    if callable(blocks):
        return GivenBlocks(lambda: _iterated(blocks(), "What the function returns"))
    if isinstance(blocks, Iterator):
        raise InputError(
            "An iterator can be read only once, and a fit takes several passes. Pass a function "
            "that returns a new one: open_rows(lambda: blocks_of(path))."
        )
    return GivenBlocks(lambda: _iterated(blocks, "The source"))


def _iterated(blocks: Any, what: str) -> Iterator[Array]:
    try:
        return iter(blocks)
    except TypeError:
        raise InputError(
            f"{what} is {blocks!r:.60}; expected a path, an iterable of blocks (rows, features), "
            "or a function that returns an iterator of them."
        ) from None


def floats_for(dtype: Any, where: str = "The data") -> Any:
    """Return the floating-point type in which numbers of such a type are computed with."""
    dtype = np.dtype(dtype)
    if dtype.kind not in "fiub":
        raise InputError(f"{where} has entries of type {dtype.name}; expected real numbers.")
    short = dtype.kind == "f" and dtype.itemsize <= 4
    return np.dtype(np.float32 if short else np.float64)

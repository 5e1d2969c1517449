"""Rows of a file that are read block by block, or all at once: what every reader returns."""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError, TooLargeError
from perpend.formats import _checks as check
from perpend.formats._checks import in_bytes
from perpend.formats._damage import damage_named
from perpend.formats._dataset import Counts, Dataset, Kind, Options
from perpend.formats._raw import Raw
from perpend.formats._records import BLOCK, Census, from_records, no_data, select, together
from perpend.rows.sequential import Opened, Sequential

SPAN = 1 << 16  # records whose usable ones are counted together


class Once:
    """An array that can only be read as a whole: loaded when it is first needed, and kept."""

    def __init__(self, load: Callable[[], Array]) -> None:
        self._load = load

    @cached_property
    def values(self) -> Array:
        """The array."""
        return self._load()

    def take(self, begin: int, end: int) -> Array:
        """Copy records."""
        return cut(self.values, begin, end).copy()


class Blocks:
    """The records of a file: those that can be used are its rows, read in any order.

    `take(begin, end)` returns new records as the format has them, in the dtype or one to convert.
    ``view()`` returns all of them in the dtype without copying them: a map of the file. ``pick(i)``
    returns records at any places, if these are as quick to read.
    """

    _found: tuple[str, ...] = ("shape", "columns", "counts", "_places", "_kept", "_until")
    """What has been chosen, and what reading the records has shown."""

    def __init__(
        self,
        path: Path,
        options: Options,
        kind: Kind,
        take: Callable[[int, int], Array],
        *,
        shape: tuple[int, ...],
        width: int,
        dtype: Any,
        columns: tuple[str, ...] | None = None,
        view: Callable[[], Array] | None = None,
        pick: Callable[[Array], Array] | None = None,
        held: int = 0,
        extra: int = 0,
        ignore: Array | None = None,
        masked: Callable[[int, int], Array] | None = None,
        dropped: tuple[str, ...] = (),
        stored: str = "",
        origin: Any = None,
        what: str = "cannot be read",
        files: Mapping[Path, int] | None = None,
    ) -> None:
        self.path, self.options, self.kind, self.take = path, options, kind, take
        self.records, self.columns, self.what = shape, columns, what
        self._view, self._pick = view, pick
        self.held = held  # bytes that are in memory beside a block, such as an unpacked chunk
        self.extra = extra  # bytes beside the rows to read all of them
        self._files = files or {path: self.n_records}  # and the records in each
        self._about = (ignore, masked, dropped, stored, origin)
        self.shape, self.dtype, self.name = (math.prod(shape), width), np.dtype(dtype), str(path)
        self.counts = Counts(dropped_columns=dropped)
        self._stamp = self._seen()
        self._places: list[int] | None = None  # of the columns that are taken; None: all
        self._kept: Array | None = None  # bits of the records that are rows; None: all
        self._until = np.zeros(1, int)  # rows before each span of records

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def n_records(self) -> int:
        """How many records the file has, with and without data."""
        return math.prod(self.records)

    @property
    def nbytes(self) -> int:
        """Bytes of all rows, as floats."""
        return int(math.prod(self.shape) * self.dtype.itemsize)

    @property
    def about(self) -> Dataset:
        """What is known of the file; its `X` are these blocks."""
        _, _, _, stored, origin = self._about
        return Dataset(
            self,
            self.name,
            self.options.format,
            self.kind,
            self.records,
            self.columns,
            stored_dtype=stored,
            counts=self.counts,
            origin=origin,
        )

    def dataset(self) -> Dataset:
        """Read all records."""
        _, masked, dropped, stored, origin = self._about
        if self._view is None:
            check.memory(self.name, self.nbytes + self.extra)
        n = self.n_records
        with damage_named(self.path, self.what):
            hidden = None if masked is None else masked(0, n)
            X = self._whole()
        return from_records(
            X,
            self.path,
            self.options,
            self.kind,
            shape=self.records,
            columns=self.columns,
            ignore=self._ignore,
            masked=hidden,
            dropped=dropped,
            stored=stored,
            origin=origin,
        )

    def ready(self, memory_limit: int | None = None) -> "Blocks":
        """Find the records that are rows; those of a table are all, so that this reads nothing."""
        if memory_limit is not None and self.held > memory_limit:
            raise TooLargeError(
                f"{self.name}: {in_bytes(self.held)} of it must be read in one piece, and the "
                f"memory limit is {in_bytes(memory_limit)}. Raise the limit, or save it as .npy or "
                "Parquet, or with smaller chunks."
            )
        return self if self.kind == "table" else self.without_gaps()

    def without_gaps(self) -> "Blocks":
        """Leave out records without data or with values that are not finite: one pass."""
        if self._kept is not None:
            return self
        _, masked, dropped, *_ = self._about
        n, D = self.shape
        census, bits = Census(self._ignore, self.dtype), []
        step = max(8, BLOCK // max(1, D * self.dtype.itemsize) // 8 * 8)
        for begin in range(0, n, step):
            end = min(begin + step, n)
            hidden = None if masked is None else masked(begin, end)
            bits.append(np.packbits(census.usable(self._read(begin, end), hidden)))
        self.counts = census.counts(dropped)
        kept = np.concatenate(bits)
        spans = [np.bitwise_count(kept[i : i + SPAN // 8]).sum(dtype=int)
                 for i in range(0, len(kept), SPAN // 8)]  # fmt: skip
        self._until = np.cumsum([0, *spans])
        if self._until[-1] == 0:
            raise no_data(self.path, self.kind, n, self.counts)
        if self._until[-1] < n:
            self._kept, self.shape = kept, (int(self._until[-1]), D)
        return self

    def only(self, places: list[int]) -> "Blocks":
        """Return the same rows with some columns, in this order."""
        less = self._copy()
        less._places = places if self._places is None else [self._places[j] for j in places]
        less.shape = (self.shape[0], len(places))
        names = self.columns or tuple(str(j + 1) for j in range(self.shape[1]))
        less.columns = tuple(names[j] for j in places)
        return less

    def unfiltered(self) -> "Blocks":
        """Return all records, also those without data."""
        every = self._copy()
        every._kept, every.shape = None, (self.n_records, self.shape[1])
        return every

    def read(self, start: int, stop: int) -> Array:
        """Return rows as a new array; a file that has changed is an error."""
        if not 0 <= start <= stop <= self.shape[0]:
            raise IndexError(f"rows {start} to {stop} of {self.shape[0]}")
        if self._kept is None:
            return self._read(start, stop)
        X = np.empty((stop - start, self.shape[1]), self.dtype)
        for rows, places in self.places(start, stop):
            first = int(places[0])
            block = self._read(first, int(places[-1]) + 1)
            X[rows.start - start : rows.stop - start] = block[places - first]
        return X

    @property
    def pick(self) -> Callable[[Array], Array] | None:
        """What returns rows at any places as a new array, where these are quick to read."""
        pick = self._pick
        if pick is None or self._kept is not None:
            return None

        def picked(indices: Array) -> Array:
            begin, end = int(indices.min(initial=0)), int(indices.max(initial=0)) + 1
            return self._unchanged(begin, end, lambda: self._chosen(pick(indices)))

        return picked

    def places(self, start: int, stop: int) -> Iterator[tuple[slice, Array]]:
        """Yield the places of rows among the records, some at a time."""
        if self._kept is None:
            yield slice(start, stop), np.arange(start, stop)
            return
        span = int(np.searchsorted(self._until, start, side="right")) - 1
        while start < stop:
            byte = span * (SPAN // 8)
            inside = np.flatnonzero(np.unpackbits(self._kept[byte : byte + SPAN // 8]))
            before, end = int(self._until[span]), min(stop, int(self._until[span + 1]))
            if end > start:
                places = inside[start - before : end - before] + span * SPAN
                yield slice(start, end), places
                start = end
            span += 1

    def file_of(self, row: int) -> tuple[Path, int] | None:
        """Return in which file of a folder a row is, and its number there."""
        if len(self._files) == 1:
            return None
        _, (record,) = next(self.places(row, row + 1))
        ends = np.cumsum([*self._files.values()])
        j = int(np.searchsorted(ends, record, side="right"))
        return [*self._files][j], int(record - (ends[j - 1] if j else 0))

    def place_of(self, row: int) -> str:
        """Say where a row is."""
        found = self.file_of(row)
        return f" of {self.name}" if found is None else f" = row {found[1]} of {found[0]}"

    def _copy(self) -> "Blocks":
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    def __reduce__(self) -> Any:
        """Blocks travel as the way to open them again, with what reading them has shown."""
        found = {name: getattr(self, name) for name in self._found}
        return _again, (self.path.absolute(), self.options, self._n_bytes, found)

    @property
    def _ignore(self) -> Array | None:
        ignore: Array | None = self._about[0]
        return ignore if ignore is None or self._places is None else ignore[self._places]

    def _chosen(self, records: Array) -> Array:
        """Return the columns that are taken."""
        return records if self._places is None else records[:, together(self._places)]

    def _whole(self) -> Array:
        """Return all records: a map of the file if that is possible."""
        n, D = self.shape
        if self._view is not None:
            return np.require(self._chosen(self._view()), self.dtype, "A")
        X = np.empty((n, D), self.dtype)
        step = max(1, BLOCK // max(1, D * self.dtype.itemsize))
        for begin in range(0, n, step):
            with np.errstate(over="ignore"):  # a long double may become inf, which is reported
                X[begin : begin + step] = self._chosen(self.take(begin, min(begin + step, n)))
        return X

    def _read(self, begin: int, end: int) -> Array:
        """Read records as a new array."""
        return self._unchanged(begin, end, lambda: self._chosen(self.take(begin, end)))

    def _unchanged(self, begin: int, end: int, read: Callable[[], Array]) -> Array:
        """Return what is read as a new array; errors say which rows, and that the file has changed.

        The file is looked at before, as libraries may not survive one that was cut, and afterwards.
        """
        self._check_unchanged(begin, end)
        try:
            with (
                damage_named(self.path, f"rows {begin} to {end}: {self.what}"),
                np.errstate(over="ignore", invalid="ignore"),
            ):
                rows = np.array(read(), self.dtype, order="C", copy=None)
        except OSError as error:
            raise InputError(
                f"{self.name}: rows {begin} to {end} cannot be read ({error.strerror or error})."
            ) from error
        except InputError:
            self._check_unchanged(begin, end)
            raise
        self._check_unchanged(begin, end)
        return rows

    def _check_unchanged(self, begin: int, end: int) -> None:
        for file, then, now in zip(self._files, self._stamp, self._seen(), strict=True):
            if now != then:
                raise InputError(
                    f"{self.name if len(self._files) == 1 else file}: has changed since it was "
                    f"opened, before rows {begin} to {end} were read. Was it cut short, or written "
                    "anew? Open it again."
                )

    def _seen(self) -> list[tuple[int, int]]:
        return [_size_and_time(file) for file in self._files]

    @property
    def _n_bytes(self) -> int:
        return sum(size for size, _ in self._stamp)


def _size_and_time(file: Path) -> tuple[int, int]:
    try:
        status = file.stat()
    except OSError:
        return 0, 0
    return status.st_size, status.st_mtime_ns


def _again(path: Path, options: Options, size: int, found: dict[str, Any]) -> Blocks:
    """Open blocks on the machine where they have come to, with what is known of them."""
    from perpend.formats import opened_as

    blocks = opened_as(path, options)
    if blocks._n_bytes != size:
        raise InputError(
            f"{path}: has {blocks._n_bytes} bytes here, and {size} where it was opened first. All "
            "workers must read the same file, which nobody changes meanwhile."
        )
    blocks.__dict__.update(found)
    return blocks


def cut(cube: Array, begin: int, end: int) -> Array:
    """Return records of an array: rows of a table, pixels of an image of any layout.

    >>> cut(np.arange(12).reshape(2, 3, 2), 2, 5).tolist()
    [[4, 5], [6, 7], [8, 9]]
    """
    if cube.ndim < 3:
        return cube[begin:end]
    width = cube.shape[1]
    first, last = begin // width, -(-end // width)
    pixels = cube[first:last].reshape(-1, cube.shape[2])
    return pixels[begin - first * width : end - first * width]


def array_blocks(
    path: Path,
    options: Options,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    source: Callable[[bool], Callable[[int, int], Array] | Raw | Once],
    *,
    about: dict[str, Any],
) -> Blocks:
    """Return the blocks of an array: 2 dimensions are a table, 3 an image.

    Columns are numbered from 1. ``source(transposed)`` returns what `Blocks` takes, or the whole
    array, as the file has it.
    """
    if options.transpose:
        check.transposable(path, len(shape) == 2)
        shape = shape[::-1]
    chosen, columns = list(range(shape[-1])), None
    if options.columns is not None or options.exclude:
        chosen = select(path, options, [str(j + 1) for j in chosen])
        columns = tuple(str(j + 1) for j in chosen)
    floats = np.dtype(dtype if dtype in (np.float32, np.float64) else np.float64)
    found, where = source(options.transpose), together(chosen)
    if isinstance(found, Raw):
        about |= found.readers(chosen, floats)
    elif isinstance(found, Once):
        once = Once(lambda: found.values.T) if options.transpose else found
        about["held"] = math.prod(shape) * dtype.itemsize
        about["take"] = lambda begin, end: once.take(begin, end)[:, where]
        if dtype == floats and isinstance(where, slice) and len(shape) == 2:
            about["view"] = lambda: once.values[:, where]
    else:
        about["take"] = lambda begin, end: found(begin, end)[:, where]
    return Blocks(
        path,
        options,
        "table" if len(shape) == 2 else "image",
        shape=shape[:-1],
        width=len(chosen),
        dtype=floats,
        columns=columns,
        stored=str(dtype),
        **about,
    )


def stepwise(
    opened: Callable[[], AbstractContextManager[Callable[[int, int], Array]]],
    n_lines: int,
    width: int,
    step: int,
) -> Callable[[int], Opened]:
    """Return the `near` of records that are read in steps of whole lines.

    ``opened()`` is a context that gives a function of two lines: the records between them.
    """

    def blocks(first: int) -> Iterator[Array]:
        with opened() as between:
            for line in range(first, n_lines, step):
                yield between(line, min(line + step, n_lines))

    def near(record: int) -> Opened:
        first = record // width // step * step
        return first * width, blocks(first)

    return near


def chunked_blocks(
    path: Path,
    options: Options,
    item: Any,
    axes: tuple[int, ...],
    opened: Callable[[], AbstractContextManager[Any]],
    **about: Any,
) -> Blocks:
    """Return the blocks of an array that may be stored in chunks, which are read whole.

    `item` has its shape, dtype and chunks. ``opened()`` is a context that gives the array, to be
    indexed by slices. `axes` says which of its axes are the lines, samples and features.
    """
    shape = tuple(item.shape[axis] for axis in axes)
    chunks = item.chunks or (1,) * len(shape)

    def source(transposed: bool) -> Callable[[int, int], Array]:
        order = axes[::-1] if transposed else axes
        n_lines, *inner = (item.shape[axis] for axis in order)
        line = math.prod(inner) * item.dtype.itemsize
        step = chunks[order[0]] * max(1, BLOCK // max(1, line * chunks[order[0]]))
        about["held"] = min(step, n_lines) * line

        @contextmanager
        def lines() -> Iterator[Callable[[int, int], Array]]:
            with opened() as array:

                def between(begin: int, end: int) -> Array:
                    index: list[slice] = [slice(None)] * len(order)
                    index[order[0]] = slice(begin, end)
                    values = np.asarray(array[tuple(index)]).transpose(order)
                    return values.reshape(-1, inner[-1])

                yield between

        width = math.prod(inner[:-1])
        near, extent = stepwise(lines, n_lines, width, step), (n_lines * width, inner[-1])
        return Sequential(near, shape=extent, dtype=item.dtype, name=str(path)).read

    return array_blocks(path, options, shape, np.dtype(item.dtype), source, about=about)

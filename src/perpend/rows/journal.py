"""A journal of what a fit has computed from its rows, by which an interrupted fit goes on.

A fit draws from its generator and computes with what passes over the rows give it, and nothing
else. With the same seed and the same results of these passes it goes the same way, to the last bit.
So the results are all that must be saved. A fit that is resumed starts from the beginning, and is
handed the recorded results without reading the rows, until it comes to a pass that is not recorded.
"""

import hashlib
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from perpend._typing import Array, Kernel
from perpend.exceptions import CheckpointError, ClusterError
from perpend.rows.checkpoint import DELETE, CheckpointFile, fit_identity, lasting, packed
from perpend.rows.kinds import to_numpy
from perpend.rows.source import NEW_SOURCE, Kept, RowSource, Scan

SECONDS = 2.0  # between two saves, at least,
TIMES_LONGER = 10.0  # and so many times what the last one took: saving takes a tenth at most
BYTES_PER_SECOND = 4e6  # of work: a disk writes them fifty times as fast; larger results are
# computed again instead, such as a distance for each of many rows
LEAST_LIMIT = 2**26  # bytes: a checkpoint is no larger than this, or than the rows themselves


class Entry(NamedTuple):
    """A call: its number, and a digest of its arguments."""

    call: int
    key: str


class Journal:
    """The results so far, in the order of the calls: those of the file, then new ones."""

    def __init__(self, file: CheckpointFile, limit: int) -> None:
        self._file, self._limit = file, max(limit, LEAST_LIMIT)
        self._calls, self._at = 0, 0  # calls so far, and which of the records comes next
        self._waiting: list[bytes] = []  # that are not saved yet
        self._size = file.size
        self._last, self._took = time.monotonic(), 0.0
        self._n_sources = 0

    def rows(self, source: RowSource, *, is_known: bool = False) -> "JournaledRows":
        """Return rows whose results are recorded."""
        self._n_sources += 1
        return JournaledRows(source, self, self._n_sources, is_known=is_known)

    def recorded(self, what: Sequence[Any]) -> tuple[Entry, list[Array | None] | None]:
        """Return the entry of the next call, and its result if that is recorded."""
        entry = Entry(self._calls, _key(what))
        self._calls += 1
        records = self._file.records
        if self._at == len(records) or records[self._at].call != entry.call:
            return entry, None
        record = records[self._at]
        if record.key != entry.key:
            n = len(records)
            self._file.cut(record)
            self._size = self._file.size
            warnings.warn(
                f"{self._file.path}: the fit differs from the saved one at pass {self._at + 1} of "
                f"{n}, and goes on from there. A callback that ends stages by the clock does this, "
                "or another processor. The result is right, but not bit for bit that of a fit "
                "without interruption.",
                stacklevel=2,
            )
            return entry, None
        self._at += 1
        return entry, self._file.read(record)

    def record(self, entry: Entry, result: Sequence[Array | None], seconds: float) -> None:
        """Write down a result that took so long, if it is worth it; save now and then."""
        arrays = [one for one in result if one is not None]
        # A product may come out differently in the last bit if its factor is in another order.
        plain = all(one.flags.c_contiguous or one.flags.f_contiguous for one in arrays)
        n_bytes = sum(one.nbytes for one in arrays)
        worth = n_bytes <= BYTES_PER_SECOND * seconds and self._size + n_bytes <= self._limit
        if plain and worth and self._at == len(self._file.records):
            new = packed(*entry, result)
            self._waiting += new
            self._size += sum(map(len, new))
        if time.monotonic() - self._last > max(SECONDS, TIMES_LONGER * self._took):
            self.save()

    def save(self) -> None:
        """Save what is not saved yet."""
        begin = time.monotonic()
        if self._waiting:
            self._file.save(self._waiting)
            self._waiting = []
        self._last = time.monotonic()
        self._took = self._last - begin

    def refuse(self) -> CheckpointError:
        """Return the error for rows whose sums are not the recorded ones."""
        return CheckpointError(
            f"{self._file.path}: a pass over the rows gives other sums than the saved ones. Either "
            "the rows have changed, or this machine rounds differently: another processor or "
            f"device, or other versions of NumPy and its BLAS. Resume where it was saved. {DELETE}"
        )


class _Values:
    """The `piece` of values kept with the rows: of a recorded scan, computed when they are used."""

    def __init__(self, again: Callable[[], Kept], call: int) -> None:
        self._again, self.call = again, call
        self.own: Kept | None = None  # that of the source itself
        self.seconds = 0.0

    def __call__(self, rows: slice) -> Array:
        return self.found().piece(rows)

    def found(self) -> Kept:
        if self.own is None:
            begin = time.perf_counter()
            self.own = self._again()
            self.seconds = time.perf_counter() - begin
        return self.own


class JournaledRows:
    """Rows whose results are recorded in a journal, or come from there."""

    def __init__(self, rows: RowSource, journal: Journal, number: int, *, is_known: bool) -> None:
        self._rows, self._journal, self._number = rows, journal, number
        # The first recorded pass is done again, and nothing is taken from the journal unchecked
        # before that: they must be the same rows.
        self._is_known = is_known
        self.shape, self.dtype = rows.shape, rows.dtype
        self.weights, self.lengths = rows.weights, rows.lengths
        self.norms, self.unit = rows.norms, rows.unit

    @property
    def lifted_by(self) -> float | None:
        """As of the rows; parts of them have it from there."""
        return self._rows.lifted_by

    @lifted_by.setter
    def lifted_by(self, scale: float | None) -> None:
        self._rows.lifted_by = scale

    @property
    def precision(self) -> float:
        """The relative rounding error of the products in a descent."""
        return self._rows.precision

    @property
    def total_weight(self) -> float:
        """The sum of the weights of all rows that take part."""
        return self._rows.total_weight

    def scan(
        self, kernel: Kernel, *params: Any, using: tuple[Kept, ...] = (), keep: bool = False
    ) -> Scan:
        """Run `kernel` over all blocks, or return what is recorded of that."""

        def run() -> Scan:
            own = tuple(_own(kept) for kept in using)
            return self._rows.scan(kernel, *params, using=own, keep=keep)

        def again() -> Kept:
            kept = run().kept
            assert kept is not None
            return kept

        what = "scan", self._number, kernel, params, [_of(kept) for kept in using], keep
        entry, sums = self._journal.recorded(what)
        values = _Values(again, entry.call)
        if sums is None or not self._is_known:
            begin = time.perf_counter()
            scan = run()
            values.own, values.seconds = scan.kept, time.perf_counter() - begin
            if sums is None:
                sums = [scan.total, scan.product]
                self._journal.record(entry, sums, values.seconds)
            elif any(map(_differ, sums, scan[:2])):
                raise self._journal.refuse()
            else:
                self._is_known = True
        return Scan(sums[0], sums[1], Kept(values) if keep else None)

    def gather(self, kept: Kept) -> Array:
        """Bring per-row values to memory, in the order of the rows."""
        seconds = getattr(kept.piece, "seconds", 0.0)
        return self._small(["gather", _of(kept)], lambda: self._rows.gather(_own(kept)), seconds)

    def collect(self, kept: Kept) -> Array:
        """Return per-row values as one array where the rows are, in their order."""
        collect: Callable[[Kept], Array] = getattr(self._rows, "collect", self._rows.gather)
        return collect(_own(kept))

    def take(self, indices: Array) -> Array:
        """Bring a few rows to memory, as the kernels see them."""
        return self._small(["take", indices], lambda: self._rows.take(indices))

    def subset(self, indices: Array) -> "JournaledRows":
        """Return some rows as a source of their own, with their weights; they are copied."""
        return self._journal.rows(self._rows.subset(indices))

    def mapped(self, A: Array) -> "JournaledRows | None":
        """Return the rows times A (D, R) as a source of their own, or None if over budget."""
        rows = self._rows.mapped(A)
        return None if rows is None else self._journal.rows(rows, is_known=self._is_known)

    def _small(
        self, what: Sequence[Any], compute: Callable[[], Array], seconds: float = 0.0
    ) -> Array:
        """Return an array that is recorded, or compute and record it."""
        entry, found = self._journal.recorded([self._number, *what])
        if found is not None and self._is_known:
            return found[0]
        begin = time.perf_counter()
        array = compute()
        if found is None:
            self._journal.record(entry, [array], seconds + time.perf_counter() - begin)
        elif _differ(found[0], array):
            raise self._journal.refuse()
        return array


def _own(kept: Kept) -> Kept:
    """Return the values as the source itself keeps them."""
    return kept.piece.found() if isinstance(kept.piece, _Values) else kept


def _of(kept: Kept) -> int:
    """Return which call kept the values; -1 for those that the rows came with."""
    return kept.piece.call if isinstance(kept.piece, _Values) else -1


def _differ(a: Array | None, b: Array | None) -> bool:
    if a is None or b is None:
        return a is not b
    return bool(a.shape != b.shape or a.tobytes() != b.tobytes())


def _key(what: Any) -> str:
    """Return a digest of the arguments of a call, the same in every process."""
    found = hashlib.blake2b(digest_size=16)

    def add(value: Any) -> None:
        if isinstance(value, partial):
            add([value.func, value.args, sorted(value.keywords.items())])
        elif hasattr(value, "__array__"):
            array = to_numpy(value)
            found.update(f"{array.dtype} {array.shape}".encode())
            found.update(np.ascontiguousarray(array).data)
        elif isinstance(value, tuple | list):
            found.update(f"{len(value)} of".encode())
            for one in value:
                add(one)
        else:
            found.update(f"{getattr(value, '__qualname__', None) or lasting(value)};".encode())

    add(what)
    return found.hexdigest()


@contextmanager
def saving_to(
    path: str | PathLike[str], model: Any, X: Array, weight: Array | None, rng: np.random.Generator
) -> Iterator[None]:
    """Save what the fit computes from its rows, and hand it what an earlier process has saved.

    Whatever ends the fit, its journal is saved. `rng` gets the state that the fit began with.
    """
    file = CheckpointFile(path)
    file.begin(fit_identity(model, X, weight, rng), rng)
    journal = Journal(file, int(X.shape[0] * X.shape[1] * X.dtype.itemsize))
    before = NEW_SOURCE.set(journal.rows)
    try:
        yield
    except CheckpointError:
        raise
    except BaseException as error:
        try:
            if file.is_begun or not isinstance(error, Exception) or isinstance(error, ClusterError):
                journal.save()
            else:  # it failed within seconds, and would fail again
                file.path.unlink(missing_ok=True)
        except (OSError, CheckpointError) as reason:
            error.add_note(f"The last seconds are not in the checkpoint: {reason}")
        raise
    else:
        journal.save()
    finally:
        NEW_SOURCE.reset(before)

"""Rows of a NumPy array, read in blocks that fit the processor's cache.

A block has `BLOCK_ENTRIES` entries of X, 256 KiB in float64 and half of it in float32, so that it
and what a kernel makes of it stay in a second-level cache of 1 MiB; measured best from D = 10 to
D = 200, in both memory orders.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from perpend._typing import Array, Kernel
from perpend.geometry import namespace
from perpend.kernels import Contribution, compiled
from perpend.rows.kinds import is_lazy, is_tensor, numpy_dtype, room, to_numpy
from perpend.rows.plan import check_taken
from perpend.rows.source import Kept, Scan
from perpend.rows.threads import in_order

BLOCK_ENTRIES = 32_768  # of X that are worked on at once
BLOCK_ROWS_LEAST = 48  # with very many features blocks are larger; adding up would dominate
FEATURES_PER_ROW = 4  # at most, for the same reason, if (D, D) sums use kept values
GRAM_ROWS_LEAST = 256  # and for kernels without parameters, which give (D, D) sums
SMALL_PRODUCT = 10**6  # multiplications; OpenBLAS does so many without packing, a third faster
NO_FACTOR = 2.0**-104  # a row's, from 1: fewer than 1e15 such rows are below rounding errors
WORTH_CHOOSING = 0.7  # share of the rows with a factor: copying more of them costs what it saves
MEMORY_BUDGET = 2**30  # bytes that a source may keep beside X: unit rows, values kept by scans

BLOCKS_PER_PARTIAL = 16
"""Blocks in one partial sum. The sums then depend on neither the number of threads nor their order,
and rounding grows more slowly."""

Sums: TypeAlias = tuple[Array | None, Array | None]
"""Total and product of some rows."""


class ArrayRows:
    """Rows of an array (n, D) in memory, float32 or float64.

    Kernels see ``X[i] / divisor[i]``. The quotients are stored once if `store_quotients` and if
    they fit the memory budget, and formed block by block otherwise; with ``divisor=None`` the array
    itself is used, uncopied.
    """

    _blocks_in_sum = BLOCKS_PER_PARTIAL
    lifted_by: float | None = None  # of rows (z, 1): z times this is in the units of the data
    memory_limit: int | None = None  # of rows that are not in memory, or are some of these

    def __init__(
        self,
        X: Array,
        *,
        weight: Array | None = None,
        divisor: Array | None = None,
        store_quotients: bool = True,
        lengths: Array | None = None,
        norms: Array | None = None,
        unit: float = 1.0,
        memory_budget: int | None = None,
        block_rows: int | None = None,
        n_jobs: int = 1,
        fused: bool = True,
    ) -> None:
        self._X, self._divisor, self._weight, self._lengths = X, divisor, weight, lengths
        if memory_budget is None and str(X.device) == "cpu":
            memory_budget = X.memory_limit // 2 if is_lazy(X) else MEMORY_BUDGET
        self._budget = memory_budget  # None: whatever is free on the device
        self._given_block_rows, self._n_jobs, self._fused = block_rows, n_jobs, fused
        self.shape: tuple[int, int] = tuple(X.shape)
        self.dtype = numpy_dtype(X)
        self.norms = np.ones(1) if norms is None else norms
        self.unit = unit
        if divisor is not None and store_quotients:
            self._store_quotients(divisor)
        self.weights, self.lengths = _kept(weight, self._X), _kept(lengths, self._X)

    @property
    def precision(self) -> float:
        """The relative rounding error of the products in a descent."""
        return float(np.finfo(self.dtype).eps)

    @cached_property
    def total_weight(self) -> float:
        """The sum of the weights of all rows that take part."""
        if self._weight is None:
            return float(self.shape[0])
        xp = namespace(self._X)
        return float(xp.sum(self._weight, dtype=xp.float64))

    def scan(
        self, kernel: Kernel, *params: Any, using: tuple[Kept, ...] = (), keep: bool = False
    ) -> Scan:
        """Run `kernel` over all blocks and add up what it gives, always in the same order.

        Sums are formed in the rows' own precision within a block, or within groups of its rows, and
        in float64 beyond.
        """
        params = tuple(self._as_param(p) for p in params)
        plain = not using and not keep
        sums = self._sums_of_twin(kernel, params) if plain else None
        if sums is not None:
            return Scan(*sums, None)

        def contribution(rows: slice) -> Contribution:
            block = self._block(rows)
            with self._products():
                part: Contribution = kernel(block, *params, *(k.piece(rows) for k in using))
            return part._replace(right=block) if part.right is None else part

        store = self._room_for(contribution(slice(0, 1)).kept) if keep else None
        width = max((p.shape[1] for p in params if getattr(p, "ndim", 0) == 2), default=0)
        size = self._block_size(width, plain=plain)

        def of_block(rows: slice) -> Sums:
            part = contribution(rows)
            if store is not None:
                store[rows] = part.kept
            return self._weighted_total(part, rows), self._weighted_product(part, rows)

        total, product = self._sum_blocks(of_block, size)
        if not keep:
            return Scan(total, product, None)
        anew = Kept(lambda rows: contribution(rows).kept)
        return Scan(total, product, anew if store is None else Kept(lambda rows: store[rows]))

    def collect(self, kept: Kept) -> Array:
        """Return per-row values as one array where the rows are, in their order."""
        return namespace(self._X).concat([kept.piece(rows) for rows in self.blocks(self.shape[1])])

    def gather(self, kept: Kept) -> Array:
        """Bring per-row values to memory, in the order of the rows."""
        return to_numpy(self.collect(kept))

    def take(self, indices: Array) -> Array:
        """Bring a few rows to memory, as the kernels see them."""
        if self.memory_limit is not None:
            check_taken(len(indices), self.shape[1], self.memory_limit)
        return to_numpy(self._block(self._as_index(indices)))

    def subset(self, indices: Array) -> "ArrayRows":
        """Return some rows as a source of their own, with their weights; they are copied."""
        index = self._as_index(indices)
        return self._alike(self._block(index), index)

    def mapped(self, A: Array) -> "ArrayRows | None":
        """Return the rows times A (D, R), or None if that is over budget."""
        n, R = self.shape[0], A.shape[1]
        n_bytes = n * R * self.dtype.itemsize
        if n_bytes > self._room():
            return None
        A, Y = self._as_param(A), room(self._X, n, R)
        for rows in cut(slice(0, n), self._block_size(0, plain=True)):
            with self._products():
                Y[rows] = self._block(rows) @ A
        return self._alike(Y, slice(None), n_bytes)

    def blocks(self, width: int) -> list[slice]:
        """Return the blocks for a kernel that forms `width` columns, and keeps or uses values."""
        return cut(slice(0, self.shape[0]), self._block_size(width, plain=False))

    # -- blocks ------------------------------------------------------------------------------------

    def _block_size(self, width: int, *, plain: bool) -> int:
        """Return the rows in a block, for kernels whose widest parameter has `width` columns.

        A `plain` scan neither keeps values nor uses kept ones.
        """
        if self._given_block_rows:
            return self._given_block_rows
        D = self.shape[1]
        if plain and width:
            return max(BLOCK_ROWS_LEAST, min(BLOCK_ENTRIES, SMALL_PRODUCT // width) // D)
        # Kept values come in blocks of one size, whatever the kernel.
        least = min(max(BLOCK_ROWS_LEAST, D // FEATURES_PER_ROW), GRAM_ROWS_LEAST)
        return max(GRAM_ROWS_LEAST if plain else least, BLOCK_ENTRIES // D)

    def _as_param(self, param: Any) -> Any:
        """Return an array of floats in the precision of the rows, where they are."""
        if isinstance(param, np.ndarray) and param.dtype.kind == "f":
            return np.ascontiguousarray(param, dtype=self.dtype)
        return param

    def _as_index(self, indices: Array) -> Array:
        return indices

    def _block(self, rows: Any) -> Array:
        """Return the rows of a slice, or of an array of indices, as the kernels see them."""
        X = self._X[rows]
        return X if self._divisor is None else X / self._divisor[rows][:, None]

    def _alike(self, X: Array, index: Any, n_bytes: int = 0) -> "ArrayRows":
        """Return a source of X with the weights and lengths of the rows at `index`."""
        rows = rows_of(X, **self._beside(index, n_bytes))
        rows.lifted_by, rows.memory_limit = self.lifted_by, self.memory_limit
        return rows

    def _beside(self, index: Any, n_bytes: int = 0) -> dict[str, Any]:
        """Return what a source of the rows at `index` knows, which takes so many bytes."""
        return {
            "weight": None if self._weight is None else self._weight[index],
            "lengths": None if self._lengths is None else self._lengths[index],
            "norms": self.norms,
            "unit": self.unit,
            "memory_budget": None if self._budget is None else self._budget - n_bytes,
            "n_jobs": self._n_jobs,
            "fused": self._fused,
        }

    # -- sums --------------------------------------------------------------------------------------

    @staticmethod
    def _products() -> AbstractContextManager[Any]:
        # Some BLAS raise the flag "invalid" in products of finite float32 rows (they look past the
        # end of a vector); rows are checked to be finite, so NumPy's warning says nothing.
        return np.errstate(invalid="ignore")

    def _sums_of_twin(self, kernel: Kernel, params: tuple[Any, ...]) -> Sums | None:
        """Return what a compiled or fused twin of the kernel gives; None without one."""
        sums = compiled.twin(kernel, self._X, self._weight, self._divisor, params)
        return None if sums is None else self._add_up(sums, sums.groups, uses_blas=False)

    def _sum_blocks(self, of_block: Callable[[slice], Sums], size: int) -> Sums:
        """Add up the sums of blocks of so many rows: of those in a group first, then of groups."""

        def partial(group: slice) -> Sums:
            sums: Sums = None, None
            for rows in cut(group, size):
                sums = plus(sums, of_block(rows))
            return sums

        groups = cut(slice(0, self.shape[0]), size * self._blocks_in_sum)
        return self._add_up(partial, groups, uses_blas=True)

    def _add_up(
        self, work: Callable[[slice], Sums], groups: Sequence[slice], *, uses_blas: bool
    ) -> Sums:
        """Add up the sums of groups of rows, whose order is the same for any number of threads."""
        sums: Sums = None, None

        def take(part: Sums) -> None:
            nonlocal sums
            sums = plus(sums, part)

        if self._n_jobs == 1:
            for group in groups:
                take(work(group))
        else:
            n, n_jobs = len(groups), self._n_jobs
            in_order(lambda g: work(groups[g]), take, n, n_jobs=n_jobs, uses_blas=uses_blas)
        if not is_tensor(self._X):
            return sums
        total, product = (None if part is None else to_numpy(part) for part in sums)
        return total, product

    def _weighted_total(self, part: Contribution, rows: slice) -> Array | None:
        # A vector-matrix product is the fastest sum over rows, and takes the weights along.
        return None if part.total is None else self.weights.piece(rows) @ part.total

    def _weighted_product(self, part: Contribution, rows: slice) -> Array | None:
        left, right, weight = part.left, part.right, self._weight
        if part.bins is not None:
            bins, n_bins = part.bins
            return np.bincount(bins, None if weight is None else weight[rows], n_bins)
        if part.factor is not None and right is not None:
            # NumPy halves the work of A.T @ A if both are the same array: the weights go half each.
            root = np.sqrt(part.factor)[:, None]
            if weight is not None:
                root *= self._root_weight[rows, None]
            some = np.flatnonzero(part.factor > NO_FACTOR)
            if len(some) <= WORTH_CHOOSING * len(root):
                root, right = root[some], right[some]
            A = root * right
            return A.T @ A
        if left is None or right is None:
            return None
        if left is right:
            A = left if weight is None else left * self._root_weight[rows, None]
            return A.T @ A
        if weight is not None:
            left = left * weight[rows, None]
        if right.dtype == np.float32 and right.strides[0] < right.strides[1]:
            return (right.T @ left).T  # faster for columns in float32
        return left.T @ right

    @cached_property
    def _root_weight(self) -> Array:
        return np.sqrt(np.asarray(self._weight))

    # -- memory ------------------------------------------------------------------------------------

    def _room(self) -> int:
        """Return how many bytes may still be kept beside X."""
        assert self._budget is not None
        return self._budget

    def _store_quotients(self, divisor: Array) -> None:
        """Store the rows as the kernels see them, if there is room."""
        if self._X.nbytes <= self._room():
            self._X, self._divisor = self._X[:] / divisor[:, None], None
            self._budget = None if self._budget is None else self._budget - self._X.nbytes

    def _room_for(self, sample: Array) -> Array | None:
        """Return an empty array for such values of all rows, or None if there is no room."""
        n_rows = self.shape[0]
        fits = n_rows * sample.nbytes // len(sample) <= self._room()
        return room(sample, n_rows, *sample.shape[1:]) if fits else None


def rows_of(X: Array, **how: Any) -> ArrayRows:
    """Return the source of the rows of X, by its kind; torch is not imported for arrays."""
    if is_lazy(X):
        lazy: ArrayRows = X.as_source(**how)
        return lazy
    if not is_tensor(X):
        return ArrayRows(X, **how)
    from perpend.rows.torch import TorchRows

    return TorchRows(X, **how)


def _kept(values: Array | None, X: Array) -> Kept:
    """Return values of the rows of X, which are ones by default."""
    if values is not None:
        return Kept(lambda rows: values[rows])
    if is_tensor(X):
        return Kept(lambda rows: namespace(X).ones_like(X[rows, 0]))
    return Kept(lambda rows: np.ones(len(range(*rows.indices(len(X)))), X.dtype))


def cut(rows: slice, size: int) -> list[slice]:
    """Cut a range of rows into pieces of this size; the last may be smaller."""
    return [
        slice(start, min(start + size, rows.stop)) for start in range(rows.start, rows.stop, size)
    ]


def plus(sums: Sums, part: Sums) -> Sums:
    """Add the sums of some rows to those of others, as `add` does."""
    return add(sums[0], part[0]), add(sums[1], part[1])


def add(total: Array | None, part: Array | None) -> Array | None:
    """Add a sum of some rows to that of others, in float64 and in place; None is no sum."""
    if part is None:
        return total
    if total is not None:
        total += part
        return total
    return part.astype(np.float64, copy=False) if isinstance(part, np.ndarray) else part.double()

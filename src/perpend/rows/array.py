"""Rows of a NumPy array, read in blocks that fit the processor's cache.

A block has `BLOCK_ENTRIES` entries of X, 256 KiB in float64 and half of it in float32, so that it
and what a kernel makes of it stay in a second-level cache of 1 MiB; measured best from D = 10 to
D = 200, in both memory orders.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from perpend._typing import Array, Kernel
from perpend.kernels import compiled
from perpend.rows.source import Kept, Scan
from perpend.rows.threads import in_order

BLOCK_ENTRIES = 32_768  # of X that are worked on at once
BLOCK_ROWS_LEAST = 48  # with very many features blocks are larger; adding up would dominate
FEATURES_PER_ROW = 4  # at most, for the same reason, if (D, D) sums use kept values
GRAM_ROWS_LEAST = 256  # and for kernels without parameters, which give (D, D) sums
SMALL_PRODUCT = 10**6  # multiplications; OpenBLAS does so many without packing, a third faster
MEMORY_BUDGET = 2**30  # bytes that a source may keep beside X: unit rows, values kept by scans

BLOCKS_PER_PARTIAL = 16
"""Blocks in one partial sum. The sums then depend on neither the number of threads nor their order,
and rounding grows more slowly."""


class ArrayRows:
    """Rows of an array (n, D) in memory.

    Kernels see ``X[i] / divisor[i]``. The quotients are stored once if `store_quotients` and if
    they fit the memory budget, and formed block by block otherwise; with ``divisor=None`` the array
    itself is used, uncopied.
    """

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
        memory_budget: int = MEMORY_BUDGET,
        block_rows: int | None = None,
        n_jobs: int = 1,
    ) -> None:
        self._budget = memory_budget
        self._X, self._divisor = X, divisor
        if divisor is not None and store_quotients and X.nbytes <= self._budget:
            self._X, self._divisor = X / divisor[:, None], None
            self._budget -= X.nbytes
        self._weight, self._lengths = weight, lengths
        self._n_jobs = n_jobs
        self._given_block_rows = block_rows
        D = X.shape[1]
        least = min(max(BLOCK_ROWS_LEAST, D // FEATURES_PER_ROW), GRAM_ROWS_LEAST)
        self._block_rows = block_rows or max(least, BLOCK_ENTRIES // D)
        self.norms = np.ones(1) if norms is None else norms
        self.unit = unit

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and of features."""
        n, D = self._X.shape
        return n, D

    @property
    def dtype(self) -> Any:
        """The floating-point type of the rows."""
        return self._X.dtype

    @property
    def precision(self) -> float:
        """The relative rounding error of the products in a descent."""
        return float(np.finfo(self.dtype).eps)

    @cached_property
    def total_weight(self) -> float:
        """The sum of the weights of all rows that take part."""
        return float(self.shape[0] if self._weight is None else np.sum(self._weight, dtype=float))

    @property
    def weights(self) -> Kept:
        """The weight of each row; 0 for rows that do not take part."""
        return Kept(lambda j: self._weights_of(self._slice(j)))

    @property
    def lengths(self) -> Kept:
        """The norm that each row had as it was given, up to a common factor."""
        if self._lengths is None:
            return Kept(lambda j: np.ones_like(self._weights_of(self._slice(j))))
        lengths = self._lengths
        return Kept(lambda j: lengths[self._slice(j)])

    @property
    def n_blocks(self) -> int:
        """The number of blocks in one scan."""
        return -(-self.shape[0] // self._block_rows)

    def scan(
        self, kernel: Kernel, *params: Any, using: tuple[Kept, ...] = (), keep: bool = False
    ) -> Scan:
        """Run `kernel` over all blocks and add up what it gives, always in the same order.

        Sums are formed in the rows' own precision within a block and in float64 across blocks.
        """
        params = tuple(self._in_own_precision(p) for p in params)
        plain = not using and not keep
        sums = (
            compiled.twin(kernel, self._X, self._weight, self._divisor, params) if plain else None
        )
        if sums is not None:
            return Scan(*self._add_up(sums, sums.groups, uses_blas=False), None)
        # Kept values come in pieces for blocks of one size; without them, each kernel has its own.
        size = self._block_rows_for(params) if plain else self._block_rows

        def contribution(rows: slice, block: Array) -> Any:
            pieces = (k.piece(rows.start // size) for k in using)
            # Some BLAS raise the flag "invalid" in products of finite float32 rows (they look past
            # the end of a vector); rows are checked to be finite, so NumPy's warning says nothing.
            with np.errstate(invalid="ignore"):
                return kernel(block, *params, *pieces)

        def kept(j: int) -> Array:
            rows = self._slice(j)
            return contribution(rows, self._block(rows)).kept

        store = self._room_for(kept(0)) if keep else None

        def partial(group: slice) -> tuple[Array | None, Array | None]:
            total = product = None
            for rows in _cut(group, size):
                block = self._block(rows)
                part = contribution(rows, block)
                if store is not None:
                    store[rows] = part.kept
                total = _add(total, self._weighted_total(part, rows))
                product = _add(product, self._weighted_product(part, rows, block))
            return total, product

        groups = _cut(slice(0, self.shape[0]), size * BLOCKS_PER_PARTIAL)
        total, product = self._add_up(partial, groups, uses_blas=True)
        if not keep:
            return Scan(total, product, None)
        return Scan(
            total, product, Kept(kept if store is None else lambda j: store[self._slice(j)])
        )

    def gather(self, kept: Kept) -> Array:
        """Bring per-row values to memory, in the order of the rows."""
        return np.concatenate([kept.piece(j) for j in range(self.n_blocks)])

    def take(self, indices: Array) -> Array:
        """Bring a few rows to memory, as the kernels see them."""
        X = self._X[indices]
        return X if self._divisor is None else X / self._divisor[indices][:, None]

    def subset(self, indices: Array) -> "ArrayRows":
        """Return some rows as a source of their own, with their weights; they are copied."""
        return ArrayRows(
            self.take(indices),
            weight=None if self._weight is None else self._weight[indices],
            lengths=None if self._lengths is None else self._lengths[indices],
            norms=self.norms,
            unit=self.unit,
            memory_budget=self._budget,
            n_jobs=self._n_jobs,
        )

    def mapped(self, A: Array, *, rescale: bool = False) -> "ArrayRows | None":
        """Return the rows times A (D, R); with `rescale` each is scaled to the norm that it had."""
        n, R = self.shape[0], A.shape[1]
        n_bytes = n * R * self.dtype.itemsize
        if n_bytes > self._budget:
            return None
        A, Y = self._in_own_precision(A), np.empty((n, R), self.dtype)
        for rows in _cut(slice(0, n), max(GRAM_ROWS_LEAST, self._block_rows)):
            X = self._block(rows)
            Y[rows] = X @ A
            if rescale:
                norm = np.linalg.norm(Y[rows], axis=1)
                Y[rows] *= (np.linalg.norm(X, axis=1) / np.where(norm > 0, norm, 1))[:, None]
        return ArrayRows(
            Y,
            weight=self._weight,
            lengths=self._lengths,
            norms=self.norms,
            unit=self.unit,
            memory_budget=self._budget - n_bytes,
            n_jobs=self._n_jobs,
        )

    # -- blocks ------------------------------------------------------------------------------------

    def _slice(self, j: int) -> slice:
        return slice(j * self._block_rows, min((j + 1) * self._block_rows, self.shape[0]))

    def _block(self, rows: slice) -> Array:
        X = self._X[rows]
        return X if self._divisor is None else X / self._divisor[rows, None]

    def _weights_of(self, rows: slice) -> Array:
        if self._weight is not None:
            return self._weight[rows]
        return np.ones(rows.stop - rows.start, self.dtype)

    def _block_rows_for(self, params: tuple[Any, ...]) -> int:
        """Return the rows in a block for a kernel with these parameters."""
        if self._given_block_rows:
            return self._given_block_rows
        widest = max((p.shape[1] for p in params if np.ndim(p) == 2), default=0)
        if widest == 0:
            return max(GRAM_ROWS_LEAST, self._block_rows)
        entries = min(BLOCK_ENTRIES, SMALL_PRODUCT // widest)
        return max(BLOCK_ROWS_LEAST, entries // self.shape[1])

    def _in_own_precision(self, param: Any) -> Any:
        if isinstance(param, np.ndarray) and param.dtype.kind == "f":
            return np.ascontiguousarray(param, dtype=self.dtype)
        return param

    # -- sums --------------------------------------------------------------------------------------

    def _add_up(
        self,
        work: Callable[[slice], tuple[Array | None, Array | None]],
        groups: list[slice],
        *,
        uses_blas: bool,
    ) -> tuple[Array | None, Array | None]:
        """Add up the sums of groups of rows, whose order is the same for any number of threads."""
        total: Array | None = None
        product: Array | None = None

        def take(part: tuple[Array | None, Array | None]) -> None:
            nonlocal total, product
            total, product = _add(total, part[0]), _add(product, part[1])

        if self._n_jobs == 1:
            for group in groups:
                take(work(group))
            return total, product
        in_order(
            lambda g: work(groups[g]), take, len(groups), n_jobs=self._n_jobs, uses_blas=uses_blas
        )
        return total, product

    def _weighted_total(self, part: Any, rows: slice) -> Array | None:
        if part.total is None:
            return None
        # A vector-matrix product is the fastest sum over rows, and takes the weights along.
        return self._weights_of(rows) @ part.total

    def _weighted_product(self, part: Any, rows: slice, block: Array) -> Array | None:
        if part.bins is not None:
            bins, n_bins = part.bins
            weight = None if self._weight is None else self._weight[rows]
            return np.bincount(bins, weight, n_bins)
        left, right = part.left, block if part.right is None else part.right
        if left is None:
            return None
        if left is right:
            # NumPy halves the work of A.T @ A if both are the same array: the weights go half each.
            A = left if self._weight is None else left * self._root_weight[rows, None]
            return A.T @ A
        if self._weight is not None:
            left = left * self._weight[rows, None]
        if right.dtype == np.float32 and right.strides[0] < right.strides[1]:
            return (right.T @ left).T  # faster for columns in float32
        return left.T @ right

    @cached_property
    def _root_weight(self) -> Array:
        return np.sqrt(np.asarray(self._weight))

    def _room_for(self, sample: Array) -> Array | None:
        """Return an empty array for such values of all rows, or None if it is over budget."""
        shape = (self.shape[0], *sample.shape[1:])
        if np.prod(shape) * sample.dtype.itemsize > self._budget:
            return None
        return np.empty(shape, sample.dtype)


def _cut(rows: slice, size: int) -> list[slice]:
    """Cut a range of rows into pieces of this size; the last may be smaller."""
    return [
        slice(start, min(start + size, rows.stop)) for start in range(rows.start, rows.stop, size)
    ]


def _add(total: Array | None, part: Array | None) -> Array | None:
    if part is None:
        return total
    if total is None:
        return part.astype(np.float64, copy=False)
    total += part
    return total

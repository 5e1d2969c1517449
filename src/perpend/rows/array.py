"""Rows of a NumPy array, read in blocks that fit the processor's cache."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from perpend._typing import Array, Kernel
from perpend.exceptions import InputError
from perpend.rows.source import Kept, Scan

BLOCK_ENTRIES = 32_768
"""Entries of X in one block: 256 KiB in float64, so that a block and what a kernel makes of it stay
in a second-level cache of 1 MiB; measured best from D = 10 to D = 200."""

BLOCK_ROWS_LEAST = 64
"""With very many features a block gets larger, or adding up (D, D) sums would dominate."""

BLOCKS_PER_PARTIAL = 16
"""So many blocks are added up before the next partial sum begins. The sums then depend on neither
the number of threads nor their order, and rounding grows more slowly."""

MEMORY_BUDGET = 2**30
"""Bytes that a source may keep beside X: unit rows, and values kept by scans."""

N_NORMS = 64
"""So many quantiles stand for the norms of all rows."""


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
        self._block_rows = block_rows or max(BLOCK_ROWS_LEAST, BLOCK_ENTRIES // X.shape[1])
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
        return Kept(self._block_weights)

    @property
    def lengths(self) -> Kept:
        """The norm that each row had as it was given, up to a common factor."""
        if self._lengths is None:
            return Kept(lambda j: np.ones_like(self._block_weights(j)))
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

        def contribution(j: int) -> Any:
            return kernel(self._block(j), *params, *(k.piece(j) for k in using))

        store = self._room_for(contribution) if keep else None

        def partial(first: int) -> tuple[Array | None, Array | None]:
            total = product = None
            for j in range(first, min(first + BLOCKS_PER_PARTIAL, self.n_blocks)):
                part = contribution(j)
                if store is not None:
                    store[self._slice(j)] = part.kept
                total = _add(total, self._weighted_total(part, j))
                product = _add(product, self._weighted_product(part, j))
            return total, product

        total = product = None
        for t, p in self._map(partial, range(0, self.n_blocks, BLOCKS_PER_PARTIAL)):
            total, product = _add(total, t), _add(product, p)
        return Scan(total, product, self._kept(contribution, store) if keep else None)

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

    # -- blocks ------------------------------------------------------------------------------------

    def _slice(self, j: int) -> slice:
        return slice(j * self._block_rows, (j + 1) * self._block_rows)

    def _block(self, j: int) -> Array:
        X = self._X[self._slice(j)]
        return X if self._divisor is None else X / self._divisor[self._slice(j), None]

    def _block_weights(self, j: int) -> Array:
        if self._weight is not None:
            return self._weight[self._slice(j)]
        return np.ones(min(self._block_rows, self.shape[0] - j * self._block_rows), self.dtype)

    def _in_own_precision(self, param: Any) -> Any:
        if isinstance(param, np.ndarray) and param.dtype.kind == "f":
            return np.ascontiguousarray(param, dtype=self.dtype)
        return param

    # -- sums --------------------------------------------------------------------------------------

    def _weighted_total(self, part: Any, j: int) -> Array | None:
        if part.total is None:
            return None
        # A vector-matrix product is the fastest sum over rows, and takes the weights along.
        return self._block_weights(j) @ part.total

    def _weighted_product(self, part: Any, j: int) -> Array | None:
        if part.left is None:
            return None
        left = part.left
        if self._weight is not None:
            left = left * self._weight[self._slice(j), None]
        return left.T @ (self._block(j) if part.right is None else part.right)

    def _map(
        self, function: Callable[[int], Any], items: range
    ) -> Iterator[tuple[Array | None, Array | None]]:
        threads = min(self._n_jobs, len(items))
        if threads < 2:
            yield from map(function, items)
            return
        # Our own threads over rows, one BLAS thread in each: BLAS's own threads wait actively and
        # lose most of their speed beside a busy neighbour.
        with _blas().limit(limits=1), ThreadPoolExecutor(threads) as pool:
            yield from pool.map(function, items)

    # -- kept values -------------------------------------------------------------------------------

    def _room_for(self, contribution: Callable[[int], Any]) -> Array | None:
        """Return an empty array for the kept values of all rows, or None if it is over budget."""
        sample = contribution(0).kept
        shape = (self.shape[0], *sample.shape[1:])
        if np.prod(shape) * sample.dtype.itemsize > self._budget:
            return None
        return np.empty(shape, sample.dtype)

    def _kept(self, contribution: Callable[[int], Any], store: Array | None) -> Kept:
        if store is None:
            return Kept(lambda j: contribution(j).kept)
        return Kept(lambda j: store[self._slice(j)])


@cache
def _blas() -> Any:
    """Return the control over BLAS's threads; finding the libraries costs milliseconds."""
    return ThreadpoolController()


def _add(total: Array | None, part: Array | None) -> Array | None:
    if part is None:
        return total
    if total is None:
        return part.astype(np.float64)
    total += part
    return total


def as_rows(
    X: Array,
    *,
    weight: Array | None = None,
    mask: Array | None = None,
    normalize: bool = True,
    memory_budget: int = MEMORY_BUDGET,
    block_rows: int | None = None,
    n_jobs: int = 1,
) -> ArrayRows:
    """Return the rows of X (n, D) as a source that solvers can scan.

    Parameters
    ----------
    X : array of shape (n, D), float32 or float64, finite
    weight : array of shape (n,), optional
        Weights of the rows, not negative.
    mask : array of bool of shape (n,), optional
        The rows that take part; all by default.
    normalize : bool
        Whether every row is divided by its norm. All-zero rows have no direction and never take
        part, whatever their weight.
    memory_budget : int
        Bytes that the source may keep beside X.
    block_rows : int, optional
        Rows in one block; by default as many as fit the cache.
    n_jobs : int
        Number of threads that read blocks.
    """
    norms = row_norms(X)
    if not np.all(np.isfinite(norms)):
        row = int(np.argmin(np.isfinite(norms)))
        raise InputError(
            f"The norm of row {row} of X is too large for {X.dtype}. "
            f"Divide X by a constant, for example by 1e{int(np.log10(np.max(np.abs(X[row]))))}."
        )
    takes_part = norms > 0
    for chosen in (mask, None if weight is None else np.asarray(weight) > 0):
        takes_part = takes_part if chosen is None else takes_part & chosen
    if weight is not None or not takes_part.all():
        weight = takes_part * (np.ones(len(norms)) if weight is None else np.asarray(weight, float))
        weight /= _power_of_two(float(weight.max()), far=np.finfo(X.dtype).maxexp / 8)
        weight = weight.astype(X.dtype)
    present = norms[takes_part]
    divisor, lengths, unit, quantiles = None, None, 1.0, None
    if normalize:
        lengths = norms
        X, norms = _without_subnormal_norms(X, norms)
        if np.any(np.abs(present - 1) > 8 * np.finfo(X.dtype).eps):
            divisor = np.where(norms > 0, norms, 1).astype(X.dtype)
    elif present.size:
        # A power of two loses no digit, and step rules made for unit rows then serve these, too.
        unit = _power_of_two(float(present.max()), far=3)
        # Rows that do not take part may be of any size, and 0 * inf is not 0: none may overflow.
        divisor = np.where(takes_part, unit, np.maximum(norms, unit)).astype(X.dtype)
        divisor = None if np.all(divisor == 1) else divisor
        levels = np.append((np.arange(N_NORMS) + 0.5) / N_NORMS, 1.0)  # the largest comes last
        quantiles = np.quantile(present / unit, levels)
    return ArrayRows(
        X,
        weight=weight,
        divisor=divisor,
        store_quotients=normalize,
        lengths=lengths,
        norms=quantiles,
        unit=unit,
        memory_budget=memory_budget,
        block_rows=block_rows,
        n_jobs=n_jobs,
    )


def row_norms(X: Array) -> Array:
    """Return the Euclidean norms of the rows, right also where their squares over- or underflow.

    >>> row_norms(np.array([[3e-200, 4e-200], [3e200, 4e200], [0.0, 0.0]]))
    array([5.e-200, 5.e+200, 0.e+000])
    """
    norms = np.empty(X.shape[0], X.dtype)
    step = max(1, BLOCK_ENTRIES // max(1, X.shape[1]))
    for start in range(0, X.shape[0], step):
        block = X[start : start + step]
        largest = np.max(np.abs(block), axis=1, initial=0)
        scaled = block / np.where(largest > 0, largest, 1)[:, None]
        relative = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
        with np.errstate(over="ignore"):  # inf says it: `as_rows` tells the user which row
            norms[start : start + step] = largest * relative
    return norms


def _without_subnormal_norms(X: Array, norms: Array) -> tuple[Array, Array]:
    """Enlarge rows so small that their norm has lost its digits; their directions stay."""
    limits = np.finfo(X.dtype)
    faint = np.flatnonzero((norms > 0) & (norms < limits.tiny))
    if faint.size:
        X, norms = X.copy(), norms.copy()
        X[faint] /= limits.eps**2  # a power of two: exact
        norms[faint] = row_norms(X[faint])
    return X, norms


def _power_of_two(size: float, *, far: float) -> float:
    """Return a power of two near `size`, or 1 where the exponent is less than `far` from zero."""
    exponent = float(np.log2(size)) if size > 0 else 0.0
    return 1.0 if abs(exponent) < far else float(2.0 ** np.floor(exponent))

r"""Rows of a SciPy sparse matrix, which are never made dense as a whole.

Scans see blocks of sparse rows. A block stands for the rows :math:`S + r m^T` with S sparse: the
term of rank one is the centre of an affine fit, and the 1 of lifted rows as one more column.
Products need no dense rows,

.. math:: (S + r m^T) B = S B + r (m^T B), \qquad
    L^T (S + r m^T) = L^T S + (L^T r)\, m^T.

Where the centre is far from zero the digits would cancel in these sums: such columns are subtracted
before.
"""

import math
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from perpend._typing import Array, Namespace
from perpend.kernels import Contribution
from perpend.rows.array import ArrayRows, Sums, cut
from perpend.rows.kinds import to_numpy
from perpend.rows.lazy import LARGE_SAMPLE, MEMORY_LIMIT, LazyRows, Survey
from perpend.rows.stored import floats_for

WINDOW_BYTES = 2**21  # of rows that are made dense at once
BLOCK_ROWS = 512  # in a block at least: SciPy's products have a start-up time
BLOCK_ENTRIES = 2**18  # stored entries in a block


class SparseBlock:
    """Some rows ``S + r m.T``, as far as kernels use them; m is zero if it is None.

    SciPy adds up one entry after the other, which in single precision loses digits: S and sums are
    in double precision. Dense rows have the type of the source.
    """

    __array_ufunc__ = None  # NumPy leaves products with it to the methods below

    def __init__(self, S: Any, r: Array, m: Array | None, dtype: Any) -> None:
        self.S, self.r, self.m = S, r, m
        self.shape, self.dtype = S.shape, dtype

    def __matmul__(self, B: Array) -> Array:
        product = self.S @ B
        if self.m is not None:
            product += np.multiply.outer(self.r, self.m @ B)
        return product

    @property
    def T(self) -> "_Turned":  # noqa: N802
        """Return the rows as columns, for products from the left."""
        return _Turned(self)

    def across(self, left: Array) -> Array:
        """Return left.T times the rows, for left (b, p)."""
        product: Array = (self.S.T @ left).T
        return product if self.m is None else product + np.outer(left.T @ self.r, self.m)

    def gram(self, u: Array | None) -> Array:
        """Return sum_i u_i x_i x_i.T."""
        u = np.ones_like(self.r) if u is None else u
        scaled = times(self.S, u)
        G: Array = (self.S.T @ scaled).toarray()
        if self.m is None:
            return G
        cross = np.outer(scaled.T @ self.r, self.m)
        return G + cross + cross.T + float(self.r @ (u * self.r)) * np.outer(self.m, self.m)

    def toarray(self) -> Array:
        """Return dense rows."""
        S: Array = self.S.toarray()
        rows = S if self.m is None else S + np.outer(self.r, self.m)
        return rows.astype(self.dtype, copy=False)

    def __sub__(self, other: Array) -> Array:
        return self.toarray() - other

    def __mul__(self, other: Any) -> Array:
        return self.toarray() * (other.toarray() if isinstance(other, SparseBlock) else other)

    __rmul__ = __mul__

    def __truediv__(self, other: Array) -> Array:
        return self.toarray() / other

    def __array_namespace__(self, api_version: str | None = None) -> Namespace:
        return np


class _Turned:
    """The rows of a block as columns."""

    __array_ufunc__ = None

    def __init__(self, block: SparseBlock) -> None:
        self.block = block

    def __rmatmul__(self, A: Array) -> Array:
        return (self.block @ A.T).T


class SparseRows(LazyRows):
    """Rows of a sparse matrix (n, D); or those rows lifted about a centre, ((x - m) / s, 1)."""

    def __init__(
        self,
        S: Any,
        memory_limit: int = MEMORY_LIMIT,
        *,
        centre: Array | None = None,
        scale: float = 1.0,
    ) -> None:
        S = sparse.csr_array(S)
        if not S.has_canonical_format:  # SciPy would sort and add up entries in the user's arrays
            S = S.copy()
            S.sum_duplicates()
        n, D = S.shape
        shape = (n, D if centre is None else D + 1)
        super().__init__(shape, floats_for(S.dtype, "X"), memory_limit, WINDOW_BYTES)
        self.S = S.astype(self.dtype, copy=False)
        self.centre, self.scale = centre, scale
        self._full = np.zeros(0, int) if centre is None else self._columns_that_cancel()

    def block(self, rows: Any, divisor: Array | None = None) -> SparseBlock:
        """Return some rows, each divided by a number, without making them dense."""
        S, m = self.S[rows].astype(float, copy=False), None
        r = np.ones(S.shape[0]) if divisor is None else 1 / divisor.astype(float)
        if self.centre is not None:
            near = self.centre.astype(float)
            if len(self._full):
                S = S - _equal_rows(near, self._full, S.shape[0])
                near[self._full] = 0
            S.resize(S.shape[0], self.shape[1])
            S.data /= self.scale
            m = np.append(-near / self.scale, 1.0)
        return SparseBlock(S if divisor is None else times(S, r), r, m, self.dtype)

    def _columns_that_cancel(self) -> Array:
        """Return the columns that are subtracted before they are squared or multiplied.

        A column with a share p of its entries stored has a mean of at most sqrt(p / (1 - p)) times
        its deviation (Cauchy and Schwarz). So the centre of a sparse column is near zero, no digit
        cancels, and only those that are mostly stored become full. The scale is about the deviation
        of all columns: beyond it are those of which the centre is not that of all rows.
        """
        assert self.centre is not None
        mostly_stored = self._n_stored() > len(self) / 2
        return np.flatnonzero(
            (mostly_stored & (self.centre != 0)) | (abs(self.centre) > self.scale)
        )

    def _n_stored(self) -> Array:
        """Return how many entries of each column are stored."""
        stored, columns = np.zeros(self.S.shape[1], int), self.S.indices
        for some in cut(slice(0, len(columns)), BLOCK_ENTRIES):
            stored += np.bincount(columns[some], minlength=len(stored))
        return stored

    @property
    def entries(self) -> int:
        """The number of entries in all blocks together."""
        return int(self.S.nnz) + len(self) * len(self._full)

    def _read(self, start: int, stop: int) -> Array:
        return self.block(slice(start, stop)).toarray()

    def _pick(self, indices: Array) -> Array:
        return self.block(indices).toarray()

    @cached_property
    def survey(self) -> Survey:
        """Norms and what is not finite, of the stored entries alone where there is no centre."""
        if self.centre is not None or not np.all(np.isfinite(self.S.data)):
            return super().survey
        largest = to_numpy(abs(self.S).max(axis=1).toarray()).ravel()
        with np.errstate(over="ignore"):  # inf is told to the user
            scaled = times(self.S, 1 / np.where(largest > 0, largest, 1))
            norms = largest * np.sqrt(scaled.multiply(scaled).sum(axis=1))
        return Survey(norms.astype(self.dtype), [None] * len(self.windows))

    def lifted(self, centre: Array, scale: float) -> "SparseRows":
        """Return the rows ((x - centre) / scale, 1); the entries are shared."""
        return SparseRows(self.S, self.memory_limit, centre=centre, scale=scale)

    def as_source(self, **how: Any) -> "SparseScans":
        """Return them as a source that solvers can scan."""
        return SparseScans(self, **how)


class SparseScans(ArrayRows):
    """Scans of sparse rows."""

    def _block_size(self, width: int, *, plain: bool) -> int:  # noqa: ARG002
        return max(BLOCK_ROWS, BLOCK_ENTRIES * self.shape[0] // max(1, int(self._X.entries)))

    def _block(self, rows: Any) -> SparseBlock:
        X: SparseRows = self._X
        return X.block(rows, None if self._divisor is None else self._divisor[rows])

    def take(self, indices: Array) -> Array:
        """Bring a few rows to memory, as the kernels see them."""
        self._X.check_room(len(indices))
        return self._block(indices).toarray()

    def subset(self, indices: Array) -> ArrayRows:
        """Return some rows as a source of their own, with their weights; they are copied."""
        self._X.check_room(len(indices), LARGE_SAMPLE)
        return self._alike(self.take(indices), indices)

    def _store_quotients(self, divisor: Array) -> None:
        """Store nothing: that would be a copy of the matrix."""

    def _sums_of_twin(self, *_: Any) -> Sums | None:
        return None

    def _weighted_product(self, part: Contribution, rows: slice) -> Array | None:
        left, right = part.left, part.right
        if not isinstance(right, SparseBlock) or (left is None and part.factor is None):
            return super()._weighted_product(part, rows)
        weight = None if self._weight is None else self._weight[rows]
        if left is None or left is right:
            given = [u for u in (part.factor, weight) if u is not None]
            return right.gram(math.prod(given) if given else None)
        return right.across(left if weight is None else left * weight[:, None])


def _equal_rows(values: Array, columns: Array, n: int) -> Any:
    """Return n sparse rows with these values in some columns."""
    k = len(columns)
    parts = np.tile(values[columns], n), np.tile(columns, n), np.arange(n + 1) * k
    return sparse.csr_array(parts, shape=(n, len(values)))


def times(S: Any, u: Array) -> Any:
    """Return the rows of a sparse matrix, each times a number."""
    scaled = sparse.csr_array(S, copy=True)
    scaled.data *= np.repeat(u, np.diff(scaled.indptr)).astype(scaled.dtype, copy=False)
    return scaled

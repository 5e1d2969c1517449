"""Rows about a point: x - m, formed block by block and subtracted in double precision.

A cloud that is far from the origin has its digits in the differences of large numbers. Whatever is
squared or multiplied must be subtracted before.
"""

from collections.abc import Iterator

import numpy as np

from perpend._typing import Array
from perpend.rows.array import BLOCK_ENTRIES
from perpend.rows.kinds import is_tensor
from perpend.rows.preparation import ENTRIES_OF_TENSOR, row_norms


def centred_blocks(X: Array, centre: Array) -> Iterator[tuple[slice, Array]]:
    """Yield slices of the rows of X (n, D) with the float64 block ``X[rows] - centre``."""
    tensor = is_tensor(X)
    n, D = X.shape
    step = max(1, (ENTRIES_OF_TENSOR if tensor else BLOCK_ENTRIES) // D)
    m = X[:0].double().new_tensor(centre) if tensor else np.asarray(centre, dtype=float)
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        yield rows, (X[rows].double() if tensor else X[rows]) - m


def room_for_lifted(X: Array) -> Array:
    """Return an empty array (n, D + 1) of the kind and precision of X (n, D)."""
    shape = (X.shape[0], X.shape[1] + 1)
    return X.new_empty(shape) if is_tensor(X) else np.empty(shape, X.dtype)


def lift(X: Array, centre: Array, scale: float, out: Array) -> None:
    """Write the homogeneous coordinates ((x - centre) / scale, 1) of the rows to `out`."""
    for rows, Z in centred_blocks(X, centre):
        out[rows, :-1] = Z / scale
    out[:, -1] = 1


def centred_products(X: Array, centre: Array, A: Array) -> Array:
    """Return (X - centre) @ A, for A of shape (D, k), in the precision of X."""
    shape = (X.shape[0], A.shape[1])
    products = X.new_empty(shape) if is_tensor(X) else np.empty(shape, X.dtype)
    for rows, Z in centred_blocks(X, centre):
        products[rows] = Z @ _as_double(A, Z)
    return products


def centred_norms(X: Array, centre: Array, A: Array | None = None) -> Array:
    """Return the norms (n,) of x - centre, or of A.T (x - centre), in the precision of X."""
    norms = X.new_empty(X.shape[0]) if is_tensor(X) else np.empty(X.shape[0], X.dtype)
    for rows, Z in centred_blocks(X, centre):
        norms[rows] = row_norms(Z if A is None else Z @ _as_double(A, Z))
    return norms


def _as_double(A: Array, Z: Array) -> Array:
    return Z.new_tensor(A) if is_tensor(Z) else A

"""Rows about a point: x - m, formed block by block and subtracted in double precision.

A cloud that is far from the origin has its digits in the differences of large numbers. Whatever is
squared or multiplied must be subtracted before.
"""

from collections.abc import Iterator

import numpy as np

from perpend._typing import Array
from perpend.geometry import namespace
from perpend.rows.array import BLOCK_ENTRIES
from perpend.rows.kinds import is_lazy, like, room
from perpend.rows.preparation import row_blocks, row_norms


def centred_blocks(X: Array, centre: Array) -> Iterator[tuple[slice, Array]]:
    """Yield slices of the rows of X (n, D) with the float64 block ``X[rows] - centre``."""
    xp = namespace(X)
    for rows in row_blocks(X, BLOCK_ENTRIES):
        Z = xp.astype(X[rows], xp.float64, copy=False)
        yield rows, Z - like(centre, Z)


def lift(X: Array, centre: Array, scale: float) -> Array:
    """Return the rows ((x - centre) / scale, 1)."""
    L = room(X, X.shape[0], X.shape[1] + 1)
    L[:, -1] = 1
    for rows, Z in centred_blocks(X, centre):
        L[rows, :-1] = Z / scale
    return L


def centred_products(X: Array, centre: Array, A: Array) -> Array:
    """Return (X - centre) @ A, for A of shape (D, k), in the precision of X."""
    if is_lazy(X):
        return np.concatenate(X.map(centred_products, centre, A))
    products = room(X, X.shape[0], A.shape[1])
    for rows, Z in centred_blocks(X, centre):
        products[rows] = Z @ like(A, Z)
    return products


def centred_norms(X: Array, centre: Array, A: Array | None = None) -> Array:
    """Return the norms (n,) of x - centre, or of A.T (x - centre), in the precision of X."""
    if is_lazy(X):
        return np.concatenate(X.map(centred_norms, centre, A))
    norms = room(X, X.shape[0])
    for rows, Z in centred_blocks(X, centre):
        norms[rows] = row_norms(Z if A is None else Z @ like(A, Z))
    return norms

"""Distances to a subspace by the cheaper of two ways: from its normals, or from its components.

With many normals and few components, x - U (U.T x) has the same length as V.T x and costs less. It
is formed as a difference of rows and not of squares, so tiny distances keep their digits.
"""

import numpy as np

from perpend._typing import Array
from perpend.kernels import (
    distance_weighted_gram,
    distances,
    grouped_distances,
    grouped_residuals,
    residual_weighted_gram,
    residuals,
)
from perpend.rows import RowSource, Scan

CHEAPER = 3  # times as many normals as components: the latter take two products, and a difference


def scan_distances(rows: RowSource, V: Array, U: Array | None = None) -> Scan:
    """Keep the distance of each row to the complement of the orthonormal V (D, c).

    `U` is an orthonormal basis of that complement, or of what of it the rows fill, if it is known.
    """
    U = few_components(V, U)
    return rows.scan(distances, V, keep=True) if U is None else rows.scan(residuals, U, keep=True)


def scan_grouped_distances(rows: RowSource, V: Array, edges: Array, U: Array | None = None) -> Scan:
    """Keep these distances and give their histogram over the bins that end at the edges."""
    U = few_components(V, U)
    if U is None:
        return rows.scan(grouped_distances, V, edges, keep=True)
    return rows.scan(grouped_residuals, U, edges, keep=True)


def scan_weighted_gram(rows: RowSource, V: Array, table: Array, edges: Array) -> Scan:
    """Give sum_i u_i x_i x_i.T and sum_i u_i, with the table's value u_i at the row's distance."""
    U = few_components(V)
    if U is None:
        return rows.scan(distance_weighted_gram, V, table, edges)
    return rows.scan(residual_weighted_gram, U, table, edges)


def few_components(V: Array, known: Array | None = None) -> Array | None:
    """Return the complement (D, D - c) of the orthonormal V (D, c) where it is much smaller.

    If it is not `known`, it is what V leaves of random vectors, which costs less than completing a
    basis of many columns. The second projection removes the rounding errors of the first.
    """
    D, c = V.shape
    if c < CHEAPER * (D - c) or c == D:
        return None
    if known is not None:
        return known
    A = np.random.default_rng(0).standard_normal((D, D - c))  # any vectors do, always the same
    for _ in range(2):
        A, _ = np.linalg.qr(A - V @ (V.T @ A))
    return A

"""How far rows are from a subspace, row by row and as a histogram."""

from perpend._typing import Array, namespace
from perpend.kernels.contribution import Contribution


def distances(X: Array, V: Array) -> Contribution:
    """Keep ||V.T x||, the distance of each row to the complement of the orthonormal V (D, c)."""
    xp = namespace(X)
    P = X @ V  # (b, c)
    return Contribution(kept=xp.sqrt(xp.sum(P * P, axis=1)))


def residuals(X: Array, U: Array) -> Contribution:
    """Keep ||x - U U.T x||, the distance of each row to the span of the orthonormal U (D, d).

    The difference keeps the digits of tiny distances, which ||x||^2 - ||U.T x||^2 would lose.
    """
    xp = namespace(X)
    E = X - (X @ U) @ U.T  # (b, D)
    return Contribution(kept=xp.sqrt(xp.sum(E * E, axis=1)))


def distance_and_gradient(X: Array, V: Array) -> Contribution:
    """Give r = ||V.T x|| to be summed and (X V / r).T X; a row at distance 0 pulls nowhere."""
    xp = namespace(X)
    P = X @ V  # (b, c)
    r = xp.sqrt(xp.sum(P * P, axis=1, keepdims=True))
    return Contribution(total=r, left=P / xp.where(r > 0, r, xp.ones_like(r)))


def logarithmic_bins(distance: Array, edges: Array) -> Array:
    """Return the bin (b,) of each distance: bin j is from edges[j-1] to edges[j].

    The m edges grow geometrically, so the bin is a logarithm away; up to rounding, an edge belongs
    to the bin above it. Distances below the first edge are in bin 0, those above the last edge in
    the last bin, number m - 1.
    """
    xp = namespace(distance)
    low = xp.log(edges[0])
    width = (xp.log(edges[-1]) - low) / (edges.shape[0] - 1)
    positive = xp.maximum(distance, edges[0] / 2)  # log(0); anything below the first edge is bin 0
    bins = xp.floor((xp.log(positive) - low) / width) + 1
    return xp.astype(xp.clip(bins, 0, edges.shape[0] - 1), xp.int64)


def grouped_distances(X: Array, V: Array, edges: Array) -> Contribution:
    """Keep ||V.T x|| and give its histogram over the m = 32 q bins of `logarithmic_bins`, (q, 32).

    Row and column of the bin are two short one-hot codes; their product is the histogram. A single
    code of length m would cost m values a row.
    """
    return _histogram(X, distances(X, V).kept, edges)


def grouped_residuals(X: Array, U: Array, edges: Array) -> Contribution:
    """Keep ||x - U U.T x|| and give its histogram, as `grouped_distances` does for ||V.T x||."""
    return _histogram(X, residuals(X, U).kept, edges)


def _histogram(X: Array, distance: Array, edges: Array) -> Contribution:
    xp = namespace(X)
    bins = logarithmic_bins(distance, edges)
    columns = xp.arange(32, device=bins.device)
    rows = xp.arange(edges.shape[0] // 32, device=bins.device)
    row = xp.astype((bins // 32)[:, None] == rows[None, :], X.dtype)  # (b, q)
    column = xp.astype((bins % 32)[:, None] == columns[None, :], X.dtype)  # (b, 32)
    return Contribution(left=row, right=column, kept=distance)

"""Second moments of the rows."""

from perpend._typing import Array, namespace
from perpend.kernels.contribution import Contribution
from perpend.kernels.distances import distances, logarithmic_bins, residuals


def gram(X: Array) -> Contribution:
    """Give X.T X."""
    return Contribution(left=X)


def weighted_gram(X: Array, table: Array, edges: Array, distance: Array) -> Contribution:
    """Give sum_i u_i x_i x_i.T and sum_i u_i, where u_i is the table's value at the row's distance.

    `table` holds one value for each bin of `logarithmic_bins`.
    """
    xp = namespace(X)
    u = xp.take(table, logarithmic_bins(distance, edges))[:, None]  # (b, 1)
    half = xp.sqrt(u) * X  # the same on both sides: a source then computes half of the product
    return Contribution(total=u, left=half, right=half)


def distance_weighted_gram(X: Array, V: Array, table: Array, edges: Array) -> Contribution:
    """Give what `weighted_gram` gives for the distances ||V.T x||.

    This is a whole step of reweighted least squares in one pass over the rows, for callers who know
    the weights of the bins beforehand.
    """
    return weighted_gram(X, table, edges, distances(X, V).kept)


def residual_weighted_gram(X: Array, U: Array, table: Array, edges: Array) -> Contribution:
    """Give the same for the distances ||x - U U.T x||."""
    return weighted_gram(X, table, edges, residuals(X, U).kept)


def inverse_distance_gram(X: Array, V: Array, floor: Array) -> Contribution:
    """Give r = ||V.T x|| to be summed and sum_i x_i x_i.T / max(r_i, floor)."""
    xp = namespace(X)
    P = X @ V  # (b, c)
    r = xp.sqrt(xp.sum(P * P, axis=1, keepdims=True))
    return Contribution(total=r, left=X / xp.maximum(r, floor))

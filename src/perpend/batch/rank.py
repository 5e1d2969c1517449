"""The rank of the solutions for many problems: `perpend.codimension.directions`, batched."""

from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.batch.arrays import library, on_cuda, to_host, transposed
from perpend.theory import average_height

ON_HOST = 32  # problems


class Rank(NamedTuple):
    """What the directions say about their rank, on the host."""

    value: Array  # (p,) int
    saturated: Array  # (p,) bool: every singular vector is a normal
    basis: Array  # (p, m, D) singular vectors of the directions, one a row
    singular_values: Array  # (p, m)
    gap: Array  # (p,) ratio of the singular values across the rank
    score: Array  # (p,) log10(gap) times the rise of the objective


def rank_of_directions(basis: Array, s: Array, heights: Array, low: Array, floor: Array) -> Rank:
    """Weigh singular values and objectives; everything is on the host.

    Parameters
    ----------
    basis, s : right singular vectors (p, m, D) and singular values (p, m) of the directions
    heights : (p, m) mean of |x.u| for each of these vectors
    low : (p,) the same for the solutions
    floor : (p,) singular values that are smaller, relative to the largest, mean nothing
    """
    m, D = basis.shape[1:]
    high = average_height(D)  # of a random direction
    span = np.where(high > low, high - low, 1.0)[:, None]
    level = np.where((high > low)[:, None], (heights - low[:, None]) / span, 1.0)

    t = np.maximum(s / s[:, :1], floor[:, None])
    gaps = t[:, :-1] / t[:, 1:]
    scores = np.log10(gaps) * np.clip(np.diff(level, axis=1), 0.0, 1.0)
    saturated = (level[:, -1] < 0.5) & (m < D)
    if m == 1:
        ones = np.ones(len(s))
        return Rank(ones.astype(np.int64), saturated, basis, s, ones, 0 * ones)
    best = np.argmax(scores, axis=1)[:, None]
    return Rank(
        value=np.minimum(np.where(saturated, m, best[:, 0] + 1), D - 1),
        saturated=saturated,
        basis=basis,
        singular_values=s,
        gap=np.where(saturated, 1.0, np.take_along_axis(gaps, best, axis=1)[:, 0]),
        score=np.where(saturated, 0.0, np.take_along_axis(scores, best, axis=1)[:, 0]),
    )


def right_singular(B: Array, host: Array) -> tuple[Array, Array]:
    """Return right singular vectors (p, m, D) and values (p, m) of B (p, k, D), on the host.

    `host` holds the same values as B. The algebra of a few small matrices is done there, since a
    copy there and back costs less than a factorisation on a device.
    """
    if not on_cuda(B) or len(B) <= ON_HOST:
        _, s, rows = np.linalg.svd(host, full_matrices=False)
        return rows, s
    # The triangle has the same singular values and is small enough for batched routines.
    Q, R = library(B).linalg.qr(transposed(B))  # B^T = Q R
    U, values, _ = library(B).linalg.svd(R, full_matrices=False)
    return to_host(transposed(Q @ U)), to_host(values)


def heights(X: Array, B: Array) -> Array:
    """Return the sums of |x.b| (p, m) over the rows X (p, n, D), for the rows of B (p, m, D)."""
    xp = library(X)
    return xp.sum(xp.abs(X @ transposed(B)), axis=1)

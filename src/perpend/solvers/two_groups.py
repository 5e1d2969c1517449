r"""Two groups of rows, told apart by their distance J to a candidate subspace.

Inside the span of the rows, of dimension R = c + d, with c the codimension there:

- *inliers* have isotropic Gaussian noise of standard deviation s, so
  :math:`J^2 / s^2 \sim \chi^2_c`;
- *outliers* have any direction, so :math:`J^2 / \|x\|^2 \sim \mathrm{Beta}(c/2, d/2)`.

The share of inliers and s are the maximum-likelihood values. Everything works on a histogram of J
over geometrically growing bins, so the cost does not depend on the number of rows, and s is
searched over all bins, so there is no start to choose and no local maximum to be caught in.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy import special

from perpend._typing import Array

N_BINS = 256
N_POINTS = 16  # in a bin, to average over
SHARE_LEAST = 1e-6  # neither group is ever taken to be empty
LOG_LARGEST = 600.0  # beyond exp(600) a ratio of densities is as good as infinite


class TwoGroups(NamedTuple):
    """The fitted model; distances are those that the kernels see."""

    edges: Array  # (m,) upper edges of the bins
    posterior: Array  # (m,) probability that a row in this bin is an inlier
    gain: Array  # (m,) log of mixture over outlier law: what a row in this bin says for a subspace
    counts: Array  # (m,) weight of the rows in each bin
    share: float  # of inliers
    scale: float  # s; at the floor where the inliers are exact
    threshold: float  # the distance at which a row is as likely an inlier as an outlier


def distance_edges(largest: float, dtype: Any) -> Array:
    """Return the edges of the bins, from rounding errors to the largest norm.

    Distances below the lowest edge are rounding errors or might as well be: it is 1.5e-8 of the
    largest norm (the root of double precision's eps), and 2.4e-5 in single precision.
    """
    floor = max(200 * np.finfo(dtype).eps, np.sqrt(np.finfo(np.float64).eps))
    edges: Array = largest * np.geomspace(floor, 1.0, N_BINS)
    return edges


def two_groups(
    counts: Array, edges: Array, norms: Array, codimension: int, dimension: int
) -> TwoGroups:
    """Fit the model to a histogram of distances.

    Parameters
    ----------
    counts : (m,) weight of the rows in each bin
    edges : (m,) upper edges of the bins
    norms : norms that stand for those of all rows
    codimension, dimension : c and d inside the span of the rows
    """
    scales = edges[:-1]
    evidence = _log_ratio(edges, norms, codimension, dimension)  # (m - 1, m)

    seen = counts > 0
    weight = counts[seen] / counts.sum()
    share = _best_shares(np.expm1(np.minimum(evidence[:, seen], LOG_LARGEST)), weight)
    gain = np.logaddexp(np.log1p(-share)[:, None], np.log(share)[:, None] + evidence[:, seen])
    likelihood = gain @ weight
    best = int(np.argmax(likelihood))

    logit = evidence[best] + special.logit(share[best])  # (m,)
    outliers_only = np.log1p(-share[best])
    return TwoGroups(
        edges=edges,
        posterior=special.expit(logit),
        gain=np.logaddexp(outliers_only, outliers_only + logit),
        counts=counts,
        share=float(share[best]),
        scale=_between_bins(scales, likelihood, best),
        threshold=crossing(edges, logit),
    )


def _log_ratio(edges: Array, norms: Array, c: int, d: int) -> Array:
    r"""Return the log of the inliers' over the outliers' probability of each bin, (scales, bins).

    The scales are the edges but for the last. With :math:`x = J / s`, the densities of log J are

    .. math::
        \frac{2}{\Gamma(c/2)} \Bigl(\frac{x^2}{2}\Bigr)^{c/2} e^{-x^2/2}
        \qquad\text{and}\qquad
        \frac{2}{B(c/2, d/2)} \operatorname*{mean}_\nu \Bigl(\frac J\nu\Bigr)^c
        \Bigl(1 - \frac{J^2}{\nu^2}\Bigr)^{d/2 - 1}

    Both hold the factor J^c, which underflows but cancels. With many normals they are narrower than
    a bin, so each is averaged over points of the bin; at a single point, outliers would look like
    inliers. Everything in the lowest bin counts as J = 0.
    """
    m = len(edges)
    growth = edges[1] / edges[0]
    points = growth ** -((np.arange(N_POINTS) + 0.5) / N_POINTS)  # (q,) relative to the upper edge
    weight = c * np.log(points)  # J^c relative to the upper edge

    J = edges[:, None] * points  # (m, q)
    J[0] = 0.0
    with np.errstate(over="ignore"):  # a row can't be farther away than its norm
        ratio2 = np.square(np.minimum(J / norms[:, None, None], 2.0))  # (norms, m, q)
    possible = ratio2 < 1
    outlier = (d / 2 - 1) * np.log1p(-np.where(possible, ratio2, 0.0)) + weight
    outlier = np.where(possible, outlier - c * np.log(norms)[:, None, None], -np.inf)
    outlier = special.logsumexp(outlier, axis=(0, 2), b=1 / len(norms))
    outlier -= special.betaln(c / 2, d / 2)

    # The edges grow geometrically: J / s depends on the difference of the bins' numbers alone.
    x2 = np.square(growth ** np.arange(2.0 - m, m)[:, None] * points)
    difference = np.arange(m) - np.arange(m - 1)[:, None]  # (m - 1, m)
    inlier = special.logsumexp(weight - x2 / 2, axis=1)[difference + m - 2]
    inlier[:, 0] = special.logsumexp(weight)
    inlier -= c / 2 * np.log(2 * np.square(edges[:-1]))[:, None] + special.gammaln(c / 2)

    # The outliers' density vanishes at the largest distances and the inliers' does not quite. But a
    # row does not become an inlier again by being farther away.
    return np.minimum.accumulate(inlier - outlier, axis=1)


def _best_shares(excess: Array, weight: Array) -> Array:
    """Return, for each scale, the share p that maximises sum_j w_j log(1 + p (ratio_j - 1)).

    The sum is concave in p, so its derivative has one zero: bisection, at every scale at once.
    """
    low = np.full(len(excess), SHARE_LEAST)
    high = np.full(len(excess), 1 - SHARE_LEAST)
    for _ in range(30):
        middle = (low + high) / 2
        rises = (excess / (1 + middle[:, None] * excess)) @ weight > 0
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    return (low + high) / 2


def knots(edges: Array) -> Array:
    """Return the distance (m,) that stands for each bin: its middle, but for the lowest.

    That holds rounding errors, and is stood for by its edge.
    """
    middle: Array = edges * np.sqrt(edges[0] / edges[1])
    middle[0] = edges[0]
    return middle


def _between_bins(scales: Array, gain: Array, best: int) -> float:
    """Return the scale at the top of the parabola through the best bin and its neighbours."""
    if not 0 < best < len(scales) - 1:
        return float(scales[best])
    left, top, right = gain[best - 1 : best + 2]
    bend = left - 2 * top + right
    shift = 0.5 * (left - right) / bend if bend < 0 else 0.0
    return float(scales[best] * (scales[1] / scales[0]) ** shift)


def crossing(edges: Array, logit: Array) -> float:
    """Return the distance at which the logit falls through zero, at the least the lowest edge."""
    j = int(np.argmax(logit < 0)) if np.any(logit < 0) else len(edges)
    if j == 0:
        return 0.0  # not even rows on the subspace are likely inliers
    if j == len(edges):
        return float(edges[-1])
    fraction = logit[j - 1] / (logit[j - 1] - logit[j])
    low, high = knots(edges)[j - 1 : j + 1]
    return float(low * (high / low) ** fraction)

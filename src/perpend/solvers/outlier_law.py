"""What outliers without preferred directions do, and the threshold that follows from it.

A row of norm nu whose direction is uniform on the sphere of R^(c + d) is at distance J from a
subspace of dimension d with (J / nu)^2 ~ Beta(c/2, d/2). This law has no free parameter, so the
number of outliers below any distance is known from their total, whatever the inliers do.
"""

import math

import numpy as np
from scipy import special

from perpend._typing import Array

CLEAR = 3.0  # standard deviations by which another threshold must be better than the model's
FAR_END = 0.5  # of the model's inliers: more rows than that are a group of their own
SAME_OUTLIERS = 0.5  # of the outliers must be seen beyond the new threshold as well
LIKE_THE_LAW = 0.05  # Kolmogorov-Smirnov distance up to which outliers follow the law well enough
BY_CHANCE = 2.0  # the same times the root of their number, if that is more: one in a thousand


def outlier_law(edges: Array, norms: Array, c: int, d: int) -> Array:
    """Return the share (m,) of outliers with distances up to each edge."""
    sine = np.minimum(edges / norms[:, None], 1.0)
    law: Array = np.mean(special.betainc(c / 2, d / 2, sine**2), axis=0)
    return law


def outlier_misfit(counts: Array, law: Array, first: int) -> float:
    """Return how far the outliers' distances beyond edge `first` are from the law.

    This is the Kolmogorov-Smirnov distance times the root of the number of rows there; for rows
    that follow the law it exceeds 2 in one of a thousand cases.
    """
    seen = np.cumsum(counts)
    n_outliers, n_expected = seen[-1] - seen[first], 1 - law[first]
    if n_outliers < 1 or n_expected <= 0:
        return 0.0
    gap = (seen - seen[first])[first:] / n_outliers - (law - law[first])[first:] / n_expected
    return float(np.max(np.abs(gap)) * math.sqrt(n_outliers))


def label_threshold(counts: Array, edges: Array, law: Array, threshold: float) -> float:
    """Return the distance that makes the fewest wrong labels, beginning with the model's.

    `counts` is the number of rows in each bin, bin j ending at edges[j]. Up to edge j there are N_j
    rows, of which M F_j are outliers, so the labels "inlier up to j" are right about

        (N_j - M F_j) - M F_j

    more rows than wrong, but for a constant. This asks nothing of the inliers, which in real data
    have more far rows than Gaussian noise has. The model's threshold stays where no other is
    clearly better, where the outliers beyond do not follow the law or are too few to say so, or
    where the rows between the two thresholds would not be the far end of one group but another
    group.
    """
    seen = np.cumsum(counts)
    own = int(np.searchsorted(edges, threshold))
    if own >= len(edges) or law[own] >= 1:
        return threshold
    n_outliers = (seen[-1] - seen[own]) / (1 - law[own])
    more = seen - seen[own]
    gain = more - 2 * n_outliers * (law - law[own])
    # A gain without a row in between is no evidence: the threshold would creep to the last inlier.
    deviation = np.sqrt(np.maximum(np.abs(more), 1.0))
    clear = (gain > CLEAR * deviation) & (more <= FAR_END * seen[own])
    if not np.any(clear):
        return threshold
    best = int(np.argmax(np.where(clear, gain, -np.inf)))
    beyond = float(seen[-1] - seen[best])
    if beyond < SAME_OUTLIERS * n_outliers * (1 - law[best]):
        return threshold  # most of the outliers would turn into inliers
    allowed = max(BY_CHANCE, LIKE_THE_LAW * math.sqrt(beyond))
    if outlier_misfit(counts, law, best) > allowed:
        return threshold
    return float(edges[best])

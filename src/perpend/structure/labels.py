r"""Labels: the threshold, the odds that a row is an outlier, and the noise.

A row of norm nu whose direction is uniform on the sphere of R^(c + d) is at distance J from a
subspace of dimension d with (J / nu)^2 ~ Beta(c/2, d/2). This law has no free parameter, so the
number of outliers below any distance is known from their total, whatever the inliers do: that sets
the threshold T. With p the share of inliers, the two-group model has the log-odds

.. math:: \ell(J) = \log\frac{(1 - p)\, f_\text{out}(J)}{p\, f_\text{in}(J)},

which rise through zero at the model's own threshold t. Labels and odds must not contradict each
other, so the odds are those of the model with its distances stretched until they cross where the
labels do: l(J t / T), as if the far end of the inliers were Gaussian of scale s T / t.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import special

from perpend._typing import Array
from perpend.geometry import namespace
from perpend.solvers import Solution, TwoGroups
from perpend.structure import constants as k
from perpend.structure.law import crossing, knots

FAR_END = 0.5  # of the model's inliers: more rows than that are a group of their own
SAME_OUTLIERS = 0.5  # of the outliers must be seen beyond the new threshold as well
LEAST_PROBABILITY = 1e-300  # smaller ones underflow
MOST_PROBABILITY = 1 - 2.0**-53  # the largest below one
LARGEST_RATIO = 1e100  # times the largest distance: farther is as far
ALL_ON_IT = 1e-9  # of the largest variance across: rounding, along a normal of all rows
LEAST_HOLD = 0.5  # of the members' weight: less is an accident, as weights end at two deviations
ABRUPT = 1e50  # so steep that the next number after the threshold is beyond it


# -- the threshold ---------------------------------------------------------------------------------


def outlier_law(edges: Array, norms: Array, c: int, d: int) -> Array:
    """Return the share (m,) of outliers with distances up to each edge."""
    own = (np.asarray(A, dtype=float).tobytes() for A in (edges, norms))
    return _outlier_law(*own, c, d)


@lru_cache(maxsize=8)  # a fit comes back to the same ones, for each of its structures
def _outlier_law(edges: bytes, norms: bytes, c: int, d: int) -> Array:
    sine = np.minimum(np.frombuffer(edges) / np.frombuffer(norms)[:, None], 1.0)
    return np.mean(special.betainc(c / 2, d / 2, sine**2), axis=0)


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


def misfit_of(groups: TwoGroups, norms: Array, c: int, rank: int, distinct: float) -> float:
    """Return the same for two groups; `distinct` is what a row's weight counts."""
    law = outlier_law(groups.edges, norms, c, rank - c)
    first = min(int(np.searchsorted(groups.edges, groups.threshold)), len(law) - 1)
    return outlier_misfit(groups.counts * distinct, law, first)


def label_threshold(counts: Array, edges: Array, law: Array, threshold: float) -> float:
    """Return the distance that makes the fewest wrong labels, beginning with the model's.

    `counts` is the number of rows in each bin, bin j ending at edges[j]. Up to edge j there are N_j
    rows, of which M F_j are outliers, so the labels "inlier up to j" are right about

        (N_j - M F_j) - M F_j

    more rows than wrong, but for a constant. This asks nothing of the inliers, which in real data
    have more far rows than Gaussian noise has. The model's threshold stays where no other is
    clearly better, where the outliers beyond do not follow the law or are too few to say so, or
    where the rows between the two thresholds are no far end but another group.
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
    clear = (gain > k.BETTER * deviation) & (more <= FAR_END * seen[own])
    if not np.any(clear):
        return threshold
    best = int(np.argmax(np.where(clear, gain, -np.inf)))
    beyond = float(seen[-1] - seen[best])
    allowed = max(k.MISFIT, k.LIKE_THE_LAW * math.sqrt(beyond))
    # Most of the outliers must not turn into inliers.
    same = beyond >= SAME_OUTLIERS * n_outliers * (1 - law[best])
    lawful = same and outlier_misfit(counts, law, best) <= allowed
    return float(edges[best]) if lawful else threshold


def with_threshold(groups: TwoGroups, norms: Array, c: int, d: int, distinct: float) -> TwoGroups:
    """Return the groups with that threshold; `distinct` is what a row's weight counts."""
    if groups.is_exact:
        return groups  # there is no far end of noise
    counts, law = groups.counts * distinct, outlier_law(groups.edges, norms, c, d)
    threshold = label_threshold(counts, groups.edges, law, groups.threshold)
    return groups._replace(threshold=threshold)


def labels(distance: Array, threshold: float) -> Array:
    """Return +1 up to the threshold and -1 beyond."""
    return namespace(distance).where(distance <= threshold, 1, -1)


# -- odds ------------------------------------------------------------------------------------------


class OutlierOdds(NamedTuple):
    """Log-odds at growing distances; linear in log J in between."""

    distance: Array  # (m,) ascending
    log_odds: Array  # (m,) never falling
    threshold: float  # T: negative odds up to here, positive ones beyond
    fall: float  # of the inliers' log density from the last distance to sqrt(2) times that


def solution_odds(solution: Solution, exact: float, unit: float) -> OutlierOdds:
    """Return the odds of outliers and with them the threshold, in the user's units.

    Distances up to `exact`, in the units of the fit, may be rounding errors.
    """
    groups = solution.groups
    if groups is None:
        return exact_odds(exact * unit)
    return outlier_odds(groups._replace(threshold=max(groups.threshold, exact)), unit)


def outlier_odds(groups: TwoGroups, unit: float) -> OutlierOdds:
    """Return the odds for distances in the user's units, crossing at the labels' threshold."""
    logit = special.logit(np.clip(groups.posterior, LEAST_PROBABILITY, MOST_PROBABILITY))
    own = crossing(groups.edges, logit)
    both = own > 0 and groups.threshold > 0  # else one of them is no distance to stretch to
    stretch = groups.threshold / own if both else 1.0
    distance, fall = knots(groups.edges) * (stretch * unit), groups.edges[-1] / groups.scale
    return OutlierOdds(distance, -logit, groups.threshold * unit, float(fall**2 / 2))


def exact_odds(threshold: float) -> OutlierOdds:
    """Return the odds where all inliers are exact: whatever is beyond rounding is an outlier."""
    least = np.array([np.log(LEAST_PROBABILITY)])
    return OutlierOdds(np.array([threshold]), least, threshold, ABRUPT)


def outlier_probability(J: Array, odds: OutlierOdds, times: Array | float = 1.0) -> Array:
    """Return the probability (n,) that rows at the distances J (n,) are outliers.

    Log-odds count so many `times`.

    It never falls with the distance. Beyond the largest distance that was seen the outliers' law
    says nothing, and only the inliers' density goes on to fall, as exp(-J^2 / 2 s^2).
    """
    last = odds.distance[-1]
    inside = np.clip(J, odds.distance[0], last)
    logit = np.interp(np.log(inside), np.log(odds.distance), odds.log_odds)
    with np.errstate(over="ignore"):
        beyond = np.clip(J / last, 1.0, LARGEST_RATIO)
    logit += odds.fall * (beyond - 1) * (beyond + 1)
    # Where the model's odds do not cross at a distance at all, the labels decide the side.
    logit = np.where(odds.threshold >= J, np.minimum(logit, 0.0), np.maximum(logit, 0.0))
    return special.expit(times * logit)


# -- noise -----------------------------------------------------------------------------------------


def inlier_noise(
    solution: Solution, unit: float, *, linear: bool, unit_rows: bool = False
) -> float:
    """Return the expected norm of the inliers' noise; 0 where they are exact.

    The noise is s in every coordinate of the rows' span, so s sqrt(R) in all, with R their rank.
    Seen from the subspace of the other rows, as a linear fit sees it, the error of that subspace
    comes on top: the share d / N. An affine fit sees its own rows, which have turned it towards
    themselves by as much. Unit rows were u + e before they were scaled to norm one, which divided
    the noise by sqrt(1 + |e|^2).
    """
    groups = solution.groups
    if groups is None or groups.is_exact:
        return 0.0
    error = solution.components.shape[1] / (groups.share * groups.counts.sum())
    noise2 = groups.scale**2 * solution.rank / (1 + error if linear else max(1 - error, 0.1))
    if unit_rows:
        noise2 /= max(1 - noise2, 0.1)
    return float(np.sqrt(noise2)) * unit


class NormalsError(NamedTuple):
    """Variances of the normals' errors: normal j turns to component k by across[j] * along[k]."""

    along: Array  # (d,) squared radians, at most 1
    across: Array  # (c,) the noise along each normal, relative to its mean
    offset: float  # squared units of the data, at the location; 0 where it is known
    free: float  # degrees of freedom of the noise that the variances come from


def normals_error(solution: Solution, *, affine: bool) -> NormalsError | None:
    r"""Return how uncertain the normals are; None where they were not refined.

    The normals solve sum_i psi(r_i) t_i = 0, with r the coordinates of a row along them, t those
    along the components, and psi(r) = w(|r|) r. A turn by delta changes that by -A delta. So the
    variance is A^-1 B A^-1, with the sums over all rows, of which a flat density adds nothing to A:

        B_k = lambda_k sum_i w^2 J^2 / c
        A_k = lambda_k sum_i (w + w' J / c) - sum_i w J^2 / c

    The last term is the curvature of the sphere; it takes away the noise in lambda, the members'
    variances. The offset has the constant 1 in place of t. Noise is taken to be alike everywhere.

    The normals have gone to where the sum is, by chance, the steepest. With h = w + w' J / c and q
    directions and constants for each normal, the turns that they took have changed A by the factor

        K = 1 + q sum_i (-h'(J) w J) / (sum_i h)^2

    to first order, which is divided out. It is 1 where all rows weigh one, and counts where
    members are few and weights fall.
    """
    groups, c, d = solution.groups, solution.normals.shape[1], solution.components.shape[1]
    if groups is None or groups.is_exact:
        return NormalsError(np.zeros(d), np.zeros(c), 0.0, np.inf)
    if solution.variances is None:
        return None
    across, along = np.split(solution.variances, [c])
    n_inside = max(int(np.sum(across > ALL_ON_IT * np.max(across, initial=0.0))), 1)
    J = knots(groups.edges)
    w = groups.posterior if groups.weights is None else groups.weights
    psi2 = float(groups.counts @ np.square(w * J)) / n_inside
    hold, n_free = w + np.gradient(w, J) * J / n_inside, d + int(affine)
    turn = float(groups.counts @ hold)
    turn = max(turn, LEAST_HOLD * float(groups.counts @ w))
    curve = float(groups.counts @ (w * np.square(J))) / n_inside
    free = max(turn - n_free, 1.0)  # rows, without those that any subspace runs through
    psi2, tiny = psi2 * max(turn, 1.0) / free, float(np.finfo(float).tiny)
    steeper = -float(groups.counts @ (np.gradient(hold, J) * w * J))
    turn /= 1 + n_free * max(steeper, 0.0) / max(turn, np.sqrt(tiny)) ** 2
    slope, variance = turn * along - curve, np.ones(d)
    steep = slope > np.sqrt(tiny)  # elsewhere nothing is known
    slope = slope[steep]
    variance[steep] = np.minimum((psi2 / slope) * (along[steep] / slope), 1.0)
    relative = across * (n_inside / max(float(across.sum()), tiny))
    offset = psi2 / turn / turn if turn > np.sqrt(tiny) else np.inf
    return NormalsError(variance, relative, offset if affine else 0.0, free)

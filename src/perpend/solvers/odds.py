r"""The odds that a row is an outlier, from the two groups and the threshold of the labels.

With p the share of inliers, the two-group model has the log-odds

.. math:: \ell(J) = \log\frac{(1 - p)\, f_\text{out}(J)}{p\, f_\text{in}(J)},

which rise through zero at the model's threshold t. Real inliers have more far rows than Gaussian
noise has, and `label_threshold` then moves the threshold to T, by the outliers' law alone. Labels
and odds must not contradict each other, so the odds are those of the model with its distances
stretched until they cross where the labels do: l(J t / T). That is as if the far end of the
inliers, which is what matters here, were Gaussian of scale s T / t. Where the model is right, T = t
and the odds are the model's own.
"""

from typing import NamedTuple

import numpy as np
from scipy import special

from perpend._typing import Array
from perpend.solvers.result import Solution
from perpend.solvers.two_groups import TwoGroups, crossing, knots

LEAST = 1e-300  # probability; smaller ones underflow
MOST = 1 - 2.0**-53  # the largest probability below one
FAR = 1e100  # times the largest distance: farther is as far
STEEP = 1e50  # so steep that the next number after the threshold is beyond it


class OutlierOdds(NamedTuple):
    """Log-odds at growing distances; linear in log J in between."""

    distance: Array  # (m,) ascending
    log_odds: Array  # (m,) never falling
    threshold: float  # T: negative odds up to here, positive ones beyond
    fall: float  # of the inliers' log density from the last distance to sqrt(2) times that


def outlier_odds(groups: TwoGroups, unit: float) -> OutlierOdds:
    """Return the odds for distances in the user's units, crossing at the labels' threshold."""
    logit = special.logit(np.clip(groups.posterior, LEAST, MOST))
    own = crossing(groups.edges, logit)
    both = own > 0 and groups.threshold > 0  # else one of them is no distance to stretch to
    stretch = groups.threshold / own if both else 1.0
    return OutlierOdds(
        distance=knots(groups.edges) * (stretch * unit),
        log_odds=-logit,
        threshold=groups.threshold * unit,
        fall=float((groups.edges[-1] / groups.scale) ** 2 / 2),
    )


def solution_odds(solution: Solution, exact: float, unit: float) -> OutlierOdds:
    """Return the odds of outliers and with them the threshold, in the user's units.

    Distances up to `exact`, in the units of the fit, may be rounding errors.
    """
    groups = solution.groups
    if groups is None:
        return exact_odds(exact * unit)
    return outlier_odds(groups._replace(threshold=max(groups.threshold, exact)), unit)


def exact_odds(threshold: float) -> OutlierOdds:
    """Return the odds where all inliers are exact: whatever is beyond rounding is an outlier."""
    return OutlierOdds(np.array([threshold]), np.array([np.log(LEAST)]), threshold, STEEP)


def outlier_probability(J: Array, odds: OutlierOdds) -> Array:
    """Return the probability (n,) that rows at the distances J (n,) are outliers.

    It never falls with the distance. Beyond the largest distance that was seen the outliers' law
    says nothing, and only the inliers' density goes on to fall, as exp(-J^2 / 2 s^2).
    """
    last = odds.distance[-1]
    inside = np.clip(J, odds.distance[0], last)
    logit = np.interp(np.log(inside), np.log(odds.distance), odds.log_odds)
    with np.errstate(over="ignore"):
        beyond = np.clip(J / last, 1.0, FAR)
    logit += odds.fall * (beyond - 1) * (beyond + 1)
    # Where the model's odds do not cross at a distance at all, the labels decide the side.
    logit = np.where(odds.threshold >= J, np.minimum(logit, 0.0), np.maximum(logit, 0.0))
    probability: Array = special.expit(logit)
    return probability

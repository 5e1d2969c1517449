r"""Two groups of rows by their distance to a subspace, for many problems at once.

The model is that of `perpend.solvers.two_groups`: inliers with :math:`J^2/s^2 \sim \chi^2_c`,
outliers with :math:`J^2 \sim \mathrm{Beta}(c/2, d/2)`, d = D - c. Both densities hold the factor
J^c, so the log of their ratio needs no special function of J,

.. math::
    \Lambda(J) = -\frac{J^2}{2 s^2} - \frac c2 \log(2 s^2) - \Bigl(\frac d2 - 1\Bigr)\log(1 - J^2)
    + \log\Gamma\Bigl(\frac d2\Bigr) - \log\Gamma\Bigl(\frac D2\Bigr),

and share and scale are found row by row instead of through a histogram.
"""

import math
from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.batch.arrays import ascending, library, like, pick
from perpend.codimension.certificate import LUCK, LUCK_PER_PARAMETER

SHARE_LEAST = 1e-6  # neither group is ever taken to be empty
N_SHARES, N_SCALES, N_POINTS = 16, 32, 128  # of the coarse grid, and distances it is tried on
LARGEST_SCALE = 0.5
NEAR_ONE = 1e-12  # 1 - J^2 is at least this: a row orthogonal to the subspace is just far away


class Sizes(NamedTuple):
    """What is known of the problems beforehand."""

    columns: Array  # (4, p, 1): one array, as it comes from the host
    least: float  # s below this is rounding

    @property
    def c(self) -> Array:
        """The codimension."""
        return self.columns[0]

    @property
    def d(self) -> Array:
        """The dimension."""
        return self.columns[1]

    @property
    def n(self) -> Array:
        """The number of rows that are not zero."""
        return self.columns[2]

    @property
    def constant(self) -> Array:
        """The constant of the log ratio, log Gamma(d/2) - log Gamma(D/2)."""
        return self.columns[3]


class Groups(NamedTuple):
    """The fitted model, as columns (p, 1)."""

    share: Array  # of inliers
    scale: Array  # s


def sizes(X: Array, codimension: Array, n_rows: Array, least: float) -> Sizes:
    """Put the sizes of the problems together; `codimension` and `n_rows` (p,) are on the host."""
    D = X.shape[2]
    constant = [math.lgamma((D - c) / 2) - math.lgamma(D / 2) for c in codimension.tolist()]
    columns = np.stack([codimension, D - codimension, n_rows, constant]).astype(float)[..., None]
    return Sizes(like(X, columns), least)


def log_ratio(J2: Array, groups: Groups, sizes: Sizes) -> Array:
    """Return Lambda (p, n) for squared distances J2 (p, n), never rising with the distance.

    The outliers' density vanishes at J = 1 and the inliers' does not quite, so beyond
    1 - J^2 = s^2 (d - 2) the ratio would rise again. A row does not become an inlier by distance.
    """
    xp = library(J2)
    s2 = groups.scale**2
    turning = 1 - xp.clip(s2 * (sizes.d - 2), NEAR_ONE, 1.0)
    y = xp.minimum(J2, turning)
    return (
        -y / (2 * s2)
        - sizes.c / 2 * xp.log(2 * s2)
        - (sizes.d / 2 - 1) * xp.log1p(-y)
        + sizes.constant
    )


def posterior(J2: Array, present: Array, groups: Groups, sizes: Sizes) -> Array:
    """Return the probability (p, n) that a row is an inlier; 0 for rows that are not `present`."""
    xp = library(J2)
    logit = log_ratio(J2, groups, sizes) + xp.log(groups.share / (1 - groups.share))
    # exp would overflow beyond 700; at 40 the probability is 1 to rounding.
    return present / (1 + xp.exp(-xp.clip(logit, -600.0, 40.0)))


def weighted_groups(J2: Array, u: Array, sizes: Sizes) -> Groups:
    """Return share and scale of largest likelihood, given the rows' probabilities u (p, n)."""
    xp = library(J2)
    total = xp.sum(u, axis=1, keepdims=True)
    s2 = xp.sum(u * J2, axis=1, keepdims=True) / xp.clip(sizes.c * total, 1e-300, None)
    return Groups(
        share=xp.clip(total / sizes.n, SHARE_LEAST, 1 - SHARE_LEAST),
        scale=xp.clip(xp.sqrt(s2), sizes.least, None),
    )


def likeliest_groups(J2: Array, present: Array, sizes: Sizes) -> Groups:
    """Return the groups of largest likelihood on a coarse grid of shares and scales.

    There is no start to choose and no local maximum to be caught in. A minimiser of the l1
    objective runs through d rows, whatever they are, so the nearest d are taken for inliers and
    not measured. The others are represented by `N_POINTS` of their distances, evenly by rank.
    """
    xp = library(J2)
    y, _ = _sorted(J2, present, sizes)
    place = (_counting(J2, N_POINTS) - 0.5) / N_POINTS * (sizes.n - sizes.d) + sizes.d
    points = pick(y, xp.asarray(place, dtype=xp.int64))  # (p, points)
    growth = (LARGEST_SCALE / sizes.least) ** (1 / (N_SCALES - 1))
    scales = sizes.least * growth ** (_counting(J2, N_SCALES) - 1)  # (1, scales)

    known = Sizes(sizes.columns[..., None], sizes.least)
    grid = Groups(scales, scales[..., None])  # the share has no part in the ratio
    excess = xp.expm1(xp.clip(log_ratio(points[:, None, :], grid, known), None, 600.0))
    shares = (_counting(J2, N_SHARES) - 0.5) / N_SHARES  # (1, shares)
    terms = xp.log1p(shares[..., None, None] * excess[:, None])  # (p, shares, scales, points)
    best = xp.argmax(xp.sum(terms, axis=3).reshape(len(J2), -1), axis=1)[:, None]
    share, scale = (best // N_SCALES + 0.5) / N_SHARES, sizes.least * growth ** (best % N_SCALES)
    return Groups((sizes.d + share * (sizes.n - sizes.d)) / sizes.n, scale)


def support(J2: Array, present: Array, groups: Groups, sizes: Sizes) -> Array:
    """Return (p,) what the rows say for the subspace, beyond what accidents reach.

    This is gain minus needed gain of `perpend.codimension.certificate`, but for two things: rows
    that occur several times count as often, and there is no confidence made of it. The d nearest
    rows are left out, as any subspace of dimension d can be laid through d rows.
    """
    xp = library(J2)
    y, measured = _sorted(J2, present, sizes)
    odds = log_ratio(y, groups, sizes) + xp.log(groups.share / (1 - groups.share))
    gain = xp.log1p(-groups.share) + xp.where(odds > 0, odds, 0.0) + xp.log1p(xp.exp(-xp.abs(odds)))
    luck = LUCK_PER_PARAMETER + xp.log(xp.clip(sizes.n / (sizes.c + sizes.d), 1.0, None)) / 2
    needed = LUCK + sizes.c * sizes.d * luck
    return xp.sum(xp.where(measured, gain, 0.0), axis=1) - needed[:, 0]


def _sorted(J2: Array, present: Array, sizes: Sizes) -> tuple[Array, Array]:
    """Return the distances in ascending order, and which of them are evidence."""
    y = ascending(library(J2).where(present > 0, J2, 2.0))  # absent rows come last
    place = _counting(J2, J2.shape[1])
    return y, (place > sizes.d) & (place <= sizes.n)


def _counting(J2: Array, n: int) -> Array:
    """Return the numbers from 1 to n as (1, n)."""
    xp = library(J2)
    place = {} if xp is np else {"device": J2.device}
    return xp.arange(1, n + 1, dtype=J2.dtype, **place)[None, :]


def crossing(share: Array, scale: Array, codimension: Array, n_features: int) -> Array:
    """Return the distance (p,) at which a row is as likely an inlier as an outlier; on the host.

    As a function of y = J^2, Lambda falls and is convex up to its turning point, so Newton's steps
    from y = 0 come near the zero from one side, and never pass it.
    """
    c, d, s2 = codimension, n_features - codimension, scale**2
    constant = np.array([math.lgamma(x / 2) - math.lgamma(n_features / 2) for x in d.tolist()])
    offset = np.log(share / (1 - share)) - c / 2 * np.log(2 * s2) + constant
    turning = 1 - np.clip(s2 * (d - 2), NEAR_ONE, 1.0)
    y = np.zeros(len(scale))
    for _ in range(20):
        value = offset - y / (2 * s2) - (d / 2 - 1) * np.log1p(-y)
        slope = (d / 2 - 1) / (1 - y) - 1 / (2 * s2)
        step = np.where(slope < 0, -value / np.where(slope < 0, slope, -1.0), 1.0)
        # Where not even a row on the subspace is a likely inlier, the first step leads below 0.
        y, y_old = np.clip(y + step, 0.0, turning), y
        if np.all(np.abs(y - y_old) <= 1e-12 * y):
            break
    return np.sqrt(y)

r"""Location and scatter of rows whatever their outliers, and the limit beyond which a row is one.

Location m and scatter S are those of a Student law with few degrees of freedom: a row with the
squared distance :math:`q = (x - m)^T S^{-1} (x - m)` counts by the weight
:math:`w = (\nu + D) / (\nu + q)`, and

.. math:: m = \frac{\sum w x}{\sum w}, \qquad S = \frac{\sum w (x - m)(x - m)^T}{\sum w}.

Dividing by the sum of the weights, and not by n, leads to the same scatter in far fewer steps
(Kent, Tyler and Vardi, 1994).

*How many directions have a variance of their own?* Variances of spectra decay without a step, so no
number of axes is the right one. With j axes the squared distance is

.. math:: q_j = \sum_{i \le j} \frac{y_i^2}{l_i} + \sum_{i > j} \frac{y_i^2}{\bar l_j},

with eigenvalues l of S, largest first, coordinates y along them, and the mean :math:`\bar l_j` of
all l beyond j. Here q is the mean of all :math:`q_j`, weighted by :math:`j^{-1/2}`, which is
Jeffreys' prior of a count. It is still a squared Mahalanobis distance, and its mean is still D.
Outliers in one place have a direction of their own; a Student scatter with D variances bears a
share of about 1 / (D + nu) of them, and this one more, as most :math:`q_j` give that direction no
variance.

Few rows can't show the variances of many columns. Then only the largest principal axes of the rows'
directions from their spatial median may have variances of their own, and all that is orthogonal to
them has one in common.

*Has the scatter broken down?* A share 1 / (D + 1) of the rows in one place far out breaks a Student
scatter down, and that is little where there are many columns. So the 75 % of the rows that are most
central are searched for from two ends: that scatter, and medians along the axes of the rows'
directions. As long as the second ellipsoid is not smaller than the first by more than chance,
nothing has broken down, and all rows count. Otherwise only those near the second do.

*Which rows are outliers?* The law of q has long tails in real data, so log q of most rows is taken
to be logistic (q itself then has the tails of a power), and that of outliers uniform, from the
median to the largest that is in doubt: see `limit_of`.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from perpend._spread import LEAST_SIZE, SIGMAS, Spread, some_rows
from perpend._typing import Array
from perpend.rows.preparation import check_powers

DEGREES = 1.0  # of freedom; mean AUC on 22 tables with 1, 2, 5 and 10: .825, .823, .820, .817
STEPS, TOL = 200, 1e-4  # at the most, and the relative change of q that ends them
AXES_PRIOR = -0.5  # power of the number of axes: Jeffreys' prior of a count
ROWS_PER_AXIS = 10  # that a variance needs
RIDGE = 1e-12  # of the mean variance: columns in which no row varies
CENTRAL = 0.75  # share of the rows, that of ROBPCA
STEPS_CENTRAL = 50  # at the most: rows may come and go for ever
FLAGGED = 0.01  # at most this share of Gaussian rows without any outlier is beyond the limit
# The limit's log q is at least so far above the median: e times the median distance. With 1.8 to
# 2.4, the labels of four scenes have .79 to .86 of the F1 of the best threshold.
LEAST_LOG = 2.0
FIRST_OUTLIERS = 0.05  # of outliers, before any step
# Expected number of inliers beyond the end of the range, where no row is in doubt any more. With
# .1, .01 and .001: F1 of labels in four scenes .41, .39, .39, on 24 tables .281, .278, .275; of
# Cauchy rows, 13, 5, 3 % are flagged.
NO_DOUBT = 0.01


def sampled_spread(X: Array, weight: Array | None) -> Spread:
    """Return location and scatter of some of the rows, where there are many."""
    rows, count = some_rows(X, weight)
    check_powers(float(np.max(np.abs(rows))), 2, "The largest entry of X is")
    return spread_of(rows, count)


def spread_of(X: Array, weight: Array | None = None) -> Spread:
    """Return location and scatter of the rows X (n, D); a row of weight w counts like w equal ones.

    As long as they are most of the rows, middle and deviation of q are those of the inliers.
    """
    X, count, once = _places(X, np.ones(len(X)) if weight is None else weight)
    n, D = X.shape
    k = max(n // ROWS_PER_AXIS, 1)
    # Around the medians, so that rounding is that of the differences.
    about, axes = (np.median(X, axis=0), np.eye(D)) if k >= D else _largest_axes(X, count, k)
    Y, k = X - about, axes.shape[1]
    Z = Y @ axes
    rest2 = np.square(Y - Z @ axes.T).sum(axis=1) if k < D else np.zeros(n)
    rows = _Rows(Z, rest2, count, max(min(D, n - 1) - k, 0), _rounding(X) ** 2)
    found = rows.trusted()
    # R^T R is the scatter; by QR, as rounding errors may leave the product without a Cholesky root.
    R = np.linalg.qr((found.vectors / np.sqrt(found.own)).T)[1]
    root = (R * np.where(np.diag(R) < 0, -1.0, 1.0)[:, None]).T
    noise = 1 / math.sqrt(found.common) if found.common > 0 else 1.0
    law = limit_of(found.q, once, k + rows.n_rest)
    if n == 1:  # all rows are equal: there is nothing but rounding
        law = float(special.chdtri(D, FLAGGED)), float(special.chdtri(D, 0.5)), TOL
    middle = about + axes @ found.mean
    return Spread(middle, axes, root, noise, *law, np.zeros((0, D)), np.zeros(D), False, 1.0)


def _places(X: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Return the different rows, and how much each counts in the scatter and in the law of q.

    A Student scatter collapses onto a place with many rows, and their q, which is next to nothing,
    is no sample of any law. So a place counts at most 1 / (D + 1) of all in the scatter, or like
    most others, and like these in the law where it has more.
    """
    X, of = np.unique(X[weight > 0], axis=0, return_inverse=True)
    count = np.bincount(of.reshape(-1), weight[weight > 0])
    one = _quantile(count, np.ones(len(count)), 0.5)
    most = np.maximum((count.sum() - count) / X.shape[1], one)
    return X, np.minimum(count, most), np.where(count > most, one, count)


class _Scatter(NamedTuple):
    """Location and scatter along the axes, and what follows for all rows."""

    mean: Array  # (k,)
    vectors: Array  # (k, k) eigenvectors; along each of them
    own: Array  # (k,) 1 / variance, and along every other direction
    common: float
    q: Array  # (n,)


class _Rows(NamedTuple):
    """Rows as coordinates along axes, and their squared distances from the span of these."""

    Z: Array  # (n, k)
    rest2: Array  # (n,)
    count: Array  # (n,)
    n_rest: int  # directions of the rows' span that have no axis
    floor: float  # of a variance: rounding

    def trusted(self) -> _Scatter:
        """Return the scatter of all rows, or, if they have broken it down, of the central ones.

        Two searches for the most central rows, one from the scatter of all, and one that no quarter
        of the rows can mislead, end with the same rows if nothing is wrong. If the second finds a
        smaller ellipsoid, by more than chance, the rows near that are used.
        """
        (n, k), D = self.Z.shape, self.Z.shape[1] + self.n_rest
        all_ = self._student(self.count)
        first, second = (self._central(q) for q in (all_.q, self._along_axes()))
        # The log of the determinant of n rows' scatter has the variance 2 D / n.
        chance = SIGMAS * math.sqrt(2 * D / n)
        if n <= ROWS_PER_AXIS * k or self._volume(second) >= self._volume(first) - chance:
            return all_
        reach = _quantile(second.q, self.count, 0.5) / special.chdtri(D, 0.5)
        kept = second.q <= reach * special.chdtri(D, FLAGGED)
        return self._student(self.count * kept)

    def _student(self, count: Array) -> _Scatter:
        """Return the Student scatter of rows that count so."""
        w, before = count, np.full(len(count), np.inf)
        for _ in range(STEPS):
            found = self._weighted(w)
            if np.all(np.abs(found.q - before) <= TOL * found.q):
                break
            before, w = found.q, count * self._weight(found.q)
        return found

    def _central(self, q: Array) -> _Scatter:
        """Return that of the rows with the smallest q, beginning with that of another scatter."""
        w = self.count
        for _ in range(STEPS_CENTRAL):
            near = q <= _quantile(q, self.count, CENTRAL)
            found = self._weighted(w * near)
            if np.all(np.abs(found.q - q) <= TOL * found.q):
                break
            q, w = found.q, self.count * self._weight(found.q)
        return found

    def _weight(self, q: Array) -> Array:
        return (DEGREES + self.Z.shape[1] + self.n_rest) / (DEGREES + q)

    def _weighted(self, w: Array) -> _Scatter:
        """Return location and scatter of rows with weights."""
        total = w.sum()
        mean = (w @ self.Z) / total
        Y = self.Z - mean
        values, vectors = np.linalg.eigh((Y * w[:, None]).T @ Y / total)
        least = RIDGE * float(values.sum()) / len(values) + self.floor
        values, vectors = np.maximum(values[::-1], 0) + least, vectors[:, ::-1]
        noise2 = max(float(w @ self.rest2) / (total * max(self.n_rest, 1)), least)
        own, common = mean_precisions(values, noise2, self.n_rest)
        q = np.square(Y @ vectors) @ own + self.rest2 * common
        return _Scatter(mean, vectors, own, common, q)

    def _volume(self, of: _Scatter) -> float:
        """Return the log of the squared volume of the ellipsoid that holds the central rows."""
        D = len(of.own) + self.n_rest
        reach = max(_quantile(of.q, self.count, CENTRAL), np.finfo(float).tiny)
        rest = self.n_rest * math.log(of.common) if self.n_rest else 0.0
        return D * math.log(reach) - float(np.log(of.own).sum()) - rest

    def _along_axes(self) -> Array:
        """Return squared distances by medians along the axes of the rows' directions."""
        middle, axes = _largest_axes(self.Z, self.count, self.Z.shape[1])
        P = (self.Z - middle) @ axes
        P -= np.median(P, axis=0)
        variance = np.square(np.median(np.abs(P), axis=0))
        least = RIDGE * float(variance.mean()) + self.floor
        return np.asarray(np.square(P) @ (1 / (variance + least)))


def mean_precisions(values: Array, noise2: float, n_rest: int) -> tuple[Array, float]:
    """Return the mean of 1 / variance over the number j of axes that have a variance of their own.

    Along each of the k eigenvectors, whose variances `values` (k,) decrease, and along the other
    n_rest directions, of variance noise2.
    """
    k = len(values)
    axes = np.arange(1, k + 1)
    prior = axes**AXES_PRIOR / np.sum(axes**AXES_PRIOR)
    beyond = np.append(values[:0:-1].cumsum()[::-1], 0.0) + n_rest * noise2  # sums of all beyond j
    shared = prior * (k - axes + n_rest) / np.maximum(beyond, np.finfo(float).tiny)
    before = np.concatenate([[0.0], shared.cumsum()])
    at_least = prior[::-1].cumsum()[::-1]  # the probability of j axes or more
    return at_least / values + before[:-1], float(before[-1])


def limit_of(q: Array, weight: Array, D: int) -> tuple[float, float, float]:
    """Return the q beyond which a row is rather an outlier; the middle and width of the others.

    Two groups, fitted by EM: log q of most rows is logistic (m, s), with the density
    1 / (4 s cosh^2(z / 2)), z = (log q - m) / s; that of a share p of outliers is uniform from the
    median to the largest. They are equally likely at z = 2 arcosh(1 / sqrt(4 s r)), where
    r = p / (1 - p) / range. The limit is at least e^`LEAST_LOG` times the median; with a single
    column, what a share `FLAGGED` of Gaussian rows exceeds is more than that.

    The range ends at m + s log(n / `NO_DOUBT`) at the latest, beyond which n logistic numbers have
    less than `NO_DOUBT` in the mean. Rows farther out are outliers wherever they are, and count as
    if they were there: a single one, at any distance, must not make outliers rarer where the two
    groups meet.
    """
    u, total = np.log(np.maximum(q, np.finfo(float).tiny)), weight.sum()
    middle = _quantile(u, weight, 0.5)
    m, s = middle, max(_quantile(np.abs(u - middle), weight, 0.5) / math.log(3), TOL)
    largest, share, reach = float(u.max()), FIRST_OUTLIERS, math.log(max(total / NO_DOUBT - 1, 1.0))
    for _ in range(STEPS):
        extent = max(min(largest, m + s * reach) - middle, TOL)
        half = (u - m) / (2 * s)
        density = 1 / (4 * s * np.square(np.cosh(np.clip(half, -300, 300))))
        outlying = share / extent * (u > middle)
        p = weight * outlying / (outlying + (1 - share) * density)
        # With z tanh(z / 2) = z^2 b, the zeros of the derivatives are weighted means.
        slope = np.tanh(half) / np.where(half == 0, 1, 2 * half)
        b = (weight - p) * np.where(half == 0, 0.5, slope)
        last, m, share = (m, s, share), float(b @ u / b.sum()), float(p.sum() / total)
        s = max(math.sqrt(float(b @ np.square(u - m)) / float((weight - p).sum())), TOL)
        share = min(max(share, np.finfo(float).tiny), 0.5)
        if max(abs(now - then) for now, then in zip((m, s, share), last, strict=True)) <= TOL * s:
            break
    r = share / (1 - share) / extent
    even = m + 2 * s * math.acosh(max(1 / math.sqrt(4 * s * r), 1.0))
    gaussian = math.log(special.chdtri(D, FLAGGED) / special.chdtri(D, 0.5))
    return math.exp(max(even, middle + max(LEAST_LOG, gaussian))), math.exp(m), s


def _rounding(X: Array) -> float:
    return float(np.finfo(float).eps) * max(float(np.max(np.abs(X))), LEAST_SIZE)


def _quantile(values: Array, weight: Array, share: float) -> float:
    """Return the value that has so much of the weight at it or below."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weight[order])
    return float(values[order[np.searchsorted(reached, reached[-1] * share)]])


def _largest_axes(X: Array, weight: Array, k: int) -> tuple[Array, Array]:
    """Return the spatial median (D,), and the k largest axes (D, k) of the directions from there.

    Every row counts alike, however far out it is (Locantore and others, 1999).
    """
    least = _rounding(X)
    median = np.median(X, axis=0)
    for _ in range(STEPS):
        away = np.maximum(np.linalg.norm(X - median, axis=1), least)
        before, median = median, ((weight / away) @ X) / np.sum(weight / away)
        if np.linalg.norm(median - before) <= TOL * np.median(away):
            break
    away = np.maximum(np.linalg.norm(X - median, axis=1), least)
    directions = (X - median) * (np.sqrt(weight) / away)[:, None]
    _, _, axes = np.linalg.svd(directions, full_matrices=len(X) < k)
    return median, axes[:k].T

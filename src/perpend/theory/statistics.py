r"""How well inliers and outliers are spread: the six numbers behind all guarantees.

With N unit inliers X in the subspace S and M unit outliers O,

.. math::
    c_{X,\min}, c_{X,\max} = \tfrac1N \min, \max_{b \in S} \|X b\|_1, \qquad
    \eta_X = \tfrac1N \max_{b \in S} \|(P_S - b b^T) X^T \mathrm{sign}(X b)\|

over unit vectors b, and the same for O with b anywhere in R^D. N c_{X,min} is the permeance of
Lerman, McCoy, Tropp and Zhang (2015, Robust computation of linear models by convex relaxation);
the others are those of Zhu et al. (2018). For uniform rows the c tend to c_d and c_D
(`average_height`) and the eta to zero as the rows become more.

None of them can be computed exactly in many dimensions, so each comes as an `Estimate`: the best
value found by a search, and a certificate from the other side. In one and two dimensions both
agree, as there is an exact way.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from perpend._typing import Array, RandomState
from perpend.exceptions import InputError
from perpend.geometry import as_generator, average_height, random_directions
from perpend.rows import RowSource, as_rows
from perpend.solvers import AutoStep, psgm
from perpend.theory._checks import basis, normalised, objective_and_gradient, unit_rows

DIRECTIONS_AT_ONCE = 128  # the memory of a scan grows with it
MOST_ASCENT_STEPS = 500  # to the largest height; they end as soon as none of the ascents rises
# The search for eta climbs from the best random directions. Each move tries a few points nearby,
N_CLIMBS, N_MOVES, N_TRIALS = 10, 30, 4
FIRST_MOVE, MOVE_SHRINK = 0.3, 0.9  # 17 degrees away at first, less with every move


class Estimate(NamedTuple):
    """The best value found for a minimum or a maximum, and on which side of the truth it lies.

    A maximum that was searched for can only be larger than what was found, so its `value` is a
    "lower" bound; a minimum can only be smaller. `certified` bounds the truth from the other side,
    up to rounding.

    >>> Estimate(0.37, "upper", "best of 20 descents", certified=0.2).interval
    (0.2, 0.37)
    """

    value: float  # the best that was found
    bound: str  # "lower": the truth is at least `value`; "upper": it is at most that
    how: str  # in words
    certified: float | None = None  # a bound from the other side, if one is known

    @property
    def interval(self) -> tuple[float, float]:
        """The interval that holds the truth."""
        if self.bound == "lower":
            return self.value, float("inf") if self.certified is None else self.certified
        return float("-inf") if self.certified is None else self.certified, self.value

    @property
    def worst(self) -> float:
        """The end of the interval that was not found but proven; infinite if there is none."""
        low, high = self.interval
        return high if self.bound == "lower" else low

    def __str__(self) -> str:
        low, high = self.interval
        if low == high:
            return f"{self.value:.4f} exactly"
        return f"{self.value:.4f}, the truth is in [{low:.4f}, {high:.4f}]"


class Values(NamedTuple):
    """Plain numbers for the six statistics: what the theorems compute with.

    `n_inliers` and `n_outliers` may also be shares, with steps for the mean over the rows.
    """

    n_inliers: float  # N
    n_outliers: float  # M
    dimension: int  # d, of the subspace
    n_features: int  # D
    c_x_min: float  # least mean height of the inliers, over directions in S
    c_x_max: float  # the largest
    c_o_min: float  # least mean height of the outliers, over all directions
    c_o_max: float  # the largest
    eta_x: float  # largest tangent part of the inliers' mean subgradient
    eta_o: float  # the same of the outliers
    c_x_min_most: float | None = None  # an upper bound of c_X,min where c_x_min is a lower one

    @property
    def codimension(self) -> int:
        """D - d."""
        return self.n_features - self.dimension


class Statistics(NamedTuple):
    """The six statistics with their directions of error, and the sizes of the problem."""

    c_x_min: Estimate  # least mean height of the inliers, over directions in S
    c_x_max: Estimate  # the largest
    c_o_min: Estimate  # least mean height of the outliers, over all directions
    c_o_max: Estimate  # the largest
    eta_x: Estimate  # largest tangent part of the inliers' mean subgradient
    eta_o: Estimate  # the same of the outliers
    n_inliers: int  # N
    n_outliers: int  # M
    dimension: int  # d, of the subspace
    n_features: int  # D

    @property
    def estimated(self) -> Values:
        """The values found. They make conditions look too good rather than too bad."""
        return self._values([estimate.value for estimate in self[:6]])

    @property
    def certified(self) -> Values:
        """The proven ends. They make conditions look too bad rather than too good."""
        values = self._values([estimate.worst for estimate in self[:6]])
        return values._replace(c_x_min_most=self.c_x_min.value)

    def _values(self, six: list[float]) -> Values:
        return Values(self.n_inliers, self.n_outliers, self.dimension, self.n_features, *six)


def statistics(
    X_in: Array,
    X_out: Array,
    components: Array,
    *,
    n_starts: int = 20,
    n_samples: int = 1000,
    random_state: RandomState = None,
) -> Statistics:
    """Estimate the six statistics of inliers and outliers.

    Parameters
    ----------
    X_in : array of shape (N, D)
        Inliers. They are projected onto the subspace, as the theory has no noise. All rows are
        scaled to norm one, and zero rows are left out.
    X_out : array of shape (M, D)
        Outliers, possibly none.
    components : array of shape (D, d)
        Orthonormal columns that span the subspace.
    n_starts : int
        Descents and ascents for each extreme value.
    n_samples : int
        Random directions at which the tangent parts (eta) are measured; from the best of them a
        local search goes on.

    Notes
    -----
    The paper prints eta_X with 1/M in the text and 1/N in the appendix; it is always multiplied by
    N, so 1/N it is. It also prints its maximum over the whole sphere; b in S is used, because for b
    near the complement the value would tend to at least c_X,min and Theorem 1 could never apply.
    c_X,min and c_X,max, printed over different spheres, are both over that of S; the maximum is the
    same.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X_in = rng.standard_normal((300, 3)) * [1, 1, 0]
    >>> result = statistics(X_in, rng.standard_normal((200, 3)), np.eye(3)[:, :2], random_state=0)
    >>> print(result.c_x_min)
    0.6252 exactly
    >>> result.c_o_max.bound, bool(result.c_o_max.certified > result.c_o_max.value)
    ('lower', True)
    """
    for name, number in (("n_starts", n_starts), ("n_samples", n_samples)):
        if number < 1:
            raise InputError(f"{name}={number}; expected at least 1.")
    rng = as_generator(random_state)
    X_out = unit_rows("X_out", X_out)
    D = X_out.shape[1]
    components = basis("components", components, D)
    # Projected first, then scaled: what a noiseless inlier in the same direction would be.
    X_in = unit_rows("X_in", unit_rows("X_in", X_in, D) @ components)
    c_x_min, c_x_max, eta_x = _spread(X_in, n_starts, n_samples, rng)
    c_o_min, c_o_max, eta_o = _spread(X_out, n_starts, n_samples, rng)
    six = c_x_min, c_x_max, c_o_min, c_o_max, eta_x, eta_o
    return Statistics(*six, len(X_in), len(X_out), components.shape[1], D)


def _spread(X: Array, n_starts: int, n_samples: int, rng: np.random.Generator) -> list[Estimate]:
    """Return c_min, c_max and eta of unit rows X (n, m) in the space that they are given in."""
    n, m = X.shape
    if n == 0 or m == 0:
        return _exact("there are no rows", 0.0, 0.0, 0.0)
    if m == 1:
        return _exact("there is only one direction", 1.0, 1.0, 0.0)
    if m == 2:
        return _exact("all pieces of the circle", *circle_statistics(X))
    rows = as_rows(X)
    moments, axes = np.linalg.eigh(X.T @ X / n)
    starts = random_directions(rng, m, n_starts)
    # |t| <= (s + t^2 / s) / 2 for every s > 0 gives the first bound, |t| >= t^2 the second.
    high = float(np.sqrt(moments[-1]))
    low = float(max(moments[0], 0.0))
    c_max = _largest_height(rows, np.hstack([starts, axes[:, -1:]]))
    B = np.hstack([starts, axes[:, :1]])
    c_min = float(np.min(psgm(rows, B, rule=AutoStep(), max_iter=300, tol=1e-7).objective)) / n

    def tangent(B: Array) -> Array:
        f, g = objective_and_gradient(rows, B)
        return np.linalg.norm(g - B * f, axis=0) / n

    eta = _largest(tangent, random_directions(rng, m, n_samples), rng)
    # ||g||^2 = f^2 + ||tangent part||^2, and ||g|| is at most n c_max at any signs
    eta_high = float(np.sqrt(max(high**2 - low**2, 0.0)))
    return [
        Estimate(c_min, "upper", f"best of {n_starts + 1} descents", low),
        Estimate(c_max, "lower", f"best of {n_starts + 1} ascents", max(high, c_max)),
        Estimate(eta, "lower", f"best of {n_samples} directions, then climbs", max(eta_high, eta)),
    ]


def _exact(how: str, *values: float) -> list[Estimate]:
    sides = ("upper", "lower", "lower")
    return [Estimate(value, side, how, value) for value, side in zip(values, sides, strict=True)]


def _largest_height(rows: RowSource, B: Array) -> float:
    """Return the largest mean of |x.b| that ascents from the columns of B find.

    b <- normalise(X^T sign(X b)) never descends: f(b+) >= sign(X b).X b+ = ||X^T sign(X b)|| >=
    f(b). There are finitely many signs, so it converges.
    """
    best = np.zeros(B.shape[1])
    for _ in range(MOST_ASCENT_STEPS):
        f, g = objective_and_gradient(rows, B)
        grows = np.any(f > best * (1 + 1e-12))
        B, best = normalised(g), f
        if not grows:
            break
    return float(np.max(best)) / rows.shape[0]


def _largest(size: Callable[[Array], Array], B: Array, rng: np.random.Generator) -> float:
    """Return the largest of ``size(B)`` (k,), searched for from the unit columns of B.

    Sizes of parts of the subgradient jump from piece to piece and have no useful gradient, so the
    search is random and local. In 25 dimensions it finds values of eta 30 % above the best of
    20,000 random directions.
    """
    starts = range(0, B.shape[1], DIRECTIONS_AT_ONCE)
    norms = np.concatenate([size(B[:, start : start + DIRECTIONS_AT_ONCE]) for start in starts])
    top = np.argsort(norms)[-N_CLIMBS:]
    B, best, k = B[:, top], norms[top], len(top)
    for move in range(N_MOVES):
        moves = FIRST_MOVE * MOVE_SHRINK**move * random_directions(rng, len(B), N_TRIALS * k)
        places = np.hstack([B, normalised(np.tile(B, N_TRIALS) + moves)])
        tried = np.append(best, size(places[:, k:])).reshape(-1, k)
        B = places[:, np.argmax(tried, axis=0) * k + np.arange(k)]
        best = tried.max(axis=0)
    return float(np.max(best))


def complement_error(
    X_out: Array, normals: Array, *, n_samples: int = 1000, random_state: RandomState = None
) -> Estimate:
    r"""Estimate the largest part of the outliers' error that lies in the complement.

    .. math:: \max_b \|P_\perp e_O(b)\|, \qquad e_O(b) = \tfrac1M O^T \mathrm{sign}(O b) - c_D b

    This is what turns limits away from the projections of their starts; the part of the error in
    the subspace does not matter. It is certified by the largest singular value of the outliers'
    heights over the complement: ``||O V|| / sqrt(M) + c_D``.

    Parameters
    ----------
    X_out : array of shape (M, D)
        Outliers; rows are scaled to norm one.
    n_samples : int
        Random directions at which the error is measured; from the best a local search goes on.

    Examples
    --------
    >>> X_out = np.random.default_rng(0).standard_normal((500, 4))
    >>> error = complement_error(X_out, np.eye(4)[:, 3:], random_state=0)
    >>> bool(0 < error.value < error.certified)
    True
    """
    X = unit_rows("X_out", X_out)
    (M, D), rng = X.shape, as_generator(random_state)
    V, c_D = basis("normals", normals, D), average_height(D)
    if M == 0 or V.shape[1] == 0:
        return Estimate(0.0, "lower", "there is nothing", 0.0)
    rows = as_rows(X)

    def size(B: Array) -> Array:
        return np.linalg.norm(V.T @ (objective_and_gradient(rows, B)[1] / M - c_D * B), axis=0)

    found = _largest(size, random_directions(rng, D, n_samples), rng)
    proven = float(np.linalg.norm(X @ V, 2)) / np.sqrt(M) + c_D
    how = f"best of {n_samples} directions, then climbs"
    return Estimate(found, "lower", how, max(found, proven))


class CircleStatistics(NamedTuple):
    """Least and largest mean height, and the largest tangent part of the mean subgradient."""

    c_min: float  # least mean height
    c_max: float  # largest mean height
    eta: float  # largest tangent part of the mean subgradient


def circle_statistics(X: Array) -> CircleStatistics:
    r"""Return c_min, c_max and eta of unit rows X (n, 2), exactly, by going once round the circle.

    As b turns, the signs of x_i.b change only where b is orthogonal to a row. Between two such
    directions the subgradient g is constant, so there are only n pieces:

    - f(b) = g.b is concave in the angle on a piece: the least f is at an end of a piece;
    - the largest f is the largest \|g\|;
    - the part of g orthogonal to b is largest at an end of a piece, as g.b > 0 inside.

    Parameters
    ----------
    X : array of shape (n, 2)
        Rows of norm one.

    Examples
    --------
    >>> [round(value, 4) for value in circle_statistics(np.eye(2))]
    [0.5, 0.7071, 0.5]
    """
    n = len(X)
    ends = np.sort((np.arctan2(X[:, 1], X[:, 0]) + np.pi / 2) % np.pi)  # b is orthogonal to a row
    # The row that belongs to an end, with the sign that it has before b gets there.
    Y = np.column_stack([np.sin(ends), -np.cos(ends)])
    passed = np.cumsum(Y, axis=0)
    g = passed[-1] - 2 * passed  # (n, 2): piece j lies between the ends j and j + 1
    upper = np.append(ends[1:], ends[0] + np.pi)
    lowest = g[:, 0] * np.cos(ends) + g[:, 1] * np.sin(ends)
    tangent = [g[:, 1] * np.cos(angle) - g[:, 0] * np.sin(angle) for angle in (ends, upper)]
    return CircleStatistics(
        c_min=float(np.min(np.abs(lowest))) / n,
        c_max=float(np.max(np.linalg.norm(g, axis=1))) / n,
        eta=float(np.max(np.abs(tangent))) / n,
    )

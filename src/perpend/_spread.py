r"""How far out a row is, off a subspace or within it: one robust scale for every direction.

A row x has the squared distance

.. math:: q = (x - m)^T S^{-1} (x - m),

which along thin directions, those across a subspace, counts what is small elsewhere. The location
m, the scatter S and the limit of q beyond which a row is an outlier come from `perpend._scatter`.

*Off a sure subspace.* A scatter averages what most rows do, so many rows off a subspace hide one
another in it. Rows off a subspace that is sure have at least the q of the limit at its threshold,
and :math:`q \propto J^2` beyond: whatever is clearly off it is an outlier (see `with_relations`).
"""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, special

from perpend._typing import Array
from perpend.geometry import axis_shares, complement, orthonormal
from perpend.rows.kinds import to_numpy
from perpend.structure.constants import SURE

LEAST_SIZE = 1e-100  # of an entry whose rounding has a square
SIGMAS = 3.0  # more than chance
MOST_ROWS, MOST_ROWS_PER_COLUMN = 8192, 20  # that say it as well as all rows do


class Spread(NamedTuple):
    """Location and scatter."""

    mean: Array  # (D,)
    axes: Array  # (D, k) orthonormal: along them rows have variances of their own,
    root: Array  # (k, k) lower triangular: their scatter is this times its transpose
    noise: float  # deviation along every direction orthogonal to them
    limit: float  # q beyond which a row is an outlier
    middle: float  # q in the middle of the others, whose log q is logistic,
    width: float  # of this scale
    normals: Array  # (c, D) of sure relations between columns, c = 0 if there are none
    location: Array  # (D,) where they hold
    relative: bool  # whether distances from there count over the norms of rows
    per_distance: float  # q of a row at distance 1 from there

    def squares(self, X: Array) -> Array:
        """Return q (n,) of the rows X (n, D): that of the scatter, or off the relations."""
        q = self._within(X)
        return q if not len(self.normals) else np.maximum(q, self._off(self._heights(X)))

    def _within(self, X: Array) -> Array:
        Z, rest = self._parts(X - self.mean)
        q: Array = np.square(linalg.solve_triangular(self.root, Z.T, lower=True)).sum(axis=0)
        if rest is not None:
            q += np.square(rest / self.noise).sum(axis=1)
        return q

    def _heights(self, X: Array) -> Array:
        heights: Array = (X - self.location) @ self.normals.T
        if self.relative:
            norms = np.linalg.norm(X, axis=1, keepdims=True)
            heights /= np.where(norms > 0, norms, 1.0)
        return heights

    def _off(self, heights: Array) -> Array:
        return np.asarray(self.per_distance * np.square(heights).sum(axis=1))

    def shares(self, X: Array) -> Array:
        """Return how much of q each column explains, (n, D) in [0, 1].

        With M = S^-1, a change of column j alone lowers q by at most (M (x - m))_j^2 / M_jj.
        """
        Y = X - self.mean
        Z, rest = self._parts(Y)
        pulled: Array = linalg.cho_solve((self.root, True), Z.T).T @ self.axes.T
        M = np.square(linalg.solve_triangular(self.root, self.axes.T, lower=True)).sum(axis=0)
        if rest is not None:
            pulled += rest / self.noise**2
            M += (1 - np.square(self.axes).sum(axis=1)) / self.noise**2
        q = np.sum(Y * pulled, axis=1, keepdims=True)
        found = np.clip(np.square(pulled) / M / np.where(q > 0, q, 1.0), 0.0, 1.0)
        if len(self.normals):
            heights = self._heights(X)
            off = self._off(heights) > q[:, 0]
            found[off] = axis_shares(heights[off], self.normals)
        return found

    def probability(self, q: Array) -> Array:
        """Return how likely a row is an outlier: odds of one at the limit.

        Beyond its middle the logistic density falls like q^(-1 / width), and the odds grow so.
        """
        with np.errstate(divide="ignore"):
            p: Array = special.expit((np.log(q) - np.log(self.limit)) / self.width)
        return p

    @property
    def precision(self) -> Array:
        """The inverse M (D, D) of the scatter."""
        M: Array = self.axes @ linalg.cho_solve((self.root, True), self.axes.T)
        if self.axes.shape[1] < len(self.axes):
            M += (np.eye(len(M)) - self.axes @ self.axes.T) / self.noise**2
        return M

    def of_several(self, g: Array) -> "Spread":
        """Return the law of the sum of q over g rows.

        To second order in the width s, log of the mean of g numbers exp(m + s z), z logistic of
        variance pi^2 / 3, has the mean m + (1 - 1 / g) s^2 pi^2 / 6 and the width s / sqrt(g). The
        limit is as many widths beyond as that of one row.
        """
        rise = np.log(g) + (1 - 1 / g) * np.square(self.width * np.pi) / 6
        width = self.width / np.sqrt(g)
        middle = self.middle * np.exp(rise)
        limit = middle * (self.limit / self.middle) ** (width / self.width)
        return self._replace(middle=middle, limit=limit, width=width)

    def _parts(self, Y: Array) -> tuple[Array, Array | None]:
        """Return coordinates along the axes, and what is orthogonal to them, if there is any."""
        Z = Y @ self.axes
        return Z, Y - Z @ self.axes.T if Z.shape[1] < Y.shape[1] else None


def some_rows(X: Array, weight: Array | None) -> tuple[Array, Array]:
    """Return some of the rows, where there are many, and how much each counts."""
    n, D = X.shape
    size = max(MOST_ROWS, MOST_ROWS_PER_COLUMN * D)
    some = np.arange(n)
    if n > size:
        some = np.sort(np.random.default_rng(0).choice(n, size, replace=False, shuffle=False))
    count = np.ones(len(some)) if weight is None else to_numpy(weight)[some].astype(float)
    return to_numpy(X[some]).astype(float), count


def with_relations(spread: Spread, model: Any, X: Array, weight: Array | None) -> Spread:
    """Let rows off a sure subspace be outliers as well, in units of its threshold.

    - The relations are those between columns: a column that the members leave constant, up to the
      threshold, has a scale of its own in the scatter, and says nothing about anomalies.
    - Values that are rounded to steps r say nothing finer than |N| r / 2.
    - Whoever asks for both kinds of outliers says that most rows are none. So a subspace that
      clearly more than half of the rows are off is the finest structure, but not what is normal.
    """
    N, U = (to_numpy(A).astype(float) for A in (model.normals_, model.components_))
    T = float(model._outlier_odds["threshold"])
    plain = spread._replace(normals=N[:0], location=to_numpy(model.location_).astype(float))
    if model.confidence_ < SURE or not len(N):
        return plain
    rows, count = some_rows(X, weight)
    rows, count = rows[count > 0], count[count > 0]
    found = plain._replace(normals=N, relative=bool(model.normalize and not model.affine_))
    near = np.linalg.norm(found._heights(rows), axis=1) <= T
    members = rows[near]
    if found.relative:
        norms = np.linalg.norm(members, axis=1, keepdims=True)
        members = members / np.where(norms > 0, norms, 1.0)
    constant = (members @ U.T @ U).std(axis=0) <= T if near.any() else np.ones(len(N.T), bool)
    if constant.any():
        N = complement(orthonormal(N[:, constant])).T @ N
    if not len(N):
        return plain
    if not found.relative:
        T = max(T, float(np.linalg.norm(np.abs(N) @ _steps(rows) / 2)))
    found = found._replace(normals=N, per_distance=spread.limit / max(T, LEAST_SIZE) ** 2)
    off = np.average(found._off(found._heights(rows)) > spread.limit, weights=count)
    return plain if off > 0.5 + SIGMAS * 0.5 / math.sqrt(len(rows)) else found


def _steps(X: Array) -> Array:
    """Return the smallest difference between the values of each column (D,)."""
    gaps = np.diff(np.sort(X, axis=0), axis=0)
    rounding = 8 * np.finfo(float).eps * np.max(np.abs(X), axis=0)
    least: Array = np.min(np.where(gaps > rounding, gaps, np.inf), axis=0, initial=np.inf)
    return np.where(np.isfinite(least), least, 0.0)

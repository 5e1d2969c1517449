r"""Rows that belong together, as the two of a correspondence: inliers or outliers as one.

A group of g rows is one point of R^(gD), the subspace S stands for S x ... x S there, and so

.. math:: J_G^2 = \sum_{i \in G} J_i^2, \qquad J_G^2 / s^2 \sim \chi^2_{gc} \quad\text{for inliers.}

Near the subspace the density of outliers is flat. With p the share of inliers and lambda the log of
both densities' ratio at distance 0, a row has the log-odds :math:`l(J) = A_1 (J^2 / T^2 - 1)` of an
outlier, with the threshold :math:`T^2 = 2 s^2 A_1` and :math:`A_1 = \log\frac{p}{1 - p} + \lambda`.
Rows of a group are independent given what it is: lambda counts g times, p once. So

.. math::
    A_g = \log\frac{p}{1 - p} + g \lambda = \kappa_g A_1, \qquad
    \kappa_g = g - (g - 1) \log\frac{p}{1 - p} \Big/ A_1,

and a group has the log-odds :math:`\kappa_g \, l(J_G / \sqrt{\kappa_g})`: the distance
:math:`J_G / \sqrt{\kappa_g}` has the threshold of a single row. The same is done with the log-odds
that a fit has read off its rows, which are only nearly quadratic.

A group is the evidence of one row, however many it has, as they may be nearly alike: each of them
counts 1 / g in the contrast of `perpend.structure.profile`, and any subspace runs through d groups.

What a group says about the subspace is what its rows span. A rotation of its rows among themselves,
:math:`X_G \to Q X_G`, changes neither that nor J_G. So a structure that holds parts of groups, as
the rows that are zero in the same columns, one of each correspondence, is one of how the rows were
chosen: the search is repeated with rotated rows, and keeps what holds more of the groups.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse, special

from perpend._typing import Array
from perpend.exceptions import InputError, of_earlier_version
from perpend.geometry import average_height
from perpend.rows import as_rows, distinct_rows
from perpend.rows.kinds import is_elsewhere, is_lazy, to_numpy
from perpend.rows.lazy import Computed
from perpend.solvers import Solution
from perpend.structure import constants as k
from perpend.structure import effort
from perpend.structure.checks import Doubt, no_accident
from perpend.structure.cloud import Chance, Reference
from perpend.structure.law import SHARE_LEAST, SHARE_MOST, distance_edges
from perpend.structure.profile import contrasts

HALF_TOGETHER = 0.5  # of a subspace's groups: with less of them, it is that of some of their rows
OF_LIMIT = 4  # of the memory limit, sums over groups may take one part


class Groups(NamedTuple):
    """Which rows belong together."""

    of: Array  # (n,) the number of each row's group
    size: Array  # (m,) rows of each group

    @classmethod
    def checked(cls, ids: Any, n: int, weight: Array | None = None) -> "Groups | None":
        """Return the groups of n rows by their ids; None without any, or if each has one row.

        Rows of a group count together, so they must have the same weight.
        """
        if ids is None:
            return None
        of = _numbered(ids, n)
        size = np.bincount(of)
        if weight is not None:
            high, low = np.full(len(size), -np.inf), np.full(len(size), np.inf)
            np.maximum.at(high, of, weight)
            np.minimum.at(low, of, weight)
            if np.any(high > low):
                rows = np.flatnonzero(of == np.argmax(high > low))
                other = rows[np.argmax(weight[rows] != weight[rows[0]])]
                raise InputError(
                    f"Rows {rows[0]} and {other} are of one group, but sample_weight is "
                    f"{weight[rows[0]]:g} and {weight[other]:g}. Rows of a group are inliers or "
                    "outliers together: give them the same weight."
                )
        return None if len(size) == n else cls(of, size)

    @classmethod
    def to_fit(cls, ids: Any, n: int, weight: Array | None = None) -> "Groups | None":
        """Return the groups of the rows of a fit, which needs more than a single one.

        All rows in one are inliers or outliers as one: nothing tells which.
        """
        groups = cls.checked(ids, n, weight)
        if groups is not None and len(groups.size) == 1:
            raise InputError(
                f"groups gives all {n} rows the same id. They would be inliers or outliers all "
                "together, which no data can tell. Give rows an id of their own if they are "
                "independent, or leave groups out."
            )
        return groups

    def sizes(self) -> Array:
        """Return the rows (n,) of each row's group."""
        return self.size[self.of]

    def whole(self, near: Array) -> float:
        """Return the share of the rows that are near whose groups are near as a whole."""
        n_near = np.bincount(self.of, near, minlength=len(self.size))
        return float(n_near[n_near == self.size].sum()) / max(float(n_near.sum()), 1.0)

    def together(self, near: Array) -> float:
        """Return which share of the other rows in the groups of the rows that are near is near.

        Of large groups some row is always off: this does not depend on their size.
        """
        n_near = np.bincount(self.of, near, minlength=len(self.size))
        others = n_near * (self.size - 1)
        return float(n_near @ (n_near - 1)) / total if (total := float(others.sum())) else 1.0

    def turned(self, X: Array, rng: np.random.Generator) -> Array:
        """Reflect the rows of each group among themselves: X_G - 2 v (v^T X_G), |v| = 1, random."""
        v = rng.standard_normal(len(self.of))
        v /= np.sqrt(np.bincount(self.of, np.square(v)))[self.of]
        v[self.sizes() == 1] = 0.0
        if not is_lazy(X):
            return _reflected(X, self.of, v, self._along(X, v))
        along = sum(self._along(X[rows], v, rows) for rows in X.windows)
        return Computed(X, _reflected, along, n_features=X.shape[1], beside=(self.of, v))

    def can_turn(self, X: Array) -> bool:
        """Whether rows can be reflected: v^T X_G of all groups must fit beside rows on disk."""
        if is_elsewhere(X):
            return False
        n_bytes = 8 * len(self.size) * X.shape[1]
        return not is_lazy(X) or n_bytes <= X.memory_limit // OF_LIMIT

    def _along(self, X: Array, v: Array, rows: slice = slice(None)) -> Array:
        """Return v^T X_G (m, D), of some rows."""
        of = self.of[rows]
        shape = len(self.size), len(of)
        return np.asarray(sparse.csr_array((v[rows], (of, np.arange(len(of)))), shape=shape) @ X)

    def distance(self, J: Array, model: Any) -> Array:
        """Return J_G / sqrt(kappa_g) (n,) for each row, from the rows' own distances J (n,)."""
        top = max(float(np.max(J, initial=0.0)), np.finfo(float).tiny)
        squares = np.bincount(self.of, np.square(J.astype(float) / top)) / factor(model, self.size)
        return (top * np.sqrt(squares))[self.of].astype(J.dtype)


def _reflected(X: Array, of: Array, v: Array, along: Array) -> Array:
    """Return x_i - 2 v_i (v^T X_G), with the group `of` each row."""
    return np.asarray(X - 2 * v[:, None] * along[of]).astype(X.dtype, copy=False)


def doubted_in_parts(solution: Solution, together: float) -> Solution:
    """Doubt a subspace that holds parts of groups: of their other rows, only this share is near."""
    if together >= HALF_TOGETHER:
        return solution
    what = f"only {together:.0%} of the other rows of their groups are near it, too"
    doubt = Doubt("parts of groups", what, "check groups, or give codimension")
    least = min(solution.confidence, k.DOUBTFUL)
    return solution._replace(confidence=least, doubts=(*solution.doubts, str(doubt)))


def factor(model: Any, g: Array) -> Array:
    """Return kappa_g of a fitted model: the squared threshold of g rows, over that of one."""
    if (spread := model._both) is not None:
        return np.asarray(spread.of_several(g).limit / spread.limit)
    if not (hasattr(model, "_distance_record") and hasattr(model, "_outlier_odds")):
        raise of_earlier_version("too little for groups")
    record, phi = model._distance_record, 0.0
    least = -float(model._outlier_odds["log_odds"][0])  # A_1
    if record is not None and least > 0:
        share = record["n_inliers"] / (record["n_inliers"] + record["n_outliers"])
        phi = min(float(special.logit(np.clip(share, SHARE_LEAST, SHARE_MOST))) / least, 1.0)
    return np.asarray(g - (g - 1) * phi)


def _numbered(ids: Any, n: int) -> Array:
    """Return the number (n,) of each row's group, from ids of any kind that can be compared."""
    ids = to_numpy(ids) if hasattr(ids, "shape") else ids
    shape = getattr(ids, "shape", None)
    if isinstance(ids, str) or not hasattr(ids, "__len__") or (shape and len(shape) > 1):
        what = f"has shape {tuple(shape)}" if shape else f"is {ids!r}"
        raise InputError(f"groups {what}; expected one id for each of the {n} rows.")
    if len(ids) != n:
        raise InputError(f"groups has {len(ids)} ids, but X has {n} rows; expected one for each.")
    if isinstance(ids, np.ndarray) and ids.dtype != object:
        missing = np.isnan(ids) if ids.dtype.kind == "f" else np.zeros(n, dtype=bool)
        _, of = np.unique(ids, return_inverse=True)
    else:
        seen: dict[Any, int] = {}
        try:
            of = np.array([seen.setdefault(one, len(seen)) for one in ids], dtype=np.int64)
            missing = np.array(
                [one is None or (type(one) is float and math.isnan(one)) for one in ids]
            )
        except TypeError as error:
            raise InputError(f"An id in groups cannot be compared with others: {error}.") from error
    if np.any(missing):
        raise InputError(
            f"groups has no id for row {int(np.argmax(missing))} (None or NaN). A row without a "
            "group needs an id of its own."
        )
    return np.asarray(of).reshape(-1)


# -- confidence ------------------------------------------------------------------------------------


class Seen(NamedTuple):
    """A subspace and how all rows see it, in the units of their distances."""

    J: Array  # (n,) distances
    lengths: Array  # of rows, about their middle if it is affine
    sizes: tuple[int, int]  # numbers of normals and of other directions in the rows' span
    noise: float
    threshold: float
    affine: bool


def weighed(
    solution: Solution, groups: Groups, seen: Seen | int, X: Array, weight: Array | None
) -> Solution:
    """Return a solution whose confidence counts groups as evidence, not their rows.

    Where there are no normals inside the span of the rows, `seen` is how many rows span that.
    """
    rows = as_rows(X, weight=weight, normalize=False)
    share = distinct_rows(rows, np.random.default_rng(0)).share / groups.sizes()
    n, evidence = float(share.sum()), dict(solution.evidence)
    if isinstance(seen, int):
        c = solution.normals.shape[1]
        chance = 2.0 ** -max(n - seen, 0.0) if c else 1 / (math.sqrt(n) * average_height(seen))
        most, near = 1 - min(chance, 1.0), n
    else:
        T, needed, parameters, near = _contrast(seen, share, rows.dtype)
        most = no_accident(T, parameters)
        evidence |= {"gain": T + needed, "gain_needed": needed}
    doubts = solution.doubts
    if most < min(k.SURE, solution.confidence):
        there = " on the subspace" if solution.normals.shape[1] else ""
        what = (
            f"there are only {near:.0f} groups{there}, and a group counts once, however many rows "
            "it has"
        )
        doubts = (*doubts, str(Doubt("groups", what, "more groups would help")))
    least = min(solution.confidence, most)
    return solution._replace(confidence=least, doubts=doubts, evidence=evidence)


def _contrast(seen: Seen, share: Array, dtype: Any) -> tuple[float, float, int, float]:
    """Return contrast, what luck reaches, parameters, and how many groups are near.

    It is the largest within an octave of the noise.
    """
    (c, d), floor = seen.sizes, float(distance_edges(1.0, dtype)[0])
    law = Reference(seen.lengths, c + d, np.array([c]), affine=seen.affine, floor=floor)
    law.share, needed = share, law.needed_among(float(share.sum()))
    counts = law.counts_at(np.square(seen.J), c)
    T = contrasts(Chance(law.free, needed, law.log_q, law.log_q_far), counts)[1][0]
    j = law.scale_at(seen.noise)
    first = max(j - effort.OCTAVE, 0)
    best = first + int(np.argmax(T[first : j + effort.OCTAVE + 1]))
    near = float(share[seen.threshold >= seen.J].sum())
    return float(T[best]), float(needed[0]), c * int(law.free[0]), near

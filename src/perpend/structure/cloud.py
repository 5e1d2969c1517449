r"""Rows in memory, and what stays the same in a search: scales, codimensions, the reference law.

With the axes A of some weighted PCA about a centre m, ascending by variance, a row is at the
distance

.. math:: J_c(x) = \|A_c^T (x - m)\|

from the subspace orthogonal to the first c of them. One product gives the heights along all axes;
cumulated, their squares are the distances for every c at once. Scales are counted in bins of eight
to an octave: four to each factor two of J^2, by the first bits of its mantissa.
"""

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from perpend._typing import Array, Auto
from perpend.structure import constants as k
from perpend.structure import effort

BITS = 21  # of a single-precision number below the sign, the exponent and two of the mantissa
LOW_DIMENSION_ROWS = 256  # in which a subspace of low dimension among many features stands out
BLOCK, LEAST_BLOCK = 2**15, 512  # numbers in a block of rows that fits the cache, and rows
SPARSE = 0.7  # of the rows: so few are brought together


class Axes(NamedTuple):
    """Axes about a centre, ascending by the variance of the rows that made them."""

    centre: Array  # (D,)
    A: Array  # (D, D) orthonormal
    variances: Array  # (D,)

    def inner(self, c: int) -> Array:
        """Return the variances (D - c,) beside c normals, without the noise that these show."""
        least = 1e-12 * float(self.variances[-1]) + np.finfo(float).tiny
        return np.maximum(self.variances[c:] - float(np.mean(self.variances[:c])), least)


class Counts(NamedTuple):
    """How many rows are within the balls of every codimension and scale, (..., C, S) each."""

    near: Array  # within r
    double: Array  # within 2 r
    far: Array  # within 8 r


def sample_size(n_features: int) -> int:
    """Return how many rows are enough to see a structure.

    >>> sample_size(3), sample_size(200)
    (8192, 4000)
    """
    least = effort.SAMPLE if n_features <= effort.FEW_COLUMNS else effort.SAMPLE_WIDE
    return max(least, effort.SAMPLE_PER_COLUMN * n_features)


def size_for_low_dimension(
    sample_size: int | Auto | None, n_rows: int, n_features: int
) -> int | None:
    """Return how many rows may show a subspace of low dimension first, where that is worth it.

    What takes long are spectra, of as many features as there are, or as there are rows.

    >>> size_for_low_dimension("auto", 1000, 1024), size_for_low_dimension("auto", 10**6, 100)
    (256, None)
    """
    worth_it = min(n_rows, n_features) >= 2 * LOW_DIMENSION_ROWS
    return LOW_DIMENSION_ROWS if sample_size == "auto" and worth_it else None


class Chance(NamedTuple):
    """What chance gives, by codimension (C,), or by codimension and scale (C, S)."""

    free: Array  # rows that any subspace runs through
    needed: Array  # nats that luck reaches
    log_q: Array  # log of the share of the rows within 2 r that are within r,
    log_q_far: Array  # and of those within 8 r


class Reference:
    """Scales, and the law of rows of some lengths in any direction, without the rows.

    Distances below `floor` times the typical length are rounding errors. Stacks of problems have
    this in common.
    """

    share: Array | None = None  # (n,) what a row counts as evidence; 1 if None

    def __init__(
        self, lengths: Array, D: int, codimensions: Array, *, affine: bool, floor: float
    ) -> None:
        self.D, self.affine, self.codimensions = D, affine, codimensions
        self.relative_floor = floor
        self.free = D - codimensions + int(affine)  # rows that any subspace runs through
        self.typical = float(np.median(lengths)) if len(lengths) else 1.0
        first, end = np.array([floor**2, 4.0], dtype=np.float32).view(np.uint32) >> BITS
        self.first_bin, self.n_scales = int(first), int(end) - int(first)
        beyond = (k.OUTER + 1) * effort.OCTAVE - 1
        self.wide = self.typical * _scales(self.first_bin, self.n_scales + beyond)
        self.scales = self.wide[: self.n_scales]
        self.floor = float(self.scales[0])
        self._set_law(lengths)

    def needed_among(self, n: float) -> Array:
        """Return the nats (C,) that luck reaches among n rows."""
        luck_per_parameter = k.LUCK_PER_PARAMETER + math.log(max(n / self.D, 1)) / 2
        return k.LUCK + self.codimensions * self.free * luck_per_parameter

    def scale_at(self, s: float) -> int:
        """Return the number of the first scale that is not below s."""
        return min(int(np.searchsorted(self.scales, s)), self.n_scales - 1)

    def _set_law(self, lengths: Array) -> None:
        """Set the share q of the rows within 2 r, and within 8 r, that are within r by chance.

        For rows of these lengths in any direction. It is 2^-c where r is small, whatever the law:
        there only smoothness is assumed; at coarse scales the law keeps the whole cloud from
        counting as a point.
        """
        p = np.r_[0, np.geomspace(1e-4, 0.1, 10), np.linspace(0.2, 1, 9)]  # short rows matter most
        norms = np.quantile(lengths, (p[1:] + p[:-1]) / 2) if len(lengths) else np.ones(19)
        self._norms = tuple((norms / self.typical).tolist()), tuple(np.diff(p).tolist())
        if norms[-1] < 1.01 * norms[0]:  # one length
            self._norms = (1.0,), (1.0,)
        S, far = self.n_scales, k.OUTER * effort.OCTAVE
        size = tuple(self.codimensions.tolist())
        law = _law_at_scales(self.D, size, self.first_bin, S + far, *self._norms)

        def within(steps: int) -> Array:
            flat = -self.codimensions[:, None] * np.log(self.wide[steps : steps + S] / self.scales)
            ratio = law[:, :S] - law[:, steps : steps + S]
            return np.minimum(np.where(law[:, steps : steps + S] < -600, flat, ratio), -1e-12)

        self.log_q, self.log_q_far = within(effort.OCTAVE), within(far)

    def law(self, c: int, r: Array) -> Array:
        """Return log F_c(r), the share of rows without preferred direction within r."""
        return _law(self.D, c, np.atleast_1d(r) / self.typical, *self._norms)

    def counts_at(self, J2: Array, c: int) -> Counts:
        """Count the rows with squared distances J2 (n,) within the balls of one codimension."""
        N = np.bincount(self.bins_of(J2, c), self.share, minlength=self.n_scales + 1)
        return self.balls(np.cumsum(N)[None].astype(float))

    def bins_of(self, J2: Array, c: int) -> Array:
        """Return the numbers of the scales of squared distances to a subspace of c normals."""
        return self._bins(np.ascontiguousarray(J2 / (radius(c) * self.typical) ** 2))

    def _bins(self, u: Array) -> Array:
        """Return the numbers of the scales, given squared distances in their units."""
        bins: Array = (u.astype(np.float32).view(np.uint32) >> BITS).astype(np.int64)
        bins -= self.first_bin
        return np.clip(bins, 0, self.n_scales, out=bins)

    def balls(self, N: Array) -> Counts:
        """Return the rows within the balls of each scale, from those up to each (k, S + 1)."""
        places = np.arange(self.n_scales)
        later = (0, effort.OCTAVE, k.OUTER * effort.OCTAVE)
        return Counts(*(N[:, np.minimum(places + steps, self.n_scales)] for steps in later))


def _law(D: int, c: int, r: Array, norms: tuple[float, ...], shares: tuple[float, ...]) -> Array:
    x = np.minimum(r[:, None] / np.array(norms), 1.0) ** 2
    share = special.betainc(c / 2, max(D - c, 1e-9) / 2, x) @ np.array(shares)
    return np.asarray(np.log(np.maximum(share, 1e-300)))


@lru_cache(maxsize=8)  # rows of one length are the usual ones, and this takes as long as a descent
def _law_at_scales(
    D: int, codimensions: tuple[int, ...], first_bin: int, n_scales: int, *norms: tuple[float, ...]
) -> Array:
    """Return log F_c (C, S) at the balls of every codimension and scale."""
    scales = _scales(first_bin, n_scales)
    law = [_law(D, c, scales * radius(c), *norms) for c in codimensions]
    return np.array(law).reshape(len(codimensions), n_scales)


def _scales(first_bin: int, n: int) -> Array:
    """Return the upper ends of the bins from the first on."""
    edges = (np.arange(first_bin + 1, first_bin + 1 + n, dtype=np.uint32) << BITS).view(np.float32)
    return np.sqrt(edges.astype(float))


class Cloud(Reference):
    """Rows X (n, D) in double precision, and how much each counts.

    `weight` (n,) is what a row weighs in means and variances, `share` (n,) what it counts as
    evidence: equal rows count once. `lengths` (n,) are those that unit rows had as they were given.
    `basis` (D', D) are the axes of the rows' span in the columns of the data, if these are others,
    and `n_outside` its normals, which users count as well.
    """

    def __init__(
        self,
        X: Array,
        *,
        affine: bool,
        weight: Array | None = None,
        share: Array | None = None,
        lengths: Array | None = None,
        floor: float,
        basis: Array | None = None,
        n_outside: int = 0,
    ) -> None:
        rows, D = X.shape
        self.basis, self.n_outside = basis, n_outside
        # Rows of few columns are too short to loop over.
        self.X = np.asfortranarray(X) if D <= effort.FEW_COLUMNS else X
        self.weight = None if weight is None or np.all(weight == 1) else weight
        self.share = None if share is None or np.all(share == 1) else share
        self.n = float(rows) if self.share is None else float(self.share.sum())
        self.middle = np.median(X, axis=0) if affine else np.zeros(D)
        self.lengths = np.ones(rows) if lengths is None else lengths
        Z = X - self.middle if affine else X
        norms = np.sqrt(np.einsum("ij,ij->i", Z, Z))
        super().__init__(norms[norms > 0], D, np.arange(1, D), affine=affine, floor=floor)
        self.needed = self.needed_among(self.n)

    def total(self, p: Array) -> float:
        """Return how many rows p (n,) stands for, equal ones counted once."""
        return float(p.sum() if self.share is None else p @ self.share)

    def about(self, centre: Array) -> Array:
        """Return the rows about a centre."""
        return self.X - centre if self.affine else self.X

    def squares(self, axes: Axes, c: int) -> Array:
        """Return J_c^2 (n,), by the smaller side where there are many columns."""
        V, U = axes.A[:, :c], axes.A[:, c:]
        if 2 * c <= self.D or self.D <= effort.FEW_COLUMNS:
            H = V.T @ self.X.T
            if self.affine:
                H -= (axes.centre @ V)[:, None]
        else:
            Q = self.about(axes.centre)
            H = (Q - (Q @ U) @ U.T).T
        np.square(H, out=H)
        return np.asarray(H[0] if c == 1 else H.sum(axis=0))

    def pca(self, w: Array) -> Axes:
        """Return the principal axes of the rows with weights w (n,), about their mean if affine."""
        X, w = self.X, w if self.weight is None else w * self.weight
        if self.D > effort.FEW_COLUMNS and np.count_nonzero(w) < SPARSE * len(w):
            X, w = X[w > 0], w[w > 0]
        total = max(float(w.sum()), np.finfo(float).tiny)
        centre = (w @ X) / total if self.affine else self.middle
        Z = (X - centre if self.affine else X).T
        if self.D > effort.FEW_COLUMNS:
            Z = Z * np.sqrt(w)
            moments = Z @ Z.T  # the same on both sides is half of the work
        else:
            moments = (Z * w) @ Z.T
        variances, A = np.linalg.eigh(moments / total)
        return Axes(centre, A, np.maximum(variances, 0.0))

    def first_axes(self) -> Axes:
        """Return the axes of all rows; far ones count less where there is a centre to be found."""
        w = np.ones(len(self.X))
        if self.affine:
            w /= 1 + np.square(self.X - self.middle).sum(axis=1) / self.typical**2
        return self.pca(w)

    def counts(self, axes: Axes) -> Counts:
        """Count the rows within the balls of every codimension and scale."""
        S, C = self.n_scales, self.D - 1
        size2 = np.square(radius(self.codimensions) * self.typical)
        N, size = np.zeros((S + 1) * C), max(BLOCK // self.D, LEAST_BLOCK)
        for start in range(0, len(self.X), size):
            rows = slice(start, start + size)
            Q = self.X[rows] - axes.centre if self.affine else self.X[rows]
            J2 = np.square(axes.A[:, :-1].T @ Q.T)
            for c in range(1, C):
                J2[c] += J2[c - 1]
            bins = self._bins(J2 / size2[:, None])
            bins += (S + 1) * np.arange(C)[:, None]
            share = None if self.share is None else np.tile(self.share[rows], C)
            N += np.bincount(bins.ravel(), share, minlength=len(N))
        return self.balls(np.cumsum(N.reshape(C, S + 1), axis=1))

    def in_columns(self, A: Array) -> Array:
        """Return vectors A (D, k) in the columns of the data."""
        return A if self.basis is None else self.basis @ A

    def columns(self) -> tuple[Array, Array]:
        """Return the rows (n, D') in the columns of the data, up to shift and scale, and rounding.

        They are of any size there: no overflow.
        """
        X = self.X * (self.lengths / np.max(self.lengths))[:, None]
        rounding = k.EXACT * self.relative_floor * np.linalg.norm(X, axis=1)
        return (X.copy() if self.basis is None else X @ self.basis.T), rounding

    def blurred(self, rng: np.random.Generator) -> "Cloud":
        """Return the cloud with every value anywhere in its cell, which ends half-way to the next.

        A value that several rows have, as in counts, grades and marks, is known up to its cell.
        """
        X, rounding = self.columns()
        for j, x in enumerate(X.T):
            of = values_of(x, rounding)
            n = np.bincount(of)
            value = np.bincount(of, x) / n
            gap = np.diff(value, prepend=-np.inf, append=np.inf)
            half = np.minimum(gap[1:], gap[:-1]) / 2
            cell = np.where(np.isfinite(half) & (n > 1), half, 0.0)
            X[:, j] += rng.uniform(-1, 1, len(x)) * cell[of]
        Y = X if self.basis is None else X @ self.basis
        if not self.affine:  # only directions matter: rows stay as long as they were
            before, now = (np.linalg.norm(A, axis=1) for A in (self.X, Y))
            Y *= (before / np.maximum(now, np.finfo(float).tiny))[:, None]
        how: dict[str, Any] = {"weight": self.weight, "share": self.share, "lengths": self.lengths}
        how |= {"affine": self.affine, "basis": self.basis, "n_outside": self.n_outside}
        return Cloud(Y, floor=self.relative_floor, **how)


def values_of(x: Array, rounding: Array) -> Array:
    """Return the number of each row's value (n,), counted from the smallest."""
    order, of = np.argsort(x, kind="stable"), np.empty(len(x), dtype=int)
    of[order] = np.cumsum(np.diff(x[order], prepend=-np.inf) > rounding[order]) - 1
    return of


def radius(c: Array) -> Array:
    """Return the radius of the ball of c normals, in units of the scale."""
    return np.sqrt(c) + k.WIDTH

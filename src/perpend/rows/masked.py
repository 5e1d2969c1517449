r"""Rows with missing entries: what their observed entries say about a subspace.

Missing entries are NaN. About a subspace with normals B (D, c) and axes U (D, d), an inlier varies
by :math:`\lambda_j` along axis j and has noise of variance :math:`s^2` along every normal, so that

.. math:: A = s^2 \Sigma^{-1} = W + U \operatorname{diag}(s^2 / \lambda) U^T, \qquad W = B B^T,

is its precision in units of the noise. Given the observed entries O of a row, the missing ones M
are Gaussian with mean and covariance

.. math:: x_M = -A_{MM}^{-1} A_{MO} x_O, \qquad s^2 A_{MM}^{-1}.

The mean minimises :math:`x^T A x`: with little noise, it is the row of least distance to the
subspace. Filling takes up :math:`\operatorname{tr}(A_{MM}^{-1} W_{MM})` of the c degrees of freedom
that the distance of a complete row has: one for each missing entry that the normals involve, and
none for the others.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from perpend._typing import Array

STACK = 2**22  # entries of small matrices that are inverted together
LEAST_NOISE = 1e-12  # of the largest variance: below it, the equations lose their digits
STEPS, TOL = 500, 1e-11  # of `likeliest`, and the turn of the normals that ends it
CAUCHY = 1.0  # degrees of freedom of `scatter`: rows count by their direction, whatever their size
SCATTER_STEPS, SCATTER_TOL = 50, 1e-3  # it only begins a search


class Gaps:
    """Which entries are missing; rows that miss the same ones share a factorisation."""

    def __init__(self, X: Array) -> None:
        self.missing: Array = np.isnan(X)
        self.n_missing: Array = self.missing.sum(axis=1)
        self._stacks: list[tuple[Array, Array, Array]] = []
        some = np.flatnonzero(self.n_missing)
        packed = np.packbits(self.missing[some], axis=1)
        _, first, which = np.unique(packed, axis=0, return_index=True, return_inverse=True)
        which, sizes = which.ravel(), self.n_missing[some[first]]
        for m in np.unique(sizes).tolist():
            patterns, step = np.flatnonzero(sizes == m), max(1, STACK // m**2)
            for chosen in (patterns[i : i + step] for i in range(0, len(patterns), step)):
                number = np.full(len(first), -1)
                number[chosen] = np.arange(len(chosen))
                has = number[which] >= 0
                columns = np.nonzero(self.missing[some[first[chosen]]])[1].reshape(-1, m)
                self._stacks.append((some[has], columns, number[which[has]]))

    def __bool__(self) -> bool:
        return bool(self._stacks)

    def __iter__(self) -> Iterator[tuple[Array, Array, Array]]:
        """Yield rows (n,), patterns of missing columns (p, m), and the pattern of each row (n,)."""
        return iter(self._stacks)


class Filled(NamedTuple):
    """Rows without gaps."""

    X: Array  # (n, D)
    lost: Array  # (n,) degrees of freedom of the distance that the filling took up
    noise: Array  # (n, D) Gaussian of covariance A_MM^-1 at the gaps, if any was drawn
    lacking: Array  # (D, D) sum of w A_MM^-1: what their second moments lack, in units of the noise


def filled(
    X: Array,
    gaps: Gaps,
    A: Array,
    centre: Array,
    *,
    W: Array | None = None,
    rng: np.random.Generator | None = None,
    weight: Array | None = None,
) -> Filled:
    """Fill the gaps of X (n, D) by what the precision A (D, D) about the centre lets expect.

    The distance is that by W (D, D), or by A itself. With `rng` noise is drawn as well, and with
    weights (n,) of the rows it is said what their moments lack.
    """
    W, D = A if W is None else W, len(A)
    Y = np.where(gaps.missing, 0.0, X - centre)
    pulled, lost, noise, lacking = Y @ A, np.zeros(len(Y)), np.zeros(0), np.zeros(D * D)
    if rng is not None:
        noise = np.zeros_like(Y)
    for rows, columns, which in gaps:
        G = np.linalg.inv(_within(A, columns))  # (p, m, m)
        at = rows[:, None], columns[which]
        Y[at] = -np.einsum("nij,nj->ni", G[which], pulled[at])
        lost[rows] = np.einsum("pij,pji->p", G, _within(W, columns))[which]
        if weight is not None:
            of_pattern = np.bincount(which, weight[rows], minlength=len(G))
            place = columns[:, :, None] * D + columns[:, None, :]
            sums = (G * of_pattern[:, None, None]).ravel()
            lacking += np.bincount(place.ravel(), sums, minlength=D * D)
        if rng is not None:
            root = np.linalg.cholesky((G + G.swapaxes(1, 2)) / 2)
            noise[at] = np.einsum("nij,nj->ni", root[which], rng.standard_normal(at[1].shape))
    Y += centre
    return Filled(np.where(gaps.missing, Y, X), lost, noise, lacking.reshape(D, D))


class Law(NamedTuple):
    """Where inliers are: Gaussian along the axes and across them."""

    centre: Array  # (D,)
    normals: Array  # (D, c) orthonormal
    axes: Array  # (D, d) orthonormal
    variances: Array  # (d,) along the axes
    noise: float  # variance along each normal

    @classmethod
    def of(cls, moments: Array, centre: Array, c: int) -> "Law":
        """Return the likeliest law of rows with these second moments (D, D) about the centre."""
        variances, axes = np.linalg.eigh(moments)
        least = LEAST_NOISE * float(variances[-1]) + np.finfo(float).tiny
        noise = float(variances[: max(c, 1)].mean())
        along = np.maximum(variances[c:], least)
        return cls(centre, axes[:, :c], axes[:, c:], along, max(noise, least))

    @property
    def precision(self) -> Array:
        """The precision A (D, D), in units of the noise."""
        A: Array = self.across + (self.axes * (self.noise / self.variances)) @ self.axes.T
        return A

    @property
    def across(self) -> Array:
        """The projector W (D, D) onto the normals."""
        W: Array = self.normals @ self.normals.T
        return W

    def fill(
        self,
        X: Array,
        gaps: Gaps,
        rng: np.random.Generator | None = None,
        weight: Array | None = None,
    ) -> Filled:
        """Fill the gaps of X (n, D) as inliers would be."""
        return filled(X, gaps, self.precision, self.centre, W=self.across, rng=rng, weight=weight)

    def squares(self, X: Array) -> Array:
        """Return (n,) the squared distances of complete rows, in units of the deviations."""
        Y = X - self.centre
        q: Array = np.einsum("ij,ij->i", Y @ self.precision, Y) / self.noise
        return q


def likeliest(
    X: Array,
    gaps: Gaps,
    weight: Array,
    law: Law,
    *,
    moves: bool,
    steps: int = STEPS,
    tol: float = TOL,
) -> Law:
    """Return the law of codimension c under which the observed entries are likeliest.

    It begins with `law`; c is that one's. Each step fills the gaps as expected, and takes the
    moments of the filled rows, with those that filling lacks (expectation maximisation). The centre
    stays unless it `moves`. Variances must settle as well: one that vanishes is another normal.
    """
    c = law.normals.shape[1]
    for _ in range(steps):
        before, law = law, Law.of(*_moments(X, gaps, weight, law, moves=moves), c)
        turn = np.linalg.norm(law.normals - before.across @ law.normals)
        if turn <= tol and np.allclose(law.variances, before.variances, np.sqrt(tol), 0):
            break
    return law


def scatter(X: Array, gaps: Gaps, weight: Array, *, moves: bool) -> Law:
    """Return location and scatter of all rows, without normals: of a Cauchy law.

    As few rows can't show all variances, it is shrunk towards equal ones (`_shrunk`).
    """
    D, seen = X.shape[1], X.shape[1] - gaps.n_missing
    with np.errstate(invalid="ignore"):
        centre = np.nanmedian(X, axis=0) if moves else np.zeros(D)
        variances = np.nanmean(np.square(X - centre), axis=0)
    mean = float(variances.mean()) + np.finfo(float).tiny
    law = Law(centre, np.zeros((D, 0)), np.eye(D), variances + LEAST_NOISE * mean, mean)
    n = float(np.count_nonzero(weight) * seen.mean() / D)  # rows that as many entries would be
    for _ in range(SCATTER_STEPS):
        q = law.squares(law.fill(X, gaps).X)
        w = weight * (CAUCHY + seen) / (CAUCHY + q)
        S, centre = _moments(X, gaps, w, law, moves=moves)
        before, law = law, Law.of(_shrunk(S, n), centre, 0)
        P, Q = (one.precision / one.noise for one in (before, law))
        if np.linalg.norm(P - Q) <= SCATTER_TOL * np.linalg.norm(P):
            break
    return law


def _shrunk(S: Array, n: float) -> Array:
    """Return moments (D, D) of n rows, shrunk towards equal variances.

    By as much as has the least expected error for Gaussian rows (Chen, Wiesel, Eldar and Hero,
    2010), but by no more than D rows without preferred direction would do: what differs hardly more
    than by chance may be a subspace among many outliers.
    """
    D, trace = len(S), float(np.trace(S))
    squares = float(np.sum(S**2))
    apart = max(squares - trace**2 / D, np.finfo(float).tiny)
    share = min(((1 - 2 / D) * squares + trace**2) / ((n + 1 - 2 / D) * apart), D / (D + n))
    return (1 - share) * S + share * trace / D * np.eye(D)


def _moments(X: Array, gaps: Gaps, weight: Array, law: Law, *, moves: bool) -> tuple[Array, Array]:
    """Return the expected second moments of the rows (D, D), and the centre they are about."""
    total, fill = weight.sum(), law.fill(X, gaps, weight=weight)
    Y = fill.X - law.centre
    S = ((Y * weight[:, None]).T @ Y + law.noise * fill.lacking) / total
    mean = weight @ Y / total if moves else np.zeros(X.shape[1])
    return S - np.outer(mean, mean), law.centre + mean


def _within(A: Array, columns: Array) -> Array:
    """Return the blocks A_MM (p, m, m) of the columns (p, m)."""
    blocks: Array = A[columns[:, :, None], columns[:, None, :]]
    return blocks

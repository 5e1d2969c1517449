r"""The finish: PCA of the probable inliers, repeated until it stands still, for many problems.

As `perpend.structure.reweighted`, this is expectation-maximisation for a subspace with Gaussian
noise among outliers without preferred direction: inliers have :math:`J^2/s^2 \sim \chi^2_c`,
outliers :math:`J^2 \sim \mathrm{Beta}(c/2, d/2)`, d = D - c. Both densities hold the factor J^c, so
the log of their ratio needs no special function of J,

.. math::
    \Lambda(J) = -\frac{J^2}{2 s^2} - \frac c2 \log(2 s^2) - \Bigl(\frac d2 - 1\Bigr)\log(1 - J^2)
    + \log\Gamma\Bigl(\frac d2\Bigr) - \log\Gamma\Bigl(\frac D2\Bigr),

and share and scale are found row by row instead of through a histogram. The smallest eigenvectors
of the moments A are not computed anew: they are corrected. With V nearly invariant,
:math:`A V = V M + R`, the step

.. math:: V \leftarrow \mathrm{orth}(V - (A + \tau V V^T)^{-1} R)

is inverse iteration written as a correction: what V has of a large axis shrinks by the ratio of a
small eigenvalue to a large one, at the cost of one Cholesky factor. A full eigendecomposition of a
200 x 200 matrix takes milliseconds on a device. The matrix to be factorised is positive definite
whether or not the inliers are exact, and :math:`V - \Delta` has full rank as R is orthogonal to V.
"""

from typing import NamedTuple

import numpy as np
from scipy import special

from perpend._typing import Array
from perpend.geometry import library
from perpend.rows import stacks
from perpend.rows.stacks import Rows, Run, counting, like, moments, pick, squared_distances, to_host
from perpend.structure.law import SHARE_LEAST, SHARE_MOST
from perpend.structure.reweighted import TOL

STEPS = 2  # between two checks: without noise the second usually finds nothing left to do
MAX_ROUNDS = 30
LONGEST = 0.5  # a correction is not longer, so that its orthonormalisation converges
N_SHARES, N_SCALES, N_POINTS = 16, 32, 128  # of the coarse grid, and distances it is tried on
LARGEST_SCALE = 0.5
NEAR_ONE = 1e-12  # 1 - J^2 is at least this: a row orthogonal to the subspace is just far away


class Sizes(NamedTuple):
    """What is known of the problems beforehand."""

    columns: Array  # (4, p, 1): c, d, rows that are not zero, log Gamma(d/2) - log Gamma(D/2)
    least: float  # s below this is rounding


class Groups(NamedTuple):
    """The fitted model, as columns (p, 1)."""

    share: Array  # of inliers
    scale: Array  # s


class Finished(NamedTuple):
    """Normals as rows, and what they say about the rows of X."""

    V: Array  # (p, k, D) orthonormal rows, zero beyond the codimension
    J2: Array  # (p, n) squared distances
    A: Array  # (p, D, D) second moments of the probable inliers, as the last step saw them
    groups: Groups
    turned: Array  # (p,) angle of the last step, relative to the scale


def sizes(X: Array, codimension: Array, n_rows: Array, least: float) -> Sizes:
    """Put the sizes of the problems together; `codimension` and `n_rows` (p,) are on the host."""
    D = X.shape[2]
    constant = special.gammaln((D - codimension) / 2) - special.gammaln(D / 2)
    columns = np.stack([codimension, D - codimension, n_rows, constant])
    return Sizes(like(X, columns[..., None]), least)


def finish(rows: Rows, V: Array, sizes: Sizes, run: Run) -> Finished:
    """Refine the normals V (p, k, D); zero rows of V stay."""
    end: Finished = run(begin, rows, V, sizes, True)
    for _ in range(MAX_ROUNDS - 1):
        (moving,) = np.nonzero(to_host(end.turned) > TOL)
        if len(moving) == 0:
            break
        new: Finished = run(_steps, rows, end, sizes, True)
        if len(moving) == len(V):
            end = new
        else:  # a problem that stands still has the same estimate, whoever its neighbours are
            stacks.put(stacks.some(new, moving), end, moving)
    return end


def begin(rows: Rows, V: Array, sizes: Sizes, correcting: bool) -> Finished:
    """Tell the two groups apart, and correct V if that is wanted."""
    J2 = squared_distances(rows.X, V)
    groups = likeliest_groups(J2, rows.present, sizes)
    return _steps(rows, Finished(V, J2, J2, groups, 0 * J2[:, 0]), sizes, correcting)


def _steps(rows: Rows, end: Finished, sizes: Sizes, correcting: bool) -> Finished:
    xp, (c, _, n, _) = library(end.J2), sizes.columns
    V, J2, A, groups, turned = end
    for _ in range(STEPS):
        u = posterior(J2, rows.present, groups, sizes)
        A = moments(rows.X, u)
        if correcting:
            V, turned = correct(A, V)
            J2 = squared_distances(rows.X, V)
        relative = turned / groups.scale[:, 0]
        # Share and scale of largest likelihood, given these probabilities.
        total = xp.sum(u, axis=1, keepdims=True)
        s2 = xp.sum(u * J2, axis=1, keepdims=True) / xp.clip(c * total, 1e-300, None)
        share = xp.clip(total / n, SHARE_LEAST, SHARE_MOST)
        groups = Groups(share, xp.clip(xp.sqrt(s2), sizes.least, None))
    return Finished(V, J2, A, groups, relative)


# -- normals ---------------------------------------------------------------------------------------


def correct(A: Array, V: Array) -> tuple[Array, Array]:
    """Turn V (p, k, D) towards the smallest eigenvectors of A (p, D, D); return by how much too."""
    AV = V @ A  # rows
    R = AV - (AV @ V.mT) @ V
    H = A + stacks.mean_eigenvalue(A) * (V.mT @ V)
    step = stacks.solve_positive(H, R.mT).mT
    step = step - (step @ V.mT) @ V
    size = stacks.norm(step.reshape(len(V), -1))  # Frobenius': at least the sine of the turn
    V = V - (LONGEST / library(A).clip(size, LONGEST, None))[:, None, None] * step
    for _ in range(3):  # Newton-Schulz: V <- (3 - V V^T) V / 2, and zero rows stay zero
        V = 1.5 * V - 0.5 * (V @ V.mT) @ V
    return V, size


# -- groups ----------------------------------------------------------------------------------------


def log_ratio(J2: Array, groups: Groups, sizes: Sizes) -> Array:
    """Return Lambda (p, n) for squared distances J2 (p, n), never rising with the distance.

    The outliers' density vanishes at J = 1 and the inliers' does not quite, so beyond
    1 - J^2 = s^2 (d - 2) the ratio would rise again. A row does not become an inlier by distance.
    """
    xp, s2, (c, d, _, constant) = library(J2), groups.scale**2, sizes.columns
    y = xp.minimum(J2, 1 - xp.clip(s2 * (d - 2), NEAR_ONE, 1.0))
    return -y / (2 * s2) - c / 2 * xp.log(2 * s2) - (d / 2 - 1) * xp.log1p(-y) + constant


def posterior(J2: Array, present: Array, groups: Groups, sizes: Sizes) -> Array:
    """Return the probability (p, n) that a row is an inlier; 0 for rows that are not `present`."""
    xp = library(J2)
    logit = log_ratio(J2, groups, sizes) + xp.log(groups.share / (1 - groups.share))
    # exp would overflow beyond 700; at 40 the probability is 1 to rounding.
    return present / (1 + xp.exp(-xp.clip(logit, -600.0, 40.0)))


def likeliest_groups(J2: Array, present: Array, sizes: Sizes) -> Groups:
    """Return the groups of largest likelihood on a coarse grid of shares and scales.

    There is no start to choose and no local maximum to be caught in. A minimiser of the l1
    objective runs through d rows, whatever they are, so the nearest d are taken for inliers and
    not measured. The others are represented by `N_POINTS` of their distances, evenly by rank.
    """
    xp, (_, d, n, _) = library(J2), sizes.columns
    y = xp.sort(xp.where(present > 0, J2, 2.0), axis=1)  # absent rows come last
    y = getattr(y, "values", y)  # torch returns the order too
    place = (counting(J2, N_POINTS) - 0.5) / N_POINTS * (n - d) + d
    points = pick(y, xp.asarray(place, dtype=xp.int64))  # (p, points)
    growth = (LARGEST_SCALE / sizes.least) ** (1 / (N_SCALES - 1))
    scales = sizes.least * growth ** (counting(J2, N_SCALES) - 1)  # (1, scales)

    known = Sizes(sizes.columns[..., None], sizes.least)
    grid = Groups(scales, scales[..., None])  # the share has no part in the ratio
    excess = xp.expm1(xp.clip(log_ratio(points[:, None, :], grid, known), None, 600.0))
    shares = (counting(J2, N_SHARES) - 0.5) / N_SHARES  # (1, shares)
    terms = xp.log1p(shares[..., None, None] * excess[:, None])  # (p, shares, scales, points)
    best = xp.argmax(xp.sum(terms, axis=3).reshape(len(J2), -1), axis=1)[:, None]
    share, scale = (best // N_SCALES + 0.5) / N_SHARES, sizes.least * growth ** (best % N_SCALES)
    return Groups((d + share * (n - d)) / n, scale)


def crossing(groups: Groups, codimension: Array, n_features: int) -> Array:
    """Return the distance (p,) at which a row is as likely an inlier as an outlier; on the host.

    As a function of y = J^2, Lambda falls and is convex up to its turning point, so Newton's steps
    from y = 0 come near the zero from one side, and never pass it.
    """
    known = sizes(np.empty((1, 1, n_features)), codimension, codimension, 0.0)
    d, s2 = known.columns[1], groups.scale**2
    turning = 1 - np.clip(s2 * (d - 2), NEAR_ONE, 1.0)
    logit, y = np.log(groups.share / (1 - groups.share)), np.zeros_like(s2)
    for _ in range(20):
        slope = (d / 2 - 1) / (1 - y) - 1 / (2 * s2)
        value = log_ratio(y, groups, known) + logit
        # Where not even a row on the subspace is a likely inlier, the first step leads below 0.
        step = np.where(slope < 0, -value / np.where(slope < 0, slope, -1.0), 1.0)
        y, before = np.clip(y + step, 0.0, turning), y
        if np.all(np.abs(y - before) <= 1e-12 * y):
            break
    return np.sqrt(y[:, 0])

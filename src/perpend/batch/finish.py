r"""The finish: PCA of the probable inliers, repeated until it stands still, for many problems.

As `perpend.structure.reweighted`, this is expectation-maximisation for a subspace with Gaussian
noise among outliers without preferred direction. The smallest eigenvectors of the moments A are
not computed anew: they are corrected. With V nearly invariant, :math:`A V = V M + R`, the step

.. math:: V \leftarrow \mathrm{orth}(V - (A + \tau V V^T)^{-1} R)

is inverse iteration written as a correction: what V has of a large axis shrinks by the ratio of a
small eigenvalue to a large one, at the cost of one Cholesky factor. A full eigendecomposition of a
200 x 200 matrix takes milliseconds on a device. The matrix to be factorised is positive definite
whether or not the inliers are exact, and :math:`V - \Delta` has full rank as R is orthogonal to V.
"""

from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.batch.arrays import Run, library, norm, put, solve_positive, some, to_host, transposed
from perpend.batch.groups import Groups, Sizes, likeliest_groups, posterior, weighted_groups

STEPS = 2  # between two looks: without noise the second usually finds nothing left to do
MAX_ROUNDS = 30
STANDS_STILL = 1e-3  # turn, relative to the inliers' scale: far below the statistical error
LONGEST = 0.5  # a correction is not longer, so that its orthonormalisation converges


class Rows(NamedTuple):
    """The rows of the problems, where they are."""

    X: Array  # (p, n, D) unit rows in float64
    present: Array  # (p, n) 1 for rows that are not zero


class Finished(NamedTuple):
    """Normals as rows, and what they say about the rows of X."""

    V: Array  # (p, k, D) orthonormal rows, zero beyond the codimension
    J2: Array  # (p, n) squared distances
    A: Array  # (p, D, D) second moments of the probable inliers, as the last step saw them
    groups: Groups
    turned: Array  # (p,) angle of the last step, relative to the scale


def finish(rows: Rows, V: Array, sizes: Sizes, run: Run) -> Finished:
    """Refine the normals V (p, k, D); zero rows of V stay."""
    end: Finished = run(begin, rows, V, sizes, True)
    for _ in range(MAX_ROUNDS - 1):
        (moving,) = np.nonzero(to_host(end.turned) > STANDS_STILL)
        if len(moving) == 0:
            break
        new: Finished = run(_steps, rows, end, sizes, True)
        if len(moving) == len(V):
            end = new
        else:  # a problem that stands still has the same answer, whoever its neighbours are
            put(some(new, moving), end, moving)
    return end


def begin(rows: Rows, V: Array, sizes: Sizes, correcting: bool) -> Finished:
    """Tell the two groups apart, and correct V if that is wanted."""
    J2 = squared_distances(rows.X, V)
    groups = likeliest_groups(J2, rows.present, sizes)
    return _steps(rows, Finished(V, J2, J2, groups, 0 * J2[:, 0]), sizes, correcting)


def _steps(rows: Rows, end: Finished, sizes: Sizes, correcting: bool) -> Finished:
    V, J2, A, groups, turned = end
    for _ in range(STEPS):
        u = posterior(J2, rows.present, groups, sizes)
        A = moments(rows.X, u)
        if correcting:
            V, turned = correct(A, V)
            J2 = squared_distances(rows.X, V)
        relative = turned / groups.scale[:, 0]
        groups = weighted_groups(J2, u, sizes)
    return Finished(V, J2, A, groups, relative)


def squared_distances(X: Array, V: Array) -> Array:
    """Return ||V x||^2 (p, n)."""
    P = X @ transposed(V)
    return library(X).sum(P * P, axis=2)


def moments(X: Array, u: Array) -> Array:
    """Return sum_i u_i x_i x_i^T (p, D, D)."""
    return transposed(X * u[..., None]) @ X


def mean_eigenvalue(A: Array) -> Array:
    """Return the mean eigenvalue (p, 1, 1), 1 where there are no inliers at all."""
    xp = library(A)
    mean = xp.sum(xp.linalg.diagonal(A), axis=1)[:, None, None] / A.shape[1]
    return xp.where(mean > 0, mean, 1.0)


def correct(A: Array, V: Array) -> tuple[Array, Array]:
    """Turn V (p, k, D) towards the smallest eigenvectors of A (p, D, D); return by how much too."""
    AV = V @ A  # rows
    R = AV - (AV @ transposed(V)) @ V
    H = lifted(A + mean_eigenvalue(A) * (transposed(V) @ V))
    step = transposed(solve_positive(H, transposed(R)))
    step = step - (step @ transposed(V)) @ V
    size = norm(step.reshape(len(V), -1))  # the Frobenius norm, at least the sine of the turn
    V = V - (LONGEST / library(A).clip(size, LONGEST, None))[:, None, None] * step
    for _ in range(3):  # Newton-Schulz: V <- (3 - V V^T) V / 2, and zero rows stay zero
        V = 1.5 * V - 0.5 * (V @ transposed(V)) @ V
    return V, size


def lifted(A: Array) -> Array:
    """Return A with a little more on the diagonal: rounding must not make its factor fail.

    It is 64 eps of the trace; the moments' own rounding is a few eps of it.
    """
    eye = library(A).eye(A.shape[1], dtype=A.dtype, device=A.device)
    return A + (64 * A.shape[1] * 2.0**-52) * mean_eigenvalue(A) * eye


def inverse_step(directions: Array, end: Finished) -> Array:
    """Return moments, A^-1 times the directions (p, m, D), and groups, as one row by problem."""
    Z = solve_positive(lifted(end.A), transposed(directions))  # (p, D, m)
    words = [end.A.reshape(len(Z), -1), Z.reshape(len(Z), -1), *end.groups]
    return library(Z).concatenate(words, axis=1)

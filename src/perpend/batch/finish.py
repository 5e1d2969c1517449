r"""The finish: PCA of the probable inliers, repeated until it stands still, for many problems.

As `perpend.solvers.reweighted`, this is expectation-maximisation for a subspace with Gaussian
noise among outliers without preferred direction. The smallest eigenvectors of the moments A are
not computed anew: they are corrected. With V nearly invariant, :math:`A V = V M + R`, the step

.. math:: V \leftarrow \mathrm{orth}(V - (A + \tau V V^T)^{-1} R)

is inverse iteration written as a correction: what V has of a large axis shrinks by the ratio of a
small eigenvalue to a large one, at the cost of one Cholesky factor. A full eigendecomposition of a
200 x 200 matrix takes milliseconds on a device. The matrix to be factorised is positive definite
whether or not the inliers are exact, and :math:`V - \Delta` has full rank as R is orthogonal to V.
"""

from typing import Any, NamedTuple

from perpend._typing import Array
from perpend.batch.arrays import Run, identity, library, norm, solve_positive, transposed
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


def look(rows: Rows, V: Array, sizes: Sizes) -> Finished:
    """Tell the two groups apart, without changing V."""
    J2 = squared_distances(rows.X, V)
    groups = likeliest_groups(J2, rows.present, sizes)
    for _ in range(STEPS):  # from the grid to the maximum
        u = posterior(J2, rows.present, groups, sizes)
        groups = weighted_groups(J2, u, sizes)
    return Finished(V, J2, moments(rows.X, u), groups, 0 * J2[:, 0])


def finish(rows: Rows, V: Array, sizes: Sizes, run: Run) -> Finished:
    """Refine the normals V (p, k, D); zero rows of V stay."""
    end: Finished = run(_begin, rows, V, sizes)
    for _ in range(MAX_ROUNDS - 1):
        still = end.turned <= STANDS_STILL
        if bool(library(V).all(still)):
            break
        new: Finished = run(_steps, rows, end.V, end.J2, end.groups, sizes)
        end = new if len(V) == 1 else _unless(still, end, new)
    return end


def _unless(still: Array, old: Any, new: Any) -> Any:
    """Return the new values but for problems that stand still: their neighbours are not theirs."""
    if isinstance(old, tuple):
        return type(old)(*(_unless(still, *pair) for pair in zip(old, new, strict=True)))
    shape = (len(still),) + (1,) * (old.ndim - 1)
    return library(old).where(still.reshape(shape), old, new)


def _begin(rows: Rows, V: Array, sizes: Sizes) -> Finished:
    J2 = squared_distances(rows.X, V)
    return _steps(rows, V, J2, likeliest_groups(J2, rows.present, sizes), sizes)


def _steps(rows: Rows, V: Array, J2: Array, groups: Groups, sizes: Sizes) -> Finished:
    for _ in range(STEPS):
        u = posterior(J2, rows.present, groups, sizes)
        A = moments(rows.X, u)
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
    xp = library(A)
    tau = mean_eigenvalue(A)
    AV = V @ A  # rows
    R = AV - (AV @ transposed(V)) @ V
    H = lifted(A + tau * (transposed(V) @ V))
    step = transposed(solve_positive(H, transposed(R)))
    step = step - (step @ transposed(V)) @ V
    size = norm(step.reshape(len(V), -1))  # the Frobenius norm, at least the sine of the turn
    V = V - (LONGEST / xp.clip(size, LONGEST, None))[:, None, None] * step
    for _ in range(3):  # Newton-Schulz: V <- (3 - V V^T) V / 2, and zero rows stay zero
        V = 1.5 * V - 0.5 * (V @ transposed(V)) @ V
    return V, size


def lifted(A: Array) -> Array:
    """Return A with a little more on the diagonal: rounding must not make its factor fail.

    It is 64 eps of the trace; the moments' own rounding is a few eps of it.
    """
    return A + (64 * A.shape[1] * 2.0**-52) * mean_eigenvalue(A) * identity(A)

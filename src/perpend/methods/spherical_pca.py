r"""Spherical PCA: the principal axes of rows of unit length, given dimension.

.. math:: \sum_i \frac{(x_i - m)(x_i - m)^T}{\|x_i - m\|^2}, \qquad
    m = \arg\min_m \sum_i \|x_i - m\|

No row has more influence than any other, however far away it is. The axes are right for elliptical
clouds, and nearly right with outliers that have no preferred direction; they are not exact
otherwise. For an affine subspace m is the spatial median, by Weiszfeld's steps (1937); a linear
subspace passes through the origin, and m is zero.

N. Locantore, J. S. Marron, D. G. Simpson, N. Tripoli, J. T. Zhang, K. L. Cohen. Robust principal
component analysis for functional data. Test 8(1), 1999.
"""

from typing import NamedTuple

import numpy as np

from perpend._capabilities import Capabilities
from perpend._typing import Array
from perpend.estimator import SubspaceEstimator
from perpend.geometry import complement, namespace, orthonormal
from perpend.kernels import Contribution
from perpend.rows import RowSource, RowSpan
from perpend.solvers import Directions, Run, Solution, Status, iterate
from perpend.solvers.loop import Callback
from perpend.solvers.reweighting import NO_LENGTH, attainable, by_power
from perpend.structure import solve_fixed

NEAR = 1e-10  # times the scale of the rows: one that is nearer to the median lies on it


def spherical_pca(
    rows: RowSource,
    *,
    codimension: int = 1,
    max_iter: int = 500,
    tol: float = 1e-10,
    lifted: bool = False,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Solution:
    """Recover the subspace of the given codimension; the parameters are those of `SphericalPCA`.

    The last coordinate of `lifted` rows stands for a constant; the median is their centre.
    """

    def find(rows: RowSource, span: RowSpan, c: int) -> Directions:
        if not lifted:
            _, S, _ = by_power(rows, NO_LENGTH, 0.0)(span.basis, np.inf)
            variances, axes = np.linalg.eigh(span.basis.T @ S @ span.basis)
            B, n_steps, converged = span.basis @ axes[:, :c], 1, True
        else:
            last = span.inside(np.eye(span.n_features)[:, -1:])  # the constant is x.last
            run = spatial_median(rows, last[:, 0], max_iter, attainable(tol, rows), callback)
            m, n_steps, converged = run.state.m, run.n_steps, run.status is Status.CONVERGED
            S = rows.scan(moments_about, last[:, 0], m, np.asarray(NEAR)).product
            # Differences are orthogonal to `last`. Their largest axes and m span the subspace.
            within = complement(orthonormal(span.basis.T @ last))
            variances, axes = np.linalg.eigh(within.T @ (span.basis.T @ S @ span.basis) @ within)
            frame = np.column_stack([span.basis.T @ m, within @ axes[:, c:]])
            B = span.basis @ complement(np.linalg.qr(frame)[0])
        ends = np.array([np.sum(variances[:c])]), np.array([n_steps]), np.array([converged])
        return Directions(B, *ends, tol, n_steps + 1)

    return solve_fixed(rows, codimension, find, rng)


# -- the spatial median, among lifted rows ---------------------------------------------------------


class Median(NamedTuple):
    """A step of Weiszfeld's."""

    m: Array  # (D,) a point with m.last = 1
    objective: float  # the sum of the distances
    change: float  # of m, relative to the mean distance


def spatial_median(
    rows: RowSource, last: Array, max_iter: int, tol: float, callback: Callback | None
) -> Run[Median]:
    """Find the point with the least sum of distances to the rows x / (x.last).

    Where rows lie on m, of weight eta, their pull is unknown but at most eta: Vardi and Zhang 2000.
    """

    def step(old: Median) -> Median:
        total = rows.scan(pulls, last, old.m, np.asarray(NEAR)).total
        (objective, on, inverse), pull = total[:3], total[3:]
        most = float(np.linalg.norm(pull))
        share = max(0.0, 1 - on / most) if most > 0 else 0.0
        move = share * pull / max(inverse, np.finfo(float).tiny)
        change = float(np.linalg.norm(move)) * rows.total_weight / max(objective, NEAR)
        return Median(old.m + move, float(objective), change)

    start = Median(last / (last @ last), 0.0, np.inf)
    return iterate(step, start, max_steps=max_iter, tol=tol, stage="median", callback=callback)


def pulls(X: Array, last: Array, m: Array, floor: Array) -> Contribution:
    """Give distance, whether the row is on m, one over the distance, and the unit vector from m."""
    xp, Y = namespace(X), X / (X @ last)[:, None] - m
    r = xp.sqrt(xp.sum(Y * Y, axis=1, keepdims=True))
    on = xp.astype(r <= floor, X.dtype)
    inverse = (1 - on) / (r + on)
    return Contribution(total=xp.concat([r, on, inverse, inverse * Y], axis=1))


def moments_about(X: Array, last: Array, m: Array, floor: Array) -> Contribution:
    """Give the second moments of the unit vectors from m to x / (x.last)."""
    xp, Y = namespace(X), X / (X @ last)[:, None] - m
    r2 = xp.sum(Y * Y, axis=1)
    return Contribution(right=Y, factor=1 / xp.maximum(r2, floor * floor))


class SphericalPCA(SubspaceEstimator):
    r"""Principal axes of rows of unit length, about the origin or the spatial median.

    The codimension or the dimension must be given. Lengths of rows have no influence on the
    subspace. With `affine`, the rows are centred by their spatial median first.

    Parameters
    ----------
    max_iter : int, default=500
        Maximum number of steps to the spatial median, with `affine`.
    tol : float, default=1e-10
        The median has converged when it moves by less than this, relative to the mean distance.

    Attributes
    ----------
    objective_ : float
        Mean of the squared distances of the unit rows.

    Examples
    --------
    >>> from perpend import SphericalPCA, subspace_error
    >>> from perpend.datasets import make_subspace
    >>> data = make_subspace(1000, 100, n_features=20, codimension=15, random_state=0)
    >>> model = SphericalPCA(n_components=5).fit(data.X)
    >>> bool(subspace_error(model.normals_, data.normals) < 0.1)
    True
    """

    max_iter: int = 500
    tol: float = 1e-10

    capabilities = Capabilities(
        solves="principal axes of the directions of the rows",
        family="spectral",
        cost="n D² + D³, once",
        regime="few outliers that are far away; a start for other methods",
        guarantee="Its axes are those of an elliptical cloud; with outliers it is not exact.",
        reference="Locantore et al. 1999",
        time="1e-9 n D² + 1e-9 D³",
        affine="centred",
        iterates=False,
    )
    _function = staticmethod(spherical_pca)

r"""Geometric median subspace (GMS): a convex problem whose solution shows the dimension.

.. math:: \min_Q \sum_i \|Q x_i\| \quad\text{subject to}\quad
    Q = Q^T,\; \operatorname{tr} Q = 1

Q is like a robust inverse covariance: nearly zero on the subspace, so that its small eigenvalues
count the dimension and their vectors span the subspace. By reweighted least squares,

.. math:: Q \leftarrow \Bigl(\sum_i \frac{x_i x_i^T}{\max(\|Q x_i\|, \delta)}\Bigr)^{-1}
    \Big/ \operatorname{tr}(\cdot)

where the step was derived here: for fixed weights with the moments S, the gradient Q S + S Q of the
sum of squares is a multiple of I where Q is one of the inverse of S. The rule for the number of
small eigenvalues, the largest ratio of two neighbours, is ours; outside the span of the rows Q
would be infinite beside all others. Without outliers enough in all directions, rows within the
subspace become the smallest ones, and Q finds another space.

T. Zhang, G. Lerman. A novel M-estimator for robust PCA. JMLR 15, 2014.
"""

from dataclasses import field
from typing import Literal

import numpy as np

from perpend._capabilities import Capabilities
from perpend._typing import Array
from perpend.estimator import SubspaceEstimator
from perpend.rows import RowSource, RowSpan
from perpend.solvers import Directions, Solution
from perpend.solvers.loop import Callback
from perpend.solvers.reweighting import attainable, by_power, decrease, reweight
from perpend.structure import largest_fall, solve_fixed, solve_free


def gms(
    rows: RowSource,
    *,
    codimension: int | Literal["auto"] = "auto",
    delta: float = 1e-10,
    max_iter: int = 200,
    tol: float = 1e-12,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Solution:
    """Recover the subspace, and its codimension; the parameters are those of `GMS`."""

    def measure(variances: Array, axes: Array) -> Array:
        inverse = 1 / variances
        return axes * (inverse / np.sum(inverse))  # ||Q x|| is the norm of these products

    def find(rows: RowSource, span: RowSpan, c: int | None = None) -> Directions:
        directions, end = reweight(
            span, span.rank, measure, by_power(rows, delta), decrease, max_iter=max_iter,
            tol=attainable(tol, rows), callback=callback,
        )  # fmt: skip
        if c is None:  # by the eigenvalues of Q, which are 1 / variances
            c = span.rank - largest_fall(end.variances[::-1], then_zero=span.is_smaller)
        return directions._replace(B=directions.B[:, :c])

    if codimension == "auto":
        return solve_free(rows, find, rng)
    return solve_fixed(rows, codimension, find, rng)


class GMS(SubspaceEstimator):
    r"""The geometric median subspace, a robust inverse covariance.

    Neither the dimension nor the share of outliers need be given.

    Parameters
    ----------
    codimension : "auto" or int, default="auto"
        Number of normals: features minus dimension of the subspace. "auto" finds it by the largest
        ratio of two eigenvalues, unless `n_components` is given.
    tol : float, default=1e-12
        It has converged when the objective falls by no more than this, relatively.

    Attributes
    ----------
    objective_ : float
        Mean of ``||Q x||`` over the rows.

    Examples
    --------
    >>> from perpend import GMS
    >>> from perpend.datasets import make_subspace
    >>> data = make_subspace(300, 300, n_features=20, codimension=15, random_state=0)
    >>> model = GMS().fit(data.X)
    >>> model.n_components_, int((model.labels_ == data.y).sum())
    (5, 600)
    """

    codimension: int | Literal["auto"] = field(default="auto", kw_only=False)
    delta: float = 1e-10
    max_iter: int = 200
    tol: float = 1e-12

    capabilities = Capabilities(
        solves="a robust inverse covariance, whose small eigenvalues are the subspace",
        needs=(),
        family="reweighted",
        cost="n D² + D³",
        regime="no dimension is known, outliers in all directions",
        guarantee="Exact under conditions on how inliers and outliers fill their spaces.",
        reference="Zhang, Lerman 2014",
    )
    _function = staticmethod(gms)

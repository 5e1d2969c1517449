r"""The subspace-constrained Tyler's estimator (STE), given dimension.

.. math:: \Sigma \leftarrow \sum_i \frac{x_i x_i^T}{x_i^T (\Sigma + \rho I)^{-1} x_i}, \qquad
    \lambda_{d+1}, \dots, \lambda_D \leftarrow \frac{\text{their mean}}{\gamma}, \qquad
    \operatorname{tr} \Sigma = 1

A step of Tyler's estimator, after which the variances across the subspace are made equal and
smaller. So it also works somewhat below the inlier share d/D, where `TME` fails. With
``gamma="auto"`` five values are tried, and the one is kept that has most rows nearer than the
median distance of all five, as in the release; there the distance is that to the last eigenvector,
here that to the subspace, which is the same for one normal. The main file of the release has an
undefined variable; this follows its file for the choice of gamma.

F. Yu, T. Zhang, G. Lerman. A subspace-constrained Tyler's estimator and its applications to
structure from motion. CVPR 2024. When it is exact: G. Lerman, F. Yu, T. Zhang. Theoretical
guarantees for the subspace-constrained Tyler's estimator. arXiv 2403.18658, 2024.
"""

from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np

from perpend._capabilities import Capabilities
from perpend._typing import Array
from perpend.estimator import Interval, StrOptions, SubspaceEstimator
from perpend.rows import RowSource, RowSpan
from perpend.solvers import Directions, Solution
from perpend.solvers.loop import Callback
from perpend.solvers.reweighting import (
    inverse_root,
    scanned_distances,
    tyler,
    weighted_quantile,
)
from perpend.structure import solve_fixed

GAMMAS = (2.0, 4.0, 6.0, 8.0, 10.0)  # that the release tries


def ste(
    rows: RowSource,
    *,
    codimension: int = 1,
    gamma: Literal["auto"] | float = "auto",
    ridge: float = 1e-10,
    max_iter: int = 1000,
    tol: float = 1e-10,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Solution:
    """Recover the subspace of the given codimension; the parameters are those of `STE`."""
    how: dict[str, Any] = {"max_iter": max_iter, "tol": tol, "callback": callback}

    def find(rows: RowSource, span: RowSpan, c: int) -> Directions:
        def with_gamma(gamma: float) -> Directions:
            root = inverse_root(ridge)

            def measure(variances: Array, axes: Array) -> Array:
                equal = variances.copy()
                equal[:c] = variances[:c].sum() / c / gamma
                return root(equal, axes)

            return tyler(rows, span, c, measure, **how)

        if gamma != "auto":
            return with_gamma(gamma)
        all_ = [with_gamma(one) for one in GAMMAS]
        return all_[_nearest(rows, [one.B for one in all_])]

    return solve_fixed(rows, codimension, find, rng)


def _nearest(rows: RowSource, normals: list[Array]) -> int:
    """Return which of the subspaces has most rows up to the (lower) median of all distances."""
    r = np.stack([scanned_distances(rows, V) for V in normals])
    weight = rows.gather(rows.weights).astype(float)
    median = weighted_quantile(r.ravel(), np.tile(weight, len(r)), 0.5)
    return int(np.argmax((r <= median) @ weight))


class STE(SubspaceEstimator):
    r"""The subspace-constrained Tyler's estimator.

    The codimension or the dimension must be given. The other parameters default to the published
    constants. Lengths of rows have no influence on the subspace.

    Parameters
    ----------
    gamma : "auto" or float, default="auto"
        By how much the variances across the subspace are divided in every step, at least 1. "auto"
        tries 2, 4, 6, 8 and 10, at five times the cost.
    tol : float, default=1e-10
        It has converged when the scatter matrix, of trace one, changes by less than this.

    Attributes
    ----------
    objective_ : float
        Geometric mean of ``x @ inv(Sigma) @ x`` over the rows, with Sigma of determinant one.

    Examples
    --------
    >>> from perpend import STE
    >>> from perpend.datasets import make_subspace
    >>> data = make_subspace(300, 300, n_features=20, codimension=15, random_state=0)
    >>> model = STE(n_components=5).fit(data.X)
    >>> int((model.labels_ == data.y).sum())
    600
    """

    gamma: Literal["auto"] | float = "auto"
    ridge: float = 1e-10
    max_iter: int = 1000
    tol: float = 1e-10

    capabilities = Capabilities(
        solves="Tyler's scatter matrix, with equal variances across",
        family="reweighted",
        cost="n D² + D³, for each gamma",
        regime="like TME, with somewhat fewer inliers",
        guarantee="Exact also below the inlier share d/D, from a start that is good enough.",
        reference="Yu, Zhang, Lerman 2024; Lerman, Yu, Zhang 2024",
        time="3e-8 n D² + 1e-7 D³",
    )
    _function = staticmethod(ste)
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "gamma": [StrOptions({"auto"}), Interval(Real, 1, None, closed="left")],
    }

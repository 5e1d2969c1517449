r"""Tyler's M-estimator (TME): the principal axes of a scatter matrix that ignores lengths.

.. math:: \Sigma \leftarrow \sum_i \frac{x_i x_i^T}{x_i^T (\Sigma + \rho I)^{-1} x_i}, \qquad
    \operatorname{tr} \Sigma = 1

The subspace is spanned by the d principal axes. Where more than the share d/D of the rows lies on a
subspace of dimension d, and the others are in general position, Sigma tends to a singular matrix
whose range is this subspace; with fewer inliers it does not. The ridge rho keeps the inverse.

D. E. Tyler. A distribution-free M-estimator of multivariate scatter. Annals of Statistics 15(1),
1987. T. Zhang. Robust subspace recovery by Tyler's M-estimator. Information and Inference 5, 2016.
"""

from typing import Any

import numpy as np

from perpend._capabilities import Capabilities
from perpend.estimator import SubspaceEstimator
from perpend.rows import RowSource, RowSpan
from perpend.solvers import Directions, Solution
from perpend.solvers.loop import Callback
from perpend.solvers.reweighting import inverse_root, tyler
from perpend.structure import solve_fixed


def tme(
    rows: RowSource,
    *,
    codimension: int = 1,
    ridge: float = 1e-10,
    max_iter: int = 1000,
    tol: float = 1e-10,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Solution:
    """Recover the subspace of the given codimension; the parameters are those of `TME`."""
    how: dict[str, Any] = {"max_iter": max_iter, "tol": tol, "callback": callback}

    def find(rows: RowSource, span: RowSpan, c: int) -> Directions:
        return tyler(rows, span, c, inverse_root(ridge), **how)

    return solve_fixed(rows, codimension, find, rng)


class TME(SubspaceEstimator):
    r"""Tyler's M-estimator of scatter, and its principal axes.

    The codimension or the dimension must be given. The other parameters default to the published
    constants. Lengths of rows have no influence on the subspace.

    Parameters
    ----------
    tol : float, default=1e-10
        It has converged when the scatter matrix, of trace one, changes by less than this.

    Attributes
    ----------
    objective_ : float
        Geometric mean of ``x @ inv(Sigma) @ x`` over the rows, with Sigma of determinant one. It
        tends to zero where the subspace is recovered exactly.

    Examples
    --------
    >>> from perpend import TME
    >>> from perpend.datasets import make_subspace
    >>> data = make_subspace(300, 300, n_features=20, codimension=15, random_state=0)
    >>> model = TME(n_components=5).fit(data.X)
    >>> int((model.labels_ == data.y).sum())
    600
    """

    ridge: float = 1e-10
    max_iter: int = 1000
    tol: float = 1e-10

    capabilities = Capabilities(
        solves="a scatter matrix that ignores lengths",
        family="reweighted",
        cost="n D² + D³",
        regime="more than the share d/D of the rows are inliers",
        guarantee="Exact where the share of inliers is above d/D and rows are in general position.",
        reference="Tyler 1987; Zhang 2016",
    )
    _function = staticmethod(tme)

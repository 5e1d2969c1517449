r"""DPCP by iteratively reweighted least squares (DPCP-IRLS), given codimension.

.. math::
    V \leftarrow \text{the } c \text{ smallest eigenvectors of }
    \sum_i \frac{x_i x_i^T}{\max(\|V^T x_i\|, \delta)}

The same problem as `RSGM`: minimise the sum of distances over orthonormal frames. The first pass,
with equal weights, is the spectral solution. It needs no step sizes, but solves an eigenproblem in
every iteration.

M. C. Tsakiris, R. Vidal. Dual principal component pursuit. JMLR 19(18), 2018.
"""

import numpy as np

from perpend._capabilities import Capabilities
from perpend._typing import Array
from perpend.estimator import SubspaceEstimator
from perpend.kernels import inverse_distance_gram
from perpend.rows import RowSource, RowSpan
from perpend.solvers import Directions, Solution
from perpend.solvers.loop import Callback
from perpend.solvers.reweighting import Weighted, first_axes, reweight
from perpend.structure import solve_fixed

EPSILON = 1e-9  # added to the last objective in the releases' stopping rule


def dpcp_irls(
    rows: RowSource,
    *,
    codimension: int = 1,
    delta: float = 1e-9,
    max_iter: int = 100,
    tol: float = 1e-6,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Solution:
    """Recover the subspace of the given codimension; the parameters are those of `DPCPIRLS`."""
    floor = np.asarray(delta, dtype=rows.dtype)

    def change(old: Weighted, new: Weighted) -> float:
        return 1 - new.objective / (old.objective + EPSILON)

    def find(rows: RowSource, span: RowSpan, c: int) -> Directions:
        def weigh(V: Array, _: float) -> tuple[float, Array, float]:
            scan = rows.scan(inverse_distance_gram, V, floor)
            return float(scan.total[0]), scan.product, delta

        return reweight(
            span, c, first_axes(c), weigh, change, max_iter=max_iter, tol=tol, callback=callback
        )[0]

    return solve_fixed(rows, codimension, find, rng)


class DPCPIRLS(SubspaceEstimator):
    r"""Dual principal component pursuit by iteratively reweighted least squares.

    The codimension or the dimension must be given. The other parameters default to the published
    constants.

    Parameters
    ----------
    tol : float, default=1e-6
        It has converged when the objective falls by less than this, relatively.

    Attributes
    ----------
    objective_ : float
        Mean of ``||V.T x||`` over the rows.

    Examples
    --------
    >>> from perpend import DPCPIRLS
    >>> from perpend.datasets import make_subspace
    >>> data = make_subspace(300, 600, n_features=20, codimension=3, random_state=0)
    >>> model = DPCPIRLS(codimension=3).fit(data.X)
    >>> int((model.labels_ == data.y).sum())
    900
    """

    delta: float = 1e-9
    max_iter: int = 100
    tol: float = 1e-6

    capabilities = Capabilities(
        solves="the same as RSGM, by reweighting",
        family="reweighted",
        cost="n D² + D³",
        regime="c is known, few features, no steps to tune",
        guarantee="None for this form; the objective never rises.",
        reference="Tsakiris, Vidal 2018",
        tolerates_most=True,
    )
    _function = staticmethod(dpcp_irls)

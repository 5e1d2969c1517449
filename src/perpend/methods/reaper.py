r"""REAPER: a convex relaxation of the sum of distances to a subspace of given dimension.

.. math:: \min_P \sum_i \|x_i - P x_i\| \quad\text{subject to}\quad
    0 \preceq P \preceq I,\; \operatorname{tr} P = d

Projections of rank d are the extreme points of this set, so a solution that is one of them is the
best subspace of all. Otherwise the d principal axes of P are taken. By reweighted least squares:
with the eigenvalues of the weighted second moments in descending order, those of P are

.. math:: \nu_i = \max(0, 1 - \theta / \lambda_i), \qquad \textstyle\sum_i \nu_i = d

With unit rows (`normalize`) it is S-REAPER, spherised REAPER, which its authors found the better
one in most of their tests. One release uses singular values of the weighted rows where their
squares belong; this does not.

G. Lerman, M. B. McCoy, J. A. Tropp, T. Zhang. Robust computation of linear models by convex
relaxation. Foundations of Computational Mathematics 15(2), 2015.
"""

import numpy as np

from perpend._capabilities import Capabilities
from perpend._typing import Array
from perpend.estimator import SubspaceEstimator
from perpend.rows import RowSource, RowSpan
from perpend.solvers import Directions, Solution
from perpend.solvers.loop import Callback
from perpend.solvers.reweighting import attainable, by_power, decrease, reweight
from perpend.structure import solve_fixed


def reaper(
    rows: RowSource,
    *,
    codimension: int = 1,
    delta: float = 1e-10,
    max_iter: int = 200,
    tol: float = 1e-15,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Solution:
    """Recover the subspace of the given codimension; the parameters are those of `REAPER`."""

    def find(rows: RowSource, span: RowSpan, c: int) -> Directions:
        def measure(variances: Array, axes: Array) -> Array:
            # ||x - P x|| = ||A.T x|| for the axes with the lengths 1 - nu.
            return axes * np.minimum(1.0, water_level(variances, c) / variances)

        weigh = by_power(rows, delta)
        return reweight(
            span, c, measure, weigh, decrease, max_iter=max_iter, tol=attainable(tol, rows),
            callback=callback,
        )[0]  # fmt: skip

    return solve_fixed(rows, codimension, find, rng)


def water_level(variances: Array, c: int) -> float:
    """Return theta with sum_i max(0, 1 - theta / variances_i) = R - c; they are ascending.

    If theta lies between the i-th and the next of the descending variances, the sum over the first
    i of them gives theta = (i - d) / sum_{j <= i} 1 / variances_j.
    """
    falling, d = variances[::-1], len(variances) - c
    if d == 0:
        return np.inf
    counts = np.arange(d + 1, len(falling) + 1)
    levels = (counts - d) / np.cumsum(1 / falling)[d:]
    following = np.append(falling[d + 1 :], 0.0)
    return float(levels[np.argmax(levels >= following)])


class REAPER(SubspaceEstimator):
    r"""The convex relaxation of the sum of distances, REAPER and S-REAPER.

    The codimension or the dimension must be given. The other parameters default to the published
    constants.

    Parameters
    ----------
    normalize : bool, default=True
        Whether rows are scaled to unit norm. True is S-REAPER, False is REAPER as it was first
        published.
    tol : float, default=1e-15
        It has converged when the objective falls by no more than this, relatively.

    Attributes
    ----------
    objective_ : float
        Mean of ``||x - P x||`` over the rows.

    Examples
    --------
    >>> from perpend import REAPER
    >>> from perpend.datasets import make_subspace
    >>> data = make_subspace(300, 300, n_features=20, codimension=15, random_state=0)
    >>> model = REAPER(n_components=5).fit(data.X)
    >>> int((model.labels_ == data.y).sum())
    600
    """

    delta: float = 1e-10
    max_iter: int = 200
    tol: float = 1e-15

    capabilities = Capabilities(
        solves="a convex relaxation of the sum of distances",
        family="reweighted",
        cost="n D² + D³",
        regime="d is known and below D/2",
        guarantee="The minimiser is exact where a stability statistic of the rows is positive.",
        reference="Lerman, McCoy, Tropp, Zhang 2015",
    )
    _function = staticmethod(reaper)

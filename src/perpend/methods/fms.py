r"""Fast median subspace (FMS): reweighted PCA for the sum of distances, given dimension.

.. math:: \min_L \sum_i \operatorname{dist}(x_i, L)^p, \qquad
    L \leftarrow \text{the } d \text{ largest axes of }
    \sum_i \frac{x_i x_i^T}{\max(\operatorname{dist}(x_i, L), \epsilon)^{2-p}}

For p = 1 this is the problem of `RSGM` and `DPCPIRLS`. With dynamic smoothing (FMS-DS) epsilon is a
small quantile of the distances and never grows, so the first steps are smooth, and the last ones
exact. That rule is by the description of the method; it was not compared with its authors' code.

The release bounds the root of the weights by 1e10, so distances by 1e-20. One row at distance zero
then weighs 1e20 times a typical one, and the digits of all others are lost. Here the distance
itself is bounded. It begins with the PCA of all rows; the release's random start is not offered.

G. Lerman, T. Maunu. Fast, robust and non-convex subspace recovery. Information and Inference 7,
2018. G. Lerman, K. Li, T. Maunu, T. Zhang. Global convergence of iteratively reweighted least
squares for robust subspace recovery. arXiv 2506.20533, 2025 (dynamic smoothing).
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
    attainable,
    by_power,
    first_axes,
    reweight,
    scanned_distances,
    turn,
    weighted_quantile,
)
from perpend.structure import solve_fixed

LOWEST = 1e-10  # of dynamic smoothing: the release's constant for rows of norm one


def fms(
    rows: RowSource,
    *,
    codimension: int = 1,
    p: float = 1.0,
    smoothing: Literal["dynamic"] | float = "dynamic",
    quantile: float = 0.1,
    max_iter: int = 100,
    tol: float = 1e-9,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Solution:
    """Recover the subspace of the given codimension; the parameters are those of `FMS`."""

    def find(rows: RowSource, span: RowSpan, c: int) -> Directions:
        def weigh(V: Array, before: float) -> tuple[float, Array, float]:
            if smoothing != "dynamic":
                return by_power(rows, smoothing, p)(V, before)
            r = scanned_distances(rows, V)
            epsilon = max(weighted_quantile(r, rows.gather(rows.weights), quantile), LOWEST)
            epsilon = min(before, epsilon)
            return by_power(rows, epsilon, p)(V, before)

        return reweight(
            span, c, first_axes(c), weigh, turn, max_iter=max_iter, tol=attainable(tol, rows),
            callback=callback,
        )[0]  # fmt: skip

    return solve_fixed(rows, codimension, find, rng)


class FMS(SubspaceEstimator):
    r"""The fast median subspace, with dynamic smoothing.

    The codimension or the dimension must be given.

    Parameters
    ----------
    p : float, default=1.0
        The power of the distances in the objective, above 0 and below 2.
    smoothing : "dynamic" or float, default="dynamic"
        The smallest distance from which a weight is computed, for rows of norm one. "dynamic"
        lowers it with the `quantile` of the distances (FMS-DS, 2025). A number is fixed; the
        published constant of FMS is 1e-10.
    quantile : float, default=0.1
        Which quantile of the distances is the dynamic smoothing. It must be below the share of the
        inliers.
    tol : float, default=1e-9
        It has converged when the subspace turns by less than this angle.

    Attributes
    ----------
    objective_ : float
        Mean of the distances to the power p.

    Examples
    --------
    >>> from perpend import FMS
    >>> from perpend.datasets import make_subspace
    >>> data = make_subspace(300, 300, n_features=20, codimension=15, random_state=0)
    >>> model = FMS(n_components=5).fit(data.X)
    >>> int((model.labels_ == data.y).sum())
    600
    """

    p: float = 1.0
    smoothing: Literal["dynamic"] | float = "dynamic"
    quantile: float = 0.1
    max_iter: int = 100
    tol: float = 1e-9

    capabilities = Capabilities(
        solves="the sum of distances, by reweighted PCA",
        family="reweighted",
        cost="n D² + D³",
        regime="d is known; a quick second opinion",
        guarantee="With dynamic smoothing it converges linearly from any start under deterministic "
        "conditions on the rows.",
        reference="Lerman, Maunu 2018; Lerman, Li, Maunu, Zhang 2025",
        memory="D² + n",
        tolerates_most=True,
    )
    _function = staticmethod(fms)
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "p": [Interval(Real, 0, 2, closed="neither")],
        "smoothing": [StrOptions({"dynamic"}), Interval(Real, 0, None, closed="neither")],
        "quantile": [Interval(Real, 0, 1, closed="neither")],
    }

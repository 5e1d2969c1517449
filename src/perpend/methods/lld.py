r"""Low-leverage decomposition (LLD).

.. math:: \min_{L, C} \|L\|_* + \lambda \sum_j \|c_j\| \quad\text{subject to}\quad L + C = X

The same program as `OutlierPursuit`, found independently and by another argument: the rows of L
are those of X with their leverage, the influence of a single row on the subspace, bounded. With the
same weight both give the same subspace, bit for bit, and by default they have the same: that of the
authors' later comparisons, which needs no knowledge of the outliers. `OutlierPursuit` has another
one if it is given their share.

M. McCoy, J. A. Tropp. Two proposals for robust PCA using semidefinite programming. Electronic
Journal of Statistics 5, 2011.
"""

from dataclasses import field
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np

from perpend._capabilities import Capabilities
from perpend.estimator import Interval, StrOptions, SubspaceEstimator
from perpend.rows import RowSource
from perpend.solvers import Solution
from perpend.solvers.loop import Callback
from perpend.structure import low_rank_and_rows, row_weight


def lld(
    rows: RowSource,
    *,
    codimension: int | Literal["auto"] = "auto",
    lam: float | Literal["auto"] = "auto",
    max_iter: int = 1000,
    tol: float = 1e-7,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Solution:
    """Recover the subspace and its dimension; the parameters are those of `LLD`."""
    how: dict[str, Any] = {"max_iter": max_iter, "tol": tol, "rng": rng, "callback": callback}
    return low_rank_and_rows(rows, codimension, row_weight(rows, lam), **how)


class LLD(SubspaceEstimator):
    r"""Low-leverage decomposition: the convex program of `OutlierPursuit`.

    For dimensions that are small beside the number of features. By default both are the same, bit
    for bit; `OutlierPursuit` takes another weight if it is given the share of outliers.

    Parameters
    ----------
    codimension : "auto" or int, default="auto"
        Number of normals: features minus dimension of the subspace. "auto" finds it, unless
        `n_components` is given.
    lam : "auto" or float, default="auto"
        The weight of the rows; "auto" is ``0.8 sqrt(n_features / n_samples)``. Inliers alone are
        then kept if the dimension is below 0.64 times their share of the rows times `n_features`.
    tol : float, default=1e-7
        As in `OutlierPursuit`.

    Attributes
    ----------
    objective_ : float
        ``||L||_* + lam sum_j ||c_j||``, divided by the number of rows.

    Examples
    --------
    >>> from perpend import LLD
    >>> from perpend.datasets import make_subspace
    >>> data = make_subspace(200, 50, n_features=20, codimension=18, random_state=0)
    >>> LLD().fit(data.X).n_components_
    2
    """

    codimension: Any = field(default="auto", kw_only=False)
    lam: float | Literal["auto"] = "auto"
    max_iter: int = 1000
    tol: float = 1e-7

    capabilities = Capabilities(
        solves="the same as OutlierPursuit, without the share of outliers",
        needs=(),
        family="convex",
        cost="n D² + D³",
        regime="d is small beside D",
        guarantee="That of OutlierPursuit.",
        reference="McCoy, Tropp 2011",
        time="6e-8 n D² + 2e-7 D³",
        memory="n D + D²",
        backends=("numpy",),
    )
    _function = staticmethod(lld)
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "lam": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
    }

r"""Outlier Pursuit: a matrix of low rank, and whole rows that do not belong to it.

.. math:: \min_{L, C} \|L\|_* + \lambda \sum_j \|c_j\| \quad\text{subject to}\quad L + C = X

The subspace is the row space of L, and its dimension the rank. Rows with c_j = 0 are inliers. It is
convex, so there are no starts; but the nuclear norm prefers low ranks, and for a dimension that is
not small beside that of the space, or for many outliers, no lambda is right.

H. Xu, C. Caramanis, S. Sanghavi. Robust PCA via outlier pursuit. IEEE Transactions on Information
Theory 58(5), 2012.
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


def outlier_pursuit(
    rows: RowSource,
    *,
    codimension: int | Literal["auto"] = "auto",
    lam: float | Literal["auto"] = "auto",
    contamination: float | None = None,
    max_iter: int = 1000,
    tol: float = 1e-7,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Solution:
    """Recover the subspace and its dimension; the parameters are those of `OutlierPursuit`."""
    weight = row_weight(rows, lam, contamination)
    how: dict[str, Any] = {"max_iter": max_iter, "tol": tol, "rng": rng, "callback": callback}
    return low_rank_and_rows(rows, codimension, weight, **how)


class OutlierPursuit(SubspaceEstimator):
    r"""Outlier Pursuit: low rank plus whole rows, a convex program that finds the dimension.

    For dimensions that are small beside the number of features. If `lam` is too small,
    all rows are outliers and nothing but the first axis is left; if it is too large, the outliers
    join the subspace.

    Parameters
    ----------
    codimension : "auto" or int, default="auto"
        Number of normals: features minus dimension of the subspace. "auto" finds it, unless
        `n_components` is given.
    lam : "auto" or float, default="auto"
        The weight of the rows. "auto" is the paper's ``3 / (7 sqrt(m))`` if `contamination` says
        how many outliers m there are, and ``0.8 sqrt(n_features / n_samples)`` otherwise, which
        others used in comparisons; without `contamination` the result is that of `LLD`, bit for
        bit.
    contamination : float in [0, 1) or None, default=None
        The share of outliers, if you know it. It sets `lam` and the threshold.
    tol : float, default=1e-7
        It has converged when neither the parts nor their sum change by more than this, relative to
        the norm of X.

    Attributes
    ----------
    objective_ : float
        ``||L||_* + lam sum_j ||c_j||``, divided by the number of rows.

    Examples
    --------
    >>> from perpend import OutlierPursuit
    >>> from perpend.datasets import make_subspace
    >>> data = make_subspace(200, 50, n_features=20, codimension=18, random_state=0)
    >>> model = OutlierPursuit().fit(data.X)
    >>> model.n_components_, int((model.labels_ == data.y).sum())
    (2, 250)
    """

    codimension: Any = field(default="auto", kw_only=False)
    lam: float | Literal["auto"] = "auto"
    max_iter: int = 1000
    tol: float = 1e-7

    capabilities = Capabilities(
        solves="low rank plus whole rows, convex",
        needs=(),
        family="convex",
        cost="n D² + D³",
        regime="d is small beside D, few outliers",
        guarantee="Exact for incoherent inliers if the share of outliers is below about "
        "9 / (121 d).",
        reference="Xu, Caramanis, Sanghavi 2012",
        time="6e-8 n D² + 2e-7 D³",
        memory="n D + D²",
        backends=("numpy",),
    )
    _function = staticmethod(outlier_pursuit)
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "lam": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
    }

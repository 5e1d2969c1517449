r"""Principal component pursuit (robust PCA): low rank plus sparse entries.

.. math:: \min_{L, S} \|L\|_* + \lambda \sum_{ij} |S_{ij}| \quad\text{subject to}\quad L + S = X

For single entries that are wrong anywhere in the table, in unknown places, while every row is on a
subspace of low dimension otherwise. Whole rows that are outliers are another model: there
`OutlierPursuit` or `DPCP` is right. The parts are those of the rows of the fit: a new row has none.

E. J. Candes, X. Li, Y. Ma, J. Wright. Robust principal component analysis? Journal of the ACM
58(3), 2011.
"""

import math
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np

from perpend._labels_only import LabelsOnly, learn_parts
from perpend._typing import Array
from perpend.estimator import Interval, StrOptions
from perpend.exceptions import InputError
from perpend.solvers import Run
from perpend.solvers.alm import Split, entries, split
from perpend.solvers.loop import Callback


def pcp(
    X: Array,
    *,
    lam: float | Literal["auto"] = "auto",
    max_iter: int = 1000,
    tol: float = 1e-7,
    callback: Callback | None = None,
) -> Run[Split]:
    """Split a table into low rank and sparse entries; the parameters are those of `PCP`.

    Parameters
    ----------
    X : array of shape (n, D)
    lam, max_iter, tol, callback
        As in `PCP`.

    Returns
    -------
    Run
        Its `state` has the parts ``L`` and ``S``, and the multiplier ``Y``.
    """
    X = np.asarray(X, dtype=float)
    if not np.any(X):
        raise InputError("Every entry of X is zero, so there is nothing to split.")
    weight = 1 / math.sqrt(max(X.shape)) if isinstance(lam, str) else float(lam)
    return split(X, entries(weight), max_iter=max_iter, tol=tol, callback=callback)


class PCP(LabelsOnly):
    r"""Principal component pursuit: a table as low rank plus sparse entries.

    For single wrong entries, not for whole rows that are outliers. It splits, scores and labels
    only the rows of the fit.

    Parameters
    ----------
    lam : "auto" or float, default="auto"
        The weight of the entries; "auto" is the paper's ``1 / sqrt(max(n_samples, n_features))``.
    contamination : float in [0, 1) or None, default=None
        The share of rows to label as outliers. None: those whose sparse part is larger than what
        is left of them, the low-rank part.
    max_iter : int, default=1000
        Maximum number of iterations.
    tol : float, default=1e-7
        It has converged when neither the parts nor their sum change by more than this, relative to
        the norm of X.

    Attributes
    ----------
    low_rank_ : array of shape (n_samples, n_features)
        L, the table without its wrong entries.
    sparse_ : array of shape (n_samples, n_features)
        S, zero where nothing is wrong.
    n_components_ : int
        The rank of L.
    scores_ : array of shape (n_samples,)
        Minus the share of each row that is in S, ``-||s|| / (||s|| + ||l||)``. Larger is more
        normal.
    offset_ : float
        Rows with a smaller score are outliers.
    objective_ : float
        ``||L||_* + lam sum |S|``.
    n_iter_ : int
    converged_ : bool

    Examples
    --------
    >>> import numpy as np
    >>> from perpend import PCP
    >>> rng = np.random.default_rng(0)
    >>> L = rng.standard_normal((100, 2)) @ rng.standard_normal((2, 30))
    >>> wrong = rng.random(L.shape) < 0.05
    >>> model = PCP().fit(np.where(wrong, 10.0, L))
    >>> model.n_components_, bool(np.allclose(model.low_rank_, L, atol=1e-4))
    (2, True)
    """

    lam: float | Literal["auto"] = "auto"
    max_iter: int = 1000
    tol: float = 1e-7

    capabilities = LabelsOnly.capabilities._replace(
        solves="low rank plus sparse entries, convex",
        family="convex",
        cost="n D² + D³",
        regime="single wrong entries, d is small beside D",
        guarantee="Exact for incoherent low rank and entries wrong at random places.",
        reference="Candes, Li, Ma, Wright 2011",
        time="1e-7 n D² + 2e-7 D³",
        memory="n D + D²",
    )
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "lam": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
    }

    def _scores(self, X: Array) -> tuple[Array, float]:
        how: dict[str, Any] = {"lam": self.lam, "max_iter": self.max_iter, "tol": self.tol}
        return learn_parts(self, pcp(X, callback=self.callback, **how))

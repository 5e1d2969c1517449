r"""R-graph: outliers of a union of subspaces, by self-representation and a random walk.

Each row is written as a combination of the others, by an elastic net (Zou and Hastie 2005),

.. math:: \min_r \; \frac\gamma2 \Bigl\|x_j - \sum_{i \ne j} r_i x_i\Bigr\|^2
    + \lambda \|r\|_1 + \frac{1 - \lambda}2 \|r\|^2,
    \qquad \gamma = \frac{\alpha \lambda}{\max_{i \ne j} |x_i \cdot x_j|}

Inliers use inliers of their own subspace. A walk from row to row, with the probabilities |r|, ends
among inliers wherever it begins; the mean share of its time that it spends at a row is the score.

C. You, D. P. Robinson, R. Vidal. Provable self-representation based outlier detection in a union of
subspaces. CVPR 2017.
"""

import warnings
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from perpend._labels_only import LabelsOnly
from perpend._typing import Array
from perpend.estimator import Count, Interval
from perpend.exceptions import InputError
from perpend.rows.views import typical
from perpend.solvers import iterate
from perpend.solvers.elastic_net import elastic_net
from perpend.solvers.loop import Callback

AT_FIRST = 4  # times the number of features: columns that may represent a row, at first
TOL = 1e-3  # of the duality gap of coordinate descent; from there to the solution it is slow,
MOST_PASSES = 100  # and exact steps are few
TIME_ROUNDING = 1e-9  # equal rows have equal times but for this
BEYOND = 2.576 * 1.4826  # median deviations; 1 in 200 of a normal law is farther below


class _Left(NamedTuple):
    objective: float  # how many rows are not represented yet
    change: float  # the same


class _Walk(NamedTuple):
    p: Array  # (n,) where the walk is
    time: Array  # (n,) the sum so far
    objective: float  # what is left: walks end at rows that no others represent
    change: float = 1.0  # it walks on


def rgraph(
    X: Array,
    *,
    lam: float = 0.95,
    alpha: float = 10.0,
    n_steps: int = 1000,
    callback: Callback | None = None,
) -> Array:
    """Return how much of its time the walk spends at each row; the parameters are `RGraph`'s.

    Parameters
    ----------
    X : array of shape (n, D)
    lam, alpha, n_steps, callback
        As in `RGraph`.

    Returns
    -------
    array of shape (n,)
        Relative to 1 / n; small for outliers.
    """
    X = np.asarray(X, dtype=float)
    P, n = transitions(X, lam, alpha, callback), len(X)

    def step(old: _Walk) -> _Walk:
        p = P.T @ old.p
        return _Walk(p, old.time + p, float(p.sum()))

    start = _Walk(np.full(n, 1 / n), np.zeros(n), 1.0)
    run = iterate(step, start, max_steps=n_steps, stage="random walk", callback=callback)
    time: Array = run.state.time * n / run.n_steps
    return time


def transitions(X: Array, lam: float, alpha: float, callback: Callback | None = None) -> Any:
    """Return the sparse matrix (n, n) of the probabilities to go from one row to another."""
    norms = np.linalg.norm(X, axis=1)
    if not np.any(norms):
        raise InputError("Every row of X is zero, so there is nothing to represent.")
    columns = np.asfortranarray((X / np.where(norms > 0, norms, 1)[:, None]).T)  # (D, n)
    n, kinds = len(X), np.unique(columns, axis=1, return_inverse=True)[1].ravel()
    many, parts = np.bincount(kinds), list[Any]()

    def step(old: _Left) -> _Left:
        j = len(parts)
        x = columns[:, j].copy()
        columns[:, j] = 0  # a row does not represent itself
        r = np.abs(represented(x, columns, lam, alpha))
        columns[:, j] = x
        if len(many) < n:  # equal rows share alike, which coordinate descent is slow to find
            others = np.maximum(many - (np.arange(len(many)) == kinds[j]), 1)
            r = (np.bincount(kinds, r) / others)[kinds]
            r[j] = 0
        parts.append(sparse.csr_array(r / r.sum() if r.any() else r))
        return _Left(old.objective - 1, old.change - 1)

    stage = "representations"
    iterate(step, _Left(n, n), max_steps=n, stage=stage, callback=callback)
    missing = sparse.csr_array((n - len(parts), n))  # where the callback has ended it
    return sparse.vstack([*parts, missing], format="csr")


def represented(x: Array, A: Array, lam: float, alpha: float) -> Array:
    """Return the coefficients (n,) of x (D,) in the columns of A (D, n), by an active set.

    A column that is not among the chosen ones has coefficient 0 if its product with the residual
    is at most lam / gamma; those with more are added, until there are none. Coordinate descent does
    so roughly, and the last changes are exact.
    """
    from sklearn.linear_model import enet_path  # a tenth of a second, for those who need it

    (D, n), products = A.shape, np.abs(x @ A)
    limit, r = float(np.max(products, initial=0.0)) / alpha, np.zeros(A.shape[1])  # lam / gamma
    if limit == 0:
        return r
    chosen = np.argsort(-products, kind="stable")[: AT_FIRST * D]
    # scikit-learn divides the squares by D, and our objective is gamma D times theirs.
    how = {"l1_ratio": lam, "alphas": [limit / (lam * D)], "max_iter": MOST_PASSES, "tol": TOL}
    for _ in range(n):
        part = np.asfortranarray(A[:, chosen])
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            some = enet_path(part, x, check_input=False, **how)[1][:, 0]
        above = np.abs((x - part @ some) @ A) > limit * (1 + 10 * TOL)  # as far as it is solved
        above[chosen] = False
        if not above.any():
            break
        chosen = np.append(chosen[some != 0], np.flatnonzero(above))
    r[chosen] = some
    return elastic_net(x, A, r, limit, (1 - lam) / lam)


def usual(time: Array) -> float:
    """Return the least time that is usual where the walk is, as inliers have nearly all of it.

    That is the median of the logarithms less 2.6 standard deviations, each row with the weight of
    its time.
    """
    log = np.log(np.maximum(time, np.finfo(float).tiny))
    middle = typical(log, time)
    return float(np.exp(middle - BEYOND * typical(np.abs(log - middle), time) - TIME_ROUNDING))


class RGraph(LabelsOnly):
    r"""R-graph: outliers are the rows that a walk over self-representations rarely visits.

    For a union of several subspaces of low dimension. It needs no dimension, finds no subspace, and
    scores and labels only the rows of the fit. It solves an elastic net for each row, so it is for
    some thousand rows. Equal rows represent one another, so remove copies of outliers first.

    Parameters
    ----------
    lam : float, default=0.95
        The share of the l1 norm in the penalty.
    alpha : float, default=10.0
        How much the representation counts; at 1 or below, every row is represented by nothing.
    n_steps : int, default=1000
        The length of the walk.
    contamination : float in [0, 1) or None, default=None
        The share of rows to label as outliers. None: rows that the walk visits less than is usual,
        by 2.6 standard deviations of the logarithm.

    Attributes
    ----------
    scores_ : array of shape (n_samples,)
        The mean share of time at each row, relative to ``1 / n_samples``. Larger is more normal.
    offset_ : float
        Rows with a smaller score are outliers.

    Examples
    --------
    >>> import numpy as np
    >>> from perpend import RGraph
    >>> from perpend.datasets import make_subspace
    >>> a = make_subspace(60, 15, n_features=30, codimension=27, random_state=0)
    >>> b = make_subspace(60, 15, n_features=30, codimension=27, random_state=1)
    >>> labels = RGraph(contamination=0.2).fit_predict(np.vstack([a.X, b.X]))
    >>> int((labels == np.append(a.y, b.y)).sum())
    150
    """

    lam: float = 0.95
    alpha: float = 10.0
    n_steps: int = 1000

    capabilities = LabelsOnly.capabilities._replace(
        solves="rows that no others represent",
        family="graph",
        cost="n elastic nets with n variables, once",
        regime="several subspaces of low dimension, some thousand rows",
        guarantee="Outliers and inliers are told apart if inliers represent one another alone.",
        reference="You, Robinson, Vidal 2017",
        time="1.5e-8 n² D + 3e-4 n",
        memory="n D",
    )
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "lam": [Interval(Real, 0, 1, closed="right")],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "n_steps": [Count(1)],
    }

    def _scores(self, X: Array) -> tuple[Array, float]:
        how: dict[str, Any] = {"lam": self.lam, "alpha": self.alpha, "n_steps": self.n_steps}
        time = rgraph(X, callback=self.callback, **how)
        return time, usual(time)

r"""Coherence Pursuit (CoP), given dimension.

Inliers are coherent with many rows, outliers without preferred direction with none. With unit rows
each row has the score

.. math:: s_i = \sum_{j \ne i} |x_i \cdot x_j|^p, \qquad p = 1 \text{ or } 2

and the subspace is that of the principal axes of the rows with the largest ones. For p = 2 the sum
is the quadratic form :math:`x_i^T X^T X x_i - 1`, so no pair of rows is ever formed.

M. Rahmani, G. Atia. Coherence pursuit: fast, simple, and robust subspace recovery. ICML 2017.
"""

from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils import gen_batches

from perpend._capabilities import Capabilities
from perpend._typing import Array
from perpend.estimator import Count, StrOptions, SubspaceEstimator
from perpend.rows import RowSource, RowSpan
from perpend.solvers import Directions, Solution, dense
from perpend.solvers.loop import Callback
from perpend.structure import solve_fixed

PER_DIMENSION, SHARE = 4, 10  # by default, rows for each dimension, or a tenth of all rows: with
# noise more are better, and a method that compares rows needs some share of inliers anyway
PAIRS = 2**22  # products of rows that are formed at a time, for p = 1


def coherence_pursuit(
    rows: RowSource,
    *,
    codimension: int = 1,
    n_rows: int | Literal["auto"] = "auto",
    power: int = 2,
    rng: np.random.Generator,
    callback: Callback | None = None,  # noqa: ARG001  there is no loop
) -> Solution:
    """Recover the subspace of the given codimension; the parameters are `CoherencePursuit`'s."""

    def find(rows: RowSource, span: RowSpan, c: int) -> Directions:
        X, weight = dense(rows)
        X = X @ span.basis
        unit = X / np.linalg.norm(X, axis=1, keepdims=True)
        scores, d = coherence(unit, weight, power), span.rank - c
        order = np.argsort(-scores, kind="stable")
        m = max(PER_DIMENSION * d, len(X) // SHARE) if isinstance(n_rows, str) else n_rows
        while True:  # equal rows among them may span too little
            best = order[:m]
            half = np.sqrt(weight[best])[:, None] * X[best]
            variances, axes = np.linalg.eigh(half.T @ half)
            if m >= len(X) or d == 0 or variances[-d] > span.rounding:
                break
            m = 2 * max(m, 1)
        missing = float(weight @ (1 - scores / scores.max()))
        one = np.ones(1, int)
        return Directions(span.basis @ axes[:, :c], np.array([missing]), one, one > 0, 0.0, 1)

    return solve_fixed(rows, codimension, find, rng)


def coherence(X: Array, weight: Array, power: int) -> Array:
    """Return the scores (n,) of unit rows, without the constant that a row has with itself."""
    if power == 2:
        return np.asarray(np.sum((X @ (X.T @ (weight[:, None] * X))) * X, axis=1)) - 1
    blocks = gen_batches(len(X), max(PAIRS // len(X), 1))
    return np.concatenate([np.abs(X[some] @ X.T) @ weight for some in blocks]) - 1


class CoherencePursuit(SubspaceEstimator):
    r"""Coherence Pursuit: the subspace of the rows that are coherent with most others.

    The codimension or the dimension must be given. One pass, without iterations. It is for outliers
    without structure and for dimensions much smaller than the number of features: otherwise the
    scores of inliers and outliers are nearly the same. Rows are compared as unit rows even without
    `normalize`.

    Parameters
    ----------
    n_rows : "auto" or int, default="auto"
        The number of rows with the largest scores that make the subspace; with noise more are
        better, as long as all are inliers. "auto" is a tenth of the rows, and at least 4 times the
        dimension. If they span less than that, more are taken.
    power : {2, 1}, default=2
        The power p of the coherences that are added up.

    Attributes
    ----------
    objective_ : float
        Mean of one minus the score, relative to the largest.

    Examples
    --------
    >>> from perpend import CoherencePursuit
    >>> from perpend.datasets import make_subspace
    >>> data = make_subspace(200, 600, n_features=40, codimension=36, random_state=0)
    >>> model = CoherencePursuit(n_components=4).fit(data.X)
    >>> int((model.labels_ == data.y).sum())
    800
    """

    n_rows: int | Literal["auto"] = "auto"
    power: int = 2

    capabilities = Capabilities(
        solves="rows that are coherent with most others",
        family="graph",
        cost="n D², once; n² D with power 1",
        regime="d is known and small, outliers without structure",
        guarantee="Exact for random inliers and outliers if n_in / d is well above n_out / D.",
        reference="Rahmani, Atia 2017",
        time="1e-9 n D²",
        memory="n D + D²",
        backends=("numpy",),
        iterates=False,
    )
    _function = staticmethod(coherence_pursuit)
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_rows": [StrOptions({"auto"}), Count(1)],
        "power": [Count(1, 2)],
    }

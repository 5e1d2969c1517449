r"""DPCP one normal at a time (recursive DPCP), codimension told.

.. math:: b_j = \arg\min_b \sum_i |x_i \cdot b| \quad\text{subject to}\quad
    \|b\| = 1,\; b \perp b_1, \dots, b_{j-1}

Each normal is a descent of its own in the complement of those found before, from the axis along
which the rows vary least there. There is no guarantee beyond the first normal, and an error in one
is passed on to the next. Told more normals than there are, it goes on with vectors of the subspace.

The gradient is projected, g - B (B.T g), so the descent stays where it should. One release
subtracts B (B.T b) instead, which is zero, so its vectors can drift onto a normal found before.

Z. Zhu, Y. Wang, D. Robinson, D. Naiman, R. Vidal, M. Tsakiris. Dual principal component pursuit:
improved analysis and efficient algorithms. NeurIPS 2018.
"""

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from perpend._typing import Array, RandomState
from perpend.estimator import HasMethods, Interval, StrOptions, SubspaceEstimator
from perpend.geometry import complement
from perpend.rows import RowSource, RowSpan
from perpend.solvers import Directions, Solution, StepRule, psgm, step_rule
from perpend.solvers.loop import Callback
from perpend.solvers.steps import STEP_METHODS, STEP_RULES
from perpend.structure import solve_told


def recursive_dpcp(
    rows: RowSource,
    *,
    codimension: int = 1,
    step: str | StepRule = "mbls",
    max_iter: int = 200,
    tol: float = 1e-8,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Solution:
    """Recover the subspace of that codimension; the parameters are those of `RecursiveDPCP`.

    Parameters
    ----------
    rows : RowSource
        From `as_rows`.
    codimension, step, max_iter, tol, callback
        As in `RecursiveDPCP`.
    rng : numpy.random.Generator
        Tells equal rows apart.

    Returns
    -------
    Solution
    """
    rule = step_rule(step)

    def find(rows: RowSource, span: RowSpan, c: int) -> Directions:
        found = _next(rows, span, np.zeros((rows.shape[1], 0)))
        for _ in range(1, c):
            found = found.join(_next(rows, span, found.B))
        return found

    def _next(rows: RowSource, span: RowSpan, B: Array) -> Directions:
        """Find one more normal, orthogonal to the columns of B."""
        start = _least_axis(span, B)
        one = psgm(
            rows, start, rule=rule, max_iter=max_iter, tol=tol, orthogonal_to=B, callback=callback
        )
        b = one.B - B @ (B.T @ one.B)  # rounding errors of many steps
        return one._replace(B=b / np.linalg.norm(b, axis=0))

    return solve_told(rows, codimension, find, rng)


def _least_axis(span: RowSpan, B: Array) -> Array:
    """Return the axis (D, 1) of the span, orthogonal to B, along which the rows vary least."""
    A = span.basis @ complement(span.basis.T @ B)  # (D, R - j)
    half = np.sqrt(span.variances)[:, None] * (span.axes.T @ A)  # moments = half.T @ half
    _, axes = np.linalg.eigh(half.T @ half)
    return A @ axes[:, :1]


class RecursiveDPCP(SubspaceEstimator):
    r"""Dual principal component pursuit, one normal after the other.

    It must be told the codimension. The other parameters default to the published constants.

    Parameters
    ----------
    codimension : int, default=1
        Number of normals: features minus dimension of the subspace.
    step : {"auto", "mbls", "geometric", "decay"} or a step rule, default="mbls"
        How long the steps are; as in `DPCP`.
    normalize : bool, default=True
        Whether rows are scaled to unit norm, so that only their direction counts. The published
        steps are meant for unit rows.
    affine : bool or "auto", default=False
        Whether the subspace may miss the origin; as in `DPCP`. The method itself runs on lifted
        rows, and its answer is brought back as it is.
    threshold : "auto" or float, default="auto"
        The distance above which a row is an outlier: relative to its norm (the sine of its angle
        to the subspace) if `normalize`, otherwise in the data's own units. For an affine
        subspace always in the data's own units.
    contamination : float or None, default=None
        The share of outliers, for those who know it; it sets the threshold.
    max_iter : int, default=200
        Most iterations for each normal.
    tol : float, default=1e-8
        When a descent rests; as in `DPCP`.
    device : None, str or torch.device, default=None
        Where to compute: None where the data is, a torch tensor on its own device; "cuda" moves
        the data to the GPU once. Answers come back as the kind of array that was given. torch
        is needed for tensors and devices: ``pip install 'perpend[torch]'``.
    n_jobs : int or None, default=None
        Number of threads that read rows; -1 means all processors.
    random_state : int, Generator, RandomState or None, default=None
        Has no influence on the subspace: the method draws nothing.
    callback : callable or None, default=None
        Called after every step with a `perpend.solvers.Progress`; it ends the descent to the
        present normal by returning True.

    Attributes
    ----------
    normals_, components_, labels_, threshold_, confidence_, objective_, ... :
        As in `DPCP`. `confidence_` says how far the rows support the codimension that was told,
        and `directions_` are the normals in the order in which they were found.

    Examples
    --------
    >>> from perpend import RecursiveDPCP
    >>> from perpend.datasets import make_subspace
    >>> data = make_subspace(300, 600, n_features=20, codimension=3, random_state=0)
    >>> model = RecursiveDPCP(codimension=3).fit(data.X)
    >>> int((model.labels_ == data.y).sum())
    900
    """

    _function = staticmethod(recursive_dpcp)
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SubspaceEstimator._parameter_constraints,
        "codimension": [Interval(Integral, 0, None, closed="left")],
        "step": [StrOptions(set(STEP_RULES)), HasMethods(STEP_METHODS)],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        codimension: int = 1,
        *,
        step: str | StepRule = "mbls",
        normalize: bool = True,
        affine: Any = False,
        threshold: Any = "auto",
        contamination: float | None = None,
        max_iter: int = 200,
        tol: float = 1e-8,
        device: Any = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        callback: Callback | None = None,
    ) -> None:
        self.codimension = codimension
        self.step = step
        self.normalize = normalize
        self.affine = affine
        self.threshold = threshold
        self.contamination = contamination
        self.max_iter = max_iter
        self.tol = tol
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback

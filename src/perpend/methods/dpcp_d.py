r"""Denoised DPCP (DPCP-d), given codimension.

.. math:: \min_{b, y} \; \tau \|y\|_1 + \tfrac12 \|y - X b\|^2
    \quad\text{subject to}\quad \|b\| = 1

It alternates between ``y = soft(X b, tau)`` and the least-squares b, brought back to the sphere:

.. math:: b \leftarrow (X^T X + \epsilon I)^{-1} X^T y, \qquad b \leftarrow b / \|b\|

Heights up to tau count as noise. Of the outliers' heights tau is taken off as well, so even
without noise the normals are only nearly right, the better the more rows there are. Further normals
are sought in the complement of those before.

M. C. Tsakiris, R. Vidal. Dual principal component pursuit. JMLR 19(18), 2018.
"""

import math
from numbers import Real
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from perpend._capabilities import Capabilities
from perpend._typing import Array
from perpend.estimator import Interval, StrOptions, SubspaceEstimator
from perpend.kernels import soft_heights
from perpend.rows import RowSource, RowSpan
from perpend.solvers import Directions, Solution, ended, iterate, one_by_one
from perpend.solvers.loop import Callback
from perpend.structure import solve_fixed

TAU = 2.8  # over the root of the number of rows, as in the release
RIDGE = 1e-6  # added to the second moments of unit rows, as in the release


class _State(NamedTuple):
    b: Array  # (D', 1) of norm one
    pull: Array  # (D', 1) sum of y x
    objective: float  # tau |y| + (y - x.b)^2 / 2, summed
    change: float  # relative decrease of the objective


def dpcp_d(
    rows: RowSource,
    *,
    codimension: int = 1,
    tau: float | Literal["auto"] = "auto",
    max_iter: int = 100,
    tol: float = 1e-6,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Solution:
    """Recover the subspace of the given codimension; the parameters are those of `DPCPd`."""

    def find(rows: RowSource, span: RowSpan, c: int) -> Directions:
        value = TAU / math.sqrt(rows.total_weight) if isinstance(tau, str) else tau / rows.unit
        limit = np.asarray(value, dtype=rows.dtype)
        half = np.sqrt(span.variances)[:, None] * span.axes.T  # moments = half.T @ half

        def denoise(start: Array, A: Array, _: Array) -> Directions:
            moments = (half @ A).T @ (half @ A) + RIDGE * np.eye(A.shape[1])

            def evaluate(b: Array, before: float) -> _State:
                scan = rows.scan(soft_heights, b, limit)
                objective, pull = float(scan.total[0]), scan.product.T
                change = (before - objective) / before if 0 < before < np.inf else np.inf
                return _State(b, pull, objective, change if np.any(A.T @ pull) else 0.0)

            def step(state: _State) -> _State:
                b = A @ np.linalg.solve(moments, A.T @ state.pull)
                return evaluate(b / np.linalg.norm(b), state.objective)

            run = iterate(
                step,
                evaluate(start, np.inf),
                max_steps=max_iter,
                tol=tol,
                stage="denoising",
                callback=callback,
            )
            return ended(run, run.state.b, tol)

        return one_by_one(span, c, denoise)

    return solve_fixed(rows, codimension, find, rng)


class DPCPd(SubspaceEstimator):
    r"""Denoised dual principal component pursuit, one normal after the other.

    The codimension or the dimension must be given. The other parameters default to the published
    constants. The normals are nearly right, not exact, even without noise.

    Parameters
    ----------
    tau : "auto" or float, default="auto"
        The height ``|x @ b|`` below which a row counts as noise, in the units of `threshold`.
        "auto" is the release's ``2.8 / sqrt(n_samples)``, for rows of norm one. Where it is above
        the heights of all rows, the axis of least variance is returned.
    tol : float, default=1e-6
        It has converged when the objective falls by less than this, relatively.

    Attributes
    ----------
    directions_ : array of shape (n_starts_, n_features)
        The normals in the order in which they were found.
    objective_ : float
        Mean of ``tau |y| + (y - x @ b)**2 / 2`` over `directions_` and the rows.

    Examples
    --------
    >>> from perpend import DPCPd, subspace_error
    >>> from perpend.datasets import make_subspace
    >>> data = make_subspace(600, 300, n_features=10, codimension=2, noise=0.02, random_state=0)
    >>> model = DPCPd(codimension=2).fit(data.X)
    >>> subspace_error(model.normals_, data.normals) < 0.1
    True
    """

    tau: float | Literal["auto"] = "auto"
    max_iter: int = 100
    tol: float = 1e-6

    capabilities = Capabilities(
        solves="one normal after the other, small heights taken as noise",
        family="dual",
        cost="n D",
        regime="c is known and small, noise, many rows",
        guarantee="None for the alternation.",
        reference="Tsakiris, Vidal 2018",
        time="2e-8 n D c",
    )
    _function = staticmethod(dpcp_d)
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "tau": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
    }

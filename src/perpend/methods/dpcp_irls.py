r"""DPCP by iteratively reweighted least squares (DPCP-IRLS), given codimension.

.. math::
    V \leftarrow \text{the } c \text{ smallest eigenvectors of }
    \sum_i \frac{x_i x_i^T}{\max(\|V^T x_i\|, \delta)}

The same problem as `RSGM`: minimise the sum of distances over orthonormal frames. The first pass,
with equal weights, is the spectral solution. It needs no step sizes, but solves an eigenproblem in
every iteration.

M. C. Tsakiris, R. Vidal. Dual principal component pursuit. JMLR 19(18), 2018.
"""

from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.estimator import Interval, SubspaceEstimator
from perpend.kernels import inverse_distance_gram
from perpend.rows import RowSource, RowSpan
from perpend.solvers import Directions, Solution, Status, iterate, spectral_starts
from perpend.solvers.loop import Callback
from perpend.structure import solve_fixed

EPSILON = 1e-9  # added to the last objective in the releases' stopping rule


class _State(NamedTuple):
    V: Array  # (D, c) orthonormal
    moments: Array  # (D, D) sum of x x.T / max(r, delta), with the distances r to V
    objective: float  # sum of the distances
    change: float  # relative decrease of the objective


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

    def find(rows: RowSource, span: RowSpan, c: int) -> Directions:
        def evaluate(V: Array, before: float) -> _State:
            scan = rows.scan(inverse_distance_gram, V, floor)
            objective = float(scan.total[0])
            change = 1 - objective / (before + EPSILON) if np.isfinite(before) else np.inf
            return _State(V, scan.product, objective, change)

        def step(state: _State) -> _State:
            # Weights up to 1/delta make huge moments along the subspace and leave those across it
            # small. The error of eigh is relative to the huge ones, but so is the gap between the
            # two, so the space across is found to rounding all the same.
            A = span.basis.T @ state.moments @ span.basis
            _, axes = np.linalg.eigh((A + A.T) / 2)
            return evaluate(span.basis @ axes[:, :c], state.objective)

        start = evaluate(spectral_starts(span, c), np.inf)
        run = iterate(
            step, start, max_steps=max_iter, tol=tol, stage="reweighting", callback=callback
        )
        return Directions(
            B=run.state.V,
            objective=np.array([run.state.objective]),
            n_iter=np.array([run.n_steps]),
            converged=np.array([run.status is Status.CONVERGED]),
            resolution=tol,
            n_evaluations=run.n_steps + 1,
        )

    return solve_fixed(rows, codimension, find, rng)


class DPCPIRLS(SubspaceEstimator):
    r"""Dual principal component pursuit by iteratively reweighted least squares.

    The codimension or the dimension must be given. The other parameters default to the published
    constants.

    Parameters
    ----------
    delta : float, default=1e-9
        Smallest distance from which a weight is computed, for rows of norm one. Without
        `normalize` it is relative to the largest norm (up to a factor of eight).
    tol : float, default=1e-6
        It has converged when the objective falls by less than this, relatively.
    random_state : int, Generator, RandomState or None, default=None
        Has no influence on the subspace: the method draws nothing.

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

    _function = staticmethod(dpcp_irls)
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SubspaceEstimator._parameter_constraints,
        "delta": [Interval(Real, 0, None, closed="neither")],
    }

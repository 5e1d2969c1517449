r"""DPCP by a sequence of linear programs (DPCP-LP), given codimension.

.. math:: n_{t+1} = \frac{b}{\|b\|}, \qquad
    b = \arg\min_b \sum_i |x_i \cdot b| \quad\text{subject to}\quad b \cdot n_t = 1

Each program replaces the sphere by its tangent plane at the last iterate. As ||b|| >= 1, the
objective never rises; after finitely many programs it stays. Further normals are sought in the
complement of those before. Solved is the dual program,

.. math:: \max_{y, \lambda} \lambda \quad\text{subject to}\quad
    \sum_i y_i x_i = \lambda n_t, \; |y_i| \le w_i,

which has only D constraints; b are its multipliers. A vertex is orthogonal to D - 1 rows exactly,
so without noise the normals are right to rounding.

M. C. Tsakiris, R. Vidal. Dual principal component pursuit. JMLR 19(18), 2018. The programs:
H. Spath, G. A. Watson. On orthogonal linear l1 approximation. Numerische Mathematik 51, 1987.
"""

from typing import NamedTuple

import numpy as np

from perpend._capabilities import Capabilities
from perpend._typing import Array
from perpend.estimator import SubspaceEstimator
from perpend.rows import RowSource, RowSpan
from perpend.solvers import Directions, Solution, dense, ended, iterate, one_by_one
from perpend.solvers.dense import least_crossing
from perpend.solvers.loop import Callback
from perpend.structure import solve_fixed


class _State(NamedTuple):
    b: Array  # (R - j, 1) of norm one
    objective: float  # sum of |x.b|
    change: float  # relative decrease of the objective


def dpcp_lp(
    rows: RowSource,
    *,
    codimension: int = 1,
    max_iter: int = 15,
    tol: float = 1e-6,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Solution:
    """Recover the subspace of the given codimension; the parameters are those of `DPCPLP`."""

    def find(rows: RowSource, span: RowSpan, c: int) -> Directions:
        all_ = dense(rows)

        def by_programs(start: Array, A: Array, _: Array) -> Directions:
            seen = all_._replace(X=all_.X @ A)

            def evaluate(b: Array, before: float) -> _State:
                b = b / np.linalg.norm(b)
                objective = float(seen.weight @ np.abs(seen.X @ b)[:, 0])
                change = (before - objective) / before if 0 < before < np.inf else np.inf
                return _State(b, objective, change if objective > 0 else 0.0)

            run = iterate(
                lambda state: evaluate(least_crossing(seen, state.b), state.objective),
                evaluate(A.T @ start, np.inf),
                max_steps=max_iter,
                tol=tol,
                stage="linear programs",
                callback=callback,
            )
            return ended(run, A @ run.state.b, 0.0)

        return one_by_one(span, c, by_programs)

    return solve_fixed(rows, codimension, find, rng)


class DPCPLP(SubspaceEstimator):
    r"""Dual principal component pursuit by linear programs, one normal after the other.

    The codimension or the dimension must be given. The other parameters default to the constants of
    a published comparison. Each step is a linear program with as many variables as rows, so it is
    for up to some ten thousand rows.

    Parameters
    ----------
    max_iter : int, default=15
        Maximum number of linear programs for each normal.
    tol : float, default=1e-6
        It has converged when the objective falls by less than this, relatively.

    Attributes
    ----------
    directions_ : array of shape (n_starts_, n_features)
        The normals in the order in which they were found.
    objective_ : float
        Mean of ``|x @ b|`` over `directions_` and the rows.

    Examples
    --------
    >>> from perpend import DPCPLP
    >>> from perpend.datasets import make_subspace
    >>> data = make_subspace(200, 300, n_features=10, codimension=2, random_state=0)
    >>> model = DPCPLP(codimension=2).fit(data.X)
    >>> int((model.labels_ == data.y).sum())
    500
    """

    max_iter: int = 15
    tol: float = 1e-6

    capabilities = Capabilities(
        solves="one normal after the other, by linear programs",
        family="dual",
        cost="a linear program with n variables and D constraints",
        regime="c is known and small, few rows, exact vertices",
        guarantee="Ends after finitely many programs; the first normal is one of the inliers' "
        "under the geometric conditions of its paper.",
        reference="Tsakiris, Vidal 2018",
        time="5e-9 n² D c",
        memory="n D",
        backends=("numpy",),
        tolerates_most=True,
    )
    _function = staticmethod(dpcp_lp)

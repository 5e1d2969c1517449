r"""DPCP one normal at a time (recursive DPCP), given codimension.

.. math:: b_j = \arg\min_b \sum_i |x_i \cdot b| \quad\text{subject to}\quad
    \|b\| = 1,\; b \perp b_1, \dots, b_{j-1}

Each normal is a descent of its own in the complement of those found before, from the axis along
which the rows vary least there. There is no guarantee beyond the first normal, and an error in one
is passed on to the next. With a codimension that is too large it goes on with vectors of the
subspace.

The gradient is projected, g - B (B.T g), so the descent stays where it should. One release
subtracts B (B.T b) instead, which is zero, so its vectors can drift onto a normal found before.

Z. Zhu, Y. Wang, D. Robinson, D. Naiman, R. Vidal, M. Tsakiris. Dual principal component pursuit:
improved analysis and efficient algorithms. NeurIPS 2018.
"""

from typing import Any

import numpy as np

from perpend._capabilities import Capabilities
from perpend._typing import Array
from perpend.estimator import SubspaceEstimator
from perpend.rows import RowSource, RowSpan
from perpend.solvers import Directions, Solution, StepRule, one_by_one, psgm, step_rule
from perpend.solvers.loop import Callback
from perpend.structure import solve_fixed


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
    """Recover the subspace of that codimension; the parameters are those of `RecursiveDPCP`."""
    rule = step_rule(step)

    def find(rows: RowSource, span: RowSpan, c: int) -> Directions:
        def descend(start: Array, _: Array, B: Array) -> Directions:
            how: dict[str, Any] = {"rule": rule, "max_iter": max_iter, "tol": tol}
            return psgm(rows, start, orthogonal_to=B, callback=callback, **how)

        return one_by_one(span, c, descend)

    return solve_fixed(rows, codimension, find, rng)


class RecursiveDPCP(SubspaceEstimator):
    r"""Dual principal component pursuit, one normal after the other.

    The codimension or the dimension must be given. The other parameters default to the published
    constants.

    Parameters
    ----------
    max_iter : int, default=200
        Maximum number of iterations for each normal.
    tol : float, default=1e-8
        When a descent has converged; as in `DPCP`.

    Attributes
    ----------
    directions_ : array of shape (n_starts_, n_features)
        The normals in the order in which they were found.
    objective_ : float
        Mean of ``|x @ b|`` over `directions_` and the rows.

    Examples
    --------
    >>> from perpend import RecursiveDPCP
    >>> from perpend.datasets import make_subspace
    >>> data = make_subspace(300, 600, n_features=20, codimension=3, random_state=0)
    >>> model = RecursiveDPCP(codimension=3).fit(data.X)
    >>> int((model.labels_ == data.y).sum())
    900
    """

    step: str | StepRule = "mbls"
    max_iter: int = 200
    tol: float = 1e-8

    capabilities = Capabilities(
        solves="one normal after the other",
        family="dual",
        cost="n D for each normal",
        regime="c is known and small; one hyperplane",
        guarantee="For the first normal only, as for one descent of DPCP.",
        reference="Zhu et al. 2018",
        time="2e-7 n D c",
        tolerates_most=True,
    )
    _function = staticmethod(recursive_dpcp)

r"""DPCP with orthogonal normals by the Riemannian subgradient method (RSGM), given codimension.

.. math:: \min_V \sum_{i=1}^{n} \|V^T x_i\| \quad\text{subject to}\quad V^T V = I_c

All c normals move together as an orthonormal frame, from the axes along which the rows vary least.
Given the true codimension it recovers the complement. Given fewer normals it finds some of them.
Given more, orthogonality forces the others into the subspace, and nothing tells them apart.

Z. Zhu, T. Ding, M. C. Tsakiris, D. P. Robinson, R. Vidal. A linearly convergent method for
non-smooth non-convex optimization on the Grassmannian with applications to robust subspace and
dictionary learning. NeurIPS 2019 (step "mbls").

T. Ding, Z. Zhu, R. Vidal, D. P. Robinson. Dual principal component pursuit for robust subspace
learning: theory and algorithms for a holistic approach. ICML 2021 (step "decay").
"""

from typing import Any, ClassVar

import numpy as np

from perpend._capabilities import Capabilities
from perpend._typing import Array
from perpend.estimator import HasMethods, StrOptions, SubspaceEstimator
from perpend.exceptions import InputError
from perpend.geometry import orthonormal
from perpend.rows import RowSource, RowSpan
from perpend.solvers import (
    DecayStep,
    Directions,
    GeometricStep,
    MBLSStep,
    Solution,
    StepRule,
    random_starts,
    riemannian,
    spectral_starts,
)
from perpend.solvers.loop import Callback
from perpend.solvers.steps import STEP_METHODS
from perpend.structure import solve_fixed

# The constants of the two releases. The first step of the second one only has to decrease the
# objective, and backtracks by the factor of the decay. Its function's defaults (0.01, 0.5) are used
# nowhere.
STEPS: dict[str, StepRule] = {
    "mbls": MBLSStep(mu0=1e-2, armijo=1e-3, shrink=0.5, floor=1e-15),
    "decay": DecayStep(mu0=0.1, armijo=0.0, shrink=0.9, beta=0.9, floor=1e-15),
    "geometric": GeometricStep(),  # of the theorems; its constants are ours
}


def rsgm(
    rows: RowSource,
    *,
    codimension: int = 1,
    step: str | StepRule = "mbls",
    init: str | Array = "spectral",
    max_iter: int = 200,
    tol: float = 1e-8,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Solution:
    """Recover the subspace of the given codimension; the parameters are those of `RSGM`."""
    rule = STEPS[step] if isinstance(step, str) else step

    def find(rows: RowSource, span: RowSpan, c: int) -> Directions:
        V = _frame(init, span, c, rng)
        return riemannian(rows, V, rule=rule, max_iter=max_iter, tol=tol, callback=callback)

    return solve_fixed(rows, codimension, find, rng)


def _frame(init: str | Array, span: RowSpan, c: int, rng: np.random.Generator) -> Array:
    """Return the orthonormal frame (D, c) that the descent begins with."""
    if isinstance(init, str):
        if init == "spectral":
            return spectral_starts(span, c)
        return orthonormal(random_starts(rng, span, c))
    given, shape = np.asarray(init, dtype=float), (c + span.n_outside, span.n_features)
    if given.shape not in {shape, (c, shape[1])}:
        raise InputError(f"init has shape {given.shape}; expected {shape}: one direction a row.")
    if not np.all(np.isfinite(given)):
        raise InputError("init has an entry that is NaN or infinite; give directions.")
    V = orthonormal(span.inside(given.T))[:, :c]
    if V.shape[1] < c:
        raise InputError(
            f"init has rank {V.shape[1]} inside the span of X, and {c} directions are needed "
            "there. Give directions that are linearly independent."
        )
    return V


class RSGM(SubspaceEstimator):
    r"""Orthogonal dual principal component pursuit by the Riemannian subgradient method.

    The codimension or the dimension must be given. The other parameters default to the published
    constants.

    Parameters
    ----------
    step : {"mbls", "decay", "geometric"} or a step rule, default="mbls"
        "mbls" is the backtracking line search of the first release (2019), "decay" the second's
        (2021): one line search, then a step that shrinks by a tenth at every iteration. "geometric"
        is the piecewise geometrically diminishing rule of the theorems, with the constants of
        `perpend.solvers.GeometricStep`; it takes some 500 iterations. Of a rule object only the
        sizes are used, along the tangent gradient of the frame.
    init : {"spectral", "random"} or array of shape (codimension, n_features), default="spectral"
        The first normals: the axes along which the rows vary least, random ones, or those given.
    tol : float, default=1e-8
        "decay" has converged when the objective changes by less than this, relatively, and
        "geometric" when a step turns the frame by less (radians). "mbls" has only the lower limit
        of its step size.
    random_state : int, Generator, RandomState or None, default=None
        Seeds ``init="random"``.

    Attributes
    ----------
    objective_ : float
        Mean of ``||V.T x||`` over the rows.

    Examples
    --------
    >>> from perpend import RSGM
    >>> from perpend.datasets import make_subspace
    >>> data = make_subspace(300, 600, n_features=20, codimension=3, random_state=0)
    >>> model = RSGM(codimension=3).fit(data.X)
    >>> int((model.labels_ == data.y).sum())
    900
    """

    step: str | StepRule = "mbls"
    init: str | Array = "spectral"
    max_iter: int = 200
    tol: float = 1e-8

    capabilities = Capabilities(
        solves="the sum of distances, over orthonormal frames",
        family="dual",
        cost="n D c",
        regime="c is known, and you want the published method",
        guarantee="It converges linearly at the true codimension, with up to about N² outliers.",
        reference="Zhu et al. 2019; Ding et al. 2021",
        time="1e-7 n D c",
        tolerates_most=True,
    )
    _function = staticmethod(rsgm)
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "step": [StrOptions(set(STEPS)), HasMethods(STEP_METHODS)],
        "init": [StrOptions({"spectral", "random"}), "array-like"],
    }

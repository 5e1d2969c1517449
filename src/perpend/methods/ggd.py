r"""Geodesic gradient descent (GGD) on the Grassmannian, given dimension.

.. math:: \min_{U^T U = I_d} \sum_i \|x_i - U U^T x_i\|

The problem of `RSGM`, with a basis U of the subspace instead of its normals: cheaper where the
dimension is small. From the principal axes, each step follows a geodesic: with the gradient
G = W S Z^T,

.. math:: U(t) = U Z \cos(S t) Z^T - W \sin(S t) Z^T

Steps are in units of 1 / sum of the norms of the rows, the authors' constant for unit rows.
"halving" accepts any decrease. The release begins each line search anew with the first step; here
it begins with twice the last one, which takes a tenth of the passes near the end.

T. Maunu, T. Zhang, G. Lerman. A well-tempered landscape for non-convex robust subspace recovery.
JMLR 20(37), 2019.
"""

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np

from perpend._capabilities import Capabilities
from perpend._typing import Array
from perpend.estimator import Interval, StrOptions, SubspaceEstimator
from perpend.geometry import complement
from perpend.kernels import residual_and_gradient
from perpend.rows import RowSource, RowSpan
from perpend.solvers import Directions, Outcome, Solution, StepRule, riemannian
from perpend.solvers.loop import Callback
from perpend.structure import solve_fixed


@dataclass(frozen=True)
class Halving(StepRule):
    """Half the step until the objective falls; begin the next one with twice the step."""

    mu0: float
    least: float = 1e-16  # of the first step: nothing falls any more

    def accepts(self, f_trial: Array, f: Array, *_: Array) -> Array:
        """Accept any decrease."""
        return f_trial < f

    def following(self, mu: Array, outcome: Outcome) -> Array:
        """Double after a decrease, up to the first step, and halve otherwise."""
        return np.where(outcome.accepted, np.minimum(2 * mu, self.mu0), mu / 2)

    def at_rest(self, mu: Array, outcome: Outcome, tol: float) -> Array:
        """Stop when the last step moved by less than `tol`, or no step is short enough."""
        return (outcome.accepted & (outcome.moved <= tol)) | (mu <= self.least * self.mu0)


@dataclass(frozen=True)
class Shrinking(StepRule):
    """A tenth of the step after every 50 iterations, without a line search."""

    mu0: float
    every: int = 50
    factor: float = 0.1

    def accepts(self, f_trial: Array, *_: Array) -> Array:
        """Accept every trial."""
        return np.ones(f_trial.shape, dtype=bool)

    def following(self, mu: Array, outcome: Outcome) -> Array:
        """Shrink at the end of a period."""
        return np.where(outcome.n_iter % self.every == 0, self.factor * mu, mu)

    def at_rest(self, mu: Array, outcome: Outcome, tol: float) -> Array:
        """Stop when the last step moved by less than `tol`."""
        del mu
        return outcome.moved <= tol


RULES: dict[str, type[Any]] = {"halving": Halving, "shrinking": Shrinking}


def ggd(
    rows: RowSource,
    *,
    codimension: int = 1,
    step: Literal["halving", "shrinking"] = "halving",
    first_step: float = 1.0,
    max_iter: int = 500,
    tol: float = 1e-10,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Solution:
    """Recover the subspace of the given codimension; the parameters are those of `GGD`."""

    def find(rows: RowSource, span: RowSpan, c: int) -> Directions:
        if c == span.rank:
            return Directions(span.axes, np.zeros(1), np.zeros(1, int), np.ones(1, bool), 0.0, 0)
        rule = RULES[step](first_step / (rows.total_weight * float(np.mean(rows.norms))))
        end = riemannian(
            rows, span.axes[:, c:], rule=rule, max_iter=max_iter, tol=tol, callback=callback,
            kernel=residual_and_gradient, retract=along_geodesic,
        )  # fmt: skip
        return end._replace(B=span.basis @ complement(span.basis.T @ end.B))

    return solve_fixed(rows, codimension, find, rng)


def along_geodesic(trial: Array, U: Array) -> Array:
    """Return the ends of geodesics from frames U (..., D, d) with the tangents ``trial - U``."""
    W, s, Zt = np.linalg.svd(trial - U, full_matrices=False)
    s = s[..., None, :]
    V: Array = ((U @ Zt.swapaxes(-1, -2)) * np.cos(s) + W * np.sin(s)) @ Zt
    return np.linalg.qr(V)[0]  # rounding errors of many steps; the span is the same


class GGD(SubspaceEstimator):
    r"""Geodesic gradient descent on the sum of distances.

    The codimension or the dimension must be given.

    Parameters
    ----------
    step : {"halving", "shrinking"}, default="halving"
        "halving" is a line search that accepts any decrease, "shrinking" takes a tenth of the step
        after every 50 iterations.
    first_step : float, default=1.0
        The first step, in units of one over the sum of the norms of the rows.
    max_iter : int, default=500
        Maximum number of iterations.
    tol : float, default=1e-10
        It has converged when a step turns the subspace by less than this angle.

    Attributes
    ----------
    objective_ : float
        Mean of the distances of the rows.

    Examples
    --------
    >>> from perpend import GGD
    >>> from perpend.datasets import make_subspace
    >>> data = make_subspace(300, 300, n_features=20, codimension=15, random_state=0)
    >>> model = GGD(n_components=5).fit(data.X)
    >>> int((model.labels_ == data.y).sum())
    600
    """

    step: Literal["halving", "shrinking"] = "halving"
    first_step: float = 1.0
    max_iter: int = 500
    tol: float = 1e-10

    capabilities = Capabilities(
        solves="the sum of distances, over bases of the subspace",
        family="geodesic",
        cost="n D d",
        regime="d is known and small, many features",
        guarantee="It converges locally, with a linear rate, where the landscape is well-tempered.",
        reference="Maunu, Zhang, Lerman 2019",
        time="2e-8 n D d",
        tolerates_most=True,
    )
    _function = staticmethod(ggd)
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "step": [StrOptions(set(RULES))],
        "first_step": [Interval(Real, 0, None, closed="neither")],
    }

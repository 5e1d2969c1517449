r"""Low rank plus sparse entries by gradient descent alone: double over-parameterisation.

.. math:: \min_{U, V, g, h} \tfrac12 \|U V^T + g \circ g - h \circ h - X\|^2

has more unknowns than entries, and no penalty. Descent from small values with a step tau for U and
V, and alpha tau for g and h, ends near the minimum of the nuclear norm plus lambda times the sum of
absolute entries, as `PCP` has it. The residual E, integrated along the way, makes singular values
grow like exp(2 int E) and squares of g and h like exp(2 alpha |int E|), so with starts of size
epsilon the limits of the integral are log(1/epsilon) and that over alpha: lambda = 1 / alpha. This
was derived here, for U V^T; the paper has U U^T, where the same holds.

C. You, Z. Zhu, Q. Qu, Y. Ma. Robust recovery via implicit bias of discrepant learning rates for
double over-parameterization. NeurIPS 2020.
"""

import math
from numbers import Real
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from perpend._labels_only import LabelsOnly, learn_parts
from perpend._typing import Array, RandomState
from perpend.estimator import Interval, StrOptions
from perpend.exceptions import InputError
from perpend.geometry import as_generator
from perpend.solvers import Run, iterate
from perpend.solvers.loop import Callback

STEP, TURN = 0.25, 0.5  # with X of norm one, and of an entry at most: beyond, it may swing


class Factors(NamedTuple):
    """Where the descent is, with X of spectral norm one."""

    U: Array  # (n, r)
    V: Array  # (D, r)
    g: Array  # (n, D)
    h: Array  # (n, D)
    E: Array  # (n, D) the residual here
    size: float  # of X, that everything is divided by
    objective: float  # ||E||^2 / 2
    change: float  # ||E|| / ||X||

    @property
    def L(self) -> Array:  # noqa: N802  as in `PCP`
        """The low-rank part."""
        return self.size * self.U @ self.V.T

    @property
    def S(self) -> Array:  # noqa: N802
        """The sparse part."""
        return self.size * (self.g**2 - self.h**2)


def double_overparameterization(
    X: Array,
    *,
    alpha: float | Literal["auto"] = "auto",
    start: float = 1e-5,
    max_iter: int = 5000,
    tol: float = 1e-3,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Run[Factors]:
    """Split a table; the parameters are those of `DoubleOverparameterization`.

    Parameters
    ----------
    X : array of shape (n, D)
    alpha, start, max_iter, tol, callback
        As in `DoubleOverparameterization`.
    rng : numpy.random.Generator
        Draws the start.

    Returns
    -------
    Run
        Its `state` has the parts ``L`` and ``S``.
    """
    X = np.asarray(X, dtype=float)
    (n, D), size = X.shape, float(np.linalg.norm(X, 2))
    if size == 0:
        raise InputError("Every entry of X is zero, so there is nothing to split.")
    X, r = X / size, min(n, D)
    faster = math.sqrt(max(n, D)) if isinstance(alpha, str) else float(alpha)
    tau = min(STEP, TURN / (faster * float(np.max(np.abs(X)))))
    whole = float(np.linalg.norm(X))

    def at(U: Array, V: Array, g: Array, h: Array) -> Factors:
        E = U @ V.T + g**2 - h**2 - X
        norm = float(np.linalg.norm(E))
        return Factors(U, V, g, h, E, size, norm**2 / 2, norm / whole)

    def step(old: Factors) -> Factors:
        U, V, g, h, E = old[:5]
        turn = faster * tau * E
        return at(U - tau * E @ V, V - tau * E.T @ U, g - turn * g, h + turn * h)

    first = at(
        start * rng.standard_normal((n, r)) / math.sqrt(n),
        start * rng.standard_normal((D, r)) / math.sqrt(D),
        np.full(X.shape, start),
        np.full(X.shape, start),
    )
    return iterate(step, first, max_steps=max_iter, tol=tol, stage="descent", callback=callback)


class DoubleOverparameterization(LabelsOnly):
    r"""Low rank plus sparse entries by gradient descent from small values, without a penalty.

    The model of `PCP`: single wrong entries, not whole rows. It needs thousands of steps, and its
    error is as small as `start`. It shows an implicit bias at work; `PCP` is faster.

    Parameters
    ----------
    alpha : "auto" or float, default="auto"
        How much faster the entries learn than the factors. It acts as a weight 1 / alpha of the
        entries; "auto" is that of `PCP`, ``sqrt(max(n_samples, n_features))``.
    start : float, default=1e-5
        The size of the values that the descent begins with.
    contamination : float in [0, 1) or None, default=None
        As in `PCP`.
    max_iter : int, default=5000
        Maximum number of steps.
    tol : float, default=1e-3
        It has converged when the residual is below this, relative to the norm of X.

    Attributes
    ----------
    low_rank_ : array of shape (n_samples, n_features)
        L, the table without its wrong entries.
    sparse_ : array of shape (n_samples, n_features)
        S, nearly zero where nothing is wrong.
    n_components_ : int
        The rank of L; singular values below a thousandth of the largest do not count.
    scores_ : array of shape (n_samples,)
        As in `PCP`.
    offset_ : float
        Rows with a smaller score are outliers.
    objective_ : float
        Half the squared norm of the residual, relative to the largest singular value of X.
    n_iter_ : int
    converged_ : bool

    Examples
    --------
    >>> import numpy as np
    >>> from perpend import DoubleOverparameterization
    >>> rng = np.random.default_rng(0)
    >>> L = rng.standard_normal((40, 2)) @ rng.standard_normal((2, 30))
    >>> wrong = rng.random(L.shape) < 0.03
    >>> model = DoubleOverparameterization(random_state=0).fit(np.where(wrong, 10.0, L))
    >>> bool(np.linalg.norm(model.low_rank_ - L) < 0.05 * np.linalg.norm(L))
    True
    """

    alpha: float | Literal["auto"] = "auto"
    start: float = 1e-5
    max_iter: int = 5000
    tol: float = 1e-3
    random_state: RandomState = None

    capabilities = LabelsOnly.capabilities._replace(
        solves="low rank plus sparse entries, by gradient descent",
        family="convex",
        cost="n D min(n, D)",
        regime="to see an implicit bias at work; PCP is faster",
        guarantee="Tends to the solution of PCP as the start tends to zero.",
        reference="You, Zhu, Qu, Ma 2020",
        time="5e-7 n D²",
        memory="n D + D²",
    )
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "alpha": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "start": [Interval(Real, 0, 1, closed="neither")],
        "random_state": ["random_state", np.random.Generator],
    }

    def _scores(self, X: Array) -> tuple[Array, float]:
        how: dict[str, Any] = {"alpha": self.alpha, "start": self.start, "tol": self.tol}
        rng, most = as_generator(self.random_state), self.max_iter
        run = double_overparameterization(X, max_iter=most, rng=rng, callback=self.callback, **how)
        return learn_parts(self, run)

r"""Maximum mean absolute deviation rounding (MDR), given dimension.

.. math:: \max_{\|v\| = 1} \sum_i |x_i \cdot v| \;=\; \max_{s \in \{\pm 1\}^n} \|X^T s\|

Each component spreads the rows most, by absolute values instead of squares. The sum over signs is
relaxed to a semidefinite program in the Gram matrix of n unit vectors,

.. math:: \max_Z \langle X X^T, Z \rangle \quad\text{subject to}\quad Z \succeq 0, \; Z_{ii} = 1

whose solution is rounded by random hyperplanes: in expectation at least sqrt(2/pi) of the maximum.
The next component is sought in the rows without it.

The program is solved with Z = U U^T and U of about sqrt(2 n) columns, where every local maximum is
a global one (Burer and Monteiro). The objective is convex in U, so each step
``U = normalise_rows(X (X.T U))`` raises it. This and the number of hyperplanes are derived here;
the authors used a general solver.

M. McCoy, J. A. Tropp. Two proposals for robust PCA using semidefinite programming. Electronic
Journal of Statistics 5, 2011.
"""

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np

from perpend._capabilities import Capabilities
from perpend._typing import Array
from perpend.estimator import Count, SubspaceEstimator
from perpend.exceptions import InputError
from perpend.geometry import complement
from perpend.rows import RowSource, RowSpan
from perpend.solvers import Directions, Solution, dense, iterate
from perpend.solvers.loop import Callback, Status
from perpend.structure import solve_fixed

MOST_ROWS = 20_000  # n sqrt(2 n) numbers: 32 MB for each of three arrays of this size


class Relaxed(NamedTuple):
    """Where the ascent is."""

    U: Array  # (n, k) unit rows
    W: Array  # (D, k) X.T U
    objective: float  # ||X.T U||, the root of the relaxed objective
    change: float  # its relative rise


def mdr(
    rows: RowSource,
    *,
    codimension: int = 1,
    n_roundings: int = 100,
    max_iter: int = 500,
    tol: float = 1e-7,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Solution:
    """Recover the subspace of the given codimension; the parameters are those of `MDR`."""

    def find(rows: RowSource, span: RowSpan, c: int) -> Directions:
        if rows.shape[0] > MOST_ROWS:
            raise InputError(
                f"MDR keeps n sqrt(2 n) numbers, too many for the {rows.shape[0]} rows of X (at "
                f"most {MOST_ROWS}). Fit it to a random subset of the rows."
            )
        X, weight = dense(rows)
        # sum_i w_i |x_i.v|: a row of weight w is one of w times its length.
        X, found, n_iter, converged = weight[:, None] * (X @ span.basis), [], 0, True
        value = 0.0
        for _ in range(span.rank - c):
            run = relax(X, rng, max_iter=max_iter, tol=tol, callback=callback)
            v = rounded(X, run.state.U, n_roundings, rng)
            value += float(np.abs(X @ v).sum())
            X = X - np.outer(X @ v, v)
            found.append(v)
            n_iter = max(n_iter, run.n_steps)
            converged &= run.status is Status.CONVERGED
        U = np.linalg.qr(np.column_stack(found))[0] if found else np.zeros((span.rank, 0))
        one = np.ones(1, int)
        ended = np.array([value]), n_iter * one, np.array([converged])
        return Directions(span.basis @ complement(U), *ended, tol, 1)

    return solve_fixed(rows, codimension, find, rng)


def relax(
    X: Array, rng: np.random.Generator, *, max_iter: int, tol: float, callback: Callback | None
) -> Any:
    """Solve the relaxed problem for the rows of X (n, D)."""

    def at(U: Array, before: float) -> Relaxed:
        norms = np.linalg.norm(U, axis=1, keepdims=True)
        U = U / np.where(norms > 0, norms, 1)
        W = X.T @ U
        objective = float(np.linalg.norm(W))
        change = (objective - before) / objective if objective > 0 else 0.0
        return Relaxed(U, W, objective, change)

    start = at(rng.standard_normal((len(X), math.isqrt(2 * len(X)) + 2)), -np.inf)
    return iterate(
        lambda state: at(X @ state.W, state.objective),
        start,
        max_steps=max_iter,
        tol=tol,
        stage="relaxation",
        callback=callback,
    )


def rounded(X: Array, U: Array, n_roundings: int, rng: np.random.Generator) -> Array:
    """Return the unit vector (D,) of the best of some signs: on which side of a hyperplane."""
    signs = np.where(U @ rng.standard_normal((U.shape[1], n_roundings)) < 0, -1.0, 1.0)
    sums = X.T @ signs  # (D, n_roundings)
    best = sums[:, np.argmax(np.linalg.norm(sums, axis=0))]
    return np.asarray(best / np.linalg.norm(best))


class MDR(SubspaceEstimator):
    r"""Maximum mean absolute deviation rounding: components that spread the rows most, in l1.

    The codimension or the dimension must be given. It resists outliers better than PCA, but
    recovers nothing exactly, as a component depends on all rows. Up to 20,000 rows.

    Parameters
    ----------
    n_roundings : int, default=100
        Number of random hyperplanes for each component.
    max_iter : int, default=500
        Maximum number of steps for each component.
    tol : float, default=1e-7
        It has converged when the relaxed objective rises by less than this, relatively.

    Attributes
    ----------
    objective_ : float
        Mean of ``|x @ v|`` over the rows, added up over the components.

    Examples
    --------
    >>> from perpend import MDR, subspace_error
    >>> from perpend.datasets import make_subspace
    >>> data = make_subspace(300, 100, n_features=10, codimension=8, random_state=0)
    >>> model = MDR(n_components=2, random_state=0).fit(data.X)
    >>> subspace_error(model.normals_, data.normals) < 0.2
    True
    """

    n_roundings: int = 100
    max_iter: int = 500
    tol: float = 1e-7

    capabilities = Capabilities(
        solves="components with the largest sum of absolute values",
        family="convex",
        cost="n^1.5 D for each component",
        regime="d is known and small, a robust PCA without exact subspaces",
        guarantee="The first component has sqrt(2/pi) of the largest sum, in expectation.",
        reference="McCoy, Tropp 2011",
        time="1e-7 n^1.5 D d",
        memory="n D + 2 n^1.5",
        backends=("numpy",),
    )
    _function = staticmethod(mdr)
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_roundings": [Count(1)],
    }

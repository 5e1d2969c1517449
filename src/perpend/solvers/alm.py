r"""A matrix as the sum of one of low rank and one that is sparse in some sense.

.. math:: \min_{L, S} \|L\|_* + \lambda\, g(S) \quad\text{subject to}\quad L + S = X

by alternating directions on the augmented Lagrangian: L and S are proximal steps of the nuclear
norm and of g, and the multiplier Y adds up what the two leave over. At the solution Y is the dual
certificate: it lies in the subdifferentials of both. Singular values below the threshold become
zero exactly, so L has a rank that can be read off.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.solvers.loop import Callback, Run, iterate

LEAST_SINGULAR = 1e-3  # singular values below this share of the largest are noise


class Penalty(NamedTuple):
    """The penalty lambda g, and its proximal step."""

    value: Callable[[Array], float]
    prox: Callable[[Array, float], Array]  # argmin_S t lambda g(S) + ||S - R||^2 / 2, of R and t


class Split(NamedTuple):
    """Where the iteration is."""

    L: Array  # (n, D) of low rank
    S: Array  # (n, D) sparse
    Y: Array  # (n, D) the multiplier
    objective: float  # ||L||_* + lambda g(S)
    change: float  # the larger of both residuals, relative to ||X||


def split(
    X: Array, penalty: Penalty, *, max_iter: int, tol: float, callback: Callback | None = None
) -> Run[Split]:
    """Split X (n, D) into low rank and the rest, until neither constraint nor S change."""
    size = float(np.linalg.norm(X))
    mu = X.size / (4 * float(np.abs(X).sum()))  # as published

    def step(old: Split) -> Split:
        L, nuclear = shrink_singular_values(X - old.S + old.Y / mu, 1 / mu)
        S = penalty.prox(X - L + old.Y / mu, 1 / mu)
        left = X - L - S
        # The second is the dual residual over mu: both are in the units of X.
        change = max(float(np.linalg.norm(left)), float(np.linalg.norm(S - old.S))) / size
        return Split(L, S, old.Y + mu * left, nuclear + penalty.value(S), change)

    none = np.zeros(X.shape)
    start = Split(none, none, none, 0.0, np.inf)
    return iterate(step, start, max_steps=max_iter, tol=tol, stage="splitting", callback=callback)


def shrink_singular_values(Z: Array, t: float) -> tuple[Array, float]:
    """Return Z (n, D) with singular values smaller by t, at least 0, and their sum.

    By the smaller of its two Gram matrices: values that rounding spoils are below t anyway.
    """
    wide = Z.shape[0] < Z.shape[1]
    squares, V = np.linalg.eigh(Z @ Z.T if wide else Z.T @ Z)
    s = np.sqrt(np.maximum(squares, 0))
    V, s = V[:, s > t], s[s > t]
    P = (V * (1 - t / s)) @ V.T
    return (P @ Z if wide else Z @ P), float(np.sum(s - t))


def entries(weight: float) -> Penalty:
    """Return the weighted sum of absolute entries."""
    return Penalty(
        lambda S: weight * float(np.abs(S).sum()),
        lambda R, t: np.sign(R) * np.maximum(np.abs(R) - weight * t, 0),
    )


def whole_rows(weights: Array) -> Penalty:
    """Return the sum of row norms, each with its weight (n,)."""

    def prox(R: Array, t: float) -> Array:
        norms = np.linalg.norm(R, axis=1)
        norms = np.where(norms > 0, norms, 1)
        return np.maximum(1 - t * weights / norms, 0)[:, None] * R

    return Penalty(lambda S: float(weights @ np.linalg.norm(S, axis=1)), prox)


def row_space(L: Array) -> tuple[Array, int]:
    """Return the right singular vectors (D, D), largest value first, and the rank of L (n, D)."""
    squares, V = np.linalg.eigh(L.T @ L)
    s = np.sqrt(np.maximum(squares[::-1], 0))
    return V[:, ::-1], int(np.sum(s > LEAST_SINGULAR * s[0])) if s[0] > 0 else 0

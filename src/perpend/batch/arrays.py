"""The few things that NumPy and torch spell differently, and the way between host and device.

Everything else in this room is written in the words that the two share: ``axis``, ``keepdims``,
``@``, ``where``. torch itself is never imported here; whoever passes a tensor has done so.
"""

import sys
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from perpend._typing import Array, Namespace
from perpend.exceptions import InputError

Run: TypeAlias = Callable[..., Any]
"""How a function of arrays is called: ``run(function, *arguments)``, directly or replayed."""


def directly(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call the function."""
    return function(*arguments)


def library(X: Array) -> Namespace:
    """Return numpy or torch, whichever X belongs to."""
    name = type(X).__module__.partition(".")[0]
    if name not in ("numpy", "torch") or not hasattr(X, "ndim"):
        raise InputError(
            f"X is a {type(X).__name__}; expected a NumPy array or a torch tensor of shape "
            "(problems, rows, features)."
        )
    return sys.modules[name]


def on_cuda(X: Array) -> bool:
    """Say whether X is a tensor on a CUDA device."""
    return bool(getattr(X, "is_cuda", False))


def to_host(array: Array) -> Any:
    """Return the values as a NumPy array."""
    return array if isinstance(array, np.ndarray) else array.detach().cpu().numpy()


def like(X: Array, values: Any) -> Array:
    """Return NumPy values as an array of X's library, on X's device; the dtype stays."""
    return library(X).asarray(np.ascontiguousarray(values), device=X.device)


def double(X: Array) -> Array:
    """Return X in float64."""
    return library(X).asarray(X, dtype=library(X).float64)


def transposed(A: Array) -> Array:
    """Return a view with the last two axes exchanged."""
    return A.swapaxes(-1, -2)


def norm(A: Array) -> Array:
    """Return the Euclidean norms along the last axis."""
    return library(A).linalg.vector_norm(A, axis=-1)


def counting(A: Array, n: int) -> Array:
    """Return the numbers from 1 to n as (1, n) in float64, where A is."""
    return library(A).arange(1, n + 1, dtype=library(A).float64, device=A.device)[None, :]


def pick(A: Array, at: Array) -> Array:
    """Return the entries A[i, at[i, j]] of A (p, n), or A[i, at[i, j, l], l] of A (p, n, m)."""
    return np.take_along_axis(A, at, 1) if isinstance(A, np.ndarray) else A.gather(1, at)


def solve_positive(A: Array, B: Array) -> Array:
    """Return A^-1 B for stacks of positive definite A (p, D, D) and B (p, D, k)."""
    if isinstance(A, np.ndarray):
        return np.linalg.solve(A, B)
    # Cholesky without the check of its success, for which the host would have to wait.
    return library(A).cholesky_solve(B, library(A).linalg.cholesky_ex(A).L)


def some(values: Any, at: Array) -> Any:
    """Return copies of some problems of all arrays in nested tuples."""
    if isinstance(values, tuple):
        return type(values)(*(some(value, at) for value in values))
    return values[at]


def put(part: Any, whole: Any, at: Array) -> None:
    """Write the arrays of a part into those of all problems, where it has the numbers `at`."""
    for values, target in zip(part, whole, strict=True):
        if isinstance(values, tuple):
            put(values, target, at)
        else:
            target[at] = values

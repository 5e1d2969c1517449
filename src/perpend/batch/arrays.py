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
    if isinstance(X, np.ndarray):
        return values
    return sys.modules["torch"].as_tensor(np.ascontiguousarray(values)).to(X.device)


def double(X: Array) -> Array:
    """Return X in float64."""
    return X.astype(np.float64) if isinstance(X, np.ndarray) else X.double()


def transposed(A: Array) -> Array:
    """Return a view with the last two axes exchanged."""
    return A.swapaxes(-1, -2)


def norm(A: Array) -> Array:
    """Return the Euclidean norms along the last axis."""
    return library(A).linalg.vector_norm(A, axis=-1)


def ascending(A: Array) -> Array:
    """Return A (p, n) with every row sorted."""
    ordered = library(A).sort(A, axis=1)
    return ordered if isinstance(A, np.ndarray) else ordered.values


def pick(A: Array, at: Array) -> Array:
    """Return the entries A[i, at[i, j]] of A (p, n)."""
    return np.take_along_axis(A, at, 1) if isinstance(A, np.ndarray) else A.gather(1, at)


def identity(A: Array) -> Array:
    """Return the identity that fits the square matrices A (p, D, D)."""
    D = A.shape[-1]
    if isinstance(A, np.ndarray):
        return np.eye(D)
    return library(A).eye(D, dtype=A.dtype, device=A.device)


def solve_positive(A: Array, B: Array) -> Array:
    """Return A^-1 B for stacks of positive definite A (p, D, D) and B (p, D, k)."""
    xp = library(A)
    if xp is np:
        return np.linalg.solve(A, B)
    # Cholesky without the check of its success, for which the host would have to wait.
    return xp.cholesky_solve(B, xp.linalg.cholesky_ex(A).L)

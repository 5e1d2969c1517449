"""Stacks of problems of one shape: rows (p, n, D) in NumPy or torch, checked, of norm one.

Code for stacks uses only what the two libraries share: ``axis``, ``keepdims``, ``@``, ``where``.
The few differences are handled here, and the transfers between host and device. torch itself is
never imported: whoever passes a tensor has done so.
"""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.geometry import library
from perpend.rows.kinds import Place, is_tensor, to_numpy

to_host = to_numpy

Run: TypeAlias = Callable[..., Any]
"""How a function of arrays is called: ``run(function, *arguments)``, directly or replayed."""


class Rows(NamedTuple):
    """The rows of the problems, where they are."""

    X: Array  # (p, n, D) unit rows in float64
    present: Array  # (p, n) 1 for rows that are not zero


# -- from user input to unit rows ------------------------------------------------------------------


def check_stack(X: Any) -> None:
    """Raise if something is wrong with a stack."""
    if not (isinstance(X, np.ndarray) or is_tensor(X)):
        raise InputError(
            f"X is a {type(X).__name__}; expected a NumPy array or a torch tensor of shape "
            "(problems, rows, features)."
        )
    if is_tensor(X):
        Place.checked("X", X)  # only for its errors: nothing is converted here
    if isinstance(X, np.ma.MaskedArray):
        raise InputError("X is a masked array; its mask would be lost. Pass rows without gaps.")
    if X.ndim != 3 or 0 in X.shape or X.shape[2] < 2:
        raise InputError(
            f"X has shape {tuple(X.shape)}; expected (problems, rows, features) with at least two "
            "features. Use X[None] for a single problem."
        )
    if X.dtype not in (library(X).float32, library(X).float64):
        raise InputError(f"X has dtype {X.dtype}; expected float32 or float64. Convert it first.")


def row_counts(X: Array, n_rows: Any) -> Array:
    """Return the number of rows of each problem, (p,) on the host."""
    p, n, _ = X.shape
    if n_rows is None:
        return np.full(p, n)
    count = np.asarray(to_host(n_rows) if hasattr(n_rows, "ndim") else n_rows)
    if count.shape != (p,) or count.dtype.kind not in "iu":
        raise InputError(
            f"n_rows has shape {count.shape} and dtype {count.dtype}; expected ({p},) ints."
        )
    if count.min() < 1 or count.max() > n:
        raise InputError(f"n_rows is from {count.min()} to {count.max()}; expected 1 to {n}.")
    return count


def unit_directions(X: Array, starts: Any) -> Array:
    """Return the directions (p, D, k) that users give for X as unit rows (p, k, D), on the host."""
    p, _, D = X.shape
    shape = tuple(getattr(starts, "shape", ()))
    if len(shape) != 3 or shape[:2] != (p, D) or shape[2] < 1:
        raise InputError(
            f"starts has shape {shape}; expected ({p}, {D}, k): k directions for each problem, one "
            "a column."
        )
    given = to_host(starts)
    if given.dtype.kind not in "fiu":
        raise InputError(f"starts has dtype {given.dtype}; expected real numbers.")
    B = given.mT.astype(float)
    lengths = np.linalg.norm(B, axis=2, keepdims=True)
    if not np.all(np.isfinite(lengths) & (lengths > 0)):
        raise InputError("starts has a direction that is zero or not finite.")
    return B / lengths


def cut(X: Array, count: Array) -> Array:
    """Return X with zeros after the first `count` (p,) rows of each problem."""
    if np.all(count == X.shape[1]):
        return X
    inside = np.arange(X.shape[1]) < count[:, None]
    return library(X).where(like(X, inside)[..., None], X, 0.0)


def unit_rows(X: Array) -> tuple[Array, Rows, Array]:
    """Return unit rows in X's precision and in float64, and the counts (2, p) of good and bad."""
    xp = library(X)
    # Divided by their largest entry first: squares of huge or tiny numbers over- or underflow.
    largest = xp.amax(xp.abs(X), axis=2, keepdims=True)
    X = X / xp.where(largest > 0, largest, 1.0)
    size = norm(X)[..., None]
    unit = X / xp.where(size > 0, size, 1.0)
    present = double(xp.where(size[..., 0] > 0, 1.0, 0.0))
    bad = double(xp.where(xp.isfinite(size[..., 0]), 0.0, 1.0))
    counts = xp.stack([xp.sum(present, axis=1), xp.sum(bad, axis=1)])
    return unit, Rows(double(unit), present), counts


def usable_rows(counts: Array, n_features: int, first: int) -> Array:
    """Return the numbers of rows that are not zero, if the rows can be used.

    `first` is the number of the first problem, for messages.
    """
    n, n_bad = counts
    if n_bad.any():
        raise InputError(
            f"Input X contains NaN or inf in {int(n_bad.sum())} rows (first in problem "
            f"{first + int(np.argmax(n_bad > 0))}). Drop these rows or impute them first."
        )
    if n.min() < n_features:
        raise InputError(
            f"Problem {first + int(np.argmin(n))} has {int(n.min())} rows that are not zero; at "
            f"least as many as features ({n_features}) are needed to span the space."
        )
    return n


# -- what the rows say -----------------------------------------------------------------------------


def evaluate(X: Array, B: Array) -> tuple[Array, Array]:
    """Return f (p, k) and g (p, k, D) at B: sum |x.b| and sum sign(x.b) x; sign(0) = 0."""
    xp = library(X)
    P = X @ xp.asarray(B, dtype=X.dtype).mT  # (p, n, k)
    f = xp.sum(xp.abs(P), axis=1, dtype=B.dtype)
    return f, xp.asarray(xp.sign(P).mT @ X, dtype=B.dtype)


def squared_distances(X: Array, V: Array) -> Array:
    """Return ||V x||^2 (p, n)."""
    P = X @ V.mT
    return library(X).sum(P * P, axis=2)


def moments(X: Array, u: Array) -> Array:
    """Return sum_i u_i x_i x_i^T (p, D, D)."""
    return (X * u[..., None]).mT @ X


# -- between host and device -----------------------------------------------------------------------


def directly(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call the function: the plain way to run it."""
    return function(*arguments)


def workspace(X: Array, k: int) -> AbstractContextManager[Any]:
    """Lend memory and captured launches for X (p, n, D) and k starts, if they pay off."""
    if not on_cuda(X):
        return nullcontext()
    from perpend.kernels.cuda.stacks import workspace

    return workspace(X, k)


def on_cuda(X: Array) -> bool:
    """Say whether X is a tensor on a CUDA device."""
    return bool(getattr(X, "is_cuda", False))


def like(X: Array, values: Any) -> Array:
    """Return NumPy values as an array of X's library, on X's device; the dtype stays."""
    return library(X).asarray(np.ascontiguousarray(values), device=X.device)


def packed(*arrays: Array) -> Array:
    """Return arrays (p, ...) side by side, a row of float64 by problem: one way to the host."""
    words = [double(values).reshape(len(values), -1) for values in arrays]
    return library(words[0]).concatenate(words, axis=1)


def unpacked(words: Array, *shapes: tuple[int, ...]) -> list[Array]:
    """Return packed arrays on the host, given the shape of each problem's own."""
    parts = np.split(to_host(words), np.cumsum([math.prod(shape) for shape in shapes]), axis=1)
    return [part.reshape(-1, *shape) for part, shape in zip(parts, shapes, strict=False)]


# -- what NumPy and torch spell differently --------------------------------------------------------


def double(X: Array) -> Array:
    """Return X in float64."""
    return library(X).asarray(X, dtype=library(X).float64)


def norm(A: Array) -> Array:
    """Return the Euclidean norms along the last axis."""
    return library(A).linalg.vector_norm(A, axis=-1)


def counting(A: Array, n: int) -> Array:
    """Return the numbers from 1 to n as (1, n) in float64, where A is."""
    return library(A).arange(1, n + 1, dtype=library(A).float64, device=A.device)[None, :]


def pick(A: Array, at: Array) -> Array:
    """Return the entries A[i, at[i, j]] of A (p, n), or A[i, at[i, j, l], l] of A (p, n, m)."""
    return np.take_along_axis(A, at, 1) if isinstance(A, np.ndarray) else A.gather(1, at)


def ascending(A: Array) -> Array:
    """Return A (p, n, m) with its columns in order; what is not a number comes last."""
    return np.sort(A, axis=1) if isinstance(A, np.ndarray) else A.sort(1).values


def counted(bins: Array, size: int) -> Array:
    """Return how often (p, C, size) each number below `size` is in the bins (p, n, C)."""
    xp, (p, _, C) = library(bins), bins.shape
    offset = size * (counting(bins, p * C) - 1).reshape(p, 1, C)
    at = xp.asarray(bins + offset, dtype=xp.int64).reshape(-1)
    if xp is np:
        return np.bincount(at, minlength=p * C * size).reshape(p, C, size).astype(float)
    # Whole numbers may be added in any order: the same bits every time.
    N = xp.zeros(p * C * size, dtype=xp.float64, device=bins.device)
    return N.scatter_add_(0, at, xp.ones_like(at, dtype=N.dtype)).reshape(p, C, size)


def solve_positive(A: Array, B: Array) -> Array:
    """Return A^-1 B for stacks of positive A (p, D, D) and B (p, D, k).

    The diagonal is lifted by 64 eps of the trace, so that rounding can't make a factor of A fail;
    the rounding of second moments is a few eps of it.
    """
    D = A.shape[1]
    eye = library(A).eye(D, dtype=A.dtype, device=A.device)
    A = A + (64 * D * 2.0**-52) * mean_eigenvalue(A) * eye
    if isinstance(A, np.ndarray):
        return np.linalg.solve(A, B)
    # Cholesky without the check of its success, for which the host would have to wait.
    return library(A).cholesky_solve(B, library(A).linalg.cholesky_ex(A).L)


def mean_eigenvalue(A: Array) -> Array:
    """Return the mean eigenvalue (p, 1, 1) of A (p, D, D), 1 where that is zero."""
    xp = library(A)
    mean = xp.sum(xp.linalg.diagonal(A), axis=1)[:, None, None] / A.shape[1]
    return xp.where(mean > 0, mean, 1.0)


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

"""What users hand in: checked, put on the host where it is small, and scaled to unit rows."""

from numbers import Integral, Real
from typing import Any

import numpy as np

from perpend._typing import Array, Namespace, RandomState
from perpend.batch.arrays import double, library, like, norm, to_host, transposed
from perpend.batch.descent import Rule
from perpend.batch.finish import Rows
from perpend.exceptions import InputError
from perpend.geometry import as_generator, random_directions
from perpend.rows.kinds import is_tensor
from perpend.solvers import AutoStep, MBLSStep

RULES: dict[str, Rule] = {"auto": AutoStep(), "mbls": MBLSStep()}


def check(X: Array, xp: Namespace, *, n_starts: int, step: Any, max_iter: int, tol: float) -> None:
    """Say what is wrong with the arguments, if anything is."""
    if is_tensor(X):
        from perpend.rows.tensors import checked_tensor

        checked_tensor("X", X)  # its complaints alone: nothing is converted here
    if isinstance(X, np.ma.MaskedArray):
        raise InputError("X is a masked array; its mask would be lost. Pass rows without gaps.")
    if X.ndim != 3 or 0 in X.shape or X.shape[2] < 2:
        raise InputError(
            f"X has shape {tuple(X.shape)}; expected (problems, rows, features) with at least two "
            "features. Use X[None] for a single problem."
        )
    if X.dtype not in (xp.float32, xp.float64):
        raise InputError(f"X has dtype {X.dtype}; expected float32 or float64. Convert it first.")
    if not isinstance(step, str) or step not in RULES:
        raise InputError(f"step={step!r}; expected one of {sorted(RULES)}.")
    for name, value in (("n_starts", n_starts), ("max_iter", max_iter)):
        if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
            raise InputError(f"{name}={value!r}; expected an int, at least 1.")
    if not isinstance(tol, Real) or not 0 < tol < 1:
        raise InputError(f"tol={tol!r}; expected an angle between 0 and 1.")


def directions(X: Array, starts: Array | None, n_starts: int, random_state: RandomState) -> Array:
    """Return unit directions (p, k, D) in float64, on the host."""
    p, _, D = X.shape
    if starts is None:
        B = random_directions(as_generator(random_state), D, n_starts).T
        return np.array(np.broadcast_to(B, (p, *B.shape)))
    shape = tuple(getattr(starts, "shape", ()))
    if len(shape) != 3 or shape[:2] != (p, D) or shape[2] < 1:
        raise InputError(
            f"starts has shape {shape}; expected ({p}, {D}, k): k directions for each problem, one "
            "a column."
        )
    given = to_host(starts)
    if given.dtype.kind not in "fiu":
        raise InputError(f"starts has dtype {given.dtype}; expected real numbers.")
    B = transposed(given).astype(float)
    lengths = np.linalg.norm(B, axis=2, keepdims=True)
    if not np.all(np.isfinite(lengths) & (lengths > 0)):
        raise InputError("starts has a direction that is zero or not finite.")
    return B / lengths


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


def cut(X: Array, count: Array) -> Array:
    """Return X with zeros after the first `count` (p,) rows of each problem."""
    if np.all(count == X.shape[1]):
        return X
    inside = np.arange(X.shape[1]) < count[:, None]
    return library(X).where(like(X, inside)[..., None], X, 0.0)


def unit_rows(X: Array) -> tuple[Array, Rows, Array]:
    """Return unit rows in X's precision and in float64, and the counts (2, p) of good and bad."""
    xp = library(X)
    # Divided by their largest entry first: squares of very large or small numbers are no numbers.
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

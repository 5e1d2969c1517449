"""Norms of rows, right at every scale."""

import numpy as np

from perpend._typing import Array

BLOCK_ENTRIES = 32_768
"""Entries of X that are worked on at once."""


def row_norms(X: Array) -> Array:
    """Return the Euclidean norms of the rows, right also where their squares over- or underflow.

    >>> row_norms(np.array([[3e-200, 4e-200], [3e200, 4e200], [0.0, 0.0]]))
    array([5.e-200, 5.e+200, 0.e+000])
    """
    norms = np.empty(X.shape[0], X.dtype)
    step = max(1, BLOCK_ENTRIES // max(1, X.shape[1]))
    for start in range(0, X.shape[0], step):
        block = X[start : start + step]
        largest = np.max(np.abs(block), axis=1, initial=0)
        scaled = block / np.where(largest > 0, largest, 1)[:, None]
        relative = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
        with np.errstate(over="ignore"):  # inf says it: `as_rows` tells the user which row
            norms[start : start + step] = largest * relative
    return norms


def without_subnormal_norms(X: Array, norms: Array) -> tuple[Array, Array]:
    """Enlarge rows so small that their norm has lost its digits; their directions stay."""
    limits = np.finfo(X.dtype)
    faint = np.flatnonzero((norms > 0) & (norms < limits.tiny))
    if faint.size:
        X, norms = X.copy(), norms.copy()
        X[faint] /= limits.eps**2  # a power of two: exact
        norms[faint] = row_norms(X[faint])
    return X, norms


def power_of_two(size: float, *, far: float) -> float:
    """Return a power of two near `size`, or 1 where the exponent is less than `far` from zero."""
    exponent = float(np.log2(size)) if size > 0 else 0.0
    return 1.0 if abs(exponent) < far else float(2.0 ** np.floor(exponent))

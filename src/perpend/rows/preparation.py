"""From an array as the user gave it to rows that solvers can scan: weights, norms, units."""

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.rows.array import MEMORY_BUDGET, ArrayRows
from perpend.rows.norms import power_of_two, row_norms, without_subnormal_norms

N_NORMS = 64
"""So many quantiles stand for the norms of all rows."""


def as_rows(
    X: Array,
    *,
    weight: Array | None = None,
    mask: Array | None = None,
    normalize: bool = True,
    memory_budget: int = MEMORY_BUDGET,
    block_rows: int | None = None,
    n_jobs: int = 1,
) -> ArrayRows:
    """Return the rows of X (n, D) as a source that solvers can scan.

    Parameters
    ----------
    X : array of shape (n, D), float32 or float64, finite
    weight : array of shape (n,), optional
        Weights of the rows, not negative.
    mask : array of bool of shape (n,), optional
        The rows that take part; all by default.
    normalize : bool
        Whether every row is divided by its norm. All-zero rows have no direction and never take
        part, whatever their weight.
    memory_budget : int
        Bytes that the source may keep beside X.
    block_rows : int, optional
        Rows in one block; by default as many as fit the cache.
    n_jobs : int
        Number of threads that read blocks.
    """
    norms = row_norms(X)
    if not np.all(np.isfinite(norms)):
        row = int(np.argmin(np.isfinite(norms)))
        raise InputError(
            f"The norm of row {row} of X is too large for {X.dtype}. "
            f"Divide X by a constant, for example by 1e{int(np.log10(np.max(np.abs(X[row]))))}."
        )
    takes_part = norms > 0
    for chosen in (mask, None if weight is None else np.asarray(weight) > 0):
        takes_part = takes_part if chosen is None else takes_part & chosen
    if weight is not None or not takes_part.all():
        weight = takes_part * (np.ones(len(norms)) if weight is None else np.asarray(weight, float))
        weight /= power_of_two(float(weight.max()), far=np.finfo(X.dtype).maxexp / 8)
        weight = weight.astype(X.dtype)
    present = norms[takes_part]
    divisor, lengths, unit, quantiles = None, None, 1.0, None
    if normalize:
        lengths = norms
        X, norms = without_subnormal_norms(X, norms)
        if np.any(np.abs(present - 1) > 8 * np.finfo(X.dtype).eps):
            divisor = np.where(norms > 0, norms, 1).astype(X.dtype)
    elif present.size:
        # A power of two loses no digit, and step rules made for unit rows then serve these, too.
        unit = power_of_two(float(present.max()), far=3)
        # Rows that do not take part may be of any size, and 0 * inf is not 0: none may overflow.
        divisor = np.where(takes_part, unit, np.maximum(norms, unit)).astype(X.dtype)
        divisor = None if np.all(divisor == 1) else divisor
        levels = np.append((np.arange(N_NORMS) + 0.5) / N_NORMS, 1.0)  # the largest comes last
        quantiles = np.quantile(present / unit, levels)
    return ArrayRows(
        X,
        weight=weight,
        divisor=divisor,
        store_quotients=normalize,
        lengths=lengths,
        norms=quantiles,
        unit=unit,
        memory_budget=memory_budget,
        block_rows=block_rows,
        n_jobs=n_jobs,
    )

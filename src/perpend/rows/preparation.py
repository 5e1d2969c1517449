"""From an array as the user gave it to rows that solvers can scan: weights, norms, units."""

from typing import NamedTuple

import numpy as np

from perpend._typing import Array, namespace
from perpend.exceptions import InputError
from perpend.rows.array import BLOCK_ENTRIES, MEMORY_BUDGET, ArrayRows
from perpend.rows.kinds import in_memory, is_tensor, to_numpy
from perpend.rows.source import RowSource

N_NORMS = 64
"""Number of quantiles that stand for the norms of all rows."""

ENTRIES, ENTRIES_OF_TENSOR = 2**16, 2**24
"""Entries checked together; the flags of a tensor's block take 16 MiB."""


def as_rows(
    X: Array,
    *,
    weight: Array | None = None,
    mask: Array | None = None,
    normalize: bool = True,
    memory_budget: int | None = None,
    block_rows: int | None = None,
    n_jobs: int = 1,
    fused: bool = True,
) -> RowSource:
    """Return the rows of X (n, D) as a source that solvers can scan.

    Parameters
    ----------
    X : array or torch tensor of shape (n, D), float32 or float64, finite
        A tensor's rows are read where they are, on a GPU as well.
    weight : array of shape (n,), optional
        Weights of the rows, not negative.
    mask : array of bool of shape (n,), optional
        The rows that take part; all by default.
    normalize : bool
        Whether every row is divided by its norm. All-zero rows have no direction and never take
        part, whatever their weight.
    memory_budget : int, optional
        Bytes that the source may keep beside X; by default 1 GiB, on a GPU what is free there.
    block_rows : int, optional
        Rows in one block; by default as many as fit the cache, or a share of a GPU's memory.
    n_jobs : int
        Number of threads that read blocks in memory.
    fused : bool
        Whether descents may use a fused kernel, if the GPU has one. It is faster and rounds to
        about 16 bits; the source's `precision` says so.

    Returns
    -------
    RowSource
        The first argument of the methods as functions.
    """
    if is_tensor(X):
        from perpend.rows.tensors import checked_tensor, torch_rows

        X = in_memory(checked_tensor("X", X))
        if is_tensor(X):
            return torch_rows(
                X,
                weight=weight,
                mask=mask,
                normalize=normalize,
                memory_budget=memory_budget,
                block_rows=block_rows,
                fused=fused,
            )
    norms = row_norms(X)
    if not np.all(np.isfinite(norms)):
        row = int(np.argmin(np.isfinite(norms)))
        raise InputError(
            f"The norm of row {row} of X is too large for {X.dtype}. "
            f"Divide X by a constant, for example by 1e{int(np.log10(np.max(np.abs(X[row]))))}."
        )
    takes_part = norms > 0
    if mask is not None:
        takes_part = takes_part & to_numpy(mask)
    if weight is not None:
        weight = to_numpy(weight)
        takes_part = takes_part & (weight > 0)
    if weight is not None or not takes_part.all():
        weight = takes_part * (np.ones(len(norms)) if weight is None else weight.astype(float))
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
        # A power of two loses no digit, and step rules made for unit rows then work here, too.
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
        memory_budget=MEMORY_BUDGET if memory_budget is None else memory_budget,
        block_rows=block_rows,
        n_jobs=n_jobs,
    )


def row_norms(X: Array) -> Array:
    """Return the Euclidean norms of the rows, right even if their squares over- or underflow.

    >>> row_norms(np.array([[3e-200, 4e-200], [3e200, 4e200], [0.0, 0.0]]))
    array([5.e-200, 5.e+200, 0.e+000])
    """
    if is_tensor(X):
        from perpend.rows.tensors import row_norms

        return row_norms(X)
    norms = np.empty(X.shape[0], X.dtype)
    step = max(1, BLOCK_ENTRIES // max(1, X.shape[1]))
    for start in range(0, X.shape[0], step):
        block = X[start : start + step]
        largest = np.max(np.abs(block), axis=1, initial=0)
        scaled = block / np.where(largest > 0, largest, 1)[:, None]
        relative = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
        with np.errstate(over="ignore"):  # then inf; `as_rows` tells the user which row
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


class NotFinite(NamedTuple):
    """Where entries are NaN or infinite."""

    row: int  # the first
    column: int
    is_nan: bool
    n_entries: int
    n_rows: int


def not_finite(X: Array) -> NotFinite | None:
    """Return the first entry of X (n, D) that is NaN or infinite and how many there are, or None.

    >>> import numpy as np
    >>> not_finite(np.array([[1.0, 2.0], [np.inf, 3.0]]))
    NotFinite(row=1, column=0, is_nan=False, n_entries=1, n_rows=1)
    """
    xp = namespace(X)
    first: tuple[int, int, bool] | None = None
    n_entries = n_rows = 0
    n, step = X.shape[0], max(1, (ENTRIES_OF_TENSOR if is_tensor(X) else ENTRIES) // X.shape[1])
    for start in range(0, n, step):
        block = X[start : min(start + step, n), :]
        finite = xp.isfinite(block)
        if bool(xp.all(finite)):
            continue
        rows, columns = xp.nonzero(~finite)
        if first is None:
            row, column = int(rows[0]), int(columns[0])
            first = start + row, column, bool(xp.isnan(block[row, column]))
        n_entries += rows.shape[0]
        n_rows += int(xp.sum(xp.astype(~xp.all(finite, axis=1), xp.int64)))
    return None if first is None else NotFinite(*first, n_entries, n_rows)

"""From an array as the user gave it to rows that solvers can scan: weights, norms, units."""

from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.geometry import namespace
from perpend.rows.array import BLOCK_ENTRIES, cut, rows_of
from perpend.rows.kinds import (
    Place,
    in_memory,
    is_elsewhere,
    is_lazy,
    is_tensor,
    numpy_dtype,
    room,
    to_numpy,
)
from perpend.rows.lazy import Computed, LazyRows
from perpend.rows.source import NEW_SOURCE, RowSource

N_NORMS = 64
"""Number of quantiles that stand for the norms of all rows."""

NARROW = 16  # columns up to which their maxima are taken one by one

ENTRIES, ENTRIES_OF_TENSOR = 2**16, 2**24
"""Entries checked together; the flags of a tensor's block take 16 MiB."""


def check_source(rows: Any) -> None:
    """Raise an error if these are no rows that can be scanned, such as an array."""
    if not hasattr(rows, "scan"):
        raise InputError(
            f"rows is of type {type(rows).__name__}; expected rows of perpend.as_rows. Give "
            "as_rows(X), or use the class of the method, which takes X as it is."
        )


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
        A tensor's rows are read where they are, on a GPU as well, and those of a Dask array on its
        workers.
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
    if is_elsewhere(X):
        from perpend.rows.blocks import rows_elsewhere

        source = rows_elsewhere(X, weight=weight, mask=mask, normalize=normalize, fused=fused)
        return _watched(source)
    if is_tensor(X):
        X = in_memory(Place.checked("X", X))
    xp, limits, norms = namespace(X), np.finfo(numpy_dtype(X)), row_norms(X)
    finite = to_numpy(xp.isfinite(norms))
    if not finite.all():
        row = int(np.argmin(finite))
        raise InputError(
            f"The norm of row {row} of X is too large for {numpy_dtype(X)}. Divide X by a "
            f"constant, for example by 1e{int(np.log10(float(xp.max(xp.abs(X[row])))))}."
        )
    takes_part = norms > 0
    if mask is not None:
        takes_part = takes_part & _beside(X, mask, xp.bool)
    if weight is not None:
        weight = _beside(X, weight, xp.float64)
        takes_part = takes_part & (weight > 0)
    all_present = bool(xp.all(takes_part))
    weight = None if weight is None and all_present else _weights(takes_part, weight, X)
    present = norms if all_present else norms[takes_part]  # there may be very many rows
    divisor, lengths, unit, quantiles = None, None, 1.0, None
    if normalize:
        lengths = norms
        X, norms = without_subnormal_norms(X, norms)
        if len(present) and _farthest_from_one(present) > 8 * float(limits.eps):
            divisor = norms if all_present else xp.where(norms > 0, norms, xp.ones_like(norms))
    elif len(present):
        # A power of two loses no digit, and step rules made for unit rows then work here, too.
        unit = power_of_two(float(xp.max(present)), far=3)
        # Rows that do not take part may be of any size, and 0 * inf is not 0: none may overflow.
        divisor = xp.where(takes_part | (norms < unit), xp.full_like(norms, unit), norms)
        divisor = None if xp.all(divisor == 1) else divisor
        levels = np.append((np.arange(N_NORMS) + 0.5) / N_NORMS, 1.0)  # the largest comes last
        quantiles = np.quantile(to_numpy(present / unit), levels)
    prepared = rows_of(
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
        fused=fused,
    )
    return _watched(prepared)


def _weights(takes_part: Array, weight: Array | None, X: Array) -> Array:
    """Return the weights of all rows in the type of X, 0 for those that take no part."""
    xp = namespace(takes_part)
    if weight is None:
        return xp.astype(takes_part, X.dtype)
    weight = xp.astype(takes_part, xp.float64) * weight
    far = np.finfo(numpy_dtype(X)).maxexp / 8
    return xp.astype(weight / power_of_two(float(xp.max(weight)), far=far), X.dtype)


def _watched(source: RowSource) -> RowSource:
    """Return the source, wrapped by whatever records it, such as a checkpoint."""
    watch = NEW_SOURCE.get()
    return source if watch is None else watch(source)


def _beside(X: Array, values: Array, dtype: Any) -> Array:
    """Return a value for each row as an array of X's kind, where X is."""
    if not (is_tensor(X) and is_tensor(values)):
        values = np.array(to_numpy(values))  # a copy, as torch shares and warns about read-only
    return namespace(X).asarray(values, dtype=dtype, device=X.device)


def row_blocks(X: Array, entries: int) -> list[slice]:
    """Return blocks of the rows of X with so many entries, or more of a tensor."""
    size = max(1, (ENTRIES_OF_TENSOR if is_tensor(X) else entries) // max(1, X.shape[1]))
    return cut(slice(0, X.shape[0]), size)


def row_norms(X: Array) -> Array:
    """Return the Euclidean norms of the rows, right even if their squares over- or underflow.

    >>> row_norms(np.array([[3e-200, 4e-200], [3e200, 4e200], [0.0, 0.0]]))
    array([5.e-200, 5.e+200, 0.e+000])
    """
    if is_lazy(X):
        return X.survey.norms
    xp = namespace(X)
    if X.shape[1] == 0:
        return xp.sum(X, axis=1)
    norms = room(X, X.shape[0])
    for rows in row_blocks(X, BLOCK_ENTRIES):
        A = xp.abs(X[rows])
        # NumPy takes 70 times as long for the maxima of short rows as for those of two columns.
        narrow = not is_tensor(X) and A.shape[1] <= NARROW
        largest = reduce(np.maximum, A.T) if narrow else xp.max(A, axis=1)
        scaled = X[rows] / xp.where(largest > 0, largest, xp.ones_like(largest))[:, None]
        if is_tensor(X):
            relative = xp.linalg.vector_norm(scaled, axis=1)
        else:
            relative = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
        with np.errstate(over="ignore"):  # then inf; `as_rows` tells the user which row
            norms[rows] = largest * relative
    return norms


def without_subnormal_norms(X: Array, norms: Array) -> tuple[Array, Array]:
    """Enlarge rows so small that their norm has lost its digits; their directions stay."""
    xp, limits = namespace(X), np.finfo(numpy_dtype(X))
    (faint,) = xp.nonzero((norms > 0) & (norms < float(limits.tiny)))
    if len(faint):
        norms, larger = xp.asarray(norms, copy=True), 1 / float(limits.eps) ** 2
        norms[faint] = row_norms(X[faint] * larger)
        if is_lazy(X):
            factor = np.ones_like(norms)
            factor[faint] = larger
            return Computed(X, _times, n_features=X.shape[1], beside=(factor,)), norms
        X = xp.asarray(X, copy=True)
        X[faint] *= larger  # a power of two: exact
    return X, norms


def _farthest_from_one(norms: Array) -> float:
    xp = namespace(norms)
    return max(float(xp.max(norms)) - 1, 1 - float(xp.min(norms)))


def _times(rows: Array, factor: Array) -> Array:
    return rows * factor[:, None]


def power_of_two(size: float, *, far: float) -> float:
    """Return a power of two near `size`, or 1 where the exponent is less than `far` from zero."""
    exponent = float(np.log2(size)) if size > 0 else 0.0
    return 1.0 if abs(exponent) < far else float(2.0 ** np.floor(exponent))


def check_powers(size: float, power: int, what: str) -> None:
    """Refuse rows of a size whose power is no number in float64, or a sum of such powers."""
    if size and not abs(np.log10(size)) < 300 / power:  # the largest number is 1.8e308
        raise InputError(
            f"{what} {size:.0e}, too far from 1 to compute with its powers. Divide X by a "
            f"constant, for example by {size:.0e}."
        )


class NotFinite(NamedTuple):
    """Where entries are NaN or infinite."""

    row: int  # the first
    column: int
    is_nan: bool
    n_entries: int
    n_rows: int


def not_finite(X: Array, *, nan: bool = True) -> NotFinite | None:
    """Return the first entry of X (n, D) that is NaN or infinite and how many there are, or None.

    Unless `nan`, only infinite entries count.

    >>> import numpy as np
    >>> not_finite(np.array([[1.0, 2.0], [np.inf, 3.0]]))
    NotFinite(row=1, column=0, is_nan=False, n_entries=1, n_rows=1)
    """
    if is_lazy(X):
        return _first_of(X)
    xp = namespace(X)
    first: tuple[int, int, bool] | None = None
    n_entries = n_rows = 0
    for rows in row_blocks(X, ENTRIES):
        block = X[rows, :]
        finite = xp.isfinite(block) if nan else ~xp.isinf(block)
        if bool(xp.all(finite)):
            continue
        at_rows, at_columns = xp.nonzero(~finite)
        if first is None:
            row, column = int(at_rows[0]), int(at_columns[0])
            first = rows.start + row, column, bool(xp.isnan(block[row, column]))
        n_entries += at_rows.shape[0]
        n_rows += int(xp.sum(xp.astype(~xp.all(finite, axis=1), xp.int64)))
    return None if first is None else NotFinite(*first, n_entries, n_rows)


def _first_of(X: LazyRows) -> NotFinite | None:
    """Put together what is not finite in windows of rows."""
    seen = [(w.start, bad) for w, bad in zip(X.windows, X.survey.bad, strict=True) if bad]
    if not seen:
        return None
    start, first = seen[0]
    n_entries, n_rows = (sum(part) for part in zip(*(bad[3:] for _, bad in seen), strict=True))
    return NotFinite(start + first.row, first.column, first.is_nan, n_entries, n_rows)

"""One call for every kind of array: NumPy arrays and torch tensors.

torch is not imported here: where nobody has imported it, there is no tensor.
"""

import sys
from typing import Any

import numpy as np

from perpend._typing import Array
from perpend.rows import norms, preparation
from perpend.rows.array import MEMORY_BUDGET
from perpend.rows.source import Kept, RowSource

READ_AS_NUMPY = {"cpu"}
"""Devices whose tensors are read as NumPy arrays that share their memory. There our own blocks over
BLAS are several times faster than torch's products."""


def is_tensor(X: Any) -> bool:
    """Tell whether X is a torch tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(X, torch.Tensor)


def to_numpy(A: Any) -> Array:
    """Return A as a NumPy array; a tensor is brought to memory."""
    return A.detach().cpu().resolve_neg().numpy() if is_tensor(A) else np.asarray(A)


def in_memory(X: Array) -> Array:
    """Return a tensor in the computer's memory as a NumPy array that shares it; others as is."""
    return X.resolve_neg().numpy() if is_tensor(X) and X.device.type in READ_AS_NUMPY else X


def like(A: Array, X: Array) -> Array:
    """Return the small array A as an array of X's kind, device and precision."""
    if not is_tensor(X):
        A = to_numpy(A)
        return A.astype(X.dtype, copy=False) if X.dtype in (np.float32, np.float64) else A
    return A.to(device=X.device, dtype=X.dtype) if is_tensor(A) else X.new_tensor(A)


def stand_in(X: Array) -> Array:
    """Return an array like the tensor X, but all zeros and without memory; shapes can be checked.

    A tensor that is no matrix is copied instead: complaints about it quote its entries.
    """
    if X.ndim < 2:
        return to_numpy(X)
    dtype = "complex128" if X.is_complex() else str(X.dtype).removeprefix("torch.")
    return np.broadcast_to(np.zeros((), dtype), tuple(X.shape))


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
        Whether a fused kernel may serve the descents, where a GPU has one. It is faster and rounds
        to about 16 bits, as the source's `precision` then says.

    Returns
    -------
    RowSource
        What the methods as functions take.
    """
    if is_tensor(X):
        from perpend.rows.tensors import checked_tensor, torch_rows

        X = checked_tensor("X", X)
        if is_tensor(in_memory(X)):
            return torch_rows(
                X,
                weight=weight,
                mask=mask,
                normalize=normalize,
                memory_budget=memory_budget,
                block_rows=block_rows,
                fused=fused,
            )
    return preparation.as_rows(
        in_memory(X),
        weight=None if weight is None else to_numpy(weight),
        mask=None if mask is None else to_numpy(mask),
        normalize=normalize,
        memory_budget=MEMORY_BUDGET if memory_budget is None else memory_budget,
        block_rows=block_rows,
        n_jobs=n_jobs,
    )


def row_norms(X: Array) -> Array:
    """Return the Euclidean norms of the rows, right also where their squares over- or underflow."""
    if is_tensor(X):
        from perpend.rows.tensors import row_norms

        return row_norms(X)
    return norms.row_norms(X)


def per_row(rows: RowSource, kept: Kept) -> Array:
    """Return values kept with the rows as one array of the rows' kind, where the rows are."""
    collect = getattr(rows, "collect", rows.gather)
    return collect(kept)

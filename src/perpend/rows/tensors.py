"""From a user's tensor to rows: what is accepted, norms, weights and units.

The semantics are those of `perpend.rows.preparation.as_rows`, on the device where the tensor is.
"""

from typing import Any

import numpy as np
import torch

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.rows.kinds import to_numpy
from perpend.rows.preparation import N_NORMS, power_of_two
from perpend.rows.torch import TorchRows, numpy_dtype


def torch_rows(
    X: Array,
    *,
    weight: Array | None = None,
    mask: Array | None = None,
    normalize: bool = True,
    memory_budget: int | None = None,
    block_rows: int | None = None,
    fused: bool = True,
) -> TorchRows:
    """Return the rows of the tensor X (n, D) as a source that solvers can scan.

    The parameters are those of `perpend.as_rows`. Weight and mask may be tensors or NumPy arrays.
    """
    limits = torch.finfo(X.dtype)
    norms = row_norms(X)
    _check_norms(X, norms)
    weight = None if weight is None else _like(weight, X, torch.float64)
    takes_part = norms > 0
    if mask is not None:
        takes_part = takes_part & _like(mask, X, torch.bool)
    if weight is not None:
        takes_part = takes_part & (weight > 0)
    if weight is not None or not bool(takes_part.all()):
        weight = takes_part.to(torch.float64) if weight is None else takes_part * weight
        far = np.finfo(numpy_dtype(X)).maxexp / 8
        weight = (weight / power_of_two(float(weight.max()), far=far)).to(X.dtype)
    present = norms[takes_part]
    divisor, lengths, unit, quantiles = None, None, 1.0, None
    if normalize:
        lengths = norms
        X, norms = _without_subnormal_norms(X, norms)
        if bool(((present - 1).abs() > 8 * limits.eps).any()):
            divisor = torch.where(norms > 0, norms, 1)
    elif len(present):
        # A power of two loses no digit, and step rules made for unit rows then work here, too.
        unit = power_of_two(float(present.max()), far=3)
        # Rows that do not take part may be of any size, and 0 * inf is not 0: none may overflow.
        divisor = torch.where(takes_part, unit, norms.clamp(min=unit))
        divisor = None if bool((divisor == 1).all()) else divisor
        levels = np.append((np.arange(N_NORMS) + 0.5) / N_NORMS, 1.0)  # the largest comes last
        quantiles = np.quantile(to_numpy(present / unit), levels)
    return TorchRows(
        X,
        weight=weight,
        divisor=divisor,
        store_quotients=normalize,
        lengths=lengths,
        norms=quantiles,
        unit=unit,
        memory_budget=memory_budget,
        block_rows=block_rows,
        fused=fused,
    )


def checked_tensor(name: str, X: Array) -> Array:
    """Return a dense tensor in single or double precision, or say why X can't be used.

    Shorter floats become single and integers double; complex tensors stay as they are.
    """
    if X.requires_grad:
        raise InputError(
            f"{name} requires grad, and perpend computes no derivatives. Pass {name}.detach()."
        )
    if X.device.type == "meta":
        raise InputError(f"{name} is on the meta device, which holds shapes without numbers.")
    if X.layout != torch.strided:
        raise InputError(
            f"{name} is a sparse tensor ({X.layout}); expected a dense one. Pass {name}.to_dense()."
        )
    if X.dtype in (torch.float32, torch.float64) or X.dtype.is_complex:
        return X
    return X.to(torch.float32 if X.dtype.is_floating_point else torch.float64)


def row_norms(X: Array) -> Array:
    """Return the Euclidean norms of the rows, right even if their squares over- or underflow."""
    norms = X.new_empty(len(X))
    for rows in TorchRows(X).blocks(0):
        largest = torch.linalg.vector_norm(X[rows], ord=float("inf"), dim=1)
        scaled = X[rows] / torch.where(largest > 0, largest, 1)[:, None]
        norms[rows] = largest * torch.linalg.vector_norm(scaled, dim=1)
    return norms


def _check_norms(X: Array, norms: Array) -> None:
    finite = torch.isfinite(norms)
    if bool(finite.all()):
        return
    row = int(torch.argmin(finite.to(torch.uint8)))
    size = int(np.log10(float(X[row].abs().max())))
    raise InputError(
        f"The norm of row {row} of X is too large for {numpy_dtype(X)}. "
        f"Divide X by a constant, for example by 1e{size}."
    )


def _without_subnormal_norms(X: Array, norms: Array) -> tuple[Array, Array]:
    """Enlarge rows so small that their norm has lost its digits; their directions stay."""
    limits = torch.finfo(X.dtype)
    faint = torch.nonzero((norms > 0) & (norms < limits.tiny))[:, 0]
    if len(faint):
        X, norms = X.clone(), norms.clone()
        X[faint] /= limits.eps**2  # a power of two: exact
        norms[faint] = row_norms(X[faint])
    return X, norms


def _like(values: Array, X: Array, dtype: Any) -> Array:
    if not isinstance(values, torch.Tensor):
        values = torch.tensor(np.asarray(values))
    return values.to(device=X.device, dtype=dtype)

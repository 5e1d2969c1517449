"""Rows of a torch tensor, read in large blocks where the tensor lives: on a GPU or in memory.

The semantics are those of `perpend.rows.array`; only sums and the values that solvers need leave
the device. This module is imported when the first tensor is seen.
"""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import cached_property
from typing import Any

import numpy as np
import torch

from perpend._typing import Array, Kernel
from perpend.kernels import Contribution, l1_objective_and_gradient
from perpend.rows.array import MEMORY_BUDGET, ArrayRows, Sums
from perpend.rows.kinds import to_numpy

SCRATCH_CPU, SCRATCH_GPU = 2**22, 2**28
"""Bytes that a kernel may fill with what it makes of one block: 4 MiB in memory, where that should
stay in a cache, and 256 MiB on a GPU, which needs long blocks to be busy."""

GROUP_ROWS = 256
"""Rows that are summed in their own precision; these sums are added up in float64. Otherwise single
precision would lose digits as blocks get longer."""

CODE = 32
"""Values in a one-hot code of a bin: two of them tell 1024 bins apart."""

FUSED_DEVICES = {"cuda"}
"""Where `perpend.kernels.cuda` may have a fused twin of a kernel."""

FUSED_NORMS = (1e-30, 1e30)
"""Sizes of rows whose products are safe there, where numbers have single precision's range."""


class TorchRows(ArrayRows):
    """Rows of a tensor (n, D) on its device; on a GPU, all that is free may be used by default."""

    _blocks_in_sum = sys.maxsize  # all

    @staticmethod
    def _products() -> AbstractContextManager[Any]:
        return full_precision()

    @property
    def precision(self) -> float:
        """The relative rounding error of the products in a descent."""
        return super().precision if self._twin is None else float(self._twin.precision)

    def _block_size(self, width: int, *, plain: bool) -> int:  # noqa: ARG002
        """Return the rows in a block.

        The scratch of a row: quotient, weighted rows, sums of a group (D entries each), four values
        for each column, and two one-hot codes of 32. Whole groups, so that few products are odd.
        """
        if self._given_block_rows:
            return self._given_block_rows
        scratch = SCRATCH_CPU if self._X.device.type == "cpu" else SCRATCH_GPU
        size: int = scratch // (self.dtype.itemsize * (3 * self.shape[1] + 4 * width + 64))
        return max(GROUP_ROWS, size - size % self._group_rows)

    @property
    def _group_rows(self) -> int:
        """Rows in a group; not fewer than features, or the sums of a group would outweigh it."""
        return max(GROUP_ROWS, self.shape[1])

    def _as_param(self, param: Any) -> Any:
        if isinstance(param, np.ndarray) and param.dtype.kind == "f":
            values = np.ascontiguousarray(param, dtype=self.dtype).reshape(param.shape)
            return torch.tensor(values, device=self._X.device)
        return param

    def _as_index(self, indices: Array) -> Array:
        return torch.tensor(np.asarray(indices), dtype=torch.int64, device=self._X.device)

    # -- sums --------------------------------------------------------------------------------------

    def _weighted_total(self, part: Contribution, rows: slice) -> Array | None:
        if part.total is None:
            return None
        total = part.total if self._weight is None else part.total * self._weight[rows, None]
        return total.sum(dim=0, dtype=torch.float64)

    def _weighted_product(self, part: Contribution, rows: slice) -> Array | None:
        left, right = part.left, part.right
        if part.factor is not None:
            left = right = torch.sqrt(part.factor)[:, None] * right
        elif part.bins is not None:
            left, right = _codes(*part.bins, self._X.dtype)
        if left is None:
            return None
        left = left if self._weight is None else left * self._weight[rows, None]
        with full_precision():
            product = _product(left, right, self._group_rows)
        return product if part.bins is None else product.ravel()[: part.bins[1]]

    # -- the fused twin ----------------------------------------------------------------------------

    def _sums_of_twin(self, kernel: Kernel, params: tuple[Any, ...]) -> Sums | None:
        if kernel is not l1_objective_and_gradient or self._twin is None:
            return None
        total, product = self._twin.l1_objective_and_gradient(*params, self._twin_weight)
        return to_numpy(total), to_numpy(product)

    @cached_property
    def _twin(self) -> Any:
        """The fused twin of the descents' kernel, made when first used; None where none fits."""
        if not self._fused or self._X.device.type not in FUSED_DEVICES:
            return None
        if self._divisor is not None and not bool(
            ((self._divisor > FUSED_NORMS[0]) & (self._divisor < FUSED_NORMS[1])).all()
        ):
            return None
        try:
            from perpend.kernels.cuda import prepare
        except ImportError:
            return None
        return prepare(self._X)

    @cached_property
    def _twin_weight(self) -> Array | None:
        """Its weights: |x / d| = |x| / d and sign(x / d) = sign(x), so a divisor is a weight."""
        if self._divisor is None:
            return self._weight
        return 1 / self._divisor if self._weight is None else self._weight / self._divisor

    # -- memory ------------------------------------------------------------------------------------

    def _room(self) -> int:
        device = self._X.device
        if self._budget is not None or device.type != "cuda":
            return MEMORY_BUDGET if self._budget is None else self._budget
        free, _ = torch.cuda.mem_get_info(device)
        # torch holds on to what it has used once, and uses it again; a kernel needs its scratch.
        idle = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return max(0, int(free) + int(idle) - 2 * SCRATCH_GPU)

    def _store_quotients(self, divisor: Array) -> None:
        # A free choice leaves as much again for a fused twin, which is worth more than quotients.
        if self._budget is None and 2 * self._X.nbytes > self._room():
            return
        with suppress(torch.cuda.OutOfMemoryError):  # others use the device, too
            super()._store_quotients(divisor)

    def _room_for(self, sample: Array) -> Array | None:
        with suppress(torch.cuda.OutOfMemoryError):
            return super()._room_for(sample)
        return None


@contextmanager
def full_precision() -> Iterator[None]:
    """Let products of single-precision tensors keep all their digits.

    Users may allow torch to round the factors to 11 or 8 bits (TF32, bfloat16), which suits neural
    networks. Our products decide about signs, ranks and zeros: they need every digit. The setting
    is torch's own, for the whole process, and is put back afterwards.
    """
    with ExitStack() as afterwards:
        try:
            before = torch.get_float32_matmul_precision()
        except RuntimeError:  # torch refuses to sum up settings made one by one
            for switch in (torch.backends.cuda.matmul, torch.backends.mkldnn.matmul):
                afterwards.callback(setattr, switch, "fp32_precision", switch.fp32_precision)
                switch.fp32_precision = "ieee"
        else:
            if before != "highest":
                afterwards.callback(torch.set_float32_matmul_precision, before)
                torch.set_float32_matmul_precision("highest")
        yield


def _product(left: Array, right: Array, group: int) -> Array:
    """Return left.T @ right, summed in float64 over groups of rows."""
    whole = len(left) - len(left) % group
    if not whole:
        return left.mT @ right
    L, R = (A[:whole].reshape(whole // group, group, -1) for A in (left, right))
    total = torch.bmm(L.mT, R).sum(dim=0, dtype=torch.float64)
    return total if whole == len(left) else total + left[whole:].mT @ right[whole:]


def _codes(bins: Array, n_bins: int, dtype: Any) -> tuple[Array, Array]:
    """Return two short one-hot codes of the bins, whose product counts them.

    One code of length n_bins would cost as many values a row, and torch.bincount adds up weights in
    another order each time.
    """
    sizes = -(-n_bins // CODE), CODE
    parts = bins // CODE, bins % CODE
    row, column = (
        (part[:, None] == torch.arange(size, device=bins.device)).to(dtype)
        for part, size in zip(parts, sizes, strict=True)
    )
    return row, column

"""Rows of a torch tensor, read in large blocks where the tensor lives: on a GPU or in memory.

The semantics are those of `perpend.rows.array`; only sums and the values that solvers need leave
the device. `perpend.rows.tensors` makes such rows of what users pass; both modules are imported
when the first tensor is seen.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np
import torch

from perpend._typing import Array, Kernel
from perpend.kernels import Contribution, l1_objective_and_gradient
from perpend.rows.array import MEMORY_BUDGET
from perpend.rows.kinds import to_numpy
from perpend.rows.precision import full_precision
from perpend.rows.source import Kept, Scan

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


class TorchRows:
    """Rows of a tensor (n, D), float32 or float64, on its device.

    Kernels see ``X[i] / divisor[i]``. The quotients are stored once if `store_quotients` and if
    there is room, and formed block by block otherwise; with ``divisor=None`` the tensor itself is
    used, uncopied. A block is named by its slice of the rows.
    """

    def __init__(
        self,
        X: Array,
        *,
        weight: Array | None = None,
        divisor: Array | None = None,
        store_quotients: bool = True,
        lengths: Array | None = None,
        norms: Array | None = None,
        unit: float = 1.0,
        memory_budget: int | None = None,
        block_rows: int | None = None,
        fused: bool = True,
    ) -> None:
        if memory_budget is None and X.device.type == "cpu":
            memory_budget = MEMORY_BUDGET
        self._budget = memory_budget  # None: whatever is free on the device
        self._X, self._divisor = X, divisor
        if divisor is not None and store_quotients:
            self._store_quotients(divisor)
        self._weight, self._lengths = weight, lengths
        self._block_rows = block_rows
        self._fused = fused
        self.norms = np.ones(1) if norms is None else norms
        self.unit = unit

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and of features."""
        n, D = self._X.shape
        return n, D

    @property
    def dtype(self) -> Any:
        """The floating-point type of the rows, as NumPy names it."""
        return numpy_dtype(self._X)

    @property
    def precision(self) -> float:
        """The relative rounding error of the products in a descent."""
        if self._twin is not None:
            return float(self._twin.precision)
        return float(np.finfo(self.dtype).eps)

    @cached_property
    def total_weight(self) -> float:
        """The sum of the weights of all rows that take part."""
        if self._weight is None:
            return float(self.shape[0])
        return float(self._weight.sum(dtype=torch.float64))

    @property
    def weights(self) -> Kept:
        """The weight of each row; 0 for rows that do not take part."""
        return Kept(lambda rows: self._ones(rows) if self._weight is None else self._weight[rows])

    @property
    def lengths(self) -> Kept:
        """The norm that each row had as it was given, up to a common factor."""
        return Kept(lambda rows: self._ones(rows) if self._lengths is None else self._lengths[rows])

    def scan(
        self, kernel: Kernel, *params: Any, using: tuple[Kept, ...] = (), keep: bool = False
    ) -> Scan:
        """Run `kernel` over all blocks and add up what it gives, always in the same order.

        Sums are formed in the rows' own precision within a group of rows and in float64 beyond.
        """
        params = tuple(self._as_param(p) for p in params)
        if kernel is l1_objective_and_gradient and not keep and self._twin is not None:
            total, product = self._twin.l1_objective_and_gradient(*params, self._twin_weight)
            return Scan(to_numpy(total), to_numpy(product), None)

        def contribution(rows: slice) -> Contribution:
            block = self._block(rows)
            with full_precision():
                part: Contribution = kernel(block, *params, *(k.piece(rows) for k in using))
            return part._replace(right=block) if part.right is None else part

        store = total = product = None
        for rows in self.blocks(_width(params)):
            part = contribution(rows)
            if keep and rows.start == 0:
                store = self._room_for(part.kept)
            if store is not None:
                store[rows] = part.kept
            total = _add(total, self._weighted_total(part, rows))
            product = _add(product, self._weighted_product(part, rows))
        kept = self._kept(contribution, store) if keep else None
        return Scan(_brought(total), _brought(product), kept)

    def collect(self, kept: Kept) -> Array:
        """Return per-row values as one tensor on the device, in the order of the rows."""
        return torch.cat([kept.piece(rows) for rows in self.blocks(self.shape[1])])

    def gather(self, kept: Kept) -> Array:
        """Bring per-row values to memory, in the order of the rows."""
        return to_numpy(self.collect(kept))

    def take(self, indices: Array) -> Array:
        """Bring a few rows to memory, as the kernels see them."""
        return to_numpy(self._taken(self._as_index(indices)))

    def subset(self, indices: Array) -> "TorchRows":
        """Return some rows as a source of their own, with their weights; they are copied."""
        index = self._as_index(indices)
        return TorchRows(
            self._taken(index),
            weight=None if self._weight is None else self._weight[index],
            lengths=None if self._lengths is None else self._lengths[index],
            norms=self.norms,
            unit=self.unit,
            memory_budget=self._budget,
            fused=self._fused,
        )

    def mapped(self, A: Array, *, rescale: bool = False) -> "TorchRows | None":
        """Return the rows times A (D, R); with `rescale` each is scaled to the norm that it had."""
        n, R = self.shape[0], A.shape[1]
        n_bytes = n * R * self._X.element_size()
        if n_bytes > self._room():
            return None
        A, Y = self._as_param(A), self._X.new_empty((n, R))
        for rows in self.blocks(R):
            with full_precision():
                X = self._block(rows)
                Y[rows] = X @ A
            if rescale:
                norm = (Y[rows] * Y[rows]).sum(dim=1).sqrt()
                own = (X * X).sum(dim=1).sqrt()
                Y[rows] *= (own / norm.where(norm > 0, norm.new_ones(())))[:, None]
        return TorchRows(
            Y,
            weight=self._weight,
            lengths=self._lengths,
            norms=self.norms,
            unit=self.unit,
            memory_budget=None if self._budget is None else self._budget - n_bytes,
            fused=self._fused,
        )

    # -- blocks ------------------------------------------------------------------------------------

    def blocks(self, width: int) -> list[slice]:
        """Return the blocks of a scan whose kernel forms products with `width` columns.

        The scratch of a row: quotient, weighted rows, sums of a group (D entries each), four values
        for each column, and two one-hot codes of 32. Whole groups, so that few products are odd.
        """
        n, D = self.shape
        step = self._block_rows
        if step is None:
            scratch = SCRATCH_CPU if self._X.device.type == "cpu" else SCRATCH_GPU
            step = scratch // (self._X.element_size() * (3 * D + 4 * width + 64))
            step = max(GROUP_ROWS, step - step % self._group_rows)
        return [slice(i, min(i + step, n)) for i in range(0, n, step)]

    @property
    def _group_rows(self) -> int:
        """Rows in a group; not fewer than features, or the sums of a group would outweigh it."""
        return max(GROUP_ROWS, self.shape[1])

    def _block(self, rows: slice) -> Array:
        X = self._X[rows]
        return X if self._divisor is None else X / self._divisor[rows, None]

    def _taken(self, index: Array) -> Array:
        X = self._X[index]
        return X if self._divisor is None else X / self._divisor[index, None]

    def _ones(self, rows: slice) -> Array:
        return self._X.new_ones(rows.stop - rows.start)

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
        if part.bins is not None:
            left, right = _codes(*part.bins, self._X.dtype)
        if left is None:
            return None
        left = left if self._weight is None else left * self._weight[rows, None]
        with full_precision():
            product = _product(left, right, self._group_rows)
        return product if part.bins is None else product.ravel()[: part.bins[1]]

    # -- the fused twin ----------------------------------------------------------------------------

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
        """Return how many bytes may still be kept beside X."""
        return free_memory(self._X.device) if self._budget is None else self._budget

    def _store_quotients(self, divisor: Array) -> None:
        """Store the rows as the kernels see them, if there is room."""
        # A free choice leaves as much again for a fused twin, which is worth more than quotients.
        needed = self._X.nbytes if self._budget is not None else 2 * self._X.nbytes
        if needed > self._room():
            return
        with suppress(torch.cuda.OutOfMemoryError):  # others use the device, too
            self._X, self._divisor = self._X / divisor[:, None], None
            self._budget = None if self._budget is None else self._budget - needed

    def _room_for(self, sample: Array) -> Array | None:
        """Return an empty tensor for the kept values of all rows, or None if there is no room."""
        shape = (self.shape[0], *sample.shape[1:])
        if int(np.prod(shape)) * sample.element_size() > self._room():
            return None
        with suppress(torch.cuda.OutOfMemoryError):
            return sample.new_empty(shape)
        return None

    def _kept(self, contribution: Callable[[slice], Contribution], store: Array | None) -> Kept:
        if store is None:
            return Kept(lambda rows: contribution(rows).kept)
        return Kept(lambda rows: store[rows])


def numpy_dtype(X: Array) -> Any:
    """Return NumPy's name for the type of a tensor of floats."""
    return np.dtype("float32" if X.dtype == torch.float32 else "float64")


def free_memory(device: Any) -> int:
    """Return the bytes that can be kept on a GPU while a kernel still has its scratch."""
    if device.type != "cuda":
        return MEMORY_BUDGET
    free, _ = torch.cuda.mem_get_info(device)
    # torch holds on to what it has used once, and uses it again.
    idle = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return max(0, int(free) + int(idle) - 2 * SCRATCH_GPU)


def _product(left: Array, right: Array, group: int) -> Array:
    """Return left.T @ right, summed in float64 over groups of rows."""
    n = len(left)
    whole = n - n % group
    total = None
    if whole:
        L, R = (A[:whole].reshape(whole // group, group, -1) for A in (left, right))
        total = torch.bmm(L.mT, R).sum(dim=0, dtype=torch.float64)
    if whole < n:
        total = _add(total, left[whole:].mT @ right[whole:])
    return total


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


def _width(params: tuple[Any, ...]) -> int:
    """Return the number of columns of the widest matrix among the parameters of a kernel."""
    return max((p.shape[1] for p in params if getattr(p, "ndim", 0) == 2), default=0)


def _add(total: Array | None, part: Array | None) -> Array | None:
    if part is None:
        return total
    if total is None:
        return part.to(torch.float64)
    total += part
    return total


def _brought(total: Array | None) -> Array | None:
    return None if total is None else to_numpy(total)

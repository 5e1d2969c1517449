"""Rows on the device, ready for the fused kernels.

Both classes compute `l1_objective_and_gradient` for any number of columns, a few at a time. Each
block of the grid leaves its sums in a slot of its own, and one ordered sum in float64 follows: the
same call gives the same bits again. A sum in float32 runs over a limited number of rows, because
tensor cores round towards zero and the error grows with it; more rows take more launches.
"""

from functools import cache
from typing import Any

from perpend._typing import Array
from perpend.kernels.cuda.compiler import Module, long, pointer, whole
from perpend.kernels.cuda.plan import RowPlan, TilePlan, macros, row_plan, tile_plan

LONGEST_TILED = 8192  # rows of one team; float64 sums have no limit
LONGEST_PLAIN = 32 * 4096  # rows of one warp: 4096 of each thread


class _Device:
    """The device that holds a tensor, and the kernels that are loaded there."""

    def __init__(self, X: Array) -> None:
        import torch

        self.device = X.device
        properties = torch.cuda.get_device_properties(X.device)
        self.multiprocessors = int(properties.multi_processor_count)
        self._architecture = f"sm_{properties.major}{properties.minor}"
        self._own: dict[RowPlan, Module] = {}
        self.slots = _loaded_sum(self._architecture, X.device.index)

    def module(self, plan: TilePlan | RowPlan) -> Module:
        """Return the kernel of this plan, compiled at the first call."""
        if isinstance(plan, TilePlan):
            return _loaded(plan, self._architecture, self.device.index)
        if plan not in self._own:  # it holds B: not to be shared with rows on another stream
            self._own[plan] = _load(plan, self._architecture)
        return self._own[plan]

    def sum_slots(self, slots: Array, stream: int) -> Array:
        """Return the sum over slots, in order."""
        import torch

        count, size = slots.shape
        values = torch.empty(size, dtype=torch.float64, device=self.device)
        arguments = [pointer(slots), whole(count), whole(size), pointer(values)]
        self.slots.launch("sum_slots", -(-size // 32), (32, 32), arguments, stream)
        return values


def _load(plan: TilePlan | RowPlan, architecture: str) -> Module:
    return Module(plan.sources, macros(plan), architecture, plan.shared_bytes)


@cache
def _loaded(plan: TilePlan, architecture: str, device: int) -> Module:  # noqa: ARG001
    """Return the kernel of this plan; one on each device serves all rows there."""
    return _load(plan, architecture)


@cache
def _loaded_sum(architecture: str, device: int) -> Module:  # noqa: ARG001
    """Return the ordered sum over slots, likewise."""
    return Module(("slots.cu",), (), architecture)


class Prepared:
    """Rows that a fused kernel can read; see `prepare`.

    Attributes
    ----------
    precision : float
        Relative rounding error of the products.
    n, D : int
        Rows and features.
    """

    precision: float
    _longest: int | None  # rows in one sum

    def __init__(self, X: Array) -> None:
        self.n, self.D = (int(size) for size in X.shape)
        self._device = _Device(X)

    def l1_objective_and_gradient(
        self, B: Array, weight: Array | None = None
    ) -> tuple[Array, Array]:
        """Return f_j = sum_i w_i |x_i.b_j| (k,) and G = sign(X B).T (w X) (k, D), in float64.

        Both stay on the device, and nothing waits for them. Calls on the same rows belong on one
        stream, and B must have a column.
        """
        import torch

        with torch.cuda.device(self._device.device):
            stream = torch.cuda.current_stream().cuda_stream
            B = B.to(device=self._device.device, dtype=torch.float64).contiguous()
            self._check(B, weight)
            k = B.shape[1]
            totals, products = [], []
            column = 0
            while column < k:
                total, product = self._chunk(B, column, weight, stream)
                count = min(total.shape[0], k - column)
                totals.append(total[:count])
                products.append(product[:count, : self.D])
                column += count
        if len(totals) == 1:
            return totals[0], products[0]
        return torch.cat(totals), torch.cat(products)

    def _check(self, B: Array, weight: Array | None) -> None:
        """Refuse what a kernel would read beyond its end."""
        if B.ndim != 2 or B.shape[0] != self.D or B.shape[1] == 0:
            raise ValueError(f"B must have shape ({self.D}, k > 0), got {tuple(B.shape)}")
        if weight is not None and tuple(weight.shape) != (self.n,):
            raise ValueError(f"weight must have shape ({self.n},), got {tuple(weight.shape)}")

    def _chunk(self, B: Array, column: int, weight: Array | None, stream: int) -> Any:
        """Return sums for some columns of B from `column` on, padded as the kernel likes."""
        raise NotImplementedError

    def _ranges(self, rows: int, workers: int) -> tuple[int, list[tuple[int, int]]]:
        """Return the blocks of a grid and the ranges of steps (of `rows`) for one launch each."""
        steps = -(-self.n // rows)
        grid = min(self._device.multiprocessors, -(-steps // workers))
        most = steps if self._longest is None else grid * workers * self._longest // rows
        return grid, [(i, min(i + most, steps)) for i in range(0, steps, most)]


class TiledRows(Prepared):
    """Rows in tiles, for the tensor cores, as bf16 (one or two parts) or float64."""

    def __init__(self, X: Array, tiles: Array, parts: int) -> None:
        import torch

        super().__init__(X)
        self._tiles = tiles
        self._parts = parts
        self._float64 = tiles.dtype == torch.float64
        self._longest = None if self._float64 else LONGEST_TILED
        # X keeps 8 bits for each part; B always has two, so a product errs by X's rounding
        self.precision = 2.0**-53 if self._float64 else 2.0 ** (-8 * parts)

    def plan(self, columns: int, weighted: bool) -> TilePlan:
        """Return the sizes of the kernel for so many columns."""
        return tile_plan(self._float64, self._parts, self.D, columns, weighted)

    def _chunk(self, B: Array, column: int, weight: Array | None, stream: int) -> Any:
        import torch

        k = B.shape[1]
        plan = self.plan(k - column, weight is not None)
        if weight is not None:
            real = torch.float64 if self._float64 else torch.float32
            weight = weight.to(device=B.device, dtype=real).contiguous()
        grid, ranges = self._ranges(plan.step_rows, plan.warps // plan.team)
        columns, features = 16 * plan.groups, 8 * plan.blocks
        size = columns * (features + 1)
        slots = torch.empty((len(ranges) * grid, size), dtype=torch.float64, device=B.device)
        module = self._device.module(plan)
        for i, (begin, end) in enumerate(ranges):
            arguments = [
                pointer(self._tiles),
                *(long(begin), long(end)),
                pointer(B),
                *(whole(k), whole(column), whole(self.D)),
                pointer(weight),
                long(self.n),
                pointer(slots[i * grid]),
            ]
            module.launch("l1_tiles", grid, (32 * plan.warps, 1), arguments, stream)
        values = self._device.sum_slots(slots, stream)
        return values[columns * features :], values[: columns * features].view(columns, features)


class PlainRows(Prepared):
    """Few features in float32, one row for each thread; X itself, not a copy."""

    precision = 2.0**-24
    _longest = LONGEST_PLAIN

    def __init__(self, X: Array) -> None:
        super().__init__(X)
        self._X = X

    def plan(self, columns: int, weighted: bool) -> RowPlan:
        """Return the sizes of the kernel for so many columns."""
        return row_plan(self.D, columns, weighted)

    def _chunk(self, B: Array, column: int, weight: Array | None, stream: int) -> Any:
        import torch

        k = B.shape[1]
        plan = self.plan(k - column, weight is not None)
        if weight is not None:
            weight = weight.to(device=B.device, dtype=torch.float32).contiguous()
        count = min(plan.columns, k - column)
        constant = torch.zeros((plan.columns, self.D), dtype=torch.float32, device=B.device)
        constant[:count] = B[:, column : column + count].T
        grid, ranges = self._ranges(plan.step_rows, plan.warps)
        size = plan.columns * self.D
        slots = torch.empty((len(ranges) * grid, size), dtype=torch.float64, device=B.device)
        module = self._device.module(plan)
        module.fill("B", constant, stream)
        for i, (begin, end) in enumerate(ranges):
            arguments = [
                pointer(self._X),
                *(long(begin), long(end), long(self.n)),
                pointer(weight),
                pointer(slots[i * grid]),
            ]
            module.launch("l1_rows", grid, (32 * plan.warps, 1), arguments, stream)
        product = self._device.sum_slots(slots, stream)
        total = torch.empty(plan.columns, dtype=torch.float64, device=B.device)
        arguments = [pointer(product), pointer(B), whole(self.D), whole(k), whole(column)]
        self._device.slots.launch(
            "dot_columns", plan.columns, (32, 1), [*arguments, pointer(total)], stream
        )
        return total, product.view(plan.columns, self.D)

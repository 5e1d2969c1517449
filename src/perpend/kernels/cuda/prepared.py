"""Rows on the device, ready for the fused kernels.

Both classes compute `l1_objective_and_gradient` for any number of columns, a few at a time. Each
block of the grid leaves its sums in a slot of its own, and one ordered sum in float64 follows: the
same call gives the same bits again. A sum in float32 runs over a limited number of rows, because
tensor cores round towards zero and the error grows with it; more rows take more launches.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch

from perpend._typing import Array
from perpend.kernels.cuda.compiler import Module, long, pointer, whole
from perpend.kernels.cuda.plan import RowPlan, TilePlan, macros, row_plan, tile_plan

LONGEST_TILED = 8192  # rows of one team; float64 sums have no limit
LONGEST_PLAIN = 32 * 4096  # rows of one warp: 4096 of each thread


def _load(plan: TilePlan | RowPlan, architecture: str) -> Module:
    return Module(plan.sources, macros(plan), architecture, plan.shared_bytes)


@cache
def _loaded(plan: TilePlan | None, architecture: str, device: int) -> Module:  # noqa: ARG001
    """Return the kernel of this plan, or the ordered sums; one on each device serves all rows."""
    return Module(("slots.cu",), (), architecture) if plan is None else _load(plan, architecture)


class Prepared:
    """Rows that a fused kernel can read; see `prepare`."""

    precision: float  # relative rounding error of the products
    _longest: int | None  # rows in one sum
    _real: Any  # the type of the weights

    def __init__(self, X: Array) -> None:
        self.n, self.D = (int(size) for size in X.shape)
        self._device = X.device
        properties = torch.cuda.get_device_properties(X.device)
        self._multiprocessors = int(properties.multi_processor_count)
        self._architecture = f"sm_{properties.major}{properties.minor}"
        self._sums = _loaded(None, self._architecture, X.device.index)

    def l1_objective_and_gradient(
        self, B: Array, weight: Array | None = None
    ) -> tuple[Array, Array]:
        """Return f_j = sum_i w_i |x_i.b_j| (k,) and G = sign(X B).T (w X) (k, D), in float64.

        Both stay on the device, and nothing waits for them. Calls on the same rows belong on one
        stream, and B must have a column.
        """
        with torch.cuda.device(self._device):
            stream = torch.cuda.current_stream().cuda_stream
            B = B.to(device=self._device, dtype=torch.float64).contiguous()
            # Otherwise a kernel would read beyond their ends.
            if B.ndim != 2 or B.shape[0] != self.D or B.shape[1] == 0:
                raise ValueError(f"B must have shape ({self.D}, k > 0), got {tuple(B.shape)}")
            if weight is not None and tuple(weight.shape) != (self.n,):
                raise ValueError(f"weight must have shape ({self.n},), got {tuple(weight.shape)}")
            if weight is not None:
                weight = weight.to(device=self._device, dtype=self._real).contiguous()
            k, column, totals, products = B.shape[1], 0, [], []
            while column < k:
                total, product = self._chunk(B, column, weight, stream)
                totals.append(total[: k - column])
                products.append(product[: k - column, : self.D])
                column += len(total)
        if len(totals) == 1:
            return totals[0], products[0]
        return torch.cat(totals), torch.cat(products)

    def _chunk(self, B: Array, column: int, weight: Array | None, stream: int) -> Any:
        """Return sums for some columns of B from `column` on, padded as the kernel likes."""
        raise NotImplementedError

    def _launched(
        self,
        module: Module,
        name: str,
        plan: TilePlan | RowPlan,
        arguments: Callable[[int, int], list[Any]],
        *,
        workers: int,
        size: int,
        stream: int,
    ) -> Array:
        """Launch a kernel over all rows and return the sum, in order, of its slots (size,).

        `arguments` are those of a launch over a range of steps, without its slots; a step is what
        each of the `workers` in a block takes at a time.
        """
        steps = -(-self.n // plan.step_rows)
        grid = min(self._multiprocessors, -(-steps // workers))
        most = steps if self._longest is None else grid * workers * self._longest // plan.step_rows
        ranges = [(i, min(i + most, steps)) for i in range(0, steps, most)]
        count = len(ranges) * grid
        slots = torch.empty((count, size), dtype=torch.float64, device=self._device)
        for i, (begin, end) in enumerate(ranges):
            own = [*arguments(begin, end), pointer(slots[i * grid])]
            module.launch(name, grid, (32 * plan.warps, 1), own, stream)
        values = torch.empty(size, dtype=torch.float64, device=self._device)
        own = [pointer(slots), whole(count), whole(size), pointer(values)]
        self._sums.launch("sum_slots", -(-size // 32), (32, 32), own, stream)
        return values


class TiledRows(Prepared):
    """Rows in tiles, for the tensor cores, as bf16 (one or two parts) or float64."""

    def __init__(self, X: Array, tiles: Array, parts: int) -> None:
        super().__init__(X)
        self._tiles = tiles
        self._parts = parts
        self._float64 = tiles.dtype == torch.float64
        self._real = torch.float64 if self._float64 else torch.float32
        self._longest = None if self._float64 else LONGEST_TILED
        # X keeps 8 bits for each part; B always has two, so a product errs by X's rounding
        self.precision = 2.0**-53 if self._float64 else 2.0 ** (-8 * parts)

    def _chunk(self, B: Array, column: int, weight: Array | None, stream: int) -> Any:
        k = B.shape[1]
        plan = tile_plan(self._float64, self._parts, self.D, k - column, weight is not None)
        columns, features = 16 * plan.groups, 8 * plan.blocks

        def arguments(begin: int, end: int) -> list[Any]:
            rows = [pointer(self._tiles), long(begin), long(end)]
            directions = [pointer(B), whole(k), whole(column), whole(self.D)]
            return [*rows, *directions, pointer(weight), long(self.n)]

        values = self._launched(
            _loaded(plan, self._architecture, self._device.index),
            "l1_tiles",
            plan,
            arguments,
            workers=plan.warps // plan.team,
            size=columns * (features + 1),
            stream=stream,
        )
        return values[columns * features :], values[: columns * features].view(columns, features)


class PlainRows(Prepared):
    """Few features in float32, one row for each thread; X itself, not a copy."""

    precision = 2.0**-24
    _longest = LONGEST_PLAIN

    def __init__(self, X: Array) -> None:
        super().__init__(X)
        self._X, self._real = X, X.dtype
        # A kernel holds B: not to be shared with rows on another stream.
        self._own = cache(partial(_load, architecture=self._architecture))

    def _chunk(self, B: Array, column: int, weight: Array | None, stream: int) -> Any:
        k = B.shape[1]
        plan = row_plan(self.D, k - column, weight is not None)
        count = min(plan.columns, k - column)
        constant = torch.zeros((plan.columns, self.D), dtype=torch.float32, device=B.device)
        constant[:count] = B[:, column : column + count].T
        module = self._own(plan)
        module.fill("B", constant, stream)

        def arguments(begin: int, end: int) -> list[Any]:
            return [pointer(self._X), long(begin), long(end), long(self.n), pointer(weight)]

        size = plan.columns * self.D
        how = {"workers": plan.warps, "size": size, "stream": stream}
        product = self._launched(module, "l1_rows", plan, arguments, **how)
        total = torch.empty(plan.columns, dtype=torch.float64, device=B.device)
        own = [pointer(product), pointer(B), whole(self.D), whole(k), whole(column), pointer(total)]
        self._sums.launch("dot_columns", plan.columns, (32, 1), own, stream)
        return total, product.view(plan.columns, self.D)

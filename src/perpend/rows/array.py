"""Rows of a NumPy array, read in blocks that fit the processor's cache.

A block has `BLOCK_ENTRIES` entries of X, 256 KiB in float64 and half of it in float32, so that it
and what a kernel makes of it stay in a second-level cache of 1 MiB; measured best from D = 10 to
D = 200, in both memory orders.
"""

from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any

import numpy as np

from perpend._typing import Array, Kernel
from perpend.kernels import Contribution, compiled
from perpend.rows.held import HeldRows, Sums

BLOCK_ENTRIES = 32_768  # of X that are worked on at once
BLOCK_ROWS_LEAST = 48  # with very many features blocks are larger; adding up would dominate
FEATURES_PER_ROW = 4  # at most, for the same reason, if (D, D) sums use kept values
GRAM_ROWS_LEAST = 256  # and for kernels without parameters, which give (D, D) sums
SMALL_PRODUCT = 10**6  # multiplications; OpenBLAS does so many without packing, a third faster

BLOCKS_PER_PARTIAL = 16
"""Blocks in one partial sum. The sums then depend on neither the number of threads nor their order,
and rounding grows more slowly."""


class ArrayRows(HeldRows):
    """Rows of an array (n, D) in memory."""

    _blocks_in_sum = BLOCKS_PER_PARTIAL

    @staticmethod
    def _products() -> AbstractContextManager[Any]:
        # Some BLAS raise the flag "invalid" in products of finite float32 rows (they look past the
        # end of a vector); rows are checked to be finite, so NumPy's warning says nothing.
        return np.errstate(invalid="ignore")

    def _sums_of_twin(self, kernel: Kernel, params: tuple[Any, ...]) -> Sums | None:
        sums = compiled.twin(kernel, self._X, self._weight, self._divisor, params)
        return None if sums is None else self._add_up(sums, sums.groups, uses_blas=False)

    def _block_size(self, width: int, *, plain: bool) -> int:
        if self._given_block_rows:
            return self._given_block_rows
        D = self.shape[1]
        if plain and width:
            return max(BLOCK_ROWS_LEAST, min(BLOCK_ENTRIES, SMALL_PRODUCT // width) // D)
        # Kept values come in blocks of one size, whatever the kernel.
        least = min(max(BLOCK_ROWS_LEAST, D // FEATURES_PER_ROW), GRAM_ROWS_LEAST)
        return max(GRAM_ROWS_LEAST if plain else least, BLOCK_ENTRIES // D)

    def _as_param(self, param: Any) -> Any:
        if isinstance(param, np.ndarray) and param.dtype.kind == "f":
            return np.ascontiguousarray(param, dtype=self.dtype)
        return param

    def _weighted_total(self, part: Contribution, rows: slice) -> Array | None:
        # A vector-matrix product is the fastest sum over rows, and takes the weights along.
        return None if part.total is None else self._values(self._weight, rows) @ part.total

    def _weighted_product(self, part: Contribution, rows: slice) -> Array | None:
        left, right, weight = part.left, part.right, self._weight
        if part.bins is not None:
            bins, n_bins = part.bins
            return np.bincount(bins, None if weight is None else weight[rows], n_bins)
        if left is None or right is None:
            return None
        if left is right:
            # NumPy halves the work of A.T @ A if both are the same array: the weights go half each.
            A = left if weight is None else left * self._root_weight[rows, None]
            return A.T @ A
        if weight is not None:
            left = left * weight[rows, None]
        if right.dtype == np.float32 and right.strides[0] < right.strides[1]:
            return (right.T @ left).T  # faster for columns in float32
        return left.T @ right

    @cached_property
    def _root_weight(self) -> Array:
        return np.sqrt(np.asarray(self._weight))

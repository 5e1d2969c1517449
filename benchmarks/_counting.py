"""Rows that count what they compute, in the measure of the papers: products.

A product is one multiplication of the whole data with all starts: 2 n D k operations. Scans count,
and so do the matrix products of rows that were brought to memory.
"""

from collections import Counter
from typing import Any

import numpy as np

from perpend.kernels import logarithmic_bins, residuals, weighted_gram
from perpend.rows.array import NO_FACTOR, WORTH_CHOOSING


class CountingRows:
    """A row source that counts the scans and floating-point operations of what it computes."""

    def __init__(self, rows: Any, counts: "CountingRows | None" = None) -> None:
        self._rows = rows
        self._counts = self if counts is None else counts
        self.n_scans: Counter[str] = Counter()
        self.flops = 0.0
        self.n_subsets = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rows, name)

    def scan(self, kernel: Any, *params: Any, **options: Any) -> Any:
        """Scan the rows, and count."""
        n, D = self._rows.shape
        self._counts.n_scans[kernel.__name__] += 1
        if kernel is weighted_gram:  # it leaves out rows without weight
            table, edges = params
            bins = logarithmic_bins(self._rows.gather(options["using"][0]), edges)
            some = np.count_nonzero(table[bins] > NO_FACTOR)
            n = some if some <= WORTH_CHOOSING * n else n
        self._counts.flops += n * flops_per_row(kernel.__name__, D, params)
        return self._rows.scan(kernel, *params, **options)

    def products(self, n_starts: int) -> float:
        """Return how many products with `n_starts` directions would have cost as much."""
        n, D = self._rows.shape
        return self.flops / (2 * n * D * n_starts)

    def mapped(self, A: Any, **options: Any) -> Any:
        """Hand out the rows times A; what they compute counts here."""
        turned = self._rows.mapped(A, **options)
        if turned is None:
            return None
        self._counts.flops += 2 * self._rows.shape[0] * A.size
        return CountingRows(turned, self._counts)

    def take(self, indices: Any) -> Any:
        """Bring rows to memory; their products count here."""
        taken = self._rows.take(indices).view(CountedArray)
        taken.counts = self._counts
        return taken

    def subset(self, indices: Any) -> Any:
        """Hand out a subset, uncounted."""
        self.n_subsets += 1
        return self._rows.subset(indices)


class CountedArray(np.ndarray):
    """Rows in memory, and what is computed from them row by row: matrix products are counted."""

    counts: CountingRows | None

    def __array_finalize__(self, obj: Any) -> None:
        self.counts = getattr(obj, "counts", None)

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any
    ) -> Any:
        """Compute with plain arrays; a product with others' columns is of these rows again."""
        if out is not None:
            options["out"] = tuple(map(_plain, out))
        result = getattr(ufunc, method)(*map(_plain, inputs), **options)
        if ufunc is np.matmul:
            left, right = inputs
            columns = right.shape[1] if np.ndim(right) == 2 else 1
            if self.counts is not None:
                self.counts.flops += 2 * left.size * columns
            if isinstance(right, CountedArray):
                return result
        if not isinstance(result, np.ndarray):
            return result
        result = result.view(CountedArray)
        result.counts = self.counts
        return result


def _plain(x: Any) -> Any:
    return x.view(np.ndarray) if isinstance(x, CountedArray) else x


def flops_per_row(kernel: str, D: int, params: tuple[Any, ...]) -> float:
    """What a kernel costs; a gram matrix counts both of its halves, although one would do."""
    columns = next((p.shape[1] for p in params if np.ndim(p) == 2), 1)
    if any(p is residuals for p in params):
        columns *= 2  # two products with them
    return {
        "l1_objective_and_gradient": 4 * D * columns,
        "l1_objective": 2 * D * columns,
        "distances": 2 * D * columns,
        "grouped_distances": 2 * D * columns,
        "residuals": 4 * D * columns,
        "heights": 2 * D,
        "gram": 2 * D * D,
        "weighted_gram": 2 * D * D,
        "distance_weighted_gram": 2 * D * (D + columns),
    }[kernel]

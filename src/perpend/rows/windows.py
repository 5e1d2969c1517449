"""Scans of rows that are read window by window: each is read once, by however many threads."""

from collections.abc import Callable
from typing import Any

import numpy as np

from perpend._typing import Array, Kernel
from perpend.kernels import compiled
from perpend.rows.array import ArrayRows, Sums, cut, plus
from perpend.rows.kinds import is_lazy
from perpend.rows.lazy import Picked
from perpend.rows.plan import check_taken
from perpend.rows.threads import in_order


class WindowRows(ArrayRows):
    """Scans of `LazyRows`.

    Threads work on one block after the other, not on groups of blocks: those may be in different
    windows, which would be read in turns.
    """

    def __init__(self, X: Any, **how: Any) -> None:
        self._in_work: dict[tuple[int, int], Array] = {}  # blocks, by their range
        super().__init__(X, **how)
        self.memory_limit = X.limit_given

    def take(self, indices: Array) -> Array:
        """Bring a few rows to memory, as the kernels see them."""
        if not is_lazy(self._X) or self.memory_limit is None:
            return super().take(indices)
        check_taken(len(indices), self.shape[1], self.memory_limit)
        return self._few(indices)

    def subset(self, indices: Array) -> ArrayRows:
        """Return some rows as a source of their own: in memory, if there is room for them."""
        n_bytes = len(indices) * self.shape[1] * self.dtype.itemsize
        if not is_lazy(self._X):
            return super().subset(indices)
        if n_bytes <= self._room():
            return self._alike(self._few(indices), indices, n_bytes)
        divisor = None if self._divisor is None else self._divisor[indices]
        picked = WindowRows(Picked(self._X, indices), divisor=divisor, **self._beside(indices))
        picked.lifted_by = self.lifted_by
        return picked

    def _few(self, indices: Array) -> Array:
        """Return rows at indices, as the kernels see them, without another copy of them."""
        X = self._X.few(indices)
        if self._divisor is None:
            return X
        own = X.flags.owndata and X.flags.writeable
        return np.divide(X, self._divisor[indices][:, None], out=X if own else None)

    def _store_quotients(self, divisor: Array) -> None:
        """Store the rows as the kernels see them, if there is room, without another copy."""
        if self._X.nbytes > self._room():
            return
        quotients = np.empty(self.shape, self.dtype)
        for window in self._X.windows:
            np.divide(self._X[window], divisor[window, None], out=quotients[window])
        self._X, self._divisor, self._budget = quotients, None, self._room() - quotients.nbytes

    def _block(self, rows: Any) -> Array:
        """Return the rows as kernels see them; those of a block in work are there already."""
        held = self._in_work.get((rows.start, rows.stop)) if isinstance(rows, slice) else None
        return super()._block(rows) if held is None else held

    def _sum_blocks(self, of_block: Callable[[slice], Sums], size: int) -> Sums:
        """Add up the sums of blocks, in the same groups as those of an array: the same bits."""
        if not is_lazy(self._X):
            return super()._sum_blocks(of_block, size)
        blocks = cut(slice(0, self.shape[0]), size)
        fetched: dict[int, Callable[[], Array]] = {}
        sums: Sums = None, None
        group: Sums = None, None
        n_taken = 0

        def fetch(j: int) -> None:
            fetched[j] = self._X.fetched(blocks[j])

        def work(j: int) -> Sums:
            rows, X = blocks[j], fetched.pop(j)()
            X = X if self._divisor is None else X / self._divisor[rows][:, None]
            self._in_work[rows.start, rows.stop] = X
            try:
                return of_block(rows)
            finally:
                del self._in_work[rows.start, rows.stop]

        def take(part: Sums) -> None:
            nonlocal sums, group, n_taken
            group, n_taken = plus(group, part), n_taken + 1
            if n_taken % self._blocks_in_sum == 0 or n_taken == len(blocks):
                sums, group = plus(sums, group), (None, None)

        # Each block in work holds the window it is in: no more of them than there are in a window.
        n_jobs = max(1, min(self._n_jobs, self._X.window_rows // size))
        in_order(work, take, len(blocks), n_jobs=n_jobs, uses_blas=True, before=fetch)
        return sums

    def _sums_of_twin(self, kernel: Kernel, params: tuple[Any, ...]) -> Sums | None:
        """Return what the compiled twin of the kernel gives, window by window; None without one."""
        if not is_lazy(self._X):
            return super()._sums_of_twin(kernel, params)
        if not compiled.has_twin(kernel):
            return None
        total: Sums = None, None
        for window in self._X.windows:
            w, d = (None if v is None else v[window] for v in (self._weight, self._divisor))
            sums = compiled.twin(kernel, np.ascontiguousarray(self._X[window]), w, d, params)
            if sums is None:
                return None
            total = plus(total, self._add_up(sums, sums.groups, uses_blas=False))
        return total

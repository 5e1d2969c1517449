"""Rows that can only be read one after the other, as those of text or of packed files."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError

Opened = tuple[int, Iterator[Array]]
"""The number of a row, and the blocks from there on."""


class Sequential:
    """Rows that come one block after the other, as often as needed.

    `read` goes on where it stood. For other rows, ``near(row)`` returns a row at or before this
    one, 0 if need be, and the blocks from there on, each (k, D) with any k.
    """

    def __init__(
        self, near: Callable[[int], Opened], *, shape: tuple[int, int], dtype: Any, name: str
    ) -> None:
        self._near, self.shape, self.dtype, self.name = near, shape, np.dtype(dtype), name
        self._blocks: Iterator[Array] | None = None
        self._process = os.getpid()
        self._at, self._rest = 0, np.empty((0, shape[1]), self.dtype)  # what is there already

    def read(self, start: int, stop: int) -> Array:
        """Return these rows."""
        if self._process != os.getpid():  # a fork: the parent goes on with these blocks
            self._process, self._blocks = os.getpid(), None
        if self._blocks is None or start != self._at:
            place, blocks = self._near(start)
            if self._blocks is None or not place <= self._at <= start:
                self._at, self._blocks, self._rest = place, blocks, self._rest[:0]
        rows = np.empty((stop - start, self.shape[1]), self.dtype)
        try:
            while self._at < stop:
                block = self._next(stop)
                skipped = max(0, start - self._at)
                begin, k = self._at + skipped - start, min(len(block), stop - self._at)
                if k > skipped:
                    rows[begin : begin + k - skipped] = block[skipped:k]
                self._at, self._rest = self._at + k, block[k:]
        except BaseException:
            self._blocks = None
            raise
        if not len(self._rest):
            self._rest = self._rest[:0].copy()  # a view would keep the whole block
        return rows

    def _next(self, stop: int) -> Array:
        """Return what is left of the last block, or the next one."""
        if len(self._rest):
            return self._rest
        for block in self._blocks or ():
            if block.shape[1] != self.shape[1]:
                raise InputError(
                    f"{self.name}: has {block.shape[1]} columns from row {self._at} on, but "
                    f"{self.shape[1]} before."
                )
            if len(block):
                return block
        raise ends_early(self.name, self._at, stop, self.shape[0])


def ends_early(name: str, row: int, stop: int, n_rows: int) -> InputError:
    """Return the error about rows that are not there any more."""
    return InputError(
        f"{name}: ends after row {row}, but rows up to {stop} of {n_rows} are needed. Was it cut "
        "short while it was read? The same rows must come in every pass."
    )

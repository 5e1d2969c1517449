"""The protocol between the source of the rows and the solvers."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, NamedTuple, Protocol

from perpend._typing import Array, Kernel


class Kept(NamedTuple):
    """Values that a scan left with the rows: ``piece(rows)`` are those of a block, a slice.

    Values that fit the source's memory budget are stored. Otherwise `piece` computes them again
    whenever they are used: slower, with the same values.
    """

    piece: Callable[[slice], Array]


class Scan(NamedTuple):
    """What one pass over the rows gives; the sums are float64 NumPy arrays.

    A sum that the kernel does not contribute to is None.
    """

    total: Array  # (m,)   w @ total
    product: Array  # (p, q) left.T @ (w * right)
    kept: Kept | None


class RowSource(Protocol):
    """Rows that can be scanned, wherever they are."""

    shape: tuple[int, int]  # the number of rows and of features
    dtype: Any  # the floating-point type of the rows, as NumPy names it
    weights: Kept  # the weight of each row; 0 for rows that do not take part
    lengths: Kept  # the norm that each row had as it was given, up to a common factor
    norms: Array  # (m,) ascending to the largest, stand for those of all rows; [1.] for unit rows
    unit: float  # what the kernels see times `unit` is what the user gave; 1 for unit rows
    lifted_by: float | None  # of rows (z, 1), in an affine fit: z times this is in the user's units

    @property
    def precision(self) -> float:
        """The relative rounding error of the products in a descent: eps of the arithmetic."""

    @property
    def total_weight(self) -> float:
        """The sum of the weights of all rows that take part."""

    def scan(
        self, kernel: Kernel, *params: Any, using: tuple[Kept, ...] = (), keep: bool = False
    ) -> Scan:
        """Run `kernel` over all blocks and add up what it gives, always in the same order."""

    def gather(self, kept: Kept) -> Array:
        """Bring per-row values to memory, in the order of the rows."""

    def take(self, indices: Array) -> Array:
        """Bring a few rows to memory, as the kernels see them."""

    def subset(self, indices: Array) -> "RowSource":
        """Return some rows as a source of their own, with their weights; they are copied."""

    def mapped(self, A: Array) -> "RowSource | None":
        """Return the rows times A (D, R) as a source of their own, with their weights.

        The norms must stay: A is orthonormal and its span holds all rows. None if the copy is over
        budget.
        """


NEW_SOURCE: ContextVar[Callable[[RowSource], RowSource] | None] = ContextVar("rows", default=None)
"""What is done with the rows of a fit before it sees them: a checkpoint records their scans."""

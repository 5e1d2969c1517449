"""Rows in memory, for methods that need all of them at once."""

from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.kernels import heights
from perpend.rows import RowSource, RowSpan


class Dense(NamedTuple):
    """The rows that take part, in double precision."""

    X: Array  # (m, D')
    weight: Array  # (m,) positive


def dense(rows: RowSource) -> Dense:
    """Bring the rows that have a weight to memory."""
    weight = rows.gather(rows.weights).astype(float)
    present = np.flatnonzero(weight > 0)
    return Dense(rows.take(present).astype(float), weight[present])


class Urn:
    """Draws rows by their weight, with replacement, whatever the order in which they come.

    They are sorted by their height over a random direction, so equal rows stand together: with the
    same seed, a row of weight w is drawn as one of w equal rows is.
    """

    def __init__(self, rows: RowSource, span: RowSpan, rng: np.random.Generator) -> None:
        b = span.inside(rng.standard_normal((span.n_features, 1)))[:, 0]
        kept = rows.scan(heights, b, keep=True).kept
        assert kept is not None
        self.weight, self.rng = rows.gather(rows.weights).astype(float), rng
        self._order = np.argsort(rows.gather(kept), kind="stable")
        self._ends = np.cumsum(self.weight[self._order])

    def draw(self, *shape: int) -> Array:
        """Return the indices of rows, in an array of this shape."""
        at = self.rng.random(shape) * self._ends[-1]
        return self._order[np.searchsorted(self._ends, at, side="right")]

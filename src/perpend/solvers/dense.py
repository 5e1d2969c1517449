"""Rows in memory, for methods that need all of them at once."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

from perpend._typing import Array
from perpend.exceptions import NumericalError
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


def least_crossing(rows: Dense, n: Array) -> Array:
    """Return the b (D, 1) with b.n = 1 that has the least weighted sum of |x.b|.

    This is the l1 objective on a plane instead of the sphere: a linear program.
    """
    X, weight = rows
    bounds = [*zip(-weight, weight, strict=True), (None, None)]  # of y, and of lambda
    program = linprog(
        np.append(np.zeros(len(X)), -1.0),
        A_eq=np.hstack([X.T, -n]),
        b_eq=np.zeros(len(n)),
        bounds=bounds,
        method="highs-ds",  # the simplex method ends at a vertex
    )
    if program.status != 0:
        raise NumericalError(f"A linear program was not solved: {program.message}")
    b: Array = program.eqlin.marginals[:, None]
    return b

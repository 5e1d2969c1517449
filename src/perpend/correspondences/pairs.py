"""Pairs of matched points, as a relation between two views sees them.

A relation is a 3 x 3 matrix up to scale, with nine entries h. Each correct pair gives rows in R^9
that are orthogonal to h (codimension 1, where DPCP looks for it), and an error in pixels, by which
candidates are compared and polished.
"""

import copy
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from perpend._typing import Array

COARSEST = 1e-2  # deviation, over the image's extent: what errs by more is no relation of points
AT_INFINITY = 1e12  # squared error in pixels of what cannot be computed: a point at infinity
CENTRAL = 0.05  # of the coordinates may be wild at either end without widening the image


class Pairs(ABC):
    """Points x, y (n, 3) of two images, scaled as Hartley does, as one relation sees them.

    Matrices M (m, 3, 3) relate the scaled points. Errors are in pixels.
    """

    n_free: ClassVar[int]  # pairs that some matrix fits exactly, whatever they are
    n_parameters: ClassVar[int]  # of a matrix
    error_size: ClassVar[int]  # coordinates of an error
    most_samples: ClassVar[int]  # drawn if few pairs are correct: as many as take 0.2 s or so
    open_doubt: ClassVar[str]  # what is said if the pairs do not determine the matrix
    flat: float  # density of the errors of wrong pairs, per pixel ** error_size

    def __init__(self, first: Array, second: Array) -> None:
        self.first, self.second = first, second
        self.to_x, self.to_y = scaling(first), scaling(second)
        self.x, self.y = lifted(first) @ self.to_x.T, lifted(second) @ self.to_y.T
        self.pixels = 1 / self.to_x[0, 0], 1 / self.to_y[0, 0]  # one unit of x, of y
        # Pairs come from somewhere in both images: the mean area is that of a symmetric error.
        self.extent = float(np.sqrt((_area(first) + _area(second)) / 2))  # of an image, pixels
        self.coarsest = COARSEST * self.extent  # deviation of correct pairs, pixels

    def __len__(self) -> int:
        return len(self.x)

    def taken(self, which: Array) -> "Pairs":
        """Return some of the pairs, in the same units."""
        some = copy.copy(self)
        some.first, some.second = self.first[which], self.second[which]
        some.x, some.y = self.x[which], self.y[which]
        return some

    def mismatched(self, those: Array, others: Array) -> "Pairs":
        """Return wrong pairs: points with the matches of others."""
        wrong = self.taken(those)
        wrong.second, wrong.y = self.second[others], self.y[others]
        return wrong

    @abstractmethod
    def rows(self, rng: np.random.Generator) -> Array:
        """Return rows (., 9) that are orthogonal to h for correct pairs."""

    @abstractmethod
    def through(self, samples: Array) -> Array:
        """Return matrices (., 3, 3) that fit the pairs of a sample (s, n_free) exactly."""

    @abstractmethod
    def valid(self, M: Array) -> Array:
        """Return the nearest matrices that are such a relation."""

    @abstractmethod
    def errors(self, M: Array) -> Array:
        """Return the squared errors (m, n) of all pairs under each matrix."""

    @abstractmethod
    def linearised(self, M: Array) -> tuple[Array, Array]:
        """Return residuals (m, e, n), and derivatives (m, e, n, p) by the p coordinates of a move.

        Their squares add up to `errors`.
        """

    @abstractmethod
    def between(self, M: Array, G: Array) -> Array:
        """Return rows (n, e, 9) whose products with G are errors in pixels, as M and G mix."""

    @abstractmethod
    def moved(self, M: Array, move: Array) -> Array:
        """Return the matrices after moves (m, p)."""

    @abstractmethod
    def in_pixels(self, M: Array) -> Array:
        """Return one matrix (3, 3) as it relates the points given."""


def scaling(points: Array) -> Array:
    """Return the map (3, 3) of points to mean zero and a mean length of sqrt(2)."""
    mean = points.mean(axis=0)
    s = np.sqrt(2) / np.linalg.norm(points - mean, axis=1).mean()
    return np.array([[s, 0, -s * mean[0]], [0, s, -s * mean[1]], [0, 0, 1]])


def lifted(points: Array) -> Array:
    """Return the points (n, 2) with a third coordinate 1."""
    return np.column_stack([points, np.ones(len(points))])


def _area(points: Array) -> float:
    low, high = np.quantile(points, [CENTRAL, 1 - CENTRAL], axis=0)
    sides = (high - low) / (1 - 2 * CENTRAL)  # a uniform density's
    return float(np.prod(np.maximum(sides, 0.1 * sides.max())))  # points along a line: not zero

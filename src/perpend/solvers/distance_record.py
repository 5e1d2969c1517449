"""What a fit remembers of its distances: how many rows are how far away, and what was expected."""

from typing import NamedTuple, Self

import numpy as np
from scipy import special

from perpend._typing import Array
from perpend.kernels import logarithmic_bins
from perpend.solvers.outlier_law import outlier_law
from perpend.solvers.two_groups import TwoGroups


class DistanceRecord(NamedTuple):
    """Counted distances, and the two groups that were fitted to them, in the user's units."""

    edges: Array  # (m,) upper edges of the bins, which grow geometrically
    counts: Array  # (m,) weight of the rows in each bin
    n_inliers: float  # by the two-group model
    n_outliers: float
    scale: float  # of the inliers' noise in one coordinate
    norms: Array  # that stand for those of all rows
    codimension: int  # inside the span of the rows
    dimension: int

    @classmethod
    def of(
        cls, groups: TwoGroups, norms: Array, codimension: int, dimension: int, unit: float
    ) -> Self:
        """Put it together from what a fit has; `unit` turns norms and distances into the user's."""
        total = float(np.sum(groups.counts))
        return cls(
            edges=groups.edges * unit,
            counts=groups.counts,
            n_inliers=groups.share * total,
            n_outliers=(1 - groups.share) * total,
            scale=groups.scale * unit,
            norms=norms * unit,
            codimension=codimension,
            dimension=dimension,
        )

    @property
    def exact(self) -> bool:
        """Whether the inliers have no noise but rounding errors."""
        return bool(self.scale <= self.edges[1])

    def counted(self, distance: Array, weight: Array | None = None) -> Self:
        """Count other distances (n,); bins are added where some are farther away."""
        edges, growth = self.edges, self.edges[1] / self.edges[0]
        largest = float(np.max(distance, initial=0.0))
        if largest > edges[-1]:
            more = int(np.ceil(np.log(largest / edges[-1]) / np.log(growth)))
            edges = np.append(edges, edges[-1] * growth ** np.arange(1.0, more + 1))
        bins = logarithmic_bins(np.asarray(distance, dtype=float), edges)
        return self._replace(edges=edges, counts=np.bincount(bins, weight, minlength=len(edges)))

    def expected(self, edges: Array) -> tuple[Array, Array]:
        """Return how many inliers and outliers the model expects up to each of the edges.

        P(c/2, J^2 / 2 s^2) of the inliers, with the incomplete gamma function P; the outliers' law
        has no parameter.
        """
        inliers = special.gammainc(self.codimension / 2, np.square(edges / self.scale) / 2)
        outliers = outlier_law(edges, self.norms, self.codimension, self.dimension)
        return self.n_inliers * inliers, self.n_outliers * outliers

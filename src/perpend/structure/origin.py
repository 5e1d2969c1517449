r"""Whether an affine subspace misses the origin by more than its own error.

The subspace is W.T x = h, with the mean mu of N inliers on it and the noise sigma across it. Under
"it passes through the origin" h is zero but for the error of the mean and of the directions, which
grows with the distance from the mean along the subspace:

.. math::
    \operatorname{var} h_j = \frac{\sigma^2}{N}
    \Bigl(1 + \sum_k \frac{(c_k \cdot \mu)^2}{\lambda_k}\Bigr), \qquad
    \frac{|h|^2}{\operatorname{var} h_j} \sim \chi^2_c

with c_k the components and lambda_k the inliers' variances along them.
"""

from typing import NamedTuple

import numpy as np
from scipy import stats

from perpend._typing import Array

CLEAR = 1e-6  # the chance by which a subspace through the origin would seem to miss it


class OriginTest(NamedTuple):
    """How far the origin is from the subspace, and how far it might be by chance."""

    distance: float
    error: float  # standard error of each coordinate of the offset
    chance: float  # that a subspace through the origin seems to be so far from it

    @property
    def misses(self) -> bool:
        """Whether the subspace clearly does not pass through the origin."""
        return self.chance < CLEAR


def weigh_origin(
    location: Array,
    normals: Array,
    components: Array,
    *,
    variances: Array,
    noise2: float,
    n_inliers: float,
) -> OriginTest:
    """Say whether the subspace passes through the origin, as far as can be known.

    `normals` (D, c) and `components` (D, d) are columns, `variances` (d,) belong to the components,
    `noise2` is the variance of the noise in one coordinate.
    """
    c = normals.shape[1]
    distance = float(np.linalg.norm(location @ normals))
    free = n_inliers - components.shape[1] - 1
    if c == 0 or free <= 0:
        return OriginTest(distance, np.inf, 1.0)
    lever = np.sum(np.square(location @ components) / np.maximum(variances, np.finfo(float).tiny))
    error = float(np.sqrt(noise2 / free * (1 + lever)))
    if error == 0:
        return OriginTest(distance, error, float(distance == 0))
    return OriginTest(distance, error, float(stats.chi2.sf((distance / error) ** 2, c)))

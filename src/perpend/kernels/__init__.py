"""What one block of rows contributes: pure functions of a block, written in array-API code.

A kernel is called as ``kernel(X, *params, *using)`` with one block ``X`` of shape (b, D), the same
parameters for every block, and the values that an earlier scan kept with these rows. It returns a
`Contribution`. Weights, masks, norms and the place of the rows are the row source's business.
"""

from perpend.kernels.contribution import Contribution
from perpend.kernels.distances import (
    distance_and_gradient,
    distances,
    grouped_distances,
    grouped_residuals,
    logarithmic_bins,
    residuals,
)
from perpend.kernels.gram import (
    distance_weighted_gram,
    gram,
    inverse_distance_gram,
    residual_weighted_gram,
    weighted_gram,
)
from perpend.kernels.l1 import heights, l1_objective, l1_objective_and_gradient

__all__ = [
    "Contribution",
    "distance_and_gradient",
    "distance_weighted_gram",
    "distances",
    "gram",
    "grouped_distances",
    "grouped_residuals",
    "heights",
    "inverse_distance_gram",
    "l1_objective",
    "l1_objective_and_gradient",
    "logarithmic_bins",
    "residual_weighted_gram",
    "residuals",
    "weighted_gram",
]

"""What one block of rows contributes: pure functions of a block, written in array-API code.

A kernel is called as ``kernel(X, *params, *using)`` with one block ``X`` of shape (b, D), the same
parameters for every block, and the values that an earlier scan kept with these rows. It returns a
`Contribution`. The row source handles weights, masks, norms and where the rows are.
"""

from perpend.kernels.blocks import (
    Contribution,
    distance_and_gradient,
    distance_weighted_gram,
    distances,
    gram,
    grouped_distances,
    grouped_residuals,
    heights,
    inverse_distance_gram,
    l1_objective,
    l1_objective_and_gradient,
    logarithmic_bins,
    mapped_gram,
    residual_weighted_gram,
    residuals,
    weighted_gram,
)

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
    "mapped_gram",
    "residual_weighted_gram",
    "residuals",
    "weighted_gram",
]

"""What one block of rows contributes: pure functions of a block, written in array-API code.

A kernel is called as ``kernel(X, *params, *using)`` with one block ``X`` of shape (b, D), the same
parameters for every block, and the values that an earlier scan kept with these rows. It returns a
`Contribution`. Weights, masks, norms and the place of the rows are the row source's business.
"""

from perpend.kernels.contribution import Contribution
from perpend.kernels.distances import distances, grouped_distances, logarithmic_bins
from perpend.kernels.gram import gram, weighted_gram
from perpend.kernels.l1 import heights, l1_objective, l1_objective_and_gradient

__all__ = [
    "Contribution",
    "distances",
    "gram",
    "grouped_distances",
    "heights",
    "l1_objective",
    "l1_objective_and_gradient",
    "logarithmic_bins",
    "weighted_gram",
]

"""Coordinates in which rows are spread alike in all directions.

A cloud of points far from the origin, seen from there, is a line with thickness: all rows lie near
it, so it hides every subspace among them. Linear maps take subspaces to subspaces, so the cloud may
be stretched until nothing of that is left.
"""

import numpy as np

from perpend._typing import Array
from perpend.codimension import largest_gap
from perpend.peeling.jury import Data, Jury
from perpend.solvers import rank_tolerance

ALL_ROWS = 0.98  # share of the rows that lie near what is no subspace, but the cloud itself


def find_frame(data: Data, rng: np.random.Generator) -> Array | None:
    """Return a map (D, D) into coordinates where the rows show their subspaces, if it takes one.

    It does where nearly all rows lie near the axes along which they vary most, but not as near as
    on a subspace, and their variances do not say how many axes that are.
    """
    jury = Jury(data, rng)
    if jury.span.rank < data.X.shape[1]:
        return None
    variances, axes = np.linalg.eigh(jury.span.moments())
    cloud = jury.weigh(axes[:, : largest_gap(variances, data.X.dtype).value])
    if cloud is None or not cloud.supported or cloud.is_subspace:
        return None
    return whitening(data.X) if np.mean(cloud.members) >= ALL_ROWS else None


def whitening(X: Array) -> Array:
    """Return T (D, r) so that the rows of X @ T have second moments alike; r is their rank."""
    lengths = np.linalg.norm(X, axis=1)
    X = X[lengths > 0] / lengths[lengths > 0][:, None]
    variances, axes = np.linalg.eigh(X.T @ X / len(X))
    seen = variances > rank_tolerance(X.dtype) * variances[-1]
    T: Array = axes[:, seen] * np.sqrt(np.mean(variances[seen]) / variances[seen])
    return T

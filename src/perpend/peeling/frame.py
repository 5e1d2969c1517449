"""Coordinates in which rows are spread alike in all directions.

A cloud of points far from the origin, seen from there, is a line with thickness: all rows lie near
it, so it hides every subspace among them. Linear maps take subspaces to subspaces, so
the cloud may be stretched until nothing of that is left.
"""

import numpy as np

from perpend._typing import Array
from perpend.codimension import largest_gap
from perpend.peeling.jury import LIKELY, Jury
from perpend.solvers import rank_tolerance

ALL_ROWS = 0.98  # share of the rows that lie near what is no subspace, but the cloud itself


def find_frame(X: Array, weight: Array | None, normalize: bool, rng: np.random.Generator) -> Array:
    """Return the map (D, D) into coordinates where the rows show their subspaces.

    It is the identity, unless nearly all rows lie near the axes along which they vary most, but
    their variances do not say how many axes that are.
    """
    jury = Jury(X, weight, normalize, rng)
    D = X.shape[1]
    if jury.span.rank < D or D < 2:
        return np.eye(D)
    variances, axes = np.linalg.eigh(jury.span.moments)
    cloud = jury.weigh(axes[:, : largest_gap(variances, X.dtype).value])
    if cloud is None or not cloud.supported or cloud.exact or cloud.confidence >= LIKELY:
        return np.eye(D)
    return whitening(X) if np.mean(cloud.members) >= ALL_ROWS else np.eye(D)


def whitening(Z: Array) -> Array:
    """Return T (d, r) so that the rows of Z @ T have second moments alike; r is their rank."""
    lengths = np.linalg.norm(Z, axis=1)
    Z = Z[lengths > 0] / lengths[lengths > 0][:, None]
    variances, axes = np.linalg.eigh(Z.T @ Z / len(Z))
    seen = variances > rank_tolerance(Z.dtype) * variances[-1]
    T: Array = axes[:, seen] * np.sqrt(np.mean(variances[seen]) / variances[seen])
    return T

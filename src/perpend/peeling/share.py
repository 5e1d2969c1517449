"""Which row belongs to which subspace, once all are found."""

import numpy as np

from perpend._typing import Array
from perpend.peeling.jury import Candidate, Jury, distances_to

ROUNDS = 2  # of sharing the rows out and looking again
SHADOW = 2.0  # thresholds: what lies this close to a found subspace is its own far end


def share_out(X: Array, found: list[Candidate], normalize: bool) -> Array:
    """Return the number of the subspace that each row belongs to, -1 for none.

    A row that several accept lies near their intersection, and belongs to the one of the smallest
    dimension: few rows come close to that by accident. Among equal dimensions the distance in units
    of the threshold decides.
    """
    labels = np.full(len(X), -1)
    best = np.full((2, len(X)), np.inf)  # dimension, distance
    for k, subspace in enumerate(found):
        J = distances_to(X, subspace.normals, normalize) / subspace.threshold
        d = X.shape[1] - subspace.normals.shape[1]
        better = (J <= 1) & ((d < best[0]) | ((d == best[0]) & (J < best[1])))
        labels[better] = k
        best[0, better], best[1, better] = d, J[better]
    return labels


def settle(
    X: Array,
    weight: Array | None,
    found: list[Candidate],
    normalize: bool,
    rng: np.random.Generator,
) -> tuple[list[Candidate], Array]:
    """Weigh every subspace again, without the rows of the others, and share the rows out.

    What was found first was found among the rows of all the others, which are no outliers without
    preferred directions. A subspace that the rows left to it no longer support is dropped.
    """
    labels = share_out(X, found, normalize)
    for _ in range(ROUNDS):
        again = []
        for k, subspace in enumerate(found):
            own = (labels == k) | (labels == -1)
            if np.sum(labels == k) > 1:
                jury = Jury(X[own], None if weight is None else weight[own], normalize, rng)
                again.append(jury.weigh(subspace.normals))
        found = [looked for looked in again if looked is not None and looked.supported]
        labels = share_out(X, found, normalize)
    return found, labels


def is_shadow(X: Array, members: Array, found: list[Candidate], normalize: bool) -> bool:
    """Whether a new subspace's members are mostly the far end of one that was found before."""
    return any(
        np.median(distances_to(X[members], subspace.normals, normalize))
        <= SHADOW * subspace.threshold
        for subspace in found
    )

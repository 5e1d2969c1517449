"""Which row belongs to which subspace, once all are found."""

import math

import numpy as np

from perpend._typing import Array
from perpend.peeling.jury import Candidate, Data, Jury

ROUNDS = 2  # of sharing the rows out and looking again
SHADOW = 2.0  # thresholds: what lies this close to a found subspace is its own far end


def share_out(data: Data, found: list[Candidate]) -> Array:
    """Return the number of the subspace that each row belongs to, -1 for none.

    A row that several accept goes to the one that makes it most likely. With m members of noise s,
    spread evenly over the unit sphere of d dimensions, a row at distance J has the density

        m s^-c exp(-J^2 / (2 s^2)) / ((2 pi)^(c/2) area of the sphere)

    so that a row on an intersection goes to the smaller and thinner subspace.
    """
    labels, best = np.full(len(data.X), -1), np.full(len(data.X), -np.inf)
    for k, subspace in enumerate(found):
        D, c = subspace.normals.shape
        s, m = max(subspace.scale, subspace.floor), max(int(subspace.members.sum()), 1)
        J = data.distances(subspace.normals)
        density = math.log(m) - c * math.log(s) - c / 2 * math.log(2 * math.pi) - _log_area(D - c)
        likely = density - (J / s) ** 2 / 2
        better = (subspace.threshold >= J) & (likely > best)
        labels[better], best[better] = k, likely[better]
    return labels


def _log_area(d: int) -> float:
    """Return the logarithm of the area of the unit sphere in d dimensions."""
    return math.log(2) + d / 2 * math.log(math.pi) - math.lgamma(d / 2)


def settle(
    data: Data, found: list[Candidate], rng: np.random.Generator
) -> tuple[list[Candidate], Array]:
    """Weigh every subspace again, without the rows of the others, and share the rows out.

    What was found first was found among the rows of all the others, which are no outliers without
    preferred directions. A subspace that the rows left to it no longer support is dropped.
    """
    labels = share_out(data, found)
    for _ in range(ROUNDS):
        again = [
            Jury(data.some((labels == k) | (labels == -1)), rng).weigh(subspace.normals)
            for k, subspace in enumerate(found)
            if data.some(labels == k).can_be_asked
        ]
        found = [looked for looked in again if looked is not None and looked.is_subspace]
        labels = share_out(data, found)
    kept = [subspace for k, subspace in enumerate(found) if np.any(labels == k)]
    return kept, labels if len(kept) == len(found) else share_out(data, kept)


def is_shadow(data: Data, new: Candidate, found: list[Candidate]) -> bool:
    """Whether a new subspace's members are mostly the far end of one that was found before."""
    members = data.some(new.members)
    return any(
        np.median(members.distances(subspace.normals)) <= SHADOW * subspace.threshold
        for subspace in found
    )

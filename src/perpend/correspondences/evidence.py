"""How sure a relation is: evidence beyond luck, from pairs that determine it."""

import copy
import math

import numpy as np

from perpend.correspondences.homographies import Homographies
from perpend.correspondences.noise import FINEST, log_ratios
from perpend.correspondences.pairs import Pairs
from perpend.correspondences.search import Found, find, normal_equations
from perpend.structure import constants as k
from perpend.structure.checks import no_accident

ON_A_PLANE = 2  # parameters of F that a plane leaves open: the epipole


def beyond_luck(gain: float, n: int, n_free: int, n_parameters: int) -> float:
    """Return the probability that a gain of n pairs is no accident, as for subspaces."""
    per_parameter = k.LUCK_PER_PARAMETER + math.log(max(n / n_free, 1)) / 2
    return no_accident(gain - k.LUCK - n_parameters * per_parameter, n_parameters)


def judge(pairs: Pairs, found: Found, rng: np.random.Generator) -> tuple[float, str]:
    """Return the confidence, and the doubt if it is not sure."""
    sure = beyond_luck(found.gain, len(pairs), pairs.n_free, pairs.n_parameters)
    if sure < k.SURE:
        n_correct = int(np.sum(found.probability > 0.5))
        return sure, (
            f"only {n_correct} of {len(pairs)} pairs agree, which could be an accident; more "
            "correct pairs would help"
        )
    if isinstance(pairs, Homographies):
        determined = 1.0 if _is_spread(pairs, found) else k.DOUBTFUL
        doubt = (
            "the pairs that agree lie along a line, which leaves the homography open; pairs beside "
            "it would help"
        )
    else:
        determined = _off_plane(pairs, found, rng)
        doubt = (
            "nearly all pairs that agree may lie on a plane, which leaves the epipoles open; use "
            "perpend.homography"
        )
    return min(sure, determined), "" if determined >= k.SURE else doubt


def _is_spread(pairs: Homographies, found: Found) -> bool:
    """Say whether the pairs determine H also beside a line.

    As far from their centre as they reach, in any direction, the points that H maps to must be
    known to a hundredth of the image; their covariance is J (sum J^T J / s^2)^{-1} J^T.
    """
    w, M = found.probability, found.M[None]
    centre = np.average(pairs.x, axis=0, weights=w)
    reach = math.sqrt(np.average(np.sum((pairs.x - centre) ** 2, axis=1), weights=w))
    t = np.linspace(0, 2 * np.pi, 8, endpoint=False)
    circle = copy.copy(pairs)
    circle.x = centre + reach * np.column_stack([np.cos(t), np.sin(t), 0 * t])
    circle.y = circle.x @ found.M.T
    circle.y /= circle.y[:, 2:]
    _, J = circle.linearised(M)
    A, _ = normal_equations(pairs, M, w[None])
    A = A[0] + np.trace(A[0]) * np.outer(found.M, found.M)  # the length of h says nothing
    spectrum, axes = np.linalg.eigh(A)
    spectrum = np.maximum(spectrum, 1e-15 * spectrum[-1])
    moves = np.sum((J[0, :2] @ axes) ** 2 / spectrum, axis=(0, 2))  # squared pixels, for s = 1
    return bool(found.deviation * math.sqrt(moves.max()) < pairs.coarsest)


def _off_plane(pairs: Pairs, found: Found, rng: np.random.Generator) -> float:
    """Return the probability that the pairs off the dominant plane agree with F by no accident."""
    agree = np.flatnonzero(found.probability > 0.5)
    plane = Homographies(pairs.first[agree], pairs.second[agree])
    # Noise of Sampson's error sigma is sqrt(2) sigma in a transfer error, and more in a zoom.
    plane.coarsest = max(2 * found.deviation, FINEST * plane.extent)
    on = np.zeros(len(pairs), dtype=bool)
    on[agree] = find(plane, rng).probability > 0.5
    gains, top = log_ratios(pairs, pairs.errors(found.M[None]), found.noise)
    gain = float(gains[0, ~on].sum() - ON_A_PLANE * top[0])
    return beyond_luck(gain, int(np.sum(~on)), ON_A_PLANE, ON_A_PLANE)

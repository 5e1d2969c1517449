"""How sure a relation is: evidence beyond luck, from pairs that determine it."""

import math

import numpy as np

from perpend._typing import Array
from perpend.correspondences.homographies import Homographies
from perpend.correspondences.noise import FINEST, log_ratios
from perpend.correspondences.pairs import Pairs
from perpend.correspondences.search import Found, find
from perpend.structure import constants as k
from perpend.structure.checks import no_accident

BESIDE = 5.0  # deviations
BESIDE_A_LINE = 4  # two pairs beside a line determine H: some more must agree with it
LINE_STEPS = 20
ON_A_PLANE = 2  # parameters of F that a plane leaves open: the epipole


def beyond_luck(gain: float, n: int, n_free: int, n_parameters: int) -> float:
    """Return the probability that a gain of n pairs is no accident, as for subspaces."""
    per_parameter = k.LUCK_PER_PARAMETER + math.log(max(n / n_free, 1)) / 2
    return no_accident(gain - k.LUCK - n_parameters * per_parameter, n_parameters)


def judge(pairs: Pairs, found: Found, rng: np.random.Generator) -> tuple[float, str]:
    """Return the confidence, and the doubt if it is not sure."""
    gain = found.gain - _repeated(pairs, found)
    sure = beyond_luck(gain, len(pairs), pairs.n_free, pairs.n_parameters)
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


def _repeated(pairs: Pairs, found: Found) -> float:
    """Return what pairs gain that share a point with a better one.

    All pairs of one point fit exactly if that point is an epipole: they are one witness.
    """
    gains = log_ratios(pairs, pairs.errors(found.M[None]), found.noise)[0][0]
    best_first = np.argsort(-gains)
    again = np.zeros(len(pairs), dtype=bool)
    for points in (pairs.first, pairs.second):
        _, once = np.unique(points[best_first], axis=0, return_index=True)
        again |= ~np.isin(np.arange(len(pairs)), best_first[once])
    return float(np.maximum(gains[again], 0).sum())


def _is_spread(pairs: Pairs, found: Found) -> bool:
    """Say whether enough correct pairs lie beside the line that most of them may lie on.

    Two pairs off a line that is mapped right determine the rest; noise alone puts hardly any pair
    farther off than `BESIDE` deviations.
    """
    agree = found.probability > 0.5
    beside = []
    for points, pixels in zip((pairs.x, pairs.y), pairs.pixels, strict=True):
        off = _offsets(points[agree, :2]) * pixels
        beside.append(off > BESIDE * found.deviation)
    return int(np.sum(beside[0] & beside[1])) > BESIDE_A_LINE


def _offsets(points: Array) -> Array:
    """Return the distances from a line that runs along most of the points."""
    w = np.ones(len(points))
    for _ in range(LINE_STEPS):  # least absolute distances, by reweighting
        centre = np.average(points, axis=0, weights=w)
        across = np.linalg.eigh((w[:, None] * (points - centre)).T @ (points - centre))[1][:, 0]
        off = np.abs((points - centre) @ across)
        w = 1 / np.maximum(off, 1e-6)  # the points are of size 1
    return off


def _off_plane(pairs: Pairs, found: Found, rng: np.random.Generator) -> float:
    """Return the probability that the pairs off the dominant plane agree with F by no accident."""
    agree = np.flatnonzero(found.probability > 0.5)
    first, second = pairs.first[agree], pairs.second[agree]
    if len(agree) < Homographies.n_free or min(np.ptp(first), np.ptp(second)) == 0:
        return 0.0
    plane = Homographies(first, second)
    # Noise of Sampson's error sigma is sqrt(2) sigma in a transfer error, and more in a zoom.
    plane.coarsest = max(2 * found.deviation, FINEST * plane.extent)
    on = np.zeros(len(pairs), dtype=bool)
    on[agree] = find(plane, rng).probability > 0.5
    gains, top = log_ratios(pairs, pairs.errors(found.M[None]), found.noise)
    gain = float(gains[0, ~on].sum() - ON_A_PLANE * top[0])
    return beyond_luck(gain, int(np.sum(~on)), ON_A_PLANE, ON_A_PLANE)

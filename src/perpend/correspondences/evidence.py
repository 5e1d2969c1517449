"""How sure a relation is: evidence beyond luck, from pairs that determine it."""

import math

import numpy as np

from perpend._typing import Array
from perpend.correspondences.homographies import Homographies
from perpend.correspondences.noise import FINEST, log_ratios
from perpend.correspondences.pairs import Pairs
from perpend.correspondences.search import Estimate, find
from perpend.structure import constants as k
from perpend.structure.checks import no_accident

APART = 3.0  # deviations: what fits by chance errs by one, and hardly ever by so much
SAMPLES = 300  # of pairs, for the matrix that most of them leave open
ON_A_PLANE = 2  # parameters of F that a plane leaves open: the epipole
BEST = 3  # of these samples, and as many axes of all pairs, are where the search for it begins
STEPS = 15  # of reweighting, twice


def beyond_luck(gain: float, n: int, n_free: int, n_parameters: int) -> float:
    """Return the probability that a gain of n pairs is no accident, as for subspaces."""
    per_parameter = k.LUCK_PER_PARAMETER + math.log(max(n / n_free, 1)) / 2
    return no_accident(gain - k.LUCK - n_parameters * per_parameter, n_parameters)


def confidence_of(pairs: Pairs, estimate: Estimate, rng: np.random.Generator) -> tuple[float, str]:
    """Return the confidence, and the doubt if it is not sure."""
    gain = estimate.gain - _repeated(pairs, estimate)
    sure = beyond_luck(gain, len(pairs), pairs.n_free, pairs.n_parameters)
    if sure < k.SURE:
        n_correct = int(np.sum(estimate.probability > 0.5))
        return sure, (
            f"only {n_correct} of {len(pairs)} pairs agree, which could be an accident; more "
            "correct pairs would help"
        )
    determined = _determined(pairs, estimate, rng)
    if not isinstance(pairs, Homographies):  # the usual case, whose noise a plane itself shows
        determined = min(determined, _off_plane(pairs, estimate, rng))
    return min(sure, determined), "" if determined >= k.SURE else pairs.open_doubt


def _repeated(pairs: Pairs, estimate: Estimate) -> float:
    """Return what pairs gain that share a point with a better one.

    All pairs of one point fit exactly if that point is an epipole: they are one piece of evidence.
    """
    gains = log_ratios(pairs, pairs.errors(estimate.M[None]), estimate.noise)[0][0]
    best_first = np.argsort(-gains)
    again = np.zeros(len(pairs), dtype=bool)
    for points in (pairs.first, pairs.second):
        _, once = np.unique(points[best_first], axis=0, return_index=True)
        again |= ~np.isin(np.arange(len(pairs)), best_first[once])
    return float(np.maximum(gains[again], 0).sum())


def _determined(pairs: Pairs, estimate: Estimate, rng: np.random.Generator) -> float:
    """Return the probability that the pairs determine the relation by no accident.

    The rows of correct pairs in R^9 have rank 8, and less where their points lie on a plane (for a
    fundamental matrix), on a line, on two lines, in few places. Then there is a second matrix G
    that fits them as well, and so do all mixtures of M and G. M must fit better than the best G, by
    more pairs than a choice among the mixtures makes fit.
    """
    agree = np.flatnonzero(estimate.probability > 0.5)
    if len(agree) <= pairs.n_free:
        return 0.0
    M = estimate.M / np.linalg.norm(estimate.M)
    G = _left_open(pairs.taken(agree), estimate, rng)
    A = pairs.between(M, G)
    e2 = np.square(A @ G.ravel()).sum(axis=1) / pairs.error_size
    fits, limit = e2 <= (APART * estimate.deviation) ** 2, APART * estimate.deviation
    on = A[fits].reshape(-1, 9)
    spread = np.linalg.svd(on, compute_uv=False)
    n_open = max(8 - int(np.sum(spread > limit * math.sqrt(max(len(on), 1)))), 1)
    both = np.stack([pairs.errors(estimate.M[None])[0], e2 * pairs.error_size])
    (of_M, of_G), top = log_ratios(pairs, both, estimate.noise)
    # So many pairs fit some mixture, whatever they are.
    gain = float(np.sum((of_M - of_G)[~fits]) - n_open / pairs.error_size * top[0])
    return beyond_luck(gain, max(int(np.sum(~fits)), n_open), n_open, n_open)


def _left_open(pairs: Pairs, estimate: Estimate, rng: np.random.Generator) -> Array:
    """Return the matrix of norm 1, at a right angle to the estimate, that fits the pairs best.

    Steps of least absolute errors find it, and steps that leave out pairs far off polish it.
    """
    M = estimate.M / np.linalg.norm(estimate.M)
    beside = np.linalg.svd(M.reshape(1, 9))[2][1:].T  # (9, 8)
    A = pairs.between(np.eye(3), np.eye(3)) @ beside
    samples = rng.integers(0, len(A), (SAMPLES, pairs.n_free))
    starts = np.linalg.svd(A[samples].reshape(SAMPLES, -1, 8))[2][:, -1]
    best = starts[np.argsort(np.median(np.linalg.norm(A @ starts.T, axis=1), axis=0))[:BEST]]
    found = []
    for start in (*np.linalg.svd(A.reshape(-1, 8))[2][-BEST:], *best):
        g = start
        for step in range(2 * STEPS):
            A = pairs.between(M, (beside @ g).reshape(3, 3)) @ beside
            e2 = np.square(A @ g).sum(axis=1)
            if step < STEPS:
                w = 1 / np.maximum(np.sqrt(e2), 1e-9 * pairs.extent)
            else:
                w = np.exp(-e2 / (2 * APART * estimate.deviation) ** 2) + 1e-9
            rows = (np.sqrt(w)[:, None, None] * A).reshape(-1, 8)
            g = np.linalg.eigh(rows.T @ rows)[1][:, 0]
        gain = float(log_ratios(pairs, e2[None], estimate.noise)[0].sum())
        found.append((gain, (beside @ g).reshape(3, 3)))
    return max(found, key=lambda one: one[0])[1]


def _off_plane(pairs: Pairs, estimate: Estimate, rng: np.random.Generator) -> float:
    """Return the probability that the pairs off the dominant plane agree with F by no accident."""
    agree = np.flatnonzero(estimate.probability > 0.5)
    first, second = pairs.first[agree], pairs.second[agree]
    if len(agree) < Homographies.n_free or min(np.ptp(first), np.ptp(second)) == 0:
        return 0.0
    plane = Homographies(first, second)
    # Noise of Sampson's error sigma is sqrt(2) sigma in a transfer error, and more in a zoom.
    plane.coarsest = max(2 * estimate.deviation, FINEST * plane.extent)
    on = np.zeros(len(pairs), dtype=bool)
    on[agree] = find(plane, rng).probability > 0.5
    gains, top = log_ratios(pairs, pairs.errors(estimate.M[None]), estimate.noise)
    gain = float(gains[0, ~on].sum() - ON_A_PLANE * top[0])
    return beyond_luck(gain, int(np.sum(~on)), ON_A_PLANE, ON_A_PLANE)

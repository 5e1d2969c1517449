"""Which relation: propose, compare, polish.

Proposals are the ends of DPCP's descents in R^9, and exact fits to random samples. They are
compared by their likelihood, in pixels. The best ones are polished by EM: which pairs are correct,
how much they err, and a Levenberg step of the matrix.
"""

import math
from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.correspondences.noise import ROUGH, Noise, chance, posterior, rough_gains, updated
from perpend.correspondences.pairs import Pairs
from perpend.geometry import random_directions
from perpend.rows import as_rows
from perpend.solvers import psgm, step_rule

N_STARTS = 24  # descents
MAX_ITER, TOL = 30, 1e-2  # of a descent, in radians: what follows makes it exact
SAMPLES_AT_ONCE = 1000  # samples at a time
NONE_CORRECT = 1e-3  # chance that no sample was correct at which sampling ends
WITHIN = 3.0  # deviations: pairs that count as correct for that
SEEN = 1000  # pairs that proposals are compared on, at most
KEPT_PROPOSALS = 3  # best proposals at each rough deviation; and different ends of the first polish
ROUNDS = 8, 14  # of the first polish and the second
LEAST_RATIO = 0.5  # of the variance in a round at most, so that pairs farther off can join
WIDEN = 64.0  # the variance for a second try of each, as pairs of one corner may fit alone
SETTLE = 30  # steps of EM for the noise alone


class Estimate(NamedTuple):
    """The best relation."""

    M: Array  # (3, 3) relates the scaled points
    probability: Array  # (n,) that a pair is correct
    noise: Noise  # of this one matrix
    gain: float  # nats

    @property
    def deviation(self) -> float:
        """Of one coordinate of the error, in pixels."""
        return math.sqrt(self.noise.variance[0])


def find(pairs: Pairs, rng: np.random.Generator) -> Estimate:
    """Return the likeliest relation of the pairs."""
    few = len(pairs) <= SEEN
    some = pairs if few else pairs.taken(rng.choice(len(pairs), SEEN, replace=False))
    M, noise = polished(some, *proposals(some, rng), ROUNDS[0], core=False)
    _, gain = posterior(some, some.errors(M), noise)
    _, ends = np.unique(np.round(-gain, 1), return_index=True)  # the same gain: the same end
    best = ends[:KEPT_PROPOSALS]
    twice = np.concatenate([best, best])
    widened = np.repeat([1.0, WIDEN], len(best)) * noise.variance[twice]
    noise = noise.at(twice)._replace(variance=widened)
    M, noise = polished(pairs, M[twice], noise, ROUNDS[1], core=True)
    noise, e2 = noise._replace(flat=chance(pairs, M, noise, rng)), pairs.errors(M)
    for _ in range(SETTLE):
        noise = updated(pairs, e2, noise, core=True)
    probability, gain = posterior(pairs, e2, noise)
    i = int(np.argmax(gain))
    return Estimate(M[i], probability[i], noise.at(np.array([i])), float(gain[i]))


def proposals(pairs: Pairs, rng: np.random.Generator) -> tuple[Array, Noise]:
    """Return the best matrices at each rough deviation, and their noise.

    Samples are drawn until one of them was correct, as far as the best share so far says.
    """
    M, n_drawn = pairs.valid(descents(pairs, rng)), 0
    deviations = np.array(ROUGH) * pairs.extent
    while True:  # `most_samples` ends it
        e2 = pairs.errors(M)
        gains = rough_gains(pairs, e2)
        best = np.argsort(-gains, axis=1)[:, :KEPT_PROPOSALS]  # (4, KEPT_PROPOSALS)
        share = np.mean(e2[best] < (WITHIN * deviations[:, None, None]) ** 2, axis=2)
        most = share.flat[np.argmax(np.take_along_axis(gains, best, axis=1))]
        correct = min(most**pairs.n_free, 1 - 1e-9)  # chance that a sample is
        if n_drawn >= pairs.most_samples or n_drawn * math.log1p(-correct) < math.log(NONE_CORRECT):
            variance = np.repeat(deviations**2, best.shape[1])
            flat = np.full(variance.shape, pairs.flat)
            return M[best.ravel()], Noise(np.clip(share.ravel(), 0.05, 0.95), variance, flat)
        drawn = pairs.valid(pairs.through(_samples(len(pairs), pairs.n_free, rng)))
        M, n_drawn = np.concatenate([M[np.unique(best)], drawn]), n_drawn + SAMPLES_AT_ONCE


def _samples(n: int, size: int, rng: np.random.Generator) -> Array:
    """Draw samples (., size) of different pairs."""
    samples: Array = np.sort(rng.integers(0, n, (SAMPLES_AT_ONCE, size)), axis=1)
    return samples[np.all(np.diff(samples, axis=1) > 0, axis=1)]


def descents(pairs: Pairs, rng: np.random.Generator) -> Array:
    """Return where DPCP's descents end: directions orthogonal to many rows."""
    rows = as_rows(pairs.rows(rng), normalize=True)
    starts = random_directions(rng, 9, N_STARTS)
    ends = psgm(rows, starts, rule=step_rule("auto"), max_iter=MAX_ITER, tol=TOL)
    return ends.B.T.reshape(-1, 3, 3)


def polished(
    pairs: Pairs, M: Array, noise: Noise, rounds: int, *, core: bool
) -> tuple[Array, Noise]:
    """Return matrices (m, 3, 3) and noise after some rounds of EM."""
    damping, e2 = np.full(len(M), 1e-3), pairs.errors(M)
    for _ in range(rounds):
        before, noise = noise.variance, updated(pairs, e2, noise, core=core)
        noise = noise._replace(variance=np.maximum(noise.variance, LEAST_RATIO * before))
        w, _ = posterior(pairs, e2, noise)
        trial = pairs.moved(M, _levenberg(*normal_equations(pairs, M, w), damping))
        t2 = pairs.errors(trial)
        better = (w * t2).sum(axis=1) <= (w * e2).sum(axis=1)
        M, e2 = np.where(better[:, None, None], trial, M), np.where(better[:, None], t2, e2)
        damping = np.clip(np.where(better, damping / 10, damping * 10), 1e-9, 1e3)
    return M, noise


def normal_equations(pairs: Pairs, M: Array, w: Array) -> tuple[Array, Array]:
    """Return J^T W J (m, p, p) and J^T W r (m, p) of the residuals r and their derivatives J."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        r, J = pairs.linearised(M)
    finite = np.isfinite(r).all(axis=1) & np.isfinite(J).all(axis=(1, 3)) & (w > 1e-9)
    r, J = np.where(finite[:, None], r, 0.0), np.where(finite[:, None, :, None], J, 0.0)
    m, e, n, p = J.shape
    WJ = np.swapaxes((w[:, None, :, None] * J).reshape(m, e * n, p), 1, 2)
    return WJ @ J.reshape(m, e * n, p), (WJ @ r.reshape(m, e * n, 1))[..., 0]


def _levenberg(A: Array, g: Array, damping: Array) -> Array:
    """Return the moves -(A + damping diag A)^{-1} g; directions without any influence stay."""
    scale = np.einsum("mpp->mp", A)
    scale = damping[:, None] * scale + 1e-12 * scale.max(axis=1, keepdims=True) + 1e-300
    A = A + scale[:, :, None] * np.eye(A.shape[1])
    return -np.linalg.solve(A, g[..., None])[..., 0]

r"""How pairs err: a Gaussian about the relation, or anywhere in the image.

.. math:: q(e) = p\,(2 \pi s^2)^{-k/2} \exp(-e^2 / 2 s^2) + (1 - p)\,u

for errors of k coordinates: p is the share of correct pairs, s their deviation, and u the density
of wrong ones. The gain is the sum of log(q / u). Some matrix fits `n_free` pairs exactly, whatever
they are, so as many gains of an exact pair are taken off.
"""

from typing import NamedTuple

import numpy as np
from scipy import special

from perpend._typing import Array
from perpend.correspondences.pairs import Pairs

# Deviations of one coordinate, over the image's extent.
FINEST = 1e-6  # pixels in single precision have rounding errors of this size
ROUGH = (1e-3, 2e-3, 4e-3, 8e-3)  # at which candidates are compared: half a pixel to some five
NEAR_ERROR = 0.05  # error, over the extent, up to which the density of wrong pairs is measured,
SHIFTS = 20  # by matching every point with so many others
COMPARED_SHARE = 0.25  # share of correct pairs at which candidates are compared


class Noise(NamedTuple):
    """Share and deviation of the correct pairs, for each of m matrices."""

    share: Array  # (m,)
    variance: Array  # (m,) of one coordinate, squared pixels
    flat: Array  # (m,) density of wrong pairs' errors, per pixel ** error_size

    def at(self, which: Array) -> "Noise":
        """Return that of some of the matrices."""
        return Noise(*(values[which] for values in self))


def rough_gains(pairs: Pairs, e2: Array) -> Array:
    """Return gains (4, m) of the squared errors (m, n) at each rough deviation.

    The larger of the two densities stands for their sum, which needs no exponential.
    """
    v = (np.array(ROUGH) * pairs.extent)[:, None] ** 2
    height = np.maximum(np.log(COMPARED_SHARE * _peak(pairs, v, pairs.flat)), 0)
    sums = [np.maximum(h - e2 / (2 * s2), 0).sum(axis=1) for h, s2 in zip(height, v, strict=True)]
    return np.stack(sums) - pairs.n_free * height


def log_ratios(pairs: Pairs, e2: Array, noise: Noise) -> tuple[Array, Array]:
    """Return log(q / u) of each pair (m, n), and of an exact one (m,)."""
    p, v = noise.share[:, None], noise.variance[:, None]
    top = p * _peak(pairs, v, noise.flat[:, None])
    return np.log(1 - p + top * np.exp(-e2 / (2 * v))), np.log(1 - p + top)[:, 0]


def posterior(pairs: Pairs, e2: Array, noise: Noise) -> tuple[Array, Array]:
    """Return the probability (m, n) that a pair is correct, and the gain (m,)."""
    logs, exact = log_ratios(pairs, e2, noise)
    probability = 1 - (1 - noise.share[:, None]) * np.exp(-logs)
    return probability, logs.sum(axis=1) - pairs.n_free * exact


def updated(pairs: Pairs, e2: Array, noise: Noise, *, core: bool) -> Noise:
    """Return share and deviation after one step of EM.

    The deviation comes from the mean square; with `core` from the median, as for a Gaussian, which
    near outliers hardly move.
    """
    w, _ = posterior(pairs, e2, noise)
    W = np.maximum(w.sum(axis=1), pairs.n_free + 1)
    if core:
        v = _weighted_median(e2, w) / special.chdtri(pairs.error_size, 0.5)
    else:
        v = (w * e2).sum(axis=1) / (pairs.error_size * W)
    v = v * W / (W - pairs.n_free)  # a fit takes the errors of so many pairs away
    limits = np.array([FINEST * pairs.extent, pairs.coarsest])
    share = np.clip(W / e2.shape[1], 0.0, 1 - 1e-6)
    return Noise(share, np.clip(v, *limits**2), noise.flat)


def chance(pairs: Pairs, M: Array, noise: Noise, rng: np.random.Generator) -> Array:
    """Return the density (m,) near error 0 of points that are matched at random.

    It is higher than in a uniform image where points cluster and a matrix maps cluster to cluster,
    or where a point stands in many pairs and is made an epipole.
    """
    order = rng.permutation(len(pairs))
    shifts = range(1, min(SHIFTS, len(pairs) - 1) + 1)
    wrong = [pairs.mismatched(order, np.roll(order, i)) for i in shifts]
    e2 = np.concatenate([other.errors(M) for other in wrong], axis=1)
    density = np.full(len(M), pairs.flat)
    for near in (np.full(len(M), NEAR_ERROR * pairs.extent), np.sqrt(noise.variance)):
        count = np.sum(e2 <= near[:, None] ** 2, axis=1)
        count = np.maximum(count - 2 * np.sqrt(count), 0)  # as many at the least
        ball = 2 * near if pairs.error_size == 1 else np.pi * near**2
        density = np.maximum(density, count / e2.shape[1] / ball)
    return density


def _peak(pairs: Pairs, variance: Array, flat: Array) -> Array:
    """Return the density of correct pairs at error 0, over that of wrong ones."""
    return (2 * np.pi * variance) ** (-pairs.error_size / 2) / flat


def _weighted_median(values: Array, weight: Array) -> Array:
    order = np.argsort(values, axis=1)
    below = np.cumsum(np.take_along_axis(weight, order, axis=1), axis=1)
    middle = np.argmax(below >= below[:, -1:] / 2, axis=1)
    return np.take_along_axis(values, order, axis=1)[np.arange(len(values)), middle]

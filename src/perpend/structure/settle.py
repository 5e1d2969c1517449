"""Refining axes around one scale: first by Gaussian noise, then by the density of the distances."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import special

from perpend._typing import Array
from perpend.solvers import Fit
from perpend.structure import constants as k
from perpend.structure import effort
from perpend.structure.cloud import Axes, Cloud, radius
from perpend.structure.law import knots
from perpend.structure.layers import (
    Histogram,
    Layer,
    find_layers,
    histogram,
    layer_noise,
    members_noise,
)
from perpend.structure.reweighted import turned_by

SETTLE_STEPS = 12
POLISH_STEPS = 5
TINY_TURN = 0.02  # of the error that the noise makes: a turn that is too small to count
ROOM = 1.2  # times the largest distance, where all rows are members
UNCHANGED = 0.01  # of the weights: what may still change when the polish ends
MOST_LEVERAGE = 0.8  # of a single row; beyond it, it is on no subspace of the others


class Candidate(NamedTuple):
    """A subspace with its members, among the rows of a cloud."""

    c: int
    axes: Axes
    sigma: float  # deviation of the noise in one coordinate; at the floor where it is exact
    threshold: float
    n_members: float
    J: Array  # (n,) the distance of each row,
    probability: Array  # (n,) and how likely it is a member
    seen: Histogram  # of the distances
    is_exact: bool
    layer: Layer | None = None  # None where all rows that are near are members
    fit: Fit | None = None  # where the law of the outliers tells the members
    vague: bool = False  # whether the density does not say where they end


class Settled(NamedTuple):
    """Axes around a scale, with the two groups there."""

    axes: Axes
    sigma: float  # deviation of the noise in one coordinate
    threshold: float  # the distance at which a row is as likely noise as not


def settle(cloud: Cloud, axes: Axes, c: int, scale: float, *, least: float = 0.0) -> Settled:
    """Alternate PCA and two local groups: Gaussian noise, and the density just outside of it.

    The noise stays above `least`, so as not to fall into the core of noise with heavy tails.
    """
    sigma, r = scale, scale * radius(c)
    candidate, J2 = Settled(axes, sigma, r), cloud.squares(axes, c)
    for step in range(SETTLE_STEPS):
        odds, N = _local_odds(cloud, J2, c, sigma, r)
        t2 = 2 * sigma**2 * max(odds, 0.0)  # where the odds are even
        w = special.expit(odds - J2 / (2 * sigma**2)) * (4 * r**2 >= J2)
        if np.count_nonzero(w > 1e-3) < cloud.D - c + 1:
            break
        before, axes = axes.A[:, :c], cloud.pca(w)
        V, J2 = axes.A[:, :c], cloud.squares(axes, c)
        total = w if cloud.weight is None else w * cloud.weight
        variance = float(total @ J2) / (c * float(total.sum()))
        sigma = max(math.sqrt(max(variance, cloud.floor**2)), least)
        threshold = max(min(math.sqrt(t2), 2 * r), cloud.floor * radius(c))
        candidate = Settled(axes, sigma, threshold)
        r = max(min(sigma, 2 * scale) * radius(c), cloud.floor)
        turn = turned_by(V, before) if step else 1.0
        error = sigma * math.sqrt(cloud.D / max(N, 1.0))
        if turn * cloud.typical < TINY_TURN * error + 1e-12 * cloud.typical:
            break
    return candidate


def _local_odds(cloud: Cloud, J2: Array, c: int, sigma: float, r: float) -> tuple[float, float]:
    """Return the log-odds of noise at distance 0, and how many rows are noise."""
    near, double = (cloud.total((reach2 >= J2).astype(float)) for reach2 in (r * r, 4 * r * r))
    inner, outer = cloud.law(c, np.array([r, 2 * r]))
    q = math.exp(min(inner - outer, -1e-9))
    background = (double - near) * q / (1 - q)  # within r
    N = max(near - background, 1.0)
    log_ball = c * math.log(r) + c / 2 * math.log(math.pi) - special.gammaln(c / 2 + 1)
    outside = math.log(max(background, 0.5)) - log_ball
    inside = math.log(N) - c / 2 * math.log(2 * math.pi * sigma**2)
    return inside - outside, N


def within(cloud: Cloud, c: int, settled: Settled) -> Candidate:
    """Take all rows up to a threshold as members."""
    J, is_exact = np.sqrt(cloud.squares(settled.axes, c)), settled.sigma <= k.EXACT * cloud.floor
    near = (settled.threshold >= J).astype(float)
    seen = histogram(J, cloud.floor, cloud.share)
    return Candidate(c, *settled, cloud.total(near), J, near, seen, is_exact)


def polish(
    cloud: Cloud,
    axes: Axes,
    c: int,
    w: Array,
    least: float,
    *,
    allowed: Callable[[Layer, Array], bool] = lambda *_: True,
) -> Candidate:
    """Alternate PCA and the probabilities of members by the density, whatever the noise is like.

    `axes` are those of the weights w (n,). It is the finest layer with `least` rows that counts, of
    those that are `allowed`, given the distances.
    """
    for step in range(POLISH_STEPS):
        J = others_distance(cloud, axes, c, w)
        seen = histogram(J, cloud.floor, cloud.share)
        layer = next((one for one in find_layers(seen, c, least) if allowed(one, J)), None)
        middle, is_bell = knots(seen.edges), layer is not None and not layer.is_exact
        if layer is None:
            limit = _end_of_all(cloud, J, c, w)
            p, by_bin = (limit >= J).astype(float), (limit >= middle).astype(float)
        else:
            limit, p, by_bin = layer.threshold, layer.probability(J), layer.probability(middle)
        sigma, new = members_noise(seen, by_bin, c), p
        if is_bell:
            # Rows at the edge of a layer count for less than its core, within the reach of a path.
            # With one normal this costs 9 % of precision where the noise is Gaussian, with more of
            # them less; and a slope beside a road, say, hardly turns the plane.
            reach = sigma * (math.sqrt(c) + k.NEAR_REACH)
            new = p * np.maximum(1 - np.square(J / reach), 0.0)
        few = np.count_nonzero(new > 0.1) < cloud.D - c + 2
        unchanged = np.abs(new - w).sum() < UNCHANGED * w.sum()
        if few or unchanged or step == POLISH_STEPS - 1:
            break
        w, axes = new, cloud.pca(new)
    if layer is not None and is_bell:
        sigma = layer_noise(seen, layer, c)
    is_exact = sigma <= k.EXACT * cloud.floor
    return Candidate(c, axes, sigma, limit, cloud.total(p), J, p, seen, is_exact, layer)


def others_distance(cloud: Cloud, axes: Axes, c: int, w: Array) -> Array:
    """Return the distance (n,) of each row to the subspace that the other rows would have.

    That is J / (1 - h) with the leverage h of a row: w z^2 / lambda, summed over the axes of the
    subspace, by the total weight.
    """
    H = np.square(axes.A.T @ cloud.about(axes.centre).T)
    w = w if cloud.weight is None else w * cloud.weight
    total = max(float(w.sum()), np.finfo(float).tiny)
    h = w * ((1 / axes.inner(c)) @ H[c:] + int(cloud.affine)) / total
    J: Array = np.sqrt(H[:c].sum(axis=0))
    return J / (1 - np.minimum(h, MOST_LEVERAGE))


def _end_of_all(cloud: Cloud, J: Array, c: int, w: Array) -> float:
    """Return where the members end if no flat density is seen: at twice the reference law.

    The distance is where the rows in a thin shell are no more than twice what the reference law,
    as it is seen farther out, puts there.
    """
    members = J[w > np.max(w) / 2]  # of a faint layer, no row is more likely a member than not
    sigma = math.sqrt(float(np.mean(np.square(members))) / c) if len(members) else cloud.floor
    # The largest of n distances of Gaussian noise is about sigma (sqrt(c) + sqrt(2 log n)).
    start = max(sigma, cloud.floor) * (math.sqrt(c) + math.sqrt(2 * math.log(len(J))))
    step, far = effort.OCTAVE, 2 * effort.OCTAVE
    octaves = math.log2(max(float(J.max()) / start, 1.0))
    r = start * 2 ** (np.arange(-step, int(step * octaves) + far + 2) / step)
    N = np.searchsorted(np.sort(J), r, side="right").astype(float)
    law = cloud.law(c, r)
    b = np.arange(step, len(r) - far - 1)
    outside = np.maximum(N[b + far] - N[b + step], 0)
    top = law[b + far]
    shell = np.exp(law[b + 1] - top) - np.exp(law[b - 2] - top)
    room = np.maximum(-np.expm1(law[b + step] - top), 1e-12)
    ends = (N[b + 1] - N[b - 2] <= 2 * outside * shell / room) & (r[b] >= start)
    # Where there is nobody else, some room is left for rows of the same kind.
    return float(r[b[np.argmax(ends)]]) if np.any(ends) else ROOM * float(J.max())

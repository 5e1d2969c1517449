r"""Layers around one subspace: where the density of the distances stops falling.

A street is a slab with a plane inside. Around the same normals, the density of the rows by volume,
rho(r) ~ dN / d(r^c), is then that of two bells. For a single one - Gaussian, Laplace, Student or
uniform noise - log rho falls, and ever faster, as a function of x = log r:

.. math:: f(x) = a - \sum_k b_k (x - x_k)_+, \qquad b_k \ge 0.

Of two, the first ends at some x_b, where f is flat again and begins a new concave piece. "Flat"
means that it falls more slowly than r^-c, so that the rows per octave do not become fewer. Both
forms are fitted by non-negative least squares to a histogram, and twice the gain in log-likelihood
says whether the second is needed. Nothing is assumed about the law of the noise or of the outliers.

What is inside x_b beyond the flat density there belongs to the layer: the probability of a row at
distance r is 1 - exp(f(x_b) - f(log r)), and one half where f is log 2 above its level at x_b.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy import optimize, special

from perpend._typing import Array
from perpend.kernels import logarithmic_bins
from perpend.structure import constants as k
from perpend.structure import effort

N_BINS = 1024  # of a histogram of distances
N_BINS_OF_DENSITY = 80  # at the most
TIE = 1.0  # twice the log-likelihood: cuts that differ by less are equally good
HINTED = 4.0  # times what cuts seem to gain: of 1441 none gained more, where that was needed
N_PEAKS = 3  # of what cuts seem to gain, from which the best is looked for
MOST_LAYERS = 5  # one inside the other
N_BINS_OF_NOISE, N_SCALES = 48, 48  # where the noise of a layer is fitted
DEGREES = 3.0, 4.0, 6.0, 12.0  # of freedom, of single kinds of noise,
POWERS = 1.0, 2.0, 4.0, 8.0  # and exp(-u^p): Laplace, Gauss, nearly uniform
ENDS = np.array([0.7, 0.8, 0.9, 0.95, 0.98, 0.995, 1.0])  # of a slab, by the rows within
STUDENT = (math.inf, 6.0, 3.0)  # degrees of freedom: Gaussian noise, and with heavy tails
ENDS_OF_STUDENT = (math.inf, 3.0)  # the heaviest tails of a law that has a variance


class Histogram(NamedTuple):
    """How many rows are how far away; bins grow geometrically, the first holds rounding errors."""

    edges: Array  # (m,) upper edges
    counts: Array  # (m,)


class Layer(NamedTuple):
    """A bell of rows around a subspace that stands on a flat density."""

    radius: float  # where it ends
    gain: float  # twice the log-likelihood of two bells over one
    members: float  # rows beyond the flat density
    threshold: float  # where a row is as likely a member as not
    x: Array  # log distances,
    log_density: Array  # and the fitted density there, up to the end

    @property
    def is_exact(self) -> bool:
        """Whether its rows have no distance but rounding errors."""
        return len(self.x) == 1

    def probability(self, J: Array) -> Array:
        """Return the probability of a member at distances J (n,)."""
        if self.is_exact:
            return (self.radius >= J).astype(float)
        f = np.interp(np.log(np.maximum(J, np.finfo(float).tiny)), self.x, self.log_density)
        p = -np.expm1(np.minimum(self.log_density[-1] - f, 0.0))
        return np.where(self.radius >= J, p, 0.0)


def histogram(J: Array, floor: float, share: Array | None = None) -> Histogram:
    """Count distances J (n,); those below `floor` are rounding errors."""
    largest = max(float(np.max(J)), 2 * floor)
    edges = np.geomspace(floor, largest, N_BINS)
    bins = logarithmic_bins(J, edges)
    return Histogram(edges, np.bincount(bins, share, minlength=N_BINS).astype(float))


def find_layers(
    of: Histogram, c: int, least: float, *, r_max: float = math.inf, luck: float = 0.0
) -> list[Layer]:
    """Return the layers within r_max that have at least so many members, finest first.

    `luck` are the nats that the normals may have gained by being fitted to these very rows.
    """
    N = np.cumsum(of.counts)
    top = min(int(np.searchsorted(of.edges, r_max)), len(of.edges) - 1)
    layers, needed = list[Layer](), k.KINK + 2 * luck
    while len(layers) < MOST_LAYERS:
        layer = _cut(of.edges, N, c, top, needed)
        if layer is None or layer.gain < needed or layer.members < least:
            break
        layers.insert(0, layer)
        needed = k.CLEAR_LAYER + 2 * luck  # inside another one, it must stand out clearly
        top = int(np.searchsorted(of.edges, layer.radius * 1.1))
    if N[0] >= least:
        r = float(of.edges[0])
        layers.insert(0, Layer(r, math.inf, float(N[0]), r, np.array([math.log(r)]), np.zeros(1)))
    return layers


def _cut(edges: Array, N: Array, c: int, top: int, needed: float) -> Layer | None:
    """Return the best place to cut the density up to an edge into two bells, if any.

    What the other bell may gain is known roughly from the first alone. Where that has a peak both
    are fitted, and from the best of these on to their neighbours.
    """
    bins = _density(edges, N, c, top)
    if bins is None:
        return None
    x, y, h, outer = bins
    ramps = np.maximum(x[:, None] - x[:-1], 0)
    one = _bell(ramps, y, h)
    if one is None:
        return None
    f, misfit, kinks = one
    hint = _hint(ramps, y - f, h, kinks)
    slope = -np.diff(y) / np.diff(x)
    smooth = -(y[2:] - y[:-2]) / (x[2:] - x[:-2])
    flat = np.minimum(slope[2:], np.append(smooth[2:], smooth[-1]))
    steepest = np.maximum.accumulate(np.maximum(slope[1:-1], slope[0]))
    ends = np.flatnonzero((flat < np.minimum(steepest, c)) & (hint[2:] > 0)) + 2
    hint = hint[ends]
    if not np.any(hint >= needed / HINTED):
        return None
    before, after = np.append(0.0, hint[:-1]), np.append(hint[1:], 0.0)
    peaks = np.flatnonzero((hint >= before) & (hint > after))
    todo = set(peaks[np.argsort(-hint[peaks], kind="stable")[:N_PEAKS]].tolist())
    tried: dict[int, tuple[float, Array]] = {}
    while todo:
        for j in todo:
            b = int(ends[j])
            stopped = ramps.copy()
            np.minimum(ramps[:, :b], x[b] - x[:b], out=stopped[:, :b])
            f, of_two, _ = _bell(stopped, y, h) or one
            is_flat = f[b] - f[b + 1] <= c * (x[b + 1] - x[b])
            tried[j] = (misfit - of_two, f) if is_flat else (-math.inf, y)
        most = max(gain for gain, _ in tried.values())
        good = [j for j, (gain, _) in tried.items() if gain >= most - TIE]
        todo = {i for j in good for i in (j - 1, j + 1) if 0 <= i < len(ends)} - tried.keys()
    if math.isinf(most):
        return None
    # The far end of a bell belongs to it, unless the rows say otherwise.
    b, (gain, f) = int(ends[max(good)]), tried[max(good)]
    radius = float(outer[b - 1])
    background = math.exp(f[b] + c * math.log(radius))
    inside = float(N[np.searchsorted(edges, radius * (1 - 1e-9))])
    # Where hardly a row is between the bell and what it stands on, its edge is the threshold, or
    # where Gaussian noise, as the rows within have it, would be as dense as the flat density.
    median = float(edges[np.searchsorted(N, N[np.searchsorted(edges, radius)] / 2)])
    sigma = median / math.sqrt(2 * special.gammaincinv(c / 2, 0.5))
    edge = max(radius, sigma * math.sqrt(2 * max(f[0] - f[b], 0.0)))
    members = max(inside - background, 0.0)
    return Layer(radius, gain, members, min(_half(x, f, b), edge), x[: b + 1], f[: b + 1])


def _bell(ramps: Array, y: Array, h: Array) -> tuple[Array, float, Array] | None:
    """Fit a falling function of these ramps to y with weights h; None if that does not converge.

    Return its values f (m,), the misfit and the kinks b_k (m - 1,).
    """
    root, total = np.sqrt(h), float(h.sum())
    level = float(h @ y) / total  # with the means taken out, it need not be fitted
    basis = (h @ ramps) / total - ramps
    A, b = basis * root[:, None], (y - level) * root
    try:
        kinks, misfit = optimize.nnls(A, b, maxiter=50 * len(y))
    except RuntimeError:
        return None
    return level + basis @ kinks, float(misfit) ** 2, kinks


def _hint(ramps: Array, rest: Array, h: Array, kinks: Array) -> Array:
    """Return what one bell gains if it may fall more steeply somewhere, up to each place (m - 1,).

    Its kinks may have any size then, and no others come. Where this is 0, two bells gain nothing.
    """
    pull = (h * rest) @ ramps
    places = np.where(pull > np.minimum.accumulate(pull), 0, np.arange(len(pull)))
    start = np.append(0, np.maximum.accumulate(places)[:-1])  # the lowest pull before each place
    root = np.sqrt(h)[:, None]
    Q, _ = np.linalg.qr(np.hstack([root, root * ramps[:, kinks > 0]]))
    steps = root * (ramps[:, start] - ramps)
    size = np.square(steps).sum(axis=0)
    free = np.maximum(size - np.square(Q.T @ steps).sum(axis=0), 1e-9 * size)
    return np.square(np.maximum(pull - pull[start], 0.0)) / np.maximum(free, np.finfo(float).tiny)


def _half(x: Array, f: Array, b: int) -> float:
    """Return the distance at which the density is twice what it is at x_b."""
    above = f[: b + 1] - f[b] - math.log(2)
    j = max(int(np.argmax(above <= 0)), 1)
    part = max(above[j - 1], 0.0) / max(above[j - 1] - above[j], np.finfo(float).tiny)
    return float(np.exp(x[j - 1] + part * (x[j] - x[j - 1])))


def _density(edges: Array, N: Array, c: int, top: int) -> tuple[Array, Array, Array, Array] | None:
    """Return log radius, log density, rows and outer edge of bins that hold enough rows each.

    The nearest rows, which any subspace can be laid through, are left out.
    """
    enough = max(k.ROWS_IN_BIN, N[top] / N_BINS_OF_DENSITY)
    if N[top] < 6 * enough:
        return None
    step = max(round(math.log(2) / effort.OCTAVE / math.log(edges[1] / edges[0])), 1)
    first = int(np.searchsorted(N, enough))
    index = np.arange(top, first - 1, -step)[::-1]
    kept, end = [], -math.inf
    for j, inside in zip(index.tolist(), N[index].tolist(), strict=True):
        if inside - end >= enough:
            kept.append(j)
            end = inside
    if len(kept) < 7:
        return None
    kept[-1] = top
    outer, inner = edges[kept[1:]], edges[kept[:-1]]
    h = np.diff(N[kept])
    a, b = np.log(inner), np.log(outer)
    log_volume = c * b + np.log1p(-np.exp(c * (a - b)))
    y = np.log(h) - log_volume
    x = b + np.log((1 + np.exp(c * (a - b))) / 2) / c
    for _ in range(3):  # where a density that falls as r^-s has its mean over the bin
        dx = np.diff(x)
        pieces, part = np.diff(y) / dx, dx[:-1] / (dx[:-1] + dx[1:])
        inside = part * pieces[1:] + (1 - part) * pieces[:-1]  # the nearer piece counts for more
        s = np.clip(-np.concatenate([pieces[:1], inside, pieces[-1:]]), 0, 40 * c)
        e = np.where(np.abs(c - s) < 1e-3, 1e-3, c - s)
        # c (b^e - a^e) / (e (b^c - a^c)), as a logarithm
        mean = np.log(c / np.abs(e)) + np.where(e > 0, e * b, e * a)
        mean += np.log1p(-np.exp(-np.abs(e) * (b - a))) - log_volume
        x = np.clip(np.where(s > 1e-3, -mean / np.maximum(s, 1e-3), x), a, b)
    distinct = np.diff(x, prepend=-np.inf) > 1e-9
    return x[distinct], y[distinct], h[distinct], outer[distinct]


def members_noise(
    of: Histogram, probability: Array, c: int, most: float = k.NOISE_QUANTILE
) -> float:
    """Return the deviation of the noise in one coordinate; `probability` (m,) is by bin.

    It is by the distance that `most` members are within, so that heavy tails count in part: for
    Gaussian noise it is the deviation, for Student's with three degrees of freedom between the
    scale and the deviation.
    """
    N = np.cumsum(of.counts * probability)
    if N[-1] <= 0:
        return float(of.edges[0])
    log_r = np.interp(most * N[-1], N, np.log(of.edges))
    return math.exp(log_r) / math.sqrt(2 * special.gammaincinv(c / 2, most))


def layer_noise(of: Histogram, layer: Layer, c: int, *, mean: bool = False) -> float:
    """Return the same for a layer on a flat density, in which the tails of its noise are lost.

    With several normals there is little of that density near the subspace (r^c). Of one normal the
    law of the distances is that of the noise: within one and a half times the layer's radius, rows
    of Student's law with few or many degrees of freedom, of any scale, on a flat density are fitted
    by weighted least squares, A g(r / s) + B. The likeliest one says by how much the distance that
    most members are within is too small. That is what a search compares scales by. The `mean` of
    the logarithm over Gaussian noise and the heaviest tails, by their likelihood, is nearer to the
    truth, and moves with every row.
    """
    seen = members_noise(of, layer.probability(of.edges), c)
    if c > 1:
        return seen
    first, last = np.searchsorted(of.edges, [layer.radius / 64, 1.5 * layer.radius])
    kept = np.unique(np.r_[0, np.arange(first, last, max((last - first) // N_BINS_OF_NOISE, 1))])
    r, h = of.edges[kept], np.diff(np.cumsum(of.counts)[kept])
    volume, w, middle = np.diff(r), 1 / np.maximum(h, 1), (r[1:] + r[:-1]) / 2
    s = seen * np.geomspace(1 / 3, 3, N_SCALES)[:, None]
    u, member = np.square(middle / s), layer.probability(middle)
    p, fits, likelihoods, noises = (1 + k.NOISE_QUANTILE) / 2, [], [], []
    for nu in ENDS_OF_STUDENT if mean else STUDENT:
        gaussian = math.isinf(nu)
        G = (np.exp(-u / 2) if gaussian else (1 + u / nu) ** (-(nu + 1) / 2)) * volume
        expected = np.maximum(_on_a_slab(G, volume, w, h), 1e-9)
        likelihood = (h * np.log(expected) - expected).sum(axis=1)
        reach = special.ndtri(p) if gaussian else special.stdtrit(nu, p)
        top = int(np.argmax(likelihood))
        N = np.cumsum(expected[top] * member)
        within = float(np.interp(k.NOISE_QUANTILE * N[-1], N, r[1:]))
        fits.append((float(likelihood[top]), float(s[top, 0] * reach) / within))
        likelihoods.append(likelihood)
        noises.append(np.log(s[:, 0] * reach / (special.ndtri(p) * seen)))
    _, correction = max(fits)
    if mean:
        correction = math.exp(float(special.softmax(likelihoods).ravel() @ np.concatenate(noises)))
    return seen * min(max(correction, 1.0), k.LOST)


def gain_of_two(of: Histogram) -> float:
    r"""Return twice the log-likelihood of a bell in a slab over that of one kind of noise.

    This is for one normal, where the densities of usual noise g are known: Gaussian, Laplace's,
    Student's, or uniform. The slab is uniform up to some h,

    .. math:: A \, g(r / s) + B \, [r \le h],

    and A and B are fitted by least squares, weighted by the rows in each bin. A bell that hardly
    stands out of its slab breaks no concave shape, but the two are like no single kind.
    """
    N = np.cumsum(of.counts)
    kept = np.unique(np.searchsorted(N, np.linspace(0, N[-1], N_BINS_OF_NOISE + 1)))
    kept = kept[kept < len(N)]
    r, h = of.edges[kept], np.diff(N[kept], prepend=0.0)
    edges = np.append(0.0, r)
    median = float(np.interp(N[-1] / 2, N, of.edges))
    s = median * np.geomspace(1 / 8, 2, N_SCALES)[:, None]
    u = np.append(edges[:-1], np.inf) / s  # the last bin has no end
    laws = [special.gammainc(1 / power, u**power) for power in POWERS]
    laws += [2 * special.stdtr(nu, u) - 1 for nu in DEGREES]
    G = np.diff(np.array(laws), axis=2).reshape(-1, len(h))  # (laws x scales, bins)

    def likelihood(expected: Array) -> float:
        expected = np.maximum(expected, 1e-3)
        return float(np.max(np.sum(h * np.log(expected) - expected, axis=-1)))

    one = max(likelihood(N[-1] * G), likelihood(N[-1] * np.diff(edges) / r[-1]))
    w, two = 1 / np.maximum(h, 1.0), one
    for end in np.interp(N[-1] * ENDS, N, of.edges):
        V = np.clip(end - edges[:-1], 0.0, np.diff(edges))
        two = max(two, likelihood(_on_a_slab(G, V, w, h)))
    return 2 * (two - one)


def _on_a_slab(G: Array, V: Array, w: Array, h: Array) -> Array:
    """Return A G + B V for each row of G, with A, B >= 0 by least squares to h with weights w."""
    a, b, d, x, y = (G * G) @ w, (G * V) @ w, (V * V) @ w, G @ (w * h), V @ (w * h)
    det = np.maximum(a * d - b * b, np.finfo(float).tiny)
    A, B = np.maximum((d * x - b * y) / det, 0.0), np.maximum((a * y - b * x) / det, 0.0)
    return A[:, None] * G + B[:, None] * V

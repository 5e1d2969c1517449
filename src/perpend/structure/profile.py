r"""The contrast of every scale and codimension, and the best of it over all axes that were seen.

With n1 and n2 the rows within r and 2 r, without the d nearest (any subspace can be laid through d
rows), and q the share of the n2 that a smooth density puts within r, the contrast is the
log-likelihood ratio

.. math:: T(s, c) = n_2 \, \mathrm{KL}(n_1 / n_2 \,\|\, q) - \text{luck}.

At each scale the codimension with the largest contrast is c*(s), a staircase. A *plateau* is a run
of scales with the same c*, a positive contrast and more than a flat density among the rows. Its
length in log s says how far apart the noise and the inliers' own variances are.
"""

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from perpend._typing import Array, Namespace
from perpend.solvers import Callback, Fit
from perpend.structure import constants as k
from perpend.structure import effort
from perpend.structure.checks import no_accident
from perpend.structure.cloud import Axes, Chance, Cloud, Counts


class Plateau(NamedTuple):
    """A range of scales over which rows concentrate on a subspace of one codimension."""

    c: int  # the codimension
    first: int  # finest scale
    last: int  # coarsest scale
    peak: int  # the scale with the largest local contrast
    T: float  # the contrast there
    length: float  # in log s
    share: float  # of the rows, at the peak

    @property
    def weight(self) -> float:
        """Evidence times persistence."""
        return float(max(self.T, 0.0) ** k.POWER * min(self.length, k.LONG))

    def is_of_all(self, finer: "Plateau") -> bool:
        """Say whether a finer plateau is of nearly all rows of this one, and not clearly longer."""
        same_rows = finer.share >= k.FEWER * self.share
        return finer.peak < self.peak and same_rows and finer.length <= self.length + k.LENGTH

    def meets(self, other: "Plateau") -> bool:
        """Say whether both are about the same codimension and scales."""
        return self.c == other.c and self.first <= other.last and other.first <= self.last


class Staircase(NamedTuple):
    """The best codimension at each scale, (S,) each."""

    c: Array
    T: Array  # its contrast,
    local: Array  # that of the ball of 2 r alone,
    part: Array  # the rows beyond a flat density as a part of those within 2 r,
    share: Array  # and as a share of all


class LawFit(NamedTuple):
    """A subspace refined by the law of the outliers, and its contrast."""

    fit: Fit  # as the rows see it
    number: int  # of its axes, as the cloud sees them, among all that were seen
    T: Array  # (S,) its contrast at every scale
    lawful: bool  # whether the outliers follow that law, and the members are of one kind


class Profile:
    """The best contrast at every scale and codimension over all axes that were seen."""

    def __init__(self, cloud: Cloud, callback: Callback | None = None) -> None:
        self.cloud, self.callback = cloud, callback  # which follows the paths of a search
        shape = (cloud.D - 1, cloud.n_scales)
        self.best, self.local = np.full(shape, -np.inf), np.full(shape, -np.inf)
        self.part, self.share = np.zeros(shape), np.zeros(shape)
        self.of = np.full(shape, -1)  # the number of the axes
        self.table = self.best  # of the last axes
        self.seen: list[Axes] = []
        self.fits: list[LawFit] = []
        self.start = 0  # which start is on its way; negative for nobody
        self.counts_for: dict[int, int] = {}  # how many starts one stands for, if not one
        self.start_of: list[int] = []  # that has seen each of the axes
        self.best_of: dict[int, tuple[Array, Array]] = {}  # by start: contrasts, and of which axes
        self._settled: set[tuple[int, int, int]] = set()

    @property
    def T(self) -> Array:  # noqa: N802
        """The largest contrast (S,) at each scale."""
        return np.max(self.best, axis=0)

    @property
    def c(self) -> Array:
        """Its codimension (S,)."""
        return np.argmax(self.best, axis=0) + 1

    def add(self, axes: Axes, fit: Fit | None = None, *, lawful: bool = False) -> None:
        """Weigh axes at every scale and codimension; they may be those of a fit by the law."""
        counts, number = self.cloud.counts(axes), len(self.seen)
        local, self.table = contrasts(self.cloud, counts)
        T = self.table
        if self.start >= 0:
            nothing = np.full(T.shape, -np.inf), np.full(T.shape, -1)
            own, of = self.best_of.setdefault(self.start, nothing)
            better = own < T
            own[better], of[better] = T[better], number
        excess, part = beyond_flat(counts, np.exp(self.cloud.log_q))
        tie = 1e-9 * np.abs(T)  # for what was seen first, but for a fit, which is refined already
        better = self.best + (tie if fit is None else -tie) < T
        self.best[better], self.local[better] = T[better], local[better]
        self.part[better], self.share[better] = part[better], excess[better] / self.cloud.n
        self.of[better] = number
        if fit is not None:
            self.fits.append(LawFit(fit, number, T[fit.V.shape[1] - 1].copy(), lawful))
        self.seen.append(axes)
        self.start_of.append(self.start)

    def contrast(self, J2: Array, c: int) -> Array:
        """Return the contrast (S,) of squared distances J2 (n,) to a subspace of c normals."""
        return self.of_counts(self.cloud.counts_at(J2, c), c)[0]

    def of_counts(self, counts: Counts, c: int) -> Array:
        """Return the contrasts (k, S) of k subspaces of c normals, from their counts."""
        cloud, of = self.cloud, slice(c - 1, c)
        chance = Chance(cloud.free[of], cloud.needed[of], cloud.log_q[of], cloud.log_q_far[of])
        return contrasts(chance, counts)[1]

    def plateaus(self) -> list[Plateau]:
        """Return the plateaus, finest first."""
        c, scale = self.c, np.arange(self.cloud.n_scales)
        by_scale = (values[c - 1, scale] for values in (self.local, self.part, self.share))
        return find_plateaus(Staircase(c, self.T, *by_scale), self.cloud.wide)

    def at(self, c: int) -> Plateau:
        """Return the strongest plateau of a codimension; its best scale alone, if it has none."""
        own = [p for p in self.plateaus() if p.c == c]
        if own:
            return max(own, key=lambda p: p.weight)
        peak = int(np.argmax(self.best[c - 1]))
        T, share = float(self.best[c - 1, peak]), float(self.share[c - 1, peak])
        return Plateau(c, peak, peak, peak, T, 0.0, share)

    def chosen(self, fixed: int | None = None) -> Plateau | None:
        """Return the chosen plateau, or that of a codimension; None where there is none."""
        if fixed is not None:
            return self.at(fixed) if self.seen else None
        all_ = self.plateaus()
        return choose(all_) if all_ else None

    def faint(self) -> Plateau | None:
        """Return the strongest contrast if it is significant, although there are no plateaus.

        It is seen at one scale only, so its codimension is not clear.
        """
        if not self.seen:
            return None
        p = self.at(int(self.c[np.argmax(self.T)]))
        return p if no_accident(p.T, p.c * int(self.cloud.free[p.c - 1])) >= k.SURE else None

    def axes_at(self, p: Plateau) -> Axes:
        """Return the axes that were best at the peak of a plateau."""
        return self.seen[int(self.of[p.c - 1, p.peak])]

    def to_settle(self) -> list[Plateau]:
        """Return the strongest plateaus whose axes were not settled yet, and note them."""
        all_ = sorted(self.plateaus(), key=lambda p: -p.weight)
        by_law = {(one.fit.V.shape[1], one.number) for one in self.fits}  # refined already
        keys = {p: (p.c, p.peak, int(self.of[p.c - 1, p.peak])) for p in all_}
        new = [p for p, key in keys.items() if key not in self._settled and key[::2] not in by_law]
        new = new[: effort.TRIES]
        if self.cloud.D > effort.FEW_COLUMNS:  # beside a long one, short ones are its shoulders
            new = [p for p in new if p.weight > k.SHOULDER * all_[0].weight]
        self._settled.update(keys[p] for p in new)
        return new


def contrasts(chance: Cloud | Chance, counts: Counts, xp: Namespace = np) -> tuple[Array, Array]:
    """Return the local contrast, and the better of it and that with the wider ball, (..., C, S).

    `xp` is the library of the counts: those of a stack of problems may be on a device.
    """
    needed = chance.needed[..., None]
    near, double, far = (xp.clip(N - chance.free[..., None], 0, None) for N in counts)
    local = _contrast(near, double, chance.log_q, xp) - needed
    wide = _contrast(near, far, chance.log_q_far, xp) - needed - math.log(2)
    return local, xp.maximum(local, wide)


def _contrast(near: Array, outer: Array, log_q: Array, xp: Namespace) -> Array:
    """Return n2 KL(n1 / n2 || q) where n1 / n2 is above q, and 0 elsewhere."""
    p = near / xp.clip(outer, 1e-9, None)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_p, rest = xp.log(p), 1 - p
        kl = xp.where(p > 0, p * (log_p - log_q), 0.0)
        kl += xp.where(rest > 0, rest * (xp.log(rest) - xp.log(-xp.expm1(log_q))), 0.0)
        return xp.where((outer > 0) & (log_p > log_q), outer * kl, 0.0)


def beyond_flat(counts: Counts, q: Array, xp: Namespace = np) -> tuple[Array, Array]:
    """Return the rows within r beyond a flat density, and their part of those within 2 r."""
    near, double = counts.near, counts.double
    excess = near - (double - near) * q / (1 - q)
    return xp.clip(excess, 0, None), (near / xp.clip(double, 1, None) - q) / (1 - q)


def find_plateaus(seen: Staircase, scales: Array) -> list[Plateau]:
    """Return the plateaus, finest first; `scales` has at least one more."""
    run = np.where((seen.T > 0) & (seen.part >= k.PART), seen.c, 0)
    edges = [0, *(np.flatnonzero(np.diff(run)) + 1).tolist(), len(run)]
    plateaus = []
    for first, end in pairwise(edges):
        c, peak = int(run[first]), first + int(np.argmax(seen.local[first:end]))
        length = float(np.log(scales[end] / scales[first]))
        T, share = float(seen.T[peak]), float(seen.share[peak])
        if c > 0:
            plateaus.append(Plateau(c, first, end - 1, peak, T, length, share))
    return plateaus


def clearness(chosen: Plateau, all_: list[Plateau]) -> float:
    """Return how much longer a codimension is seen than the longest rival of the chosen plateau.

    From 1 on the codimension is clear. A long plateau excuses coarser rivals, whose structure holds
    this one, but not a finer one that is nearly as long. Plateaus of a codimension count together:
    others may be best in between for a few scales, where several are nearly alike.
    """
    # With fewer normals and the same rows, a finer one is noise that differs from normal to normal.
    others = [p for p in all_ if p.c != chosen.c and (p.c > chosen.c or not chosen.is_of_all(p))]
    good = [p for p in others if p.weight > k.AS_GOOD * chosen.weight]
    coarser = _longest(p for p in others if p.peak > chosen.peak)
    finer = _longest(p for p in good if p.peak < chosen.peak)
    own = _longest(p for p in all_ if p.c == chosen.c)
    return (own - max(min(coarser, 2 * k.LENGTH), finer)) / k.LENGTH


def _longest(some: Iterable[Plateau]) -> float:
    """Return the largest length of a codimension, summed over its plateaus."""
    total: dict[int, float] = {}
    for p in some:
        total[p.c] = total.get(p.c, 0.0) + p.length
    return max(total.values(), default=0.0)


def choose(all_: list[Plateau]) -> Plateau:
    """Return the strongest plateau of the codimension with most evidence times persistence.

    Of several that are nearly as good, it is the finest that is long: a plane inside a slab, or
    the subspace of some rows that all lie near a line, as rows far from the origin do. Where the
    contrast still rises at the coarse end, a plateau is the fine end of another one.
    """
    total: dict[int, float] = {}
    for p in all_:
        total[p.c] = total.get(p.c, 0.0) + p.weight
    most = max(total.values())
    by_weight = sorted(all_, key=lambda p: -p.weight)
    best = next(p for p in by_weight if total[p.c] == most)
    for p in all_:
        good = total[p.c] >= k.AS_GOOD * most and p.length >= k.LAYER and p.share >= k.LEAST_SHARE
        if good and p.peak < min(p.last, best.peak) and not best.is_of_all(p):
            return p if p.c == best.c else next(q for q in by_weight if q.c == p.c)
    return best

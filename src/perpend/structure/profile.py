r"""The contrast of every scale and codimension, and the best of it over all axes that were seen.

With n1 and n2 the rows within r and 2 r, without the d nearest (any subspace can be laid through d
rows), and q the share of the n2 that a smooth density puts within r, the contrast is the
log-likelihood ratio

.. math:: T(s, c) = n_2 \, \mathrm{KL}(n_1 / n_2 \,\|\, q) - \text{luck}.

At each scale the codimension with the largest contrast is c*(s), a staircase. A *plateau* is a run
of scales with the same c*, a positive contrast and more than a flat density among the rows. Its
length in log s says how far apart the noise and the inliers' own variances are.
"""

from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.structure import constants as k
from perpend.structure.cloud import Axes, Cloud, Counts


class Plateau(NamedTuple):
    """A range of scales over which rows concentrate on a subspace of one codimension."""

    i: int  # place of the codimension
    first: int  # finest scale
    last: int  # coarsest scale
    peak: int  # the scale with the largest local contrast
    T: float  # the contrast there
    length: float  # in log s
    share: float  # of the rows, at the peak

    @property
    def weight(self) -> float:
        """Evidence times persistence."""
        return float(self.T**k.POWER * min(self.length, k.LONG))

    def is_of_all(self, finer: "Plateau") -> bool:
        """Say whether a finer plateau holds nearly all rows of this one."""
        return finer.peak < self.peak and finer.share >= k.FEWER * self.share

    def meets(self, other: "Plateau") -> bool:
        """Say whether both are about the same codimension and scales."""
        return self.i == other.i and self.first <= other.last and other.first <= self.last


class Profile:
    """The best contrast at every scale over all axes that were seen, and whose it is."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        S = cloud.n_scales
        self.T, self.local = np.full(S, -np.inf), np.full(S, -np.inf)
        self.i, self.of = np.zeros(S, dtype=int), np.full(S, -1)
        self.part, self.share = np.zeros(S), np.zeros(S)
        self.seen: list[Axes] = []
        self.table = np.full((len(cloud.codimensions), S), -np.inf)  # of the last axes
        self._settled: set[tuple[int, int, int]] = set()
        self.start = 0  # which start is on its way; negative for nobody
        self._start_of: list[int] = []  # that has seen each of the axes
        self._best: dict[int, tuple[Array, Array]] = {}  # by start: contrasts, and of which axes

    def agreement(self, rows: Array, i: int, j: int, *, near: float) -> tuple[int, bool]:
        """Return how many starts have seen the subspace of these rows, and whether one saw another.

        That is one of the same codimension, i, with nearly the contrast at the scale j. A
        start has seen the rows' own subspace if they are `near` to any of its axes.
        """
        c, found = int(self.cloud.codimensions[i]), set[int]()

        def is_near(axes: Axes, times: float = 1.0) -> bool:
            V = axes.A[:, :c]
            H = rows @ V - axes.centre @ V
            return bool(np.mean(np.sum(np.square(H), axis=1)) <= (times * near) ** 2)

        for axes, start in zip(self.seen, self._start_of, strict=True):
            if start >= 0 and start not in found and is_near(axes):
                found.add(start)
        enough = k.AS_GOOD * self.table[i, j]
        rival = any(
            T[i, j] >= enough and not is_near(self.seen[int(of[i, j])], k.OTHER)
            for start, (T, of) in self._best.items()
            if start not in found
        )
        return len(found), rival

    def add(self, axes: Axes) -> Array:
        """Weigh these axes at every scale and codimension; return the best contrast by scale."""
        counts = self.cloud.counts(axes)
        local, T = contrasts(self.cloud, counts)
        self.table = T
        if self.start >= 0:
            own, of = self._best.setdefault(
                self.start, (np.full(T.shape, -np.inf), np.full(T.shape, -1))
            )
            better = own < T
            own[better], of[better] = T[better], len(self.seen)
        i, S = np.argmax(T, axis=0), np.arange(T.shape[1])
        best, q = T[i, S], np.exp(self.cloud.log_q[i, S])
        near, double = counts.near[i, S], counts.double[i, S]
        better = best > self.T + 1e-9 * np.abs(best)
        excess = near - (double - near) * q / (1 - q)  # rows beyond a flat density
        part = (near / np.maximum(double, 1) - q) / (1 - q)
        for mine, new in (
            (self.T, best),
            (self.i, i),
            (self.local, local[i, S]),
            (self.part, part),
            (self.share, np.maximum(excess, 0) / self.cloud.n),
        ):
            mine[better] = new[better]
        self.of[better] = len(self.seen)
        self.seen.append(axes)
        self._start_of.append(self.start)
        return best

    def promises(self, J2: Array, c: int) -> bool:
        """Say whether a whole table is worth it, by the distances of a path, which cost nothing."""
        i = self.cloud.index(c)
        if i is None:
            return True
        counts = self.cloud.counts_at(J2, c)
        free, q = self.cloud.free[i], self.cloud.log_q[i]
        gain = _contrast(counts.near[0] - free, counts.double[0] - free, q)
        return bool(np.max(gain) > k.PROMISE * self.cloud.needed[i])

    def plateaus(self) -> list[Plateau]:
        """Return the plateaus, finest first."""
        ok = (self.T > 0) & (self.part >= k.PART)
        log_s, found, j = np.log(self.cloud.wide), [], 0
        while j < len(ok):
            if not ok[j]:
                j += 1
                continue
            end = j
            while end + 1 < len(ok) and ok[end + 1] and self.i[end + 1] == self.i[j]:
                end += 1
            peak = j + int(np.argmax(self.local[j : end + 1]))
            length = float(log_s[end + 1] - log_s[j])
            T, share = float(self.T[peak]), float(self.share[peak])
            found.append(Plateau(int(self.i[j]), j, end, peak, T, length, share))
            j = end + 1
        return found

    def axes_at(self, scale: int) -> Axes:
        """Return the axes that were best at a scale."""
        return self.seen[int(self.of[scale])]

    def to_settle(self) -> list[Plateau]:
        """Return the strongest plateaus whose axes were not settled yet, and note them."""
        all_ = self.plateaus()
        new = [p for p in all_ if (p.i, p.peak, self.of[p.peak]) not in self._settled]
        new = sorted(new, key=lambda p: -p.weight)[: k.SETTLED]
        if new and self.cloud.D > k.CHEAP:  # beside a long one, short ones are its shoulders
            top = max(p.weight for p in all_)
            new = [p for p in new if p.weight > k.SHOULDER * top]
        for p in new:
            self._settled.add((p.i, p.peak, self.of[p.peak]))
        return new


def contrasts(cloud: Cloud, counts: Counts) -> tuple[Array, Array]:
    """Return the local contrast, and the better of it and that with the wider ball, (C, S)."""
    free, needed = cloud.free[:, None], cloud.needed[:, None]
    near, double, far = (np.maximum(N - free, 0) for N in counts)
    local = _contrast(near, double, cloud.log_q) - needed
    wide = _contrast(near, far, cloud.log_q_far) - needed - np.log(2)
    return local, np.maximum(local, wide)


def _contrast(near: Array, outer: Array, log_q: Array) -> Array:
    """Return n2 KL(n1 / n2 || q) where n1 / n2 is above q, and 0 elsewhere."""
    p = np.maximum(near, 0) / np.maximum(outer, 1e-9)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_p, rest = np.log(p), 1 - p
        kl = np.where(p > 0, p * (log_p - log_q), 0.0)
        kl += np.where(rest > 0, rest * (np.log(rest) - np.log(-np.expm1(log_q))), 0.0)
        return np.where((outer > 0) & (log_p > log_q), outer * kl, 0.0)


def clearness(chosen: Plateau, all_: list[Plateau]) -> float:
    """Return how far a plateau is longer than its longest rival of another codimension.

    From 1 on the codimension is clear. A long plateau excuses coarser rivals, whose structure holds
    this one, but not a finer one that is nearly as long.
    """
    # With fewer normals and the same rows, a finer one is noise that differs from normal to normal.
    others = [p for p in all_ if p.i != chosen.i and (p.i > chosen.i or not chosen.is_of_all(p))]
    coarser = max((p.length for p in others if p.peak > chosen.peak), default=0.0)
    finer = max(
        (p.length for p in others if p.peak < chosen.peak and p.weight > k.RIVAL * chosen.weight),
        default=0.0,
    )
    clear = (chosen.length - min(max(coarser, finer), 2 * k.LENGTH)) / k.LENGTH
    is_rival = finer >= max(k.LENGTH, k.FINER * chosen.length)
    return min(clear, 0.5) if is_rival else clear


def choose(all_: list[Plateau]) -> Plateau:
    """Return the strongest plateau of the codimension with most evidence times persistence.

    Of several that are nearly as good, it is the finest that is long: a plane inside a slab, or
    the subspace of some rows that all lie near a line, as rows far from the origin do.
    """
    total: dict[int, float] = {}
    for p in all_:
        total[p.i] = total.get(p.i, 0.0) + p.weight
    first = max(total, key=lambda i: total[i])
    best = _strongest(all_, first)
    for p in all_:
        good = total[p.i] >= k.NEARLY * total[first] and p.length >= k.LAYER and p.share >= k.FEW
        if good and p.peak < best.peak and not best.is_of_all(p):
            return _strongest(all_, p.i)
    return best


def _strongest(all_: list[Plateau], i: int) -> Plateau:
    own = [p for p in all_ if p.i == i]
    own = [p for p in own if p.share >= k.FEW] or own
    return max(own, key=lambda p: p.weight)

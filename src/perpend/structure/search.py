"""One search: proposals and paths fill the profile; its plateaus are the structures; one is chosen.

Axes may come from anybody. Paths follow a short list of numbers of normals from the axes of all
rows, and one of them from those around single rows; each time, the axes at the strongest plateaus
are settled, and what that shows joins the profile. The search ends when two starts agree on a clear
structure, or when more of them would not make it clear.

A path is weighted PCA at c normals along shrinking scales s, from the width of the cloud down. The
weights are 1 - J^2 / R^2 within R = s (sqrt(c) + 2): linear in J^2, as the likelihood is where the
signal is weak, and zero beyond (a Gaussian or a Cauchy weight loses planes inside slabs). Each row
is seen from the subspace of the others: J (1 + a w), with a the mean leverage.
"""

import math
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.solvers import iterate
from perpend.structure import constants as k
from perpend.structure import effort
from perpend.structure.checks import may_be_coincidence
from perpend.structure.cloud import Axes, radius
from perpend.structure.decide import Decision, decide
from perpend.structure.members import settled_at
from perpend.structure.profile import Plateau, Profile, clearness
from perpend.structure.reweighted import turned_by

N_NEAR = (15, 60, 240, 960)  # rows for each column around a single one: how dense they are, how
# far a plane goes and how thin it is differ from data to data, so several sizes are tried
FEW_DIRECTIONS = 3  # up to which a few rows, drawn at random, may all lie on the same subspace
BY_CHANCE = {"accident", "ellipse", "edge"}  # doubts about what has nothing but a coincidence
MAX_STEPS = 3000  # more than the slowest path has from the width of the cloud to rounding


def find_structure(
    profile: Profile,
    rng: np.random.Generator,
    *,
    proposals: Iterable[int] = (),
    fixed: int | None = None,
    slowly: bool = False,
    paths: bool = True,
) -> Decision | None:
    """Find the structure of a cloud; None where nothing is significant.

    `proposals` are others' starts: each adds its axes to the profile, and says how many starts of
    its own agree on them. `slowly` is for a second try, near the spectral limit; with many columns
    that is left to proposals, as it is without `paths`. The codimension may be `fixed`.
    """
    cloud = profile.cloud
    if cloud.D < 2:
        return None
    shrink: float | None = effort.SHRINK if cloud.D <= effort.FEW_COLUMNS else effort.SHRINK**2
    if slowly:
        shrink = effort.SLOW if cloud.D <= effort.WIDE else None
    if cloud.n <= cloud.D or not paths:  # so few rows lie on anything
        shrink = None
    decision = _found(profile, proposals, rng, shrink, fixed)
    if decision is None or fixed is not None:
        return decision
    own = decision.candidate
    if own.n_members <= cloud.free[own.c - 1]:
        return None  # any subspace runs through so many rows
    if not (own.is_exact and may_be_coincidence(cloud, own)):
        return decision
    # What is exact only because values are few is not seen where each is anywhere in its cell.
    again = Profile(cloud.blurred(rng), profile.callback)

    def proposed() -> Iterator[int]:
        again.add(own.axes)
        yield 1

    seen = _found(again, proposed(), rng, shrink, None)
    there = decide(again, again.at(own.c), rng, own.c)
    V, W = (one.axes.A[:, : own.c] for one in (own, there.candidate))
    same = turned_by(W, V) <= k.SAME_ANGLE
    by_chance = BY_CHANCE & {doubt.name for doubt in there.doubts}
    if same and not by_chance:
        return decision
    return None if seen is None else seen.weighed(seen.facts._replace(blurred=True), seen.candidate)


def _found(
    profile: Profile,
    proposals: Iterable[int],
    rng: np.random.Generator,
    shrink: float | None,
    fixed: int | None,
) -> Decision | None:
    """Find the structure of a cloud as it is, to rounding errors; paths shrink by so much."""
    chosen = _search(profile, proposals, rng, shrink, fixed) or profile.faint()
    if chosen is None:
        return None
    decision = decide(profile, chosen, rng, fixed)
    if shrink is None or profile.cloud.D > effort.FEW_COLUMNS:
        return decision
    for _ in range(effort.LOCAL_STARTS):
        facts, own = decision.facts, decision.candidate
        # The sum of two may be a compromise between them, and what is seen at finer scales a part
        # of something that no start has reached: others may end on one.
        if not (facts.starts_disagree or facts.n_smaller or facts.hint):
            break
        profile.start += 1
        axes = _local_axes(profile, own.c, own.probability > 0.5, rng)
        follow(profile, axes, own.c, shrink)
        _settle_plateaus(profile)
        decision = decide(profile, profile.chosen(fixed) or chosen, rng, fixed)
    return decision


def _search(
    profile: Profile,
    proposals: Iterable[int],
    rng: np.random.Generator,
    shrink: float | None,
    fixed: int | None,
) -> Plateau | None:
    """Fill the profile; return the chosen plateau."""
    cloud, all_ = profile.cloud, list[Plateau]()
    chosen: Plateau | None = None
    agreeing = tries = 0

    def starts() -> Iterator[tuple[Axes, int]]:
        first = cloud.first_axes()
        yield first, 1
        if cloud.affine:  # where nobody else proposes
            c, near = 1, np.ones(len(cloud.X), dtype=bool)
            if chosen is not None:
                c, reach = chosen.c, float(cloud.scales[chosen.peak] * radius(chosen.c))
                near = cloud.squares(profile.axes_at(chosen), c) <= reach**2
            yield _local_axes(profile, c, near, rng), c
        yield from ((first, 2**j) for j in range(1, 12) if 2 * 2**j <= cloud.D)

    def paths(shrink: float) -> Iterator[int]:
        for number, (axes, c) in enumerate(starts()):
            empty = chosen is None or chosen.T <= 0
            if cloud.D > effort.WIDE and number >= effort.TRIES and empty:
                break
            clear = chosen is not None and clearness(chosen, all_) >= 1
            known = chosen if cloud.D > effort.FEW_COLUMNS and clear else None
            follow(profile, axes, c, shrink, known)
            yield 1

    for agree in proposals if shrink is None else chain(proposals, paths(shrink)):
        _settle_plateaus(profile)
        all_, now = profile.plateaus(), profile.chosen(fixed)
        if now is None or now.T <= 0:
            chosen = chosen or now
            continue
        same = chosen is not None and chosen.meets(now)
        chosen, agreeing, tries = now, agreeing + agree if same else agree, tries + 1
        profile.counts_for[profile.start] = agree
        profile.start += 1
        if agreeing >= 2 and (clearness(chosen, all_) >= 1 or tries >= effort.TRIES):
            break
    return chosen


def _local_axes(profile: Profile, c: int, near: Array, rng: np.random.Generator) -> Axes:
    """Return axes of the rows around a single one of those that are near to what was found.

    Of some it is the one whose neighbours have most other rows on their subspace of codimension c.
    """
    cloud, rows = profile.cloud, np.flatnonzero(near)
    best, most = cloud.first_axes(), -np.inf
    for row in rng.choice(rows if len(rows) else len(cloud.X), effort.LOCAL_STARTS):
        away = np.square(cloud.X - cloud.X[row]).sum(axis=1)
        by_size = {min(size * cloud.D, len(away) // 2) for size in N_NEAR}
        for limit in np.partition(away, sorted(by_size))[sorted(by_size)]:
            axes = cloud.pca((away <= limit).astype(float))
            thin = 2 * np.sqrt(np.mean(axes.variances[:c]))
            profile.add(axes)
            T = np.max(profile.table[c - 1, cloud.scales <= thin], initial=-np.inf)
            if most < T:
                best, most = axes, T
    through = _through_rows(profile, c, rows, rng) if cloud.D - c <= FEW_DIRECTIONS else None
    return best if through is None else through


def _through_rows(profile: Profile, c: int, near: Array, rng: np.random.Generator) -> Axes | None:
    """Return axes of a subspace through a few rows that is seen better than all others somewhere.

    Rows are drawn among all and among those that are `near`. With a share p of the rows on a
    subspace of dimension d, p^(d + 1) of the draws lie on it, or p^d through the origin. None where
    nothing is gained.
    """
    cloud, m = profile.cloud, effort.DRAWS
    d = cloud.D - c
    n_rows, S = d + int(cloud.affine), cloud.n_scales
    pools = [near if len(near) else np.arange(len(cloud.X)), np.arange(len(cloud.X))]
    X = cloud.X[np.concatenate([rng.choice(pool, (m // 2, n_rows)) for pool in pools])]
    centre = X.mean(axis=1) if cloud.affine else np.zeros((m, cloud.D))
    N = np.linalg.svd((X - centre[:, None]).transpose(0, 2, 1))[0][:, :, d:]  # (m, D, c)
    some = slice(None, None, max(len(cloud.X) // effort.ROWS_OF_DRAWS, 1))
    heights = np.tensordot(cloud.X[some], N, axes=(1, 1)) - np.einsum("md,mdc->mc", centre, N)
    bins = cloud.bins_of(np.square(heights).sum(axis=2).T, c) + (S + 1) * np.arange(m)[:, None]
    share = None if cloud.share is None else np.tile(cloud.share[some], m)
    counts = np.bincount(bins.ravel(), share, minlength=m * (S + 1)).reshape(m, S + 1)
    T = profile.of_counts(cloud.balls(np.cumsum(counts, axis=1).astype(float)), c)
    known = np.maximum(profile.best[c - 1], 0.0) * heights.shape[0] / len(cloud.X)
    i, j = np.unravel_index(np.argmax(T - known), T.shape)
    if T[i, j] <= known[j]:
        return None
    J2 = np.square((cloud.X - centre[i]) @ N[i]).sum(axis=1)
    axes = cloud.pca(((2 * cloud.scales[j] * radius(c)) ** 2 >= J2).astype(float))
    profile.add(axes)
    return axes


def _settle_plateaus(profile: Profile) -> None:
    for p in profile.to_settle():
        profile.add(settled_at(profile, p).axes)


# -- a path ----------------------------------------------------------------------------------------


class _Place(NamedTuple):
    """The state of a path."""

    objective: float  # the scale
    change: float  # 0 where the path ends
    axes: Axes
    J2: Array  # (n,)
    w: Array  # (n,)
    leverage: float
    significant: float  # the last scale at which something was seen
    n_steps: int = 0


def follow(
    profile: Profile, axes: Axes, c: int, shrink: float, known: Plateau | None = None
) -> None:
    """Follow a path from these axes at c normals, and add some of its axes to the profile.

    It ends early where it sees a structure that is `known`.
    """
    cloud = profile.cloud
    J2 = cloud.squares(axes, c)
    # From the width of the cloud down, or from twice that of the rows around a single one.
    width2 = min(float(np.median(J2)), 4 * float(np.sum(axes.variances[:c])))
    scale = math.sqrt(max(width2, 0.0) / c)

    def step(at: _Place) -> _Place:
        s, _, axes, J2, w, leverage, significant, n_steps = at
        for _ in range(2 if cloud.D <= effort.FEW_COLUMNS else 1):
            reach2 = (s * (math.sqrt(c) + k.REACH)) ** 2
            w = np.maximum(1 - J2 * np.square(1 + leverage * w) / reach2, 0)
            if np.count_nonzero(w) < cloud.D + 2:
                return at._replace(change=0.0)  # so few rows lie on anything
            axes = cloud.pca(w)
            J2 = cloud.squares(axes, c)
            leverage = min(float(np.sum(axes.variances[c:] / axes.inner(c))) / float(w.sum()), 1.0)
        shorter = min(shrink * s, 3 * math.sqrt(float(w @ J2) / (c * float(w.sum()))))
        # Where rows are exact, or nearly, the first step may lead to their scale: look, then end.
        done = ends = shorter <= max(cloud.floor, significant / effort.GIVE_UP)
        if ends or (n_steps + 1) % effort.TABLE_EVERY == 0:
            profile.add(axes)
            if np.any(profile.table[:, cloud.scales <= 2 * s] > 0):
                significant = shorter if ends else s
                done = shorter <= cloud.floor
            done |= (
                known is not None and profile.table[known.c - 1, known.peak] > k.AS_GOOD * known.T
            )
        s = shorter
        return _Place(s, 0.0 if done else s, axes, J2, w, leverage, significant, n_steps + 1)

    change, leverage = scale if scale > cloud.floor else 0.0, (cloud.D - c) / cloud.n
    start = _Place(scale, change, axes, J2, np.ones(len(J2)), leverage, scale)
    iterate(step, start, max_steps=MAX_STEPS, stage="path", callback=profile.callback)

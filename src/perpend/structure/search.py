"""One search: proposals and paths fill the profile; its plateaus are the structures; one is chosen.

Axes may come from anybody. Paths follow a short list of numbers of normals from the axes of all
rows, and one of them from those around single rows; each time, the axes at the strongest plateaus
are settled, and what that shows joins the profile. The search ends when two starts agree on a clear
structure, or when more of them would not make it clear.
"""

from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np

from perpend._typing import Array
from perpend.solvers.loop import Callback
from perpend.structure import effort
from perpend.structure.cloud import Axes, radius
from perpend.structure.decide import Decision, decide
from perpend.structure.members import settled_at
from perpend.structure.path import follow
from perpend.structure.profile import Plateau, Profile, clearness

N_NEAR = 30  # rows for each column around a single one: they know their subspace to a degree


def find_structure(
    profile: Profile,
    rng: np.random.Generator,
    *,
    proposals: Iterable[int] = (),
    fixed: int | None = None,
    slowly: bool = False,
    paths: bool = True,
    callback: Callback | None = None,
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
    chosen = _search(profile, proposals, rng, shrink, fixed, callback=callback)
    chosen = chosen or profile.faint()
    if chosen is None:
        return None
    decision = decide(profile, chosen, rng, fixed)
    for _ in range(effort.LOCAL_STARTS if cloud.D <= effort.FEW_COLUMNS else 0):
        facts = decision.facts
        # The sum of two may be a compromise between them: others may end on one.
        if shrink is None or not (facts.starts_disagree or facts.n_smaller):
            break
        profile.start += 1
        axes = _local_axes(profile, decision.candidate.c, decision.candidate.probability > 0.5, rng)
        follow(profile, axes, decision.candidate.c, shrink, callback=callback)
        _settle_plateaus(profile)
        decision = decide(profile, profile.chosen(fixed) or chosen, rng, fixed)
    return decision


def _search(
    profile: Profile,
    proposals: Iterable[int],
    rng: np.random.Generator,
    shrink: float | None,
    fixed: int | None,
    *,
    callback: Callback | None,
) -> Plateau | None:
    """Fill the profile; return the chosen plateau."""
    cloud, all_ = profile.cloud, list[Plateau]()
    chosen: Plateau | None = None
    agreeing = tries = n_empty = 0
    walking = False

    def starts() -> Iterator[tuple[Axes, int]]:
        first, sizes = cloud.first_axes(), _sizes(cloud.D)
        yield first, sizes[0]
        if cloud.affine and cloud.D <= effort.FEW_COLUMNS:  # where nobody else proposes
            c = 1 if chosen is None else chosen.c
            yield _local_axes(profile, c, _near(profile, chosen), rng), c
        for c in sizes[1:]:
            yield first, c

    def paths() -> Iterator[int]:
        nonlocal n_empty, walking
        n_empty, walking = 0, True  # what others proposed in vain says nothing about paths
        for axes, c in starts():
            clear = chosen is not None and clearness(chosen, all_) >= 1
            known = chosen if cloud.D > effort.FEW_COLUMNS and clear else None
            assert shrink is not None
            follow(profile, axes, c, shrink, known=known, callback=callback)
            yield 1

    for agree in proposals if shrink is None else chain(proposals, paths()):
        _settle_plateaus(profile)
        all_ = profile.plateaus()
        now = profile.chosen(fixed)
        if now is None or now.T <= 0:
            n_empty += 1
            chosen = chosen or now
            if cloud.D > effort.WIDE and n_empty >= effort.TRIES and walking:
                break
            continue
        same = chosen is not None and chosen.meets(now)
        chosen, agreeing, tries = now, agreeing + agree if same else agree, tries + 1
        profile.counts_for[profile.start] = agree
        profile.start += 1
        if agreeing >= 2 and (clearness(chosen, all_) >= 1 or tries >= effort.TRIES):
            break
    return chosen


def _sizes(D: int) -> list[int]:
    """Return the numbers of normals to follow.

    >>> _sizes(3), _sizes(30), _sizes(2)
    ([1], [1, 2, 4, 8], [1])
    """
    return [2**j for j in range(12) if 2**j <= max(D // 2, 1)]


def _near(profile: Profile, p: Plateau | None) -> Array:
    """Say which rows (n,) are near to the subspace of a plateau, at its peak."""
    cloud = profile.cloud
    if p is None:
        return np.ones(len(cloud.X), dtype=bool)
    reach = float(cloud.scales[p.peak] * radius(p.c))
    return cloud.squares(profile.axes_at(p), p.c) <= reach**2


def _local_axes(profile: Profile, c: int, near: Array, rng: np.random.Generator) -> Axes:
    """Return axes of the rows around a single one of those that are near to what was found.

    Of some it is the one whose neighbours have most other rows on their subspace of codimension c.
    """
    cloud, rows = profile.cloud, np.flatnonzero(near)
    best, most = cloud.first_axes(), -np.inf
    for row in rng.choice(rows if len(rows) else len(cloud.X), effort.LOCAL_STARTS):
        away = np.square(cloud.X - cloud.X[row]).sum(axis=1)
        n_near = min(N_NEAR * cloud.D, len(away) // 2)
        axes = cloud.pca((away <= np.partition(away, n_near)[n_near]).astype(float))
        thin = 2 * np.sqrt(np.mean(axes.variances[:c]))
        profile.add(axes)
        T = np.max(profile.table[c - 1, cloud.scales <= thin], initial=-np.inf)
        if most < T:
            best, most = axes, T
    return best


def _settle_plateaus(profile: Profile) -> None:
    for p in profile.to_settle():
        profile.add(settled_at(profile, p).axes)

"""One search: proposals and paths fill the profile; its plateaus are the structures; one is chosen.

Axes may come from anybody. A path follows a short list of numbers of normals from the axes of all
rows; each time, the axes at the strongest plateaus are settled, and what that shows joins the
profile. The search ends when two starts agree on a clear structure, or when more of them would not
make it clear.
"""

import math
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.solvers.loop import Callback
from perpend.structure import constants as k
from perpend.structure.checks import Doubt, Facts, beyond_ellipse, confidence_of
from perpend.structure.cloud import Axes, Cloud, radius
from perpend.structure.layers import Histogram, Layer, find_layers, histogram, layers_outside
from perpend.structure.parts import TOO_MANY, Part, parts
from perpend.structure.path import follow
from perpend.structure.profile import Plateau, Profile, choose, clearness
from perpend.structure.settle import Polished, Settled, polish, settle

MAX_ROUNDS = 6  # of settling, after each of which the plateaus may be others
MAX_REVISIONS = 3  # of the codimension after the members are known
ALONE = 1e-6  # below a leverage of 1 at the most: a row that depends on no others
EXACT = 4.0  # times the floor: noise that is nothing but rounding errors
AS_THIN_AXIS = k.AS_THIN**2  # in variances


class Structure(NamedTuple):
    """A significant subspace that was seen."""

    codimension: int
    noise: float  # deviation in one coordinate
    members: float
    score: float  # the contrast T
    length: float  # in log scale
    chosen: bool


class Decision(NamedTuple):
    """The chosen structure of a cloud, and how sure it is."""

    codimension: int
    axes: Axes  # of the members; the first are the normals
    sigma: float  # deviation of the noise in one coordinate; at the floor where it is exact
    is_exact: bool
    layer: Layer | None
    threshold: float
    n_members: float
    contrast: float
    needed: float
    confidence: float
    doubts: tuple[Doubt, ...]
    facts: Facts
    structures: tuple[Structure, ...]


def find_structure(
    cloud: Cloud,
    rng: np.random.Generator,
    *,
    proposals: Iterable[Axes] = (),
    slowly: bool = False,
    callback: Callback | None = None,
) -> Decision | None:
    """Find the structure of a cloud; None where nothing is significant.

    `proposals` are axes that others have found, each a start of its own. `slowly` is for a second
    try, near the spectral limit; with many columns that is left to proposals.
    """
    if cloud.D < 2 or cloud.n <= cloud.D:
        return None
    profile = Profile(cloud)
    shrink: float | None = k.SHRINK if cloud.D <= k.CHEAP else k.QUICK
    if slowly:
        shrink = k.SLOW if cloud.D <= k.WIDE else None
    chosen = _search(profile, proposals, shrink, callback)
    if chosen is None:
        return None
    decision = _decide(profile, chosen, rng)
    for axes in _local_axes(cloud, rng):
        if not decision.facts.starts_disagree or shrink is None:
            break
        profile.start += 1
        follow(profile, axes, 1, shrink, callback=callback)
        _settle_plateaus(profile)
        decision = _decide(profile, choose(profile.plateaus() or [chosen]), rng)
    return decision


def _search(
    profile: Profile,
    proposals: Iterable[Axes],
    shrink: float | None,
    callback: Callback | None,
) -> Plateau | None:
    """Fill the profile; return the chosen plateau."""
    cloud, all_ = profile.cloud, list[Plateau]()
    chosen: Plateau | None = None
    witnesses = tries = n_empty = 0
    walking = False

    def paths() -> Iterator[None]:
        nonlocal n_empty, walking
        n_empty, walking = 0, True  # what others proposed in vain says nothing about paths
        first = cloud.first_axes()
        for j, c in enumerate(_sizes(cloud.D)):
            if cloud.D == 2 and j:  # one number of normals, so another centre
                first = cloud.pca(np.ones(len(cloud.X)))
            clear = chosen is not None and clearness(chosen, all_) >= 1
            known = chosen if cloud.D > k.FEW_COLUMNS and clear else None
            assert shrink is not None
            follow(profile, first, c, shrink, known=known, callback=callback)
            yield

    proposed = (profile.add(axes) for axes in proposals)
    for _ in proposed if shrink is None else chain(proposed, paths()):
        _settle_plateaus(profile)
        all_ = profile.plateaus()
        if not all_:
            n_empty += 1
            if cloud.D > k.WIDE and n_empty >= k.IN_VAIN and walking:
                break
            continue
        now = choose(all_)
        same = chosen is not None and chosen.meets(now)
        chosen, witnesses, tries = now, witnesses + 1 if same else 1, tries + 1
        profile.start += 1
        if witnesses >= 2 and (clearness(chosen, all_) >= 1 or tries >= k.TRIES):
            break
    return chosen


def _sizes(D: int) -> list[int]:
    """Return the numbers of normals to follow.

    >>> _sizes(3), _sizes(30), _sizes(2)
    ([1, 2], [1, 2, 4, 8, 29, 28, 26, 22], [1, 1])
    """
    if D == 2:
        return [1, 1]
    few = [2**j for j in range(12) if 2**j <= D // 2]
    return few + [D - c for c in few if D - c > D // 2]


def _local_axes(cloud: Cloud, rng: np.random.Generator) -> Iterator[Axes]:
    """Yield axes of the rows around single ones, with few columns: there may be several planes."""
    if cloud.D > k.FEW_COLUMNS:
        return
    for row in rng.integers(len(cloud.X), size=k.LOCAL_STARTS):
        away = np.square(cloud.X - cloud.X[row]).sum(axis=1)
        yield cloud.pca(1 / (1 + 4 * away / cloud.typical**2))


def _settle_plateaus(profile: Profile) -> None:
    for _ in range(MAX_ROUNDS):
        new = profile.to_settle()
        if not new:
            return
        for p in new:
            profile.add(_settled(profile, p).axes)


def _settled(profile: Profile, p: Plateau) -> Settled:
    cloud = profile.cloud
    c, scales = int(cloud.codimensions[p.i]), cloud.scales
    axes = profile.axes_at(p.peak)
    return settle(cloud, axes, c, float(scales[p.peak]), least=float(scales[p.first]))


class _Found(NamedTuple):
    """A subspace with its members."""

    i: int  # place of the codimension
    axes: Axes
    sigma: float
    threshold: float
    n_members: float
    probability: Array  # (n,)
    layer: Layer | None
    seen: Histogram
    is_exact: bool


def _decide(profile: Profile, chosen: Plateau, rng: np.random.Generator) -> Decision:
    cloud, start = profile.cloud, profile.start
    profile.start = -1  # what is refined from here on is no start's own
    for _ in range(MAX_REVISIONS):
        found = _members(profile, chosen)
        profile.add(found.axes)
        all_ = profile.plateaus()
        again = choose(all_) if all_ else chosen
        same, chosen = again.i == chosen.i, again
        if same:
            break
    if not same:
        found = _members(profile, chosen)
    T, all_ = chosen.T, profile.plateaus()
    clear = clearness(chosen, all_)
    if found.is_exact:
        found, T = _without_lone_rows(profile, found, T)
    else:
        found, T = _on_less(profile, found, T)
    n_smaller = None
    if clear >= 1:
        found, T, n_smaller = _of_parts(profile, found, T, rng)
    own = [p for p in all_ if p.i == found.i]
    if found.i != chosen.i and own:
        chosen = max(own, key=lambda p: p.weight)
    c = int(cloud.codimensions[found.i])
    witnesses, rival_subspace = _agreement(profile, found, rng)
    ellipse, gap = beyond_ellipse(cloud, found.axes, c)
    others = [p for p in all_ if p.i not in {chosen.i, found.i}]
    rival = max(others, key=lambda p: p.length, default=None)
    facts = Facts(
        contrast=T,
        parameters=c * int(cloud.free[found.i]),
        clearness=clear,
        length=chosen.length,
        rival=0 if rival is None else int(cloud.codimensions[rival.i]),
        n_members=found.n_members,
        n_free=int(cloud.free[found.i]),
        witnesses=witnesses,
        rival_subspace=rival_subspace,
        ellipse=ellipse,
        gap=gap,
        n_smaller=n_smaller,
        suspect=_suspect(profile, found),
    )
    confidence, doubts = confidence_of(facts)
    profile.start = start
    return Decision(
        codimension=c,
        axes=found.axes,
        sigma=found.sigma,
        is_exact=found.is_exact,
        layer=found.layer,
        threshold=found.threshold,
        n_members=found.n_members,
        contrast=T,
        needed=float(cloud.needed[found.i]),
        confidence=confidence,
        doubts=doubts,
        facts=facts,
        structures=tuple(_structures(profile, found, chosen, all_)),
    )


def _agreement(profile: Profile, found: _Found, rng: np.random.Generator) -> tuple[int, bool]:
    """Return how many starts have seen the members' subspace, and whether one saw another.

    With many columns a path ends as soon as it has seen what is known, and need not come near.
    """
    cloud = profile.cloud
    c = int(cloud.codimensions[found.i])
    members = np.flatnonzero(found.probability > 0.5)
    if len(members) == 0:
        return 0, False
    if len(members) > k.N_SAME:
        members = rng.choice(members, k.N_SAME, replace=False, shuffle=False)
    profile.add(found.axes)
    near = max(found.sigma, EXACT * cloud.floor)
    j = min(int(np.searchsorted(cloud.scales, near)), cloud.n_scales - 1)  # where it is seen best
    near *= k.SAME * math.sqrt(c)
    witnesses, rival = profile.agreement(cloud.X[members], found.i, j, near=near)
    return max(witnesses, 2) if cloud.D > k.FEW_COLUMNS else witnesses, rival


def _members(profile: Profile, chosen: Plateau) -> _Found:
    """Find the members of the finest layer of a plateau, and their axes."""
    cloud = profile.cloud
    c = int(cloud.codimensions[chosen.i])
    settled = _settled(profile, chosen)
    layer = _finest(profile, chosen)
    if settled.sigma <= EXACT * cloud.floor and (layer is None or layer[0].is_exact):
        return _exact(cloud, chosen.i, settled)
    if layer is None:
        w = (cloud.squares(settled.axes, c) <= settled.threshold**2).astype(float)
    else:
        w = layer[0].probability(np.sqrt(cloud.squares(layer[1], c)))
    if np.count_nonzero(w > 0.1) < cloud.D - c + 2:
        return _exact(cloud, chosen.i, settled)
    i = chosen.i
    allowed = partial(_is_own_scale, profile, i)
    return _as_found(cloud, i, polish(cloud, cloud.pca(w), c, w, _least(cloud, i), allowed=allowed))


def _is_own_scale(profile: Profile, i: int, layer: Layer) -> bool:
    """Say whether, at the scale of a layer, no other codimension is seen better."""
    cloud = profile.cloud
    scale = layer.radius / float(radius(cloud.codimensions[i]))
    j = min(int(np.searchsorted(cloud.scales, scale)), cloud.n_scales - 1)
    return bool(profile.T[j] <= 0 or profile.i[j] == i)


def _least(cloud: Cloud, i: int) -> float:
    """Return the members that a layer must have."""
    return max(k.FEW * cloud.n, 2.0 * float(cloud.free[i]))


def _as_found(cloud: Cloud, i: int, p: Polished) -> _Found:
    exact = p.sigma <= EXACT * cloud.floor
    return _Found(i, p.axes, p.sigma, p.threshold, p.members, p.probability, p.layer, p.seen, exact)


def _exact(cloud: Cloud, i: int, settled: Settled) -> _Found:
    J = np.sqrt(cloud.squares(settled.axes, int(cloud.codimensions[i])))
    near = settled.threshold >= J
    n = float(near.sum() if cloud.share is None else near @ cloud.share)
    seen = histogram(J, cloud.floor, cloud.share)
    sigma = settled.sigma
    exact = sigma <= EXACT * cloud.floor
    return _Found(
        i, settled.axes, sigma, settled.threshold, n, near.astype(float), None, seen, exact
    )


def _finest(profile: Profile, chosen: Plateau) -> tuple[Layer, Axes] | None:
    """Return the finest layer of the chosen codimension, and the axes that show it.

    From the largest layer downwards, always to the largest one inside.
    """
    cloud = profile.cloud
    c = int(cloud.codimensions[chosen.i])
    scales = np.flatnonzero((profile.T > 0) & (profile.i == chosen.i))
    scales = scales[scales <= chosen.last]
    seen: list[tuple[Layer, Axes, Array]] = []
    tried = set()
    for j in [chosen.peak, *scales[:: -k.OCTAVE // 2]]:
        if profile.of[j] in tried:
            continue
        tried.add(profile.of[j])
        axes = profile.axes_at(j)
        J = np.sqrt(cloud.squares(axes, c))
        r_max = 2 * float(cloud.scales[j] * radius(c))
        of = histogram(J, cloud.floor, cloud.share)
        # Axes that were found at another scale had all their freedom to find something here.
        luck = 0.0 if j == chosen.peak else (float(cloud.needed[chosen.i]) - k.LUCK) / 2
        layers = find_layers(of, c, _least(cloud, chosen.i), r_max=r_max, luck=luck)
        seen += [
            (layer, axes, layer.radius >= J)
            for layer in layers
            if _is_own_scale(profile, chosen.i, layer)
        ]
    best = None
    while seen:
        best = max(seen, key=lambda one: one[0].members)
        inside = k.THINNER * best[0].radius
        rows = best[2]
        seen = [one for one in seen if one[0].radius < inside and np.mean(rows[one[2]]) >= k.INSIDE]
    return None if best is None else best[:2]


def _without_lone_rows(profile: Profile, found: _Found, T: float) -> tuple[_Found, float]:
    """Leave out members that hold a dimension of an exact subspace alone: it runs through them.

    Such a row depends on no others, so its leverage is 1.
    """
    cloud = profile.cloud
    c = int(cloud.codimensions[found.i])
    members = np.flatnonzero(found.probability > 0.5)
    if len(members) <= cloud.D - c or len(members) > TOO_MANY:
        return found, T
    Y = cloud.about(found.axes.centre)[members] @ found.axes.A[:, c:]
    Q, _ = np.linalg.qr(Y / np.maximum(np.linalg.norm(Y, axis=1, keepdims=True), cloud.floor))
    lone = np.sum(np.square(Q), axis=1) > 1 - ALONE
    more = cloud.index(c + int(np.count_nonzero(lone)))
    if not np.any(lone) or more is None:
        return found, T
    w = np.zeros(len(cloud.X))
    w[members[~lone]] = 1.0
    axes = cloud.pca(w)
    settled = Settled(axes, found.sigma, found.threshold, 0.0)
    profile.add(axes)
    fewer = float(np.max(profile.table[more]))
    return (_exact(cloud, more, settled), fewer) if fewer > 0 else (found, T)


def _on_less(profile: Profile, found: _Found, T: float) -> tuple[_Found, float]:
    """Add normals along which the members are as thin as along those that were found.

    Where inliers and a few others lie on a common subspace, the members are the inliers alone.
    """
    cloud = profile.cloud
    c, variances = int(cloud.codimensions[found.i]), found.axes.variances
    more = cloud.index(int(np.sum(variances <= AS_THIN_AXIS * variances[c - 1])))
    if more is None or more <= found.i:
        return found, T
    profile.add(found.axes)
    if np.max(profile.table[more]) <= 0:
        return found, T
    c = int(cloud.codimensions[more])
    allowed = partial(_is_own_scale, profile, more)
    polished = polish(cloud, found.axes, c, found.probability, _least(cloud, more), allowed=allowed)
    if polished.members < k.FEWER * found.n_members:
        return found, T
    profile.add(polished.axes)
    return _as_found(cloud, more, polished), float(np.max(profile.table[more]))


def _of_parts(
    profile: Profile, found: _Found, T: float, rng: np.random.Generator
) -> tuple[_Found, float, int | None]:
    """Take a smaller subspace inside with most rows and more contrast; or say how many it has."""
    cloud = profile.cloud
    c, n_smaller = int(cloud.codimensions[found.i]), None
    members = np.flatnonzero(found.probability > 0.5)
    for part in parts(cloud, found.axes, c, members, rng):
        smaller = _part(profile, part, found)
        if smaller is None:
            continue
        most = smaller[0].n_members > k.MAJORITY * found.n_members
        if most and smaller[1] > T:
            return (*smaller, None)
        n_smaller = max(n_smaller or 0, round(smaller[0].n_members))
    return found, T, n_smaller


def _part(profile: Profile, part: Part, found: _Found) -> tuple[_Found, float] | None:
    """Settle at a part; None where it is not significant, not as thin, or holds hardly a row."""
    cloud = profile.cloud
    i = cloud.index(part.codimension)
    if i is None:
        return None
    settled = settle(cloud, part.axes, part.codimension, found.sigma)
    profile.add(settled.axes)
    T = float(np.max(profile.table[i]))
    smaller = _exact(cloud, i, settled)
    thin = settled.sigma <= k.AS_THIN * found.sigma
    enough = smaller.n_members >= k.FEW * found.n_members
    return (smaller, T) if T > 0 and thin and enough else None


def _suspect(profile: Profile, found: _Found) -> bool:
    """Whether something thinner may be inside: distances of rows that are not of unit length."""
    cloud = profile.cloud
    if found.is_exact or not cloud.affine:
        return False
    c, least = int(cloud.codimensions[found.i]), _least(cloud, found.i)
    end = 1.1 * (found.threshold if found.layer is None else found.layer.radius)
    seen = find_layers(found.seen, c, least, r_max=end, needed=k.SUSPECT)
    return any(_is_own_scale(profile, found.i, layer) for layer in seen)


def _structures(
    profile: Profile, found: _Found, chosen: Plateau, all_: list[Plateau]
) -> list[Structure]:
    """List what was seen, finest first: the layers of the answer, and the other plateaus."""
    cloud = profile.cloud
    c = int(cloud.codimensions[found.i])
    own = Structure(c, found.sigma, found.n_members, chosen.T, chosen.length, chosen=True)
    listed = [own]
    end = found.threshold if found.layer is None else found.layer.radius
    for layer in layers_outside(found.seen, c, _least(cloud, found.i), end):
        noise = layer.radius / float(radius(c))
        if layer.members > found.n_members / k.FEWER:
            listed.append(Structure(c, noise, layer.members, chosen.T, 0.0, chosen=False))
    coarse = float(cloud.scales[chosen.peak])
    if coarse > 4 * found.sigma and chosen.share * cloud.n > found.n_members / k.FEWER:
        listed.append(
            Structure(c, coarse, chosen.share * cloud.n, chosen.T, chosen.length, chosen=False)
        )
    for p in all_:
        if int(cloud.codimensions[p.i]) != c and p.length >= k.LENGTH:
            noise, n = float(cloud.scales[p.peak]), p.share * cloud.n
            size = int(cloud.codimensions[p.i])
            listed.append(Structure(size, noise, n, p.T, p.length, chosen=False))
    return sorted(listed, key=lambda one: (one.noise, -one.codimension))

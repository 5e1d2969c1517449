"""From a chosen plateau to a decision: its members, what else was seen, and how sure it is."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import special

from perpend._typing import Array
from perpend.rows import RowSpan
from perpend.structure import constants as k
from perpend.structure import effort
from perpend.structure.checks import (
    NOTHING_WRONG,
    Doubt,
    Facts,
    beyond_clusters,
    beyond_edge,
    beyond_ellipse,
    confidence_of,
    ends_on_both_sides,
    frequent_values,
)
from perpend.structure.cloud import Axes, Cloud
from perpend.structure.layers import Histogram, find_layers, gain_of_two, histogram, members_noise
from perpend.structure.members import (
    find_members,
    on_less,
    settled_at,
    smaller_inside,
    without_lone_rows,
)
from perpend.structure.profile import Plateau, Profile, clearness
from perpend.structure.settle import Candidate, settle, within

N_SAME = 256  # members to see by that a subspace is the same


class Structure(NamedTuple):
    """A significant subspace that was seen, with its members."""

    candidate: Candidate
    score: float  # the contrast T
    length: float  # in log scale
    chosen: bool = False

    @property
    def noise(self) -> float:
        """The deviation in one coordinate; 0 where it is exact."""
        return 0.0 if self.candidate.is_exact else self.candidate.sigma


class Decision(NamedTuple):
    """The chosen structure of a cloud, and how sure it is."""

    candidate: Candidate
    facts: Facts
    confidence: float
    doubts: tuple[Doubt, ...]
    structures: tuple[Structure, ...]
    cloud: Cloud
    best: Array | None  # (C, S) the best contrast at every codimension and scale, if looked for

    @property
    def is_worth_more(self) -> bool:
        """Whether it is worth more than the certainty of the normals outside the span alone."""
        return self.candidate.is_exact or self.confidence >= k.SURE

    def weighed(self, facts: Facts, candidate: Candidate) -> "Decision":
        """Return the same with other facts and members, weighed anew."""
        own = (one._replace(candidate=candidate) if one.chosen else one for one in self.structures)
        return Decision(candidate, facts, *confidence_of(facts), tuple(own), *self[5:])

    def of(self, other: Structure) -> "Decision":
        """Return the decision for another of the structures, which somebody may choose by hand."""
        own = next(j for j, one in enumerate(self.structures) if one.chosen)
        by_hand = "it was chosen by hand, and the fit chose another one of structures_"
        candidate = other.candidate
        facts = facts_of(self.cloud, candidate.c, other.score, other.length)
        facts = facts._replace(n_members=candidate.n_members)
        return self._replace(
            candidate=candidate,
            facts=facts,
            confidence=k.DOUBTFUL * facts.no_accident,
            doubts=(Doubt("choice", by_hand, f"choose({own}) would give that"),),
            structures=tuple(one._replace(chosen=one is other) for one in self.structures),
        )

    def around(self) -> "Decision":
        """Return the decision for the span of all rows, which lie on it exactly.

        Of n rows within r all are within 8 r, too, where 8^-m would be by chance.
        """
        cloud, n, m = self.cloud, len(self.cloud.X), self.cloud.n_outside
        nothing, D = np.zeros(n), cloud.D + m
        seen = histogram(nothing, cloud.floor, cloud.share)
        how = cloud.floor, cloud.floor, cloud.n, nothing, np.ones(n), seen
        candidate = Candidate(0, self.candidate.axes, *how, is_exact=True)
        free = D - m + int(cloud.affine)
        luck = k.LUCK + m * free * (k.LUCK_PER_PARAMETER + math.log(max(cloud.n / D, 1)) / 2)
        score = cloud.n * m * k.OUTER * math.log(2) - luck
        own = Structure(candidate, score, math.log(cloud.typical / cloud.floor), chosen=True)
        others = [one._replace(chosen=False) for one in self.structures]
        listed = sorted((own, *others), key=lambda one: (one.noise, -one.candidate.c))
        return self._replace(candidate=candidate, structures=tuple(listed))


def decide(
    profile: Profile, chosen: Plateau, rng: np.random.Generator, fixed: int | None = None
) -> Decision:
    """Find the members of the chosen plateau, and weigh them; the codimension may be `fixed`."""
    start = profile.start
    profile.start = -1  # what is refined from here on is no start's own
    candidate = find_members(profile, chosen)
    if candidate.fit is None:
        profile.add(candidate.axes)
    again = profile.chosen(fixed) or chosen
    if again.c != chosen.c:  # which the members may show
        candidate = find_members(profile, again)
    chosen, all_ = again, profile.plateaus()
    T, clear, n_smaller = again.T, clearness(again, all_), None
    if fixed is None:
        candidate, T = (without_lone_rows if candidate.is_exact else on_less)(profile, candidate, T)
        n_smaller = smaller_inside(profile, candidate, rng)
    if candidate.c != chosen.c:
        own = [p for p in all_ if p.c == candidate.c]
        chosen = max(own, key=lambda p: p.weight, default=chosen)
        if not candidate.is_exact:  # it must be clear itself, beside what it is inside of
            clear = min(clear, clearness(chosen, all_)) if own else 0.0
    cloud, c = profile.cloud, candidate.c
    is_near = _nearness(cloud, candidate, rng)
    agreeing, rival_subspace = _agreement(profile, candidate, is_near)
    elsewhere = _elsewhere(profile, candidate, chosen, is_near)
    # Rows that lie on it exactly are no smooth cloud.
    ellipse, gap, edge, spread = chosen.T, cloud.typical / cloud.floor, math.inf, 1.0
    if not candidate.is_exact:
        ellipse, gap = beyond_ellipse(cloud, candidate.axes, c)
        where = candidate.axes, c, candidate.threshold
        edge = beyond_edge(cloud, *where)
        is_layer = cloud.affine or candidate.layer is not None
        if is_layer and not ends_on_both_sides(cloud, *where):
            edge = 0.0
        spread = beyond_clusters(cloud, candidate.axes, c, candidate.sigma)
    if candidate.n_members > k.ALL_ROWS * cloud.n:
        ellipse = 0.0  # where there are no others, a subspace is nothing but a gap
    others = [p for p in profile.plateaus() if p.c not in {chosen.c, c}]
    rival = max(others, key=lambda p: p.length, default=None)
    facts = facts_of(cloud, c, chosen.T, chosen.length)._replace(
        contrast=T,
        clearness=clear,
        n_smaller=n_smaller,
        rival=0 if rival is None else rival.c + cloud.n_outside,
        n_members=candidate.n_members,
        agreeing=agreeing,
        rival_subspace=rival_subspace or any(p.share >= k.LEAST_SHARE for p in elsewhere),
        hint=any(p.peak < chosen.first for p in all_ if p.length >= k.LENGTH),
        ellipse=ellipse,
        gap=gap,
        edge=edge,
        spread=spread,
        suspect=_suspect(cloud, candidate, float(cloud.scales[chosen.first])),
        values=frequent_values(cloud, candidate),
    )
    profile.start = start
    beside = [p for p in all_ if p.c != c or p.first > chosen.last] + elsewhere
    listed, best = _structures(profile, candidate, chosen, beside), np.maximum(profile.best, 0.0)
    return Decision(candidate, facts, *confidence_of(facts), tuple(listed), cloud, best)


def facts_of(cloud: Cloud, c: int, contrast: float, length: float) -> Facts:
    """Return what these say about a structure of c normals; all else raises no doubt."""
    free = int(cloud.free[c - 1])
    return NOTHING_WRONG._replace(
        contrast=contrast,
        parameters=c * free,
        length=length,
        n_free=free,
        needed=float(cloud.needed[c - 1]),
    )


def _nearness(
    cloud: Cloud, candidate: Candidate, rng: np.random.Generator
) -> Callable[[Axes, float], bool]:
    """Return what says whether the members are near to other axes, in units of their noise."""
    c, members = candidate.c, np.flatnonzero(candidate.probability > 0.5)
    if len(members) > N_SAME:
        members = rng.choice(members, N_SAME, replace=False, shuffle=False)
    rows, noise = cloud.X[members], max(candidate.sigma, k.EXACT * cloud.floor)

    def is_near(axes: Axes, times: float = k.SAME_SUBSPACE) -> bool:
        V = axes.A[:, :c]
        H = rows @ V - axes.centre @ V
        limit = times * math.sqrt(c) * noise
        return len(rows) > 0 and bool(np.mean(np.sum(np.square(H), axis=1)) <= limit**2)

    return is_near


def _elsewhere(
    profile: Profile,
    candidate: Candidate,
    chosen: Plateau,
    is_near: Callable[[Axes, float], bool],
) -> list[Plateau]:
    """Return the finer plateaus of the same codimension that are about another subspace."""
    finer = [p for p in profile.plateaus() if p.c == candidate.c and p.last < chosen.first]
    return [
        p
        for p in finer
        if p.length >= k.LENGTH
        and not is_near(settled_at(profile, p).axes, k.OTHER * k.SAME_SUBSPACE)
    ]


def _agreement(
    profile: Profile, candidate: Candidate, is_near: Callable[..., bool]
) -> tuple[int, bool]:
    """Return how many starts have seen the members' subspace, and whether one saw another.

    A start has seen it if the members are near to any of its axes, or to the best of them when they
    are settled; another one has the same codimension and nearly the contrast. With many columns a
    path ends as soon as it has seen what is known, and need not come near; and rows that lie on it
    exactly need no second start.
    """
    cloud, c, agreeing = profile.cloud, candidate.c, set[int]()
    if not np.any(candidate.probability > 0.5):
        return 0, False
    j = cloud.scale_at(max(candidate.sigma, k.EXACT * cloud.floor))  # where it is seen best
    for axes, start in zip(profile.seen, profile.start_of, strict=True):
        if start >= 0 and start not in agreeing and is_near(axes):
            agreeing.add(start)
    for start, (T, of) in profile.best_of.items():
        if len(agreeing) < 2 and start not in agreeing:
            own = int(np.argmax(T[c - 1]))
            axes, scale = profile.seen[int(of[c - 1, own])], float(cloud.scales[own])
            if is_near(settle(cloud, axes, c, scale, least=candidate.sigma).axes):
                agreeing.add(start)
    rival = any(
        T[c - 1, j] >= k.AS_GOOD * profile.best[c - 1, j]
        and not is_near(profile.seen[int(of[c - 1, j])], k.OTHER * k.SAME_SUBSPACE)
        for start, (T, of) in profile.best_of.items()
        if start not in agreeing
    )
    n_agreeing = sum(profile.counts_for.get(start, 1) for start in agreeing)
    certain = candidate.is_exact or cloud.D > effort.FEW_COLUMNS
    return max(n_agreeing, 2) if certain else n_agreeing, rival


def _suspect(cloud: Cloud, candidate: Candidate, finest: float) -> bool:
    """Whether something thinner may be inside, given the finest scale at which rows concentrate.

    Below the scale of noise the density is flat. So where all rows are members, rows that
    concentrate far below it are some of their own (but for short ones around a line).
    """
    if candidate.is_exact or candidate.vague:
        return candidate.vague
    alone = candidate.n_members > k.ALL_ROWS * cloud.n and cloud.free[candidate.c - 1] > 1
    if alone and 2**k.OUTER * finest < _typical_noise(candidate):
        return True
    if candidate.layer is not None:  # one that hardly stands out has noise of any size
        return candidate.layer.gain < k.CLEAR_LAYER
    if not cloud.affine:
        return False
    if candidate.c > 1:
        return is_thinner_inside(cloud, candidate)
    near = candidate.seen.edges <= 1.1 * candidate.threshold
    members = Histogram(*(A[near] for A in candidate.seen))
    return gain_of_two(members) > k.KINK + k.UNLIKE * candidate.n_members


def _structures(
    profile: Profile, candidate: Candidate, chosen: Plateau, beside: list[Plateau]
) -> list[Structure]:
    """List what was seen, finest first: the chosen one, what contains it, other plateaus."""
    cloud = profile.cloud
    listed = [Structure(candidate, chosen.T, chosen.length, chosen=True)]
    others = [(p, p.first) for p in beside if p.length >= k.LENGTH]
    others = [(p, first) for p, first in others if p.weight >= k.SHOULDER * chosen.weight]
    many = chosen.share * cloud.n > candidate.n_members / k.FEWER
    if many and cloud.scales[chosen.peak] > 4 * candidate.sigma:
        others.insert(0, (chosen, chosen.peak))
    for p, first in others:
        settled = settled_at(profile, p, first)._replace(sigma=float(cloud.scales[p.peak]))
        listed.append(Structure(within(cloud, p.c, settled), p.T, p.length))
    return sorted(listed, key=lambda one: (one.noise, -one.candidate.c))


# -- what the rows of a linear fit say against it --------------------------------------------------


def with_rows(
    facts: Facts,
    cloud: Cloud,
    candidate: Candidate,
    *,
    span: RowSpan,
    norms: Array,
    n_different: float,
) -> Facts:
    """Add what the rows say: `norms` are those of all, and `n_different` of them differ."""
    all_ = candidate.n_members > k.ALL_ROWS * cloud.n
    sigma = _typical_noise(candidate) if all_ else candidate.sigma
    n_near, short = np.sum(candidate.threshold >= candidate.J), _share_of_short(cloud, candidate)
    many = short * (len(candidate.J) - n_near) > k.OVERLAP_ROUGH * n_near
    # What all rows lie on exactly is worth a line. Columns that are zero or multiples of others say
    # nothing about the rows; one row that depends on two others is an accident.
    accident = n_different - span.rank < -math.log2(1 - k.SURE)
    idle = accident or span.rank + span.n_idle_columns >= span.n_features
    return facts._replace(
        noise=sigma**2 * cloud.D / cloud.typical**2,
        overlap=_overlap(cloud, candidate),
        rough=candidate.fit is None,
        longest=longest(norms),
        short=short if many else 0.0,
        suspect=facts.suspect or is_thinner_inside(cloud, candidate),
        outside=0 if candidate.is_exact or idle else span.n_outside,
    )


def _typical_noise(candidate: Candidate) -> float:
    """Return the noise by the median distance: beside short rows, noise of one size is large."""
    near = candidate.seen.edges <= candidate.threshold
    return members_noise(candidate.seen, near, candidate.c, most=0.5)


def _overlap(cloud: Cloud, candidate: Candidate) -> float:
    """Return one minus the F1 of the labels, inliers as the positive class, that is expected.

    F1 = 2 TP / (labelled inliers + inliers), with TP the probabilities up to the threshold.
    """
    near, p = (candidate.threshold >= candidate.J).astype(float), candidate.probability
    labelled, inliers, hits = cloud.total(near), cloud.total(p), cloud.total(near * p)
    return 1 - 2 * hits / max(labelled + inliers, np.finfo(float).tiny)


def with_short_rows(cloud: Cloud, candidate: Candidate) -> Candidate:
    """Take all rows as members where there are no outliers but short inliers."""
    if _share_of_short(cloud, candidate) <= k.ALL_SHORT:
        return candidate
    candidate = candidate._replace(threshold=math.inf, probability=np.ones(len(cloud.X)))
    return candidate._replace(n_members=cloud.n, fit=None, layer=None)


def _share_of_short(cloud: Cloud, candidate: Candidate) -> float:
    """Return the share of outliers that are as near as inliers, in the units of the data.

    Where noise is alike in all rows as they were given, it is large in proportion to short ones.
    Short outliers are near by chance, too: with the law F of their directions, if a share p of them
    is near by that, of all far rows a share s + (1 - s) p is. Rows that would be near in any
    direction are shorter than the noise, and no such outliers.
    """
    J, lengths = candidate.J, cloud.lengths
    near, absolute = candidate.threshold >= J, J * lengths
    far = ~near & (lengths > 0)
    uneven = np.max(lengths) > k.AS_THIN * np.min(lengths[lengths > 0], initial=np.inf)
    if candidate.is_exact or not uneven or not (np.any(near) and np.any(far)):
        return 0.0

    def spread(J: Array) -> float:  # that of noise of one size is the smaller one
        return float(np.std(np.log(np.maximum(J, np.finfo(float).tiny))))

    if spread(absolute[near]) >= spread(J[near]):
        return 0.0
    limit, c = np.quantile(absolute[near], k.AS_NEAR), candidate.c
    reach = np.minimum(np.array([float(np.max(J[near])), *(limit / lengths[far])]), 1.0)
    out_of_reach, *by_chance = special.betainc(c / 2, (cloud.D - c) / 2, np.square(reach))
    chance = np.where(reach[1:] < 1, np.maximum(by_chance - out_of_reach, 0.0), 0.0).mean()
    chance /= max(1 - out_of_reach, np.finfo(float).tiny)
    return float(max(np.mean(absolute[far] <= limit) - chance, 0.0) / max(1 - chance, 1e-9))


def longest(norms: Array) -> float:
    """Return the norm of the longest row, in units of the typical one."""
    return float(norms[-1] / np.median(norms))


def is_thinner_inside(cloud: Cloud, candidate: Candidate) -> bool:
    """Say whether some members may be thinner than the others.

    Noise of one size makes short rows look like others than long ones, and noise in proportion does
    so in the units of the data: two kinds of rows show in both. A layer stands out of its flat
    density already.
    """
    near = 1.1 * candidate.threshold >= candidate.J
    if candidate.is_exact or candidate.layer is not None or not np.any(near):
        return False
    J, lengths = candidate.J[near], cloud.lengths[near]
    share = None if cloud.share is None else cloud.share[near]

    def has_layers(unit: Array) -> bool:
        seen = histogram(J * unit, cloud.floor * float(np.median(unit)), share)
        return bool(find_layers(seen, candidate.c, k.LEAST_SHARE * cloud.n))

    even = np.ptp(lengths) == 0
    return has_layers(np.ones(len(J))) and (even or has_layers(lengths))

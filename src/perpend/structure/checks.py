"""What could be wrong with a structure: one table, each line with its limit, sentence and remedy.

Only one doubt is cured by more rows: that the contrast is not positive. All others stay as they
are, so an estimate may be unsure at once. Doubts about noise, groups and rows hold for a given
codimension too.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from perpend._typing import Array
from perpend.structure import constants as k
from perpend.structure.cloud import Axes, Cloud, radius, values_of
from perpend.structure.layers import find_layers, histogram
from perpend.structure.settle import Candidate

TAILS = np.array([0.05, 0.02, 0.01, 0.005])  # shares of a cloud at which its rows are counted
TYLER_STEPS = 8
ROWS_OF_MEDIAN = 500  # from which Tyler's steps begin
NOT_LOOKED_FOR = 0.5  # largest confidence in "no normals" that were not searched
MATTERS = 100.0  # times rounding: a column with less of a normal takes no part
SUBSAMPLE, ROWS_BESIDE = 256, 2048  # rows that may be in clusters, and those counted beside them
# Of two rows of a cluster as long as it is thick, the distance has sqrt(2) times the deviation.
LENGTHS = math.sqrt(2) ** np.arange(-1, 4)  # of clusters, by the noise: some three times as long


class Doubt(NamedTuple):
    """A check that failed."""

    name: str
    sentence: str
    remedy: str
    about_rows: bool = False  # holds for a given codimension too

    def __str__(self) -> str:
        return f"{self.sentence} ({self.remedy})"


class Verdict(NamedTuple):
    """How sure an estimate is, and why."""

    confidence: float  # in [0, 1]
    doubts: tuple[Doubt, ...]
    evidence: dict[str, object]  # for users; what decides is in the other fields
    support: float = math.inf  # gain beyond what accidents reach; no limit where all rows are on it
    gap: float = 1.0  # largest ratio in the inliers' spectrum

    def doubted(self, *doubts: Doubt) -> "Verdict":
        """Return the same with more doubts."""
        least = min(self.confidence, k.DOUBTFUL) if doubts else self.confidence
        return self._replace(confidence=least, doubts=(*self.doubts, *doubts))

    def unsearched(self, *, all_outside: bool) -> "Verdict":
        """Return the same for "no normals inside the span", where that was given and not searched.

        That is nothing where fewer were requested than are outside of it.
        """
        most = NOT_LOOKED_FOR if all_outside else 0.0
        return self._replace(confidence=min(self.confidence, most))


class Facts(NamedTuple):
    """The statistics that the checks use; the defaults raise no doubt."""

    contrast: float  # T
    parameters: int  # c d
    clearness: float  # from 1 on the codimension is clear
    length: float  # of the plateau
    n_members: float
    n_free: int
    ellipse: float  # nats against a single elliptical cloud
    gap: float  # of its axes
    edge: float = math.inf  # nats against the edge of a smooth cloud
    spread: float = 1.0  # of the contrast is left where the rows of a cluster count as one
    needed: float = 0.0  # nats that luck reaches
    rival: int = 0  # codimension of the longest other plateau, 0 if there is none
    agreeing: int = 2  # starts that led here
    rival_subspace: bool = False  # whether one led to another subspace that is as good
    hint: bool = False  # whether rows concentrate at finer scales, anywhere: a reason to look on
    n_smaller: int | None = None  # members on a smaller subspace inside
    suspect: bool = False  # whether something thinner may be inside
    noise: float = 0.0  # share of it in the members' squared norm
    overlap: float = 0.0  # share of the labels that are wrong in any case,
    rough: bool = False  # as the density says, which knows less than a law does
    longest: float = 1.0  # norm of a row, over the typical one
    short: float = 0.0  # share of the outliers that are as near as inliers, but for their length
    values: int = 0  # columns with one value on the subspace, where others are as frequent
    blurred: bool = False  # whether it is seen only without an exact one, which is no evidence
    outside: int = 0  # normals of the rows' span, where all rows lie on it exactly: no doubt

    @property
    def no_accident(self) -> float:
        """The probability that so many rows on a subspace are no accident."""
        return no_accident(self.contrast, self.parameters)

    @property
    def starts_disagree(self) -> bool:
        """Whether starts did not lead to the same subspace."""
        return self.agreeing < 2 or self.rival_subspace

    @property
    def is_significant(self) -> bool:
        """Whether more rows could not cure any doubt."""
        return self.no_accident >= k.SURE


NOTHING_WRONG = Facts(math.inf, 0, math.inf, 0.0, 0.0, 0, math.inf, math.inf)


def no_accident(contrast: float, parameters: int) -> float:
    """Return the probability that a contrast is no accident.

    Luck varies by a few units, and more with more parameters: the slope of the step.
    """
    return float(special.expit(contrast / (3 + parameters / 6)))


def confidence_of(facts: Facts) -> tuple[float, tuple[Doubt, ...]]:
    """Return the confidence, and the doubts that lower it."""
    clear = float(special.expit(4 * (facts.clearness - 1) + 3))  # .95 where it is just clear
    factor = math.exp(facts.length)
    against = f", and codimension {facts.rival} is nearly as likely" if facts.rival else ""
    about_structure = (
        (
            not facts.is_significant,
            "accident",
            f"any {facts.n_free} rows lie on such a subspace, so {facts.n_members:.0f} are weak "
            "evidence",
            "more rows would help",
        ),
        (
            clear < k.SURE,
            "codimension",
            (
                f"this codimension fits best only over a factor of {factor:.2g} in scale"
                if factor > 1.1
                else "no codimension clearly fits better than the others"
            )
            + against,
            "less noise would help, more rows would not: there may be no gap between signal and "
            "noise",
        ),
        (
            facts.starts_disagree,
            "agreement",
            "other starts led to a different subspace",
            "there may be several: look at structures_, or use perpend.peel",
        ),
        (
            facts.ellipse < k.LUCK and facts.gap < k.GAP,
            "ellipse",
            f"the rows may be one smooth cloud (axis ratio {facts.gap:.2g}) without a subspace",
            "less noise would help, more rows would not",
        ),
        (
            facts.edge < k.LUCK and facts.gap < k.GAP,
            "edge",
            "on one side the rows do not thin out away from the subspace, so it may only be the "
            "edge of a cloud",
            "less noise would help, more rows would not",
        ),
        (
            facts.spread < k.AS_GOOD,
            "clusters",
            "the rows on it are a few clusters, hardly longer than they are thick, and any few "
            "clusters lie on such a subspace",
            "less noise would help if that makes them so thick, more rows would not",
        ),
        (
            facts.n_smaller is not None,
            "parts",
            f"{(facts.n_smaller or 0) / max(facts.n_members, 1):.0%} of the rows on the subspace "
            "lie on a smaller one inside it, so it may be the sum of two",
            "use perpend.peel to find both",
        ),
    )
    about_rows = (
        (
            facts.suspect,
            "layers",
            "the rows near the subspace may be two groups, at different distances from it",
            "look at the distances: another threshold may tell them apart",
        ),
        (
            facts.noise > k.NOISE,
            "noise",
            f"{facts.noise:.0%} of the inliers' squared length is noise",
            "centre the rows if they are far from the origin",
        ),
        (
            facts.overlap > (k.OVERLAP_ROUGH if facts.rough else k.OVERLAP),
            "overlap",
            f"inliers and outliers overlap, so about {facts.overlap:.0%} of the rows on the "
            "subspace are labelled wrongly",
            "less noise, or more features, would help",
        ),
        (
            facts.longest > k.LONG_ROWS,
            "long rows",
            f"the longest row has {facts.longest:.0f} times the typical norm, so a few long rows "
            "dominate the fit",
            "normalize=True would help",
        ),
        (
            facts.short > 0,
            "short rows",
            f"{'all' if facts.short > 0.995 else f'{facts.short:.0%} of the'} outliers are short "
            "rows, which are as close to the subspace as the inliers when measured in data units",
            "normalize=False or affine=True would help, or scaling the columns",
        ),
        (
            facts.values > 0,
            "values",
            f"the subspace only collects rows with one value in {_columns(facts.values)}, and "
            "other values are as frequent",
            "look at structures_, or leave out columns with few values, or rows with zeros",
        ),
        (
            facts.blurred,
            "few values",
            "many rows lie exactly on another subspace, but only because their values are few",
            "leave out columns with few values",
        ),
    )
    doubts = tuple(
        Doubt(name, sentence, remedy, about_rows=table is about_rows)
        for table in (about_structure, about_rows)
        for failed, name, sentence, remedy in table
        if failed
    )
    return facts.no_accident * clear * (k.DOUBTFUL if doubts else 1.0), doubts


def _columns(n: int) -> str:
    return f"{n} column{'s' * (n != 1)}"


# -- statistics ------------------------------------------------------------------------------------


def beyond_ellipse(cloud: Cloud, axes: Axes, c: int) -> tuple[float, float]:
    r"""Return the nats against a single elliptical cloud, and the gap of its axes.

    For every elliptical law, whatever its tails, the share of the c thin axes in the squared
    length of a whitened row is Beta(c/2, d/2); the axes' lengths are Tyler's fixed point. Outliers
    have larger shares than that, inliers among many outliers smaller ones.
    """
    H2 = cloud.about(axes.centre) @ axes.A
    np.square(H2, out=H2)
    H2 += cloud.floor**2
    share = np.ones(len(H2)) if cloud.share is None else cloud.share
    some = H2[:: max(len(H2) // ROWS_OF_MEDIAN, 1)]  # to begin with
    spread, d = np.median(some, axis=0), cloud.D - c
    for _ in range(TYLER_STEPS):
        spread = cloud.D / cloud.n * ((share / (H2 @ (1 / spread))) @ H2)
    thin = (H2[:, :c] @ (1 / spread[:c])) / (H2 @ (1 / spread))
    above = share @ (thin[:, None] > special.betaincinv(c / 2, d / 2, 1 - TAILS))
    below = share @ (thin[:, None] < special.betaincinv(c / 2, d / 2, TAILS))
    below = np.maximum(below - d - int(cloud.affine), 0)
    evidence = float(max(tail_excess(above, cloud.n), tail_excess(below, cloud.n)))
    gap = math.sqrt(float(spread[c:].min() / spread[:c].max()))
    return evidence, gap * math.exp(-2 / math.sqrt(cloud.n))  # as it is at the least, by chance


def beyond_edge(cloud: Cloud, axes: Axes, c: int, threshold: float) -> float:
    r"""Return the nats against an edge: rows beyond the members are as dense, on one side.

    Near its edge, a smooth cloud is a structure on the outer side alone. On the side with most of
    the rows in the shell up to three times the threshold, evenly spread rows are members with
    probability 3^-c.
    """
    J, share, shell, own = _fuller_side(cloud, axes, c, threshold, 3.0)
    members, even = float(share[own & (threshold >= J)].sum()), 3.0**-c
    n = members + float(share[shell & own].sum())
    return float(_nats(members, n, even))


def beyond_clusters(cloud: Cloud, axes: Axes, c: int, sigma: float) -> float:
    """Return how much of the contrast is left where the rows of a cluster count as one.

    A cluster is a subspace of dimension 0: it concentrates near all that run through it, and any
    d + 1 of them lie on a subspace of dimension d.
    """
    if not cloud.affine:  # through the origin, rows in one direction are a subspace
        return 1.0
    J, reach = np.sqrt(cloud.squares(axes, c)), sigma * radius(c)
    near = np.flatnonzero(2 * reach >= J)
    chosen = near[:: max(len(near) // SUBSAMPLE, 1)]
    share = np.ones(len(J)) if cloud.share is None else cloud.share
    part = float(share[near].sum() / max(share[chosen].sum(), 1.0))

    def contrast(counts: Array) -> float:
        inside = counts[reach >= J[chosen]].sum()
        n = np.maximum(part * np.array([inside, counts.sum()]) - cloud.free[c - 1], 0.0)
        return float(_nats(n[0], n[1], 2.0**-c) - cloud.needed[c - 1])

    sizes = np.maximum(cluster_sizes(cloud, axes, c, sigma, chosen), 1.0)
    return contrast(share[chosen] / sizes) / max(contrast(share[chosen]), k.LUCK)


def cluster_sizes(cloud: Cloud, axes: Axes, c: int, sigma: float, rows: Array) -> Array:
    """Return how many rows are in the cluster of each of these rows near a subspace, or 0.

    Among the rows near it, and seen along it, the contrast of codimension d tells: where they go
    on, 2^-d of those within 2 r of one are within r, at any r above the noise, and in a cluster all
    are. Half-way between, a row is in one, with those within r.
    """
    H, d = cloud.about(axes.centre) @ axes.A, cloud.D - c
    near = np.flatnonzero(np.square(H[:, :c]).sum(axis=1) <= (2 * sigma * radius(c)) ** 2)
    beside, even = near[:: max(len(near) // ROWS_BESIDE, 1)], 2.0**-d
    share = np.ones(len(H)) if cloud.share is None else cloud.share
    part = float(share[near].sum() / max(share[beside].sum(), 1.0))
    ends = sigma * radius(d) * np.append(LENGTHS, 2 * LENGTHS[-2:])  # two more are twice as far
    Z, sizes = H[beside, c:], [np.zeros(0)]
    for some in np.array_split(rows, max(len(rows) // SUBSAMPLE, 1)):
        Y = H[some, c:]
        away2 = np.square(Y).sum(axis=1)[:, None] + np.square(Z).sum(axis=1) - 2 * Y @ Z.T
        inside = np.array([(away2 <= end**2) @ share[beside] for end in ends])
        within, double = inside[:-2], inside[2:]
        is_one = (2 * within >= (1 + even) * double) & (_nats(within, double, even) >= k.LUCK)
        sizes.append(part * np.max(within * is_one, axis=0))
    return np.concatenate(sizes)


def ends_on_both_sides(cloud: Cloud, axes: Axes, c: int, threshold: float) -> bool:
    """Say whether a layer ends on the fuller side, too, and not only where a cloud has its edge.

    Beyond its edge, a smooth cloud thins out slowly, in whatever way: the density of the distances
    on that side alone falls, and ever faster, as that of a single bell.
    """
    J, share, _, own = _fuller_side(cloud, axes, c, threshold, math.inf)
    least = k.LEAST_SHARE * cloud.n / 2
    if share[own].sum() < 12 * k.ROWS_IN_BIN:
        return True  # so few have no density that could tell
    # Half of the rows show half of the gain; single bells reach 11 in one of a hundred cases.
    seen = histogram(J[own], cloud.floor, share[own])
    return bool(find_layers(seen, c, least, luck=-k.KINK / 8))


def _fuller_side(
    cloud: Cloud, axes: Axes, c: int, threshold: float, times: float
) -> tuple[Array, Array, Array, Array]:
    """Return distances, what rows count, which are beyond the members, and which on one side.

    That is the side with more rows up to so many `times` the threshold.
    """
    H = cloud.about(axes.centre) @ axes.A[:, :c]
    J = np.linalg.norm(H, axis=1)
    share = np.ones(len(H)) if cloud.share is None else cloud.share
    shell = (threshold < J) & (threshold * times >= J)
    own = H @ ((share * shell / np.maximum(J, threshold)) @ H) >= 0
    return J, share, shell, own


def _nats(inside: Array, n: Array, even: float) -> Array:
    """Return n KL(inside / n || even) where more are inside than of evenly spread rows."""
    p = inside / np.maximum(n, 1.0)
    kl = special.rel_entr(p, even) + special.rel_entr(1 - p, 1 - even)
    return np.where(p > even, n * kl, 0.0)


def tail_excess(seen: Array, n: Array) -> Array:
    """Return the largest n KL(seen / n || tail) among the tails with more rows than expected."""
    p = np.minimum(seen / n, 1.0)
    kl = special.xlogy(p, p / TAILS) + special.xlogy(1 - p, (1 - p) / (1 - TAILS))
    return np.asarray(np.max(np.where(p > TAILS, n * kl, 0.0), axis=-1))


# -- values that rows have in common ---------------------------------------------------------------
#
# Rows whose values are few, as counts and grades, lie exactly on many subspaces, as those with 3 in
# the first column do, or those whose third column is one more than the first. So what is exact must
# also be seen where every such value is anywhere in its cell (`Cloud.blurred`). And a single value
# can be frequent among others that are not, as zero is among amounts of money. It makes no group of
# its own if others are as frequent.


def may_be_coincidence(cloud: Cloud, candidate: Candidate) -> bool:
    """Say whether most rows on an exact subspace have values there that other rows have as well.

    A row whose value in a single column that matters is its own is there for another reason. And
    what nearly all rows have in common is no coincidence, as a column that hardly varies.
    """
    if candidate.n_members > k.ALL_ROWS * cloud.n:
        return False
    weight = np.linalg.norm(cloud.in_columns(candidate.axes.A[:, : candidate.c]), axis=1)
    X, rounding = cloud.columns()
    near = candidate.threshold >= candidate.J
    common = near.copy()
    for x in X.T[weight > MATTERS * cloud.relative_floor]:
        of = values_of(x, rounding)
        shared = np.bincount(of)[of] > 1
        common &= shared
        # In a column of measurements, other rows have values of their own.
        if 2 * np.sum(shared & ~near) < np.sum(~near) or 2 * np.sum(common) <= np.sum(near):
            return False
    return bool(np.any(near))


def frequent_values(cloud: Cloud, candidate: Candidate) -> int:
    """Return how many columns have one value on the subspace, if others are as frequent elsewhere.

    That is 0 where other columns tell the members as well.
    """
    B = cloud.in_columns(np.eye(cloud.D))
    size = np.linalg.norm(B, axis=1)
    inside = np.linalg.norm(B @ candidate.axes.A[:, : candidate.c], axis=1)
    own = (size > 0) & (inside > np.sqrt(1 - k.SAME_ANGLE**2) * size)
    if not np.any(own) or np.linalg.matrix_rank(B[own]) < candidate.c:
        return 0
    X, rounding = cloud.columns()
    near, here, elsewhere = candidate.threshold >= candidate.J, 1.0, 0.0
    for x, is_own in zip(X.T, own, strict=True):
        of = values_of(x, rounding)
        share = np.bincount(of) / len(x)
        if is_own:
            most = int(np.argmax(np.bincount(of[near], minlength=len(share))))
            here, share[most] = min(here, float(share[most])), 0.0
        elsewhere = max(elsewhere, float(np.max(share)))
    is_rare = here < k.LEAST_SHARE or elsewhere < k.AS_GOOD * here
    return 0 if is_rare else candidate.c

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
from perpend.structure.cloud import Axes, Cloud

TAILS = np.array([0.05, 0.02, 0.01, 0.005])  # shares of a cloud at which its rows are counted
TYLER_STEPS = 8
ROWS_OF_MEDIAN = 500  # from which Tyler's steps begin


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
    needed: float = 0.0  # nats that luck reaches
    rival: int = 0  # codimension of the longest other plateau, 0 if there is none
    agreeing: int = 2  # starts that led here
    rival_subspace: bool = False  # whether one led to another subspace that is as good
    n_smaller: int | None = None  # members on a smaller subspace inside
    suspect: bool = False  # whether something thinner may be inside
    noise: float = 0.0  # share of it in the members' squared norm
    overlap: float = 0.0  # share of the labels that are wrong in any case,
    rough: bool = False  # as the density says, which knows less than a law does
    longest: float = 1.0  # norm of a row, over the typical one
    short: float = 0.0  # share of the outliers that are as near as inliers, but for their length
    zeros: int = 0  # columns that vanish on the subspace, as others do elsewhere
    outside: int = 0  # normals of the rows' span, where all rows lie on it exactly

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
            f"only {facts.n_members:.0f} rows lie on the subspace, which may be an accident: some "
            f"subspace of this dimension passes through any {facts.n_free} rows",
            "more rows would help",
        ),
        (
            clear < k.SURE,
            "codimension",
            (
                f"the number of normals is the same only over a factor of {factor:.2g} in scale"
                if factor > 1.1
                else "the number of normals stands out over no range of scales"
            )
            + against,
            "less noise would help, more rows would not: variances may decay without a step",
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
            "all rows may be one smooth cloud, whose axes differ only by a factor of "
            f"{facts.gap:.2g} there",
            "less noise would help, more rows would not",
        ),
        (
            facts.n_smaller is not None,
            "parts",
            f"{(facts.n_smaller or 0) / max(facts.n_members, 1):.0%} of the rows on the subspace "
            "lie on a smaller one inside: it may be the sum of two",
            "use perpend.peel to find both",
        ),
        (
            facts.outside > 0,
            "exact",
            "all rows lie exactly on a larger subspace, and on this one only up to noise",
            f"codimension={facts.outside} would give the larger one",
        ),
    )
    about_rows = (
        (
            facts.suspect,
            "layers",
            "the rows near the subspace may be two groups, one closer to it than the other",
            "look at the distances: another threshold may tell them apart",
        ),
        (
            facts.noise > k.NOISE,
            "noise",
            f"the inliers' noise holds {facts.noise:.0%} of their squared norm, which is hardly a "
            "subspace",
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
            f"the longest row has {facts.longest:.0f} times the typical norm, and a few long "
            "rows decide alone",
            "normalize=True would help",
        ),
        (
            facts.short > 0,
            "short rows",
            f"{'all' if facts.short > 0.995 else f'{facts.short:.0%} of the'} outliers are short "
            "rows that are as near to the subspace as the inliers, in the units of the data: their "
            "noise is only large in proportion",
            "normalize=False or affine=True would help, or scaling the columns",
        ),
        (
            facts.zeros > 0,
            "zeros",
            f"the rows on the subspace are those that are zero in {facts.zeros} of the columns, "
            "and others are zero elsewhere as often",
            "look at structures_, or leave out rows with zeros",
        ),
    )
    doubts = tuple(
        Doubt(name, sentence, remedy, about_rows=table is about_rows)
        for table in (about_structure, about_rows)
        for failed, name, sentence, remedy in table
        if failed
    )
    return facts.no_accident * clear * (k.DOUBTFUL if doubts else 1.0), doubts


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


def tail_excess(seen: Array, n: Array) -> Array:
    """Return the largest n KL(seen / n || tail) among the tails with more rows than expected."""
    p = np.minimum(seen / n, 1.0)
    kl = special.xlogy(p, p / TAILS) + special.xlogy(1 - p, (1 - p) / (1 - TAILS))
    return np.asarray(np.max(np.where(p > TAILS, n * kl, 0.0), axis=-1))

"""What could be wrong with the rows of a linear fit: noise, overlap, lengths, spans.

These doubts are as true where the codimension was told. They come on top of the table in
`perpend.structure.checks`, after all rows have confirmed a structure.
"""

import math

import numpy as np
from scipy import special

from perpend._typing import Array
from perpend.geometry import average_height
from perpend.rows import Kept, RowSource, RowSpan
from perpend.solvers import Fit, TwoGroups
from perpend.structure import constants as k
from perpend.structure.checks import DOUBTFUL, LAYERS, SURE, Verdict
from perpend.structure.labels import outlier_law, outlier_misfit
from perpend.structure.layers import Histogram, find_layers, histogram, members_noise

HOLLOW = 4.0  # standard deviations
ENOUGH = 10_000  # rows to see short ones by
UNEVEN = 1.1  # ratio of the longest row to the shortest from which on lengths differ
AS_NEAR = 0.95  # of the inliers are nearer: what is so near, in the units of the data, is one


def doubts_about_rows(fit: Fit, norms: Array) -> list[str]:
    """Return the doubts about noise, groups and rows: as true where the codimension was told."""
    doubts, groups = list[str](), fit.groups
    scale = groups.scale
    if groups.share > k.ALL_ROWS:  # noise of one size is large in proportion to short rows
        seen = Histogram(groups.edges, groups.counts)
        scale = members_noise(seen, groups.posterior, fit.V.shape[1], most=0.5)
    noise = scale**2 * len(fit.spectrum) / float(np.median(norms)) ** 2
    if noise > k.NOISE:
        doubts.append(
            f"the inliers' noise holds {noise:.0%} of their squared norm, which is hardly a "
            "subspace (centre the rows if they are far from the origin)"
        )
    if _is_hollow(fit.groups, fit.V.shape[1]):
        doubts.append(
            "nearly all rows are near the subspace, but not as noise would be: some may lie on "
            "it, others only be near (look at the distances, set a threshold, or use perpend.peel)"
        )
    overlap = 1 - expected_f1(groups)
    if overlap > (k.OVERLAP_ROUGH if groups.rough else k.OVERLAP):
        doubts.append(
            f"inliers and outliers overlap, so about {overlap:.0%} of the rows on the subspace are "
            "labelled wrongly (less noise, or more features, would help)"
        )
    return doubts + _long_rows(norms)


def zeros_elsewhere(rows: RowSource, fit: Fit) -> list[str]:
    """Say that rows lie on a subspace because they are zero in some columns, as others elsewhere.

    In numbers that are often zero, a subspace where columns vanish is no group of its own.
    """
    columns = np.square(fit.V).sum(axis=1) > 1 - 1e-9  # whose axes are normals
    if not fit.groups.is_exact or np.count_nonzero(columns) < fit.V.shape[1]:
        return []
    n = rows.shape[0]
    zero = np.mean(rows.take(np.arange(0, n, max(n // ENOUGH, 1))) == 0, axis=0)
    if np.max(zero[~columns], initial=0.0) < k.AS_GOOD * np.min(zero[columns]):
        return []
    return [
        f"the rows on the subspace are those that are zero in {fit.V.shape[1]} of the columns, and "
        "others are zero elsewhere as often (look at structures_, or leave out rows with zeros)"
    ]


def misfit_of(groups: TwoGroups, norms: Array, c: int, rank: int, distinct: float) -> float:
    """Return how far the outliers are from the law; `distinct` is what a row's weight counts."""
    law = outlier_law(groups.edges, norms, c, rank - c)
    first = min(int(np.searchsorted(groups.edges, groups.threshold)), len(law) - 1)
    return outlier_misfit(groups.counts * distinct, law, first)


def short_rows(rows: RowSource, kept: Kept, fit: Fit) -> list[str]:
    """Say that outliers may be inliers by their distance in the units of the data."""
    short, far = share_of_short(rows, kept, fit)
    if short <= k.TOO_SHORT or short * far <= k.MANY_SHORT:
        return []
    return [
        f"{short:.0%} of the outliers are short rows that are as near to the subspace as the "
        "inliers, in the units of the data: their noise is only large in proportion "
        "(normalize=False or affine=True would help, or scaling the columns)"
    ]


def share_of_short(rows: RowSource, kept: Kept, fit: Fit) -> tuple[float, float]:
    """Return the share of outliers that are as near as inliers, and that of outliers among rows.

    Where noise is alike in all rows as they were given, it is large in proportion to short ones.
    Short outliers are near by chance, too: with the law F of their directions, if a share p of them
    is near by that, of all far rows a share s + (1 - s) p is. Rows that would be near in any
    direction are shorter than the noise, and no such outliers.
    """
    groups, c = fit.groups, fit.V.shape[1]
    J, lengths = rows.gather(kept).astype(float), rows.gather(rows.lengths).astype(float)
    some = slice(None, None, max(len(J) // ENOUGH, 1))
    J, lengths = J[some], lengths[some]
    near, absolute = groups.threshold >= J, J * lengths
    far = ~near & (lengths > 0)
    uneven = np.max(lengths) > UNEVEN * np.min(lengths[lengths > 0], initial=np.inf)
    if groups.is_exact or not uneven or np.mean(far) <= k.MANY_SHORT or not np.any(near):
        return 0.0, 0.0

    def spread(J: Array) -> float:  # that of noise of one size is the smaller one
        return float(np.std(np.log(np.maximum(J, np.finfo(float).tiny))))

    if spread(absolute[near]) >= spread(J[near]):
        return 0.0, 0.0
    limit, d = np.quantile(absolute[near], AS_NEAR), len(fit.spectrum) - c
    reach = np.minimum(np.array([float(np.max(J[near])), *(limit / lengths[far])]), 1.0)
    out_of_reach, *by_chance = special.betainc(c / 2, d / 2, np.square(reach))
    chance = np.where(reach[1:] < 1, np.maximum(by_chance - out_of_reach, 0.0), 0.0).mean()
    chance /= max(1 - out_of_reach, np.finfo(float).tiny)
    short = max(np.mean(absolute[far] <= limit) - chance, 0.0) / max(1 - chance, 1e-9)
    return float(short), float(np.mean(far))


def thinner_inside(rows: RowSource, kept: Kept, fit: Fit, distinct: float) -> list[str]:
    """Say that some inliers may be thinner than the others; a row counts as in `misfit_of`.

    Noise of one size makes short rows look like others than long ones, and noise in proportion does
    so in the units of the data: two kinds of rows show in both.
    """
    groups, c = fit.groups, fit.V.shape[1]
    if groups.is_exact:
        return []
    J, lengths = rows.gather(kept).astype(float), rows.gather(rows.lengths).astype(float)
    share = rows.gather(rows.weights).astype(float) * distinct
    some = np.arange(0, len(J), max(len(J) // ENOUGH, 1))
    least, floor = k.FEW * float(share[some].sum()), float(groups.edges[0])
    some = some[J[some] <= 1.1 * groups.threshold]
    J, lengths, share = J[some], lengths[some], share[some]

    def suspect(J: Array, floor: float) -> bool:
        return bool(find_layers(histogram(J, floor, share), c, least, needed=k.SUSPECT))

    if len(J) == 0 or not (
        suspect(J, floor) and suspect(J * lengths, floor * float(np.median(lengths)))
    ):
        return []
    return [str(LAYERS)]


def expected_f1(groups: TwoGroups) -> float:
    """Return the F1 of the labels, inliers as the positive class, that the model expects.

    2 TP / (labelled inliers + inliers), with TP the sum of the probabilities up to the threshold.
    """
    inliers = groups.counts * groups.posterior
    labelled = groups.edges <= groups.threshold
    hits = 2 * float(inliers[labelled].sum())
    return hits / max(float(groups.counts[labelled].sum() + inliers.sum()), np.finfo(float).tiny)


def _is_hollow(groups: TwoGroups, c: int) -> bool:
    """Say whether members avoid the subspace itself.

    If their density falls with the distance, at least 2^-c of those within the median distance are
    within half of it.
    """
    if groups.is_exact:
        return False
    N = np.cumsum(groups.counts * groups.posterior)
    median = groups.edges[np.searchsorted(N, N[-1] / 2)]
    seen = N[np.searchsorted(groups.edges, median / 2)]
    expected = float(N[-1]) / 2 ** (c + 1)
    return bool(expected - seen > HOLLOW * math.sqrt(expected))


def _long_rows(norms: Array) -> list[str]:
    """Say that a few long rows decide alone, where some are much longer than most."""
    typical = float(np.median(norms))
    if norms[-1] <= k.LONG_ROWS * typical:
        return []
    return [
        f"the longest row has {norms[-1] / typical:.0f} times the typical norm, and a few long "
        "rows decide alone (normalize=True would help)"
    ]


def exact_on_more(
    verdict: Verdict, span: RowSpan, n_different: float, groups: TwoGroups
) -> Verdict:
    """Add a doubt where all rows lie exactly on more, and on the found subspace with noise.

    The noise around a smaller subspace can't be the same in all directions then: it may be the
    shape of the inliers. Columns that are zero or multiples of others say nothing about the rows.
    """
    # One row that depends on two others is an accident of the data, and no group.
    accident = span.n_outside == 0 or n_different - span.rank < -math.log2(1 - SURE)
    if groups.is_exact or accident or span.rank + span.n_idle_columns >= span.n_features:
        return verdict
    doubt = (
        f"all rows lie exactly on a larger subspace, and on this one only up to noise "
        f"(codimension={span.n_outside} would give the larger one)"
    )
    doubted = verdict.doubted(doubt, exact_codimension=span.n_outside)
    return doubted._replace(about_rows=verdict.about_rows)


def weigh_no_normals(span: RowSpan, n_rows: float, norms: Array, heaviest: float = 0.0) -> Verdict:
    """Weigh the answer that there is no normal inside the span of the rows.

    `n_rows` counts rows that are equal up to sign once, and `heaviest` is the share of all rows
    that are equal to the most frequent one: these lie on a line, but are evidence for one row only.

    In a span of lower dimension R the rows lie on a subspace anyway; by accident only if there are
    no more than R of them, or because columns are zero or multiples of one another. Where the rows
    span everything but for such columns, the codimension is 0. A subspace with N
    rows is a minimiser of the l1 objective only if N c_R > sqrt(M), roughly: the inliers' pull must
    exceed that of M outliers in random directions. So the descents would have seen a subspace that
    holds more than the share sqrt(n) / (n c_R) of the rows.
    """
    if span.n_features == 1:
        return Verdict(0, 1.0, {"rank": 1})  # a row that is not zero spans the line
    if span.rank + span.n_idle_columns < span.n_features:
        confidence = 1 - 2.0 ** -max(n_rows - span.rank, 0.0)
        doubt = (
            f"{n_rows:.0f} distinct rows lie on a subspace of dimension {span.rank} in any case "
            "(more rows would help)"
        )
        nearest = math.sqrt(float(span.variances[0]) / span.rounding)
        if nearest < k.GAP:  # as between the axes of any cloud
            confidence = min(confidence, DOUBTFUL)
            doubt = (
                "the spread of the rows falls to rounding errors without a gap: the smallest that "
                f"counts is only {nearest:.2g} times above those (scaling the columns would help)"
            )
    else:
        share = min(1.0, 1 / (math.sqrt(n_rows) * average_height(span.rank)))
        confidence = 1 - max(share, heaviest)
        # Idle columns alone make a subspace: then it is a smaller one that was looked for.
        what = "smaller subspace" if span.rank < span.n_features else "subspace"
        doubt = f"no {what} was found, but the rows are too few to see one (add rows)"
        if share < 0.5:
            doubt = (
                f"no {what} was found; one that holds more than about {share:.0%} of the rows "
                "would have been seen (more rows would show smaller ones)"
            )
        if heaviest > share:
            doubt = (
                f"{heaviest:.0%} of the weight is on rows that are equal up to sign, and so lie on "
                "a line, but count as one row here (look at these rows alone)"
            )
    if n_rows < 1.5:
        doubt = (
            "all rows are equal up to sign and so count as one, which shows no subspace "
            "(add rows that differ)"
        )
    doubts = (doubt,) if confidence < SURE else ()
    return Verdict(0, confidence, {"rank": span.rank}, doubts).doubted(*_long_rows(norms))


def weigh_everything(span: RowSpan) -> Verdict:
    """Weigh the answer that every direction is a normal: only a caller can say so."""
    return Verdict(
        span.rank, 0.0, {"rank": span.rank}, ("a subspace of dimension 0 was asked for",)
    )

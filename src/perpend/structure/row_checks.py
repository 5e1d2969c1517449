"""What the rows of a linear fit say against it: noise, overlap, lengths, zeros, spans.

These statistics are as true where the codimension was told. They belong to the table of
`perpend.structure.checks`.
"""

import math

import numpy as np
from scipy import special

from perpend._typing import Array
from perpend.geometry import average_height
from perpend.rows import RowSpan
from perpend.structure import constants as k
from perpend.structure.checks import (
    DOUBTFUL,
    NOTHING_WRONG,
    SURE,
    Doubt,
    Facts,
    Verdict,
    confidence_of,
)
from perpend.structure.cloud import Cloud
from perpend.structure.layers import members_noise
from perpend.structure.settle import Found, is_thinner_inside

UNEVEN = 1.1  # ratio of the longest row to the shortest from which on lengths differ
ALL_SHORT = 0.7  # of the outliers that are short inliers: the others are no group
AS_NEAR = 0.95  # of the inliers are nearer: what is so near, in the units of the data, is one


def with_rows(
    facts: Facts, cloud: Cloud, found: Found, *, span: RowSpan, norms: Array, n_different: float
) -> Facts:
    """Add what the rows say about a structure.

    `norms` are those of all rows, and `n_different` is the number of rows that differ.
    """
    sigma = found.sigma
    if found.n_members > k.ALL_ROWS * cloud.n:  # noise of one size is large beside short rows
        sigma = members_noise(found.seen, found.seen.edges <= found.threshold, found.c, most=0.5)
    return facts._replace(
        noise=sigma**2 * cloud.D / cloud.typical**2,
        overlap=_overlap(cloud, found),
        rough=found.fit is None,
        longest=_longest(norms),
        short=_share_of_short(cloud, found),
        zeros=_zeros(cloud, found),
        suspect=facts.suspect or is_thinner_inside(cloud, found),
        outside=_exact_on_more(span, n_different, found),
    )


def _overlap(cloud: Cloud, found: Found) -> float:
    """Return one minus the F1 of the labels, inliers as the positive class, that is expected.

    F1 = 2 TP / (labelled inliers + inliers), with TP the probabilities up to the threshold.
    """
    share = 1.0 if cloud.share is None else cloud.share
    near, inliers = share * (found.threshold >= found.J), share * found.probability
    hits = 2 * float(np.sum(near * found.probability))
    return 1 - hits / max(float(np.sum(near) + np.sum(inliers)), np.finfo(float).tiny)


def _zeros(cloud: Cloud, found: Found) -> int:
    """Return how many columns vanish on an exact subspace, if others are zero elsewhere as often.

    In numbers that are often zero, a subspace where columns vanish is no group of its own.
    """
    columns = np.square(found.axes.A[:, : found.c]).sum(axis=1) > 1 - 1e-9  # that are normals
    if not found.is_exact or np.count_nonzero(columns) < found.c:
        return 0
    zero = np.mean(cloud.X == 0, axis=0)
    rare = np.max(zero[~columns], initial=0.0) < k.AS_GOOD * np.min(zero[columns])
    return 0 if rare else found.c


def with_short_rows(cloud: Cloud, found: Found) -> Found:
    """Take all rows as members where there are no outliers but short inliers."""
    if _share_of_short(cloud, found) <= ALL_SHORT:
        return found
    found = found._replace(threshold=math.inf, probability=np.ones(len(cloud.X)))
    return found._replace(n_members=cloud.n, fit=None, layer=None)


def _share_of_short(cloud: Cloud, found: Found) -> float:
    """Return the share of outliers that are as near as inliers, in the units of the data.

    It is 0 where these are few beside the inliers.

    Where noise is alike in all rows as they were given, it is large in proportion to short ones.
    Short outliers are near by chance, too: with the law F of their directions, if a share p of them
    is near by that, of all far rows a share s + (1 - s) p is. Rows that would be near in any
    direction are shorter than the noise, and no such outliers.
    """
    J, lengths = found.J, cloud.lengths
    near, absolute = found.threshold >= J, J * lengths
    far = ~near & (lengths > 0)
    uneven = np.max(lengths) > UNEVEN * np.min(lengths[lengths > 0], initial=np.inf)
    if found.is_exact or not uneven or not (np.any(near) and np.any(far)):
        return 0.0

    def spread(J: Array) -> float:  # that of noise of one size is the smaller one
        return float(np.std(np.log(np.maximum(J, np.finfo(float).tiny))))

    if spread(absolute[near]) >= spread(J[near]):
        return 0.0
    limit, c = np.quantile(absolute[near], AS_NEAR), found.c
    reach = np.minimum(np.array([float(np.max(J[near])), *(limit / lengths[far])]), 1.0)
    out_of_reach, *by_chance = special.betainc(c / 2, (cloud.D - c) / 2, np.square(reach))
    chance = np.where(reach[1:] < 1, np.maximum(by_chance - out_of_reach, 0.0), 0.0).mean()
    chance /= max(1 - out_of_reach, np.finfo(float).tiny)
    short = float(max(np.mean(absolute[far] <= limit) - chance, 0.0) / max(1 - chance, 1e-9))
    many = short * np.count_nonzero(far) > k.OVERLAP_ROUGH * np.count_nonzero(near)
    return short if many else 0.0


def _exact_on_more(span: RowSpan, n_different: float, found: Found) -> int:
    """Return the normals of the span where all rows lie on it exactly, and here with noise.

    The noise around a smaller subspace can't be the same in all directions then: it may be the
    shape of the inliers. Columns that are zero or multiples of others say nothing about the rows,
    and one row that depends on two others is an accident of the data, and no group.
    """
    accident = span.n_outside == 0 or n_different - span.rank < -math.log2(1 - SURE)
    idle = accident or span.rank + span.n_idle_columns >= span.n_features
    return 0 if found.is_exact or idle else span.n_outside


# -- no normals inside the span --------------------------------------------------------------------


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
        return Verdict(1.0, (), {"rank": 1})  # a row that is not zero spans the line
    if span.rank + span.n_idle_columns < span.n_features:
        confidence = 1 - 2.0 ** -max(n_rows - span.rank, 0.0)
        sentence = f"{n_rows:.0f} distinct rows lie on a subspace of dimension {span.rank} anyway"
        remedy = "more rows would help"
        nearest = math.sqrt(float(span.variances[0]) / span.rounding)
        if nearest < k.GAP:  # as between the axes of any cloud
            confidence = min(confidence, DOUBTFUL)
            sentence = (
                "the spread of the rows falls to rounding errors without a gap: the smallest that "
                f"counts is only {nearest:.2g} times above those"
            )
            remedy = "scaling the columns would help"
    else:
        share = min(1.0, 1 / (math.sqrt(n_rows) * average_height(span.rank)))
        confidence = 1 - max(share, heaviest)
        # Idle columns alone make a subspace: then it is a smaller one that was looked for.
        what = "smaller subspace" if span.rank < span.n_features else "subspace"
        sentence, remedy = f"no {what} was found, but the rows are too few to see one", "add rows"
        if share < 0.5:
            sentence = (
                f"no {what} was found; one that holds more than about {share:.0%} of the rows "
                "would have been seen"
            )
            remedy = "more rows would show smaller ones"
        if heaviest > share:
            sentence = (
                f"{heaviest:.0%} of the weight is on rows that are equal up to sign, and so lie on "
                "a line, but count as one row here"
            )
            remedy = "look at these rows alone"
    if n_rows < 1.5:
        sentence = "all rows are equal up to sign and so count as one, which shows no subspace"
        remedy = "add rows that differ"
    doubts = (Doubt("no normals", sentence, remedy),) if confidence < SURE else ()
    _, of_rows = confidence_of(NOTHING_WRONG._replace(longest=_longest(norms)))
    return Verdict(confidence, doubts, {"rank": span.rank}).doubted(*of_rows)


def _longest(norms: Array) -> float:
    return float(norms[-1] / np.median(norms))

"""How sure an answer is, why not, and what would help."""

import math

import numpy as np
from scipy import special

from perpend._typing import Array
from perpend.codimension.certificate import Certificate
from perpend.codimension.directions import RankEvidence
from perpend.codimension.result import DOUBTFUL, SURE, Codimension
from perpend.codimension.spectrum import SpectralGap
from perpend.solvers import Fit, RowSpan, TwoGroups
from perpend.theory import average_height

NOISE_LIMIT = 0.2  # of the inliers' squared norm: more noise than that is hardly a subspace
MISFIT_LIMIT = 2.0  # of the outliers' distances; beyond it they have directions of their own
CROWDED = 1.5  # outliers per dimension of the span from which on their directions have a law
OVERLAP_LIMIT = 0.07  # of the labels of inliers, by the harmonic mean of precision and recall
TOO_SHORT = 0.25  # of the outliers that are as near as inliers, but for their length
MANY_SHORT = 0.02  # of all rows: fewer of them do no harm
LONG_ROWS = 8.0  # times the typical norm: a few such rows decide alone
CLEAR_SCORE = 0.2  # of the directions' rank: a gap of 1.6 with the full rise of the objective
HALF = 0.5  # of the confidence is left where two answers are as good


def weigh(
    fit: Fit,
    gap: SpectralGap,
    certificate: Certificate,
    evidence: RankEvidence | None,
    norms: Array,
) -> Codimension:
    """Combine: no accident, a clear gap in the inliers' spectrum, and descents that agree."""
    value = fit.V.shape[1]
    # A gap is clear when it towers over the other ratios; neighbours differ by 20 % at random. Half
    # sure at the third power of the runner-up, sure from its power 4.5 on.
    clearness = math.log(gap.ratio) / math.log(max(gap.runner_up, 1.2))
    clear = float(special.expit(2 * (clearness - 3))) if gap.value == value else 0.1
    doubts = []
    if certificate.confidence < SURE:
        doubts.append(
            f"only {certificate.n_rows} rows lie on the subspace, and any subspace of its "
            f"dimension can be laid through {certificate.n_free} rows (more rows would help)"
        )
    if clear < SURE:
        doubts.append(
            f"the inliers' variance rises by a factor of {gap.ratio:.3g} at codimension "
            f"{gap.value}, elsewhere by up to {gap.runner_up:.3g} (noise, or variances that decay)"
        )
    if evidence is not None:
        doubts += _disagreement(value, evidence, seen=clear >= SURE)
    of_rows = about_rows(fit, certificate, norms)
    doubts += of_rows
    confidence = certificate.confidence * clear * (DOUBTFUL if doubts else 1.0)
    if not certificate.is_noise:
        confidence *= HALF  # one of the two: the cloud, or what lies in it
    numbers = _evidence(fit, gap, certificate, evidence)
    return Codimension(value, confidence, numbers, tuple(doubts), tuple(of_rows))


def about_rows(
    fit: Fit, certificate: Certificate, norms: Array, *, overlap_limit: float = OVERLAP_LIMIT
) -> list[str]:
    """Return the doubts about noise, groups and rows: as true where the codimension was told."""
    doubts = []
    noise = noise_share(fit, norms)
    if noise > NOISE_LIMIT:
        doubts.append(
            f"the inliers' noise holds {noise:.0%} of their squared norm, which is hardly a "
            "subspace (centre the rows if they are far from the origin)"
        )
    # Outliers that are not more than the dimensions of their span have each one of its own.
    crowded = n_outliers(fit, certificate) > CROWDED * len(fit.spectrum)
    if crowded and fit.groups.share < 0.5 and certificate.misfit > MISFIT_LIMIT:
        doubts.append(
            "the outliers are the majority and have preferred directions themselves, so the rows "
            "on the subspace may be no group of their own (look at the outliers alone)"
        )
    if not certificate.is_noise:
        doubts.append(
            "nearly all rows are near the subspace, but not as noise would be: some may lie on "
            "it, others only be near (look at the distances, set a threshold, or use perpend.peel)"
        )
    n_short = certificate.too_short * n_outliers(fit, certificate)
    if certificate.too_short > TOO_SHORT and n_short > MANY_SHORT * certificate.n_distinct:
        doubts.append(
            f"{certificate.too_short:.0%} of the outliers are short rows that are as near to the "
            "subspace as the inliers, in the units of the data: their noise is only large in "
            "proportion (normalize=False or affine=True would help, or scaling the columns)"
        )
    overlap = 1 - expected_f1(fit.groups)
    if overlap > overlap_limit:
        doubts.append(
            f"inliers and outliers overlap, so about {overlap:.0%} of the rows on the subspace are "
            "labelled wrongly (less noise, or more features, would help)"
        )
    return doubts + _long_rows(norms)


def noise_share(fit: Fit, norms: Array) -> float:
    """Return the share of the inliers' squared norm that is noise, over all directions."""
    return fit.groups.scale**2 * len(fit.spectrum) / float(np.median(norms)) ** 2


def n_outliers(fit: Fit, certificate: Certificate) -> float:
    """Return the number of distinct rows that are no inliers, as the model expects it."""
    return (1 - fit.groups.share) * certificate.n_distinct


def expected_f1(groups: TwoGroups) -> float:
    """Return the F1 of the labels, inliers as the positive class, that the model expects.

    2 TP / (labelled inliers + inliers), with TP the sum of the probabilities up to the threshold.
    """
    inliers = groups.counts * groups.posterior
    labelled = groups.edges <= groups.threshold
    hits = 2 * float(inliers[labelled].sum())
    return hits / max(float(groups.counts[labelled].sum() + inliers.sum()), np.finfo(float).tiny)


def _long_rows(norms: Array) -> list[str]:
    """Say that a few long rows decide alone, where some are much longer than most."""
    typical = float(np.median(norms))
    if norms[-1] <= LONG_ROWS * typical:
        return []
    return [
        f"the longest row has {norms[-1] / typical:.0f} times the typical norm, and a few long "
        "rows decide alone (normalize=True would help)"
    ]


def _disagreement(value: int, evidence: RankEvidence, *, seen: bool) -> list[str]:
    """Say how the descents' rank differs from the codimension, or how unclear it is.

    As many normals as starts may be too few, unless the codimension is `seen` in the inliers, which
    do not care how many starts there were.
    """
    if evidence.saturated:
        if value > evidence.value or seen:
            return []
        return [
            f"the codimension equals the number of starts ({evidence.value}) and may be larger "
            "(raise n_starts)"
        ]
    if evidence.value != value:
        return [
            f"the descents suggest codimension {evidence.value}, the inliers {value} "
            "(more starts or more rows would help)"
        ]
    if evidence.score < CLEAR_SCORE:
        return [
            f"the descents show no clear rank (their singular values fall by {evidence.gap:.3g} "
            f"there, and the objective rises by {evidence.rise:.0%}; more rows would help)"
        ]
    return []


def _evidence(
    fit: Fit, gap: SpectralGap, certificate: Certificate, evidence: RankEvidence | None
) -> dict[str, object]:
    """Return the numbers behind the answer, by name."""
    descents = (
        {}
        if evidence is None
        else {
            "directions_rank": evidence.value,
            "directions_gap": evidence.gap,
            "directions_saturated": evidence.saturated,
            "objective_rise": evidence.rise,
            "objective_per_direction": evidence.heights,
        }
    )
    return {
        **descents,
        "inlier_spectrum": fit.spectrum,
        "inlier_gap": gap.ratio,
        "inlier_gap_runner_up": gap.runner_up,
        "inlier_share": fit.groups.share,
        "rows_on_subspace": certificate.n_rows,
        "rows_on_any_subspace": certificate.n_free,
        "gain": certificate.gain,
        "gain_needed": certificate.needed,
        "outlier_misfit": certificate.misfit,
    }


def weigh_no_normals(
    span: RowSpan, n_rows: float, norms: Array, heaviest: float = 0.0
) -> Codimension:
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
        return Codimension(0, 1.0, {"rank": 1}, ())  # a row that is not zero spans the line
    if span.rank + span.n_idle_columns < span.n_features:
        confidence = 1 - 2.0 ** -max(n_rows - span.rank, 0.0)
        doubt = (
            f"{n_rows:.0f} distinct rows lie on a subspace of dimension {span.rank} in any case "
            "(more rows would help)"
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
    doubts = [doubt] if confidence < SURE else []
    long_rows = _long_rows(norms)
    if long_rows:
        confidence = min(confidence, DOUBTFUL)
    return Codimension(0, confidence, {"rank": span.rank}, (*doubts, *long_rows))


def weigh_everything(span: RowSpan) -> Codimension:
    """Weigh the answer that every direction is a normal: only a caller can say so."""
    return Codimension(
        span.rank, 0.0, {"rank": span.rank}, ("a subspace of dimension 0 was asked for",)
    )

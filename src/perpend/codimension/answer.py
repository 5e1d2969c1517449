"""From a judgement inside the rows' span to bases of the whole space, and to the solution."""

from typing import Literal, NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.codimension.choice import choose, if_likely, is_sure
from perpend.codimension.confidence import weigh_everything, weigh_no_normals
from perpend.codimension.decision import Judge, Judgement
from perpend.codimension.directions import RankEvidence
from perpend.codimension.exact_span import doubted_noise, without_lone_rows
from perpend.codimension.inside import smaller_inside
from perpend.codimension.result import Codimension
from perpend.geometry import complement
from perpend.rows import Kept, RowSource
from perpend.solvers import Directions, Fit, RowSpan, Solution

NOT_LOOKED_FOR = 0.5  # confidence in "no normals" at the most, where that was told and not found


class Answer(NamedTuple):
    """The subspace, as far as the rows can tell."""

    normals: Array  # (D, c) orthonormal
    components: Array  # (D, d) orthonormal: the inliers' principal axes, largest variance first
    codimension: Codimension  # inside the span of the rows
    fit: Fit | None  # None where there are no normals inside the span
    evidence: RankEvidence | None = None  # of the descents, where they had a say


def find_answer(
    judge: Judge,
    evidence: RankEvidence,
    codimension: int | Literal["auto"],
    first: Judgement | None = None,
    swept: Judgement | None = None,
    *,
    final: bool = False,
) -> Answer:
    """Let the rows choose the codimension, or finish at the one that was told.

    `first` is what the rows said on the way, where they were sure, or where it is `final`, and
    `swept` what the second engine said, where it was asked.
    """
    if codimension != "auto":
        V = evidence.basis[:, : n_inside(judge.span, codimension)]
        return told_answer(judge, codimension, V, evidence, first or swept)
    if first is not None and final:
        judgement = if_likely(judge, first)
    else:
        judgement = choose(judge, evidence, first)
    if judgement is None or not is_sure(judgement):
        others = without_lone_rows(judge)
        if others is not None and (judgement is None or others.support > judgement.support):
            judgement = others
    if judgement is None:
        found = weigh_no_normals(judge.span, judge.n_distinct, judge.rows.norms, judge.heaviest)
        return in_whole_space(judge.span, found, None)
    judgement = smaller_inside(judge, judgement)
    groups, found = judgement.fit.groups, judgement.codimension
    found = doubted_noise(judge.span, judge.distinct.n_different, groups, found)
    return as_answer(judge.span, judgement._replace(codimension=found))


def as_answer(span: RowSpan, judgement: Judgement) -> Answer:
    """Put the answer together from a judgement inside the span."""
    answer = in_whole_space(span, judgement.codimension, judgement.fit)
    return answer._replace(evidence=judgement.evidence)


def n_inside(span: RowSpan, codimension: int) -> int:
    """Return how many normals must lie inside the span: those outside are taken first."""
    return max(codimension - span.n_outside, 0)


def told_answer(
    judge: Judge,
    codimension: int,
    V: Array,
    evidence: RankEvidence | None = None,
    first: Judgement | None = None,
) -> Answer:
    """Answer with as many normals as were told; V (D, n_inside) are those inside the span."""
    span, n_rest = judge.span, min(codimension, judge.span.n_outside)
    if 0 < V.shape[1] < span.rank:
        judgement = first or judge.consider(V, evidence)
        return in_whole_space(span, judgement.codimension, judgement.fit, n_rest)
    if codimension == span.n_features:
        return in_whole_space(span, weigh_everything(span), None, n_rest)
    found = weigh_no_normals(span, judge.n_distinct, judge.rows.norms, judge.heaviest)
    # Nobody looked for normals inside the span, or there are some outside that were not asked for.
    all_outside = n_rest == span.n_outside
    most = NOT_LOOKED_FOR if all_outside else 0.0
    found = found._replace(confidence=min(found.confidence, most))
    return in_whole_space(span, found, None, n_rest)


def in_whole_space(
    span: RowSpan, found: Codimension, fit: Fit | None, n_rest: int | None = None
) -> Answer:
    """Put normals and components of the whole space together from those inside the span.

    `n_rest` is how many of the directions outside the span are normals; all of them by default.
    """
    if fit is not None:
        normals, components = fit.V, _components(fit, span.basis)
    else:
        normals, components = span.axes[:, : found.value], span.axes[:, found.value :]
    rest, unused = span.some_rest(span.n_outside if n_rest is None else n_rest)
    return Answer(
        normals=np.hstack([span.in_data(normals), rest]),
        components=np.hstack([unused, span.in_data(components)])[:, ::-1],
        codimension=found,
        fit=fit,
    )


def as_solution(
    rows: RowSource,
    answer: Answer,
    directions: Directions,
    *,
    told: bool,
    converged: bool,
    distances: Kept | None = None,
    structures: tuple[dict[str, object], ...] = (),
) -> Solution:
    """Put together what the estimator needs; who told the codimension hears no doubts about it."""
    codimension = answer.codimension
    return Solution(
        normals=answer.normals,
        components=answer.components,
        directions=directions.B,
        singular_values=np.linalg.svd(directions.B, compute_uv=False),
        objective=float(np.mean(directions.objective)) / rows.total_weight,
        confidence=codimension.confidence,
        evidence=codimension.evidence,
        groups=None if answer.fit is None else answer.fit.groups,
        doubts=() if told else codimension.doubts,
        quiet_doubts=codimension.about_rows if told else (),
        n_iter=int(np.max(directions.n_iter)),
        converged=converged,
        rank=rows.shape[1] if answer.fit is None else len(answer.fit.spectrum),
        distances=distances,
        structures=structures,
    )


def _components(fit: Fit, basis: Array) -> Array:
    """Return the inliers' principal axes orthogonal to the normals, smallest variance first.

    Without a finish the normals come from the descents and are not quite principal axes themselves.
    """
    c = fit.V.shape[1]
    if np.array_equal(fit.V, fit.axes[:, :c]):
        return fit.axes[:, c:]
    inside = complement(basis.T @ fit.V)  # (R, R - c), in coordinates of the span
    coordinates = basis.T @ fit.axes @ np.diag(np.sqrt(fit.spectrum))  # moments = this times its .T
    _, vectors = np.linalg.eigh(_square(inside.T @ coordinates))
    return basis @ inside @ vectors


def _square(A: Array) -> Array:
    return A @ A.T

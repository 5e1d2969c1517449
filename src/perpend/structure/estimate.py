"""From a decision to what the estimator needs: evidence, structures, bases of the whole space."""

import math
from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.geometry import average_height, complement
from perpend.rows import Distinct, Kept, RowSource, RowSpan, in_their_span, rank_tolerance, row_span
from perpend.solvers import Callback, Directions, Fit, Solution
from perpend.structure import constants as k
from perpend.structure import effort
from perpend.structure.checks import NOTHING_WRONG, Doubt, Verdict, confidence_of
from perpend.structure.confirm import among
from perpend.structure.decide import Decision, longest
from perpend.structure.labels import misfit_of
from perpend.structure.settle import Candidate


class Estimate(NamedTuple):
    """The subspace among some rows, and how it came about."""

    verdict: Verdict
    span: RowSpan
    rows: RowSource  # as they were solved, in the span
    directions: Directions  # as the rows see them in which the decision was made
    n_distinct: float  # how many rows count as evidence
    converged: bool
    fit: Fit | None = None  # None where none, or all directions inside the span are normals,
    n_inside: int = 0  # so many
    decision: Decision | None = None
    seen_in: RowSpan | None = None  # the span in which the decision was made, if it is another
    distances: Kept | None = None  # of the rows as they were given
    n_rest: int | None = None  # normals outside the span; all of them by default

    @property
    def sure(self) -> bool:
        """Whether it is sure."""
        return self.converged and self.verdict.confidence >= k.SURE


def around(inner: Decision) -> tuple[Decision | None, tuple[Doubt, ...]]:
    """Return the decision for the rows' span around what was seen inside, and doubts about it.

    The normals outside the span are certain, so what is inside is decided as if they were not
    there. Where that is not sure, those normals alone are the answer. It is doubted, unless the
    rows inside may be an accident, or the shape of one smooth cloud.
    """
    if not inner.facts.is_significant:
        return None, ()
    decision, smooth = inner.around(), {"ellipse", "edge"}
    if smooth & {doubt.name for doubt in inner.doubts}:
        return decision, ()
    own = next(one for one in inner.structures if one.chosen)
    place = next(i for i, one in enumerate(decision.structures) if one.candidate is own.candidate)
    why = f": {inner.doubts[0].sentence}" if inner.doubts else ""
    c = own.candidate.c + inner.cloud.n_outside
    doubt = Doubt(
        "inside",
        f"the rows may also lie near a subspace of codimension {c} inside, which is not sure{why}",
        f"choose({place}) would give that",
    )
    return decision, (doubt,)


def by_all_rows(
    rows: RowSource, sampled: Estimate, n_sampled: int, callback: Callback | None = None
) -> Estimate | None:
    """Refine the estimate of a sample of `n_sampled` rows with all of them.

    None if all rows span no more than the subspace, up to rounding errors.
    """
    given, span, decision = rows, sampled.span, sampled.decision
    assert decision is not None
    if span.n_outside:  # a scan: rows that are not in the sample may leave its span
        # Many rows are left where they are: turning them would take another scan.
        few = rows.shape[0] < rows.shape[1]
        rows, span = in_their_span(rows) if few else (rows, row_span(rows))
    A, candidate = _axes_in(span, sampled.span, decision.candidate)
    if candidate.c < 1:
        return None
    fit, kept = among(rows, span, A, candidate, sampled=True, callback=callback)
    # Whether rows are equal was seen in the sample only: all rows count as its distinct ones do.
    n_distinct = sampled.n_distinct * rows.shape[0] / n_sampled
    verdict = verdict_of(decision, fit, rows, n_distinct)
    return sampled._replace(
        verdict=verdict._replace(evidence={**sampled.verdict.evidence, **verdict.evidence}),
        fit=fit,
        span=span,
        n_distinct=n_distinct,
        converged=fit.converged,
        rows=rows,
        seen_in=sampled.span,
        distances=kept if rows is given else None,
    )


def _axes_in(span: RowSpan, before: RowSpan, candidate: Candidate) -> tuple[Array, Candidate]:
    """Return the axes (D', R) of what was found, in a span that may have more dimensions."""
    if span is before:
        return span.from_span(candidate.axes.A), candidate
    U = before.in_data(before.from_span(candidate.axes.A[:, candidate.c :]))
    U = span.basis.T @ span.inside(U)
    A = np.hstack([complement(U), U])
    return span.from_span(A), candidate._replace(c=span.rank - U.shape[1])


def verdict_of(
    decision: Decision, fit: Fit, rows: RowSource, n_distinct: float, variances: Array | None = None
) -> Verdict:
    """Return how sure a decision is, with the numbers behind it.

    `variances` (D,) are the inliers' own, if the spectrum of the fit is that of lifted rows.
    """
    facts, groups, distinct = decision.facts, fit.groups, n_distinct / rows.total_weight
    near = float(groups.counts[groups.edges <= groups.threshold].sum()) * distinct
    c, rank = fit.V.shape[1], len(fit.spectrum)

    def ratios(spectrum: Array) -> list[float]:  # of neighbours, above rounding errors
        floor = rank_tolerance(rows.dtype) * float(np.max(spectrum, initial=0.0))
        t = np.maximum(spectrum, max(floor, np.finfo(float).tiny))
        return [*(t[1:] / t[:-1]).tolist()]

    own = fit.spectrum if variances is None else variances
    steps = dict(enumerate(ratios(own), start=1))  # by the codimension
    evidence: dict[str, object] = {
        "inlier_spectrum": own,
        "inlier_gap": steps.pop(c, 1.0),
        "inlier_gap_runner_up": max(steps.values(), default=1.0),
        "inlier_share": groups.share,
        "rows_on_subspace": round(near),
        "rows_on_any_subspace": facts.n_free,
        "gain": facts.contrast + facts.needed,
        "gain_needed": facts.needed,
        "plateau_length": facts.length,
    }
    if variances is None and len(rows.norms) == 1:  # the law of directions is that of unit rows
        evidence["outlier_misfit"] = misfit_of(groups, rows.norms, c, rank, distinct)
    if np.isfinite(facts.clearness):  # the scales have chosen it
        evidence["plateau_clearness"] = facts.clearness
        evidence["ellipse_evidence"] = min(facts.ellipse, facts.edge)
        evidence["ellipse_gap"] = facts.gap
    if facts.n_smaller:
        evidence["rows_on_smaller"] = round(facts.n_smaller * n_distinct / decision.cloud.n)
    if facts.outside:
        evidence["exact_codimension"] = facts.outside
    return Verdict(
        decision.confidence,
        decision.doubts,
        evidence,
        facts.contrast,
        max(ratios(fit.spectrum), default=1.0),
    )


def weigh_no_normals(
    rows: RowSource, span: RowSpan, distinct: Distinct, *, lifted: bool = False
) -> Verdict:
    """Evaluate the estimate that there is no normal inside the span of the rows.

    Rows that are equal up to sign count once: they lie on a line, but are evidence for one row.

    In a span of lower dimension R the rows lie on a subspace anyway; by accident only if there are
    no more than R of them, or because columns are zero or multiples of one another. Where the rows
    span everything but for such columns, the codimension is 0. A subspace with N rows is a
    minimiser of the l1 objective only if N c_R > sqrt(M), roughly: the inliers' pull must exceed
    that of M outliers in random directions. So the descents would have seen a subspace that holds
    more than the share sqrt(n) / (n c_R) of the rows. Lifted rows have one more dimension.
    """
    own = span.rank - int(lifted)
    same = "equal" if lifted else "equal up to sign"
    if span.n_features == 1:
        return Verdict(1.0, (), {"rank": 1})  # a row that is not zero spans the line
    n_rows = float(distinct.share.sum())
    heaviest = float(np.max(distinct.in_common)) / rows.total_weight
    if span.is_smaller:
        confidence = 1 - 2.0 ** -max(n_rows - span.rank, 0.0)
        sentence = (
            f"any {span.rank} rows lie on such a subspace, so {n_rows:.0f} are weak evidence"
            if n_rows > span.rank + 0.5
            else f"{n_rows:.0f} rows always span at most {own} dimension{'s' * (own != 1)}"
        )
        remedy = "more rows would help"
        nearest = math.sqrt(float(span.variances[0]) / span.rounding)
        if nearest < k.GAP:  # as between the axes of any cloud
            confidence = min(confidence, k.DOUBTFUL)
            sentence = (
                "there is no gap between the spread of the rows and rounding errors: the smallest "
                f"spread that counts is only {nearest:.2g} times larger"
            )
            remedy = "scaling the columns would help"
    else:
        share = min(1.0, 1 / (math.sqrt(n_rows) * average_height(span.rank)))
        confidence = 1 - max(share, heaviest)
        # Idle columns alone make a subspace: then it is a smaller one that was looked for.
        what = "smaller subspace" if span.rank < span.n_features else "subspace"
        sentence = f"no {what} was found, but there are too few rows to detect one"
        remedy = "add rows"
        if share < 0.5:
            sentence = (
                f"no {what} was found, but one with less than about {share:.0%} of the rows might "
                "have been missed"
            )
            remedy = "more rows would allow detecting smaller ones"
        if heaviest > share:
            sentence = (
                f"{heaviest:.0%} of the weight is on rows that are {same}: they lie "
                f"{'at a point' if lifted else 'on a line'} and count as a single row"
            )
            remedy = "look at these rows alone"
    if n_rows < 1.5:
        sentence = f"all rows are {same}, and one distinct row cannot define a subspace"
        remedy = "add rows that differ"
    doubts = (Doubt("no normals", sentence, remedy),) if confidence < k.SURE else ()
    _, of_rows = confidence_of(NOTHING_WRONG._replace(longest=longest(rows.norms)))
    if lifted and of_rows:  # normalize=True would not help about a centre
        sentence = (
            f"the farthest row is {longest(rows.norms):.0f} times as far out as a typical one"
        )
        of_rows = (Doubt("long rows", sentence, "leaving out far rows would help"),)
    return Verdict(confidence, doubts, {"rank": own}).doubted(*of_rows)


def solution_of(estimate: Estimate, seen: RowSource, *, fixed: bool) -> Solution:
    """Return the solution, with every other structure that was seen; `seen` were descended on."""
    decision, span = estimate.decision, estimate.span
    if decision is None:
        return _solution(estimate, seen, fixed=fixed)
    sampled = estimate.seen_in is not None or decision.cloud.n < estimate.n_distinct - 0.5
    before, others = estimate.seen_in or span, []
    places = [(one, *_axes_in(span, before, one.candidate)) for one in decision.structures]
    # Just above rounding errors, all rows may seem to span less than the sample did.
    places = [(one, A, at) for one, A, at in places if one.chosen or at.c > 0]
    decision = decision._replace(structures=tuple(one for one, _, _ in places))
    for one, A, candidate in places:
        if not one.chosen:
            other = decision.of(one)
            fit, _ = among(estimate.rows, span, A, candidate, sampled=sampled)
            verdict = verdict_of(other, fit, estimate.rows, estimate.n_distinct)
            by_hand = estimate._replace(verdict=verdict, fit=fit, decision=other, distances=None)
            others.append(_solution(by_hand, seen, fixed=False)._replace(profile=None))
    solution = _solution(estimate._replace(decision=decision), seen, fixed=fixed)
    return solution._replace(others=tuple(others))


def _solution(estimate: Estimate, seen: RowSource, *, fixed: bool) -> Solution:
    """Put together what the estimator needs; a given codimension is not doubted."""
    verdict, fit, directions = estimate.verdict, estimate.fit, estimate.directions
    B = (estimate.seen_in or estimate.span).in_data(directions.B)
    span, decision, n_rest = estimate.span, estimate.decision, estimate.n_rest
    normals, components = np.split(span.axes, [estimate.n_inside], axis=1)
    if fit is not None:
        normals, components = fit.V, _components(fit, span.basis)
    rest, unused = span.some_rest(span.n_outside if n_rest is None else n_rest)
    variances = None
    if fit is not None and _is_refined(fit):
        across, along = np.split(fit.spectrum, [fit.V.shape[1]])
        nothing = np.zeros(rest.shape[1]), np.zeros(unused.shape[1])
        variances = np.concatenate([across, nothing[0], along[::-1], nothing[1]])
    structures, profile = structures_of(decision, seen.unit, estimate.n_distinct, span.n_outside)
    return Solution(
        normals=np.hstack([span.in_data(normals), rest]),
        components=np.hstack([unused, span.in_data(components)])[:, ::-1],
        directions=B,
        singular_values=np.linalg.svd(B, compute_uv=False),
        objective=float(np.mean(directions.objective)) / seen.total_weight,
        confidence=verdict.confidence,
        evidence=verdict.evidence,
        support=verdict.support,
        gap=verdict.gap,
        groups=None if fit is None else fit.groups,
        doubts=() if fixed else tuple(map(str, verdict.doubts)),
        quiet_doubts=tuple(str(doubt) for doubt in verdict.doubts if fixed and doubt.about_rows),
        n_iter=int(np.max(directions.n_iter)),
        converged=estimate.converged,
        rank=seen.shape[1] if fit is None else len(fit.spectrum),
        distances=estimate.distances,
        variances=variances,
        structures=structures,
        profile=profile,
    )


def structures_of(
    decision: Decision | None, unit: float, n_rows: float, n_outside: int
) -> tuple[tuple[dict[str, object], ...], dict[str, Array] | None]:
    """Return what was seen as plain numbers, in the units of the data and for all rows.

    `n_outside` normals are those of the rows' span. The profile is shown as far as it says
    anything, and an octave more.
    """
    if decision is None:
        return (), None
    cloud, best, profile = decision.cloud, decision.best, None
    structures: tuple[dict[str, object], ...] = tuple(
        {
            "codimension": one.candidate.c + n_outside,
            "noise": one.noise * unit,
            "members": round(one.candidate.n_members * n_rows / cloud.n),
            "score": one.score,
            "length": one.length,
            "chosen": one.chosen,
        }
        for one in decision.structures
    )
    if best is not None:
        shown = np.flatnonzero(np.any(best > 0, axis=0))
        first, last = (shown[0], shown[-1]) if len(shown) else (0, 0)
        part = slice(max(first - effort.OCTAVE, 0), last + effort.OCTAVE + 1)
        scales, codimensions = cloud.scales[part] * unit, cloud.codimensions + n_outside
        profile = {"scales": scales, "codimensions": codimensions, "contrast": best[:, part]}
    return structures, profile


def _components(fit: Fit, basis: Array) -> Array:
    """Return the inliers' principal axes orthogonal to the normals, smallest variance first.

    Without a finish the normals come from the descents and are not quite principal axes themselves.
    """
    c = fit.V.shape[1]
    if _is_refined(fit):
        return fit.axes[:, c:]
    inside = complement(basis.T @ fit.V)  # (R, R - c), in coordinates of the span
    coordinates = basis.T @ fit.axes @ np.diag(np.sqrt(fit.spectrum))  # moments = this times its .T
    half = inside.T @ coordinates
    _, vectors = np.linalg.eigh(half @ half.T)
    return basis @ inside @ vectors


def _is_refined(fit: Fit) -> bool:
    """Say whether the normals are principal axes of the members."""
    return np.array_equal(fit.V, fit.axes[:, : fit.V.shape[1]])

"""From the decision of a sample to the answer of all rows: the last steps, groups and doubts."""

import numpy as np

from perpend._typing import Array
from perpend.geometry import complement
from perpend.rows import Kept, RowSource, RowSpan, in_their_span, row_span
from perpend.solvers import Fit, Solution
from perpend.solvers.loop import Callback
from perpend.structure.answer import Answer, as_solution, evidence_of, without_choice
from perpend.structure.checks import Verdict, Weighed
from perpend.structure.confirm import (
    ALMOST,
    count,
    groups_by_density,
    turn_to_members,
    weights_by_bin,
)
from perpend.structure.decide import Decision
from perpend.structure.labels import with_threshold
from perpend.structure.law import distance_edges, two_groups
from perpend.structure.layers import Histogram
from perpend.structure.members import Found
from perpend.structure.reweighted import axes_of_moments, turned_to
from perpend.structure.row_checks import (
    doubts_about_rows,
    exact_on_more,
    misfit_of,
    share_of_short,
    short_rows,
    thinner_inside,
    zeros_elsewhere,
)

ALL_SHORT = 0.7  # of the outliers that are short inliers: the others are no group
SAMPLE_ERRORS = 3.0  # by so many times its own error the sample's normals may turn among all rows


def among(
    rows: RowSource,
    span: RowSpan,
    A: Array,
    found: Found,
    *,
    sampled: bool,
    callback: Callback | None,
) -> tuple[Fit, Kept]:
    """Return the subspace of the members among these rows, and all distances to it.

    The axes A (D', R) of a decision are those of all members, unless its rows were `sampled`.
    """
    c, basis = found.c, span.basis
    edges = distance_edges(float(rows.norms[-1]), rows.dtype)
    change, spectrum, groups = 0.0, found.axes.variances, None
    if found.fit is not None and not sampled:
        A, spectrum, groups = found.fit.axes, found.fit.spectrum, found.fit.groups
    V = A[:, :c] if found.fit is None or sampled else found.fit.V
    if sampled:

        def turn(V: Array, moments: Array) -> tuple[Array, float]:
            _, axes = axes_of_moments(moments, basis)
            return axes[:, :c], turned_to(V, axes) * float(rows.norms[-1])

        table = weights_by_bin(found, edges)
        end = turn_to_members(
            rows, V, table, edges, noise=found.sigma, turn=turn, callback=callback
        )
        spectrum, A = axes_of_moments(end.moments, basis)
        V, change = end.V, end.change
    counts, kept = count(rows, V, edges, A[:, c:])
    if groups is None and found.fit is not None:
        sizes = c, span.rank - c
        groups = two_groups(counts, edges, rows.norms, *sizes)
        groups = with_threshold(groups, rows.norms, *sizes, distinct=1.0)
    elif groups is None:
        groups = groups_by_density(Histogram(edges, counts), found, 1.0, sampled=sampled)
    # An angle of scale * sqrt(d R / N) is what the noise of N unit rows does to their subspace.
    error = np.sqrt((span.rank - c) * span.rank / max(found.n_members, 1.0))
    converged = change <= max(1e-3, SAMPLE_ERRORS * error)
    fit = Fit(V, groups, spectrum, A, 0, bool(converged))
    if share_of_short(rows, kept, fit)[0] > ALL_SHORT:  # there are no outliers but short inliers
        all_ = np.full(len(edges), ALMOST)
        groups = groups._replace(threshold=float(edges[-1]), posterior=all_, share=ALMOST)
        fit = fit._replace(groups=groups)
    return fit, kept


def _axes_in(span: RowSpan, before: RowSpan, found: Found) -> tuple[Array, Found]:
    """Return the axes (D', R) of what was found, in a span that may have more dimensions."""
    if span is before:
        A, basis = found.axes.A, span.basis
        return A if len(basis) == span.rank else basis @ A, found
    U = found.axes.A[:, found.c :]
    U = before.in_data(U if len(before.basis) == before.rank else before.basis @ U)
    U = span.basis.T @ span.inside(U)
    A = np.hstack([complement(U), U])
    A = A if len(span.basis) == span.rank else span.basis @ A
    return A, found._replace(c=span.rank - U.shape[1])


def by_all_rows(
    rows: RowSource, sampled: Answer, n_sampled: int, callback: Callback | None = None
) -> Answer:
    """Finish at the answer of a sample of `n_sampled` rows with all of them."""
    given, span, fit, decision = rows, sampled.span, sampled.fit, sampled.decision
    assert fit is not None
    assert decision is not None
    if span.n_outside:  # a scan: rows that are not in the sample may leave its span
        # Many rows are left where they are: turning them would take another scan.
        few = rows.shape[0] < rows.shape[1]
        rows, span = in_their_span(rows) if few else (rows, row_span(rows))
    A, found = _axes_in(span, sampled.span, decision.found)
    fit, kept = among(rows, span, A, found, sampled=True, callback=callback)
    # Whether rows are equal was seen in the sample only: all rows count as its distinct ones do.
    n_distinct = sampled.n_distinct * rows.shape[0] / n_sampled
    verdict = verdict_of(decision, fit, rows, span, n_distinct, kept)
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


def verdict_of(  # noqa: PLR0917
    weighed: Weighed | Decision,
    fit: Fit,
    rows: RowSource,
    span: RowSpan,
    n_distinct: float,
    kept: Kept,
) -> Verdict:
    """Put confidence, evidence and doubts together, with those about noise and rows."""
    distinct = n_distinct / rows.total_weight
    misfit = misfit_of(fit.groups, rows.norms, fit.V.shape[1], span.rank, distinct)
    numbers = evidence_of(weighed.facts, weighed.needed, fit, rows.dtype, distinct)
    numbers["outlier_misfit"] = misfit
    verdict = Verdict(fit.V.shape[1], weighed.confidence, numbers, tuple(map(str, weighed.doubts)))
    # What stands on a flat density was told from that already.
    on_flat = isinstance(weighed, Decision) and weighed.found.layer is not None
    verdict = verdict.doubted(
        *doubts_about_rows(fit, rows.norms),
        *zeros_elsewhere(rows, fit),
        *short_rows(rows, kept, fit),
        *([] if on_flat else thinner_inside(rows, kept, fit, distinct)),
    )
    return exact_on_more(verdict, span, n_distinct, fit.groups)


def solution_of(answer: Answer, seen: RowSource, *, told: bool) -> Solution:
    """Return the solution, with every other structure that was seen; `seen` were descended on."""
    solution, decision = as_solution(seen, answer, told=told), answer.decision
    if decision is None:
        return solution
    others = []
    for one in decision.structures:
        if one.chosen:
            continue
        other, rows, span = decision.of(one), answer.rows, answer.span
        A, found = _axes_in(span, answer.seen_in or span, other.found)
        sampled = answer.seen_in is not None or decision.cloud.n < answer.n_distinct - 0.5
        fit, kept = among(rows, span, A, found, sampled=sampled, callback=None)
        verdict = verdict_of(other, fit, rows, span, answer.n_distinct, kept)
        verdict = verdict._replace(evidence=without_choice(verdict.evidence))
        by_hand = answer._replace(verdict=verdict, fit=fit, decision=other, distances=None)
        others.append(as_solution(seen, by_hand, told=False)._replace(profile=None))
    return solution._replace(others=tuple(others))

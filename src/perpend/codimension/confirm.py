"""From the answer of a sample to the answer of all rows, in at most three scans of these.

A sample that is sure of its subspace leaves two questions: what the subspace is exactly, and which
of all rows belong to it. The first takes one or two steps of reweighted least squares over all
rows, from the sample's normals and with the sample's weights; the second one look at the distances.
"""

import math
from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.codimension.answer import in_whole_space
from perpend.codimension.certificate import weigh_counts
from perpend.codimension.confidence import weigh
from perpend.codimension.exact_span import doubted_noise
from perpend.codimension.found import Found
from perpend.codimension.spectrum import largest_gap
from perpend.geometry import complement
from perpend.rows import RowSource
from perpend.solvers import (
    Fit,
    RowSpan,
    TwoGroups,
    distance_edges,
    in_their_span,
    iterate,
    principal_axes,
    row_span,
    scan_grouped_distances,
    scan_weighted_gram,
    turned_to,
    two_groups,
)
from perpend.solvers.loop import Callback

SAMPLE_ERRORS = 3.0  # by so many times its own error the sample's normals may turn in the last step


class _State(NamedTuple):
    V: Array  # (D, c)
    spectrum: Array  # (R,) ascending
    axes: Array  # (D, R)
    objective: float
    change: float  # by how much V has turned, in units of the inliers' scale


def confirm(
    rows: RowSource, found: Found, n_sampled: int, callback: Callback | None = None
) -> Found:
    """Finish at the answer of a sample of `n_sampled` rows with all rows, and weigh it by them."""
    given, span, n_steps = rows, found.span, 2
    if span.n_outside:  # a scan: rows that are not in the sample may leave its span
        rows, span = _span_of(rows)
        n_steps = 1
    V = _inside(found, span)
    c, d = V.shape[1], span.rank - V.shape[1]
    if c == 0 or d == 0:
        return found
    fit = _finish(rows, V, span, found, n_steps=n_steps, callback=callback)
    edges = fit.groups.edges
    scan = scan_grouped_distances(rows, fit.V, edges)
    counts = np.ravel(scan.product)
    # Whether rows are equal was seen in the sample only: all rows count as its distinct ones do.
    distinct = counts * (found.n_distinct / rows.total_weight)
    groups = two_groups(counts, edges, rows.norms, c, d)
    certificate = weigh_counts(distinct, groups, rows.norms, c, d)
    # The labels are for all rows, so all of them say where the threshold is best.
    everybody = weigh_counts(distinct * (rows.shape[0] / n_sampled), groups, rows.norms, c, d)
    fit = fit._replace(groups=groups._replace(threshold=everybody.threshold))
    certificate = certificate._replace(
        threshold=everybody.threshold, n_rows=everybody.n_rows, misfit=everybody.misfit
    )
    gap = largest_gap(fit.spectrum, rows.dtype, groups.share * rows.shape[0])
    codimension = weigh(fit, gap, certificate, found.answer.evidence, rows.norms)
    n_different = found.n_distinct * rows.shape[0] / n_sampled
    codimension = doubted_noise(span, n_different, groups, codimension)
    return found._replace(
        answer=in_whole_space(span, codimension, fit)._replace(evidence=found.answer.evidence),
        span=span,
        converged=fit.converged,
        distances=scan.kept if rows is given else None,  # kept in the blocks of these rows
    )


def _span_of(rows: RowSource) -> tuple[RowSource, RowSpan]:
    """Find the span of all rows; fewer than features are turned into it, as their moments are not.

    Many rows are left where they are: turning them would take another scan.
    """
    return in_their_span(rows) if rows.shape[0] < rows.shape[1] else (rows, row_span(rows))


def _inside(found: Found, span: RowSpan) -> Array:
    """Return the normals (D', c) inside the span of all rows: what the components leave of it."""
    if span.n_outside == 0:
        return found.answer.normals
    V = complement(span.basis.T @ span.inside(found.answer.components))  # (R, c)
    return V if len(span.basis) == span.rank else span.basis @ V


def _finish(
    rows: RowSource,
    V: Array,
    span: RowSpan,
    found: Found,
    *,
    n_steps: int,
    callback: Callback | None,
) -> Fit:
    """Take up to `n_steps` steps of reweighted least squares with the sample's weights."""
    edges = distance_edges(float(rows.norms[-1]), rows.dtype)
    groups = _sample_groups(found, edges)

    def step(state: _State) -> _State:
        scan = scan_weighted_gram(rows, state.V, groups.posterior, edges)
        spectrum, axes = principal_axes(scan, span.basis)
        V = axes[:, : state.V.shape[1]]
        change = turned_to(state.V, axes) * float(rows.norms[-1]) / groups.scale
        return _State(V, spectrum, axes, groups.scale, change)

    start = _State(V, np.empty(0), np.empty(0), groups.scale, np.inf)
    run = iterate(
        step, start, max_steps=n_steps, tol=1e-3, stage="finish with all rows", callback=callback
    )
    end = run.state
    # An angle of scale * sqrt(d D / N) is what the noise of N unit rows does to their subspace.
    n_inliers = groups.share * found.n_distinct
    error = math.sqrt((span.rank - V.shape[1]) * span.rank / max(n_inliers, 1))
    converged = end.change <= max(1e-3, SAMPLE_ERRORS * error)
    return Fit(end.V, groups, end.spectrum, end.axes, run.n_steps, converged)


def _sample_groups(found: Found, edges: Array) -> TwoGroups:
    """Return the sample's two groups; without outliers in it, whatever is exact is an inlier."""
    if found.answer.fit is not None:
        return found.answer.fit.groups
    exact = (np.arange(len(edges)) == 0).astype(float)
    return TwoGroups(edges, exact, exact, exact, 1.0, float(edges[0]), float(edges[0]))

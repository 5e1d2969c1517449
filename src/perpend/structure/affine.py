"""From rows to an affine subspace, at the scale at which rows concentrate.

A sample says where it is; all rows confirm it, lifted about the members' mean, where distances are
Euclidean. A method that knows only linear subspaces sees lifted rows.
"""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from perpend._typing import Array
from perpend.geometry import complement, random_directions
from perpend.rows import RowSource, RowSpan, as_rows, distinct_rows, row_span
from perpend.rows.kinds import to_numpy
from perpend.rows.views import Lifted, View, lifted, near_view, whole_view
from perpend.solvers import Fit, Solution
from perpend.solvers.loop import Callback
from perpend.structure import effort
from perpend.structure.checks import Doubt, Verdict
from perpend.structure.cloud import NEXT_SAMPLE, Cloud
from perpend.structure.confirm import STEPS
from perpend.structure.decide import Decision
from perpend.structure.descents import N_LANDED
from perpend.structure.estimate import structures_of, verdict_of, weigh_no_normals
from perpend.structure.flats import AffineFit, Flat, Members, as_fit, as_flat, members_among
from perpend.structure.law import distance_edges
from perpend.structure.linear import NOT_LOOKED_FOR
from perpend.structure.members import point_among
from perpend.structure.profile import Profile
from perpend.structure.search import find_structure
from perpend.structure.settle import Candidate

Auto: TypeAlias = Literal["auto"]


class _Sampled(NamedTuple):
    """Some rows in memory, in coordinates y of their affine span: x = point + basis y."""

    n_rows: int
    outside: Array  # (D, m) orthonormal: what is orthogonal to the span
    basis: Array  # (D, R) inside it
    point: Array  # (D,) on it
    cloud: Cloud | None  # None where all rows are equal
    lifted: RowSpan
    norms: Array  # of the lifted rows
    heaviest: float  # the share of the weight that the most frequent row holds
    n_distinct: float


class _Chosen(NamedTuple):
    """What a sample shows."""

    view: View
    sampled: _Sampled
    candidate: Candidate | None = None  # inside the span; None where there is nothing
    decision: Decision | None = None  # None where nothing is significant, or was looked for


def find_affine(
    X: Array,
    weight: Array | None,
    *,
    codimension: int | Auto,
    sample: int | None,
    n_jobs: int,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> AffineFit:
    """Find the affine subspace of the inliers among the rows of X (n, D).

    `sample` is the size of the first subsample; all rows if it is None.
    """
    weights = None if weight is None else to_numpy(weight).astype(float)

    view = whole_view(X, weight, rng)
    chosen = _decide(X, weights, view, codimension, sample, rng=rng, callback=callback)
    seen = _seen_from(X, weights, chosen, n_jobs=n_jobs)
    fit = _among(seen, chosen, codimension, rng=rng, callback=callback)
    decision, others = chosen.decision, []
    for one in () if decision is None else decision.structures:
        assert decision is not None
        if not one.chosen:
            other = chosen._replace(candidate=one.candidate, decision=decision.of(one))
            seen = _seen_from(X, weights, other, seen, n_jobs=n_jobs)
            by_hand = _among(seen, other, codimension, rng=rng, steps=1)
            others.append(by_hand._replace(solution=by_hand.solution._replace(profile=None)))
    return fit._replace(others=tuple(others))


def _sample(
    X: Array, weight: Array | None, view: View, size: int | None, rng: np.random.Generator
) -> _Sampled:
    """Bring some rows to memory, in coordinates of their affine span."""
    chosen = np.arange(X.shape[0]) if weight is None else np.flatnonzero(weight > 0)
    if size is not None and len(chosen) > size:
        chosen = np.sort(rng.choice(chosen, size, replace=False, shuffle=False))
    given = to_numpy(X[chosen])
    S = given.astype(float)
    centre, scale, _ = view
    L = np.hstack([(S - centre) / scale, np.ones((len(S), 1))]).astype(given.dtype)
    own = None if weight is None else weight[chosen] / weight[chosen].mean()
    rows = as_rows(L, weight=own, normalize=False)
    span, distinct = row_span(rows), distinct_rows(rows, np.random.default_rng(0))
    W, w0 = as_flat(span.rest)
    basis, point = complement(W) if W.shape[1] else np.eye(len(W)), centre - scale * (W @ w0)
    cloud = None
    if basis.shape[1]:
        some = np.flatnonzero(distinct.first)
        Y = (S[some] - point) @ basis if W.shape[1] else S[some] - point
        own, share = distinct.of_kind(some)
        floor = float(distance_edges(1.0, given.dtype)[0])
        cloud = Cloud(Y, affine=True, weight=own, share=share, floor=floor)
    heaviest = float(np.max(distinct.in_common)) / rows.total_weight
    n = float(distinct.share.sum())
    return _Sampled(len(S), W, basis, point, cloud, span, rows.norms, heaviest, n)


def _decide(
    X: Array,
    weight: Array | None,
    view: View,
    codimension: int | Auto,
    sample: int | None,
    *,
    rng: np.random.Generator,
    callback: Callback | None,
) -> _Chosen:
    """Find the structure of the rows: by a sample, slowly by all where it is none."""

    def look(sample: int | None, *, slowly: bool = False) -> _Chosen:
        sampled = _sample(X, weight, view, sample, rng)
        cloud, nothing = sampled.cloud, _Chosen(view, sampled)
        fixed = None if codimension == "auto" else codimension - sampled.outside.shape[1]
        if cloud is None or (fixed is not None and fixed <= 0):
            return nothing
        if fixed == cloud.D:
            return nothing._replace(candidate=point_among(cloud))
        if cloud.n < cloud.D + 2:
            return nothing
        decision = find_structure(
            Profile(cloud), rng, fixed=fixed, slowly=slowly, callback=callback
        )
        # Rows that lie on their span exactly may be near a smaller one only by their shape.
        certain = sampled.outside.shape[1] > 0 and sampled.n_distinct > cloud.D + 1.5
        if decision is None or (fixed is None and certain and not decision.candidate.is_exact):
            return nothing
        return nothing._replace(candidate=decision.candidate, decision=decision)

    chosen = look(sample)
    while (  # more rows cure one doubt, that it may be an accident
        chosen.decision is not None
        and not chosen.decision.facts.is_significant
        and sample is not None
        and sample < X.shape[0]
    ):
        sample *= NEXT_SAMPLE
        chosen = look(sample)
    if chosen.candidate is None and X.shape[0] <= effort.MOST_PER_COLUMN * X.shape[1]:
        chosen = look(None, slowly=True)
    return chosen


def _seen_from(
    X: Array, weight: Array | None, chosen: _Chosen, before: Lifted | None = None, *, n_jobs: int
) -> Lifted:
    """Return all rows about the members' mean, or as they are seen from near it already."""
    view, sampled, candidate, _ = chosen
    if candidate is not None:
        centre = sampled.point + sampled.basis @ candidate.axes.centre
        spread = math.sqrt(float(np.sum(candidate.axes.variances)) / X.shape[1])
        view = near_view(X, centre, spread, view)
    elif sampled.outside.shape[1]:
        view = view._replace(centre=sampled.point)
    if before is not None and view.is_near(before.view):
        return before
    return lifted(X, weight, view, n_jobs=n_jobs)


def _among(
    seen: Lifted,
    chosen: _Chosen,
    codimension: int | Auto,
    *,
    rng: np.random.Generator,
    steps: int = STEPS,
    callback: Callback | None = None,
) -> AffineFit:
    """Confirm what a sample shows by all rows, and bring it back to the units of the data."""
    _, sampled, candidate, decision = chosen
    normals = sampled.outside if codimension == "auto" else sampled.outside[:, :codimension]
    n_outside, centre = normals.shape[1], sampled.point
    if candidate is not None:
        normals = np.hstack([normals, sampled.basis @ candidate.axes.A[:, : candidate.c]])
        centre = centre + sampled.basis @ candidate.axes.centre
    n_seen = int(np.count_nonzero(seen.rows.gather(seen.rows.weights)))
    if candidate is None and sampled.n_rows < n_seen:
        n_outside = 0  # rows outside of the subsample may leave the span
    flat = Flat(normals, ((seen.view.centre - centre) / seen.view.scale) @ normals)
    members = members_among(
        seen, flat, candidate, n_outside=n_outside, steps=steps, callback=callback
    )
    W = members.flat.W
    B = W @ (W.T @ random_directions(rng, len(W), N_LANDED))
    B /= np.maximum(np.linalg.norm(B, axis=0), np.finfo(float).tiny)
    fit = as_fit(seen, members, _verdict(chosen, members, seen, codimension), B)
    structures, profile = structures_of(decision, 1.0, n_seen, n_outside)
    solution = fit.solution._replace(structures=structures, profile=profile)
    return fit._replace(
        solution=solution if codimension == "auto" else solution._replace(doubts=())
    )


def _verdict(chosen: _Chosen, members: Members, seen: Lifted, codimension: int | Auto) -> Verdict:
    """Say how sure it is, and why."""
    sampled, decision, groups = chosen.sampled, chosen.decision, members.groups
    if decision is not None and groups is not None:
        spectrum = np.sort(np.append(members.variances, 1.0))  # of the lifted rows
        fit = Fit(members.flat.W, groups, spectrum, members.axes, 0, converged=True)
        n_seen = float(np.count_nonzero(seen.rows.gather(seen.rows.weights)))
        return verdict_of(decision, fit, seen.rows, n_seen)
    verdict = weigh_no_normals(sampled.lifted, sampled.n_distinct, sampled.norms, sampled.heaviest)
    if codimension != "auto":
        all_outside = codimension == sampled.outside.shape[1]
        most = NOT_LOOKED_FOR if all_outside else 0.0
        verdict = verdict._replace(confidence=min(verdict.confidence, most))
    return verdict


# -- methods that know only linear subspaces -------------------------------------------------------


def solve_lifted(
    X: Array,
    weight: Array | None,
    solve: Callable[[RowSource], Solution],
    *,
    normalize: bool,
    refine: bool,
    n_jobs: int,
    fused: bool,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> AffineFit:
    """Let a method find the affine subspace of the inliers among the rows of X (n, D).

    It sees lifted rows: unit rows if `normalize`. Without `refine` its result is brought back as it
    is; with it, it turns to its members in a few steps.
    """
    view = whole_view(X, weight, rng)
    linear = solve(lifted(X, weight, view, n_jobs=n_jobs, unit_rows=normalize, fused=fused).rows)
    flat = as_flat(linear.normals)
    seen = lifted(X, weight, view, n_jobs=n_jobs, fused=fused)
    n_outside = min(row_span(seen.rows).n_outside, flat.W.shape[1])
    steps = STEPS if refine else 0
    first = members_among(seen, flat, None, n_outside=n_outside, steps=steps, callback=callback)
    # Once more from the members' own place, where they have all their digits.
    centre = view.centre + view.scale * first.mean
    spread = view.scale * float(np.sqrt(np.mean(first.variances)))
    seen = lifted(X, weight, near_view(X, centre, spread, view), n_jobs=n_jobs, fused=fused)
    flat = Flat(first.flat.W, np.zeros(first.flat.W.shape[1]))
    members = members_among(seen, flat, None, n_outside=n_outside, steps=steps, callback=callback)
    confidence, doubts = linear.confidence, linear.doubts
    if flat.W.shape[1] < linear.normals.shape[1]:
        doubt = Doubt(
            "far away", "a normal was found that no row is near to", "rows may be in several places"
        )
        confidence, doubts = 0.0, (*doubts, str(doubt))
    B = linear.directions[:-1]
    norms = np.linalg.norm(B, axis=0)
    verdict = Verdict(confidence, (), linear.evidence, linear.support, linear.gap)
    fit = as_fit(seen, members, verdict, B / np.where(norms > 0, norms, 1))
    solution = fit.solution._replace(
        objective=linear.objective,
        n_iter=linear.n_iter,
        converged=linear.converged,
        doubts=doubts,
        quiet_doubts=linear.quiet_doubts,
    )
    return fit._replace(solution=solution)

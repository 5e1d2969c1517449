"""From rows to an affine subspace, at the scale at which rows concentrate.

A sample says where it is; all rows confirm it, lifted about the members' mean. A method that knows
only linear subspaces sees lifted rows.
"""

import copy
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from perpend._typing import Array, Auto
from perpend.geometry import complement, random_directions
from perpend.rows import RowSource, as_rows, distinct_rows, row_span
from perpend.rows.kinds import is_lazy, to_numpy
from perpend.rows.plan import NEXT_SAMPLE, check_taken
from perpend.rows.views import Lifted, View, lifted, near_view, whole_view
from perpend.solvers import Callback, Fit, Solution
from perpend.structure import effort
from perpend.structure.checks import Doubt, Verdict
from perpend.structure.cloud import Cloud
from perpend.structure.confirm import STEPS
from perpend.structure.decide import Decision
from perpend.structure.descents import N_LANDED
from perpend.structure.estimate import around, structures_of, verdict_of, weigh_no_normals
from perpend.structure.flats import AffineFit, Members, euclidean, in_data, members_among
from perpend.structure.law import distance_edges
from perpend.structure.members import point_among
from perpend.structure.profile import Profile
from perpend.structure.search import find_structure
from perpend.structure.settle import Candidate

if TYPE_CHECKING:
    from perpend.structure.known import Known


class _Sample(NamedTuple):
    """Some rows in memory, in coordinates y of their span, x = point + basis y, and what they show.

    The candidate is inside the span, None where there is nothing; the decision is None where
    nothing is significant, or was searched.
    """

    n_rows: int
    outside: Array  # (D, m) orthonormal: what is orthogonal to the span
    basis: Array  # (D, R) inside it
    point: Array  # (D,) on it
    cloud: Cloud | None  # None where all rows are equal
    n_distinct: float
    no_normals: Verdict  # on "there are no normals but those outside"
    candidate: Candidate | None = None
    decision: Decision | None = None

    @property
    def centre(self) -> Array:
        """The members' mean (D,), in the units of the data."""
        if self.candidate is None:
            return self.point
        return self.point + self.basis @ self.candidate.axes.centre

    def shows(self, decision: Decision | None) -> "_Sample":
        """Return the same with what was found."""
        return self._replace(candidate=decision and decision.candidate, decision=decision)


def find_affine(
    X: Array,
    weight: Array | None,
    *,
    codimension: int | Auto,
    sample: int | None,
    n_jobs: int,
    rng: np.random.Generator,
    known: "Known | None" = None,
    callback: Callback | None = None,
) -> AffineFit:
    """Find the affine subspace of the inliers among the rows of X (n, D).

    `sample` is the size of the first subsample; all rows if it is None. The search ends at once
    where a subspace that is `known` is still there.
    """
    weights = None if weight is None else to_numpy(weight).astype(float)
    whole, chosen = whole_view(X, weight, rng), None
    if known is not None:
        own = copy.deepcopy(rng)
        chosen = _still_there(_sample(X, weights, whole, sample, own), known, codimension, own)
    if chosen is None:
        chosen = _decide(X, weights, whole, codimension, sample, rng=rng, callback=callback)
    seen = lifted(X, weights, _near(X, whole, chosen), n_jobs=n_jobs)
    fit = _among(seen, chosen, codimension, rng=rng, callback=callback)
    if (decision := chosen.decision) is None:
        return fit
    others = []
    for one in (one for one in decision.structures if not one.chosen):
        other = chosen.shows(decision.of(one))
        view = _near(X, whole, other)
        if not view.is_near(seen.view):
            seen = lifted(X, weights, view, n_jobs=n_jobs)
        by_hand = _among(seen, other, codimension, rng=rng, steps=1)
        others.append(by_hand._replace(solution=by_hand.solution._replace(profile=None)))
    return fit._replace(others=tuple(others))


def _sample(
    X: Array, weight: Array | None, view: View, size: int | None, rng: np.random.Generator
) -> _Sample:
    """Bring some rows to memory, in coordinates of their affine span."""
    chosen = np.arange(X.shape[0]) if weight is None else np.flatnonzero(weight > 0)
    if size is not None and len(chosen) > size:
        chosen = np.sort(rng.choice(chosen, size, replace=False, shuffle=False))
    if is_lazy(X) and X.limit_given is not None:
        check_taken(len(chosen), X.shape[1], X.limit_given, affine=True)
        given = X.few(chosen)
    else:
        given = to_numpy(X[chosen])
    S = given.astype(float)
    centre, scale, _ = view
    L = np.hstack([(S - centre) / scale, np.ones((len(S), 1))]).astype(given.dtype)
    own = None if weight is None else weight[chosen] / weight[chosen].mean()
    rows = as_rows(L, weight=own, normalize=False)
    span, distinct = row_span(rows), distinct_rows(rows, np.random.default_rng(0))
    V = euclidean(span.rest)
    W, w0 = V[:-1], V[-1]
    basis, point = complement(W) if W.shape[1] else np.eye(len(W)), centre - scale * (W @ w0)
    cloud = None
    if basis.shape[1]:
        some = np.flatnonzero(distinct.first)
        Y = (S[some] - point) @ basis if W.shape[1] else S[some] - point
        own, share = distinct.of_kind(some)
        floor = float(distance_edges(1.0, given.dtype)[0])
        how = {"basis": basis if W.shape[1] else None, "n_outside": W.shape[1]}
        cloud = Cloud(Y, affine=True, weight=own, share=share, floor=floor, **how)
    n, no_normals = float(distinct.share.sum()), weigh_no_normals(rows, span, distinct, lifted=True)
    return _Sample(len(S), W, basis, point, cloud, n, no_normals)


def _still_there(
    sample: _Sample, known: "Known", codimension: int | Auto, rng: np.random.Generator
) -> _Sample | None:
    """Return the known subspace as a sample shows it, if it is still there."""
    cloud, fixed = sample.cloud, None if codimension == "auto" else codimension
    if cloud is None or sample.outside.shape[1] or cloud.n < cloud.D + 2:
        return None
    profile = Profile(cloud)
    proposals = known.proposed(profile, known.axes(sample.point))
    decision = find_structure(profile, rng, proposals=proposals, fixed=fixed, paths=False)
    return sample.shows(decision) if known.is_found_in(decision) else None


def _decide(
    X: Array,
    weight: Array | None,
    view: View,
    codimension: int | Auto,
    size: int | None,
    *,
    rng: np.random.Generator,
    callback: Callback | None,
) -> _Sample:
    """Find the structure of the rows: by a sample, slowly by all where it is none."""

    def search(size: int | None, *, slowly: bool = False) -> _Sample:
        sample = _sample(X, weight, view, size, rng)
        cloud, n_outside = sample.cloud, sample.outside.shape[1]
        fixed = None if codimension == "auto" else codimension - n_outside
        if cloud is None or (fixed is not None and fixed <= 0):
            return sample
        if fixed == cloud.D:
            return sample._replace(candidate=point_among(cloud))
        if cloud.n < cloud.D + 2:
            return sample
        profile = Profile(cloud, callback)
        return sample.shows(find_structure(profile, rng, fixed=fixed, slowly=slowly))

    chosen, (n, D) = search(size), X.shape
    while chosen.decision is not None and size is not None and size < n:
        if chosen.decision.facts.is_significant:
            break
        size *= NEXT_SAMPLE  # more rows cure one doubt, that it may be an accident
        chosen = search(size)
    if chosen.candidate is None and n <= effort.MOST_PER_COLUMN * D:
        chosen = search(None, slowly=True)
    return _or_their_span(chosen) if codimension == "auto" else chosen


def _or_their_span(sample: _Sample) -> _Sample:
    """Return the rows' whole span, where that is certain and what was found inside is not sure."""
    cloud, decision = sample.cloud, sample.decision
    if cloud is None or decision is None or sample.outside.shape[1] == 0:
        return sample
    if sample.n_distinct <= cloud.D + 1.5 or decision.is_worth_more:
        return sample
    whole, doubts = around(decision)
    no_normals = sample.no_normals.doubted(*doubts)
    return sample._replace(candidate=None, decision=whole, no_normals=no_normals)


def _near(X: Array, view: View, chosen: _Sample) -> View:
    """Return the view of the rows from the members' mean, or from the sample's span."""
    if chosen.candidate is not None:
        spread = math.sqrt(float(np.sum(chosen.candidate.axes.variances)) / X.shape[1])
        return near_view(X, chosen.centre, spread, view)
    return view._replace(centre=chosen.point) if chosen.outside.shape[1] else view


def _among(
    seen: Lifted,
    chosen: _Sample,
    codimension: int | Auto,
    *,
    rng: np.random.Generator,
    steps: int = STEPS,
    callback: Callback | None = None,
) -> AffineFit:
    """Confirm what a sample shows by all rows, and bring it back to the units of the data."""
    candidate, decision, fixed = chosen.candidate, chosen.decision, codimension != "auto"
    normals = chosen.outside[:, :codimension] if fixed else chosen.outside
    n_outside = normals_outside = normals.shape[1]
    if candidate is not None:
        normals = np.hstack([normals, chosen.basis @ candidate.axes.A[:, : candidate.c]])
    n_seen = int(np.count_nonzero(seen.rows.gather(seen.rows.weights)))
    if candidate is None and chosen.n_rows < n_seen:
        n_outside = 0  # rows outside of the subsample may leave the span
    V = np.vstack([normals, ((seen.view.centre - chosen.centre) / seen.view.scale) @ normals])
    members = members_among(seen, V, candidate, n_outside=n_outside, steps=steps, callback=callback)
    if decision is not None and candidate is not None and members.groups is not None:
        spectrum = np.sort(np.append(members.variances, 1.0))  # of the lifted rows
        fit = Fit(members.V[:-1], members.groups, spectrum, members.axes, 0, converged=True)
        own = members.variances * seen.view.scale**2
        verdict = verdict_of(decision, fit, seen.rows, float(n_seen), own)
    else:
        verdict = chosen.no_normals
        if fixed:
            verdict = verdict.unsearched(all_outside=codimension == chosen.outside.shape[1])
    W = members.V[:-1]
    B = W @ (W.T @ random_directions(rng, len(W), N_LANDED))
    B /= np.maximum(np.linalg.norm(B, axis=0), np.finfo(float).tiny)
    found = in_data(seen, members, verdict, B)
    structures, profile = structures_of(decision, 1.0, n_seen, normals_outside)
    solution = found.solution._replace(structures=structures, profile=profile)
    return found._replace(solution=solution._replace(doubts=()) if fixed else solution)


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

    def seen_from(view: View, *, unit_rows: bool = False) -> Lifted:
        return lifted(X, weight, view, n_jobs=n_jobs, unit_rows=unit_rows, fused=fused)

    def members_of(seen: Lifted, V: Array) -> Members:
        steps = STEPS if refine else 0
        return members_among(seen, V, None, n_outside=n_outside, steps=steps, callback=callback)

    view = whole_view(X, weight, rng)
    linear = solve(seen_from(view, unit_rows=normalize).rows)
    V, seen = euclidean(linear.normals), seen_from(view)
    n_outside = min(row_span(seen.rows).n_outside, V.shape[1])
    first = members_of(seen, V)
    # Once more from the members' own place, where they have all their digits.
    spread = view.scale * float(np.sqrt(np.mean(first.variances)))
    seen = seen_from(near_view(X, view.centre + view.scale * first.mean, spread, view))
    members = members_of(seen, np.vstack([first.V[:-1], np.zeros(V.shape[1])]))
    confidence, doubts = linear.confidence, linear.doubts
    if V.shape[1] < linear.normals.shape[1]:
        doubt = Doubt(
            "far away",
            "one of the hyperplanes found is far away from all rows",
            "the rows may be in several places",
        )
        confidence, doubts = 0.0, (*doubts, str(doubt))
    B = linear.directions[:-1]
    norms = np.linalg.norm(B, axis=0)
    evidence = dict(linear.evidence)
    if isinstance(rank := evidence.get("rank"), int):
        evidence["rank"] = rank - 1  # lifted rows have one more dimension
    verdict = Verdict(confidence, (), evidence, linear.support, linear.gap)
    found = in_data(seen, members, verdict, B / np.where(norms > 0, norms, 1))
    solution = found.solution._replace(
        objective=linear.objective,
        n_iter=linear.n_iter,
        converged=linear.converged,
        doubts=doubts,
        quiet_doubts=linear.quiet_doubts,
    )
    return found._replace(solution=solution)

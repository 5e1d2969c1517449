"""From rows to an affine subspace, at the scale at which rows concentrate.

A sample says where it is; all rows confirm it, lifted about the members' mean, where distances are
Euclidean.
"""

import math
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from perpend._typing import Array
from perpend.geometry import complement, random_directions
from perpend.rows import RowSpan, as_rows, distinct_rows, row_span
from perpend.rows.kinds import to_numpy
from perpend.solvers import Fit
from perpend.solvers.loop import Callback
from perpend.structure import constants as k
from perpend.structure.answer import evidence_of, profile_in, structures_in, without_choice
from perpend.structure.checks import SURE, Verdict
from perpend.structure.cloud import Cloud
from perpend.structure.confirm import STEPS
from perpend.structure.decide import Decision
from perpend.structure.flats import (
    AffineFit,
    Flat,
    Lifted,
    Members,
    as_fit,
    as_flat,
    lifted,
    members_among,
    near_view,
)
from perpend.structure.law import distance_edges
from perpend.structure.members import Found, point_among
from perpend.structure.profile import Profile
from perpend.structure.row_checks import weigh_no_normals
from perpend.structure.search import find_structure
from perpend.structure.views import View, find_views, whole_view

Auto: TypeAlias = Literal["auto"]

GROWTH = 4  # the next sample, in units of the last
N_LANDED = 16  # starts that are shown where nobody descends
NOT_LOOKED_FOR = 0.5  # confidence at the most, where a codimension was told and not looked for


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
    """What a sample shows from one view."""

    view: View
    sampled: _Sampled
    found: Found | None = None  # inside the span; None where there is nothing
    decision: Decision | None = None  # None where nothing is significant, or was looked for

    @property
    def weight(self) -> tuple[bool, float]:
        """By what views are compared: the surer one counts, or the one with more members."""
        sampled = self.sampled
        if self.found is None or sampled.cloud is None:
            exact = sampled.outside.shape[1] > 0 and sampled.n_distinct > sampled.lifted.rank + 0.5
            return exact, float(exact)
        sure = self.decision is not None and self.decision.confidence >= SURE
        return sure or self.found.is_exact, self.found.n_members / sampled.cloud.n


class _Rows(NamedTuple):
    """The rows of one view."""

    X: Array  # (n, D)
    weight: Array | None
    seen: Array  # (n,) bool
    view: View
    n_jobs: int

    def sampled(self, size: int | None, rng: np.random.Generator) -> _Sampled:
        """Bring some rows to memory, in coordinates of their affine span."""
        D, chosen = self.X.shape[1], np.flatnonzero(self.seen)
        if size is not None and len(chosen) > size:
            chosen = np.sort(rng.choice(chosen, size, replace=False, shuffle=False))
        given = to_numpy(self.X[chosen])
        S = given.astype(float)
        weight = None if self.weight is None else self.weight[chosen] / self.weight[chosen].mean()
        centre, scale, _ = self.view
        L = np.hstack([(S - centre) / scale, np.ones((len(S), 1))]).astype(given.dtype)
        rows = as_rows(L, weight=weight, normalize=False, n_jobs=self.n_jobs)
        span, distinct = row_span(rows), distinct_rows(rows, np.random.default_rng(0))
        W, w0 = as_flat(span.rest)
        full = W.shape[1] == 0
        basis = np.eye(D) if full else complement(W)
        point = centre - scale * (W @ w0)
        cloud = None
        if basis.shape[1]:
            some = np.flatnonzero(distinct.first)
            Y = S[some] - point if full else (S[some] - point) @ basis
            floor = float(distance_edges(1.0, given.dtype)[0])
            own, share = distinct.of_kind(some)
            cloud = Cloud(Y, affine=True, weight=own, share=share, floor=floor)
        heaviest = float(np.max(distinct.in_common)) / rows.total_weight
        n = float(distinct.share.sum())
        return _Sampled(len(S), W, basis, point, cloud, span, rows.norms, heaviest, n)


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

    `sample` is how many rows are asked first; all of them if it is None.
    """
    weights = None if weight is None else to_numpy(weight).astype(float)

    def look(view: View) -> _Chosen:
        seen = np.ones(X.shape[0], dtype=bool) if view.seen is None else view.seen
        if weights is not None:
            seen = seen & (weights > 0)
        rows = _Rows(X, weights, seen, view, n_jobs)
        return _decide(rows, codimension, sample, rng=rng, callback=callback)

    seen = [look(view) for view in find_views(X, weight, rng)]
    if len(seen) > 1 and all(one.found is None and not one.weight[0] for one in seen):
        seen = [look(whole_view(X, weight, rng))]
    best = max(seen, key=lambda one: one.weight)

    seen_from = _seen_from(X, weights, best, n_jobs=n_jobs)
    fit = _among(seen_from, best, codimension, rng=rng, callback=callback)
    if best.decision is None:
        return fit
    others = []
    for one in best.decision.structures:
        if not one.chosen:
            other = best.decision.of(one)
            chosen = best._replace(found=other.found, decision=other)
            seen_from = _seen_from(X, weights, chosen, seen_from, n_jobs=n_jobs)
            others.append(_by_hand(_among(seen_from, chosen, codimension, rng=rng, steps=1)))
    return fit._replace(others=tuple(others))


def _decide(
    rows: _Rows,
    codimension: int | Auto,
    sample: int | None,
    *,
    rng: np.random.Generator,
    callback: Callback | None,
) -> _Chosen:
    """Find the structure of the rows that are seen: by a sample, slowly by all where it is none."""
    n_seen = np.count_nonzero(rows.seen)

    def look(sample: int | None, *, slowly: bool = False) -> _Chosen:
        sampled = rows.sampled(sample, rng)
        cloud, nothing = sampled.cloud, _Chosen(rows.view, sampled)
        told = None if codimension == "auto" else codimension - sampled.outside.shape[1]
        if cloud is None or (told is not None and told <= 0):
            return nothing
        if told == cloud.D:
            return nothing._replace(found=point_among(cloud))
        if cloud.n < cloud.D + 2:
            return nothing
        decision = find_structure(Profile(cloud), rng, told=told, slowly=slowly, callback=callback)
        # Rows that lie on their span exactly may be near a smaller one only by their shape.
        certain = sampled.outside.shape[1] > 0 and sampled.n_distinct > cloud.D + 1.5
        if decision is None or (told is None and certain and not decision.found.is_exact):
            return nothing
        return nothing._replace(found=decision.found, decision=decision)

    chosen = look(sample)
    while (  # more rows cure one doubt, that it may be an accident
        chosen.decision is not None
        and not chosen.decision.facts.is_significant
        and sample is not None
        and sample < n_seen
    ):
        sample *= GROWTH
        chosen = look(sample)
    if chosen.found is None and n_seen <= k.MOST_PER_COLUMN * rows.X.shape[1]:
        chosen = look(None, slowly=True)
    return chosen


def _seen_from(
    X: Array, weight: Array | None, chosen: _Chosen, before: Lifted | None = None, *, n_jobs: int
) -> Lifted:
    """Return all rows about the members' mean, or as they are seen from near it already."""
    view, sampled, found, _ = chosen
    if found is not None:
        centre = sampled.point + sampled.basis @ found.axes.centre
        spread = math.sqrt(float(np.sum(found.axes.variances)) / X.shape[1])
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
    _, sampled, found, decision = chosen
    told, normals = codimension != "auto", sampled.outside
    if codimension != "auto":
        normals = normals[:, :codimension]
    n_outside, centre = normals.shape[1], sampled.point
    if found is not None:
        normals = np.hstack([normals, sampled.basis @ found.axes.A[:, : found.c]])
        centre = centre + sampled.basis @ found.axes.centre
    n_seen = int(np.count_nonzero(seen.rows.gather(seen.rows.weights)))
    if found is None and sampled.n_rows < n_seen:
        n_outside = 0  # rows that were not asked may leave the span
    flat = Flat(normals, ((seen.view.centre - centre) / seen.view.scale) @ normals)
    members = members_among(seen, flat, found, n_outside=n_outside, steps=steps, callback=callback)
    W = members.flat.W
    B = W @ (W.T @ random_directions(rng, len(W), N_LANDED))
    B /= np.maximum(np.linalg.norm(B, axis=0), np.finfo(float).tiny)
    fit = as_fit(seen, members, _verdict(chosen, members, seen, codimension), B)
    structures: tuple[dict[str, object], ...] = ()
    profile = None
    if decision is not None and sampled.cloud is not None:
        structures = structures_in(decision, 1.0, n_seen / sampled.cloud.n, n_outside)
        profile = profile_in(decision, 1.0, n_outside)
    solution = fit.solution._replace(structures=structures, profile=profile)
    if told:
        solution = solution._replace(doubts=())
    return fit._replace(solution=solution)


def _verdict(chosen: _Chosen, members: Members, seen: Lifted, codimension: int | Auto) -> Verdict:
    """Say how sure it is, and why."""
    sampled, decision, groups = chosen.sampled, chosen.decision, members.groups
    if decision is not None and groups is not None:
        spectrum = np.sort(np.append(members.variances, 1.0))  # of the lifted rows
        fit = Fit(members.flat.W, groups, spectrum, members.axes, 0, converged=True)
        weight = seen.rows.gather(seen.rows.weights)
        distinct = np.count_nonzero(weight) / float(weight.sum())
        numbers = evidence_of(decision.facts, decision.needed, fit, seen.rows.dtype, distinct)
        doubts = tuple(map(str, decision.doubts))
        return Verdict(decision.found.c, decision.confidence, numbers, doubts)
    verdict = weigh_no_normals(sampled.lifted, sampled.n_distinct, sampled.norms, sampled.heaviest)
    if codimension != "auto":
        all_outside = codimension == sampled.outside.shape[1]
        most = NOT_LOOKED_FOR if all_outside else 0.0
        verdict = verdict._replace(confidence=min(verdict.confidence, most))
    return verdict


def _by_hand(fit: AffineFit) -> AffineFit:
    """Return a structure that the scales did not choose."""
    evidence = without_choice(fit.solution.evidence)
    return fit._replace(solution=fit.solution._replace(evidence=evidence, profile=None))

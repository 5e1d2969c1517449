"""From rows to a linear subspace: proposals, the decision of a sample in memory, and all rows."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain

import numpy as np

from perpend._typing import Array, Auto
from perpend.exceptions import InputError
from perpend.geometry import complement
from perpend.kernels import distances
from perpend.rows import RowSource, RowSpan, check_source, scan_distances
from perpend.solvers import Callback, Directions, Solution
from perpend.structure import constants as k
from perpend.structure import effort
from perpend.structure.checks import Doubt, Verdict, beyond_ellipse, frequent_values
from perpend.structure.confirm import among
from perpend.structure.decide import Decision, Structure, facts_of, with_rows, with_short_rows
from perpend.structure.descents import Descent, Descents, landed, rank_of_directions
from perpend.structure.estimate import Estimate, around, solution_of, verdict_of, weigh_no_normals
from perpend.structure.ground import (
    Ground,
    dependent_rows,
    largest_axes,
    smallest_axes,
    sweep_sizes,
)
from perpend.structure.members import by_the_law
from perpend.structure.profile import Profile, clearness
from perpend.structure.reweighted import turned_to
from perpend.structure.search import find_structure
from perpend.structure.settle import Candidate

RESTS_ON_ONE = 0.99  # a leverage of 1 / (1 + 1/99): the others have a hundredth of the row's size
ENOUGH_TO_WEIGH = 1024  # rows, where nothing is looked for


def find_subspace(
    rows: RowSource,
    descent: Descent,
    *,
    codimension: int | Auto,
    finish: bool,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Estimate:
    """Find the subspace of the inliers among `rows`; without `finish` the descents alone decide."""
    ground = Ground(rows, rng, callback, codimension)
    descents, fixed = Descents(ground, descent), ground.fixed
    if not finish or (fixed is not None and not 0 < fixed < ground.span.rank):
        return _as_descents_say(ground, descents)
    decision = _decide(ground, descents)
    if decision is None and descents.directions is None:
        descents.descend(watched=True)  # what seemed to make descents needless was nothing
    directions, evidence = descents.directions, descents.evidence
    if directions is None and decision is not None:  # nobody descended
        directions = landed(ground, decision.candidate)
        evidence = rank_of_directions(ground.rows, directions, ground.span.rank)
    assert directions is not None
    assert evidence is not None
    noise2 = 0.0 if decision is None else decision.candidate.sigma**2 * ground.span.rank
    is_all_noise = noise2 > k.NO_SUBSPACE * float(np.median(ground.rows.norms)) ** 2
    if decision is None or (fixed is None and is_all_noise):
        return _no_normals(ground, directions)
    estimate = _estimate(ground, decision, directions)
    assert estimate.decision is not None
    # Normals outside the span are certain where more rows than its dimension lie on it.
    certain = ground.span.n_outside > 0 and ground.n_distinct > ground.span.rank + 0.5
    if fixed is None and certain and not estimate.decision.is_worth_more:
        return _no_normals(ground, directions, inner=estimate.decision)
    return estimate._replace(verdict=evidence.beside(estimate.verdict, ground.n_outside))


def _as_descents_say(ground: Ground, descents: Descents) -> Estimate:
    evidence = descents.descend(watched=False)
    c = min(evidence.value, ground.span.rank - 1) if ground.fixed is None else ground.fixed
    assert descents.directions is not None
    estimate = _as_it_is(ground, evidence.basis[:, :c], descents.directions)
    if ground.fixed is not None or estimate.fit is None:
        return estimate
    # Compare with the rank of the descents, where these alone have decided.
    doubts = evidence.doubts(ground.n_outside, seen=not estimate.verdict.doubts)
    verdict = evidence.beside(estimate.verdict, ground.n_outside)
    return estimate._replace(verdict=verdict.doubted(*doubts))


def find_proposed(
    rows: RowSource,
    propose: Callable[[Ground], Iterator[int]] = largest_axes,
    *,
    codimension: int | Auto,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Estimate | None:
    """Find what is proposed, and search nothing else.

    That is a subspace that stands out in the rows' second moments, unless somebody else proposes.
    """
    ground = Ground(rows, rng, callback, codimension)
    fixed, first = ground.fixed, propose(ground)
    if fixed is not None and not 0 < fixed < ground.span.rank:
        return None
    decision = find_structure(ground.profile, rng, proposals=first, fixed=fixed, paths=False)
    if decision is None or decision.facts.agreeing < 2:
        return None
    return _estimate(ground, decision, landed(ground, decision.candidate))


def _decide(ground: Ground, descents: Descents) -> Decision | None:
    """Collect candidates, those of the descents first, and choose; None if none is significant."""
    rank, descent = ground.span.rank, descents.descent
    paths = isinstance(descent.init, str)  # else the user says where to look
    if rank < 2:
        descents.descend(watched=False)
        return None
    first = chain(dependent_rows(ground), largest_axes(ground)) if descent.automatic else ()

    def descending() -> Iterator[int]:
        if not (descent.automatic and _is_low(ground)):
            yield from descents.proposals()

    def sweeping(*, late: bool = False) -> Iterator[int]:
        # Paths take long with many columns, and reweighting is quick where it leads anywhere.
        wide = rank > effort.WIDE
        if paths and (wide or late) and not _is_low(ground):
            sizes = sweep_sizes(rank, 1 if descents.evidence is None else descents.evidence.value)
            some = sizes[effort.FIRST_SIZES :] if late else sizes[: effort.FIRST_SIZES]
            yield from smallest_axes(ground, some if wide else sizes)

    find = partial(find_structure, rng=ground.rng, fixed=ground.fixed)
    proposals = chain(first, descending(), sweeping())
    decision = find(ground.profile, proposals=proposals, paths=paths)
    if decision is None and paths and ground.rows.shape[0] <= effort.MOST_PER_COLUMN * rank:
        if ground.profile.cloud.n < ground.n_distinct:
            ground.profile = Profile(ground.cloud(), ground.callback)
        decision = find(ground.profile, proposals=sweeping(late=True), slowly=True)
    return decision


def _is_low(ground: Ground) -> bool:
    """Whether a candidate has so many normals that descents would take long."""
    rank = ground.span.rank
    return rank >= effort.WIDE and any(2 * p.c >= rank for p in ground.profile.plateaus())


def _no_normals(ground: Ground, directions: Directions, inner: Decision | None = None) -> Estimate:
    """Take no normals but those outside the span; what was seen inside of it is `inner`."""
    rows, span, n_inside = ground.rows, ground.span, 0
    verdict = weigh_no_normals(rows, span, ground.distinct)
    if ground.codimension == span.n_features:  # only a caller can say so
        n_inside, what = span.rank, "a subspace of dimension 0 was requested"
        doubt = Doubt("point", what, "give a smaller codimension")
        verdict = Verdict(0.0, (doubt,), {"rank": span.rank})
    elif ground.n_rest is not None:
        verdict = verdict.unsearched(all_outside=ground.n_rest == span.n_outside)
    decision, doubts = (None, ()) if inner is None else around(inner)
    return Estimate(
        verdict.doubted(*doubts),
        span,
        rows,
        directions,
        ground.n_distinct,
        converged=True,  # the descents have no part in it
        n_inside=n_inside,
        n_rest=ground.n_rest,
        decision=decision,
    )


def _as_it_is(ground: Ground, V: Array, directions: Directions) -> Estimate:
    """Weigh the normals V (D', c) as they are, by how far the rows support them."""
    c = V.shape[1]
    if not 0 < c < ground.span.rank:
        return _no_normals(ground, directions)
    fit = ground.with_threshold(ground.fitted(V, 0))
    ground.profile = profile = Profile(ground.cloud(ENOUGH_TO_WEIGH))
    cloud, axes = profile.cloud, ground.axes_of(fit)
    profile.add(axes)
    chosen = profile.at(c)
    candidate = by_the_law(cloud, axes, fit, V if len(V) == cloud.D else ground.span.basis.T @ V)
    ellipse, gap = beyond_ellipse(cloud, axes, c)
    facts = facts_of(cloud, c, chosen.T, chosen.length)._replace(
        clearness=clearness(chosen, profile.plateaus()),
        n_members=fit.groups.share * ground.n_distinct,
        ellipse=ellipse,
        gap=gap,
        values=frequent_values(cloud, candidate),
    )
    own = Structure(candidate, chosen.T, chosen.length, chosen=True)
    decision = Decision(candidate, facts, 0.0, (), (own,), cloud, None)
    estimate = _estimate(ground, decision, directions, V)
    return estimate._replace(converged=bool(np.all(directions.converged)), n_rest=ground.n_rest)


def _estimate(
    ground: Ground, decision: Decision, directions: Directions, V: Array | None = None
) -> Estimate:
    """Weigh a decision with what the rows say about it, and confirm it among all of them.

    Normals V (D', c) that another method has found stay as they are.
    """
    rows, span, n = ground.rows, ground.span, ground.n_distinct
    candidate, cloud = _lawful(ground, decision.candidate), decision.cloud
    sampled = candidate.fit is None and cloud.n < n - 0.5
    candidate = with_short_rows(cloud, candidate)
    facts = with_rows(decision.facts, cloud, candidate, span=span, norms=rows.norms, n_different=n)
    decision = decision.weighed(facts, candidate)
    if candidate.fit is not None:  # by all rows already
        fit = candidate.fit
        kept = fit.kept or scan_distances(rows, fit.V, fit.axes[:, candidate.c :]).kept
    else:
        A = span.from_span(candidate.axes.A)
        if V is not None:
            inside = V if len(V) == span.rank else span.basis.T @ V
            A = np.hstack([V, span.from_span(complement(inside))])
        fit, kept = among(rows, span, A, candidate, sampled=sampled, callback=ground.callback)
    return Estimate(
        verdict_of(decision, fit, rows, n),
        span,
        rows,
        directions,
        n,
        converged=fit.converged,
        fit=fit,
        decision=decision,
        distances=kept if rows is ground.given else None,
    )


def _lawful(ground: Ground, candidate: Candidate) -> Candidate:
    """Separate the groups by the law of the outliers, if it gives the same subspace and noise."""
    if candidate.fit is not None or candidate.is_exact:
        return candidate
    fit = ground.with_threshold(ground.fitted(ground.normals(candidate.axes, candidate.c)))
    alike = abs(np.log(fit.groups.scale / candidate.sigma)) <= np.log(k.SAME_NOISE)
    same = turned_to(fit.V, ground.span.from_span(candidate.axes.A)) <= k.SAME_ANGLE
    if not (alike and same and ground.law_holds(fit)):
        return candidate
    return by_the_law(ground.profile.cloud, ground.axes_of(fit), fit)


def solve_fixed(
    rows: RowSource,
    codimension: int,
    find: Callable[[RowSource, RowSpan, int], Directions],
    rng: np.random.Generator,
) -> Solution:
    """Let ``find(rows, span, c)`` look for c orthonormal normals inside the span, and weigh them.

    Methods with a given codimension share this. `find` gets the rows turned into their span where
    that is smaller.
    """
    check_source(rows)
    if codimension > rows.shape[1]:
        raise InputError(
            f"codimension={codimension} is larger than the number of features ({rows.shape[1]})."
        )
    ground = Ground(rows, rng, codimension=codimension)
    nothing = np.zeros((ground.rows.shape[1], 0))
    directions = Directions(nothing, np.zeros(1), np.zeros(1, int), np.ones(1, bool), 0.0, 0)
    if ground.fixed:
        directions = find(ground.rows, ground.span, ground.fixed)
    estimate = _as_it_is(ground, directions.B, directions)
    if estimate.fit is not None and estimate.verdict.confidence >= k.SURE:
        estimate = _beside_the_rows(ground, _on_single_rows(ground, estimate), directions.B)
    return solution_of(estimate, rows, fixed=True)


def solve_free(
    rows: RowSource, find: Callable[[RowSource, RowSpan], Directions], rng: np.random.Generator
) -> Solution:
    """Let ``find(rows, span)`` find as many orthonormal normals as it sees, and weigh them.

    Methods that estimate the codimension themselves share this. Normals that are only roughly right
    may hide that there are more of them, so that as many, refined, must be as sure.
    """
    check_source(rows)
    ground = Ground(rows, rng)
    directions = find(ground.rows, ground.span)
    estimate = _as_it_is(ground, directions.B, directions)
    if estimate.fit is not None:
        refined = _as_it_is(ground, ground.fitted(directions.B).V, directions).verdict
        verdict = min(estimate.verdict, refined, key=lambda one: one.confidence)
        estimate = _on_single_rows(ground, estimate._replace(verdict=verdict))
        estimate = _beside_the_rows(ground, estimate, directions.B)
    return solution_of(estimate, rows, fixed=False)


def _on_single_rows(ground: Ground, estimate: Estimate) -> Estimate:
    r"""Doubt a sure estimate if a direction of its subspace rests on one row alone.

    The inliers' own subspace and an outlier span one dimension more, and both lie on that exactly.
    The leverage of a member, together with all rows that are equal to it,

    .. math:: h_i = w_i\, x_i^T \Bigl(\sum_j u_j x_j x_j^T\Bigr)^+ x_i, \qquad \sum_i h_i = d,

    is 1 only if the others span one dimension less without it.
    """
    fit, rows = estimate.fit, ground.rows
    if fit is None or estimate.verdict.confidence < k.SURE:
        return estimate
    c, groups = fit.V.shape[1], fit.groups
    size = np.sqrt(fit.spectrum[c:] * (groups.counts @ groups.posterior))
    across = fit.kept or scan_distances(rows, fit.V, fit.axes[:, c:]).kept
    along = rows.scan(distances, fit.axes[:, c:] / size, keep=True).kept
    assert across is not None
    assert along is not None
    members = rows.gather(across) <= groups.threshold
    leverage = ground.distinct.in_common * rows.gather(along).astype(float) ** 2
    if np.max(leverage[members], initial=0.0) < RESTS_ON_ONE:
        return estimate
    what = "one direction of the subspace rests on a single row: the others lie on a smaller one"
    doubt = Doubt("single row", what, "give a larger codimension, or use DPCP")
    return estimate._replace(verdict=estimate.verdict.doubted(doubt))


def _beside_the_rows(ground: Ground, estimate: Estimate, B: Array) -> Estimate:
    """Doubt an estimate by its normals B (D', c), if the rows around them show others.

    A subspace that is too large may run through outliers, exactly, and then looks like the right
    one by its own members alone. And a method that is easily led astray may end beside the one that
    its members lie on.
    """
    c, (fit, seen) = B.shape[1], ground.propose(B)
    if seen is None:
        return estimate
    if seen.c == c:
        sine = turned_to(B, fit.axes) if fit.V.shape[1] == c else 0.0
        if sine <= k.SAME_ANGLE:
            return estimate
        away = math.degrees(math.asin(min(sine, 1.0)))
        what = f"the rows near it lie on another subspace, {away:.0f} degrees away"
        doubt = Doubt("beside", what, "use DPCP, or another method")
    else:
        has, shown = (n + ground.span.n_outside for n in (c, seen.c))
        what = f"the method returned codimension {has}, but the rows support {shown}"
        doubt = Doubt("other", what, "give that codimension, or use DPCP")
    return estimate._replace(verdict=estimate.verdict.doubted(doubt))

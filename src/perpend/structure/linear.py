"""From rows to a linear subspace: proposals, the decision of a sample in memory, and all rows."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.rows import RowSource, RowSpan, scan_distances
from perpend.solvers import Directions, Solution
from perpend.solvers.loop import Callback
from perpend.structure import constants as k
from perpend.structure import effort
from perpend.structure.checks import Doubt, Verdict, beyond_ellipse
from perpend.structure.confirm import among
from perpend.structure.decide import Decision, Structure, facts_of, with_rows, with_short_rows
from perpend.structure.descents import Descent, Descents, landed, rank_of_directions
from perpend.structure.estimate import (
    NOT_LOOKED_FOR,
    Estimate,
    solution_of,
    verdict_of,
    weigh_no_normals,
)
from perpend.structure.ground import (
    FIRST_SIZES,
    Auto,
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
    directions, evidence = descents.directions, descents.evidence
    if directions is None and decision is not None:  # nobody descended
        directions = landed(ground, decision.candidate)
        evidence = rank_of_directions(ground.rows, directions, ground.span.rank)
    assert directions is not None
    if decision is None or (fixed is None and _is_unlikely(ground, decision)):
        return _no_normals(ground, directions)
    estimate = _estimate(ground, decision, directions)
    if evidence is None:
        return estimate
    return estimate._replace(verdict=evidence.beside(estimate.verdict, ground.n_outside))


def _as_descents_say(ground: Ground, descents: Descents) -> Estimate:
    evidence = descents.descend(watched=False)
    c = min(evidence.value, ground.span.rank - 1) if ground.fixed is None else ground.fixed
    assert descents.directions is not None
    estimate = _as_it_is(ground, evidence.basis[:, :c], descents.directions)
    if ground.fixed is not None or estimate.fit is None:
        return estimate
    # Compare with the rank of the descents, where these alone have decided.
    doubts = evidence.doubts(c, ground.n_outside, seen=not estimate.verdict.doubts)
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
    """Let everybody propose, the descents first; None where nothing is significant."""
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
            near = 1 if descents.evidence is None else max(descents.evidence.value, 1)
            sizes = sweep_sizes(rank, min(near, rank - 1))
            some = sizes[FIRST_SIZES:] if late else sizes[:FIRST_SIZES]
            yield from smallest_axes(ground, some if wide else sizes)

    find = partial(find_structure, rng=ground.rng, fixed=ground.fixed, callback=ground.callback)
    proposals = chain(first, descending(), sweeping())
    decision = find(ground.profile, proposals=proposals, paths=paths)
    if decision is None and paths and ground.rows.shape[0] <= effort.MOST_PER_COLUMN * rank:
        if ground.profile.cloud.n < ground.n_distinct:
            ground.profile = Profile(ground.cloud())
        decision = find(ground.profile, proposals=sweeping(late=True), slowly=True)
    return decision


def _is_low(ground: Ground) -> bool:
    """Whether something has so many normals that descents would take long for them."""
    rank = ground.span.rank
    return rank >= effort.WIDE and any(2 * p.c >= rank for p in ground.profile.plateaus())


def _is_unlikely(ground: Ground, decision: Decision) -> bool:
    """Say whether "no normals inside the span" is the better estimate.

    Noise that is as large as the rows is no subspace. More rows than the dimension of their span
    lie on a subspace for certain, if that leaves directions free; inside it, only what is as exact,
    or sure by the law as well, is worth more than that certainty.
    """
    candidate, span = decision.candidate, ground.span
    most = k.NO_SUBSPACE * float(np.median(ground.rows.norms)) ** 2
    if candidate.sigma**2 * span.rank > most:
        return True
    certain = span.n_outside > 0 and ground.n_distinct > span.rank + 0.5
    if not certain or candidate.is_exact:
        return False
    return candidate.fit is None or decision.confidence < k.SURE


def _no_normals(ground: Ground, directions: Directions) -> Estimate:
    rows, span, n_inside = ground.rows, ground.span, 0
    verdict = weigh_no_normals(rows, span, ground.distinct)
    if ground.codimension == span.n_features:  # only a caller can say so
        n_inside, what = span.rank, "a subspace of dimension 0 was requested"
        doubt = Doubt("point", what, "give a smaller codimension")
        verdict = Verdict(0.0, (doubt,), {"rank": span.rank})
    elif ground.n_rest is not None:
        # Normals inside the span were not searched, or fewer than those outside were requested.
        most = NOT_LOOKED_FOR if ground.n_rest == span.n_outside else 0.0
        verdict = verdict._replace(confidence=min(verdict.confidence, most))
    return Estimate(
        verdict,
        span,
        rows,
        directions,
        ground.n_distinct,
        converged=True,  # the descents have no part in it
        n_inside=n_inside,
        n_rest=ground.n_rest,
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
    facts = facts_of(cloud, c, chosen)._replace(
        clearness=clearness(chosen, profile.plateaus()),
        n_members=fit.groups.share * ground.n_distinct,
        ellipse=ellipse,
        gap=gap,
    )
    own = Structure(candidate, chosen.T, chosen.length, chosen=True)
    decision = Decision(candidate, facts, 0.0, (), (own,), cloud, None)
    estimate = _estimate(ground, decision, directions)
    return estimate._replace(converged=bool(np.all(directions.converged)), n_rest=ground.n_rest)


def _estimate(ground: Ground, decision: Decision, directions: Directions) -> Estimate:
    """Weigh a decision with what the rows say about it, and confirm it among all of them."""
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
    """Let the law tell the groups apart, where the same subspace has the same noise by it."""
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
        estimate = _beside_the_rows(ground, estimate, directions.B)
    return solution_of(estimate, rows, fixed=True)


def solve_free(
    rows: RowSource,
    find: Callable[[RowSource, RowSpan], Directions],
    rng: np.random.Generator,
) -> Solution:
    """Let ``find(rows, span)`` find as many orthonormal normals as it sees, and weigh them.

    Methods that estimate the codimension themselves share this. Normals that are only roughly right
    may hide that there are more of them, so that as many, refined, must be as sure.
    """
    ground = Ground(rows, rng)
    directions = find(ground.rows, ground.span)
    estimate = _as_it_is(ground, directions.B, directions)
    if estimate.fit is not None:
        refined = _as_it_is(ground, ground.fitted(directions.B).V, directions).verdict
        verdict = min(estimate.verdict, refined, key=lambda one: one.confidence)
        estimate = _beside_the_rows(ground, estimate._replace(verdict=verdict), directions.B)
    return solution_of(estimate, rows, fixed=False)


def _beside_the_rows(ground: Ground, estimate: Estimate, B: Array) -> Estimate:
    """Doubt an estimate by its normals B (D', c), if the rows around them show another number.

    A subspace that is too large may run through outliers, exactly, and then looks like the right
    one by its own members alone.
    """
    c, seen = B.shape[1], ground.propose(B)[1]
    if seen is None or seen.c == c:
        return estimate
    has, shown = (n + ground.span.n_outside for n in (c, seen.c))
    what = f"the method has codimension {has}, and the rows show {shown}"
    doubt = Doubt("other", what, "give the codimension that they show, or use DPCP")
    return estimate._replace(verdict=estimate.verdict.doubted(doubt))

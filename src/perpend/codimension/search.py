"""From rows to an answer: descents, watched on their way, and the rows' verdict."""

from functools import cache
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from perpend._typing import Array
from perpend.codimension.answer import find_answer, n_inside
from perpend.codimension.certificate import distinct_shares
from perpend.codimension.decision import Judge
from perpend.codimension.directions import RankEvidence, rank_of_directions
from perpend.codimension.found import Found
from perpend.codimension.growth import grow_starts
from perpend.codimension.low_dimension import landed, low_dimensional
from perpend.codimension.watch import Watch
from perpend.codimension.whitening import by_whitening
from perpend.rows import RowSource
from perpend.solvers import (
    Directions,
    RowSpan,
    StepRule,
    given_starts,
    in_their_span,
    psgm,
    random_starts,
    spectral_starts,
)
from perpend.solvers.loop import Callback

Auto: TypeAlias = Literal["auto"]


class Descent(NamedTuple):
    """How to descend, and from where; the parameters of `DPCP` by their names."""

    n_starts: int | Auto
    init: str | Array
    rule: StepRule
    max_iter: int
    tol: float


def search(
    rows: RowSource,
    descent: Descent,
    *,
    codimension: int | Auto,
    finish: bool,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Found:
    """Find the subspace of the inliers among `rows`; without `finish` the descents alone decide.

    Where the answer is not sure, whitened rows are asked as well, unless the subspace stands out in
    the rows' second moments: whitening would hide it. Who tells the codimension gets what would be
    found without that, where it has as many normals and is surer.
    """
    may_look_again = finish and isinstance(descent.init, str)

    def found_at(codimension: int | Auto) -> Found:
        def among(rows: RowSource) -> Found:
            return _search(rows, descent, codimension, finish=finish, rng=rng, callback=callback)

        found = among(rows)
        done = codimension != "auto" or found.sure or found.stands_out
        return found if done or not may_look_again else by_whitening(rows, found, among)

    told = found_at(codimension)
    if codimension == "auto" or told.sure or not may_look_again:
        return told
    untold = found_at("auto")
    as_many = untold.answer.normals.shape == told.answer.normals.shape
    surer = untold.answer.codimension.confidence > told.answer.codimension.confidence
    return untold if as_many and surer else told


def _search(
    rows: RowSource,
    descent: Descent,
    codimension: int | Auto,
    *,
    finish: bool,
    rng: np.random.Generator,
    callback: Callback | None,
) -> Found:
    given, (rows, span) = rows, in_their_span(rows)
    tol = max(descent.tol, 8 * rows.precision)

    @cache  # the first to ask for the judge pays for a scan
    def judge() -> Judge:
        return Judge(rows, span, distinct_shares(given, rng), finish, callback)

    inside = None if codimension == "auto" else n_inside(span, codimension)
    watch = Watch(rows, span.rank, judge, inside)

    def descend(B: Array, before: Directions | None = None) -> Directions:
        def enough(now: Directions) -> bool:
            return watch(now if before is None else before.join(now))

        return psgm(
            rows,
            B,
            rule=descent.rule,
            max_iter=descent.max_iter,
            tol=tol,
            enough=enough if finish else None,
            known=watch.repeats if finish else None,
            callback=callback,
        )

    def weigh(directions: Directions) -> RankEvidence:
        if watch.answered and watch.evidence is not None:
            return watch.evidence
        return rank_of_directions(rows, directions, span.rank)

    automatic = (
        descent.n_starts == "auto" and isinstance(descent.init, str) and descent.init == "random"
    )
    low = low_dimensional(rows, span, judge, inside) if automatic and finish else None
    if low is not None:
        directions = landed(rows, span, low.fit.V, rng)
        evidence = rank_of_directions(rows, directions, span.rank)
    elif automatic:
        directions, evidence = grow_starts(
            lambda k, before: descend(random_starts(rng, span, k), before),
            weigh,
            sure=lambda: watch.answered,
            at_least=0 if inside is None else int(1.5 * inside) + 5,
            at_most=2 * span.rank + 16,
        )
    else:
        directions = descend(_starts(descent, span, rng))
        evidence = weigh(directions)

    first = watch.judgement if watch.answered else low
    answer = find_answer(judge(), evidence, codimension, first, watch.swept, final=low is not None)
    if finish:  # the descents only propose; the finish decides
        converged = answer.fit is None or answer.fit.converged
    else:
        converged = bool(np.all(directions.converged))
    n_distinct = judge().n_distinct
    directions = directions._replace(B=span.in_data(directions.B))
    return Found(answer, directions, span, n_distinct, converged, stands_out=low is not None)


def _starts(descent: Descent, span: RowSpan, rng: np.random.Generator) -> Array:
    if not isinstance(descent.init, str):
        return given_starts(descent.init, span)
    if descent.init == "spectral":
        return spectral_starts(span, span.rank if descent.n_starts == "auto" else descent.n_starts)
    assert descent.n_starts != "auto"
    return random_starts(rng, span, descent.n_starts)

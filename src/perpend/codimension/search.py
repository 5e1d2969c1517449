"""From rows to an answer: descents, watched on their way, and the rows' verdict."""

from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from perpend._typing import Array
from perpend.codimension.answer import Answer, find_answer, n_inside
from perpend.codimension.by_scales import by_scales, hides_a_layer
from perpend.codimension.certificate import distinct_rows
from perpend.codimension.decision import Judge
from perpend.codimension.directions import RankEvidence, rank_of_directions
from perpend.codimension.found import Found
from perpend.codimension.growth import grow_starts
from perpend.codimension.low_dimension import landed, low_dimensional
from perpend.codimension.watch import Watch
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

    Where the answer is not sure, or something thinner is inside, the scales at which rows
    concentrate decide. Who tells the codimension gets what would be found without that, where it
    has as many normals and is surer.
    """
    may_look_again = finish and isinstance(descent.init, str)

    def found_at(codimension: int | Auto) -> Found:
        def among(rows: RowSource) -> Found:
            return _search(rows, descent, codimension, finish=finish, rng=rng, callback=callback)

        found = among(rows)
        done = codimension != "auto" or (found.sure and not hides_a_layer(found))
        return found if done or not may_look_again else by_scales(rows, found, rng, callback)

    told = found_at(codimension)
    if codimension == "auto" or told.sure or not may_look_again:
        return told
    untold = found_at("auto")
    as_many = untold.answer.normals.shape == told.answer.normals.shape
    surer = untold.answer.codimension.confidence > told.answer.codimension.confidence
    return untold if as_many and surer else told


def search_low_dimension(
    rows: RowSource,
    *,
    codimension: int | Auto,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Found | None:
    """Find a subspace that stands out in the rows' second moments, and look for nothing else."""
    found = _stands_out(_Ground(rows, rng, callback), codimension)
    return None if found is None or found.answer.fit is None else found


class _Ground:
    """The rows in their span, and a judge for those who ask: the first of them pays for a scan."""

    def __init__(
        self,
        rows: RowSource,
        rng: np.random.Generator,
        callback: Callback | None,
        *,
        finish: bool = True,
    ) -> None:
        self._given, self._finish, self._callback = rows, finish, callback
        self.rng = rng
        self.rows, self.span = in_their_span(rows)

    @cached_property
    def judge(self) -> Judge:
        distinct = distinct_rows(self._given, self.rng)
        return Judge(self.rows, self.span, distinct, self._finish, self._callback)

    def found(
        self, answer: Answer, directions: Directions, *, converged: bool, stands_out: bool = False
    ) -> Found:
        """Put together what was found; directions are those of the rows in their span."""
        directions = directions._replace(B=self.span.in_data(directions.B))
        n_distinct = self.judge.n_distinct
        return Found(answer, directions, self.span, n_distinct, converged, stands_out=stands_out)


def _stands_out(ground: _Ground, codimension: int | Auto) -> Found | None:
    """Return the answer without any descent, where there is one."""
    rows, span = ground.rows, ground.span
    low = low_dimensional(rows, span, lambda: ground.judge, _told_inside(span, codimension))
    if low is None:
        return None
    directions = landed(rows, span, low.fit.V, ground.rng)
    evidence = rank_of_directions(rows, directions, span.rank)
    answer = find_answer(ground.judge, evidence, codimension, low, final=True)
    return ground.found(answer, directions, converged=_at_rest(answer), stands_out=True)


def _told_inside(span: RowSpan, codimension: int | Auto) -> int | None:
    return None if codimension == "auto" else n_inside(span, codimension)


def _at_rest(answer: Answer) -> bool:
    return answer.fit is None or answer.fit.converged


def _search(
    rows: RowSource,
    descent: Descent,
    codimension: int | Auto,
    *,
    finish: bool,
    rng: np.random.Generator,
    callback: Callback | None,
) -> Found:
    ground = _Ground(rows, rng, callback, finish=finish)
    automatic = (
        descent.n_starts == "auto" and isinstance(descent.init, str) and descent.init == "random"
    )
    found = _stands_out(ground, codimension) if automatic and finish else None
    if found is not None:
        return found

    rows, span = ground.rows, ground.span
    tol = max(descent.tol, 8 * rows.precision)
    inside = _told_inside(span, codimension)
    watch = Watch(rows, span.rank, lambda: ground.judge, inside)

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

    if automatic:
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

    first = watch.judgement if watch.answered else None
    answer = find_answer(ground.judge, evidence, codimension, first, watch.swept)
    # The descents only propose; the finish decides, where there is one.
    converged = _at_rest(answer) if finish else bool(np.all(directions.converged))
    return ground.found(answer, directions, converged=converged)


def _starts(descent: Descent, span: RowSpan, rng: np.random.Generator) -> Array:
    if not isinstance(descent.init, str):
        return given_starts(descent.init, span)
    if descent.init == "spectral":
        return spectral_starts(span, span.rank if descent.n_starts == "auto" else descent.n_starts)
    assert descent.n_starts != "auto"
    return random_starts(rng, span, descent.n_starts)

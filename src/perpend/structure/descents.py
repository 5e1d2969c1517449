"""Proposals by the paper's descents, watched on their way: when the profile is clear, they may end.

The codimension shows in the directions long before they have converged, and a finish from there
is as good as one from their end. So whenever the directions show a clear rank on their way, the
rows are evaluated. Once the rows are sure of a subspace, the descents go on only until they agree.

Two kinds of evidence say what the rank is. The singular values of the directions fall at the
codimension, but how deeply depends on noise, on convergence and on how diverse the starts were. The
objective of the j-th left singular vector u_j rises there: a normal meets outliers only, a
direction inside the subspace meets the inliers too. A gap counts for as much as the objective rises
across it.
"""

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from perpend._typing import Array
from perpend.geometry import average_height
from perpend.kernels import l1_objective
from perpend.rows import RowSource, RowSpan
from perpend.solvers import (
    Directions,
    Fit,
    StepRule,
    given_starts,
    psgm,
    random_starts,
    spectral_starts,
)
from perpend.structure import constants as k
from perpend.structure import effort
from perpend.structure.checks import Doubt, no_accident
from perpend.structure.ground import Ground
from perpend.structure.profile import clearness

Auto: TypeAlias = Literal["auto"]

N_STARTS_FIRST = 16
CLEAR_GAP = 2.0  # in the directions' singular values; with less, weighing them is not worth a scan
SETTLED = 32  # evaluations from which on "no gap anywhere" may mean "as many normals as starts"
STEADY = 3  # evaluations in a row with the same rank: worth a finish, though it is not clear
NEARLY_THERE = 0.3  # sine to normals that the rows are sure of; to one in space, 1 of 20 by chance
BACK_OFF = 2  # times as many evaluations as at the last finish before the next one
N_LANDED = 16  # starts that are shown where nobody descends


# -- the rank of the directions --------------------------------------------------------------------


class RankEvidence(NamedTuple):
    """What the directions say about their rank."""

    value: int  # numerical rank of the directions
    saturated: bool  # every singular vector is a normal: the codimension may be larger
    basis: Array  # (D, m) left singular vectors of the directions
    singular_values: Array  # (m,)
    heights: Array  # (m,) mean of |x.u| for each singular vector
    gap: float  # ratio of the singular values across the rank
    rise: float  # rise of the objective across the rank: 1 = from normals to random directions
    score: float  # log10(gap) * rise


def rank_of_directions(rows: RowSource, directions: Directions, rank: int) -> RankEvidence:
    """Weigh singular values and objectives; `rank` is the dimension of the rows' span."""
    U, s, _ = np.linalg.svd(directions.B, full_matrices=False)
    m = min(len(s), rank)
    U, s = U[:, :m], s[:m]
    heights = rows.scan(l1_objective, U).total / rows.total_weight
    # A random direction has mean height c_R ||x||; a solved one has the height of the solutions.
    high = average_height(rank) * float(np.mean(rows.norms))
    low = float(np.median(directions.objective)) / rows.total_weight
    floor = max(directions.resolution, len(U) * np.finfo(rows.dtype).eps)
    seen = score_ranks(
        s[None], heights[None], np.array([low]), high, floor=np.array([floor]), rank=rank
    )
    value, saturated, gap, rise, score = (values[0].item() for values in seen)
    return RankEvidence(value, saturated, U, s, heights, gap, rise, score)


class Ranks(NamedTuple):
    """What the directions of many problems say about their rank, (p,) each."""

    value: Array
    saturated: Array
    gap: Array
    rise: Array
    score: Array


def score_ranks(
    s: Array, heights: Array, low: Array, high: float, *, floor: Array, rank: int
) -> Ranks:
    """Weigh singular values s (p, m) and the heights (p, m) of their vectors.

    `low` (p,) is the height of the solutions and `high` that of a random direction. Singular values
    below `floor` (p,), relative to the largest, mean nothing.
    """
    m = s.shape[1]
    # 0: a normal, 1: no better than a random direction
    above = (high > low)[:, None]
    span = np.where(above, high - low[:, None], 1.0)
    level = np.where(above, (heights - low[:, None]) / span, 1.0)
    t = np.maximum(s / s[:, :1], floor[:, None])
    none = np.zeros((len(s), 1))  # beyond the last one
    gaps = np.concatenate([t[:, :-1] / t[:, 1:], none + 1], axis=1)
    rises = np.concatenate([np.clip(np.diff(level, axis=1), 0.0, 1.0), none], axis=1)
    saturated = (level[:, -1] < 0.5) & (m < rank)
    scores = np.log10(gaps) * rises
    best = np.where(saturated, m - 1, np.argmax(scores, axis=1))
    at = np.arange(len(s)), best
    return Ranks(best + 1, saturated, gaps[at], rises[at], scores[at])


def enough_starts(n_starts: int, evidence: RankEvidence) -> bool:
    """Say whether the starts clearly outnumber the normals.

    k random starts, projected onto a complement of dimension c, have singular values between about
    sqrt(k) - sqrt(c) and sqrt(k) + sqrt(c): with k = 1.5 c the smallest is a tenth of the largest.
    """
    return not evidence.saturated and n_starts >= 1.5 * evidence.value + 5


def grow_starts(
    solve: Callable[[int, Directions | None], Directions],
    weigh: Callable[[Directions], RankEvidence],
    *,
    sure: Callable[[], bool] = lambda: False,
    at_least: int,
    at_most: int,
) -> tuple[Directions, RankEvidence]:
    """Double the number of starts, keeping those already solved, until there are enough.

    Parameters
    ----------
    solve : function of a number of new starts and of those solved before
    weigh : function that weighs the evidence of all directions so far
    sure : function that says whether the estimate is clear already
    at_least : the number of starts to begin with, if it is larger than usual
    at_most : the number of starts at which growing ends in any case
    """
    directions = solve(max(N_STARTS_FIRST, at_least), None)
    evidence = weigh(directions)
    while not (
        sure() or directions.B.shape[1] >= at_most or enough_starts(directions.B.shape[1], evidence)
    ):
        directions = directions.join(solve(directions.B.shape[1], directions))
        evidence = weigh(directions)
    return directions, evidence


# -- descending ------------------------------------------------------------------------------------


class Descent(NamedTuple):
    """How to descend, and from where; the parameters of `DPCP` by their names."""

    n_starts: int | Auto
    init: str | Array
    rule: StepRule
    max_iter: int
    tol: float

    @property
    def automatic(self) -> bool:
        """Whether both the number of the starts and where they begin are left to us."""
        random = isinstance(self.init, str) and self.init == "random"
        return self.n_starts == "auto" and random


class Descents:
    """The descents of one search; `fixed` is the number of normals inside the span, if it is."""

    def __init__(self, ground: Ground, descent: Descent, fixed: int | None = None) -> None:
        self.ground, self.descent, self.fixed = ground, descent, fixed
        self.directions: Directions | None = None
        self.evidence: RankEvidence | None = None
        self._sure: Fit | None = None  # of which the rows are sure, whoever agrees
        self._next_finish = 0  # evaluations
        self._lead_there = False  # whether most starts end among the normals of that
        self._ranks: list[int] = []  # of the directions, one after the other

    def proposals(self) -> Iterator[int]:
        """Descend, and show the profile what comes of it: many starts that agree, or one.

        Where the outliers follow no law, or members are of several kinds, other starts are worth
        it, however many of these agree.
        """
        evidence = self.descend(watched=True)
        if self.agree:
            yield 2 if self.ground.profile.fits[-1].lawful else 1
            return
        number = min(evidence.value, self.ground.span.rank - 1)
        number = number if self.fixed is None else self.fixed
        if self._sure is None and 0 < number < self.ground.span.rank:
            self._finish(evidence.basis[:, :number])
        yield 1

    def descend(self, *, watched: bool) -> RankEvidence:
        """Descend from all starts, and say what the rank of the directions is."""
        rows, span, rng = self.ground.rows, self.ground.span, self.ground.rng
        descent, tol = self.descent, max(self.descent.tol, 8 * rows.precision)

        def down(B: Array, before: Directions | None = None) -> Directions:
            def enough(now: Directions) -> bool:
                return self._enough(now if before is None else before.join(now))

            return psgm(
                rows,
                B,
                rule=descent.rule,
                max_iter=descent.max_iter,
                tol=tol,
                enough=enough if watched else None,
                callback=self.ground.callback,
            )

        def weigh(directions: Directions) -> RankEvidence:
            if not self.agree or self.evidence is None:
                self.evidence = rank_of_directions(rows, directions, span.rank)
            return self.evidence

        if descent.automatic:
            self.directions, evidence = grow_starts(
                lambda n, before: down(random_starts(rng, span, n), before),
                weigh,
                sure=lambda: self.agree,
                at_least=0 if self.fixed is None else int(1.5 * self.fixed) + 5,
                at_most=2 * span.rank + 16,
            )
        else:
            self.directions = down(_starts(descent, span, rng))
            evidence = weigh(self.directions)
        return evidence

    @property
    def agree(self) -> bool:
        """Whether the rows are sure of a subspace, and the descents lead to all its normals."""
        if self._sure is None or self.evidence is None:
            return False
        return self.evidence.value == self._sure.V.shape[1] or self._lead_there

    def _enough(self, directions: Directions) -> bool:
        """Say whether the descents may end here."""
        directions = self._without_stragglers(directions)
        n, rank = directions.n_evaluations, self.ground.span.rank
        if n < SETTLED and not _has_gap(directions.B):
            return False
        self.evidence = rank_of_directions(self.ground.rows, directions, rank)
        self._ranks.append(self.evidence.value)
        if n >= (effort.TAKE_OVER if rank <= effort.WIDE else 2 * effort.TAKE_OVER):
            return True  # paths decide
        if self._sure is None and self._worth_a_finish(self.evidence, n):
            number = self.evidence.value if self.fixed is None else self.fixed
            self._finish(self.evidence.basis[:, :number])
            self._next_finish = BACK_OFF * n
        self._lead_there = self._sure is not None and lead_to(self._sure.V, directions.B)
        return self.agree

    def _worth_a_finish(self, evidence: RankEvidence, n_evaluations: int) -> bool:
        if n_evaluations < self._next_finish:
            return False
        number = evidence.value if self.fixed is None else self.fixed
        if not 0 < number < self.ground.span.rank or number > len(evidence.singular_values):
            return False
        if evidence.saturated:
            return n_evaluations >= SETTLED
        steady = len(self._ranks) >= STEADY and len(set(self._ranks[-STEADY:])) == 1
        return steady or evidence.score >= k.CLEAR_SCORE

    def _finish(self, V: Array) -> None:
        """Ask the rows about normals V (D', c) of descents on their way."""
        ground = self.ground
        if self.fixed is not None:
            fit = ground.add(ground.fitted(V))
            chosen = ground.profile.at(self.fixed)
        else:
            fit, best = ground.propose(V)
            if best is None or best.c != fit.V.shape[1]:
                return
            chosen = best
        clear = clearness(chosen, ground.profile.plateaus()) >= 1
        parameters = chosen.c * int(ground.profile.cloud.free[chosen.c - 1])
        if clear and fit.converged and no_accident(chosen.T, parameters) >= k.SURE:
            self._sure = fit

    def _without_stragglers(self, directions: Directions) -> Directions:
        """Leave out starts that are still on their way, far behind most of the others.

        They are nearer to a random direction than to where the others are, by their objective. A
        start that has converged there is at something else, and stays.
        """
        rows = self.ground.rows
        low = float(np.median(directions.objective))
        high = average_height(self.ground.span.rank) * float(np.mean(rows.norms))
        high *= rows.total_weight
        behind = directions.objective > (low + high) / 2
        return directions.some(directions.converged | ~behind) if low < high else directions


def lead_to(V: Array, B: Array) -> bool:
    """Say whether most directions B (D, k) are nearly among the normals V (D, c), all together.

    Along each of the normals they reach farther than they are off. Where normals are most of all
    directions, many are near them by chance, and this is what tells.
    """
    along = V.T @ B
    off = B - V @ along
    there = np.linalg.norm(off, axis=0) <= NEARLY_THERE
    if np.count_nonzero(there) <= len(there) / 2:
        return False
    reach = np.linalg.svd(along[:, there], compute_uv=False)
    return bool(reach[-1] > np.linalg.norm(off[:, there], 2))


def _has_gap(B: Array) -> bool:
    """Singular values cost no scan; without a gap in them there is nothing to be weighed."""
    s = np.linalg.svd(B, compute_uv=False)
    tiny = s[0] * np.finfo(float).eps
    return bool(np.any(s[:-1] >= CLEAR_GAP * np.maximum(s[1:], tiny)))


def _starts(descent: Descent, span: RowSpan, rng: np.random.Generator) -> Array:
    if not isinstance(descent.init, str):
        return given_starts(descent.init, span)
    if descent.init == "spectral":
        return spectral_starts(span, span.rank if descent.n_starts == "auto" else descent.n_starts)
    assert descent.n_starts != "auto"
    return random_starts(rng, span, descent.n_starts)


def landed(rows: RowSource, span: RowSpan, V: Array, rng: np.random.Generator) -> Directions:
    """Return where descents from random starts end, in the limit: at the nearest normals.

    These are the starts' projections onto the normals V (D, c).
    """
    B = V @ (V.T @ random_starts(rng, span, N_LANDED))
    B /= np.linalg.norm(B, axis=0)
    return Directions(
        B=B,
        objective=rows.scan(l1_objective, B).total,
        n_iter=np.zeros(N_LANDED, dtype=np.int64),
        converged=np.ones(N_LANDED, dtype=bool),
        resolution=0.0,
        n_evaluations=1,
    )


def disagreement(value: int, evidence: RankEvidence, *, seen: bool = True) -> Doubt | None:
    """Say how the descents' rank differs from the codimension, or how unclear it is, if at all.

    As many normals as starts may be too few, unless the codimension is `seen` in the inliers, which
    do not care how many starts there were.
    """
    rank, what = evidence.value, "descents"
    if evidence.saturated:
        if value > rank or seen:
            return None
        sentence = f"the codimension equals the number of starts ({rank}) and may be larger"
        return Doubt(what, sentence, "raise n_starts")
    if rank != value:
        sentence = f"the descents suggest codimension {rank}, the inliers {value}"
        return Doubt(what, sentence, "more starts or more rows would help")
    if evidence.score < k.CLEAR_SCORE:
        sentence = (
            f"the descents show no clear rank: their singular values fall by {evidence.gap:.3g} "
            f"there, and the objective rises by {evidence.rise:.0%}"
        )
        return Doubt(what, sentence, "more rows would help")
    return None

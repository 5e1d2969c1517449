"""Candidates from the paper's descents, which end early once the profile is clear.

The codimension shows in the directions long before they have converged, and a finish from there
is as good as one from their end. So whenever the directions show a clear rank on their way, the
rows are evaluated. Once the rows are sure of a subspace, the descents go on only until they agree.

Two kinds of evidence say what the rank is. The singular values of the directions fall at the
codimension, but how deeply depends on noise, on convergence and on how diverse the starts were. The
objective of the j-th left singular vector u_j rises there: a normal meets outliers only, a
direction inside the subspace meets the inliers too. A gap counts for as much as the objective rises
across it.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from perpend._typing import Array, Auto
from perpend.geometry import average_height
from perpend.kernels import l1_objective
from perpend.rows import RowSource, RowSpan
from perpend.solvers import Directions, Fit, StepRule, given_starts, psgm, random_starts
from perpend.structure import constants as k
from perpend.structure import effort
from perpend.structure.checks import Doubt, Verdict, no_accident
from perpend.structure.ground import Ground
from perpend.structure.profile import clearness
from perpend.structure.settle import Candidate

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

    value: int  # numerical rank of the directions; below that of the rows, unless this is 1
    saturated: bool  # every singular vector is a normal: the codimension may be larger
    basis: Array  # (D, m) left singular vectors of the directions
    heights: Array  # (m,) mean of |x.u| for each singular vector
    gap: float  # ratio of the singular values across the rank
    rise: float  # rise of the objective across the rank: 1 = from normals to random directions
    score: float  # log10(gap) * rise

    def beside(self, verdict: Verdict, n_outside: int) -> Verdict:
        """Return a verdict with these numbers beside its own; so many normals need no descent."""
        numbers = {
            "directions_rank": self.value + n_outside,
            "directions_gap": self.gap,
            "directions_saturated": self.saturated,
            "objective_rise": self.rise,
            "objective_per_direction": self.heights,
        }
        return verdict._replace(evidence={**numbers, **verdict.evidence})

    def doubts(self, n_outside: int, *, seen: bool) -> list[Doubt]:
        """Say how unclear the descents' rank is, where it is taken for the codimension.

        As many normals as starts may be too few, unless the codimension is `seen` in the inliers,
        which do not care how many starts there were.
        """
        if self.saturated and seen:
            return []
        if self.saturated:
            more = f" plus {n_outside} normals to every row" if n_outside else ""
            sentence = (
                f"the codimension equals the number of starts ({self.value}){more} and may be "
                "larger"
            )
            remedy = "raise n_starts"
        elif self.score < k.CLEAR_SCORE:
            sentence = (
                f"the descents show no clear rank: their singular values fall by {self.gap:.3g} "
                f"there, and the objective rises by {self.rise:.0%}"
            )
            remedy = "more rows would help"
        else:
            return []
        return [Doubt("descents", sentence, remedy)]


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
    return RankEvidence(value, saturated, U, heights, gap, rise, score)


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


def enough_starts(n_normals: int) -> float:
    """Return how many starts clearly outnumber the normals.

    k random starts, projected onto a complement of dimension c, have singular values between about
    sqrt(k) - sqrt(c) and sqrt(k) + sqrt(c): with k = 1.5 c the smallest is a tenth of the largest.
    """
    return 1.5 * n_normals + 5


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
        return self.n_starts == "auto" and isinstance(self.init, str) and self.init == "random"


class Descents:
    """The descents of one search."""

    def __init__(self, ground: Ground, descent: Descent) -> None:
        self.ground, self.descent, self.fixed = ground, descent, ground.fixed
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
        rank, evidence = self.ground.span.rank, self.descend(watched=True)
        if self.agree:
            yield 2 if self.ground.profile.fits[-1].lawful else 1
            return
        number = evidence.value if self.fixed is None else self.fixed
        if self._sure is None and 0 < number < rank:
            self._finish(evidence.basis[:, :number])
        yield 1

    def descend(self, *, watched: bool) -> RankEvidence:
        """Descend from all starts, and say what the rank of the directions is.

        Where the number of starts is free, it doubles until there are enough.
        """
        ground, descent = self.ground, self.descent
        rows, span, rng = ground.rows, ground.span, ground.rng
        before: Directions | None = None

        def enough(now: Directions) -> bool:
            return self._enough(now if before is None else before.join(now))

        B, most = _starts(descent, span, rng, self.fixed), 2 * span.rank + 16
        while True:
            now = psgm(
                rows,
                B,
                rule=descent.rule,
                max_iter=descent.max_iter,
                tol=max(descent.tol, 8 * rows.precision),
                enough=enough if watched else None,
                callback=ground.callback,
            )
            self.directions = before = now if before is None else before.join(now)
            if not self.agree or self.evidence is None:
                self.evidence = rank_of_directions(rows, before, span.rank)
            evidence, n = self.evidence, before.B.shape[1]
            clear = not evidence.saturated and n >= enough_starts(evidence.value)
            if not descent.automatic or self.agree or n >= most or clear:
                return evidence
            B = random_starts(rng, span, n)

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
        s = np.linalg.svd(directions.B, compute_uv=False)  # which costs no scan
        gaps = s[:-1] >= CLEAR_GAP * np.maximum(s[1:], s[0] * np.finfo(float).eps)
        if n < SETTLED and not np.any(gaps):
            return False
        self.evidence = rank_of_directions(self.ground.rows, directions, rank)
        self._ranks.append(self.evidence.value)
        if n >= (effort.TAKE_OVER if rank <= effort.WIDE else 2 * effort.TAKE_OVER):
            return True  # paths decide
        number = self.evidence.value if self.fixed is None else self.fixed
        possible = 0 < number < rank and number <= self.evidence.basis.shape[1]
        if self._sure is None and n >= self._next_finish and possible and self._shows_a_rank(n):
            self._finish(self.evidence.basis[:, :number])
            self._next_finish = BACK_OFF * n
        self._lead_there = self._sure is not None and lead_to(self._sure.V, directions.B)
        return self.agree

    def _shows_a_rank(self, n_evaluations: int) -> bool:
        assert self.evidence is not None
        if self.evidence.saturated:
            return n_evaluations >= SETTLED
        steady = len(self._ranks) >= STEADY and len(set(self._ranks[-STEADY:])) == 1
        return steady or self.evidence.score >= k.CLEAR_SCORE

    def _finish(self, V: Array) -> None:
        """Evaluate normals V (D', c) of descents on their way."""
        ground = self.ground
        if self.fixed is None:
            fit, chosen = ground.propose(V)
        else:
            fit, chosen = ground.add(ground.fitted(V)), ground.profile.at(self.fixed)
        if chosen is None or (self.fixed is None and chosen.c != fit.V.shape[1]):
            return
        clear = clearness(chosen, ground.profile.plateaus()) >= 1
        parameters = chosen.c * int(ground.profile.cloud.free[chosen.c - 1])
        if clear and fit.converged and no_accident(chosen.T, parameters) >= k.SURE:
            self._sure = fit

    def _without_stragglers(self, directions: Directions) -> Directions:
        """Leave out starts that are still on their way, far behind most of the others.

        They are nearer to a random direction than to where the others are, by their objective. A
        start that has converged there is at something else, and stays.
        """
        rows, low = self.ground.rows, float(np.median(directions.objective))
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


def _starts(descent: Descent, span: RowSpan, rng: np.random.Generator, fixed: int | None) -> Array:
    """Return where to begin: with `fixed` normals, at enough starts for these at once."""
    if not isinstance(descent.init, str):
        return given_starts(descent.init, span)
    n = None if descent.n_starts == "auto" else descent.n_starts
    if descent.init == "spectral":
        return span.axes[:, : n or span.rank]
    return random_starts(rng, span, n or max(N_STARTS_FIRST, int(enough_starts(fixed or 0))))


def landed(ground: Ground, candidate: Candidate) -> Directions:
    """Return where descents from random starts end: in the limit, at the nearest normals."""
    V = ground.normals(candidate.axes, candidate.c)
    B = V @ (V.T @ random_starts(ground.rng, ground.span, N_LANDED))
    B /= np.linalg.norm(B, axis=0)
    never, always = np.zeros(N_LANDED, dtype=np.int64), np.ones(N_LANDED, dtype=bool)
    return Directions(B, ground.rows.scan(l1_objective, B).total, never, always, 0.0, 1)

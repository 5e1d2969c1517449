"""Watching the descents on their way: as soon as the answer is sure, nobody need descend further.

The codimension shows in the directions long before they have come to rest, and a finish from there
is as good as one from their end. So whenever the directions show a clear rank on their way, the
rows are asked. Once the rows are sure of a subspace, the descents go on only until they agree.

Where that takes long, joint reweighting is asked as well, which needs no descent at all.
"""

from collections.abc import Callable

import numpy as np

from perpend._typing import Array
from perpend.codimension.choice import is_sure, stands
from perpend.codimension.confidence import CLEAR_SCORE
from perpend.codimension.decision import FEW_STEPS, Judge, Judgement, support
from perpend.codimension.directions import RankEvidence, rank_of_directions
from perpend.codimension.result import SURE
from perpend.rows import RowSource
from perpend.solvers import Directions
from perpend.theory import average_height

CLEAR_GAP = 2.0  # in the directions' singular values; with less, weighing them is not worth a scan
SETTLED = 32  # evaluations from which on "no gap anywhere" may mean "as many normals as starts"
REPEATS = 0.1  # sine to normals of which the rows are sure; below it a start only repeats them
TAKE_OVER = 64  # evaluations without an answer after which scales decide,
TAKE_OVER_WIDE = 128  # or so many with more than WIDE features, where paths take longer
WIDE = 64
BACK_OFF = 2  # times as many evaluations as at the last finish before the next one


class Watch:
    """Looks at descents on their way and remembers what the rows said.

    `rank` is the dimension of the rows' span, `judge` gives the judge when it is needed, and
    `codimension` is the number of normals inside the span, where it was told.
    """

    def __init__(
        self,
        rows: RowSource,
        rank: int,
        judge: Callable[[], Judge],
        codimension: int | None = None,
    ) -> None:
        self.rows, self.rank, self.judge, self.codimension = rows, rank, judge, codimension
        self.judgement: Judgement | None = None
        self.evidence: RankEvidence | None = None
        self.swept: Judgement | None = None  # what the second engine said, once it was asked
        self._normals: Array | None = None  # (D, c) of which the rows are sure, whoever agrees
        self._next_finish = 0  # evaluations

    @property
    def answered(self) -> bool:
        """Whether there is a sure answer that stands, however the descents would go on."""
        return self.judgement is not None and stands(self.judgement)

    def __call__(self, directions: Directions) -> bool:
        """Say whether the descents may end here."""
        directions = self._without_stragglers(directions)
        if not self._worth_a_scan(directions):
            return False
        evidence = rank_of_directions(self.rows, directions, self.rank)
        self.evidence = evidence
        if self.codimension is None and self._late(directions):
            return True  # it is for the scales to decide
        if self.swept is None and self._late(directions):
            self.swept = self._sweep(evidence, self.codimension or 0)
            if stands(self.swept):
                self.judgement = self.swept
                return True
        if self.judgement is not None and self._normals is not None:
            self.judgement = self.judge().weigh_again(self.judgement, evidence)
            return self.answered
        if not self._worth_a_finish(evidence, directions.n_evaluations):
            return False
        self.judgement = self._finish(evidence)
        self._next_finish = BACK_OFF * directions.n_evaluations
        if is_sure(self.judge().weigh_again(self.judgement, None)):
            self._normals = self.judgement.fit.V
        return self.answered

    def repeats(self, B: Array) -> Array:
        """Say which directions (D, k) lie among normals of which the rows are sure already."""
        V = self._normals
        if V is None:
            return np.zeros(B.shape[1], dtype=bool)
        return np.linalg.norm(B - V @ (V.T @ B), axis=0) <= REPEATS

    def _without_stragglers(self, directions: Directions) -> Directions:
        """Leave out starts that are still on their way, far behind most of the others.

        They are nearer to a random direction than to where the others are, by their objective. A
        start that rests there has found something else, and stays.
        """
        low = float(np.median(directions.objective))
        high = average_height(self.rank) * float(np.mean(self.rows.norms)) * self.rows.total_weight
        behind = directions.objective > (low + high) / 2
        return directions.some(directions.converged | ~behind) if low < high else directions

    def _worth_a_scan(self, directions: Directions) -> bool:
        """Singular values cost no scan; without a gap in them there is nothing to be weighed."""
        if directions.n_evaluations >= SETTLED:
            return True
        s = np.linalg.svd(directions.B, compute_uv=False)
        tiny = s[0] * np.finfo(float).eps
        return bool(np.any(s[:-1] >= CLEAR_GAP * np.maximum(s[1:], tiny)))

    def _worth_a_finish(self, evidence: RankEvidence, n_evaluations: int) -> bool:
        if n_evaluations < self._next_finish:
            return False
        asked = evidence.value if self.codimension is None else self.codimension
        if not 0 < asked < self.rank or asked > len(evidence.singular_values):
            return False
        if evidence.saturated:
            return n_evaluations >= SETTLED
        return evidence.score >= CLEAR_SCORE

    def _finish(self, evidence: RankEvidence) -> Judgement:
        judge = self.judge()
        if self.codimension is None:
            found = judge.propose(evidence.basis[:, : evidence.value], evidence)
        else:
            found = judge.consider(evidence.basis[:, : self.codimension], evidence, FEW_STEPS)
        likely = found.codimension.confidence >= SURE
        return judge.complete(found, evidence) if likely else found

    def _late(self, directions: Directions) -> bool:
        possible = self.codimension is None or 0 < self.codimension < self.rank
        limit = TAKE_OVER if self.rank <= WIDE else TAKE_OVER_WIDE
        return possible and directions.n_evaluations >= limit

    def _sweep(self, evidence: RankEvidence, codimension: int) -> Judgement:
        found = self.judge().from_spectrum(codimension, evidence, follow=False)
        return found if self.judgement is None else max(found, self.judgement, key=support)

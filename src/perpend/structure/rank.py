"""The rank of the solutions, from the directions alone.

Two kinds of evidence are combined. The singular values of the directions fall at the codimension,
but how deeply depends on noise, on convergence and on how diverse the starts were. The objective of
the j-th left singular vector u_j rises there: a normal meets outliers only, a direction inside the
subspace meets the inliers too. A gap counts for as much as the objective rises across it.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.geometry import average_height
from perpend.kernels import l1_objective
from perpend.rows import RowSource
from perpend.solvers import Directions

N_STARTS_FIRST = 16
CLEAR_SCORE = 0.2  # of the directions' rank: a gap of 1.6 with the full rise of the objective


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
    sure : function that says whether the answer is clear already
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

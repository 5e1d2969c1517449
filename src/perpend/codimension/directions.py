"""The rank of the solutions, from the directions alone.

Two kinds of evidence are combined. The singular values of the directions fall at the codimension,
but how deeply depends on noise, on convergence and on how diverse the starts were. The objective of
the j-th left singular vector u_j rises there: a normal meets outliers only, a direction inside the
subspace meets the inliers too. A gap counts for as much as the objective rises across it.
"""

from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.kernels import l1_objective
from perpend.rows import RowSource
from perpend.solvers import Directions
from perpend.theory import average_height


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
    # 0: a normal, 1: no better than a random direction
    level = (heights - low) / (high - low) if high > low else np.ones(m)

    floor = max(directions.resolution, len(U) * np.finfo(rows.dtype).eps)
    t = np.maximum(s / s[0], floor)
    gaps = t[:-1] / t[1:]
    rises = np.clip(np.diff(level), 0.0, 1.0)
    scores = np.log10(gaps) * rises
    saturated = bool(m < rank and level[-1] < 0.5)
    if saturated or m == 1:
        return RankEvidence(m, saturated, U, s, heights, 1.0, 0.0, 0.0)
    j = int(np.argmax(scores))
    return RankEvidence(
        j + 1, False, U, s, heights, float(gaps[j]), float(rises[j]), float(scores[j])
    )

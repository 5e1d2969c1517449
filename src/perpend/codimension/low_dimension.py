r"""Low dimension among many features: joint reweighting from the largest axes, before any descent.

Where the dimension is small and the codimension large, descents are wasteful: a normal for each
of many directions. And where there are few rows they see nothing: of n linearly independent rows,
any n - 1 have a normal in common. But a subspace of low dimension stands out in second moments.
Those of n rows without preferred direction in R dimensions stay below

.. math:: \frac nR \Bigl(1 + \sqrt{R / n}\Bigr)^2

(Marchenko and Pastur). Where the largest one exceeds this, the finish begins at the complement of a
few of the largest axes, and the inliers' spectrum then shows their dimension. A subspace to which
two such starts lead, one of them from too many axes and one from fewer, has two witnesses.
"""

import math
from collections.abc import Callable

import numpy as np

from perpend._typing import Array
from perpend.codimension.certificate import ALL_ROWS
from perpend.codimension.choice import is_sure
from perpend.codimension.decision import FEW_STEPS, Judge, Judgement, same, support
from perpend.codimension.found import Found
from perpend.codimension.result import SURE
from perpend.kernels import l1_objective
from perpend.rows import RowSource
from perpend.solvers import Directions, RowSpan, random_starts

STANDS_OUT = 1.2  # times the largest second moment of rows without preferred direction
MANY_FEATURES = 64  # in the rows' span; with fewer, descents are cheap
FEW_ROWS = 2.0  # rows per dimension of the span; with fewer, descents are at a loss
N_LANDED = 16  # starts that are shown where nobody descends


def low_dimensional(
    rows: RowSource, span: RowSpan, ask: Callable[[], Judge], codimension: int | None
) -> Judgement | None:
    """Return a subspace of low dimension to which descents could add nothing, where there is one.

    The answer is sure, or the rows are too few for descents, or the normals too many; variances
    that decay, as in real data, then leave the dimension unsure. `ask` gives the judge where
    something stands out, and `codimension` is the number of normals inside the span, if it was
    told.
    """
    n_rows, R = rows.shape[0], span.rank
    few = n_rows < FEW_ROWS * R
    if not (few or R >= MANY_FEATURES) or not _stands_out(span, n_rows):
        return None
    if R < 2 or codimension in (0, R):
        return None
    judge = ask()
    best, witnessed = _from_largest_axes(judge)
    if codimension is not None and best.codimension.value != codimension:
        best, witnessed = judge.consider(best.fit.axes[:, :codimension], None), False
    elif not witnessed and codimension is None and (few or _is_low(best, R)):
        best = judge.complete(_best_supported(judge, best), None)
    if witnessed and best.fit.groups.share <= ALL_ROWS:
        return best
    if not few and not (codimension is None and _is_low(best, R)):
        return None
    return best if witnessed else _without_witness(best)


def _is_low(best: Judgement, rank: int) -> bool:
    """Whether it is no accident and has so many normals that descents would take long for them."""
    return best.certificate.confidence >= SURE and 2 * best.codimension.value >= rank


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


def _stands_out(span: RowSpan, n_rows: int) -> bool:
    """Say whether the largest second moment exceeds that of rows without preferred direction.

    Linearly independent rows have room in all features of the data, not only in their span.
    """
    largest = float(span.variances[-1] / np.sum(span.variances)) * n_rows
    return largest > STANDS_OUT * _largest_by_chance(n_rows, _room(span, n_rows))


def _room(span: RowSpan, n_rows: int) -> int:
    return span.rank if span.rank < n_rows else span.n_features


def _largest_by_chance(n_rows: float, room: int) -> float:
    """Return the largest second moment of unit rows without preferred direction."""
    return (1 + math.sqrt(n_rows / room)) ** 2


def others_stand_out(found: Found, rows: RowSource) -> bool:
    """Say whether a subspace may stand out of the rows that are not on the found one.

    `found` has the span of these rows. Beside the found dimensions, their second moments are those
    of the outliers and of the inliers' noise.
    """
    fit, span = found.answer.fit, found.span
    assert fit is not None
    n_rows, total = rows.shape[0], float(np.sum(span.variances))
    room, n_inliers = _room(span, n_rows), fit.groups.share * n_rows
    dimension = span.rank - fit.V.shape[1]
    largest = float(span.variances[-1 - dimension]) / total * n_rows
    noise = fit.groups.scale**2 * span.rank / (total / rows.total_weight)  # of the squared norm
    by_chance = _largest_by_chance(n_rows - n_inliers, room)
    return largest > STANDS_OUT * (by_chance + noise * _largest_by_chance(n_inliers, room))


def _from_largest_axes(judge: Judge) -> tuple[Judgement, bool]:
    """Follow a few starts; return the best supported answer, and whether two lead to it surely.

    One alone may run through a few outliers, and its spectrum is clear all the same.
    """
    R, found = judge.span.rank, []
    for d in dict.fromkeys((min(16, -(-R // 3)), min(32, R // 2), max(min(4, R // 6), 1))):
        one = judge.follow(judge.span.axes[:, : R - d], None, FEW_STEPS)
        if one.codimension.confidence >= SURE:
            one = judge.complete(one, None)
        found.append(one)
        best = max(found, key=support)
        agree = [same(best, other) for other in found if other is not best]
        if is_sure(best) and any(agree):
            return best, True
    return best, False


def _without_witness(judgement: Judgement) -> Judgement:
    """Say that only one start led here."""
    doubt = "other starts led to other subspaces (more rows would help)"
    return judgement._replace(codimension=judgement.codimension.doubted(doubt))


def _best_supported(judge: Judge, best: Judgement) -> Judgement:
    """Change the dimension as long as the support grows: variances that decay show no gap."""
    step = 4
    while step:
        for change in (step, -step):
            value = best.codimension.value + change
            if not 0 < value < judge.span.rank:
                continue
            other = judge.consider(best.fit.axes[:, :value], None, FEW_STEPS)
            if other.support > best.support:
                best = other
                break
        else:
            step //= 2
    return best

"""Is the found subspace the sum of two? Its rows are searched for a smaller one inside.

Inliers and a small group beside them, a tight cluster or a plane, lie on a common subspace, whose
rows are as near to it as the inliers are to theirs: a clear answer with a dimension too many. Only
rows of two kinds can make one: it holds nearly all rows, or the outliers that are left have
preferred directions. There the rows on it are stretched to equal variances, so that a smaller
subspace shows and not an uneven spread, and a few descents look for a normal. What they find must
be as thin as the subspace that was found, or it is only its shape.
"""

import numpy as np

from perpend._typing import Array
from perpend.codimension.certificate import ALL_ROWS, distinct_shares, row_distances
from perpend.codimension.choice import is_sure
from perpend.codimension.confidence import DOUBTFUL, MISFIT_LIMIT, n_outliers
from perpend.codimension.decision import FEW_STEPS, Judge, Judgement
from perpend.codimension.result import SURE
from perpend.geometry import orthonormal
from perpend.solvers import AutoStep, psgm, random_starts, row_span

N_STARTS = 16  # of the descents inside
N_LOOKS = 4  # of them, those that end lowest
MAX_ITER = 100
TOL = 1e-6
ENOUGH = 2000  # rows to see a smaller subspace by,
ENOUGH_PER_DIMENSION = 10  # or so many for each dimension
AS_THIN = 1.5  # times the noise around the found subspace: the most around a smaller one


def smaller_inside(judge: Judge, found: Judgement) -> Judgement:
    """Return a smaller subspace that is better supported, or a doubt where there is another one."""
    if not judge.refine or not is_sure(found) or not _may_be_a_sum(found):
        return found
    normals = _normals_inside(judge, found)
    if normals is None:
        return found
    smaller = judge.consider(np.hstack([found.fit.V, normals]), found.evidence)
    if smaller.certificate.confidence < SURE or not _is_as_thin(smaller, found):
        return found
    if smaller.support > found.support:
        return smaller
    return _may_be_two(found, smaller, judge.span.n_outside)


def _may_be_a_sum(found: Judgement) -> bool:
    if found.certificate.n_free < 2:  # nothing is smaller than a line
        return False
    fit = found.fit
    # No more outliers than dimensions have each a direction of its own.
    preferred = n_outliers(fit) > len(fit.spectrum) and found.certificate.misfit > MISFIT_LIMIT
    return preferred or fit.groups.share > ALL_ROWS


def _is_as_thin(smaller: Judgement, found: Judgement) -> bool:
    return smaller.fit.groups.scale <= AS_THIN * found.fit.groups.scale


def _normals_inside(judge: Judge, found: Judgement) -> Array | None:
    """Return normals (D, k) inside the subspace of a smaller one that many of its rows lie on."""
    fit, d = found.fit, found.certificate.n_free
    near = row_distances(judge.rows, fit.V) <= fit.groups.threshold
    members = np.flatnonzero(near & (judge.share > 0))
    enough = max(ENOUGH, ENOUGH_PER_DIMENSION * d)
    members = members[:: max(len(members) // enough, 1)]
    moments = np.maximum(fit.spectrum[-d:], np.finfo(float).tiny)
    stretch = fit.axes[:, -d:] / np.sqrt(moments)  # (D, d)
    rows = judge.rows.subset(members).mapped(stretch, rescale=True)
    if rows is None:  # for memory
        return None
    span, rng = row_span(rows), np.random.default_rng(0)
    starts = random_starts(rng, span, N_STARTS)
    directions = psgm(rows, starts, rule=AutoStep(), max_iter=MAX_ITER, tol=TOL)
    inner = Judge(rows, span, distinct_shares(rows, rng), refine=True)
    for j in np.argsort(directions.objective, kind="stable")[:N_LOOKS]:
        smaller = inner.follow(directions.B[:, [j]], None, FEW_STEPS)
        if smaller.certificate.confidence >= SURE:
            return orthonormal(stretch @ smaller.fit.V)
    return None


def _may_be_two(found: Judgement, smaller: Judgement, n_outside: int) -> Judgement:
    """Say that the subspace holds a smaller one; `n_outside` are orthogonal to every row."""
    known, value = found.codimension, smaller.codimension.value + n_outside
    evidence = {
        **known.evidence,
        "smaller_codimension": value,
        "rows_on_smaller": smaller.certificate.n_rows,
    }
    doubt = (
        f"{smaller.certificate.n_rows} of the {found.certificate.n_rows} rows on the subspace lie "
        f"on a smaller one, of codimension {value}: it may be the sum of two "
        "(perpend.peel would find both)"
    )
    return found._replace(
        codimension=known._replace(
            confidence=min(known.confidence, DOUBTFUL),
            evidence=evidence,
            doubts=(*known.doubts, doubt),
        )
    )

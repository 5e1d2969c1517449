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
ON_SMALLER = "rows_on_smaller"  # name of the evidence
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
    if smaller.fit.converged and smaller.support > found.support:
        return smaller_inside(judge, smaller)
    return _may_be_two(judge, found, smaller)


def _may_be_a_sum(found: Judgement) -> bool:
    fit, certificate = found.fit, found.certificate
    if certificate.n_free < 2:  # nothing is smaller than a line
        return False
    # No more outliers than dimensions have each a direction of its own.
    crowded = n_outliers(fit, certificate) > len(fit.spectrum)
    return fit.groups.share > ALL_ROWS or (crowded and certificate.misfit > MISFIT_LIMIT)


def _is_as_thin(smaller: Judgement, found: Judgement) -> bool:
    return smaller.fit.groups.scale <= AS_THIN * found.fit.groups.scale


def _near(judge: Judge, found: Judgement) -> Array:
    """Say which rows (n,) lie on the subspace and count."""
    J = row_distances(judge.rows, found.fit.V)
    near: Array = (found.fit.groups.threshold >= J) & (judge.share > 0)
    return near


def _normals_inside(judge: Judge, found: Judgement) -> Array | None:
    """Return normals (D, k) inside the subspace of a smaller one that many of its rows lie on."""
    fit, d, rng = found.fit, found.certificate.n_free, np.random.default_rng(0)
    members, enough = np.flatnonzero(_near(judge, found)), max(ENOUGH, ENOUGH_PER_DIMENSION * d)
    if len(members) > enough:
        members = np.sort(rng.choice(members, enough, replace=False, shuffle=False))
    moments = np.maximum(fit.spectrum[-d:], np.finfo(float).tiny)
    stretch = fit.axes[:, -d:] / np.sqrt(moments)  # (D, d)
    rows = judge.rows.subset(members).mapped(stretch, rescale=True)
    if rows is None:  # for memory
        return None
    span = row_span(rows)
    starts = random_starts(rng, span, N_STARTS)
    directions = psgm(rows, starts, rule=AutoStep(), max_iter=MAX_ITER, tol=TOL)
    inner = Judge(rows, span, distinct_shares(rows, rng), refine=True)
    for j in np.argsort(directions.objective, kind="stable")[:N_LOOKS]:
        smaller = inner.follow(directions.B[:, [j]], None, FEW_STEPS)
        if smaller.certificate.confidence >= SURE:
            return orthonormal(stretch @ smaller.fit.V)
    return None


def _may_be_two(judge: Judge, found: Judgement, smaller: Judgement) -> Judgement:
    """Say that the subspace holds a smaller one."""
    on_both = _near(judge, found) & _near(judge, smaller)
    n, known = round(float(judge.share[on_both].sum())), found.codimension
    doubt = (
        f"{n} of the {found.certificate.n_rows} rows on the subspace lie on a smaller one inside: "
        "it may be the sum of two (use perpend.peel to find both)"
    )
    return found._replace(
        codimension=known._replace(
            confidence=min(known.confidence, DOUBTFUL),
            evidence={**known.evidence, ON_SMALLER: n},
            doubts=(*known.doubts, doubt),
        )
    )

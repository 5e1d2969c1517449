r"""Rows that span less than the whole space lie on a subspace exactly: what follows from that.

Of n rows that span R < n dimensions, some depend on the others. Those that do not are on no
subspace with them: leaving one out leaves a dimension out. Its leverage, with the rows' second
moments G, is

.. math:: w_i \, x_i^T G^+ x_i = 1,

with w_i the weight of the row and of all equal ones, and then :math:`G^+ x_i` is orthogonal to
every other row (a projection with 1 on the diagonal has zeros beside it). So the others, and the
subspace that they lie on, are found without any search.

And where all rows lie on their span exactly, the noise around a smaller subspace can't be the same
in all directions: it may be the shape of the inliers.
"""

import numpy as np

from perpend.codimension.certificate import mapped_lengths
from perpend.codimension.confidence import DOUBTFUL
from perpend.codimension.decision import Judge, Judgement
from perpend.codimension.result import SURE
from perpend.geometry import orthonormal

ALONE = 1e-6  # below a leverage of 1 at the most
EXACT_CODIMENSION = "exact_codimension"  # name of the evidence


def without_lone_rows(judge: Judge) -> Judgement | None:
    """Return the subspace of the rows that depend on one another, where others do not."""
    rows, span = judge.rows, judge.span
    if not judge.refine or not _is_no_accident(judge):
        return None
    root = span.axes / np.sqrt(span.variances)  # (D', R): G^+ is this times its transpose
    leverage = judge.distinct.in_common * np.square(mapped_lengths(rows, root))
    lone = np.flatnonzero(leverage > 1 - ALONE)
    if not 0 < judge.share[lone].sum() < span.rank - 0.5:
        return None
    V = orthonormal(root @ (root.T @ rows.take(lone).T.astype(float)), rtol=ALONE)
    found = judge.consider(V, None)
    return found if found.certificate.confidence >= SURE else None


def doubted_noise(judge: Judge, found: Judgement) -> Judgement:
    """Return the judgement with a doubt where all rows lie exactly on more, and there with noise.

    Columns that are zero or multiples of others say nothing about the rows.
    """
    span, groups, known = judge.span, found.fit.groups, found.codimension
    if groups.is_exact or not _is_no_accident(judge):
        return found
    if span.rank + span.n_idle_columns >= span.n_features:
        return found
    doubt = (
        f"all rows lie exactly on a larger subspace, and on this one only up to noise "
        f"(codimension={span.n_outside} would give the larger one)"
    )
    return found._replace(
        codimension=known._replace(
            confidence=min(known.confidence, DOUBTFUL),
            evidence={**known.evidence, EXACT_CODIMENSION: span.n_outside},
            doubts=(*known.doubts, doubt),
        )
    )


def _is_no_accident(judge: Judge) -> bool:
    """Whether the rows span less than the space, and are by a few more than its dimension.

    One row that depends on two others is an accident of the data, and no group.
    """
    surplus = judge.n_distinct - judge.span.rank
    return judge.span.n_outside > 0 and 2.0**-surplus <= 1 - SURE

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

import math

import numpy as np

from perpend.codimension.certificate import mapped_lengths
from perpend.codimension.decision import Judge, Judgement
from perpend.codimension.result import SURE, Codimension
from perpend.geometry import orthonormal
from perpend.solvers import RowSpan, TwoGroups

ALONE = 1e-4  # below a leverage of 1 at the most
EXACT_CODIMENSION = "exact_codimension"  # name of the evidence


def without_lone_rows(judge: Judge) -> Judgement | None:
    """Return the subspace of the rows that depend on one another, where others do not."""
    rows, span, distinct = judge.rows, judge.span, judge.distinct
    if not judge.refine or not _is_no_accident(span, distinct.n_different):
        return None
    root = span.axes / np.sqrt(span.variances)  # (D', R): G^+ is this times its transpose
    leverage = distinct.in_common * np.square(mapped_lengths(rows, root))
    # Weights that differ by orders of magnitude cost as many digits; what is proposed is judged.
    rounding = max(ALONE, 10 * math.sqrt(float(np.finfo(rows.dtype).eps)))
    lone = np.flatnonzero(leverage > 1 - rounding)
    if not 0 < distinct.part[lone].sum() < span.rank - 0.5:
        return None
    B = root @ (root.T @ rows.take(lone).T.astype(float))
    V = orthonormal(B / np.linalg.norm(B, axis=0), rtol=ALONE)
    found = judge.consider(V, None)
    return found if found.certificate.confidence >= SURE else None


def doubted_noise(
    span: RowSpan, n_different: float, groups: TwoGroups, found: Codimension
) -> Codimension:
    """Add a doubt where all rows lie exactly on more, and on the found subspace with noise.

    Columns that are zero or multiples of others say nothing about the rows.
    """
    if groups.is_exact or not _is_no_accident(span, n_different):
        return found
    if span.rank + span.n_idle_columns >= span.n_features:
        return found
    doubt = (
        f"all rows lie exactly on a larger subspace, and on this one only up to noise "
        f"(codimension={span.n_outside} would give the larger one)"
    )
    return found.doubted(doubt, **{EXACT_CODIMENSION: span.n_outside})


def _is_no_accident(span: RowSpan, n_different: float) -> bool:
    """Whether the rows span less than the space, and are by a few more than its dimension.

    One row that depends on two others is an accident of the data, and no group.
    """
    surplus = n_different - span.rank
    return span.n_outside > 0 and surplus >= -math.log2(1 - SURE)

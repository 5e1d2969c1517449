"""The equations of `perpend.relations` as facts of a page, where they are few enough to help."""

from typing import Any, TypeAlias

import numpy as np

from perpend._pipelines import Scaled
from perpend._typing import Array
from perpend.estimator import SubspaceEstimator
from perpend.relations.solved import Relation, solved, surface_of_rows
from perpend.rows.kinds import to_numpy

MOST_EQUATIONS = 8  # that are shown
MOST_NORMALS = 64  # among which short equations are searched: 0.2 s
TERMS = 12  # of an equation that are kept

Solved: TypeAlias = dict[str, Any]
"""One column as a combination of others."""


def solved_equations(
    model: SubspaceEstimator, X: Array | None, labels: Array, scaled: Scaled | None = None
) -> list[Solved] | None:
    """Return the simplest equations of the rows X, each solved for a column, if that helps.

    It does not, and this is None, without rows that give the scale of columns, and with a single
    normal, unless columns were scaled. With many normals there may be none that is short.
    """
    N = to_numpy(model.normals_).astype(float)
    least = 2 if scaled is None else 1
    if X is None or len(N) < least or not np.any(labels == 1):
        return None
    inliers, location = X[labels == 1], to_numpy(model.location_).astype(float)  # 0 if linear
    if not model.affine_ and not np.any(inliers):
        return None
    scale = None
    if scaled is not None:  # z = (x - centre) / scale is on the model's subspace
        N, location, scale = N / scaled.scale, scaled.point, scaled.scale
    if len(N) > MOST_NORMALS:
        return []
    found = solved(surface_of_rows(N, location, inliers, scale))
    if len(N) > MOST_EQUATIONS:  # the simplest; those that only say a column is constant come last
        found = sorted((one for one in found if len(one.columns) <= TERMS), key=_simplicity)
    return [_facts(one) for one in found[:MOST_EQUATIONS]]


def _simplicity(one: Relation) -> tuple[bool, int]:
    return len(one.columns) == 0, len(one.columns)


def _facts(one: Relation) -> Solved:
    largest = np.argsort(-np.abs(one.values) * one.sizes, kind="stable")[:TERMS]
    shown = np.sort(largest)
    return {
        "column": one.column,
        "terms": [
            {
                "column": int(one.columns[k]),
                "value": float(one.values[k]),
                "size": float(one.sizes[k]),
            }
            for k in shown
        ],
        "constant": one.shown_constant,
        "more": len(one.columns) - len(shown),  # terms that are not among these
        "left_out": one.left_out,
        "error": one.error,
    }

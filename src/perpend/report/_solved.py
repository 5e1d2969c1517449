"""The equations of `perpend.relations` as facts of a page, where they are few enough to help."""

from typing import Any, TypeAlias

import numpy as np

from perpend._typing import Array
from perpend.estimator import SubspaceEstimator
from perpend.relations.solved import Relation, solved, surface_of_rows
from perpend.rows.kinds import to_numpy

MOST_EQUATIONS = 8
TERMS = 12  # of an equation that are kept

Solved: TypeAlias = dict[str, Any]
"""One column as a combination of others."""


def solved_equations(
    model: SubspaceEstimator, X: Array | None, labels: Array
) -> list[Solved] | None:
    """Return sparse equations, each solved for a column; None if that does not help.

    It does not with a single normal, with many, and without rows that give the scale of columns.
    """
    N = to_numpy(model.normals_).astype(float)
    if X is None or not 1 < len(N) <= MOST_EQUATIONS or not np.any(labels == 1):
        return None
    location = to_numpy(model.location_).astype(float)  # 0 if linear
    if not model.affine_ and not np.any(X[labels == 1]):
        return None
    return [_facts(one) for one in solved(surface_of_rows(N, location, X[labels == 1]))]


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
        "constant": one.constant,
        "more": len(one.columns) - len(shown),  # terms that are not among these
        "left_out": one.left_out,
        "error": one.error,
    }

"""The equations of `perpend.relations` as facts of a page, where they are few enough to help."""

from typing import Any, TypeAlias

import numpy as np

from perpend._pipelines import Scaled, near_subspace, opened
from perpend._typing import Array
from perpend.estimator import SubspaceEstimator
from perpend.relations.solved import Relation, apart, solved, surface_of_rows
from perpend.rows.kinds import to_numpy

MOST_EQUATIONS = 8  # that are shown
MOST_NORMALS = 64  # among which short equations are searched: 0.2 s
TERMS = 12  # of an equation that are kept

Solved: TypeAlias = dict[str, Any]
"""One column as a combination of others."""


def solved_equations(
    model: SubspaceEstimator,
    X: Array | None,
    labels: Array,
    kind: str,
    scaled: Scaled | None = None,
) -> Solved:
    """Return the simplest equations of the rows X as "solved", and single columns as "constants".

    The former are None if they do not help: without rows that give the scale of columns, and with
    a single normal, unless columns were scaled. With many normals there may be none that is short.
    Only in a table are single columns set apart.
    """
    N = to_numpy(model.normals_).astype(float)
    inliers = None
    if X is not None:
        near = near_subspace(opened(model) if scaled is None else scaled, X, labels)
        inliers = X[near & ~np.isnan(X).any(axis=1)]  # complete ones tell the noise
    if inliers is None or not len(N) or not len(inliers):
        return {"solved": None, "constants": []}
    location, scale = to_numpy(model.location_).astype(float), None  # 0 if linear
    if not model.affine_ and not np.any(inliers):
        return {"solved": None, "constants": []}
    if scaled is not None:  # z = (x - centre) / scale is on the model's subspace
        N, location, scale = N / scaled.scale, scaled.point, scaled.scale
    if len(N) > MOST_NORMALS:
        return {"solved": [], "constants": []}
    surface = surface_of_rows(N, location, inliers, scale)
    # Coordinates and bands are no quantities of their own, so none of them is set apart.
    relations, constants = apart(surface) if kind == "table" else (solved(surface), [])
    if relations is None or not (len(N) > 1 or scaled is not None or constants):
        return {"solved": None, "constants": [_facts(one) for one in constants]}
    if len(relations) > MOST_EQUATIONS:  # the simplest
        relations = sorted(
            (one for one in relations if len(one.columns) <= TERMS),
            key=lambda one: len(one.columns),
        )
    return {
        "solved": [_facts(one) for one in relations[:MOST_EQUATIONS]],
        "constants": [_facts(one) for one in constants],
    }


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

"""The equations of `perpend.relations` as facts of a page, where they are few enough to help."""

from typing import Any, TypeAlias

import numpy as np

from perpend._pipelines import Scaled
from perpend._typing import Array
from perpend.relations.equation import complete_inliers, surface_near
from perpend.relations.solved import Relation, apart, solved

MOST_EQUATIONS = 8  # that are shown
MOST_NORMALS = 64  # among which short equations are searched: 0.2 s
TERMS = 12  # of an equation that are kept

Solved: TypeAlias = dict[str, Any]
"""One column as a combination of others."""


def solved_equations(scaled: Scaled, X: Array | None, labels: Array, kind: str) -> Solved:
    """Return the simplest equations of the rows X as "solved", and single columns as "constants".

    Rows and equations are in the data's own units. The former are None if they do not help: without
    rows that give the scale of columns, and with a single normal, unless columns were scaled. With
    many normals there may be none that is short. Only in a table are single columns set apart.
    """
    c = int(scaled.model.codimension_)
    inliers = None if X is None or not c else complete_inliers(scaled, X, labels)
    # Rows that are all at the origin of a linear subspace have no scale.
    if inliers is None or not (np.any(inliers) or (len(inliers) and scaled.model.affine_)):
        return {"solved": None, "constants": []}
    if c > MOST_NORMALS:
        return {"solved": [], "constants": []}
    surface = surface_near(scaled, inliers)
    # Coordinates and bands are no quantities of their own, so none of them is set apart.
    relations, constants = apart(surface) if kind == "table" else (solved(surface), [])
    if relations is None or not (c > 1 or scaled.is_pipeline or constants):
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

"""A page about a pipeline: the model sees scaled columns, and the page shows them as they are.

Facts are gathered about the scaled rows; then equations and values of columns are brought back to
the data's own units. Distances, threshold and noise belong to the scaled columns, and the page says
so.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from perpend._json import plain
from perpend._pipelines import Scaled, opened
from perpend._typing import Array
from perpend.formats._dataset import Dataset, Labelled
from perpend.report._facts import gather
from perpend.report._solved import MOST_EQUATIONS, solved_equations
from perpend.report._words import Facts, column_labels
from perpend.rows.kinds import to_numpy

NOTE = (
    "The pipeline scaled the columns before the fit. Equations and values are in the data's own "
    "units; distances, threshold, noise and pictures are those of the scaled columns."
)


def gather_any(
    model: Any,
    data: Any,
    *,
    labelled: Labelled | None,
    result: dict[str, Any] | None,
    title: str | None = None,
    groups: Array | None = None,
) -> Facts:
    """Return the facts about a model or a pipeline, and rows in the data's own units."""
    scaled = opened(model)
    rows = scaled_data(scaled, data) if scaled.is_pipeline else data
    facts = gather(scaled.model, rows, labelled=labelled, result=result, title=title, groups=groups)
    if scaled.is_pipeline:
        in_own_units(facts, scaled, data, labelled)
    return facts


def scaled_data(scaled: Scaled, data: Any) -> Any:
    """Return the rows as the model sees them, with the names of their columns."""
    if data is None:
        return None
    own = isinstance(data, Dataset)
    X = np.asarray(to_numpy(data.X if own else data))
    Z = ((X - scaled.centre) / scaled.scale).astype(X.dtype if X.dtype.kind == "f" else float)
    if own:
        return replace(data, X=Z)
    names = None if scaled.names is None else tuple(str(name) for name in scaled.names)
    return Dataset(Z, source="", format="", kind="table", shape=(len(Z),), columns=names)


def in_own_units(facts: Any, scaled: Scaled, data: Any, labelled: Labelled | None) -> None:
    """Bring the equations and the values of columns back to the data's own units."""
    model, estimate = scaled.model, facts["estimate"]
    normals = to_numpy(model.normals_).astype(float) / scaled.scale
    # of norm one, so that coefficients have a usual size
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    estimate["normals"] = plain(normals[:MOST_EQUATIONS])
    estimate["intercept"] = plain((normals @ scaled.point)[:MOST_EQUATIONS])
    estimate["location"] = plain(scaled.point)
    estimate["scalers"] = scaled.scalers
    for picture in filter(None, facts["pictures"].values()):
        for axis in {"x", "y"} & set(picture):
            words = ("(data units)", "(standardised units)")
            picture[axis]["label"] = picture[axis]["label"].replace(*words)
    if np.any(scaled.centre):  # the origin of the scaled columns is none of the data's
        for key in [key for key in estimate["evidence"] if key.startswith("origin_")]:
            del estimate["evidence"][key]
    if data is not None:
        labels = model.predict(scaled_data(scaled, data).X) if labelled is None else labelled.labels
        X = to_numpy(data.X if isinstance(data, Dataset) else data)
        kind = facts["data"]["kind"]
        estimate |= solved_equations(model, X, to_numpy(labels), kind, scaled)
    for row in facts["outliers"]["rows"] if facts["outliers"] else ():
        for blame in row["blame"]:
            j = blame["column"]
            for key in ("value", "fits"):
                blame[key] = float(scaled.centre[j] + scaled.scale[j] * blame[key])
    if data is None and scaled.names is not None:
        facts["data"] |= {"columns": column_labels(scaled.names), "named": True}
    facts["warnings"].append(NOTE)

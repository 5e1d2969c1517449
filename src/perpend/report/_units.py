"""A page about a pipeline: the model sees scaled columns, and the page shows them as they are.

Facts are gathered about the scaled rows; then equations and values of columns are brought back to
the data's own units. Distances, threshold and noise belong to the scaled columns, and the page says
so.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from perpend._json import plain
from perpend._pipelines import Scaled
from perpend._typing import Array
from perpend.formats._dataset import Dataset
from perpend.relations.equation import own_normals
from perpend.report._solved import MOST_EQUATIONS
from perpend.report._words import column_labels
from perpend.rows.kinds import to_numpy

NOTE = (
    "The pipeline scaled the columns before the fit. Equations and values are in the data's own "
    "units; distances, threshold, noise and pictures are those of the scaled columns."
)


def own_rows(data: Any) -> Array | None:
    """Return the rows as they are, in the data's own units."""
    return None if data is None else to_numpy(data.X if isinstance(data, Dataset) else data)


def scaled_data(scaled: Scaled, data: Any) -> Any:
    """Return the rows as the model sees them, with the names of their columns."""
    if data is None or not scaled.is_pipeline:
        return data
    X = np.asarray(own_rows(data))
    Z = scaled.seen(X).astype(X.dtype if X.dtype.kind == "f" else float)
    if isinstance(data, Dataset):
        return replace(data, X=Z)
    names = None if scaled.names is None else tuple(str(name) for name in scaled.names)
    return Dataset(Z, source="", format="", kind="table", shape=(len(Z),), columns=names)


def in_own_units(facts: Any, scaled: Scaled, data: Any) -> None:
    """Bring the normals and the values of columns back to the data's own units."""
    estimate, normals = facts["estimate"], own_normals(scaled)
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
    for row in facts["outliers"]["rows"] if facts["outliers"] else ():
        for blame in row["blame"]:
            j = blame["column"]
            for key in ("value", "fits"):
                blame[key] = float(scaled.centre[j] + scaled.scale[j] * blame[key])
    if data is None and scaled.names is not None:
        facts["data"] |= {"columns": column_labels(scaled.names), "named": True}
    facts["warnings"].append(NOTE)

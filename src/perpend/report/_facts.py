"""The facts behind a page: plain numbers and texts, and nothing else.

`gather` reads a model and its rows once. The page only uses the facts, so it can be made again from
a file of them, without the model and the data.
"""

import datetime as dt
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from perpend import __version__
from perpend._json import plain
from perpend._pipelines import opened
from perpend._structures import relations
from perpend._typing import Array
from perpend._verdict import computed_evidence, plane_uncertainty
from perpend.estimator import SubspaceEstimator
from perpend.exceptions import InputError
from perpend.formats._dataset import Counts, Dataset, Labelled
from perpend.report._outliers import outlier_facts
from perpend.report._pictures import Rows, picture_facts
from perpend.report._solved import MOST_EQUATIONS, solved_equations
from perpend.report._units import in_own_units, own_rows, scaled_data
from perpend.report._words import Facts, column_labels
from perpend.rows.kinds import to_numpy
from perpend.structure import SURE

SCHEMA = 2  # 1 had other pictures
MOST_NAMES = 2000  # of columns are kept


def gather(
    model: Any,
    data: Any = None,
    *,
    labelled: Labelled | None = None,
    result: dict[str, Any] | None = None,
    title: str | None = None,
    groups: Any = None,
) -> Facts:
    """Return the facts about a fitted model and its rows; see `perpend.report.write_report`."""
    scaled, result = opened(model), result or {}
    model = scaled.model
    rows = _rows(model, scaled_data(scaled, data))
    if labelled is None and rows.X is not None:
        labelled = _label(model, data if rows.dataset is None else rows.dataset.X, groups)
    labels = to_numpy(model.labels_) if labelled is None else to_numpy(labelled.labels)
    if rows.X is not None and len(labels) != len(rows.X):
        raise InputError(f"There are {len(labels)} labels, but the data has {len(rows.X)} rows.")
    facts = _data_facts(model, rows, len(labels), result.get("input") or {})
    own = own_rows(data) if scaled.is_pipeline else rows.X
    solved = solved_equations(scaled, own, labels, rows.kind)
    found = {
        "schema": SCHEMA,
        "title": title or facts["name"] or "Subspace report",
        "made": dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "data": facts,
        "estimate": _estimate_facts(model, labels) | solved,
        "outliers": outlier_facts(model, rows.X, labelled, rows.dataset),
        "pictures": picture_facts(model, rows, labels, labelled),
        "without_constants": result.get("without_constants"),  # a fit of the other columns
        "nearly_constant": result.get("nearly_constant"),
        "warnings": [str(text) for text in result.get("warnings") or []],
        "versions": _versions(result),
        "timings": {str(k): float(v) for k, v in (result.get("timings") or {}).items()},
    }
    if scaled.is_pipeline:
        in_own_units(found, scaled, data)
    return found


def _rows(model: SubspaceEstimator, data: Any) -> Rows:
    dataset = data if isinstance(data, Dataset) else None
    X = None if data is None else np.asarray(to_numpy(data if dataset is None else dataset.X))
    D = model.n_features_in_
    if X is not None and (X.ndim != 2 or X.shape[1] != D):
        raise InputError(f"The data has shape {X.shape}; the model was fitted to {D} columns.")
    if X is not None:
        X = model._complete(X)[0]  # pictures and values have expected entries for missing ones
    names = None if dataset is None else dataset.columns
    if names is None:
        names = getattr(model, "feature_names_in_", None)
    kind = "table" if dataset is None else dataset.kind
    columns = column_labels(range(1, D + 1) if names is None else names, kind)
    return Rows(X, columns, names is not None, dataset, kind)


def _label(model: SubspaceEstimator, X: Array, groups: Any) -> Labelled:
    distance = -to_numpy(model.score_samples(X, groups))
    labels = np.where(distance <= model.threshold_, 1, -1)
    if hasattr(model, "_outlier_odds"):
        probability = to_numpy(model.outlier_probability(X, groups))
    else:  # a model from a file of an early version
        probability = np.full(len(labels), np.nan)
    return Labelled(labels, distance, probability)


def _data_facts(model: SubspaceEstimator, rows: Rows, n: int, described: dict[str, Any]) -> Facts:
    dataset = rows.dataset
    counts = Counts() if dataset is None else dataset.counts
    name = "" if dataset is None else Path(str(dataset.source)).name
    return {
        "name": name or str(described.get("name") or ""),
        "kind": rows.kind,
        "shape": [n] if dataset is None else [int(m) for m in dataset.shape],  # of the records
        "n_rows": n,
        "n_columns": int(model.n_features_in_),
        "columns": rows.columns[:MOST_NAMES],
        "named": rows.named,  # whether the data has names for its columns
        "dtype": str(described.get("dtype") or "") if rows.X is None else str(rows.X.dtype),
        "sha256": str(described["sha256"]) if described.get("sha256") else None,
        "missing": int(getattr(model, "n_missing_", 0)),
        "nan": 0 if getattr(model, "n_missing_", 0) else counts.nan,  # of records that are left out
        "ignored": counts.ignored,
        "zero": counts.zero,
        "dropped_columns": [str(c) for c in counts.dropped_columns[:MOST_NAMES]],
        "off_origin": None if rows.X is None else _off_origin(rows.X),
    }


def _off_origin(X: Array) -> float | None:
    """Return how far the centre of the rows is from the origin, in radii of their cloud.

    If most rows are equal, there is no radius, and this is None.
    """
    some = X[:: max(1, len(X) // 10_000)].astype(float)
    largest = float(np.max(np.abs(some)))
    if largest > 0:
        some /= largest  # the squares of very large floats are not finite
    centre = np.median(some, axis=0)
    radius = float(np.median(np.linalg.norm(some - centre, axis=1)))
    return float(np.linalg.norm(centre)) / radius if radius > np.finfo(float).eps else None


def _estimate_facts(model: SubspaceEstimator, labels: Array) -> Facts:
    parameters = model.get_params(deep=False)
    parameters.pop("callback", None)
    seed = parameters.pop("random_state")
    source = "auto" if parameters["threshold"] == "auto" else "given"
    given = parameters.get("codimension", "auto") != "auto"
    off = plane_uncertainty(model)
    return {
        "method": type(model).__name__,
        "dimension": int(model.n_components_),
        "codimension": int(model.codimension_),
        "given": given or parameters.get("n_components") is not None,
        "affine": bool(model.affine_),
        "joint": getattr(model, "outliers", "across") == "both",  # distances off and within it
        "relative": bool(model.normalize and not model.affine_),  # distances are sines of angles
        "confidence": float(model.confidence_),
        "sure": bool(model.confidence_ >= SURE),
        "outliers": int((labels == -1).sum()),
        "threshold": float(model.threshold_),
        "threshold_from": source if parameters["contamination"] is None else "contamination",
        "noise": float(model.noise_),
        "uncertainty": None if off is None else list(off),  # degrees, and units of the data
        "converged": bool(model.converged_),
        "n_iter": int(model.n_iter_),
        "n_starts": int(model.n_starts_),
        "doubts": [str(text) for text in getattr(model, "doubts_", ())],
        "evidence": {str(key): plain(value) for key, value in computed_evidence(model).items()},
        "singular_values": plain(to_numpy(model.singular_values_)),
        "normals": plain(to_numpy(model.normals_)[:MOST_EQUATIONS].astype(float)),
        "intercept": plain(to_numpy(model.intercept_)[:MOST_EQUATIONS].astype(float)),
        "location": plain(to_numpy(model.location_).astype(float)),
        "structures": _structure_facts(model),
        "parameters": {key: _shown(value) for key, value in parameters.items()},
        "seed": str(seed) if seed is None or isinstance(seed, int | np.integer) else "a generator",
    }


def _structure_facts(model: SubspaceEstimator) -> list[Facts]:
    """Return the subspaces in the rows, each with its relation to the chosen one."""
    seen = getattr(model, "structures_", [])  # files of earlier versions have none
    return [
        {
            "codimension": int(one["codimension"]),
            "noise": float(one["noise"]),
            "members": round(one["members"]),
            "chosen": bool(one["chosen"]),
            "relation": relation,
        }
        for one, relation in zip(seen, relations(model), strict=True)
    ]


def _shown(value: Any) -> str:
    if hasattr(value, "shape") and np.ndim(value):
        return f"an array of shape {tuple(value.shape)}"
    return str(value)


def _versions(result: dict[str, Any]) -> dict[str, str]:
    """Return the versions at the fit if the result has them, otherwise today's."""
    if result.get("versions"):
        return {"perpend": str(result.get("perpend", "")), **result["versions"]}
    here = {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    return {"perpend": __version__, "python": platform.python_version(), **here}

"""Whether learned attributes fit together; otherwise a model would fail or give nonsense later."""

import math
from numbers import Real
from typing import Any

import numpy as np

from perpend._learned import OF_DESCENTS, OF_SUBSPACE, DistanceRecord
from perpend._score import Reference
from perpend._typing import Array
from perpend.callbacks import History
from perpend.estimator import SubspaceEstimator
from perpend.exceptions import ModelFileError
from perpend.structure.labels import OutlierOdds

COUNTS = ("codimension_", "n_components_", "n_features_in_", "n_starts_", "n_iter_")
NUMBERS = ("threshold_", "offset_", "noise_", "objective_", "confidence_")
STRUCTURE = {"codimension", "noise", "members", "score", "length", "chosen"}
PROFILE = {"scales", "codimensions", "contrast"}
NOT_ORTHONORMAL = 1e-3  # more than any rounding, also in single precision
PROBES = 4  # random combinations of the rows of a basis


def check_learned(model: SubspaceEstimator) -> None:
    """Refuse a model that could not have been fitted."""
    _check_subspace(model)
    if hasattr(model, "structures_"):
        _check_structures(model.structures_)
    if getattr(model, "profile_", None) is not None:
        _check_profile(model.profile_)
    if getattr(model, "_reference", None) is not None:
        _check_reference(model._reference, model.n_features_in_)
    if hasattr(model, "_others"):
        _check_others(model)


def _check_subspace(model: SubspaceEstimator) -> None:
    """Refuse attributes of a subspace that do not fit together."""
    _check_numbers(model)
    if model.threshold_ < 0 or model.offset_ != -model.threshold_:
        raise ModelFileError(f"threshold_ {model.threshold_} and offset_ do not fit together.")
    for name in ("affine_", "converged_"):
        if not isinstance(getattr(model, name), bool | np.bool_):
            raise ModelFileError(f"{name} is {getattr(model, name)!r}, not true or false.")
    if not isinstance(model.evidence_, dict):
        raise ModelFileError("evidence_ is not a table of names and values.")
    _check_doubts(getattr(model, "doubts_", ()))
    if model.n_jobs == 0:
        raise ModelFileError("n_jobs is 0, which means no thread at all.")
    _check_arrays(model)
    # Files of earlier versions have none of these.
    if hasattr(model, "_outlier_odds"):
        _check_odds(model._outlier_odds)
    if getattr(model, "_distance_record", None) is not None:
        _check_record(model._distance_record)
    if hasattr(model, "history_"):
        _check_history(model.history_)


def _check_doubts(doubts: Any) -> None:
    if not isinstance(doubts, tuple) or not all(isinstance(doubt, str) for doubt in doubts):
        raise ModelFileError("doubts_ are not all text.")


def _check_structures(seen: Any) -> None:
    if not isinstance(seen, list) or not all(isinstance(one, dict) for one in seen):
        raise ModelFileError("structures_ is not a list of tables.")
    for one in seen:
        if set(one) != STRUCTURE:
            raise ModelFileError(f"structures_ has the entries {sorted(one)}.")
        if not all(isinstance(value, Real) for value in one.values()):
            raise ModelFileError("structures_ holds something that is not a number.")
    if seen and [bool(one["chosen"]) for one in seen].count(True) != 1:
        raise ModelFileError(
            "exactly one of structures_ must be the chosen one; several or none are."
        )


def _check_others(model: SubspaceEstimator) -> None:
    """Refuse structures that `choose` could not return: each is tried."""
    seen = getattr(model, "structures_", [])
    others: Any = model._others
    if not isinstance(others, list) or len(others) != len(seen):
        raise ModelFileError("the attributes of other structures are not those of structures_.")
    names = {frozenset(table) for table in others if table is not None}
    known = {frozenset(OF_SUBSPACE), frozenset(OF_SUBSPACE + OF_DESCENTS)}
    for i, (one, table) in enumerate(zip(seen, others, strict=True)):
        fits = (table is None) is bool(one["chosen"])
        if fits and table is not None:
            fits = len(names) == 1 and names <= known
            fits = fits and table["labels_"].shape == model.labels_.shape
            fits = fits and table["labels_"].dtype == bool
        if not fits:
            raise ModelFileError(f"what belongs to structures_[{i}] is not that of a subspace.")
        if table is not None:
            _check_subspace(model.choose(i))


def _check_profile(profile: Any) -> None:
    """Refuse a profile that can't be drawn."""
    sound = isinstance(profile, dict) and set(profile) == PROFILE
    if sound:
        scales, sizes, contrast = (profile[n] for n in ("scales", "codimensions", "contrast"))
        sound = (
            scales.shape == (len(scales),)
            and sizes.shape == (len(sizes),)
            and contrast.shape == (len(sizes), len(scales))
            and len(scales) > 1
            and len(sizes) > 0
            and scales[0] > 0
            and bool(np.all(np.diff(scales) > 0) and np.all(np.diff(sizes) > 0) and sizes[0] > 0)
            and all(bool(np.all(np.isfinite(array))) for array in (scales, contrast))
            and bool(np.all(contrast >= 0))
        )
    if not sound:
        raise ModelFileError("profile_ is not a table of scales, codimensions and contrasts.")


def _check_numbers(model: SubspaceEstimator) -> None:
    for name in COUNTS:
        value = getattr(model, name)
        if type(value) is not int or value < 0:
            raise ModelFileError(f"{name} is {value!r}, not a count.")
    for name in NUMBERS:
        value = getattr(model, name)
        if not isinstance(value, Real) or math.isnan(value):
            raise ModelFileError(f"{name} is {value!r}, not a number.")


def _check_arrays(model: SubspaceEstimator) -> None:
    c, d, D, k = (getattr(model, name) for name in COUNTS[:4])
    shapes: dict[str, tuple[int, ...]] = {
        "normals_": (c, D),
        "components_": (d, D),
        "location_": (D,),
        "intercept_": (c,),
        "directions_": (k, D),
        "singular_values_": (min(k, D),),
    }
    if c + d != D or model._n_features_out != d:
        raise ModelFileError(
            f"codimension_ {c} and dimension {d} do not fit the {D} features of the model."
        )
    for name, shape in shapes.items():
        array = getattr(model, name)
        if array.shape != shape or array.dtype.kind != "f":
            raise ModelFileError(f"{name} of shape {array.shape} does not fit the model's sizes.")
        if not np.all(np.isfinite(array)):
            raise ModelFileError(f"{name} is not finite.")
    _check_frame(model)
    if model.labels_.ndim != 1 or not np.all(np.abs(model.labels_) == 1):
        raise ModelFileError("labels_ are not +1 and -1.")
    names = getattr(model, "feature_names_in_", None)
    if names is not None and (names.shape != (D,) or names.dtype.kind not in "OU"):
        raise ModelFileError(f"feature_names_in_ does not fit the {D} features of the model.")


def _check_frame(model: SubspaceEstimator) -> None:
    """Refuse bases that are not orthonormal, and an offset that is not theirs.

    In one pass over the bases: a combination of orthonormal rows is as long as its coefficients.
    """
    A = np.vstack([model.normals_, model.components_]).astype(float)
    scale = np.max(np.abs(A), initial=0.0)
    coefficients = np.random.default_rng(0).standard_normal((PROBES, len(A)))
    coefficients /= np.linalg.norm(coefficients, axis=1, keepdims=True)
    if (
        scale > 1 + NOT_ORTHONORMAL  # before anything that large is squared
        or _differ(np.linalg.norm(A, axis=1), 1.0)
        or _differ(np.linalg.norm(coefficients @ A, axis=1), 1.0)
    ):
        raise ModelFileError("the rows of normals_ and components_ are not orthonormal.")
    location, intercept = model.location_, model.intercept_
    size = np.max(np.abs(location), initial=0.0)
    if not model.affine_:
        fits = size == 0 and not np.any(intercept)
    else:
        with np.errstate(over="ignore"):  # an absurd offset becomes infinite, and differs
            offset = intercept / (size or 1.0)
        fits = not _differ(offset, A[: len(intercept)] @ (location / (size or 1.0)))
    if not fits:
        raise ModelFileError("location_ and intercept_ do not fit the subspace.")


def _differ(a: Array, b: Any) -> bool:
    return bool(np.any(np.abs(a - b) > NOT_ORTHONORMAL))


def _check_odds(odds: Any) -> None:
    """Refuse a table of odds that would give nonsense."""
    numbers = isinstance(odds, dict) and set(odds) == set(OutlierOdds._fields)
    if numbers:
        distance, log_odds = odds["distance"], odds["log_odds"]
        numbers = (
            distance.shape == log_odds.shape == (len(distance),)
            and distance[0] > 0
            and bool(np.all(np.isfinite(distance) & np.isfinite(log_odds)))
            and bool(np.all(np.diff(distance) > 0) and np.all(np.diff(log_odds) >= 0))
            and odds["threshold"] >= 0
            and 0 <= odds["fall"] < math.inf
        )
    if not numbers:
        raise ModelFileError("the odds of outliers are not a table of growing numbers.")


def _check_record(record: Any) -> None:
    """Refuse counts of distances that cannot be drawn."""
    sound = isinstance(record, dict) and set(record) == set(DistanceRecord._fields)
    if sound:
        edges, counts, norms = record["edges"], record["counts"], record["norms"]
        numbers = [value for value in record.values() if not isinstance(value, np.ndarray)]
        sound = (
            edges.shape == counts.shape == (len(edges),)
            and len(edges) > 1
            and norms.ndim == 1
            and all(bool(np.all(np.isfinite(array))) for array in (edges, counts, norms))
            and edges[0] > 0
            and bool(np.all(np.diff(edges) > 0) and np.all(counts >= 0) and np.all(norms >= 0))
            and all(isinstance(n, int | float) and 0 <= n < math.inf for n in numbers)
        )
    if not sound:
        raise ModelFileError("the counts of the distances are not a table of growing distances.")


def _check_reference(reference: Any, D: int) -> None:
    """Refuse a centre and scale of the rows that are impossible."""
    sound = isinstance(reference, dict) and set(reference) == set(Reference._fields)
    if sound:
        centre, *numbers = reference.values()
        sound = centre.shape == (D,) and bool(np.all(np.isfinite(centre)))
        sound = sound and all(isinstance(n, float) and 0 < n < math.inf for n in numbers)
    if not sound:
        raise ModelFileError("the centre and scale of the rows do not fit the model.")


def _check_history(history: Any) -> None:
    """Refuse a history of steps that do not add up."""
    sound = isinstance(history, dict) and set(history) == set(History._fields)
    if sound:
        stages, n_steps = history["stages"], history["n_steps"]
        steps = [history[name] for name in History._fields[2:]]
        sound = (
            isinstance(stages, tuple)
            and all(isinstance(stage, str) for stage in stages)
            and n_steps.shape == (len(stages),)
            and n_steps.dtype.kind == "i"
            and bool(np.all(n_steps >= 0))
            and all(values.shape == (n_steps.sum(),) for values in steps)
        )
    if not sound:
        raise ModelFileError("history_ has steps that do not add up.")

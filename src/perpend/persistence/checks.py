"""Whether learned attributes fit together; otherwise a model would fail or give nonsense later."""

import math
from collections.abc import Callable, Sequence
from dataclasses import fields
from numbers import Real
from typing import Any

import numpy as np

from perpend._learned import OF_DESCENTS, OF_SUBSPACE, DistanceRecord
from perpend._score import Reference
from perpend._spread import Spread
from perpend._streaming import Stream
from perpend._typing import Array
from perpend.callbacks import History
from perpend.estimator import SubspaceEstimator
from perpend.exceptions import ModelFileError
from perpend.structure.labels import NormalsError, OutlierOdds

WHOLE_NUMBERS = ("codimension_", "n_components_", "n_features_in_", "n_starts_", "n_iter_")
NUMBERS = ("threshold_", "offset_", "noise_", "objective_", "confidence_")
VALUES: list[tuple[Sequence[str], Callable[[Any], bool], str]] = [
    (WHOLE_NUMBERS, lambda value: type(value) is int and value >= 0, "a count"),
    (NUMBERS, lambda v: isinstance(v, Real) and not math.isnan(v), "a number"),
    (("affine_", "converged_"), lambda v: isinstance(v, bool | np.bool_), "true or false"),
]
STRUCTURE = {"codimension", "noise", "members", "score", "length", "chosen"}
NOT_ORTHONORMAL = 1e-3  # more than any rounding, also in single precision
PROBES = 4  # random combinations of the rows of a basis


def check_learned(model: SubspaceEstimator) -> None:
    """Refuse a model that could not have been fitted."""
    _check_subspace(model)
    _check_tables(model, ("profile_", "_reference", "_spread", "history_", "_stream"))
    seen: Any = getattr(model, "structures_", [])
    _check_structures(seen)
    if hasattr(model, "_others"):
        _check_others(model, seen)


def _check_subspace(model: SubspaceEstimator) -> None:
    """Refuse attributes of a subspace that do not fit together."""
    for names, is_sound, what in VALUES:
        for name in names:
            value = getattr(model, name)
            if not is_sound(value):
                raise ModelFileError(f"{name} is {value!r}, not {what}.")
    if model.threshold_ < 0 or model.offset_ != -model.threshold_:
        raise ModelFileError(f"threshold_ {model.threshold_} and offset_ do not fit together.")
    if not isinstance(model.evidence_, dict):
        raise ModelFileError("evidence_ is not a table of names and values.")
    if not _is_tuple_of_text(getattr(model, "doubts_", ())):
        raise ModelFileError("doubts_ are not all text.")
    _check_arrays(model)
    _check_frame(model)
    _check_tables(model, ("_outlier_odds", "_distance_record", "_law", "_normals_error"))


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


def _check_others(model: SubspaceEstimator, seen: list[dict[str, Any]]) -> None:
    """Refuse structures that `choose` could not return: each is tried."""
    others: Any = model._others
    if not isinstance(others, list) or len(others) != len(seen):
        raise ModelFileError("the attributes of other structures are not those of structures_.")
    names = {frozenset(table) - {"_law", "undecided_"} for table in others if table is not None}
    all_ = [frozenset(OF_SUBSPACE), frozenset(OF_SUBSPACE + OF_DESCENTS)]
    before = [some - {"_normals_error"} for some in all_]  # in files of earlier versions
    sound = len(names) <= 1 and names <= {*all_, *before}
    for i, (one, table) in enumerate(zip(seen, others, strict=True)):
        fits = sound and (table is None) is bool(one["chosen"])
        if fits and table is not None:
            labels = table["labels_"]
            fits = labels.shape == model.labels_.shape and labels.dtype == bool
        if not fits:
            raise ModelFileError(f"what belongs to structures_[{i}] is not that of a subspace.")
        if table is not None:
            _check_subspace(model.choose(i))


def _check_arrays(model: SubspaceEstimator) -> None:
    c, d, D, k = (getattr(model, name) for name in WHOLE_NUMBERS[:4])
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
    variances = model._inlier_variances
    if variances is not None and (
        variances.shape != (D,) or variances.dtype.kind != "f" or not np.all(np.isfinite(variances))
    ):
        raise ModelFileError("the variances of the inliers do not fit the model.")
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


# -- tables ----------------------------------------------------------------------------------------


def _check_tables(model: SubspaceEstimator, names: Sequence[str]) -> None:
    """Refuse tables without their entries, or with impossible ones.

    Files of earlier versions lack some of them, and a fit may have no use for others.
    """
    for name in names:
        table: Any = getattr(model, name, None)
        if table is None and (name not in ALWAYS_THERE or not hasattr(model, name)):
            continue
        entries, sound, message = TABLES[name]
        if not (isinstance(table, dict) and set(table) == set(entries) and sound(model, **table)):
            raise ModelFileError(message)


def _profile(_: Any, scales: Array, codimensions: Array, contrast: Array) -> bool:
    fits = contrast.shape == (len(codimensions), len(scales)) and len(scales) > 1
    return fits and _grows(scales) and _grows(codimensions) and _are_amounts(contrast)


def _odds(_: Any, distance: Array, log_odds: Array, threshold: float, fall: float) -> bool:
    fits = distance.shape == log_odds.shape and threshold >= 0 and 0 <= fall < math.inf
    rises = np.all(np.isfinite(log_odds)) and np.all(np.diff(log_odds) >= 0)
    return fits and _grows(distance) and bool(rises)


def _record(_: Any, edges: Array, counts: Array, norms: Array, **numbers: Any) -> bool:
    fits = edges.shape == counts.shape and len(edges) > 1 and norms.ndim == 1
    real = all(isinstance(n, int | float) and 0 <= n < math.inf for n in numbers.values())
    return fits and real and _grows(edges) and _are_amounts(counts) and _are_amounts(norms)


def _normals_error(
    model: SubspaceEstimator, along: Array, across: Array, offset: float, free: float
) -> bool:
    fits = (
        free >= 1
        and along.shape == (model.n_components_,)
        and across.shape == (model.codimension_,)
    )
    return fits and all(_are_amounts(np.asarray(A, dtype=float)) for A in (along, across, offset))


def _reference(model: SubspaceEstimator, centre: Array, **numbers: Any) -> bool:
    real = all(isinstance(n, float) and 0 < n < math.inf for n in numbers.values())
    return real and centre.shape == (model.n_features_in_,) and bool(np.all(np.isfinite(centre)))


def _spread(
    model: SubspaceEstimator, mean: Array, axes: Array, root: Array, relative: Any, **others: Any
) -> bool:
    arrays = mean, axes, root, others.pop("normals"), others.pop("location")
    real = all(isinstance(n, float) and 0 < n < math.inf for n in others.values())
    (D, k), finite = axes.shape, all(np.all(np.isfinite(A)) for A in arrays)
    fits = mean.shape == (D,) == (model.n_features_in_,) and root.shape == (k, k)
    fits &= arrays[3].shape[1:] == (D,) == arrays[4].shape and isinstance(relative, bool)
    return bool(real and finite and fits and np.all(np.diag(root) > 0))


def _law(model: SubspaceEstimator, variances: Array, noise: float) -> bool:
    fits = variances.shape == (model.n_components_,) and bool(np.all(variances > 0))
    return fits and bool(np.all(np.isfinite(variances))) and 0 < noise < math.inf


def _history(_: Any, stages: Any, n_steps: Array, **steps: Array) -> bool:
    fits = _is_tuple_of_text(stages) and n_steps.shape == (len(stages),)
    return (
        fits
        and n_steps.dtype.kind == "i"
        and bool(np.all(n_steps >= 0))
        and all(values.shape == (n_steps.sum(),) for values in steps.values())
    )


def _stream(model: SubspaceEstimator, **state: Any) -> bool:
    return Stream.from_state(**state).is_sound(model.n_features_in_)


TABLES: dict[str, tuple[Sequence[str], Callable[..., bool], str]] = {
    "profile_": (
        ("scales", "codimensions", "contrast"),
        _profile,
        "profile_ is not a table of scales, codimensions and contrasts.",
    ),
    "_outlier_odds": (
        OutlierOdds._fields,
        _odds,
        "the odds of outliers are not a table of growing numbers.",
    ),
    "_distance_record": (
        DistanceRecord._fields,
        _record,
        "the counts of the distances are not a table of growing distances.",
    ),
    "_normals_error": (
        NormalsError._fields,
        _normals_error,
        "the uncertainty of the normals does not fit the model.",
    ),
    "_reference": (
        Reference._fields,
        _reference,
        "the centre and scale of the rows do not fit the model.",
    ),
    "_spread": (Spread._fields, _spread, "the scatter of the rows does not fit the model."),
    "_law": (("variances", "noise"), _law, "the variances of the inliers do not fit the model."),
    "_stream": (
        [one.name for one in fields(Stream)],
        _stream,
        "what partial_fit goes on with does not fit the model.",
    ),
    "history_": (History._fields, _history, "history_ has steps that do not add up."),
}
ALWAYS_THERE = {"_outlier_odds", "history_"}  # in every model of this version


def _grows(values: Array) -> bool:
    """Whether these are positive finite numbers, each larger than the one before."""
    fits = values.shape == (len(values),) and len(values) > 0 and values[0] > 0
    return bool(fits and np.all(np.isfinite(values)) and np.all(np.diff(values) > 0))


def _are_amounts(values: Array) -> bool:
    return bool(np.all(np.isfinite(values)) and np.all(values >= 0))


def _is_tuple_of_text(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(item, str) for item in value)

"""Pipelines of scalers and a method: what they do to columns, in one affine map.

A scaler maps every column by itself, z = (x - centre) / scale. So do several, one after the other,
and a subspace of the scaled rows is one of the rows themselves, in other units.
"""

from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from perpend._typing import Array
from perpend.estimator import SubspaceEstimator
from perpend.exceptions import InputError
from perpend.rows.kinds import to_numpy
from perpend.standardizer import RobustStandardizer

SCALERS = (RobustStandardizer, StandardScaler, RobustScaler, MinMaxScaler, MaxAbsScaler)


class Scaled(NamedTuple):
    """A fitted method, and the scalers before it: it sees (x - centre) / scale."""

    model: SubspaceEstimator
    centre: Array  # (D,)
    scale: Array  # (D,)
    is_pipeline: bool
    names: Array | None  # (D,) of the columns, if they are known
    scalers: list[str]  # as code

    @property
    def point(self) -> Array:
        """A point on the subspace, in the data's own units."""
        return self.centre + self.scale * to_numpy(self.model.location_).astype(float)


def near_subspace(scaled: Scaled, X: Array, labels: Array) -> Array:
    """Return which rows are near the subspace: the inliers, unless labels count more than that.

    With ``outliers="both"`` rows far out within the subspace are outliers, and those that are near
    all others are not, on the subspace or off it.
    """
    model = scaled.model
    if getattr(model, "outliers", "across") != "both":
        return np.asarray(labels == 1)
    distance = to_numpy(model._across((X - scaled.centre) / scaled.scale))
    return np.asarray(distance <= model._outlier_odds["threshold"])


def opened(model: Any) -> Scaled:
    """Return a fitted method with the scalers of its pipeline, or say what is in the way."""
    all_steps = steps(model)
    last = all_steps[-1][1] if all_steps else model
    if not isinstance(last, SubspaceEstimator):
        raise InputError(
            f"model is a {type(last).__name__}; expected a fitted method of perpend, or a pipeline "
            "of scalers whose last step is one."
        )
    check_is_fitted(last)
    centre, scale = np.zeros(last.n_features_in_), np.ones(last.n_features_in_)
    for name, step in all_steps[:-1]:
        m, s = affine_map(name, step)
        # ((x - centre) / scale - m) / s = (x - (centre + scale m)) / (scale s)
        centre, scale = centre + scale * m, scale * s
    first = all_steps[0][1] if all_steps else last
    names = getattr(first, "feature_names_in_", getattr(last, "feature_names_in_", None))
    code = [str(step) for _, step in all_steps[:-1]]
    return Scaled(last, centre, scale, isinstance(model, Pipeline), names, code)


def steps(model: Any) -> list[tuple[str, Any]]:
    """Return the steps of a pipeline, also of those inside it; a single method is one step."""
    if not isinstance(model, Pipeline):
        return [("", model)]
    found = []
    for name, step in model.steps:
        if isinstance(step, Pipeline):
            found += steps(step)
        elif step is not None and step != "passthrough":
            found.append((name, step))
    return found


def affine_map(name: str, step: Any) -> tuple[Any, Any]:
    """Return the centre and the scale of a scaler."""
    if not isinstance(step, SCALERS) or getattr(step, "clip", False):
        kinds = ", ".join(kind.__name__ for kind in SCALERS)
        raise InputError(
            f'The step "{name}" of the pipeline ({step}) does more than scale columns. Known '
            f"scalers are {kinds}, without clip. Pass the last step alone, pipeline[-1], to work "
            "in the units that it sees."
        )
    check_is_fitted(step)
    if isinstance(step, MinMaxScaler):  # z = x * scale_ + min_
        return -step.min_ / step.scale_, 1 / step.scale_
    centre = step.mean_ if isinstance(step, StandardScaler) and step.with_mean else None
    centre, scale = getattr(step, "center_", centre), step.scale_
    return 0.0 if centre is None else centre, 1.0 if scale is None else scale

"""Pipelines of scalers and a method: what they do to columns, in one affine map.

A scaler maps every column by itself, z = (x - centre) / scale. So do several, one after the other,
and a subspace of the scaled rows is one of the rows themselves, in other units. A ColumnTransformer
of scalers does the same and may put the columns in another order.
"""

from collections.abc import Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    RobustScaler,
    StandardScaler,
)
from sklearn.utils.validation import check_is_fitted

from perpend._typing import Array
from perpend.estimator import SubspaceEstimator
from perpend.exceptions import InputError
from perpend.rows.kinds import to_numpy
from perpend.standardizer import RobustStandardizer

IMPUTERS = (SimpleImputer, KNNImputer)
SCALERS = (RobustStandardizer, StandardScaler, RobustScaler, MinMaxScaler, MaxAbsScaler)


class Scaled(NamedTuple):
    """A fitted method, and the scalers before it: it sees (x[order] - centre) / scale."""

    model: SubspaceEstimator
    centre: Array  # (D,) in the order of the method
    scale: Array  # (D,)
    is_pipeline: bool
    names: Array | None  # (D,) of the columns, if they are known
    scalers: list[str]  # as code
    order: Array  # (D,) which column of the data each column of the method is

    @property
    def point(self) -> Array:
        """A point on the subspace, in the data's own units and order."""
        return self.back(self.centre + self.scale * to_numpy(self.model.location_).astype(float))

    @property
    def units(self) -> Array:
        """The scale (D,) of each column of the data."""
        return self.back(self.scale)

    def seen(self, X: Array) -> Array:
        """Return the rows as the method sees them."""
        return np.asarray((np.take(X, self.order, axis=1) - self.centre) / self.scale)

    def back(self, A: Array) -> Array:
        """Return an array (..., D) in the order of the data's columns."""
        return np.asarray(np.take(A, np.argsort(self.order), axis=-1))


def near_subspace(scaled: Scaled, X: Array, labels: Array) -> Array:
    """Return which rows are near the subspace: the inliers, unless labels count more than that.

    With ``outliers="both"`` rows far out within the subspace are outliers, and those that are near
    all others are not, on the subspace or off it.
    """
    model = scaled.model
    if getattr(model, "outliers", "across") != "both":
        return np.asarray(labels == 1)
    distance = to_numpy(model._across(scaled.seen(X)))
    return np.asarray(distance <= model._outlier_odds["threshold"])


def opened(model: Any, *, any_order: bool = False) -> Scaled:
    """Return a fitted method with the scalers of its pipeline, or say what is in the way.

    The order of the columns must stay as it is, unless `any_order` may come.
    """
    all_steps = steps(model)
    last = all_steps[-1][1] if all_steps else model
    if not isinstance(last, SubspaceEstimator):
        raise InputError(
            f"model is a {type(last).__name__}; expected a fitted method of perpend, or a pipeline "
            "of scalers whose last step is one."
        )
    check_is_fitted(last)
    D = last.n_features_in_
    centre, scale, order = np.zeros(D), np.ones(D), np.arange(D)
    for name, step in all_steps[:-1]:
        p = None
        if isinstance(step, ColumnTransformer):
            m, s, p = _of_columns(name, step)
        else:
            m, s = affine_map(name, step)
        # ((x - centre) / scale - m) / s = (x - (centre + scale m)) / (scale s)
        centre, scale = centre + scale * m, scale * s
        if p is not None:
            centre, scale, order = centre[p], scale[p], order[p]
    if not any_order and np.any(np.diff(order) != 1):
        raise InputError(
            "The ColumnTransformer of the pipeline changes the order of the columns, which only "
            "perpend.equations takes. Name its columns in the order of the data."
        )
    first = all_steps[0][1] if all_steps else last
    names = getattr(first, "feature_names_in_", getattr(last, "feature_names_in_", None))
    code = [str(step) for _, step in all_steps[:-1]]
    return Scaled(last, centre, scale, isinstance(model, Pipeline), names, code, order)


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
    if isinstance(step, IMPUTERS):
        raise InputError(
            f'The step "{name}" of the pipeline ({step}) fills missing values, which no scaling '
            'of columns does. Leave it out and use DPCP(missing="mask"), which takes rows by their '
            "observed values; or fill the rows before the pipeline."
        )
    if not isinstance(step, SCALERS) or getattr(step, "clip", False):
        kinds = ", ".join(kind.__name__ for kind in SCALERS)
        raise InputError(
            f'The step "{name}" of the pipeline ({step}) does more than scale columns. Known '
            f"scalers are {kinds}, without clip, also in a ColumnTransformer. Pass the last step "
            "alone, pipeline[-1], to work in the units that it sees."
        )
    check_is_fitted(step)
    if isinstance(step, MinMaxScaler):  # z = x * scale_ + min_
        return -step.min_ / step.scale_, 1 / step.scale_
    centre = step.mean_ if isinstance(step, StandardScaler) and step.with_mean else None
    centre, scale = getattr(step, "center_", centre), step.scale_
    return 0.0 if centre is None else centre, 1.0 if scale is None else scale


def _of_columns(name: str, step: ColumnTransformer) -> tuple[Array, Array, Array]:
    """Return centre and scale of a transformer of columns, and which of them it returns in turn."""
    check_is_fitted(step)
    D, names = step.n_features_in_, list(getattr(step, "feature_names_in_", ()))
    centre, scale, order = np.zeros(D), np.ones(D), []
    for inner, one, key in step.transformers_:
        which = _numbers_of(key, names, D)
        if one == "drop" or not len(which):
            continue
        order += which
        keeps = one == "passthrough" or (isinstance(one, FunctionTransformer) and one.func is None)
        for _, scaler in [] if keeps else steps(Pipeline([(inner, one)])):
            m, s = affine_map(f"{name}: {inner}", scaler)
            centre[which], scale[which] = centre[which] + scale[which] * m, scale[which] * s
    if sorted(order) != list(range(D)):
        odd = next(j for j in range(D) if order.count(j) != 1)
        what = "leaves out" if odd not in order else "takes more than once"
        raise InputError(
            f'The step "{name}" of the pipeline {what} column {names[odd] if names else odd}. Use '
            'every column once, with remainder="passthrough", and choose columns before the '
            "pipeline."
        )
    return centre, scale, np.array(order)


def _numbers_of(key: Any, names: list[str], D: int) -> list[int]:
    """Return the numbers of columns by what a ColumnTransformer calls them."""
    if isinstance(key, slice):
        ends = [names.index(one) if isinstance(one, str) else one for one in (key.start, key.stop)]
        last = None if ends[1] is None else ends[1] + isinstance(key.stop, str)  # names: inclusive
        return list(range(D))[ends[0] : last : key.step]
    some: Sequence[Any] = [key] if isinstance(key, str | Integral) else list(key)
    if len(some) and all(isinstance(one, bool | np.bool_) for one in some):
        return [int(j) for j in np.flatnonzero(some)]
    return [names.index(one) if isinstance(one, str) else int(one) % D for one in some]

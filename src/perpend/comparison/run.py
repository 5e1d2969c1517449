"""One method after the other on the same rows; if one fails, its record says why."""

import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from perpend import metrics
from perpend._json import plain
from perpend._typing import Array
from perpend.comparison.given import FIRST, NOT_RUN, Entry, Truth, has_parameter, needs_dimension
from perpend.comparison.pca import PCABaseline
from perpend.comparison.result import ComparedMethod
from perpend.exceptions import PerpendError
from perpend.rows.kinds import to_numpy
from perpend.structure.constants import SURE


class TimeIsUp(Exception):  # noqa: N818
    """A fit took longer than its limit."""


class Run:
    """What all methods share, and what the first ones have found."""

    def __init__(
        self,
        X: Array,
        truth: Truth,
        parameters: dict[str, Any],
        time_limit: float | None,
        size: int | None,
    ) -> None:
        self.X, self.truth, self.parameters, self.time_limit = X, truth, parameters, time_limit
        self.size, self.for_all = size, size is not None
        self.given_by = "you" if self.for_all else None
        self.share: float | None = None  # of outliers, by the first method with labels
        self.found_by = ""
        self.affine = False  # the subspace of that size, or the first one

    def learn(self, record: ComparedMethod) -> None:
        """Keep the share of outliers for PCA, and a size for those who must be given it.

        That is DPCP's, or else the first that a method is sure of which was not given it.
        """
        if self.share is None:
            self.share, self.affine = record.outlier_share, bool(record.affine)
        sure = (record.confidence or 0.0) >= SURE
        chosen = not record.given and (sure or record.method == FIRST)
        if self.size is None and record.codimension is not None and chosen:
            self.size, self.affine = record.codimension, bool(record.affine)
            self.given_by = f"{record.method} ({'' if sure else 'not '}sure)"
            self.found_by = record.method

    def record(self, name: str, entry: Entry) -> ComparedMethod:
        """Fit a method, and return its record."""
        given = needs_dimension(entry.model)
        given |= self.for_all and entry.named and has_parameter(entry.model, "codimension")
        record = ComparedMethod(method=name, given=given)
        if given and self.size is None:
            problem = f"{NOT_RUN}it needs the codimension; {FIRST} found none, and no other is sure"
            return replace(record, problem=problem)
        if given and self.size == 0 and not self.for_all:
            problem = f"{NOT_RUN}{self.found_by} found codimension 0, so there is no subspace"
            return replace(record, problem=problem)
        found: dict[str, Any] = {}
        labels: Array | None = None
        model = clone(entry.model)
        began, cpu = time.perf_counter(), time.process_time()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                self.prepare(model, named=entry.named, given=given)
                if hasattr(model, "predict") or not hasattr(model, "fit_predict"):
                    model.fit(self.X)
                else:  # labels of the fit alone, as LocalOutlierFactor has
                    labels = model.fit_predict(self.X)
            except TimeIsUp:
                found["problem"] = f"stopped: it took more than {self.time_limit:g} s"
            except Exception as error:  # noqa: BLE001  the record says what went wrong
                found = {"problem": _reason(error), "error": error}
        found |= {
            "seconds": time.perf_counter() - began,
            "cpu_seconds": time.process_time() - cpu,
            "warnings": tuple(dict.fromkeys(_texts(caught))),
        }
        if "problem" not in found:
            try:
                with warnings.catch_warnings(action="ignore"):
                    found |= self.described(model, labels)
            except Exception as error:  # noqa: BLE001  as above
                found |= {"problem": _reason(error), "error": error}
        return replace(record, **found)

    def prepare(self, model: Any, *, named: bool, given: bool) -> None:
        """Give a method what it needs and was not given."""
        wanted = dict(self.parameters) if named else {}
        if given:
            wanted["codimension"] = self.size
        alone = isinstance(model, PCABaseline)
        if named and wanted.get("affine") == "auto" and (alone or (given and not self.for_all)):
            wanted["affine"] = self.affine  # the size is that of this subspace
        if alone and named:
            wanted = {"contamination": self.share} | wanted
        if self.time_limit is not None and getattr(model, "callback", 0) is None:
            wanted["callback"] = _stopwatch(self.time_limit)
        has = model.get_params(deep=False)
        model.set_params(**{key: value for key, value in wanted.items() if key in has})

    def described(self, model: Any, labels: Array | None) -> dict[str, Any]:
        """Return what a fitted method has found, and how far it is from the truth."""
        labels, normals = getattr(model, "labels_", labels), getattr(model, "normals_", None)
        if labels is None and not isinstance(model, PCABaseline):
            labels = model.predict(self.X) if hasattr(model, "predict") else None
        labels = None if labels is None else to_numpy(labels)
        normals = None if normals is None else to_numpy(normals).astype(float)
        found: dict[str, Any] = {"model": model, "labels": labels, "normals": normals}
        for key in ("confidence", "threshold", "noise", "converged", "affine"):
            found[key] = plain(getattr(model, f"{key}_", None))
        if normals is not None:
            found |= {"codimension": len(normals), "dimension": normals.shape[1] - len(normals)}
            if self.truth.normals is not None:
                error = metrics.subspace_error(normals, self.truth.normals)
                found["subspace_error"] = error
        if labels is not None:
            outliers = int((labels == -1).sum())
            found |= {"outliers": outliers, "outlier_share": outliers / len(labels)}
        if self.truth.y is not None:
            if labels is not None:
                found["f1"] = metrics.outlier_f1(self.truth.y, labels)
            found["scores"] = scores = _scores(model, self.X)
            if scores is not None and len(np.unique(self.truth.y)) == 2:
                found["auc"] = metrics.outlier_auc(self.truth.y, scores)
        return found


def _scores(model: Any, X: Array) -> Array | None:
    """Return how normal each row is, by whatever the model has."""
    for name in ("scores_", "negative_outlier_factor_"):
        if hasattr(model, name):
            return to_numpy(getattr(model, name)).astype(float)
    for name in ("score_samples", "decision_function"):
        if hasattr(model, name):
            return to_numpy(getattr(model, name)(X)).astype(float)
    return None


def _stopwatch(limit: float) -> Callable[..., None]:
    """Return a callback that raises once the time is up."""
    end = time.perf_counter() + limit

    def watch(_: Any) -> None:
        if time.perf_counter() > end:
            raise TimeIsUp

    return watch


def _reason(error: Exception) -> str:
    """Say in one line what went wrong."""
    text = " ".join(str(error).split()) or "no details"
    if isinstance(error, MemoryError) and not isinstance(error, PerpendError):
        return f"failed: not enough memory ({text})"
    return f"failed: {'' if isinstance(error, PerpendError) else type(error).__name__ + ': '}{text}"


def _texts(caught: list[Any]) -> list[str]:
    kinds = (UserWarning, RuntimeWarning)
    return [str(one.message) for one in caught if issubclass(one.category, kinds)]

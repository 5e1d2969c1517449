"""What every method has in common: scikit-learn's estimator contract.

Validation, normalising, attributes, labels and warnings live here. A method supplies its parameters
and ``_function(rows, *, ..., rng) -> Solution``, and never sees an array of data.
"""

import warnings
from collections.abc import Callable
from inspect import signature
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    OutlierMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.extmath import svd_flip
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from perpend._typing import Array
from perpend.codimension import SURE
from perpend.exceptions import CodimensionWarning, InputError
from perpend.geometry import as_generator
from perpend.kernels import distances
from perpend.rows import RowSource, as_rows
from perpend.rows.array import row_norms
from perpend.solvers import Solution, distance_edges

__all__ = ["METHODS", "HasMethods", "Interval", "StrOptions", "SubspaceEstimator"]

METHODS: dict[str, type["SubspaceEstimator"]] = {}
"""Every method by its class name; filled as the classes are defined."""


class SubspaceEstimator(
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    OutlierMixin,
    BaseEstimator,
):
    """Base of all methods: a transformer and an outlier detector at once."""

    _function: ClassVar[Callable[..., Solution]]  # the method itself: rows in, a solution out

    normalize: bool
    threshold: Any
    contamination: float | None
    n_jobs: int | None
    random_state: Any

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "normalize": ["boolean"],
        "threshold": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        # scikit-learn's checks insist on an interval up to one half. Most of our users' rows may be
        # outliers, so any number passes here and `fit` asks for less than one.
        "contamination": [None, Interval(Real, 0, 0.5, closed="right"), Real],
        "n_jobs": [None, Integral],
        "random_state": ["random_state", np.random.Generator],
        "callback": [None, callable],
    }

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        METHODS[cls.__name__] = cls

    def _solve(self, rows: RowSource, rng: np.random.Generator) -> Solution:
        """Call the method's function with the parameters that it shares with the estimator."""
        names = set(signature(self._function).parameters) - {"rows", "rng"}
        return self._function(rows, rng=rng, **{name: getattr(self, name) for name in names})

    # -- fitting -----------------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Array, y: Any = None, sample_weight: Array | None = None) -> Self:  # noqa: ARG002
        """Find the subspace of the inliers among the rows of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight w counts like w equal rows.
        """
        X = self._checked(X, reset=True)
        if self.contamination is not None and self.threshold != "auto":
            raise InputError(
                "Both threshold and contamination are given, and each sets the threshold. "
                "Leave one of them at its default."
            )
        if self.contamination is not None and not 0 <= self.contamination < 1:
            raise InputError(
                f"contamination={self.contamination}; expected a share of outliers from 0 to 1."
            )
        weight = None
        if sample_weight is not None:
            weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        rows = as_rows(
            X, weight=weight, normalize=self.normalize, n_jobs=effective_n_jobs(self.n_jobs)
        )
        solution = self._solve(rows, as_generator(self.random_state))
        self._store(solution, rows)
        distance = (
            -self._scores(X)
            if solution.distances is None or weight is not None
            else (rows.gather(solution.distances) * rows.unit)
        )
        self.threshold_ = self._threshold(solution, rows, distance, weight)
        self.offset_ = -self.threshold_
        self.labels_ = np.where(distance <= self.threshold_, 1, -1)
        self._warn(solution)
        return self

    def _store(self, solution: Solution, rows: RowSource) -> None:
        """Turn the solution into attributes, bases as rows, in the precision of the data."""

        def as_row_basis(A: Array) -> Array:
            # The sign of a basis vector is arbitrary: make its largest entry positive.
            if A.shape[1]:
                A, _ = svd_flip(A, None, u_based_decision=True)
            return np.ascontiguousarray(A.T, dtype=rows.dtype)

        self.components_ = as_row_basis(solution.components)
        self.normals_ = as_row_basis(solution.normals)
        self.n_components_, self.codimension_ = len(self.components_), len(self.normals_)
        self.location_ = np.zeros(rows.shape[1], rows.dtype)
        self.intercept_ = np.zeros(self.codimension_, rows.dtype)
        self.directions_ = np.ascontiguousarray(solution.directions.T, dtype=rows.dtype)
        self.singular_values_ = solution.singular_values.astype(rows.dtype)
        self.n_starts_ = len(self.directions_)
        self.confidence_ = solution.confidence
        self.evidence_ = solution.evidence
        self.noise_ = _noise(solution, rows)
        self.objective_ = solution.objective * rows.unit
        self.n_iter_ = max(1, solution.n_iter)
        self.converged_ = solution.converged
        self._n_features_out = self.n_components_

    def _threshold(
        self, solution: Solution, rows: RowSource, distance: Array, weight: Array | None
    ) -> float:
        if self.contamination is not None:
            kept = 1 - self.contamination
            return float(np.quantile(distance, kept, method="inverted_cdf", weights=weight))
        if self.threshold != "auto":
            return float(self.threshold)
        if solution.groups is not None:
            return solution.groups.threshold * rows.unit
        return float(distance_edges(float(rows.norms[-1]), rows.dtype)[0]) * rows.unit

    def _warn(self, solution: Solution) -> None:
        if not solution.converged:
            warnings.warn(
                f"{type(self).__name__} did not come to rest ({self.n_iter_} iterations), so the "
                "subspace may be inexact. Raise max_iter, or tol where the step rule has one.",
                ConvergenceWarning,
                stacklevel=3,
            )
        if solution.doubts:
            reasons = "; ".join(solution.doubts)
            warnings.warn(
                f"codimension {self.codimension_} is not sure (confidence "
                f"{self.confidence_:.2f}): {reasons}.",
                CodimensionWarning,
                stacklevel=3,
            )

    # -- using -------------------------------------------------------------------------------------

    def transform(self, X: Array) -> Array:
        """Return the coordinates of the rows in the subspace, (n_samples, n_components_)."""
        X = self._checked(X, reset=False)
        return (X - self.location_) @ self.components_.T

    def inverse_transform(self, X: Array) -> Array:
        """Return the points of the subspace that have these coordinates."""
        check_is_fitted(self)
        X = np.asarray(X)
        if X.ndim != 2 or X.shape[1] != self.n_components_:
            raise InputError(
                f"X has shape {X.shape}; expected (n_samples, {self.n_components_}): coordinates "
                "in the subspace, as transform returns them."
            )
        return X @ self.components_ + self.location_

    def distance(self, X: Array) -> Array:
        """Return the Euclidean distance of each row to the subspace, in the data's own units."""
        X = self._checked(X, reset=False)
        return self._relative_distance(X) * row_norms(X)

    def score_samples(self, X: Array) -> Array:
        """Return minus the distance that decides the labels; larger is more normal."""
        return self._scores(self._checked(X, reset=False))

    def decision_function(self, X: Array) -> Array:
        """Return `score_samples` minus `offset_`: not negative for inliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Array, threshold: float | None = None) -> Array:
        """Return +1 for inliers and -1 for outliers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        threshold : float, optional
            Use this threshold instead of the fitted one; no refit is needed.
        """
        scores = self.score_samples(X)
        limit = self.threshold_ if threshold is None else _checked_threshold(threshold)
        return np.where(-scores <= limit, 1, -1)

    def summary(self) -> str:
        """Return the answer in a few lines of text."""
        check_is_fitted(self)
        n, outliers = len(self.labels_), int(np.sum(self.labels_ == -1))
        sure = "sure" if self.confidence_ >= SURE else "not sure"
        return "\n".join(
            [
                f"subspace    dimension {self.n_components_}, codimension {self.codimension_}",
                f"confidence  {self.confidence_:.2f} ({sure})",
                f"outliers    {outliers} of {n} rows ({outliers / n:.1%})",
                f"threshold   {self.threshold_:.3g}",
                f"noise       {self.noise_:.3g}",
            ]
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to a file that `perpend.load` reads; no pickle is involved."""
        from perpend.persistence import save

        check_is_fitted(self)
        save(self, path)

    # -- inner workings ----------------------------------------------------------------------------

    def _scores(self, X: Array) -> Array:
        relative = self._relative_distance(X)
        return -relative if self.normalize else -relative * row_norms(X)

    def _relative_distance(self, X: Array) -> Array:
        """Return ||N (x / ||x||)||, the sine of the angle to the subspace; 0 for zero rows."""
        rows = as_rows(X, memory_budget=0, n_jobs=effective_n_jobs(self.n_jobs))
        kept = rows.scan(distances, self.normals_.T, keep=True).kept
        assert kept is not None
        return rows.gather(kept)

    def _checked(self, X: Array, *, reset: bool) -> Array:
        """Return X as a finite float array of the right width, or say what is wrong and where."""
        if not reset:
            check_is_fitted(self)
        try:
            checked = validate_data(
                self,
                X,
                reset=reset,
                dtype=[np.float64, np.float32],
                ensure_all_finite=False,
                ensure_min_samples=2 if reset else 1,
            )
        except ValueError as error:
            if "could not convert" in str(error):
                raise InputError(_first_text(X)) from error
            if "Complex data" in str(error):
                raise InputError(
                    "Complex data not supported: X has complex entries. Use its real part, or put "
                    "real and imaginary parts side by side as columns."
                ) from error
            raise
        bad = ~np.isfinite(checked)
        if bad.any():
            raise InputError(self._where_not_finite(checked, bad))
        return checked

    def _where_not_finite(self, X: Array, bad: Array) -> str:
        row, column = np.argwhere(bad)[0]
        names = getattr(self, "feature_names_in_", None)
        name = column if names is None else f'"{names[column]}"'
        kind = "NaN" if np.isnan(X[row, column]) else "inf"
        return (
            f"Input X contains {kind}: {int(bad.sum())} entries in {int(bad.any(axis=1).sum())} "
            f"rows are NaN or inf (first: row {row}, column {name}). Drop these rows or columns, "
            "or impute them first."
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _noise(solution: Solution, rows: RowSource) -> float:
    """Return the expected norm of the inliers' noise; 0 where they are exact.

    The noise is s in every coordinate, so s sqrt(D) in all. The fit has turned towards the noise of
    its N rows and hides the share d / N of it. Unit rows were u + e before they were scaled to norm
    one, which divided the noise by sqrt(1 + |e|^2).
    """
    groups = solution.groups
    if groups is None or groups.scale <= groups.edges[1]:
        return 0.0
    hidden = solution.components.shape[1] / (groups.share * groups.counts.sum())
    noise2 = groups.scale**2 * rows.shape[1] / max(1 - hidden, 0.1)
    if len(rows.norms) == 1:
        noise2 /= max(1 - noise2, 0.1)
    return float(np.sqrt(noise2)) * rows.unit


def _checked_threshold(threshold: float) -> float:
    if not (isinstance(threshold, Real) and threshold >= 0):
        raise InputError(f"threshold={threshold!r}; expected a number that is not negative.")
    return float(threshold)


def _first_text(X: Any) -> str:
    """Say where the first entry stands that is not a number."""
    table = np.asarray(X, dtype=object)
    for position, entry in np.ndenumerate(table):
        try:
            float(entry)
        except ValueError:
            place = ", ".join(str(int(i)) for i in position)
            return (
                f"could not convert string to float: X[{place}] is {entry!r}. "
                "Encode text as numbers, or drop that column."
            )
    return "could not convert X to an array of numbers."

"""Columns in comparable units, whatever the outliers."""

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    check_is_fitted,
    validate_data,
)

from perpend._docs import OF_ROWS, explained
from perpend._typing import Array
from perpend.rows.kinds import is_dask, is_lazy, stand_in, text_named
from perpend.rows.lazy import Computed
from perpend.rows.quartiles import column_spread
from perpend.rows.stored import floats_for

__all__ = ["RobustStandardizer"]

QUARTILES_OF_GAUSSIAN = 1.3489795003921634  # interquartile range of a standard deviation of one


@explained(OF_ROWS)
class RobustStandardizer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Subtract each column's median, and divide by a robust standard deviation.

    A subspace depends on the units of the columns: a column in millimetres counts a thousand times
    as much as one in metres. This puts all columns into comparable units first; outliers have
    hardly any influence. The scale of a column is

    1. its interquartile range over 1.349, which is the standard deviation of a Gaussian column;
    2. if the quartiles are equal, as in a column that is mostly zero, the standard deviation;
    3. if that is zero, too, 1: a constant column becomes zero.

    If the quartiles are equal, scikit-learn's ``RobustScaler`` leaves the column as it is.

    Parameters
    ----------
    with_centering : bool, default=True
        Whether to subtract the medians. Without, a subspace through the origin stays one; then
        `DPCP` needs no ``affine=True``.

    Attributes
    ----------
    center_ : array of shape (n_features,)
        The medians, or zeros without centering.
    scale_ : array of shape (n_features,)
        The scales.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features,)
        If X has names for its columns, all of them text.

    See Also
    --------
    perpend.equations : The relations that `DPCP` finds in a pipeline, in the units of the data.

    Notes
    -----
    NaN stands for a missing value, as in scikit-learn's scalers: the fit leaves it out, and
    `transform` keeps it.

    Rows of :func:`perpend.open_rows` are read twice for their exact quartiles, and standardised
    whenever they are read. The blocks of a Dask array stay on the workers, and `transform` returns
    a lazy Dask array.

    Examples
    --------
    >>> import numpy as np
    >>> from perpend import RobustStandardizer
    >>> X = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [4.0, 0.0], [500.0, 8.0]])
    >>> RobustStandardizer().fit_transform(X).round(2)
    array([[ -1.35,   0.  ],
           [ -0.67,   0.  ],
           [  0.  ,   0.  ],
           [  0.67,   0.  ],
           [335.22,   2.5 ]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"with_centering": ["boolean"]}

    def __init__(self, *, with_centering: bool = True) -> None:
        self.with_centering = with_centering

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: Array, y: Any = None) -> Self:  # noqa: ARG002
        """Learn the medians and the scales."""
        self._validate_params()
        named = None
        if is_dask(X):
            from perpend.rows.dask import dask_rows

            named, X = X._meta, dask_rows(X)
        if is_lazy(X):
            self._checked(stand_in(X), reset=True)
            if named is not None:
                _check_feature_names(self, named, reset=True)
            (low, self.center_, high), deviation = column_spread(X)
            scale = np.where(high > low, (high - low) / QUARTILES_OF_GAUSSIAN, deviation)
            self.scale_ = np.where(scale > 0, scale, 1.0)
        else:
            X = self._checked(X, reset=True)
            columns = [_centre_and_scale(X[:, j]) for j in range(X.shape[1])]
            self.center_, self.scale_ = (np.array(values) for values in zip(*columns, strict=True))
        if not self.with_centering:
            self.center_ = np.where(np.isnan(self.center_), np.nan, 0.0)
        return self

    def transform(self, X: Array) -> Array:
        """Return the columns in units of their scales, about their medians.

        Returns
        -------
        array of shape (n_samples, n_features)
        """
        return self._each(_scaled, X)

    def inverse_transform(self, X: Array) -> Array:
        """Return the columns in their own units.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            As `transform` returns it.

        Returns
        -------
        array of shape (n_samples, n_features)
        """
        return self._each(_unscaled, X)

    def _each(self, function: Callable[..., Array], X: Any) -> Any:
        """Return what a function gives for the rows: at once, or where they are read."""
        check_is_fitted(self)
        if is_dask(X):
            from perpend.rows.dask import as_dask_array, mapped

            named, X = X._meta, as_dask_array(X)
            if X.shape[1] == self.n_features_in_:
                _check_feature_names(self, named, reset=False)
            _check_n_features(self, np.empty((0, X.shape[1])), reset=False)
            return mapped(function, X, self.center_, self.scale_)
        if is_lazy(X):
            self._checked(stand_in(X), reset=False)
            return Computed(X, function, self.center_, self.scale_, n_features=X.shape[1])
        return function(self._checked(X, reset=False), self.center_, self.scale_)

    def _checked(self, X: Array, *, reset: bool) -> Array:
        with text_named(X):
            return validate_data(
                self,
                X,
                reset=reset,
                dtype=[np.float64, np.float32],
                ensure_all_finite="allow-nan",
            )


def _scaled(rows: Array, centre: Array, scale: Array) -> Array:
    X = np.array(rows, floats_for(rows.dtype, "X"))  # a copy; blocks may hold integers
    X -= centre
    X /= scale
    return X


def _unscaled(rows: Array, centre: Array, scale: Array) -> Array:
    X = np.array(rows, floats_for(rows.dtype, "X"))
    X *= scale
    X += centre
    return X


def _centre_and_scale(column: Array) -> tuple[float, float]:
    x = column[~np.isnan(column)].astype(float)
    if not len(x):
        return np.nan, 1.0  # all of it is missing, and stays so
    low, centre, high = np.quantile(x, [0.25, 0.5, 0.75])
    x = x - centre  # exactly zero in a constant column
    largest = float(np.max(np.abs(x)))
    if high > low:
        return float(centre), float(high - low) / QUARTILES_OF_GAUSSIAN
    # in units of the largest value no square over- or underflows
    return float(centre), largest * float(np.std(x / largest)) if largest > 0 else 1.0

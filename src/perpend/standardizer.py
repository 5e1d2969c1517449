"""Columns in comparable units, whatever the outliers."""

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from perpend._typing import Array

__all__ = ["RobustStandardizer"]

QUARTILES_OF_GAUSSIAN = 1.3489795003921634  # interquartile range of a standard deviation of one


class RobustStandardizer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Subtract each column's median, and divide by a robust standard deviation.

    A subspace depends on the units of the columns: a column in millimetres counts a thousand times
    as much as one in metres. This puts all columns into comparable units first; outliers have
    hardly any influence. The scale of a column is

    1. its interquartile range over 1.349, which is the standard deviation of a Gaussian column;
    2. where the quartiles are equal, as in a column that is mostly zero, the standard deviation;
    3. where that is zero, too, 1: a constant column becomes zero.

    scikit-learn's ``RobustScaler`` leaves columns as they are where the quartiles are equal.

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
        """Learn the medians and the scales.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self : object
        """
        self._validate_params()
        X = self._checked(X, reset=True)
        columns = [_centre_and_scale(X[:, j]) for j in range(X.shape[1])]
        self.center_, self.scale_ = (np.array(values) for values in zip(*columns, strict=True))
        if not self.with_centering:
            self.center_ = np.where(np.isnan(self.center_), np.nan, 0.0)
        return self

    def transform(self, X: Array) -> Array:
        """Return the columns in units of their scales, about their medians.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        X = self._checked(X, reset=False, copy=True)
        X -= self.center_
        X /= self.scale_
        return X

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
        check_is_fitted(self)
        X = self._checked(X, reset=False, copy=True)
        X *= self.scale_
        X += self.center_
        return X

    def _checked(self, X: Array, *, reset: bool, copy: bool = False) -> Array:
        return validate_data(
            self,
            X,
            reset=reset,
            copy=copy,
            dtype=[np.float64, np.float32],
            ensure_all_finite="allow-nan",
            force_writeable=copy,
        )


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

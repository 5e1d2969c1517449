"""scikit-learn's PCA with the interface of a method, for comparisons."""

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.decomposition import PCA
from sklearn.utils.validation import check_is_fitted

from perpend._capabilities import Capabilities
from perpend._docs import OF_ROWS, explained
from perpend._typing import Array
from perpend._validation import checked
from perpend.exceptions import InputError
from perpend.geometry import complement
from perpend.rows.kinds import computing_on, to_numpy


@explained(OF_ROWS)
class PCABaseline(OutlierMixin, BaseEstimator):
    """The subspace with the least sum of squared distances, by `sklearn.decomposition.PCA`.

    It is what robust methods are compared with. An affine subspace passes through the mean of the
    rows. A linear one passes through the origin: its components are those of the rows, scaled to
    norm one, together with their mirror images.

    Parameters
    ----------
    codimension : int, optional
        Number of normals; 1 if neither this nor `n_components` is given.
    n_components : int, optional
        The dimension, instead of the codimension.
    normalize : bool, default=True
        Whether rows are scaled to norm one, unless the subspace is affine.
    affine : bool, default=False
        Whether the subspace may miss the origin.
    contamination : float, optional
        The share of rows to label as outliers: those farthest away. PCA has no threshold of its
        own, so without it there are no labels.

    Attributes
    ----------
    components_, normals_ : arrays of shape (d, n_features) and (c, n_features)
        Orthonormal rows that span the subspace and its complement.
    n_components_, codimension_ : int
    location_ : array of shape (n_features,)
        The mean of the rows, or zero.
    labels_ : array of shape (n_samples,)
        +1 for inliers and -1 for outliers; only with `contamination`.
    offset_ : float
        Rows with a smaller score are outliers.
    n_features_in_ : int

    Examples
    --------
    >>> from perpend.comparison import PCABaseline
    >>> from perpend.datasets import make_subspace
    >>> data = make_subspace(100, 0, n_features=5, codimension=2, noise=0.01, random_state=0)
    >>> PCABaseline(2).fit(data.X).components_.shape
    (3, 5)
    """

    capabilities: ClassVar[Capabilities] = Capabilities(
        solves="the least sum of squared distances",
        needs=("dimension", "share"),
        family="spectral",
        cost="n D² + D³, once",
        regime="few or no outliers",
        guarantee="The best subspace for rows with Gaussian noise and no outliers.",
        reference="Pearson 1901; scikit-learn's PCA",
        affine="centred",
        memory="n D + D²",
        time="2e-9 n D² + 2e-9 D³",
        backends=("numpy",),
        iterates=False,
    )

    def __init__(
        self,
        codimension: int | None = None,
        *,
        n_components: int | None = None,
        normalize: bool = True,
        affine: bool = False,
        contamination: float | None = None,
    ) -> None:
        self.codimension = codimension
        self.n_components = n_components
        self.normalize = normalize
        self.affine = affine
        self.contamination = contamination

    def fit(self, X: Array, y: Any = None) -> Self:  # noqa: ARG002
        """Find the principal axes of the rows."""
        X = self._checked(X, reset=True)
        (n, D), rows = X.shape, self._prepared(X)
        c = 1 if self.codimension is None else self.codimension
        d = D - c if self.n_components is None else self.n_components
        if not 0 <= d <= min(n, D):
            raise InputError(f"{d} components of {n} rows with {D} features: there are none.")
        solver = "covariance_eigh" if n >= D else "full"  # exact, both
        if not self.affine:  # in units in which products neither over- nor underflow
            rows = rows / (float(np.max(np.abs(rows))) or 1.0)
            rows = np.vstack([rows, -rows])
        found = PCA(svd_solver=solver).fit(rows)
        self.components_ = found.components_[:d]
        self.normals_ = complement(self.components_.T).T
        self.n_components_, self.codimension_, self.affine_ = d, D - d, self.affine
        self.location_ = found.mean_ if self.affine else np.zeros(D)
        if self.contamination is not None:
            scores = self.score_samples(X)
            farthest = np.argsort(scores, kind="stable")[: round(self.contamination * n)]
            self.labels_ = np.ones(n, dtype=int)
            self.labels_[farthest] = -1
            self.offset_ = float(np.min(scores[self.labels_ == 1], initial=np.inf))
        return self

    def score_samples(self, X: Array) -> Array:
        """Return minus the distances of rows from the subspace.

        Returns
        -------
        array of shape (n_samples,)
        """
        check_is_fitted(self)
        rows = self._prepared(self._checked(X, reset=False)) - self.location_
        return -np.asarray(np.linalg.norm(rows @ self.normals_.T, axis=1))

    def decision_function(self, X: Array) -> Array:
        """Return the scores minus `offset_`: negative for outliers. It needs `contamination`.

        Returns
        -------
        array of shape (n_samples,)
        """
        check_is_fitted(self, "offset_", msg="%(name)s has labels only with contamination=.")
        return self.score_samples(X) - self.offset_

    def predict(self, X: Array) -> Array:
        """Return +1 for inliers and -1 for outliers. It needs `contamination`.

        Returns
        -------
        array of int of shape (n_samples,)
        """
        return np.where(self.decision_function(X) < 0, -1, 1)

    def _checked(self, X: Any, *, reset: bool) -> Array:
        with computing_on(X, None) as place:
            return to_numpy(checked(self, X, place, reset=reset)).astype(float)

    def _prepared(self, X: Array) -> Array:
        """Return rows of norm one; those of affine subspaces as they are."""
        if self.affine or not self.normalize:
            return X
        largest = np.max(np.abs(X), axis=1, keepdims=True)
        X = X / np.where(largest > 0, largest, 1.0)
        return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0)  # zero rows stay

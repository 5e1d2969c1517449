"""A detector for PyOD: rows that are far off the subspace or far out within it."""

from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_is_fitted

from perpend._docs import OF_ROWS, explained
from perpend._typing import Array, RandomState
from perpend.exceptions import MissingExtraError
from perpend.methods.dpcp import DPCP
from perpend.standardizer import RobustStandardizer

try:
    from pyod.models.base import BaseDetector
except ImportError as error:
    raise MissingExtraError(
        "perpend.pyod needs PyOD, which is not installed. Run: pip install 'perpend[detectors]'"
    ) from error

__all__ = ["DPCPDetector"]


@explained(OF_ROWS)
class DPCPDetector(BaseDetector):
    """Rows that break the relations between columns or are far out, as a detector of PyOD.

    The score of a row is that of ``DPCP(affine=True, outliers="both")`` in robustly standardised
    columns, which the guide recommends for tables. As in all of PyOD, 0 means inlier, 1 means
    outlier, and the threshold is the quantile that `contamination` gives.

    Parameters
    ----------
    contamination : float in (0, 0.5], or an object of PyThresh
        The share of outliers; scores do not depend on it.
    estimator : a method of perpend, or a pipeline that ends with one, optional
        By default ``make_pipeline(RobustStandardizer(), DPCP(affine=True, outliers="both"))``.
    random_state : int, Generator or RandomState, optional
        That of the default estimator.

    Attributes
    ----------
    decision_scores_ : array of shape (n_samples,)
        The scores of the fitted rows.
    threshold_ : float
    labels_ : array of int of shape (n_samples,)
        0 for inliers and 1 for outliers.
    estimator_ : the fitted estimator
        It has a threshold and probabilities of its own, which need no contamination: see
        ``estimator_.predict(X)`` (+1 and -1), and `perpend.equations` for what it has found.

    Examples
    --------
    >>> from perpend.datasets import make_subspace
    >>> from perpend.pyod import DPCPDetector
    >>> data = make_subspace(180, 20, n_features=6, codimension=2, random_state=0)
    >>> detector = DPCPDetector(contamination=0.1, random_state=0).fit(data.X)
    >>> int((detector.labels_ == (data.y == -1)).sum())
    200
    """

    def __init__(
        self,
        contamination: Any = 0.1,
        estimator: Any = None,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(contamination=contamination)
        self.estimator = estimator
        self.random_state = random_state

    def fit(self, X: Array, y: Any = None) -> Self:
        """Find the subspace, and set the threshold."""
        self._set_n_classes(y)
        model = self.estimator
        if model is None:
            default = DPCP(affine=True, outliers="both", random_state=self.random_state)
            model = make_pipeline(RobustStandardizer(), default)
        self.estimator_ = clone(model).fit(X)
        self.decision_scores_ = self._scores_of(X)
        self._process_decision_scores()
        return self

    def decision_function(self, X: Array) -> Array:
        """Return the scores of the rows; larger is more abnormal.

        Returns
        -------
        array of shape (n_samples,)
        """
        check_is_fitted(self, "decision_scores_")
        return self._scores_of(X)

    def _scores_of(self, X: Array) -> Array:
        return -np.asarray(self.estimator_.score_samples(X), dtype=float)

"""Methods that label and score the rows they were fitted to, and no others.

They find no subspace, or have no map for new rows; as with scikit-learn's LocalOutlierFactor, there
is `fit_predict`, and the methods of fitted models are missing, with an error that says why.
"""

import warnings
from dataclasses import dataclass, field
from inspect import get_annotations
from numbers import Real
from typing import Any, ClassVar, Self, dataclass_transform

import numpy as np
from sklearn.base import BaseEstimator, OutlierMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval

from perpend._capabilities import Capabilities
from perpend._docs import OF_TENSORS, completed, explained
from perpend._typing import Array
from perpend._validation import SHARE, UP_TO_HALF, Count, checked, constraints_of
from perpend.rows.kinds import computing_on, to_numpy
from perpend.rows.preparation import check_powers
from perpend.solvers import Run, Status
from perpend.solvers.alm import LEAST_SINGULAR
from perpend.solvers.loop import Callback

LABELS_ONLY: dict[str, type["LabelsOnly"]] = {}
"""Every such method by its class name; filled as the classes are defined."""


OF_SUBSPACES = {
    *("predict", "score_samples", "decision_function", "outlier_probability", "explain", "score"),
    *("transform", "fit_transform", "inverse_transform", "distance", "get_feature_names_out"),
    *("plot", "report", "save", "summary", "choose", "p_value", "uncertainty", "partial_fit"),
    *("normals_", "components_", "codimension_", "location_", "intercept_", "directions_"),
    *("singular_values_", "normals_covariance_", "confidence_", "doubts_", "evidence_"),
    *("noise_", "threshold_", "structures_", "profile_"),
}
"""What methods that find a subspace have, and these do not."""


@explained(OF_TENSORS)
@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(field,))
@dataclass(eq=False, repr=False, kw_only=True)
class LabelsOnly(OutlierMixin, BaseEstimator):
    """Base of these methods; a class below declares its parameters as fields."""

    contamination: float | None = None
    callback: Callback | None = None

    capabilities: ClassVar[Capabilities] = Capabilities(
        needs=(), affine="none", out_of_sample=False, subspace=False, backends=("numpy",)
    )
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "contamination": [None, UP_TO_HALF, SHARE],
        "callback": [None, callable],
        # of those that have them
        "max_iter": [Count(1)],
        "tol": [Interval(Real, 0, None, closed="neither")],
    }

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        doc, own = vars(cls).get("__doc__"), get_annotations(cls)
        if any(name in vars(cls) for name in own if name[0] != "_"):  # else it inherits __init__
            dataclass(eq=False, repr=False, kw_only=True)(cls)
            cls.__doc__ = doc
        cls._parameter_constraints = constraints_of(cls)
        cls.__doc__ = completed(cls, ("labels_", "n_features_in_", "feature_names_in_"))
        LABELS_ONLY[cls.__name__] = cls

    def _scores(self, X: Array) -> tuple[Array, float]:
        """Return how normal each row of X (n, D) is, and the score below which it is an outlier."""
        raise NotImplementedError

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Array, y: Any = None) -> Self:  # noqa: ARG002
        """Score and label the rows of X."""
        with computing_on(X, None) as place:
            X = to_numpy(checked(self, X, place, reset=True)).astype(float)
            check_powers(float(np.max(np.abs(X))), 2, "The largest entry of X is")
            scores, offset = self._scores(X)
            if self.contamination is not None:
                offset = float(np.quantile(scores, self.contamination))
            self.offset_ = float(offset)
            self.scores_ = place.back(scores)
            self.labels_ = place.back(np.where(scores < self.offset_, -1, 1))
        return self

    def fit_predict(self, X: Array, y: Any = None) -> Array:
        """Return +1 for inliers and -1 for outliers among the rows of X.

        Returns
        -------
        array of int of shape (n_samples,)
        """
        return self.fit(X, y).labels_

    def __getattr__(self, name: str) -> Any:
        if name in OF_SUBSPACES:
            raise AttributeError(
                f"{type(self).__name__} has no {name}: it has no map for new rows and no normals, "
                "and labels and scores of the fit alone. Use fit_predict(X), labels_ and scores_; "
                "for more, a method that finds a subspace, for example DPCP."
            )
        return object.__getattribute__(self, name)  # which raises the usual error


def learn_parts(model: Any, run: Run[Any]) -> tuple[Array, float]:
    """Let a model learn the parts L and S of a table, and return scores and offset of its rows."""
    L, S, name = run.state.L, run.state.S, type(model).__name__
    model.low_rank_, model.sparse_, model.objective_ = L, S, run.state.objective
    model.n_components_ = int(np.linalg.matrix_rank(L, rtol=LEAST_SINGULAR))
    model.n_iter_, model.converged_ = run.n_steps, run.status is Status.CONVERGED
    if not model.converged_:
        text = f"{name} did not converge ({run.n_steps} iterations). Raise max_iter or tol."
        warnings.warn(text, ConvergenceWarning, stacklevel=5)
    sparse, low = np.linalg.norm(S, axis=1), np.linalg.norm(L, axis=1)
    return -sparse / np.where(sparse + low > 0, sparse + low, 1), -0.5

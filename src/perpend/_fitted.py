"""What a fitted model does with rows: coordinates, distances, labels, probabilities, explanations.

This half of the estimator reads the learned attributes and changes nothing.
"""

from dataclasses import dataclass, field
from inspect import get_annotations
from numbers import Real
from typing import Any, dataclass_transform

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    OutlierMixin,
    TransformerMixin,
)
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from perpend._blockwise import by_blocks
from perpend._docs import OF_TENSORS, explained
from perpend._groups import Groups, factor
from perpend._score import log_evidence
from perpend._spread import Spread
from perpend._typing import Array
from perpend._uncertainty import UncertainSubspace
from perpend._validation import checked, checked_weight
from perpend.exceptions import InputError, of_earlier_version
from perpend.geometry import axis_shares, namespace
from perpend.rows import as_rows, scan_distances
from perpend.rows.centred import centred_norms, centred_products
from perpend.rows.kinds import computing_on, is_lazy, is_tensor, like, per_row, to_numpy
from perpend.rows.preparation import row_norms
from perpend.structure.labels import OutlierOdds, labels, outlier_probability

JOINT_ROWS = 2**14  # at a time: they are copied to double precision


@explained(OF_TENSORS)
@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(field,))
class FittedSubspace(
    UncertainSubspace,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    OutlierMixin,
    BaseEstimator,
):
    """A transformer and an outlier detector at once, as far as it is fitted.

    A class below it declares its parameters as fields of a dataclass, each once.
    """

    normalize: bool
    missing: str
    device: Any
    n_jobs: int | None

    affine_: bool
    components_: Array
    normals_: Array
    location_: Array
    intercept_: Array
    labels_: Array
    n_components_: int
    threshold_: float
    offset_: float
    structures_: list[dict[str, Any]]
    profile_: dict[str, Array] | None
    _outlier_odds: dict[str, Any]
    _normals_error: dict[str, Any] | None  # None where the method does not refine
    _inlier_variances: Array | None  # (D,) along normals and components; None likewise
    _spread: dict[str, Any] | None  # with outliers="both"
    _law: dict[str, Any] | None  # with missing="mask"
    _distance_record: dict[str, Any] | None
    _reference: dict[str, Any] | None  # of an affine fit, for its score
    _others: list[dict[str, Any] | None]  # what differs in each of `structures_`, None if chosen

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        doc, own = vars(cls).get("__doc__"), get_annotations(cls)
        if any(name in vars(cls) for name in own if name[0] != "_"):  # else it inherits __init__
            dataclass(eq=False, repr=False, kw_only=True)(cls)
            cls.__doc__ = doc  # without one, a dataclass would give it its signature

    @by_blocks
    def transform(self, X: Array) -> Array:
        """Return the coordinates of the rows in the subspace, (n_samples, n_components_).

        Returns
        -------
        array of shape (n_samples, n_components_)
        """
        with computing_on(X, self.device) as place:
            X, _ = self._complete(checked(self, X, place, reset=False))
            if self.affine_ or is_lazy(X):
                C = to_numpy(self.components_).astype(float).T
                return place.back(centred_products(X, to_numpy(self.location_), C))
            C = like(self.components_, X).T  # (D, d)
            coordinates = X @ C
            coordinates -= like(self.location_, X) @ C  # in place: there may be many rows
            return place.back(coordinates)

    @by_blocks
    def inverse_transform(self, X: Array) -> Array:
        """Return the points of the subspace that have these coordinates.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components_)
            Coordinates, as `transform` returns them.

        Returns
        -------
        array of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        X = X if is_tensor(X) else np.asarray(X)
        if X.ndim != 2 or X.shape[1] != self.n_components_:
            raise InputError(
                f"X has shape {tuple(X.shape)}; expected (n_samples, {self.n_components_}): "
                "coordinates in the subspace, as transform returns them."
            )
        with computing_on(X, self.device) as place:
            X = place.bring(X)
            points = X @ like(self.components_, X)
            points += like(self.location_, X)
            return place.back(points)

    @by_blocks
    def distance(self, X: Array) -> Array:
        """Return the Euclidean distance of each row to the subspace, in the data's own units.

        Returns
        -------
        array of shape (n_samples,)
        """
        with computing_on(X, self.device) as place:
            X, share = self._complete(checked(self, X, place, reset=False))
            if self.affine_:
                distance = self._affine_distance(X)
            else:
                distance = self._relative_distance(X) * row_norms(X)
            return place.back(distance if share is None else np.where(share > 0, distance, np.nan))

    @by_blocks
    def score_samples(self, X: Array, groups: Any = None) -> Array:
        """Return minus the distance that decides the labels; larger is more normal.

        With ``outliers="both"`` that is the distance from the centre of the rows, in robust
        standard deviations of every direction.

        Returns
        -------
        array of shape (n_samples,)
        """
        with computing_on(X, self.device) as place:
            return place.back(self._scores(checked(self, X, place, reset=False), groups)[0])

    def score(
        self,
        X: Array,
        y: Any = None,  # noqa: ARG002
        sample_weight: Array | None = None,
    ) -> float:
        """Return the mean log-evidence of the rows for the subspace, in nats per row.

        It says how much likelier the rows are with the subspace than without any: 0 for
        codimension 0, and below 0 if the subspace makes the rows less likely. On rows that were
        not fitted it is larger for the true codimension than for others, so that
        ``GridSearchCV(DPCP(), {"codimension": range(8)})`` finds it. Compare linear models only
        with linear ones, and affine with affine: a linear subspace explains the directions of
        rows, an affine one their positions.

        Parameters
        ----------
        X : array-like or torch tensor of shape (n_samples, n_features)
            Rows that were not fitted.
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight w counts like w equal rows.

        Returns
        -------
        float
            The mean of ``log((1 - p) + p * inlier density / outlier density)``, with the share p of
            inliers and the noise of the fit; the section "How the score is made" of the user
            guide has the densities.

        Examples
        --------
        >>> from perpend import DPCP
        >>> from perpend.datasets import make_subspace
        >>> X = make_subspace(400, 400, n_features=8, codimension=3, noise=0.02, random_state=0).X
        >>> fits = [DPCP(c, random_state=0).fit(X[::2]) for c in range(6)]
        >>> scores = [model.score(X[1::2]) for model in fits]
        >>> scores.index(max(scores)), scores[0]
        (3, 0.0)
        """
        with computing_on(X, self.device) as place:
            X = checked(self, X, place, reset=False)
            weight = checked_weight(sample_weight, X, place)
            if self.missing == "mask":
                from perpend._observed import complete_only

                X, weight = complete_only(X, weight)
            return float(np.average(log_evidence(self, X), weights=weight))

    @by_blocks
    def decision_function(self, X: Array, groups: Any = None) -> Array:
        """Return `score_samples` minus `offset_`: not negative for inliers.

        Returns
        -------
        array of shape (n_samples,)
        """
        return self.score_samples(X, groups) - self.offset_

    @by_blocks
    def predict(self, X: Array, threshold: float | None = None, groups: Any = None) -> Array:
        """Return +1 for inliers and -1 for outliers.

        Parameters
        ----------
        threshold : float, optional
            Use this threshold instead of the fitted one; no refit is needed.

        Returns
        -------
        array of int of shape (n_samples,)
        """
        scores = self.score_samples(X, groups)
        limit = self.threshold_ if threshold is None else threshold
        if not (isinstance(limit, Real) and limit >= 0):
            raise InputError(f"threshold={limit!r}; expected a number that is not negative.")
        return labels(-scores, float(limit))

    @by_blocks
    def outlier_probability(self, X: Array, groups: Any = None) -> Array:
        """Return the probability that each row is an outlier, between 0 and 1.

        This is the posterior of the two-group model that the fit found in its rows: inliers with
        noise, outliers without preferred direction. It never falls as the distance that
        decides the labels grows, and is one half at the threshold of ``threshold="auto"``. A given
        `threshold` or `contamination` changes the labels but not the probabilities. With
        ``outliers="both"`` the two groups are those of the logarithms of the distances.

        Returns
        -------
        array or tensor of shape (n_samples,)
            Without noise in the fitted rows: 0 up to rounding errors, and 1 beyond. With
            codimension 0 no row is an outlier.
        """
        with computing_on(X, self.device) as place:
            X = checked(self, X, place, reset=False)
            (scores, known), times = self._scores(X, groups), 1.0
            if (together := Groups.checked(groups, len(X))) is not None:
                size = together.sizes()
                times = factor(self, size)
            if (spread := self._both) is not None:
                spread = spread if together is None else spread.of_several(size)
                p = spread.probability(np.square(to_numpy(scores)) * times)
                return place.back(self._prior(p, known).astype(to_numpy(scores).dtype))
            if not hasattr(self, "_outlier_odds"):
                raise of_earlier_version("no probabilities")
            distance = -to_numpy(scores)
            odds = OutlierOdds(**self._outlier_odds)
            p = outlier_probability(distance.astype(float), odds, times)
            return place.back(self._prior(p, known).astype(distance.dtype))

    @by_blocks
    def explain(self, X: Array) -> Array:
        """Return how much of each row's distance to the subspace each column explains.

        Entry (i, j) is the share of the squared distance of row i that would vanish if column j
        alone were changed to the value that fits the others best (a reconstruction-based
        contribution [1]_). It is between 0 and 1. If one column of an inlier is wrong, that
        column's share is the largest, and 1 apart from the noise. Several shares are near 1 if
        changing any one of these columns would be enough. If no share is large, no single column
        explains the distance. With ``outliers="both"`` it is the distance of `score_samples`.

        Returns
        -------
        array or tensor of shape (n_samples, n_features)
            0 for rows that are on the subspace. Shares of a row do not add up to 1.

        Notes
        -----
        The residual itself is no explanation: an error in one column spreads over all columns of
        the residual. With a single normal, all columns that it uses have share 1, because a change
        of any of them removes the whole distance. At least two normals are needed to tell columns
        apart.

        References
        ----------
        .. [1] Alcala, Qin (2009), Reconstruction-based contribution for process monitoring,
           Automatica 45, 1593-1600.

        Examples
        --------
        >>> from perpend import DPCP
        >>> from perpend.datasets import make_subspace
        >>> X = make_subspace(300, 100, n_features=8, codimension=4, random_state=0).X
        >>> model = DPCP(random_state=1).fit(X)
        >>> row = X[model.labels_ == 1][:1].copy()
        >>> row[0, 5] += 0.3
        >>> share = model.explain(row)[0]
        >>> int(share.argmax()), round(float(share[5]), 6)
        (5, 1.0)
        """
        with computing_on(X, self.device) as place:
            X, _ = self._complete(checked(self, X, place, reset=False), joint=True)
            if is_lazy(X):  # the result is as large
                X.check_room(len(X), "explain some rows only: explain(X[labels == -1])")
                X = X[:]
            if (spread := self._both) is not None:
                return place.back(spread.shares(to_numpy(X).astype(float)))
            xp, N, norms = namespace(X), like(self.normals_, X), row_norms(X)
            norms = xp.where(norms > 0, norms, xp.ones_like(norms))[:, None]
            heights = (X / norms) @ N.T  # rows of norm one: no square over- or underflows
            heights -= like(self.intercept_, X) / norms
            return place.back(axis_shares(heights, N))

    # -- inner workings ----------------------------------------------------------------------------

    def _complete(self, X: Array, *, joint: bool = False) -> tuple[Array, Array | None]:
        """Return rows without gaps, and the share of each that its entries can test, if any has."""
        if self.missing == "error":
            return X, None
        from perpend._observed import complete

        return complete(self, X, self._both if joint else None)

    def _scores(self, X: Array, groups: Any = None) -> tuple[Array, Array | None]:
        """Return minus the distance that decides the labels, and which are known, if not all.

        A share of the squares stands for all of them. Unknown rows are on the threshold.
        """
        X, share = self._complete(X, joint=True)
        scores = self._complete_scores(X)
        if (together := Groups.checked(groups, len(X))) is not None:
            if share is not None:
                raise InputError("X has missing entries, and groups need complete rows.")
            return like(-together.distance(to_numpy(-scores), self), X), None
        if share is None:
            return scores, None
        known = share > 0
        stretched = scores / np.sqrt(np.where(known, share, 1.0))
        return np.where(known, stretched, -self.threshold_).astype(scores.dtype), known

    def _prior(self, p: Array, known: Array | None) -> Array:
        """Return probabilities, for unknown rows the share of outliers in the fit."""
        share = 0.0 if known is None else float((to_numpy(self.labels_) == -1).mean())
        return p if known is None else np.where(known, p, share)

    def _complete_scores(self, X: Array) -> Array:
        if (spread := self._both) is None:
            return -self._across(X)
        return like(-np.concatenate(X.map(_joint, spread)) if is_lazy(X) else -_joint(X, spread), X)

    @property
    def _both(self) -> Spread | None:
        """Location and scatter of the rows, with outliers="both"."""
        stored = getattr(self, "_spread", None)  # files of earlier versions have none
        return None if stored is None else Spread(**stored)

    def _across(self, X: Array) -> Array:
        """Return the distance to the subspace: relative, if linear and rows are normalised."""
        if self.affine_:
            return self._affine_distance(X)
        relative = self._relative_distance(X)
        return relative if self.normalize else relative * row_norms(X)

    def _affine_distance(self, X: Array) -> Array:
        """Return ||N (x - location)||, the Euclidean distance to the affine subspace."""
        normals = to_numpy(self.normals_).astype(float)
        return centred_norms(X, to_numpy(self.location_), normals.T)

    def _relative_distance(self, X: Array) -> Array:
        """Return ||N (x / ||x||)||, the sine of the angle to the subspace; 0 for zero rows."""
        # Enough memory for one value per row, not for another copy of X.
        budget = None if is_lazy(X) else X.nbytes - 1
        rows = as_rows(X, memory_budget=budget, n_jobs=effective_n_jobs(self.n_jobs))
        V, U = to_numpy(self.normals_).T, to_numpy(self.components_).T
        kept = scan_distances(rows, V, U).kept
        assert kept is not None
        return per_row(rows, kept)


def _joint(X: Array, spread: Spread) -> Array:
    """Return the distances (n,) of rows from the middle of all, in deviations."""
    joint = np.empty(X.shape[0], dtype=to_numpy(X[:0]).dtype)
    for rows in gen_batches(len(joint), JOINT_ROWS):
        joint[rows] = np.sqrt(spread.squares(to_numpy(X[rows]).astype(float)))
    return joint

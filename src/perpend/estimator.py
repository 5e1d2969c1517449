"""What every method has in common: scikit-learn's estimator contract.

Normalising, attributes, labels and warnings live here; `perpend._validation` looks at what users
pass. A method supplies its parameters and ``_function(rows, *, ..., rng) -> Solution``, and never
sees an array of data.
"""

import copy
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import signature
from numbers import Integral, Real
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Self

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
from sklearn.utils.validation import check_is_fitted

from perpend._typing import Array, namespace
from perpend._validation import TorchDevice, checked, checked_threshold, checked_weight
from perpend.affine import AffineFit, fit_affine
from perpend.codimension import SURE
from perpend.exceptions import CodimensionWarning, InputError
from perpend.geometry import as_generator, axis_shares
from perpend.rows import RowSource, as_rows
from perpend.rows.centred import centred_norms, centred_products
from perpend.rows.devices import Place, computing_on
from perpend.rows.kinds import is_tensor, like, per_row, row_norms, to_numpy
from perpend.solvers import (
    OutlierOdds,
    Solution,
    distance_edges,
    exact_odds,
    outlier_odds,
    outlier_probability,
    scan_distances,
)
from perpend.solvers.distance_record import DistanceRecord
from perpend.solvers.history import Recorder

if TYPE_CHECKING:
    from perpend.plots import AnswerDisplay

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
    affine: Any
    affine_: bool
    _distance_record: dict[str, Any] | None
    threshold: Any
    contamination: float | None
    device: Any
    n_jobs: int | None
    random_state: Any

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "normalize": ["boolean"],
        "affine": ["boolean", StrOptions({"auto"})],
        "threshold": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        # scikit-learn's checks insist on an interval up to one half. Most of our users' rows may be
        # outliers, so any number passes here and `fit` asks for less than one.
        "contamination": [None, Interval(Real, 0, 0.5, closed="right"), Real],
        "device": [None, str, TorchDevice()],
        "n_jobs": [None, Integral],
        "random_state": ["random_state", np.random.Generator],
        "callback": [None, callable],
    }

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        METHODS[cls.__name__] = cls

    def _solve(
        self, rows: RowSource, rng: np.random.Generator, place: Place, recorder: Recorder
    ) -> Solution:
        """Call the method's function with the parameters that it shares with the estimator."""
        names = set(signature(self._function).parameters) - {"rows", "rng"}
        shared = {name: place.to_numpy(name, getattr(self, name)) for name in names}
        init = shared.get("init", "")
        if rows.shape[1] > self.n_features_in_ and not isinstance(init, str):
            # Lifted rows have one more coordinate: directions begin without an offset.
            shared["init"] = np.pad(np.atleast_2d(np.asarray(init, dtype=float)), [(0, 0), (0, 1)])
        if "callback" in shared:
            shared["callback"] = recorder
        return self._function(rows, rng=rng, **shared)

    # -- fitting -----------------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Array, y: Any = None, sample_weight: Array | None = None) -> Self:  # noqa: ARG002
        """Find the subspace of the inliers among the rows of X.

        Parameters
        ----------
        X : array-like or torch tensor of shape (n_samples, n_features)
            After a fit on a tensor the learned arrays are tensors on its device.
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight w counts like w equal rows.
        """
        with _all_or_nothing(self), computing_on(X, self.device) as place:
            solution = self._fit(X, sample_weight, place)
        self._warn(solution)
        return self

    def _fit(self, X: Array, sample_weight: Array | None, place: Place) -> Solution:
        X = checked(self, X, place, reset=True)
        if self.contamination is not None and self.threshold != "auto":
            raise InputError(
                "Both threshold and contamination are given, and each sets the threshold. "
                "Leave one of them at its default."
            )
        if self.contamination is not None and not 0 <= self.contamination < 1:
            raise InputError(
                f"contamination={self.contamination}; expected a share of outliers from 0 to 1."
            )
        weight = checked_weight(sample_weight, X, place)
        rng, recorder = as_generator(self.random_state), Recorder(getattr(self, "callback", None))
        self.affine_ = False
        found = None
        if self.affine:
            found = self._find_affine(X, weight, copy.deepcopy(rng), place, recorder)
            self.history_ = recorder.history._asdict()
        if found is not None and (self.affine != "auto" or found.is_needed):
            return self._finish_affine(found, X, weight, place)
        rows = as_rows(
            X,
            weight=weight,
            normalize=self.normalize,
            n_jobs=effective_n_jobs(self.n_jobs),
            fused=self._may_fuse,
        )
        of_linear = Recorder(recorder.callback)
        solution = self._solve(rows, rng, place, of_linear)
        if found is not None and found.is_better_than(solution):
            return self._finish_affine(found, X, weight, place)
        self.history_ = of_linear.history._asdict()
        if found is not None:
            solution = solution._replace(evidence={**solution.evidence, **_origin_evidence(found)})
        self._store(solution, rows.dtype, rows.unit, place)
        self.noise_ = _noise(solution, rows.unit, linear=True, unit_rows=len(rows.norms) == 1)
        distance = self._training_distance(solution, rows, X, weight)
        exact = float(distance_edges(float(rows.norms[-1]), rows.dtype)[0])
        self._label(distance, _odds(solution, exact, rows.unit), weight, place)
        if solution.groups is not None:
            inside = solution.rank - (self.n_features_in_ - self.codimension_)
            sizes = (inside, solution.rank - inside)
            record = DistanceRecord.of(solution.groups, rows.norms, *sizes, rows.unit)
            self._distance_record = record._asdict()
        return solution

    @property
    def _may_fuse(self) -> bool:
        """Whether a kernel may round to 16 bits, which costs nothing where a finish follows."""
        return getattr(self, "refine", False) is not False

    def _find_affine(
        self,
        X: Array,
        weight: Array | None,
        rng: np.random.Generator,
        place: Place,
        recorder: Recorder,
    ) -> AffineFit:
        codimension = getattr(self, "codimension", "auto")
        if codimension != "auto" and codimension > X.shape[1]:
            raise InputError(
                f"codimension={codimension} is larger than the number of features ({X.shape[1]})."
            )
        return fit_affine(
            X,
            weight,
            lambda rows: self._solve(rows, rng, place, recorder),
            normalize=self.normalize,
            refine=self._may_fuse,
            n_jobs=effective_n_jobs(self.n_jobs),
            fused=self._may_fuse,
            rng=rng,
            callback=recorder,
        )

    def _finish_affine(
        self, found: AffineFit, X: Array, weight: Array | None, place: Place
    ) -> Solution:
        """Turn an affine subspace into attributes; its distances are Euclidean."""
        evidence = {**found.solution.evidence, **_origin_evidence(found)}
        solution = found.solution._replace(evidence=evidence, rank=len(found.solution.normals))
        self.affine_ = True
        self._store(solution, to_numpy(X[:0]).dtype, 1.0, place)
        # In double precision also where the data is not: the offset may be large.
        normals = to_numpy(self.normals_).astype(float)
        self.location_ = place.back(found.location)
        self.intercept_ = place.back(normals @ found.location)
        self.noise_ = _noise(solution, 1.0, linear=False)
        odds = _odds(solution, found.floor, 1.0)
        distance = -self._scores(X)
        self._label(distance, odds, weight, place)
        if found.record is not None:
            # The polish does not look at rows that are far away.
            self._distance_record = found.record.counted(to_numpy(distance), weight)._asdict()
        return solution

    def _label(
        self, distance: Array, odds: OutlierOdds, weight: Array | None, place: Place
    ) -> None:
        """Label the rows by their distance; the odds have the threshold where none was told."""
        self._outlier_odds = odds._asdict()
        self.threshold_ = self._threshold(distance, odds.threshold, weight)
        self.offset_ = -self.threshold_
        self.labels_ = place.back(_labels(distance, self.threshold_))

    def _training_distance(
        self, solution: Solution, rows: RowSource, X: Array, weight: Array | None
    ) -> Array:
        """Return the distances that decide the labels, without a scan where they are known.

        A quantile is the distance of one row, and must be the very number that `predict` finds.
        Rows of weight zero have a scale of their own where rows are not normalised.
        """
        own_scale = weight is not None and not self.normalize
        if solution.distances is None or own_scale or self.contamination is not None:
            return -self._scores(X)
        return per_row(rows, solution.distances) * rows.unit

    def _store(self, solution: Solution, dtype: Any, unit: float, place: Place) -> None:
        """Turn the solution into attributes, bases as rows, in the precision of the data."""

        def as_given(A: Array) -> Array:
            return place.back(np.array(A, dtype=dtype, order="C"))

        def as_row_basis(A: Array) -> Array:
            # The sign of a basis vector is arbitrary: make its largest entry positive.
            if A.shape[1]:
                A, _ = svd_flip(A, None, u_based_decision=True)
            return as_given(A.T)

        self.components_ = as_row_basis(solution.components)
        self.normals_ = as_row_basis(solution.normals)
        self.n_components_, self.codimension_ = len(self.components_), len(self.normals_)
        self.location_ = as_given(np.zeros(len(solution.normals)))
        self.intercept_ = as_given(np.zeros(self.codimension_))
        self.directions_ = as_given(solution.directions.T)
        self.singular_values_ = as_given(solution.singular_values)
        self.n_starts_ = len(self.directions_)
        self.confidence_ = solution.confidence
        self.evidence_ = solution.evidence
        self.doubts_ = solution.doubts
        self.objective_ = solution.objective * unit
        self.n_iter_ = max(1, solution.n_iter)
        self.converged_ = solution.converged
        self._distance_record = None  # where all rows lie on the subspace, there is none
        self._n_features_out = self.n_components_

    def _threshold(self, distance: Array, found: float, weight: Array | None) -> float:
        if self.contamination is not None:
            kept = 1 - self.contamination
            values = to_numpy(distance)
            return float(np.quantile(values, kept, method="inverted_cdf", weights=weight))
        return found if self.threshold == "auto" else float(self.threshold)

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
        with computing_on(X, self.device) as place:
            X = checked(self, X, place, reset=False)
            if self.affine_:
                C = to_numpy(self.components_).astype(float).T
                return place.back(centred_products(X, to_numpy(self.location_), C))
            C = like(self.components_, X).T  # (D, d)
            coordinates = X @ C
            coordinates -= like(self.location_, X) @ C  # in place: there may be many rows
            return place.back(coordinates)

    def inverse_transform(self, X: Array) -> Array:
        """Return the points of the subspace that have these coordinates."""
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

    def distance(self, X: Array) -> Array:
        """Return the Euclidean distance of each row to the subspace, in the data's own units."""
        with computing_on(X, self.device) as place:
            X = checked(self, X, place, reset=False)
            if self.affine_:
                return place.back(self._affine_distance(X))
            return place.back(self._relative_distance(X) * row_norms(X))

    def score_samples(self, X: Array) -> Array:
        """Return minus the distance that decides the labels; larger is more normal."""
        with computing_on(X, self.device) as place:
            return place.back(self._scores(checked(self, X, place, reset=False)))

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
        limit = self.threshold_ if threshold is None else checked_threshold(threshold)
        return _labels(-scores, limit)

    def outlier_probability(self, X: Array) -> Array:
        """Return the probability that each row is an outlier, between 0 and 1.

        This is the posterior of the two-group model that the fit found in its rows: inliers with
        noise, outliers without preferred direction. It never falls with the distance that decides
        the labels, and is one half at the threshold that ``threshold="auto"`` takes. A given
        `threshold` or `contamination` moves the labels but not the probabilities: these say what
        the rows look like, those what you make of it.

        Parameters
        ----------
        X : array-like or torch tensor of shape (n_samples, n_features)

        Returns
        -------
        array or tensor of shape (n_samples,)
            Where there was no noise to see, 0 up to rounding errors and 1 beyond; with codimension
            0 no row is an outlier.
        """
        with computing_on(X, self.device) as place:
            scores = self._scores(checked(self, X, place, reset=False))
            if not hasattr(self, "_outlier_odds"):
                raise InputError(
                    "This model is from a file of an earlier version, which kept no probabilities. "
                    "Fit it again."
                )
            distance = -to_numpy(scores)
            p = outlier_probability(distance.astype(float), OutlierOdds(**self._outlier_odds))
            return place.back(p.astype(distance.dtype))

    def explain(self, X: Array) -> Array:
        """Return how far each column explains that a row is off the subspace.

        Entry (i, j) is the share of the squared distance of row i that would vanish if column j
        alone were changed to the value that fits the others best (a reconstruction-based
        contribution [1]_). It is between 0 and 1. If one column of an inlier is wrong, that
        column's share is the largest, and 1 but for the noise; several shares are near 1
        where a change of any of these columns would do. Where no share is large, no single column
        is to blame.

        Parameters
        ----------
        X : array-like or torch tensor of shape (n_samples, n_features)

        Returns
        -------
        array or tensor of shape (n_samples, n_features)
            0 for rows that are on the subspace. Shares of a row do not add up to 1.

        Notes
        -----
        The residual itself is no explanation: an error in one column spreads over all columns of
        it. With a single normal all columns that it uses have share 1, as each of them can make up
        for the whole distance: at least two normals are needed to tell columns apart.

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
            X = checked(self, X, place, reset=False)
            xp, N, norms = namespace(X), like(self.normals_, X), row_norms(X)
            norms = xp.where(norms > 0, norms, xp.ones_like(norms))[:, None]
            heights = (X / norms) @ N.T  # rows of norm one: no square over- or underflows
            heights -= like(self.intercept_, X) / norms
            return place.back(axis_shares(heights, N))

    def summary(self) -> str:
        """Return the answer in a few lines of text."""
        check_is_fitted(self)
        n, outliers = len(self.labels_), int((self.labels_ == -1).sum())
        sure = "sure" if self.confidence_ >= SURE else "not sure"
        return "\n".join(
            [
                f"subspace    dimension {self.n_components_}, codimension {self.codimension_}"
                + (", affine" if self.affine_ else ""),
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

    def plot(self) -> "AnswerDisplay":
        """Draw the four pictures that answer "can I trust this?".

        The gap in the directions' singular values; the rows' distances with the threshold and the
        two groups; how the descents came to rest; and how the inliers spread along and across the
        subspace. Needs matplotlib: ``pip install 'perpend[plots]'``.

        Returns
        -------
        perpend.plots.AnswerDisplay
            With `figure_`, the four panels in `axes_`, and a `description` in words.

        Examples
        --------
        >>> from perpend import DPCP
        >>> from perpend.datasets import make_subspace
        >>> X = make_subspace(300, 100, n_features=8, codimension=4, random_state=0).X
        >>> display = DPCP(random_state=1).fit(X).plot()
        >>> print(display.verdict)
        Sure (confidence 0.99): a subspace of dimension 4 in 8 features, codimension 4;
        100 of 400 rows (25.0 %) are outliers.
        """
        from perpend.plots import AnswerDisplay

        return AnswerDisplay.from_estimator(self)

    def report(
        self, path: str | PathLike[str], X: Array | None = None, *, title: str | None = None
    ) -> None:
        """Write one HTML page about the answer: verdict, evidence, pictures, outliers, equation.

        Parameters
        ----------
        path : str or path
            The file; the page is all in it and needs no network.
        X : array-like of shape (n_samples, n_features), optional
            The rows of the fit, or others. Without them the page shows no distances and no rows.
        title : str, optional
            The heading of the page.
        """
        from perpend.report import write_report

        check_is_fitted(self)
        write_report(path, self, X, title=title)

    # -- inner workings ----------------------------------------------------------------------------

    def _scores(self, X: Array) -> Array:
        if self.affine_:
            return -self._affine_distance(X)
        relative = self._relative_distance(X)
        return -relative if self.normalize else -relative * row_norms(X)

    def _affine_distance(self, X: Array) -> Array:
        """Return ||N (x - location)||, the Euclidean distance to the affine subspace."""
        normals = to_numpy(self.normals_).astype(float)
        return centred_norms(X, to_numpy(self.location_), normals.T)

    def _relative_distance(self, X: Array) -> Array:
        """Return ||N (x / ||x||)||, the sine of the angle to the subspace; 0 for zero rows."""
        # There is room for one value a row, and not for another X.
        rows = as_rows(X, memory_budget=X.nbytes - 1, n_jobs=effective_n_jobs(self.n_jobs))
        kept = scan_distances(rows, to_numpy(self.normals_).T).kept
        assert kept is not None
        return per_row(rows, kept)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


@contextmanager
def _all_or_nothing(model: SubspaceEstimator) -> Iterator[None]:
    """Leave the model as it was where something fails or is interrupted."""
    before = vars(model).copy()
    try:
        yield
    except BaseException:
        model.__dict__ = before
        raise


def _labels(distance: Array, threshold: float) -> Array:
    """Return +1 up to the threshold and -1 beyond."""
    return namespace(distance).where(distance <= threshold, 1, -1)


def _odds(solution: Solution, exact: float, unit: float) -> OutlierOdds:
    """Return the odds of outliers and with them the threshold, in the user's units.

    Distances up to `exact`, in the units of the fit, may be rounding errors.
    """
    groups = solution.groups
    if groups is None:
        return exact_odds(exact * unit)
    return outlier_odds(groups._replace(threshold=max(groups.threshold, exact)), unit)


def _origin_evidence(found: AffineFit) -> dict[str, object]:
    """Return what the affine fit says about the origin, by name."""
    return {
        "affine_confidence": found.solution.confidence,
        "affine_codimension": found.solution.normals.shape[1],
        "origin_distance": found.origin.distance,
        "origin_error": found.origin.error,
        "origin_chance": found.origin.chance,
    }


def _noise(solution: Solution, unit: float, *, linear: bool, unit_rows: bool = False) -> float:
    """Return the expected norm of the inliers' noise; 0 where they are exact.

    The noise is s in every coordinate of the rows' span, so s sqrt(R) in all, with R their rank.
    Seen from the subspace of the other rows, as a linear fit sees it, the error of that subspace
    comes on top: the share d / N. An affine fit sees its own rows, which have turned it towards
    themselves by as much. Unit rows were u + e before they were scaled to norm one, which divided
    the noise by sqrt(1 + |e|^2).
    """
    groups = solution.groups
    if groups is None or groups.scale <= groups.edges[1]:
        return 0.0
    error = solution.components.shape[1] / (groups.share * groups.counts.sum())
    noise2 = groups.scale**2 * solution.rank / (1 + error if linear else max(1 - error, 0.1))
    if unit_rows:
        noise2 /= max(1 - noise2, 0.1)
    return float(np.sqrt(noise2)) * unit

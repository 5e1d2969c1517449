"""What every method has in common: scikit-learn's estimator contract.

Normalising, fitting and warnings live here. `perpend._validation` checks what users pass,
`perpend._learned` turns solutions into attributes, `perpend._fitted` has what a fitted model does
with rows, and `perpend._shown` how it is shown and kept. A method supplies its parameters and
``_function(rows, *, ..., rng) -> Solution``, and never sees an array of data.
"""

import copy
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field
from functools import partial
from inspect import signature
from numbers import Real
from os import PathLike
from typing import Any, ClassVar, Literal, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from perpend._capabilities import Capabilities
from perpend._docs import completed, completed_function
from perpend._groups import Groups, doubted_in_parts
from perpend._learned import (
    Data,
    Subspace,
    affine_subspace,
    as_confirmed,
    attributes,
    in_groups,
    linear_subspace,
    others_in_order,
    rows_near,
    structures,
)
from perpend._scatter import sampled_spread
from perpend._score import Reference
from perpend._shown import ShownModel
from perpend._typing import Array, RandomState
from perpend._validation import (
    SHARE,
    THREADS,
    TORCH_DEVICE,
    UP_TO_HALF,
    Count,
    check_limit,
    checked,
    checked_weight,
    constraints_of,
    different_units,
)
from perpend._verdict import confidence
from perpend.callbacks import CallbackSupport, Recorder, watching, with_callbacks
from perpend.exceptions import CodimensionWarning, InputError, UnitsWarning
from perpend.geometry import as_generator
from perpend.rows import RowSource, as_rows
from perpend.rows.kinds import Place, computing_on, is_lazy, like, to_numpy
from perpend.solvers import Solution
from perpend.solvers.loop import Callback
from perpend.solvers.steps import STEP_METHODS, STEP_RULES
from perpend.structure import AffineFit, find_affine, sample_size, solve_lifted

__all__ = ["METHODS", "Count", "HasMethods", "Interval", "StrOptions", "SubspaceEstimator"]

METHODS: dict[str, type["SubspaceEstimator"]] = {}
"""Every method by its class name; filled as the classes are defined."""
HALF_WHOLE = 0.5  # of a subspace's rows: with fewer in whole groups, it is another one's
OF_STREAM = ("_stream", "drifts_", "n_batches_", "n_samples_seen_")  # of `partial_fit`, not `fit`


class SubspaceEstimator(CallbackSupport, ShownModel):
    """Base of all methods: a transformer and an outlier detector at once."""

    codimension: Any = field(default=None, kw_only=False)
    n_components: int | None = None
    normalize: bool = True
    affine: bool | Literal["auto"] = False
    outliers: Literal["across", "both"] = "across"
    missing: Literal["error", "mask"] = "error"
    threshold: Any = "auto"
    contamination: float | None = None
    device: Any = None
    n_jobs: int | None = None
    random_state: RandomState = None
    callback: Callback | None = None

    capabilities: ClassVar[Capabilities] = Capabilities()  # what it needs, does and costs
    _function: ClassVar[Callable[..., Solution]]  # the method itself: rows in, a solution out
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "codimension": [None, Count(0)],
        "n_components": [None, Count(0)],
        "normalize": ["boolean"],
        "affine": ["boolean", StrOptions({"auto"})],
        "outliers": [StrOptions({"across", "both"})],
        "missing": [StrOptions({"error", "mask"})],
        "threshold": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "contamination": [None, UP_TO_HALF, SHARE],
        "device": [None, str, TORCH_DEVICE],
        "n_jobs": [None, THREADS],
        "random_state": ["random_state", np.random.Generator],
        "callback": [None, callable],
        # of those that have them
        "delta": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Count(1)],
        "ridge": [Interval(Real, 0, None, closed="neither")],
        "step": [StrOptions(set(STEP_RULES)), HasMethods(STEP_METHODS)],
        "tol": [Interval(Real, 0, None, closed="neither")],
    }

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        METHODS[cls.__name__] = cls
        cls._parameter_constraints = constraints_of(cls)
        cls.__doc__ = completed(cls)
        cls._function.__doc__ = completed_function(cls._function, cls.__name__)

    def _solve(
        self,
        rows: RowSource,
        rng: np.random.Generator,
        place: Place,
        callback: Callback | None,
        known: Any = None,
    ) -> Solution:
        """Call the method's function with the parameters that it shares with the estimator."""
        own = {"rows", "rng", "known", "lifted", "callback"}
        names = set(signature(self._function).parameters) - own
        shared = {name: place.to_numpy(name, getattr(self, name)) for name in names}
        if "codimension" in shared:
            shared["codimension"] = self._given_codimension()
        init, lifted = shared.get("init", ""), rows.shape[1] > self.n_features_in_
        if "lifted" in signature(self._function).parameters:
            shared["lifted"] = lifted
        if lifted and not isinstance(init, str):
            # Lifted rows have one more coordinate: directions begin without an offset.
            shared["init"] = np.pad(np.atleast_2d(np.asarray(init, dtype=float)), [(0, 0), (0, 1)])
        if known is not None:
            shared["known"] = known
        return self._function(rows, rng=rng, callback=callback, **shared)

    def _given_codimension(self) -> Any:
        """Return the codimension that was given, by whichever of the two parameters, or "auto"."""
        D, sizes = self.n_features_in_, [self.codimension, self.n_components]
        names = ("codimension", "n_components")
        given = {
            n: size for n, size in zip(names, sizes, strict=True) if size not in (None, "auto")
        }
        if len(given) == 2:
            both = " and ".join(f"{name}={size}" for name, size in given.items())
            raise InputError(
                f"Both {both} are given, and each sets the other. Leave one of them at its "
                "default; a grid search over one needs an estimator without the other."
            )
        for name, size in given.items():
            if size > D:
                raise InputError(f"{name}={size} is larger than the number of features ({D}).")
        if self.n_components is not None:
            return D - self.n_components
        return 1 if self.codimension is None else self.codimension

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.allow_nan = self.missing == "mask"
        tags.input_tags.sparse = self.missing == "error"
        return tags

    # -- fitting -----------------------------------------------------------------------------------

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Array,
        y: Any = None,
        sample_weight: Array | None = None,
        groups: Any = None,
        *,
        init: Any = None,
        checkpoint: str | PathLike[str] | None = None,
    ) -> Self:
        """Find the subspace of the inliers among the rows of X.

        Parameters
        ----------
        X : array-like or torch tensor of shape (n_samples, n_features)
            After a fit on a tensor the learned arrays are tensors on its device. The rows of a Dask
            array or dataframe stay on its workers.
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight w counts like w equal rows.
        groups : array-like of shape (n_samples,), optional
            Rows with the same id, a number or text, are inliers or outliers together: the two rows
            of a correspondence, or all rows of a frame. Their squared distances are added up for
            labels, scores and probabilities, and they are one piece of evidence for the confidence.
            The subspace is that of all rows, unless that one holds mostly parts of groups: then the
            rows of each group are rotated among themselves, and the search is repeated (not on a
            cluster, nor where a row of sums for each group takes more than a quarter of the memory
            limit). If it still does, it is not sure. All rows of a group must have the same weight.
        init : fitted estimator, optional
            A model of similar rows, such as the last frame of a scanner. The fit begins at its
            subspace and noise. If that subspace is still there, and sure, nothing else is searched;
            otherwise the result is that of a fit without `init`. Only `DPCP` with its own search
            can use it. For start directions see the parameter `init` of the constructor.
        checkpoint : str or path, optional
            A file to which the state of the fit is saved every few seconds, and when it fails or is
            interrupted. If the file exists, the fit continues from it, and ends bit for bit as
            without the interruption. Rows, parameters and version must be the same. If
            `random_state` is not a number, it is set to the state that the first fit began with.
            The file stays when the fit is complete: delete it once the model is saved.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        metadata = {"sample_weight": sample_weight, "groups": groups}
        data = {"X": X, "y": y, "metadata": metadata}
        with (
            watching(self, **data) as callback,
            _all_or_nothing(self),
            computing_on(X, self.device) as place,
        ):
            solution = self._fit(
                X, sample_weight, groups, place, callback, init=init, checkpoint=checkpoint
            )
        self._warn(solution)
        return self

    def fit_predict(
        self, X: Array, y: Any = None, sample_weight: Array | None = None, groups: Any = None
    ) -> Array:
        """Find the subspace, and return +1 for inliers and -1 for outliers.

        Parameters
        ----------
        X : array-like or torch tensor of shape (n_samples, n_features)
        y : ignored
        sample_weight, groups : array-like of shape (n_samples,), optional
            As in `fit`.

        Returns
        -------
        array of int of shape (n_samples,)
        """
        model = self.fit(X, y, sample_weight=sample_weight, groups=groups)
        return model.predict(X, groups=groups)

    def _fit(
        self,
        X: Array,
        sample_weight: Array | None,
        groups: Any,
        place: Place,
        callback: Callback | None,
        *,
        init: Any,
        checkpoint: str | PathLike[str] | None,
    ) -> Solution:
        check_limit(self, X)
        X = checked(self, X, place, reset=True)
        if self.missing == "error":
            self._warn_of_units(X)
        if self.contamination is not None and self.threshold != "auto":
            raise InputError(
                "Both threshold and contamination are given, and each sets the threshold. "
                "Leave one of them at its default."
            )
        self._given_codimension()  # raises if it is wrong
        weight, rng = checked_weight(sample_weight, X, place), as_generator(self.random_state)
        for name in OF_STREAM:
            self.__dict__.pop(name, None)
        self._law, self.n_missing_, self.undecided_ = None, 0, np.zeros(0, dtype=int)
        together = None if groups is None else Groups.to_fit(groups, X.shape[0], weight)
        how: dict[str, Any] = {"place": place, "rng": rng, "callback": callback}
        if checkpoint is None:
            return self._fit_any(X, weight, together, init, **how)
        from perpend.rows.journal import saving_to

        with saving_to(checkpoint, self, X, weight, rng):
            return self._fit_any(X, weight, together, init, **how)

    def _fit_any(
        self, X: Array, weight: Array | None, together: Groups | None, init: Any, **how: Any
    ) -> Solution:
        if self.missing == "error":
            return self._fit_complete(X, weight, together, init, **how)
        if together is not None or init is not None:
            raise InputError('groups and init need missing="error", and complete rows.')
        from perpend._missing import fit_masked, typical

        self._warn_of_units(typical(X))
        complete = partial(self._fit_complete, **how)
        return fit_masked(self, Data(X, weight, how["place"]), how["rng"], complete)

    def _fit_complete(
        self,
        X: Array,
        weight: Array | None,
        groups: Groups | None = None,
        init: Any = None,
        *,
        place: Place,
        rng: np.random.Generator,
        callback: Callback | None,
    ) -> Solution:
        self._spread = None
        if self.outliers == "both":
            self._spread = sampled_spread(X, weight)._asdict()
        known = None
        if init is not None:
            from perpend._known import known_subspace

            known = known_subspace(self, init)
        recorder = Recorder(callback)
        data, found = Data(X, weight, place, groups), None
        if self.affine:
            own = known if known is not None and init.affine_ else None
            found = self._find_affine(data, copy.deepcopy(rng), recorder, own)
            self.history_ = recorder.history._asdict()
        if found is not None and (self.affine != "auto" or found.is_needed):
            return self._learn_affine(found, data)
        of_linear = Recorder(recorder.callback)
        own = known if known is not None and not init.affine_ else None
        solution, rows = self._find_linear(data, rng, of_linear, own)
        if found is not None and found.is_better_than(solution):
            return self._learn_affine(found, data)
        self.history_ = of_linear.history._asdict()
        of_affine = {} if found is None else found.evidence
        all_ = [
            one._replace(evidence={**one.evidence, **of_affine})
            for one in (solution, *solution.others)
        ]
        return self._learn([linear_subspace(self, one, rows, data) for one in all_], data)

    def _find_linear(
        self, data: Data, rng: np.random.Generator, callback: Callback, known: Any
    ) -> tuple[Solution, RowSource]:
        """Return the solution, and the rows among which it was found."""

        def among(X: Array) -> tuple[Solution, RowSource]:
            rows = as_rows(
                X,
                weight=data.weight,
                normalize=self.normalize,
                n_jobs=effective_n_jobs(self.n_jobs),
                fused=self._may_fuse,
            )
            return self._solve(rows, rng, data.place, callback, known), rows

        found, groups = among(data.X), data.groups
        if groups is None:
            return found

        def near(found: tuple[Solution, RowSource]) -> Array:
            return rows_near(self, linear_subspace(self, *found, data), data)

        whole = groups.whole(at := near(found))
        if whole < HALF_WHOLE and groups.can_turn(data.X):
            if is_lazy(data.X):
                turned = among(groups.turned(data.X, rng))
            else:
                turned = among(like(groups.turned(to_numpy(data.X), rng), data.X))
            if groups.whole(now := near(turned)) > whole:
                found, at = turned, now
        return doubted_in_parts(found[0], groups.together(at)), found[1]

    def _learn_affine(self, found: AffineFit, data: Data) -> Solution:
        all_ = [affine_subspace(one, data) for one in (found, *found.others)]
        solution = self._learn(all_, data)
        self._reference = Reference.of(data.X, data.weight)._asdict()
        return solution

    def _learn(self, found: list[Subspace], data: Data) -> Solution:
        """Turn the chosen structure, and every other one that was seen, into attributes."""
        if data.groups is not None:
            found = [in_groups(self, one, data) for one in found]
        chosen, *others = (attributes(self, one, data) for one in found)
        self.__dict__.update(chosen)
        seen = structures(found[0], chosen)
        self.profile_ = found[0].solution.profile
        self._others = others_in_order(seen, chosen, others)
        self.structures_ = as_confirmed(seen, chosen, self._others)
        self._reference = None
        return found[0].solution

    @property
    def _may_fuse(self) -> bool:
        """Whether a kernel may round to 16 bits: only if `refine` corrects that afterwards."""
        return getattr(self, "refine", False) is not False

    @property
    def _may_follow_scales(self) -> bool:
        """Whether the profile of scales may replace the method's own search."""
        return False

    def _find_affine(
        self, data: Data, rng: np.random.Generator, callback: Callback | None, known: Any
    ) -> AffineFit:
        how: dict[str, Any] = {
            "n_jobs": effective_n_jobs(self.n_jobs),
            "rng": rng,
            "callback": callback,
        }
        if self._may_follow_scales:
            size = getattr(self, "sample_size", "auto")  # of the first subsample; None: all rows
            size = sample_size(data.X.shape[1]) if isinstance(size, str) else size
            codimension = self._given_codimension()
            more = {"codimension": codimension, "sample": size, "known": known}
            found = find_affine(data.X, data.weight, **how, **more)
            # Too few different rows have no profile of scales: then as the other methods do.
            if codimension == "auto" or found.solution.normals.shape[1] >= codimension:
                return found
        return solve_lifted(
            data.X,
            data.weight,
            lambda rows: self._solve(rows, rng, data.place, callback),
            normalize=self.normalize,
            refine=self._may_fuse,
            fused=self._may_fuse,
            **how,
        )

    def _warn_of_units(self, X: Array) -> None:
        text = different_units(X, getattr(self, "feature_names_in_", None))
        if text is not None:
            warnings.warn(text, UnitsWarning, stacklevel=4)

    def _warn(self, solution: Solution) -> None:
        if not solution.converged:
            warnings.warn(
                f"{type(self).__name__} did not converge ({self.n_iter_} iterations), so the "
                "subspace may be inexact. Raise max_iter, or tol if the step rule has one.",
                ConvergenceWarning,
                stacklevel=3,
            )
        if solution.doubts:
            reasons = "; ".join(solution.doubts)
            warnings.warn(
                f"codimension {self.codimension_} is not sure (confidence "
                f"{confidence(self.confidence_)}): {reasons}.",
                CodimensionWarning,
                stacklevel=3,
            )


@contextmanager
def _all_or_nothing(model: SubspaceEstimator) -> Iterator[None]:
    """Leave the model as it was if something fails or is interrupted."""
    before = vars(model).copy()
    try:
        yield
    except BaseException:
        model.__dict__ = before
        raise

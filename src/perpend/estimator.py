"""What every method has in common: scikit-learn's estimator contract.

Normalising, fitting and warnings live here. `perpend._validation` checks what users pass,
`perpend._learned` turns solutions into attributes, and `perpend._fitted` has what a fitted model
does with rows. A method supplies its parameters and ``_function(rows, *, ..., rng) ->
Solution``, and never sees an array of data.
"""

import copy
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field
from inspect import signature
from numbers import Integral, Real
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from perpend._capabilities import Capabilities
from perpend._docs import completed, completed_function
from perpend._fitted import FittedSubspace
from perpend._learned import (
    Data,
    Subspace,
    affine_subspace,
    attributes,
    choose,
    linear_subspace,
    others_in_order,
    structures,
)
from perpend._score import Reference
from perpend._spread import sampled_spread
from perpend._typing import Array, RandomState
from perpend._validation import (
    SHARE,
    TORCH_DEVICE,
    UP_TO_HALF,
    checked,
    checked_weight,
    different_units,
)
from perpend._verdict import summary, verdict, visual_block
from perpend.callbacks import CallbackSupport, Recorder, watching, with_callbacks
from perpend.exceptions import CodimensionWarning, InputError, UnitsWarning
from perpend.geometry import as_generator
from perpend.rows import RowSource, as_rows
from perpend.rows.kinds import Place, computing_on
from perpend.solvers import Solution
from perpend.solvers.loop import Callback
from perpend.structure import AffineFit, find_affine, sample_size, solve_lifted

if TYPE_CHECKING:
    from perpend.plots import AnswerDisplay

__all__ = ["METHODS", "HasMethods", "Interval", "StrOptions", "SubspaceEstimator"]

METHODS: dict[str, type["SubspaceEstimator"]] = {}
"""Every method by its class name; filled as the classes are defined."""


class SubspaceEstimator(CallbackSupport, FittedSubspace):
    """Base of all methods: a transformer and an outlier detector at once."""

    codimension: Any = field(default=None, kw_only=False)
    n_components: int | None = None
    normalize: bool = True
    affine: bool | Literal["auto"] = False
    outliers: Literal["across", "both"] = "across"
    threshold: Any = "auto"
    contamination: float | None = None
    device: Any = None
    n_jobs: int | None = None
    random_state: RandomState = None
    callback: Callback | None = None

    capabilities: ClassVar[Capabilities] = Capabilities()  # what it needs, does and costs
    _function: ClassVar[Callable[..., Solution]]  # the method itself: rows in, a solution out
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "codimension": [None, Interval(Integral, 0, None, closed="left")],
        "n_components": [None, Interval(Integral, 0, None, closed="left")],
        "normalize": ["boolean"],
        "affine": ["boolean", StrOptions({"auto"})],
        "outliers": [StrOptions({"across", "both"})],
        "threshold": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "contamination": [None, UP_TO_HALF, SHARE],
        "device": [None, str, TORCH_DEVICE],
        "n_jobs": [None, Integral],
        "random_state": ["random_state", np.random.Generator],
        "callback": [None, callable],
        # of those that iterate
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
    }

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        METHODS[cls.__name__] = cls
        cls.__doc__ = completed(cls)
        cls._function.__doc__ = completed_function(cls._function, cls.__name__)

    def _solve(
        self, rows: RowSource, rng: np.random.Generator, place: Place, callback: Callback | None
    ) -> Solution:
        """Call the method's function with the parameters that it shares with the estimator."""
        names = set(signature(self._function).parameters) - {"rows", "rng", "callback", "lifted"}
        shared = {name: place.to_numpy(name, getattr(self, name)) for name in names}
        if "codimension" in shared:
            shared["codimension"] = self._given_codimension()
        init, lifted = shared.get("init", ""), rows.shape[1] > self.n_features_in_
        if "lifted" in signature(self._function).parameters:
            shared["lifted"] = lifted
        if lifted and not isinstance(init, str):
            # Lifted rows have one more coordinate: directions begin without an offset.
            shared["init"] = np.pad(np.atleast_2d(np.asarray(init, dtype=float)), [(0, 0), (0, 1)])
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
                f"Both {both} are given, and each sets the other. Leave one of them at its default."
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
        return tags

    # -- fitting -----------------------------------------------------------------------------------

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Array, y: Any = None, sample_weight: Array | None = None) -> Self:
        """Find the subspace of the inliers among the rows of X.

        Parameters
        ----------
        X : array-like or torch tensor of shape (n_samples, n_features)
            After a fit on a tensor the learned arrays are tensors on its device.
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight w counts like w equal rows.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        data = {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
        with (
            watching(self, **data) as callback,
            _all_or_nothing(self),
            computing_on(X, self.device) as place,
        ):
            solution = self._fit(X, sample_weight, place, callback)
        self._warn(solution)
        return self

    def _fit(
        self, X: Array, sample_weight: Array | None, place: Place, callback: Callback | None
    ) -> Solution:
        X = checked(self, X, place, reset=True)
        self._warn_of_units(X)
        if self.contamination is not None and self.threshold != "auto":
            raise InputError(
                "Both threshold and contamination are given, and each sets the threshold. "
                "Leave one of them at its default."
            )
        self._given_codimension()  # raises if it is wrong
        weight = checked_weight(sample_weight, X, place)
        self._spread = None
        if self.outliers == "both":
            self._spread = sampled_spread(X, weight)._asdict()
        rng, recorder = as_generator(self.random_state), Recorder(callback)
        data, found = Data(X, weight, place), None
        if self.affine:
            found = self._find_affine(data, copy.deepcopy(rng), recorder)
            self.history_ = recorder.history._asdict()
        if found is not None and (self.affine != "auto" or found.is_needed):
            return self._learn_affine(found, data)
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
            return self._learn_affine(found, data)
        self.history_ = of_linear.history._asdict()
        of_affine = {} if found is None else found.evidence
        all_ = [
            one._replace(evidence={**one.evidence, **of_affine})
            for one in (solution, *solution.others)
        ]
        self._learn([linear_subspace(self, one, rows, data) for one in all_], data)
        return solution

    def _learn_affine(self, found: AffineFit, data: Data) -> Solution:
        all_ = [affine_subspace(one, data) for one in (found, *found.others)]
        self._learn(all_, data)
        self._reference = Reference.of(data.X, data.weight)._asdict()
        return all_[0].solution

    def _learn(self, found: list[Subspace], data: Data) -> None:
        """Turn the chosen structure, and every other one that was seen, into attributes."""
        chosen, *others = (attributes(self, one, data) for one in found)
        self.__dict__.update(chosen)
        self.structures_ = structures(found[0], chosen)
        self.profile_ = found[0].solution.profile
        self._others = others_in_order(self.structures_, chosen, others)
        self._reference = None

    @property
    def _may_fuse(self) -> bool:
        """Whether a kernel may round to 16 bits: only if `refine` corrects that afterwards."""
        return getattr(self, "refine", False) is not False

    @property
    def _may_follow_scales(self) -> bool:
        """Whether the profile of scales may replace the method's own search."""
        return False

    def _find_affine(
        self, data: Data, rng: np.random.Generator, callback: Callback | None
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
            return find_affine(data.X, data.weight, codimension=codimension, sample=size, **how)
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
                f"{self.confidence_:.2f}): {reasons}.",
                CodimensionWarning,
                stacklevel=3,
            )

    # -- choosing ----------------------------------------------------------------------------------

    def choose(self, i: int) -> Self:
        """Return another of the structures that the fit has seen, as a fitted model.

        The fit has kept the attributes of each of `structures_`, so this needs no data and no time,
        and works after `perpend.load`, too. This model stays as it is.

        Parameters
        ----------
        i : int
            The index in `structures_`; negative numbers count from its end.

        Returns
        -------
        self : object
            A new model with the same parameters, whose learned attributes are those of
            ``structures_[i]``. It is never sure, unless it is the one that the fit chose: its
            `doubts_` say that it was chosen by hand.

        Examples
        --------
        >>> import numpy as np
        >>> from perpend import DPCP
        >>> rng = np.random.default_rng(0)
        >>> street = rng.uniform([-20, -20, -1], [20, 20, 1], (3000, 3))
        >>> street[:1200, 2] = rng.normal(0, 0.05, 1200)  # the road
        >>> road = DPCP(affine=True, random_state=1000).fit(street)
        >>> slab = road.choose(1)
        >>> bool(slab.threshold_ > 5 * road.threshold_)
        True
        """
        check_is_fitted(self)
        return choose(self, i)

    # -- telling -----------------------------------------------------------------------------------

    def summary(self) -> str:
        """Return the result in a few lines of text.

        Returns
        -------
        str
        """
        check_is_fitted(self)
        return summary(self)

    def _sk_visual_block_(self) -> Any:
        """Return the block in scikit-learn's HTML; after a fit the verdict is its caption."""
        return visual_block(self, verdict(self) if hasattr(self, "labels_") else None)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to a file that `perpend.load` reads; no pickle is involved.

        Parameters
        ----------
        path : str or path
            The file, usually ``.npz``. An existing file is replaced once the new one is complete.
        """
        from perpend.persistence import save

        check_is_fitted(self)
        save(self, path)

    def report(
        self, path: str | PathLike[str], X: Array | None = None, *, title: str | None = None
    ) -> None:
        """Write one HTML page about the result: verdict, evidence, pictures, outliers, equation.

        Parameters
        ----------
        path : str or path
            The file. It holds the whole page and needs no network.
        X : array-like of shape (n_samples, n_features), optional
            The rows of the fit, or others. Without them the page shows no distances and no rows.
            Columns without names are counted from 1 on the page: "column 1" is ``X[:, 0]``.
        title : str, optional
            The heading of the page.
        """
        from perpend.report import write_report

        check_is_fitted(self)
        write_report(path, self, X, title=title)

    def plot(self) -> "AnswerDisplay":
        """Draw four pictures that show whether the result can be trusted.

        What decided: the profile of scales, or the gap in the singular values of the directions
        if that was clear; the rows' distances with the threshold and the two groups; how the
        loops converged; and how the inliers spread along and across the subspace. It is a pyplot
        figure: ``plt.show()`` and notebooks show it. Needs matplotlib:
        ``pip install 'perpend[plots]'``.

        Returns
        -------
        perpend.plots.AnswerDisplay
            With `figure_`, the four panels in `ax_`, and a `description` in words.

        Examples
        --------
        >>> from perpend import DPCP
        >>> from perpend.datasets import make_subspace
        >>> X = make_subspace(300, 100, n_features=8, codimension=4, random_state=0).X
        >>> display = DPCP(random_state=1).fit(X).plot()
        >>> print(display.verdict)
        Sure (confidence 1.00): a subspace of dimension 4 in 8 features, codimension 4;
        100 of 400 rows (25.0 %) are outliers.
        """
        from perpend.plots import AnswerDisplay

        return AnswerDisplay.from_estimator(self)


@contextmanager
def _all_or_nothing(model: SubspaceEstimator) -> Iterator[None]:
    """Leave the model as it was if something fails or is interrupted."""
    before = vars(model).copy()
    try:
        yield
    except BaseException:
        model.__dict__ = before
        raise

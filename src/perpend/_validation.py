"""What users pass, checked in one place: the estimators' data, weights, thresholds and devices.

scikit-learn checks the shape and converts what is not an array. A tensor is checked where it is:
scikit-learn gets a stand-in of the same shape without memory, so that the messages are the same.
"""

from collections.abc import Callable
from inspect import signature
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import (
    _check_feature_names,
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.rows.kinds import (
    Place,
    in_memory,
    is_dask,
    is_lazy,
    is_sparse,
    is_tensor,
    stand_in,
    text_named,
    to_numpy,
)
from perpend.rows.plan import Fit, check_search
from perpend.rows.preparation import NotFinite, not_finite
from perpend.standardizer import QUARTILES_OF_GAUSSIAN


class Constraint(HasMethods):  # type: ignore[misc]  # scikit-learn is untyped
    """A constraint on a parameter; scikit-learn takes none but its own classes."""

    def __init__(self, expected: str, test: Callable[[Any], bool]) -> None:
        super().__init__("__str__")
        self.expected, self.test = expected, test

    def is_satisfied_by(self, val: Any) -> bool:
        """Tell whether a value is as expected."""
        return self.test(val)

    def __str__(self) -> str:
        return self.expected


class Count(Interval):  # type: ignore[misc]  # scikit-learn is untyped
    """A constraint on a whole number; Python counts booleans among them, and no user does."""

    def __init__(self, least: int, most: int | None = None) -> None:
        super().__init__(Integral, least, most, closed="left" if most is None else "both")

    def is_satisfied_by(self, val: Any) -> bool:
        """Tell whether a value is such a number."""
        is_count: bool = super().is_satisfied_by(val)
        return is_count and not isinstance(val, bool)


THREADS = Constraint(
    "an int other than 0",
    lambda val: not isinstance(val, bool) and isinstance(val, Integral) and val != 0,
)
TORCH_DEVICE = Constraint(
    "a torch.device",  # recognised without torch
    lambda val: f"{type(val).__module__}.{type(val).__name__}" == "torch.device",
)
SHARE = Constraint(  # of the rows; it may be most of them, but not all
    "a float in the range [0, 1)", lambda val: isinstance(val, Real) and 0 <= float(val) < 1
)
UNITS_DIFFER = 3.0  # orders of magnitude between the spreads of two columns
UNIT_ENTRIES, UNIT_ROWS = 20_000, 100  # that tell an order of magnitude; at least so many rows

UP_TO_HALF = Interval(Real, 0, 0.5, closed="right")
"""The constraint on `contamination` that scikit-learn's checks expect; messages name `SHARE`."""
UP_TO_HALF.hidden = True


def constraints_of(cls: type[Any]) -> dict[str, Any]:
    """Return the constraints on the parameters of a method: its own, and those of its bases."""
    known: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        known |= vars(base).get("_parameter_constraints", {})
    parameters = signature(cls).parameters
    if "codimension" in parameters and parameters["codimension"].default == "auto":
        known["codimension"] = [StrOptions({"auto"}), Count(0)]
    return {name: known[name] for name in parameters if name in known}


def checked(
    model: Any,
    X: Any,
    place: Place,
    *,
    reset: bool,
    least: int | None = None,
    may_mask: bool = True,
) -> Array:
    """Return X as finite floats of the right width, at its place; or say what is wrong and where.

    With `reset` the model learns number and names of the features; else they must be the same. A
    fit needs two rows, anything else one, unless `least` says how many. The error about NaN
    advises ``missing="mask"`` unless the caller has no use for it.
    """
    if not reset and least is None:
        check_is_fitted(model)
    if not get_tags(model).input_tags.sparse:
        _check_in_one_piece(model, X)
    elif is_sparse(X):
        from perpend.rows.sparse import SparseRows

        X = SparseRows(X)
    named = None
    if is_dask(X):
        from perpend.rows.dask import dask_rows

        named, X = X._meta, dask_rows(X, getattr(model, "device", None))
    if is_tensor(X):
        X = place.checked("X", X)
    if is_tensor(X) or is_lazy(X):
        _validated(model, stand_in(X), reset=reset, least=least)
        if named is not None:
            _check_feature_names(model, named, reset=reset)
    else:
        X = _validated(model, X, reset=reset, least=least)
    missing = getattr(model, "missing", "")
    bad = not_finite(in_memory(X), nan=missing != "mask")
    if bad is not None:
        where = X.place_of(bad.row) if is_lazy(X) else ""
        text = _where_not_finite(bad, where, getattr(model, "feature_names_in_", None))
        if bad.is_nan and missing == "error" and may_mask and not is_lazy(X):
            text += ' Or use DPCP(missing="mask"), which uses the other entries of such rows.'
        raise InputError(text)
    return place.bring(X)


def check_limit(model: Any, X: Any) -> None:
    """Say before anything is read if the memory limit of X is too small for a fit."""
    limit = getattr(X, "limit_given", None)
    if limit is not None:
        check_search(X.shape, X.dtype.itemsize, limit, Fit.of(model))


def _check_in_one_piece(model: Any, X: Any) -> None:
    """Say so if a model that needs an array gets rows in blocks, or sparse ones."""
    kinds = [
        (is_sparse(X), "sparse", "X.toarray()"),
        (is_dask(X), "a Dask collection", "X.compute()"),
        (is_lazy(X), "read in blocks", "X[:]"),
    ]
    for is_kind, kind, whole in kinds:
        if is_kind:
            who, also = type(model).__name__, ""
            if getattr(model, "missing", "") == "mask":
                who += '(missing="mask")'
                also = ', or fill in the missing entries and use missing="error"'
            raise InputError(
                f"{who} needs all rows in an array, and X is {kind}. Pass {whole}, if that fits "
                f"into memory{also}."
            )


def checked_weight(weight: Any, X: Array, place: Place) -> Array | None:
    """Return the weights of the rows of X as a NumPy array, or None if there are none."""
    if weight is None:
        return None
    weight = weight.compute() if is_dask(weight) else place.to_numpy("sample_weight", weight)
    X = stand_in(X) if is_tensor(X) or is_lazy(X) else X
    return _check_sample_weight(weight, X, ensure_non_negative=True)


def different_units(X: Array, names: Array | None) -> str | None:
    """Say which two columns differ so much in size that units decide; None if none do.

    Quartiles and standard deviation must agree about both: thin structures have small quartiles,
    gross errors large deviations. Columns that are constant up to rounding are left out.
    """
    n, D = X.shape
    some = to_numpy(X[:: -(-n // max(UNIT_ENTRIES // D, UNIT_ROWS))])
    size = np.max(np.abs(some), axis=0).astype(float)
    used = np.flatnonzero(size > 0)
    if not len(used):
        return None
    size, rounding = size[used], 16 * np.finfo(some.dtype).eps
    some = some[:, used] / size  # in units of its largest entry no square overflows
    low, high = np.quantile(some, [0.25, 0.75], axis=0)
    spreads = np.stack([(high - low) / QUARTILES_OF_GAUSSIAN, np.std(some, axis=0)])
    least, most = np.min(spreads, axis=0), np.max(spreads, axis=0)
    most[most <= rounding] = np.inf
    with np.errstate(over="ignore", divide="ignore"):
        least, most = np.log10(least) + np.log10(size), np.log10(most) + np.log10(size)
    wide, narrow = int(np.argmax(least)), int(np.argmin(most))
    if not least[wide] - most[narrow] > UNITS_DIFFER:
        return None
    shown = [str(j) if names is None else f'"{names[j]}"' for j in used[[wide, narrow]]]
    return (
        f"The spreads of columns {shown[0]} and {shown[1]} differ by a factor of "
        f"10^{least[wide] - most[narrow]:.0f}, so the units decide the result. If columns have "
        "different units, standardise them: "
        "make_pipeline(perpend.RobustStandardizer(), model).fit(X)."
    )


def _validated(model: Any, X: Any, *, reset: bool, least: int | None) -> Array:
    """Return X as an array of floats of the right width; it may still hold NaN."""
    try:
        with text_named(X):
            return validate_data(
                model,
                X,
                reset=reset,
                dtype=[np.float64, np.float32],
                ensure_all_finite=False,
                ensure_min_samples=least or (2 if reset else 1),
            )
    except ValueError as error:
        if "Complex data" in str(error):
            raise InputError(
                "Complex data not supported: X has complex entries. Use its real part, or put "
                "real and imaginary parts side by side as columns."
            ) from error
        if type(X).__name__ == "LazyFrame":  # of polars, or of narwhals around another library
            native = " or, if it stands for a Dask dataframe, X.to_native()"
            raise InputError(
                "X is a LazyFrame, whose rows are not computed yet. Pass X.collect()"
                f"{native if hasattr(X, 'to_native') else ''}."
            ) from error
        raise


def _where_not_finite(bad: NotFinite, where: str, names: Array | None) -> str:
    name = bad.column if names is None else f'"{names[bad.column]}"'
    entries = "1 entry" if bad.n_entries == 1 else f"{bad.n_entries} entries"
    rows = "1 row" if bad.n_rows == 1 else f"{bad.n_rows} rows"
    return (
        f"Input X contains {'NaN' if bad.is_nan else 'inf'}: {entries} in {rows} "
        f"{'is' if bad.n_entries == 1 else 'are'} NaN or inf (first: row {bad.row}{where}, column "
        f"{name}, counting from 0). Drop these rows or columns, or impute them first."
    )

"""Columns in comparable units before a fit, and the pipeline that remembers how."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from perpend.cli._options import STANDARDIZED, Affine, Search, Standardize

if TYPE_CHECKING:
    from perpend._typing import Array
    from perpend.formats import Dataset


def wanted(how: Search, data: "Dataset") -> bool:
    """Whether columns are to be standardised: as given, or by the format of the file."""
    if how.standardize is not None:
        return how.standardize is Standardize.robust
    return data.format in STANDARDIZED


def standardised(how: Search, data: "Dataset") -> tuple[Any, "Dataset"]:
    """Return the fitted scaler, and the rows that the model sees; None, and the rows as they are.

    Columns are centred only if the subspace surely may miss the origin: otherwise it is the user's
    origin that counts.
    """
    if not wanted(how, data):
        return None, data
    from perpend.standardizer import RobustStandardizer

    centred = (how.affine or Affine.yes) is Affine.yes
    scaler = RobustStandardizer(with_centering=centred).fit(data.X)
    return scaler, replace(data, X=scaler.transform(data.X))


def joined(scaler: Any, model: Any) -> Any:
    """Return the pipeline, or the model alone."""
    from sklearn.pipeline import make_pipeline

    return model if scaler is None else make_pipeline(scaler, model)


def _transformed(rows: "Array", steps: Any) -> "Array":
    return steps.transform(rows) if len(rows) else rows


def as_seen(whole: Any, data: "Dataset") -> "Dataset":
    """Return the rows as the last step of a loaded pipeline sees them."""
    from sklearn.pipeline import Pipeline

    if not isinstance(whole, Pipeline):
        return data
    from perpend.rows.kinds import is_lazy
    from perpend.rows.lazy import Computed

    steps = whole[:-1]
    if is_lazy(data.X):
        D = data.X.shape[1]
        return replace(data, X=Computed(data.X, _transformed, steps, n_features=D))
    return replace(data, X=steps.transform(data.X))

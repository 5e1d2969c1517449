"""What a fitted model makes of rows with missing entries, with ``missing="mask"``."""

from typing import Any

import numpy as np

from perpend._spread import Spread
from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.rows.kinds import is_tensor, to_numpy
from perpend.rows.masked import Gaps, Law, filled

LEAST_RELATION = 0.5  # that observed entries must test: one entry too many leaves next to none


def complete(model: Any, X: Array, spread: Spread | None) -> tuple[Array, Array | None]:
    """Return rows with expected entries, and the share of their squares that is observed.

    The squares are those of the distance to the subspace, or from the middle of the `spread`. The
    share is 0 where too little is observed, and None where nothing is missing.
    """
    if not has_gaps(X):
        return X, None
    gaps = Gaps(X)
    if spread is not None:
        all_, fill = len(spread.mean), filled(X.astype(float), gaps, spread.precision, spread.mean)
    else:
        law = law_of(model)
        all_, fill = law.normals.shape[1], law.fill(X.astype(float), gaps)
    return fill.X.astype(X.dtype), shares(all_, fill.lost)


def shares(all_: int, lost: Array) -> Array:
    """Return which share of the degrees of freedom is left, 0 if it is too little."""
    left = all_ - lost
    return np.where(left >= LEAST_RELATION, left / max(all_, 1), float(all_ == 0))


def law_of(model: Any) -> Law:
    """Return the law of the inliers of a fitted model."""
    if getattr(model, "_law", None) is None:
        raise InputError(
            'Input X contains NaN, and the model was fitted with missing="error". Fit it with '
            'missing="mask".'
        )
    U, N = (to_numpy(A).astype(float).T for A in (model.components_, model.normals_))
    return Law(to_numpy(model.location_).astype(float), N, U, **model._law)


def complete_only(X: Array, weight: Array | None) -> tuple[Array, Array | None]:
    """Return the rows without gaps and their weights."""
    if not has_gaps(X):
        return X, weight
    whole = ~np.isnan(X).any(axis=1)
    if not whole.any():
        raise InputError(
            "score needs complete rows, and every row of X has a missing entry. Give some complete "
            "rows."
        )
    return X[whole], None if weight is None else weight[whole]


def has_gaps(X: Array) -> bool:
    """Tell whether an entry is missing; refuse that of tensors which are not in memory."""
    if not is_tensor(X):
        return bool(np.isnan(X).any())
    if bool(X.isnan().any()):
        raise InputError(
            f"X has missing entries and is on {X.device}; they are supported on the CPU only. "
            'Pass X.cpu(), with device=None or "cpu".'
        )
    return False

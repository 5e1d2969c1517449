"""Views of the rows: a centre, a scale, and the rows that take part.

About a centre m with the scale s, a row is ((x - m) / s, 1). Both are robust: coordinatewise
medians. With s the typical size of *one* coordinate of x - m, the lifted rows have no preferred
direction if the rows have none about m, which is what the law of the outliers assumes.
"""

import math
from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.rows.centred import centred_norms, lift
from perpend.rows.kinds import is_lazy, to_numpy
from perpend.rows.preparation import as_rows, check_powers
from perpend.rows.source import RowSource

CENTRE_ROWS = 16_384  # sampled rows from which centre and scale are estimated
MEDIANS_AT_ONCE = 2**21  # values, of which NumPy makes six copies
TOO_FAR = 100.0  # times the members' radius: rows farther away do not take part


class View(NamedTuple):
    """A centre, a scale, and the rows that take part."""

    centre: Array  # (D,)
    scale: float
    seen: Array | None  # (n,) bool: the rows that take part; None for all

    def is_near(self, other: "View") -> bool:
        """Whether the other one is as near to its centre as its rows are, and sees the same."""
        away = float(np.linalg.norm(self.centre - other.centre))
        same = np.array_equal(np.asarray(self.seen), np.asarray(other.seen))
        return same and away <= self.scale * math.sqrt(len(self.centre))


def whole_view(X: Array, weight: Array | None, rng: np.random.Generator) -> View:
    """Return the view of all rows."""
    # A generator of its own, so that `rng` advances the same, however many rows are drawn.
    S, w = _sample(X, weight, np.random.default_rng(rng.integers(2**63)))
    centre = typical(S, w)
    distance = centred_norms(S, centre)
    size = float(typical(distance, w))
    if size == 0:  # most rows are equal
        size = float(np.max(distance))
    check_powers(size, 4, "The typical distance of the rows from their median is")
    return View(centre, size / np.sqrt(len(centre)) if size > 0 else 1.0, None)


def typical(values: Array, weight: Array) -> Array:
    """Return the weighted median, of each column where there are columns."""
    if values.ndim == 1:
        return _median(values, weight)
    size = max(1, MEDIANS_AT_ONCE // len(values))
    parts = [_median(values[:, j : j + size], weight) for j in range(0, values.shape[1], size)]
    return np.concatenate(parts)


def _median(values: Array, weight: Array) -> Array:
    return np.asarray(np.quantile(values, 0.5, axis=0, weights=weight, method="inverted_cdf"))


def _sample(X: Array, weight: Array | None, draw: np.random.Generator) -> tuple[Array, Array]:
    """Draw rows (m, D) by their weight (m,), which adds up to one; all rows where they are few."""
    n, share = X.shape[0], np.full(CENTRE_ROWS, 1 / CENTRE_ROWS)
    if weight is None and n > CENTRE_ROWS:  # as `choice` draws rows of equal weight, at once
        index = np.sort((draw.random(CENTRE_ROWS) * n).astype(int))
        return _brought(X, index), share
    w = np.ones(n) if weight is None else to_numpy(weight).astype(float)
    if not np.any(w > 0):
        w = np.ones(n)  # the method will say what is wrong
    w = w / w.max()
    if np.count_nonzero(w) <= CENTRE_ROWS:
        index = np.flatnonzero(w)
        share = w[index] / w.sum()
    else:
        index = np.sort(draw.choice(n, CENTRE_ROWS, p=w / w.sum()))
    return _brought(X, index), share


def _brought(X: Array, index: Array) -> Array:
    """Return rows at ascending indices in memory, in double precision."""
    return (X.few(index) if is_lazy(X) else to_numpy(X[index])).astype(float)


# -- rows as they are seen from there --------------------------------------------------------------


class Lifted(NamedTuple):
    """Rows lifted about a view, not normalised."""

    rows: RowSource
    view: View

    @property
    def unit(self) -> float:
        """What the kernels see times this is in the units of the data."""
        return self.view.scale * self.rows.unit


def lifted(
    X: Array,
    weight: Array | None,
    view: View,
    *,
    n_jobs: int,
    unit_rows: bool = False,
    fused: bool = True,
) -> Lifted:
    """Lift the rows of X (n, D) about a view; one array of its size is formed, unless X is lazy."""
    L = X.lifted(view.centre, view.scale) if is_lazy(X) else lift(X, view.centre, view.scale)
    source = as_rows(
        L,
        weight=weight,
        mask=view.seen,
        normalize=unit_rows,
        # Enough for values of each row, not for another X.
        memory_budget=None if is_lazy(X) else L.nbytes - 1,
        n_jobs=n_jobs,
        fused=fused,
    )
    source.lifted_by = view.scale
    return Lifted(source, view)


def near_view(X: Array, centre: Array, spread: float, view: View) -> View:
    """Return the view from the members' mean, with the size of one of their coordinates.

    Rows that are far away do not take part: next to them all others would be rounding errors.
    """
    scale = spread if spread > 0 else view.scale
    near = to_numpy(centred_norms(X, centre)) <= TOO_FAR * scale * math.sqrt(X.shape[1])
    return View(centre, scale, near)

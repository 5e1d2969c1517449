"""Where to look at the rows from: a centre, a scale, and the rows that are seen.

About a centre m with the scale s, a row is ((x - m) / s, 1). Both are robust: coordinatewise
medians. With s the typical size of *one* coordinate of x - m, the lifted rows have no preferred
direction if the rows have none about m, which is what the law of the outliers assumes.

One view is enough for one cloud. Where the rows are in two clouds that are far apart, as when
outliers are somewhere else, one view of all rows sees two points and the line through them. Each
cloud then gets its own view.
"""

import math
from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.rows.centred import centred_norms, lift, room_for_lifted
from perpend.rows.kinds import to_numpy
from perpend.rows.preparation import as_rows
from perpend.rows.source import RowSource

SAMPLE_ROWS = 16_384  # rows that say where centre and scale are
CLOUD_ROWS, CLOUD_CENTRES = 2048, 24  # rows that say whether there are clouds, asked from so many
CLOUD_SHARES = (0.1, 0.8)  # of the rows that a cloud may hold
STRAY = 0.05  # share of the rows that may lie between the clouds
FAR = 100.0  # times the members' radius: rows farther away have no say
APART = 2.0  # times as far as the rows of a cloud all others are, seen from a row of the cloud


class View(NamedTuple):
    """A place to look from."""

    centre: Array  # (D,)
    scale: float
    seen: Array | None  # (n,) bool: the rows that take part; None for all

    def is_near(self, other: "View") -> bool:
        """Whether the other one is as near to its centre as its rows are, and sees the same."""
        away = float(np.linalg.norm(self.centre - other.centre))
        same = np.array_equal(np.asarray(self.seen), np.asarray(other.seen))
        return same and away <= self.scale * math.sqrt(len(self.centre))


class _Sample(NamedTuple):
    X: Array  # (m, D) float64
    weight: Array  # (m,) adds up to one

    def about(self, centre: Array) -> Array:
        """Return the distances of the rows from a point."""
        return centred_norms(self.X, centre)

    def some(self, chosen: Array) -> "_Sample":
        """Return some rows alone."""
        return _Sample(self.X[chosen], self.weight[chosen] / self.weight[chosen].sum())


def whole_view(X: Array, weight: Array | None, rng: np.random.Generator) -> View:
    """Return the view of all rows."""
    return _view(_sample(X, weight, rng), None)


def find_views(X: Array, weight: Array | None, rng: np.random.Generator) -> list[View]:
    """Return the views to try: of all rows, or of each of two clouds that are far apart."""
    draw = np.random.default_rng(
        rng.integers(2**63)
    )  # whatever is drawn here, `rng` moves on alike
    sample = _sample(X, weight, draw)
    cloud = _cloud(sample, draw)
    if cloud is None:
        return [_view(sample, None)]
    centre, radius = cloud
    near = sample.about(centre) <= radius
    inside = to_numpy(centred_norms(X, centre)) <= radius
    return [_view(sample.some(near), inside), _view(sample.some(~near), ~inside)]


def typical(values: Array, weight: Array) -> Array:
    """Return the weighted median, of each column where there are columns."""
    return np.quantile(values, 0.5, axis=0, weights=weight, method="inverted_cdf")


def _view(sample: _Sample, seen: Array | None) -> View:
    centre = typical(sample.X, sample.weight)
    distance = sample.about(centre)
    size = float(typical(distance, sample.weight))
    if size == 0:  # most rows are equal
        size = float(np.max(distance))
    return View(centre, size / np.sqrt(len(centre)) if size > 0 else 1.0, seen)


def _sample(X: Array, weight: Array | None, draw: np.random.Generator) -> _Sample:
    """Draw rows by their weight; all rows where they are few."""
    n = X.shape[0]
    if weight is None and n > SAMPLE_ROWS:  # as `choice` draws rows of equal weight, at once
        index = np.sort((draw.random(SAMPLE_ROWS) * n).astype(int))
        return _Sample(to_numpy(X[index]).astype(float), np.full(SAMPLE_ROWS, 1 / SAMPLE_ROWS))
    w = np.ones(n) if weight is None else to_numpy(weight).astype(float)
    if not np.any(w > 0):
        w = np.ones(n)  # the method will say what is wrong
    w = w / w.max()
    if np.count_nonzero(w) <= SAMPLE_ROWS:
        index = np.flatnonzero(w)
        return _Sample(to_numpy(X[index]).astype(float), w[index] / w.sum())
    index = np.sort(draw.choice(n, SAMPLE_ROWS, p=w / w.sum()))
    return _Sample(to_numpy(X[index]).astype(float), np.full(SAMPLE_ROWS, 1 / SAMPLE_ROWS))


def _cloud(sample: _Sample, draw: np.random.Generator) -> tuple[Array, float] | None:
    """Return a row and a radius that hold a cloud far from all other rows, if there is one.

    Seen from a row of the cloud, all rows of the cloud are near, and then there is nothing for a
    long way, but for a few stray rows.
    """
    if len(sample.X) > CLOUD_ROWS:
        sample = sample.some(np.sort(draw.choice(len(sample.X), CLOUD_ROWS, replace=False)))
    best, most = None, APART
    for row in draw.permutation(len(sample.X))[:CLOUD_CENTRES]:
        distance = sample.about(sample.X[row])
        order = np.argsort(distance)
        r, share = distance[order], np.cumsum(sample.weight[order])
        first, last = np.searchsorted(share, CLOUD_SHARES)
        inner = np.arange(max(first, sample.X.shape[1] + 1), last)
        inner = inner[r[inner] > 0]
        outer = np.minimum(np.searchsorted(share, share[inner] + STRAY), len(r) - 1)
        ratio = r[outer] / r[inner]
        if ratio.size and ratio.max() > most:
            k = int(np.argmax(ratio))
            most = float(ratio[k])
            best = sample.X[row], float(np.sqrt(most) * r[inner[k]])
    return best


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
    """Lift the rows of X (n, D) about a view; one array of the size of X is formed."""
    L = room_for_lifted(X)
    lift(X, view.centre, view.scale, L)
    rows = as_rows(
        L,
        weight=weight,
        mask=view.seen,
        normalize=unit_rows,
        memory_budget=L.nbytes - 1,  # room for values of each row, and not for another X
        n_jobs=n_jobs,
        fused=fused,
    )
    return Lifted(rows, view)


def near_view(X: Array, centre: Array, spread: float, view: View) -> View:
    """Return the view from the members' mean, with the size of one of their coordinates.

    Rows that are far away have no say, or all others would be rounding errors beside them; nor have
    those of another cloud, which would be members with a long lever.
    """
    scale = spread if spread > 0 else view.scale
    near = to_numpy(centred_norms(X, centre)) <= FAR * scale * math.sqrt(X.shape[1])
    return View(centre, scale, near if view.seen is None else near & view.seen)

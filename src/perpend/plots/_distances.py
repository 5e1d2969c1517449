"""Distances of the rows to the subspace, and the threshold."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from perpend._learned import DistanceRecord
from perpend._typing import Array
from perpend.plots._axes import draw
from perpend.plots._display import ModelDisplay
from perpend.plots._picture import Axis, Bars, Layer, Line, Mark, Picture, Text, empty
from perpend.plots._words import count, number, percent, unit
from perpend.rows.kinds import to_numpy

N_BARS = 48
UNEQUAL = 25.0  # times higher is one group's highest bar than the other's: the axis is logarithmic


@dataclass(eq=False, repr=False)
class DistanceDisplay(ModelDisplay):
    """Histogram of the distances to the subspace, with the threshold and the two-group model.

    The model has inliers with Gaussian noise, and outliers without preferred direction, whose
    distribution has no parameter. If the bars follow the two curves, the labels can be trusted.
    Where the curves overlap, inliers and outliers cannot be separated.

    Without noise there is no curve of inliers: all of them are expected in the first bin. If the
    model was not fitted to these rows, its curves show what is expected of the same mixture.

    Examples
    --------
    >>> from perpend import DPCP, datasets, plots
    >>> X = datasets.make_subspace(
    ...     300, 200, n_features=12, codimension=3, noise=0.01, random_state=0
    ... ).X
    >>> display = plots.DistanceDisplay.from_estimator(DPCP(random_state=1).fit(X))
    >>> int(display.counts.sum()), round(float(display.outliers.sum()), -1)
    (500, 200.0)
    """

    edges: Array  # (m,) upper edges of bins, growing geometrically; the first holds all below
    counts: Array  # (m,) rows in each bin
    _: KW_ONLY
    threshold: float  # rows farther away are outliers
    inliers: Array | None = None  # (m,) inliers in each bin, as the model expects them
    outliers: Array | None = None  # (m,) the same for outliers
    fitted: bool = True  # whether the model was fitted to these rows
    xlabel: str = "distance"  # of the horizontal axis

    def __post_init__(self) -> None:
        self.threshold = float(self.threshold)
        for name in ("edges", "counts", "inliers", "outliers"):
            if getattr(self, name) is not None:
                setattr(self, name, np.asarray(getattr(self, name), dtype=float))

    @classmethod
    def of(cls, model: Any, X: Array | None = None) -> Self:
        """Make the display of a fitted model, without drawing it."""
        distance = None if X is None else -to_numpy(model.score_samples(X)).astype(float)
        return cls._of_distances(model, distance)

    @classmethod
    def _of_distances(cls, model: Any, distance: Array | None, *, fitted: bool = False) -> Self:
        """Take distances (n,) of rows to a model's subspace; None means those of the fit."""
        stored = getattr(model, "_distance_record", None)
        both = getattr(model, "outliers", "across") == "both"  # then they are not to the subspace
        record = None if stored is None or both else DistanceRecord(**stored)
        xlabel = "distance (robust deviations)" if both else unit(model)
        names: dict[str, Any] = {"threshold": float(model.threshold_), "xlabel": xlabel}
        if record is None:
            return cls(*_without_model(model, distance), **names)
        scale = 1.0
        if distance is not None:
            n_fitted = record.n_inliers + record.n_outliers
            record = record.counted(distance)
            scale = float(record.counts.sum()) / n_fitted
        inliers, outliers = (
            scale * np.diff(total, prepend=0.0) for total in record.expected(record.edges)
        )
        return cls(
            record.edges,
            record.counts,
            inliers=None if record.exact else inliers,
            outliers=outliers,
            fitted=fitted or distance is None,
            **names,
        )

    @property
    def n_beyond(self) -> int:
        """The number of rows in bins beyond the threshold."""
        return round(float(self.counts[self._last_near + 1 :].sum()))

    @property
    def description(self) -> str:
        """The picture in words."""
        n = float(self.counts.sum())
        if n == 0:
            return f"The distances of the {self._word} were not recorded."
        exact = f" {count(self.counts[0])} {self._word} lie on it up to rounding."
        return (
            f"Histogram of the distances of {count(n)} {self._word} to the subspace: "
            f"{percent(self.n_beyond, n)} are beyond the threshold of {number(self.threshold, 2)}."
            f"{exact if self.counts[0] else ''}"
        )

    def plot(self, ax: Any = None, *, log_y: bool | None = None, n_bars: int = N_BARS) -> Self:
        """Draw it.

        Parameters
        ----------
        log_y : bool, optional
            Whether the numbers of rows are on a logarithmic axis; by default if one group would be
            invisible otherwise.
        n_bars : int
            The approximate number of bars; neighbouring bins are put together.
        """
        return self._plot(ax, lambda ax: draw(ax, self._picture(log_y=log_y, n_bars=n_bars)))

    def _picture(self, *, log_y: bool | None = None, n_bars: int = N_BARS) -> Picture:
        """Describe bars in the colours of the labels, the model's curves and the threshold."""
        if self.counts.sum() == 0:
            note = f"not recorded: pass X to see\nthe distances of its {self._word}"
            return empty("Distances", note, self.description)
        n = f"{count(self.counts.sum())} {self._word}"
        if len(self.edges) < 2:
            return empty("Distances", f"all {n} are at distance 0", self.description)
        borders, group, n_near = self._bars(n_bars)
        bars = np.add.reduceat(self.counts, group[:-1])
        layers: list[Layer] = [
            Bars(borders[a : b + 1], bars[a:b], color, name)
            for a, b, color, name in (
                (0, n_near, "in", "inliers"),
                (n_near, len(bars), "out", "outliers"),
            )
            if b > a
        ]
        name = "two-group model" if self.fitted else "model of the fit"
        tops = [float(bars.max())]
        for curve, color in ((self.inliers, "in"), (self.outliers, "out")):
            if curve is not None and curve.sum() >= 0.5:
                x, y = self._curve(curve, group)
                layers.append(Line(x, y, color, name))
                tops.append(float(y.max()))
                name = ""
        # A threshold of zero is drawn at the left end of the logarithmic axis.
        at = max(self.threshold, borders[0])
        layers.append(Mark(at, "text", f"threshold {number(self.threshold, 2)}"))
        lower, higher = sorted([bars[:n_near].max(initial=0.0), bars[n_near:].max(initial=0.0)])
        log = 0 < UNEQUAL * lower < higher if log_y is None else log_y
        low, high = (0.5, (max(tops) / 0.5) ** 0.09 * max(tops)) if log else (0.0, 1.17 * max(tops))
        vertical = Axis(self._word, low, high, log=log)
        if self.counts[0] and self.inliers is None:
            layers.append(Text(borders[1], vertical.at(0.5), "exact"))
        return Picture(
            f"Distances: {percent(self.n_beyond, self.counts.sum())} beyond the threshold",
            self.description,
            Axis(self.xlabel, borders[0], borders[-1] * 1.05, log=True),
            vertical,
            layers,
            room=0.22,
        )

    @property
    def _last_near(self) -> int:
        """The bin that holds the threshold, the last one of inliers."""
        return int(np.searchsorted(self.edges, self.threshold).clip(max=len(self.edges) - 1))

    def _bars(self, n_bars: int) -> tuple[Array, Array, int]:
        """Return the borders of bars (k + 1,), their bins, and how many bars are inliers.

        The bars hold every bin with rows, and one ends at the threshold.
        """
        seen, at = np.flatnonzero(self.counts), self._last_near
        first, last = min(seen[0], at), max(seen[-1], at)
        width = max(1, -(-(last - first + 1) // n_bars))
        n_near = -(-(at + 1 - first) // width)
        n_far = -(-(last - at) // width)
        group = at + 1 + width * np.arange(-n_near, n_far + 1)
        group = group.clip(0, len(self.edges))
        growth = self.edges[1] / self.edges[0]
        lower = np.append(self.edges[0] / growth, self.edges)  # lower[j] to edges[j] is bin j
        return lower[group], group, n_near

    def _curve(self, expected: Array, group: Array) -> tuple[Array, Array]:
        """Return the curve at the middle of each bin, in rows per bar."""
        growth = self.edges[1] / self.edges[0]
        bins = np.arange(max(group[0], 1), group[-1])  # the lowest bin has no width
        width = np.max(np.diff(group))
        return self.edges[bins] / np.sqrt(growth), width * expected[bins]


def _without_model(model: Any, J: Array | None) -> tuple[Array, Array]:
    """Return edges and counts if no two groups were fitted.

    Then all rows of the fit lie on the subspace and are inliers, unless the subspace is the origin
    alone or the model is from an earlier version.
    """
    if J is None:
        known = hasattr(model, "_distance_record") and model.n_components_ > 0
        known = known and getattr(model, "outliers", "across") == "across"
        return np.ones(1), np.array([float(len(model.labels_)) if known else 0.0])
    largest = float(J.max(initial=0.0))
    if largest == 0:
        return np.ones(1), np.array([float(len(J))])
    edges = largest * np.geomspace(np.sqrt(np.finfo(float).eps), 1.0, 1024)
    counts = np.bincount(np.searchsorted(edges, J).clip(max=len(edges) - 1), minlength=len(edges))
    return edges, counts

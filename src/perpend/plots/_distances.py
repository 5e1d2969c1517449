"""How far the rows are from the subspace, and where inliers end."""

from typing import Any, Self

import numpy as np

from perpend._learned import DistanceRecord
from perpend._typing import Array
from perpend.plots._display import ModelDisplay, say
from perpend.plots._lines import few_ticks
from perpend.plots._style import MISSING, MUTED, RIGHT, WRONG
from perpend.plots._words import count, percent, unit
from perpend.rows.kinds import to_numpy

N_BARS = 48
UNEQUAL = 25.0  # times as many rows in the highest bar of one group: a logarithmic axis shows both


class DistanceDisplay(ModelDisplay):
    """Histogram of the distances to the subspace, with the threshold and the two-group model.

    The model has inliers with Gaussian noise, and outliers without preferred direction, whose law
    has no parameter. Where the bars follow the two curves, the labels can be trusted; where the
    curves overlap, nobody could tell all rows apart.

    Parameters
    ----------
    edges : array of shape (m,)
        Upper edges of the bins, growing geometrically. The first bin holds everything below.
    counts : array of shape (m,)
        Rows in each bin.
    threshold : float
        Rows farther away are outliers.
    inliers, outliers : arrays of shape (m,), optional
        Rows of each group in each bin, as the model expects them. The inliers are left out where
        they have no noise: all of them are expected in the first bin.
    fitted : bool
        Whether the model was fitted to these rows. If not, its curves say what these rows would
        look like if they were the same mixture.
    xlabel : str

    Attributes
    ----------
    edges, counts, threshold, inliers, outliers, fitted :
        As they were given.
    ax_, figure_ :
        Set by `plot`.

    Examples
    --------
    >>> from perpend import DPCP
    >>> from perpend.datasets import make_subspace
    >>> from perpend.plots import DistanceDisplay
    >>> X = make_subspace(300, 200, n_features=12, codimension=3, noise=0.01, random_state=0).X
    >>> display = DistanceDisplay.from_estimator(DPCP(random_state=1).fit(X))
    >>> int(display.counts.sum()), round(float(display.outliers.sum()), -1)
    (500, 200.0)
    """

    def __init__(
        self,
        edges: Array,
        counts: Array,
        *,
        threshold: float,
        inliers: Array | None = None,
        outliers: Array | None = None,
        fitted: bool = True,
        xlabel: str = "distance",
    ) -> None:
        self.edges, self.counts = np.asarray(edges, dtype=float), np.asarray(counts, dtype=float)
        self.threshold, self.fitted, self.xlabel = float(threshold), fitted, xlabel
        self.inliers = None if inliers is None else np.asarray(inliers, dtype=float)
        self.outliers = None if outliers is None else np.asarray(outliers, dtype=float)

    @classmethod
    def of(cls, model: Any, X: Array | None = None) -> Self:
        """Take what is drawn from a fitted model, and do not draw it yet."""
        stored = getattr(model, "_distance_record", None)
        record = None if stored is None else DistanceRecord(**stored)
        names: dict[str, Any] = {"threshold": float(model.threshold_), "xlabel": unit(model)}
        if record is None:
            return cls(*_without_model(model, X), **names)
        seen = record.n_inliers + record.n_outliers
        scale = 1.0
        if X is not None:
            record = record.counted(_distances(model, X))
            scale = float(record.counts.sum()) / seen
        inliers, outliers = (
            scale * np.diff(total, prepend=0.0) for total in record.expected(record.edges)
        )
        return cls(
            record.edges,
            record.counts,
            inliers=None if record.exact else inliers,
            outliers=outliers,
            fitted=X is None,
            **names,
        )

    @property
    def n_beyond(self) -> int:
        """How many rows are in bins beyond the threshold."""
        return round(float(self.counts[self.edges > self.threshold][1:].sum()))

    @property
    def description(self) -> str:
        """The picture in words."""
        n = float(self.counts.sum())
        if n == 0:
            return "The distances of the rows were not recorded."
        text = (
            f"Histogram of the distances of {count(n)} rows to the subspace: "
            f"{percent(self.n_beyond, n)} are beyond the threshold of {self.threshold:.2g}."
        )
        if self._n_exact:
            text += f" {count(self._n_exact)} rows lie on it up to rounding."
        return text

    @property
    def _n_exact(self) -> float:
        return float(self.counts[0])

    def plot(self, ax: Any = None, *, log_y: bool | None = None, n_bars: int = N_BARS) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure, which ``plt.show()`` shows.
        log_y : bool, optional
            Whether the numbers of rows are on a logarithmic axis; by default if one of the groups
            could not be seen otherwise.
        n_bars : int
            About so many bars; neighbouring bins are put together.

        Returns
        -------
        the display itself
        """
        self._log_y, self._n_bars = log_y, n_bars
        return super().plot(ax)

    def _draw(self, ax: Any) -> None:
        if self.counts.sum() == 0:
            say(ax, "Distances", "not recorded: pass X to see\nthe distances of its rows")
            return
        if len(self.edges) < 2:
            say(ax, "Distances", f"all {count(self.counts.sum())} rows are at distance 0")
            return
        borders, group = self._bars()
        bars = np.add.reduceat(self.counts, group)
        ax.stairs(bars, borders, fill=True, color=MISSING, label=f"{count(bars.sum())} rows")
        ax.stairs(bars, borders, color=MUTED, linewidth=0.8)
        tops = [float(bars.max())]
        curves = ((self.inliers, RIGHT, "inliers"), (self.outliers, WRONG, "outliers"))
        for curve, color, name in curves:
            if curve is not None and curve.sum() >= 0.5:
                x, y = self._curve(curve, borders, group)
                ax.plot(x, y, color=color, label=f"{name}, {self._model(curve)}")
                tops.append(float(y.max()))
        # A threshold of zero has no place on a logarithmic axis: its place is the left end.
        at = max(self.threshold, borders[0])
        # Not up into the legend.
        name = f"threshold {self.threshold:.2g}"
        ax.axvline(at, ymax=0.78, color="black", linestyle="--", linewidth=1.2, label=name)
        ax.set(xscale="log", xlim=(borders[0], borders[-1] * 1.05), xlabel=self.xlabel)
        ax.set(ylabel="rows", title=self._title())
        few_ticks(ax.xaxis)
        log_y = self._unequal(bars, borders) if self._log_y is None else self._log_y
        if log_y:
            ax.set_yscale("log")
            ax.set_ylim(0.5, max(tops) * (max(tops) / 0.5) ** 0.4)
        else:
            ax.set_ylim(0, 1.5 * max(tops))
        ax.legend(loc="upper left", ncols=2, columnspacing=1.0, handlelength=1.4)
        if self._n_exact and self.inliers is None:
            ax.annotate(
                " exact", (borders[0], 0.5), xycoords=("data", "axes fraction"), fontsize=8,
                color="#555555", rotation=90, va="center", xytext=(8, 0),
                textcoords="offset points",
            )  # fmt: skip

    def _model(self, curve: Array) -> str:
        return f"model: {count(curve.sum())}" if self.fitted else "as in the fit"

    def _title(self) -> str:
        n = float(self.counts.sum())
        return f"Distances: {percent(self.n_beyond, n)} beyond the threshold"

    def _bars(self) -> tuple[Array, Array]:
        """Return the borders of the bars (k + 1,) and the first bin of each (k,).

        They hold every bin with rows, and the threshold.
        """
        seen = np.flatnonzero(self.counts)
        at = int(np.clip(np.searchsorted(self.edges, self.threshold), 0, len(self.edges) - 1))
        first, last = min(seen[0], at), max(seen[-1], at)
        width = max(1, -(-(last - first + 1) // self._n_bars))
        group = np.arange(first, last + 1, width)
        growth = self.edges[1] / self.edges[0]
        lower = np.append(self.edges[0] / growth, self.edges)  # lower[j] to edges[j] is bin j
        end = min(group[-1] + width, len(self.edges))
        return np.append(lower[group], lower[end]), group

    def _curve(self, expected: Array, borders: Array, group: Array) -> tuple[Array, Array]:
        """Return the curve at the middle of each bin, in rows per bar."""
        growth = self.edges[1] / self.edges[0]
        first = group[0]
        last = int(np.searchsorted(self.edges, borders[-1] * np.sqrt(growth)))
        bins = np.arange(max(first, 1), last)  # the lowest bin has no width
        width = group[1] - group[0] if len(group) > 1 else 1
        return self.edges[bins] / np.sqrt(growth), width * expected[bins]

    def _unequal(self, bars: Array, borders: Array) -> bool:
        """Whether one group's highest bar is far higher than the other's."""
        near = borders[1:] <= self.threshold
        if not (np.any(bars[near] > 0) and np.any(bars[~near] > 0)):
            return False
        tops = sorted([float(bars[near].max()), float(bars[~near].max())])
        return tops[1] > UNEQUAL * tops[0]


def _distances(model: Any, X: Array) -> Array:
    return -to_numpy(model.score_samples(X)).astype(float)


def _without_model(model: Any, X: Array | None) -> tuple[Array, Array]:
    """Return edges and counts where no two groups were fitted.

    Then all rows of the fit lie on the subspace and are inliers, unless that is the origin alone,
    or the model is from an earlier version.
    """
    if X is None:
        known = hasattr(model, "_distance_record") and model.n_components_ > 0
        return np.ones(1), np.array([float(len(model.labels_)) if known else 0.0])
    J = _distances(model, X)
    largest = float(J.max(initial=0.0))
    if largest == 0:
        return np.ones(1), np.array([float(len(J))])
    edges = largest * np.geomspace(np.sqrt(np.finfo(float).eps), 1.0, 1024)
    counts = np.bincount(np.searchsorted(edges, J).clip(max=len(edges) - 1), minlength=len(edges))
    return edges, counts

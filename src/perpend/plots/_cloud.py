"""A point cloud in space, its outliers, and the fitted plane or line."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from perpend._typing import Array, RandomState
from perpend.exceptions import InputError
from perpend.formats._dataset import Dataset
from perpend.geometry import as_generator, complement
from perpend.plots._display import Display
from perpend.plots._style import COLORS, MUTED, RIGHT, WRONG
from perpend.plots._words import count, percent
from perpend.rows.kinds import to_numpy

MOST_POINTS = 20_000
VIEW = (1.0, 99.0)  # percentiles of the coordinates that are always in view,
MARGIN = 0.5  # and so many times their range on each side
FAR_AXIS = 1e3  # ranges from the origin: then ticks have too many digits, as those of a map do


@dataclass(eq=False, repr=False)
class CloudDisplay(Display):
    """Points in space, coloured by label, with the fitted plane or line.

    Examples
    --------
    >>> from perpend import DPCP, datasets, plots
    >>> X = datasets.make_subspace(300, 100, n_features=3, codimension=1, random_state=0).X
    >>> display = plots.CloudDisplay.from_estimator(DPCP(random_state=1).fit(X), X, n_points=200)
    >>> display.points.shape, display.n_inliers, display.n_outliers
    ((200, 3), 300, 100)
    """

    points: Array  # (k, 3), those to draw
    labels: Array  # (k,): +1 for inliers, -1 for outliers
    _: KW_ONLY
    n_inliers: Any = None  # int, in the whole cloud; by default of the points to draw
    n_outliers: Any = None  # the same
    location: Array | None = None  # (3,), a point of the plane or line
    components: Array | None = None  # (2, 3) or (1, 3), orthonormal rows that span it
    names: Sequence[str] = ("x", "y", "z")  # of the axes

    size, projection = (5.4, 4.8), "3d"

    def __post_init__(self) -> None:
        self.points, self.labels = np.asarray(self.points, dtype=float), np.asarray(self.labels)
        if self.points.shape != (len(self.labels), 3):
            raise InputError(
                f"points has shape {self.points.shape} for {len(self.labels)} labels; expected "
                "three coordinates a point."
            )
        if self.n_inliers is None:
            self.n_inliers = int(np.sum(self.labels == 1))
        if self.n_outliers is None:
            self.n_outliers = int(np.sum(self.labels == -1))

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Dataset | Array,
        *,
        columns: Sequence[int] = (0, 1, 2),
        n_points: int = MOST_POINTS,
        random_state: RandomState = 0,
        ax: Any = None,
    ) -> Self:
        """Draw the points of a cloud, and the subspace if there are only three features.

        Parameters
        ----------
        X : Dataset, or array-like of shape (n_samples, n_features)
        columns : three of the features
            The coordinates to draw.
        n_points : int
            The largest number of points to draw, chosen at random; all of them are counted.
        random_state : int, Generator, RandomState or None
            For this choice.
        ax : matplotlib axes with ``projection="3d"``, optional
        """
        check_is_fitted(model)
        names = getattr(model, "feature_names_in_", None)
        if isinstance(X, Dataset):
            X, names = X.X, names if X.columns is None else X.columns
        labels, D = to_numpy(model.predict(X)), model.n_features_in_
        if len(columns) != 3 or not all(0 <= column < D for column in columns):
            raise InputError(
                f"columns={columns}; expected three of the {D} features, from 0 to {D - 1}."
            )
        P = to_numpy(X)
        named = tuple("xyz" if names is None else (str(names[column]) for column in columns))
        chosen = sample(len(P), n_points, random_state)
        return cls._of(model, P, labels, chosen, names=named, columns=columns).plot(ax)

    @classmethod
    def _of(
        cls,
        model: Any,
        X: Array,
        labels: Array,
        chosen: Array,
        *,
        names: Sequence[str],
        columns: Sequence[int] = (0, 1, 2),
    ) -> Self:
        """Take the chosen points with their labels, and the subspace; nothing is drawn yet."""
        location = components = None
        if model.n_features_in_ == 3 and 0 < model.n_components_ < 3:
            location = to_numpy(model.location_).astype(float)[list(columns)]
            # These follow the axes of the data, so that a patch of a plane looks straight.
            basis = complement(to_numpy(model.normals_).astype(float).T)
            components = basis.T[:, list(columns)]
        return cls(
            X[chosen][:, list(columns)],
            labels[chosen],
            n_inliers=int(np.sum(labels == 1)),
            n_outliers=int(np.sum(labels == -1)),
            location=location,
            components=components,
            names=names[:3],
        )

    @property
    def description(self) -> str:
        """The picture in words."""
        n = self.n_inliers + self.n_outliers
        shape = {1: "line", 2: "plane"}.get(len(() if self.components is None else self.components))
        found = f", with the {shape} that was found" if shape else ""
        drawn = f" {count(len(self.points))} points are drawn." if len(self.points) < n else ""
        return (
            f"Cloud of {count(n)} points in space, {count(self.n_outliers)} of them "
            f"({percent(self.n_outliers, n)}) outliers{found}.{drawn}"
        )

    def _draw(self, ax: Any) -> None:
        low, high = self._view
        inside = np.all((self.points >= low) & (self.points <= high), axis=1)
        size = float(np.clip(4000 / max(len(self.points), 1), 0.7, 12))
        for label, color, name in (
            (1, RIGHT, f"inliers ({count(self.n_inliers)})"),
            (-1, WRONG, f"outliers ({count(self.n_outliers)})"),
        ):
            some = self.points[inside & (self.labels == label)]
            ax.scatter(
                *some.T, s=size, color=color, alpha=0.7, linewidths=0, rasterized=True,
                depthshade=False, label=name,
            )  # fmt: skip
        self._draw_subspace(ax)
        ax.set_box_aspect(np.maximum(high - low, 0.15 * np.max(high - low)), zoom=0.92)
        ax.tick_params(labelsize=7, pad=0)
        for which, *ends, name in zip("xyz", low, high, self.names, strict=True):
            side, base = getattr(ax, f"{which}axis"), offset(*ends)
            moved = f" {'-' if base > 0 else '+'} {abs(base):.12g}" if base else ""
            if base:
                side.set_major_formatter(lambda value, _, base=base: f"{value - base:.4g}")
            ax.set(**{f"{which}lim": ends, f"{which}label": name + moved})
            # The ends of two axes meet.
            side.get_major_locator().set_params(nbins=5, prune="both")
        ax.legend(
            loc="upper center", bbox_to_anchor=(0.5, -0.08), ncols=3, markerscale=4 / size**0.5,
            handletextpad=0.3,
        )  # fmt: skip
        n, k, n_far = self.n_inliers + self.n_outliers, len(self.points), int(np.sum(~inside))
        title = f"{count(n)} points" if k == n else f"{count(k)} of {count(n)} points drawn"
        ax.set_title(f"{title}, {count(n_far)} of them out of view" if n_far else title)

    @property
    def _view(self) -> tuple[Array, Array]:
        """The corners of the view: a few far points must not shrink the others."""
        if len(self.points) == 0:
            return np.full(3, -1.0), np.full(3, 1.0)
        low, high = np.percentile(self.points, VIEW, axis=0)
        width = high - low
        width = np.maximum(width, 1e-3 * np.max(width) or 1.0)
        low = np.maximum(low - MARGIN * width, self.points.min(axis=0) - 0.02 * width)
        high = np.minimum(high + MARGIN * width, self.points.max(axis=0) + 0.02 * width)
        return low, high

    @property
    def _corners(self) -> Array | None:
        """Ends of the line (2, 3) or corners of the plane (4, 3), around the inliers."""
        inliers = self.points[self.labels == 1]
        if self.location is None or self.components is None or len(inliers) == 0:
            return None
        along = (inliers - self.location) @ np.asarray(self.components, dtype=float).T
        low, high = np.percentile(along, VIEW, axis=0)
        which = [(0,), (1,)] if len(low) == 1 else [(0, 0), (1, 0), (1, 1), (0, 1)]
        at = np.where(np.array(which), high, low)
        return np.asarray(self.location + at @ self.components)

    def _draw_subspace(self, ax: Any) -> None:
        corners = self._corners
        if corners is None:
            return
        if len(corners) == 2:
            ax.plot(*corners.T, color=COLORS[-1], linewidth=2, label="line")
            return
        surface = np.moveaxis(corners[[[0, 1], [3, 2]]], -1, 0)
        ax.plot_surface(*surface, color=COLORS[-1], alpha=0.15, shade=False)
        ax.plot(*corners[[0, 1, 2, 3, 0]].T, color=MUTED, linewidth=1.2, label="plane")


def offset(low: float, high: float) -> float:
    """Return a round number to subtract from the ticks of an axis far from the origin, or 0.

    >>> offset(412301.0, 412309.0), offset(519.0, 521.5)
    (412300.0, 0.0)
    """
    if max(abs(low), abs(high)) < FAR_AXIS * (high - low):
        return 0.0
    step = 10.0 ** np.ceil(np.log10(high - low))
    return float(np.floor(low / step) * step)


def sample(n: int, at_most: int, random_state: RandomState) -> Array:
    """Choose at most so many of n rows at random, ascending."""
    if n <= at_most:
        return np.arange(n)
    return np.sort(as_generator(random_state).choice(n, at_most, replace=False))

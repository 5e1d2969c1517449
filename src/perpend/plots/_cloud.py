"""A point cloud in space, its outliers, and the fitted plane or line."""

from collections.abc import Sequence
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


class CloudDisplay(Display):
    """Points in space, coloured by label, with the fitted plane or line.

    Parameters
    ----------
    points : array of shape (k, 3)
        The points to draw.
    labels : array of shape (k,)
        +1 for inliers, -1 for outliers.
    n_inliers, n_outliers : int, optional
        In the whole cloud; by default of the points to draw.
    location : array of shape (3,), optional
        A point of the plane or line.
    components : array of shape (2, 3) or (1, 3), optional
        Orthonormal rows that span it.
    names : three of str
        Of the axes.

    Examples
    --------
    >>> from perpend import DPCP
    >>> from perpend.datasets import make_subspace
    >>> from perpend.plots import CloudDisplay
    >>> X = make_subspace(300, 100, n_features=3, codimension=1, random_state=0).X
    >>> display = CloudDisplay.from_estimator(DPCP(random_state=1).fit(X), X, n_points=200)
    >>> display.points.shape, display.n_inliers, display.n_outliers
    ((200, 3), 300, 100)
    """

    size = (5.4, 4.8)
    projection = "3d"

    def __init__(
        self,
        points: Array,
        labels: Array,
        *,
        n_inliers: int | None = None,
        n_outliers: int | None = None,
        location: Array | None = None,
        components: Array | None = None,
        names: Sequence[str] = ("x", "y", "z"),
    ) -> None:
        self.points, self.labels = np.asarray(points, dtype=float), np.asarray(labels)
        if self.points.shape != (len(self.labels), 3):
            raise InputError(
                f"points has shape {self.points.shape} for {len(self.labels)} labels; expected "
                "three coordinates a point."
            )
        self.n_inliers = int(np.sum(self.labels == 1)) if n_inliers is None else n_inliers
        self.n_outliers = int(np.sum(self.labels == -1)) if n_outliers is None else n_outliers
        self.location, self.components, self.names = location, components, names

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
        model : a fitted method of perpend
        X : Dataset, or array-like of shape (n_samples, n_features)
        columns : three of the features
            The coordinates to draw.
        n_points : int
            The largest number of points to draw, chosen at random; all of them are counted.
        random_state : int, Generator, RandomState or None
            For this choice.
        ax : matplotlib axes with ``projection="3d"``, optional

        Returns
        -------
        CloudDisplay
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
        P = to_numpy(X) if hasattr(X, "__array__") else np.asarray(X)
        named = "xyz" if names is None else [str(names[column]) for column in columns]
        return cls._of(
            model, P, labels, columns=columns, n_points=n_points, random_state=random_state,
            names=tuple(named),
        ).plot(ax)  # fmt: skip

    @classmethod
    def _of(
        cls,
        model: Any,
        X: Array,
        labels: Array,
        *,
        names: Sequence[str],
        columns: Sequence[int] = (0, 1, 2),
        n_points: int = MOST_POINTS,
        random_state: RandomState = 0,
    ) -> Self:
        """Take points with their labels, and the subspace in space, and do not draw them yet."""
        chosen = sample(len(X), n_points, random_state)
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
        text = (
            f"Cloud of {count(n)} points in space, {count(self.n_outliers)} of them "
            f"({percent(self.n_outliers, n)}) outliers"
        )
        text += f", with the {self._shape} that was found" if self._shape else ""
        drawn = f" {count(len(self.points))} points are drawn." if len(self.points) < n else ""
        return f"{text}.{drawn}"

    @property
    def _shape(self) -> str:
        return {1: "line", 2: "plane"}.get(
            0 if self.components is None else len(self.components), ""
        )

    def _draw(self, ax: Any) -> None:
        low, high = self._view
        inside = np.all((self.points >= low) & (self.points <= high), axis=1)
        size = float(np.clip(4000 / max(len(self.points), 1), 0.7, 12))
        groups = (
            (1, RIGHT, "inliers", self.n_inliers),
            (-1, WRONG, "outliers", self.n_outliers),
        )
        for label, color, name, n in groups:
            some = self.points[inside & (self.labels == label)]
            ax.scatter(
                *some.T, s=size, color=color, alpha=0.7, linewidths=0, rasterized=True,
                depthshade=False, label=f"{name} ({count(n)})",
            )  # fmt: skip
        self._draw_subspace(ax)
        ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
        ax.set_box_aspect(np.maximum(high - low, 0.15 * np.max(high - low)), zoom=0.92)
        ax.set(xlabel=self.names[0], ylabel=self.names[1], zlabel=self.names[2])
        ax.tick_params(labelsize=7, pad=0)
        for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
            axis.get_major_locator().set_params(nbins=5, prune="both")  # ends of two axes meet
        ax.legend(
            loc="upper center", bbox_to_anchor=(0.5, -0.08), ncols=3, markerscale=4 / size**0.5,
            handletextpad=0.3,
        )  # fmt: skip
        ax.set_title(self._title(int(np.sum(~inside))))

    def _title(self, n_far: int) -> str:
        n, k = self.n_inliers + self.n_outliers, len(self.points)
        text = f"{count(n)} points" if k == n else f"{count(k)} of {count(n)} points drawn"
        return f"{text}, {count(n_far)} of them out of view" if n_far else text

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


def sample(n: int, at_most: int, random_state: RandomState) -> Array:
    """Choose at most so many of n rows at random, ascending."""
    if n <= at_most:
        return np.arange(n)
    return np.sort(as_generator(random_state).choice(n, at_most, replace=False))

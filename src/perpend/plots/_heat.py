"""How far out each pixel of a scene is, as a heat map."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.formats._dataset import Dataset
from perpend.plots._display import Display
from perpend.plots._mask import LONGEST_SIDE, NO_DATA_COLOR, _pixels
from perpend.plots._style import without_axes
from perpend.plots._words import count, number
from perpend.rows.kinds import to_numpy

LOW = 0.02  # share of the pixels that are black: the scale begins there
WIDEST = 1e4  # ratio of the ends of the scale; a few distances near zero must not take it all
# Nine colours of matplotlib's "inferno", at equal steps: here and in the report without matplotlib.
HEAT = np.array(
    [[0, 0, 4], [31, 12, 72], [85, 15, 109], [136, 34, 106], [186, 54, 85],
     [227, 89, 51], [249, 140, 10], [249, 201, 50], [252, 255, 164]]
) / 255  # fmt: skip


@dataclass(eq=False, repr=False)
class DistanceMapDisplay(Display):
    """How far out each pixel of a scene is, on a logarithmic scale: anomalies glow.

    Examples
    --------
    >>> from perpend import DPCP, datasets, plots
    >>> data = datasets.make_subspace(350, 50, n_features=8, codimension=3, random_state=0)
    >>> scene = data.X.reshape(20, 20, 8)
    >>> model = DPCP(affine=True, outliers="both", random_state=1).fit(data.X)
    >>> plots.DistanceMapDisplay.from_estimator(model, scene).distance.shape
    (20, 20)
    """

    distance: Array  # (height, width): the distance that decides the labels; NaN without data
    threshold: float  # the distance beyond which a pixel is an outlier
    _: KW_ONLY
    label: str = "distance"  # of the colour bar

    def __post_init__(self) -> None:
        self.distance = np.asarray(self.distance, dtype=float)
        if self.distance.ndim != 2:
            raise InputError(f"distance has shape {self.distance.shape}; expected (height, width).")

    @classmethod
    def from_estimator(cls, model: Any, scene: Dataset | Array, *, ax: Any = None) -> Self:
        """Draw the distances of a scene by a fitted model.

        Parameters
        ----------
        scene : Dataset of kind "image", or array of shape (height, width, n_features)
            Pixels of an array with a NaN or an infinity have no data.
        """
        check_is_fitted(model)
        X = _pixels(scene)[0]
        return cls._of(model, scene, -model.score_samples(X) if len(X) else X[:, 0]).plot(ax)

    @classmethod
    def _of(cls, model: Any, scene: Dataset | Array, distance: Array) -> Self:
        """Take a scene and the distances of its pixels that have data; do not draw them yet."""
        _, positions, shape, _ = _pixels(scene)
        values = np.full(shape[0] * shape[1], np.nan)
        values[positions] = to_numpy(distance)
        both = getattr(model, "outliers", "across") == "both"
        relative = model.normalize and not model.affine_
        unit = "robust deviations" if both else "sine of the angle" if relative else "data's units"
        label = f"distance ({unit})"
        return cls(values.reshape(shape), float(model.threshold_), label=label)

    @property
    def ends(self) -> tuple[float, float]:
        """The distances of the darkest and the brightest colour."""
        known = self.distance[np.isfinite(self.distance) & (self.distance > 0)]
        if not len(known):
            return 1.0, 10.0
        high = float(known.max())
        low = max(float(np.quantile(known, LOW)), high / WIDEST)
        return (low, high) if low < high else (low / 2, 2 * low)

    @property
    def description(self) -> str:
        """The picture in words."""
        h, w = self.distance.shape
        low, high = self.ends
        beyond = int(np.sum(self.distance > self.threshold))
        return (
            f"Heat map of the distances of {count(h)} × {count(w)} pixels, from {number(low)} to "
            f"{number(high)} on a logarithmic scale. {count(beyond)} are beyond the threshold, "
            f"{number(self.threshold)}."
        )

    def _heat(self, values: Array) -> Array:
        """Return where distances are on the scale, from 0 to 1."""
        low, high = self.ends
        return np.log(np.clip(values, low, high) / low) / np.log(high / low)

    def _colors(self, largest: int) -> Array:
        """Return the picture (height, width, 3) in [0, 1], no side longer than `largest`.

        A pixel that stands for several shows the farthest of them, or it would not be seen.
        """
        values = self.distance
        for axis in (0, 1):
            starts = np.arange(0, values.shape[axis], -(-max(self.distance.shape) // largest))
            values = np.fmax.reduceat(values, starts, axis=axis)
        known = np.isfinite(values)
        heat = self._heat(np.where(known, values, self.ends[0]))
        return np.where(known[..., None], heat_colors(heat), NO_DATA_COLOR)

    def _draw(self, ax: Any) -> None:
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import LinearSegmentedColormap, LogNorm

        h, w = self.distance.shape
        picture = self._colors(LONGEST_SIDE)
        ax.imshow(picture, interpolation="nearest", extent=(-0.5, w - 0.5, h - 0.5, -0.5))
        ax.set_title(f"{count(h)} × {count(w)} pixels")
        without_axes(ax)
        colors = LinearSegmentedColormap.from_list("heat", HEAT.tolist())
        scale = ScalarMappable(LogNorm(*self.ends), colors)
        bar = ax.figure.colorbar(scale, ax=ax, label=self.label, shrink=0.9)
        if self.ends[0] < self.threshold < self.ends[1]:
            bar.ax.axhline(self.threshold, color="white", linewidth=2)


def heat_colors(heat: Array) -> Array:
    """Return the colours (..., 3) of values from 0 to 1.

    >>> heat_colors(np.array([0.0, 1.0])).round(2).tolist()
    [[0.0, 0.0, 0.02], [0.99, 1.0, 0.64]]
    """
    steps = np.linspace(0, 1, len(HEAT))
    return np.stack([np.interp(heat, steps, channel) for channel in HEAT.T], axis=-1)

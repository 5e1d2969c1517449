"""The outliers of an image, drawn over it."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.formats._dataset import Dataset
from perpend.plots._display import Display
from perpend.plots._style import WRONG, without_axes
from perpend.plots._words import count, percent
from perpend.rows.kinds import to_numpy

STRETCH = (2.0, 98.0)  # percentiles that become black and white
LONGEST_SIDE = 1200  # pixels that are drawn
NO_DATA_COLOR = (0.6, 0.6, 0.6)
OPACITY = 0.85  # of an outlier


@dataclass(eq=False, repr=False)
class MaskDisplay(Display):
    """The outliers among the pixels of a scene, over its picture in three bands.

    Examples
    --------
    >>> import numpy as np
    >>> from perpend import DPCP, datasets, plots
    >>> data = datasets.make_subspace(350, 50, n_features=8, codimension=3, random_state=0)
    >>> scene = data.X.reshape(20, 20, 8)
    >>> display = plots.MaskDisplay.from_estimator(DPCP(random_state=1).fit(data.X), scene)
    >>> display.image.shape, int((display.mask == -1).sum())
    ((20, 20, 3), 50)
    """

    image: Array  # (height, width, 3), colours in [0, 1]
    mask: Array  # (height, width): +1 for inliers, -1 for outliers, 0 (grey) where there is no data
    _: KW_ONLY
    bands: Sequence[int | str] | None = None  # three names, of red, green and blue, for the title

    def __post_init__(self) -> None:
        self.image, self.mask = np.asarray(self.image, dtype=float), np.asarray(self.mask)
        if self.image.shape != (*self.mask.shape, 3):
            raise InputError(
                f"image has shape {self.image.shape} and mask {self.mask.shape}; expected "
                "(height, width, 3) and (height, width)."
            )
        self.bands = None if self.bands is None else tuple(self.bands)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        scene: Dataset | Array,
        *,
        bands: Sequence[int] | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw the outliers of a scene by a fitted model.

        Parameters
        ----------
        scene : Dataset of kind "image", or array of shape (height, width, n_features)
            Pixels of an array with a NaN or an infinity have no data.
        bands : three of the features, optional
            Red, green and blue; by default from the last, the middle and the first third.
        """
        check_is_fitted(model)
        X = _pixels(scene)[0]
        labels = to_numpy(model.predict(X)) if len(X) else np.zeros(0)
        return cls._of(scene, labels, bands).plot(ax)

    @classmethod
    def _of(cls, scene: Dataset | Array, labels: Array, bands: Sequence[int] | None = None) -> Self:
        """Take a scene and the labels of its pixels that have data, and do not draw them yet."""
        X, positions, shape, names = _pixels(scene)
        chosen = _bands(bands, X.shape[1])
        mask = np.zeros(shape[0] * shape[1], dtype=np.int8)
        mask[positions] = labels
        image = np.full((len(mask), 3), NO_DATA_COLOR)
        image[positions] = _stretched(X[:, chosen])
        known = [names[band] if names else band for band in chosen]
        return cls(image.reshape(*shape, 3), mask.reshape(shape), bands=known)

    @property
    def n_outliers(self) -> int:
        """The number of pixels that are outliers."""
        return int(np.sum(self.mask == -1))

    @property
    def description(self) -> str:
        """The picture in words."""
        h, w = self.mask.shape
        known = int(np.sum(self.mask != 0))
        text = (
            f"Scene of {count(h)} × {count(w)} pixels with its outliers in colour: "
            f"{count(self.n_outliers)} of {count(known)} ({percent(self.n_outliers, known)})."
        )
        missing = self.mask.size - known
        return f"{text} {count(missing)} pixels without data are grey." if missing else text

    def plot(self, ax: Any = None, *, color: str = WRONG) -> Self:
        """Draw it.

        Parameters
        ----------
        color : str
            Of the outliers.
        """
        return self._plot(ax, partial(self._draw, color=color))

    def _draw(self, ax: Any, *, color: str = WRONG) -> None:
        from matplotlib.colors import to_rgb
        from matplotlib.patches import Patch

        image, outliers, _ = self._smaller(LONGEST_SIDE)
        alpha = OPACITY * np.sqrt(outliers)[:, :, None]
        shown = (1 - alpha) * image + alpha * np.array(to_rgb(color))
        h, w = self.mask.shape
        ax.imshow(shown, interpolation="nearest", extent=(-0.5, w - 0.5, h - 0.5, -0.5))
        title = f"{count(h)} × {count(w)} pixels"
        if self.bands is not None:
            bands = ", ".join(f"{band}"[:16] for band in self.bands)
            title += f"\nbands {bands} as red, green, blue"
        ax.set_title(title)
        without_axes(ax)
        known = int(np.sum(self.mask != 0))
        patches = [Patch(color=color, label=f"outliers ({percent(self.n_outliers, known)})")]
        if known < self.mask.size:
            patches.append(Patch(color=NO_DATA_COLOR, label="no data"))
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.01), "borderaxespad": 0.2}
        ax.legend(handles=patches, ncols=2, **place)

    def _smaller(self, largest: int) -> tuple[Array, Array, int]:
        """Return image, share of outliers, and how many pixels become one along each side.

        No side is longer than `largest`. A pixel that stands for several has their mean colour.
        """
        step = -(-max(self.mask.shape) // largest)
        image = _block_means(np.clip(self.image, 0, 1), step)
        return image, _block_means(self.mask == -1, step), step


def _pixels(scene: Dataset | Array) -> tuple[Array, Array, tuple[int, int], tuple[str, ...] | None]:
    """Return pixels with data (n, D), their positions (n,), height and width, names of bands."""
    if isinstance(scene, Dataset):
        if scene.kind != "image":
            raise InputError(f"{scene.source} is a {scene.kind}; expected an image.")
        h, w = scene.shape
        positions = np.arange(len(scene.X)) if scene.positions is None else scene.positions
        return np.asarray(scene.X), np.asarray(positions), (h, w), scene.columns
    cube = np.asarray(scene)
    if cube.ndim != 3:
        raise InputError(
            f"scene has shape {cube.shape}; expected (height, width, bands), or a Dataset of kind "
            '"image".'
        )
    X = cube.reshape(-1, cube.shape[2])
    positions = np.flatnonzero(np.isfinite(X).all(axis=1))
    return X if len(positions) == len(X) else X[positions], positions, cube.shape[:2], None


def _bands(bands: Sequence[int] | None, n: int) -> list[int]:
    """Return the bands of red, green and blue.

    >>> _bands(None, 200), _bands(None, 1), _bands([3, 2, 1], 4)
    ([166, 100, 33], [0, 0, 0], [3, 2, 1])
    """
    if bands is None:
        return [int(n * share) for share in (5 / 6, 1 / 2, 1 / 6)]
    chosen = [int(band) for band in bands]
    if len(chosen) != 3 or not all(0 <= band < n for band in chosen):
        raise InputError(f"bands={bands}; expected three numbers from 0 to {n - 1}.")
    return chosen


def _stretched(X: Array) -> Array:
    """Stretch each column between its percentiles; a constant one is grey."""
    X = np.asarray(X, dtype=float)
    if len(X) == 0:
        return X
    low, high = np.percentile(X, STRETCH, axis=0)
    width = np.where(high > low, high - low, np.inf)
    return np.where(high > low, np.clip((X - low) / width, 0, 1), 0.5)


def _block_means(mask: Array, step: int) -> Array:
    """Return the mean of each step x step block; those at the border may be smaller.

    >>> _block_means(np.array([[True, False, True]]), 2)
    array([[0.5, 1. ]])
    """
    values, whole = np.asarray(mask, dtype=float), np.ones(mask.shape)
    for axis in (0, 1):
        starts = np.arange(0, mask.shape[axis], step)
        values, whole = (np.add.reduceat(part, starts, axis=axis) for part in (values, whole))
    return values / whole

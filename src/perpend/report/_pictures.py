"""The pictures of the page, in a form that can be kept as JSON.

Every picture has a limit on its size, so the page stays small for large data.
"""

import base64
from typing import Any, NamedTuple

import numpy as np

from perpend._json import plain
from perpend._typing import Array
from perpend.estimator import SubspaceEstimator
from perpend.formats._dataset import Dataset, Labelled
from perpend.plots import CloudDisplay, MaskDisplay, ProfileDisplay, SpectrumDisplay, SpreadDisplay
from perpend.plots._cloud import MOST_POINTS, sample
from perpend.plots._distances import DistanceDisplay
from perpend.plots._heat import DistanceMapDisplay, heat_colors
from perpend.plots._picture import Axis, Dots, Picture, ends
from perpend.plots._profile import scales_matter
from perpend.plots._words import count, number
from perpend.report._png import data_uri
from perpend.report._words import Facts, nouns, short
from perpend.rows.kinds import to_numpy

BARS = 160  # in the histogram of the distances, which can be zoomed
VIEW_POINTS = 3000
IMAGE_SIDE = 800  # pixels
LARGEST_UINT16 = 65535  # stands for the far end of an axis
OUTLIER_COLOR = (213, 94, 0)  # over a scene
BAR_STEPS = 256  # colours of the bar beside a heat map


class Rows(NamedTuple):
    """The rows and columns, if they were given, in one form."""

    X: Array | None  # (n, D) in memory
    columns: list[str]
    named: bool  # whether the data has names for its columns
    dataset: Dataset | None
    kind: str  # of data

    @property
    def word(self) -> str:
        """What the rows are called."""
        return nouns(self.kind, len(self.columns))["rows"]


def picture_facts(
    model: SubspaceEstimator, rows: Rows, labels: Array, labelled: Labelled | None
) -> Facts:
    """Return the pictures that fit the model and the kind of data, some of them None.

    Those that are not `image` and `cloud` are stored `Picture`s.
    """
    X, dataset = rows.X, rows.dataset
    scales = scales_matter(model)
    descents = not scales and not model.affine_ and model.codimension_ > 0  # which have shown it
    image = dataset is not None and rows.kind == "image" and len(dataset.shape) == 2
    cloud = X is not None and (X.shape[1] == 3 or (rows.kind == "cloud" and X.shape[1] > 3))
    view = X is not None and not cloud and X.shape[1] > 1
    return {
        "image": _image(rows, labels) | _heat(model, rows, labelled) if image else None,
        "cloud": _cloud(model, rows, labels) if cloud else None,
        "distances": _distances(model, labelled, rows.word),
        "view": _view(model, rows, labels).stored() if view else None,
        "profile": _stored(ProfileDisplay.of(model), rows.word) if scales else None,
        "directions": _stored(SpectrumDisplay.of(model), rows.word) if descents else None,
        "spread": _stored(SpreadDisplay.of(model), rows.word),
    }


def _stored(display: Any, word: str, **options: Any) -> dict[str, Any] | None:
    """Return the picture of a display; None if there is nothing to draw."""
    display._word = word
    picture: Picture = display._picture(**options)
    return None if picture.note else picture.stored()


def _distances(
    model: SubspaceEstimator, labelled: Labelled | None, word: str
) -> dict[str, Any] | None:
    """Return the histogram; None if the distances are unknown or all zero."""
    if labelled is None or model.codimension_ == 0:
        return None
    distance = np.asarray(to_numpy(labelled.distance), dtype=float)
    fitted = len(distance) == len(model.labels_)
    distance = distance[np.isfinite(distance)]
    if not np.any(distance > 0):
        return None
    display = DistanceDisplay._of_distances(model, distance, fitted=fitted)
    # Zooming shows small groups, too, so the axis need not be logarithmic.
    return _stored(display, word, log_y=False, n_bars=BARS)


def _view(model: SubspaceEstimator, rows: Rows, labels: Array) -> Picture:
    """Show the rows along the subspace and across it.

    Across means along the normal direction in which the outliers spread most. A table of two
    columns is shown as it is. If only the directions of the rows count, they have length one.
    """
    X = np.asarray(rows.X)
    chosen = sample(len(X), VIEW_POINTS, 0)
    if X.shape[1] == 2:
        points, axes = X[chosen].astype(float), rows.columns[:2]
    else:
        P = X[chosen].astype(float) - to_numpy(model.location_).astype(float)
        if model.normalize and not model.affine_:
            P /= np.maximum(np.abs(P).max(axis=1, keepdims=True), np.finfo(float).tiny)
            P /= np.maximum(np.linalg.norm(P, axis=1, keepdims=True), np.finfo(float).tiny)
        along, across, axes = _axes(model, P, labels[chosen])
        points = P @ np.stack([along, across], axis=1)
    inlier = labels[chosen] == 1
    # A few points far away must not shrink all others to a dot.
    few = len(points) // 500
    inner = np.sort(points, axis=0)[few : len(points) - few]
    first, second = (short(axis, 32) for axis in axes)
    (x0, y0), (x1, y1) = points.min(axis=0), points.max(axis=0)
    description = (
        f"{count(len(points))} of {count(len(X))} {rows.word} seen along two axes: {first} from "
        f"{number(x0)} to {number(x1)}, {second} from {number(y0)} to {number(y1)}. "
        f"{count(inlier.sum())} of them are inliers."
    )
    return Picture(
        f"{count(len(points))} of {count(len(X))} {rows.word}",
        description,
        Axis(first, *ends(inner[:, 0], margin=0.06)),
        Axis(second, *ends(inner[:, 1], margin=0.06)),
        [
            Dots(points[kind, 0], points[kind, 1], color, name, size=2.6)
            for kind, color, name in ((~inlier, "out", "outliers"), (inlier, "in", "inliers"))
            if kind.any()
        ],
    )


def _axes(model: SubspaceEstimator, rows: Array, labels: Array) -> tuple[Array, Array, list[str]]:
    """Return a direction along the subspace, one across it, and their names."""
    C, N = to_numpy(model.components_).astype(float), to_numpy(model.normals_).astype(float)
    if len(N) == 0:
        return C[0], C[1], ["first principal axis", "second principal axis"]
    group = rows[labels == -1] if np.any(labels == -1) else rows
    spread = np.linalg.svd(group @ N.T, full_matrices=False)[2]
    across = spread[0] @ N
    if len(C) == 0:
        return across, spread[1] @ N, ["across the subspace", "across it, second axis"]
    return C[0], across, ["along the subspace", "across the subspace"]


def _cloud(model: SubspaceEstimator, rows: Rows, labels: Array) -> Facts:
    """Put the points of the display into a cube, as whole numbers from 0 to 65535 along each axis.

    The plane's corners, the `patch`, are from 0 to 1 in the cube; points and labels are in base64.
    """
    X = np.asarray(rows.X)
    shown = CloudDisplay._of(model, X, labels, sample(len(X), MOST_POINTS, 0), names=rows.columns)
    low, high = shown._view
    size = float(np.max(high - low)) or 1.0
    extent = np.stack([low, high])
    low = (low + high) / 2 - size / 2
    places = (shown.points - low) / size
    inside = np.all((places >= 0) & (places <= 1), axis=1)
    corners = shown._corners
    patch = None if corners is None else (corners - low) / size
    return {
        "names": [short(name, 20) for name in shown.names],
        "points": _base64(np.round(places[inside] * LARGEST_UINT16).astype("<u2")),
        "inlier": _base64((shown.labels[inside] == 1).astype(np.uint8)),
        "low": plain(low),
        "size": size,  # of the cube, in the data's units
        "box": [[float(f"{v:.5g}") for v in end] for end in (extent - low) / size],  # of the axes
        "patch": None if patch is None else [[float(f"{v:.5g}") for v in p] for p in patch],
        "total": shown.n_inliers + shown.n_outliers,
        "shown": int(inside.sum()),
    }


def _base64(values: Array) -> str:
    return base64.b64encode(values.tobytes()).decode("ascii")


def _image(rows: Rows, labels: Array) -> Facts:
    """Draw the scene in three bands, and the outliers in a layer above it."""
    shown = MaskDisplay._of(rows.dataset, labels)
    image, outliers, factor = shown._smaller(IMAGE_SIDE)
    mask = np.zeros((*outliers.shape, 4), np.uint8)
    mask[..., :3] = OUTLIER_COLOR
    # A single outlier among many pixels must still be seen.
    mask[..., 3] = np.where(outliers > 0, 90 + 165 * np.sqrt(outliers), 0).astype(np.uint8)
    bands = [rows.columns[b] if isinstance(b, int) else b for b in shown.bands or ()]
    return {
        "scene": data_uri(np.round(255 * image).astype(np.uint8)),
        "mask": data_uri(mask),
        "height": shown.mask.shape[0],
        "width": shown.mask.shape[1],
        "factor": factor,  # pixels of the scene for one of the picture, along each side
        "bands": [short(band, 20) for band in bands],  # shown as red, green and blue
    }


def _heat(model: SubspaceEstimator, rows: Rows, labelled: Labelled | None) -> Facts:
    """Draw the distances as a heat map, with a bar of its colours; nothing if they are unknown."""
    if labelled is None or rows.dataset is None:
        return {}
    shown = DistanceMapDisplay._of(model, rows.dataset, labelled.distance)
    low, high = shown.ends
    steps = np.linspace(0, 1, BAR_STEPS)
    bar = heat_colors(steps)
    if low < shown.threshold < high:
        bar[np.argmin(np.abs(steps - shown._heat(np.array(shown.threshold))))] = 1.0
    return {
        "heat": data_uri(np.round(255 * shown._colors(IMAGE_SIDE)).astype(np.uint8)),
        "heat_bar": data_uri(np.round(255 * bar[None]).astype(np.uint8)),
        "heat_ends": [low, high],
        "heat_label": shown.label,
        "heat_description": shown.description,
    }

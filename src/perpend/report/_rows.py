"""The rows as pictures: an image with its outliers, a cloud of points, or the best view of a table.

Every picture has a limit on its size, so that a page stays small however large the data is.
"""

import base64
from typing import TypedDict

import numpy as np

from perpend._typing import Array
from perpend.estimator import SubspaceEstimator
from perpend.formats._dataset import Dataset
from perpend.geometry import complement
from perpend.report._png import data_uri
from perpend.rows.kinds import to_numpy

CLOUD_POINTS = 20_000
VIEW_POINTS = 3000
IMAGE_SIDE = 800  # pixels
FULL = 65535  # of the numbers that stand for coordinates
MARK = (213, 94, 0)  # colour of outliers over a scene
STRETCH = (2.0, 98.0)  # percentiles of the brightness that become black and white


class ViewFacts(TypedDict):
    """Rows seen along two axes."""

    axes: list[str]
    points: list[list[float]]  # (m, 2)
    inlier: list[int]  # (m,) 1 or 0
    total: int


class CloudFacts(TypedDict):
    """Points in space, as whole numbers from 0 to 65535 along each axis."""

    axes: list[int]  # the columns
    points: str  # base64 of little-endian uint16 (m, 3)
    inlier: str  # base64 of one byte each
    low: list[float]
    size: float  # of the cube that the numbers fill, in the data's units
    patch: list[list[float]] | None  # corners of the plane, in the cube from 0 to 1
    total: int
    shown: int


class ImageFacts(TypedDict):
    """A scene in grey, and its outliers as a transparent layer."""

    scene: str  # data URI of a PNG
    mask: str
    height: int
    width: int
    factor: int  # pixels of the scene for one of the picture, along each side


class PictureFacts(TypedDict):
    """What can be shown of the rows."""

    view: ViewFacts | None
    cloud: CloudFacts | None
    image: ImageFacts | None


def picture_facts(
    model: SubspaceEstimator,
    X: Array | None,
    labels: Array,
    dataset: Dataset | None,
    columns: list[str],
) -> PictureFacts:
    """Return the pictures that fit the kind of data."""
    facts = PictureFacts(view=None, cloud=None, image=None)
    if X is None:
        return facts
    if dataset is not None and dataset.kind == "image" and len(dataset.shape) == 2:
        facts["image"] = _image(X, labels, dataset)
    if X.shape[1] == 3 or (dataset is not None and dataset.kind == "cloud" and X.shape[1] > 3):
        facts["cloud"] = _cloud(model, X, labels)
    elif X.shape[1] > 1:
        facts["view"] = _view(model, X, labels, columns)
    return facts


def _sample(labels: Array, size: int) -> Array:
    """Choose rows to be shown, ascending: at random, but the same ones each time."""
    n = len(labels)
    if n <= size:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, size, replace=False))


def _view(model: SubspaceEstimator, X: Array, labels: Array, columns: list[str]) -> ViewFacts:
    """Show the rows along the subspace and across it.

    Across means along the normal direction in which the outliers spread most. A table of two
    columns is shown as it is. Where only the directions of the rows count, they have length one.
    """
    chosen = _sample(labels, VIEW_POINTS)
    if X.shape[1] == 2:
        points, axes = X[chosen].astype(float), columns[:2]
    else:
        rows = X[chosen].astype(float) - to_numpy(model.location_).astype(float)
        if model.normalize and not model.affine_:
            rows /= np.maximum(np.abs(rows).max(axis=1, keepdims=True), np.finfo(float).tiny)
            rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(float).tiny)
        along, across, axes = _axes(model, rows, labels[chosen])
        points = rows @ np.stack([along, across], axis=1)
    return ViewFacts(
        axes=list(axes),
        points=[[float(f"{v:.4g}") for v in point] for point in points],
        inlier=[int(label == 1) for label in labels[chosen]],
        total=len(X),
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


def _cloud(model: SubspaceEstimator, X: Array, labels: Array) -> CloudFacts:
    chosen = _sample(labels, CLOUD_POINTS)
    points = X[chosen, :3].astype(float)
    # A few points far away would leave a dot of the rest: the cube is that of most points.
    low, high = np.quantile(points, [0.001, 0.999], axis=0)
    margin = 0.05 * float(np.max(high - low))
    size = float(np.max(high - low)) + 2 * margin or 1.0
    low = (low + high) / 2 - size / 2
    places = (points - low) / size
    inside = np.all((places >= 0) & (places <= 1), axis=1)
    numbers = np.round(places[inside] * FULL).astype("<u2")
    inlier = (labels[chosen][inside] == 1).astype(np.uint8)
    return CloudFacts(
        axes=[0, 1, 2],
        points=base64.b64encode(numbers.tobytes()).decode("ascii"),
        inlier=base64.b64encode(inlier.tobytes()).decode("ascii"),
        low=[float(v) for v in low],
        size=size,
        patch=_patch(model, X, labels, low, size),
        total=len(X),
        shown=int(inside.sum()),
    )


def _patch(
    model: SubspaceEstimator, X: Array, labels: Array, low: Array, size: float
) -> list[list[float]] | None:
    """Return the corners of the part of a plane in space that holds most of its inliers."""
    if X.shape[1] != 3 or model.codimension_ != 1 or not np.any(labels == 1):
        return None
    inliers = X[labels == 1].astype(float)
    location = to_numpy(model.location_).astype(float)
    # Axes of the plane that follow the axes of the data, so that the patch looks straight.
    axes = complement(to_numpy(model.normals_).astype(float).T)  # (3, 2)
    at = (inliers - location) @ axes
    (a0, b0), (a1, b1) = np.quantile(at, [0.01, 0.99], axis=0)
    corners = np.array([(a0, b0), (a1, b0), (a1, b1), (a0, b1)]) @ axes.T + location
    return [[float(f"{v:.5g}") for v in corner] for corner in (corners - low) / size]


def _image(X: Array, labels: Array, dataset: Dataset) -> ImageFacts:
    """Draw the mean over the columns in grey, and the outliers in a layer above it."""
    height, width = (int(m) for m in dataset.shape)
    places = slice(None) if dataset.positions is None else to_numpy(dataset.positions)
    brightness = np.full(height * width, np.nan)
    brightness[places] = X.mean(axis=1, dtype=float)
    outlier = np.zeros(height * width)
    outlier[places] = labels == -1
    factor = max(1, -(-max(height, width) // IMAGE_SIDE))
    scene, known = _smaller(brightness.reshape(height, width), factor)
    marked, _ = _smaller(outlier.reshape(height, width), factor)
    dark, light = np.percentile(scene[known], STRETCH) if known.any() else (0.0, 1.0)
    grey = np.clip((scene - dark) / max(light - dark, np.finfo(float).tiny), 0, 1)
    mask = np.zeros((*scene.shape, 4), np.uint8)
    mask[..., :3] = MARK
    # A single outlier among many pixels must still be seen.
    mask[..., 3] = np.where(marked > 0, 90 + 165 * np.sqrt(marked), 0).astype(np.uint8)
    return ImageFacts(
        scene=data_uri(np.round(255 * np.where(known, grey, 0)).astype(np.uint8)),
        mask=data_uri(mask),
        height=height,
        width=width,
        factor=factor,
    )


def _smaller(values: Array, factor: int) -> tuple[Array, Array]:
    """Return the mean over squares of pixels, and where there is any; NaN means no data."""
    height, width = (-(-m // factor) * factor for m in values.shape)
    padded = np.full((height, width), np.nan)
    padded[: values.shape[0], : values.shape[1]] = values
    blocks = padded.reshape(height // factor, factor, width // factor, factor)
    known = np.isfinite(blocks)
    n_known = known.sum(axis=(1, 3))
    total = np.where(known, blocks, 0.0).sum(axis=(1, 3))
    mean: Array = total / np.maximum(n_known, 1)
    return mean, n_known > 0

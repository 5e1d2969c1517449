"""Scenes for the hyperspectral experiment: reading, cropping, corrupting, and a picture of them."""

import os
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.formats import read
from perpend.geometry import random_directions

SIDE, QUICK_SIDE = 100, 40  # pixels: the paper's segment, and that of a quick run
SYNTHETIC = "(synthetic)"  # stands in the place of a path
DEFAULT = Path("hsi_jasper") / "jasper_ridge_100x100x198.npz"
VISIBLE = (0.14, 0.09, 0.04)  # red, green and blue among the bands of 0.4 to 2.5 micrometres


class Corrupted(NamedTuple):
    """Pixels of some bands, most of them replaced."""

    X: Array  # (pixels, bands) unit rows
    y: Array  # (pixels,) +1 for pixels of the scene, -1 for outliers


def scene_path(path: Path | None, *, quick: bool) -> Path:
    """Return the scene to use: the user's, that in the folder of test data, or a synthetic one.

    Only a quick run, which compares with nothing published, makes do with the synthetic one.
    """
    if path is not None:
        return path
    folder = os.environ.get("PERPEND_DATA", "")
    if folder and (Path(folder) / DEFAULT).exists():
        return Path(folder) / DEFAULT
    if quick:
        return Path(SYNTHETIC)
    raise InputError(
        "the hyperspectral experiment needs a scene. Name a file with --scene FILE: .npy, .npz, "
        ".mat and others, height x width x bands, 10 bands or more. The paper's own is a 100 x 100 "
        "segment of Washington DC Mall; Jasper Ridge will do. With --quick, a synthetic one is "
        "used without a file."
    )


def check_scene(path: Path, variable: str | None, n_bands: int, side: int) -> tuple[int, str]:
    """Return the number of usable bands and a checksum, or say what is wrong with the scene."""
    segment = load_segment(str(path), variable, side)
    usable = len(usable_bands(segment))
    if usable < n_bands:
        raise InputError(
            f"{path}: has {usable} bands that are not constant ({segment.shape[2]} in all), and "
            f"the experiment draws {n_bands} of them. Use a scene with more bands; if the bands "
            "stand first in the file, reorder it to height x width x bands."
        )
    return usable, sha256(segment.tobytes()).hexdigest()[:16]


@lru_cache(maxsize=1)
def load_segment(path: str, variable: str | None, side: int = SIDE) -> Array:
    """Return the middle side x side pixels of a scene (all of a smaller one), in float64."""
    if path == SYNTHETIC:
        return synthetic_scene(side)
    scene = read(path, variable=variable)
    if scene.kind != "image":
        raise InputError(
            f"{path}: is a {scene.kind}. A scene needs 3 dimensions: height x width x bands."
        )
    row_of = np.full(scene.shape, -1)  # of each pixel; -1 where there is no data
    row_of.flat[slice(None) if scene.positions is None else scene.positions] = range(len(scene.X))
    top, left = (max(0, (n - side) // 2) for n in scene.shape)
    segment = row_of[top : top + side, left : left + side]
    if segment.min() < 0:
        row, column = np.argwhere(segment < 0)[0]
        raise InputError(
            f"{path}: has no data, or NaN or infinite values, in some pixels (first: row "
            f"{top + row}, column {left + column}). Fill them in, or leave these bands out."
        )
    return np.array(scene.X[segment], dtype=float)


def synthetic_scene(side: int, n_bands: int = 60, n_materials: int = 4) -> Array:
    """Return a scene (side, side, bands): smooth spectra, mixed in shares that vary smoothly."""
    from scipy.ndimage import gaussian_filter, gaussian_filter1d

    rng = np.random.default_rng(0)
    spectra = 0.5 + gaussian_filter1d(rng.standard_normal((n_materials, n_bands)), 6, axis=1)
    fields = rng.standard_normal((side, side, n_materials))
    shares = np.exp(side / 2 * gaussian_filter(fields, (side / 10, side / 10, 0)))
    mixed = shares / shares.sum(axis=2, keepdims=True) @ spectra
    return np.asarray(mixed + 0.005 * rng.standard_normal(mixed.shape))  # the sensor's noise


def usable_bands(segment: Array) -> Array:
    """Return the bands that are not constant."""
    return np.flatnonzero(np.ptp(segment, axis=(0, 1)) > 0)


def corrupted(segment: Array, n_bands: int, ratio: float, draw: int) -> Corrupted:
    """Draw bands, scale pixels to unit norm, and replace a share of them by random directions.

    The bands depend on `draw` alone, so that all ratios see the same ones.
    """
    rng = np.random.default_rng([draw, n_bands])
    bands = np.sort(rng.choice(usable_bands(segment), n_bands, replace=False))
    X = segment[:, :, bands].reshape(-1, n_bands)
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    X = X / np.where(norms > 0, norms, 1)
    rng = np.random.default_rng([draw, n_bands, round(1000 * ratio)])
    outliers = rng.permutation(len(X))[: round(ratio * len(X))]
    X[outliers] = random_directions(rng, n_bands, len(outliers)).T
    y = np.ones(len(X), dtype=int)
    y[outliers] = -1
    return Corrupted(X, y)


def false_colours(segment: Array) -> Array:
    """Return a picture (height, width, 3) of bytes: three bands, stretched to black and white."""
    bands = [round(share * (segment.shape[2] - 1)) for share in VISIBLE]
    low, high = np.percentile(segment[:, :, bands], [2, 98], axis=(0, 1))
    stretched = (segment[:, :, bands] - low) / np.where(high > low, high - low, 1)
    return np.round(255 * np.clip(stretched, 0, 1)).astype(np.uint8)

"""TIFF and GeoTIFF scenes: bands of one image, or a stack of pages of equal size.

rasterio reads them if it is installed, otherwise tifffile (which needs rasterio for some kinds of
compression). A band for transparency is not a feature. Transparent pixels, those outside the file's
mask, and those in which every band has its nodata value have no data. Previews are skipped. Values
are copied into float32 if the file is float32, otherwise into float64, some rows at a time.

The labels are written as a mask (1 inlier, 0 outlier, 255 no data, declared as nodata) and an image
of two bands with the distances and probabilities, NaN for no data. Both have the georeference of
the scene.
"""

from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from perpend._files import writing
from perpend.exceptions import InputError, MissingExtraError
from perpend.formats import _tiff_rasterio, _tiff_tifffile
from perpend.formats._answer_path import answer_path
from perpend.formats._checks import file_size
from perpend.formats._dataset import Answer, Dataset, Options
from perpend.formats._pixels import from_pixels
from perpend.formats._records import NO_DATA, added_values
from perpend.formats._registry import optional_package

MAGIC = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")  # the last two: BigTIFF
DISTANCES = ("distance", "probability of being an outlier")


class Origin(NamedTuple):
    """What the output takes over from the scene."""

    library: str
    place: Any


def read(path: Path, options: Options) -> Dataset:
    """Read a scene."""
    file_size(path)
    with path.open("rb") as stream:
        if stream.read(4) not in MAGIC:
            raise InputError(f"{path}: does not begin like a TIFF file. Is it another format?")
    library, way = _library(path)
    raster = way.load(library, path, options)
    return from_pixels(
        raster.X,
        path,
        "geotiff",
        raster.shape,
        raster.names,
        stored_dtype=raster.dtype,
        ignore=raster.ignore,
        masked=raster.masked,
        dropped=raster.dropped,
        origin=Origin(library.__name__, raster.place),
    )


def write_answer(dataset: Dataset, answer: Answer, folder: Path) -> Path:
    """Write ``NAME-answer.tif`` (the mask) and ``NAME-answer-distance.tif``."""
    path, origin = answer_path(dataset, folder), dataset.origin
    library, way = _library(path, origin.library)
    added = added_values(dataset, answer)
    values = np.stack([added["distance"], added["probability"]]).astype(np.float32)
    images = {
        path.with_stem(f"{path.stem}-distance"): (values, DISTANCES, np.nan),
        path: (added["inlier"][np.newaxis], ["inlier"], NO_DATA),
    }
    for name, (image, names, nodata) in images.items():
        with writing(name) as stream:
            way.save(library, stream, image, names=names, nodata=nodata, place=origin.place)
    return path


def _library(path: Path, name: str | None = None) -> tuple[Any, ModuleType]:
    """Return the library to use, and the module that knows how."""
    if name != "tifffile":
        try:
            return optional_package("rasterio", path, "geo"), _tiff_rasterio
        except MissingExtraError:
            if name is not None:
                raise
    return optional_package("tifffile", path, "images"), _tiff_tifffile

"""TIFF and GeoTIFF scenes: bands of one image, or a stack of pages of equal size.

rasterio reads them if it is installed, otherwise tifffile (which needs rasterio for some kinds of
compression). A band for transparency is not a feature. Transparent pixels, those outside the file's
mask, and those in which every band has its nodata value have no data. Previews are skipped. Values
are copied into float32 if the file is float32, otherwise into float64, some rows at a time.

The labels are written as a mask (1 inlier, 0 outlier, 255 no data, declared as nodata) and an image
of two bands with the distances and probabilities, NaN for no data. Both have the georeference of
the scene.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from perpend._files import writing
from perpend._typing import Array
from perpend.exceptions import InputError, MissingExtraError
from perpend.formats import _checks as check
from perpend.formats._checks import REAL, SMALL, in_bytes, listed, quoted
from perpend.formats._damage import damage_named
from perpend.formats._dataset import Answer, Dataset, Options
from perpend.formats._records import NO_DATA, added_values, float_type, from_records, select
from perpend.formats._registry import optional_package

MAGIC = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")  # the last two: BigTIFF
DISTANCES = ("distance", "probability of being an outlier")
LISTED = 10  # pages in a message
READER = "perpend.formats._tiff_"  # and the name of a library: the module that uses it
STRIP = 16 << 20  # bytes of rows that are read together


class Page(NamedTuple):
    """One image of the file, as `opened` of the two readers returns it."""

    height: int
    width: int
    bands: int  # without one for transparency
    dtype: str
    names: tuple[str, ...]  # of the bands; "" for none
    nodata: tuple[float, ...]  # of each band, NaN if none
    has_alpha: bool  # whether a band for transparency follows
    has_mask: bool  # whether it leaves out pixels
    stored: int  # bytes of all values
    block: int  # bytes of the largest piece that is unpacked at once
    block_rows: int  # its height
    compressed: bool
    handle: Any  # for the library that reads the values
    # from a row on, so many rows of some bands, bands last; and which pixels are left out, if any
    read: Callable[[int, int, list[int]], tuple[Array, Array | None]]


class Origin(NamedTuple):
    """What the output takes over from the scene."""

    library: str
    place: Any  # the georeference, as the library has it


def read(path: Path, options: Options) -> Dataset:
    """Read the bands of an image, or of a stack of them."""
    check.magic(path, "like a TIFF file", *MAGIC)
    library = _library(path)
    way = import_module(READER + library)
    with (
        damage_named(path, "not a readable TIFF file", (Exception,)),
        _quiet(library),
        way.opened(path) as all_pages,
    ):
        pages = _choose(path, all_pages, options.variable)
        _check(path, pages)
        names = _band_labels(pages)
        bands = select(path, options, names)
        X, masked = _values(pages, bands)
        origin = Origin(library, way.georeference(pages[0].handle))
    return from_records(
        X.reshape(-1, len(bands)),
        path,
        options,
        "image",
        shape=(pages[0].height, pages[0].width),
        columns=tuple(names[b] for b in bands),
        ignore=np.array([value for page in pages for value in page.nodata])[bands],
        masked=None if masked is None else masked.ravel(),
        dropped=("alpha",) if any(page.has_alpha for page in pages) else (),
        stored=pages[0].dtype,
        origin=origin,
    )


def write_answer(dataset: Dataset, answer: Answer, path: Path) -> Path:
    """Write ``NAME-answer.tif`` (the mask) and ``NAME-answer-distance.tif``."""
    library, place = dataset.origin
    way = import_module(READER + library)
    added = added_values(dataset, answer)
    values = np.stack([added["distance"], added["probability"]]).astype(np.float32)
    images = {
        path.with_stem(f"{path.stem}-distance"): (values, DISTANCES, np.nan),
        path: (added["inlier"][np.newaxis], ["inlier"], NO_DATA),
    }
    for file, (image, names, nodata) in images.items():
        with writing(file) as stream:
            way.save(stream, image, names, nodata, place)
    return path


def _library(path: Path) -> str:
    """Return the library to use: rasterio, or else tifffile."""
    try:
        optional_package("rasterio", path, "geo")
    except MissingExtraError:
        optional_package("tifffile", path, "images")
        return "tifffile"
    return "rasterio"


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Silence the log of a library about damaged files; it raises as well."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)


def _choose(path: Path, pages: Sequence[Page], variable: str | None) -> Sequence[Page]:
    """Pages that make up the image: all of equal size, or the chosen one."""
    if variable is not None:
        number = int(variable) if variable.isdecimal() and len(variable) < 9 else 0
        if not 1 <= number <= len(pages):
            raise InputError(f"{path}: has no page {quoted(variable)}, only 1 to {len(pages)}.")
        return [pages[number - 1]]
    if len({(page.height, page.width, page.dtype) for page in pages}) > 1:
        sizes = [f"{page.height} x {page.width} x {page.bands}" for page in pages]
        those = listed([f'"{i}" ({size})' for i, size in enumerate(sizes, start=1)], LISTED)
        raise InputError(f"{path}: its pages differ. Choose one by variable=...: {those}.")
    return pages


def _check(path: Path, pages: Sequence[Page]) -> None:
    """Compare the declared size with that of the file, and with the free memory."""
    first, size = pages[0], path.stat().st_size
    check.extent(str(path), height=first.height, width=first.width, bands=first.bands)
    try:
        dtype = np.dtype(first.dtype)
    except TypeError:
        dtype = np.dtype(complex)  # GDAL's complex integers
    if dtype.kind not in REAL:
        raise InputError(f"{path}: holds values of type {quoted(first.dtype)}, not real numbers.")
    stored = sum(page.stored for page in pages)
    if not all(page.compressed for page in pages) and stored > size:
        raise InputError(
            f"{path}: declares {in_bytes(stored)} of values but is {in_bytes(size)} "
            "(cut-off copy, or sparse?)."
        )
    check.expansion(str(path), size, stored)
    check.expansion(f"{path}, a block", size, max(page.block for page in pages))
    n = first.height * first.width * sum(page.bands for page in pages)
    check.memory(str(path), n * float_type(dtype).itemsize + max(p.stored for p in pages) + SMALL)


def _band_labels(pages: Sequence[Page]) -> tuple[str, ...]:
    """Name of each band of each page."""
    labels = []
    for i, page in enumerate(pages, start=1):
        before = f"page {i}" if len(pages) > 1 else ""
        for j, name in enumerate(page.names, start=1):
            own = name or (f"band {j}" if page.bands > 1 or not before else "")
            labels.append(" ".join(filter(None, [before, own])))
    return tuple(labels)


def _values(pages: Sequence[Page], bands: list[int]) -> tuple[Array, Array | None]:
    """Values as height x width x bands, and which pixels a mask leaves out."""
    extent = pages[0].height, pages[0].width
    X = np.empty((*extent, len(bands)), float_type(np.dtype(pages[0].dtype)))
    masked = np.zeros(extent, bool) if any(page.has_mask for page in pages) else None
    before = 0
    for page in pages:
        pairs = [(b - before, j) for j, b in enumerate(bands) if 0 <= b - before < page.bands]
        own, columns = [b for b, _ in pairs], [j for _, j in pairs]
        before += page.bands
        if not own and not page.has_mask:
            continue
        rows = max(1, page.block_rows)  # whole blocks are read together, some megabytes
        step = rows * max(1, STRIP // (rows * max(1, page.stored // page.height)))
        for begin in range(0, page.height, step):
            values, hidden = page.read(begin, min(step, page.height - begin), own)
            if own:
                X[begin : begin + step][..., together(columns)] = values
            if masked is not None and hidden is not None:
                masked[begin : begin + step] |= hidden
    return X, masked


def together(places: Sequence[int]) -> slice | list[int]:
    """Return places on an axis as a slice if they are neighbours, which is much faster.

    >>> together([2, 3, 4]), together([4, 2])
    (slice(2, 5, None), [4, 2])
    """
    first, last = places[0], places[-1] + 1
    return slice(first, last) if list(places) == list(range(first, last)) else list(places)

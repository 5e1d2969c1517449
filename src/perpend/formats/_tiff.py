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
from contextlib import ExitStack, contextmanager
from functools import partial
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
from perpend.formats._dataset import Dataset, Labelled, Options
from perpend.formats._records import NO_DATA, added_values, float_type, select, together
from perpend.formats._registry import optional_package
from perpend.formats._stream import Blocks, stepwise
from perpend.rows.sequential import Sequential
from perpend.rows.threads import Shared

MAGIC = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")  # the last two: BigTIFF
DISTANCES = ("distance", "probability of being an outlier")
LISTED = 10  # pages in a message
READER = "perpend.formats._tiff_"  # and the name of a library: the module that uses it
STRIP = 16 << 20  # bytes of rows that are read together


def _silence(name: str) -> Callable[[], None]:
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    return lambda: logger.setLevel(before)


QUIET = {name: Shared(partial(_silence, name)) for name in ("rasterio", "tifffile")}
"""Silences the log of a library about damaged files; it raises as well."""


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


def opened(path: Path, options: Options) -> Blocks:
    """Open the bands of an image, or of a stack of them."""
    check.magic(path, "like a TIFF file", *MAGIC)
    library = _library(path)
    way = import_module(READER + library)

    @contextmanager
    def chosen() -> Iterator[Sequence[Page]]:
        # Quiet only while something is done: others may be read before this one is closed.
        with damage_named(path, "not a readable TIFF file", (Exception,)), ExitStack() as stack:
            with QUIET[library]:
                all_pages = stack.enter_context(way.opened(path))
            yield _choose(path, all_pages, options.variable)

    with chosen() as pages:
        _check(path, pages)
        names = _band_labels(pages)
        bands = select(path, options, names)
        origin = Origin(library, way.georeference(pages[0].handle))
    height, width, dtype = pages[0].height, pages[0].width, float_type(np.dtype(pages[0].dtype))
    # whole blocks of the file are read together, some megabytes
    rows = min(height, max(1, *(page.block_rows for page in pages)))
    step = rows * max(1, STRIP // (rows * max(1, sum(page.stored for page in pages) // height)))

    def rows_of(n: int, kind: Any, values: Callable[..., Array]) -> Callable[[int, int], Array]:
        @contextmanager
        def lines() -> Iterator[Callable[[int, int], Array]]:
            with chosen() as pages:

                def between(begin: int, end: int) -> Array:
                    with QUIET[library]:
                        return values(pages, bands, begin, end).reshape(-1, n)

                yield between

        near = stepwise(lines, height, width, step)
        return Sequential(near, shape=(height * width, n), dtype=kind, name=str(path)).read

    masked = rows_of(1, bool, _hidden) if any(page.has_mask for page in pages) else None
    return Blocks(
        path,
        options,
        "image",
        rows_of(len(bands), dtype, _values),
        shape=(height, width),
        width=len(bands),
        dtype=dtype,
        held=min(step, height) * width * len(bands) * dtype.itemsize,
        extra=max(page.stored for page in pages) + SMALL,
        columns=tuple(names[b] for b in bands),
        ignore=np.array([value for page in pages for value in page.nodata])[bands],
        masked=masked and (lambda begin, end: masked(begin, end)[:, 0]),
        dropped=("alpha",) if any(page.has_alpha for page in pages) else (),
        stored=pages[0].dtype,
        origin=origin,
    )


def write_labelled(dataset: Dataset, labelled: Labelled, path: Path) -> Path:
    """Write ``NAME-labelled.tif`` (the mask) and ``NAME-labelled-distance.tif``."""
    library, place = dataset.origin
    way = import_module(READER + library)
    added = added_values(dataset, labelled)
    inlier = added.pop("inlier")
    images = {
        path.with_stem(f"{path.stem}-distance"): (added.values(), DISTANCES, np.nan),
        path: ([inlier], ["inlier"], NO_DATA),
    }
    for file, (image, names, nodata) in images.items():
        with writing(file) as stream:
            way.save(stream, list(image), names, nodata, place)
    return path


def _library(path: Path) -> str:
    """Return the library to use: rasterio, or else tifffile."""
    try:
        optional_package("rasterio", path, "geo")
    except MissingExtraError:
        optional_package("tifffile", path, "images")
        return "tifffile"
    return "rasterio"


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


def _band_labels(pages: Sequence[Page]) -> tuple[str, ...]:
    """Name of each band of each page."""
    labels = []
    for i, page in enumerate(pages, start=1):
        before = f"page {i}" if len(pages) > 1 else ""
        for j, name in enumerate(page.names, start=1):
            own = name or (f"band {j}" if page.bands > 1 or not before else "")
            labels.append(" ".join(filter(None, [before, own])))
    return tuple(labels)


def _values(pages: Sequence[Page], bands: list[int], begin: int, end: int) -> Array:
    """Some rows of the image, bands last."""
    X = np.empty((end - begin, pages[0].width, len(bands)), float_type(np.dtype(pages[0].dtype)))
    before = 0
    for page in pages:
        pairs = [(b - before, j) for j, b in enumerate(bands) if 0 <= b - before < page.bands]
        before += page.bands
        if pairs:
            own, columns = zip(*pairs, strict=True)
            X[..., together(columns)] = page.read(begin, end - begin, list(own))[0]
    return X


def _hidden(pages: Sequence[Page], _: list[int], begin: int, end: int) -> Array:
    """Which pixels of some rows a mask leaves out."""
    masked = np.zeros((end - begin, pages[0].width), bool)
    for page in pages:
        hidden = page.read(begin, end - begin, [])[1] if page.has_mask else None
        masked |= False if hidden is None else hidden
    return masked

"""TIFF through rasterio: every kind of compression, masks, and coordinates."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError, PerpendError
from perpend.formats._dataset import Options
from perpend.formats._points import clean
from perpend.formats._tiff import (
    Page,
    Raster,
    float_type,
    quiet,
    read_pages,
    rows_at_once,
    taken,
    together,
)

MAX_PAGES = 1 << 12  # files that are open together


class Place(NamedTuple):
    """The georeference of an image."""

    crs: Any
    transform: Any
    gcps: Any


def load(rasterio: Any, path: Path, options: Options) -> Raster:
    """Read the bands of an image, or of a stack of them."""
    with _damage_named(rasterio, path), ExitStack() as opened:
        pages = _pages(rasterio, path, opened)
        return read_pages(path, pages, options, partial(_values, rasterio), _place)


def _place(page: Page) -> Place:
    image = page.handle
    return Place(image.crs, image.transform, image.gcps if image.gcps[0] else None)


def save(
    rasterio: Any,
    stream: IO[bytes],
    image: Array,
    *,
    names: Sequence[str],
    nodata: float,
    place: Place,
) -> None:
    """Write bands x height x width as a GeoTIFF with this georeference."""
    bands, height, width = image.shape
    where: dict[str, Any] = {"crs": place.crs, "transform": place.transform}
    if place.gcps is not None:
        where = {"gcps": place.gcps[0], "crs": place.gcps[1]}
    with warnings.catch_warnings(), rasterio.MemoryFile() as memory:
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        with memory.open(
            driver="GTiff",
            count=bands,
            height=height,
            width=width,
            dtype=image.dtype.name,
            nodata=nodata,
            compress="deflate",
            **where,
        ) as dataset:
            dataset.write(image)
            for j, name in enumerate(names, start=1):
                dataset.set_band_description(j, name)
        stream.write(memory.getbuffer())


@contextmanager
def _damage_named(rasterio: Any, path: Path) -> Iterator[None]:
    """Turn GDAL's many kinds of errors into an InputError."""
    try:
        with warnings.catch_warnings(), quiet("rasterio"), rasterio.Env():
            warnings.simplefilter("ignore")  # a plain TIFF has no georeference
            yield
    except PerpendError:
        raise
    except Exception as error:
        reason = clean(str(error.__cause__ or error).replace(str(path.absolute()), path.name))
        raise InputError(
            f"{path}: not a readable TIFF file ({reason}) Is it damaged or cut off?"
        ) from error


def _pages(rasterio: Any, path: Path, opened: ExitStack) -> list[Page]:
    """All images of the file, open, but nothing read yet."""
    name = str(path.absolute())
    first = opened.enter_context(rasterio.open(name, driver="GTiff"))
    parts = first.subdatasets
    if len(parts) < 2:
        return [_page(rasterio, first)]
    if len(parts) > MAX_PAGES:
        raise InputError(f"{path}: has {len(parts)} pages; at most {MAX_PAGES} can be read.")
    handles = [
        opened.enter_context(rasterio.open(f"GTIFF_DIR:{i}:{name}", driver="GTiff"))
        for i in range(1, len(parts) + 1)
    ]
    return [_page(rasterio, handle) for handle in handles]


def _page(rasterio: Any, handle: Any) -> Page:
    alpha = handle.colorinterp[-1] == rasterio.enums.ColorInterp.alpha and handle.count > 1
    bands = handle.count - alpha
    pixel = np.dtype(handle.dtypes[0]).itemsize if "complex_int" not in handle.dtypes[0] else 8
    rows, columns = handle.block_shapes[0]
    interleaved = handle.interleaving == rasterio.enums.Interleaving.pixel
    return Page(
        handle.height,
        handle.width,
        bands,
        handle.dtypes[0],
        tuple(name or "" for name in handle.descriptions[:bands]),
        tuple(np.nan if value is None else float(value) for value in handle.nodatavals[:bands]),
        alpha,
        handle.height * handle.width * handle.count * pixel,
        rows * columns * pixel * (handle.count if interleaved else 1),
        handle.compression is not None,
        handle,
    )


def _values(rasterio: Any, pages: Sequence[Page], bands: list[int]) -> tuple[Array, Array | None]:
    """Values as height x width x bands, and which pixels a mask leaves out."""
    first = pages[0]
    X = np.empty((first.height, first.width, len(bands)), float_type(np.dtype(first.dtype)))
    flags = rasterio.enums.MaskFlags
    hidden = [flags.per_dataset, flags.alpha]
    masked = None
    before = 0
    for page in pages:
        pairs = taken(page, before, bands)
        before += page.bands
        has_mask = any(flag in hidden for band in page.handle.mask_flag_enums for flag in band)
        if has_mask and masked is None:
            masked = np.zeros((first.height, first.width), bool)
        step = rows_at_once(page, page.handle.block_shapes[0][0])
        for begin in range(0, page.height, step):
            rows = min(step, page.height - begin)
            window = rasterio.windows.Window(0, begin, page.width, rows)
            if pairs:
                values = page.handle.read([b + 1 for b, _ in pairs], window=window)
                columns = together([j for _, j in pairs])
                X[begin : begin + rows][..., columns] = np.moveaxis(values, 0, -1)
            if has_mask and masked is not None:
                masked[begin : begin + rows] |= page.handle.dataset_mask(window=window) == 0
    return X, masked

"""TIFF through tifffile, if rasterio is not installed: plain files, and the tags of GeoTIFF."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError, MissingExtraError, PerpendError
from perpend.formats._dataset import Options
from perpend.formats._points import clean
from perpend.formats._tiff import (
    Page,
    Raster,
    float_type,
    quiet,
    read_pages,
    taken,
    together,
)

GEO_TAGS = (33550, 33922, 34264, 34735, 34736, 34737)  # scale, tie points, matrix, and keys
NODATA = 42113  # GDAL's tag for the value of pixels without data
MAX_PAGES = 1 << 14
AXES = {"YX": ("Y", "X"), "YXS": ("Y", "X", "S"), "SYX": ("S", "Y", "X")}
REDUCED, MASK = 1, 4  # bits of the kind of a page
TRANSPARENT = (1, 2)  # kinds of an extra sample


def load(tifffile: Any, path: Path, options: Options) -> Raster:
    """Read the bands of an image, or of a stack of them."""
    with _damage_named(path), tifffile.TiffFile(path) as file:
        pages = _pages(path, file)
        return read_pages(path, pages, options, _values, lambda page: _place(page.handle))


def save(
    tifffile: Any,
    stream: IO[bytes],
    image: Array,
    *,
    names: Sequence[str],
    nodata: float,
    place: Any,
) -> None:
    """Write bands x height x width, with the tags of the georeference."""
    tifffile.imwrite(
        stream,
        image,
        photometric="minisblack",
        planarconfig="separate" if len(image) > 1 else None,
        description=", ".join(names),
        metadata=None,
        extratags=[*place, (NODATA, "s", 0, f"{nodata:g}", True)],
    )


@contextmanager
def _damage_named(path: Path) -> Iterator[None]:
    """Turn tifffile's many kinds of errors into an InputError."""
    try:
        with quiet("tifffile"):
            yield
    except (PerpendError, OSError):
        raise
    except Exception as error:
        if "imagecodecs" in str(error):
            raise MissingExtraError(
                f"reading {path.suffix.lower()} with this compression needs rasterio. "
                'Run: pip install "perpend[geo]"'
            ) from error
        reason = f"{type(error).__name__}: {clean(str(error))}"
        raise InputError(
            f"{path}: not a readable TIFF file ({reason}) Is it damaged or cut off?"
        ) from error


def _pages(path: Path, file: Any) -> list[Page]:
    """All images of the file but previews and masks; nothing read yet."""
    if len(file.pages) > MAX_PAGES:
        raise InputError(f"{path}: has {len(file.pages)} pages; at most {MAX_PAGES} can be read.")
    pages = [page.aspage() for page in file.pages]
    pages = [_page(path, page) for page in pages if not page.subfiletype & (REDUCED | MASK)]
    if not pages:
        raise InputError(f"{path}: there is no image in this file, only previews or masks.")
    return pages


def _page(path: Path, page: Any) -> Page:
    if page.axes not in AXES:
        raise InputError(f"{path}: has the axes {page.axes}, not those of an image with bands.")
    declared, listed = math.prod(page.chunked), len(page.dataoffsets)
    if listed < declared and not page.is_contiguous:
        raise InputError(
            f"{path}: declares {declared} strips or tiles but lists {listed}. Is it damaged?"
        )
    sides = dict(zip(AXES[page.axes], page.shape, strict=True))
    samples = sides.get("S", 1)
    alpha = samples > 1 and bool(page.extrasamples) and page.extrasamples[-1] in TRANSPARENT
    bands = samples - alpha
    dtype = np.dtype(page.dtype)
    pixel = dtype.itemsize
    block = (
        page.tilelength * page.tilewidth if page.is_tiled else page.rowsperstrip * page.imagewidth
    )
    return Page(
        sides["Y"],
        sides["X"],
        bands,
        dtype.newbyteorder("=").name,
        ("",) * bands,
        (_nodata(page),) * bands,
        alpha,
        page.size * pixel,
        min(block, page.imagelength * page.imagewidth if not page.is_tiled else block)
        * pixel
        * (samples if page.axes == "YXS" else 1),
        page.compression != 1 or page.bitspersample % 8 != 0,
        page,
    )


def _nodata(page: Any) -> float:
    tag = page.tags.get(NODATA)
    try:
        return float(str(tag.value).strip("\0 ")) if tag is not None else np.nan
    except ValueError:
        return np.nan


def _values(pages: Sequence[Page], bands: list[int]) -> tuple[Array, Array | None]:
    """Values as height x width x bands, and which pixels are transparent."""
    first = pages[0]
    X = np.empty((first.height, first.width, len(bands)), float_type(np.dtype(first.dtype)))
    masked = None
    before = 0
    for page in pages:
        pairs = taken(page, before, bands)
        before += page.bands
        if not pairs and not page.alpha:
            continue
        values = page.handle.asarray(maxworkers=1)
        if values.shape != page.handle.shape:
            raise ValueError("a page has another shape than declared")
        values = values.reshape(values.shape + (1,) * (page.handle.axes == "YX"))
        values = np.moveaxis(values, 0, -1) if page.handle.axes == "SYX" else values
        if pairs:
            columns = together([j for _, j in pairs])
            X[..., columns] = values[..., together([b for b, _ in pairs])]
        if page.alpha:
            clear = values[..., -1] == 0
            masked = clear if masked is None else masked | clear
    return X, masked


def _place(page: Any) -> list[tuple[int, Any, int, Any, bool]]:
    """Tags of GeoTIFF, as they are written again."""
    tags: list[tuple[int, Any, int, Any, bool]] = []
    for code in GEO_TAGS:
        tag = page.tags.get(code)
        if tag is not None and isinstance(tag.value, str):
            tags.append((code, "s", 0, tag.value, True))
        elif tag is not None:
            tags.append((code, int(tag.dtype), tag.count, tag.value, True))
    return tags

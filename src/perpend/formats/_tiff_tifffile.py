"""TIFF through tifffile, if rasterio is not installed: plain files, and the tags of GeoTIFF."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError, MissingExtraError
from perpend.formats._records import together
from perpend.formats._tiff import Page

GEO_TAGS = (33550, 33922, 34264, 34735, 34736, 34737)  # scale, tie points, matrix, and keys
NODATA = 42113  # GDAL's tag for the value of pixels without data
MAX_PAGES = 1 << 14
AXES = ("YX", "YXS", "SYX")  # of an image; S: its bands
REDUCED, MASK = 1, 4  # bits of the kind of a page
TRANSPARENT = (1, 2)  # kinds of an extra sample


@contextmanager
def opened(path: Path) -> Iterator[list[Page]]:
    """Open all images of a file; nothing is read yet."""
    import tifffile

    try:
        with tifffile.TiffFile(path) as file:
            yield _pages(path, file)
    except Exception as error:
        if "imagecodecs" not in str(error):
            raise
        raise MissingExtraError(
            f"reading {path.suffix.lower()} with this compression needs rasterio. "
            'Run: pip install "perpend[geo]"'
        ) from error


def georeference(page: Any) -> list[tuple[int, Any, int, Any, bool]]:
    """Tags of GeoTIFF, as they are written again."""
    tags: list[tuple[int, Any, int, Any, bool]] = []
    for code in GEO_TAGS:
        tag = page.tags.get(code)
        if tag is not None and isinstance(tag.value, str):
            tags.append((code, "s", 0, tag.value, True))
        elif tag is not None:
            tags.append((code, int(tag.dtype), tag.count, tag.value, True))
    return tags


def save(
    stream: IO[bytes], image: list[Array], names: Sequence[str], nodata: float, place: list[Any]
) -> None:
    """Write bands, with the tags of the georeference: bytes, or else float32."""
    import tifffile

    dtype = np.uint8 if image[0].itemsize == 1 else np.float32
    tifffile.imwrite(
        stream,
        np.stack(image).astype(dtype),
        photometric="minisblack",
        planarconfig="separate" if len(image) > 1 else None,
        description=", ".join(names),
        metadata=None,
        extratags=[*place, (NODATA, "s", 0, f"{nodata:g}", True)],
    )


def _pages(path: Path, file: Any) -> list[Page]:
    """All images but previews and masks."""
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
    n, listed = math.prod(page.chunked), len(page.dataoffsets)
    if listed < n and not page.is_contiguous:
        raise InputError(f"{path}: declares {n} strips or tiles but lists {listed}. Is it damaged?")
    sides = dict(zip(page.axes, page.shape, strict=True))
    samples = sides.get("S", 1)
    alpha = samples > 1 and bool(page.extrasamples) and page.extrasamples[-1] in TRANSPARENT
    bands = samples - alpha
    dtype = np.dtype(page.dtype)
    block = page.tilelength, page.tilewidth
    if not page.is_tiled:
        block = min(page.rowsperstrip, page.imagelength), page.imagewidth
    return Page(
        height=sides["Y"],
        width=sides["X"],
        bands=bands,
        dtype=dtype.newbyteorder("=").name,
        names=("",) * bands,
        nodata=(_nodata(page),) * bands,
        has_alpha=alpha,
        has_mask=alpha,
        stored=page.size * dtype.itemsize,
        block=math.prod(block) * dtype.itemsize * (samples if page.axes == "YXS" else 1),
        block_rows=sides["Y"],
        compressed=page.compression != 1 or page.bitspersample % 8 != 0,
        handle=page,
        read=partial(_read, page, alpha),
    )


def _nodata(page: Any) -> float:
    tag = page.tags.get(NODATA)
    try:
        return float(str(tag.value).strip("\0 ")) if tag is not None else np.nan
    except ValueError:
        return np.nan


def _read(
    page: Any, has_alpha: bool, _begin: int, _rows: int, bands: list[int]
) -> tuple[Array, Array | None]:
    """All rows of an image, which count as one block; see :class:`Page`."""
    values = page.asarray(maxworkers=1)
    if values.shape != page.shape:
        raise ValueError("a page has another shape than declared")
    values = values.reshape(values.shape + (1,) * (page.axes == "YX"))
    values = np.moveaxis(values, 0, -1) if page.axes == "SYX" else values
    hidden = values[..., -1] == 0 if has_alpha else None
    return values[..., together(bands)] if bands else values, hidden

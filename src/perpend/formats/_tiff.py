"""What the two readers of TIFF files share: pages, and checks before anything is read."""

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.formats._checks import (
    REAL,
    SMALL,
    check_expansion,
    check_memory,
    file_size,
    in_bytes,
    quoted,
)
from perpend.formats._dataset import Options
from perpend.formats._pixels import check_extent
from perpend.formats._records import select

LISTED = 10  # pages in a message
STRIP = 16 << 20  # bytes of rows that are read together


class Page(NamedTuple):
    """One image of the file."""

    height: int
    width: int
    bands: int  # without one for transparency
    dtype: str
    names: tuple[str, ...]  # of the bands; "" for none
    nodata: tuple[float, ...]  # of each band, NaN if none
    alpha: bool  # whether a band for transparency follows
    stored: int  # bytes of all values
    block: int  # bytes of the largest piece that is unpacked at once
    compressed: bool
    handle: Any  # for the library that reads the values

    @property
    def size(self) -> tuple[int, int, str]:
        """What pages of a stack have in common."""
        return self.height, self.width, self.dtype


class Raster(NamedTuple):
    """All values of a file."""

    X: Array  # (height * width, D), float32 or float64
    shape: tuple[int, int]
    names: tuple[str, ...]
    dropped: tuple[str, ...]
    dtype: str
    ignore: Array  # (D,)
    masked: Array | None
    place: Any  # the georeference, as the library has it


def read_pages(
    path: Path,
    pages: Sequence[Page],
    options: Options,
    values: Callable[[list[Page], list[int]], tuple[Array, Array | None]],
    place: Callable[[Page], Any],
) -> Raster:
    """Read the chosen bands with `values`, from pages that fit together and into memory.

    `values` returns those of some bands, and which pixels are masked; `place` returns the
    georeference of a page.
    """
    pages = choose_pages(path, pages, options.variable)
    check_pages(path, pages, file_size(path))
    names = band_labels(pages)
    bands = list(range(len(names)))
    if options.columns is not None:
        bands = select(path, options.columns, names)
    X, masked = values(pages, bands)
    return Raster(
        X.reshape(-1, len(bands)),
        (pages[0].height, pages[0].width),
        tuple(names[b] for b in bands),
        ("alpha",) if any(page.alpha for page in pages) else (),
        pages[0].dtype,
        np.array([value for page in pages for value in page.nodata])[bands],
        None if masked is None else masked.ravel(),
        place(pages[0]),
    )


def choose_pages(path: Path, pages: Sequence[Page], variable: str | None) -> list[Page]:
    """Pages that make up the image: all of equal size, or the chosen one.

    Raises
    ------
    InputError
        If the caller must choose.
    """
    if variable is not None:
        number = int(variable) if variable.isdecimal() and len(variable) < 9 else 0
        if not 1 <= number <= len(pages):
            raise InputError(f"{path}: has no page {quoted(variable)}, only 1 to {len(pages)}.")
        return [pages[number - 1]]
    if len({page.size for page in pages}) > 1:
        those = ", ".join(
            f'"{i}" ({page.height} x {page.width} x {page.bands})'
            for i, page in enumerate(pages[:LISTED], start=1)
        )
        more = f" and {len(pages) - LISTED} more" if len(pages) > LISTED else ""
        raise InputError(f"{path}: its pages differ. Choose one by variable=...: {those}{more}.")
    return list(pages)


def check_pages(path: Path, pages: Sequence[Page], size: int) -> None:
    """Compare the declared size with that of the file, and with the free memory."""
    first = pages[0]
    extent = {"height": first.height, "width": first.width, "bands": first.bands}
    check_extent(str(path), extent)
    dtype = _dtype(path, first.dtype)
    stored = sum(page.stored for page in pages)
    if not all(page.compressed for page in pages) and stored > size:
        raise InputError(
            f"{path}: declares {in_bytes(stored)} of values but is {in_bytes(size)} "
            "(cut-off copy, or sparse?)."
        )
    check_expansion(str(path), size, stored)
    check_expansion(f"{path}, a block", size, max(page.block for page in pages))
    n = first.height * first.width * sum(page.bands for page in pages)
    check_memory(str(path), n * float_type(dtype).itemsize + max(p.stored for p in pages) + SMALL)


def _dtype(path: Path, name: str) -> np.dtype[Any]:
    """Type of the values, if these are real numbers."""
    try:
        dtype = np.dtype(name)
    except TypeError:
        dtype = np.dtype(complex)  # GDAL's complex integers
    if dtype.kind not in REAL:
        raise InputError(f"{path}: holds values of type {quoted(name)}, not real numbers.")
    return dtype


def float_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return what the values become: float32 stays, everything else is float64."""
    return np.dtype(np.float32 if dtype.newbyteorder("=") == np.float32 else np.float64)


def band_labels(pages: Sequence[Page]) -> tuple[str, ...]:
    """Name of each band of each page."""
    labels = []
    for i, page in enumerate(pages, start=1):
        before = f"page {i}" if len(pages) > 1 else ""
        for j, name in enumerate(page.names, start=1):
            own = name or (f"band {j}" if page.bands > 1 or not before else "")
            labels.append(" ".join(filter(None, [before, own])))
    return tuple(labels)


def taken(page: Page, before: int, bands: Sequence[int]) -> list[tuple[int, int]]:
    """Which bands of a page go to which columns, if earlier pages have `before` bands."""
    return [(b - before, j) for j, b in enumerate(bands) if before <= b < before + page.bands]


def together(places: Sequence[int]) -> slice | list[int]:
    """Return places on an axis as a slice if they are neighbours, which is much faster.

    >>> together([2, 3, 4]), together([4, 2])
    (slice(2, 5, None), [4, 2])
    """
    first, last = places[0], places[-1] + 1
    return slice(first, last) if list(places) == list(range(first, last)) else list(places)


def rows_at_once(page: Page, block_rows: int) -> int:
    """Rows to read together: whole blocks, some megabytes."""
    row = max(1, page.stored // page.height)
    return max(1, block_rows) * max(1, math.floor(STRIP / (row * max(1, block_rows))))


@contextmanager
def quiet(name: str) -> Iterator[None]:
    """Silence the log of a library about damaged files; it raises as well."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)

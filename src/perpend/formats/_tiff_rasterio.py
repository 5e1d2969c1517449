"""TIFF through rasterio: every kind of compression, masks, and coordinates."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.formats._tiff import Page

MAX_PAGES = 1 << 12  # files that are open together
LINES = 256  # that are written together


@contextmanager
def opened(path: Path) -> Iterator[list[Page]]:
    """Open all images of a file; nothing is read yet."""
    import rasterio

    name = str(path.absolute())
    with ExitStack() as stack:
        with warnings.catch_warnings(), rasterio.Env():
            warnings.simplefilter("ignore")  # a plain TIFF has no georeference
            first = stack.enter_context(rasterio.open(name, driver="GTiff"))
            n = len(first.subdatasets)
            if n > MAX_PAGES:
                raise InputError(f"{path}: has {n} pages; at most {MAX_PAGES} can be read.")
            parts = [f"GTIFF_DIR:{i}:{name}" for i in range(1, n + 1)]
            others = [stack.enter_context(rasterio.open(part, driver="GTiff")) for part in parts]
            pages = [_page(handle) for handle in (others if n > 1 else [first])]
        yield pages


def georeference(handle: Any) -> dict[str, Any]:
    """Where an image is on a map, as it is written again."""
    points, crs = handle.gcps
    if points:
        return {"gcps": points, "crs": crs}
    return {"crs": handle.crs, "transform": handle.transform}


def save(
    stream: IO[bytes],
    image: list[Array],
    names: Sequence[str],
    nodata: float,
    place: dict[str, Any],
) -> None:
    """Write bands as a GeoTIFF with this georeference: bytes, or else float32."""
    import rasterio

    (height, width), dtype = image[0].shape, "uint8" if image[0].itemsize == 1 else "float32"
    with warnings.catch_warnings(), rasterio.MemoryFile() as memory:
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        with memory.open(
            driver="GTiff",
            count=len(image),
            height=height,
            width=width,
            dtype=dtype,
            nodata=nodata,
            compress="deflate",
            **place,
        ) as dataset:
            for j, (name, band) in enumerate(zip(names, image, strict=True), start=1):
                for begin in range(0, height, LINES):
                    part = band[begin : begin + LINES].astype(dtype)
                    window = ((begin, begin + len(part)), (0, width))
                    dataset.write(part, j, window=window)
                dataset.set_band_description(j, name)
        stream.write(memory.getbuffer())


def _page(handle: Any) -> Page:
    from rasterio.enums import ColorInterp, Interleaving, MaskFlags

    alpha = handle.colorinterp[-1] == ColorInterp.alpha and handle.count > 1
    bands = handle.count - alpha
    pixel = np.dtype(handle.dtypes[0]).itemsize if "complex_int" not in handle.dtypes[0] else 8
    rows, columns = handle.block_shapes[0]
    masks = {MaskFlags.per_dataset, MaskFlags.alpha}
    has_mask = any(masks & set(flags) for flags in handle.mask_flag_enums)
    interleaved = handle.interleaving == Interleaving.pixel
    return Page(
        height=handle.height,
        width=handle.width,
        bands=bands,
        dtype=handle.dtypes[0],
        names=tuple(name or "" for name in handle.descriptions[:bands]),
        nodata=tuple(np.nan if v is None else float(v) for v in handle.nodatavals[:bands]),
        has_alpha=alpha,
        has_mask=has_mask,
        stored=handle.height * handle.width * handle.count * pixel,
        block=rows * columns * pixel * (handle.count if interleaved else 1),
        block_rows=rows,
        compressed=handle.compression is not None,
        handle=handle,
        read=partial(_read, handle, has_mask),
    )


def _read(
    handle: Any, has_mask: bool, begin: int, rows: int, bands: list[int]
) -> tuple[Array, Array | None]:
    """Some rows of an image; see :class:`Page`."""
    window = ((begin, begin + rows), (0, handle.width))
    values = handle.read([b + 1 for b in bands], window=window) if bands else np.empty(0)
    hidden = handle.dataset_mask(window=window) == 0 if has_mask else None
    return np.moveaxis(values, 0, -1), hidden

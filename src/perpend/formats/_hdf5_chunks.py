"""Unpack the chunks of an HDF5 dataset, each at most to its declared size.

The C library unpacks gzip without a limit, once for every time that a file names the filter: a file
of 20 kB may take 20 GB. So chunks that are packed by gzip are read raw and unpacked here.
"""

import math
import zlib
from typing import Any

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.formats._checks import quoted

GZIP, SHUFFLE, FLETCHER32 = 1, 2, 3
# for these, the C library limits the size of a chunk: szip, nbit, scaleoffset, lzf
BOUNDED = {SHUFFLE, FLETCHER32, 4, 5, 6, 32000}
CHECKSUM_BYTES = 4


def packed_by(item: Any) -> list[tuple[int, tuple[int, ...]]]:
    """Filters of a dataset that must be undone here: number and parameters of each.

    Raises
    ------
    InputError
        If a filter is unknown.
    """
    settings = item.id.get_create_plist()
    filters = [settings.get_filter(i) for i in range(settings.get_nfilters())]
    codes = [code for code, *_ in filters]
    if GZIP not in codes and set(codes) <= BOUNDED:
        return []
    if codes.count(GZIP) > 1 or not set(codes) <= {GZIP, SHUFFLE, FLETCHER32}:
        names = ", ".join(quoted(name.decode("latin-1")) for *_, name in filters)
        raise InputError(
            f"{item.file.filename}, array {quoted(item.name)}: is compressed in an unknown way "
            f"({names}). Save it with gzip or lzf, or uncompressed."
        )
    return [(code, values) for code, _, values, _ in filters]


def load_chunked(where: str, item: Any) -> Array:
    """Values of a dataset that is packed by gzip.

    Parameters
    ----------
    where : str
        File and array, for messages.
    item : h5py.Dataset
        Its shape and dtype are checked already.

    Returns
    -------
    array
        In the dtype of the file; chunks that were never written hold the fill value.
    """
    import h5py

    filters, dtype, extent = packed_by(item), item.dtype, item.chunks
    if dtype.kind != "b" and not h5py.h5t.py_create(dtype).equal(item.id.get_type()):
        raise InputError(f"{where}: holds numbers of an unusual layout. Save floats instead.")
    values = np.full(item.shape, item.fillvalue, dtype)
    chunks: list[tuple[int, ...]] = []
    item.id.chunk_iter(lambda chunk: chunks.append(chunk.chunk_offset))
    for begin in chunks:
        if any(b < 0 or b >= n for b, n in zip(begin, item.shape, strict=True)):
            continue  # left from a time when the dataset was larger
        mask, raw = item.id.read_direct_chunk(begin)
        plain = _unpack(where, raw, filters, mask, math.prod(extent) * dtype.itemsize)
        chunk = np.frombuffer(plain, dtype).reshape(extent)
        place = tuple(slice(b, b + e) for b, e in zip(begin, extent, strict=True))
        target = values[place]
        target[...] = chunk[tuple(slice(n) for n in target.shape)]
    return values


def _unpack(
    where: str, raw: bytes, filters: list[tuple[int, tuple[int, ...]]], mask: int, size: int
) -> bytes:
    """Undo the filters of a chunk in reverse; `mask` has a bit for each that was not applied."""
    for i, (code, parameters) in reversed(list(enumerate(filters))):
        if mask >> i & 1:
            continue
        if code == GZIP:
            unpacker = zlib.decompressobj()
            raw = unpacker.decompress(raw, size + CHECKSUM_BYTES + 1)
        elif code == FLETCHER32:
            raw = raw[:-CHECKSUM_BYTES]
        else:
            raw = _unshuffle(raw, parameters[0] if parameters else 1)
    if len(raw) != size:
        raise InputError(f"{where}: a chunk is not of the size it declares. The file is damaged.")
    return raw


def _unshuffle(raw: bytes, width: int) -> bytes:
    """Bring the bytes of each number together; in the file, all first bytes come first."""
    n = len(raw) // width if width > 0 else 0
    if n == 0:
        return raw
    whole = np.frombuffer(raw, np.uint8, n * width).reshape(width, n)
    return whole.T.tobytes() + raw[n * width :]

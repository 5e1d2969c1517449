"""Compressed blocks of a LAZ file, checked before the decompressor trusts them.

Points of format 6 and above are stored in layers: a block has its first point, uncompressed, then
the number of its points and the length of each layer. The decompressor allocates these lengths
unchecked, up to 4 GB each. So the blocks are walked first; together they must fill the space up to
their table.
"""

import math
import struct
from pathlib import Path
from typing import IO, Any

from perpend.exceptions import InputError

LAYERED = 3  # kind of compression
N_LAYERS = {10: 9, 11: 1, 12: 2, 13: 1}  # by kind of item: point, colours, with infrared, waveform
BYTES = 14  # the kind of item with one layer for each of its bytes
VARIABLE = 0xFFFFFFFF  # instead of the number of points in a block
HEAD = struct.Struct("<H10xI16xH")  # kind, points in a block, number of items
ITEM = struct.Struct("<HHH")  # kind, bytes, version


def check_blocks(
    path: Path, record: bytes, lazrs: Any, *, offset: int, size: int, points: int
) -> None:
    """Refuse blocks that declare more than the file holds.

    Parameters
    ----------
    path : Path
        The file.
    record : bytes
        Its description of the compression.
    lazrs : module
        Reads the table of the blocks.
    offset, size : int
        Where the points begin, and where the file ends.
    points : int
        Number of points.
    """
    if len(record) < HEAD.size:
        raise InputError(f"{path}: the record of its compression is cut off. It is damaged.")
    kind, block_points, n_items = HEAD.unpack_from(record)
    if len(record) < HEAD.size + n_items * ITEM.size:
        raise InputError(f"{path}: the record of its compression is cut off. It is damaged.")
    items = [ITEM.unpack_from(record, HEAD.size + i * ITEM.size) for i in range(n_items)]
    with path.open("rb") as stream:
        end = _table(path, stream, offset, size)
        if kind != LAYERED:
            return
        counts = _walk(path, stream, items, offset + 8, end)
    if block_points == VARIABLE:
        declared = _counts_of_table(path, lazrs, record, offset)
        fits = declared == counts and sum(counts) >= points
    else:
        fits = block_points > 0 and len(counts) >= math.ceil(points / block_points)
    if not fits:
        raise InputError(f"{path}: its {len(counts)} blocks do not hold {points} points. Damaged?")


def _table(path: Path, stream: IO[bytes], offset: int, size: int) -> int:
    """Where the table of the blocks begins; it must fit into the file."""
    stream.seek(offset)
    place = int.from_bytes(stream.read(8), "little", signed=True)
    if place == -1 and size >= offset + 16:  # written without seeking: the place is at the end
        stream.seek(size - 8)
        place = int.from_bytes(stream.read(8), "little", signed=True)
    if not offset + 8 <= place <= size - 8:
        raise InputError(f"{path}: has no table of its blocks. Is it a cut-off copy?")
    stream.seek(place + 4)
    blocks = int.from_bytes(stream.read(4), "little")
    if blocks > size:
        raise InputError(f"{path}: {blocks} blocks do not fit into {size} bytes. It is damaged.")
    return place


def _walk(
    path: Path, stream: IO[bytes], items: list[tuple[int, int, int]], place: int, end: int
) -> list[int]:
    """Numbers of points that the blocks declare, if their layers fit."""
    first = sum(size for _, size, _ in items)
    layers = sum(size if kind == BYTES else N_LAYERS.get(kind, 0) for kind, size, _ in items)
    lengths = struct.Struct(f"<{1 + layers}I")
    counts = []
    while place < end:
        stream.seek(place + first)
        head = stream.read(lengths.size)
        if len(head) < lengths.size:
            break
        count, *sizes = lengths.unpack(head)
        counts.append(count)
        place += first + lengths.size + sum(sizes)
    if place != end:
        raise InputError(f"{path}: the layers of its blocks do not fit. Is it damaged or cut off?")
    return counts


def _counts_of_table(path: Path, lazrs: Any, record: bytes, offset: int) -> list[int]:
    """Numbers of points that the table declares."""
    with path.open("rb") as stream:
        stream.seek(offset)
        return [count for count, _ in lazrs.read_chunk_table(stream, lazrs.LazVlr(record))]

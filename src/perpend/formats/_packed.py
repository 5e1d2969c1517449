"""How large a packed chunk becomes, without unpacking it into memory.

Each function returns an upper bound in bytes. The libraries that unpack chunks trust the sizes in
them, so a chunk of a few kilobytes may take gigabytes.
"""

import struct
import zlib
from collections.abc import Callable

PIECE = 1 << 20  # bytes that are unpacked at once
NO_BOUND = 1 << 62  # bytes: more than any machine has
ZSTD_MAGIC = 0xFD2FB528
ZSTD_SKIPPED = range(0x184D2A50, 0x184D2A60)  # magic numbers of frames without values
ZSTD_BLOCK = 1 << 17  # bytes that a block may become, at most


def of_zlib(packed: bytes, limit: int = NO_BOUND) -> int:
    """Unpack zlib or gzip piece by piece, and count, up to about the limit."""
    count = 0
    while packed and count <= limit:
        unpacker = zlib.decompressobj(wbits=47)  # either of the two headers
        tail = packed
        while tail and not unpacker.eof and count <= limit:
            count += len(unpacker.decompress(tail, PIECE))
            tail = unpacker.unconsumed_tail
        if not unpacker.eof or len(unpacker.unused_data) == len(packed):
            break
        packed = unpacker.unused_data.lstrip(b"\0")  # a further member
    return count


def of_blosc(packed: bytes) -> int:
    """Read the size in the header, which bounds what is unpacked."""
    return struct.unpack_from("<I", packed, 4)[0] if len(packed) >= 16 else NO_BOUND


def of_lz4(packed: bytes) -> int:
    """Read the size in the first four bytes, which bounds what is unpacked."""
    return struct.unpack_from("<I", packed)[0] if len(packed) >= 4 else NO_BOUND


def of_zstd(packed: bytes) -> int:
    """Walk along the blocks of all frames; return the larger of what they hold and declare.

    >>> of_zstd(bytes.fromhex("28b52ffd2003190000616263"))  # "abc", not compressed
    3
    """
    place = bound = declared = 0
    try:
        while place < len(packed):
            (magic,) = struct.unpack_from("<I", packed, place)
            if magic in ZSTD_SKIPPED:
                place += 8 + struct.unpack_from("<I", packed, place + 4)[0]
                continue
            if magic != ZSTD_MAGIC:
                return NO_BOUND
            has_checksum = packed[place + 4] >> 2 & 1
            place, size = _zstd_header(packed, place + 4)
            declared += size
            place, size = _zstd_blocks(packed, place)
            bound += size
            place += 4 * has_checksum
    except (struct.error, IndexError):
        return NO_BOUND
    return max(bound, declared) if place == len(packed) else NO_BOUND


def _zstd_header(packed: bytes, place: int) -> tuple[int, int]:
    """Where the blocks of a frame begin, and the size that it declares, 0 if none."""
    flags = packed[place]
    is_single = flags >> 5 & 1  # without a window, whose descriptor is one byte
    place += 1 + (not is_single) + (0, 1, 2, 4)[flags & 3]  # the last is the number of a dictionary
    width = (is_single, 2, 4, 8)[flags >> 6]
    size = int.from_bytes(packed[place : place + width], "little")
    return place + width, size + 256 * (width == 2)


def _zstd_blocks(packed: bytes, place: int) -> tuple[int, int]:
    """Where the blocks of a frame end, and how much they can hold."""
    bound = last = 0
    while not last:
        header = packed[place] | packed[place + 1] << 8 | packed[place + 2] << 16
        last, kind, size = header & 1, header >> 1 & 3, header >> 3
        place += 3 + (1 if kind == 1 else size)  # 1: one byte, repeated
        bound += ZSTD_BLOCK if kind == 2 else size  # 2: compressed; 0: as it is
    return place, bound


UNPACKED_SIZE: dict[str, Callable[[bytes], int]] = {
    "blosc": of_blosc,
    "gzip": of_zlib,
    "lz4": of_lz4,
    "zlib": of_zlib,
    "zstd": of_zstd,
}

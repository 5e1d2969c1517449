"""A tiny encoder of PNG pictures: 8 bits for each of 1 (grey), 3 (colour) or 4 (and alpha) values.

A PNG is a signature and chunks, each with its length, name, data and checksum. The picture itself
is one zlib stream in which every line begins with the number of its filter; 0 is none.
"""

import base64
import struct
import zlib

import numpy as np

from perpend._typing import Array

COLOUR_TYPES = {1: 0, 3: 2, 4: 6}
SIGNATURE = b"\x89PNG\r\n\x1a\n"


def png(pixels: Array) -> bytes:
    """Return the PNG file of pixels (height, width) or (height, width, 1, 3 or 4), uint8."""
    pixels = pixels.reshape(*pixels.shape[:2], -1)
    height, width, channels = pixels.shape
    if pixels.dtype != np.uint8 or not height or not width:
        raise ValueError(f"pixels of type {pixels.dtype} and shape {pixels.shape}; expected uint8.")
    header = struct.pack(">IIBBBBB", width, height, 8, COLOUR_TYPES[channels], 0, 0, 0)
    lines = np.zeros((height, 1 + width * channels), np.uint8)
    lines[:, 1:] = pixels.reshape(height, -1)
    return b"".join(
        [
            SIGNATURE,
            _chunk(b"IHDR", header),
            _chunk(b"IDAT", zlib.compress(lines.tobytes(), 9)),
            _chunk(b"IEND", b""),
        ]
    )


def data_uri(pixels: Array) -> str:
    """Return the picture as an address that holds it."""
    return "data:image/png;base64," + base64.b64encode(png(pixels)).decode("ascii")


def _chunk(kind: bytes, data: bytes) -> bytes:
    checksum = struct.pack(">I", zlib.crc32(kind + data))
    return struct.pack(">I", len(data)) + kind + data + checksum

"""NumPy's ``.npz`` files: a zip archive of arrays, each in the .npy format.

An archive is not trusted: one that expands more than a hundredfold is refused, and names inside it
are never used as paths.
"""

import math
import struct
import zipfile
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from perpend._files import writing
from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.formats import _checks as check
from perpend.formats._checks import quoted
from perpend.formats._choice import Entry, choose
from perpend.formats._damage import DAMAGE_ERRORS, damage_named
from perpend.formats._dataset import Dataset, Labelled, Options
from perpend.formats._npy import Header, check_size, read_header
from perpend.formats._records import added_values, float_bytes
from perpend.formats._stream import Blocks, Once, array_blocks
from perpend.rows.sequential import Sequential

PIECE = 4 << 20  # bytes that are unpacked at once
LOCAL_HEADER, NAME_SIZES = 30, 26  # bytes before a member, and where the sizes of its names are


def opened(path: Path, options: Options) -> Blocks:
    """Open one array of a ``.npz`` archive: as it is if it is not packed, else read in pieces."""
    with damage_named(path, "not a readable .npz archive"), zipfile.ZipFile(path) as archive:
        members: dict[str, zipfile.ZipInfo] = {}
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            if name in members:
                raise InputError(f"{path}: has two arrays {quoted(name)}. Write the archive anew.")
            if name != member.filename:
                members[name] = member
        entries = {name: _entry(archive, member) for name, member in members.items()}
        name, where = choose(path, options.variable, entries, "archive")
        check.unpacking(where, members[name], path.stat().st_size)
        header = _header(archive, members[name], where)
        check_size(where, header, members[name].file_size)
        member = members[name]

        def source(transposed: bool) -> Any:
            if member.compress_type == zipfile.ZIP_STORED:
                start = _start(path, member, where) + header.offset
                return header.raw(path, start, transposed=transposed)
            in_order = header.order == ("F" if transposed else "C")  # a row's values are together
            if not in_order:
                return Once(partial(_extract, path, member, where, header))
            shape = header.shape[::-1] if transposed else header.shape
            rows = math.prod(shape[:-1]), shape[-1]
            pieces = partial(_pieces, path, member, where, header, rows[1])
            near = lambda _: (0, pieces())  # noqa: E731
            return Sequential(near, shape=rows, dtype=header.dtype, name=where).read

        about = {"what": "not a readable .npz archive"}
        return array_blocks(path, options, header.shape, header.dtype, source, about=about)


def write_labelled(dataset: Dataset, labelled: Labelled, path: Path) -> Path:
    """Write an archive of three arrays, each in the shape of the records."""
    with writing(path) as stream:
        np.savez_compressed(stream, **added_values(dataset, labelled))
    return path


def _entry(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Entry:
    try:
        header = _header(archive, member, "")
    except DAMAGE_ERRORS:  # InputError is a ValueError
        return Entry(None)
    return Entry.of(header.shape, header.dtype)


def _header(archive: zipfile.ZipFile, member: zipfile.ZipInfo, where: str) -> Header:
    """Read what an array declares, if it can be unpacked piece by piece."""
    check.packing(where, member, "NumPy")
    with archive.open(member) as stream:
        return read_header(where, stream)


def _start(path: Path, member: zipfile.ZipInfo, where: str) -> int:
    """Return where an array that is not packed begins, after its checksum was compared."""
    with path.open("rb") as stream:
        stream.seek(member.header_offset + NAME_SIZES)
        start: int = member.header_offset + LOCAL_HEADER
        start += sum(struct.unpack("<HH", stream.read(4)))
        stream.seek(start)
        left, found = member.file_size, 0
        while left and (piece := stream.read(min(PIECE, left))):
            found, left = zlib.crc32(piece, found), left - len(piece)
    if left or found != member.CRC:
        raise InputError(f"{where}: does not fit its checksum. Is the archive a cut-off copy?")
    return start


def _extract(path: Path, member: zipfile.ZipInfo, where: str, header: Header) -> Array:
    """Unpack one array into memory."""
    check.memory(where, float_bytes(header.shape, header.dtype))
    values = np.concatenate(list(_pieces(path, member, where, header, 1)))
    return values.reshape(header.shape, order=header.order)


def _pieces(
    path: Path, member: zipfile.ZipInfo, where: str, header: Header, width: int
) -> Iterator[Array]:
    """Unpack the rows of an array, some at a time."""
    row = width * header.dtype.itemsize
    left, step = math.prod(header.shape) // width, max(1, PIECE // row)
    with zipfile.ZipFile(path) as archive, archive.open(member) as stream:
        stream.read(header.offset)
        while left:
            block: Array = np.empty((min(step, left), width), header.dtype)
            if stream.readinto(block.view(np.uint8).ravel()) != block.nbytes:  # type: ignore[attr-defined]
                raise InputError(f"{where}: ends too early. Is the archive a cut-off copy?")
            left -= len(block)
            yield block

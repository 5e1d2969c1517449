"""NumPy's ``.npz`` files: a zip archive of arrays, each in the .npy format.

An archive is not trusted: one that expands more than a hundredfold is refused, and names inside it
are never used as paths.
"""

import math
import zipfile
from pathlib import Path

import numpy as np

from perpend._files import writing
from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.formats import _checks as check
from perpend.formats._checks import quoted
from perpend.formats._choice import Entry, choose
from perpend.formats._damage import DAMAGE_ERRORS, damage_named
from perpend.formats._dataset import Answer, Dataset, Options
from perpend.formats._npy import Header, check_size, read_header
from perpend.formats._records import added_values, float_bytes, from_array

PIECE = 4 << 20  # bytes that are unpacked at once


def read(path: Path, options: Options) -> Dataset:
    """Read one array of a ``.npz`` archive."""
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
        check.memory(where, float_bytes(header.shape, header.dtype))
        values = _extract(archive, members[name], where, header)
    return from_array(values, path, options, header.dtype)


def write_answer(dataset: Dataset, answer: Answer, path: Path) -> Path:
    """Write an archive of three arrays, each in the shape of the records."""
    with writing(path) as stream:
        np.savez_compressed(stream, **added_values(dataset, answer))
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


def _extract(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, where: str, header: Header
) -> Array:
    """Unpack one array into memory."""
    values: Array = np.empty(math.prod(header.shape), header.dtype)
    buffer = memoryview(values.view(np.uint8))
    with archive.open(member) as stream:
        stream.read(header.offset)
        for begin in range(0, len(buffer), PIECE):
            piece = buffer[begin : begin + PIECE]
            if stream.readinto(piece) != len(piece):  # type: ignore[attr-defined]
                raise InputError(f"{where}: ends too early. Is the archive a cut-off copy?")
    return values.reshape(header.shape, order=header.order)

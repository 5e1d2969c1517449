"""NumPy's ``.npz`` files: a zip archive of arrays, each in the .npy format.

An archive is not trusted: one that expands more than a hundredfold is refused, and names inside it
are never used as paths.
"""

import math
import zipfile
import zlib
from pathlib import Path
from typing import IO

import numpy as np

from perpend._files import writing
from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.formats._answer_path import answer_path
from perpend.formats._checks import (
    REAL,
    as_floats,
    check_expansion,
    check_memory,
    file_size,
    float_bytes,
    quoted,
)
from perpend.formats._choice import Entry, choose
from perpend.formats._dataset import Answer, Dataset, Options
from perpend.formats._npy import Header, check_size, read_header
from perpend.formats._records import added_values, from_array

PIECE = 4 << 20  # bytes that are unpacked at once
BAD_ARCHIVE = (
    *(zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError, OverflowError),
    *(LookupError, MemoryError),
)


def read(path: Path, options: Options) -> Dataset:
    """Read one array of a ``.npz`` archive."""
    size = file_size(path)
    try:
        with zipfile.ZipFile(path) as archive:
            name, member = _choose(archive, path, options.variable)
            where = f"{path}, array {quoted(name)}"
            _check_member(where, member, size)
            header = _header(archive, member, where)
            check_size(where, header, member.file_size)
            check_memory(where, float_bytes(header.shape, header.dtype))
            values = as_floats(_extract(archive, member, where, header))
    except InputError:
        raise
    except BAD_ARCHIVE as error:
        raise InputError(
            f"{path}: not a readable .npz archive ({error}). "
            "Is it a cut-off copy, or another format?"
        ) from error
    return from_array(values, path, "npz", stored_dtype=str(header.dtype), wanted=options.columns)


def write_answer(dataset: Dataset, answer: Answer, folder: Path) -> Path:
    """Write an archive of three arrays, each in the shape of the records."""
    path = answer_path(dataset, folder)
    with writing(path) as stream:
        np.savez_compressed(stream, **added_values(dataset, answer))
    return path


def _choose(
    archive: zipfile.ZipFile, path: Path, variable: str | None
) -> tuple[str, zipfile.ZipInfo]:
    """Find the array to read."""
    members: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist():
        name = member.filename.removesuffix(".npy")
        if name in members:
            raise InputError(f"{path}: has two arrays {quoted(name)}. Write the archive anew.")
        if name != member.filename:
            members[name] = member
    if not members:
        raise InputError(f"{path}: there is no array in this archive.")
    if variable in members:
        return variable, members[variable]
    entries = {name: _entry(archive, member) for name, member in members.items()}
    name = choose(path, variable, entries)
    return name, members[name]


def _entry(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Entry:
    try:
        header = _header(archive, member, "")
    except BAD_ARCHIVE:  # InputError is a ValueError
        return Entry(None)
    return Entry(header.shape, "" if header.dtype.kind in REAL else header.dtype.name)


def _open(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> IO[bytes]:
    """Open a member, if it can be unpacked piece by piece; NumPy writes no other kinds."""
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InputError(
            f"{archive.filename}: {quoted(member.filename)} is compressed in a way that NumPy "
            "does not use. Write it by numpy.savez or numpy.savez_compressed."
        )
    return archive.open(member)


def _check_member(where: str, member: zipfile.ZipInfo, size: int) -> None:
    """Check a member in the archive's directory, before unpacking."""
    if member.compress_size > size:
        raise InputError(f"{where}: larger than the archive itself. The archive is damaged.")
    check_expansion(where, member.compress_size, member.file_size)


def _header(archive: zipfile.ZipFile, member: zipfile.ZipInfo, where: str) -> Header:
    with _open(archive, member) as stream:
        return read_header(where, stream)


def _extract(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, where: str, header: Header
) -> Array:
    """Unpack one array into memory."""
    values: Array = np.empty(math.prod(header.shape), header.dtype)
    buffer = memoryview(values.view(np.uint8))
    with _open(archive, member) as stream:
        stream.read(header.offset)
        for begin in range(0, len(buffer), PIECE):
            piece = buffer[begin : begin + PIECE]
            if stream.readinto(piece) != len(piece):  # type: ignore[attr-defined]
                raise InputError(f"{where}: ends too early. Is the archive a cut-off copy?")
    return values.reshape(header.shape, order=header.order)

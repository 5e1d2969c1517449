"""NumPy's own files: ``.npy`` (one array) and ``.npz`` (a zip archive of several).

A file is not trusted. Pickles are refused; the size that the header declares is compared with the
size of the file before anything is allocated (a file of 128 bytes can declare 8 TB); an archive
whose contents expand more than a hundredfold is refused; names inside an archive are only ever
compared, never used as paths.
"""

import io
import math
import tokenize
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.formats._choice import Entry, choose
from perpend.formats._table import (
    MAX_RATIO,
    REAL,
    SMALL,
    TABLE,
    Layout,
    Table,
    as_floats,
    check_array,
    file_size,
    in_bytes,
    no_choice,
    quoted,
)

HEADER_BYTES = 1 << 16  # NumPy itself reads no header longer than 10,000 characters
CHUNK = 4 << 20
HEADER_PARSERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
    (3, 0): np.lib.format.read_array_header_2_0,  # differs in the field names of records only
}
# what NumPy's header parser may raise on damaged input
BAD_HEADER = (
    *(ValueError, TypeError, SyntaxError, LookupError, EOFError, AttributeError),
    *(MemoryError, RecursionError, tokenize.TokenError),
)
BAD_ARCHIVE = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError, OverflowError)


class _Header(NamedTuple):
    shape: tuple[int, ...]
    order: Literal["C", "F"]
    dtype: np.dtype[Any]
    offset: int  # where the values begin


def read_npy(path: Path, variable: str | None = None) -> Table:
    """Open a ``.npy`` file; float arrays stay on disk and are mapped into memory, read-only.

    Parameters
    ----------
    path : Path
        The file.
    variable : None
        There is nothing to choose.

    Returns
    -------
    Table
        Without column names.
    """
    return Table(load_npy(path, variable, TABLE), None, str(path))


def read_npz(path: Path, variable: str | None = None) -> Table:
    """Read one array of a ``.npz`` archive.

    Parameters
    ----------
    path : Path
        The file.
    variable : str, optional
        Name of the array; needed if there are several.

    Returns
    -------
    Table
        Without column names.
    """
    return Table(load_npz(path, variable, TABLE), None, str(path))


def load_npy(path: Path, variable: str | None, layout: Layout) -> Array:
    """Array of floats in a ``.npy`` file, for :func:`read_npy` and whoever needs another layout."""
    no_choice(path, variable)
    size = file_size(path)
    with path.open("rb") as stream:
        header = _read_header(str(path), stream)
    _check_size(str(path), header, size, layout)
    mapped = np.memmap(path, header.dtype, "r", header.offset, header.shape, header.order)
    return as_floats(np.asarray(mapped))


def load_npz(path: Path, variable: str | None, layout: Layout) -> Array:
    """Array of floats in a ``.npz`` archive, for :func:`read_npz` and other layouts."""
    size = file_size(path)
    try:
        with zipfile.ZipFile(path) as archive:
            name, member = _choose(archive, path, variable, layout)
            where = f"{path}, array {quoted(name)}"
            _check_member(where, member, size)
            return as_floats(_extract(archive, member, where, layout))
    except InputError:
        raise
    except BAD_ARCHIVE as error:
        raise InputError(
            f"{path}: not a readable .npz archive ({error}). "
            "Is it a cut-off copy, or another format?"
        ) from error


def _read_header(where: str, stream: IO[bytes]) -> _Header:
    """Parse the first bytes of an array in the .npy format; read no value."""
    start = io.BytesIO(stream.read(HEADER_BYTES))
    if not start.getvalue().startswith(np.lib.format.MAGIC_PREFIX):
        raise InputError(f"{where}: does not begin like a .npy file. Is it another format?")
    try:
        parse = HEADER_PARSERS[np.lib.format.read_magic(start)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # remarks on headers written by Python 2
            shape, fortran_order, dtype = parse(start)
    except BAD_HEADER as error:
        raise InputError(f"{where}: the header is damaged ({type(error).__name__}).") from error
    return _Header(shape, "F" if fortran_order else "C", dtype, start.tell())


def _check_size(where: str, header: _Header, size: int, layout: Layout) -> None:
    """Compare what the header declares with the bytes that are there."""
    check_array(where, header.shape, header.dtype, layout)
    declared = math.prod(header.shape) * header.dtype.itemsize
    present = size - header.offset
    if declared != present:
        extent = " x ".join(map(str, header.shape))
        raise InputError(
            f"{where}: declares {extent} values of {header.dtype} ({in_bytes(declared)}) "
            f"but holds {in_bytes(present)}. "
            + ("Is it a cut-off copy?" if declared > present else "Save one array per file.")
        )


def _choose(
    archive: zipfile.ZipFile, path: Path, variable: str | None, layout: Layout
) -> tuple[str, zipfile.ZipInfo]:
    """Find the one array that is meant."""
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
        return variable, members[variable]  # whatever the others are
    entries = {name: _entry(archive, member) for name, member in members.items()}
    name = choose(path, variable, entries, layout)
    return name, members[name]


def _entry(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Entry:
    try:
        with _open(archive, member) as stream:
            header = _read_header("", stream)
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
    """Judge a member by the archive's directory, before unpacking."""
    if member.compress_size > size:
        raise InputError(f"{where}: larger than the archive itself. The archive is damaged.")
    if member.file_size > max(SMALL, MAX_RATIO * member.compress_size):
        raise InputError(
            f"{where}: {in_bytes(member.compress_size)} would expand to "
            f"{in_bytes(member.file_size)}, more than {MAX_RATIO} times as much. "
            "If you trust it, save it uncompressed as .npy."
        )


def _extract(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, where: str, layout: Layout
) -> Array:
    """Unpack one array into memory."""
    with _open(archive, member) as stream:
        header = _read_header(where, stream)
    _check_size(where, header, member.file_size, layout)
    try:
        values: Array = np.empty(math.prod(header.shape), header.dtype)
    except MemoryError as error:
        needed = in_bytes(member.file_size)
        raise InputError(f"{where}: needs {needed} of memory. Save it as .npy.") from error
    buffer = memoryview(values.view(np.uint8))
    with _open(archive, member) as stream:
        stream.read(header.offset)
        for begin in range(0, len(buffer), CHUNK):
            piece = buffer[begin : begin + CHUNK]
            if stream.readinto(piece) != len(piece):  # type: ignore[attr-defined]
                raise InputError(f"{where}: ends too early. Is the archive a cut-off copy?")
    return values.reshape(header.shape, order=header.order)

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
from perpend.formats._table import (
    Table,
    as_floats,
    check_matrix,
    file_size,
    in_bytes,
    no_choice,
    quoted,
)

HEADER_BYTES = 1 << 16  # NumPy itself reads no header longer than 10,000 characters
MAX_RATIO = 100  # an archive may expand this much,
SMALL = 64 << 20  # or up to 64 MiB in any case
LISTED = 20  # arrays named in a message
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
    no_choice(path, variable)
    size = file_size(path)
    with path.open("rb") as stream:
        header = _read_header(str(path), stream)
    _check_size(str(path), header, size)
    mapped = np.memmap(path, header.dtype, "r", header.offset, header.shape, header.order)
    return Table(as_floats(np.asarray(mapped)), None, str(path))


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
    size = file_size(path)
    try:
        with zipfile.ZipFile(path) as archive:
            name, member = _choose(archive, path, variable)
            where = f"{path}, array {quoted(name)}"
            _check_member(where, member, size)
            return Table(as_floats(_extract(archive, member, where)), None, str(path))
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


def _check_size(where: str, header: _Header, size: int) -> None:
    """Compare what the header declares with the bytes that are there."""
    check_matrix(where, header.shape, header.dtype)
    declared = math.prod(header.shape) * header.dtype.itemsize
    present = size - header.offset
    rows, columns = header.shape
    if declared != present:
        raise InputError(
            f"{where}: declares {rows} x {columns} values of {header.dtype} ({in_bytes(declared)}) "
            f"but holds {in_bytes(present)}. "
            + ("Is it a cut-off copy?" if declared > present else "Save one array per file.")
        )


def _choose(
    archive: zipfile.ZipFile, path: Path, variable: str | None
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
    if variable is None and len(members) == 1:
        return next(iter(members.items()))
    if variable in members:
        return variable, members[variable]
    listing = ", ".join(
        f"{quoted(name)} {_shape(archive, members[name])}" for name in list(members)[:LISTED]
    )
    if len(members) > LISTED:
        listing += f" and {len(members) - LISTED} more"
    problem = "holds several arrays" if variable is None else f"has no array {quoted(variable)}"
    raise InputError(f"{path}: {problem}. Choose one by variable=...: {listing}.")


def _shape(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> str:
    try:
        with _open(archive, member) as stream:
            return str(_read_header("", stream).shape)
    except BAD_ARCHIVE:  # InputError is a ValueError
        return "(unreadable)"


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


def _extract(archive: zipfile.ZipFile, member: zipfile.ZipInfo, where: str) -> Array:
    """Unpack one array into memory."""
    with _open(archive, member) as stream:
        header = _read_header(where, stream)
    _check_size(where, header, member.file_size)
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

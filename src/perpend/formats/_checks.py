"""The checks that files must pass, such as ``check.memory``, and texts for messages."""

import math
import re
import stat
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from perpend.exceptions import InputError, TooLargeError
from perpend.formats._memory import memory_limit

QUOTED = 40  # characters of a cell or a name in a message
LIBRARY_WORDS = 160  # characters of another library's message
MAX_RATIO = 100  # a compressed file may expand this much,
SMALL = 64 << 20  # or up to 64 MiB in any case
REAL = "biuf"  # kinds of dtypes that hold real numbers
DIMENSIONS = (2, 3)  # of a table and of an image
RESHAPE = (
    "Reshape it to 2: one row per sample, one column per feature; "
    "or, for an image, to 3: height x width x bands."
)


def file_size(path: Path) -> int:
    """Size in bytes of a file that exists, is a file and is not empty."""
    try:
        status = path.stat()
    except FileNotFoundError:
        raise InputError(f"{path}: no such file. Check the name and the folder.") from None
    except ValueError as error:  # a NUL character in the name
        raise InputError(f"{quoted(str(path))}: not a file name ({error}).") from error
    if stat.S_ISDIR(status.st_mode):
        raise InputError(f"{path}: is a directory. Give one of the files in it.")
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{path}: is not a regular file. Save the data to a file first.")
    if status.st_size == 0:
        raise InputError(f"{path}: the file is empty (0 bytes). Was it written completely?")
    return status.st_size


def magic(path: Path, what: str, *starts: bytes, end: bytes = b"") -> None:
    """Refuse a file that begins or ends in another way than its format does."""
    with path.open("rb") as stream:
        if not stream.read(max(map(len, starts))).startswith(starts):
            raise InputError(f"{path}: does not begin {what}. Is it another format?")
        stream.seek(-min(len(end), path.stat().st_size), 2)
        if stream.read() != end:
            raise InputError(f"{path}: does not end {what}. Is it a cut-off copy?")


def array(where: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Refuse anything but a table or an image of real numbers with at least one entry."""
    if dtype.hasobject:
        raise InputError(
            f"{where}: holds Python objects, which only pickle can read, and a pickle can run any "
            "code. Save a plain numeric array instead."
        )
    if dtype.kind not in REAL:
        raise InputError(
            f"{where}: holds values of type {quoted(str(dtype))}, not real numbers. "
            "Save a plain array of floats instead."
        )
    if len(shape) not in DIMENSIONS:
        raise InputError(f"{where}: has {len(shape)} dimension(s), shape {shape}. {RESHAPE}")
    if min(shape) < 1:
        raise InputError(f"{where}: has shape {shape}, so there are no values to read.")


def extent(where: str, **sides: int) -> None:
    """Refuse an image with an empty side."""
    for side, length in sides.items():
        if length < 1:
            raise InputError(f"{where}: {side} is {length}, so there are no values to read.")


def memory(where: str, needed: int) -> None:
    """Refuse to allocate more bytes than are available."""
    limit = memory_limit()
    if needed > limit:
        raise TooLargeError(
            f"{where}: needs {in_bytes(needed)} of memory, and at most {in_bytes(limit)} may be "
            "used. Read fewer rows or columns, or save it as .npy of float32, which stays on disk."
        )


def expansion(where: str, stored: int, plain: int) -> None:
    """Refuse data that would expand more than a hundredfold, unless it is small."""
    if plain > max(SMALL, MAX_RATIO * stored):
        raise InputError(
            f"{where}: {in_bytes(stored)} would expand to {in_bytes(plain)}, more than "
            f"{MAX_RATIO} times as much. If you trust it, save it uncompressed as .npy."
        )


def points(path: Path, n: int, least: int, present: int) -> None:
    """Compare the bytes that `n` points take at least with those that are there."""
    if least > present:
        raise InputError(
            f"{path}: declares {n} points, at least {in_bytes(least)}, but holds "
            f"{in_bytes(max(0, present))}. Is it a cut-off copy?"
        )


def packing(where: str, member: zipfile.ZipInfo, by: str) -> None:
    """Refuse a member of a zip archive that cannot be unpacked piece by piece."""
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InputError(f"{where}: compressed in a way that {by} does not use. Write it anew.")


def unpacking(where: str, member: zipfile.ZipInfo, size: int) -> None:
    """Compare the sizes of a member with those of its archive, before it is unpacked."""
    if member.compress_size > size:
        raise InputError(f"{where}: larger than the archive itself. It is damaged.")
    expansion(where, member.compress_size, member.file_size)


def transposable(path: Path, is_table: bool) -> None:
    """Refuse to swap rows and columns of anything but a table of text or an array."""
    if not is_table:
        raise InputError(
            f"{path}: only text tables and arrays of 2 dimensions can be transposed. "
            "Leave transpose out."
        )


def quoted(text: str) -> str:
    r"""Return text from a file in quotes, safe and short enough for a message.

    >>> print(quoted("n/a"), quoted("\x1b[31m"))
    "n/a" "\x1b[31m"
    """
    short = text if len(text) <= QUOTED else text[:QUOTED] + "..."
    return '"' + "".join(c if c.isprintable() else ascii(c)[1:-1] for c in short) + '"'


def listed(texts: Sequence[str], most: int = 20) -> str:
    """Return the first texts, and how many more there are.

    >>> listed(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def clean(text: str) -> str:
    r"""Return another library's message, safe and short enough for ours.

    >>> clean("bad value \x1b[31m at row 3;\n use converters.")
    'bad value ?[31m at row 3'
    """
    first = re.split(r"[;\n]", text)[0].strip().rstrip(".")[:LIBRARY_WORDS]
    return "".join(c if c.isprintable() else "?" for c in first)


def in_bytes(n: int) -> str:
    """Return a size with its unit.

    >>> in_bytes(999), in_bytes(3_500_000), in_bytes(8 * 2**40)
    ('999 bytes', '3.5 MB', '8.8 TB')
    """
    if n < 1000:
        return f"{n} bytes"
    power = min(int(math.log10(n) / 3), 8)
    return f"{n / 1000**power:.1f} {' kMGTPEZY'[power]}B"

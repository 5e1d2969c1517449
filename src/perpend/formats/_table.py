"""What all readers share: the table they return and the checks that every file must pass."""

import math
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError

SHOWN = 40  # characters of a cell or a name that an error message repeats
MAX_RATIO = 100  # a compressed file may expand this much,
SMALL = 64 << 20  # or up to 64 MiB in any case
REAL = "biuf"  # kinds of dtypes that hold real numbers

T = TypeVar("T")


class Table(NamedTuple):
    """Rows read from a file.

    `X` may be a read-only view of the file itself; copy it before changing it.
    """

    X: Array  # (n, D) float32 or float64
    columns: tuple[str, ...] | None  # names of the columns, where the format has them
    source: str  # the path as it was given, for messages


class Layout(NamedTuple):
    """What an array must look like to be of use to the caller."""

    ndim: int  # number of dimensions
    advice: str  # what to do with an array of another number
    picked: bool  # whether the main such array among several is taken unasked


TABLE = Layout(2, "Reshape it to 2: one row per sample, one column per feature.", picked=False)


def read_by_suffix(
    path: Path, readers: Mapping[str, Callable[[Path, str | None], T]], variable: str | None
) -> T:
    """Hand a file to the reader for its suffix; whatever is wrong becomes an InputError."""
    try:
        file_size(path)
        reader = readers.get(path.suffix.lower())
        if reader is None:
            raise InputError(
                f"{path}: cannot read files of type {quoted(path.suffix)}. "
                f"Those that work: {', '.join(sorted(readers))}."
            )
        return reader(path, variable)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"{path}: cannot be read ({reason}). Check its permissions.") from error


def file_size(path: Path) -> int:
    """Size in bytes of a file that exists, is a file and is not empty.

    Raises
    ------
    InputError
        With the reason and a way out.
    """
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


def no_choice(path: Path, variable: str | None) -> None:
    """Refuse a `variable` where the format holds a single array."""
    if variable is not None:
        raise InputError(
            f"{path}: holds a single array, so there is no variable {quoted(variable)} to choose. "
            "Leave it out."
        )


def check_array(where: str, shape: tuple[int, ...], dtype: np.dtype[Any], layout: Layout) -> None:
    """Refuse whatever is not an array of real numbers in this layout with at least one entry."""
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
    if len(shape) != layout.ndim:
        raise InputError(f"{where}: has {len(shape)} dimension(s), shape {shape}. {layout.advice}")
    if min(shape) < 1:
        raise InputError(f"{where}: has shape {shape}, so there are no values to read.")


def as_floats(array: Array) -> Array:
    """Keep float32 and float64 as they are, turn all other numbers into float64."""
    if array.dtype in (np.float32, np.float64):  # false for a foreign byte order
        return array
    with np.errstate(over="ignore"):  # a long double may become inf, which validation reports
        return array.astype(np.float64)


def quoted(text: str) -> str:
    r"""Text from a file, safe and short enough for a message.

    >>> print(quoted("n/a"), quoted("\x1b[31m"))
    "n/a" "\x1b[31m"
    """
    short = text if len(text) <= SHOWN else text[:SHOWN] + "..."
    return '"' + "".join(c if c.isprintable() else ascii(c)[1:-1] for c in short) + '"'


def in_bytes(n: int) -> str:
    """Size for people.

    >>> in_bytes(999), in_bytes(3_500_000), in_bytes(8 * 2**40)
    ('999 bytes', '3.5 MB', '8.8 TB')
    """
    if n < 1000:
        return f"{n} bytes"
    power = min(int(math.log10(n) / 3), 8)
    return f"{n / 1000**power:.1f} {' kMGTPEZY'[power]}B"

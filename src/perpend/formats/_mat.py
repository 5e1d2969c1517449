"""MATLAB's ``.mat`` files of version 5 (``save -v6`` and ``-v7``), parsed by ``scipy.io``.

Those of version 7.3 are HDF5 files, see :mod:`perpend.formats._hdf5`.

A file is not trusted, and SciPy's parser can crash on a damaged one (and ``scipy.io.whosmat`` fails
on every file with one of MATLAB's newer objects, such as a string). So one pass over the variables
comes before SciPy. It compares every declared size with the file, refuses a file that expands more
than a hundredfold, and notes name, shape and class of each variable. Then only arrays of real
numbers are loaded: cells, structs and objects hold other variables, nested to any depth.

The pass uses this much of the format: a header of 128 bytes, then the variables. A variable is a
tag (type and size) and contents, mostly compressed by zlib. The contents are again a tag, then the
flags, the shape, the name and the values, each with its own tag.
"""

import math
import struct
import warnings
import zlib
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from perpend._files import writing
from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.formats import _checks as check
from perpend.formats import _hdf5
from perpend.formats._checks import MAX_RATIO, SMALL, in_bytes, quoted
from perpend.formats._choice import Entry, choose
from perpend.formats._damage import DAMAGE_ERRORS, damage_named
from perpend.formats._dataset import Dataset, Labelled, Options
from perpend.formats._records import added_values
from perpend.formats._stream import Blocks, Once, array_blocks

HEADER_BYTES = 128
COMPRESSED = 15  # type of a variable
NUMBERS = ("f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
DENSE = dict(enumerate(NUMBERS, start=6))  # classes of numeric arrays
OPAQUE = 17  # class of newer objects, which have no shape and hide their name
CLASSES = {1: "cell", 2: "struct", 3: "object", 4: "char", 5: "sparse", 16: "function"}
HIDDEN = {"", "None"}  # MATLAB's own, and the name under which SciPy loads the first object
COMPLEX_FLAG, LOGICAL_FLAG = 1 << 11, 1 << 9
ITEM_BYTES = {1: 1, 2: 1, 3: 2, 4: 2, 5: 4, 6: 4, 7: 4, 9: 8, 12: 8, 13: 8}  # by type of values
START_BYTES = 1024  # of a variable: all but its values; at most 32 dimensions and a name
PIECE = 1 << 20  # bytes that are unpacked at once
UNREADABLE = "not a readable .mat file"


class _Variable(NamedTuple):
    name: str
    shape: tuple[int, ...]
    oddity: str  # what it holds, unless these are real numbers
    n_values: float = math.nan  # by the number of its bytes; nan if they are not numbers
    dtype: np.dtype[Any] = np.dtype(float)


def opened(path: Path, options: Options) -> Blocks:
    """Open one array of a ``.mat`` file, which is read as a whole: it is in MATLAB's order."""
    if _hdf5.is_matlab(path) or _hdf5.is_hdf5(path):
        return _hdf5.opened(path, options)
    with damage_named(path, UNREADABLE), path.open("rb") as stream:
        variables = _scan(path, stream)
        entries = {v.name: Entry(v.shape, v.oddity) for v in variables if v.name not in HIDDEN}
        name, where = choose(path, options.variable, entries)
        found = _check_variable(where, [v for v in variables if v.name == name])
    once = Once(partial(_load, path, where, found))
    about = {"what": UNREADABLE}
    return array_blocks(path, options, found.shape, found.dtype, lambda _: once, about=about)


def _load(path: Path, where: str, found: _Variable) -> Array:
    import scipy.io
    from scipy.io.matlab import MatReadError

    # at most: the unpacked bytes of the file, SciPy's array and ours
    check.memory(where, 3 * 8 * math.prod(found.shape))
    errors, name = (*DAMAGE_ERRORS, NameError, MatReadError), found.name
    with damage_named(path, UNREADABLE, errors), path.open("rb") as stream:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # remarks on variables that are not read
            # mat_dtype: in the class that it has in MATLAB, which writes whole numbers as integers
            loaded = scipy.io.loadmat(stream, variable_names=[name], mat_dtype=True)
        values: Any = loaded.get(name)
    if not isinstance(values, np.ndarray) or values.shape != found.shape:
        raise InputError(f"{where}: cannot be read. The file is damaged; write it anew.")
    check.array(where, values.shape, values.dtype)
    return values


def write_labelled(dataset: Dataset, labelled: Labelled, path: Path) -> Path:
    """Write a ``.mat`` file of three arrays: columns for a table, images for an image."""
    import scipy.io

    arrays = added_values(dataset, labelled)
    with writing(path) as stream:
        scipy.io.savemat(stream, arrays, do_compression=True, oned_as="column")
    return path


def _check_version(path: Path, stream: IO[bytes]) -> str:
    """Refuse other versions than 5; return the byte order, "<" or ">"."""
    start = stream.read(HEADER_BYTES)
    order = {b"IM": "<", b"MI": ">"}.get(start[126:128])
    version = struct.unpack(f"{order}H", start[124:126])[0] if order else 0
    if order is None or version != 0x0100 or 0 in start[:4]:
        raise InputError(
            f"{path}: does not begin like a MATLAB file of version 5. Is it cut off, of version 4, "
            "or of another format? In MATLAB, save it by save(..., '-v7')."
        )
    return order


def _scan(path: Path, stream: IO[bytes]) -> list[_Variable]:
    """Compare all variables with the size of the file, and note what they declare."""
    order, size = _check_version(path, stream), path.stat().st_size
    found: list[_Variable] = []
    place, limit = HEADER_BYTES, max(SMALL, MAX_RATIO * size)
    while place < size:
        stream.seek(place)
        tag = stream.read(8)
        kind, length = struct.unpack(f"{order}II", tag) if len(tag) == 8 else (0, 0)
        place += 8 + length
        if length == 0 or place > size:
            present = max(size - (place - length), 0)
            raise InputError(
                f"{path}: variable {len(found) + 1} declares {in_bytes(length)}, of which "
                f"{in_bytes(min(present, length))} are there. Is it a cut-off copy?"
            )
        if kind == COMPRESSED:
            start, unpacked = _inflate(path, stream, length, limit)
            limit -= unpacked
        else:
            start = tag + stream.read(min(length, START_BYTES))
        try:
            found.append(_parse(start, order))
        except struct.error:
            raise EOFError("a variable that ends too early") from None
    return found


def _parse(start: bytes, order: str) -> _Variable:
    """What a variable declares, read from its first bytes."""
    kind, length, flags = struct.unpack_from(f"{order}8x3I", start)
    if (kind, length) != (6, 8):
        raise ValueError("no flags")
    class_code = flags & 0xFF
    if class_code == OPAQUE:
        return _Variable("", (), "unknown")
    _, begin, length, place = _part(start, 24, order)
    shape = struct.unpack_from(f"{order}{length // 4}i", start, begin)
    _, begin, length, place = _part(start, place, order)
    name = start[begin : begin + length].decode("latin-1")
    if place > len(start):
        raise ValueError("a name without end")
    if class_code not in DENSE:
        return _Variable(name, shape, CLASSES.get(class_code, "unknown"))
    kind, _, length, _ = _part(start, place, order)
    n_values = length / ITEM_BYTES.get(kind, math.nan)
    dtype = np.dtype(bool if flags & LOGICAL_FLAG else DENSE[class_code])
    return _Variable(name, shape, "complex" if flags & COMPLEX_FLAG else "", n_values, dtype)


def _part(start: bytes, place: int, order: str) -> tuple[int, int, int, int]:
    """Read the tag of a part: its type, where it begins, its length, where the next part is."""
    (kind,) = struct.unpack_from(f"{order}I", start, place)
    if kind >> 16:  # a short form for up to 4 bytes, which take the place of the second word
        return kind & 0xFFFF, place + 4, kind >> 16, place + 8
    (length,) = struct.unpack_from(f"{order}I", start, place + 4)
    return kind, place + 8, length, place + 8 + -(-length // 8) * 8


def _inflate(path: Path, stream: IO[bytes], length: int, limit: int) -> tuple[bytes, int]:
    """First bytes of a compressed variable, and its size by unpacking it."""
    unpacker = zlib.decompressobj()
    start, count = b"", 0
    while length > 0 and not unpacker.eof:
        packed = stream.read(min(length, PIECE))
        length -= len(packed) or length  # nothing: the file has shrunk meanwhile
        while packed and not unpacker.eof:
            piece = unpacker.decompress(packed, PIECE)
            packed = unpacker.unconsumed_tail
            start += piece[: START_BYTES - len(start)]
            count += len(piece)
            if count > limit:
                raise InputError(
                    f"{path}: would expand to more than {MAX_RATIO} times its size. "
                    "If you trust it, save the array uncompressed, as .npy."
                )
    return start, count


def _check_variable(where: str, found: list[_Variable]) -> _Variable:
    """Check a variable before it is loaded."""
    if len(found) > 1:
        raise InputError(f"{where}: is there twice. Write the file anew.")
    _, shape, oddity, n_values, _ = found[0]
    if oddity:
        is_complex = oddity == "complex"
        what = "the real part or the modulus" if is_complex else "the array of numbers in it"
        raise InputError(
            f"{where}: is of MATLAB's type {quoted(oddity)}, not an array of real numbers. "
            f"Save {what} as a variable of its own."
        )
    check.array(where, shape, np.dtype(float))
    if n_values != math.prod(shape):
        raise InputError(f"{where}: shape and values disagree. The file is damaged.")
    return found[0]

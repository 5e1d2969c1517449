"""NumPy's ``.npy`` files: one array.

A file is not trusted. Pickles are refused, and the declared size is compared with the size of the
file before anything is allocated (a file of 128 bytes can declare 8 TB).
"""

import io
import math
import tokenize
import warnings
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import numpy as np

from perpend._files import writing
from perpend.exceptions import InputError
from perpend.formats import _checks as check
from perpend.formats._checks import in_bytes
from perpend.formats._damage import DAMAGE_ERRORS
from perpend.formats._dataset import Dataset, Labelled, Options
from perpend.formats._raw import Raw
from perpend.formats._records import NO_DATA, added_values
from perpend.formats._stream import Blocks, array_blocks

HEADER_BYTES = 1 << 16  # NumPy itself reads no header longer than 10,000 characters
ROWS = 1 << 14  # that are written together
HEADER_PARSERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
    (3, 0): np.lib.format.read_array_header_2_0,  # differs in the field names of records only
}
BAD_HEADER = (*DAMAGE_ERRORS, SyntaxError, tokenize.TokenError)  # what NumPy's parser may raise


class Header(NamedTuple):
    """What an array in the .npy format declares."""

    shape: tuple[int, ...]
    order: Literal["C", "F"]
    dtype: np.dtype[Any]
    offset: int  # where the values begin

    def raw(self, path: Path, start: int, *, transposed: bool) -> Raw:
        """Return the values, which begin somewhere in a file; `transposed`: columns are rows."""
        backward = self.order == "F"
        axes = tuple(range(len(self.shape)))
        sides = self.shape[::-1] if backward else self.shape
        return Raw(path, self.dtype, start, sides, axes[::-1] if backward != transposed else axes)


def opened(path: Path, options: Options) -> Blocks:
    """Open a ``.npy`` file; it stays on disk."""
    with path.open("rb") as stream:
        header = read_header(str(path), stream)
    check_size(str(path), header, path.stat().st_size)

    def source(transposed: bool) -> Raw:
        return header.raw(path, header.offset, transposed=transposed)

    return array_blocks(path, options, header.shape, header.dtype, source, about={})


def write_labelled(dataset: Dataset, labelled: Labelled, path: Path) -> Path:
    """Write the mask of an image; or a table with three more columns, a block at a time."""
    added = added_values(dataset, labelled)
    if dataset.kind == "image":
        with writing(path) as stream:
            np.save(stream, added["inlier"])
        return path
    (n,), D = dataset.shape, dataset.X.shape[1]
    with writing(path) as stream:
        shape, descr = (n, D + 3), np.lib.format.dtype_to_descr(np.dtype(float))
        np.lib.format.write_array_header_1_0(
            stream, {"shape": shape, "fortran_order": False, "descr": descr}
        )
        for begin in range(0, n, ROWS):
            block = np.full((min(ROWS, n - begin), D + 3), math.nan)
            part = slice(begin, begin + len(block))
            if dataset.positions is None:
                block[:, :D] = dataset.X[part]
            else:
                first, last = np.searchsorted(dataset.positions, [part.start, part.stop])
                block[dataset.positions[first:last] - begin, :D] = dataset.X[first:last]
            block[:, D:] = np.stack([values[part] for values in added.values()], axis=1)
            block[added["inlier"][part] == NO_DATA] = math.nan
            stream.write(block.tobytes())
    return path


def read_header(where: str, stream: IO[bytes]) -> Header:
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
        raise InputError(
            f"{where}: the header is damaged ({type(error).__name__}). "
            "Copy the file again, or write it anew."
        ) from error
    return Header(shape, "F" if fortran_order else "C", dtype, start.tell())


def check_size(where: str, header: Header, size: int) -> None:
    """Compare the declared size with the size of the file."""
    check.array(where, header.shape, header.dtype)
    declared = math.prod(header.shape) * header.dtype.itemsize
    present = size - header.offset
    if declared != present:
        extent = " x ".join(map(str, header.shape))
        raise InputError(
            f"{where}: declares {extent} values of {header.dtype} ({in_bytes(declared)}) "
            f"but holds {in_bytes(present)}. "
            + ("Is it a cut-off copy?" if declared > present else "Save one array per file.")
        )

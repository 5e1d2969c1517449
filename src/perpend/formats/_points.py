"""What the readers of point clouds share: columns, text, and labels."""

import re
import warnings
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.formats._checks import check_memory
from perpend.formats._dataset import Answer, Dataset
from perpend.formats._records import added_values, finite_only, select

PLACE = ("x", "y", "z")  # the columns of a cloud, unless others are chosen
ROWS = 1 << 16  # points that are converted or written together
LIBRARY_WORDS = 160  # characters of another library's message


def from_points(
    X: Array,
    path: Path,
    name: str,
    columns: tuple[str, ...],
    *,
    stored_dtype: str,
    origin: Any = None,
) -> Dataset:
    """Dataset of points; those with NaN or infinities are left out."""
    more = {"stored_dtype": stored_dtype, "origin": origin}
    return finite_only(X, path, name, "cloud", shape=(len(X),), columns=columns, **more)


def chosen(path: Path, wanted: tuple[str, ...] | None, names: Sequence[str]) -> tuple[str, ...]:
    """Names of the fields to take: those wanted, or x, y and z."""
    columns = PLACE if wanted is None else wanted
    select(path, columns, names)
    return columns


def columns_of(path: Path, records: Array, columns: tuple[str, ...]) -> tuple[Array, str]:
    """Some fields of structured records as one array of floats, and their type in the file.

    The array is a copy, so it is aligned for any length of a record: float32 if all of the fields
    are, otherwise float64.
    """
    types = [records.dtype[name].newbyteorder("=") for name in columns]
    dtype = np.dtype(np.float32 if set(types) == {np.dtype(np.float32)} else np.float64)
    check_memory(str(path), len(records) * len(columns) * dtype.itemsize)
    X = np.empty((len(records), len(columns)), dtype)
    for begin in range(0, len(X), ROWS):  # each page of the file is read once, not once per field
        block = records[begin : begin + ROWS]
        for j, name in enumerate(columns):
            X[begin : begin + ROWS, j] = block[name]
    return X, ", ".join(dict.fromkeys(kind.name for kind in types))


def text_rows(path: Path, stream: IO[str], n: int, width: int) -> Array:
    """Read `n` lines of `width` numbers as float64, which also keeps all digits of UTM coordinates.

    Raises
    ------
    InputError
        If there are fewer lines, or one of them holds something else.
    """
    check_memory(str(path), n * width * 8)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # remarks on blank lines and on no lines at all
            values: Array = np.loadtxt(stream, comments=None, max_rows=n, ndmin=2)
    except (ValueError, OverflowError) as error:
        raise InputError(f"{path}: {clean(str(error))} Is it a cut-off copy?") from error
    if values.shape != (n, width):
        raise InputError(
            f"{path}: has {values.shape[0]} lines of {values.shape[1]} numbers, but its header "
            f"says {n} of {width}. Is it a cut-off copy?"
        )
    return values


def clean(text: str) -> str:
    r"""Return another library's message, safe and short enough for ours.

    >>> clean("bad value \x1b[31m at row 3;\n use converters.")
    'bad value ?[31m at row 3.'
    """
    first = re.split(r"[;\n]", text)[0].strip().rstrip(".")[:LIBRARY_WORDS]
    return "".join(c if c.isprintable() else "?" for c in first) + "."


def added_fields(dataset: Dataset, answer: Answer, taken: Sequence[str]) -> dict[str, Array]:
    """Return the fields to add: distance and probability as float32, inlier as bytes.

    Points without data have NaN, and 255 as inlier.
    """
    added = added_values(dataset, answer, taken)
    return {
        name: values if values.dtype == np.uint8 else values.astype(np.float32)
        for name, values in added.items()
    }


def write_records(
    stream: IO[bytes], records: Array, dtype: np.dtype[Any], added: Mapping[str, Array]
) -> None:
    """Write structured records with more fields: the `added` ones, then those of `records`."""
    for begin in range(0, len(records), ROWS):
        block = records[begin : begin + ROWS]
        rows = np.zeros(len(block), dtype)
        for name in records.dtype.names or ():
            rows[name] = block[name]
        for name, values in added.items():
            rows[name] = values[begin : begin + ROWS]
        stream.write(rows.tobytes())


def write_text(stream: IO[bytes], lines: IO[bytes], n: int, added: Mapping[str, Array]) -> None:
    """Copy `n` lines that are not blank, with the `added` numbers at the end of each."""
    columns = [values.tolist() for values in added.values()]
    numbers = [b" %d" if values.dtype == np.uint8 else b" %.9g" for values in added.values()]
    pattern = b"%s" + b"".join(numbers) + b"\n"
    filled = (line for line in lines if line.strip())
    for line, *more in zip(islice(filled, n), *columns, strict=True):
        stream.write(pattern % (line.strip(), *more))

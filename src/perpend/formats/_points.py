"""What the readers of point clouds share: headers, columns, text, and labels."""

import io
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.formats import _checks as check
from perpend.formats._checks import clean
from perpend.formats._dataset import Dataset, Labelled, Options
from perpend.formats._raw import Raw
from perpend.formats._records import added_values, float_type, select
from perpend.formats._stream import Blocks, Once

PLACE = ("x", "y", "z")  # the columns of a cloud, unless others are chosen
ROWS = 1 << 16  # points that are converted or written together
HEADER_BYTES = 1 << 20
FILLER = " "  # begins the names of fields that only fill gaps; no word of a header does


class Points(NamedTuple):
    """Where the points of a file are, and what each holds: one field for each number."""

    n: int
    dtype: np.dtype[Any]
    start: int  # where they begin, in bytes
    is_text: bool

    @property
    def names(self) -> list[str]:
        """Fields that hold numbers."""
        return [name for name in self.dtype.names or () if not name.startswith(FILLER)]

    @property
    def least(self) -> int:
        """Bytes that they take at least; of text, a digit and a blank or line end for each."""
        width = len(self.dtype.names or ())  # the last line end may be missing
        return 2 * self.n * width - 1 if self.is_text else self.n * self.dtype.itemsize

    def raw(self, path: Path) -> Raw:
        """Return the points of a binary file."""
        return Raw(path, self.dtype, self.start, (self.n,))

    def mapped(self, path: Path) -> Array:
        """Map the points of a binary file."""
        return self.raw(path).mapped()

    def blocks(
        self,
        path: Path,
        options: Options,
        unpack: Callable[[], Array] | None = None,
        origin: Any = None,
    ) -> Blocks:
        """Open the chosen columns: of the file, or of structured records that must be unpacked."""
        columns = chosen(path, options, self.names)
        types = [self.dtype[name].newbyteorder("=") for name in columns]
        dtype = np.dtype(float) if self.is_text else float_type(*types)
        view = None
        if self.is_text:
            text = Once(partial(self._read_text, path, columns))
            take, view = text.take, lambda: text.values
        else:
            points = Once(unpack).take if unpack else self.raw(path).records
            take = partial(_fields, points, columns, dtype)
        whole = self.is_text or unpack is not None
        return Blocks(
            path,
            options,
            "cloud",
            take,
            shape=(self.n,),
            width=len(columns),
            dtype=dtype,
            view=view,
            held=self.n * len(self.names) * 8 if whole else 0,
            columns=columns,
            stored=", ".join(dict.fromkeys(kind.name for kind in types)),
            origin=origin,
        )

    def _read_text(self, path: Path, columns: tuple[str, ...]) -> Array:
        """Read lines of numbers as float64, which also keeps all digits of UTM coordinates."""
        names = self.dtype.names or ()
        check.memory(str(path), self.n * len(names) * 8)
        try:
            with path.open("rb") as stream, warnings.catch_warnings():
                warnings.simplefilter("ignore")  # remarks on blank lines and on no lines at all
                stream.seek(self.start)
                text = io.TextIOWrapper(stream, encoding="latin-1")
                values: Array = np.loadtxt(text, comments=None, max_rows=self.n, ndmin=2)
        except (ValueError, OverflowError) as error:
            raise InputError(f"{path}: {clean(str(error))}. Is it a cut-off copy?") from error
        n, width = values.shape
        if (n, width) != (self.n, len(names)):
            raise InputError(
                f"{path}: has {n} lines of {width} numbers, but its header says {self.n} of "
                f"{len(names)}. Is it a cut-off copy?"
            )
        return np.ascontiguousarray(values[:, [names.index(name) for name in columns]])


def header_lines(path: Path, last: str, pattern: str) -> tuple[list[bytes], int]:
    """Lines of a text header up to the `last` one, which fits the pattern, and where they end."""
    lines: list[bytes] = []
    with path.open("rb") as stream:
        while stream.tell() < HEADER_BYTES:
            lines.append(stream.readline(HEADER_BYTES))
            if not lines[-1].endswith(b"\n"):
                break
            if re.match(pattern, lines[-1].decode("latin-1").strip()):
                return lines, stream.tell()
    raise InputError(f"{path}: the header has no line {last}. Cut-off copy, or another format?")


def chosen(path: Path, options: Options, names: Sequence[str]) -> tuple[str, ...]:
    """Names of the fields to take: those wanted, or x, y and z."""
    columns = PLACE if options.columns is None else options.columns
    return tuple(names[j] for j in select(path, options._replace(columns=columns), names))


def _fields(
    records: Callable[[int, int], Array],
    columns: tuple[str, ...],
    dtype: np.dtype[Any],
    begin: int,
    end: int,
) -> Array:
    """Copy some fields of structured records, so that they are aligned for any length of one."""
    X = np.empty((end - begin, len(columns)), dtype)
    for i in range(0, len(X), ROWS):  # each page of the file is read once, not once per field
        block = records(begin + i, min(begin + i + ROWS, end))
        for j, name in enumerate(columns):
            X[i : i + ROWS, j] = block[name]
    return X


def added_fields(
    dataset: Dataset, labelled: Labelled, taken: Sequence[str], order: str = "<"
) -> dict[str, Array]:
    """Return the fields to add: distance and probability as float32, inlier as bytes.

    inlier is 1, or 0 for outliers. Points without data have NaN, and 255 as inlier.
    """
    added = added_values(dataset, labelled, taken)
    return {
        name: values if values.dtype == np.uint8 else values.astype(f"{order}f4")
        for name, values in added.items()
    }


def write_records(stream: IO[bytes], records: Array, added: Mapping[str, Array]) -> None:
    """Write structured records with more fields at their end."""
    more = [(name, values.dtype.str) for name, values in added.items()]
    dtype = np.dtype([*((name, records.dtype[name]) for name in records.dtype.names or ()), *more])
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

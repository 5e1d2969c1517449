"""Arrow's tables in a file (``.arrow``, ``.feather``), read by pyarrow.

A file is a sequence of messages: the schema, then batches of rows, each with metadata and a body. A
file with random access has magic bytes before them and a list of the messages, the footer, behind.
Buffers of a body may be compressed, and each begins with its unpacked size, which pyarrow trusts.
So all messages are checked first, and their sizes compared with the file.

Columns are chosen, collected and written as in Parquet files.
"""

import struct
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from perpend._files import writing
from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.formats import _checks as check
from perpend.formats._checks import listed, quoted
from perpend.formats._damage import changed, damage_named
from perpend.formats._dataset import Answer, Dataset, Options
from perpend.formats._records import NO_DATA, added_values, from_records, select
from perpend.formats._registry import optional_package

MAGIC = b"ARROW1\0\0"
FEATHER_1 = b"FEA1"
# places in the tables of Arrow's flatbuffers
HEADER, LENGTH, BUFFERS, COMPRESSION = 2, 0, 2, 3
DICTIONARIES, BATCHES = 2, 3  # of the footer
FOOTER_ENTRY = struct.Struct("<qi4xq")  # place of a message, sizes of its metadata and body


def read(path: Path, options: Options) -> Dataset:
    """Read the columns of numbers of an Arrow file; the others are left out and listed."""
    pa = optional_package("pyarrow", path, "parquet")
    size, footer = path.stat().st_size, _has_footer(path)
    with damage_named(path, "not a readable Arrow file"), pa.memory_map(str(path)) as source:
        n = _count(path, _messages(source, size, footer=footer))
        schema, _ = _batches(source, footer=footer)
        columns = pick(path, schema, options)
        check.expansion(str(path), size, columns.n_bytes(n))
        included = pa.ipc.IpcReadOptions(included_fields=list(columns.indices), use_threads=False)
        _, batches = _batches(source, included, footer=footer)
        return collect(path, options, columns, n, batches)


def write_answer(dataset: Dataset, answer: Answer, path: Path) -> Path:
    """Write all columns of the file, also those of text, and three more."""
    import pyarrow as pa

    footer = _has_footer(Path(dataset.source))
    with pa.memory_map(dataset.source) as source:
        schema, batches = _batches(source, footer=footer)
        return write_copy(dataset, answer, path, schema, batches, new_writer=pa.ipc.new_file)


# --- columns, also of Parquet files ------------------------------------------------------------


class Columns(NamedTuple):
    """Which columns of a table are read."""

    indices: tuple[int, ...]
    names: tuple[str, ...]
    dropped: tuple[str, ...]  # columns without numbers
    dtype: str  # of X
    stored: str  # as in the file; several names if they differ

    def n_bytes(self, n_rows: int) -> int:
        """Bytes of `n_rows` rows."""
        return n_rows * len(self.names) * np.dtype(self.dtype).itemsize


def pick(path: Path, schema: Any, options: Options) -> Columns:
    """Take the columns of numbers, or those that are wanted, which must hold numbers."""
    names = [str(name) for name in schema.names]
    numeric = [j for j in range(len(names)) if _is_numeric(schema.field(j).type)]
    wanted = options.columns
    if wanted is not None:
        indices = select(path, options, names)
        for j in indices:
            if j not in numeric:
                raise InputError(
                    f"{path}: column {quoted(names[j])} holds values of type "
                    f"{quoted(str(schema.field(j).type))}, not numbers. Choose others."
                )
    else:
        indices = select(path, options, names, numeric) if options.exclude else numeric
        doubled = next((names[j] for j in indices if names.count(names[j]) > 1), None)
        if doubled is not None:
            raise InputError(f"{path}: has two columns {quoted(doubled)}. Rename one of them.")
    if not indices:
        kinds = listed([f"{quoted(field.name)} {quoted(str(field.type))}" for field in schema])
        raise InputError(f"{path}: has no column of numbers: {kinds}.")
    types = [str(schema.field(j).type) for j in indices]
    return Columns(
        tuple(indices),
        tuple(names[j] for j in indices),
        tuple(name for j, name in enumerate(names) if j not in numeric and wanted is None),
        "float32" if set(types) == {"float"} else "float64",
        ", ".join(sorted(set(types))),
    )


def collect(
    path: Path, options: Options, columns: Columns, n: int, batches: Iterable[Any]
) -> Dataset:
    """Put batches of rows together; there must be `n` in all."""
    check.memory(str(path), columns.n_bytes(n))
    X = np.empty((n, len(columns.names)), columns.dtype)
    begin = 0
    for batch in batches:
        batch.validate(full=True)
        if begin + batch.num_rows > n:
            break
        for j, column in enumerate(columns.names):
            X[begin : begin + batch.num_rows, j] = _floats(batch.column(column), columns.dtype)
        begin += batch.num_rows
    if n == 0:
        raise InputError(f"{path}: there are no rows in this table, only a header.")
    if begin != n:
        raise InputError(f"{path}: does not hold the {n} rows it declares. Damaged or cut off?")
    names, dropped, stored = columns.names, columns.dropped, columns.stored
    return from_records(X, path, options, "table", columns=names, dropped=dropped, stored=stored)


def write_copy(
    dataset: Dataset,
    answer: Answer,
    path: Path,
    schema: Any,
    batches: Iterable[Any],
    *,
    new_writer: Callable[[Any, Any], Any],
) -> Path:
    """Write all batches of a file with three more columns."""
    import pyarrow as pa

    added = added_values(dataset, answer, schema.names)
    types = dict(zip(added, [pa.float64(), pa.float64(), pa.bool_()], strict=True))
    for name, kind in types.items():
        schema = schema.append(pa.field(name, kind))
    missing = added[list(added)[-1]] == NO_DATA
    begin = 0
    with writing(path) as stream, new_writer(stream, schema) as writer:
        for batch in batches:
            part = slice(begin, begin + batch.num_rows)
            new = [
                pa.array(added[name][part].astype(kind.to_pandas_dtype()), kind, mask=missing[part])
                for name, kind in types.items()
            ]
            writer.write_batch(pa.record_batch([*batch.columns, *new], schema=schema))
            begin = part.stop
        if begin != dataset.shape[0]:
            raise changed(dataset.source)
    return path


def _is_numeric(kind: Any) -> bool:
    from pyarrow import types

    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    return any(test(kind) for test in tests)


def _floats(column: Any, dtype: str) -> Array:
    """Values of a column; those that are missing are NaN."""
    import pyarrow as pa

    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    return column.cast(pa.from_numpy_dtype(dtype), safe=False).to_numpy(zero_copy_only=False)


# --- messages ----------------------------------------------------------------------------------


def _has_footer(path: Path) -> bool:
    """Whether a file begins with the magic bytes; then it ends with a footer."""
    with path.open("rb") as stream:
        start = stream.read(len(MAGIC))
    if start.startswith(FEATHER_1):
        raise InputError(
            f"{path}: is a Feather file of version 1, which is not read. Write it anew with "
            "pyarrow.feather.write_feather."
        )
    if start == MAGIC:
        check.magic(path, "like an Arrow file", MAGIC, end=MAGIC[:6])
    return start == MAGIC


def _batches(source: Any, options: Any = None, *, footer: bool) -> tuple[Any, Iterator[Any]]:
    """Schema and batches of rows, one after the other."""
    import pyarrow as pa

    source.seek(0)
    if not footer:
        reader = pa.ipc.open_stream(source, options=options)
        return reader.schema, iter(reader)
    reader = pa.ipc.open_file(source, options=options)
    return reader.schema, (reader.get_batch(i) for i in range(reader.num_record_batches))


def _count(path: Path, messages: Iterable[Any]) -> int:
    """Check all messages; return the number of rows."""
    n_rows = expanded = 0
    for message in messages:
        if message.type not in ("record batch", "dictionary"):
            continue
        metadata, body = message.metadata.to_pybytes(), memoryview(message.body or b"")
        batch = _table(metadata, struct.unpack_from("<I", metadata)[0])
        batch = _table(metadata, _follow(metadata, batch[HEADER]))
        if message.type == "dictionary":
            batch = _table(metadata, _follow(metadata, batch[1]))
        elif batch[LENGTH]:
            n_rows += struct.unpack_from("<q", metadata, batch[LENGTH])[0]
        expanded += _expanded(metadata, batch, body)
        check.expansion(str(path), path.stat().st_size, expanded)
    return n_rows


def _messages(source: Any, size: int, *, footer: bool) -> Iterator[Any]:
    """All messages of an open file."""
    import pyarrow as pa

    if not footer:
        yield from pa.ipc.MessageReader.open_stream(source)
        return
    for offset, n_metadata, n_body in _blocks(source, size):
        if min(offset, n_metadata, n_body) < 0 or offset + n_metadata + n_body > size:
            raise ValueError("a message that is not inside the file")
        source.seek(offset)
        yield pa.ipc.read_message(source)


def _blocks(source: Any, size: int) -> Iterator[tuple[int, int, int]]:
    """Places of the messages, from the footer, which ends with its size and the magic bytes."""
    source.seek(size - 10)
    (length,) = struct.unpack("<i", source.read(4))
    if not 0 < length <= size - 10:
        raise ValueError("a footer that is not inside the file")
    source.seek(size - 10 - length)
    footer = source.read(length)
    fields = _table(footer, struct.unpack_from("<I", footer)[0])
    for field in (DICTIONARIES, BATCHES):
        if fields[field]:
            start = _follow(footer, fields[field])
            (n,) = struct.unpack_from("<I", footer, start)
            # structs of 8-byte numbers begin right behind their count
            places = (start + 4 + FOOTER_ENTRY.size * i for i in range(n))
            yield from (FOOTER_ENTRY.unpack_from(footer, place) for place in places)


def _expanded(metadata: bytes, batch: list[int], body: memoryview) -> int:
    """Bytes that the compressed buffers of a batch become."""
    if batch[COMPRESSION] == 0:
        return 0
    start, total = _follow(metadata, batch[BUFFERS]), 0
    (n,) = struct.unpack_from("<I", metadata, start)
    for i in range(n):
        offset, length = struct.unpack_from("<qq", metadata, start + 4 + 16 * i)
        if length >= 8:
            (plain,) = struct.unpack_from("<q", body, offset)
            if plain < -1:
                raise ValueError("a buffer of negative size")
            total += max(plain, 0)
    return total


# --- flatbuffers, as much as is needed ---------------------------------------------------------


def _table(data: bytes, place: int) -> list[int]:
    """Places of the first fields of a table; 0 for one that is not there."""
    (back,) = struct.unpack_from("<i", data, place)
    size, _ = struct.unpack_from("<HH", data, place - back)
    offsets = struct.unpack_from(f"<{(size - 4) // 2}H", data, place - back + 4)
    places = [place + offset if offset else 0 for offset in offsets]
    return places + [0] * (4 - len(places))


def _follow(data: bytes, place: int) -> int:
    """Follow a reference."""
    if place == 0:
        raise struct.error("a reference is missing")
    return place + int(struct.unpack_from("<I", data, place)[0])

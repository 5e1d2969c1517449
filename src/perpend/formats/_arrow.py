"""Arrow's tables in a file (``.arrow``, ``.feather``), read by pyarrow.

A file is a sequence of messages: the schema, then batches of rows, each with metadata and a body. A
file with random access has magic bytes before them and a list of the messages, the footer, behind.
Buffers of a body may be compressed, and each begins with its unpacked size, which pyarrow trusts.
So all messages are checked first, and their sizes compared with the file.

Columns are chosen, collected and written as in Parquet files.
"""

import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from perpend._files import writing
from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.formats import _checks as check
from perpend.formats._checks import listed, quoted
from perpend.formats._damage import changed, damage_named
from perpend.formats._dataset import Dataset, Labelled, Options
from perpend.formats._records import NO_DATA, added_values, select
from perpend.formats._registry import BY_NAME, optional_package
from perpend.formats._stream import Blocks
from perpend.rows.sequential import Sequential

MAGIC = b"ARROW1\0\0"
UNREADABLE = "not a readable Arrow file"
BATCH_ROWS, BATCH_BYTES = 1 << 16, 1 << 22  # of what is converted together, at most
FEATHER_1 = b"FEA1"
# places in the tables of Arrow's flatbuffers
HEADER, LENGTH, BUFFERS, COMPRESSION = 2, 0, 2, 3
DICTIONARIES, BATCHES = 2, 3  # of the footer
FOOTER_ENTRY = struct.Struct("<qi4xq")  # place of a message, sizes of its metadata and body


def opened(path: Path, options: Options) -> Blocks:
    """Open the columns of numbers of an Arrow file; the others are left out and listed."""
    optional_package("pyarrow", path, "parquet")
    with damage_named(path, UNREADABLE):
        return table_blocks(path, options, _parts, _part_batches)


def write_labelled(dataset: Dataset, labelled: Labelled, path: Path) -> Path:
    """Write all columns of the file, also those of text, and three more."""
    import pyarrow as pa

    return write_copy(dataset, labelled, path, _parts, _part_batches, new_writer=pa.ipc.new_file)


def _parts(path: Path) -> "list[Part]":
    """Check the messages of a file; with a footer, each batch can be read on its own."""
    import pyarrow as pa

    size, footer = path.stat().st_size, _has_footer(path)
    with damage_named(path, UNREADABLE), pa.memory_map(str(path)) as source:
        rows = _count(path, _messages(source, size, footer=footer))
        schema, _ = _batches(source, footer=footer)
    if not footer or not rows:
        return [Part(path, sum(rows), schema)]
    return [Part(path, n, schema, i) for i, n in enumerate(rows)]


def _part_batches(part: "Part", columns: "Columns | None" = None) -> Iterator[Any]:
    """Batches of rows of a file, with some columns or all."""
    import pyarrow as pa

    footer, included = _has_footer(part.path), None
    if columns:
        places = [part.schema.names.index(name) for name in columns.names]
        included = pa.ipc.IpcReadOptions(included_fields=places, use_threads=False)
    with damage_named(part.path, UNREADABLE), pa.memory_map(str(part.path)) as source:
        if footer:
            yield pa.ipc.open_file(source, options=included).get_batch(part.place)
        else:
            yield from _batches(source, included, footer=footer)[1]


# --- columns and parts, also of Parquet files --------------------------------------------------


class Part(NamedTuple):
    """Rows of a table that can be read on their own: of a file, or some of its batches."""

    path: Path
    n: int
    schema: Any
    place: int = 0  # of the batches in the file


def all_parts(path: Path, form: str, parts_in: Callable[[Path], list[Part]]) -> list[Part]:
    """Parts of a file, or of all files of a folder, by name; their columns must agree."""
    suffixes = BY_NAME[form].suffixes
    files = [path]
    if path.is_dir():
        inside = path.rglob("*")
        files = sorted(f for f in inside if f.suffix.lower() in suffixes and f.is_file()
                       and not f.name.startswith((".", "_")))  # fmt: skip
        if not files:
            raise InputError(f"{path}: there is no {' or '.join(suffixes)} file in this folder.")
    parts = [part for file in files for part in parts_in(file)]
    first, others = parts[0], {part.path: part for part in parts}.values()
    kinds = {field.name: str(field.type) for field in first.schema}
    for other in others:
        own = {field.name: str(field.type) for field in other.schema}
        for name in [*kinds, *own]:
            if kinds.get(name) != own.get(name):
                held = [quoted(k[name]) if name in k else "not there" for k in (own, kinds)]
                raise InputError(
                    f"{other.path}: column {quoted(name)} is {held[0]}, but {held[1]} in "
                    f"{first.path.name}. All files of a folder need the same columns."
                )
    return parts


class Columns(NamedTuple):
    """Which columns of a table are read."""

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
        tuple(names[j] for j in indices),
        tuple(name for j, name in enumerate(names) if j not in numeric and wanted is None),
        "float32" if set(types) == {"float"} else "float64",
        ", ".join(sorted(set(types))),
    )


def table_blocks(
    path: Path,
    options: Options,
    parts_in: Callable[[Path], list[Part]],
    batches: Callable[[Part, Columns | None], Iterator[Any]],
) -> Blocks:
    """Return the blocks of a table: the batches of rows of all of its parts."""
    parts = all_parts(path, options.format, parts_in)
    columns, rows = pick(path, parts[0].schema, options), Counter[Path]()
    for part in parts:
        rows[part.path] += part.n
    for file in rows:
        check.expansion(str(file), file.stat().st_size, columns.n_bytes(rows[file]))
    begins = np.cumsum([0, *(part.n for part in parts)])
    n, width = int(begins[-1]), len(columns.names)
    if n == 0:
        raise InputError(f"{path}: there are no rows in this table, only a header.")

    def near(row: int) -> tuple[int, Iterator[Array]]:
        first = int(np.searchsorted(begins, row, side="right")) - 1
        blocks = (_rows(part, columns, batches(part, columns)) for part in parts[first:])
        return int(begins[first]), chain.from_iterable(blocks)

    return Blocks(
        path,
        options,
        "table",
        Sequential(near, shape=(n, width), dtype=columns.dtype, name=str(path)).read,
        shape=(n,),
        width=width,
        dtype=columns.dtype,
        columns=columns.names,
        dropped=columns.dropped,
        stored=columns.stored,
        files=rows,
    )


def _rows(part: Part, columns: Columns, batches: Iterator[Any]) -> Iterator[Array]:
    """Numbers of the batches of a part; there must be as many rows as it declares."""
    count = 0
    for batch in batches:
        with damage_named(part.path, "not a readable table"):
            batch.validate(full=True)
            count += batch.num_rows
            if count > part.n:
                break
            step = batch_rows(len(columns.names))
            for begin in range(0, batch.num_rows, step):  # a batch of Arrow may be large
                some = batch.slice(begin, step)
                block: Array = np.empty((some.num_rows, len(columns.names)), columns.dtype)
                for j, name in enumerate(columns.names):
                    block[:, j] = _floats(some.column(name), columns.dtype)
                yield block
    if count != part.n:
        what = f"does not hold the {part.n} rows it declares. Damaged or cut off?"
        raise InputError(f"{part.path}: {what}")


def write_copy(
    dataset: Dataset,
    labelled: Labelled,
    path: Path,
    parts_in: Callable[[Path], list[Part]],
    batches: Callable[[Part], Iterator[Any]],
    *,
    new_writer: Callable[[Any, Any], Any],
) -> Path:
    """Write all batches of a table with three more columns."""
    import pyarrow as pa

    parts = all_parts(Path(dataset.source), dataset.format, parts_in)
    schema = parts[0].schema
    added = added_values(dataset, labelled, schema.names)
    types = dict(zip(added, [pa.float64(), pa.float64(), pa.bool_()], strict=True))
    for name, kind in types.items():
        schema = schema.append(pa.field(name, kind))
    inlier, begin = added[list(added)[-1]], 0
    with writing(path) as stream, new_writer(stream, schema) as writer:
        for batch in chain.from_iterable(map(batches, parts)):
            place = slice(begin, begin + batch.num_rows)
            gaps = inlier[place] == NO_DATA
            new = [
                pa.array(added[name][place].astype(kind.to_pandas_dtype()), kind, mask=gaps)
                for name, kind in types.items()
            ]
            names = parts[0].schema.names
            same = batch.schema.names == names  # or in another order
            old = batch.columns if same else [batch.column(name) for name in names]
            writer.write_batch(pa.record_batch([*old, *new], schema=schema))
            begin = place.stop
        if begin != dataset.shape[0]:
            raise changed(dataset.source)
    return path


def batch_rows(width: int) -> int:
    """Return how many rows of so many columns are converted together."""
    return min(BATCH_ROWS, max(1, BATCH_BYTES // (8 * max(1, width))))


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


def _count(path: Path, messages: Iterable[Any]) -> list[int]:
    """Check all messages; return the numbers of rows of the batches."""
    rows, expanded = [], 0
    for message in messages:
        if message.type not in ("record batch", "dictionary"):
            continue
        metadata, body = message.metadata.to_pybytes(), memoryview(message.body or b"")
        batch = _table(metadata, struct.unpack_from("<I", metadata)[0])
        batch = _table(metadata, _follow(metadata, batch[HEADER]))
        if message.type == "dictionary":
            batch = _table(metadata, _follow(metadata, batch[1]))
        else:
            place = batch[LENGTH]
            rows.append(struct.unpack_from("<q", metadata, place)[0] if place else 0)
        expanded += _expanded(metadata, batch, body)
        check.expansion(str(path), path.stat().st_size, expanded)
    return rows


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

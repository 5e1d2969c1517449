"""Arrow's tables in a file (``.arrow``, ``.feather``), read by pyarrow.

A file is a sequence of messages: the schema, then batches of rows, each with metadata and a body. A
file with random access has magic bytes before them and a list of the messages, the footer, behind.
Buffers of a body may be compressed, and each begins with its unpacked size, which pyarrow trusts.
So all messages are checked first, and their sizes compared with the file.
"""

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from perpend.exceptions import InputError
from perpend.formats import _checks as check
from perpend.formats._damage import damage_named
from perpend.formats._dataset import Dataset, Labelled, Options
from perpend.formats._registry import optional_package
from perpend.formats._stream import Blocks
from perpend.formats._tables import Columns, Part, table_blocks, write_copy

MAGIC = b"ARROW1\0\0"
UNREADABLE = "not a readable Arrow file"
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


def _parts(path: Path) -> list[Part]:
    """Check the messages of a file; with a footer, each batch can be read on its own."""
    import pyarrow as pa

    size, footer = path.stat().st_size, _has_footer(path)
    with damage_named(path, UNREADABLE), pa.memory_map(str(path)) as source:
        rows = _count(path, _messages(source, size, footer=footer))
        schema, _ = _batches(source, footer=footer)
    if not footer or not rows:
        return [Part(path, sum(rows), schema)]
    return [Part(path, n, schema, i) for i, n in enumerate(rows)]


def _part_batches(part: Part, columns: Columns | None = None) -> Iterator[Any]:
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

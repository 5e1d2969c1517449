"""Arrow's tables in a file (``.arrow``, ``.feather``), read by pyarrow.

A file is a sequence of messages: the schema, then batches of rows, each with metadata and a body. A
file with random access has magic bytes before them and a list of the messages, the footer, behind.
Buffers of a body may be compressed, and each begins with its unpacked size, which pyarrow trusts.
So all messages are checked first, and their sizes compared with the file.

Messages are read one after the other. If the first message is not where it should be, as in files
of polars, the footer is used instead.
"""

import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from perpend._files import writing
from perpend.exceptions import InputError
from perpend.formats._answer_path import answer_path
from perpend.formats._arrow_columns import (
    Columns,
    cannot_read,
    collect,
    pick,
    with_added,
)
from perpend.formats._checks import DAMAGE_ERRORS, check_expansion, file_size, no_choice
from perpend.formats._dataset import Answer, Dataset, Options
from perpend.formats._registry import optional_package

MAGIC = b"ARROW1\0\0"
MESSAGE = b"\xff\xff\xff\xff"  # how a message begins
FEATHER_1 = b"FEA1"
# places in the tables of Arrow's flatbuffers
HEADER, LENGTH, BUFFERS, COMPRESSION = 2, 0, 2, 3
DICTIONARIES, BATCHES = 2, 3  # of the footer
FOOTER_ENTRY = struct.Struct("<qi4xq")  # place of a message, sizes of its metadata and body


def read(path: Path, options: Options) -> Dataset:
    """Read the columns of numbers of an Arrow file; the others are left out and listed."""
    optional_package("pyarrow", path, "parquet")
    no_choice(path, options.variable)
    size = file_size(path)
    _check_magic(path)
    try:
        n = _count(path, size)
        with _opened(path) as source:
            schema = _reader(source).schema
        columns = pick(path, schema, options.columns)
        check_expansion(str(path), size, columns.n_bytes(n))
        with _opened(path) as source:
            return collect(path, "arrow", columns, n, _batches(source, columns))
    except (InputError, PermissionError):
        raise
    except DAMAGE_ERRORS as error:
        raise cannot_read(path, "Arrow", error) from error


def write_answer(dataset: Dataset, answer: Answer, folder: Path) -> Path:
    """Write all columns of the file, also those of text, and three more."""
    import pyarrow as pa

    path = answer_path(dataset, folder)
    with _opened(Path(dataset.source)) as source, writing(path) as stream:
        batches = _reader(source)
        schema, extended = with_added(dataset, answer, batches.schema, _each(batches))
        with pa.ipc.new_file(stream, schema) as writer:
            for batch in extended:
                writer.write_batch(batch)
    return path


def _check_magic(path: Path) -> None:
    with path.open("rb") as stream:
        start = stream.read(len(MAGIC))
        stream.seek(-min(6, path.stat().st_size), 2)
        end = stream.read(6)
    if start.startswith(FEATHER_1):
        raise InputError(
            f"{path}: is a Feather file of version 1, which is not read. Write it anew with "
            "pyarrow.feather.write_feather."
        )
    if start == MAGIC and end != MAGIC[:6]:
        raise InputError(f"{path}: does not end like an Arrow file. Is it a cut-off copy?")


def _opened(path: Path) -> Any:
    """Map a file into memory, and go to its first message."""
    import pyarrow as pa

    source = pa.memory_map(str(path))
    if source.read(len(MAGIC)) != MAGIC:
        source.seek(0)
    return source


def _count(path: Path, size: int) -> int:
    """Check all messages; return the number of rows."""
    n_rows = expanded = 0
    with _opened(path) as source:
        for message in _messages(source, size):
            if message.type not in ("record batch", "dictionary"):
                continue
            metadata, body = message.metadata.to_pybytes(), memoryview(message.body or b"")
            batch = _table(metadata, struct.unpack_from("<I", metadata)[0])
            batch = _table(metadata, _follow(metadata, batch[HEADER]))
            if message.type == "dictionary":
                batch = _table(metadata, _follow(metadata, batch[1]))
            else:
                n_rows += _number(metadata, batch[LENGTH])
            expanded += _expanded(metadata, batch, body)
            check_expansion(str(path), size, expanded)
    return n_rows


def _has_only_footer(source: Any) -> bool:
    """Whether a file, opened at its first message, has none there."""
    start = source.tell()
    begin: bytes = source.read(len(MESSAGE))
    source.seek(start)
    return bool(start > 0 and begin != MESSAGE)


def _messages(source: Any, size: int) -> Iterator[Any]:
    """All messages of a file that is open at the first of them."""
    import pyarrow as pa

    if not _has_only_footer(source):
        reader = pa.ipc.MessageReader.open_stream(source)
        with suppress(StopIteration):
            while True:
                yield reader.read_next_message()
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


def _reader(source: Any, options: Any = None) -> Any:
    """Open a file at its first message, or by its footer."""
    import pyarrow as pa

    open_ = pa.ipc.open_file if _has_only_footer(source) else pa.ipc.open_stream
    return open_(source, options=options)


def _each(reader: Any) -> Iterator[Any]:
    """Batches of rows, one after the other."""
    if hasattr(reader, "num_record_batches"):
        return (reader.get_batch(i) for i in range(reader.num_record_batches))
    return iter(reader)


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


def _batches(source: Any, columns: Columns) -> Iterator[Any]:
    import pyarrow as pa

    options = pa.ipc.IpcReadOptions(included_fields=list(columns.indices), use_threads=False)
    return _each(_reader(source, options))


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


def _number(data: bytes, place: int) -> int:
    """A whole number of 8 bytes; one that is not there is 0."""
    return int(struct.unpack_from("<q", data, place)[0]) if place else 0

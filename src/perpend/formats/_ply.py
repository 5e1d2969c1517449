"""PLY: point clouds and meshes, as text or binary in either byte order.

Only the element ``vertex`` is read; x, y and z unless other columns are chosen. Elements after it
(faces) are ignored; those before it are skipped, lists included. Text is read as float64.

The labels are written to a copy of the file, faces included, in which every vertex has three more
properties: distance and probability (float) and inlier (uchar: 1, or 0 for outliers; 255 if the
point is not finite).
"""

import io
import shutil
import struct
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from perpend._files import writing
from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.formats._answer_path import answer_path
from perpend.formats._checks import file_size, no_choice
from perpend.formats._dataset import Answer, Dataset, Options
from perpend.formats._ply_header import (
    ENCODINGS,
    Element,
    Header,
    Property,
    check_size,
    read_header,
)
from perpend.formats._points import (
    added_fields,
    chosen,
    columns_of,
    from_points,
    text_rows,
    write_records,
    write_text,
)
from perpend.formats._records import select

ADDED = {"f4": "float", "u1": "uchar"}


def read(path: Path, options: Options) -> Dataset:
    """Read the vertices of a PLY file."""
    no_choice(path, options.variable)
    size = file_size(path)
    header = read_header(path)
    check_size(path, header, size)
    names = [p.name for p in header.vertex.properties]
    columns = chosen(path, options.columns, names)
    if header.encoding == "ascii":
        with _text(path, header) as stream:
            values = text_rows(path, stream, header.vertex.n, len(names))
        X = np.ascontiguousarray(values[:, select(path, columns, names)])
        kinds = [header.vertex.properties[names.index(name)].dtype.name for name in columns]
        stored = ", ".join(dict.fromkeys(kinds))
    else:
        X, stored = columns_of(path, _records(path, header, size), columns)
    return from_points(X, path, "ply", columns, stored_dtype=stored, origin=header)


def write_answer(dataset: Dataset, answer: Answer, folder: Path) -> Path:
    """Write the file again, with three more properties of each vertex."""
    source, out, header = Path(dataset.source), answer_path(dataset, folder), dataset.origin
    names = [p.name for p in header.vertex.properties]
    added = added_fields(dataset, answer, names)
    lines = list(header.lines)
    end = b"\r\n" if lines[0].endswith(b"\r\n") else b"\n"
    lines[header.last + 1 : header.last + 1] = [
        f"property {ADDED[values.dtype.str[1:]]} {name}".encode() + end
        for name, values in added.items()
    ]
    if read_header(source) != header:
        raise InputError(f"{source}: has changed since it was read. Read it again.")
    with writing(out) as stream, source.open("rb") as original:
        stream.writelines(lines)
        original.seek(header.offset)
        if header.encoding == "ascii":
            stream.writelines(islice(original, sum(e.n for e in header.before)))
            write_text(stream, original, header.vertex.n, added)
        else:
            records = _records(source, header, file_size(source))
            start = _start(source, header)
            stream.write(original.read(start - header.offset))
            order = ENCODINGS[header.encoding]
            more = [(name, values.dtype.newbyteorder(order)) for name, values in added.items()]
            dtype = np.dtype(_fields(header.vertex.properties) + more)
            write_records(stream, records, dtype, added)
            original.seek(start + records.nbytes)
        shutil.copyfileobj(original, stream)
    return out


def write_cloud(path: Path, fields: dict[str, Array]) -> None:
    """Write plain arrays of one length as a binary PLY of vertices."""
    properties = [
        f"property {ADDED[values.dtype.str[1:]]} {name}" for name, values in fields.items()
    ]
    n = len(next(iter(fields.values())))
    dtype = np.dtype([(name, values.dtype.newbyteorder("<")) for name, values in fields.items()])
    head = ["ply", "format binary_little_endian 1.0", f"element vertex {n}", *properties]
    with writing(path) as stream:
        stream.write("\n".join([*head, "end_header", ""]).encode())
        write_records(stream, np.zeros(n, []), dtype, fields)


def _text(path: Path, header: Header) -> IO[str]:
    """Open a text file where its points begin."""
    stream = path.open("rb")
    stream.seek(header.offset)
    text = io.TextIOWrapper(stream, encoding="latin-1")
    for _ in islice(text, sum(e.n for e in header.before)):
        pass
    return text


def _fields(properties: Sequence[Property]) -> list[tuple[str, np.dtype[Any]]]:
    return [(p.name, p.dtype) for p in properties]


def _records(path: Path, header: Header, size: int) -> Array:
    """Map the points of a binary file."""
    dtype, start = np.dtype(_fields(header.vertex.properties)), _start(path, header)
    if start + header.vertex.n * dtype.itemsize > size:
        raise InputError(f"{path}: ends within its points. Is it a cut-off copy?")
    return np.asarray(np.memmap(path, dtype, "r", start, (header.vertex.n,)))


def _start(path: Path, header: Header) -> int:
    """Where the points of a binary file begin, after the other elements."""
    place = header.offset
    if not any(e.has_lists for e in header.before):
        return place + sum(e.n * e.smallest for e in header.before)
    data = memoryview(np.memmap(path, np.uint8, "r"))  # type: ignore[arg-type]
    try:
        for element in header.before:
            place = _after(data, place, element)
    except struct.error as error:
        raise InputError(f"{path}: ends before its points. Is it a cut-off copy?") from error
    return place


def _after(data: memoryview, place: int, element: Element) -> int:
    """Return the place after an element, whose lists have their lengths before them."""
    if not element.has_lists:
        return place + element.n * element.smallest
    steps = [(p.dtype.itemsize, _unpacker(p.length)) for p in element.properties]
    for _ in range(element.n):
        for size, length in steps:
            if length is None:
                place += size
            else:
                (entries,) = length.unpack_from(data, place)
                place += length.size + max(0, entries) * size
    return place


def _unpacker(dtype: np.dtype[Any] | None) -> struct.Struct | None:
    if dtype is None:
        return None
    return struct.Struct(dtype.byteorder.replace("|", "<") + dtype.char)

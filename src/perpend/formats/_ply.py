"""PLY: point clouds and meshes, as text or binary in either byte order.

Only the element ``vertex`` is read; x, y and z unless other columns are chosen. Elements after it
(faces) are ignored; those before it are skipped, lists included. Text is read as float64.

The labels are three more properties of every vertex in a copy of the file, faces included.
"""

import re
import shutil
import struct
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from perpend._files import writing
from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.formats import _checks as check
from perpend.formats._checks import in_bytes, quoted
from perpend.formats._damage import changed
from perpend.formats._dataset import Dataset, Labelled, Options
from perpend.formats._points import Points, added_fields, header_lines, write_records, write_text
from perpend.formats._stream import Blocks

ENCODINGS = {"ascii": "<", "binary_little_endian": "<", "binary_big_endian": ">"}
TYPES = (
    {"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4"}
    | {"int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2", "int32": "i4", "uint32": "u4"}
    | {"float": "f4", "double": "f8", "float32": "f4", "float64": "f8"}
)
ADDED = {"f4": "float", "u1": "uchar"}


class Property(NamedTuple):
    """One number of an element, or a list of them."""

    name: str
    dtype: np.dtype[Any]  # of the number, or of the length of the list
    entry: int = 0  # bytes of each entry of a list; 0: it is not a list


class Element(NamedTuple):
    """A kind of thing in the file, such as vertices."""

    name: str
    n: int
    properties: tuple[Property, ...]

    @property
    def smallest(self) -> int:
        """Bytes of one in a binary file with empty lists."""
        return sum(p.dtype.itemsize for p in self.properties)

    @property
    def has_lists(self) -> bool:
        """Whether their sizes may differ."""
        return any(p.entry for p in self.properties)


class Header(NamedTuple):
    """What the first lines declare."""

    encoding: str
    elements: tuple[Element, ...]
    lines: tuple[bytes, ...]  # as in the file
    last: int  # number of the line with the last property of a vertex
    offset: int  # where the values begin

    @property
    def vertex(self) -> Element:
        """The points."""
        return next(element for element in self.elements if element.name == "vertex")

    @property
    def before(self) -> tuple[Element, ...]:
        """Elements that come before the points."""
        return self.elements[: self.elements.index(self.vertex)]


def opened(path: Path, options: Options) -> Blocks:
    """Open the vertices of a PLY file."""
    header = _read_header(path)
    return _points(path, header).blocks(path, options, origin=header)


def write_labelled(dataset: Dataset, labelled: Labelled, path: Path) -> Path:
    """Write the file again, with three more properties of each vertex."""
    source, header = Path(dataset.source), dataset.origin
    if _read_header(source) != header:
        raise changed(source)
    points = _points(source, header)
    added = added_fields(dataset, labelled, points.names, ENCODINGS[header.encoding])
    lines = list(header.lines)
    end = b"\r\n" if lines[0].endswith(b"\r\n") else b"\n"
    lines[header.last + 1 : header.last + 1] = [line.encode() + end for line in _declared(added)]
    with writing(path) as stream, source.open("rb") as original:
        stream.writelines(lines)
        original.seek(header.offset)
        stream.write(original.read(points.start - header.offset))
        if points.is_text:
            write_text(stream, original, points.n, added)
        else:
            write_records(stream, points.mapped(source), added)
            original.seek(points.start + points.n * points.dtype.itemsize)
        shutil.copyfileobj(original, stream)
    return path


def write_cloud(path: Path, records: Array, added: dict[str, Array]) -> None:
    """Write structured records, with more fields, as a binary PLY of vertices."""
    fields = {name: records[name] for name in records.dtype.names or ()} | added
    head = ["ply", "format binary_little_endian 1.0", f"element vertex {len(records)}"]
    with writing(path) as stream:
        stream.write("\n".join([*head, *_declared(fields), "end_header", ""]).encode())
        write_records(stream, records, added)


def _declared(fields: dict[str, Array]) -> list[str]:
    """Lines of a header for these fields."""
    return [f"property {ADDED[values.dtype.str[1:]]} {name}" for name, values in fields.items()]


def _read_header(path: Path) -> Header:
    """Parse the lines up to ``end_header``."""
    check.magic(path, 'with a line "ply"', b"ply\n", b"ply\r", b"ply ", b"ply\t")
    lines, offset = header_lines(path, '"end_header"', "end_header$")
    encoding, last = "", -1
    elements: list[Element] = []
    for number, line in enumerate(lines[1:-1], start=1):
        where = f"{path}: line {number + 1}"
        words = line.decode("ascii", errors="replace").split()
        match words:
            case ["format", kind, "1.0"] if kind in ENCODINGS and not encoding:
                encoding = kind
            case ["element", name, count] if re.fullmatch("[0-9]{1,15}", count) and encoding:
                elements.append(Element(name, int(count), ()))
                last = number if name == "vertex" else last
            case ["property", *rest] if elements:
                added = _property(where, rest, ENCODINGS[encoding])
                element = elements[-1]
                elements[-1] = element._replace(properties=(*element.properties, added))
                last = number if element.name == "vertex" else last
            case [] | ["comment" | "obj_info", *_]:
                pass
            case _:
                raise InputError(f"{where}: cannot read {quoted(' '.join(words))} in a PLY header.")
    _check_elements(path, elements)
    return Header(encoding, tuple(elements), tuple(lines), last, offset)


def _property(where: str, words: Sequence[str], order: str) -> Property:
    match words:
        case [kind, name] if kind in TYPES:
            return Property(name, np.dtype(order + TYPES[kind]))
        case ["list", length, kind, name] if {length, kind} <= TYPES.keys():
            entry = np.dtype(TYPES[kind]).itemsize
            return Property(name, np.dtype(order + TYPES[length]), entry)
    raise InputError(f"{where}: cannot read the property {quoted(' '.join(words))}.")


def _check_elements(path: Path, elements: list[Element]) -> None:
    """Refuse a header without points, or with points that cannot be read."""
    vertices = [element for element in elements if element.name == "vertex"]
    if len(vertices) != 1:
        raise InputError(f'{path}: declares {len(vertices)} elements "vertex" instead of one.')
    vertex = vertices[0]
    names = [p.name for p in vertex.properties]
    if vertex.n == 0 or not names:
        raise InputError(f"{path}: declares no points, so there is nothing to read.")
    if vertex.has_lists:
        raise InputError(f"{path}: its points hold lists. Save them with plain numbers only.")
    if len(set(names)) < len(names):
        raise InputError(f"{path}: two properties of its points have the same name.")
    if any(p.entry and p.dtype.kind == "f" for element in elements for p in element.properties):
        raise InputError(f"{path}: a list cannot have a length of type float.")


def _points(path: Path, header: Header) -> Points:
    """Find the points, after all counts were compared with the size of the file."""
    vertex, is_text, size = header.vertex, header.encoding == "ascii", path.stat().st_size
    present, least = size - header.offset, sum(e.n * e.smallest for e in header.elements)
    if is_text:  # a digit and a blank or line end for each, the last may lack it
        least = sum(2 * e.n * len(e.properties) for e in header.elements) - 1
    check.points(path, vertex.n, least, present)
    fixed = not is_text and not any(e.has_lists for e in header.elements)
    if fixed and present - least >= vertex.smallest:
        raise InputError(
            f"{path}: declares {vertex.n} points ({in_bytes(least)}) but holds "
            f"{in_bytes(present)}. Does the header count too few?"
        )
    dtype = np.dtype([(p.name, p.dtype) for p in vertex.properties])
    points = Points(vertex.n, dtype, _start(path, header, is_text=is_text), is_text)
    if not is_text and points.start + vertex.n * dtype.itemsize > size:
        raise InputError(f"{path}: ends within its points. Is it a cut-off copy?")
    return points


def _start(path: Path, header: Header, *, is_text: bool) -> int:
    """Where the points begin, after the other elements."""
    place = header.offset
    if is_text:
        with path.open("rb") as stream:
            stream.seek(place)
            return place + sum(map(len, islice(stream, sum(e.n for e in header.before))))
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
    parts = [
        (p.entry, struct.Struct(f"{p.dtype.str[0]}{p.dtype.char}".replace("|", "<")))
        for p in element.properties
    ]
    for _ in range(element.n):
        for entry, number in parts:
            if entry:
                place += entry * max(0, number.unpack_from(data, place)[0])
            place += number.size
    return place

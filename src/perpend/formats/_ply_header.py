"""The text header of a PLY file: the elements, their numbers and their properties."""

from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from perpend.exceptions import InputError
from perpend.formats._checks import in_bytes, quoted

HEADER_BYTES = 1 << 20
ENCODINGS = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}
TYPES = (
    {"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4"}
    | {"int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2", "int32": "i4", "uint32": "u4"}
    | {"float": "f4", "double": "f8", "float32": "f4", "float64": "f8"}
)


class Property(NamedTuple):
    """One number of an element, or a list of them."""

    name: str
    dtype: np.dtype[Any]
    length: np.dtype[Any] | None = None  # type of the number of entries, if it is a list


class Element(NamedTuple):
    """A kind of thing in the file, such as vertices."""

    name: str
    n: int
    properties: tuple[Property, ...]

    @property
    def smallest(self) -> int:
        """Bytes of one in a binary file with empty lists."""
        return sum((p.length or p.dtype).itemsize for p in self.properties)

    @property
    def has_lists(self) -> bool:
        """Whether their sizes may differ."""
        return any(p.length is not None for p in self.properties)


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


def read_header(path: Path) -> Header:
    """Parse the lines up to ``end_header``."""
    with path.open("rb") as stream:
        lines = _header_lines(path, stream)
        offset = stream.tell()
    encoding, last = "", -1
    elements: list[Element] = []
    for number, line in enumerate(lines[1:-1], start=1):
        where = f"{path}: line {number + 1}"
        match line.decode("ascii", errors="replace").split():
            case ["format", kind, "1.0"] if kind in ENCODINGS and not encoding:
                encoding = kind
            case ["element", name, count] if _is_count(count) and encoding:
                elements.append(Element(name, int(count), ()))
                last = number if name == "vertex" else last
            case ["property", *words] if elements:
                added = _property(where, words, ENCODINGS[encoding])
                element = elements[-1]
                elements[-1] = element._replace(properties=(*element.properties, added))
                last = number if element.name == "vertex" else last
            case [] | ["comment" | "obj_info", *_]:
                pass
            case _:
                raise InputError(f"{where}: cannot read {quoted(_words(line))} in a PLY header.")
    _check_elements(path, elements)
    return Header(encoding, tuple(elements), tuple(lines), last, offset)


def _header_lines(path: Path, stream: IO[bytes]) -> list[bytes]:
    lines: list[bytes] = []
    left = HEADER_BYTES
    while left > 0:
        line = stream.readline(left)
        left -= len(line)
        if not lines and line.strip() != b"ply":
            raise InputError(f'{path}: does not begin with a line "ply". Is it another format?')
        lines.append(line)
        if line.strip() == b"end_header" and line.endswith(b"\n"):
            return lines
        if not line.endswith(b"\n"):
            break
    raise InputError(f'{path}: the header has no line "end_header". Is it a cut-off copy?')


def _words(line: bytes) -> str:
    return line.decode("ascii", errors="replace").strip()


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 15


def _property(where: str, words: Sequence[str], order: str) -> Property:
    match words:
        case [kind, name] if kind in TYPES:
            return Property(name, np.dtype(order + TYPES[kind]))
        case ["list", length, kind, name] if {length, kind} <= TYPES.keys():
            return Property(name, np.dtype(order + TYPES[kind]), np.dtype(order + TYPES[length]))
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
    for element in elements:
        floats = [p for p in element.properties if p.length is not None and p.length.kind == "f"]
        if floats:
            raise InputError(f"{path}: a list cannot have a length of type float.")


def check_size(path: Path, header: Header, size: int) -> None:
    """Compare the counts with the size of the file, before anything is read."""
    if header.encoding == "ascii":  # a digit and a blank or line end for each, the last may lack it
        least = sum(2 * e.n * len(e.properties) for e in header.elements) - 1
    else:
        least = sum(e.n * e.smallest for e in header.elements)
    present = size - header.offset
    if least > present:
        raise InputError(
            f"{path}: declares {header.vertex.n} points, at least {in_bytes(least)}, but holds "
            f"{in_bytes(max(0, present))}. Is it a cut-off copy?"
        )
    fixed = header.encoding != "ascii" and not any(e.has_lists for e in header.elements)
    if fixed and present - least >= header.vertex.smallest:
        raise InputError(
            f"{path}: declares {header.vertex.n} points ({in_bytes(least)}) but holds "
            f"{in_bytes(present)}. Does the header count too few?"
        )

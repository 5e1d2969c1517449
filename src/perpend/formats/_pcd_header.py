"""The text header of a PCD file: fields, their types, and how many points there are."""

import re
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from perpend.exceptions import InputError
from perpend.formats._checks import quoted

HEADER_BYTES = 1 << 20
KINDS = ("ascii", "binary", "binary_compressed")
WORDS = (
    *("VERSION", "FIELDS", "COLUMNS", "SIZE", "TYPE", "COUNT", "WIDTH", "HEIGHT", "VIEWPOINT"),
    *("POINTS", "DATA"),
)
TYPES = {"F": ("f", (4, 8)), "I": ("i", (1, 2, 4, 8)), "U": ("u", (1, 2, 4, 8))}
PADDING = "_"  # name of fields that fill gaps; there may be several
MAX_COUNT = 1 << 16  # numbers in one field


class Field(NamedTuple):
    """One or more numbers of each point."""

    name: str
    dtype: np.dtype[Any]
    n: int

    @property
    def columns(self) -> tuple[str, ...]:
        """A name for each number: the field's own if it is the only one."""
        if self.n == 1:
            return (self.name,)
        return tuple(f"{self.name}_{j}" for j in range(self.n))


class Header(NamedTuple):
    """What the first lines declare."""

    fields: tuple[Field, ...]
    points: int
    kind: str  # one of KINDS
    lines: tuple[bytes, ...]  # as in the file
    offset: int  # where the values begin

    @property
    def flat(self) -> np.dtype[Any]:
        """A point as a record of single numbers, each with a name of its own."""
        names, formats, offsets, place = [], [], [], 0
        for field in self.fields:
            for name in field.columns:
                if field.name != PADDING:
                    names.append(name)
                    formats.append(field.dtype)
                    offsets.append(place)
                place += field.dtype.itemsize
        return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": place})

    @property
    def width(self) -> int:
        """Numbers of one point."""
        return sum(field.n for field in self.fields)

    @property
    def point_bytes(self) -> int:
        """Bytes of one point in a binary file."""
        return sum(field.n * field.dtype.itemsize for field in self.fields)


def read_header(path: Path) -> Header:
    """Parse the lines up to ``DATA``."""
    entries: dict[str, list[str]] = {}
    lines: list[bytes] = []
    with path.open("rb") as stream:
        while "DATA" not in entries:
            line = _line(path, stream, sum(map(len, lines)))
            lines.append(line)
            words = line.decode("ascii", errors="replace").split("#")[0].split()
            if not words:
                continue
            if words[0] not in WORDS or words[0] in entries:
                raise InputError(
                    f"{path}: line {len(lines)}: cannot read {quoted(' '.join(words))} in the "
                    "header of a PCD file. Is it another format?"
                )
            entries[words[0]] = words[1:]
        offset = stream.tell()
    kind = " ".join(entries["DATA"])
    if kind not in KINDS:
        raise InputError(f"{path}: DATA {quoted(kind)} is not one of {', '.join(KINDS)}.")
    fields = _fields(path, entries)
    return Header(fields, _points(path, entries), kind, tuple(lines), offset)


def _line(path: Path, stream: IO[bytes], before: int) -> bytes:
    line = stream.readline(HEADER_BYTES)
    if not line.endswith(b"\n") or before > HEADER_BYTES:
        raise InputError(f"{path}: the header has no line DATA. Cut-off copy, or another format?")
    return line


def _fields(path: Path, entries: dict[str, list[str]]) -> tuple[Field, ...]:
    names = entries.get("FIELDS", entries.get("COLUMNS", []))
    sizes, types = entries.get("SIZE", []), entries.get("TYPE", [])
    counts = entries.get("COUNT", ["1"] * len(names))
    if not names or not len(names) == len(sizes) == len(types) == len(counts):
        raise InputError(
            f"{path}: FIELDS, SIZE, TYPE and COUNT have {len(names)}, {len(sizes)}, {len(types)} "
            f"and {len(counts)} entries; they must have the same number, and at least one."
        )
    fields = tuple(
        Field(name, _dtype(path, kind, size), _count(path, "COUNT", count))
        for name, size, kind, count in zip(names, sizes, types, counts, strict=True)
    )
    if any(not 1 <= field.n <= MAX_COUNT for field in fields):
        raise InputError(f"{path}: a COUNT is not between 1 and {MAX_COUNT}.")
    if sum(field.n for field in fields) > MAX_COUNT:
        raise InputError(f"{path}: a point has more than {MAX_COUNT} numbers.")
    columns = [name for field in fields if field.name != PADDING for name in field.columns]
    if len(set(columns)) < len(columns):
        raise InputError(f"{path}: two of its fields have the same name.")
    return fields


def _dtype(path: Path, kind: str, size: str) -> np.dtype[Any]:
    letter, sizes = TYPES.get(kind, ("", ()))
    if size not in map(str, sizes):
        raise InputError(f"{path}: TYPE {quoted(kind)} of SIZE {quoted(size)} is unknown.")
    return np.dtype(f"<{letter}{size}")


def _points(path: Path, entries: dict[str, list[str]]) -> int:
    width = _count(path, "WIDTH", *entries.get("WIDTH", []))
    height = _count(path, "HEIGHT", *entries.get("HEIGHT", ["1"]))
    points = _count(path, "POINTS", *entries.get("POINTS", [str(width * height)]))
    if points != width * height:
        raise InputError(
            f"{path}: POINTS {points} contradicts WIDTH {width} and HEIGHT {height}. Correct them."
        )
    if points == 0:
        raise InputError(f"{path}: declares no points, so there is nothing to read.")
    return points


def _count(path: Path, word: str, *values: str) -> int:
    if len(values) != 1 or not re.fullmatch(r"[0-9]{1,15}", values[0]):
        raise InputError(f"{path}: {word} {quoted(' '.join(values))} is not a count.")
    return int(values[0])

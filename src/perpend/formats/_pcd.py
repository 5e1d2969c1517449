"""PCD: point clouds of PCL, as text, binary, or binary and compressed by LZF.

x, y and z are read unless other columns are chosen; a field of several numbers, such as fpfh, has
the columns fpfh_0, fpfh_1 and so on. An organised cloud (WIDTH x HEIGHT) is read row by row; its
points without coordinates, which PCL marks by NaN, are left out. Text is read as float64.

The labels are three more fields in a copy of the cloud: text if the cloud is, otherwise binary.
"""

import re
from functools import partial
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
from perpend.formats._lzf import decompress
from perpend.formats._points import (
    FILLER,
    Points,
    added_fields,
    header_lines,
    write_records,
    write_text,
)
from perpend.formats._stream import Blocks

KINDS = ("ascii", "binary", "binary_compressed")
WORDS = (
    *("VERSION", "FIELDS", "COLUMNS", "SIZE", "TYPE", "COUNT", "WIDTH", "HEIGHT", "VIEWPOINT"),
    *("POINTS", "DATA"),
)
TYPES = {"F": ("f", (4, 8)), "I": ("i", (1, 2, 4, 8)), "U": ("u", (1, 2, 4, 8))}
PADDING = "_"  # name of fields that fill gaps; there may be several
MAX_COUNT = 1 << 16  # numbers in one field
SIZES_BYTES = 8  # before the compressed points: their sizes, packed and unpacked


class Header(NamedTuple):
    """What the first lines declare."""

    fields: np.dtype[Any]  # of a point; each has one dimension
    points: Points  # each as a record of single numbers
    kind: str  # one of KINDS
    lines: tuple[bytes, ...]  # as in the file


def opened(path: Path, options: Options) -> Blocks:
    """Open the points of a PCD file."""
    header = _read_header(path)
    points = header.points
    unpack = None
    if header.kind == "binary_compressed":
        unpack = partial(_unpacked, path, header)
        _packed_size(path, header)
    else:
        check.points(path, points.n, points.least, path.stat().st_size - points.start)
    return points.blocks(path, options, unpack, header)


def write_labelled(dataset: Dataset, labelled: Labelled, path: Path) -> Path:
    """Write the cloud again, with three more fields."""
    source, header = Path(dataset.source), dataset.origin
    if _read_header(source) != header:
        raise changed(source)
    added = added_fields(dataset, labelled, header.fields.names)
    with writing(path) as stream, source.open("rb") as original:
        stream.write(_header_text(header, added))
        original.seek(header.points.start)
        if header.kind == "ascii":
            write_text(stream, original, header.points.n, added)
        elif header.kind == "binary":
            write_records(stream, header.points.mapped(source), added)
        else:
            write_records(stream, _unpacked(source, header), added)
    return path


def _read_header(path: Path) -> Header:
    """Parse the lines up to ``DATA``."""
    entries: dict[str, list[str]] = {}
    lines, offset = header_lines(path, "DATA", r"DATA\b")
    for number, line in enumerate(lines, start=1):
        words = line.decode("ascii", errors="replace").split("#")[0].split()
        if words and (words[0] not in WORDS or words[0] in entries):
            raise InputError(
                f"{path}: line {number}: cannot read {quoted(' '.join(words))} in the header of a "
                "PCD file. Is it another format?"
            )
        if words:
            entries[words[0]] = words[1:]
    kind = " ".join(entries["DATA"])
    if kind not in KINDS:
        raise InputError(f"{path}: DATA {quoted(kind)} is not one of {', '.join(KINDS)}.")
    fields = _fields(path, entries)
    numbers = [(f"{a}_{j}" if n > 1 else a, dtype) for a, dtype, n in fields for j in range(n)]
    if len(dict(numbers)) < len(numbers):
        raise InputError(f"{path}: two of its fields have the same name.")
    points = Points(_n_points(path, entries), np.dtype(numbers), offset, kind == "ascii")
    record = np.dtype([(name, dtype, (n,)) for name, dtype, n in fields])
    return Header(record, points, kind, tuple(lines))


def _fields(path: Path, entries: dict[str, list[str]]) -> list[tuple[str, np.dtype[Any], int]]:
    """Names, types and counts; fields that fill gaps get names that differ."""
    names = entries.get("FIELDS", entries.get("COLUMNS", []))
    sizes, types = entries.get("SIZE", []), entries.get("TYPE", [])
    counts = entries.get("COUNT", ["1"] * len(names))
    if not names or not len(names) == len(sizes) == len(types) == len(counts):
        raise InputError(
            f"{path}: FIELDS, SIZE, TYPE and COUNT have {len(names)}, {len(sizes)}, {len(types)} "
            f"and {len(counts)} entries; they must have the same number, and at least one."
        )
    numbers = [_count(path, "COUNT", count) for count in counts]
    if not all(1 <= n <= MAX_COUNT for n in numbers):
        raise InputError(f"{path}: a COUNT is not between 1 and {MAX_COUNT}.")
    if sum(numbers) > MAX_COUNT:
        raise InputError(f"{path}: a point has more than {MAX_COUNT} numbers.")
    kinds = [_dtype(path, kind, size) for kind, size in zip(types, sizes, strict=True)]
    names = [f"{FILLER}{j}" if name == PADDING else name for j, name in enumerate(names)]
    return list(zip(names, kinds, numbers, strict=True))


def _dtype(path: Path, kind: str, size: str) -> np.dtype[Any]:
    letter, sizes = TYPES.get(kind, ("", ()))
    if size not in map(str, sizes):
        raise InputError(f"{path}: TYPE {quoted(kind)} of SIZE {quoted(size)} is unknown.")
    return np.dtype(f"<{letter}{size}")


def _n_points(path: Path, entries: dict[str, list[str]]) -> int:
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


def _packed_size(path: Path, header: Header) -> int:
    """Bytes of compressed points, if their sizes fit the header and the file."""
    n, dtype, start, _ = header.points
    present = path.stat().st_size - start - SIZES_BYTES
    with path.open("rb") as stream:
        stream.seek(start)
        sizes = stream.read(SIZES_BYTES)
        packed, unpacked = (int.from_bytes(sizes[i : i + 4], "little") for i in (0, 4))
        if packed > present:
            raise InputError(
                f"{path}: declares {in_bytes(packed)} of compressed points but holds "
                f"{in_bytes(max(0, present))}. Is it a cut-off copy?"
            )
        if unpacked != n * dtype.itemsize:
            raise InputError(
                f"{path}: its points unpack to {in_bytes(unpacked)}, but {n} points of "
                f"{dtype.itemsize} bytes were declared. It is damaged."
            )
    return packed


def _unpacked(path: Path, header: Header) -> Array:
    """Points of a compressed file, in which each field is a block of its own."""
    n, dtype, start, _ = header.points
    packed, unpacked = _packed_size(path, header), n * dtype.itemsize
    check.memory(str(path), packed + 2 * unpacked)
    with path.open("rb") as stream:
        stream.seek(start + SIZES_BYTES)
        data = decompress(str(path), stream.read(packed), unpacked)
    records = np.empty(n, header.fields)
    place = 0
    for name in header.fields.names or ():
        block = np.frombuffer(data, header.fields[name], n, place)
        records[name] = block
        place += block.nbytes
    return records.view(dtype)


def _header_text(header: Header, added: dict[str, Array]) -> bytes:
    """Return the header with more fields; everything else stays."""
    more = {
        "FIELDS": list(added),
        "COLUMNS": list(added),
        "SIZE": [str(values.itemsize) for values in added.values()],
        "TYPE": ["U" if values.dtype == np.uint8 else "F" for values in added.values()],
        "COUNT": ["1"] * len(added),
    }
    text = b""
    for line in header.lines:
        words = line.split(b"#")[0].decode("ascii", errors="replace").split()
        if words and words[0] in more:
            line = (" ".join(words + more[words[0]]) + "\n").encode()  # noqa: PLW2901
        elif words and words[0] == "DATA":
            kind = "ascii" if header.kind == "ascii" else "binary"
            line = f"DATA {kind}\n".encode()  # noqa: PLW2901
        text += line
    return text

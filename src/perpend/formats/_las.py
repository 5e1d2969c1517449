"""LAS and LAZ: airborne laser scans, read by laspy (and lazrs, if they are compressed).

x, y and z are scaled and moved as the header says, in float64: coordinates may have seven digits
before the point. Other dimensions, such as intensity, are read on request. Points are read a block
at a time.

laspy trusts the counts in the header, so they are compared with the file first. So are the blocks
of a compressed file. Points of format 6 and above are stored in layers: a block has its first
point, uncompressed, then the number of its points and the length of each layer. The decompressor
allocates these lengths unchecked, up to 4 GB each. So the blocks are walked first; together they
must fill the space up to their table.

The labels are three more dimensions (as extra bytes) in a copy of the scan. The classification
stays as it is: its codes are for ground, vegetation, buildings.
"""

import copy
import math
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from perpend._files import writing
from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.formats import _checks as check
from perpend.formats._damage import changed, damage_named
from perpend.formats._dataset import Dataset, Labelled, Options
from perpend.formats._points import PLACE, added_fields, chosen
from perpend.formats._registry import optional_package
from perpend.formats._stream import Blocks
from perpend.rows.sequential import Sequential

ROWS = 1 << 16  # points read together
UNREADABLE = "cannot be read as a laser scan"
LONGEST_HEADER = 375  # bytes
VLR, EVLR = 54, 60  # bytes of the shortest records between header and points, and behind them
HEADER_SIZES = {0: 227, 1: 227, 2: 227, 3: 235, 4: 375, 5: 393}  # bytes, by minor version
DESCRIPTIONS = {"distance": "to the subspace", "probability": "of being an outlier"}

LAYERED = 3  # kind of compression
N_LAYERS = {10: 9, 11: 1, 12: 2, 13: 1}  # by kind of item: point, colours, with infrared, waveform
BYTES = 14  # the kind of item with one layer for each of its bytes
VARIABLE = 0xFFFFFFFF  # instead of the number of points in a block
HEAD = struct.Struct("<H10xI16xH")  # kind, points in a block, number of items
ITEM = struct.Struct("<HHH")  # kind, bytes, version


class Layout(NamedTuple):
    """What the header declares about the bytes."""

    minor: int  # version 1.minor
    header_size: int
    offset: int  # where the points begin
    vlrs: int  # records before them
    compressed: bool
    point_bytes: int
    points: int
    evlr_start: int
    evlrs: int  # records behind the points


def opened(path: Path, options: Options) -> Blocks:
    """Open the points of a laser scan."""
    layout = _layout(path)
    _check(path, layout)
    with _reader(path) as reader:
        if layout.compressed:
            _check_blocks(path, reader.header, layout)
        fields = reader.header.point_format.dimensions
        names = [*PLACE, *(field.name for field in fields if field.num_elements == 1)]
        columns = chosen(path, options, names)
        kinds = {field.name: field.dtype for field in fields}
        stored = [f"{kinds[name.upper()]} scaled" if name in PLACE else str(kinds[name])
                  for name in columns]  # fmt: skip
    shape = layout.points, len(columns)
    rows = Sequential(
        lambda point: (point, _blocks(path, columns, point, layout.points)),
        shape=shape,
        dtype=float,
        name=str(path),
    )
    return Blocks(
        path,
        options,
        "cloud",
        rows.read,
        shape=shape[:1],
        width=shape[1],
        dtype=float,
        extra=ROWS * layout.point_bytes,
        columns=columns,
        stored=", ".join(dict.fromkeys(stored)),
        origin=layout,
        what=UNREADABLE,
    )


def _blocks(path: Path, columns: tuple[str, ...], at: int, n: int) -> Iterator[Array]:
    """Points from one on, some at a time."""
    with _reader(path) as reader:
        reader.seek(at) if at else None
        for points in reader.chunk_iterator(ROWS):
            X = np.empty((len(points), len(columns)))
            for j, name in enumerate(columns):
                with np.errstate(all="ignore"):  # absurd scales overflow; such points are left out
                    X[:, j] = points[name]
            at += len(points)
            yield X
    if at != n:
        raise InputError(f"{path}: has {at} points, but says {n}. Cut-off copy?")


def write_labelled(dataset: Dataset, labelled: Labelled, path: Path) -> Path:
    """Write the scan again, with three more dimensions of each point."""
    source, layout = Path(dataset.source), dataset.origin
    laspy = optional_package("laspy", source, "pointcloud")
    if _layout(source) != layout:
        raise changed(source)
    with _reader(source) as reader, writing(path) as stream:
        header = copy.deepcopy(reader.header)
        taken = [*PLACE, *header.point_format.dimension_names]
        added = added_fields(dataset, labelled, taken)
        for name, values in added.items():
            about = DESCRIPTIONS.get(name, "")
            header.add_extra_dims([laspy.ExtraBytesParams(name, values.dtype, about)])
        how = {"header": header, "do_compress": layout.compressed, "closefd": False}
        with laspy.open(stream, mode="w", **how) as writer:
            at = 0
            for points in reader.chunk_iterator(ROWS):
                wider = laspy.ScaleAwarePointRecord.zeros(len(points), header=header)
                for name in points.array.dtype.names:
                    wider.array[name] = points.array[name]
                for name, values in added.items():
                    wider[name] = values[at : at + len(points)]
                writer.write_points(wider)
                at += len(points)
            if reader.evlrs:
                writer.write_evlrs(reader.evlrs)
    return path


@contextmanager
def _reader(path: Path) -> Iterator[Any]:
    """Open a file with laspy; errors inside become an InputError."""
    laspy = optional_package("laspy", path, "pointcloud")
    if _layout(path).compressed:
        optional_package("lazrs", path, "pointcloud")
    # a panic of the decompressor is not an Exception
    with (
        damage_named(path, UNREADABLE, (BaseException,)),
        laspy.open(path, laz_backend=laspy.LazBackend.Lazrs) as reader,
    ):
        yield reader


def _layout(path: Path) -> Layout:
    """Read the header itself."""
    check.magic(path, "with LASF", b"LASF")
    with path.open("rb") as stream:
        start = stream.read(LONGEST_HEADER)
    if len(start) < min(HEADER_SIZES.values()):
        raise InputError(f"{path}: ends within its header. Is it a cut-off copy?")
    major, minor = start[24:26]
    header_size, offset, vlrs, kind, point_bytes, points = struct.unpack_from("<HIIBHI", start, 94)
    if major != 1 or minor not in HEADER_SIZES:
        raise InputError(f"{path}: is of LAS version {major}.{minor}; 1.0 to 1.5 can be read.")
    evlr_start = evlrs = 0
    if len(start) < HEADER_SIZES[min(minor, 4)] or header_size < HEADER_SIZES[minor]:
        raise InputError(f"{path}: its header is too short for LAS 1.{minor}. It is damaged.")
    if minor >= 4:
        evlr_start, evlrs, points = struct.unpack_from("<QIQ", start, 235)
    compressed = bool(kind & 0xC0)
    return Layout(
        minor, header_size, offset, vlrs, compressed, point_bytes, points, evlr_start, evlrs
    )


def _check(path: Path, layout: Layout) -> None:
    """Compare all counts with the size of the file."""
    size = path.stat().st_size
    if not layout.header_size + layout.vlrs * VLR <= layout.offset <= size:
        raise InputError(
            f"{path}: {layout.vlrs} records do not fit between the header and the points at byte "
            f"{layout.offset} of {size}. Is it damaged or cut off?"
        )
    if layout.evlrs and layout.evlr_start + layout.evlrs * EVLR > size:
        raise InputError(f"{path}: {layout.evlrs} records behind the points do not fit. Cut off?")
    if layout.points == 0 or layout.point_bytes == 0:
        raise InputError(f"{path}: declares no points, so there is nothing to read.")
    declared, present = layout.points * layout.point_bytes, size - layout.offset
    if layout.compressed:
        check.expansion(f"{path}, {layout.points} points", present, declared)
    else:
        check.points(path, layout.points, declared, present)


def _check_blocks(path: Path, header: Any, layout: Layout) -> None:
    """Refuse compressed blocks that declare more than the file holds."""
    records = header.vlrs.get("LasZipVlr")
    record = bytes(records[0].record_data) if len(records) == 1 else b""
    try:
        kind, block_points, n_items = HEAD.unpack_from(record)
        items = [ITEM.unpack_from(record, HEAD.size + i * ITEM.size) for i in range(n_items)]
    except struct.error:
        raise InputError(f"{path}: does not say how it is compressed. It is damaged.") from None
    with path.open("rb") as stream:
        end = _table(path, stream, layout.offset)
        if kind != LAYERED:
            return
        counts = _walk(path, stream, items, layout.offset + 8, end)
        if block_points == VARIABLE:
            lazrs = optional_package("lazrs", path, "pointcloud")
            stream.seek(layout.offset)
            declared = [n for n, _ in lazrs.read_chunk_table(stream, lazrs.LazVlr(record))]
            fits = declared == counts and sum(counts) >= layout.points
        else:
            fits = block_points > 0 and len(counts) >= math.ceil(layout.points / block_points)
    if not fits:
        what = f"its {len(counts)} blocks do not hold {layout.points} points"
        raise InputError(f"{path}: {what}. Is it damaged?")


def _table(path: Path, stream: IO[bytes], offset: int) -> int:
    """Where the table of the blocks begins; it must fit into the file."""
    size = path.stat().st_size
    stream.seek(offset)
    place = int.from_bytes(stream.read(8), "little", signed=True)
    if place == -1 and size >= offset + 16:  # written without seeking: the place is at the end
        stream.seek(size - 8)
        place = int.from_bytes(stream.read(8), "little", signed=True)
    if not offset + 8 <= place <= size - 8:
        raise InputError(f"{path}: has no table of its blocks. Is it a cut-off copy?")
    stream.seek(place + 4)
    blocks = int.from_bytes(stream.read(4), "little")
    if blocks > size:
        raise InputError(f"{path}: {blocks} blocks do not fit into {size} bytes. It is damaged.")
    return place


def _walk(
    path: Path, stream: IO[bytes], items: list[tuple[int, int, int]], place: int, end: int
) -> list[int]:
    """Numbers of points that the blocks declare, if their layers fit."""
    first = sum(size for _, size, _ in items)
    layers = sum(size if kind == BYTES else N_LAYERS.get(kind, 0) for kind, size, _ in items)
    lengths = struct.Struct(f"<{1 + layers}I")
    counts = []
    while place < end:
        stream.seek(place + first)
        head = stream.read(lengths.size)
        if len(head) < lengths.size:
            break
        count, *sizes = lengths.unpack(head)
        counts.append(count)
        place += first + lengths.size + sum(sizes)
    if place != end:
        raise InputError(f"{path}: the layers of its blocks do not fit. Is it damaged or cut off?")
    return counts

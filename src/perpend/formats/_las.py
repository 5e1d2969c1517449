"""LAS and LAZ: airborne laser scans, read by laspy (and lazrs, if they are compressed).

x, y and z are scaled and moved as the header says, in float64: coordinates may have seven digits
before the point. Other dimensions, such as intensity, are read on request. Points are read a block
at a time.

laspy trusts the counts in the header, so they are compared with the file first.

The labels are written to a copy of the scan with three more dimensions (as extra bytes): distance
and probability (float32) and inlier (uint8: 1, or 0 for outliers; 255 if the point is not finite).
The classification stays as it is: its codes are for ground, vegetation, buildings.
"""

import copy
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from perpend._files import writing
from perpend._typing import Array
from perpend.exceptions import InputError, PerpendError
from perpend.formats._answer_path import answer_path
from perpend.formats._checks import check_expansion, check_memory, file_size, in_bytes, no_choice
from perpend.formats._dataset import Answer, Dataset, Options
from perpend.formats._laz import check_blocks
from perpend.formats._points import PLACE, added_fields, chosen, clean, from_points
from perpend.formats._registry import optional_package

ROWS = 1 << 18  # points read together
LONGEST_HEADER = 375  # bytes
VLR, EVLR = 54, 60  # bytes of the shortest records between header and points, and behind them
HEADER_SIZES = {0: 227, 1: 227, 2: 227, 3: 235, 4: 375, 5: 393}  # bytes, by minor version
DESCRIPTIONS = {"distance": "to the subspace", "probability": "of being an outlier"}


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


def read(path: Path, options: Options) -> Dataset:
    """Read the points of a laser scan."""
    no_choice(path, options.variable)
    layout = _layout(path)
    _check(path, layout, file_size(path))
    with _reader(path) as reader:
        if layout.compressed:
            _check_blocks(path, reader.header, layout)
        fields = reader.header.point_format.dimensions
        names = [*PLACE, *(field.name for field in fields if field.num_elements == 1)]
        columns = chosen(path, options.columns, names)
        check_memory(str(path), layout.points * len(columns) * 8 + ROWS * layout.point_bytes)
        X = np.empty((layout.points, len(columns)))
        at = 0
        for points in reader.chunk_iterator(ROWS):
            for j, name in enumerate(columns):
                with np.errstate(all="ignore"):  # absurd scales overflow; such points are left out
                    X[at : at + len(points), j] = points[name]
            at += len(points)
        kinds = {field.name: field.dtype for field in fields}
        stored = [f"{kinds[name.upper()]} scaled" if name in PLACE else str(kinds[name])
                  for name in columns]  # fmt: skip
    if at != layout.points:
        raise InputError(f"{path}: has {at} points, but says {layout.points}. Cut-off copy?")
    kind = ", ".join(dict.fromkeys(stored))
    return from_points(X, path, "las", columns, stored_dtype=kind, origin=layout)


def write_answer(dataset: Dataset, answer: Answer, folder: Path) -> Path:
    """Write the scan again, with three more dimensions of each point."""
    source, out = Path(dataset.source), answer_path(dataset, folder)
    laspy = optional_package("laspy", source, "pointcloud")
    if _layout(source) != dataset.origin:
        raise InputError(f"{source}: has changed since it was read. Read it again.")
    with _reader(source) as reader, writing(out) as stream:
        header = copy.deepcopy(reader.header)
        taken = [*PLACE, *header.point_format.dimension_names]
        added = added_fields(dataset, answer, taken)
        header.add_extra_dims(
            [
                laspy.ExtraBytesParams(name, values.dtype, DESCRIPTIONS.get(name, ""))
                for name, values in added.items()
            ]
        )
        compressed = dataset.origin.compressed
        with laspy.open(
            stream, mode="w", header=header, do_compress=compressed, closefd=False
        ) as writer:
            at = 0
            for points in reader.chunk_iterator(ROWS):
                more = {name: values[at : at + len(points)] for name, values in added.items()}
                writer.write_points(_with_more(laspy, header, points, more))
                at += len(points)
            if reader.evlrs:
                writer.write_evlrs(reader.evlrs)
    return out


def _with_more(laspy: Any, header: Any, points: Any, more: dict[str, Array]) -> Any:
    """Points in the format of `header`, which has more dimensions than they have."""
    wider = laspy.ScaleAwarePointRecord.zeros(len(points), header=header)
    for name in points.array.dtype.names:
        wider.array[name] = points.array[name]
    for name, values in more.items():
        wider[name] = values
    return wider


@contextmanager
def _reader(path: Path) -> Iterator[Any]:
    """Open a file with laspy; errors inside become an InputError."""
    laspy = optional_package("laspy", path, "pointcloud")
    if _layout(path).compressed:
        optional_package("lazrs", path, "pointcloud")
    try:
        with laspy.open(path, laz_backend=laspy.LazBackend.Lazrs) as reader:
            yield reader
    except (PerpendError, OSError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # a panic of the decompressor is not an Exception
        raise InputError(
            f"{path}: cannot be read as a laser scan ({type(error).__name__}: {clean(str(error))}) "
            "Is it damaged or cut off?"
        ) from error


def _layout(path: Path) -> Layout:
    with path.open("rb") as stream:
        start = stream.read(LONGEST_HEADER)
    if not start.startswith(b"LASF"):
        raise InputError(f"{path}: does not begin with LASF. Is it another format?")
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


def _check(path: Path, layout: Layout, size: int) -> None:
    """Compare all counts with the size of the file."""
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
        check_expansion(f"{path}, {layout.points} points", present, declared)
    elif declared > present:
        raise InputError(
            f"{path}: declares {layout.points} points ({in_bytes(declared)}) but holds "
            f"{in_bytes(present)}. Is it a cut-off copy?"
        )


def _check_blocks(path: Path, header: Any, layout: Layout) -> None:
    """Check the compressed blocks before they are unpacked."""
    lazrs = optional_package("lazrs", path, "pointcloud")
    records = header.vlrs.get("LasZipVlr")
    if len(records) != 1:
        raise InputError(f"{path}: does not say how it is compressed. It is damaged.")
    where = {"offset": layout.offset, "size": file_size(path), "points": layout.points}
    check_blocks(path, bytes(records[0].record_data), lazrs, **where)

"""PCD: point clouds of PCL, as text, binary, or binary and compressed by LZF.

x, y and z are read unless other columns are chosen; a field of several numbers, such as fpfh, has
the columns fpfh_0, fpfh_1 and so on. An organised cloud (WIDTH x HEIGHT) is read row by row; its
points without coordinates, which PCL marks by NaN, are left out. Text is read as float64.

The labels are written to a copy of the cloud with three more fields: distance and probability (F 4)
and inlier (U 1: 1, or 0 for outliers; 255 for no data). It is text if the cloud is, otherwise
binary.
"""

import io
from pathlib import Path
from typing import Any

import numpy as np

from perpend._files import writing
from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.formats._answer_path import answer_path
from perpend.formats._checks import check_memory, file_size, in_bytes, no_choice
from perpend.formats._dataset import Answer, Dataset, Options
from perpend.formats._lzf import decompress
from perpend.formats._pcd_header import PADDING, Header, read_header
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

SIZES_BYTES = 8  # before the compressed points: their sizes, packed and unpacked


def read(path: Path, options: Options) -> Dataset:
    """Read the points of a PCD file."""
    no_choice(path, options.variable)
    size = file_size(path)
    header = read_header(path)
    flat = header.flat
    names = flat.names or ()
    columns = chosen(path, options.columns, names)
    _check_size(path, header, size)
    if header.kind == "ascii":
        all_names = [name for field in header.fields for name in field.columns]
        with path.open("rb") as stream:
            stream.seek(header.offset)
            text = io.TextIOWrapper(stream, encoding="latin-1")
            values = text_rows(path, text, header.points, header.width)
        wanted = select(path, columns, [name if name in names else "" for name in all_names])
        X = np.ascontiguousarray(values[:, wanted])
        stored = ", ".join(dict.fromkeys(flat[name].name for name in columns))
    elif header.kind == "binary":
        X, stored = columns_of(path, _mapped(path, header), columns)
    else:
        X, stored = columns_of(path, _unpacked(path, header), columns)
    return from_points(X, path, "pcd", columns, stored_dtype=stored, origin=header)


def write_answer(dataset: Dataset, answer: Answer, folder: Path) -> Path:
    """Write the cloud again, with three more fields."""
    source, out, header = Path(dataset.source), answer_path(dataset, folder), dataset.origin
    if read_header(source) != header:
        raise InputError(f"{source}: has changed since it was read. Read it again.")
    added = added_fields(dataset, answer, [field.name for field in header.fields])
    with writing(out) as stream:
        stream.write(_header_text(header, added))
        if header.kind == "ascii":
            with source.open("rb") as original:
                original.seek(header.offset)
                write_text(stream, original, header.points, added)
        else:
            read_points = _mapped if header.kind == "binary" else _unpacked
            records = read_points(source, header)
            write_records(stream, records, _with_more(records.dtype, added), added)
    return out


def _check_size(path: Path, header: Header, size: int) -> None:
    """Compare the number of points with the size of the file."""
    present = size - header.offset
    least = header.points * header.point_bytes
    if header.kind == "ascii":  # a digit and a blank or line end for each, the last may lack it
        least = 2 * header.points * header.width - 1
    if header.kind == "binary_compressed":
        return  # the sizes that it declares are checked when it is unpacked
    if least > present:
        raise InputError(
            f"{path}: declares {header.points} points, at least {in_bytes(least)}, but holds "
            f"{in_bytes(present)}. Is it a cut-off copy?"
        )


def _mapped(path: Path, header: Header) -> Array:
    """Points of a binary file, as records of single numbers."""
    return np.asarray(np.memmap(path, header.flat, "r", header.offset, (header.points,)))


def _unpacked(path: Path, header: Header) -> Array:
    """Points of a compressed file, in which each field is a block of its own."""
    size = file_size(path)
    with path.open("rb") as stream:
        stream.seek(header.offset)
        sizes = stream.read(SIZES_BYTES)
        packed, unpacked = (int.from_bytes(sizes[i : i + 4], "little") for i in (0, 4))
        if header.offset + SIZES_BYTES + packed > size:
            raise InputError(
                f"{path}: declares {in_bytes(packed)} of compressed points but holds "
                f"{in_bytes(max(0, size - header.offset - SIZES_BYTES))}. Is it a cut-off copy?"
            )
        if unpacked != header.points * header.point_bytes:
            raise InputError(
                f"{path}: its points unpack to {in_bytes(unpacked)}, but {header.points} points of "
                f"{header.point_bytes} bytes were declared. It is damaged."
            )
        check_memory(str(path), packed + 2 * unpacked)
        data = decompress(str(path), stream.read(packed), unpacked)
    records = np.zeros(header.points, header.flat)
    place = 0
    for field in header.fields:
        n = header.points * field.n
        if field.name != PADDING:
            block = np.frombuffer(data, field.dtype, n, place).reshape(-1, field.n)
            for j, name in enumerate(field.columns):
                records[name] = block[:, j]
        place += n * field.dtype.itemsize
    return records


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


def _with_more(dtype: np.dtype[Any], added: dict[str, Array]) -> np.dtype[Any]:
    """Return a record type with more numbers at its end; gaps stay where they are."""
    place, names, formats, offsets = dtype.itemsize, [], [], []
    for name, (kind, offset, *_) in (dtype.fields or {}).items():
        names.append(name)
        formats.append(kind)
        offsets.append(offset)
    for name, values in added.items():
        names.append(name)
        formats.append(values.dtype)
        offsets.append(place)
        place += values.itemsize
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": place})

"""The container: a JSON header and plain arrays in an archive, checked before they are trusted."""

import hashlib
import io
import json
import math
import re
import zipfile
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError, ModelFileError

HEADER = "header"
LARGEST_HEADER = 2**26  # bytes; it holds names and single numbers, everything else is in arrays
STORED_KINDS = "biuf"  # kinds of arrays that are stored
EPOCH = (1980, 1, 1, 0, 0, 0)  # the date of all members, so that equal models give equal files
MAGIC = b"\x93NUMPY\x01\x00"  # of the .npy format, version 1.0
# What NumPy writes about a plain array. Its own reader also parses headers that it never writes,
# with a Python tokenizer.
DESCRIPTION = re.compile(
    rb"\{'descr': '([!-&(-~]*)', 'fortran_order': (True|False), 'shape': \(([0-9, ]*)\), \} *\n"
)

Arrays: TypeAlias = dict[str, Array]
Header: TypeAlias = dict[str, Any]


def write_archive(stream: IO[bytes], header: Header, arrays: Arrays) -> None:
    """Write header and arrays, with a checksum over both."""
    members = {name: npy_parts(array) for name, array in arrays.items()}
    header = {**header, "arrays": list(arrays)}
    header["sha256"] = digest(header, chain.from_iterable(members.values()))
    text = json.dumps(header).encode()
    if len(text) > LARGEST_HEADER:
        raise InputError(
            f"the names and numbers of the model take {len(text)} bytes; a model file holds up to "
            f"{LARGEST_HEADER}. Are there very long column names?"
        )
    first = npy_parts(np.frombuffer(text, dtype=np.uint8))
    with zipfile.ZipFile(stream, "w") as archive:
        for name, parts in {HEADER: first, **members}.items():
            info = zipfile.ZipInfo(f"{name}.npy", EPOCH)
            info.file_size = sum(map(len, parts))
            with archive.open(info, "w") as member:
                for part in parts:
                    member.write(part)


def read_members(path: Path) -> dict[str, bytes]:
    """Return all members as bytes, after checking the archive's directory."""
    if not path.is_file():
        raise ModelFileError("no such file. Check the name and the folder.")
    with zipfile.ZipFile(path) as archive:
        directory = archive.infolist()
        names = [info.filename for info in directory]
        if f"{HEADER}.npy" not in names:
            raise ModelFileError("not a model that perpend wrote: it has no header.")
        if len(set(names)) < len(names) or not all(name.endswith(".npy") for name in names):
            raise ModelFileError("has members that perpend does not write. Save the model again.")
        for info in directory:
            if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
                raise ModelFileError(
                    f"the member {info.filename!r} is compressed. A compressed file can expand "
                    "without end, so perpend neither writes nor reads it. Save the model again."
                )
        if sum(info.file_size for info in directory) > path.stat().st_size:
            raise ModelFileError("declares more data than the file holds. Is it a cut-off copy?")
        if archive.getinfo(f"{HEADER}.npy").file_size > LARGEST_HEADER + 1024:
            raise ModelFileError(f"its header is larger than {LARGEST_HEADER} bytes.")
        return {info.filename.removesuffix(".npy"): archive.read(info) for info in directory}


def parse_header(data: bytes) -> Header:
    """Return the header; duplicate names and constants like NaN are refused."""
    header = json.loads(
        parse_array(HEADER, data).tobytes(),
        object_pairs_hook=_without_twins,
        parse_constant=_no_constant,
    )
    if not isinstance(header, dict):
        raise ModelFileError("not a model that perpend wrote.")
    return header


def parse_arrays(header: Header, members: dict[str, bytes]) -> Arrays:
    """Return the arrays that the header names; there must be no others, and none changed."""
    if sorted(header["arrays"]) != sorted(members):
        raise ModelFileError("its members are not those that the header names. Save it again.")
    if header["sha256"] != digest(header, (members[key] for key in header["arrays"])):
        raise ModelFileError("is damaged (the checksum differs). Copy it again, or save it again.")
    return {name: parse_array(name, data) for name, data in members.items()}


def digest(header: Header, parts: Iterable[Any]) -> str:
    """Return the sha256 over the header, without its own entry, and all members, in order."""
    rest = {key: value for key, value in header.items() if key != "sha256"}
    found = hashlib.sha256(json.dumps(rest).encode())
    for part in parts:
        found.update(part)
    return found.hexdigest()


def npy_parts(array: Array) -> list[Any]:
    """Return an array in the .npy format: header and numbers, which are copied only if need be."""
    stream, about = io.BytesIO(), np.lib.format.header_data_from_array_1_0(array)
    np.lib.format.write_array_header_1_0(stream, about)
    numbers = np.ascontiguousarray(array.T if about["fortran_order"] else array)
    return [stream.getvalue(), numbers.reshape(-1).view(np.uint8)]


def parse_array(name: str, data: bytes) -> Array:
    """Parse the .npy format as `npy_parts` writes it, and allocate no more than there is."""
    start = len(MAGIC) + 2
    end = start + int.from_bytes(data[len(MAGIC) : start], "little")
    found = DESCRIPTION.fullmatch(data[start:end])
    if not data.startswith(MAGIC) or found is None:
        raise ModelFileError(f"the array {name!r} is in a form that perpend does not write.")
    kind, fortran_order, sizes = (part.decode("ascii") for part in found.groups())
    if re.fullmatch(rf"[<>|][{STORED_KINDS}][0-9]{{1,2}}", kind) is None:
        raise ModelFileError(
            f"the array {name!r} holds {kind!r} instead of numbers; perpend never loads a pickle."
        )
    dtype = np.dtype(kind)
    shape = tuple(int(size) for size in sizes.split(",") if size.strip())
    if math.prod(shape) * dtype.itemsize != len(data) - end:
        raise ModelFileError(f"the array {name!r} does not have the size that it declares.")
    values: Array = np.frombuffer(bytearray(data[end:]), dtype)
    return values.reshape(shape, order="F" if fortran_order == "True" else "C")


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ModelFileError("its header has the same name twice. Save the model again.")
    return dict(pairs)


def _no_constant(name: str) -> Any:
    raise ModelFileError(f"its header holds {name}, which is not a number. Save the model again.")

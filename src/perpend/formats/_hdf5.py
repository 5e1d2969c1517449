"""HDF5 files (``.h5 .hdf5 .he5``, and MATLAB's ``.mat`` of version 7.3), read by h5py.

A file is not trusted. Only values in the file itself are read: links to other files, virtual
datasets and external values are refused, and so are references, text and records. The declared size
of a dataset is compared with the stored one, and compressed values are unpacked by
:mod:`perpend.formats._hdf5_chunks`, which limits their size.

An array has the axes of the file, with two exceptions. MATLAB, whose first axis is the fastest,
stores height x width x bands as bands x width x height; this is undone. So is the order of PRISMA's
scenes, height x bands x width.
"""

import io
import re
from pathlib import Path
from typing import Any

import numpy as np

from perpend._files import writing
from perpend.exceptions import InputError
from perpend.formats._answer_path import answer_path
from perpend.formats._checks import (
    DAMAGE_ERRORS,
    REAL,
    as_floats,
    check_array,
    check_expansion,
    check_memory,
    file_size,
    float_bytes,
    in_bytes,
    quoted,
)
from perpend.formats._choice import Entry, choose
from perpend.formats._dataset import Answer, Dataset, Options
from perpend.formats._hdf5_chunks import load_chunked, packed_by
from perpend.formats._records import added_values, from_array
from perpend.formats._registry import optional_package

SIGNATURE = b"\x89HDF\r\n\x1a\n"
MATLAB = b"MATLAB 7.3"
HIDDEN = {"#refs#", "#subsystem#"}  # MATLAB's own
PRISMA = re.compile(r"/PRS_L\w+/Data Fields/\w+_Cube$")
MAX_OBJECTS = 10_000  # groups and datasets
NO_LINKS = "Links are not followed: name the array itself, or copy it into this file."


def read(path: Path, options: Options) -> Dataset:
    """Read one dataset of an HDF5 file; `variable` is its path inside, such as ``a/b``."""
    h5py = optional_package("h5py", path, "hdf5")
    size = file_size(path)
    _check_signature(path, size)
    try:
        with h5py.File(path, "r", locking=False) as file:
            return _read(path, file, size, options)
    except InputError:
        raise
    except DAMAGE_ERRORS as error:
        reason = quoted(str(error).splitlines()[0] if str(error) else type(error).__name__)
        raise InputError(
            f"{path}: not a readable HDF5 file ({reason}). Is it damaged or cut off?"
        ) from error


def write_answer(dataset: Dataset, answer: Answer, folder: Path) -> Path:
    """Write an HDF5 file of three datasets, each in the shape of the records."""
    import h5py

    path, image = answer_path(dataset, folder), io.BytesIO()
    with h5py.File(image, "w") as file:
        for name, values in added_values(dataset, answer).items():
            file.create_dataset(name, data=values, compression="gzip", shuffle=True)
    with writing(path) as stream:
        stream.write(image.getbuffer())
    return path


def is_hdf5(start: bytes) -> bool:
    """Whether a file that begins like this is HDF5; MATLAB puts 512 bytes before."""
    return start.startswith((SIGNATURE, MATLAB)) or start[512 : 512 + len(SIGNATURE)] == SIGNATURE


def _check_signature(path: Path, size: int) -> None:
    """Look for the signature where it may be: at 0, 512, 1024, 2048, ..."""
    with path.open("rb") as stream:
        place = 0
        while place < size:
            stream.seek(place)
            if stream.read(len(SIGNATURE)) == SIGNATURE:
                return
            place = max(512, 2 * place)
    raise InputError(f"{path}: does not begin like an HDF5 file. Is it cut off, or another format?")


def _read(path: Path, file: Any, size: int, options: Options) -> Dataset:
    """Choose a dataset, check it and load it."""
    with path.open("rb") as stream:
        is_matlab = stream.read(len(MATLAB)) == MATLAB
    found, links = _walk(path, file)
    entries = {name: _entry(item, is_matlab=is_matlab) for name, item in found.items()}
    wanted = None if options.variable is None else options.variable.strip("/")
    if wanted in links:
        raise InputError(f"{path}: {quoted(wanted)} is a link ({links[wanted]}). {NO_LINKS}")
    if not entries:
        raise InputError(f"{path}: there is no array in this file.")
    name = choose(path, wanted, entries)
    where = f"{path}, array {quoted(name)}"
    if entries[name].oddity:
        raise InputError(
            f"{where}: holds {entries[name].oddity}, not real numbers in this file. "
            "Save a plain array of floats instead."
        )
    item = found[name]
    _check(where, item, size, moved=is_matlab)
    values = as_floats(load_chunked(where, item) if packed_by(item) else item[()])
    if is_matlab:
        values = values.T
    elif PRISMA.search(f"/{name}"):
        values = np.moveaxis(values, 1, -1)
    return from_array(
        values,
        path,
        "mat" if path.suffix.lower() == ".mat" else "hdf5",
        stored_dtype=str(item.dtype),
        wanted=options.columns,
    )


def _walk(path: Path, file: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """Find all datasets by their names, and all links, which are not followed."""
    import h5py

    found: dict[str, Any] = {}
    links: dict[str, str] = {}
    waiting = [("", file["/"])]
    seen = {_address(file["/"])}
    while waiting:
        prefix, group = waiting.pop()
        for name in group:
            link = group.get(name, getlink=True)
            full = f"{prefix}{name}"
            if not isinstance(link, h5py.HardLink):
                other = f"{getattr(link, 'filename', '')} {link.path}".strip()
                links[full] = f"to {quoted(other)}"
                continue
            item = group[name]
            if isinstance(item, h5py.Dataset):
                found[full] = item
            elif isinstance(item, h5py.Group) and full not in HIDDEN and _address(item) not in seen:
                seen.add(_address(item))  # groups may hold one another
                waiting.append((f"{full}/", item))
            if len(found) + len(seen) + len(links) > MAX_OBJECTS:
                raise InputError(
                    f"{path}: has more than {MAX_OBJECTS} arrays. Copy the one you need to a file."
                )
    return dict(sorted(found.items())), links


def _address(item: Any) -> Any:
    import h5py

    return h5py.h5o.get_info(item.id).addr


def _entry(item: Any, *, is_matlab: bool) -> Entry:
    """What a dataset declares, without reading its values."""
    try:
        shape = item.shape
        oddity = _oddity(item) or (_matlab_oddity(item) if is_matlab else "")
    except DAMAGE_ERRORS:
        return Entry(None)
    if shape is None:
        return Entry((), oddity or "nothing")
    return Entry(tuple(reversed(shape)) if is_matlab else tuple(shape), oddity)


def _oddity(item: Any) -> str:
    """What a dataset holds instead of real numbers in the file, if so."""
    try:
        kind = item.dtype.kind
    except (TypeError, ValueError):  # no equivalent in NumPy
        return "an unknown type"
    if kind not in REAL:
        names = {"O": "text or references", "S": "text", "V": "records", "c": "complex numbers"}
        return names.get(kind, f"values of type {quoted(str(item.dtype))}")
    if item.is_virtual:
        return "parts of other arrays (a virtual dataset)"
    return "values that lie in another file" if item.external else ""


def _matlab_oddity(item: Any) -> str:
    """What an array of MATLAB holds instead of numbers, if so."""
    if "MATLAB_empty" in item.attrs:
        return "nothing"
    kind = item.attrs.get("MATLAB_class", b"double")
    kind = kind.decode("latin-1") if isinstance(kind, bytes) else str(kind)
    return f"values of MATLAB's type {quoted(kind)}" if kind in ("char", "cell", "struct") else ""


def _check(where: str, item: Any, size: int, *, moved: bool) -> None:
    """Compare the declared size with the stored one, before anything is allocated."""
    check_array(where, item.shape, item.dtype)
    stored, plain = item.id.get_storage_size(), item.size * item.dtype.itemsize
    if stored > size or (item.chunks is None and 0 < stored < plain):
        raise InputError(
            f"{where}: declares {in_bytes(max(stored, plain))} in a file of {in_bytes(size)}. "
            "Is it damaged or cut off?"
        )
    check_expansion(where, stored, plain)
    if item.chunks is not None:
        check_expansion(where, size, int(np.prod(item.chunks, dtype=float)) * item.dtype.itemsize)
    copies = 8 * item.size if moved and len(item.shape) == 3 else 0
    check_memory(where, float_bytes(item.shape, item.dtype) + copies)

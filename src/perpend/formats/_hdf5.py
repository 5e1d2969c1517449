"""HDF5 files (``.h5 .hdf5 .he5``, and MATLAB's ``.mat`` of version 7.3), read by h5py.

A file is not trusted. Only values in the file itself are read: links to other files, virtual
datasets and external values are refused, and so are references, text and records. The declared size
of a dataset is compared with the stored one. The C library unpacks gzip without a limit, once for
every time that a file names the filter: a file of 20 kB may take 20 GB. So chunks that are packed
by gzip are unpacked piece by piece first, to see that they become as large as they declare.

An array has the axes of the file, with two exceptions. MATLAB, whose first axis is the fastest,
stores height x width x bands as bands x width x height; this is undone. So is the order of PRISMA's
scenes, height x bands x width.
"""

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from perpend._files import drafted
from perpend.exceptions import InputError
from perpend.formats import _checks as check
from perpend.formats._checks import REAL, in_bytes, quoted
from perpend.formats._choice import Entry, choose
from perpend.formats._damage import DAMAGE_ERRORS, damage_named
from perpend.formats._dataset import Dataset, Labelled, Options
from perpend.formats._packed import of_zlib
from perpend.formats._records import added_values
from perpend.formats._registry import optional_package
from perpend.formats._stream import Blocks, chunked_blocks

SIGNATURE = b"\x89HDF\r\n\x1a\n"
MATLAB = b"MATLAB 7.3"
HIDDEN = {"#refs#", "#subsystem#"}  # MATLAB's own
PRISMA = re.compile(r"/PRS_L\w+/Data Fields/\w+_Cube$")
MAX_OBJECTS = 10_000  # groups and datasets
GZIP, SHUFFLE, FLETCHER32 = 1, 2, 3
# for these, the C library limits the size of a chunk: szip, nbit, scaleoffset, lzf
BOUNDED = {SHUFFLE, FLETCHER32, 4, 5, 6, 32000}
CHECKSUM_BYTES = 4
UNREADABLE = "not a readable HDF5 file"
NO_LINKS = "Links are not followed: name the array itself, or copy it into this file."


def opened(path: Path, options: Options) -> Blocks:
    """Open one dataset of an HDF5 file; `variable` is its path inside, such as ``a/b``."""
    h5py = optional_package("h5py", path, "hdf5")
    if not is_hdf5(path):
        raise InputError(f"{path}: does not begin like an HDF5 file. Cut off, or another format?")
    with (
        damage_named(path, UNREADABLE),
        h5py.File(path, "r", locking=False) as file,
    ):
        return _opened(path, file, options)


def write_labelled(dataset: Dataset, labelled: Labelled, path: Path) -> Path:
    """Write an HDF5 file of three datasets, each in the shape of the records."""
    import h5py

    with drafted(path) as draft, h5py.File(draft, "w") as file:
        for name, values in added_values(dataset, labelled).items():
            file.create_dataset(name, data=values, compression="gzip", shuffle=True)
    return path


def is_hdf5(path: Path) -> bool:
    """Whether the signature is where it may be: at 0, 512 (in MATLAB's files), 1024, 2048, ..."""
    place, size = 0, path.stat().st_size
    with path.open("rb") as stream:
        while place < size:
            stream.seek(place)
            if stream.read(len(SIGNATURE)) == SIGNATURE:
                return True
            place = max(512, 2 * place)
    return False


def is_matlab(path: Path) -> bool:
    """Whether a file begins like MATLAB's of version 7.3."""
    with path.open("rb") as stream:
        return stream.read(len(MATLAB)) == MATLAB


def _opened(path: Path, file: Any, options: Options) -> Blocks:
    """Choose a dataset and check it."""
    from_matlab = is_matlab(path)
    found, links = _walk(path, file)
    entries = {name: _entry(item, from_matlab=from_matlab) for name, item in found.items()}
    wanted = None if options.variable is None else options.variable.strip("/")
    if wanted in links:
        raise InputError(f"{path}: {quoted(wanted)} is a link ({links[wanted]}). {NO_LINKS}")
    name, where = choose(path, wanted, entries)
    if entries[name].oddity:
        raise InputError(
            f"{where}: holds {entries[name].oddity}, not real numbers in this file. "
            "Save a plain array of floats instead."
        )
    item = found[name]
    _check(where, item, path.stat().st_size)
    _check_chunks(where, item)
    axes = tuple(range(item.ndim))
    if from_matlab:
        axes = axes[::-1]
    elif PRISMA.search(f"/{name}") and item.ndim == 3:
        axes = (0, 2, 1)

    @contextmanager
    def array() -> Iterator[Any]:
        import h5py

        with damage_named(path, UNREADABLE), h5py.File(path, "r", locking=False) as again:
            yield again[name]

    return chunked_blocks(path, options, item, axes, array, what=UNREADABLE)


def _walk(path: Path, file: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """Find all datasets by their names, and all links, which are not followed."""
    from h5py import Dataset, Group, HardLink, h5o

    found: dict[str, Any] = {}
    links: dict[str, str] = {}
    waiting = [("", file["/"])]
    seen = {h5o.get_info(file.id).addr}
    while waiting:
        prefix, group = waiting.pop()
        for name in group:
            link = group.get(name, getlink=True)
            full = f"{prefix}{name}"
            if not isinstance(link, HardLink):
                other = f"{getattr(link, 'filename', '')} {link.path}".strip()
                links[full] = f"to {quoted(other)}"
                continue
            item = group[name]
            address = h5o.get_info(item.id).addr
            if isinstance(item, Dataset):
                found[full] = item
            elif isinstance(item, Group) and full not in HIDDEN and address not in seen:
                seen.add(address)  # groups may hold one another
                waiting.append((f"{full}/", item))
            if len(found) + len(seen) + len(links) > MAX_OBJECTS:
                raise InputError(
                    f"{path}: has more than {MAX_OBJECTS} arrays. Copy the one you need to a file."
                )
    return dict(sorted(found.items())), links


def _entry(item: Any, *, from_matlab: bool) -> Entry:
    """What a dataset declares, without reading its values."""
    try:
        shape = item.shape
        oddity = _oddity(item, from_matlab=from_matlab)
    except DAMAGE_ERRORS:
        return Entry(None)
    if shape is None:
        return Entry((), oddity or "nothing")
    return Entry(tuple(reversed(shape)) if from_matlab else tuple(shape), oddity)


def _oddity(item: Any, *, from_matlab: bool) -> str:
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
    if item.external:
        return "values that lie in another file"
    if not from_matlab:
        return ""
    kind = item.attrs.get("MATLAB_class", b"double")
    kind = kind.decode("latin-1") if isinstance(kind, bytes) else str(kind)
    odd = f"values of MATLAB's type {quoted(kind)}" if kind in ("char", "cell", "struct") else ""
    return "nothing" if "MATLAB_empty" in item.attrs else odd


def _check(where: str, item: Any, size: int) -> None:
    """Compare the declared size with the stored one, before anything is allocated."""
    check.array(where, item.shape, item.dtype)
    stored, plain = item.id.get_storage_size(), item.size * item.dtype.itemsize
    if stored > size or (item.chunks is None and 0 < stored < plain):
        raise InputError(
            f"{where}: declares {in_bytes(max(stored, plain))} in a file of {in_bytes(size)}. "
            "Is it damaged or cut off?"
        )
    check.expansion(where, stored, plain)
    if item.chunks is not None:
        check.expansion(where, size, int(np.prod(item.chunks, dtype=float)) * item.dtype.itemsize)


def _check_chunks(where: str, item: Any) -> None:
    """Refuse chunks that do not become as large as they declare, and unknown compression."""
    settings = item.id.get_create_plist()
    filters = [settings.get_filter(i) for i in range(settings.get_nfilters())]
    codes = [code for code, *_ in filters]
    if GZIP not in codes and set(codes) <= BOUNDED:
        return
    place = codes.index(GZIP) if GZIP in codes else len(codes)
    before, behind = codes[:place], codes[place + 1 :]
    if not set(before) <= {SHUFFLE, FLETCHER32} or not set(behind) <= {FLETCHER32}:
        names = ", ".join(quoted(name.decode("latin-1")) for *_, name in filters)
        raise InputError(
            f"{where}: is compressed in an unknown way ({names}). Save it with gzip or lzf, or "
            "uncompressed."
        )
    size = math.prod(item.chunks) * item.id.get_type().get_size()
    size += CHECKSUM_BYTES * before.count(FLETCHER32)
    chunks: list[tuple[int, ...]] = []
    item.id.chunk_iter(lambda chunk: chunks.append(chunk.chunk_offset))
    for begin in chunks:
        if any(not 0 <= b < n for b, n in zip(begin, item.shape, strict=True)):
            continue  # left from a time when the dataset was larger
        mask, raw = item.id.read_direct_chunk(begin)  # bits of the mask: filters not applied
        packed = raw[: len(raw) - CHECKSUM_BYTES * len(behind)]
        if size != (len(packed) if mask >> place & 1 else of_zlib(packed, size)):
            raise InputError(f"{where}: a chunk is not of the size it declares. It is damaged.")

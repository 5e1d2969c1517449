"""Zarr 2 and 3: a folder ``.zarr`` or a ``.zip`` of it, read by zarr.

A store is not trusted. The metadata of its arrays are read here first. Only arrays of real numbers
with known compression are given to zarr, after their declared sizes were compared with the stored
bytes, and each chunk with its unpacked size (:mod:`perpend.formats._packed`). Links to other
machines are never followed.
"""

import json
import math
import secrets
import shutil
import stat
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from perpend.exceptions import InputError
from perpend.formats import _checks as check
from perpend.formats._checks import quoted
from perpend.formats._choice import Entry, choose
from perpend.formats._damage import DAMAGE_ERRORS, damage_named
from perpend.formats._dataset import Dataset, Labelled, Options
from perpend.formats._packed import UNPACKED_SIZE
from perpend.formats._records import added_values
from perpend.formats._registry import optional_package
from perpend.formats._stream import Blocks, chunked_blocks

METADATA = {"zarr.json": 3, ".zarray": 2}
PLAIN_CODECS = {"bytes", "transpose", "crc32c"}  # of Zarr 3: these unpack nothing
PLAIN_FILTERS = {"shuffle", "delta", "fixedscaleoffset", "crc32c"}  # of Zarr 2
FEW_CHUNKS = 10_000  # so many may always be declared,
MAX_SPARSITY = 100  # and so many times the stored ones
WIDER = 8  # filters may turn a byte into a float
SLACK = 1 << 18  # bytes by which the bound of a small chunk may be too high
MAX_FILES = 1_000_000
UNREADABLE = "not a readable Zarr store"
BAD_ZARR = (*DAMAGE_ERRORS, ImportError)  # zarr and its codecs raise these


class _Meta(NamedTuple):
    """What an array declares."""

    version: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    chunks: tuple[int, ...]
    packers: list[str]  # at most one; none if chunks are not packed
    filtered: bool  # the numbers were changed before they were packed


class _Store:
    """The files of a store: in a folder, without links, or in a zip archive."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.archive = None if path.is_dir() else zipfile.ZipFile(path)
        self.keys = self._members() if self.archive else self._files()  # names and sizes

    def _files(self) -> dict[str, int]:
        keys: dict[str, int] = {}
        waiting = [self.path]
        while waiting:
            for item in sorted(waiting.pop().iterdir()):
                status = item.lstat()
                if stat.S_ISDIR(status.st_mode):
                    waiting.append(item)
                elif stat.S_ISREG(status.st_mode):
                    keys[item.relative_to(self.path).as_posix()] = status.st_size
                else:
                    what = f"{quoted(item.name)} is a link or not a regular file"
                    raise InputError(f"{self.path}: {what}. Copy the data itself.")
                if len(keys) + len(waiting) > MAX_FILES:
                    what = f"has more than {MAX_FILES} files"
                    raise InputError(f"{self.path}: {what}. Use larger chunks.")
        return keys

    def _members(self) -> dict[str, int]:
        keys: dict[str, int] = {}
        size = self.path.stat().st_size
        for member in self.archive.infolist() if self.archive else ():
            where = f"{self.path}, {quoted(member.filename)}"
            if member.filename in keys:
                raise InputError(f"{where}: is there twice. Write the archive anew.")
            if not member.is_dir():
                check.packing(where, member, "Zarr")
                check.unpacking(where, member, size)
                keys[member.filename] = member.file_size
        check.expansion(str(self.path), size, sum(keys.values()))
        return keys

    def get(self, key: str, limit: int = -1) -> bytes:
        """Content of a file, up to `limit` bytes."""
        opened = self.archive.open(key) if self.archive else (self.path / key).open("rb")
        with opened as stream:
            return stream.read(limit)

    def close(self) -> None:
        """Close the archive."""
        if self.archive:
            self.archive.close()


def opened(path: Path, options: Options) -> Blocks:
    """Open one array of a Zarr store; `variable` is its path inside, such as ``a/b``."""
    optional_package("zarr", path, "zarr")
    with damage_named(path, UNREADABLE, BAD_ZARR), closing(_Store(path)) as store:
        found = _arrays(store)
        wanted = None if options.variable is None else options.variable.strip("/")
        entries = {name: _entry(meta) for name, meta in found.items()}
        name, where = choose(path, wanted, entries, "store")
        meta = found[name]
        if not isinstance(meta, _Meta):
            raise InputError(f"{where}: {meta or 'its metadata cannot be read'}. Write it anew.")
        check.array(where, meta.shape, meta.dtype)
        _check(where, store, name, meta)
    axes, array = tuple(range(len(meta.shape))), partial(_array, path, name, meta)
    about = {"what": UNREADABLE, "origin": meta.version}
    return chunked_blocks(path, options, meta, axes, array, **about)


def write_labelled(dataset: Dataset, labelled: Labelled, path: Path) -> Path:
    """Write a group of three arrays, each in the shape of the records."""
    import zarr

    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    zipped = path.suffix.lower() == ".zip"
    store = zarr.storage.ZipStore(draft, mode="w") if zipped else zarr.storage.LocalStore(draft)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            group = zarr.create_group(store, zarr_format=dataset.origin)
            for name, values in added_values(dataset, labelled).items():
                array = group.create_array(name, shape=values.shape, dtype=values.dtype)
                array[...] = values
            store.close()
        if path.is_dir():
            shutil.rmtree(path)
        draft.replace(path)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        draft.unlink(missing_ok=True)
    return path


def _arrays(store: _Store) -> dict[str, _Meta | str]:
    """All arrays by name; of those that cannot be read, the reason."""
    found: dict[str, _Meta | str] = {}
    for key in store.keys:
        folder, _, file = key.rpartition("/")
        version = METADATA.get(file)
        if version is None:
            continue
        try:
            content = json.loads(store.get(key, limit=min(1 << 24, store.keys[key])))
            if version == 3 and content.get("node_type") != "array":
                continue
            found[folder] = _checked(_parse_2(content) if version == 2 else _parse_3(content))
        except InputError as error:
            found[folder] = str(error)
        except (*BAD_ZARR, RecursionError):
            found[folder] = ""
    return dict(sorted(found.items()))


def _entry(meta: _Meta | str) -> Entry:
    return Entry.of(meta.shape, meta.dtype) if isinstance(meta, _Meta) else Entry(None)


def _parse_2(content: dict[str, Any]) -> _Meta:
    if not isinstance(content["dtype"], str) or np.dtype(content["dtype"]).hasobject:
        raise InputError("holds records or Python objects, not real numbers")
    filters = [str(codec["id"]) for codec in content.get("filters") or []]
    packers = [code for code in filters if code not in PLAIN_FILTERS]
    if content.get("compressor"):
        packers.append(str(content["compressor"]["id"]))
    extent = tuple(content["shape"]), np.dtype(content["dtype"]), tuple(content["chunks"])
    return _Meta(2, *extent, packers, bool(filters))


def _parse_3(content: dict[str, Any]) -> _Meta:
    if not isinstance(content["data_type"], str):
        raise InputError(f"holds values of type {quoted(str(content['data_type']))}")
    if content["chunk_grid"]["name"] != "regular" or content.get("storage_transformers"):
        raise InputError("is stored in an unknown way")
    packers = [str(c["name"]) for c in content["codecs"] if c["name"] not in PLAIN_CODECS]
    chunks = tuple(content["chunk_grid"]["configuration"]["chunk_shape"])
    return _Meta(
        3, tuple(content["shape"]), np.dtype(content["data_type"]), chunks, packers, filtered=False
    )


def _checked(meta: _Meta) -> _Meta:
    """Refuse a shape or a compression that cannot be read."""
    shape, chunks, packers = meta.shape, meta.chunks, meta.packers
    whole = all(type(n) is int for n in (*shape, *chunks))
    if not whole or len(shape) != len(chunks) or min(chunks, default=1) < 1:
        raise InputError("declares an impossible shape")
    if not set(packers) <= set(UNPACKED_SIZE) or len(packers) > 1:
        raise InputError(f"is compressed in an unknown way ({', '.join(map(quoted, packers))})")
    return meta


def _check(where: str, store: _Store, name: str, meta: _Meta) -> None:
    """Compare the declared size with the stored one, before anything is allocated."""
    prefix = f"{name}/" if name else ""
    sizes = {
        key: size
        for key, size in store.keys.items()
        if key.startswith(prefix) and not key.rpartition("/")[2].startswith((".z", "zarr."))
    }
    stored, chunk = sum(sizes.values()), math.prod(meta.chunks) * meta.dtype.itemsize
    declared = math.prod(-(-n // c) for n, c in zip(meta.shape, meta.chunks, strict=True))
    if declared > max(FEW_CHUNKS, MAX_SPARSITY * len(sizes)):
        what = f"declares {declared} chunks, but {len(sizes)} files are stored"
        raise InputError(f"{where}: {what}. Is it incomplete?")
    check.expansion(where, stored, declared * chunk)  # chunks at the edges are stored whole
    limit = (WIDER if meta.filtered else 1) * chunk + SLACK
    for key in sizes if meta.packers else ():
        if UNPACKED_SIZE[meta.packers[0]](store.get(key)) > limit:
            what = f"chunk {quoted(key)} would become larger than declared"
            raise InputError(f"{where}: {what}. The store is damaged.")


@contextmanager
def _array(path: Path, name: str, meta: _Meta) -> Iterator[Any]:
    """Let zarr open one array."""
    from zarr import open_array, storage

    kind = storage.LocalStore if path.is_dir() else storage.ZipStore
    with (
        damage_named(path, UNREADABLE, BAD_ZARR),
        closing(kind(path, read_only=True)) as store,
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # remarks on parts of the format that may change
            array = open_array(store, path=name, mode="r", zarr_format=meta.version)
        if tuple(array.shape) != meta.shape or array.dtype != meta.dtype:
            raise ValueError("zarr reads other metadata")
        yield array

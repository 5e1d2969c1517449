"""The files of a Zarr store: in a folder or in a zip archive."""

import stat
import zipfile
from pathlib import Path
from typing import Any, Protocol

from perpend.exceptions import InputError
from perpend.formats._checks import check_expansion, quoted

MAX_FILES = 1_000_000


class Store(Protocol):
    """Names, sizes and contents of the files, and a way to open an array by zarr."""

    keys: dict[str, int]  # names with slashes, and sizes in bytes

    def get(self, key: str, limit: int | None) -> bytes:
        """Content of a file; up to `limit` bytes."""

    def open_array(self, name: str, version: int) -> Any:
        """Open an array with zarr."""

    def close(self) -> None:
        """Close what is open."""


class FolderStore:
    """A folder of regular files; links are refused."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.keys: dict[str, int] = {}
        waiting = [path]
        while waiting:
            for item in sorted(waiting.pop().iterdir()):
                status = item.lstat()
                if stat.S_ISDIR(status.st_mode):
                    waiting.append(item)
                elif stat.S_ISREG(status.st_mode):
                    self.keys[item.relative_to(path).as_posix()] = status.st_size
                else:
                    raise InputError(
                        f"{path}: {quoted(item.name)} is a link or not a regular file. "
                        "Copy the data itself."
                    )
                if len(self.keys) + len(waiting) > MAX_FILES:
                    raise InputError(f"{path}: has more than {MAX_FILES} files. Use larger chunks.")

    def get(self, key: str, limit: int | None) -> bytes:
        """Content of a file."""
        with (self.path / key).open("rb") as stream:
            return stream.read(-1 if limit is None else limit)

    def open_array(self, name: str, version: int) -> Any:
        """Open an array by zarr."""
        import zarr

        store = zarr.storage.LocalStore(self.path, read_only=True)
        return zarr.open_array(store, path=name, mode="r", zarr_format=version)

    def close(self) -> None:
        """Nothing is open."""


class ZippedStore:
    """A zip archive; its members are checked in its directory before they are unpacked."""

    def __init__(self, path: Path, size: int) -> None:
        self.path = path
        self.archive = zipfile.ZipFile(path)
        self.keys: dict[str, int] = {}
        self.opened: Any = None
        for member in self.archive.infolist():
            if member.is_dir():
                continue
            where = f"{path}, {quoted(member.filename)}"
            if member.filename in self.keys:
                raise InputError(f"{where}: is there twice. Write the archive anew.")
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise InputError(f"{where}: is compressed in an unusual way. Write it anew.")
            if member.compress_size > size:
                raise InputError(f"{where}: larger than the archive itself. It is damaged.")
            check_expansion(where, member.compress_size, member.file_size)
            self.keys[member.filename] = member.file_size
        check_expansion(str(path), size, sum(self.keys.values()))

    def get(self, key: str, limit: int | None) -> bytes:
        """Content of a member."""
        with self.archive.open(key) as stream:
            return stream.read(-1 if limit is None else limit)

    def open_array(self, name: str, version: int) -> Any:
        """Open an array by zarr."""
        import zarr

        self.opened = zarr.storage.ZipStore(self.path, mode="r", read_only=True)
        return zarr.open_array(self.opened, path=name, mode="r", zarr_format=version)

    def close(self) -> None:
        """Close the archive, and zarr's own view of it."""
        self.archive.close()
        if self.opened is not None:
            self.opened.close()

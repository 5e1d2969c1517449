"""Text files that may be packed by gzip: opened the same way, and never larger than they may be."""

import gzip
import io
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from perpend.exceptions import InputError
from perpend.formats import _checks as check

MAGIC = b"\x1f\x8b"
DAMAGE = (gzip.BadGzipFile, EOFError, zlib.error)


class _Counted(io.RawIOBase):
    """The content of a packed file; one that expands far more than text does is refused."""

    def __init__(self, path: Path) -> None:
        self._path, self._size, self._read = path, path.stat().st_size, 0
        self._stream = gzip.open(path, "rb")  # noqa: SIM115  closed below

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            n = self._stream.readinto(buffer)
        except DAMAGE as error:
            raise InputError(
                f"{self._path}: cannot be unpacked ({error}). Is it a cut-off copy?"
            ) from error
        self._read += n
        check.expansion(str(self._path), self._size, self._read)
        return n

    def close(self) -> None:
        self._stream.close()
        super().close()


def is_packed(path: Path) -> bool:
    """Whether a file begins as those of gzip do."""
    with path.open("rb") as stream:
        return stream.read(len(MAGIC)) == MAGIC


def unpacked(path: Path) -> IO[bytes]:
    """Open a file that may be packed."""
    return io.BufferedReader(_Counted(path), 1 << 20) if is_packed(path) else path.open("rb")


def plain_size(path: Path) -> int:
    """Return the bytes of the content: of a packed file, what its last bytes say."""
    size = path.stat().st_size
    if not is_packed(path):
        return size
    with path.open("rb") as stream:
        stream.seek(-4, io.SEEK_END)
        return max(size, int(struct.unpack("<I", stream.read(4))[0]))


@contextmanager
def packed(stream: IO[bytes], path: Path) -> Iterator[IO[bytes]]:
    """Yield a stream to write to, packed if the name of the file ends so; always the same bytes."""
    if path.suffix.lower() != ".gz":
        yield stream
        return
    with gzip.GzipFile(fileobj=stream, mode="wb", filename="", mtime=0) as packer:
        yield packer  # type: ignore[misc]

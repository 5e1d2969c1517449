"""What one entry of the catalogue says, and the good files that bad ones are made from."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

FIT = ("fit", "{}", "-o", "out", "--no-report")
APPLY = ("apply", "model.npz", "{}", "-o", "out")
ROWS = np.random.default_rng(0).standard_normal((20, 4))

NO_PERMISSION = "no permission"

Make = Callable[[Path], object]  # writes whatever the command needs to a path


class Case(NamedTuple):
    """A command that must end with this exit code and a line that says this."""

    name: str
    args: tuple[str, ...]
    code: int
    says: str
    make: Make | None = None  # is given the path of the input
    path: str = ""  # of the input
    stdin: bytes | None = None
    without: str = ""  # a package that is not installed
    needs: str = ""  # a package without which the case is skipped
    forbidden: bool = False  # it is about permissions, which root does not know


def bad(
    what: str,
    path: str,
    content: bytes | str | Make | None,
    says: str,
    *options: str,
    code: int = 3,
    command: tuple[str, ...] = FIT,
    without: str = "",
    needs: str = "",
) -> Case:
    """A file that cannot be used; `content` is what is in it, or makes it."""
    args = tuple(path if arg == "{}" else arg for arg in command) + options
    make = content if callable(content) or content is None else writer(content)
    forbidden = what == NO_PERMISSION
    name = f"{path[:40]}: {what}"
    return Case(name, args, code, says, make, path, None, without, needs, forbidden)


def usage(what: str, args: str | tuple[str, ...], says: str, code: int = 2) -> Case:
    """A command that cannot be understood."""
    words = tuple(args.split()) if isinstance(args, str) else args
    return Case(f"usage: {what}", words, code, says)


def piped(what: str, stdin: bytes, says: str, *options: str, code: int = 3) -> Case:
    """Something on standard input that cannot be used."""
    args = tuple("-" if arg == "{}" else arg for arg in FIT) + options
    return Case(f"stdin: {what}", args, code, says, stdin=stdin)


def writer(content: bytes | str) -> Make:
    """Write this."""
    data = content.encode() if isinstance(content, str) else content
    return lambda path: path.write_bytes(data)


def npy(array: np.ndarray, *, allow_pickle: bool = False) -> bytes:
    """The bytes of a .npy file."""
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=allow_pickle)
    return stream.getvalue()


def npz(*, compressed: bool = False, **arrays: np.ndarray) -> bytes:
    """The bytes of a .npz file."""
    stream = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(stream, **arrays)
    return stream.getvalue()


def patched(data: bytes, old: bytes, new: bytes) -> bytes:
    """Replace bytes that must be there."""
    assert old in data
    return data.replace(old, new, 1)

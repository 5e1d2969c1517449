"""Damaged files: what other libraries raise on them, and what users read."""

import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perpend.exceptions import InputError, PerpendError
from perpend.formats._checks import clean

# what other libraries may raise on damaged input; their own errors are among these
DAMAGE_ERRORS = (
    *(ValueError, TypeError, LookupError, EOFError, OSError, AttributeError, RuntimeError),
    *(ArithmeticError, AssertionError, MemoryError, SystemError, struct.error, zlib.error),
    zipfile.BadZipFile,
)


@contextmanager
def damage_named(
    path: Path, what: str, errors: tuple[type[BaseException], ...] = DAMAGE_ERRORS
) -> Iterator[None]:
    """Turn the errors of another library about a damaged file into an InputError."""
    try:
        yield
    except (PerpendError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except errors as error:
        if isinstance(error, OSError) and error.errno:  # of the system: a full disk, no permission
            raise
        reason = str(error.__cause__ or error).replace(str(path.absolute()), path.name)
        reason = clean(reason) or type(error).__name__
        raise InputError(
            f'{path}: {what} ("{reason}"). Is it damaged, cut off, or another format?'
        ) from error


def changed(path: str | Path) -> InputError:
    """Return the error about a file that is not the one that was read."""
    return InputError(f"{path}: has changed since it was read. Read it again.")

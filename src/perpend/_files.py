"""Files that appear only when they are complete, and folders for drafts of them."""

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file for writing that appears under its name only when it is complete.

    After a crash, a full disk or an interruption the old file is still there.
    """
    with drafted(path) as draft, draft.open("xb") as stream:
        yield stream
        stream.flush()
        os.fsync(stream.fileno())


def write(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Write a whole file in this manner; text as UTF-8."""
    with writing(path) as stream:
        stream.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def drafted(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the name of a file to write in the same manner, if another library opens it."""
    path = Path(path)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        yield draft
        draft.replace(path)
    except OSError as error:
        # The name of the draft would mean nothing to users.
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    finally:
        with suppress(OSError):
            draft.unlink()


@contextmanager
def draft_folder(folder: Path) -> Iterator[Path]:
    """Yield a hidden folder inside another one, which is removed afterwards.

    Those of processes that were killed are removed before.
    """
    for left in folder.glob(".perpend-????????"):
        with suppress(OSError), _locked(left):
            shutil.rmtree(left)
    draft = Path(tempfile.mkdtemp(prefix=".perpend-", dir=folder))
    try:
        with ExitStack() as stack:
            with suppress(OSError):
                stack.enter_context(_locked(draft))
            yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a folder until this process ends, if no other process has; an OSError says so."""
    place = os.open(folder, os.O_RDONLY)  # an error on Windows, which has no such locks
    try:
        import fcntl

        fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(place)

"""Files that appear under their name only when they are complete."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from perpend.formats._dataset import Dataset
from perpend.formats._registry import BY_NAME


def answer_path(dataset: Dataset, folder: Path) -> Path:
    """Name of the answer: that of the source, with ``-answer`` before the suffix."""
    source = Path(dataset.source)
    suffixes = BY_NAME[dataset.format].suffixes
    suffix = source.suffix if source.suffix.lower() in suffixes else suffixes[0]
    return folder / f"{source.stem}-answer{suffix}"


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file for writing that appears under its name only when it is complete.

    A crash, a full disk or an interruption leaves what was there before.
    """
    path = Path(path)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with draft.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(path)
    except OSError as error:
        # The name of the draft would tell users nothing.
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    finally:
        with suppress(OSError):
            draft.unlink()

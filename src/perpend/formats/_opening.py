"""From a path and what the caller wants to the blocks of a file; its format opens them."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from perpend.exceptions import InputError
from perpend.formats._dataset import Options
from perpend.formats._notation import Notation
from perpend.formats._registry import (
    ARRAYS,
    BY_NAME,
    BY_SUFFIX,
    FOLDERS,
    SEVERAL,
    TABLES,
    TEXT,
    Format,
    suffix_of,
)

if TYPE_CHECKING:
    from perpend.formats._stream import Blocks


def opened(
    path: str | os.PathLike[str],
    *,
    variable: str | None = None,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    decimal: str = ".",
    thousands: str | None = None,
    transpose: bool = False,
    skip_rows: int | None = None,
    missing_values: Sequence[float] = (),
    format: str | None = None,  # noqa: A002  the natural word
) -> "Blocks":
    """Check a file before it is read: `dataset` reads all, `ready` prepares for blocks.

    The parameters are those of `perpend.formats.read`.
    """
    from perpend.formats import _checks as check
    from perpend.formats._checks import file_size, quoted

    path = Path(path)
    known = BY_NAME.get(format) if format is not None else BY_SUFFIX.get(suffix_of(path))
    with system_errors(path):
        if known is None and format is None and path.is_dir():
            known = _in_folder(path)
        if not path.is_dir() or known is None or known.name not in FOLDERS:
            file_size(path)
        if known is None:
            wrong = quoted(suffix_of(path) if format is None else format)
            those = BY_SUFFIX if format is None else BY_NAME
            raise InputError(
                f"{path}: cannot read files of type {wrong}. "
                f"Known types: {', '.join(sorted(those))}."
            )
        if variable is not None and known.name not in SEVERAL:
            raise InputError(
                f"{path}: holds a single array, so there is no variable {quoted(variable)} to "
                "choose. Leave it out."
            )
        if transpose:
            check.transposable(path, known.name in {*ARRAYS, *TEXT})
        notation = Notation(decimal, thousands)
        if not notation.makes_sense:
            raise InputError(
                f"decimal={decimal!r} and thousands={thousands!r}; decimal must be a point or a "
                "comma, and thousands another of: a comma, a point, a blank, an apostrophe."
            )
        chosen = None if columns is None else tuple(columns)
        missing = _of_text(path, known.name, skip_rows, missing_values)
        how: Any = {"skip_rows": skip_rows, "missing_values": missing}
        options = Options(variable, chosen, known.name, tuple(exclude), notation, transpose, **how)
    return opened_as(path, options)


def _of_text(
    path: Path, form: str, skip_rows: int | None, missing_values: Sequence[float]
) -> tuple[float, ...]:
    """Check what only text tables know; return the values that stand for missing ones."""
    if skip_rows is not None and skip_rows < 0:
        raise InputError(f"skip_rows={skip_rows!r}; expected a number of lines, 0 or more.")
    try:
        missing = tuple(float(value) for value in missing_values)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"missing_values={missing_values!r}; expected numbers, such as [-999]."
        ) from error
    if form not in TEXT and (skip_rows is not None or missing):
        name = "missing_values" if missing else "skip_rows"
        raise InputError(
            f"{path}: {name} is for text tables, and this is {form}. Leave it out"
            f"{', and write NaN for missing values' if missing else ''}."
        )
    return missing


def opened_as(path: Path, options: "Options") -> "Blocks":
    """Open a file whose format and columns have been chosen before."""
    with system_errors(path):
        return cast("Blocks", import_module(BY_NAME[options.format].module).opened(path, options))


@contextmanager
def system_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn an error of the system about a file into one that names it."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        is_forbidden = isinstance(error, PermissionError)
        advice = "Check its permissions." if is_forbidden else "Check the name and the file."
        raise InputError(f"{path}: cannot be read ({reason}). {advice}") from error


def _in_folder(path: Path) -> Format | None:
    """Return the format of a folder of tables, by the first file in it."""
    files = (file for file in sorted(path.rglob("*")) if file.is_file())
    found = (BY_SUFFIX.get(file.suffix.lower()) for file in files)
    return next((known for known in found if known and known.name in TABLES), None)

"""From a file or standard input to rows that a method can use."""

import math
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from perpend.cli._columns import GAPS, feature_name, hints, left_out, without_idle
from perpend.cli._console import count
from perpend.cli._memory import in_bytes
from perpend.cli._options import Input, Nan, Rows
from perpend.exceptions import InputError, PerpendError, TooLargeError

if TYPE_CHECKING:
    from perpend.formats import Dataset
    from perpend.formats._stream import Blocks

STDIN = Path("-")
STDIN_NAME = "standard input"
STDIN_FORMAT = "csv"
COPY_BYTES = 1 << 20  # of standard input at a time
RECORDS = {"table": "row", "image": "pixel", "cloud": "point"}
KIND_NAMES = {"table": "table", "image": "scene", "cloud": "point cloud"}
WAYS = (Nan.mask, Nan.drop_rows, Nan.drop_cols)  # to use rows with gaps
FEATURES = {"table": "column", "image": "band", "cloud": "field"}


@dataclass(frozen=True)
class Source:
    """A file that can be opened."""

    path: Path
    format: str | None  # None: by the suffix
    is_stdin: bool = False

    @property
    def name(self) -> str:
        """What to call it."""
        return STDIN_NAME if self.is_stdin else str(self.path)

    @property
    def short_name(self) -> str:
        """The same without the folder."""
        return STDIN_NAME if self.is_stdin else self.path.name

    @property
    def argument(self) -> str:
        """What stands for it in a command."""
        return str(STDIN if self.is_stdin else self.path)


@contextmanager
def opened(given: Input, limit: int) -> Iterator[Source]:
    """Yield the file to read; standard input is copied to a temporary one.

    Errors inside the block name it as the user did.
    """
    if given.file != STDIN:
        yield Source(given.file, given.format)
        return
    form = given.format or STDIN_FORMAT
    with tempfile.TemporaryDirectory(prefix="perpend-") as folder:
        path = Path(folder) / f"stdin.{form}"
        _spool(path, limit)
        try:
            yield Source(path, form, is_stdin=True)
        except PerpendError as error:
            raise type(error)(str(error).replace(str(path), STDIN_NAME)) from error


def blocks(source: Source, given: Input) -> "Blocks":
    """Open the file; its ``dataset()`` reads the rows as they are."""
    from perpend.formats import _opening

    how = {one.name: getattr(given, one.name) for one in fields(Input) if one.name != "file"}
    how |= {"format": source.format, "exclude": given.exclude or ()}
    how["missing_values"] = given.missing_values or ()
    return _opening.opened(source.path, **how)


def read_for_fit(data: "Dataset", given: Rows, allowed: tuple[Nan, ...] = WAYS) -> "Dataset":
    """Treat missing values, and refuse what no method could use."""
    if not data.X.any():
        raise InputError(f"{data.source}: every value is zero, so there is nothing to find.")
    if not given.columns:  # named columns are meant
        data = without_idle(data)
    data = without_gaps(data, given.nan, allowed)
    if len(data.X) < 2:
        gaps = " without gaps" if data.counts.nan else ""
        raise InputError(
            f"{data.source}: has only one {RECORDS[data.kind]}{gaps}. Give at least 2, better many "
            "more."
        )
    return data


def without_gaps(
    data: "Dataset",
    policy: Nan,
    allowed: tuple[Nan, ...] = WAYS,
) -> "Dataset":
    """Apply the policy for missing values; a message names the policies that are `allowed`."""
    from perpend.formats import without_missing
    from perpend.rows.preparation import not_finite

    if policy is Nan.drop_rows:
        return without_missing(data, "rows")
    if policy is Nan.drop_cols:
        less = without_missing(data, "columns")
        lost = less.counts.dropped_columns[len(data.counts.dropped_columns) :]
        return replace(less, left_out={**data.left_out, GAPS: lost} if lost else data.left_out)
    bad = not_finite(data.X, nan=policy is not Nan.mask)
    if bad is None:
        return data
    raise gaps_error(data, bad, policy, allowed)


def gaps_error(data: "Dataset", bad: Any, policy: Nan, allowed: tuple[Nan, ...]) -> InputError:
    """Return the error about values that are not finite."""
    values = "1 value is" if bad.n_entries == 1 else f"{count(bad.n_entries)} values are"
    wrong = "infinite" if policy is Nan.mask else "missing, NaN or infinite"
    allowed = tuple(name for name in allowed if name is not policy)
    records = f"{count(bad.n_rows)} {RECORDS[data.kind]}{'' if bad.n_rows == 1 else 's'}"
    place = f"{_record_name(data, bad.row)}, {FEATURES[data.kind]} {feature_name(data, bad.column)}"
    return InputError(
        f"{data.source}: {values} {wrong}, in {records} (the first, counting from "
        f"1: {place}). Use {' or '.join(f'--nan {name}' for name in allowed)}, or fill the gaps "
        "first."
    )


def about_data(data: "Dataset", source: Source) -> dict[str, Any]:
    """Return what templates say about the rows of a file."""
    (n, D), record, feature = data.X.shape, RECORDS[data.kind], FEATURES[data.kind]
    return {
        "data": data,
        "source": source,
        "size": f"{count(n)} {record}s x {count(D)} {feature}s",
        "left_out": left_out(data),
        "notes": data.notes,
        "hints": hints(data),
        "records": math.prod(data.shape),  # in the file
        "feature": feature,
        "kind": KIND_NAMES[data.kind],
    }


def _record_name(data: "Dataset", row: int) -> str:
    """Return the name of a row for a message, counted from 1; of a pixel, its line and sample."""
    position = row if data.positions is None else int(data.positions[row])
    if len(data.shape) == 2:
        line, sample = divmod(position, data.shape[1])
        return f"line {line + 1}, sample {sample + 1}"
    found = data.X.file_of(row) if hasattr(data.X, "file_of") else None  # read block by block
    in_file = f" = row {found[1] + 1} of {found[0]}" if found else ""
    return f"{RECORDS[data.kind]} {position + 1}{in_file}"


def _spool(path: Path, limit: int) -> None:
    """Copy standard input to a file, up to the limit."""
    stream: Any = sys.stdin
    problem = "is closed" if stream is None or stream.closed else ""
    if problem or stream.isatty():
        raise InputError(
            f"{STDIN_NAME}: {problem or 'is the keyboard'}. Give a file, or pipe one: "
            "perpend ... - < FILE"
        )
    binary: IO[bytes] = getattr(stream, "buffer", stream)
    room, total = min(limit, shutil.disk_usage(path.parent).free), 0
    with path.open("wb") as file:
        while piece := binary.read(COPY_BYTES):
            total += len(piece)
            if total > room:
                raise TooLargeError(
                    f"{STDIN_NAME}: more than {in_bytes(room)}, which is the limit here. Save it "
                    "to a file and give its name, or raise --memory-limit."
                )
            file.write(piece)
    if total == 0:
        raise InputError(f"{STDIN_NAME}: is empty. Does the command before the | write anything?")

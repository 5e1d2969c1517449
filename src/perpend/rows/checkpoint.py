"""The file of a checkpoint: which fit it is of, and what that has computed so far.

Lines of JSON, each followed by the bytes of its arrays: first what the fit is, then its records.
The last line is the sha256 of everything before it. Each time it is saved, a new file takes its
place as a whole, so that one is always complete, whenever the process ends. What is done with a
complete fit may be noted as well: the names of the results that are about to be put in place.
"""

import glob
import hashlib
import json
import math
import re
import tempfile
from collections.abc import Iterable, Mapping
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from perpend import __version__
from perpend._files import writing
from perpend._typing import Array
from perpend.exceptions import CheckpointError
from perpend.rows.kinds import is_lazy, to_numpy

MAGIC = b"perpend checkpoint 1\n"
END = len("sha256 \n") + 64  # bytes of the last line
COPIED_BYTES = 2**22  # bytes that are copied at once
SOME_ROWS = 64  # by which rows are known; the first pass over all of them is checked as well
LISTED_BLOCKS = 5  # blocks whose sizes are listed
FREE = {"callback", "n_jobs", "random_state"}  # parameters that change no sum, or have a state
DELETE = "Choose another name, or delete it to begin anew."
RESULTS = -1  # instead of the number of a call: names of results


class Record(NamedTuple):
    """A result: of which call of the fit, by which arguments, and where it is in the file."""

    call: int
    key: str
    arrays: list[Any]  # for each its type, shape and order, or None
    line: int  # where its line begins
    data: int  # and where its bytes do


def fit_identity(
    model: Any, X: Array, weight: Array | None, rng: np.random.Generator
) -> dict[str, Any]:
    """Return what makes a fit the one that it is, by name, in JSON."""
    n, D = X.shape
    some = np.unique(np.linspace(0, n - 1, min(n, SOME_ROWS)).astype(int))
    shown = X.survey.norms if is_lazy(X) else to_numpy(X[some])  # the first pass has all norms
    place, blocks = _place(X)
    seed, given = model.random_state, model.get_params(deep=False)
    return {
        "version of perpend": __version__,
        "method": type(model).__name__,
        "number of rows": n,
        "number of features": D,
        "type of the rows": str(X.dtype).removeprefix("torch."),
        "rows": f"{place}, {_digest(shown)}",
        "blocks": blocks,
        "sample_weight": None if weight is None else _digest(to_numpy(weight)),
        "random_state": int(seed) if isinstance(seed, Integral) else "not a number",
        **{name: _plain(value) for name, value in given.items() if name not in FREE},
        "generator": _state(rng.bit_generator.state),
    }


def _place(X: Array) -> tuple[str, str | None]:
    """Say where the rows are, and how many each block has if sums depend on that."""
    if not is_lazy(X):
        return "in memory", None
    if not X.elsewhere:
        return "read in windows", None
    sizes = [window.stop - window.start for window in X.windows]
    some = ", ".join(map(str, sizes[:LISTED_BLOCKS]))
    more = f", ... rows, {_digest(np.array(sizes))}" if len(sizes) > LISTED_BLOCKS else " rows"
    return "in blocks of Dask", f"of {some}{more}"


def _digest(array: Array) -> str:
    found = hashlib.sha256(f"{array.dtype} {array.shape}".encode())
    found.update(np.ascontiguousarray(array).tobytes())
    return f"sha256 {found.hexdigest()[:16]}"


def _plain(value: Any) -> Any:
    """Return a parameter in JSON: simple ones as they are, arrays by their digest."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if hasattr(value, "__array__"):
        return _digest(to_numpy(value))
    return lasting(value)


def lasting(value: Any) -> str:
    """Return the text of an object without its address, which is another one in each process."""
    return re.sub(" at 0x[0-9a-fA-F]+", "", repr(value))


def _state(state: Any) -> Any:
    """Return the state of a bit generator in JSON."""
    if isinstance(state, Mapping):
        return {key: _state(value) for key, value in state.items()}
    return state.tolist() if isinstance(state, np.ndarray | np.generic) else state


class CheckpointFile:
    """The file at `path`, if it is a whole checkpoint or none is there yet."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        self.records: list[Record] = []
        self.results: frozenset[str] = frozenset()  # that were about to be put in place
        self._identity: dict[str, Any] = {}
        self._end, self._sha256 = 0, hashlib.sha256()  # of what the file holds, but its last line
        self._begin = 0  # the end of a new file without a record
        self._cut = False  # whether the names of the results were cut off
        if self.path.exists():
            with self.path.open("rb") as stream:
                self._check_whole(stream)
                self._parse(stream)

    def begin(self, identity: dict[str, Any], rng: np.random.Generator) -> None:
        """Begin the checkpoint of a fit, or go on with it; `rng` gets the state that it began with.

        Nothing is ever written over a checkpoint of another fit.
        """
        folder = self.path.absolute().parent
        try:
            with tempfile.TemporaryFile(dir=folder):
                pass  # a folder that can't be written to shows before the work
            for draft in folder.glob(f".{glob.escape(self.path.name)}.????????.tmp"):
                draft.unlink(missing_ok=True)  # of a process that was killed while it saved
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.path)) from error
        if not self._end:
            self.save([MAGIC, _line(identity)])  # before the work, so that a full disk shows now
            self._begin = self._end
            return
        self._check_same(identity)
        found = self._identity["generator"]
        try:
            rng.bit_generator.state = found
        except ValueError as error:
            raise CheckpointError(
                f"{self.path}: began with a {found['bit_generator']} generator, and random_state "
                f"is another kind. Pass the same kind. {DELETE}"
            ) from error

    def note_results(self, names: Iterable[str]) -> None:
        """Note that the fit is complete, and results of these names are about to be put in place.

        If the process is killed meanwhile, they are those of this fit, and may be replaced.
        """
        self.results = frozenset(names)
        self.save([_noted(self.results)])

    def save(self, new: Iterable[bytes]) -> None:
        """Add to what the file holds; if anything goes wrong, it stays as it is."""
        sha256, end = hashlib.sha256(), self._end
        if self._cut:  # the results are there still
            new = [_noted(self.results), *new]
        with writing(self.path) as stream:
            if end:
                with self.path.open("rb") as old:
                    for part in _parts(old, end):
                        sha256.update(part)
                        stream.write(part)
                if sha256.digest() != self._sha256.digest():
                    raise CheckpointError(
                        f"{self.path}: was changed while this fit ran. Two fits can't share a "
                        "checkpoint: give each a file of its own."
                    )
            for part in new:
                sha256.update(part)
                stream.write(part)
                end += len(part)
            stream.write(f"sha256 {sha256.hexdigest()}\n".encode())
        self._end, self._sha256, self._cut = end, sha256, False

    def read(self, record: Record) -> list[Array | None]:
        """Return the arrays of a record, in the order in memory that they had."""
        arrays: list[Array | None] = []
        with self.path.open("rb") as stream:
            stream.seek(record.data)
            for one in record.arrays:
                if one is None:
                    arrays.append(None)
                    continue
                dtype, shape, order = one
                data = stream.read(_n_bytes(dtype, shape))
                arrays.append(np.frombuffer(bytearray(data), dtype).reshape(shape, order=order))
        return arrays

    def cut(self, record: Record) -> None:
        """Leave out this record and those after it when the file is saved again."""
        self.records = [one for one in self.records if one.call < record.call]
        self._end, self._sha256 = record.line, hashlib.sha256()
        with self.path.open("rb") as stream:
            for part in _parts(stream, self._end):
                self._sha256.update(part)
        self._cut = bool(self.results)

    @property
    def is_begun(self) -> bool:
        """Whether the file was there before, or has a record."""
        return self._end > self._begin

    @property
    def size(self) -> int:
        """The bytes of the file."""
        return self._end + END

    # -- reading what is there ---------------------------------------------------------------------

    def _check_whole(self, stream: IO[bytes]) -> None:
        """Refuse a file that is no checkpoint, or that is cut or damaged."""
        if stream.read(len(MAGIC)) != MAGIC:
            raise CheckpointError(
                f"{self.path}: is not a checkpoint of this version of perpend, and is left as it "
                "is. Choose another name."
            )
        self._end = stream.seek(0, 2) - END
        stream.seek(0)
        for part in _parts(stream, max(self._end, 0)):
            self._sha256.update(part)
        if stream.read() != f"sha256 {self._sha256.hexdigest()}\n".encode():
            raise CheckpointError(
                f"{self.path}: is cut or damaged (its checksum differs), and is left as it is. "
                f"Copy it again. {DELETE}"
            )

    def _parse(self, stream: IO[bytes]) -> None:
        """Read what the fit is, and where its records are."""
        stream.seek(len(MAGIC))
        self._identity = json.loads(stream.readline())
        while (line := stream.tell()) < self._end:
            call, key, arrays = json.loads(stream.readline())
            if call == RESULTS:
                self.results = frozenset(key)
                continue
            self.records.append(Record(call, key, arrays, line, stream.tell()))
            stream.seek(sum(_n_bytes(*one[:2]) for one in arrays if one is not None), 1)

    def _check_same(self, identity: dict[str, Any]) -> None:
        """Refuse the checkpoint of another fit, and say what differs."""
        here, found = json.loads(_line(identity)), self._identity
        differ = [
            f"{name} {found.get(name)} there and {here.get(name)} here"
            for name in {**found, **here}
            if name != "generator" and found.get(name) != here.get(name)
        ]
        if differ:
            raise CheckpointError(
                f"{self.path}: is the checkpoint of another fit, and is left as it is: "
                f"{'; '.join(differ)}. {DELETE}"
            )


def packed(call: int, key: str, arrays: Iterable[Array | None]) -> list[bytes]:
    """Return a record as bytes."""
    about, data = [], []
    for one in arrays:
        order = "C" if one is None or one.flags.c_contiguous else "F"
        about.append(None if one is None else [one.dtype.str, one.shape, order])
        data += [] if one is None else [one.tobytes(order)]
    return [_line([call, key, about]), *data]


def _noted(results: Iterable[str]) -> bytes:
    return _line([RESULTS, sorted(results), []])


def _line(content: Any) -> bytes:
    return json.dumps(content).encode() + b"\n"


def _n_bytes(dtype: str, shape: Iterable[int]) -> int:
    return np.dtype(dtype).itemsize * math.prod(shape)


def _parts(stream: IO[bytes], size: int) -> Iterable[bytes]:
    """Yield the next bytes of a file."""
    while size > 0 and (part := stream.read(min(size, COPIED_BYTES))):
        yield part
        size -= len(part)

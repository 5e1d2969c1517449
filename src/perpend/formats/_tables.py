"""Tables of Arrow's batches: columns are chosen, collected and written alike in all their files."""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from perpend._files import writing
from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.formats import _checks as check
from perpend.formats._checks import listed, quoted
from perpend.formats._damage import changed, damage_named
from perpend.formats._dataset import Dataset, Labelled, Options
from perpend.formats._records import NO_DATA, added_values, select
from perpend.formats._registry import BY_NAME
from perpend.formats._stream import Blocks
from perpend.rows.sequential import Sequential

BATCH_ROWS, BATCH_BYTES = 1 << 16, 1 << 22  # of what is converted together, at most


class Part(NamedTuple):
    """Rows of a table that can be read on their own: of a file, or some of its batches."""

    path: Path
    n: int
    schema: Any
    place: int = 0  # of the batches in the file


def all_parts(path: Path, form: str, parts_in: Callable[[Path], list[Part]]) -> list[Part]:
    """Parts of a file, or of all files of a folder, by name; their columns must agree."""
    suffixes = BY_NAME[form].suffixes
    files = [path]
    if path.is_dir():
        inside = path.rglob("*")
        files = sorted(f for f in inside if f.suffix.lower() in suffixes and f.is_file()
                       and not f.name.startswith((".", "_")))  # fmt: skip
        if not files:
            raise InputError(f"{path}: there is no {' or '.join(suffixes)} file in this folder.")
    parts = [part for file in files for part in parts_in(file)]
    first, others = parts[0], {part.path: part for part in parts}.values()
    kinds = {field.name: str(field.type) for field in first.schema}
    for other in others:
        own = {field.name: str(field.type) for field in other.schema}
        for name in [*kinds, *own]:
            if kinds.get(name) != own.get(name):
                held = [quoted(k[name]) if name in k else "not there" for k in (own, kinds)]
                raise InputError(
                    f"{other.path}: column {quoted(name)} is {held[0]}, but {held[1]} in "
                    f"{first.path.name}. All files of a folder need the same columns."
                )
    return parts


class Columns(NamedTuple):
    """Which columns of a table are read."""

    names: tuple[str, ...]
    dropped: tuple[str, ...]  # columns without numbers
    dtype: str  # of X
    stored: str  # as in the file; several names if they differ

    def n_bytes(self, n_rows: int) -> int:
        """Bytes of `n_rows` rows."""
        return n_rows * len(self.names) * np.dtype(self.dtype).itemsize


def pick(path: Path, schema: Any, options: Options) -> Columns:
    """Take the columns of numbers, or those that are wanted, which must hold numbers."""
    names = [str(name) for name in schema.names]
    numeric = [j for j in range(len(names)) if _is_numeric(schema.field(j).type)]
    wanted = options.columns
    if wanted is not None:
        indices = select(path, options, names)
        for j in indices:
            if j not in numeric:
                raise InputError(
                    f"{path}: column {quoted(names[j])} holds values of type "
                    f"{quoted(str(schema.field(j).type))}, not numbers. Choose others."
                )
    else:
        indices = select(path, options, names, numeric) if options.exclude else numeric
        doubled = next((names[j] for j in indices if names.count(names[j]) > 1), None)
        if doubled is not None:
            raise InputError(f"{path}: has two columns {quoted(doubled)}. Rename one of them.")
    if not indices:
        kinds = listed([f"{quoted(field.name)} {quoted(str(field.type))}" for field in schema])
        raise InputError(f"{path}: has no column of numbers: {kinds}.")
    types = [str(schema.field(j).type) for j in indices]
    return Columns(
        tuple(names[j] for j in indices),
        tuple(name for j, name in enumerate(names) if j not in numeric and wanted is None),
        "float32" if set(types) == {"float"} else "float64",
        ", ".join(sorted(set(types))),
    )


def table_blocks(
    path: Path,
    options: Options,
    parts_in: Callable[[Path], list[Part]],
    batches: Callable[[Part, Columns | None], Iterator[Any]],
) -> Blocks:
    """Return the blocks of a table: the batches of rows of all of its parts."""
    parts = all_parts(path, options.format, parts_in)
    columns, rows = pick(path, parts[0].schema, options), Counter[Path]()
    for part in parts:
        rows[part.path] += part.n
    for file in rows:
        check.expansion(str(file), file.stat().st_size, columns.n_bytes(rows[file]))
    begins = np.cumsum([0, *(part.n for part in parts)])
    n, width = int(begins[-1]), len(columns.names)
    if n == 0:
        raise InputError(f"{path}: there are no rows in this table, only a header.")

    def near(row: int) -> tuple[int, Iterator[Array]]:
        first = int(np.searchsorted(begins, row, side="right")) - 1
        blocks = (_rows(part, columns, batches(part, columns)) for part in parts[first:])
        return int(begins[first]), chain.from_iterable(blocks)

    return Blocks(
        path,
        options,
        "table",
        Sequential(near, shape=(n, width), dtype=columns.dtype, name=str(path)).read,
        shape=(n,),
        width=width,
        dtype=columns.dtype,
        columns=columns.names,
        dropped=columns.dropped,
        stored=columns.stored,
        files=rows,
    )


def _rows(part: Part, columns: Columns, batches: Iterator[Any]) -> Iterator[Array]:
    """Numbers of the batches of a part; there must be as many rows as it declares."""
    count = 0
    for batch in batches:
        with damage_named(part.path, "not a readable table"):
            batch.validate(full=True)
            count += batch.num_rows
            if count > part.n:
                break
            step = batch_rows(len(columns.names))
            for begin in range(0, batch.num_rows, step):  # a batch of Arrow may be large
                some = batch.slice(begin, step)
                block: Array = np.empty((some.num_rows, len(columns.names)), columns.dtype)
                for j, name in enumerate(columns.names):
                    block[:, j] = _floats(some.column(name), columns.dtype)
                yield block
    if count != part.n:
        what = f"does not hold the {part.n} rows it declares. Damaged or cut off?"
        raise InputError(f"{part.path}: {what}")


def write_copy(
    dataset: Dataset,
    labelled: Labelled,
    path: Path,
    parts_in: Callable[[Path], list[Part]],
    batches: Callable[[Part], Iterator[Any]],
    *,
    new_writer: Callable[[Any, Any], Any],
) -> Path:
    """Write all batches of a table with three more columns."""
    import pyarrow as pa

    parts = all_parts(Path(dataset.source), dataset.format, parts_in)
    schema = parts[0].schema
    added = added_values(dataset, labelled, schema.names)
    types = dict(zip(added, [pa.float64(), pa.float64(), pa.bool_()], strict=True))
    for name, kind in types.items():
        schema = schema.append(pa.field(name, kind))
    inlier, begin = added[list(added)[-1]], 0
    with writing(path) as stream, new_writer(stream, schema) as writer:
        for batch in chain.from_iterable(map(batches, parts)):
            place = slice(begin, begin + batch.num_rows)
            gaps = inlier[place] == NO_DATA
            new = [
                pa.array(added[name][place].astype(kind.to_pandas_dtype()), kind, mask=gaps)
                for name, kind in types.items()
            ]
            names = parts[0].schema.names
            same = batch.schema.names == names  # or in another order
            old = batch.columns if same else [batch.column(name) for name in names]
            writer.write_batch(pa.record_batch([*old, *new], schema=schema))
            begin = place.stop
        if begin != dataset.shape[0]:
            raise changed(dataset.source)
    return path


def batch_rows(width: int) -> int:
    """Return how many rows of so many columns are converted together."""
    return min(BATCH_ROWS, max(1, BATCH_BYTES // (8 * max(1, width))))


def _is_numeric(kind: Any) -> bool:
    from pyarrow import types

    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    return any(test(kind) for test in tests)


def _floats(column: Any, dtype: str) -> Array:
    """Values of a column; those that are missing are NaN."""
    import pyarrow as pa

    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    return column.cast(pa.from_numpy_dtype(dtype), safe=False).to_numpy(zero_copy_only=False)

"""Columns of numbers in Arrow's tables, for Parquet and Arrow files."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.formats._checks import check_memory, quoted
from perpend.formats._dataset import Answer, Dataset
from perpend.formats._records import NO_DATA, added_values, from_table, select


class Columns(NamedTuple):
    """Which columns of a table are read."""

    indices: tuple[int, ...]
    names: tuple[str, ...]
    dropped: tuple[str, ...]  # columns without numbers
    dtype: str  # of X
    stored_dtype: str  # as in the file; several names if they differ

    def n_bytes(self, n_rows: int) -> int:
        """Bytes of `n_rows` rows."""
        return n_rows * len(self.names) * np.dtype(self.dtype).itemsize


def pick(path: Path, schema: Any, wanted: tuple[str, ...] | None) -> Columns:
    """Take the columns of numbers, or those that are wanted.

    Raises
    ------
    InputError
        If a wanted column holds no numbers, or none does.
    """
    names = [str(name) for name in schema.names]
    numeric = [j for j in range(len(names)) if _is_numeric(schema.field(j).type)]
    if wanted is not None:
        indices = select(path, wanted, names)
        for j in indices:
            if j not in numeric:
                raise InputError(
                    f"{path}: column {quoted(names[j])} holds values of type "
                    f"{quoted(str(schema.field(j).type))}, not numbers. Choose others."
                )
    else:
        indices = numeric
        doubled = next((names[j] for j in numeric if names.count(names[j]) > 1), None)
        if doubled is not None:
            raise InputError(f"{path}: has two columns {quoted(doubled)}. Rename one of them.")
    if not indices:
        kinds = ", ".join(f"{quoted(f.name)} {quoted(str(f.type))}" for f in list(schema)[:20])
        raise InputError(f"{path}: has no column of numbers: {kinds}.")
    types = [str(schema.field(j).type) for j in indices]
    return Columns(
        tuple(indices),
        tuple(names[j] for j in indices),
        ()
        if wanted is not None
        else tuple(names[j] for j in range(len(names)) if j not in numeric),
        "float32" if set(types) == {"float"} else "float64",
        ", ".join(sorted(set(types))),
    )


def collect(path: Path, name: str, columns: Columns, n: int, batches: Iterable[Any]) -> Dataset:
    """Put batches of rows together; there must be `n` in all."""
    check_memory(str(path), columns.n_bytes(n))
    X = np.empty((n, len(columns.names)), columns.dtype)
    begin = 0
    for batch in batches:
        batch.validate(full=True)
        if begin + batch.num_rows > n:
            break
        for j, column in enumerate(columns.names):
            X[begin : begin + batch.num_rows, j] = _floats(batch.column(column), columns.dtype)
        begin += batch.num_rows
    if n == 0:
        raise InputError(f"{path}: there are no rows in this table, only a header.")
    if begin != n:
        raise InputError(f"{path}: does not hold the {n} rows it declares. Damaged or cut off?")
    return from_table(
        X,
        path,
        name,
        columns.names,
        stored_dtype=columns.stored_dtype,
        dropped=columns.dropped,
    )


def with_added(
    dataset: Dataset, answer: Answer, schema: Any, batches: Iterable[Any]
) -> tuple[Any, Iterator[Any]]:
    """Schema and batches of the file with three more columns."""
    import pyarrow as pa

    added = added_values(dataset, answer, schema.names)
    types = [pa.float64(), pa.float64(), pa.bool_()]
    for name, kind in zip(added, types, strict=True):
        schema = schema.append(pa.field(name, kind))
    missing = added[list(added)[-1]] == NO_DATA

    def extended() -> Iterator[Any]:
        begin = 0
        for batch in batches:
            part = slice(begin, begin + batch.num_rows)
            new = [
                pa.array(values[part].astype(kind.to_pandas_dtype()), kind, mask=missing[part])
                for values, kind in zip(added.values(), types, strict=True)
            ]
            yield pa.record_batch([*batch.columns, *new], schema=schema)
            begin = part.stop
        if begin != dataset.shape[0]:
            raise InputError(f"{dataset.source}: has changed since it was read. Read it again.")

    return schema, extended()


def cannot_read(path: Path, what: str, error: Exception) -> InputError:
    """Return an error with pyarrow's message in short."""
    reason = quoted(str(error).splitlines()[0] if str(error) else type(error).__name__)
    return InputError(
        f"{path}: not a readable {what} file ({reason}). Is it damaged, or another format?"
    )


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

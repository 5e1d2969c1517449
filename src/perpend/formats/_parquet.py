"""Parquet tables (``.parquet``), read by pyarrow.

The numbers of rows and bytes in the metadata at the end of a file are compared with the file before
anything is allocated. Then the rows are read in batches.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from perpend._files import writing
from perpend.exceptions import InputError
from perpend.formats._answer_path import answer_path
from perpend.formats._arrow_columns import (
    Columns,
    cannot_read,
    collect,
    pick,
    with_added,
)
from perpend.formats._checks import DAMAGE_ERRORS, check_expansion, file_size, no_choice
from perpend.formats._dataset import Answer, Dataset, Options
from perpend.formats._registry import optional_package

MAGIC = b"PAR1"
BATCH_ROWS = 1 << 16


def read(path: Path, options: Options) -> Dataset:
    """Read the columns of numbers of a Parquet file; the others are left out and listed."""
    parquet = optional_package("pyarrow.parquet", path, "parquet")
    no_choice(path, options.variable)
    size = file_size(path)
    _check_magic(path)
    try:
        with parquet.ParquetFile(path, memory_map=False, pre_buffer=False) as file:
            columns = pick(path, file.schema_arrow, options.columns)
            n = _check(path, file, size, columns)
            return collect(path, "parquet", columns, n, _batches(file, columns))
    except (InputError, PermissionError):
        raise
    except DAMAGE_ERRORS as error:
        raise cannot_read(path, "Parquet", error) from error


def write_answer(dataset: Dataset, answer: Answer, folder: Path) -> Path:
    """Write all columns of the file, also those of text, and three more."""
    from pyarrow import parquet

    path = answer_path(dataset, folder)
    with parquet.ParquetFile(dataset.source) as file, writing(path) as stream:
        schema, batches = with_added(
            dataset, answer, file.schema_arrow, file.iter_batches(BATCH_ROWS)
        )
        with parquet.ParquetWriter(stream, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
    return path


def _check_magic(path: Path) -> None:
    with path.open("rb") as stream:
        start = stream.read(4)
        stream.seek(-min(4, path.stat().st_size), 2)
        end = stream.read(4)
    if start != MAGIC:
        raise InputError(f"{path}: does not begin like a Parquet file. Is it another format?")
    if end != MAGIC:
        raise InputError(f"{path}: does not end like a Parquet file. Is it a cut-off copy?")


def _check(path: Path, file: Any, size: int, columns: Columns) -> int:
    """Compare rows and bytes with the file; return the number of rows.

    The columns of the groups are not checked: pyarrow ends the whole process if their statistics
    are damaged.
    """
    meta = file.metadata
    groups = [meta.row_group(i) for i in range(meta.num_row_groups)]
    rows = [group.num_rows for group in groups]
    plain = [group.total_byte_size for group in groups]
    if min(rows, default=0) < 0 or min(plain, default=0) < 0 or sum(rows) != meta.num_rows:
        raise InputError(f"{path}: its numbers of rows contradict each other. It is damaged.")
    check_expansion(str(path), size, sum(plain))
    check_expansion(str(path), size, columns.n_bytes(meta.num_rows))
    return int(meta.num_rows)


def _batches(file: Any, columns: Columns) -> Iterator[Any]:
    return iter(file.iter_batches(BATCH_ROWS, columns=list(columns.names), use_threads=False))

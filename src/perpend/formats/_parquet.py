"""Parquet tables (``.parquet``), read by pyarrow.

The numbers of rows and bytes in the metadata at the end of a file are compared with the file before
anything is allocated. Then the rows are read in batches.
"""

from pathlib import Path
from typing import Any

from perpend.exceptions import InputError
from perpend.formats import _checks as check
from perpend.formats._arrow import Columns, collect, pick, write_copy
from perpend.formats._damage import damage_named
from perpend.formats._dataset import Answer, Dataset, Options
from perpend.formats._registry import optional_package

MAGIC = b"PAR1"
BATCH_ROWS = 1 << 16


def read(path: Path, options: Options) -> Dataset:
    """Read the columns of numbers of a Parquet file; the others are left out and listed."""
    parquet = optional_package("pyarrow.parquet", path, "parquet")
    check.magic(path, "like a Parquet file", MAGIC, end=MAGIC)
    with (
        damage_named(path, "not a readable Parquet file"),
        parquet.ParquetFile(path, memory_map=False, pre_buffer=False) as file,
    ):
        columns = pick(path, file.schema_arrow, options)
        n = _check(path, file, columns)
        batches = file.iter_batches(BATCH_ROWS, columns=list(columns.names), use_threads=False)
        return collect(path, options, columns, n, batches)


def write_answer(dataset: Dataset, answer: Answer, path: Path) -> Path:
    """Write all columns of the file, also those of text, and three more."""
    from pyarrow import parquet

    with parquet.ParquetFile(dataset.source) as file:
        schema, batches = file.schema_arrow, file.iter_batches(BATCH_ROWS)
        new_writer = parquet.ParquetWriter
        return write_copy(dataset, answer, path, schema, batches, new_writer=new_writer)


def _check(path: Path, file: Any, columns: Columns) -> int:
    """Compare rows and bytes with the file; return the number of rows.

    The columns of the groups are not checked: pyarrow ends the whole process if their statistics
    are damaged.
    """
    meta, size = file.metadata, path.stat().st_size
    groups = [meta.row_group(i) for i in range(meta.num_row_groups)]
    rows = [group.num_rows for group in groups]
    plain = [group.total_byte_size for group in groups]
    if min(rows, default=0) < 0 or min(plain, default=0) < 0 or sum(rows) != meta.num_rows:
        raise InputError(f"{path}: its numbers of rows contradict each other. It is damaged.")
    check.expansion(str(path), size, sum(plain))
    check.expansion(str(path), size, columns.n_bytes(meta.num_rows))
    return int(meta.num_rows)

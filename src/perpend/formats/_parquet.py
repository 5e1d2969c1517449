"""Parquet tables (``.parquet``), read by pyarrow.

The numbers of rows and bytes in the metadata at the end of a file are compared with the file before
anything is allocated. Then the rows are read in batches.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from perpend.exceptions import InputError
from perpend.formats import _checks as check
from perpend.formats._damage import damage_named
from perpend.formats._dataset import Dataset, Labelled, Options
from perpend.formats._registry import optional_package
from perpend.formats._stream import Blocks
from perpend.formats._tables import Columns, Part, batch_rows, table_blocks, write_copy

MAGIC = b"PAR1"
UNREADABLE = "not a readable Parquet file"
# Without a buffer, pyarrow reads a group of rows as a whole.
HOW: dict[str, Any] = {"memory_map": False, "pre_buffer": False, "buffer_size": 1 << 16}


def opened(path: Path, options: Options) -> Blocks:
    """Open the columns of numbers of a Parquet file; the others are left out and listed."""
    optional_package("pyarrow.parquet", path, "parquet")
    with damage_named(path, UNREADABLE):
        return table_blocks(path, options, _parts, _batches)


def write_labelled(dataset: Dataset, labelled: Labelled, path: Path) -> Path:
    """Write all columns of the file, also those of text, and three more."""
    from pyarrow import parquet

    return write_copy(dataset, labelled, path, _parts, _batches, new_writer=parquet.ParquetWriter)


def _parts(path: Path) -> list[Part]:
    """Compare rows and bytes with the file; each group of rows can be read on its own.

    The columns of the groups are not checked: pyarrow ends the whole process if their statistics
    are damaged.
    """
    from pyarrow import parquet

    check.magic(path, "like a Parquet file", MAGIC, end=MAGIC)
    with damage_named(path, UNREADABLE), parquet.ParquetFile(path, **HOW) as file:
        meta, size = file.metadata, path.stat().st_size
        groups = [meta.row_group(i) for i in range(meta.num_row_groups)]
        rows = [group.num_rows for group in groups]
        plain = [group.total_byte_size for group in groups]
        if min(rows, default=0) < 0 or min(plain, default=0) < 0 or sum(rows) != meta.num_rows:
            raise InputError(f"{path}: its numbers of rows contradict each other. It is damaged.")
        check.expansion(str(path), size, sum(plain))
        return [Part(path, n, file.schema_arrow, i) for i, n in enumerate(rows or [0])]


def _batches(part: Part, columns: Columns | None = None) -> Iterator[Any]:
    """Batches of rows of a file, with some columns or all."""
    from pyarrow import parquet

    names = None if columns is None else list(columns.names)
    with damage_named(part.path, UNREADABLE), parquet.ParquetFile(part.path, **HOW) as file:
        groups = [part.place] if part.n else []
        rows = batch_rows(len(names or part.schema.names))
        yield from file.iter_batches(rows, groups, names, use_threads=False)

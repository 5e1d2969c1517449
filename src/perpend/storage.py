"""Rows that stay where they are: a file, or blocks, as rows that a fit reads again and again."""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.rows.lazy import MEMORY_LIMIT
from perpend.rows.stored import StoredRows, blocks_reader

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
UNITS |= {f"{name}I": 2 ** (10 * power) for power, name in enumerate("KMGT", 1)}
SIZE = re.compile(r"([0-9.]+)([KMGT]?I?)B?")
LEAST_LIMIT = 2**22  # bytes: a window has at least some hundred rows


def open_rows(
    source: str | os.PathLike[str] | Iterable[Array] | Callable[[], Iterator[Array]],
    memory_limit: int | str = MEMORY_LIMIT,
    **options: Any,
) -> StoredRows:
    """Open rows that may be larger than the memory, for `fit`, `predict` and `distance`.

    The rows are read in windows, once for each pass of a fit, and never held.

    Parameters
    ----------
    source : path, iterable of arrays, or function that returns an iterator of arrays
        A file (or folder) of a format that :func:`perpend.formats.read` knows. Or blocks of rows,
        arrays of shape (rows, n_features), which can be iterated several times. An object with
        `shape`, `dtype` and ``read(start, stop)`` is used as it is.
    memory_limit : int or str, default="1GiB"
        Bytes for the windows and for what a fit keeps beside them, such as 2**28 or "256MiB". A few
        values for each row (about 40 bytes) and matrices of n_features x n_features come on top.
    **options
        Those of :func:`perpend.formats.read`, for files.

    Returns
    -------
    StoredRows
        Takes the place of an array as the `X` of an estimator, with `shape` and `dtype`.
        ``plan(affine=False)`` says in words how much a fit will read, and `passes` how often all
        rows have been read so far.

    Examples
    --------
    >>> import numpy as np
    >>> from perpend import DPCP, open_rows
    >>> from perpend.datasets import make_subspace
    >>> X = make_subspace(3000, 2000, n_features=8, codimension=2, random_state=0).X
    >>> rows = open_rows(lambda: iter(np.array_split(X, 10)), memory_limit="4MiB")
    >>> rows.shape
    (5000, 8)
    >>> DPCP(random_state=0).fit(rows).codimension_
    2
    """
    limit = parse_size(memory_limit)
    if limit < LEAST_LIMIT:
        raise InputError(f"memory_limit={memory_limit!r} is too small; at least 4MiB are needed.")
    if isinstance(source, (str, os.PathLike)):
        from perpend.formats import open_blocks

        return StoredRows(open_blocks(source, memory_limit=limit, **options), limit)
    if options:
        names = ", ".join(options)
        raise InputError(f"{names}: these options are for files, and the source is no path.")
    return StoredRows(blocks_reader(source), limit)


def parse_size(size: int | str) -> int:
    """Return a number of bytes; K, M, G and T are powers of 1000, KiB and so on of 1024.

    >>> parse_size("256MiB") == 2**28, parse_size("1.5 GB"), parse_size(4096)
    (True, 1500000000, 4096)
    """
    text = size.replace(" ", "").upper() if isinstance(size, str) else ""
    match = SIZE.fullmatch(text)
    try:
        return int(float(match[1]) * UNITS[match[2]]) if match else int(size)
    except (TypeError, ValueError, KeyError, OverflowError):
        raise InputError(
            f"memory_limit={size!r} is not a size; expected bytes, or text such as 256MiB."
        ) from None

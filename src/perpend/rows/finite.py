"""Whether all entries are finite, found block by block: nothing of the size of X is formed."""

from typing import NamedTuple

from perpend._typing import Array, namespace
from perpend.rows.kinds import is_tensor

ENTRIES, ENTRIES_OF_TENSOR = 2**16, 2**24
"""Entries looked at together; the flags of a tensor's block take 16 MiB."""


class NotFinite(NamedTuple):
    """Where entries are NaN or infinite."""

    row: int  # the first
    column: int
    is_nan: bool
    n_entries: int
    n_rows: int


def not_finite(X: Array) -> NotFinite | None:
    """Return the first entry of X (n, D) that is NaN or infinite and how many there are, or None.

    >>> import numpy as np
    >>> not_finite(np.array([[1.0, 2.0], [np.inf, 3.0]]))
    NotFinite(row=1, column=0, is_nan=False, n_entries=1, n_rows=1)
    """
    xp = namespace(X)
    first: tuple[int, int, bool] | None = None
    n_entries = n_rows = 0
    n, step = X.shape[0], max(1, (ENTRIES_OF_TENSOR if is_tensor(X) else ENTRIES) // X.shape[1])
    for start in range(0, n, step):
        block = X[start : min(start + step, n), :]
        finite = xp.isfinite(block)
        if bool(xp.all(finite)):
            continue
        rows, columns = xp.nonzero(~finite)
        if first is None:
            row, column = int(rows[0]), int(columns[0])
            first = start + row, column, bool(xp.isnan(block[row, column]))
        n_entries += rows.shape[0]
        n_rows += int(xp.sum(xp.astype(~xp.all(finite, axis=1), xp.int64)))
    return None if first is None else NotFinite(*first, n_entries, n_rows)

"""From files to rows: one reader per format, chosen by the suffix of the file.

Every reader checks before it allocates, and whatever is wrong with a file becomes one
:class:`~perpend.exceptions.InputError` that says what is wrong, where, and what to do.
A new format is one more file and one more line in ``READERS``.
"""

import os
from collections.abc import Callable
from pathlib import Path

from perpend.exceptions import InputError
from perpend.formats._csv import read_csv
from perpend.formats._npy import read_npy, read_npz
from perpend.formats._table import Table, file_size, quoted

__all__ = ["READERS", "Table", "read_table"]

READERS: dict[str, Callable[[Path, str | None], Table]] = {
    ".csv": read_csv,
    ".npy": read_npy,
    ".npz": read_npz,
    ".tsv": read_csv,
}


def read_table(path: str | os.PathLike[str], *, variable: str | None = None) -> Table:
    r"""Read a table of numbers: one row per sample, one column per feature.

    Parameters
    ----------
    path : str or path
        A ``.npy``, ``.npz``, ``.csv`` or ``.tsv`` file.
    variable : str, optional
        Which array to take from a file that holds several.

    Returns
    -------
    Table
        A named tuple with `X` of shape (n, D), the names of the `columns` (or None), and the
        `source`. `X` is float32 if the file is, float64 otherwise. It may hold NaN and infinities,
        and it may be a read-only map of the file.

    Raises
    ------
    InputError
        If the file cannot be used; the message tells the reason and a way out.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "scan.csv"
    ...     _ = path.write_text("red,green\n1,2\n3,4\n", encoding="utf-8")
    ...     table = read_table(path)
    >>> table.X
    array([[1., 2.],
           [3., 4.]])
    >>> table.columns
    ('red', 'green')
    """
    path = Path(path)
    try:
        file_size(path)
        reader = READERS.get(path.suffix.lower())
        if reader is None:
            raise InputError(
                f"{path}: cannot read files of type {quoted(path.suffix)}. "
                f"Those that work: {', '.join(sorted(READERS))}."
            )
        return reader(path, variable)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"{path}: cannot be read ({reason}). Check its permissions.") from error

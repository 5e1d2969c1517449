"""From files to rows and scenes: one reader per format, chosen by the suffix of the file.

Every reader checks before it allocates, and whatever is wrong with a file becomes one
:class:`~perpend.exceptions.InputError` that says what is wrong, where, and what to do.
A new format is one more file and one more line in ``READERS`` (tables) or ``CUBE_READERS``.
"""

import os
from collections.abc import Callable
from pathlib import Path

from perpend.formats._csv import read_csv
from perpend.formats._cube import CUBE_READERS, Cube, read_cube
from perpend.formats._npy import read_npy, read_npz
from perpend.formats._table import Table, read_by_suffix

__all__ = ["CUBE_READERS", "READERS", "Cube", "Table", "read_cube", "read_table"]

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
    return read_by_suffix(Path(path), READERS, variable)

r"""From files to rows and back: one module per format, chosen by the suffix of the file.

Every reader compares what a file declares with its size, and with the free memory, before it
allocates. A bad file raises an :class:`~perpend.exceptions.InputError` that says what is wrong,
where, and what to do. The rows with their labels are written in the same format, such as
``scan-labelled.csv`` for ``scan.csv``.

=============================  ==================================  ================================
files                          what is read                        what is written
=============================  ==================================  ================================
.npy                           2 dimensions: a table; 3: an        table: .npy with 3 more columns;
                               image, height x width x bands       image: .npy, the mask
.npz                           the main array, or `variable`       .npz with 3 arrays
.csv .tsv .csv.gz .tsv.gz      numbers; columns of text are left   the same rows as text, with
                               out and listed                      3 more columns
.txt .txt.gz                   as .csv, also with white space      the same
                               between the cells
.xyz                           point clouds as .txt; x, y, z, or   the same points as text, with
                               else the first 3 columns            3 more columns
.mat                           as .npz                             .mat with 3 arrays
.h5 .hdf5 .he5                 as .npz; `variable` is a path       .h5 with 3 datasets
                               inside, such as ``a/b``
.zarr .zip                     as .h5; a folder or a zip of it     the same, with 3 arrays
.parquet .arrow .feather       columns of numbers; others are      the same rows, all columns and
                               left out and listed; also folders   3 more
.hdr, or its raw file          ENVI scenes (raw files: .img .raw   ENVI classes (0 no data, 1
                               .dat .bsq .bil .bip); bad bands     inlier, 2 outlier), and distances
                               are left out and listed
.tif .tiff                     TIFF and GeoTIFF scenes             mask, and distances
.ply .pcd .las .laz            point clouds; x, y, z unless        the same cloud with 3 more fields
                               `columns` says otherwise
.bin                           KITTI's laser scans                 .ply with 3 more fields
=============================  ==================================  ================================

The three columns or arrays are ``distance`` (in the unit that decides the labels), ``probability``
(of being an outlier) and ``inlier`` (1 or 0). If a column has such a name already, the new name
begins with ``perpend_``. Records without data have NaN, an empty cell, or 255 for bytes: a mask is
1 for inliers, 0 for outliers and 255 for no data.

A new format is one more module and one more line in ``_registry.FORMATS``.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from perpend._deprecation import renamed_names, renamed_parameters
from perpend.exceptions import InputError
from perpend.formats._dataset import Counts, Dataset, Kind, Labelled, Options
from perpend.formats._notation import Notation
from perpend.formats._registry import (
    ARRAYS,
    BY_NAME,
    BY_SUFFIX,
    FOLDERS,
    FORMATS,
    SEVERAL,
    TABLES,
    TEXT,
    Format,
    suffix_of,
)

if TYPE_CHECKING:
    from perpend.formats._choice import Entry
    from perpend.formats._stream import Blocks

__all__ = [
    "FORMATS",
    "Counts",
    "Dataset",
    "Format",
    "Kind",
    "Labelled",
    "Options",
    "arrays_in",
    "open_blocks",
    "read",
    "without_missing",
    "write_labelled",
]

__getattr__ = renamed_names(
    __name__, {"Answer": "Labelled", "write_answer": "write_labelled"}, until="0.4"
)


def read(
    path: str | os.PathLike[str],
    *,
    variable: str | None = None,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    decimal: str = ".",
    thousands: str | None = None,
    transpose: bool = False,
    skip_rows: int | None = None,
    missing_values: Sequence[float] = (),
    format: str | None = None,  # noqa: A002  the natural word
) -> Dataset:
    r"""Read the rows of a table, the pixels of an image or the points of a cloud.

    Parameters
    ----------
    path : str or path
        The file, or a folder of Parquet or Arrow files with the same columns; the table above lists
        the suffixes.
    variable : str, optional
        Which array to take from a file that holds several. Not needed if one of them is by far
        the largest, such as a scene beside a mask of its pixels.
    columns : sequence of str, optional
        Which columns, bands or fields to take: names, or numbers from 1 unless names are numbers
        themselves. A range such as "1-40" or "V1-V40" is all columns from one to the other.
    exclude : sequence of str, optional
        Which to leave out, in the same manner.
    decimal : {".", ","}, default="."
        The decimal mark of numbers in text tables.
    thousands : {",", ".", " ", "'"}, optional
        What separates thousands in text tables: "," reads 1,234.5 as a number above a thousand.
    transpose : bool, default=False
        Swap rows and columns of a text table or of an array with 2 dimensions, if points are
        columns in the file. Names of rows become names of columns.
    skip_rows : int, optional
        How many lines of a text table stand above its names; by default lines that are shorter
        than the rows below are left out, with a note.
    missing_values : sequence of float, default=()
        Numbers in a text table that stand for a missing value, such as -999: they become NaN.
    format : str, optional
        Name of the format, such as "csv"; by default the suffix of the file decides.

    Returns
    -------
    Dataset
        Its `X` has one row per sample and one column per feature, float32 if the file is float32,
        float64 otherwise; it may be a read-only map of the file. Pixels and points with NaN or
        infinite values are left out and counted; rows of a table stay, see
        :func:`without_missing`.

    Raises
    ------
    InputError
        If the file cannot be used; the message says why, and what to do.
    MissingExtraError
        If a package is needed to read it; the message says how to install it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "scan.csv"
    ...     _ = path.write_text("id,red,green\ns1,1,2\ns2,3,4\n", encoding="utf-8")
    ...     data = read(path)
    >>> data.X
    array([[1., 2.],
           [3., 4.]])
    >>> data.columns, data.counts.dropped_columns
    (('red', 'green'), ('id',))
    """
    with _system_errors(path):
        return opened(
            path,
            variable=variable,
            columns=columns,
            exclude=exclude,
            decimal=decimal,
            thousands=thousands,
            transpose=transpose,
            skip_rows=skip_rows,
            missing_values=missing_values,
            format=format,
        ).dataset()


def open_blocks(
    path: str | os.PathLike[str], *, memory_limit: int | None = None, **how: Any
) -> "Blocks":
    r"""Open the rows of a file to read them block by block, as often as needed.

    Parameters
    ----------
    path : str or path
        The file, or a folder of Parquet or Arrow files with the same columns.
    memory_limit : int, optional
        Bytes that may be held beside a block: a file that can only be read as a whole, such as
        MATLAB's, or in chunks larger than this, is refused.
    **how : optional
        As for :func:`read`.

    Returns
    -------
    Blocks
        Its ``read(start, stop)`` returns rows as a new array of shape (stop - start, D), in any
        order, best one block after the other. `shape` and `dtype` are those of all rows, `name` is
        the file, and `about` what :func:`read` would say of it. Pixels and points without data are
        left out: to find them, and the rows of a text, the file is read once here.

    Raises
    ------
    InputError
        If the file cannot be used, or has changed while it was read; the message says why, which
        rows, and what to do.
    MissingExtraError
        If a package is needed to read it; the message says how to install it.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "scan.npy"
    ...     np.save(path, np.arange(12.0).reshape(6, 2))
    ...     rows = open_blocks(path)
    ...     print(rows.shape, rows.read(2, 4).tolist())
    (6, 2) [[4.0, 5.0], [6.0, 7.0]]
    """
    with _system_errors(path):
        return opened(path, **how).ready(memory_limit)


def opened(
    path: str | os.PathLike[str],
    *,
    variable: str | None = None,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    decimal: str = ".",
    thousands: str | None = None,
    transpose: bool = False,
    skip_rows: int | None = None,
    missing_values: Sequence[float] = (),
    format: str | None = None,  # noqa: A002  the natural word
) -> "Blocks":
    """Check a file before it is read: `dataset` reads all, `ready` prepares for blocks.

    Parameters
    ----------
    path, variable, columns, exclude, decimal, thousands, transpose, skip_rows, missing_values, \
format
        As for :func:`read`.

    Returns
    -------
    Blocks
        See :func:`open_blocks`.
    """
    from perpend.formats import _checks as check
    from perpend.formats._checks import file_size, quoted

    path = Path(path)
    known = BY_NAME.get(format) if format is not None else BY_SUFFIX.get(suffix_of(path))
    with _system_errors(path):
        if known is None and format is None and path.is_dir():
            known = _in_folder(path)
        if not path.is_dir() or known is None or known.name not in FOLDERS:
            file_size(path)
        if known is None:
            wrong = quoted(suffix_of(path) if format is None else format)
            those = BY_SUFFIX if format is None else BY_NAME
            raise InputError(
                f"{path}: cannot read files of type {wrong}. "
                f"Known types: {', '.join(sorted(those))}."
            )
        if variable is not None and known.name not in SEVERAL:
            raise InputError(
                f"{path}: holds a single array, so there is no variable {quoted(variable)} to "
                "choose. Leave it out."
            )
        if transpose:
            check.transposable(path, known.name in {*ARRAYS, *TEXT})
        notation = Notation(decimal, thousands)
        if not notation.makes_sense:
            raise InputError(
                f"decimal={decimal!r} and thousands={thousands!r}; decimal must be a point or a "
                "comma, and thousands another of: a comma, a point, a blank, an apostrophe."
            )
        chosen = None if columns is None else tuple(columns)
        missing = _of_text(path, known.name, skip_rows, missing_values)
        how: Any = {"skip_rows": skip_rows, "missing_values": missing}
        options = Options(variable, chosen, known.name, tuple(exclude), notation, transpose, **how)
    return opened_as(path, options)


def _of_text(
    path: Path, form: str, skip_rows: int | None, missing_values: Sequence[float]
) -> tuple[float, ...]:
    """Check what only text tables know; return the values that stand for missing ones."""
    if skip_rows is not None and skip_rows < 0:
        raise InputError(f"skip_rows={skip_rows!r}; expected a number of lines, 0 or more.")
    try:
        missing = tuple(float(value) for value in missing_values)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"missing_values={missing_values!r}; expected numbers, such as [-999]."
        ) from error
    if form not in TEXT and (skip_rows is not None or missing):
        name = "missing_values" if missing else "skip_rows"
        raise InputError(
            f"{path}: {name} is for text tables, and this is {form}. Leave it out"
            f"{', and write NaN for missing values' if missing else ''}."
        )
    return missing


def opened_as(path: Path, options: "Options") -> "Blocks":
    """Open a file whose format and columns have been chosen before."""
    with _system_errors(path):
        return cast("Blocks", import_module(BY_NAME[options.format].module).opened(path, options))


@contextmanager
def _system_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn an error of the system about a file into one that names it."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        is_forbidden = isinstance(error, PermissionError)
        advice = "Check its permissions." if is_forbidden else "Check the name and the file."
        raise InputError(f"{path}: cannot be read ({reason}). {advice}") from error


def _in_folder(path: Path) -> Format | None:
    """Return the format of a folder of tables, by the first file in it."""
    files = (file for file in sorted(path.rglob("*")) if file.is_file())
    found = (BY_SUFFIX.get(file.suffix.lower()) for file in files)
    return next((known for known in found if known and known.name in TABLES), None)


@renamed_parameters(until="0.4", answer="labelled")
def write_labelled(dataset: Dataset, labelled: Labelled, folder: str | os.PathLike[str]) -> Path:
    r"""Write the rows with their labels, in the format of their file.

    Parameters
    ----------
    dataset : Dataset
        As it was read; text tables, for example, are copied from the file that it names.
    labelled : Labelled
        One label, distance and probability for each row of ``dataset.X``.
    folder : str or path
        Where to write; it is created if needed. A file of the same name is replaced.

    Returns
    -------
    Path
        The file, named after the source: ``scan-labelled.csv`` for ``scan.csv``.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "scan.csv"
    ...     _ = path.write_text("red,green\n1,2\n3,4\n", encoding="utf-8")
    ...     labelled = Labelled(np.array([1, -1]), np.array([0.0, 0.5]), np.array([0.25, 1.0]))
    ...     print(write_labelled(read(path), labelled, folder).read_text(encoding="utf-8"))
    red,green,distance,probability,inlier
    1,2,0.0,0.25,1
    3,4,0.5,1.0,0
    """
    lengths = {len(values) for values in labelled}
    if lengths != {len(dataset.X)}:
        raise ValueError(f"the dataset has {len(dataset.X)} rows, but there are {lengths} labels.")
    known, source, folder = BY_NAME[dataset.format], Path(dataset.source), Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    suffix = suffix_of(source)
    stem = source.name[: len(source.name) - len(suffix)]
    suffix = source.name[len(stem) :] if suffix in known.suffixes else known.suffixes[0]
    path = folder / f"{stem}-labelled{suffix}"
    return cast(Path, import_module(known.module).write_labelled(dataset, labelled, path))


def without_missing(dataset: Dataset, drop: str = "rows") -> Dataset:
    """Leave out rows or columns that have NaN or infinite values.

    Parameters
    ----------
    dataset : Dataset
        As it was read.
    drop : {"rows", "columns"}
        What to leave out. Rows keep their `positions`, columns are added to
        ``counts.dropped_columns``.

    Returns
    -------
    Dataset
        The same one if nothing is missing.

    Raises
    ------
    InputError
        If nothing would be left.
    """
    import numpy as np

    if drop not in ("rows", "columns"):
        raise ValueError(f"drop={drop!r} is neither 'rows' nor 'columns'.")
    X, counts = dataset.X, dataset.counts
    axis = 1 if drop == "rows" else 0
    keep = np.flatnonzero(np.isfinite(X).all(axis=axis))
    if len(keep) == X.shape[1 - axis]:
        return dataset
    if len(keep) == 0:
        other = "columns" if drop == "rows" else "rows"
        raise InputError(
            f"{dataset.source}: all {drop} have a NaN or an infinity, so none would be left. "
            f"Drop {other} instead, or fill the gaps."
        )
    if drop == "rows":
        before = np.arange(len(X)) if dataset.positions is None else dataset.positions
        return replace(dataset, X=X[keep], positions=before[keep])
    names = dataset.columns or tuple(str(j + 1) for j in range(X.shape[1]))
    lost = tuple(name for j, name in enumerate(names) if j not in set(keep.tolist()))
    return replace(
        dataset,
        X=X[:, keep],
        columns=tuple(names[j] for j in keep),
        counts=counts._replace(dropped_columns=(*counts.dropped_columns, *lost)),
    )


def arrays_in(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002  the natural word
) -> "dict[str, Entry]":
    """List the arrays of a file that can hold several, without reading their values.

    Parameters
    ----------
    path : str or path
        The file.
    format : str, optional
        Name of the format; by default the suffix of the file decides.

    Returns
    -------
    dict
        For each name, the shape and what it holds; empty if the file holds a single array or
        cannot be read: :func:`read` says why.
    """
    from perpend.formats._choice import ChoiceError

    try:
        read(path, variable="\0", format=format)  # no array has this name
    except ChoiceError as error:
        return error.entries
    except InputError:
        pass
    return {}

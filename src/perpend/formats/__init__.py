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
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from perpend._deprecation import renamed_names, renamed_parameters
from perpend.exceptions import InputError
from perpend.formats._dataset import (
    Counts,
    Dataset,
    Kind,
    Labelled,
    Options,
    without_missing,
)
from perpend.formats._opening import opened, system_errors
from perpend.formats._opening import opened_as as opened_as  # for workers, where blocks come to
from perpend.formats._registry import BY_NAME, FORMATS, Format, suffix_of

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
    with system_errors(path):
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
    with system_errors(path):
        return opened(path, **how).ready(memory_limit)


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

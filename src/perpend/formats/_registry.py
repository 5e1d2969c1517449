"""All formats; nothing heavy is imported here, so ``--help`` can list them."""

from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from perpend.exceptions import MissingExtraError


class Format(NamedTuple):
    """A kind of file, and the module that reads it and writes labels in its format.

    The module is imported when it is used. It has ``opened(path, options) -> Blocks``, for a file
    that is there and not empty, and ``write_labelled(dataset, labelled, path) -> Path``, which
    returns the file that it has written, `path` unless the format needs another name.
    """

    name: str  # such as "csv"
    suffixes: tuple[str, ...]  # in small letters
    module: str  # its full name
    extra: str  # the extra of perpend with the package it needs; "" if it needs none
    about: str  # one line


FORMATS = (
    Format("npy", (".npy",), "perpend.formats._npy", "", "NumPy array, table or image"),
    Format("npz", (".npz",), "perpend.formats._npz", "", "NumPy archive of arrays"),
    Format("csv", (".csv", ".csv.gz"), "perpend.formats._csv", "",
           "text table; comma, semicolon or tab"),
    Format("tsv", (".tsv", ".tsv.gz"), "perpend.formats._csv", "", "text table; tab"),
    Format("txt", (".txt", ".txt.gz"), "perpend.formats._csv", "",
           "text table; white space, or as csv"),
    Format("xyz", (".xyz",), "perpend.formats._csv", "", "point cloud as text: x y z first"),
    Format("mat", (".mat",), "perpend.formats._mat", "", "MATLAB, v5 to v7; v7.3 needs hdf5"),
    Format("hdf5", (".h5", ".hdf5", ".he5"), "perpend.formats._hdf5", "hdf5", "HDF5 datasets"),
    Format("zarr", (".zarr", ".zip"), "perpend.formats._zarr", "zarr", "Zarr, folder or zip"),
    Format("parquet", (".parquet",), "perpend.formats._parquet", "parquet", "Parquet table"),
    Format("arrow", (".arrow", ".feather"), "perpend.formats._arrow", "parquet", "Arrow table"),
    Format("envi", (".hdr", ".img", ".raw", ".dat", ".bsq", ".bil", ".bip"),
           "perpend.formats._envi", "", "ENVI scene: a header and a raw file"),
    Format("geotiff", (".tif", ".tiff"), "perpend.formats._tiff", "images", "GeoTIFF scene"),
    Format("ply", (".ply",), "perpend.formats._ply", "", "point cloud or mesh, text or binary"),
    Format("pcd", (".pcd",), "perpend.formats._pcd", "", "point cloud of PCL"),
    Format("las", (".las", ".laz"), "perpend.formats._las", "pointcloud", "airborne laser scan"),
    Format("kitti", (".bin",), "perpend.formats._kitti", "", "laser scan of KITTI")
)  # fmt: skip

SEVERAL = {"npz", "mat", "hdf5", "zarr", "geotiff"}  # can hold several arrays, or pages
TEXT = {"csv", "tsv", "txt"}  # tables as text
ARRAYS = {"npy", "npz", "mat", "hdf5", "zarr"}  # arrays without names for their columns
TABLES = {"parquet", "arrow"}  # may be a folder of files
FOLDERS = {*TABLES, "zarr"}  # may be a folder
BY_NAME = {known.name: known for known in FORMATS}
BY_SUFFIX = {suffix: known for known in FORMATS for suffix in known.suffixes}


def suffix_of(path: Path) -> str:
    """Return what the name of a file ends with, in small letters: two suffixes if it is packed."""
    ends = path.suffixes[-2:]
    return "".join(ends if ends[-1:] in ([".gz"], [".GZ"]) else ends[-1:]).lower()


def optional_package(package: str, path: Path, extra: str) -> Any:
    """Import a package that only some formats need, or say how to install it."""
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingExtraError(
            f"reading {path.suffix.lower()} needs {package.partition('.')[0]}. "
            f'Run: pip install "perpend[{extra}]"'
        ) from error

"""Formats whose readers are extras: without the package, and with a damaged file."""

import struct
from pathlib import Path

from cli.bad_inputs._case import ROWS, Make, bad

MAGIC = {
    ".h5": b"\x89HDF\r\n\x1a\n",
    ".parquet": b"PAR1",
    ".arrow": b"ARROW1\0\0",
    ".tif": b"II*\0\x08\0\0\0",
    ".las": b"LASF",
    ".mat": b"MATLAB 7.3 MAT-file".ljust(124) + b"\0\2IM",
}


def magic(suffix: str, rest: bytes = bytes(400)) -> bytes:
    return MAGIC[suffix] + rest


def las(n: int) -> bytes:
    """A file of version 1.2 that says it has n points, and has two."""
    sizes = struct.pack("<HIIBHI", 227, 227, 0, 0, 20, n)
    return (b"LASF" + bytes(20) + b"\1\2" + bytes(68) + sizes).ljust(227 + 2 * 20, b"\0")


def zarr_folder(text: str) -> Make:
    def make(path: Path) -> None:
        path.mkdir()
        (path / "zarr.json").write_text(text, encoding="utf-8")

    return make


MISSING = [
    bad("no h5py", "x.h5", magic(".h5"), "perpend[hdf5]", code=6, without="h5py"),
    bad("no h5py", "x.mat", magic(".mat"), "perpend[hdf5]", code=6, without="h5py"),
    bad("no zarr", "x.zarr", zarr_folder("{}"), "perpend[zarr]", code=6, without="zarr"),
    bad(
        "no pyarrow",
        "x.parquet",
        magic(".parquet"),
        "perpend[parquet]",
        code=6,
        without="pyarrow pyarrow.parquet",
    ),
    bad("no pyarrow", "x.arrow", magic(".arrow"), "perpend[parquet]", code=6, without="pyarrow"),
    bad("no reader", "x.tif", magic(".tif"), "perpend[", code=6, without="rasterio tifffile"),
    bad("no laspy", "x.las", las(2), "perpend[pointcloud]", code=6, without="laspy"),
    bad("no laspy", "x.laz", las(2), "perpend[pointcloud]", code=6, without="laspy"),
]


def hdf5(cut: int | None = None, **arrays) -> Make:
    def make(path: Path) -> None:
        import h5py

        with h5py.File(path, "w") as file:
            for name, values in arrays.items():
                file[name] = values
        path.write_bytes(path.read_bytes()[:cut])

    return make


def table(kind: str, cut: int | None = None, columns=("a", "b")) -> Make:
    def make(path: Path) -> None:
        import pyarrow as pa
        from pyarrow import feather, parquet

        rows = pa.table({name: ROWS[:, 0] + j for j, name in enumerate(columns)})
        if kind == "parquet":
            parquet.write_table(rows, path)
        else:
            feather.write_feather(rows, path)
        path.write_bytes(path.read_bytes()[:cut])

    return make


def zarr_array(damage: str) -> Make:
    def make(path: Path) -> None:
        import zarr

        zarr.create_array(path, data=ROWS)
        if damage == "metadata":
            (path / "zarr.json").write_bytes(b"{")
        else:
            for chunk in [file for file in path.rglob("*") if file.parent != path]:
                if chunk.is_file():
                    chunk.write_bytes(b"junk")

    return make


H5 = [
    bad("empty", "x.h5", b"", "the file is empty"),
    bad("junk", "x.h5", b"junk" * 99, "x.h5", needs="h5py"),
    bad("only the magic", "x.h5", magic(".h5"), "x.h5", needs="h5py"),
    bad("cut", "x.h5", hdf5(cut=900, a=ROWS), "x.h5", needs="h5py"),
    bad("several", "x.h5", hdf5(a=ROWS, b=ROWS), "--variable=", needs="h5py"),
    bad("no arrays", "x.h5", hdf5(), "x.h5", needs="h5py"),
    bad("text", "x.h5", hdf5(a="hello"), "x.h5", needs="h5py"),
    bad("v7.3, only the magic", "x.mat", magic(".mat"), "x.mat", needs="h5py"),
]
ZARR = [
    bad("an empty folder", "x.zarr", lambda path: path.mkdir(), "x.zarr", needs="zarr"),
    bad("a file", "x.zarr", b"junk", "x.zarr", needs="zarr"),
    bad("junk", "x.zarr", zarr_folder("junk"), "x.zarr", needs="zarr"),
    bad("a list", "x.zarr", zarr_folder("[]"), "x.zarr", needs="zarr"),
    bad("damaged metadata", "x.zarr", zarr_array("metadata"), "x.zarr", needs="zarr"),
    bad("damaged values", "x.zarr", zarr_array("values"), "x.zarr", needs="zarr"),
    bad("a zip of something", "x.zip", b"PK\5\6" + bytes(18), "x.zip", needs="zarr"),
]
TABLES = [
    bad("empty", "x.parquet", b"", "the file is empty"),
    bad("junk", "x.parquet", b"junk" * 99, "x.parquet", needs="pyarrow"),
    bad("only the magic", "x.parquet", magic(".parquet") + b"PAR1", "x.parquet", needs="pyarrow"),
    bad("cut", "x.parquet", table("parquet", cut=300), "x.parquet", needs="pyarrow"),
    bad(
        "no such column",
        "x.parquet",
        table("parquet"),
        'no column "z"',
        "--columns",
        "a,z",
        needs="pyarrow",
    ),
    bad("empty", "x.arrow", b"", "the file is empty"),
    bad("junk", "x.arrow", b"junk" * 99, "x.arrow", needs="pyarrow"),
    bad("only the magic", "x.arrow", magic(".arrow"), "x.arrow", needs="pyarrow"),
    bad("cut", "x.feather", table("arrow", cut=300), "x.feather", needs="pyarrow"),
]
IMAGES = [
    bad("empty", "x.tif", b"", "the file is empty"),
    bad("junk", "x.tif", b"junk" * 99, "x.tif", needs="tifffile"),
    bad("only the magic", "x.tif", magic(".tif", b""), "x.tif", needs="tifffile"),
    bad("no pages", "x.tif", magic(".tif"), "x.tif", needs="tifffile"),
    bad("a page far away", "x.tif", b"II*\0\xff\xff\xff\x7f", "x.tif", needs="tifffile"),
]
CLOUDS = [
    bad("empty", "x.las", b"", "the file is empty"),
    bad("junk", "x.las", b"junk" * 99, "x.las", needs="laspy"),
    bad("only the magic", "x.las", magic(".las"), "x.las", needs="laspy"),
    bad("a header that lies", "x.las", las(2**31), "x.las", needs="laspy"),
]

CASES = [*MISSING, *H5, *ZARR, *TABLES, *IMAGES, *CLOUDS]

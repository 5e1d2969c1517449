"""Valid tables and images for ``fuzz.py``, small: name to content, the first one is read."""

import io
import tempfile
from pathlib import Path

import numpy as np
import scipy.io

RNG = np.random.default_rng(0)
TABLE = RNG.random((20, 4))
SCENE = RNG.integers(0, 99, (4, 5, 6)).astype("i2")


def _saved(save, *args, **kwargs):
    stream = io.BytesIO()
    save(stream, *args, **kwargs)
    return stream.getvalue()


def _npy():
    yield {"x.npy": _saved(np.save, TABLE)}
    yield {"x.npy": _saved(np.save, SCENE)}


def _npz():
    yield {"x.npz": _saved(np.savez, X=TABLE, y=np.ones(20))}
    yield {"x.npz": _saved(np.savez_compressed, X=TABLE, labels=SCENE[0, 0])}


def _csv():
    yield {"x.csv": b"id,a,b\n" + b"".join(b"s%d,%r,1e-3\n" % (i, i / 7) for i in range(20))}
    yield {"x.csv": b"\xef\xbb\xbf1;2\r\n3;\r\n" + b'"5";-inf\r\n' * 9}
    yield {"x.tsv": b"# remark\n" + b"1\tnan\t3\n" * 10}
    yield {"x.txt": b"# remark\n a   b\n" + b"  1   2.5\n# another\n" * 9}
    yield {"x.xyz": b"1.5 -2 3e2 255 0 0\n" * 9 + b"nan 0 1 9 9 9\n"}


def _mat():
    about = {"a": np.array([1, "b"], object)}
    for packed in (True, False):
        yield {"x.mat": _saved(scipy.io.savemat, {"X": TABLE, "s": about}, do_compression=packed)}
    yield {"x.mat": _saved(scipy.io.savemat, {"scene": SCENE, "labels": np.eye(3)})}


def _h5(data=TABLE, **kwargs):
    import h5py

    stream = io.BytesIO()
    libver = kwargs.pop("libver", None)
    with h5py.File(stream, "w", libver=libver) as file:
        file.create_dataset("group/X", data=data, **kwargs)
        file["y"] = np.ones(20)
        file["name"] = "text"
        file["soft"] = h5py.SoftLink("/group/X")
        file["group/X"].attrs["unit"] = "m"
    return stream.getvalue()


def _hdf5():
    for libver in (None, "latest"):
        yield {"x.h5": _h5(libver=libver)}
        yield {"x.h5": _h5(libver=libver, compression="gzip", shuffle=True, chunks=True)}
        yield {"x.h5": _h5(libver=libver, compression="lzf", fletcher32=True)}
        yield {"x.h5": _h5(SCENE, libver=libver, compression="gzip", maxshape=(None, 5, 6))}


def _mat73():
    head = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM"
    import h5py

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.mat"
        with h5py.File(path, "w", userblock_size=512) as file:
            item = file.create_dataset("X", data=TABLE.T, compression="gzip")
            item.attrs["MATLAB_class"] = np.bytes_("double")
        content = path.read_bytes()
    yield {"x.mat": head.ljust(512, b"\0") + content[512:]}


def _zarr():
    import numcodecs
    import zarr

    for version, packers in (
        (2, [None, numcodecs.Blosc(), numcodecs.Zlib(), numcodecs.LZ4(), numcodecs.Zstd()]),
        (3, [None, "auto", zarr.codecs.BloscCodec(), zarr.codecs.GzipCodec()]),
    ):
        for packer in packers:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "x.zarr"
                group = zarr.open_group(path, mode="w", zarr_format=version)
                group.create_array("a/X", data=TABLE, chunks=(15, 4), compressors=packer)
                yield {
                    f"x.zarr/{file.relative_to(path).as_posix()}": file.read_bytes()
                    for file in sorted(path.rglob("*"))
                    if file.is_file() and file.name != ".zattrs"
                }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.zip"
        with zarr.storage.ZipStore(path, mode="w") as store:
            zarr.open_group(store, mode="w").create_array("X", data=TABLE)
        yield {"x.zip": path.read_bytes()}


def _table_with_text():
    import pyarrow as pa

    columns = {f"x{j}": TABLE[:, j] for j in range(4)}
    columns["whole"] = pa.array([None, *range(19)], pa.int16())
    text = ["a", "b", None, "d"] * 5
    return pa.table({**columns, "text": text, "cat": pa.array(text).dictionary_encode()})


def _parquet():
    from pyarrow import parquet

    for packer in ("none", "snappy", "gzip", "zstd", "lz4", "brotli"):
        for version in ("1.0", "2.0"):
            stream = io.BytesIO()
            parquet.write_table(
                _table_with_text(),
                stream,
                compression=packer,
                data_page_version=version,
                row_group_size=12,
                use_dictionary=version == "2.0",
            )
            yield {"x.parquet": stream.getvalue()}


def _arrow():
    import pyarrow as pa
    from pyarrow import feather

    for packer in ("uncompressed", "lz4", "zstd"):
        stream = io.BytesIO()
        feather.write_feather(_table_with_text(), stream, compression=packer, chunksize=12)
        yield {"x.feather": stream.getvalue()}
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, _table_with_text().schema) as writer:
        writer.write(_table_with_text())
    yield {"x.arrow": stream.getvalue()}


SAMPLES = {
    "npy": _npy,
    "npz": _npz,
    "csv": _csv,
    "mat": _mat,
    "hdf5": _hdf5,
    "mat73": _mat73,
    "zarr": _zarr,
    "parquet": _parquet,
    "arrow": _arrow,
}

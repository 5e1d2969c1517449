import io
import os
import struct
import warnings
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import refused
from perpend.exceptions import InputError
from perpend.formats import Dataset, read

X = np.arange(12.0).reshape(4, 3)


def header(shape, descr="<f8", version=(1, 0)):
    """A .npy header with any declaration."""
    text = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    length = struct.pack("<H" if version == (1, 0) else "<I", len(text))
    return b"\x93NUMPY" + bytes(version) + length + text


def saved(path, array, **kwargs):
    np.save(path, array, **kwargs)
    return path


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f8", ">f8", "<f4", ">f4", "<f2", "<i4", "|u1", "|b1", "<i8"])
@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_round_trip(tmp_path, suffix, dtype, order):
    array = np.asarray(X % 2 if dtype == "|b1" else X, dtype=dtype, order=order)
    path = tmp_path / f"data{suffix}"
    np.save(path, array) if suffix == ".npy" else np.savez_compressed(path, array)
    table = read(path)
    assert isinstance(table, Dataset)
    assert table.columns is None
    assert table.source == str(path)
    assert table.X.dtype == (np.float32 if dtype == "<f4" else np.float64)
    np.testing.assert_array_equal(table.X, array.astype(float))


def test_npy_is_mapped_not_read(tmp_path):
    table = read(str(saved(tmp_path / "x.npy", X)))
    assert isinstance(table.X.base.base, np.memmap)
    assert not table.X.flags.writeable
    assert type(table.X) is np.ndarray


def test_suffix_in_capitals_and_npz_without_compression(tmp_path):
    np.savez(tmp_path / "x.npz", values=X)
    path = (tmp_path / "x.npz").rename(tmp_path / "X.NPZ")
    np.testing.assert_array_equal(read(path).X, X)
    np.testing.assert_array_equal(read(path, variable="values").X, X)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.arange(5.0), r"has 1 dimension\(s\), shape \(5,\)\. Reshape it to 2"),
        (np.zeros((2, 3, 4, 5)), r"4 dimension\(s\), shape \(2, 3, 4, 5\).*to 3: height x width"),
        (np.float64(3), r"0 dimension\(s\)"),
        (np.zeros((0, 4)), r"shape \(0, 4\), so there are no values"),
        (np.zeros((4, 0)), r"shape \(4, 0\)"),
        (np.ones((2, 2), complex), "complex128.*not real numbers"),
        (np.array([["a", "b"]]), "not real numbers"),
        (np.zeros((2, 2), "M8[s]"), "not real numbers"),
        (np.zeros((2, 2), [("a", float)]), "not real numbers"),
        (np.array([[1, None]]), "Python objects, which only pickle can read"),
    ],
)
@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_arrays_that_are_no_table(tmp_path, suffix, array, message):
    path = tmp_path / f"data{suffix}"
    np.save(path, array) if suffix == ".npy" else np.savez(path, array)
    refused(path, message)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"empty \(0 bytes\)"),
        (b"1,2\n3,4\n", "does not begin like a .npy file"),
        (b"\x93NUMPY", "header is damaged"),
        (b"\x93NUMPY\x01\x00\xff\xff{", "header is damaged"),
        (b"\x93NUMPY\x07\x00" + header((1, 1))[8:] + bytes(8), "header is damaged"),
        (header((2**40, 1)), "declares 1099511627776 x 1 .*8.8 TB.* but holds 0 bytes.*cut-off"),
        (header((2**40, 2**40)), "declares.*cut-off"),
        (header((-3, 1)) + bytes(24), r"shape \(-3, 1\)"),
        (header((2, 2)) + bytes(31), "32 bytes.* but holds 31 bytes.*cut-off copy"),
        (header((2, 2)) + bytes(33), "but holds 33 bytes.*one array per file"),
        (header((2, 2), "|O") + b"cos\nsystem\n", "pickle"),
        (header("(" * 5000), "header is damaged"),
        (header((2, 2), "<f9") + bytes(32), "header is damaged"),
        (header("2, 2, ".join("[]")) + bytes(32), "header is damaged"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + bytes(100), "header is damaged"),
    ],
)
def test_damaged_npy(tmp_path, content, message):
    path = tmp_path / "bad.npy"
    path.write_bytes(content)
    refused(path, message)


@pytest.mark.parametrize("version", [(2, 0), (3, 0)])
def test_later_header_versions(tmp_path, version):
    path = tmp_path / "x.npy"
    path.write_bytes(header(X.shape, version=version) + X.tobytes())
    np.testing.assert_array_equal(read(path).X, X)


def test_header_written_by_python_2(tmp_path):
    path = tmp_path / "x.npy"
    path.write_bytes(header("(4L, 3L)") + X.tobytes())
    np.testing.assert_array_equal(read(path).X, X)


def test_several_arrays_need_a_choice(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, cube=np.zeros((2, 3, 4)), spectra=X, **{f"v{i}": X for i in range(30)})
    refused(path, r'several arrays.*variable=.*"cube" \(2, 3, 4\), "spectra" \(4, 3\).* 12 more')
    refused(path, r'no array "nothing"\. Choose one', variable="nothing")
    assert read(path, variable="cube").kind == "image"
    np.testing.assert_array_equal(read(path, variable="spectra").X, X)


def test_npy_offers_no_choice(tmp_path):
    refused(saved(tmp_path / "x.npy", X), 'no variable "a" to choose', variable="a")


def write_zip(path, members, compression=zipfile.ZIP_STORED):
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", compression) as archive:
        warnings.simplefilter("ignore")  # two members of one name
        for name, content in members:
            archive.writestr(name, content)
    return path


def npy_bytes(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def test_archive_that_expands_a_thousandfold_is_refused(tmp_path):
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, np.zeros((9_000, 1_000)))
    assert path.stat().st_size < 100_000
    refused(path, "would expand to 72.0 MB, more than 100 times as much.*uncompressed")
    np.savez_compressed(path, np.zeros((900, 1_000)))  # small: harmless
    assert read(path).X.shape == (900, 1_000)


def test_an_array_that_expands_much_beside_the_one_that_is_read(tmp_path):
    path = tmp_path / "x.npz"
    scene = np.random.default_rng(0).random((9_000, 2, 5))
    np.savez_compressed(path, scene=scene, mask=np.zeros((9_000, 1_000)))
    refused(path, r'"scene" \(9000, 2, 5\), "mask" \(9000, 1000\)')
    np.testing.assert_array_equal(read(path, variable="scene").X, scene.reshape(-1, 5))
    refused(path, '"mask": .* would expand to 72.0 MB', variable="mask")


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([], "no array in this archive"),
        ([("readme.txt", b"hello")], "no array in this archive"),
        ([("x.npy", b"hello")], '"x": does not begin like a .npy file'),
        ([("x.npy", npy_bytes(X)), ("x.npy", npy_bytes(X))], 'two arrays "x"'),
        ([("x.npy", header((2**40, 1)))], "declares.*but holds 0 bytes"),
        ([("x.npy", npy_bytes(X)[:-1])], "holds 95 bytes.*cut-off"),
        ([("x.npy", b""), ("y.npy", npy_bytes(X))], r'"y" \(4, 3\), "x" \(unreadable\)'),
        ([("../../\x1b[31m.npy", b"")], r'"../../\\x1b\[31m": does not begin'),
    ],
)
def test_odd_archives(tmp_path, members, message):
    refused(write_zip(tmp_path / "odd.npz", members), message)


def test_compression_that_numpy_does_not_use(tmp_path):
    path = write_zip(tmp_path / "x.npz", [("x.npy", npy_bytes(X))], zipfile.ZIP_BZIP2)
    refused(path, "compressed in a way that NumPy does not use")


def test_archive_that_lies_about_its_sizes(tmp_path):
    path = write_zip(tmp_path / "x.npz", [("x.npy", npy_bytes(X))])
    content = path.read_bytes()
    size = struct.pack("<I", len(npy_bytes(X)))
    place = content.index(b"PK\x01\x02") + 20  # packed and unpacked size in the directory
    assert content[place : place + 8] == size * 2
    for packed, plain in [(2**31, 2**31), (len(npy_bytes(X)), 2**31)]:
        lie = struct.pack("<II", packed, plain)
        path.write_bytes(content[:place] + lie + content[place + 8 :])
        refused(path, "larger than the archive itself|would expand")


@pytest.mark.parametrize("keep", [1, 50, 200, -1])
def test_truncated_and_foreign_archives(tmp_path, keep):
    path = tmp_path / "x.npz"
    np.savez_compressed(path, np.random.default_rng(0).random((9, 9)))
    path.write_bytes(path.read_bytes()[:keep])
    refused(path, "not a readable .npz archive")


@settings(deadline=None, max_examples=150)
@given(
    suffix=st.sampled_from([".npy", ".npz"]),
    edits=st.lists(st.tuples(st.integers(0, 10**4), st.integers(0, 255)), max_size=6),
    cut=st.integers(0, 40),
)
def test_no_damage_escapes_as_another_error(tmp_path_factory, suffix, edits, cut):
    path = tmp_path_factory.mktemp("fuzz") / f"x{suffix}"
    np.save(path, X) if suffix == ".npy" else np.savez_compressed(path, a=X)
    content = bytearray(path.read_bytes())
    for place, byte in edits:
        content[place % len(content)] = byte
    path.write_bytes(content[: len(content) - cut])
    try:
        table = read(path)
    except InputError:
        return
    assert table.X.ndim == 2
    assert table.X.dtype in (np.float32, np.float64)


def test_files_that_are_not_there(tmp_path):
    refused(tmp_path / "none.npy", "no such file")
    refused(tmp_path, "is a directory. Give one of the files")
    refused(tmp_path / "x.npy" / "y.npy", "no such file")
    with pytest.raises(InputError, match="not a file name"):
        read("a\0b.npy")
    with pytest.raises(InputError, match="cannot be read"):
        read("x" * 5000 + ".npy")


def test_unknown_suffix_lists_those_that_work(tmp_path):
    for name in ("scan.xlsx", "scan"):
        path = tmp_path / name
        path.write_bytes(b"x")
        refused(path, r"cannot read files of type .*\.csv,.* \.npy, \.npz,.* \.tsv, .*\.zip\.")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "pipe.npy")
    refused(tmp_path / "pipe.npy", "not a regular file")


@pytest.mark.parametrize("suffix", [".csv", ".npy", ".npz", ".tsv"])
def test_no_permission(tmp_path, monkeypatch, suffix):
    path = tmp_path / f"x{suffix}"
    path.write_bytes(b"x")

    def forbid(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("io.open", forbid)  # what Path.open calls; root may read everything
    monkeypatch.setattr("zipfile.ZipFile", forbid)
    refused(path, r"cannot be read \(Permission denied\)")

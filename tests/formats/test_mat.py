import struct
import zlib

import numpy as np
import pytest
import scipy.io
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import refused
from perpend.exceptions import InputError
from perpend.formats import read

SCENE = np.arange(60.0).reshape(3, 4, 5)


def write(path, *, compressed=True, **arrays):
    scipy.io.savemat(path, arrays, do_compression=compressed)
    return path


def cube(path):
    data = read(path)
    return data.X.reshape(*data.shape, -1)


def recompressed(content):
    """The same .mat file with every variable compressed, whatever it says."""
    result, place = content[:128], 128
    while place < len(content):
        _, length = struct.unpack_from("<II", content, place)
        packed = zlib.compress(content[place : place + 8 + length])
        result += struct.pack("<II", 15, len(packed)) + packed
        place += 8 + length
    return result


def plain_mat(path, **arrays):
    return write(path, compressed=False, **(arrays or {"scene": SCENE})).read_bytes()


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (np.array([[1, "a"]], dtype=object), "cell"),
        ({"scene": SCENE}, "struct"),
        ("text", "char"),
        (scipy.sparse.csc_array(np.eye(3)), "sparse"),
        (scipy.sparse.csc_array(np.eye(3, dtype=bool)), "sparse"),
    ],
)
def test_mat_variables_that_are_no_arrays(tmp_path, value, name):
    path = write(tmp_path / "x.mat", a=value)
    refused(path, f'"a": is of MATLAB\'s type "{name}", not an array of real numbers. Save the')
    path = write(tmp_path / "y.mat", a=value, b=SCENE)
    np.testing.assert_array_equal(cube(path), SCENE)


def test_single_stays_single_though_matlab_writes_whole_numbers_as_integers(tmp_path):
    content = plain_mat(tmp_path / "x.mat", scene=np.arange(8, dtype=np.uint8).reshape(2, 2, 2))
    content = bytearray(content)
    assert content[144] == 9  # the class uint8
    content[144] = 7  # single
    (tmp_path / "x.mat").write_bytes(content)
    values = cube(tmp_path / "x.mat")
    assert values.dtype == np.float32
    np.testing.assert_array_equal(values, np.arange(8).reshape(2, 2, 2))


def test_big_endian_mat(tmp_path):
    data = np.arange(8, dtype=">f8").tobytes()
    parts = [
        struct.pack(">IIII", 6, 8, 6, 0),  # flags: double
        struct.pack(">IIiiii", 5, 12, 2, 2, 2, 0),  # shape, padded
        struct.pack(">HH4s", 1, 1, b"a"),  # name, in the short form
        struct.pack(">II", 9, len(data)) + data,
    ]
    body = b"".join(parts)
    start = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack(">H", 0x0100) + b"MI"
    path = tmp_path / "x.mat"
    path.write_bytes(start + struct.pack(">II", 14, len(body)) + body)
    np.testing.assert_array_equal(cube(path), np.arange(8.0).reshape((2, 2, 2), order="F"))


def test_mat_of_other_versions(tmp_path):
    path = tmp_path / "x.mat"
    scipy.io.savemat(path, {"a": np.eye(3)}, format="4")
    refused(path, "does not begin like a MATLAB file of version 5.*version 4")
    path.write_bytes(b"1,2,3\n" * 100)
    refused(path, "does not begin like a MATLAB file of version 5")


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("keep", [1, 100, 128, 131, 136, 150, 200, -1])
def test_truncated_mat(tmp_path, keep, compressed):
    path = write(tmp_path / "x.mat", a=SCENE, compressed=compressed)
    path.write_bytes(path.read_bytes()[:keep])
    refused(path, "does not begin like|there is no array in this file|cut-off copy")


def test_two_mat_variables_of_one_name(tmp_path):
    path = tmp_path / "x.mat"
    content = plain_mat(path)
    path.write_bytes(content + content[128:])
    refused(path, '"scene": is there twice. Write the file anew')
    refused(path, '"scene": is there twice', variable="scene")


@pytest.mark.parametrize("pack", [bytes, recompressed])
def test_objects_of_newer_matlab_versions_are_passed_over(tmp_path, pack):
    path = tmp_path / "x.mat"
    content = plain_mat(path)
    body = struct.pack("<IIII", 6, 8, 17, 0) + struct.pack("<HH4s", 1, 3, b"str") + bytes(16)
    opaque = struct.pack("<II", 14, len(body)) + body
    path.write_bytes(pack(content[:128] + opaque + content[128:] + opaque))
    np.testing.assert_array_equal(cube(path), SCENE)


def test_mat_that_expands_a_thousandfold_is_refused(tmp_path):
    path = write(tmp_path / "bomb.mat", a=np.zeros((900, 100, 100)))
    assert path.stat().st_size < 100_000
    refused(path, "would expand to more than 100 times its size.*as .npy")
    assert cube(write(path, a=np.zeros((90, 100, 100)))).shape == (90, 100, 100)


@pytest.mark.parametrize("pack", [bytes, recompressed])
@pytest.mark.parametrize(
    ("place", "value", "message"),
    [  # places in the file: 136 flags, 152 shape, 176 name, 192 values
        (136, 1, "no flags"),
        (144, 1, '"scene": is of MATLAB\'s type "cell"'),
        (144, 1 | 1 << 9, '"scene": is of MATLAB\'s type "cell"'),  # "logical", says SciPy
        (144, 99, '"scene": is of MATLAB\'s type "unknown"'),
        (144, 17, "there is no array in this file"),
        (156, 2**31, "a variable that ends too early"),
        (160, 2**30, "shape and values disagree"),
        (160, -3, "so there are no values|disagree"),
        (180, 2**32 - 1, "a name without end"),
        (192, 200, "shape and values disagree"),  # a type that makes SciPy crash
        (192, 14, "shape and values disagree"),
        (196, 2**32 - 1, "shape and values disagree"),
        (196, 479, "shape and values disagree"),
    ],
)
def test_damaged_mat(tmp_path, place, value, message, pack):
    path = tmp_path / "x.mat"
    content = bytearray(plain_mat(path))
    assert struct.unpack_from("<II", content, 192) == (9, 480)
    struct.pack_into("<I", content, place, value % 2**32)
    path.write_bytes(pack(bytes(content)))
    refused(path, message)


@settings(deadline=None, max_examples=300)
@given(
    pack=st.sampled_from([bytes, recompressed, None]),
    edits=st.lists(
        st.tuples(
            st.one_of(st.integers(124, 200), st.integers(0, 10**4)),
            st.one_of(st.sampled_from([0, 1, 5, 6, 9, 14, 15, 255]), st.integers(0, 255)),
        ),
        max_size=5,
    ),
    cut=st.one_of(st.just(0), st.integers(0, 700)),
)
def test_no_damage_escapes_as_another_error(tmp_path_factory, pack, edits, cut):
    path = tmp_path_factory.mktemp("fuzz") / "x.mat"
    arrays = {"scene": SCENE, "labels": np.eye(3), "about": {"a": np.array([1, "b"], object)}}
    content = bytearray(write(path, compressed=pack is None, **arrays).read_bytes())
    lengths = slice(132, 136)
    kept = content[lengths]
    for place, byte in edits:
        content[place % len(content)] = byte
    if pack is recompressed:
        content[lengths] = kept
        first = 136 + struct.unpack("<I", kept)[0]
        content = content[:128] + recompressed(content[:first])[128:]
    path.write_bytes(content[: len(content) - min(cut, len(content) - 1)])
    try:
        data = read(path)
    except InputError:
        return
    assert data.X.ndim == 2
    assert data.X.dtype in (np.float32, np.float64)

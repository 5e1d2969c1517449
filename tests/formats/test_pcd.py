import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import refused
from perpend.exceptions import InputError
from perpend.formats import read, write_labelled
from perpend.formats._lzf import decompress
from scene_files import QUICK, SEEDS, damage, in_records, some_labels, survives

pypcd4 = pytest.importorskip("pypcd4", reason="pypcd4 is not installed")
lzf = pytest.importorskip("lzf")

KINDS = ["ascii", "binary", "binary_compressed"]
POINTS = np.array([[0.5 * i, i * i - 3.25, 1.0 / (i + 1)] for i in range(40)], np.float32)
GOOD = """# .PCD v0.7 - Point Cloud Data file format
VERSION 0.7
FIELDS x y z
SIZE 4 4 4
TYPE F F F
COUNT 1 1 1
WIDTH 2
HEIGHT 1
VIEWPOINT 0 0 0 1 0 0 0
POINTS 2
DATA ascii
1 2 3
4 5 6
"""


def cloud(path, kind, arrays, fields, types):
    made = pypcd4.PointCloud.from_points(arrays, fields, types)
    made.save(path, encoding=pypcd4.Encoding(kind))
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_reads_what_pypcd4_writes(tmp_path, kind):
    path = cloud(tmp_path / "a.pcd", kind, POINTS, ("x", "y", "z"), (np.float32,) * 3)
    dataset = read(path)
    assert dataset.kind == "cloud"
    assert dataset.shape == (40,)
    assert dataset.columns == ("x", "y", "z")
    assert dataset.stored_dtype == "float32"
    assert dataset.X.dtype == (np.float64 if kind == "ascii" else np.float32)
    assert dataset.X.flags.c_contiguous
    np.testing.assert_allclose(dataset.X, POINTS, rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_fields_of_all_types(tmp_path, kind):
    types = [np.dtype(t) for t in ("i1", "i2", "i4", "u1", "u2", "u4", "f4", "f8")]
    names = [f"of_{t.name}" for t in types]
    arrays = [np.arange(5, dtype=t) + j for j, t in enumerate(types)]
    path = cloud(tmp_path / "a.pcd", kind, arrays, names, types)
    dataset = read(path, columns=names[::-1])
    np.testing.assert_array_equal(dataset.X, np.stack(arrays, axis=1)[:, ::-1])
    refused(path, 'has no column "x". Its columns: "of_int8"')


@pytest.mark.parametrize("kind", KINDS)
def test_coordinates_far_from_the_origin(tmp_path, kind):
    X = np.array([[500000.123, 4649776.224, 1.5], [500000.124, 4649776.225, 2.5]])
    path = cloud(tmp_path / "a.pcd", kind, X, ("x", "y", "z"), (np.float64,) * 3)
    np.testing.assert_allclose(read(path).X, X, rtol=0, atol=1e-6)
    assert read(path).X.dtype == np.float64


def test_fields_of_several_numbers_and_padding(tmp_path):
    path = tmp_path / "a.pcd"
    head = GOOD.replace("FIELDS x y z", "FIELDS x _ f _").replace("SIZE 4 4 4", "SIZE 4 1 8 2")
    head = head.replace("TYPE F F F", "TYPE F U F U").replace("COUNT 1 1 1", "COUNT 1 4 2 1")
    record = np.dtype([("x", "<f4"), ("p", "u1", 4), ("f", "<f8", 2), ("q", "<u2")])
    rows = np.array([(1, (9,) * 4, (2, 3), 9), (4, (9,) * 4, (5, 6), 9)], record)
    data = head[: head.index("ascii")].encode() + b"binary\n" + rows.tobytes()
    path.write_bytes(data)
    expected = [[1, 3], [4, 6]]
    np.testing.assert_array_equal(read(path, columns=["x", "f_1"]).X, expected)
    dataset = read(path, columns=["f_0"])
    np.testing.assert_array_equal(dataset.X, [[2], [5]])
    out = write_labelled(dataset, some_labels(dataset), tmp_path / "out")
    np.testing.assert_array_equal(read(out, columns=["x", "f_1"]).X, expected)
    packed = b"".join(np.ascontiguousarray(rows[name]).tobytes() for name in record.names)
    squeezed = (
        lzf.compress(packed)
        or b"".join(  # too small to shrink: literals only
            bytes([len(packed[i : i + 32]) - 1]) + packed[i : i + 32]
            for i in range(0, len(packed), 32)
        )
    )
    sizes = np.array([len(squeezed), len(packed)], "<u4").tobytes()
    path.write_bytes(
        head[: head.index("ascii")].encode() + b"binary_compressed\n" + sizes + squeezed
    )
    np.testing.assert_array_equal(read(path, columns=["x", "f_1"]).X, expected)
    text = "1 9 9 9 9 2 3 9\n4 9 9 9 9 5 6 9\n"
    path.write_text(head[: head.index("1 2 3")] + text, encoding="utf-8")
    np.testing.assert_array_equal(read(path, columns=["x", "f_1"]).X, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_organised_cloud_with_points_that_are_nowhere(tmp_path, kind):
    X = POINTS.copy()
    X[[3, 17]] = np.nan
    X[5] = 0
    path = cloud(tmp_path / "a.pcd", kind, X, ("x", "y", "z"), (np.float32,) * 3)
    data = path.read_bytes().replace(b"WIDTH 40", b"WIDTH 8").replace(b"HEIGHT 1", b"HEIGHT 5")
    path.write_bytes(data)
    dataset = read(path)
    assert dataset.shape == (40,)
    assert dataset.counts[:3] == (2, 0, 1)
    np.testing.assert_array_equal(dataset.positions, np.flatnonzero(np.isfinite(X[:, 0])))
    np.testing.assert_allclose(dataset.X, X[dataset.positions], rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_the_labels_are_three_more_fields_of_the_cloud(tmp_path, kind):
    X = POINTS.copy()
    X[4] = np.nan
    arrays = [*X.T, np.arange(40, dtype=np.uint16)]
    names, types = ("x", "y", "z", "inlier"), (np.float32,) * 3 + (np.uint16,)
    dataset = read(cloud(tmp_path / "a.pcd", kind, arrays, names, types))
    labelled = some_labels(dataset)
    out = write_labelled(dataset, labelled, tmp_path / "out")
    assert out.name == "a-labelled.pcd"
    back = pypcd4.PointCloud.from_path(out)
    assert back.fields == (*names, "distance", "probability", "perpend_inlier")
    values = {name: np.ravel(back.numpy([name])) for name in back.fields}
    np.testing.assert_array_equal(values["inlier"], np.arange(40))
    np.testing.assert_allclose(np.stack([values[c] for c in "xyz"], axis=1), X, rtol=1e-6)
    expected = in_records(dataset, labelled.labels == 1, 255)
    np.testing.assert_array_equal(values["perpend_inlier"], expected)
    expected = in_records(dataset, labelled.distance, np.nan)
    np.testing.assert_allclose(values["distance"], expected, rtol=1e-6)
    assert b"VIEWPOINT" in out.read_bytes()


def test_a_file_that_has_changed_is_refused(tmp_path):
    path = tmp_path / "a.pcd"
    path.write_text(GOOD, encoding="utf-8")
    dataset = read(path)
    path.write_text(GOOD.replace("COUNT 1 1 1\n", ""), encoding="utf-8")
    with pytest.raises(InputError, match=r"a.pcd: has changed since it was read"):
        write_labelled(dataset, some_labels(dataset), tmp_path / "out")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("VERSION 0.7", "OFF"), 'line 2: cannot read "OFF" in the header'),
        (("VERSION 0.7", "WIDTH 2"), 'line 8: cannot read "WIDTH 2"|line 7'),
        (("DATA ascii\n1 2 3\n4 5 6\n", ""), "no line DATA"),
        (("DATA ascii\n1 2 3\n4 5 6\n", "DATA ascii"), "no line DATA"),
        (("DATA ascii", "DATA zip"), 'DATA "zip" is not one of ascii'),
        (("SIZE 4 4 4", "SIZE 4 4"), "have 3, 2, 3 and 3 entries"),
        (("FIELDS x y z", "FIELDS x y x"), "two of its fields have the same name"),
        (("TYPE F F F", "TYPE F F C"), 'TYPE "C" of SIZE "4" is unknown'),
        (("SIZE 4 4 4", "SIZE 4 4 2"), 'TYPE "F" of SIZE "2" is unknown'),
        (("COUNT 1 1 1", "COUNT 1 1 0"), "COUNT is not between 1 and 65536"),
        (("COUNT 1 1 1", "COUNT 1 1 99999999999"), "COUNT is not between 1 and 65536"),
        (("COUNT 1 1 1", "COUNT 65536 1 1"), "more than 65536 numbers"),
        (("COUNT 1 1 1", "COUNT 1 1 x"), 'COUNT "x" is not a count'),
        (("WIDTH 2\n", ""), 'WIDTH "" is not a count'),
        (("WIDTH 2", "WIDTH -2"), 'WIDTH "-2" is not a count'),
        (("POINTS 2", "POINTS 3"), "POINTS 3 contradicts WIDTH 2 and HEIGHT 1"),
        (("WIDTH 2\nHEIGHT 1", "WIDTH 0\nHEIGHT 0"), "contradicts WIDTH 0"),
        (("POINTS 2\n", "POINTS 0\n"), "contradicts"),
        (("\n4 5 6\n", "\n4 5 six\n"), "could not convert string 'six' to float64 at row 1"),
        (("\n4 5 6\n", "\n4 5\n"), "at least 11 bytes, but holds 10"),
        (("\n4 5 6\n", "\n4.1 5.1\n"), "number of columns changed from 3 to 2 at row 2"),
        (("\n4 5 6\n", "       "), "has 1 lines of 3 numbers, but its header says 2 of 3"),
        (("ascii\n1 2 3\n4 5 6\n", "binary\n1234"), "at least 24 bytes, but holds 4 bytes"),
        (("ascii\n1 2 3\n4 5 6\n", "binary_compressed\n1"), "unpack to 0 bytes|but holds 0 bytes"),
    ],
)
def test_headers_that_do_not_fit(tmp_path, change, message):
    assert change[0] in GOOD
    path = tmp_path / "a.pcd"
    path.write_text(GOOD.replace(*change), encoding="utf-8")
    refused(path, message)


def test_absurd_sizes_in_a_small_file(tmp_path):
    path = tmp_path / "a.pcd"
    for kind in KINDS:
        head = GOOD.replace("WIDTH 2", "WIDTH 999999999999").replace(
            "POINTS 2", "POINTS 999999999999"
        )
        path.write_text(head.replace("ascii", kind), encoding="utf-8")
        refused(path, "declare")
    head = GOOD.replace("WIDTH 2", "WIDTH 300000000").replace("POINTS 2", "POINTS 300000000")
    start = head[: head.index("ascii")].encode() + b"binary_compressed\n"
    path.write_bytes(start + np.array([4, 3_600_000_000], "<u4").tobytes() + b"1234")
    refused(path, "4 bytes cannot expand to 3600000000|of memory")


@pytest.mark.parametrize("kind", KINDS)
def test_cut_anywhere(tmp_path, kind):
    path = cloud(tmp_path / "a.pcd", kind, POINTS, ("x", "y", "z"), (np.float32,) * 3)
    good = path.read_bytes()
    end = good.rstrip().rindex(b" ") if kind == "ascii" else len(good)
    for length in range(end):
        path.write_bytes(good[:length])
        assert survives(path) is None, length


@QUICK
@given(st.lists(st.tuples(st.binary(max_size=40), st.integers(1, 400)), max_size=8))
def test_lzf_undoes_what_the_library_does(pieces):
    plain = b"".join(piece * times for piece, times in pieces)
    packed = lzf.compress(plain) if plain else None
    if packed:  # None if it would not shrink
        assert bytes(decompress("x", packed, len(plain))) == plain


@pytest.mark.parametrize(
    ("data", "size", "message"),
    [
        (b"\x02ab", 3, "do not fit its size"),
        (b"\x02abc", 2, "do not fit its size"),
        (b"\x02abc", 4, "unpacks to 3 bytes instead of 4"),
        (b"\x20\x00", 3, "refers to bytes before its start"),
        (b"\x00a\xe0", 12, "ends too early"),
        (b"\x00a\x20", 4, "ends too early"),
        (b"\x00a", 10**12, "2 bytes cannot expand"),
    ],
)
def test_lzf_refuses(data, size, message):
    with pytest.raises(InputError, match=message):
        decompress("x.pcd", data, size)


@pytest.mark.parametrize("kind", KINDS)
@QUICK
@given(SEEDS)
def test_damaged(tmp_path, kind, seed):
    path = cloud(tmp_path / "a.pcd", kind, POINTS, ("x", "y", "z"), (np.float32,) * 3)
    path.write_bytes(damage(path.read_bytes(), np.random.default_rng(seed), focus=250))
    survives(path)

"""What all formats share: the registry, labels in the format of the file, gaps, and limits."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.io

from perpend import formats
from perpend.exceptions import InputError, MissingExtraError, TooLargeError
from perpend.formats import FORMATS, Counts, Labelled, read, without_missing, write_labelled
from perpend.formats import _memory as memory
from perpend.formats._registry import BY_SUFFIX, optional_package

X = np.arange(1.0, 13.0).reshape(4, 3)
LABELLED = Labelled(
    np.array([1, -1, 1, 1]), np.array([0.0, 2.5, 0.1, 0.2]), np.array([0, 1, 0.5, 0.1])
)


def gappy():
    rows = X.copy()
    rows[2, 1] = np.nan
    return rows


# --- the registry -----------------------------------------------------------------------------


def test_names_and_suffixes_are_unique():
    suffixes = [suffix for known in FORMATS for suffix in known.suffixes]
    assert len(set(suffixes)) == len(suffixes) == len(BY_SUFFIX)
    assert len({known.name for known in FORMATS}) == len(FORMATS)
    assert all(suffix == suffix.lower() and suffix.startswith(".") for suffix in suffixes)
    for suffix in suffixes:
        assert suffix in formats.__doc__


def test_the_registry_imports_nothing_heavy():
    code = (
        "import sys, perpend.formats; perpend.formats.FORMATS; "
        "print({'numpy', 'scipy', 'h5py', 'zarr', 'pyarrow'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "set()"


def test_the_format_overrides_the_suffix(tmp_path):
    path = tmp_path / "scan.txt"
    path.write_text("a,b\n1,2\n3,4\n")
    data = read(path, format="csv")
    np.testing.assert_array_equal(data.X, [[1, 2], [3, 4]])
    with pytest.raises(InputError, match=r'of type "xls". Known types: .*csv, .*npy'):
        read(path, format="xls")
    written = write_labelled(data, Labelled(*np.ones((3, 2))), tmp_path)
    assert written.name == "scan-labelled.csv"


def test_a_missing_package_is_one_line_with_a_way_out(tmp_path):
    with pytest.raises(MissingExtraError) as caught:
        optional_package("no_such.part", tmp_path / "x.H5", "hdf5")
    assert str(caught.value) == 'reading .h5 needs no_such. Run: pip install "perpend[hdf5]"'


# --- labels -----------------------------------------------------------------------------------


def test_text_tables_keep_their_text(tmp_path):
    path = tmp_path / "scan.csv"
    path.write_text('# remark\nid,"a;x",distance\n\n"s,1",01,2\ns2,3.50,nan\nß,5,6\n', "utf-8")
    data = without_missing(read(path))
    assert data.counts == Counts(nan=1, dropped_columns=("id",))
    labelled = Labelled(np.array([1, -1]), np.array([0.25, 2.0]), np.array([0.5, 1.0]))
    written = write_labelled(data, labelled, tmp_path / "new" / "folder")
    assert written == tmp_path / "new" / "folder" / "scan-labelled.csv"
    assert written.read_text("utf-8").splitlines() == [
        "id,a;x,distance,perpend_distance,probability,inlier",
        '"s,1",01,2,0.25,0.5,1',
        "s2,3.50,nan,,,",
        "ß,5,6,2.0,1.0,0",
    ]
    again = read(written)
    assert again.columns == ("a;x", "distance", "perpend_distance", "probability", "inlier")


def test_text_tables_without_a_header(tmp_path):
    path = tmp_path / "scan.tsv"
    path.write_text("1\t2\n3\t4\n")
    written = write_labelled(read(path), Labelled(*np.array([[1, -1], [0, 1], [0, 1]])), tmp_path)
    assert written.name == "scan-labelled.tsv"
    assert written.read_text() == "1\t2\t0.0\t0.0\t1\n3\t4\t1.0\t1.0\t0\n"


@pytest.mark.parametrize("content", ["1,2\n", "1,2\n3,4\n5,6\n", "a,b\n3,4\n"])
def test_text_that_changed_meanwhile(tmp_path, content):
    path = tmp_path / "scan.csv"
    path.write_text("1,2\n3,4\n")
    data = read(path)
    path.write_text(content)
    with pytest.raises(InputError, match="has changed since it was read"):
        write_labelled(data, Labelled(*np.ones((3, 2))), tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_tables_get_three_more_columns(tmp_path, order, monkeypatch):
    monkeypatch.setattr("perpend.formats._npy.ROWS", 3)  # several blocks
    np.save(tmp_path / "x.npy", np.asarray(gappy(), order=order))
    data = without_missing(read(tmp_path / "x.npy"))
    labelled = Labelled(*(values[[0, 1, 3]] for values in LABELLED))
    table = np.load(write_labelled(data, labelled, tmp_path))
    expected = np.column_stack([X, LABELLED.distance, LABELLED.probability, [1, 0, 1, 1]])
    expected[2] = np.nan
    np.testing.assert_array_equal(table, expected)


@pytest.mark.parametrize("suffix", [".npz", ".mat"])
def test_archives_get_three_arrays(tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    np.savez(path, a=X) if suffix == ".npz" else scipy.io.savemat(path, {"a": X})
    written = write_labelled(read(path), LABELLED, tmp_path / "out")
    assert written == tmp_path / "out" / f"x-labelled{suffix}"
    loaded = np.load(written) if suffix == ".npz" else scipy.io.loadmat(written)
    np.testing.assert_array_equal(np.ravel(loaded["distance"]), LABELLED.distance)
    np.testing.assert_array_equal(np.ravel(loaded["probability"]), LABELLED.probability)
    np.testing.assert_array_equal(np.ravel(loaded["inlier"]), [1, 0, 1, 1])


def test_images_get_a_mask(tmp_path):
    scene = gappy().reshape(2, 2, 3)
    np.save(tmp_path / "x.npy", scene)
    np.savez(tmp_path / "x.npz", scene=scene)
    labelled = Labelled(*(values[[0, 1, 3]] for values in LABELLED))
    mask = np.load(write_labelled(read(tmp_path / "x.npy"), labelled, tmp_path))
    assert mask.dtype == np.uint8
    np.testing.assert_array_equal(mask, [[1, 0], [255, 1]])
    with np.load(write_labelled(read(tmp_path / "x.npz"), labelled, tmp_path)) as written:
        np.testing.assert_array_equal(written["inlier"], [[1, 0], [255, 1]])
        np.testing.assert_array_equal(written["distance"], [[0, 2.5], [np.nan, 0.2]])


def test_labels_of_another_length(tmp_path):
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(ValueError, match="the dataset has 4 rows"):
        write_labelled(read(tmp_path / "x.npy"), Labelled(*np.ones((3, 5))), tmp_path)


# --- columns and gaps -------------------------------------------------------------------------


def test_columns_by_number(tmp_path):
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", X.reshape(2, 2, 3))
    for name in "xy":
        data = read(tmp_path / f"{name}.npy", columns=["3", "1"])
        np.testing.assert_array_equal(data.X, X[:, [2, 0]])
        assert data.columns == ("3", "1")
        with pytest.raises(InputError, match=r'no column "4". Its columns: "1", "2", "3"'):
            read(tmp_path / f"{name}.npy", columns=["4"])


def test_rows_with_gaps_stay_in_a_table_until_they_are_dropped(tmp_path):
    np.save(tmp_path / "x.npy", gappy())
    data = read(tmp_path / "x.npy")
    assert data.counts == Counts(nan=1)
    np.testing.assert_array_equal(data.X, gappy())
    rows = without_missing(data)
    np.testing.assert_array_equal(rows.X, X[[0, 1, 3]])
    np.testing.assert_array_equal(rows.positions, [0, 1, 3])
    assert rows.shape == (4,)
    assert without_missing(rows) is rows
    columns = without_missing(data, drop="columns")
    np.testing.assert_array_equal(columns.X, X[:, [0, 2]])
    assert columns.columns == ("1", "3")
    assert columns.counts.dropped_columns == ("2",)
    assert columns.positions is None


def test_dropping_twice_keeps_the_first_positions(tmp_path):
    np.save(tmp_path / "x.npy", gappy().reshape(2, 2, 3))
    data = read(tmp_path / "x.npy")
    data.X[0, 0] = np.inf
    np.testing.assert_array_equal(without_missing(data).positions, [1, 3])


def test_nothing_would_be_left(tmp_path):
    np.save(tmp_path / "x.npy", np.full((2, 2), np.nan))
    data = read(tmp_path / "x.npy")
    with pytest.raises(InputError, match=r"all rows have a NaN.*Drop columns instead"):
        without_missing(data)
    with pytest.raises(ValueError, match="drop='cells'"):
        without_missing(data, drop="cells")


# --- memory -----------------------------------------------------------------------------------


def test_the_limit_is_four_fifths_of_what_is_there(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "CONTAINER", tmp_path)
    (tmp_path / "meminfo").write_text("MemTotal: 2000 kB\nMemAvailable:    1000 kB\n")
    assert memory.memory_limit() == 0.8 * 1000 * 1024
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.memory_limit() == 0.8 * 1000 * 1024
    (tmp_path / "memory.max").write_text("600000\n")
    (tmp_path / "memory.current").write_text("500000\n")
    assert memory.memory_limit() == 80_000
    (tmp_path / "memory.max").unlink()
    (tmp_path / "meminfo").write_text("nonsense\n")
    assert memory.memory_limit() > 1 << 20  # all of the machine


@pytest.mark.parametrize("suffix", [".csv", ".mat", ".npy", ".npz"])
def test_what_does_not_fit_into_memory_is_refused(tmp_path, monkeypatch, suffix):
    path = tmp_path / f"x{suffix}"
    if suffix == ".csv":
        path.write_text("1,2\n" * 100)
    elif suffix == ".mat":
        scipy.io.savemat(path, {"a": X.astype("i2")})
    elif suffix == ".npz":
        np.savez(path, X.astype("i2"))
    else:
        np.save(path, X.astype("i2"))
    monkeypatch.setattr("perpend.formats._checks.memory_limit", lambda: 90)
    with pytest.raises(TooLargeError, match=r"bytes may be used. Read fewer rows"):
        read(path)


def test_floats_in_npy_files_stay_on_disk_and_need_no_memory(tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", X)
    monkeypatch.setattr("perpend.formats._checks.memory_limit", lambda: 0)
    np.testing.assert_array_equal(read(tmp_path / "x.npy").X, X)

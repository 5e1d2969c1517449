"""Parquet and Arrow: tables with names and types."""

import struct
import sys
from contextlib import suppress

import numpy as np
import pytest

from helpers import refused
from perpend.exceptions import InputError, MissingExtraError, TooLargeError
from perpend.formats import Counts, Labelled, read, without_missing, write_labelled

pa = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")
parquet = pytest.importorskip("pyarrow.parquet")

TABLE = pa.table(
    {
        "id": ["s1", "s2", None],
        "x": pa.array([1.5, None, 3.0]),
        "n": pa.array([1, 2, 3], pa.int8()),
        "flag": [True, False, True],
        "cat": pa.array(["u", "v", "u"]).dictionary_encode(),
        "f": pa.array([1.5, 2.5, 3.5], pa.float32()),
        "half": pa.array(np.array([1, 2, 3], "f2")),
        "when": pa.array([1, 2, 3], pa.timestamp("s")),
        "list": [[1], [2, 3], []],
    }
)
VALUES = [[1.5, 1, 1, 1.5, 1], [np.nan, 2, 0, 2.5, 2], [3, 3, 1, 3.5, 3]]
SUFFIXES = [".parquet", ".arrow", ".feather"]


def write(path, table=TABLE, **kwargs):
    if path.suffix == ".parquet":
        parquet.write_table(table, path, **kwargs)
    elif path.suffix == ".feather":
        feather.write_feather(table, path, **kwargs)
    else:
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write(table)
    return path


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_columns_of_numbers_are_read_and_others_listed(tmp_path, suffix):
    data = read(write(tmp_path / f"x{suffix}"))
    assert data.format == ("parquet" if suffix == ".parquet" else "arrow")
    assert (data.kind, data.shape) == ("table", (3,))
    assert data.columns == ("x", "n", "flag", "f", "half")
    assert data.counts == Counts(nan=1, dropped_columns=("id", "cat", "when", "list"))
    assert data.stored_dtype == "bool, double, float, halffloat, int8"
    assert data.X.dtype == np.float64
    np.testing.assert_array_equal(data.X, VALUES)


@pytest.mark.parametrize("packer", ["none", "snappy", "gzip", "zstd", "lz4", "brotli"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_parquet_in_groups(tmp_path, packer, version):
    X = np.random.default_rng(0).random((1000, 5)).round(2)
    table = pa.table({f"B{j}": X[:, j] for j in range(5)})
    path = write(
        tmp_path / "x.parquet",
        table,
        compression=packer,
        row_group_size=300,
        data_page_version=version,
    )
    np.testing.assert_array_equal(read(path).X, X)
    assert read(path, columns=["B3", "B1"]).columns == ("B3", "B1")
    np.testing.assert_array_equal(read(path, columns=["B3", "B1"]).X, X[:, [3, 1]])


@pytest.mark.parametrize("packer", ["uncompressed", "lz4", "zstd"])
def test_feather_in_batches(tmp_path, packer):
    X = np.random.default_rng(0).random((1000, 5)).round(2)
    table = pa.table({f"B{j}": X[:, j] for j in range(5)})
    path = write(tmp_path / "x.feather", table, compression=packer, chunksize=300)
    np.testing.assert_array_equal(read(path).X, X)
    np.testing.assert_array_equal(read(path, columns=["B3", "B1"]).X, X[:, [3, 1]])


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_singles_stay_single_and_decimals_are_numbers(tmp_path, suffix):
    path = write(tmp_path / f"x{suffix}", TABLE.select(["f"]))
    assert read(path).X.dtype == np.float32
    column = pa.array([1, 2, None], pa.decimal128(9, 2))
    path = write(tmp_path / f"y{suffix}", pa.table({"price": column}))
    np.testing.assert_array_equal(read(path).X, [[1], [2], [np.nan]])


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_tables_that_cannot_be_used(tmp_path, suffix):
    path = write(tmp_path / f"x{suffix}", TABLE.select(["id", "cat"]))
    refused(path, 'has no column of numbers: "id" "string", "cat" "dictionary')
    path = write(tmp_path / f"x{suffix}")
    refused(path, 'column "id" holds values of type "string", not numbers', columns=["id"])
    refused(path, 'has no column "q". Its columns: "id", "x"', columns=["q"])
    refused(path, 'no variable "x" to choose', variable="x")
    path = write(tmp_path / f"x{suffix}", TABLE.slice(0, 0))
    refused(path, "there are no rows in this table")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_cut_off_and_foreign_files(tmp_path, suffix):
    path = write(tmp_path / f"x{suffix}")
    content = path.read_bytes()
    for share in (0.001, 0.1, 0.3, 0.5, 0.7, 0.9):
        path.write_bytes(content[: 1 + int(share * len(content))])
        refused(path, "begin like|end like|not a readable|declares 3 rows|no rows|of numbers")
    path.write_bytes(b"1,2\n" * 99)
    refused(path, "does not begin like a Parquet file|not a readable Arrow file")


@pytest.mark.filterwarnings("ignore:Feather V1:DeprecationWarning")
def test_feather_of_version_1(tmp_path):
    path = tmp_path / "x.feather"
    feather.write_feather(TABLE.select(["x", "n"]), path, version=1)
    refused(path, "is a Feather file of version 1, which is not read")


def test_many_equal_rows_expand_too_much(tmp_path):
    table = pa.table({"x": np.zeros(9_000_000)})
    for path in (
        write(tmp_path / "x.parquet", table, compression="zstd"),
        write(tmp_path / "x.feather", table, compression="zstd"),
    ):
        assert path.stat().st_size < 100_000
        refused(path, r"would expand to [67]..* MB, more than 100 times as much")


def test_a_buffer_of_feather_that_lies_about_its_size(tmp_path):
    path = write(tmp_path / "x.feather", pa.table({"x": np.zeros(1000)}), compression="lz4")
    content = path.read_bytes()
    size = struct.pack("<q", 8000)
    assert content.count(size) >= 1
    path.write_bytes(content.replace(size, struct.pack("<q", 1 << 40)))
    refused(path, "would expand to 1.1 TB")
    path.write_bytes(content.replace(size, struct.pack("<q", -9)))
    refused(path, "not a readable Arrow file ..a buffer of negative size")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_memory(tmp_path, monkeypatch, suffix):
    path = write(tmp_path / f"x{suffix}")
    monkeypatch.setattr("perpend.formats._checks.memory_limit", lambda: 90)
    with pytest.raises(TooLargeError):
        read(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_labels_are_beside_all_columns(tmp_path, suffix):
    table = TABLE.append_column("distance", pa.array([7, 8, 9]))
    data = without_missing(read(write(tmp_path / f"x{suffix}", table)))
    labelled = Labelled(np.array([1, -1]), np.array([0.25, 2.0]), np.array([0.5, 1.0]))
    written = write_labelled(data, labelled, tmp_path / "out")
    assert written == tmp_path / "out" / f"x-labelled{suffix}"
    if suffix == ".parquet":
        table = parquet.read_table(tmp_path / "x.parquet")  # has no timestamps in seconds
        result = parquet.read_table(written)
    else:
        result = feather.read_table(written)
    assert result.select(table.column_names).equals(table)
    assert result.column("perpend_distance").to_pylist() == [0.25, None, 2.0]
    assert result.column("probability").to_pylist() == [0.5, None, 1.0]
    assert result.column("inlier").to_pylist() == [True, None, False]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_that_changed_meanwhile(tmp_path, suffix):
    data = read(write(tmp_path / f"x{suffix}"))
    write(tmp_path / f"x{suffix}", TABLE.slice(0, 2))
    with pytest.raises(InputError, match="has changed since it was read"):
        write_labelled(data, Labelled(*np.ones((3, 3))), tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_without_pyarrow(tmp_path, monkeypatch, suffix):
    path = write(tmp_path / f"x{suffix}")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtraError, match=r'needs pyarrow. Run: pip .*"perpend\[parquet\]"'):
        read(path)


@pytest.fixture
def by_polars(tmp_path):
    """A file whose first message only its footer finds, in two batches."""
    polars = pytest.importorskip("polars")
    path = tmp_path / "p.arrow"
    frame = polars.DataFrame({"x": [1.5, None, 3.0], "n": [1, 2, 3], "id": ["a", "b", "c"]})
    frame = frame.with_columns(polars.col("id").cast(polars.Categorical).alias("cat"))
    frame.write_ipc(path, compression="zstd", record_batch_size=2)
    return path


def test_files_of_polars(by_polars, tmp_path):
    data = read(by_polars)
    assert data.columns == ("x", "n")
    assert data.counts == Counts(nan=1, dropped_columns=("id", "cat"))
    np.testing.assert_array_equal(data.X, [[1.5, 1], [np.nan, 2], [3, 3]])
    labelled = Labelled(np.array([1, -1]), np.array([0.1, 0.9]), np.array([0.0, 1.0]))
    back = feather.read_table(write_labelled(without_missing(data), labelled, tmp_path / "out"))
    assert back.column_names[:4] == ["x", "n", "id", "cat"]
    assert back["distance"].to_pylist() == [0.1, None, 0.9]


def test_footers_that_lie(by_polars):
    good = by_polars.read_bytes()
    assert good[8:12] != b"\xff\xff\xff\xff"  # or this is no longer about footers
    for place in range(len(good) - 300, len(good) - 6):
        by_polars.write_bytes(good[:place] + b"\xff" + good[place + 1 :])
        with suppress(InputError):
            assert len(read(by_polars).X) <= 3

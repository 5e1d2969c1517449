import csv
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perpend.exceptions import InputError
from perpend.formats import read

NAN = np.nan


def write(tmp_path, content, name="scan.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("content", "columns", "X"),
    [
        ("1,2\n3,4\n", None, [[1, 2], [3, 4]]),
        ("1,2\n3,4", None, [[1, 2], [3, 4]]),
        ("a,b\n1,2\n", ("a", "b"), [[1, 2]]),
        ("\ufeffa,b\n1,2\n", ("a", "b"), [[1, 2]]),
        ("\ufeff1,2\n", None, [[1, 2]]),
        ("a;b\r\n1;2\r\n", ("a", "b"), [[1, 2]]),
        ("a\tb\n1\t2\n", ("a", "b"), [[1, 2]]),
        ("1\r2\r", None, [[1], [2]]),
        ("x\n1\n\n2\n \n", ("x",), [[1], [2]]),
        ("\n\na,b\n\n1,2\n", ("a", "b"), [[1, 2]]),
        ("# made by a tool\n# x,y\n1,2\n", None, [[1, 2]]),
        ("id,400,410\n1,2,3\n", ("id", "400", "410"), [[1, 2, 3]]),
        (",B1,B2\n0,1,2\n", ("", "B1", "B2"), [[0, 1, 2]]),
        (' a , "b;c"\n1, 2\n', ("a", '"b;c"'), [[1, 2]]),
        ('"a;x;y","b"\n"1","2"\n', ("a;x;y", "b"), [[1, 2]]),
        ("Größe,naïve\n-1e-3,+2.5E4\n", ("Größe", "naïve"), [[-1e-3, 2.5e4]]),
        ("a,b\n1,\n,2\n", ("a", "b"), [[1, NAN], [NAN, 2]]),
        ("a,b\nnan,NaN\n-inf,Infinity\n", ("a", "b"), [[NAN, NAN], [-np.inf, np.inf]]),
        (",2\n3,4\n", None, [[NAN, 2], [3, 4]]),
        ("band_1,band_2\n1,2\n", ("band_1", "band_2"), [[1, 2]]),
    ],
)
def test_dialects(tmp_path, content, columns, X):
    table = read(write(tmp_path, content))
    assert table.columns == columns
    assert table.X.dtype == np.float64
    np.testing.assert_array_equal(table.X, X)
    assert table.source.endswith("scan.csv")


@pytest.mark.parametrize(
    ("content", "columns", "dropped", "X"),
    [
        ("id,a,when,b\ns1,1,May,2\ns2,3,June,4\n", ("a", "b"), ("id", "when"), [[1, 2], [3, 4]]),
        ("1,x\n2,y\n", ("1",), ("2",), [[1], [2]]),
        ("a,b\n,1\nx,2\n,3\n", ("b",), ("a",), [[1], [2], [3]]),  # gaps are no numbers
        ("a,b\nn/a,1\nx,2\nnan,3\n", ("b",), ("a",), [[1], [2], [3]]),  # nor are these
        (",b\nx,1\n", ("b",), ("1",), [[1]]),
    ],
)
def test_columns_of_text_are_left_out_and_listed(tmp_path, content, columns, dropped, X):
    data = read(write(tmp_path, content))
    assert data.columns == columns
    assert data.counts.dropped_columns == dropped
    np.testing.assert_array_equal(data.X, X)


@pytest.mark.parametrize(
    "word",
    ["", "NA", "N/A", "n/a", "#N/A", "NULL", "null", "NaN", "nan", "None", "<NA>", "?", " NA "],
)
def test_words_for_missing_values(tmp_path, word):
    pandas = pytest.importorskip("pandas")
    path = write(tmp_path, f"a,b\n1,2\n{word},4\n5,{word}\n")
    data = read(path)
    np.testing.assert_array_equal(data.X, [[1, 2], [NAN, 4], [5, NAN]])
    assert data.counts.nan == 2
    assert data.counts.dropped_columns == ()
    if word == word.strip():
        np.testing.assert_array_equal(data.X, pandas.read_csv(path, na_values=["?"]))
    np.testing.assert_array_equal(read(path, columns=["b"]).X, [[2], [4], [NAN]])
    first = write(tmp_path, f"{word},2\n3,4\n")  # no header
    np.testing.assert_array_equal(read(first).X, [[NAN, 2], [3, 4]])


def test_sodium_is_a_name(tmp_path):
    assert read(write(tmp_path, "Na,K\n1,2\n3,4\n")).columns == ("Na", "K")


def test_chosen_columns(tmp_path):
    path = write(tmp_path, "id,a,b\ns1,1,2\ns2,3,4\n")
    data = read(path, columns=["b", "a"])
    assert data.columns == ("b", "a")
    assert data.counts.dropped_columns == ()
    np.testing.assert_array_equal(data.X, [[2, 1], [4, 3]])
    np.testing.assert_array_equal(read(write(tmp_path, "1,2\n3,4\n"), columns=["2"]).X, [[2], [4]])
    for columns, message in [
        (["id"], 'line 2, column "id": cannot read "s1"'),
        (["c"], 'no column "c". Its columns: "id", "a", "b"'),
        ([], "no columns were chosen"),
    ]:
        path = write(tmp_path, "id,a,b\ns1,1,2\ns2,3,4\n")
        with pytest.raises(InputError, match=message):
            read(path, columns=columns)
    with pytest.raises(InputError, match='has 2 columns "a"'):
        read(write(tmp_path, "a,a\n1,2\n"), columns=["a"])


def test_tsv_is_separated_by_tabs_only(tmp_path):
    table = read(write(tmp_path, "a;1,2\tb\n1\t2\n", "scan.tsv"))
    assert table.columns == ("a;1,2", "b")
    np.testing.assert_array_equal(table.X, [[1, 2]])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"the file is empty \(0 bytes\)"),
        ("\n\n  \n", "no rows in this table, no values"),
        ("# nothing\n", "no rows in this table, no values"),
        ("a,b\n", "no rows in this table, only a header"),
        ("A,B7\n1,2\n3,gone\n", 'line 3, column "B7": cannot read "gone" as a number. Replace or'),
        ("a,b\n1,2\n3,Na\n", 'line 3, column "b": cannot read "Na"'),
        ("a,b\n1,2\n3,-\n", 'line 3, column "b": cannot read "-"'),
        ("1,2\n3,x\n", 'line 2, column 2: cannot read "x" as a number'),
        ("1.0,2x\n3,4\n", 'line 1, column 2: cannot read "2x"'),
        (",b\n1,1\nx,1\n", 'line 3, column 1: cannot read "x"'),
        ("a,b\nx,1\ny,2\n3,4\n", 'line 2, column "a": cannot read "x" as a number. Replace or'),
        ("a,b\nx,y\nz,w\n", 'line 2, column "a": cannot read "x"'),
        (
            "a;b\n1;2,5\n2;3,5\n",
            'column "b": cannot read "2,5" as a number. If this is a decimal',
        ),
        ("t\n2024_05\n", 'column "t": cannot read "2024_05"'),
        ("a,b\n1,2\n\n1,2,3\n", "line 4 has 3 cells, but line 1 has 2. Make all rows"),
        ("a,b\n1,2\n3\n", "line 3 has 1 cells, but line 1 has 2"),
        (
            "a;b\n1,5;2,5\n",
            'column "a": cannot read "1,5" as a number. If this is a decimal',
        ),
        ("x y\n1 2\n", 'cannot read "1 2" as a number. Separate the cells by commas'),
        ('a,b\n1,2\n3,"4\n5,6\n', "line 4: .*Is a quotation mark missing"),
        ("a,b\n1,2\n3,\x1b[31m\n", r'cannot read "\\x1b\[31m"'),
        ("a\n" + "9x" * 1000 + "\n", r'cannot read "(9x){20}\.\.\."'),
        ("a\n" + "1" * 200_000 + "\n", "line 2: field larger than field limit"),
        (b"a,b\n1,2\n3,\xe9\n", 'line 3, column "b": cannot read "\xe9" as a number'),
        (b"a,b\n1,2\n\x00\x00,3\n", "is not text but binary.*Save it as UTF-8"),
        (b"\xff\xfea\x00,\x00b\x00", "no rows in this table, only a header"),
    ],
)
def test_unreadable(tmp_path, content, message):
    path = write(tmp_path, content)
    with pytest.raises(InputError, match=message) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_bad_byte_far_from_the_start(tmp_path):
    path = write(tmp_path, b"1,2\n" * 50_000 + b"1,\xff\n")
    with pytest.raises(InputError, match="line 50001: is not UTF-8"):
        read(path)


def test_there_is_no_variable_to_choose(tmp_path):
    with pytest.raises(InputError, match='no variable "a" to choose'):
        read(write(tmp_path, "1,2\n"), variable="a")


@settings(deadline=None, max_examples=40)
@given(
    rows=st.integers(1, 4).flatmap(
        lambda width: st.lists(
            st.lists(st.floats(), min_size=width, max_size=width), min_size=1, max_size=6
        )
    ),
    delimiter=st.sampled_from(",;\t"),
    named=st.booleans(),
)
def test_whatever_is_written_is_read(tmp_path_factory, rows, delimiter, named):
    path = tmp_path_factory.mktemp("csv") / "x.csv"
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, delimiter=delimiter)
        if named:
            writer.writerow([f"band {j}" for j in range(len(rows[0]))])
        writer.writerows(rows)
    np.testing.assert_array_equal(read(path).X, rows)


@settings(deadline=None, max_examples=150)
@given(content=st.one_of(st.binary(max_size=60), st.text('0123.,;\t\n"#-e x_', max_size=60)))
def test_no_content_escapes_as_another_error(tmp_path_factory, content):
    path = write(tmp_path_factory.mktemp("csv"), content)
    try:
        table = read(path)
    except InputError:
        return
    assert table.X.ndim == 2
    assert table.columns is None or len(table.columns) == table.X.shape[1]


def test_a_million_cells_take_seconds(tmp_path):
    X = np.random.default_rng(0).random((10_000, 100))
    path = tmp_path / "large.csv"
    with path.open("w", encoding="utf-8") as stream:
        stream.write(",".join(f"B{j}" for j in range(100)) + "\n")
        stream.writelines(",".join(map(repr, row)) + "\n" for row in X.tolist())
    begin = time.perf_counter()
    table = read(path)
    assert time.perf_counter() - begin < 10  # far above what it takes, far below cell by cell
    np.testing.assert_array_equal(table.X, X)

"""Text tables as people have them: packed, with decimal commas, ranges of columns, transposed."""

import gzip

import numpy as np
import pandas as pd
import pytest

from perpend.exceptions import InputError
from perpend.formats import Labelled, open_blocks, read, write_labelled
from perpend.formats._notation import Notation


def write(folder, content, name="t.csv"):
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return path


def labelled(data):
    n = len(data.X)
    return Labelled(np.ones(n, int), np.arange(n) / 2, np.zeros(n))


# -- gzip ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["t.csv.gz", "t.tsv.gz", "T.CSV.GZ"])
def test_packed_tables(tmp_path, name):
    path, sep = tmp_path / name, "\t" if "tsv" in name else ","
    frame = pd.DataFrame({"a": [1.5, 2.0], "b": [3.0, -4.0], "c": ["x", "y"]})
    frame.to_csv(path, index=False, sep=sep, compression="gzip")
    data = read(path)
    np.testing.assert_array_equal(data.X, frame[["a", "b"]])
    assert (data.columns, data.counts.dropped_columns) == (("a", "b"), ("c",))
    again = write_labelled(data, labelled(data), tmp_path / "out")
    assert again.name == f"{name[:1]}-labelled{name[1:]}"
    back = pd.read_csv(again, sep=sep, compression="gzip")
    assert list(back) == ["a", "b", "c", "distance", "probability", "inlier"]
    first = again.read_bytes()
    assert write_labelled(data, labelled(data), tmp_path / "out").read_bytes() == first


def test_packed_tables_that_are_damaged_or_bombs(tmp_path):
    whole = gzip.compress(b"a,b\n" + b"1,2\n" * 5000)
    (tmp_path / "cut.csv.gz").write_bytes(whole[:-20])
    with pytest.raises(InputError, match=r"cannot be unpacked .* cut-off copy"):
        read(tmp_path / "cut.csv.gz")
    (tmp_path / "bomb.csv.gz").write_bytes(gzip.compress(b"1,2\n" * (1 << 25)))
    with pytest.raises(InputError, match=r"more than 100 times as much|memory"):
        read(tmp_path / "bomb.csv.gz")
    (tmp_path / "none.csv.gz").write_bytes(gzip.compress(b""))
    with pytest.raises(InputError, match="holds nothing"):
        read(tmp_path / "none.csv.gz")


# -- notation --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "decimal", "thousands", "value"),
    [
        ("1,5", ",", None, 1.5),
        ("-0,25", ",", None, -0.25),
        ("1,5e3", ",", None, 1500.0),
        ("12", ",", None, 12.0),
        ("1.234.567,8", ",", ".", 1234567.8),
        ("1,234.5", ".", ",", 1234.5),
        ("1,000", ".", ",", 1000.0),
        ("1 234,5", ",", " ", 1234.5),
        ("1\u202f234,5", ",", " ", 1234.5),
        ("1'234.5", ".", "'", 1234.5),
        ("999", ".", ",", 999.0),
        ("1.5", ",", None, None),
        ("1.234", ",", None, None),  # 1234, not 1.234
        ("1,00", ".", ",", None),
        ("12,34", ".", ",", None),
        ("1,000", ".", None, None),
        ("1,5,2", ",", None, None),
        ("01.02.2024", ",", ".", None),
    ],
)
def test_numbers(cell, decimal, thousands, value):
    found = Notation(decimal, thousands).floats([cell])
    assert found == (None if value is None else [value])


def test_a_german_table(tmp_path):
    path = write(tmp_path, "Name;Preis;Menge\nÄpfel;1.234,50;3\nBirnen;-0,5;1,25\n")
    with pytest.raises(InputError, match=r'Add decimal="," and thousands="[.]"'):
        read(path)
    with pytest.raises(InputError, match=r'points separate thousands|decimal="," and thousands'):
        read(path, decimal=",")
    data = read(path, decimal=",", thousands=".")
    np.testing.assert_array_equal(data.X, [[1234.5, 3], [-0.5, 1.25]])
    copy = write_labelled(data, labelled(data), tmp_path / "out").read_text("utf-8")
    assert copy.splitlines()[2] == "Birnen;-0,5;1,25;0.5;0.0;1"  # no formula, so no apostrophe


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('a,b\n"1,000",2\n', 'Add thousands="," if this is a thousand or more, decimal="," if'),
        ('a,b\n"1,234.5",2\n', 'Add thousands=","[.]'),
        ('a,b\n"1,234,567",2\n', 'Add thousands=","[.]'),
        ("a,b\n1,000,2\n", "Is a comma inside a number, as in 1,000"),
        ("a;b\n1 000;2\n", 'thousands=" "'),
        ("a;b\n1'000;2\n", 'thousands="\'"'),
        ("a;b\n1.000.000;2\n", 'decimal="," and thousands="[.]"'),
        ("a,b\nx,y\nz,w\n", 'holds text only, no column of numbers .line 2, column "a": cannot'),
        ("a,b\n1,2\nx,3\n", 'leave out the column by exclude="a"'),
    ],
)
def test_messages(tmp_path, content, says):
    with pytest.raises(InputError, match=says):
        read(write(tmp_path, content))


def test_decimal_commas_between_commas_need_quotes(tmp_path):
    with pytest.raises(InputError, match='If commas separate the cells, leave out decimal=","'):
        read(write(tmp_path, "a,b\n1.5,2\n3,4.5\n"), decimal=",")
    data = read(write(tmp_path, 'a,b\n"1,5","2,25"\n"3,0",4\n'), decimal=",")
    np.testing.assert_array_equal(data.X, [[1.5, 2.25], [3, 4]])
    np.testing.assert_array_equal(
        read(write(tmp_path, "1,5\n2,5\n"), decimal=",").X, [[1.5], [2.5]]
    )


@pytest.mark.parametrize("wrong", [{"decimal": ";"}, {"thousands": "x"}, {"thousands": "."}])
def test_notations_that_make_no_sense(tmp_path, wrong):
    with pytest.raises(InputError, match="decimal must be a point or a comma"):
        read(write(tmp_path, "1,2\n"), **wrong)


# -- columns ---------------------------------------------------------------------------------------

TABLE = "id,v1,v2,v3,x-y,site\n7,1,2,3,4,a\n9,5,6,7,8,b\n"


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({"columns": ["2-4"]}, ("v1", "v2", "v3")),
        ({"columns": ["v2-x-y"]}, ("v2", "v3", "x-y")),
        ({"columns": ["x-y", "1"]}, ("x-y", "id")),
        ({"columns": ["v1", "1-3"]}, ("v1", "id", "v2")),
        ({"exclude": ["id", "v1-v3"]}, ("x-y",)),
        ({"exclude": ["6", "1"]}, ("v1", "v2", "v3", "x-y")),
        ({"columns": ["1-5"], "exclude": ["v2"]}, ("id", "v1", "v3", "x-y")),
    ],
)
def test_ranges_and_exclusions(tmp_path, chosen, expected):
    assert read(write(tmp_path, TABLE), **chosen).columns == expected


def test_what_is_excluded_may_hold_anything(tmp_path):
    path = write(tmp_path, "a,b,c\n1,2,x\n3,oops,4\n5,6,y\n")
    assert read(path, exclude=["b", "c"]).columns == ("a",)


def test_without_names_and_in_arrays(tmp_path):
    path = write(tmp_path, "1,2,3,4\n5,6,7,8\n")
    assert read(path, exclude=["2-3"]).columns == ("1", "4")
    np.save(tmp_path / "t.npy", np.arange(12.0).reshape(3, 4))
    data = read(tmp_path / "t.npy", columns=["2-4"], exclude=["3"])
    assert data.columns == ("2", "4")
    np.testing.assert_array_equal(data.X[0], [1, 3])


@pytest.mark.parametrize(
    ("chosen", "says"),
    [
        ({"columns": ["4-2"]}, r"t.csv: columns 4-2: the range ends .* begins\. Write 2-4\."),
        ({"columns": ["1-40"]}, "has no columns 1-40: it has 6 columns, counted from 1"),
        ({"exclude": ["9"]}, "has no column 9: it has 6 columns"),
        ({"columns": ["0"]}, "has no column 0: it has 6 columns"),
        ({"columns": ["x-z"]}, 'has no column "x-z"'),
        ({"exclude": ["nothing"]}, 'has no column "nothing"'),
        ({"exclude": ["1-6"]}, "all of its columns are excluded"),
    ],
)
def test_columns_that_are_not_there(tmp_path, chosen, says):
    with pytest.raises(InputError, match=says):
        read(write(tmp_path, TABLE), **chosen)


def test_names_that_are_numbers_are_names(tmp_path):
    path = write(tmp_path, "a,2,1\n7,8,9\n")
    assert read(path, columns=["1"]).X[0, 0] == 9
    with pytest.raises(InputError, match="has no column"):
        read(path, columns=["3"])


# -- transposed ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "columns", "dropped", "X"),
    [
        ("gene,p1,p2\nA,1,2\nB,3,4\nC,5,6\n", ("A", "B", "C"), ("gene",), [[1, 3, 5], [2, 4, 6]]),
        (",p1,p2\nA,1,2\nB,3,4\n", ("A", "B"), ("1",), [[1, 3], [2, 4]]),
        ("nm,p1,p2\n400,1,2\n410,3,4\n", ("400", "410"), ("nm",), [[1, 3], [2, 4]]),
        ("p1,p2\n1,2\n3,4\n2,5\n", ("2", "3", "4"), ("1",), [[1, 3, 2], [2, 4, 5]]),
        ("1,2\n3,4\n5,6\n", None, (), [[1, 3, 5], [2, 4, 6]]),
    ],
)
def test_points_are_columns(tmp_path, content, columns, dropped, X):
    data = read(write(tmp_path, content), transpose=True)
    assert (data.columns, data.counts.dropped_columns) == (columns, dropped)
    np.testing.assert_array_equal(data.X, X)
    copy = pd.read_csv(write_labelled(data, labelled(data), tmp_path / "out"), header=None)
    assert copy.shape[1] == content.count("\n") + 3


def test_transposed_arrays_and_messages(tmp_path):
    X = np.arange(6.0).reshape(2, 3)
    np.save(tmp_path / "t.npy", X)
    data = read(tmp_path / "t.npy", transpose=True)
    np.testing.assert_array_equal(data.X, X.T)
    assert np.load(write_labelled(data, labelled(data), tmp_path / "out")).shape == (3, 5)
    np.save(tmp_path / "cube.npy", np.ones((2, 3, 4)))
    np.savetxt(tmp_path / "t.xyz", np.ones((4, 3)))
    for name in ("cube.npy", "t.xyz"):
        with pytest.raises(InputError, match="can be transposed"):
            read(tmp_path / name, transpose=True)
    with pytest.raises(InputError, match='transposed, row 3, column "A": cannot read "x"'):
        read(write(tmp_path, "g,p,q\nA,1,x\n"), transpose=True)


# -- as spreadsheets and programs write them -------------------------------------------------------

ROWS = "1.5,2\n3,-4\n5,6\n"
UNITS = 'left out line 2, which has units and no numbers ("kg, m/s")'
ABOVE = 'left out the lines above the table, up to line 2 ("Report 2024")'
LATIN = "the text is not UTF-8, and was read as Windows-1252 (Latin-1)"
UTF_16 = "the text has no byte order mark, and was read as UTF-16"
SIGN = "left the sign {} off the numbers of column {}"


@pytest.mark.parametrize(
    ("content", "notes"),
    [
        (f"sep=;\na;b\n{ROWS.replace(',', ';')}", ()),
        (f"a,b\nkg,m/s\n{ROWS}", (UNITS,)),
        (f"Report 2024\nby us\n\na,b\n{ROWS}", (ABOVE,)),
        (f"a,b\n{ROWS},\n,\n", ()),
        ("a,b\n$1.5,2%\n$3,-4 %\n$5,6%\n", (SIGN.format("$", '"a"'), SIGN.format("%", '"b"'))),
        (f"a,b\n{ROWS}".encode("utf-16"), ()),
        (f"a,b\n{ROWS}".encode("utf-16-le"), (UTF_16,)),
        (f"a,b\n{ROWS}".encode("utf-16-be"), (UTF_16,)),
        (f"ä,b\n{ROWS}".encode("latin-1"), (LATIN,)),
    ],
)
def test_what_is_no_row_is_left_out(tmp_path, content, notes):
    path = tmp_path / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    data, blocks = read(path), open_blocks(path)
    np.testing.assert_array_equal(data.X, [[1.5, 2], [3, -4], [5, 6]])
    np.testing.assert_array_equal(blocks.read(1, 3), data.X[1:])
    assert data.columns[1] == "b"
    assert data.notes == blocks.about.notes
    assert data.notes == notes
    copy = write_labelled(data, labelled(data), tmp_path / "out")
    answer = pd.read_csv(copy, sep=None, engine="python")
    assert list(answer.distance) == [0, 0.5, 1]


def test_blank_rows_between_others_are_missing_values(tmp_path):
    X = read(write(tmp_path, "a,b\n1,2\n,\n3,4\n,\n")).X
    np.testing.assert_array_equal(X, [[1, 2], [np.nan, np.nan], [3, 4]])


def test_lines_above_can_be_counted(tmp_path):
    path = write(tmp_path, "x,y,z\nfor,us,all\na,b,c\n1,2,3\n4,5,6\n")
    assert read(path, skip_rows=2).columns == ("a", "b", "c")
    uneven = write(tmp_path, "title,\na,b,c\n1,2,3\n4,5\n", "u.csv")
    with pytest.raises(InputError, match=r"line 2 has 3 cells, but line 1 has 2.*by skip_rows=N"):
        read(uneven)
    with pytest.raises(InputError, match="skip_rows=-1; expected a number of lines"):
        read(path, skip_rows=-1)


def test_numbers_that_stand_for_missing_ones(tmp_path):
    path = write(tmp_path, "a,b\n1,-999\n9999,2\n3,4\n")
    expected = [[1, np.nan], [np.nan, 2], [3, 4]]
    how = {"missing_values": [-999, 9999]}
    np.testing.assert_array_equal(read(path, **how).X, expected)
    np.testing.assert_array_equal(open_blocks(path, **how).read(0, 3), expected)
    with pytest.raises(InputError, match="missing_values='x'; expected numbers"):
        read(path, missing_values="x")
    np.save(tmp_path / "t.npy", np.eye(3))
    with pytest.raises(InputError, match="missing_values is for text tables, and this is npy"):
        read(tmp_path / "t.npy", missing_values=[1])


def test_units_must_not_change_within_a_column(tmp_path):
    for cells in ("5%\n6\n", "5\n6%\n", "$5\n\u20ac6\n"):
        with pytest.raises(InputError, match=r"line 3, column .a.*Write all in the same unit"):
            read(write(tmp_path, f"a\n{cells}"))

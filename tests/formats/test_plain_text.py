"""Tables and point clouds in plain text, ``.txt`` and ``.xyz``: cells between white space."""

import csv

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perpend.exceptions import InputError
from perpend.formats import Labelled, read, without_missing, write_labelled

ROWS = [[1, 2, 3], [4, 5, 6]]


def write(folder, content, name):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        ("1 2 3\n4 5 6\n", None),
        ("  1   2  3  \r\n 4\t 5 6\r\n", None),
        ("1\t2\t3\n4\t5\t6", None),
        ("1,2,3\n4,5,6\n", None),
        ("1;2;3\n4;5;6\n", None),
        ("1, 2, 3\n4, 5, 6\n", None),
        ("a b c\n1 2 3\n4 5 6\n", ("a", "b", "c")),
        ("\ufeffa b c\n1 2 3\n4 5 6\n", ("a", "b", "c")),
        ('"the a" b c\n1 2 3\n4 5 6\n', ("the a", "b", "c")),
        ("the a;b;c\n1;2;3\n4;5;6\n", ("the a", "b", "c")),
        ('# made by a tool\n1 2 3\n\n  # then\n4 5 6\n# end, said "he\n', None),
    ],
)
def test_tables(tmp_path, content, columns):
    table = read(write(tmp_path, content, "scan.txt"))
    assert (table.format, table.kind, table.columns) == ("txt", "table", columns)
    np.testing.assert_array_equal(table.X, ROWS)


def test_what_numpy_writes(tmp_path):
    X = np.random.default_rng(0).standard_normal((50, 4))
    np.savetxt(tmp_path / "x.txt", X, header="a b c d")
    np.testing.assert_array_equal(read(tmp_path / "x.txt").X, np.loadtxt(tmp_path / "x.txt"))


def test_a_column_of_words_is_left_out(tmp_path):
    table = read(write(tmp_path, "name a b\ns1 1 2\ns2 3 4\n", "scan.txt"))
    assert (table.columns, table.counts.dropped_columns) == (("a", "b"), ("name",))


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        ("1 2 3\n4 5 6\n", ("x", "y", "z")),
        ("1 2 3 255 0 0\n4 5 6 0 255 0\n", ("x", "y", "z")),
        ("1,2,3,9\n4,5,6,9\n", ("x", "y", "z")),
        ("//X Y Z I\n1 2 3 7\n4 5 6 7\n", ("//X", "Y", "Z")),
        ("i x y z\n9 1 2 3\n9 4 5 6\n", ("x", "y", "z")),
        ("east north up i\n1 2 3 7\n4 5 6 7\n", ("east", "north", "up")),
        ("# cloud\n1 2 3 wall\n4 5 6 floor\n", ("x", "y", "z")),
    ],
)
def test_clouds(tmp_path, content, columns):
    cloud = read(write(tmp_path, content, "scan.xyz"))
    assert (cloud.format, cloud.kind, cloud.columns) == ("xyz", "cloud", columns)
    np.testing.assert_array_equal(cloud.X, ROWS)


def test_other_columns_of_a_cloud(tmp_path):
    path = write(tmp_path, "1 2 3 7\n4 5 6 8\n", "scan.xyz")
    np.testing.assert_array_equal(read(path, columns=["4", "z"]).X, [[7, 3], [8, 6]])
    with pytest.raises(InputError, match=r'no column "5"\. Its columns: "x", "y", "z", "4"'):
        read(path, columns=["5"])


def test_points_without_coordinates_are_left_out_and_get_nan(tmp_path):
    path = write(tmp_path, "# remark\n1 2 3 a\nnan nan nan b\n4  5 6 c\n", "scan.xyz")
    cloud = read(path)
    assert cloud.counts.nan == 1
    np.testing.assert_array_equal(cloud.positions, [0, 2])
    labelled = Labelled(np.array([1, -1]), np.array([0.25, 2.0]), np.array([0.5, 1.0]))
    written = write_labelled(cloud, labelled, tmp_path / "out")
    assert written.name == "scan-labelled.xyz"
    assert written.read_text().splitlines() == [
        "1 2 3 a 0.25 0.5 1",
        "nan nan nan b nan nan nan",
        "4 5 6 c 2.0 1.0 0",
    ]
    np.testing.assert_array_equal(read(written).X, cloud.X)


def test_the_labels_of_a_table_can_be_read_again(tmp_path):
    path = write(tmp_path, '"the a" b\n1 nan\n3 4\n', "scan.txt")
    data = without_missing(read(path))
    labelled = Labelled(np.array([1]), np.array([0.5]), np.array([0.25]))
    again = read(write_labelled(data, labelled, tmp_path / "out"))
    assert again.columns == ("the a", "b", "distance", "probability", "inlier")
    np.testing.assert_array_equal(again.X[1], [3, 4, 0.5, 0.25, 1])
    assert np.isnan(again.X[0, 1:]).all()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.txt", "", "the file is empty"),
        ("x.txt", "# only\n# remarks\n", "no rows in this table, no values"),
        ("x.txt", "1 2 3\n4 5\n", "line 2 has 2 cells, but line 1 has 3"),
        ("x.txt", "# remark\n1 2\n\n# another\n3 4 5\n", "line 5 has 3 cells, but line 2 has 2"),
        ("x.txt", "1,2,3\n4,5\n", "line 2 has 2 cells, but line 1 has 3"),
        ("x.txt", "1 2\n3 x\n", 'line 2, column 2: cannot read "x" as a number'),
        ("x.txt", "a b\n1 2 # no\n", "line 2 has 4 cells, but line 1 has 2"),
        ("x.txt", 'a b\n"1 2\n3 4\n', "Is a quotation mark missing"),
        ("x.txt", b"a b\n1 2\n3 \xe9\n", 'line 3, column "b": cannot read "\xe9" as a number'),
        ("x.xyz", "1 2\n3 4\n", 'has 2 column.s., but a point has x, y and z. .*"txt"'),
        ("x.xyz", "1 2 wall\n3 4 floor\n", 'line 1, column "z": cannot read "wall"'),
        ("x.xyz", "2\nwater\nO 0 0 0\nH 0 0 1\n", "has 1 column"),  # of chemists
        ("x.xyz", "nan 1 2\n1 2 inf\n", "all of its 2 points"),
        ("x.xyz", "x x y z\n1 2 3 4\n", 'has 2 columns "x"'),
    ],
)
def test_unreadable(tmp_path, name, content, message):
    path = write(tmp_path, content, name)
    with pytest.raises(InputError, match=message) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_no_columns_of_a_cloud(tmp_path):
    with pytest.raises(InputError, match="no columns were chosen"):
        read(write(tmp_path, "1 2 3\n", "x.xyz"), columns=[])


def test_the_format_decides_whatever_the_name_ends_in(tmp_path):
    path = write(tmp_path, "1 2 3\n4 5 6\n", "scan.dat")
    assert read(path, format="xyz").kind == "cloud"
    assert read(path, format="txt").X.shape == (2, 3)
    with pytest.raises(InputError, match=r"or name the file \.txt"):
        read(path, format="csv")
    tabs = write(tmp_path, "a;b;c\tb\n1\t2\n", "scan.csv")
    assert read(tabs, format="tsv").columns == ("a;b;c", "b")


@settings(deadline=None, max_examples=40)
@given(
    rows=st.integers(3, 6).flatmap(
        lambda width: st.lists(
            st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=width,
                     max_size=width), min_size=1, max_size=6
        )
    ),
    delimiter=st.sampled_from(" ,;\t"),
)  # fmt: skip
def test_whatever_is_written_is_read(tmp_path_factory, rows, delimiter):
    folder = tmp_path_factory.mktemp("text")
    for name in ("x.txt", "x.xyz"):
        with (folder / name).open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream, delimiter=delimiter).writerows(rows)
    np.testing.assert_array_equal(read(folder / "x.txt").X, rows)
    np.testing.assert_array_equal(read(folder / "x.xyz").X, np.array(rows)[:, :3])


@settings(deadline=None, max_examples=150)
@given(
    content=st.one_of(st.binary(max_size=60), st.text('0123.,;\t\n"#-e xyz_', max_size=60)),
    name=st.sampled_from(["x.txt", "x.xyz"]),
)
def test_no_content_escapes_as_another_error(tmp_path_factory, content, name):
    path = write(tmp_path_factory.mktemp("text"), content, name)
    try:
        data = read(path)
    except InputError:
        return
    assert data.X.ndim == 2
    assert data.columns is None or len(data.columns) == data.X.shape[1]

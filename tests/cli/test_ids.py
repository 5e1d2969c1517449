"""Columns that number the rows are pointed out, never dropped."""

import json

import numpy as np
import pandas as pd
import pytest

REMARK = (
    'column "id" most likely numbers the rows and is no measurement. '
    "To leave it out, add --columns B1,B2,B3,B4,B5,B6"
)


@pytest.fixture
def table(csv):
    return pd.read_csv(csv)


def with_ids(table, name, values):
    table = table.copy()
    table.insert(0, name, values)
    return table


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("id", np.arange(200)),
        ("ID", 7 * np.random.default_rng(0).permutation(200)),
        ("Row", np.random.default_rng(0).permutation(200) - 50),
        (" index", np.arange(200)[::-1]),
        ("sample", np.arange(1, 201)),
        ("sample", np.arange(1000, 3000, 10)),
        ("Unnamed: 0", np.arange(200)),
    ],
)
def test_columns_that_number_the_rows(run, table, name, values):
    with_ids(table, name, values).to_csv("t.csv", index=False)
    said = run("inspect", "t.csv")
    expected = REMARK.replace('"id"', f'"{name.strip()}"')
    assert f"remark      {expected}" in said.out
    assert said.code == 0
    assert json.loads(run("inspect", "t.csv", "--json").out)["remarks"] == [f"{expected}."]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("sample", np.random.default_rng(0).permutation(200)),
        ("sample", np.arange(200) / 2),
        ("sample", np.arange(200)[::-1]),
        ("sample", np.ones(200)),
        ("sample", np.arange(200) // 2),
        ("sample", np.where(np.arange(200) == 199, 0, np.arange(200))),
        ("sample", np.where(np.arange(200) < 2, np.inf, np.arange(200))),
        ("id", np.arange(200) // 2),
        ("id", np.random.default_rng(0).standard_normal(200)),
    ],
)
def test_columns_that_do_not(run, table, name, values):
    with_ids(table, name, values).to_csv("t.csv", index=False)
    assert "remark" not in run("inspect", "t.csv").out


def test_a_fit_says_so_and_keeps_the_column(run, table):
    with_ids(table, "id", np.arange(200)).to_csv("t.csv", index=False)
    done = run("fit", "t.csv", "-o", "out", "--no-report")
    assert f"warning: {REMARK}." in done.err.splitlines()
    with open("out/result.json") as stream:  # noqa: PTH123
        result = json.load(stream)
    assert f"{REMARK}." in result["warnings"]
    assert result["input"]["columns"] == ["id", "B1", "B2", "B3", "B4", "B5", "B6"]


def test_what_it_advises_works_and_is_the_end_of_it(run, table):
    with_ids(table, "id", np.arange(200)).to_csv("t.csv", index=False)
    done = run("fit", "t.csv", "--columns", "B1,B2,B3,B4,B5,B6", "-o", "out", "--no-report")
    assert (done.code, done.err) == (0, "")
    assert "codimension 2" in done.out
    assert "remark" not in run("inspect", "t.csv", "--columns", "id,B1,B2").out


def test_rows_that_were_dropped_leave_gaps_in_the_count(run, table):
    table.loc[[0, 3, 150], "B2"] = np.nan
    with_ids(table, "nr", np.arange(1, 201)).to_csv("t.csv", index=False)
    done = run("fit", "t.csv", "--nan", "drop-rows", "-o", "out", "--no-report")
    assert 'column "nr" most likely numbers the rows' in done.err


def test_several_many_and_odd_columns(run, table):
    two = with_ids(with_ids(table, "id", np.arange(200)), "row", np.arange(200) + 1)
    two.to_csv("t.csv", index=False)
    assert (
        'columns "row", "id" most likely number the rows and are no' in run("inspect", "t.csv").out
    )
    many = pd.DataFrame(np.random.default_rng(0).standard_normal((30, 40)))
    with_ids(many, "id", np.arange(30)).to_csv("t.csv", index=False)
    assert "name all others by --columns." in run("inspect", "t.csv").out
    odd = table.rename(columns={"B1": "B 1"})
    with_ids(odd, "id", np.arange(200)).to_csv("t.csv", index=False)
    assert "--columns 'B 1,B2,B3,B4,B5,B6'." in run("inspect", "t.csv").out


def test_text_without_a_header(run, table):
    with_ids(table, "id", np.arange(200)).to_csv("t.txt", index=False, header=False, sep=" ")
    assert "column 1 most likely numbers the rows" in run("inspect", "t.txt").out
    assert "add --columns 2,3,4,5,6,7." in run("inspect", "t.txt").out


def test_only_tables_are_checked(run, home):
    count = np.arange(30.0)
    np.save("t.npy", np.column_stack([count, count**2]))
    np.savetxt("t.xyz", np.column_stack([count, count**2, count**3]))
    for name in ("t.npy", "t.xyz"):
        assert "remark" not in run("inspect", name).out


def test_a_few_rows_or_a_single_column_tell_nothing(run, home):
    pd.DataFrame({"a": range(9), "b": np.sqrt(range(9))}).to_csv("t.csv", index=False)
    assert "remark" not in run("inspect", "t.csv").out
    pd.DataFrame({"id": range(30)}).to_csv("t.csv", index=False)
    assert "remark" not in run("inspect", "t.csv").out

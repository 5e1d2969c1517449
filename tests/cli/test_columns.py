"""Columns that are no measurements are left out of a table, with a message that names them."""

import json

import numpy as np
import pandas as pd
import pytest

import perpend

DAYS = np.random.default_rng(0).choice(  # as 20260131
    pd.date_range("1999-01-01", "2026-12-31").strftime("%Y%m%d").astype(int), 200
)
KEEP = "To keep such columns, name all that you want by --columns."


@pytest.fixture
def table(csv):
    return pd.read_csv(csv)


def with_column(table, name, values):
    table = table.copy()
    table.insert(0, name, values)
    return table


def result(folder="out"):
    with open(f"{folder}/result.json", encoding="utf-8") as file:  # noqa: PTH123
        return json.load(file)


@pytest.mark.parametrize(
    ("name", "values", "why"),
    [
        ("id", np.arange(200), "numbers the rows"),
        ("ID", 7 * np.random.default_rng(0).permutation(200), "numbers the rows"),
        ("Row", np.random.default_rng(0).permutation(200) - 50, "numbers the rows"),
        (" index", np.arange(200)[::-1], "numbers the rows"),
        ("customer_id", np.random.default_rng(0).permutation(200), "numbers the rows"),
        ("PassengerId", np.random.default_rng(0).permutation(200), "numbers the rows"),
        ("sample", np.arange(1, 201), "numbers the rows"),
        ("sample", np.arange(1000, 3000, 10), "numbers the rows"),
        ("Unnamed: 0", np.arange(200), "numbers the rows"),
        ("Unnamed: 0", np.arange(200) ** 2, "numbers the rows"),
        ("", np.random.default_rng(0).permutation(200), "numbers the rows"),
        ("day", np.sort(DAYS), "dates"),
        ("day", np.where(np.arange(200) < 50, np.nan, DAYS), "dates"),
        ("site", np.ones(200), "constant"),
        ("site", np.where(np.arange(200) < 50, np.nan, 7.0), "constant"),
        ("notes", np.full(200, np.nan), "empty"),
    ],
)
def test_columns_that_are_left_out(run, table, name, values, why):
    with_column(table, name, values).to_csv("t.csv", index=False)
    said = run("inspect", "t.csv")
    column = f'"{name.strip()}"' if name else "1"
    remark = f"perpend fit leaves out column {column} ({why}). {KEEP}"
    assert f"remark      {remark}\n" in said.out
    assert json.loads(run("inspect", "t.csv", "--json").out)["remarks"] == [remark]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("sample", np.random.default_rng(0).permutation(200)),
        ("sample", np.arange(200) / 2),
        ("sample", np.arange(200)[::-1]),
        ("sample", np.arange(200) // 2),
        ("sample", np.where(np.arange(200) == 199, 0, np.arange(200))),
        ("sample", np.where(np.arange(200) < 2, np.inf, np.arange(200))),
        ("id", np.arange(200) // 2),
        ("id", np.random.default_rng(0).standard_normal(200)),
        ("pressure", np.where(np.arange(200) == 7, 20261331, DAYS)),
        ("pressure", DAYS + 0.5),
        ("humid", np.random.default_rng(0).permutation(200)),
        ("site", np.where(np.arange(200) == 7, 0.5, 0.0)),
    ],
)
def test_columns_that_stay(run, table, name, values):
    with_column(table, name, values).to_csv("t.csv", index=False)
    assert "remark" not in run("inspect", "t.csv").out


def test_a_fit_without_them(run, table):
    dates = pd.date_range("2024-01-31", periods=200).strftime("%d.%m.%Y")
    odd = table.assign(site=4.0, when=dates, note=np.nan)
    with_column(odd, "id", np.arange(200)).to_csv("t.csv", index=False)
    done = run("fit", "t.csv", "-o", "out", "--no-report")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    at = lines.index('left out    column "when" (text or dates)')
    assert [line.strip() for line in lines[at + 1 : at + 4]] == [
        'column "note" (empty)',
        'column "site" (constant)',
        'column "id" (numbers the rows)',
    ]
    assert result()["input"]["columns"] == list(table)
    assert result()["input"]["left_out"]["constant"] == ["site"]
    assert run("apply", "out", "t.csv", "-o", "new", "-q").code == 0  # its own file, and by name
    a, b = (pd.read_csv(f"{name}/labels.csv") for name in ("out", "new"))
    pd.testing.assert_frame_equal(a, b)


def test_named_columns_are_meant(run, table):
    with_column(table.assign(one=1.0), "id", np.arange(200)).to_csv("t.csv", index=False)
    run("fit", "t.csv", "--columns", "id,B1-one", "-o", "out", "--no-report")
    assert result()["input"]["columns"] == ["id", *table, "one"]
    assert "remark" not in run("inspect", "t.csv", "--columns", "id,B1,B2").out
    run("fit", "t.csv", "--exclude", "id,B2-B4,8", "-o", "less", "--no-report")
    assert result("less")["input"]["columns"] == ["B1", "B5", "B6"]


def test_rows_that_were_dropped_change_nothing(run, table):
    table.loc[[0, 3, 150], "B2"] = np.nan
    with_column(table, "nr", np.arange(1, 201)).to_csv("t.csv", index=False)
    done = run("fit", "t.csv", "--nan", "drop-rows", "-o", "out", "--no-report")
    assert 'column "nr" (numbers the rows)' in done.out


def test_text_without_a_header(run, table):
    with_column(table, "id", np.arange(200)).to_csv("t.txt", index=False, header=False, sep=" ")
    assert run("fit", "t.txt", "-o", "out", "--no-report").code == 0
    assert list(perpend.load("out/model.npz").feature_names_in_) == list("234567")
    assert run("apply", "out", "t.txt", "-o", "new", "-q").code == 0
    assert pd.read_csv("new/labels.csv").equals(pd.read_csv("out/labels.csv"))


def test_only_tables_are_checked(run, home):
    count = np.arange(30.0)
    np.save("t.npy", np.column_stack([count, count**2, np.ones(30)]))
    np.savetxt("t.xyz", np.column_stack([count, count**2, np.ones(30)]))
    for name in ("t.npy", "t.xyz"):
        assert "remark" not in run("inspect", name).out


def test_something_must_be_left(run, home):
    pd.DataFrame({"a": range(9), "b": np.sqrt(range(9))}).to_csv("t.csv", index=False)
    assert "remark" not in run("inspect", "t.csv").out  # few rows may go up in steps by chance
    pd.DataFrame({"id": range(30)}).to_csv("t.csv", index=False)
    assert "remark" not in run("inspect", "t.csv").out
    pd.DataFrame({"a": [3.0] * 9, "b": [1.0] * 9}).to_csv("t.csv", index=False)
    done = run("fit", "t.csv", "-o", "out")
    assert done.code == 3
    assert "every column of numbers is constant or empty" in done.err
    pd.DataFrame({"a": list("xyz"), "b": list("uvw")}).to_csv("t.csv", index=False)
    assert "holds text only, no column of numbers" in run("fit", "t.csv", "-o", "out").err


def test_a_table_that_may_lie_on_its_side(run, home):
    X = np.random.default_rng(0).standard_normal((6, 24))
    np.savetxt("t.csv", X, delimiter=",")
    hint = "6 rows, 24 columns. Rows are points; if your points are columns, use --transpose."
    assert f"remark      {hint}" in run("inspect", "t.csv").out
    assert f"hint        {hint}" in run("fit", "t.csv", "-o", "out", "--no-report").out
    done = run("fit", "t.csv", "--transpose", "-o", "turned", "--no-report")
    assert "24 rows x 6 columns" in done.out
    assert "hint" not in done.out
    assert run("apply", "turned", "t.csv", "--transpose", "-o", "new", "-q").code in (0, 4)
    assert len(pd.read_csv("new/labels.csv")) == 24


def test_numbers_that_may_mean_missing_values_are_named(run, home):
    X = np.random.default_rng(0).normal(10, 2, (200, 3))
    X[::40, 0] = X[::50, 1] = -999
    np.savetxt("t.csv", X, delimiter=",", header="a,b,c", comments="", fmt="%.4f")
    hint = '-999 stands far out again and again in columns "a", "b". If missing values are meant, '
    hint += "add --missing-value -999 --nan mask."
    assert hint in run("inspect", "t.csv").out
    told = run("inspect", "t.csv", "--missing-value", "-999")
    assert "far out again" not in told.out
    assert told.code in (0, 3)

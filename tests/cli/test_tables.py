"""Tables from the shell: units do not matter, equations are the user's, outliers of both kinds."""

import gzip
import json
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

import perpend

DATA = os.environ.get("PERPEND_DATA", "")
UNITS = np.array([1.0, 1e-4, 1e5, 30.0, 1e-2, 1.0])


def result(folder="out"):
    return json.loads(Path(folder, "result.json").read_text(encoding="utf-8"))


def labels(folder="out"):
    return pd.read_csv(f"{folder}/labels.csv")["inlier"].to_numpy()


@pytest.fixture
def orders(home):
    """Two relations, three broken rows, a column that is mostly zero, and much else."""
    rng = np.random.default_rng(3)
    n = 300
    net, shipping = rng.lognormal(5, 1, n).round(2), rng.integers(3, 40, n).astype(float)
    frame = pd.DataFrame({"net": net, "shipping": shipping, "tax": (0.19 * net).round(2)})
    frame = frame.assign(total=frame.sum(axis=1).round(2), weight=rng.gamma(3, 2e4, n).round())
    frame.loc[[5, 50, 123], "total"] += [30, -20, 100]
    frame = frame.assign(express=(np.arange(n) % 40 == 7) * 1)
    frame.to_csv("orders.csv", index=False)
    return frame


def test_units_do_not_matter(run, csv, data):
    pd.DataFrame(data.X * UNITS, columns=list("abcdef")).to_csv("units.csv", index=False)
    pd.DataFrame(data.X, columns=list("abcdef")).to_csv("plain.csv", index=False)
    for name in ("units", "plain"):
        done = run("fit", f"{name}.csv", "-o", name, "--no-report")
        assert (done.code, done.err) == (0, "")
    assert result("units")["codimension"] == 2
    np.testing.assert_array_equal(labels("units"), labels("plain"))
    assert "columns     standardised: median and quartiles; --standardize none keeps" in done.out
    done = run("fit", "units.csv", "-o", "none", "--standardize", "none", "--no-report")
    assert "standardised:" not in done.out
    assert re.search(r'columns "\w" and "\w" differ .*: --standardize robust\.', done.err)
    assert result("none")["standardize"] is None
    assert isinstance(perpend.load("none/model.npz"), perpend.DPCP)


def test_it_is_the_documented_pipeline(run, orders):
    run("fit", "orders.csv", "--outliers", "both", "-o", "out", "--no-report", "--seed", 7)
    detector = make_pipeline(
        perpend.RobustStandardizer(),
        perpend.DPCP(affine=True, outliers="both", random_state=7),
    ).fit(orders)
    np.testing.assert_array_equal(labels(), detector.predict(orders) == 1)
    again = perpend.load("out/model.npz")
    np.testing.assert_array_equal(again.score_samples(orders), detector.score_samples(orders))
    assert result()["distance"] == "robust deviations: off the subspace or within it"


def test_equations_and_constant_columns(run, orders):
    done = run("fit", "orders.csv", "-o", "out")
    assert (done.code, done.err) == (0, "")
    for line in (
        "constant    nearly constant columns: express = 0",
        "others      without them: 2 relations between the other 5 columns, confidence 1.00 (sure)",
    ):
        assert line in done.out.splitlines()
    assert re.search(r"relations   tax = 0\.19 net ± 0\.00\d+\n +total = 1\.19 net \+ s", done.out)
    assert result()["nearly_constant"] == ["express = 0"]
    assert len(result()["relations"]) == 2
    page = Path("out/report.html").read_text("utf-8")
    assert "Nearly constant columns: express = 0. Without them, there are 2 relations" in page
    assert "in units of the standardised columns" in page
    assert "distance (standardised units)" in page
    assert "misses the origin" not in page  # that of standardised columns is the medians
    Path("out/report.json").unlink()
    assert run("report", "out", "--force").code == 0
    assert "in units of the standardised columns" in Path("out/report.html").read_text("utf-8")


@pytest.mark.parametrize("noise", [0.1, None])
def test_a_constant_column_hides_no_relation(run, home, noise):
    """Exact values in one column are the finest structure; a relation with noise is another one."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 5))
    X[:, 1] = np.where(rng.random(400) < 0.03, X[:, 1], 5.0)
    if noise is not None:
        X[:, 4] = X[:, 0] - X[:, 2] + noise * X[:, 4]
    pd.DataFrame(X, columns=list("abcde")).to_csv("t.csv", index=False)
    done = run("fit", "t.csv", "-o", "out")
    more = "; subspace and confidence above say no more than this" * (noise is None)
    assert f"constant    nearly constant columns: b = 5{more}\n" in done.out
    assert result()["codimension"] == 1  # either b or, without b, the relation
    page = Path("out/report.html").read_text("utf-8")
    found = result()["without_constants"]
    assert found["codimension"] == (noise is not None)
    if noise is None:
        assert result()["relations"] == []
        assert "others      without them: no relations between the other 4 columns" in done.out
        assert "Without them, there is no relation between the other 4 columns" in page
        assert "\nrelations" not in done.out
    else:
        assert found["confidence"] > 0.95
        assert re.search(r"relations   e = a - c ± 0\.1\d*\n", done.out)
        assert "hide relations: b = 5." in page


def test_new_rows_are_scaled_alike(run, orders):
    run("fit", "orders.csv", "-o", "out", "--no-report", "-q")
    orders[::7].to_csv("some.csv", index=False)
    assert run("apply", "out", "some.csv", "-o", "new").code == 0
    np.testing.assert_array_equal(labels("new"), labels()[::7])
    assert result("new")["distance"] == "Euclidean: in the units of standardised columns"


def test_arrays_are_not_scaled(run, home, data):
    np.save("x.npy", data.X * UNITS)
    run("fit", "x.npy", "-o", "out", "--no-report")
    assert result()["standardize"] is None
    run("fit", "x.npy", "-o", "scaled", "--no-report", "--standardize", "robust")
    assert result("scaled")["codimension"] == 2
    assert result("scaled")["affine"] is True


def test_the_same_table_in_other_notations(run, orders):
    run("fit", "orders.csv", "-o", "out", "--no-report", "-q")
    german = orders.map(lambda v: f"{v:,.2f}".translate(str.maketrans(",.", ".,")))
    german.to_csv("deutsch.csv", sep=";", index=False)
    done = run("fit", "deutsch.csv", "-o", "de")
    assert done.code == 3
    assert "--decimal=" in done.err
    how = ("--decimal", ",", "--thousands", ".")
    assert run("fit", "deutsch.csv", *how, "-o", "de", "--no-report", "-q").code == 0
    with gzip.open("orders.csv.gz", "wb") as file:
        file.write(Path("orders.csv").read_bytes())
    assert run("fit", "orders.csv.gz", "-o", "gz", "--no-report", "-q").code == 0
    for name in ("de", "gz"):
        np.testing.assert_array_equal(labels(name), labels())
    assert Path("gz/orders-labelled.csv.gz").is_file()


def test_compare_scales_columns_and_says_so(run, orders):
    done = run("compare", "orders.csv", "--exclude", "express")
    assert "columns     standardised" in done.out
    assert done.out.endswith("perpend fit orders.csv -o RESULTS --exclude express\n")
    assert run("compare", "orders.csv", "--transpose").out.endswith("-o RESULTS --transpose\n")


def test_surely_no_subspace_is_exit_code_0(run, home):
    np.savetxt("t.csv", np.random.default_rng(0).standard_normal((8000, 2)), delimiter=",")
    done = run("fit", "t.csv", "-o", "out", "--no-report")
    assert (result()["codimension"], result()["sure"]) == (0, True)
    assert done.code == 0
    assert "none found" in done.out
    assert run("apply", "out", "t.csv", "-o", "new", "-q").code == 0


@pytest.mark.skipif(not DATA, reason="PERPEND_DATA names no folder with real data")
@pytest.mark.parametrize(
    ("name", "rows"), [("hbk", range(1, 11)), ("octane", [25, 26, 36, 37, 38, 39])]
)
def test_classics(run, home, name, rows):
    path = Path(DATA) / "classics" / f"{name}.csv"
    run("fit", path, "--outliers", "both", "-o", "out", "-q")
    if name == "hbk":
        page = Path("out/report.html").read_text("utf-8")
        assert (
            "the 75 rows fill all 4 dimensions, as far as these rows can tell; 14 rows are" in page
        )
        assert "every row is an inlier" not in run("apply", "out", path, "-o", "new").err
    flagged = set((np.flatnonzero(labels() == 0) + 1).tolist())
    assert set(rows) <= flagged
    assert len(flagged - set(rows)) <= 6


def test_a_model_can_be_inspected(run, orders):
    run("fit", "orders.csv", "-o", "out", "--no-report", "-q")
    done = run("inspect", "out/model.npz")
    assert done.code == 0
    assert "columns     scaled by RobustStandardizer()\nsubspace    dimension 3, codim" in done.out
    assert "next        perpend apply out/model.npz NEW -o MORE" in done.out


def test_gaps_leave_the_report_there(run, orders):
    orders = orders.drop(columns="express").astype(float)
    orders = orders.mask(np.random.default_rng(0).random(orders.shape) < 0.03)
    orders.to_csv("gaps.csv", index=False)
    for outliers in ("across", "both"):
        done = run(
            "fit", "gaps.csv", "--missing", "mask", "--outliers", outliers, "-o", f"out {outliers}"
        )
        assert "there is no report.html" not in done.err
        page = Path(f"out {outliers}/report.html").read_text("utf-8")
        assert "in the data's own units" in page

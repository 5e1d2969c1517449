"""What ``perpend inspect`` says about files."""

import json
import tracemalloc

import numpy as np
import pandas as pd
import pytest

import perpend
from perpend.cli._memory import fit_memory
from perpend.datasets import make_subspace


def test_a_table(run, csv):
    table = pd.read_csv(csv)
    table.loc[7, "B3"] = np.nan
    table.loc[8] = 0.0
    table.insert(0, "id", "x")
    table.to_csv("t.csv", index=False)
    done = run("inspect", "t.csv")
    assert (done.code, done.err) == (0, "")
    keys = [line.split()[0] for line in done.out.splitlines()]
    assert keys == ["file", "data", "columns", "gaps", "left", "memory", "next"]
    assert "table, 200 rows x 6 columns, float64" in done.out
    assert "1 rows with NaN or infinite values, 0 marked as no data, 1 all zero" in done.out
    assert "left out    columns id" in done.out
    assert "next        perpend fit t.csv -o RESULTS --nan mask" in done.out


def test_a_cloud_needs_no_option(run, home):
    points = np.random.default_rng(0).random((20, 4)).astype("<f4")
    points.tofile("scan.bin")
    done = run("inspect", "scan.bin")
    assert done.code == 0
    assert done.out.endswith("perpend fit scan.bin -o RESULTS\n")  # which takes affine ones


def test_the_labels_of_a_cloud_in_plain_text_are_plain_text(run, home):
    X = make_subspace(150, 50, n_features=3, codimension=1, noise=0.01, random_state=0).X
    np.savetxt("scan.xyz", np.column_stack([5 + X, np.ones(200)]), header="from a scanner")
    done = run("inspect", "scan.xyz")
    assert "xyz" in done.out.splitlines()[0]
    assert "cloud, 200 points x 3 fields, float64 (stored as text)" in done.out
    assert run("fit", "scan.xyz", "-o", "out").code == 0
    assert np.loadtxt("out/scan-labelled.xyz").shape == (200, 7)
    assert run("apply", "out", "scan.xyz", "-o", "new").code == 0


def test_json(run, csv):
    done = run("inspect", csv, "--json")
    found = json.loads(done.out)
    assert (found["rows"], found["features"], found["format"]) == (200, 6, "csv")
    assert found["columns"] == ["B1", "B2", "B3", "B4", "B5", "B6"]
    assert found["with_missing_values"] == found["all_zero"] == 0
    assert found["data_bytes"] == 200 * 6 * 8
    assert found["chosen"] is True


def test_arrays_are_listed(run, home, data):
    np.savez("two.npz", a=data.X, b=data.X[:5], t=np.array("text"))
    done = run("inspect", "two.npz")
    assert done.code == 0
    assert '"a" 200 x 6 numbers' in done.out
    assert '"b" 5 x 6 numbers' in done.out
    assert "--variable NAME" in done.out
    done = run("inspect", "two.npz", "--variable", "b")
    assert "5 rows x 6 columns" in done.out
    found = json.loads(run("inspect", "two.npz", "--json").out)
    assert (found["chosen"], list(found["arrays"])) == (False, ["a", "b", "t"])
    assert run("inspect", "two.npz", "--variable", "c").code == 3


def test_it_writes_nothing(run, csv, home):
    before = sorted(path.name for path in home.rglob("*"))
    assert run("inspect", csv).code == 0
    assert sorted(path.name for path in home.rglob("*")) == before


@pytest.mark.parametrize(
    ("n", "D", "c", "dtype"),
    [(2500, 30, 5, float), (900, 120, 5, float), (40_000, 4, 1, float), (30_000, 20, 3, "f4")],
)
@pytest.mark.parametrize("affine", [False, "auto"])
def test_the_estimate_of_memory_is_an_upper_one(n, D, c, dtype, affine):
    X = make_subspace(n // 2, n - n // 2, n_features=D, codimension=c, random_state=0).X
    X = (X * np.linspace(1, 9, n)[:, None]).astype(dtype)  # rows of other norms than one
    tracemalloc.start()
    model = perpend.DPCP(affine=affine, random_state=1000).fit(X)
    model.score_samples(X)
    model.outlier_probability(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= fit_memory(n, D, X.itemsize, affine=bool(affine)) <= 20 * peak

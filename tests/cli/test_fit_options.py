"""What the options of ``perpend fit`` do, and what it reads."""

import io
import json
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import perpend
from helpers import PUBLISHED
from perpend.cli import _progress
from perpend.cli._options import METHODS
from perpend.datasets import make_subspace
from perpend.estimator import METHODS as REGISTRY
from perpend.exceptions import CodimensionWarning


def result(folder="out"):
    with open(f"{folder}/result.json", encoding="utf-8") as file:  # noqa: PTH123
        return json.load(file)


def test_the_methods_are_those_of_the_registry():
    assert set(METHODS) == set(perpend._METHODS) <= set(REGISTRY)
    assert METHODS[0] == "DPCP"


@pytest.mark.parametrize("method", METHODS)
def test_every_method(run, csv, method):
    name = method.lower()
    code = run("fit", csv, "-o", "out", "--method", name, "--codimension", 2, "-q").code
    assert code in ((0,) if method in PUBLISHED else (0, 4))  # some of the others are not sure
    assert type(perpend.load("out/model.npz")[-1]).__name__ == method
    assert (result()["method"], result()["codimension"]) == (method, 2)


def test_the_dimension_instead_of_the_codimension(run, csv, data):
    d = data.X.shape[1] - 2
    assert run("fit", csv, "-o", "out", "--method", "RSGM", "--n-components", d, "-q").code == 0
    assert result()["codimension"] == 2


def test_iterations(run, csv):
    done = run("fit", csv, "-o", "out", "--max-iter", 3, "--no-refine", "--no-report")
    assert result()["parameters"]["max_iter"] == 3
    assert "Raise --max-iter" in done.err


def test_a_given_codimension_that_the_rows_do_not_support_has_a_warning(run, csv):
    done = run("fit", csv, "-o", "out", "--codimension", 3, "--no-report")
    assert done.code == 4
    assert "warning: codimension 3 was given, but the rows do not support it" in done.err
    assert sum("codimension 3 was given" in text for text in result()["warnings"]) == 1
    done = run("fit", csv, "-o", "sure", "--codimension", 2, "--no-report")
    assert (done.code, done.err) == (0, "")


def test_quiet_prints_nothing(run, csv, monkeypatch):
    monkeypatch.setattr(_progress, "LINE_SECONDS", -1.0)  # a line for each step
    assert "polishing" in run("fit", csv, "-o", "loud", "--no-report").err
    done = run("fit", csv, "-o", "out", "-q", "--no-report")
    assert (done.code, done.out, done.err) == (0, "", "")


def test_columns(run, csv, data):
    chosen = ("--columns", "B5, B2,B1", "--standardize", "none")
    run("fit", csv, "-o", "out", *chosen, "--no-report")
    assert result()["input"]["columns"] == ["B5", "B2", "B1"]
    assert list(perpend.load("out/model.npz").feature_names_in_) == ["B5", "B2", "B1"]
    X = np.loadtxt(csv, delimiter=",", skiprows=1)[:, [4, 1, 0]]
    with pytest.warns(CodimensionWarning):
        model = perpend.DPCP(random_state=0).fit(X)
    assert result()["codimension"] == model.codimension_
    assert result()["confidence"] == model.confidence_


def test_affine(run, home, data):
    np.save("far.npy", data.X + 100)
    assert run("fit", "far.npy", "-o", "a", "--affine", "yes", "--no-report").code == 0
    assert run("fit", "far.npy", "-o", "b", "--affine", "auto", "--no-report").code == 0
    assert [result(name)["affine"] for name in "ab"] == [True, True]
    assert result("a")["distance"].startswith("Euclidean")


def test_contamination_sets_the_share_of_outliers(run, csv):
    done = run("fit", csv, "-o", "out", "--contamination", 0.25, "--no-report")
    assert done.code == 0
    assert result()["outlier_share"] == 0.25
    assert "for contamination 0.25" in done.out


@pytest.fixture
def gaps(csv):
    table = pd.read_csv(csv)
    table.loc[[3, 50], "B2"] = np.nan
    table.to_csv("gaps.csv", index=False)
    return "gaps.csv"


def test_rows_with_gaps_can_be_left_out(run, gaps):
    done = run("fit", gaps, "-o", "out", "--nan", "drop-rows", "--no-report")
    assert done.code == 0
    assert "left out    2 of 200 records (2 with missing values)" in done.out
    rows = np.loadtxt("out/labels.csv", delimiter=",", skiprows=1)[:, 0]
    assert set(range(200)) - set(rows.astype(int)) == {3, 50}
    table = pd.read_csv("out/gaps-labelled.csv")
    assert len(table) == 200
    assert table["distance"].isna().sum() == 2


def test_columns_with_gaps_can_be_left_out(run, gaps):
    done = run("fit", gaps, "-o", "out", "--nan", "drop-cols", "--no-report")
    assert done.code in (0, 4)
    assert 'left out    column "B2" (missing values)' in done.out
    assert result()["input"]["columns"] == ["B1", "B3", "B4", "B5", "B6"]
    assert len(np.loadtxt("out/labels.csv", delimiter=",", skiprows=1)) == 200


def test_rows_with_gaps_can_take_part(run, gaps):
    done = run("fit", gaps, "-o", "out", "--missing", "mask")
    assert done.code == 0
    assert "missing     2 values (0.2 %); 0 rows have too few left" in done.out
    assert result()["missing"] == 2
    assert len(np.loadtxt("out/labels.csv", delimiter=",", skiprows=1)) == 200
    assert run("apply", "out", gaps, "-o", "new").code == 0  # as in the fit
    assert Path("new/labels.csv").read_bytes() == Path("out/labels.csv").read_bytes()
    assert "Use --nan drop-rows" in run("compare", gaps, "--nan", "mask").err
    assert run("fit", gaps, "-o", "other", "--nan", "drop-rows", "--no-report").code == 0
    assert (
        "fitted without --nan mask" in run("apply", "other", gaps, "-o", "x", "--nan", "mask").err
    )


def test_text_columns_are_left_out_and_guarded(run, csv):
    table = pd.read_csv(csv)
    table.insert(0, "name", ["=HYPERLINK(1)"] + [f"s{i}" for i in range(199)])
    table.to_csv("named.csv", index=False)
    assert run("fit", "named.csv", "-o", "out", "--no-report").code == 0
    table = pd.read_csv("out/named-labelled.csv")
    assert list(table["name"][:2]) == ["'=HYPERLINK(1)", "s0"]
    assert len(table) == 200


def test_standard_input(run, csv, monkeypatch):
    with open(csv, "rb") as file:  # noqa: PTH123
        content = file.read()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    done = run("fit", "-", "-o", "out")
    assert done.code == 0
    assert "standard input: 200 rows x 6 columns" in done.out
    assert run("fit", csv, "-o", "file", "-q").code == 0
    assert result()["input"]["sha256"] == result("file")["input"]["sha256"]
    assert result()["input"]["name"] == "standard input"
    assert result()["threshold"] == result("file")["threshold"]


def test_standard_input_in_another_format(run, csv, data, monkeypatch):
    stream = io.BytesIO()
    np.savez(stream, a=data.X)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stream.getvalue())))
    assert run("fit", "-", "-o", "out", "--format", "npz", "--no-report").code == 0
    assert result()["input"]["format"] == "npz"


@pytest.mark.parametrize(
    ("stdin", "says"), [(None, "is closed"), ("terminal", "is the keyboard")], ids=str
)
def test_no_standard_input(run, home, monkeypatch, stdin, says):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stdin", stdin and Terminal())
    done = run("fit", "-", "-o", "out")
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith(f"error: standard input: {says}")


def test_an_image_gets_a_mask(run, home, data):
    np.save("scene.npy", data.X.reshape(20, 10, 6))
    assert run("fit", "scene.npy", "-o", "out").code == 0
    mask = np.load("out/scene-labelled.npy")
    assert mask.shape == (20, 10)
    labels = np.loadtxt("out/labels.csv", delimiter=",", skiprows=1)[:, 3]
    np.testing.assert_array_equal(mask.ravel(), labels)
    assert result()["input"]["kind"] == "image"
    assert result()["input"]["records"] == [20, 10]


def test_the_memory_limit(run, csv):
    done = run("fit", csv, "-o", "out", "--memory-limit", "1MB", "--no-report")
    assert done.code == 0
    assert "The memory limit is 1.0 MB, so they are read block by block" in done.err
    done = run("fit", csv, "-o", "all", "--memory-limit", "1MB", "--nan", "mask")
    assert done.code == 5
    assert "a fit needs about" in done.err
    np.save("wide.npy", np.ones((3000, 1500), dtype=np.float32))
    done = run("fit", "wide.npy", "-o", "wide", "--memory-limit", "16MB")
    assert done.code == 5
    assert "--memory-limit=15MiB is too small for that. Raise it to " in done.err
    assert run("fit", csv, "-o", "most", "--memory-limit", "2GB", "--no-report").code == 0


def test_the_noise_is_said_as_a_whole_and_for_each_column(run, home):
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-1, 1, (2, 2000))
    plane = np.column_stack([x, y, 3 + rng.normal(0, 0.02, 2000)])  # 0.02 thick
    np.save("plane.npy", plane)
    done = run("fit", "plane.npy", "-o", "results", "--affine", "yes", "--no-report")
    said = re.search(r"noise +(\S+) \(over all 3 columns; about (\S+) in each\)\n", done.out)
    whole, each = map(float, said.groups())
    assert each == pytest.approx(0.02, rel=0.05)
    assert whole == pytest.approx(np.sqrt(3) * each, rel=0.05)
    np.save(
        "unit.npy",
        make_subspace(200, 100, n_features=4, codimension=1, noise=0.1, random_state=0).X,
    )
    done = run("fit", "unit.npy", "-o", "unit", "--no-report", "--codimension", "1")
    said = re.search(
        r"noise +(\S+) of a row's length \(over all 4 columns; about (\S+) in", done.out
    )
    whole, each = map(float, said.groups())
    assert whole == pytest.approx(2 * each, rel=0.05)


def test_a_road_in_a_street(run, home):
    rng = np.random.default_rng(0)
    street = rng.uniform([-20, -20, -1], [20, 20, 1], (3000, 3))
    street[:1200, 2] = rng.normal(0, 0.05, 1200)
    np.savetxt("street.xyz", street)
    done = run("fit", "street.xyz", "-o", "out", "--no-report")
    assert re.search(
        r"^structures +a plane with noise 0\.0\d+ \(1 \d+ points\), inside a slab of 0\.\d+$",
        done.out,
        re.MULTILINE,
    )
    road, slab = result()["structures"]
    assert (road["chosen"], slab["chosen"]) == (True, False)
    assert perpend.load("out/model.npz").choose(1).structures_[1]["chosen"]
    assert run("fit", "street.xyz", "-o", "two", "--codimension", 1).out.count("\nstructures") == 1

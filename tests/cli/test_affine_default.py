"""Whether the subspace may miss the origin: the default for each kind of data."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.pipeline import Pipeline

import perpend
from perpend.datasets import make_subspace

FAR = np.array([3.0, -2.0, 5.0, 1.0, 4.0, -3.0])


def fitted(run, name, *options):
    """Fit a file; return what the line of the summary says, and the result."""
    done = run("fit", name, "-o", "out", "--force", "--no-report", *options)
    result = json.loads(Path("out/result.json").read_text(encoding="utf-8"))
    model = perpend.load("out/model.npz")
    assert (model[-1] if isinstance(model, Pipeline) else model).affine_ is result["affine"]
    return re.search(r"^affine +(.*)$", done.out, re.MULTILINE)[1], result


def points():
    rng = np.random.default_rng(0)
    X = rng.uniform(-5, 5, (600, 3))
    X[:400, 2] = 2 + rng.normal(0, 0.02, 400)
    return X


def test_a_standardised_table(run, csv):
    said, result = fitted(run, csv)
    assert said == "yes (the default for a standardised table)"
    assert (result["affine"], result["parameters"]["affine"]) == (True, True)
    assert result["codimension"] == 2


@pytest.mark.parametrize("option", ["no", "auto"])
def test_a_standardised_table_keeps_its_origin_where_that_counts(run, csv, option):
    said, result = fitted(run, csv, "--affine", option)
    assert said.startswith("no")
    assert result["codimension"] == 2
    assert set(result["standardize"]["center"]) == {0.0}


def test_a_table_through_the_origin(run, csv):
    said, result = fitted(run, csv, "--standardize", "none")
    assert said == "no: no subspace clearly misses the origin (auto, the default for a table)"
    assert (result["affine"], result["parameters"]["affine"]) == (False, "auto")
    assert result["codimension"] == 2


def test_a_table_away_from_the_origin(run, csv, data):
    np.savetxt("far.csv", data.X + FAR, delimiter=",")
    said, result = fitted(run, "far.csv", "--standardize", "none")
    assert re.fullmatch(
        r"yes: it misses the origin by \S+, by chance about \S+ \(auto, the default for a table\)",
        said,
    )
    assert (result["affine"], result["parameters"]["affine"]) == (True, "auto")
    assert result["codimension"] == 2


@pytest.mark.parametrize("suffix", ["npy", "npz", "mat"])
def test_arrays_are_tables(run, home, data, suffix):
    if suffix == "npy":
        np.save("x.npy", data.X)
    elif suffix == "npz":
        np.savez("x.npz", X=data.X)
    else:
        from scipy.io import savemat

        savemat("x.mat", {"X": data.X})
    said, result = fitted(run, f"x.{suffix}")
    assert "(auto, the default for a table)" in said
    assert result["parameters"]["affine"] == "auto"


@pytest.mark.parametrize("suffix", ["xyz", "bin", "pcd"])
def test_scans(run, home, suffix):
    X = points()
    if suffix == "xyz":
        np.savetxt("scan.xyz", X)
    elif suffix == "bin":
        np.column_stack([X, np.zeros(len(X))]).astype("<f4").tofile("scan.bin")
    else:
        head = (
            "VERSION .7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\nWIDTH 600\nHEIGHT 1\n"
        )
        rows = "\n".join(" ".join(map(str, row)) for row in X)
        Path("scan.pcd").write_text(f"{head}POINTS 600\nDATA ascii\n{rows}\n", encoding="ascii")
    said, result = fitted(run, f"scan.{suffix}")
    assert said == "yes (the default for a point cloud)"
    assert (result["affine"], result["parameters"]["affine"]) == (True, True)


def test_scenes(run, home, data):
    np.save("scene.npy", (data.X + FAR).reshape(20, 10, 6))
    said, result = fitted(run, "scene.npy")
    assert said == "yes (the default for a scene)"
    assert (result["affine"], result["parameters"]["affine"]) == (True, True)


def test_scenes_are_scored_off_the_subspace_and_within_it(run, home, data):
    np.save("scene.npy", (data.X + FAR).reshape(20, 10, 6))
    out = run("fit", "scene.npy", "-o", "out", "--no-report").out
    assert "score       off the subspace and within it (the default for a scene;" in out
    result = json.loads(Path("out/result.json").read_text(encoding="utf-8"))
    assert result["parameters"]["outliers"] == "both"
    assert result["distance"] == "robust deviations: off the subspace or within it"
    table = np.genfromtxt("out/labels.csv", delimiter=",", names=True)
    X = np.load("scene.npy").reshape(-1, 6)
    np.testing.assert_allclose(-perpend.load("out/model.npz").score_samples(X), table["distance"])
    out = run("fit", "scene.npy", "-o", "across", "--no-report", "--outliers", "across").out
    assert "score " not in out
    result = json.loads(Path("across/result.json").read_text(encoding="utf-8"))
    assert result["distance"] == "Euclidean: in the units of the data"


def test_the_option_beats_the_default(run, csv):
    np.savetxt("scan.xyz", points())
    for name, option, says in (
        (csv, "no", "no (--affine no)"),
        (csv, "yes", "yes (--affine yes)"),
        ("scan.xyz", "no", "no (--affine no)"),
    ):
        said, result = fitted(run, name, "--affine", option)
        assert said == says
        assert result["affine"] is (option == "yes")
    said, _ = fitted(run, "scan.xyz", "--affine", "auto")
    assert re.fullmatch(r"yes: it misses the origin by .* \(--affine auto\)", said)


def test_a_linear_subspace_that_explains_more(run, home):
    """Rows on a cone through the origin: an affine subspace fits some of them, by chance."""
    X = make_subspace(300, 300, n_features=5, codimension=2, random_state=0).X
    np.save("rays.npy", X * np.random.default_rng(0).uniform(1, 9, (600, 1)))
    said, result = fitted(run, "rays.npy")
    assert said.startswith("no: ")
    assert result["affine"] is False


def test_compare_takes_the_same(run, csv, data):
    np.savetxt("far.csv", data.X + FAR, delimiter=",")
    done = run("compare", "far.csv", "--json")
    first = json.loads(done.out)["methods"][0]
    assert first["codimension"] == 2
    assert run("compare", "far.csv").out.endswith("perpend fit far.csv -o RESULTS\n")
    for option in ("no", "yes", "auto"):
        done = run("compare", csv, "--affine", option)
        assert done.out.endswith(f"perpend fit {csv} -o RESULTS --affine {option}\n")


def test_the_help_says_it(run):
    for command in ("fit", "compare"):
        text = " ".join(run(command, "--help").out.replace("│", " ").split())
        assert "The default is yes for standardised tables, point clouds and images" in text
        assert "The default is robust for tables (CSV, text, Parquet, Arrow), and none" in text


def test_pythons_default_stays(data):
    assert perpend.DPCP().affine is False

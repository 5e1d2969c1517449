"""``perpend compare``: all methods side by side."""

import json
import warnings

import numpy as np
import pytest

import perpend
from helpers import PUBLISHED
from perpend.cli import _progress
from perpend.cli._comparison import Row, compared, pca
from perpend.cli._options import METHODS

LINES = [*METHODS, "PCA"]
NEEDY = [name for name in METHODS if getattr(perpend, name).capabilities.needs_dimension]


def methods(done):
    return {row["method"]: row for row in json.loads(done.out)["methods"]}


def test_the_table(run, csv):
    done = run("compare", csv)
    assert done.code == 0
    head, *lines = done.out.split("\n\n")[2].splitlines()
    assert head.split()[:2] == ["method", "codimension"]
    assert [line.split()[0] for line in lines] == LINES


def test_the_next_step_repeats_what_was_given(run, csv):
    done = run("compare", csv, "--affine", "auto", "--columns", "B1,B2,B3,B4", "--seed", 3)
    said = f"perpend fit {csv} -o RESULTS --affine auto --columns B1,B2,B3,B4 --seed 3"
    assert done.out.splitlines()[-1].split(maxsplit=1) == ["next", said]
    assert run("compare", csv).out.endswith(f"perpend fit {csv} -o RESULTS\n")


def test_options_that_it_does_not_have_are_those_of_fit(run, csv, monkeypatch):
    fit = perpend.DPCP.fit

    def not_converged(model, X):
        warnings.warn("Raise max_iter, or tol.", UserWarning, stacklevel=2)
        return fit(model, X)

    monkeypatch.setattr(perpend.DPCP, "fit", not_converged)
    done = run("compare", csv)
    assert "warning: DPCP: Raise --max-iter of perpend fit, or tol." in done.err


def test_json(run, csv, data):
    rows = methods(run("compare", csv, "--json"))
    assert list(rows) == LINES
    assert all(row["problem"] is None for row in rows.values())
    assert all(row["codimension"] == 2 for row in rows.values() if row["given"])
    # Methods of low dimension may find another codimension, but are not sure of it then.
    assert all(row["codimension"] == 2 or row["confidence"] < 0.95 for row in rows.values())
    assert [name for name, row in rows.items() if not row["given"]] == [
        name for name in METHODS if name not in NEEDY
    ]
    assert all(row["told"] == row["given"] for row in rows.values())  # as in version 0.1
    for name in PUBLISHED[1:]:
        assert rows[name]["label_agreement"] > 0.97
        assert rows[name]["largest_angle_degrees"] < 1
    assert rows["PCA"]["largest_angle_degrees"] > 2
    assert rows["PCA"]["outliers"] == rows["DPCP"]["outliers"]


def test_if_one_method_fails_the_others_go_on(run, csv, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("no luck")

    monkeypatch.setattr(perpend.RSGM, "fit", fail)
    done = run("compare", csv)
    assert done.code == 0
    assert "failed: ZeroDivisionError: no luck" in done.out
    rows = methods(run("compare", csv, "--json"))
    assert rows["RSGM"]["problem"] == "failed: ZeroDivisionError: no luck"
    assert rows["RecursiveDPCP"]["codimension"] == rows["PCA"]["codimension"] == 2


def test_without_dpcp_the_codimension_is_unknown(run, csv, monkeypatch):
    def fail(*_):
        raise MemoryError("too much")

    for name in set(METHODS) - set(NEEDY):
        monkeypatch.setattr(getattr(perpend, name), "fit", fail)
    done = run("compare", csv)
    assert done.code == 5  # nothing ran
    assert "too much" in done.err
    done = run("compare", csv, "--codimension", 2, "--json")
    assert done.code == 4
    rows = methods(done)
    assert rows["DPCP"]["problem"].startswith("failed: not enough memory")
    assert rows["RSGM"]["codimension"] == 2
    assert rows["PCA"]["problem"].startswith("not run")


def test_no_subspace(run, home):
    np.save("noise.npy", np.random.default_rng(0).standard_normal((300, 4)))
    done = run("compare", "noise.npy")
    assert done.code == 4
    assert done.out.count("not run: DPCP found codimension 0") == len(NEEDY)


@pytest.mark.parametrize("offset", [0.0, 5.0])
def test_pca_is_the_singular_value_decomposition(data, offset):
    X = data.X + offset

    class Model:
        codimension_, normalize, affine_ = 2, True, offset > 0

    class Data:
        pass

    Data.X = X
    first = Row("DPCP", model=Model, labels=data.y, normals=data.normals)
    row = pca(first, Data)
    treated = X - X.mean(axis=0) if offset else X / np.linalg.norm(X, axis=1, keepdims=True)
    axes = np.linalg.svd(treated)[2][-2:]
    np.testing.assert_allclose(row.normals.T @ row.normals, axes.T @ axes, atol=1e-10)
    np.testing.assert_allclose(row.distance, np.linalg.norm(treated @ axes.T, axis=1), atol=1e-10)
    assert (row.labels == -1).sum() == (data.y == -1).sum()
    assert row.distance[row.labels == -1].min() >= row.distance[row.labels == 1].max()


def test_agreement_and_angle():
    first = Row("a", labels=np.array([1, 1, -1, -1]), normals=np.array([[1.0, 0, 0]]))
    turned = np.array([[np.cos(0.1), np.sin(0.1), 0]])
    other = Row("b", labels=np.array([1, -1, -1, -1]), normals=turned)
    wider = Row("c", labels=np.ones(4), normals=np.eye(3)[:2])
    compared([first, other, wider, Row("d", problem="failed")])
    assert other.agreement == 0.75
    assert other.angle == pytest.approx(np.degrees(0.1))
    assert (wider.agreement, wider.angle) == (0.5, None)


def test_progress_says_how_long_it_may_take(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now[0])
    with _progress.monitor() as watch:
        for done, name in enumerate("abc"):
            watch.part(name, done, 3)
            now[0] += 20.0
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["b, 2 of 3: 33% done, about 0:40 left", "c, 3 of 3: 67% done, about 0:20 left"]

"""`perpend.compare`: records, pairs, truth, failures, limits, and PCA behind the same face."""

import csv
import io
import json
import time
import warnings

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor
from sklearn.utils.estimator_checks import parametrize_with_checks

import perpend
from helpers import assert_same_subspace
from perpend import DPCP, RSGM, RGraph, compare, metrics
from perpend.comparison import ComparedMethod, PCABaseline
from perpend.comparison.form import in_pairs
from perpend.comparison.given import left_out
from perpend.comparison.run import TimeIsUp
from perpend.datasets import make_subspace
from perpend.exceptions import InputError

DATA = make_subspace(150, 100, n_features=8, codimension=2, noise=0.02, random_state=0)


@pytest.fixture(scope="module")
def all_methods():
    with warnings.catch_warnings(action="error"):  # they are in the records
        return compare(DATA.X, DATA.y, true_components=DATA.components, random_state=0)


def test_every_method_has_a_record(all_methods):
    known = [*perpend._METHODS, *perpend._LABELS_ONLY, "PCA"]
    assert list(all_methods.methods) == known
    for row in all_methods.rows:
        assert row.problem is None
        assert row.seconds > 0
        assert row.cpu_seconds > 0
        assert row.outliers == (row.labels == -1).sum() == round(250 * row.outlier_share)
        assert row.f1 == metrics.outlier_f1(DATA.y, row.labels)
        assert row.auc == metrics.outlier_auc(DATA.y, row.scores)
        if row.method in perpend._LABELS_ONLY:
            assert (row.codimension, row.normals, row.subspace_error) == (None, None, None)
        else:
            assert row.codimension + row.dimension == 8
            error = metrics.subspace_error(row.normals, DATA.normals)
            assert row.subspace_error == pytest.approx(error)


def test_a_record_is_that_of_the_fit_alone(all_methods):
    with pytest.warns(UserWarning, match="did not converge") as said:
        alone = RSGM(2, random_state=0).fit(DATA.X)
    np.testing.assert_array_equal(all_methods["RSGM"].model.normals_, alone.normals_)
    np.testing.assert_array_equal(all_methods["RSGM"].labels, alone.labels_)
    assert all_methods["RSGM"].warnings == tuple(str(one.message) for one in said)
    alone = DPCP(random_state=0).fit(DATA.X)
    np.testing.assert_array_equal(all_methods["DPCP"].model.normals_, alone.normals_)
    assert all_methods["DPCP"].confidence == alone.confidence_


def test_the_dimension_is_that_of_dpcp_and_this_is_said(all_methods):
    assert (all_methods.codimension, all_methods["RSGM"].given) == (2, True)
    assert not all_methods["GMS"].given  # it can choose
    assert "\ngiven       codimension 2, by DPCP (sure)\n" in str(all_methods)
    assert "\nunfinished  " in str(all_methods)
    by_you = compare(DATA.X, methods=["DPCP", "GMS", "PCA"], n_components=5)
    assert {(row.codimension, row.given) for row in by_you.rows} == {(3, True)}
    assert "codimension 3, by you" in str(by_you)
    without = compare(DATA.X, methods=["RSGM"])
    assert (without.methods, without["RSGM"].codimension) == (("RSGM",), 2)


def test_text_csv_and_json_hold_the_same(all_methods):
    table = list(csv.DictReader(io.StringIO(all_methods.to_csv())))
    told = json.loads(all_methods.to_json())
    assert told == all_methods.to_dict()
    lines = str(all_methods).splitlines()
    for row, line, text, one in zip(
        all_methods.rows, table, lines[1:], told["methods"], strict=False
    ):
        assert float(line["f1"]) == one["f1"] == row.f1
        assert text.split()[0] == line["method"] == one["method"] == row.method
        assert f"{row.f1:.3f}" in text
    pairs = list(csv.DictReader(io.StringIO(all_methods.to_csv(pairs=True))))
    assert len(pairs) == len(told["pairs"]) == len(table) * (len(table) - 1) // 2


def test_pairs_are_symmetric_and_those_of_the_metrics(all_methods):
    i, j = (all_methods.methods.index(name) for name in ("RSGM", "MDR"))
    a, b = all_methods.rows[i], all_methods.rows[j]
    for M in (all_methods.label_agreement, all_methods.angle, all_methods.distance):
        np.testing.assert_array_equal(M, M.T)
    assert all_methods.label_agreement[i, j] == np.mean(a.labels == b.labels)
    distance = metrics.subspace_distance(a.normals, b.normals)
    assert all_methods.distance[i, j] == pytest.approx(distance)
    angle = np.degrees(metrics.principal_angles(a.normals, b.normals)[0])
    assert all_methods.angle[i, j] == pytest.approx(angle)
    assert a.label_agreement == all_methods.label_agreement[0, i]


def test_agreement_and_angle_with_the_first():
    turned = np.array([[np.cos(0.1), np.sin(0.1), 0]])
    ones = np.array([1, 1, -1, -1]), np.array([1, -1, -1, -1]), np.ones(4)
    normals = np.array([[1.0, 0, 0]]), turned, np.eye(3)[:2]
    rows = [
        ComparedMethod(method=name, labels=labels, normals=N)
        for name, labels, N in zip("abc", ones, normals, strict=True)
    ]
    found = in_pairs([*rows, ComparedMethod(method="d", problem="failed")], 1, "you")
    assert found["b"].label_agreement == 0.75
    assert found["b"].largest_angle_degrees == pytest.approx(np.degrees(0.1))
    assert (found["c"].label_agreement, found["c"].largest_angle_degrees) == (0.5, None)
    assert found.distance[0, 2] == 1
    assert np.isnan(found.label_agreement[3]).all()


# -- what goes wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [ZeroDivisionError("no luck"), MemoryError("too much")])
def test_one_failure_does_not_stop_the_others(error, monkeypatch):
    def fail(*_):
        raise error

    monkeypatch.setattr(RSGM, "fit", fail)
    found = compare(DATA.X, methods=["DPCP", "RSGM", "FMS"], random_state=0)
    assert str(error) in found["RSGM"].problem
    assert found["RSGM"].error is error
    assert found["FMS"].codimension == 2
    assert found["RSGM"].problem in str(found)
    with pytest.raises(type(error)):
        compare(DATA.X, methods=["RSGM"], codimension=2)


def test_bad_rows_are_an_error_and_no_table():
    for name in ("DPCP", "RSGM", "PCA"):  # also where only DPCP, for its dimension, has seen them
        with pytest.raises(InputError, match="first: row 3, column 1"):
            compare(np.where(np.arange(2000).reshape(250, 8) == 25, np.nan, DATA.X), methods=[name])
    with pytest.raises(ValueError, match="2D array"):
        compare(DATA.X[0])


def test_a_time_limit():
    found = compare(DATA.X, methods={"long": RSGM(2, tol=1e-300, max_iter=10**9, step="decay"),
                                     "PCA": "PCA"}, codimension=2, time_limit=0.0)  # fmt: skip
    assert found["long"].problem == "stopped: it took more than 0 s"
    assert found["PCA"].problem is None


def test_without_an_estimate_of_dpcp_a_method_that_is_sure_gives_the_size(monkeypatch):
    """As where its time was up."""

    def stopped(*_):
        raise TimeIsUp

    some = ["REAPER", "DPCP", "GMS", "PCA"]
    monkeypatch.setattr(DPCP, "fit", stopped)
    found = compare(DATA.X, methods=some, time_limit=60, random_state=0)
    assert found["DPCP"].problem == "stopped: it took more than 60 s"
    assert (found.codimension, found.given_by) == (2, "GMS (sure)")
    assert [found[name].codimension for name in some] == [2, None, 2, 2]
    X = np.random.default_rng(0).standard_normal((300, 4))
    nobody = compare(X, methods=some, time_limit=60, random_state=0)  # GMS is not sure there
    assert "it needs the codimension; DPCP found none, and no other is sure" in str(nobody)
    assert (nobody.codimension, nobody.given_by) == (None, None)
    assert "given " not in str(nobody)


def test_twins_are_named():
    found = compare(DATA.X, methods=["LLD", "OutlierPursuit", "GMS"], random_state=0)
    np.testing.assert_array_equal(found["LLD"].normals, found["OutlierPursuit"].normals)
    assert "equal       LLD and OutlierPursuit, to the last bit\n" in str(found) + "\n"
    some = ["LLD", "OutlierPursuit"]
    apart = compare(DATA.X, methods=some, contamination=0.4, random_state=0)
    assert "to the last bit" not in str(apart)


def test_nobody_gives_what_nobody_needs():
    found = compare(DATA.X, methods=["RGraph"])
    assert (found.codimension, found.given_by, found.to_dict()["given_by"]) == (None, None, None)


def test_a_limit_stops_every_loop():
    """RGraph solves a problem for each row before it walks."""
    X = make_subspace(600, 600, n_features=20, codimension=2, random_state=0).X
    found = compare(X, methods=["RGraph", "PCA"], codimension=2, time_limit=0.05)
    assert found["RGraph"].problem == "stopped: it took more than 0.05 s"
    assert found["RGraph"].seconds < 0.3


def test_methods_that_do_not_fit_are_left_out_unless_they_are_named(monkeypatch):
    slow = RGraph.capabilities._replace(time="1e-3 n² + 2 d")  # by DPCP, d is 6
    monkeypatch.setattr(RGraph, "capabilities", slow)
    found = compare(DATA.X, memory_limit=8 * 8 * 250 * 8 - 1, random_state=0)  # below n D
    assert found["RGraph"].problem.startswith("not run: it would take about a minute (a step: n el")
    assert found["PCP"].problem == "not run: it needs about 132.1 kB; it runs if it is named"
    assert found["RSGM"].problem is None  # it needs D²
    assert compare(DATA.X, methods=["RGraph"], memory_limit=1)["RGraph"].problem is None


def test_what_takes_minutes_at_the_size_of_the_paper_is_left_out():
    """3750 rows with 200 features, c = 10: measured were 13, 2 and 2 minutes."""
    names = [*perpend._METHODS, *perpend._LABELS_ONLY]
    left = {
        c: {one for one in names if left_out(getattr(perpend, one)(), 1e12, 3750, 200, c)}
        for c in (10, 197)
    }
    assert {"MDR", "RANSACPlus", "DPCPLP"} <= left[10]
    assert not {"DPCPIRLS", "RSGM", "REAPER", "GGD", "GMS", "RANSAC", "OutlierPursuit"} & left[10]
    assert not {"MDR", "RANSACPlus", "RANSAC"} & left[197]  # of a plane they are quick
    assert not any(left_out(getattr(perpend, one)(), 1e12, 1000, 20, 2) for one in names)


def test_memory_and_time_are_formulas_that_can_be_computed():
    sizes = {"n": 1000, "D": 20, "c": 5, "d": 15, "k": 64, "min(c,d)": 5}
    for name in [*perpend._METHODS, *perpend._LABELS_ONLY]:
        can = getattr(perpend, name).capabilities
        assert can.numbers(**sizes) >= 100
        assert 0 < can.seconds(**sizes) < 60
        assert can.seconds(**{**sizes, "n": 10**9}) > 60 or "n" not in can.time.split()
        assert can.subspace == (name in perpend._METHODS)
        assert not can.subspace or can.affine != "none"


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"methods": ["RSGN"]}, "there is no method 'RSGN'. Known methods: DPCP, "),
        ({"methods": []}, "one or more"),
        ({"methods": {}}, "one or more"),
        ({"methods": ["DPCP", "DPCP"]}, "each of them once"),
        ({"methods": [3]}, "neither the name"),
        ({"codimension": 1, "n_components": 3}, "Leave one"),
        ({"n_components": 9}, "n_components=9; expected a number from 0 to 8"),
        ({"y": np.ones(3)}, "y has 3 labels, and X has 250 rows"),
        ({"y": np.arange(250)}, "only .1"),
        ({"afine": True}, "no method has a parameter 'afine'"),
        ({"time_limit": -1}, "time_limit=-1; expected a number from 0 on, or None"),
        ({"time_limit": float("nan")}, "time_limit=nan; expected"),
        ({"time_limit": "a"}, "time_limit='a'; expected"),
        ({"memory_limit": -1}, "memory_limit=-1; expected"),
        ({"true_normals": DATA.normals, "true_components": DATA.components}, "Leave one"),
    ],
)
def test_wrong_arguments(how, message):
    with pytest.raises(InputError, match=message):
        compare(DATA.X, **how)


# -- estimators of one's own, and parameters for all -----------------------------------------------


def test_own_estimators_stay_as_they_are():
    mine = RSGM(3, max_iter=7)
    models = {"mine": mine, "free": RSGM(), "forest": IsolationForest(random_state=0)}
    found = compare(DATA.X, DATA.y, models, contamination=0.1, random_state=0)
    assert [row.codimension for row in found.rows] == [3, 2, None]
    assert found["mine"].model.max_iter == 7
    assert not hasattr(mine, "labels_")
    assert found["forest"].auc > 0.5
    assert found["mine"].outlier_share != pytest.approx(0.1, abs=0.01)
    named = compare(DATA.X, methods=["DPCP", "RGraph", "PCA"], contamination=0.1, random_state=0)
    assert [row.outliers for row in named.rows] == [25, 25, 25]


def test_a_detector_without_predict_has_the_labels_of_its_fit():
    detector = LocalOutlierFactor(n_neighbors=10)
    found = compare(DATA.X, DATA.y, {"lof": detector, "DPCP": "DPCP"}, random_state=0)
    np.testing.assert_array_equal(found["lof"].labels, detector.fit_predict(DATA.X))
    assert found["lof"].outliers == (found["lof"].labels == -1).sum()
    assert found["lof"].f1 == metrics.outlier_f1(DATA.y, found["lof"].labels)
    assert found["lof"].auc > 0.5


def test_all_get_the_affine_subspace_that_dpcp_decided_for():
    data = make_subspace(200, 50, n_features=5, codimension=2, offset=5.0, noise=0.02,
                         random_state=0)  # fmt: skip
    found = compare(data.X, methods=["DPCP", "FMS", "PCA"], affine="auto", random_state=0)
    assert [row.affine for row in found.rows] == [True] * 3
    assert [row.codimension for row in found.rows] == [2] * 3
    assert found["FMS"].largest_angle_degrees < 1


def test_no_subspace():
    X = np.random.default_rng(0).standard_normal((300, 4))
    found = compare(X, methods=["DPCP", "RSGM", "PCA"], random_state=0)
    assert found["DPCP"].codimension == 0
    for name in ("RSGM", "PCA"):
        assert found[name].problem.startswith("not run: DPCP found codimension 0")


def test_progress_and_seeds():
    said = []
    first, again = (
        compare(DATA.X, methods=["RANSAC", "DPCP"], random_state=np.random.default_rng(3),
                progress=lambda *step: said.append(step))
        for _ in range(2)
    )  # fmt: skip
    assert said[:2] == [("DPCP", 0, 2), ("RANSAC", 1, 2)]
    assert first.methods == ("RANSAC", "DPCP")
    np.testing.assert_array_equal(first["RANSAC"].normals, again["RANSAC"].normals)


def test_times_are_those_of_the_fit(monkeypatch):
    fit = RSGM.fit

    def slow(model, X):
        time.sleep(0.2)
        return fit(model, X)

    monkeypatch.setattr(RSGM, "fit", slow)
    row = compare(DATA.X, methods=["RSGM"], codimension=2)["RSGM"]
    assert row.seconds > 0.2 > row.cpu_seconds


# -- PCA -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [0.0, 5.0])
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("n", [250, 6])  # more and fewer rows than features
def test_pca_is_the_singular_value_decomposition(offset, normalize, n):
    X = 3 * DATA.X[:n] + offset
    model = PCABaseline(4, affine=offset > 0, normalize=normalize, contamination=0.4).fit(X)
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    treated = X - X.mean(axis=0) if offset else X / norms if normalize else X
    axes = np.linalg.svd(treated)[2]
    assert_same_subspace(model.components_, axes[:4], 1e-7)
    distance = np.linalg.norm(treated @ axes[4:].T, axis=1)
    np.testing.assert_allclose(-model.score_samples(X), distance, atol=1e-7)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert (model.labels_ == -1).sum() == round(0.4 * n)


@pytest.mark.parametrize("d", [0, 8])
def test_pca_at_both_ends(d):
    model = PCABaseline(n_components=d).fit(DATA.X)
    assert (model.components_.shape, model.normals_.shape) == ((d, 8), (8 - d, 8))
    with pytest.raises(InputError, match="7 components of 5 rows"):
        PCABaseline(n_components=7).fit(DATA.X[:5])


@parametrize_with_checks([PCABaseline(contamination=0.1)])
def test_pca_is_an_estimator(estimator, check):
    check(estimator)

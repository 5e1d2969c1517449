"""outliers="both": rows off the subspace or far out within it."""

import os
from pathlib import Path

import numpy as np
import pytest

import perpend
from perpend import DPCP, RSGM
from perpend.datasets import make_subspace
from perpend.metrics import outlier_auc, outlier_f1
from perpend.report import write_report


def table(seed, n=400):
    """Draw a plane with noise: rows 0 to 9 are off it, rows 10 to 19 far out within it."""
    rng = np.random.default_rng(seed)
    basis, _ = np.linalg.qr(rng.standard_normal((5, 5)))
    Y = rng.standard_normal((n, 5)) * [3.0, 2.0, 1.0, 0.02, 0.02]
    Y[:10, 3] += 1.0
    Y[10:20, :3] *= 30 / np.linalg.norm(Y[10:20, :3], axis=1, keepdims=True)
    return Y @ basis.T + 10, np.arange(n) < 20


def test_both_kinds_are_flagged_and_hardly_another_row(seed):
    X, bad = table(seed)
    model = DPCP(affine=True, outliers="both", random_state=seed).fit(X)
    flagged = model.labels_ == -1
    assert np.all(flagged[bad])
    assert np.mean(flagged[~bad]) < 0.05
    across = DPCP(affine=True, random_state=seed).fit(X)
    assert model.codimension_ == across.codimension_ == 2
    np.testing.assert_array_equal(model.normals_, across.normals_)
    assert not np.any(across.labels_[10:20] == -1)  # far out, but on it


def test_score_labels_and_probability_say_the_same(seed):
    X, _ = table(seed)
    model = DPCP(affine=True, outliers="both", random_state=seed).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_array_equal(model.decision_function(X) >= 0, model.labels_ == 1)
    p = model.outlier_probability(X)
    np.testing.assert_array_equal(p <= 0.5, model.labels_ == 1)
    assert np.all(np.diff(p[np.argsort(-model.score_samples(X))]) >= 0)
    few = DPCP(affine=True, outliers="both", contamination=0.05, random_state=seed).fit(X)
    assert np.sum(few.labels_ == -1) == 20


def test_the_column_that_is_wrong_explains_it(seed):
    X, _ = table(seed)
    model = DPCP(affine=True, outliers="both", random_state=seed).fit(X)
    row = X[100:101].copy()
    row[0, 2] += 5
    share = model.explain(row)[0]
    assert share.argmax() == 2
    assert share[2] > 0.9


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # RSGM is slow here
def test_a_linear_model_and_other_methods_have_it_too(seed):
    X, bad = table(seed)
    for model in (DPCP(outliers="both", random_state=seed), RSGM(outliers="both")):
        assert np.all(model.fit(X - 10).labels_[bad] == -1)


def test_single_precision_and_many_rows_change_little(seed):
    X, _ = table(seed, n=20_000)
    model = DPCP(affine=True, outliers="both", random_state=seed).fit(X)
    small = DPCP(affine=True, outliers="both", random_state=seed).fit(X.astype(np.float32))
    assert small.score_samples(X.astype(np.float32)).dtype == np.float32
    assert np.mean(small.labels_ != model.labels_) < 0.001


def test_it_is_saved_and_chosen_along(tmp_path, seed):
    X, _ = table(seed)
    model = DPCP(affine=True, outliers="both", random_state=seed).fit(X)
    model.save(tmp_path / "model.npz")
    loaded = perpend.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(loaded.score_samples(X), model.score_samples(X))
    np.testing.assert_array_equal(loaded.predict(X), model.labels_)
    for i in range(len(model.structures_)):
        np.testing.assert_array_equal(model.choose(i).predict(X), model.labels_)


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize(("n_out", "D", "c"), [(500, 30, 5), (100, 30, 5), (500, 10, 1)])
def test_what_is_off_a_sure_subspace_is_flagged_too(n_out, D, c, affine, seed):
    """Far more than the 1 / (D + 1) of the rows that a Student scatter bears."""
    data = make_subspace(500, n_out, n_features=D, codimension=c, noise=0.01, random_state=seed)
    model = DPCP(affine=affine, outliers="both", random_state=seed).fit(data.X)
    across = DPCP(affine=affine, random_state=seed).fit(data.X)
    assert np.all(model.labels_[across.labels_ == -1] == -1)
    assert outlier_f1(data.y, model.labels_) > 0.9
    assert outlier_auc(data.y, model.score_samples(data.X)) > 0.99
    p = model.outlier_probability(data.X)
    np.testing.assert_array_equal(p <= 0.5, model.labels_ == 1)


def relation(seed, n=600):
    rng = np.random.default_rng(seed)
    X = rng.normal(0, 3, (n, 4))
    X[:, 3] = X[:, 0] + X[:, 1]
    return X, rng


def test_rounded_values_break_no_relation(seed):
    """Whole numbers that add up to within one are as good as those that add up."""
    X, _ = relation(seed)
    X[:, 3] += 0.49 * (np.arange(600) % 3 == 0)
    X = np.round(X)
    model = DPCP(affine=True, outliers="both", random_state=seed).fit(X)
    off = np.abs(X[:, 3] - X[:, 0] - X[:, 1])
    assert np.mean(off > 0) > 0.1
    assert np.mean(model.labels_[off <= 1] == -1) < 0.05


def test_a_nearly_constant_column_is_no_relation(seed):
    X, rng = relation(seed)
    X[:, 3] = np.where(np.arange(600) < 150, rng.normal(0, 3, 600), 1.0)
    across = DPCP(affine=True, random_state=seed).fit(X)
    assert across.codimension_ == 1
    assert np.sum(across.labels_ == -1) > 140
    model = DPCP(affine=True, outliers="both", random_state=seed).fit(X)
    assert np.mean(model.labels_ == -1) < 0.05


def test_a_subspace_that_most_rows_are_off_is_not_what_is_normal(seed):
    X, rng = relation(seed)
    X[:420, 3] += rng.normal(0, 1, 420)
    across = DPCP(affine=True, random_state=seed).fit(X)
    assert across.confidence_ >= 0.95
    assert np.mean(across.labels_ == -1) > 0.6
    model = DPCP(affine=True, outliers="both", random_state=seed).fit(X)
    assert np.mean(model.labels_ == -1) < 0.1


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_rows_that_are_equal():
    """All of them, all but one, and any share of them: no crash, and not all are outliers."""
    odd = np.ones((20, 3))
    odd[0] = 1, 2, 3
    rng, some = np.random.default_rng(0), []
    for share in (0.2, 0.4, 0.6, 0.8):
        X = rng.normal(size=(200, 3))
        X[: int(200 * share)] = X[0]
        some.append(X)
    for X in (np.ones((20, 3)), np.zeros((20, 3)), odd, *some):
        model = DPCP(affine=True, outliers="both", random_state=0).fit(X)
        assert 1 < model.threshold_ < 1e3
        assert np.mean(model.labels_ == -1) < 0.1


def test_pictures_and_report_show_that_distance(tmp_path):
    pytest.importorskip("matplotlib")
    X, _ = table(0)
    model = DPCP(affine=True, outliers="both", random_state=0).fit(X)
    model.plot()
    write_report(tmp_path / "report.html", model, X)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "in robust deviations" in text
    assert "How far out the rows are" in text


@pytest.mark.parametrize(
    ("name", "columns", "rows"),
    [("hbk", slice(1, None), range(10)), ("octane", slice(1, None), [24, 25, *range(35, 39)])],
)
@pytest.mark.filterwarnings("ignore::UserWarning")  # neither is sure of a subspace
def test_the_outliers_of_the_classics_are_flagged(name, columns, rows):
    """Rows 1 to 10 of hbk, and the octane spectra with alcohol; at most six others."""
    file = Path(os.environ.get("PERPEND_DATA", "")) / f"classics/{name}.csv"
    if not file.is_file():
        pytest.skip(f"PERPEND_DATA does not name a folder with classics/{name}.csv")
    X = np.genfromtxt(file, delimiter=",", skip_header=1)[:, columns]
    flagged = np.flatnonzero(DPCP(affine=True, outliers="both", random_state=0).fit(X).labels_ < 0)
    assert set(rows) <= set(flagged)
    assert len(flagged) <= len(rows) + 6

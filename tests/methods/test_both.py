"""outliers="both": rows off the subspace or far out within it."""

import os
from pathlib import Path

import numpy as np
import pytest

import perpend
from perpend import DPCP, RSGM
from perpend.exceptions import InputError
from perpend.export import to_onnx
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


def test_pictures_and_report_show_that_distance(tmp_path):
    pytest.importorskip("matplotlib")
    X, _ = table(0)
    model = DPCP(affine=True, outliers="both", random_state=0).fit(X)
    model.plot()
    write_report(tmp_path / "report.html", model, X)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "in robust deviations" in text
    assert "How far out the rows are" in text


def test_onnx_says_that_it_has_no_such_form():
    pytest.importorskip("onnx")
    X, _ = table(0)
    with pytest.raises(InputError, match='outliers="both" has no ONNX form yet'):
        to_onnx(DPCP(affine=True, outliers="both").fit(X))


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

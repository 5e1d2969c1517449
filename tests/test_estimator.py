"""What every fitted model says of rows: the probability of an outlier, and which columns did it."""

import numpy as np
import pandas as pd
import pytest

from perpend import DPCP
from perpend.datasets import make_subspace
from perpend.estimator import METHODS
from perpend.geometry import axis_shares

QUIET = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore::perpend.exceptions.CodimensionWarning"
)


def problem(seed, n_outliers=200, **more):
    options = {"n_features": 12, "codimension": 5, "noise": 0.02, **more}
    return make_subspace(400, n_outliers, random_state=seed, **options)


def fitted(X, seed, **options):
    return DPCP(random_state=seed + 1000, **options).fit(X)


# -- outlier_probability ---------------------------------------------------------------------------


@QUIET
@pytest.mark.parametrize("name", sorted(METHODS))
@pytest.mark.parametrize("normalize", [True, False])
def test_every_method_has_probabilities_that_agree_with_its_labels(name, normalize, seed, dtype):
    data = problem(seed, codimension=1)
    X = data.X.astype(dtype)
    model = METHODS[name](normalize=normalize, random_state=seed + 1000).fit(X)
    p = model.outlier_probability(X)
    assert p.shape == (600,)
    assert p.dtype == dtype
    np.testing.assert_array_equal(p > 0.5, model.labels_ == -1)
    order = np.argsort(-model.score_samples(X), kind="stable")
    assert np.all(np.diff(p[order]) >= 0)


def test_probabilities_count_the_outliers(seed):
    data = problem(seed, noise=0.3)
    p = fitted(data.X, seed).outlier_probability(data.X)
    assert p.sum() == pytest.approx(200, abs=15)
    assert np.mean((p > 0.01) & (p < 0.99)) > 0.02  # some rows are in doubt


def test_a_given_threshold_or_contamination_moves_no_probability(seed):
    X = problem(seed).X
    auto = fitted(X, seed)
    p = auto.outlier_probability(X)
    for options in ({"threshold": 0.5}, {"contamination": 0.05}):
        other = fitted(X, seed, **options)
        assert other.threshold_ != auto.threshold_
        np.testing.assert_array_equal(other.outlier_probability(X), p)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_rows_beyond_all_that_was_seen_are_outliers(seed, scale):
    data = problem(seed, n_outliers=0)
    model = fitted(scale * data.X, seed, normalize=False)
    far = scale * 1e3 * data.normals
    np.testing.assert_allclose(model.outlier_probability(far), 1)
    np.testing.assert_allclose(model.outlier_probability(0 * far), 0, atol=1e-6)


def test_exact_inliers_alone_make_a_step(seed):
    data = problem(seed, n_outliers=0, noise=0.0)
    model = fitted(data.X, seed)
    assert model.codimension_ == 5
    np.testing.assert_allclose(model.outlier_probability(data.X), 0, atol=1e-12)
    np.testing.assert_allclose(model.outlier_probability(data.X + 1e-6 * data.normals[0]), 1)


@QUIET
def test_without_a_subspace_no_row_is_an_outlier(seed):
    X = np.random.default_rng(seed).standard_normal((300, 4))
    model = fitted(X, seed)
    assert model.codimension_ == 0
    np.testing.assert_allclose(model.outlier_probability(X), 0, atol=1e-12)
    np.testing.assert_array_equal(model.explain(X), 0)


@QUIET
def test_a_point_has_probabilities_too(seed):
    X = np.random.default_rng(seed).standard_normal((300, 4))
    model = fitted(X, seed, codimension=4)
    np.testing.assert_array_equal(model.outlier_probability(X), 1)


# -- explain ---------------------------------------------------------------------------------------


def by_trial(X, normals):
    """For each column on its own, the change that brings the row nearest, by least squares."""
    shares = np.zeros(X.shape)
    for i, x in enumerate(X):
        height = normals @ x
        for j in range(X.shape[1]):
            column = normals[:, [j]]
            (t,), *_ = np.linalg.lstsq(column, height, rcond=None)
            left = height - column[:, 0] * t
            shares[i, j] = 1 - (left @ left) / (height @ height)
    return shares


@QUIET
@pytest.mark.parametrize("name", sorted(METHODS))
def test_shares_are_those_of_the_best_change_of_one_column(name, seed, dtype):
    X = problem(seed).X[:50].astype(dtype)
    model = METHODS[name](random_state=seed + 1000).fit(problem(seed).X.astype(dtype))
    shares = model.explain(X)
    assert shares.shape == X.shape
    assert shares.dtype == dtype
    assert np.all((shares >= 0) & (shares <= 1))
    tol = {np.float64: 1e-9, np.float32: 2e-3}[dtype]
    off = model.distance(X) > 100 * np.finfo(dtype).eps  # rows that are nearer count as on it
    expected = by_trial(X.astype(float), model.normals_)
    np.testing.assert_allclose(shares[off], expected[off], atol=tol)
    assert off.sum() > 40


@pytest.mark.parametrize("normalize", [True, False])
def test_the_wrong_column_is_found(normalize, seed):
    """An error ten times the noise; the plain residual is right less often."""
    data = problem(seed, n_features=20, codimension=8)
    model = fitted(data.X, seed, normalize=normalize)
    rng = np.random.default_rng(seed + 2000)
    rows = data.X[data.y == 1]
    wrong = rng.integers(20, size=len(rows))
    rows[np.arange(len(rows)), wrong] += 0.2 * rng.choice([-1, 1], len(rows))
    found = model.explain(rows).argmax(axis=1) == wrong
    residual = np.abs(rows @ model.normals_.T @ model.normals_)
    assert np.mean(found) >= 0.98
    assert np.mean(found) > np.mean(residual.argmax(axis=1) == wrong)
    assert np.mean(model.outlier_probability(rows) > 0.5) >= 0.98


def test_without_noise_the_wrong_column_explains_everything(seed):
    data = problem(seed, noise=0.0)
    model = fitted(data.X, seed)
    rows = data.X[data.y == 1][:12]
    shares = model.explain(rows + np.diag(np.full(12, 0.1)))
    np.testing.assert_allclose(np.diag(shares), 1, atol=1e-9)
    off = shares[~np.eye(12, dtype=bool)]
    assert np.all(off < 1 - 1e-3)
    assert np.all(np.sum(shares, axis=1) >= 1)
    np.testing.assert_array_equal(model.explain(rows), 0)  # on the subspace: nothing to explain


@pytest.mark.parametrize("scale", [1e-300, 1e-3, 1e300])
def test_neither_length_nor_sign_of_a_row_matters(scale, seed):
    X = problem(seed).X
    model = fitted(X, seed)
    np.testing.assert_allclose(model.explain(-scale * X), model.explain(X), rtol=1e-6, atol=1e-9)


def test_zero_rows_and_columns_that_no_normal_uses_explain_nothing():
    normals = np.array([[1.0, 0, 0, 0], [0, 0.6, 0.8, 0]])
    shares = axis_shares(np.array([[0.0, 0.0], [0.3, 0.0], [0.0, 0.2], [0.3, 0.4]]), normals)
    expected = [[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 1, 0], [0.36, 0.64, 0.64, 0]]
    np.testing.assert_allclose(shares, expected, atol=1e-15)
    nearly = normals + 1e-12 * np.eye(2, 4, 2)[:, ::-1]  # rounding in the last column
    assert np.all(axis_shares(np.array([[0.3, 0.4]]), nearly)[:, 3] == 0)


def test_a_single_normal_cannot_tell_columns_apart(seed):
    X = problem(seed, codimension=1).X
    model = fitted(X, seed)
    np.testing.assert_allclose(model.explain(X), 1)


def test_frames_are_explained_by_their_columns(seed):
    data = problem(seed)
    frame = pd.DataFrame(data.X, columns=[f"band {j}" for j in range(12)])
    model = fitted(frame, seed)
    expected = fitted(data.X, seed).explain(data.X)  # equal but for rounding: columns are copied
    np.testing.assert_allclose(model.explain(frame), expected, atol=1e-9)
    with pytest.raises(ValueError, match="feature"):
        model.explain(frame[frame.columns[::-1]])

"""Robust standardising: scikit-learn's contract, and the scale that each kind of column gets."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from perpend import DPCP, RobustStandardizer
from perpend.exceptions import UnitsWarning


@parametrize_with_checks([RobustStandardizer()])
def test_scikit_learn(estimator, check):
    check(estimator)


def table(n=400, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 3)) * [1.0, 1e-6, 1e6] + [0.0, 1.0, -1e7]


def test_columns_with_quartiles_are_those_of_robust_scaler():
    X = table()
    expected = RobustScaler(unit_variance=True).fit(X)
    found = RobustStandardizer().fit(X)
    np.testing.assert_allclose(found.center_, expected.center_, rtol=1e-12)
    np.testing.assert_allclose(found.scale_, expected.scale_, rtol=1e-12)
    np.testing.assert_allclose(found.transform(X), expected.transform(X), rtol=1e-9)


def test_the_scale_is_an_estimate_of_the_standard_deviation():
    grid = stats.norm.ppf((np.arange(4000) + 0.5) / 4000)[:, None]
    assert RobustStandardizer().fit(7 * grid).scale_[0] == pytest.approx(7, rel=1e-3)


@pytest.mark.parametrize("size", [1.0, 1e-200, 1e200])
def test_equal_quartiles_and_constant_columns(size):
    mostly_zero = np.r_[np.zeros(90), np.arange(10.0)] * size
    constant = np.full(100, 0.1) * size
    found = RobustStandardizer().fit(np.c_[mostly_zero, constant])
    expected = size * np.std(np.r_[np.zeros(90), np.arange(10.0)])
    assert found.scale_[0] == pytest.approx(expected, rel=1e-12)
    assert found.scale_[1] == 1.0
    assert not np.any(found.transform(np.c_[mostly_zero, constant])[:, 1])


def test_a_fifth_of_gross_errors_moves_the_scale_little():
    X = table(900)
    clean = RobustStandardizer().fit(X).scale_
    X[:180] *= 1e9
    np.testing.assert_array_less(RobustStandardizer().fit(X).scale_, 3 * clean)


def test_missing_values_are_left_out_and_kept():
    X = table()
    holes = np.random.default_rng(1).random(X.shape) < 0.1
    X[holes] = np.nan
    found, expected = RobustStandardizer().fit(X), RobustScaler(unit_variance=True).fit(X)
    np.testing.assert_allclose(found.scale_, expected.scale_, rtol=1e-12)
    np.testing.assert_array_equal(np.isnan(found.transform(X)), holes)
    nothing = np.c_[np.full(10, np.nan), np.arange(10.0)]
    assert np.all(np.isnan(RobustStandardizer().fit_transform(nothing)[:, 0]))


def test_there_and_back(dtype):
    X = table().astype(dtype)
    model = RobustStandardizer().fit(X)
    Z = model.transform(X)
    assert Z.dtype == model.inverse_transform(Z).dtype == X.dtype
    np.testing.assert_allclose(model.inverse_transform(Z), X, rtol=10 * np.finfo(X.dtype).eps)


def test_dataframes_keep_their_names():
    frame = pd.DataFrame(table(), columns=["a", "b", "c"])
    model = RobustStandardizer().set_output(transform="pandas").fit(frame)
    assert list(model.get_feature_names_out()) == ["a", "b", "c"]
    assert list(model.transform(frame).columns) == ["a", "b", "c"]


def relation(n=500, seed=0):
    """Three columns of very different units, with a relation and 40 broken rows."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    X[:, 2] = X[:, 0] + X[:, 1] + 0.01 * rng.standard_normal(n)
    X[:40, 2] += rng.choice([-2, 2], 40)
    return X * [1.0, 1e4, 1e-3]


def test_a_model_without_it_warns_of_units_and_with_it_finds_the_relation():
    X = relation()
    with pytest.warns(UnitsWarning, match=r"columns 1 and 2 .* 10\^7.*RobustStandardizer"):
        DPCP(affine=True, random_state=0).fit(X)
    pipeline = make_pipeline(RobustStandardizer(), DPCP(affine=True, random_state=0)).fit(X)
    assert pipeline[-1].codimension_ == 1
    np.testing.assert_array_equal(pipeline.predict(X) == -1, np.arange(len(X)) < 40)


def test_the_warning_names_columns_of_a_frame():
    with pytest.warns(UnitsWarning, match='columns "mm" and "km"'):
        DPCP(affine=True, random_state=0).fit(pd.DataFrame(relation(), columns=["m", "mm", "km"]))


@pytest.mark.filterwarnings("ignore::perpend.exceptions.CodimensionWarning")
@pytest.mark.parametrize(
    "scales",
    [[1.0, 1.0, 500.0], [1.0, 1.0, 0.0], [1e-12, 1e-12, 1e-12], [1e70, 1e70, 1e70]],
)
def test_no_warning_for_moderate_constant_or_equal_units(scales):
    X = np.random.default_rng(0).standard_normal((300, 3)) * scales
    X[:, 2] += scales[2] == 0
    DPCP(affine=True, codimension=1, random_state=0).fit(X)


@pytest.mark.filterwarnings("ignore::perpend.exceptions.CodimensionWarning")
def test_no_warning_for_gross_errors_and_thin_structures():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 3))
    X[:, 2] *= 1e-5  # a thin plane along two axes,
    X[:60, 2] = rng.standard_normal(60)  # with points beside it
    X[60:66, 0] = 1e9  # and errors
    DPCP(affine=True, random_state=0).fit(X)

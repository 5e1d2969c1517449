"""Rows that are few, equal, flat or not finite, and sizes at the ends: for every method."""

import numpy as np
import pytest

from perpend import subspace_error
from perpend.datasets import make_subspace
from perpend.estimator import METHODS
from perpend.exceptions import InputError

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore::perpend.exceptions.CodimensionWarning"
)
METHOD = pytest.mark.parametrize("name", sorted(METHODS))
LOW = make_subspace(60, 6, n_features=12, codimension=10, random_state=0)  # easy for all


def fitted(name, X, **given):
    return METHODS[name](random_state=0, **given).fit(X)


@METHOD
@pytest.mark.parametrize("d", [0, 1, 11, 12])
def test_any_dimension_gives_orthonormal_bases(name, d):
    model = fitted(name, LOW.X, n_components=d)
    basis = np.vstack([model.components_, model.normals_])
    assert model.components_.shape == (d, 12)
    np.testing.assert_allclose(basis @ basis.T, np.eye(12), atol=1e-8)
    assert set(np.unique(model.labels_)) <= {-1, 1}


@METHOD
def test_fewer_rows_than_features(name):
    X = LOW.X[:8]
    model = fitted(name, X, n_components=2)
    basis = np.vstack([model.components_, model.normals_])
    np.testing.assert_allclose(basis @ basis.T, np.eye(12), atol=1e-8)


@METHOD
@pytest.mark.parametrize("times", [1, 6])
@pytest.mark.parametrize("n", [3, 8])
def test_affine_subspaces_of_a_few_rows_have_the_given_dimension(name, n, times):
    """Rows in general position, up to as many as make a simplex: any dimension leaves some off."""
    X = np.repeat(np.random.default_rng(n).standard_normal((n, 7)), times, axis=0)
    for d in (1, 6):
        model = fitted(name, X, n_components=d, affine=True)
        assert (model.n_components_, model.codimension_) == (d, 7 - d)
        basis = np.vstack([model.components_, model.normals_])
        np.testing.assert_allclose(basis @ basis.T, np.eye(7), atol=1e-8)
        assert model.confidence_ < 0.95


@METHOD
def test_every_row_twice_is_the_same_subspace(name):
    once = fitted(name, LOW.X, n_components=2)
    twice = fitted(name, np.repeat(LOW.X, 2, axis=0), n_components=2)
    assert subspace_error(twice.normals_, LOW.normals) == pytest.approx(
        subspace_error(once.normals_, LOW.normals), abs=0.1
    )


@METHOD
def test_rows_that_are_all_equal(name):
    X = np.tile(LOW.X[:1], (20, 1))
    model = fitted(name, X, n_components=1)
    assert np.all(model.labels_ == 1)
    np.testing.assert_allclose(np.abs(model.components_ @ X[0]), np.linalg.norm(X[0]), atol=1e-8)


@METHOD
def test_an_empty_column_is_a_normal(name):
    model = fitted(name, np.hstack([LOW.X, np.zeros((66, 1))]), n_components=2)
    assert np.abs(model.components_[:, 12]).max() < 1e-8


@METHOD
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite_are_named(name, bad):
    X = LOW.X.copy()
    X[5, 3] = bad
    with pytest.raises(InputError, match="first: row 5, column 3"):
        fitted(name, X, n_components=2)


@METHOD
@pytest.mark.parametrize("given", [{"n_components": 0}, {"n_components": 2}, {"codimension": 0}])
def test_rows_that_are_all_zero_are_an_error(name, given):
    with pytest.raises(InputError, match="Every row of X is zero"):
        fitted(name, np.zeros((20, 4)), **given)


def test_a_known_share_of_rows_that_are_all_zero():
    with pytest.raises(InputError, match="Every row of X is zero"):
        fitted("OutlierPursuit", np.zeros((20, 4)), contamination=0.1)

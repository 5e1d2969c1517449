"""Rows that are few, equal, flat or not finite, and sizes at the ends: for every method."""

import numpy as np
import pytest

import perpend.methods  # noqa: F401  fills the registry
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

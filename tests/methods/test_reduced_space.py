"""Rows in a smaller space are solved there: the subspace is that of the rows as they are."""

import numpy as np
import pytest

from helpers import assert_orthonormal_rows, assert_same_subspace, assert_sure, mostly_slow
from perpend import DPCP, DPCPIRLS, RSGM, RecursiveDPCP
from perpend.datasets import make_subspace
from perpend.rows import span as span_module

METHODS = {
    "DPCP": lambda c: DPCP(random_state=7),
    "DPCP, given codimension": lambda c: DPCP(c, random_state=7),
    "RSGM": RSGM,
    "DPCPIRLS": DPCPIRLS,
    "RecursiveDPCP": RecursiveDPCP,
}


def embedded(seed, D, *, n_features=20, codimension=3, dtype=np.float64):
    """Rows of R^20 with a subspace, the same rows in R^D, and the way between (20, D)."""
    data = make_subspace(
        200, 200, n_features=n_features, codimension=codimension, random_state=seed
    )
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((D, n_features)))[0].T
    return data, (data.X @ Q).astype(dtype), Q


@pytest.mark.parametrize("name", METHODS)
# turned into the span or not, factorised or not
@pytest.mark.parametrize("D", mostly_slow([22, 50, 900], 50))
def test_the_subspace_is_that_of_the_rows_in_their_span(name, D, seed, dtype):
    data, X, Q = embedded(seed, D, dtype=dtype)
    weight = np.random.default_rng(seed).uniform(0.5, 2, len(X))
    model = METHODS[name](D - 17).fit(X, sample_weight=weight)
    small = assert_sure(METHODS[name](3).fit(data.X, sample_weight=weight))
    if (
        name != "DPCPIRLS"
    ):  # whose tolerance seems to be noise inside the span, where nothing else is
        assert_sure(model)
    tol = 1e-10 if dtype == np.float64 else 2e-3
    assert model.codimension_ == D - 17
    assert model.normals_.dtype == dtype
    assert_same_subspace(model.components_, small.components_ @ Q, tol)
    assert_orthonormal_rows(np.vstack([model.normals_, model.components_]), 100 * tol)
    np.testing.assert_array_equal(model.labels_, small.labels_)
    assert model.directions_.shape == (model.n_starts_, D)
    assert model.n_starts_ == small.n_starts_
    if name in {"RSGM", "DPCPIRLS", "RecursiveDPCP"}:  # the others have starts of their own
        np.testing.assert_allclose(model.objective_, small.objective_, rtol=max(tol, 1e-6))


def test_turning_changes_nothing_but_the_cost(seed, monkeypatch):
    _, X, _ = embedded(seed, 60)
    turned = DPCP(random_state=seed).fit(X)
    monkeypatch.setattr(span_module, "SMALL_SPAN", 0.0)
    as_given = DPCP(random_state=seed).fit(X)
    assert_same_subspace(turned.normals_, as_given.normals_, 1e-10)
    assert_same_subspace(turned.directions_[:3], as_given.directions_[:3], 1e-5)
    assert turned.confidence_ == pytest.approx(as_given.confidence_, rel=1e-6)
    assert turned.n_iter_ == as_given.n_iter_


def test_given_starts_are_turned_as_well(seed):
    data, X, Q = embedded(seed, 50)
    init = np.random.default_rng(seed).standard_normal((12, 20))
    outside = np.random.default_rng(seed + 1).standard_normal((12, 50))
    outside -= outside @ Q.T @ Q  # adds nothing: no row has a component there
    model = DPCP(init=init @ Q + outside, random_state=seed).fit(X)
    small = DPCP(init=init, random_state=seed).fit(data.X)
    assert_same_subspace(model.components_, small.components_ @ Q)
    given = RSGM(33, init=np.vstack([init[:3] @ Q])).fit(X)
    assert_same_subspace(
        given.components_, RSGM(3, init=init[:3]).fit(data.X).components_ @ Q, 1e-8
    )


def test_fewer_normals_than_are_free(seed):
    """The free directions come first; which ones does not depend on how the span was found."""
    _, X, _ = embedded(seed, 60)
    few, many = (DPCP(5).fit(np.vstack([X[:25]] * m)) for m in (1, 3))  # rows factorised, or not
    assert few.codimension_ == 5
    assert np.max(np.abs(X @ few.normals_.T)) < 1e-12
    assert_same_subspace(few.normals_, many.normals_, 1e-8)
    assert few.n_components_ == 55


@pytest.mark.parametrize("noise", mostly_slow([0.0, 0.05], 0.05))
def test_fewer_rows_than_features(noise, seed):
    for s in range(10 * seed, 10 * seed + 10):
        data = make_subspace(25, 25, n_features=1000, codimension=997, noise=noise, random_state=s)
        model = DPCP(random_state=1000 + s).fit(data.X)
        assert model.n_components_ == 3
        assert model.confidence_ >= 0.95
        assert_same_subspace(model.components_, data.components, 2 * noise + 1e-12)
        np.testing.assert_array_equal(model.labels_, data.y)
        assert model.noise_ == pytest.approx(noise, rel=0.2)
        assert_orthonormal_rows(model.normals_)


def test_weights_and_zero_rows_among_few(seed):
    data = make_subspace(90, 90, n_features=600, codimension=594, noise=0.05, random_state=seed)
    X = np.vstack([data.X, np.zeros((5, 600)), data.X[:7]])
    weight = np.r_[np.random.default_rng(seed).uniform(0.5, 2, 180), np.ones(5), np.zeros(7)]
    model = DPCP(random_state=seed).fit(X, sample_weight=weight)
    assert model.n_components_ == 6
    assert_same_subspace(model.components_, data.components, 0.1)
    np.testing.assert_array_equal(model.labels_[:180], data.y)


def nearly_flat(seed, dtype, noise):
    """20,000 rows of 8 positive columns without outliers, in 3 dimensions but for the noise."""
    rng = np.random.default_rng(seed)
    A = np.column_stack([np.ones(8), rng.standard_normal((8, 7))])
    coordinates = np.r_[1, 0.3, 0.1, 1.5 * noise, [noise] * 4] * rng.standard_normal((20_000, 8))
    coordinates[:, 0] = rng.uniform(2, 3, 20_000)
    return np.abs(coordinates @ np.linalg.qr(A)[0].T).astype(dtype)


def test_single_precision_sees_noise_that_its_second_moments_do_not(seed):
    """In float32, squares of 0.2 % of the largest coordinate are lost in the sums of squares."""
    single, double = (
        DPCP(5, random_state=seed).fit(nearly_flat(seed, dtype, 5e-3))
        for dtype in (np.float32, np.float64)
    )
    assert single.noise_ == pytest.approx(double.noise_, rel=0.01)
    assert single.threshold_ == pytest.approx(double.threshold_, rel=0.05)
    assert np.mean(single.labels_ == 1) > 0.99


@pytest.mark.filterwarnings("ignore::perpend.exceptions.CodimensionWarning")
def test_normals_outside_the_span_count_in_labels_as_in_predict(seed):
    """One normal is inside the span; the noise along the other 36 is within rounding errors."""
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.standard_normal((40, 40)))
    scale = np.r_[1, 0.5, 0.5, 1e-4, [2e-6] * 36]
    X = ((scale * rng.standard_normal((20_000, 40))) @ Q.T).astype(np.float32)
    model = DPCP(37, random_state=seed).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.filterwarnings("ignore::perpend.exceptions.CodimensionWarning")
def test_structures_that_all_rows_do_not_span_are_left_out():
    """Just above rounding errors, the sample spans one dimension more than all rows seem to."""
    rng = np.random.default_rng(0)
    Q, _ = np.linalg.qr(rng.standard_normal((40, 40)))
    scale = np.r_[1, 0.5, 0.5, 1.6e-6, [3.2e-8] * 36]
    model = DPCP(37, random_state=0).fit((rng.standard_normal((20_000, 40)) * scale) @ Q.T)
    assert model.codimension_ == 37
    assert all(model.choose(i).codimension_ for i in range(len(model.structures_)))

"""Methods that label the rows of the fit alone: what they have, what they refuse, and R-graph."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import ElasticNet
from sklearn.metrics import roc_auc_score

import perpend
from perpend import DPCP, RGraph, rgraph
from perpend._labels_only import LABELS_ONLY
from perpend.datasets import make_subspace
from perpend.exceptions import InputError
from perpend.methods.rgraph import represented, transitions

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
METHOD = pytest.mark.parametrize("name", sorted(LABELS_ONLY))


def union(seed, n=60, n_outliers=30, D=30, d=3):
    """Rows of two subspaces, and outliers."""
    parts = [
        make_subspace(
            n, n_outliers // 2, n_features=D, codimension=D - d, random_state=2 * seed + i
        )
        for i in (0, 1)
    ]
    return np.vstack([part.X for part in parts]), np.concatenate([part.y for part in parts])


X, Y = union(0)


def method(name, **options):
    seed = {"random_state": 0} if "random_state" in LABELS_ONLY[name]().get_params() else {}
    return LABELS_ONLY[name](**seed, **options)


@METHOD
def test_what_they_have(name):
    model = method(name)
    labels = model.fit_predict(X)
    np.testing.assert_array_equal(labels, model.labels_)
    np.testing.assert_array_equal(labels == -1, model.scores_ < model.offset_)
    assert model.scores_.shape == (150,)
    some = clone(model).set_params(contamination=0.2).fit(X)
    np.testing.assert_array_equal(some.scores_, model.scores_)
    assert np.sum(some.labels_ == -1) == 30
    assert not model.capabilities.out_of_sample
    assert not model.capabilities.subspace


@METHOD
@pytest.mark.parametrize("call", ["predict", "transform", "distance", "score_samples", "save"])
def test_what_they_refuse(name, call):
    model = method(name).fit(X)
    assert not hasattr(model, call)
    with pytest.raises(AttributeError, match=f"{name} has no {call}: it has no map for new rows"):
        getattr(model, call)(X)
    with pytest.raises(AttributeError, match=f"{name} has no normals_: .* no normals"):
        model.normals_  # noqa: B018
    with pytest.raises(InputError, match=f"{name} is no method of perpend with a subspace"):
        perpend.save(model, "never.npz")
    with pytest.raises(AttributeError, match=r"no attribute 'nonsense'"):
        model.nonsense  # noqa: B018


@METHOD
def test_whatever_they_lack_of_a_method_is_named(name):
    """All that a fitted model offers, but for parameters and what scikit-learn adds."""
    model = method(name).fit(X)
    offered = {one for one in dir(DPCP) if not one.startswith(("_", "set_"))}
    offered -= {*dir(model), *DPCP().get_params()}
    assert {"plot", "report", "summary", "partial_fit", "predict", "choose"} <= offered
    for one in offered:
        with pytest.raises(AttributeError, match=f"{name} has no {one}: it has no map"):
            getattr(model, one)


@METHOD
def test_bad_rows_are_named(name):
    bad = X.copy()
    bad[7, 2] = np.nan
    with pytest.raises(InputError, match="first: row 7, column 2"):
        LABELS_ONLY[name]().fit(bad)
    with pytest.raises(InputError, match="zero"):
        LABELS_ONLY[name]().fit(np.zeros((5, 3)))
    assert name not in perpend._METHODS  # the command line has no use for them
    assert getattr(perpend, name) is LABELS_ONLY[name]


@METHOD
def test_few_rows_equal_rows_and_empty_columns(name):
    few = method(name).fit(X[:12])  # of 30 features
    assert set(np.unique(few.labels_)) <= {-1, 1}
    assert np.all(np.isfinite(few.scores_))
    same = method(name).fit(np.tile(X[:1], (10, 1)))
    assert np.all(same.labels_ == 1)
    wider = method(name).fit(np.hstack([X, np.zeros((150, 1))]))
    assert np.mean(wider.labels_ == method(name).fit(X).labels_) > 0.95
    for bad in (X[:1], X[0], X[:0]):
        with pytest.raises(ValueError, match=r"minimum of 2|2D array|0 sample"):
            method(name).fit(bad)


@METHOD
@pytest.mark.parametrize("size", [1e-160, 1e-100, 1e100, 1e160])
def test_sizes_of_which_there_are_no_squares_are_named(name, size):
    if 1e-150 < size < 1e150:
        np.testing.assert_array_equal(
            method(name).fit(X * size).labels_, method(name).fit(X).labels_
        )
    else:
        with pytest.raises(InputError, match=r"largest entry of X is .*Divide X by"):
            method(name).fit(X * size)


def test_their_steps_are_seen():
    for name in LABELS_ONLY:
        seen = []
        method(name, callback=lambda now, seen=seen: seen.append((now.stage, now.step))).fit(X)
        for stage in {of for of, _ in seen}:
            steps = [step for of, step in seen if of == stage]
            assert steps == list(range(1, len(steps) + 1)), name
        assert seen


# -- R-graph ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("j", [0, 40, 149])
def test_representations_are_those_of_an_elastic_net(j):
    A = X.T.copy()
    A[:, j] = 0
    limit = np.abs(X[j] @ A).max() / 10  # lambda over gamma
    net = ElasticNet(alpha=limit / (0.95 * 30), l1_ratio=0.95, fit_intercept=False, tol=1e-15)
    expected = net.set_params(max_iter=100_000).fit(A, X[j]).coef_
    np.testing.assert_allclose(represented(X[j], A, 0.95, 10.0), expected, atol=1e-8)


@pytest.mark.parametrize("lam", [0.5, 0.95, 1.0])
@pytest.mark.parametrize(("n", "D"), [(400, 5), (60, 40)])
def test_representations_satisfy_the_conditions_of_the_optimum(lam, n, D):
    """Also where coordinate descent alone is far from it: many rows that are nearly equal."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((D, 6)) @ rng.standard_normal((6, n)) * 0.3
    A += 0.1 * rng.standard_normal((D, n))
    A /= np.linalg.norm(A, axis=0)
    x, A[:, 0] = A[:, 0].copy(), 0
    limit = np.abs(x @ A).max() / 10
    r = represented(x, A, lam, 10.0)
    products = (x - A @ r) @ A / limit  # in the subgradient of |r| + (1 - lam) / (2 lam) r^2
    used = r != 0
    assert 0 < used.sum() < n
    np.testing.assert_allclose(
        products[used], np.sign(r[used]) + (1 - lam) / lam * r[used], atol=1e-6
    )
    assert np.max(np.abs(products[~used])) < 1 + 1e-6


def test_the_walk_is_that_of_its_matrix():
    P = transitions(X, 0.95, 10.0).toarray()
    np.testing.assert_allclose(P.sum(axis=1), 1)
    assert np.all(np.diag(P) == 0)
    p, total = np.full(150, 1 / 150), 0
    for _ in range(50):
        p = p @ P
        total = total + p
    np.testing.assert_allclose(rgraph(X, n_steps=50), total / 50 * 150, atol=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_a_union_of_subspaces_is_told_from_outliers(seed):
    rows, y = union(seed)
    model = RGraph().fit(rows)
    assert roc_auc_score(y, model.scores_) == 1
    assert np.mean(model.labels_ == y) > 0.95
    assert np.all(model.labels_[y == -1] == -1)


def test_it_fails_at_high_relative_dimension():
    rows, y = union(0, D=10, d=8)
    assert roc_auc_score(y, rgraph(rows)) < 0.9


def test_rows_that_are_zero_are_outliers():
    model = RGraph().fit(np.vstack([X, np.zeros((2, 30))]))
    np.testing.assert_array_equal(model.labels_[-2:], -1)

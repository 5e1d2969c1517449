"""Methods that label the rows of the fit alone: what they have, what they refuse, and R-graph."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import ElasticNet
from sklearn.metrics import roc_auc_score

import perpend
from perpend import RGraph, rgraph
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
@pytest.mark.parametrize("call", ["predict", "transform", "distance", "score_samples"])
def test_what_they_refuse(name, call):
    model = method(name).fit(X)
    assert not hasattr(model, call)
    with pytest.raises(AttributeError, match=f"{name} has no {call}: it has no map for new rows"):
        getattr(model, call)(X)
    with pytest.raises(AttributeError, match=r"no attribute 'nonsense'"):
        model.nonsense  # noqa: B018


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


def test_their_steps_are_seen():
    for name in LABELS_ONLY:
        seen = []
        method(name, callback=lambda progress, seen=seen: seen.append(progress.step)).fit(X)
        assert seen == list(range(1, len(seen) + 1)), name
        assert seen


# -- R-graph ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("j", [0, 40, 149])
def test_representations_are_those_of_an_elastic_net(j):
    A = X.T.copy()
    A[:, j] = 0
    limit = np.abs(X[j] @ A).max() / 10  # lambda over gamma
    net = ElasticNet(alpha=limit / (0.95 * 30), l1_ratio=0.95, fit_intercept=False, tol=1e-10)
    expected = net.set_params(max_iter=100_000).fit(A, X[j]).coef_
    found = represented(X[j], A, 0.95, 10.0)
    np.testing.assert_allclose(found, expected, atol=2e-2 * np.abs(expected).sum())
    objective = [
        np.sum((X[j] - A @ r) ** 2) / 2 + limit * (np.abs(r).sum() + 0.05 / 0.95 / 2 * (r @ r))
        for r in (found, expected)
    ]
    assert objective[0] == pytest.approx(objective[1], rel=1e-3)


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

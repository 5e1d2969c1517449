"""Could it be an accident? Evidence of rows for a subspace, and what does not count as evidence."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from perpend import DPCP
from perpend.codimension import certify, distinct_rows, weigh_no_normals
from perpend.datasets import make_subspace
from perpend.exceptions import CodimensionWarning
from perpend.rows import as_rows
from perpend.solvers import RowSpan, fit_subspace, row_span
from perpend.theory import average_height


def span_of(rank: int, n_features: int) -> RowSpan:
    axes = np.eye(n_features)
    return RowSpan(axes[:, :rank], axes[:, rank:], lambda: axes, axes[:, :rank], np.ones(rank))


def test_rows_that_stand_many_times_count_once() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6))
    assert_allclose(distinct_rows(as_rows(X), rng).share, 1)
    assert_allclose(distinct_rows(as_rows(np.repeat(X, 5, axis=0)), rng).share, 0.2)
    assert_allclose(distinct_rows(as_rows(X, weight=np.full(40, 3.0)), rng).share, 1)
    assert_allclose(distinct_rows(as_rows(np.vstack([X, -X])), rng).share, 0.5)  # up to sign
    twice = distinct_rows(as_rows(np.vstack([X, 2 * X])), rng)
    assert_allclose(twice.share, 1)  # a line has many rows


def test_one_heavy_row_is_one_row() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6))
    heavy = np.vstack([X, np.repeat(X[:1], 100, axis=0)])
    distinct = distinct_rows(as_rows(heavy), rng)
    assert distinct.share.sum() == pytest.approx(40)
    assert_allclose(distinct.in_common, np.repeat([101, 1, 101], [1, 39, 100]))
    weight = np.ones(40)
    weight[3] = 1000.0
    assert_allclose(distinct_rows(as_rows(X, weight=weight), rng).share, 1)


def test_a_weight_is_as_good_as_repetition() -> None:
    rng = np.random.default_rng(0)
    X, weight = rng.standard_normal((40, 6)), rng.integers(0, 4, 40)
    weighted = distinct_rows(as_rows(X, weight=weight.astype(float)), rng).share
    repeated = distinct_rows(as_rows(np.repeat(X, weight, axis=0)), rng).share
    assert weighted.sum() == pytest.approx(repeated.sum())
    assert np.all(weighted[weight == 0] == 0)


def certificate_at(X: np.ndarray, V: np.ndarray):
    rows = as_rows(X)
    fit = fit_subspace(rows, V, row_span(rows).basis, max_iter=30)
    share = distinct_rows(rows, np.random.default_rng(0)).share
    return certify(rows, fit.V, fit.groups, X.shape[1] - V.shape[1], share)


def test_inliers_are_evidence_and_outliers_are_not() -> None:
    for seed in range(10):
        data = make_subspace(100, 300, n_features=8, codimension=2, random_state=seed)
        right = certificate_at(data.X, data.normals.T)
        assert right.n_rows == 100
        assert right.confidence > 0.999
        outliers = certificate_at(data.X[data.y == -1], data.normals.T)
        assert outliers.confidence < 0.5


def test_a_subspace_through_d_rows_says_nothing() -> None:
    for seed in range(10):
        X = np.random.default_rng(seed).standard_normal((60, 8))
        V = np.linalg.svd(X[:6])[2][6:].T  # two normals of the first six rows
        rows = as_rows(X)
        fit = fit_subspace(rows, V, np.eye(8), max_iter=0)
        share = distinct_rows(rows, np.random.default_rng(0)).share
        found = certify(rows, fit.V, fit.groups, 6, share)
        assert found.n_rows == found.n_free == 6
        assert found.gain < 1
        assert found.confidence < 0.1


def test_evidence_grows_with_every_further_row() -> None:
    data = make_subspace(40, 60, n_features=8, codimension=2, random_state=0)
    inliers, outliers = data.X[data.y == 1], data.X[data.y == -1]
    gains = [
        certificate_at(np.vstack([inliers[:n], outliers]), data.normals.T).gain
        for n in (10, 20, 40)
    ]
    assert gains[0] < gains[1] < gains[2]


def test_codimension_zero_is_as_sure_as_the_smallest_subspace_that_would_show() -> None:
    few, many = (
        weigh_no_normals(span_of(10, 10), 100, np.ones(1)),
        weigh_no_normals(span_of(10, 10), 100_000, np.ones(1)),
    )
    assert few.value == many.value == 0
    assert few.confidence == pytest.approx(1 - 1 / (np.sqrt(100) * average_height(10)))
    assert few.doubts
    assert many.confidence > 0.95
    assert not many.doubts


def test_a_row_that_stands_often_may_be_a_line() -> None:
    half = weigh_no_normals(span_of(10, 10), 100_000, np.ones(1), heaviest=0.5)
    assert half.confidence == 0.5
    assert "50% of the weight is on rows that are equal up to sign" in half.doubts[0]
    rare = weigh_no_normals(span_of(10, 10), 100_000, np.ones(1), heaviest=1e-4)
    assert rare == weigh_no_normals(span_of(10, 10), 100_000, np.ones(1))


def test_doubts_do_not_deny_the_subspace_that_is_answered() -> None:
    rng = np.random.default_rng(0)
    row = np.arange(1.0, 6.0)
    wide = np.column_stack([rng.standard_normal((8, 4)), np.zeros(8)])  # the last column is idle
    for X, codimension, words in [
        (np.tile(row, (50, 1)), 4, "all rows are equal up to sign and so count as one"),
        (wide, 1, "no smaller subspace was found, but the rows are too few"),
        (wide[:, :4], 0, "no subspace was found, but the rows are too few"),
    ]:
        with pytest.warns(CodimensionWarning, match=words):
            model = DPCP(random_state=1000).fit(X)
        assert model.codimension_ == codimension
        assert words in model.doubts_[0]


def test_rows_on_a_smaller_span_are_sure_once_they_are_more_than_it_takes() -> None:
    assert weigh_no_normals(span_of(4, 10), 4, np.ones(1)).confidence == 0
    assert weigh_no_normals(span_of(4, 10), 6, np.ones(1)).confidence == pytest.approx(0.75)
    assert weigh_no_normals(span_of(4, 10), 20, np.ones(1)).confidence > 0.99

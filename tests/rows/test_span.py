"""What scans say about rows: their span, and distances from normals or from components."""

import numpy as np
import pytest

from helpers import assert_orthonormal_rows, assert_same_subspace
from perpend.exceptions import InputError
from perpend.kernels import gram
from perpend.rows import (
    as_rows,
    in_their_span,
    row_span,
    scan_distances,
    scan_grouped_distances,
)
from perpend.rows import span as span_module
from perpend.rows.span import few_components
from perpend.structure.law import distance_edges


def rank_deficient(seed, n, D, rank, dtype=np.float64):
    """Rows in a random subspace, and its basis (rank, D)."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.standard_normal((D, rank)))[0].T
    return (rng.standard_normal((n, rank)) @ basis).astype(dtype), basis


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("shape", [(50, 8, 5), (200, 30, 29), (9, 4, 1), (300, 40, 3)])
def test_the_span_of_rank_deficient_rows(shape, normalize, dtype, seed):
    n, D, rank = shape
    X, basis = rank_deficient(seed, n, D, rank, dtype)
    span = row_span(as_rows(X, normalize=normalize))
    tol = 1e-12 if dtype == np.float64 else 1e-4
    assert span.rank == rank
    assert_same_subspace(span.basis.T, basis, tol)
    assert_orthonormal_rows(np.hstack([span.basis, span.rest]).T)
    assert np.max(np.abs(X @ span.rest)) < tol
    assert span.axes.shape == (D, rank)


def test_fewer_rows_than_features_span_no_more_than_they_are(seed):
    X = np.random.default_rng(seed).standard_normal((6, 20))
    span = row_span(as_rows(X))
    assert span.rank == 6
    assert_same_subspace(span.basis.T, X, 1e-12)


def test_rows_that_span_everything(seed):
    X = np.random.default_rng(seed).standard_normal((50, 7))
    span = row_span(as_rows(X, normalize=False))
    np.testing.assert_array_equal(span.basis, np.eye(7))
    assert span.rest.shape == (7, 0)
    np.testing.assert_allclose(span.moments(), X.T @ X)


def test_axes_are_those_of_pca(seed):
    X, _ = rank_deficient(seed, 60, 9, 4)
    X *= np.linspace(1, 3, 60)[:, None]
    span = row_span(as_rows(X, normalize=False))
    s = np.linalg.svd(X, compute_uv=False)[:4] ** 2
    np.testing.assert_allclose(np.linalg.norm(X @ span.axes, axis=0) ** 2, s[::-1])


def test_weights_and_zero_rows_decide_what_is_spanned():
    X = np.vstack([np.eye(4), np.zeros((2, 4))])
    span = row_span(as_rows(X, weight=[1, 0, 2, 0, 1, 1]))
    assert span.rank == 2
    assert_same_subspace(span.basis.T, np.eye(4)[[0, 2]], 1e-15)


@pytest.mark.parametrize("D", [2, 20])
@pytest.mark.parametrize("how", ["zero", "weightless"])
def test_no_rows_to_speak_of_is_an_error(how, D):
    X = np.zeros((3, D)) if how == "zero" else np.ones((3, D))
    with pytest.raises(InputError, match="zero"):
        row_span(as_rows(X, weight=None if how == "zero" else np.zeros(3)))


# -- few rows, and rows in a smaller space -------------------------------------------------------


def both_ways(X, monkeypatch, **how):
    """The span from the rows themselves and from their second moments."""
    rows = as_rows(X, **how)
    monkeypatch.setattr(span_module, "ROWS_PER_FEATURE", np.inf)
    few = row_span(rows)
    monkeypatch.setattr(span_module, "ROWS_PER_FEATURE", 0.0)
    return few, row_span(rows)


@pytest.mark.parametrize("kind", ["plain", "duplicates", "deficient", "zero rows", "weights"])
def test_rows_and_moments_tell_the_same_span(kind, dtype, seed, monkeypatch):
    rng = np.random.default_rng(seed)
    X, how, rank = rng.standard_normal((8, 30)), {}, 8
    if kind == "duplicates":
        X = np.vstack([X, -2 * X, X[:3]])
    elif kind == "deficient":
        X, rank = rng.standard_normal((8, 3)) @ X[:3], 3
    elif kind == "zero rows":
        X = np.vstack([X, np.zeros((3, 30))])
    elif kind == "weights":
        how, rank = {"weight": np.r_[np.zeros(2), rng.uniform(0.1, 5, 6)]}, 6
    few, many = both_ways(X.astype(dtype), monkeypatch, **how)
    tol = 1e-12 if dtype == np.float64 else 1e-4
    assert few.rank == many.rank == rank
    assert_same_subspace(few.basis.T, many.basis.T, tol)
    np.testing.assert_allclose(few.variances, many.variances, rtol=tol)
    np.testing.assert_allclose(few.moments(), many.moments(), atol=tol)
    for span in (few, many):
        assert_orthonormal_rows(np.hstack([span.basis, span.rest]).T)
        weighted = span.axes * np.sqrt(span.variances)
        np.testing.assert_allclose(weighted @ weighted.T, span.moments(), atol=10 * tol)
    for one, other in zip(few.some_rest(5), many.some_rest(5), strict=True):
        assert_same_subspace(one.T, other.T, 100 * tol)


@pytest.mark.parametrize(("size", "rank"), [(1e-9, 5), (1e-6, 6)])
def test_what_is_rounding_is_the_same_both_ways(size, rank, seed, monkeypatch):
    """A direction of size 1e-9 is lost in the rounding of squares, and counts as lost."""
    rng = np.random.default_rng(seed)
    A = np.linalg.qr(rng.standard_normal((40, 6)))[0] * np.r_[np.ones(5), size]
    X = np.linalg.qr(rng.standard_normal((12, 6)))[0] @ A.T
    few, many = both_ways(X, monkeypatch, normalize=False)
    assert few.rank == many.rank == rank


@pytest.mark.parametrize("n", [4, 40])
def test_idle_columns(n, seed):
    X = np.random.default_rng(seed).standard_normal((n, 12))
    X[:, 3], X[:, 7], X[:, 9] = 0.0, -2 * X[:, 1], 1e-5 * X[:, 0]
    assert row_span(as_rows(X, normalize=False)).n_idle_columns == 3


@pytest.mark.parametrize("n", [20, 300])
def test_rows_turned_into_their_span(n, dtype, seed):
    X, basis = rank_deficient(seed, n, 60, 7, dtype)
    given = as_rows(X, weight=np.random.default_rng(seed).uniform(0.5, 2, n))
    rows, span = in_their_span(given)
    tol = 1e-12 if dtype == np.float64 else 1e-5
    assert rows.shape == (n, 7)
    assert (span.rank, span.n_features, span.n_outside) == (7, 60, 53)
    every = np.arange(n)
    np.testing.assert_allclose(np.linalg.norm(rows.take(every), axis=1), 1, rtol=10 * tol)
    np.testing.assert_allclose(span.in_data(rows.take(every).T).T, given.take(every), atol=10 * tol)
    np.testing.assert_array_equal(rows.gather(rows.weights), given.gather(given.weights))
    assert_same_subspace(span.in_data(np.eye(7)).T, basis, 10 * tol)
    np.testing.assert_allclose(rows.scan(gram).product, np.diag(span.variances), atol=n * tol)
    B = np.random.default_rng(seed).standard_normal((60, 2))
    np.testing.assert_allclose(span.in_data(span.inside(B)), basis.T @ basis @ B, atol=100 * tol)


def test_rows_that_fill_the_space_stay_as_they_are(seed):
    rows = as_rows(np.random.default_rng(seed).standard_normal((50, 7)))
    same, span = in_their_span(rows)
    assert same is rows
    assert span.rotation is None


def test_rows_without_room_for_a_copy_stay_as_they_are(seed):
    X, _ = rank_deficient(seed, 300, 60, 7)
    rows = as_rows(X, memory_budget=300 * 7 * 8 - 1)
    same, span = in_their_span(rows)
    assert same is rows
    assert span.basis.shape == (60, 7)


# -- distances, from few components or from many normals ------------------------------------------


def frame(seed, D, c):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((D, c)))[0]


@pytest.mark.parametrize(("c", "used"), [(20, False), (74, False), (90, True), (99, True)])
def test_the_complement_of_many_normals(c, used, seed):
    V = frame(seed, 100, c)
    U = few_components(V)
    assert (U is not None) == used
    if used:
        assert U.shape == (100, 100 - c)
        assert_orthonormal_rows(np.hstack([V, U]).T, 1e-13)


def test_no_components_at_all():
    assert few_components(np.eye(5)) is None


@pytest.mark.parametrize("c", [20, 95])
def test_both_ways_give_the_same_distances(c, seed, dtype):
    rng = np.random.default_rng(seed)
    V = frame(seed, 100, c)
    X = rng.standard_normal((60, 100))
    X[:30] -= X[:30] @ V @ V.T * rng.choice([1, 1 - 1e-6], (30, 1))  # on it, and next to it
    rows = as_rows(X.astype(dtype))
    expected = np.linalg.norm(rows.take(np.arange(60)).astype(float) @ V, axis=1)
    edges = distance_edges(1.0, dtype)
    scan = scan_grouped_distances(rows, V, edges)
    tol = 20 * np.finfo(dtype).eps
    for kept in (scan_distances(rows, V).kept, scan.kept):
        np.testing.assert_allclose(rows.gather(kept), expected, rtol=0, atol=tol)
    counts = np.ravel(scan.product)
    assert counts.sum() == 60
    assert counts[0] == np.sum(expected < edges[0])

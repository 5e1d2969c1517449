"""The span of the rows, and starts inside it."""

import numpy as np
import pytest

from helpers import assert_orthonormal_rows, assert_same_subspace
from perpend.exceptions import InputError
from perpend.kernels import gram
from perpend.rows import as_rows
from perpend.solvers import in_their_span, random_starts, row_span, spectral_starts
from perpend.solvers import span as span_module


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


@pytest.mark.parametrize("how", ["zero", "weightless"])
def test_no_rows_to_speak_of_is_an_error(how):
    X = np.zeros((3, 2)) if how == "zero" else np.ones((3, 2))
    with pytest.raises(InputError, match="zero"):
        row_span(as_rows(X, weight=None if how == "zero" else np.zeros(3)))


def test_random_starts_are_uniform_on_the_sphere():
    span = row_span(as_rows(np.eye(6)))
    n = 100_000
    B = random_starts(np.random.default_rng(1), span, n)
    np.testing.assert_allclose(np.linalg.norm(B, axis=0), 1)
    # Entries have mean 0, E b_i b_j = I / D and E b_i^4 = 3 / (D (D + 2)); six standard errors.
    np.testing.assert_allclose(B.mean(axis=1), 0, atol=6 / np.sqrt(6 * n))
    np.testing.assert_allclose(B @ B.T / n, np.eye(6) / 6, atol=6 * 0.2 / np.sqrt(n))
    np.testing.assert_allclose(np.mean(B**4, axis=1), 3 / (6 * 8), atol=6 * 0.12 / np.sqrt(n))


def test_random_starts_lie_in_the_span_and_are_uniform_there(seed):
    X, basis = rank_deficient(seed, 50, 10, 3)
    B = random_starts(np.random.default_rng(seed), row_span(as_rows(X)), 20_000)
    assert B.shape == (10, 20_000)
    np.testing.assert_allclose(np.linalg.norm(B, axis=0), 1)
    inside = basis @ B
    np.testing.assert_allclose(np.linalg.norm(inside, axis=0), 1)
    np.testing.assert_allclose(inside @ inside.T / 20_000, np.eye(3) / 3, atol=6 * 0.3 / 141)


def test_the_same_generator_gives_the_same_starts_and_more_of_them(seed):
    span = row_span(as_rows(np.eye(5)))
    few, many = (random_starts(np.random.default_rng(seed), span, k) for k in (3, 9))
    np.testing.assert_allclose(few, many[:, :3], rtol=1e-15)
    rng = np.random.default_rng(seed)
    again = np.hstack([random_starts(rng, span, 3), random_starts(rng, span, 6)])
    np.testing.assert_allclose(again, many, rtol=1e-15)


def test_spectral_starts_are_the_axes_of_least_variance(seed):
    X = np.random.default_rng(seed).standard_normal((80, 6)) * [3, 1, 0.1, 2, 0.01, 5]
    span = row_span(as_rows(X, normalize=False))
    B = spectral_starts(span, 2)
    assert_same_subspace(B.T, np.linalg.svd(X)[2][-2:], 1e-10)
    assert spectral_starts(span, 99).shape == (6, 6)


# -- few rows, and rows in a smaller space -------------------------------------------------------


def both_ways(X, monkeypatch, **how):
    """The span from the rows themselves and from their second moments."""
    rows = as_rows(X, **how)
    monkeypatch.setattr(span_module, "FEW_ROWS", np.inf)
    few = row_span(rows)
    monkeypatch.setattr(span_module, "FEW_ROWS", 0.0)
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

"""Norms and units: the kernels see rows of a good size, and the user's array stays as it is."""

import numpy as np
import pytest

from perpend.exceptions import InputError
from perpend.kernels import (
    Contribution,
    distances,
    grouped_distances,
    l1_objective_and_gradient,
    weighted_gram,
)
from perpend.rows import as_rows, preparation
from perpend.rows.preparation import NotFinite, not_finite, row_norms

N, D = 101, 6


def data(seed, dtype=np.float64, n=N):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D)) * rng.lognormal(size=(n, 1))
    return X.astype(dtype), np.linalg.qr(rng.standard_normal((D, 3)))[0]


def unit(X):
    X = X.astype(np.float64)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@pytest.mark.parametrize("budget", [0, 2**30])
def test_take_returns_rows_as_the_kernels_see_them(budget, dtype, seed):
    X, _ = data(seed, dtype)
    rows = as_rows(X, memory_budget=budget)
    indices = np.array([5, 0, 5, N - 1])
    taken = rows.take(indices)
    assert taken.dtype == rows.dtype == dtype
    np.testing.assert_allclose(taken, unit(X)[indices], rtol=8 * np.finfo(dtype).eps)
    assert rows.shape == (N, D)
    np.testing.assert_array_equal(rows.norms, [1.0])
    assert rows.unit == 1.0


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("power", [-1060, -1040, -500, -120, -3, 0, 120, 500, 1000])
def test_any_scale_looks_the_same(power, normalize, seed):
    """Scaling by a power of two is exact: the kernels see the same rows up to a power of two."""
    X, _ = data(seed)
    X[0] = 3  # so that the largest norm is the same for sure
    X = np.rint(X * 64)  # few digits, so that even subnormal numbers hold them
    rows, plain = (as_rows(Z, normalize=normalize) for Z in (np.ldexp(X, power), X))
    ratio = plain.unit * 2.0**power / rows.unit if power > -1000 else None
    seen, expected = (r.take(np.arange(N)) for r in (rows, plain))
    if normalize:
        np.testing.assert_allclose(seen, expected, rtol=1e-15)
        assert rows.unit == 1.0
    else:
        largest = np.max(np.linalg.norm(seen, axis=1))
        assert 2.0**-128 <= largest < 2.0**128  # squares and sums of squares are safe
        np.testing.assert_array_equal(np.ldexp(seen, int(np.log2(rows.unit))), np.ldexp(X, power))
        if ratio is not None:
            np.testing.assert_allclose(rows.norms, plain.norms * ratio, rtol=1e-14)


@pytest.mark.parametrize("factor", [1e-150, 1e150, 1e-310, 1e307])
def test_extreme_rows_beside_ordinary_ones_get_unit_norm(factor, seed):
    X, _ = data(seed)
    X /= np.abs(X).max()
    expected = unit(X)
    X[::2] *= factor
    seen = as_rows(X).take(np.arange(N))
    np.testing.assert_allclose(np.linalg.norm(seen, axis=1), 1, rtol=1e-14)
    digits = 1e-4 if factor == 1e-310 else 1e-14  # subnormal numbers have lost digits already
    np.testing.assert_allclose(seen, expected, rtol=0, atol=digits)


@pytest.mark.parametrize("dtype_name", ["float32", "float64"])
def test_the_smallest_numbers_there_are_get_unit_norm(dtype_name):
    X = np.finfo(dtype_name).smallest_subnormal * np.array([[1, 1], [3, 4], [1, 0], [0, 0]])
    X = X.astype(dtype_name)
    before = X.copy()
    seen = as_rows(X).take(np.arange(4))
    h = np.sqrt(0.5)
    np.testing.assert_allclose(seen, [[h, h], [0.6, 0.8], [1, 0], [0, 0]], rtol=1e-6)
    np.testing.assert_array_equal(X, before)


def test_without_normalising_the_unit_leads_back_to_the_given_rows(dtype):
    big = 2.0 ** (np.finfo(dtype).maxexp - 8)
    for scale in (1.0, 1 / big, big):
        X = (np.array([[3.0, 4.0], [0.5, 0.0], [0.0, 0.0]]) * scale).astype(dtype)
        rows = as_rows(X, normalize=False)
        np.testing.assert_array_equal(rows.take(np.arange(3)) * dtype(rows.unit), X)
        norms = rows.norms * rows.unit / scale
        assert np.all(np.diff(norms) >= 0)
        assert norms[0] == pytest.approx(0.5, rel=0.1)
        assert norms[-1] == pytest.approx(5, rel=0.1)


def test_norms_are_quantiles_of_the_rows_that_take_part(seed):
    X, _ = data(seed, n=20_000)
    keep = np.linalg.norm(X, axis=1) < 4
    rows = as_rows(X, mask=keep, normalize=False)
    assert len(rows.norms) < 1000  # they stand for all, but are few
    norms = np.linalg.norm(X[keep], axis=1)
    few = len(rows.norms) - 1  # the last one is the largest
    levels = np.append((np.arange(few) + 0.5) / few, 1.0)
    np.testing.assert_allclose(rows.norms * rows.unit, np.quantile(norms, levels), rtol=1e-12)


@pytest.mark.parametrize("row", [0, 57, N - 1])
def test_a_row_that_is_too_large_is_named(row, dtype):
    X, _ = data(0, dtype)
    X[row, :2] = 0.9 * np.finfo(dtype).max
    with pytest.raises(InputError, match=f"row {row} of X is too large for") as error:
        as_rows(X)
    advice = str(error.value).split(" by ")[-1].rstrip(".")
    seen = as_rows(X / dtype(advice)).take(np.arange(N))  # it works
    np.testing.assert_allclose(np.linalg.norm(seen, axis=1), 1, rtol=1e-6)


def test_row_norms(dtype, seed):
    X, _ = data(seed, dtype)
    got = row_norms(X)
    assert got.dtype == dtype
    np.testing.assert_allclose(got, np.linalg.norm(X.astype(float), axis=1), rtol=1e-6)
    np.testing.assert_array_equal(row_norms(np.zeros((2, 3))), 0)
    assert row_norms(np.zeros((0, 3))).shape == (0,)


# -- copies ---------------------------------------------------------------------------------------


def shares_memory(rows, X):
    """Whether the kernels see X itself."""
    seen = []
    rows.scan(lambda block: seen.append(np.shares_memory(block, X)) or Contribution())
    assert len(set(seen)) == 1
    return seen[0]


def test_rows_of_unit_norm_are_not_copied(dtype):
    X, _ = data(0, dtype)
    U = unit(X).astype(dtype)
    assert shares_memory(as_rows(U), U)
    assert shares_memory(as_rows(U, mask=np.arange(N) > 3), U)
    assert not shares_memory(as_rows(X), X)


def test_rows_that_are_not_normalised_are_not_copied(dtype):
    X, _ = data(0, dtype)
    X *= dtype(2 / np.max(np.linalg.norm(X, axis=1)))
    assert shares_memory(as_rows(X, normalize=False), X)
    large = 1000 * X
    far = as_rows(large, normalize=False)  # scaled by a power of two, block by block
    assert np.shares_memory(far._X, large)
    np.testing.assert_array_equal(far.take(np.arange(5)) * dtype(far.unit), large[:5])
    assert 0.5 < far.norms[-1] < 8


@pytest.mark.parametrize("normalize", [True, False])
def test_the_given_arrays_are_never_modified(normalize, dtype):
    X, B = data(0, dtype)
    X[4] = 0
    w, mask = np.arange(N, dtype=float), np.arange(N) % 3 > 0
    given = (X, w, mask, B)
    copies = [a.copy() for a in given]
    for a in given:
        a.flags.writeable = False
    rows = as_rows(X, weight=w, mask=mask, normalize=normalize, block_rows=10)
    kept = rows.scan(distances, B, keep=True).kept
    edges = np.geomspace(0.01, 1, 16)
    rows.scan(grouped_distances, distances, B, edges)
    rows.scan(weighted_gram, np.ones(16), edges, using=(kept,))
    rows.scan(l1_objective_and_gradient, B)
    for a, b in zip(given, copies, strict=True):
        np.testing.assert_array_equal(a, b)


# -- NaN and infinite entries ----------------------------------------------------------------------


@pytest.fixture(params=[1, 12, 2**16])
def block_entries(request, monkeypatch):
    """Entries in one block."""
    monkeypatch.setattr(preparation, "ENTRIES", request.param)
    monkeypatch.setattr(preparation, "ENTRIES_OF_TENSOR", request.param)


@pytest.mark.parametrize("row", range(10))
def test_the_first_is_found_and_all_are_counted(xp, block_entries, row, dtype) -> None:
    X = np.ones((10, 4), dtype)
    X[row:, 1] = np.nan
    X[row, 2] = np.inf
    assert not_finite(xp.array(X)) == NotFinite(row, 1, True, 11 - row, 10 - row)
    X[row, 0] = -np.inf
    assert not_finite(xp.array(X)) == NotFinite(row, 0, False, 12 - row, 10 - row)


def test_there_may_be_none(xp, block_entries, dtype) -> None:
    largest = np.finfo(dtype).max  # sums of such entries are infinite, and the entries are not
    assert not_finite(xp.array(np.full((10, 4), largest))) is None
    assert not_finite(xp.array(np.ones((0, 4), dtype))) is None

"""Quartiles of rows that are not in memory: those of NumPy."""

import numpy as np
import pytest

from perpend import RobustStandardizer, open_rows
from perpend.rows import quartiles
from perpend.rows.quartiles import LEVELS, column_spread


def columns(rng, n):
    heavy = rng.standard_cauchy(n) * 1e6
    mostly_zero = np.where(rng.random(n) < 0.8, 0.0, rng.random(n))
    gaps = np.where(rng.random(n) < 0.3, np.nan, rng.standard_normal(n))
    few = rng.integers(0, 5, n).astype(float)
    sorted_ones = np.sort(rng.standard_normal(n))
    return np.column_stack([heavy, mostly_zero, gaps, few, sorted_ones, np.full(n, 7.0)])


@pytest.mark.parametrize("n", [3, 500, 20_001])
def test_quartiles_are_those_of_numpy(monkeypatch, seed, n):
    monkeypatch.setattr(quartiles, "SAMPLE", 1000)
    X = columns(np.random.default_rng(seed), n)
    rows = open_rows(lambda: iter(np.array_split(X, 3)), memory_limit="4MiB")
    found = column_spread(rows)
    assert np.array_equal(found.quartiles, np.nanquantile(X, LEVELS, axis=0))
    np.testing.assert_allclose(found.deviation, np.nanstd(X, axis=0), rtol=1e-9)
    if n > 1000:
        assert rows.passes <= 3


def test_a_sample_that_is_far_off_costs_time_only(monkeypatch, seed):
    monkeypatch.setattr(quartiles, "SAMPLE", 1000)
    monkeypatch.setattr(quartiles, "DEVIATIONS", -0.5)  # empty brackets
    X = columns(np.random.default_rng(seed), 5000)
    rows = open_rows(lambda: iter(np.array_split(X, 3)), memory_limit="4MiB")
    assert np.array_equal(column_spread(rows).quartiles, np.nanquantile(X, LEVELS, axis=0))


def test_very_many_columns_have_quartiles():
    X = np.random.default_rng(0).standard_normal((5, 70_000))
    rows = open_rows([X], memory_limit="4MiB")
    found = column_spread(rows)
    assert np.array_equal(found.quartiles, np.quantile(X, LEVELS, axis=0))


@pytest.mark.parametrize("centred", [True, False])
def test_the_standardizer_takes_rows_of_a_file(tmp_path, seed, centred):
    X = columns(np.random.default_rng(seed), 3000)
    np.save(tmp_path / "x.npy", X)
    rows = open_rows(tmp_path / "x.npy", memory_limit="4MiB")
    scaler = RobustStandardizer(with_centering=centred)
    expected = scaler.fit_transform(X)
    Z = scaler.fit(rows).transform(rows)
    np.testing.assert_allclose(Z[:], expected, rtol=1e-12)
    np.testing.assert_allclose(scaler.inverse_transform(Z)[:], X, rtol=1e-12, atol=1e-12)

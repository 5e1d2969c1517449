"""Starts inside the span of the rows."""

import numpy as np

from helpers import assert_same_subspace
from perpend.rows import as_rows, row_span
from perpend.solvers import random_starts, spectral_starts


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
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.standard_normal((10, 3)))[0].T
    X = rng.standard_normal((50, 3)) @ basis
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

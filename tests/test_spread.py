"""Location and scatter of a Student law: identities, an independent reference, breakdown."""

import numpy as np
import pytest

from perpend import RobustStandardizer
from perpend._scatter import DEGREES, spread_of


def elliptical(seed, n=500, D=6):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, D)) @ rng.standard_normal((D, D)) + rng.standard_normal(D)


def test_it_is_the_fixed_point_of_the_plain_em(seed):
    X = elliptical(seed)
    D = X.shape[1]
    m, S = X.mean(axis=0), np.cov(X.T)
    for _ in range(500):
        precision, total = np.zeros((D, D)), 0.0
        variances, V = np.linalg.eigh(S)
        for j in range(1, D + 1):  # the j largest variances, and one in common for the others
            rest = variances[: max(D - j, 1)].mean()
            kept = np.where(np.arange(D) < D - j, rest, variances)
            precision, total = precision + j**-0.5 * (V / kept) @ V.T, total + j**-0.5
        q = np.einsum("ij,jk,ik->i", X - m, precision / total, X - m)
        w = (DEGREES + D) / (DEGREES + q)
        m = w @ X / w.sum()
        S = ((X - m) * w[:, None]).T @ (X - m) / w.sum()
    np.testing.assert_allclose(spread_of(X).squares(X), q, rtol=2e-3)


def test_it_does_not_depend_on_the_common_unit_or_on_the_axes(seed):
    """Units of single columns do count: directions without a variance of their own share one."""
    X = elliptical(seed)
    T = np.linalg.qr(np.random.default_rng(seed + 1).standard_normal((6, 6)))[0]
    q = spread_of(X).squares(X)
    Y = 1e4 * X @ T + 7
    np.testing.assert_allclose(spread_of(Y).squares(Y), q, rtol=2e-3)


def test_a_row_of_weight_two_counts_like_two(seed):
    X = elliptical(seed)
    weight = 1.0 + (np.arange(len(X)) < 100)
    twice = spread_of(np.vstack([X, X[:100]]))
    np.testing.assert_allclose(spread_of(X, weight).squares(X), twice.squares(X), rtol=2e-3)


@pytest.mark.parametrize("shape", [(500, 6), (60, 40)])
def test_a_share_is_what_a_change_of_one_column_removes(shape, seed):
    X = np.random.default_rng(seed).standard_normal(shape)
    spread = spread_of(X)
    q, share, row = spread.squares(X), spread.shares(X), X[:1]
    for j in range(0, shape[1], 5):
        values = row[0, j] + np.linspace(-30, 30, 60001)
        changed = np.repeat(row, len(values), axis=0)
        changed[:, j] = values
        least = spread.squares(changed).min()
        np.testing.assert_allclose(share[0, j], 1 - least / q[0], atol=1e-5)


def test_hardly_a_gaussian_row_is_beyond_the_limit():
    flagged = []
    for seed in range(20):
        X = elliptical(seed, n=1000, D=10)
        spread = spread_of(X)
        flagged.append(np.mean(spread.squares(X) > spread.limit))
    assert np.mean(flagged) < 0.01


def plant(seed, wrong):
    """Draw 300 rows with three relations, which 20 rows break."""
    rng = np.random.default_rng(seed)
    a, b, c = rng.normal(10, 2, (3, 300))
    X = np.column_stack([a, b, c, a + b, b - c, a + b + c]) + rng.normal(0, 0.05, (300, 6))
    X[np.arange(20), rng.integers(0, 6, 20)] += wrong
    return X, np.arange(300) < 20


def test_one_row_at_any_distance_changes_no_other_label(seed):
    X, bad = plant(seed, 1.5)
    found = []
    for size in (1e2, 1e5, 1e8, 1e11):
        X[100] = np.median(X, axis=0) + size * np.arange(1.0, 7)
        Z = RobustStandardizer().fit_transform(X)
        spread = spread_of(Z)
        found.append(spread.squares(Z) > spread.limit)
        assert found[-1][100]
    assert np.all(found[0][bad])
    assert found[0].sum() <= 25
    for one in found[1:]:
        np.testing.assert_array_equal(one, found[0])


@pytest.mark.parametrize("wrong", [1.0, 1.5])
def test_a_flag_that_one_row_has_hides_no_outliers(wrong, seed):
    """The variance of such a column is that of rounding, so this row is 1e6 deviations out."""
    X, bad = plant(seed, wrong)
    Z = RobustStandardizer().fit_transform(np.column_stack([X, np.arange(300) == 100]))
    spread = spread_of(Z)
    beyond = spread.squares(Z) > spread.limit
    assert np.all(beyond[bad])
    assert beyond[100]
    assert beyond.sum() <= 25


@pytest.mark.parametrize(("n", "D"), [(500, 6), (50, 200)])
def test_rows_far_out_are_beyond_it_and_others_are_not(n, D, seed):
    """With fewer rows than columns only a few axes have variances of their own."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D)) * np.geomspace(1, 0.01, D)
    far = np.arange(n) < n // 20
    X[far] += 10 * np.geomspace(1, 0.01, D)
    spread = spread_of(X)
    beyond = spread.squares(X) > spread.limit
    assert np.all(beyond[far])
    assert np.mean(beyond[~far]) < 0.1


def test_a_broken_relation_counts_in_units_of_its_own_noise(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((400, 5))
    X[:, 4] = X[:, 0] + X[:, 1] + 1e-3 * rng.standard_normal(400)
    X[:20, 4] += 0.1  # small beside every column, large beside the noise
    spread = spread_of(X)
    assert np.all(spread.squares(X)[:20] > spread.limit)


@pytest.mark.parametrize(("D", "share"), [(5, 0.2), (20, 0.05), (20, 0.1)])
def test_a_far_cluster_does_not_break_it_down(D, share, seed):
    """A Student scatter alone bears 1 / (D + 1) of the rows in one place: the AUC is 0."""
    rng = np.random.default_rng(seed)
    X, far = rng.standard_normal((1000, D)), np.arange(1000) < 1000 * share
    X[far] = 3 * np.sqrt(D) * np.eye(D)[0] + 0.2 * rng.standard_normal((far.sum(), D))
    q = spread_of(X).squares(X)
    assert q[far].min() > np.quantile(q[~far], 0.99)

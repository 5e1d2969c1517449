from itertools import product

import numpy as np
import pytest

from perpend.datasets import make_subspace
from perpend.exceptions import InputError
from perpend.theory import average_height, circle_statistics, statistics


def unit(A):
    return A / np.linalg.norm(A, axis=-1, keepdims=True)


def split(data):
    return data.X[data.y == 1], data.X[data.y == -1], data.components.T


def exact_in_space(X):
    """c_min, c_max and eta of rows in R^3: everything extreme is seen from the vertices, the
    directions orthogonal to two rows, with the signs of the four pieces that meet there."""
    n = len(X)
    i, j = np.triu_indices(n, k=1)
    b = unit(np.cross(X[i], X[j]))
    P = b @ X.T
    P[np.arange(len(b)), i] = P[np.arange(len(b)), j] = 0
    heights = np.abs(P).sum(axis=1)
    g2 = []
    for s, t in product((-1, 1), repeat=2):
        signs = np.sign(P)
        signs[np.arange(len(b)), i], signs[np.arange(len(b)), j] = s, t
        g2.append(np.sum((signs @ X) ** 2, axis=1))
    g2 = np.array(g2)
    return heights.min() / n, np.sqrt(g2.max()) / n, np.sqrt((g2 - heights**2).max()) / n


@pytest.mark.parametrize("n", [1, 2, 3, 30, 1001])
def test_the_circle_is_exact(n, seed):
    X = unit(np.random.default_rng(seed).standard_normal((n, 2)))
    c_min, c_max, eta = circle_statistics(X)
    angle = np.linspace(0, np.pi, 20_001)
    b = np.array([np.cos(angle), np.sin(angle)])
    f = np.abs(X @ b).mean(axis=0)
    g = X.T @ np.sign(X @ b) / n
    tangent = np.abs(g[1] * b[0] - g[0] * b[1])
    gap = np.pi / 20_000  # the mean height is 1-Lipschitz
    assert f.min() - gap <= c_min <= f.min() + 1e-12
    assert f.max() - 1e-12 <= c_max <= f.max() + gap
    # pieces shorter than the grid can be missed, and each step from one to the next is 2/n
    assert tangent.max() - 1e-12 <= eta <= tangent.max() + gap + (0 if n < 100 else 4 / n)


def test_rows_that_repeat_on_the_circle():
    X = np.repeat(np.eye(2), 3, axis=0)
    np.testing.assert_allclose(circle_statistics(X), (0.5, np.sqrt(0.5), 0.5), atol=1e-15)


@pytest.mark.parametrize("n", [12, 50])
def test_estimates_lie_on_their_side_of_the_truth(n, seed):
    X = unit(np.random.default_rng(seed).standard_normal((n, 3)) * [1, 1, 0.5])
    result = statistics(np.eye(3)[:1], X, np.eye(3)[:, :1], random_state=seed)
    truth = exact_in_space(X)
    found = (result.c_o_min, result.c_o_max, result.eta_o)
    assert [e.bound for e in found] == ["upper", "lower", "lower"]
    for estimate, true in zip(found, truth, strict=True):
        low, high = estimate.interval
        assert low - 1e-12 <= true <= high + 1e-12
    # and the searches find what there is
    misses = np.abs(np.array([e.value for e in found]) / truth - 1)
    assert np.all(misses < [1e-2, 1e-10, 3e-2]), misses


def test_statistics_of_many_uniform_rows_tend_to_the_average_heights(seed):
    data = make_subspace(30_000, 30_000, n_features=6, codimension=2, random_state=seed)
    s = statistics(*split(data), n_starts=8, n_samples=200, random_state=seed).estimated
    np.testing.assert_allclose([s.c_x_min, s.c_x_max], average_height(4), rtol=0.03)
    np.testing.assert_allclose([s.c_o_min, s.c_o_max], average_height(6), rtol=0.03)
    assert max(s.eta_x, s.eta_o) < 0.02
    assert s.c_o_min <= average_height(6) <= s.c_o_max


def test_the_numbers_of_a_setting_of_the_paper():
    # D = 30, c = 5, 1500 + 1500 rows. From one draw to another the c differ by less than 3 %. The
    # eta, 0.0385 and 0.0378 at the best of many random directions, must be larger after a search.
    data = make_subspace(1500, 1500, n_features=30, codimension=5, random_state=3)
    s = statistics(*split(data), random_state=0).estimated
    np.testing.assert_allclose(
        [s.c_x_min, s.c_x_max, s.c_o_min, s.c_o_max], [0.1382, 0.1850, 0.1242, 0.1713], rtol=0.03
    )
    assert np.all(np.array([s.eta_x, s.eta_o]) > [1.1 * 0.0385, 1.1 * 0.0378])
    assert max(s.eta_x, s.eta_o) < 0.065


def test_length_sign_and_position_of_the_rows_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    X_in, X_out, V = split(make_subspace(60, 40, n_features=4, codimension=2, random_state=seed))
    turn, _ = np.linalg.qr(rng.standard_normal((4, 4)))
    factor = rng.choice([-3.0, 0.25], size=(60, 1))
    one = statistics(X_in, X_out, V, random_state=0)
    two = statistics(factor * X_in[::-1] @ turn, X_out @ turn, turn.T @ V, random_state=0)
    for a, b in zip(one[:6], two[:6], strict=True):
        assert a.certified == pytest.approx(b.certified, rel=1e-9)
        exact = a.how == "all pieces of the circle"  # that is, the inliers
        assert a.value == pytest.approx(b.value, rel=1e-9 if exact else 0.1)


def test_noise_is_projected_away_and_zero_rows_are_left_out():
    X_in = np.array([[2.0, 0, 0.1], [0, 1, -0.2], [0, 0, 0], [0, 0, 1]])
    result = statistics(X_in, np.zeros((2, 3)), np.eye(3)[:, :2])
    assert (result.n_inliers, result.n_outliers) == (2, 0)
    assert result.c_x_min.interval == pytest.approx((0.5, 0.5))


@pytest.mark.parametrize(("N", "M", "d"), [(0, 5, 2), (5, 0, 2), (0, 0, 0), (4, 4, 3), (1, 1, 1)])
def test_degenerate_sizes(N, M, d):
    rng = np.random.default_rng(0)
    V = np.eye(3)[:, :d]
    X_in = rng.standard_normal((N, d)) @ V.T
    s = statistics(X_in, rng.standard_normal((M, 3)), V, n_starts=3, n_samples=5, random_state=0)
    assert all(np.isfinite([e.value, e.certified]).all() for e in s[:6])
    assert s.c_x_min.value == (1.0 if d == 1 else s.c_x_min.value)


def test_one_seed_one_result():
    data = split(make_subspace(50, 50, n_features=5, codimension=1, random_state=0))
    assert statistics(*data, random_state=1) == statistics(*data, random_state=1)


@pytest.mark.parametrize(
    ("X", "V", "words"),
    [
        (np.ones(3), np.eye(3)[:, :1], "one row for each sample"),
        (np.full((2, 3), np.nan), np.eye(3)[:, :1], "nan in row 0, column 0"),
        (np.ones((2, 3)), np.eye(2), "bases are columns"),
        (np.ones((2, 3)), np.ones((3, 2)), "not orthonormal"),
    ],
)
def test_what_is_wrong_is_said(X, V, words):
    with pytest.raises(InputError, match=words):
        statistics(np.ones((2, 3)), X, V)


@pytest.mark.parametrize("name", ["n_starts", "n_samples"])
def test_an_empty_search_is_refused(name):
    with pytest.raises(InputError, match=f"{name}=0"):
        statistics(np.eye(3), np.eye(3), np.eye(3)[:, :2], **{name: 0})

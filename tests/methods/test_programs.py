"""DPCP by linear programs, denoised DPCP, and RSGM with the geometric rule."""

import numpy as np
import pytest
from scipy.optimize import linprog

from helpers import assert_sure
from perpend import DPCPLP, RSGM, DPCPd, subspace_error
from perpend.datasets import make_subspace
from perpend.geometry import complement
from perpend.solvers import Dense, GeometricStep
from perpend.solvers.dense import least_crossing

QUIET = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SEEDS = pytest.mark.parametrize("seed", range(3))


def problem(seed, **more):
    sizes = {"n_inliers": 150, "n_outliers": 300, "n_features": 12, "codimension": 3}
    return make_subspace(**{**sizes, **more}, random_state=seed)


def recursively(X, c, solve):
    """One normal after the other, in the rows projected off those before."""
    found = np.zeros((X.shape[1], 0))
    for _ in range(c):
        A = complement(found)
        found = np.column_stack([found, A @ solve(X @ A)])
    return found.T


# -- linear programs -------------------------------------------------------------------------------


def primal(X, n):
    """min sum u subject to |X b| <= u and b.n = 1, as it is written."""
    N, D = X.shape
    A = np.block([[X, -np.eye(N)], [-X, -np.eye(N)]])
    cost, equal = np.append(np.zeros(D), np.ones(N)), np.append(n, np.zeros(N))[None]
    done = linprog(cost, A, np.zeros(2 * N), equal, [1.0], bounds=[(None, None)] * (D + N))
    return done.x[:D], done.fun


@SEEDS
def test_the_dual_program_has_the_value_and_the_solution_of_the_primal(seed):
    rng = np.random.default_rng(seed)
    X, n = rng.standard_normal((40, 6)), rng.standard_normal(6)
    n /= np.linalg.norm(n)
    b = least_crossing(Dense(X, np.ones(40)), n[:, None])[:, 0]
    expected, value = primal(X, n)
    assert b @ n == pytest.approx(1, abs=1e-10)
    assert np.abs(X @ b).sum() == pytest.approx(value, abs=1e-8)
    np.testing.assert_allclose(b, expected, atol=1e-8)


@SEEDS
def test_programs_are_the_published_ones(seed):
    X = problem(seed, noise=0.05, n_inliers=60, n_outliers=60, n_features=8).X

    def solve(X):
        b, f_old = np.linalg.eigh(X.T @ X)[1][:, 0], np.inf
        for _ in range(15):
            f = np.abs(X @ b).sum()
            if 1 - f / f_old <= 1e-6:
                break
            b, f_old = primal(X, b)[0], f
            b /= np.linalg.norm(b)
        return b

    model = DPCPLP(3).fit(X)
    assert subspace_error(model.normals_, recursively(X, 3, solve)) < 1e-8


@SEEDS
def test_programs_recover_among_two_thirds_outliers_to_rounding(seed):
    data = problem(seed)
    model = assert_sure(DPCPLP(3).fit(data.X))
    assert subspace_error(model.normals_, data.normals) < 1e-12
    np.testing.assert_array_equal(model.labels_, data.y)
    assert model.converged_


@QUIET
@SEEDS
def test_programs_fail_where_outliers_outweigh_inliers_by_far(seed):
    """The first normal minimises over all rows: 15 inliers in 11 dimensions cannot outweigh 600."""
    data = problem(seed, n_inliers=15, n_outliers=600, codimension=1)
    assert subspace_error(DPCPLP(1).fit(data.X).normals_, data.normals) > 0.3


# -- denoised --------------------------------------------------------------------------------------


@SEEDS
@pytest.mark.parametrize("tau", ["auto", 0.02])
def test_denoised_is_the_published_one(seed, tau):
    X = problem(seed, noise=0.05).X
    t = 2.8 / np.sqrt(len(X)) if tau == "auto" else tau

    def solve(X):
        M, f_old = X.T @ X + 1e-6 * np.eye(X.shape[1]), np.inf
        b = np.linalg.eigh(X.T @ X)[1][:, 0]
        for _ in range(101):
            p = X @ b
            y = np.sign(p) * np.maximum(np.abs(p) - t, 0)
            f = t * np.abs(y).sum() + 0.5 * np.sum((y - p) ** 2)
            if 1 - f / f_old <= 1e-6:
                break
            f_old, b = f, np.linalg.solve(M, X.T @ y)
            b /= np.linalg.norm(b)
        return b

    model = DPCPd(3, tau=tau).fit(X)
    assert subspace_error(model.normals_, recursively(X, 3, solve)) < 1e-8


def test_denoised_is_nearly_right_and_the_better_the_more_rows_there_are():
    errors = []
    for n in (150, 2400):
        sizes = {"n_inliers": n, "n_outliers": n, "codimension": 1}
        draws = [problem(seed, **sizes) for seed in range(5)]
        fits = [DPCPd(1).fit(data.X) for data in draws]
        errors.append(
            [subspace_error(m.normals_, d.normals) for m, d in zip(fits, draws, strict=True)]
        )
    for model in fits:  # of many rows
        assert_sure(model)
    assert np.max(errors[1]) < 0.02
    assert np.mean(errors[1]) < np.mean(errors[0]) / 4


def test_denoised_returns_the_start_where_everything_counts_as_noise():
    X = problem(0).X
    model = DPCPd(1, tau=2.0).fit(X)
    assert subspace_error(model.normals_, np.linalg.svd(X)[2][-1:]) < 1e-8


# -- the geometric rule ----------------------------------------------------------------------------


@QUIET
@pytest.mark.parametrize("n_iter", [10, 70, 90])
def test_rsgm_with_the_geometric_rule_is_the_published_one(n_iter):
    X = problem(0, noise=0.05).X
    V = np.linalg.eigh(X.T @ X)[1][:, :3]
    mu0 = 0.25 / np.linalg.norm(X @ V, axis=1).sum()
    for k in range(n_iter):
        step = mu0 if k < 60 else mu0 * 0.7 ** ((k - 60) // 10 + 1)
        G = X.T @ (X @ V / np.linalg.norm(X @ V, axis=1, keepdims=True))
        V = np.linalg.qr(V - step * (G - V @ (V.T @ G)))[0]
    model = RSGM(3, step="geometric", max_iter=n_iter).fit(X)
    assert subspace_error(model.normals_, V.T) < 1e-8


@SEEDS
def test_rsgm_with_the_geometric_rule_recovers(seed):
    data = problem(seed)
    model = assert_sure(RSGM(3, step="geometric", max_iter=1000).fit(data.X))
    assert model.converged_
    assert subspace_error(model.normals_, data.normals) < 1e-7
    same = RSGM(3, step=GeometricStep(), max_iter=1000).fit(data.X)
    np.testing.assert_array_equal(model.normals_, same.normals_)

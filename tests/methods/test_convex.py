"""Low rank plus outliers, MDR, and coherence pursuit: against references and certificates."""

from itertools import product

import numpy as np
import pytest

from helpers import assert_same_subspace, assert_sure
from perpend import (
    LLD,
    MDR,
    PCP,
    CoherencePursuit,
    DoubleOverparameterization,
    OutlierPursuit,
    double_overparameterization,
    pcp,
    subspace_error,
)
from perpend.datasets import make_subspace
from perpend.exceptions import InputError
from perpend.methods.coherence_pursuit import coherence
from perpend.methods.mdr import relax, rounded
from perpend.solvers.alm import split, whole_rows

QUIET = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore::perpend.exceptions.CodimensionWarning"
)
SEEDS = pytest.mark.parametrize("seed", range(3))


# -- outlier pursuit and LLD -----------------------------------------------------------------------


@SEEDS
def test_the_multiplier_certifies_the_minimum(seed):
    """Y is a subgradient of both norms, so no other split of X has a smaller objective."""
    X = make_subspace(60, 20, n_features=12, codimension=9, noise=0.1, random_state=seed).X
    lam = 0.8 * np.sqrt(12 / 80)
    L, C, Y, objective, _ = split(X, whole_rows(np.full(80, lam)), max_iter=5000, tol=1e-10).state
    np.testing.assert_allclose(L + C, X, atol=1e-8)
    nuclear = np.linalg.svd(L, compute_uv=False).sum()
    rows = np.linalg.norm(C, axis=1)
    assert objective == pytest.approx(nuclear + lam * rows.sum(), rel=1e-8)
    assert np.linalg.norm(Y, 2) <= 1 + 1e-6
    assert np.sum(Y * L) == pytest.approx(nuclear, rel=1e-6)
    assert np.linalg.norm(Y, axis=1).max() <= lam + 1e-6
    assert np.sum(Y * C) == pytest.approx(lam * rows.sum(), rel=1e-6)


@QUIET
@SEEDS
@pytest.mark.parametrize("n_iter", [1, 5, 30])
def test_both_are_alternating_directions(seed, n_iter):
    X = make_subspace(60, 20, n_features=12, codimension=9, noise=0.1, random_state=seed).X
    lam, mu = 0.3, X.size / (4 * np.abs(X).sum())
    C, Y = np.zeros(X.shape), np.zeros(X.shape)
    for _ in range(n_iter):
        U, s, V = np.linalg.svd(X - C + Y / mu, full_matrices=False)
        L = U * np.maximum(s - 1 / mu, 0) @ V
        R = X - L + Y / mu
        C = np.maximum(1 - lam / mu / np.linalg.norm(R, axis=1, keepdims=True), 0) * R
        Y = Y + mu * (X - L - C)
    how = {"n_components": 3, "lam": lam, "max_iter": n_iter, "tol": 1e-14}
    for kind in (OutlierPursuit, LLD):
        model = kind(**how).fit(X)
        assert_same_subspace(model.components_, np.linalg.svd(L)[2][:3], 1e-8)
        value = np.linalg.svd(L, compute_uv=False).sum() + lam * np.linalg.norm(C, axis=1).sum()
        assert model.objective_ == pytest.approx(value / 80, rel=1e-8)


@SEEDS
def test_outlier_pursuit_recovers_where_its_paper_says(seed):
    """The share of outliers is 0.02, below 9 / (121 d) for d = 2; with its weight."""
    data = make_subspace(294, 6, n_features=30, codimension=28, random_state=seed)
    model = assert_sure(OutlierPursuit(contamination=0.02).fit(data.X))
    assert model.n_components_ == 2
    assert subspace_error(model.normals_, data.normals) < 1e-10
    np.testing.assert_array_equal(model.labels_, data.y)


@SEEDS
def test_lld_recovers_low_dimensions_among_half_outliers(seed):
    data = make_subspace(300, 300, n_features=50, codimension=45, random_state=seed)
    model = assert_sure(LLD().fit(data.X))
    assert model.n_components_ == 5
    assert subspace_error(model.normals_, data.normals) < 1e-10


@QUIET
@SEEDS
def test_both_fail_at_high_relative_dimension(seed):
    data = make_subspace(300, 100, n_features=20, codimension=2, random_state=seed)
    for kind in (OutlierPursuit, LLD):
        assert kind().fit(data.X).n_components_ != 18
        assert subspace_error(kind(2).fit(data.X).normals_, data.normals) > 0.1


@QUIET
@SEEDS
def test_with_the_same_weight_both_are_the_same(seed):
    X = make_subspace(100, 30, n_features=15, codimension=11, noise=0.1, random_state=seed).X
    a, b = OutlierPursuit(lam=0.3).fit(X), LLD(lam=0.3).fit(X)
    assert a.n_components_ == b.n_components_
    assert_same_subspace(a.normals_, b.normals_, 1e-12)
    assert a.objective_ == b.objective_ == pytest.approx(LLD(lam=0.3, tol=1e-9).fit(X).objective_)


@QUIET
def test_if_all_rows_are_outliers_one_axis_is_left():
    X = make_subspace(100, 30, n_features=15, codimension=11, random_state=0).X
    model = OutlierPursuit(lam=0.01).fit(X)
    assert model.n_components_ == 1
    assert model.confidence_ < 0.95


# -- principal component pursuit -------------------------------------------------------------------


def table(seed, n=150, D=60, d=2, share=0.05):
    rng = np.random.default_rng(seed)
    L = rng.standard_normal((n, d)) @ rng.standard_normal((d, D))
    wrong = rng.random((n, D)) < share
    return np.where(wrong, rng.uniform(-10, 10, (n, D)), L), L, wrong


@SEEDS
@pytest.mark.parametrize("n_iter", [1, 5, 30])
def test_pcp_is_the_published_iteration(seed, n_iter):
    X, _, _ = table(seed)
    lam, mu = 1 / np.sqrt(150), X.size / (4 * np.abs(X).sum())
    S, Y = np.zeros(X.shape), np.zeros(X.shape)
    for _ in range(n_iter):
        U, s, V = np.linalg.svd(X - S + Y / mu, full_matrices=False)
        L = U * np.maximum(s - 1 / mu, 0) @ V
        R = X - L + Y / mu
        S = np.sign(R) * np.maximum(np.abs(R) - lam / mu, 0)
        Y = Y + mu * (X - L - S)
    state = pcp(X, max_iter=n_iter, tol=1e-14).state
    for found, expected in ((state.L, L), (state.S, S), (state.Y, Y)):
        np.testing.assert_allclose(found, expected, atol=1e-8)


def test_pcp_recovers_the_table_and_the_wrong_entries():
    for seed in range(5):
        X, L, wrong = table(seed)
        model = PCP().fit(X)
        assert model.n_components_ == 2
        np.testing.assert_allclose(model.low_rank_, L, atol=1e-3)
        assert np.mean((np.abs(model.sparse_) > 1e-3) == wrong) > 0.999
        assert np.all(model.labels_[~wrong.any(axis=1)] == 1)


@SEEDS
def test_pcp_fails_with_whole_rows(seed):
    """Rows of random signs are as little sparse as can be: most of them goes into L."""
    data = make_subspace(80, 0, n_features=100, codimension=97, random_state=seed)
    signs = np.random.default_rng(seed).choice([-0.1, 0.1], (20, 100))
    X = np.vstack([data.X, signs])
    model = PCP().fit(X)
    assert model.n_components_ > 10
    assert np.linalg.norm(model.low_rank_[80:], axis=1).mean() > 0.5
    pursuit = assert_sure(OutlierPursuit(lam=0.5).fit(X))  # whose model it is
    assert subspace_error(pursuit.normals_, data.normals) < 1e-10
    np.testing.assert_array_equal(pursuit.labels_ == -1, np.arange(100) >= 80)


@pytest.mark.filterwarnings("error")
def test_pcp_says_when_it_did_not_converge():
    X, _, _ = table(0)
    with pytest.raises(Warning, match=r"PCP did not converge \(3 iterations\)"):
        PCP(max_iter=3).fit(X)
    with pytest.raises(InputError, match="Every entry of X is zero"):
        PCP().fit(np.zeros((4, 3)))


@SEEDS
def test_double_overparameterisation_is_gradient_descent(seed):
    X, _, _ = table(seed, n=30, D=20)
    size, rng = np.linalg.norm(X, 2), np.random.default_rng(seed)
    U = 0.01 * rng.standard_normal((30, 20)) / np.sqrt(30)
    V = 0.01 * rng.standard_normal((20, 20)) / np.sqrt(20)
    g = h = np.full(X.shape, 0.01)
    tau = min(0.25, 0.5 / (4 * np.abs(X).max() / size))
    for _ in range(200):
        E = U @ V.T + g * g - h * h - X / size
        U, V, g, h = U - tau * E @ V, V - tau * E.T @ U, g - 4 * tau * E * g, h + 4 * tau * E * h
    how = {"alpha": 4.0, "start": 0.01, "max_iter": 200, "tol": 1e-12}
    state = double_overparameterization(X, rng=np.random.default_rng(seed), **how).state
    np.testing.assert_allclose(state.L, size * U @ V.T, atol=1e-8)
    np.testing.assert_allclose(state.S, size * (g * g - h * h), atol=1e-8)


@QUIET
@SEEDS
def test_double_overparameterisation_tends_to_the_solution_of_pcp(seed):
    X, _, _ = table(seed, n=60, D=40)
    same = PCP().fit(X).low_rank_
    errors = [
        np.linalg.norm(
            DoubleOverparameterization(start=start, random_state=seed).fit(X).low_rank_ - same
        )
        / np.linalg.norm(same)
        for start in (1e-2, 1e-5)
    ]
    assert errors[1] < 0.03
    assert errors[0] > 5 * errors[1]


# -- MDR -------------------------------------------------------------------------------------------


@SEEDS
def test_the_relaxed_problem_is_solved_and_bounds_all_signs(seed):
    """At the maximum, diag(y) - X X^T is positive semidefinite, with y_i = |sum_j K_ij u_j|."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((12, 4))
    state = relax(X, rng, max_iter=20_000, tol=1e-14, callback=None).state
    y = np.linalg.norm(X @ (X.T @ state.U), axis=1)
    assert np.linalg.eigvalsh(np.diag(y) - X @ X.T)[0] > -1e-4 * y.max()
    assert y.sum() == pytest.approx(state.objective**2, rel=1e-6)
    best = max(np.linalg.norm(X.T @ s) for s in product((-1.0, 1.0), repeat=12))
    assert best <= state.objective * (1 + 1e-9)
    assert state.objective <= np.sqrt(np.pi / 2) * best
    v = rounded(X, state.U, 100, rng)
    assert np.sqrt(2 / np.pi) * best <= np.abs(X @ v).sum() <= best * (1 + 1e-9)


def test_its_components_are_those_of_the_published_relaxation(seed):
    """One component after the other: fixed points of U = normalised(X X^T U), rounded."""
    X = np.random.default_rng(seed).standard_normal((40, 5)) * [4, 2, 1, 1, 1]
    found, Z, rng = [], X.copy(), np.random.default_rng(seed)
    for _ in range(2):
        U = rng.standard_normal((40, 10))  # sqrt(80) + 2 columns
        for _ in range(201):
            U /= np.linalg.norm(U, axis=1, keepdims=True)
            last, U = U, Z @ (Z.T @ U)
        signs = np.where(last @ rng.standard_normal((10, 100)) < 0, -1, 1)
        sums = Z.T @ signs
        v = sums[:, np.argmax(np.linalg.norm(sums, axis=0))]
        found.append(v / np.linalg.norm(v))
        Z = Z - np.outer(Z @ found[-1], found[-1])
    how = {"normalize": False, "max_iter": 200, "tol": 1e-300, "random_state": seed}
    model = MDR(n_components=2, **how).fit(X)
    assert_same_subspace(model.components_, np.array(found), 1e-8)


def test_it_resists_better_than_pca_and_recovers_nothing_exactly():
    of_pca, of_mdr = [], []
    for seed in range(5):
        data = make_subspace(200, 10, n_features=10, codimension=8, random_state=seed)
        X = data.X * np.where(data.y == 1, 1, 6)[:, None]
        of_pca.append(subspace_error(np.linalg.svd(X)[2][2:], data.normals))
        model = MDR(n_components=2, normalize=False, random_state=seed).fit(X)
        of_mdr.append(subspace_error(model.normals_, data.normals))
    assert np.mean(of_mdr) < np.mean(of_pca) / 2
    assert np.min(of_mdr) > 1e-3


def test_one_row_far_enough_turns_it():
    """Sums of absolute values are not bounded: without unit rows the breakdown point is zero."""
    data = make_subspace(200, 1, n_features=10, codimension=8, random_state=0)
    X = data.X * np.where(data.y == 1, 1, 1e6)[:, None]
    model = MDR(n_components=2, normalize=False, random_state=0).fit(X)
    assert subspace_error(model.normals_, data.normals) > 0.9


def test_too_many_rows_for_it():
    with pytest.raises(InputError, match="too many for the 20001 rows"):
        MDR(1).fit(np.random.default_rng(0).standard_normal((20_001, 2)))


# -- coherence pursuit -----------------------------------------------------------------------------


@pytest.mark.parametrize("power", [1, 2])
def test_scores_are_sums_over_all_other_rows(power):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 6))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    A = np.abs(X @ X.T) ** power
    np.fill_diagonal(A, 0)
    np.testing.assert_allclose(coherence(X, np.ones(50), power), A.sum(axis=1), atol=1e-10)


@SEEDS
@pytest.mark.parametrize("power", [1, 2])
def test_the_subspace_is_that_of_the_most_coherent_rows(seed, power):
    X = make_subspace(60, 40, n_features=12, codimension=9, noise=0.05, random_state=seed).X
    A = np.abs(X @ X.T) ** power
    np.fill_diagonal(A, 0)
    best = np.argsort(-A.sum(axis=1))[:15]
    model = CoherencePursuit(n_components=3, power=power, n_rows=15).fit(X)
    assert_same_subspace(model.components_, np.linalg.svd(X[best])[2][:3], 1e-8)


@pytest.mark.parametrize("power", [1, 2])
def test_it_recovers_low_dimensions_among_many_outliers(power):
    for seed in range(5):
        data = make_subspace(150, 600, n_features=60, codimension=56, random_state=seed)
        model = assert_sure(CoherencePursuit(n_components=4, power=power).fit(data.X))
        assert subspace_error(model.normals_, data.normals) < 1e-10


@SEEDS
def test_it_fails_where_coherences_are_alike(seed):
    data = make_subspace(150, 600, n_features=20, codimension=2, random_state=seed)
    assert subspace_error(CoherencePursuit(2).fit(data.X).normals_, data.normals) > 0.5


def test_more_rows_are_taken_where_the_first_are_equal():
    data = make_subspace(60, 30, n_features=20, codimension=17, random_state=0)
    row = data.X[data.y == 1][:1]
    X = np.vstack([data.X, np.repeat(row, 40, axis=0)])
    model = assert_sure(CoherencePursuit(n_components=3, n_rows=12).fit(X))
    assert subspace_error(model.normals_, data.normals) < 1e-8

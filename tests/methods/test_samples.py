"""RANSAC and RANSAC+: trials on random samples of the rows."""

import warnings
from itertools import combinations
from math import comb, log

import numpy as np
import pytest
from scipy import stats

from helpers import assert_same_subspace, assert_sure
from perpend import RANSAC, RANSACPlus, as_rows, ransac, subspace_error
from perpend.datasets import make_subspace
from perpend.methods.ransac import GRID, _trials, _unlikely
from perpend.methods.ransac_plus import PASSES, _next, _Records, _spectra, _wide
from perpend.rows import row_span
from perpend.solvers import Urn
from perpend.structure.labels import outlier_law

QUIET = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore::perpend.exceptions.CodimensionWarning"
)
SEEDS = pytest.mark.parametrize("seed", range(4))


# -- RANSAC ----------------------------------------------------------------------------------------


@SEEDS
def test_with_enough_trials_it_is_the_best_of_all_samples(seed):
    X = make_subspace(14, 6, n_features=4, codimension=2, noise=0.1, random_state=seed).X
    near = []
    for pair in combinations(range(20), 2):
        U = np.linalg.qr(X[list(pair)].T)[0]
        near.append(np.linalg.norm(X - X @ U @ U.T, axis=1) <= 0.15)
    most = max(rows.sum() for rows in near)
    best = [np.linalg.svd(X[rows])[2][2:] for rows in near if rows.sum() == most]  # fitted again
    model = RANSAC(2, threshold=0.15, stop_probability=1 - 1e-12, random_state=seed).fit(X)
    assert model.objective_ == pytest.approx(1 - most / 20)
    assert min(subspace_error(model.normals_, V) for V in best) < 1e-8


@SEEDS
def test_the_automatic_threshold_is_the_one_of_fewest_false_alarms(seed):
    """By the formula, with binomial coefficients and the beta law of a sine."""
    n, c, d = 30, 4, 2
    r = np.sort(np.random.default_rng(seed).beta(1, 3, (n, 3)), axis=0)
    score, limit = _unlikely(np.ones(n), d, outlier_law(GRID, np.ones(1), c, d))(r)
    for trial in range(3):
        chance = stats.beta(c / 2, d / 2).cdf(r[:, trial] ** 2)
        alarms = [
            log(n) + log(comb(n, k)) + log(comb(k, d)) + (k - d) * log(chance[k - 1])
            for k in range(d + 1, n + 1)
        ]
        assert score[trial] == pytest.approx(-min(alarms), abs=0.02)  # P is read off a grid
        assert limit[trial] == r[d + int(np.argmin(alarms)), trial]


def test_the_number_of_trials():
    assert _trials(0.5, 2, 0.99) == 17
    assert _trials(0.5, 20, 0.99) > 4e6
    assert _trials(0.0, 3, 0.99) == np.inf
    X = make_subspace(100, 100, n_features=20, codimension=18, random_state=0).X
    assert 17 <= RANSAC(n_components=2, random_state=0).fit(X).n_iter_ <= 64


@pytest.mark.parametrize("threshold", ["auto", 0.05])
def test_low_dimensions_are_recovered_among_outliers(threshold):
    for seed in range(10):
        data = make_subspace(100, 200, n_features=30, codimension=27, random_state=seed)
        model = RANSAC(n_components=3, threshold=threshold, random_state=seed + 1000)
        assert_sure(model.fit(data.X))
        assert subspace_error(model.normals_, data.normals) < 1e-10
        assert model.converged_


@QUIET
@SEEDS
def test_dimensions_near_that_of_the_space_are_hopeless(seed):
    data = make_subspace(300, 300, n_features=30, codimension=2, random_state=seed)
    model = RANSAC(2, random_state=seed).fit(data.X)
    assert subspace_error(model.normals_, data.normals) > 0.05
    assert not model.converged_


@SEEDS
@pytest.mark.parametrize("normalize", [True, False])
def test_a_plane_in_metres(seed, normalize):
    """The threshold of an affine subspace is in the units of the data, far from the origin too."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-50, 50, (3000, 3))
    X[:1000, 2] = 0.2 * X[:1000, 0] + rng.normal(0, 0.2, 1000)
    how = {"affine": True, "threshold": 0.7, "normalize": normalize, "random_state": seed}
    model = assert_sure(RANSAC(1, **how).fit(X + 1000))
    normal = np.array([[0.2, 0, -1]]) / np.sqrt(1.04)
    assert subspace_error(model.normals_, normal) < 2e-3
    share = np.mean(np.abs((X + 1000) @ model.normals_[0] - model.intercept_[0]) > 0.7)
    assert model.objective_ == pytest.approx(share, abs=0.03)  # of the trial; this one is refitted
    assert share < 0.66


def test_order_and_weights_of_rows_do_not_matter():
    data = make_subspace(80, 80, n_features=8, codimension=6, noise=0.05, random_state=0)
    weight = np.random.default_rng(0).integers(0, 4, 160)
    repeated = np.repeat(data.X, weight, axis=0)
    for kind in (RANSAC, RANSACPlus):
        model = kind(6, random_state=1).fit(data.X, sample_weight=weight)
        for X in (repeated, repeated[::-1]):
            assert_same_subspace(kind(6, random_state=1).fit(X).normals_, model.normals_, 1e-8)


def test_as_a_function():
    data = make_subspace(100, 50, n_features=6, codimension=4, random_state=0)
    solution = assert_sure(ransac(as_rows(data.X), codimension=4, rng=np.random.default_rng(0)))
    assert subspace_error(solution.normals.T, data.normals) < 1e-10


# -- RANSAC+ ---------------------------------------------------------------------------------------


def toy(seed, share, D=100, n=500, d=10):
    """The authors' toy: outliers on a plane that is orthogonal to the subspace, and stronger."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((D, D)))[0]
    X = rng.standard_normal((n, d)) @ Q[:, :d].T
    m = int(share * n)
    X[:m] = np.sqrt(10) * rng.standard_normal((m, 2)) @ Q[:, d : d + 2].T
    return X, Q[:, d:].T, np.where(np.arange(n) < m, -1, 1)


@QUIET
@pytest.mark.parametrize("share", [0.1, 0.2])
def test_the_toy_of_its_paper(share):
    for seed in range(5):
        X, normals, y = toy(seed, share)
        # Not sure: rows of either plane are zero across the other.
        model = RANSACPlus(outlier_share=share, max_iter=10_000, random_state=seed + 1000).fit(X)
        assert model.n_components_ == 10
        assert subspace_error(model.normals_, normals) < 1e-10
        np.testing.assert_array_equal(model.labels_, y)


def test_records_are_those_of_all_batches():
    Z = np.random.default_rng(0).standard_normal((600, 9, 4))
    state = _Records(np.full(4, np.inf), np.zeros((4, 9), int), 0, 4.0, 600.0)
    for part in np.split(np.arange(5400).reshape(600, 9), 3):
        state = _next(state, Z.reshape(5400, 4), part, 600)
    values = np.linalg.svd(Z, compute_uv=False) ** 2 / 9
    np.testing.assert_allclose(state.least, values.min(axis=0), rtol=1e-10)
    for i in range(4):
        best = np.linalg.svd(Z[values[:, i].argmin()])[2][: i + 1]
        axes = _spectra(Z.reshape(5400, 4)[state.drawn[[i]]])[1][0]
        assert_same_subspace(axes[:, : i + 1].T, best, 1e-8)
    assert (state.n_batches, state.change) == (600, 0)


@SEEDS
def test_its_first_stage_is_the_span_of_ever_more_rows(seed):
    X, _, _ = toy(seed, 0.2, D=30, n=200, d=4)
    rows = as_rows(X, normalize=False)
    span = row_span(rows)
    found = _wide(X, Urn(rows, span, np.random.default_rng(seed)), 1e-3, None)
    urn, m, passes = Urn(rows, span, np.random.default_rng(seed)), 2, 0
    while passes < PASSES:
        V = np.linalg.svd(X[urn.draw(m)], full_matrices=False)
        V = V[2][V[1] > 1e-10 * V[1][0]]
        near = np.median(np.linalg.norm(X - X @ V.T @ V, axis=1)) < 1e-3
        passes = passes + 1 if near else 0
        m = m if passes else 2 * m + 1
    assert found.m == m
    assert_same_subspace(found.V.T, V, 1e-8)


@QUIET
@SEEDS
def test_it_fails_beyond_half_outliers(seed):
    """The first stage ends at the whole space, as less than half of the rows are near any other."""
    X = make_subspace(150, 350, n_features=20, codimension=16, random_state=seed).X
    model = RANSACPlus(outlier_share=0.49, random_state=seed).fit(X)
    assert model.n_components_ > 15
    assert not model.converged_


def test_with_some_of_the_normals_it_is_not_sure():
    """Its gap may be too early where dimensions are high; a third of the rows is off the rest."""
    wrong = 0
    for seed in range(5):
        data = make_subspace(120, 80, n_features=6, codimension=2, noise=0.01, random_state=seed)
        with warnings.catch_warnings(action="ignore"):
            model = RANSACPlus(random_state=seed).fit(data.X)
        if model.codimension_ != 2:
            wrong += 1
            assert model.confidence_ < 0.95
            assert any("the rows support 2" in doubt for doubt in model.doubts_)
    assert wrong


@QUIET
def test_more_batches_than_there_are_numbers():
    """Their number is beyond the largest float here, and one batch takes a megabyte."""
    data = make_subspace(300, 290, n_features=150, codimension=147, random_state=0)
    model = RANSACPlus(outlier_share=0.49, max_iter=20, random_state=0).fit(data.X)
    assert (model.n_iter_, model.converged_) == (20, False)


@QUIET
def test_batches_are_fewer_at_a_time_where_they_are_large(monkeypatch):
    data, sizes = make_subspace(200, 50, n_features=40, codimension=5, random_state=0), []
    models = []
    for most in (2**22, 4 * 35 * 87):  # of four batches
        monkeypatch.setattr("perpend.methods.ransac_plus.ENTRIES", most)
        seen = []
        model = RANSACPlus(max_iter=100, random_state=0, callback=seen.append).fit(data.X)
        sizes.append(sum(one.stage == "batches" for one in seen))
        models.append(model)
    assert sizes[0] == 1
    assert sizes[1] >= 25
    np.testing.assert_array_equal(*(model.normals_ for model in models))


@SEEDS
def test_with_noise_it_finds_the_dimension(seed):
    data = make_subspace(400, 60, n_features=50, codimension=47, noise=0.05, random_state=seed)
    model = RANSACPlus(outlier_share=0.15, random_state=seed).fit(data.X)
    assert model.n_components_ == 3
    assert subspace_error(model.normals_, data.normals) < 0.15

"""The rank of the directions: where their singular values fall AND the objective rises."""

import numpy as np
import pytest

from helpers import assert_orthonormal_rows, assert_same_subspace
from perpend.codimension import rank_of_directions
from perpend.datasets import make_subspace
from perpend.geometry import random_directions
from perpend.rows import as_rows
from perpend.solvers import AutoStep, Directions, psgm, random_starts, row_span

SHAPE = {"n_inliers": 400, "n_outliers": 400, "n_features": 20}


def given(rows, B, resolution=1e-9):
    """Directions that we make up ourselves."""
    k = B.shape[1]
    objective = np.abs(rows.take(np.arange(rows.shape[0])) @ B).sum(axis=0)
    return Directions(B, objective, np.ones(k, int), np.ones(k, bool), resolution, 1)


def unit(B):
    return B / np.linalg.norm(B, axis=0)


def normals_mixed(data, k, seed, noise=0.0):
    """Random unit vectors of the complement, each turned a little by noise."""
    rng = np.random.default_rng(seed)
    c, D = data.normals.shape
    B = unit(data.normals.T @ rng.standard_normal((c, k)))
    return unit(B + noise / np.sqrt(D) * rng.standard_normal((D, k)))


@pytest.mark.parametrize("noise", [0.0, 1e-6, 0.03])
@pytest.mark.parametrize("c", [1, 3, 8])
def test_the_rank_of_good_solutions_is_the_codimension(c, noise, seed):
    data = make_subspace(**SHAPE, codimension=c, random_state=seed)
    rows = as_rows(data.X)
    found = rank_of_directions(rows, given(rows, normals_mixed(data, 24, seed, noise)), 20)
    assert found.value == c
    assert not found.saturated
    assert found.rise > 0.3
    assert found.gap > 3
    assert_orthonormal_rows(found.basis.T)
    assert_same_subspace(found.basis[:, :c].T, data.normals, 5 * noise + 1e-9)


def test_the_rank_of_real_descents_is_the_codimension(seed):
    data = make_subspace(**SHAPE, codimension=4, noise=0.05, random_state=seed)
    rows = as_rows(data.X)
    span = row_span(rows)
    B = random_starts(np.random.default_rng(seed), span, 16)
    directions = psgm(rows, B, rule=AutoStep(), max_iter=1000, tol=1e-9)
    assert rank_of_directions(rows, directions, span.rank).value == 4


def test_a_fall_of_the_singular_values_without_a_rise_of_the_objective_does_not_count(seed):
    """Two of four normals are hardly seen by the starts; their singular values are small."""
    data = make_subspace(**SHAPE, codimension=4, random_state=seed)
    rows = as_rows(data.X)
    rng = np.random.default_rng(seed)
    strong, weak = unit(rng.standard_normal((2, 24))), 0.01 * rng.standard_normal((2, 24))
    B = data.normals.T @ np.vstack([strong, weak]) + 0.0005 * rng.standard_normal((20, 24))
    found = rank_of_directions(rows, given(rows, unit(B)), 20)
    s = found.singular_values
    assert s[1] / s[2] > 2 * s[3] / s[4]  # the deepest fall is not at the codimension
    assert found.value == 4


def test_as_many_normals_as_starts_are_saturated(seed):
    data = make_subspace(**SHAPE, codimension=8, random_state=seed)
    rows = as_rows(data.X)
    for k in (1, 5, 8):
        found = rank_of_directions(rows, given(rows, normals_mixed(data, k, seed)), 20)
        assert found.value == k
        assert found.saturated


def test_singular_values_and_heights_are_what_they_say(seed):
    data = make_subspace(**SHAPE, codimension=3, random_state=seed)
    X = data.X * np.random.default_rng(seed).lognormal(size=(800, 1))
    w = np.random.default_rng(seed).uniform(size=800)
    rows = as_rows(X, weight=w)
    B = normals_mixed(data, 9, seed, noise=0.1)
    found = rank_of_directions(rows, given(rows, B), 20)
    np.testing.assert_allclose(found.singular_values, np.linalg.svd(B)[1])
    np.testing.assert_allclose(found.heights, w @ np.abs(data.X @ found.basis) / w.sum())


def test_directions_below_the_resolution_do_not_count(seed):
    """With a resolution of 0.1, a fall from 0.05 to nothing is no fall."""
    data = make_subspace(**SHAPE, codimension=3, random_state=seed)
    rows = as_rows(data.X)
    B = normals_mixed(data, 12, seed, noise=0.01)
    fine, coarse = (rank_of_directions(rows, given(rows, B, r), 20) for r in (1e-9, 0.1))
    assert fine.value == coarse.value == 3
    assert coarse.gap < 11
    assert fine.gap > 3 * coarse.gap


def test_more_starts_than_features_are_no_obstacle(seed):
    data = make_subspace(**SHAPE, codimension=6, random_state=seed)
    rows = as_rows(data.X)
    found = rank_of_directions(rows, given(rows, normals_mixed(data, 50, seed, 1e-8)), 20)
    assert found.basis.shape == (20, 20)
    assert found.value == 6


def test_random_directions_among_outliers_show_no_clear_rank(seed):
    X = random_directions(np.random.default_rng(seed), 20, 800).T
    rows = as_rows(X)
    B = random_directions(np.random.default_rng(seed + 1), 20, 40)
    assert rank_of_directions(rows, given(rows, B), 20).score < 0.5

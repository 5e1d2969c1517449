"""Values that rows have in common by chance make no subspace; true ones among them are found."""

import numpy as np
import pytest

from helpers import mostly_slow, quiet
from perpend import DPCP
from perpend.batch import dpcp_batch
from perpend.structure import Cloud

BY_CHANCE = {
    "grades": lambda rng: np.clip(np.round(rng.normal(3, 1.2, (600, 5))), 1, 5),
    "counts": lambda rng: rng.poisson([1, 2, 3, 8], (1000, 4)).astype(float),
    "amounts": lambda rng: rng.lognormal(0, 1, (600, 5)) * (rng.random((600, 5)) < 0.5),
    "rare counts": lambda rng: rng.poisson(3, (600, 5)) * (rng.random((600, 5)) < 0.6) * 1.0,
    "marks": lambda rng: (rng.random((600, 6)) < rng.uniform(0.2, 0.8, 6)).astype(float),
    "one-hot": lambda rng: np.eye(6)[rng.integers(6, size=600)],
}


@pytest.mark.parametrize("name", mostly_slow(list(BY_CHANCE), "counts", "amounts"))
def test_values_in_common_make_no_sure_subspace(name, seed):
    for draw in range(3):
        X = BY_CHANCE[name](np.random.default_rng([seed, draw]))
        model = quiet(X, affine=True)
        certain = X.shape[1] - np.linalg.matrix_rank(X - X.mean(0))  # of the one-hot columns
        assert model.confidence_ < 0.95 or model.codimension_ == certain


def test_marks_in_many_columns_are_fitted(seed):
    """Rows that are all on few axes seem to show a low dimension, which then is a coincidence."""
    for draw in range(2):
        X = (np.random.default_rng([seed, draw]).random((300, 80)) < 0.03).astype(float)
        model = quiet(X[X.any(axis=1)])
        assert model.confidence_ < 0.95
        assert np.allclose(np.linalg.norm(model.directions_, axis=1), 1)


@pytest.mark.parametrize("affine", [False, True])
def test_an_exact_total_of_small_counts_is_found(affine, seed):
    rng = np.random.default_rng(seed)
    parts = rng.poisson([3, 5, 2, 8], (1500, 4))
    total, wrong = parts.sum(1), rng.random(1500) < 0.33
    total[wrong] = rng.poisson(18, wrong.sum())
    model = DPCP(affine=affine, random_state=seed).fit(np.c_[parts, total].astype(float))
    assert model.codimension_ == 1
    assert model.confidence_ >= 0.95
    assert model.noise_ == 0
    np.testing.assert_allclose(np.abs(model.normals_[0]), np.sqrt(0.2), atol=1e-9)


@pytest.mark.parametrize("affine", [False, True])
def test_exact_subspaces_of_large_whole_numbers_stay_exact(affine, seed):
    rng = np.random.default_rng(seed)
    inliers = rng.integers(-300, 300, (400, 4)) @ rng.integers(-3, 4, (4, 6))
    X = np.vstack([inliers, rng.integers(-900, 900, (300, 6))]).astype(float)
    model = DPCP(affine=affine, random_state=seed).fit(X + 1000 * affine)
    assert (model.codimension_, model.noise_) == (2, 0)
    assert model.confidence_ >= 0.95
    assert np.all((model.labels_ == 1)[:400])


def test_a_plane_in_whole_millimetres_is_found(seed):
    rng = np.random.default_rng(seed)
    P = rng.uniform(-500, 500, (3000, 3))
    P[:1500, 2] = 40 + 0.3 * P[:1500, 0] + rng.normal(0, 2, 1500)
    model = DPCP(affine=True, random_state=seed).fit(np.round(P))
    assert model.codimension_ == 1
    assert model.confidence_ >= 0.95
    assert model.noise_ == pytest.approx(np.sqrt(3) * 2 / np.sqrt(1.09), rel=0.1)


def test_a_stack_is_not_clear_by_common_values():
    rng = np.random.default_rng(0)
    X = np.stack([(rng.random((400, 6)) < 0.3).astype(float) for _ in range(20)])
    X[:, :, 0] += 3 * ~np.any(X, axis=2)  # no row is zero
    assert not np.any(dpcp_batch(X, random_state=0).clear)


def test_every_value_stays_in_its_cell():
    rng = np.random.default_rng(0)
    X = np.c_[rng.integers(0, 4, 500), rng.integers(0, 2, 500) * 10, rng.standard_normal(500)]
    cloud = Cloud(X, affine=True, floor=1e-8)
    away = cloud.blurred(rng).X - X
    assert np.all(np.abs(away) <= [0.5, 5, 0])
    assert np.all(np.ptp(away, axis=0)[:2] > [0.9, 9])

"""How much DPCP tolerates: small versions of what benchmarks/robustness.py stores in full.

Noise, inliers that are stretched in the subspace, and more outliers than the l1 limit allows. Every
seed is a fresh subspace and fresh starts; no parameter is given.
"""

import numpy as np
import pytest

from helpers import assert_sure, draw
from perpend import DPCP, subspace_error
from perpend.datasets import SubspaceData, make_subspace

STARTS = 1_000_000  # keeps the seeds of starts apart from those of data


def oracle_error(data: SubspaceData) -> float:
    """Error of PCA on the true inliers, by a singular value decomposition of them."""
    axes = np.linalg.svd(data.X[data.y == 1])[2]
    return subspace_error(axes[-len(data.normals) :], data.normals)


def test_with_noise_the_error_is_nearly_that_of_pca_on_the_true_inliers() -> None:
    errors, best, noise = [], [], []
    for seed in range(7):
        data = draw(30, 5, 1000, 0.7, noise=0.1, random_state=seed)
        model = DPCP(random_state=STARTS + seed).fit(data.X)
        assert model.codimension_ == 5, seed
        errors.append(subspace_error(model.normals_, data.normals))
        best.append(oracle_error(data))
        noise.append(model.noise_)
    assert np.median(errors) <= 1.2 * np.median(best)
    assert 0.09 <= np.median(noise) <= 0.11


def test_stretched_inliers_are_recovered_in_every_seed() -> None:
    for seed in range(6):
        data = draw(30, 5, 500, 0.7, stretch=0.03, random_state=seed)
        model = DPCP(random_state=STARTS + seed).fit(data.X)
        assert model.codimension_ == 5, seed
        assert subspace_error(model.normals_, data.normals) < 1e-6, seed


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::perpend.exceptions.CodimensionWarning")  # the descents' own
def test_more_outliers_than_the_descents_alone_can_bear() -> None:
    """Descents on the l1 objective converge elsewhere; the whole fit is exact in every seed."""
    lost = 0
    for seed in range(4):
        data = draw(60, 4, 600, 0.84, random_state=seed)
        alone = DPCP(refine=False, n_starts=10, max_iter=20_000, random_state=STARTS + seed).fit(
            data.X
        )
        assert alone.converged_, seed
        lost += subspace_error(alone.normals_, data.normals) > 1e-2
        model = DPCP(random_state=STARTS + seed).fit(data.X)
        assert model.codimension_ == 4, seed
        assert subspace_error(model.normals_, data.normals) < 1e-9, seed
    assert lost >= 3


def test_few_outliers_of_one_kind_are_no_normal_of_the_others(seed):
    """Whitened, the direction that a few equal anomalies alone fill is small in all other rows."""
    rng = np.random.default_rng(seed)
    materials = rng.uniform(0.1, 1.0, (4, 30))
    X = rng.dirichlet(np.ones(4), 1000) @ materials
    X[:20] = rng.uniform(0.1, 1.0, 30)
    X += 0.01 * rng.standard_normal(X.shape)
    model = DPCP(random_state=seed + 1000).fit(X)
    assert model.codimension_ == 26
    assert model.confidence_ >= 0.95


def test_equations_among_positive_columns_are_sure():
    """A mean far from the origin is one large variance more; scales see through it."""
    rng = np.random.default_rng(0)
    free = rng.normal(10, 2, (500, 3))
    X = np.column_stack([free, free[:, :2].sum(axis=1), free[:, 1] - free[:, 2], free.sum(axis=1)])
    X += rng.normal(0, 0.05, X.shape)
    X[np.arange(30), rng.integers(0, 6, 30)] += rng.choice([-2, 2], 30)
    model = DPCP(random_state=1000).fit(X)
    assert model.codimension_ == 3
    assert model.confidence_ >= 0.95
    assert np.sum(model.labels_ != np.where(np.arange(500) < 30, -1, 1)) <= 1


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("n_outliers", [0, 10])
def test_rows_of_any_length_with_equal_noise_are_sure(seed, affine, n_outliers):
    """Scaled to the same length, their noise is not alike any more; it is noise, all the same."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1000, 3)) @ rng.normal(size=(3, 12)) + rng.normal(0, 0.01, (1000, 12))
    X[:n_outliers] = 2 * rng.normal(size=(n_outliers, 12))
    model = DPCP(affine=affine, random_state=seed + STARTS).fit(X)
    assert model.codimension_ == 9
    assert model.confidence_ >= 0.95


@pytest.mark.filterwarnings("ignore::perpend.exceptions.CodimensionWarning")
@pytest.mark.parametrize("seed", [0, 2])
def test_the_dense_middle_of_heavy_tailed_noise_is_no_group_of_its_own(seed):
    """Three degrees of freedom, no outlier: once 47 and 68 % of such rows were labelled as some."""
    data = make_subspace(2000, 0, n_features=10, codimension=6, random_state=seed)
    noise = np.random.default_rng(seed + 5).standard_t(3, data.X.shape) / np.sqrt(3)
    model = assert_sure(DPCP(random_state=seed + 1000).fit(data.X + 0.1 / np.sqrt(10) * noise))
    assert model.codimension_ == 6
    assert np.mean(model.labels_ == -1) < 0.05


@pytest.mark.filterwarnings("ignore::perpend.exceptions.CodimensionWarning")
def test_counts_that_are_often_zero_are_no_sure_subspace(seed):
    X = np.random.default_rng(seed).poisson(0.3, (600, 10)).astype(float)
    model = DPCP(random_state=seed + 1000).fit(X[X.any(axis=1)])
    assert model.confidence_ < 0.95


@pytest.mark.filterwarnings("ignore::perpend.exceptions.CodimensionWarning")
@pytest.mark.parametrize("affine", [False, True])
def test_variances_that_fall_to_rounding_without_a_gap_are_no_sure_subspace(seed, affine):
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.standard_normal((30, 30)))
    X, scales = rng.standard_normal((400, 30)), 2.0 ** -np.arange(30)
    model = DPCP(affine=affine, random_state=seed + 1000).fit(X * scales @ Q)
    assert model.confidence_ < 0.95
    scales[10:] = 0  # now there is a gap
    model = DPCP(affine=affine, random_state=seed + 1000).fit(X * scales @ Q)
    assert model.codimension_ == 20
    assert model.confidence_ >= 0.95

"""Recovery over many seeds: a small part of what benchmarks/recovery.py stores in full.

Every seed is a fresh subspace and fresh starts. A bar of "every seed" that held in 100 % of the
stored runs fails here by chance with a probability far below one in a thousand.
"""

import numpy as np
import pytest

from helpers import assert_sure, draw, mostly_slow
from perpend import DPCP, subspace_error
from perpend.datasets import make_subspace

STARTS = 1_000_000  # keeps the seeds of starts apart from those of data


@pytest.mark.parametrize(
    ("shape", "seeds"),
    [((30, 5, 500, 0.7), 20), ((10, 6, 2000, 0.8), 20), ((3, 1, 200, 0.5), 20)],
    ids=str,
)
def test_small_problems_are_exact_in_every_seed(shape: tuple, seeds: int) -> None:
    for seed in range(seeds):
        data = draw(*shape, random_state=seed)
        model = DPCP(random_state=STARTS + seed).fit(data.X)
        assert model.codimension_ == shape[1], seed
        assert subspace_error(model.normals_, data.normals) < 1e-9
        assert model.confidence_ >= 0.95
        np.testing.assert_array_equal(model.labels_, data.y)


@pytest.mark.parametrize("n_starts", [30, "auto"])
@pytest.mark.parametrize("r", [0.6, 0.7])
@pytest.mark.parametrize("codimension", mostly_slow([10, 15, 20], 15))
def test_the_papers_setting_is_exact(codimension: int, r: float, n_starts: int | str) -> None:
    seed = codimension + int(100 * r)
    data = draw(200, codimension, 1500, r, random_state=seed)
    model = DPCP(n_starts=n_starts, random_state=STARTS + seed).fit(data.X)
    assert model.codimension_ == codimension
    assert subspace_error(model.normals_, data.normals) < 1e-9
    assert model.confidence_ >= 0.95


@pytest.mark.parametrize("n_outliers", [1500, 3000])
def test_twice_as_many_starts_as_normals_are_enough(n_outliers: int) -> None:
    for seed in range(3):
        data = make_subspace(1500, n_outliers, n_features=200, codimension=5, random_state=seed)
        model = DPCP(n_starts=10, random_state=STARTS + seed).fit(data.X)
        assert model.codimension_ == 5
        assert subspace_error(model.normals_, data.normals) < 1e-9


@pytest.mark.parametrize("noise", mostly_slow([0.05, 0.1], 0.1))
@pytest.mark.parametrize(
    ("shape", "seeds"),
    [((30, 5, 1000, 0.6), 8), ((10, 6, 2000, 0.8), 8), ((200, 10, 1500, 0.6), 1)],
    ids=str,
)
def test_noise_leaves_the_codimension_right(shape: tuple, seeds: int, noise: float) -> None:
    for seed in range(seeds):
        data = draw(*shape, noise=noise, random_state=seed)
        model = DPCP(random_state=STARTS + seed).fit(data.X)
        assert model.codimension_ == shape[1], seed
        assert model.noise_ == pytest.approx(noise, rel=0.1)
        assert np.mean(model.labels_ == data.y) > 0.99


def test_with_noise_it_is_nearly_as_good_as_pca_on_the_true_inliers() -> None:
    ratios = []
    for seed in range(10):
        data = draw(30, 5, 1000, 0.6, noise=0.1, random_state=seed)
        model = DPCP(random_state=STARTS + seed).fit(data.X)
        inliers = data.X[data.y == 1]
        oracle = np.linalg.eigh(inliers.T @ inliers)[1][:, :5].T
        error = subspace_error(model.normals_, data.normals)
        ratios.append(error / subspace_error(oracle, data.normals))
    assert np.median(ratios) < 1.2


@pytest.mark.filterwarnings("ignore::perpend.exceptions.CodimensionWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("step", ["auto", "mbls", "geometric"])
def test_the_papers_algorithm_alone_finds_the_codimension(step: str) -> None:
    for seed in range(5):
        data = draw(30, 5, 500, 0.6, random_state=seed)
        model = DPCP(
            n_starts=15, step=step, refine=False, max_iter=1000, random_state=STARTS + seed
        ).fit(data.X)
        assert_sure(model)
        assert model.codimension_ == 5
        assert subspace_error(model.normals_, data.normals) < 1e-6


def test_fewer_starts_than_normals_are_all_independent_and_the_finish_finds_the_rest() -> None:
    data = draw(20, 8, 300, 0.5, random_state=0)
    with pytest.warns(match="may be larger"):
        alone = DPCP(n_starts=4, refine=False, random_state=1).fit(data.X)
    assert alone.codimension_ == 4
    assert alone.confidence_ < 0.95
    off = alone.normals_ @ data.components.T  # the four are normals of the true subspace
    assert np.linalg.norm(off) < 1e-8
    finished = DPCP(n_starts=4, random_state=1).fit(data.X)
    assert finished.codimension_ == 8
    assert subspace_error(finished.normals_, data.normals) < 1e-9


def test_starts_may_outnumber_the_features() -> None:
    data = draw(10, 8, 400, 0.5, random_state=0)
    model = DPCP(n_starts=25, random_state=1).fit(data.X)
    assert model.codimension_ == 8
    assert model.n_starts_ == 25

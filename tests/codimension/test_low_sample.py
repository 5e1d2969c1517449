"""Low dimension among very many features: a few rows find it, and all rows confirm it."""

import numpy as np
import pytest
from _counting import CountingRows

from helpers import assert_same_subspace
from perpend import DPCP, dpcp, subspace_error
from perpend.codimension import Look, by_sample, search_low_dimension, size_for_low_dimension
from perpend.datasets import make_subspace
from perpend.geometry import random_directions
from perpend.rows import as_rows

SHAPES = [(600, 700), (700, 600)]  # fewer rows than features, and more
shapes = pytest.mark.parametrize("shape", SHAPES)


def problem(shape, seed, *, dimension=6, ratio=0.5, **how):
    n, D = shape
    n_inliers = round(n * (1 - ratio))
    return make_subspace(
        n_inliers, n - n_inliers, n_features=D, codimension=D - dimension, random_state=seed, **how
    )


@shapes
@pytest.mark.parametrize("noise", [0.0, 0.05, 0.3])
@pytest.mark.parametrize("ratio", [0.0, 0.7])
def test_the_answer_is_that_of_all_rows(shape, noise, ratio, seed):
    data = problem(shape, seed, noise=noise, ratio=ratio)
    rows = CountingRows(as_rows(data.X))
    dpcp(rows, rng=np.random.default_rng(seed))
    assert rows.n_subsets == 1
    assert sum(rows.n_scans.values()) <= 3
    part = DPCP(random_state=seed).fit(data.X)
    whole = DPCP(random_state=seed, sample_size=None).fit(data.X)
    assert part.n_components_ == whole.n_components_ == 6
    assert part.confidence_ >= 0.95
    error = subspace_error(whole.components_, data.components)
    assert subspace_error(part.components_, data.components) < max(1.05 * error, 1e-10)
    assert part.noise_ == pytest.approx(whole.noise_, rel=0.01, abs=1e-12)
    np.testing.assert_array_equal(part.labels_, whole.labels_)
    np.testing.assert_array_equal(part.labels_, part.predict(data.X))
    np.testing.assert_allclose(part.normals_ @ part.components_.T, 0, atol=1e-12)


@shapes
def test_with_weights_and_a_told_codimension(shape, seed):
    data = problem(shape, seed, noise=0.05)
    weight = np.where(data.y == 1, 1.0, 0.5)
    weight[::7] = 0.0
    model = DPCP(codimension=shape[1] - 6, random_state=seed).fit(data.X, sample_weight=weight)
    assert model.n_components_ == 6
    assert_same_subspace(model.components_, data.components, 0.05)
    np.testing.assert_array_equal(model.labels_, data.y)


def test_what_all_rows_may_show_beside_it_is_left_to_them(seed):
    """256 rows show a cluster of a sixth of the rows, but not the rest, on eighty dimensions."""
    rng = np.random.default_rng(seed)
    D, n = 800, 1200
    basis = np.linalg.qr(rng.standard_normal((D, 80)))[0].T
    X = random_directions(rng, 80, n).T @ basis + 0.4 * random_directions(rng, D, n).T
    X[:200] = random_directions(rng, D, 1).T + 0.1 * random_directions(rng, D, 200).T
    found = []

    def search(sample):
        found.append(search_low_dimension(sample, codimension="auto", rng=rng))
        return found[-1]

    assert by_sample(as_rows(X), Look(256, search, for_all=False), rng) is None
    assert found[0].sure
    assert found[0].answer.components.shape[1] == 1
    X[200:] = random_directions(rng, D, n - 200).T
    assert by_sample(as_rows(X), Look(256, search, for_all=False), rng) is not None


def test_rows_without_structure_are_left_to_all_rows(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((256, 600))
    assert search_low_dimension(as_rows(X), codimension="auto", rng=rng) is None


def test_only_where_spectra_take_long_and_samples_are_allowed():
    assert size_for_low_dimension("auto", 512, 512) == 256
    assert size_for_low_dimension("auto", 511, 10**4) is None
    assert size_for_low_dimension("auto", 10**6, 511) is None
    assert size_for_low_dimension(None, 1000, 1000) is None
    assert size_for_low_dimension(300, 1000, 1000) is None


@pytest.mark.parametrize("sizes", [(1000, 520, 70), (600, 700, 150)])
def test_rows_that_span_less_and_show_nothing_inside(sizes, seed):
    """Variances that decay, as after a compression by PCA: the span is the answer."""
    n, D, rank = sizes
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, rank)) / np.arange(1, rank + 1) @ rng.standard_normal((rank, D))
    model = DPCP(random_state=seed).fit(X)
    assert model.n_components_ == rank
    assert model.confidence_ >= 0.95


@pytest.mark.filterwarnings("ignore::perpend.exceptions.CodimensionWarning")
def test_that_all_rows_lie_exactly_on_more_is_not_seen_by_few(seed):
    rng = np.random.default_rng(seed)
    Z = random_directions(rng, 300, 700).T
    Z[:350, 6:] = 0
    Z[:350] += 0.05 * random_directions(rng, 300, 350).T
    X = Z @ np.linalg.qr(rng.standard_normal((520, 300)))[0].T
    model = DPCP(random_state=seed).fit(X)
    assert model.confidence_ < 0.95
    assert model.evidence_["exact_codimension"] == 220

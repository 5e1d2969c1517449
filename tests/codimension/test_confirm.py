"""Sampling: the answer of all rows, from a sample and at most three scans of the rest."""

import warnings

import numpy as np
import pytest
from _counting import CountingRows

from perpend import DPCP, dpcp, subspace_error
from perpend.codimension import sample_sizes
from perpend.datasets import make_subspace
from perpend.rows import as_rows

SIZE = 2000


def big(seed, n_inliers=12_000, n_outliers=8_000, **kwargs):
    kwargs = {"n_features": 20, "codimension": 3, **kwargs}
    return make_subspace(n_inliers, n_outliers, random_state=seed, **kwargs)


def test_a_clear_answer_takes_three_scans_of_all_rows(dtype, seed):
    data = big(seed)
    rows = CountingRows(as_rows(data.X.astype(dtype)))
    solution = dpcp(rows, sample_size=SIZE, rng=np.random.default_rng(seed + 100))
    assert sum(rows.n_scans.values()) <= 3
    assert solution.confidence >= 0.95
    assert solution.distances is not None
    error = np.linalg.norm(data.components @ solution.normals, 2)
    assert error < (1e-9 if dtype == np.float64 else 1e-5)


@pytest.mark.parametrize("noise", [0.0, 0.05, 0.2])
@pytest.mark.parametrize("normalize", [True, False])
def test_a_sampled_fit_agrees_with_the_whole(noise, normalize, seed):
    data = big(seed, noise=noise)
    X = data.X * (1 if normalize else 3.0)
    whole = DPCP(sample_size=None, normalize=normalize, random_state=seed).fit(X)
    part = DPCP(sample_size=SIZE, normalize=normalize, random_state=seed).fit(X)
    assert part.codimension_ == whole.codimension_ == 3
    assert part.confidence_ >= 0.95
    np.testing.assert_allclose(part.noise_, whole.noise_, rtol=0.02)
    error = subspace_error(whole.normals_, data.normals)
    assert subspace_error(part.normals_, data.normals) < max(1.1 * error, 1e-9)
    wrong, wrong_anyway = (np.mean(model.labels_ != data.y) for model in (part, whole))
    assert wrong <= wrong_anyway + 1e-3
    np.testing.assert_array_equal(part.labels_, part.predict(X))
    assert len(part.labels_) == len(X)


def test_a_sample_that_is_too_small_grows():
    """Among 300 rows with 85 % outliers there are too few inliers to be sure; among 20 000 not."""
    data = big(5, n_inliers=3000, n_outliers=17_000)
    model = DPCP(sample_size=300, random_state=0).fit(data.X)
    assert model.codimension_ == 3
    assert model.confidence_ >= 0.95
    assert subspace_error(model.normals_, data.normals) < 1e-9


def test_outliers_that_no_sample_sees_are_still_labelled():
    """Five of 20 000 rows leave the subspace, exactly; a sample has hardly one of them."""
    rng = np.random.default_rng(0)
    data = big(1, n_outliers=0, n_inliers=20_000)
    X = data.X.copy()
    X[[5, 600, 7000, 13_000, 19_999]] = rng.standard_normal((5, 20))
    model = DPCP(sample_size=SIZE, random_state=1).fit(X)
    assert model.codimension_ == 3
    np.testing.assert_array_equal(
        np.flatnonzero(model.labels_ == -1), [5, 600, 7000, 13_000, 19_999]
    )


def test_rows_inside_a_smaller_span_keep_their_normals():
    """Two columns are zero: these normals are known without a search, with a sample as well."""
    data = big(2)
    X = np.hstack([data.X, np.zeros((len(data.X), 2))])
    model = DPCP(sample_size=SIZE, random_state=1).fit(X)
    assert model.codimension_ == 5
    assert model.confidence_ >= 0.95
    np.testing.assert_array_equal(model.labels_, data.y)


def test_weights_come_along(seed):
    data = big(seed)
    weight = np.where(data.y == 1, 1.0, 0.5)
    weight[:100] = 0.0
    model = DPCP(sample_size=SIZE, random_state=1).fit(data.X, sample_weight=weight)
    assert model.codimension_ == 3
    assert subspace_error(model.normals_, data.normals) < 1e-9
    np.testing.assert_array_equal(model.labels_, data.y)


def test_a_sample_repeats_with_its_seed():
    data = big(0, noise=0.1)
    one = DPCP(sample_size=SIZE, random_state=3).fit(data.X)
    two = DPCP(sample_size=SIZE, random_state=3).fit(data.X)
    np.testing.assert_array_equal(one.normals_, two.normals_)
    np.testing.assert_array_equal(one.labels_, two.labels_)


def test_pure_noise_is_not_believed_in():
    X = np.random.default_rng(0).standard_normal((20_000, 10))
    model = DPCP(sample_size=SIZE, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    assert model.codimension_ == 0


def test_rows_that_stand_often_count_once():
    """Forty distinct rows, each 500 times: as unsure as the forty rows alone."""
    few = make_subspace(25, 15, n_features=20, codimension=3, random_state=0)
    X = np.repeat(few.X, 500, axis=0)
    with pytest.warns(UserWarning, match="not sure"):
        model = DPCP(sample_size=SIZE, random_state=0).fit(X)
    assert model.confidence_ < 0.95


def test_the_sizes_of_samples():
    assert list(sample_sizes("auto", 4 * 4800, 200)) == []
    assert list(sample_sizes("auto", 4 * 4800 + 1, 200)) == [4800]
    assert list(sample_sizes(100, 10_000, 5)) == [100, 400, 1600, 6400]
    assert list(sample_sizes(10_000, 10_000, 5)) == []
    assert list(sample_sizes(None, 10**9, 5)) == []


def test_the_papers_algorithm_alone_never_samples():
    data = big(0)
    rows = CountingRows(as_rows(data.X))
    dpcp(
        rows,
        sample_size=SIZE,
        refine=False,
        n_starts=8,
        max_iter=20,
        rng=np.random.default_rng(0),
    )
    assert rows.n_subsets == 0


def test_a_thin_subspace_that_no_small_sample_shows_is_found():
    """2 % of the rows lie on a subspace: of 2000 rows forty, and few enough to be overlooked."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40_000, 12))
    X[:2400] = X[:2400, :6] @ rng.standard_normal((6, 12))
    model = DPCP(sample_size=400, random_state=0).fit(X)
    assert model.codimension_ == 6
    assert model.confidence_ >= 0.95


def test_a_sample_of_rows_that_all_weigh_nothing_is_no_answer():
    data = big(0)
    weight = np.zeros(len(data.X))
    weight[:300] = 1.0
    model = DPCP(sample_size=10, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(data.X, sample_weight=weight)
    assert len(model.labels_) == len(data.X)


def test_the_threshold_is_that_of_all_rows(seed):
    data = make_subspace(
        24_000, 16_000, n_features=10, codimension=3, noise=0.01, random_state=seed
    )
    whole = DPCP(sample_size=None, random_state=seed).fit(data.X)
    part = DPCP(random_state=seed).fit(data.X)
    assert part.threshold_ == pytest.approx(whole.threshold_, rel=1e-3)
    assert part.evidence_["rows_on_subspace"] == pytest.approx(
        whole.evidence_["rows_on_subspace"], rel=0.01
    )


@pytest.mark.parametrize("normalize", [True, False])
def test_labels_by_a_quantile_are_those_of_predict(seed, normalize):
    data = big(seed, noise=0.05)
    X = data.X * np.random.default_rng(seed).uniform(1, 3, (len(data.X), 1))
    model = DPCP(sample_size=SIZE, contamination=0.4, normalize=normalize, random_state=seed).fit(X)
    np.testing.assert_array_equal(model.labels_, model.predict(X))


def test_given_starts_meet_all_rows():
    data = big(0)
    rows = CountingRows(as_rows(data.X))
    dpcp(rows, sample_size=SIZE, init=np.eye(20)[:10], rng=np.random.default_rng(0))
    assert rows.n_subsets == 0


def test_sizes_may_be_small_integers_of_numpy():
    assert list(sample_sizes(np.int16(4096), 70_000, 5)) == [4096, 16384, 65536]

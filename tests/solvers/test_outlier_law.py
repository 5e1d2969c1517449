import numpy as np
import pytest

from perpend.solvers import label_threshold, outlier_law, outlier_misfit

EDGES = np.geomspace(1e-6, 1.0, 256)


def sphere_distances(rng, n, c, d):
    X = rng.standard_normal((n, c + d))
    return np.linalg.norm(X[:, :c], axis=1) / np.linalg.norm(X, axis=1)


def counted(J):
    bins = np.minimum(np.searchsorted(EDGES, J), len(EDGES) - 1)
    return np.bincount(bins, minlength=len(EDGES)).astype(float)


@pytest.mark.parametrize(("c", "d"), [(1, 1), (1, 9), (5, 5), (10, 190)])
def test_the_law_is_that_of_uniform_directions(seed, c, d):
    J = sphere_distances(np.random.default_rng(seed), 20_000, c, d)
    law = outlier_law(EDGES, np.ones(1), c, d)
    seen = np.cumsum(counted(J)) / len(J)
    assert np.max(np.abs(seen - law)) < 2 / np.sqrt(len(J))  # one in a thousand exceeds it
    assert outlier_misfit(counted(J), law, 0) < 2
    assert outlier_misfit(counted(J**1.2), law, 0) > 4


def test_rows_of_several_norms_share_one_law(seed):
    rng = np.random.default_rng(seed)
    norms = np.array([0.2, 0.5, 1.0])
    J = sphere_distances(rng, 30_000, 3, 4) * rng.choice(norms, 30_000)
    law = outlier_law(EDGES, norms, 3, 4)
    assert np.max(np.abs(np.cumsum(counted(J)) / len(J) - law)) < 2 / np.sqrt(len(J))


def fewest_errors(inliers, outliers):
    every = np.sort(np.concatenate([inliers, outliers]))
    wrong = [np.sum(inliers > t) + np.sum(outliers <= t) for t in every]
    return min(wrong)


@pytest.mark.parametrize("given", [0.02, 0.05, 0.3])
def test_heavy_tailed_inliers_get_the_threshold_with_the_fewest_errors(seed, given):
    rng = np.random.default_rng(seed)
    outliers = sphere_distances(rng, 8000, 6, 4)
    inliers = np.minimum(0.01 * np.abs(rng.standard_t(2, 2000)) + 1e-3, 0.9)
    law = outlier_law(EDGES, np.ones(1), 6, 4)
    counts = counted(np.concatenate([inliers, outliers]))
    t = label_threshold(counts, EDGES, law, given)
    wrong, before = (np.sum(inliers > at) + np.sum(outliers <= at) for at in (t, given))
    assert wrong <= before
    # The fewest errors are those of hindsight; in the middle a few rows of both kinds overlap.
    assert wrong <= fewest_errors(inliers, outliers) + 30


def test_a_few_outliers_close_by_do_not_move_the_threshold():
    law = outlier_law(EDGES, np.ones(1), 1, 2)
    for seed in range(200):
        J = sphere_distances(np.random.default_rng(seed), 300, 1, 2)
        counts = counted(J)
        counts[0] += 300  # exact inliers
        assert label_threshold(counts, EDGES, law, EDGES[0]) == EDGES[0]


def test_the_threshold_does_not_creep_through_empty_bins(seed):
    """Without a row between the last inlier and the model's threshold there is nothing to gain."""
    rng = np.random.default_rng(seed)
    inliers = 0.001 * np.linalg.norm(rng.standard_normal((1000, 5)), axis=1)
    counts = counted(np.append(inliers, sphere_distances(rng, 500, 5, 25)))
    law = outlier_law(EDGES, np.ones(1), 5, 25)
    given = 2 * inliers.max()
    assert label_threshold(counts, EDGES, law, given) == given


def test_outliers_that_do_not_follow_the_law_leave_the_model_alone():
    rng = np.random.default_rng(0)
    outliers = 0.3 * sphere_distances(rng, 5000, 4, 4)  # all near the subspace
    counts = counted(np.concatenate([outliers, np.full(500, 1e-6)]))
    law = outlier_law(EDGES, np.ones(1), 4, 4)
    assert label_threshold(counts, EDGES, law, 1e-5) == 1e-5


def test_a_second_group_close_by_is_not_swallowed(seed):
    rng = np.random.default_rng(seed)
    exact, second = np.full(1000, 1e-6), 0.03 + 0.02 * rng.uniform(size=900)
    outliers = sphere_distances(rng, 2000, 3, 5)
    law = outlier_law(EDGES, np.ones(1), 3, 5)
    counts = counted(np.concatenate([exact, second, outliers]))
    assert label_threshold(counts, EDGES, law, 1e-5) == 1e-5
    # A tenth as many are the far end of the inliers.
    few = counted(np.concatenate([exact, second[:90], outliers]))
    assert label_threshold(few, EDGES, law, 1e-5) >= 0.045


def test_few_outliers_all_near_the_subspace_stay_outliers(seed):
    """A table top with things on it: one outlier in seven, none of them far away."""
    rng = np.random.default_rng(seed)
    inliers, things = 0.001 * np.abs(rng.standard_normal(6000)), rng.uniform(0.004, 0.1, 1000)
    law = outlier_law(EDGES, np.ones(1), 1, 3)
    counts = counted(np.concatenate([inliers, things]))
    assert label_threshold(counts, EDGES, law, 0.004) == 0.004


def test_a_threshold_at_the_end_stays():
    law = outlier_law(EDGES, np.ones(1), 2, 2)
    assert label_threshold(np.ones(256), EDGES, law, 2.0) == 2.0
    assert label_threshold(np.ones(256), EDGES, law, 1.0) == 1.0

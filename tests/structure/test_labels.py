"""The law of the outliers, the threshold that follows from it, and the odds of outliers."""

import numpy as np
import pytest

from perpend.kernels import logarithmic_bins
from perpend.structure.labels import (
    exact_odds,
    label_threshold,
    outlier_law,
    outlier_misfit,
    outlier_odds,
    outlier_probability,
)
from perpend.structure.law import distance_edges, group_model

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


# -- odds: Bayes' rule where the model holds, and never at odds with the labels --------------------

LAWS = [(1, 2), (5, 25), (6, 4), (10, 190)]


def draw(seed, sizes, law, scale, degrees=None):
    """Distances of inliers with Gaussian or Student noise, then those of outliers."""
    (n_in, n_out), (c, d) = sizes, law
    rng = np.random.default_rng(seed)
    noise = (
        rng.standard_normal((n_in, c)) if degrees is None else rng.standard_t(degrees, (n_in, c))
    )
    outliers = np.sqrt(rng.beta(c / 2, d / 2, n_out))
    return np.append(np.minimum(scale * np.linalg.norm(noise, axis=1), 0.99), outliers)


def fit(J, c, d, unit=1.0):
    """Return the groups with the labels' threshold, and the odds."""
    edges = distance_edges(1.0, np.float64)
    counts = np.bincount(logarithmic_bins(J, edges), minlength=len(edges)).astype(float)
    groups = group_model(edges, np.ones(1), c, d).fit(counts)
    moved = label_threshold(counts, edges, outlier_law(edges, np.ones(1), c, d), groups.threshold)
    groups = groups._replace(threshold=moved)
    return groups, outlier_odds(groups, unit)


def assert_consistent(odds, far=1.0):
    """Never falling, from 0 to 1, and on the labels' side of one half everywhere."""
    J = np.append(0.0, np.geomspace(1e-9, 1e3 * far, 20_001))
    p = outlier_probability(J, odds)
    assert np.all(np.diff(p) >= 0)
    assert np.all((p >= 0) & (p <= 1))
    assert np.all(p[odds.threshold >= J] <= 0.5)
    assert np.all(p[odds.threshold < J] >= 0.5)
    assert p[-1] > 0.999


@pytest.mark.parametrize(("c", "d"), LAWS)
@pytest.mark.parametrize("degrees", [None, 2.5])
@pytest.mark.parametrize("n_out", [0, 20, 6000])
def test_labels_and_probabilities_agree(c, d, degrees, n_out, seed):
    scale = 0.02 / np.sqrt(c + d)
    groups, odds = fit(draw(seed, (2000, n_out), (c, d), scale, degrees), c, d)
    assert odds.threshold == groups.threshold
    assert_consistent(odds)
    at = outlier_probability(odds.threshold * np.array([1 - 1e-9, 1 + 1e-9]), odds)
    np.testing.assert_allclose(at, 0.5, atol=1e-4)
    # with one normal and many outliers, some of these are on the subspace by chance
    assert outlier_probability(np.zeros(1), odds)[0] < 0.1


def test_where_the_model_holds_the_probability_is_a_frequency(seed):
    c, d, n_in, n_out = 2, 8, 150_000, 250_000
    J = draw(seed, (n_in, n_out), (c, d), 0.1)
    groups, odds = fit(J, c, d)
    bins = logarithmic_bins(J, groups.edges)
    rows, outliers = np.bincount(bins), np.bincount(bins[n_in:], minlength=bins.max() + 1)
    often = rows > 2000
    assert often.sum() > 20
    p = outlier_probability(J, odds)
    told = np.bincount(bins, p) / np.maximum(rows, 1)
    np.testing.assert_allclose(told[often], (outliers / np.maximum(rows, 1))[often], atol=0.05)


@pytest.mark.parametrize(("c", "d", "degrees"), [(6, 4, 3), (6, 4, 2.2), (5, 25, 3)])
def test_with_heavier_tails_stretching_counts_better(c, d, degrees, seed):
    """The threshold has moved; unstretched odds would call the far inliers outliers."""
    n_out = 6000
    J = draw(seed, (2000, n_out), (c, d), 0.05 / np.sqrt(c + d), degrees)
    groups, odds = fit(J, c, d)
    own = group_model(groups.edges, np.ones(1), c, d).fit(groups.counts)
    assert groups.threshold > 1.2 * own.threshold
    counted = outlier_probability(J, odds).sum()
    unstretched = (1 - own.posterior) @ groups.counts
    assert abs(counted - n_out) < 0.005 * n_out
    assert abs(counted - n_out) < abs(unstretched - n_out) / 2


def test_distances_have_the_users_unit(seed):
    J = draw(seed, (500, 500), (3, 7), 0.02)
    (_, one), (_, other) = fit(J, 3, 7), fit(J, 3, 7, unit=1e-200)
    assert other.threshold == one.threshold * 1e-200
    np.testing.assert_allclose(
        outlier_probability(J * 1e-200, other), outlier_probability(J, one), atol=1e-9
    )


def test_no_distance_is_too_far(seed):
    _, odds = fit(draw(seed, (500, 0), (3, 7), 0.02), 3, 7)
    assert np.all(outlier_probability(np.array([1.0, 1e10, 1e300]), odds) == 1)


def test_exact_inliers_leave_nothing_between_0_and_1():
    odds = exact_odds(1e-8)
    J = np.array([0.0, 5e-9, 1e-8, np.nextafter(1e-8, 1), 1e-3, 1e300])
    np.testing.assert_allclose(outlier_probability(J, odds), [0, 0, 0, 1, 1, 1], atol=1e-12)


def test_a_threshold_that_the_model_does_not_cross_still_decides_the_side(seed):
    groups, _ = fit(draw(seed, (500, 500), (3, 7), 0.02), 3, 7)
    never_out = groups._replace(posterior=np.ones(len(groups.edges)), threshold=groups.edges[-1])
    never_in = groups._replace(posterior=np.full(len(groups.edges), 0.1), threshold=0.0)
    moved = never_in._replace(threshold=0.2)
    for strange in (never_out, never_in, moved):
        assert_consistent(outlier_odds(strange, 1.0))

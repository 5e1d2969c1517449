"""The contrast of two balls, for every scale and codimension at once."""

import numpy as np
import pytest
from scipy import stats

from perpend.geometry import random_directions
from perpend.structure import Axes, Cloud
from perpend.structure.cloud import radius
from perpend.structure.profile import Plateau, Profile, choose, clearness, contrasts

FLOOR = 1.5e-8


def cloud_of(X, **more):
    return Cloud(X, affine=False, floor=FLOOR, **more)


def some_rows(seed=0, n=400, D=6):
    X = np.random.default_rng(seed).standard_normal((n, D))
    return X / np.linalg.norm(X, axis=1)[:, None]


def some_axes(seed, D):
    A, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((D, D)))
    return Axes(np.zeros(D), A, np.ones(D))


def test_counts_are_those_of_a_plain_loop():
    X = some_rows()
    cloud, axes = cloud_of(X), some_axes(1, 6)
    counts = cloud.counts(axes)
    for i, c in enumerate(cloud.codimensions):
        J = np.linalg.norm(X @ axes.A[:, :c], axis=1)
        for j in range(0, cloud.n_scales, 7):
            r = cloud.scales[j] * radius(c)
            assert abs(counts.near[i, j] - np.sum(r >= J)) <= 1  # an edge, in single precision
    single = cloud.counts_at(np.square(X @ axes.A[:, :3]).sum(axis=1), 3)
    np.testing.assert_allclose(single.near[0], counts.near[2], atol=1)
    np.testing.assert_allclose(single.double[0], counts.double[2], atol=1)


def test_shares_count_equal_rows_once():
    X = some_rows(n=100)
    once, twice = cloud_of(X), cloud_of(np.vstack([X, X]), share=np.full(200, 0.5))
    axes = some_axes(1, 6)
    for one, two in zip(once.counts(axes), twice.counts(axes), strict=True):
        np.testing.assert_allclose(one, two)
    np.testing.assert_allclose(once.needed, twice.needed)


@pytest.mark.parametrize("c", [1, 3, 5])
def test_the_reference_law_is_that_of_random_directions(c):
    X = random_directions(np.random.default_rng(0), 6, 200_000).T
    r = np.array([0.1, 0.3, 0.7])
    J = np.linalg.norm(X[:, :c], axis=1)
    law = np.exp(cloud_of(X[:500]).law(c, r))
    np.testing.assert_allclose(law, [np.mean(t >= J) for t in r], atol=0.005)


def test_the_contrast_is_a_likelihood_ratio():
    """n2 KL(n1 / n2 || q) = log Binomial(n1; n2, n1 / n2) - log Binomial(n1; n2, q)."""
    cloud = cloud_of(some_rows())
    counts = cloud.counts(some_axes(2, 6))
    local, _ = contrasts(cloud, counts)
    i, j = np.unravel_index(np.argmax(local), local.shape)
    n1, n2 = (round(N[i, j] - cloud.free[i]) for N in (counts.near, counts.double))
    q = np.exp(cloud.log_q[i, j])
    assert n1 / n2 > q
    ratio = stats.binom.logpmf(n1, n2, n1 / n2) - stats.binom.logpmf(n1, n2, q)
    assert local[i, j] == pytest.approx(ratio - cloud.needed[i], abs=1e-6)


def test_rows_without_structure_show_nothing():
    for seed in range(5):
        profile = Profile(cloud_of(some_rows(seed, 1000, 8)))
        for turn in range(5):
            profile.add(some_axes(turn, 8))
        assert profile.plateaus() == []


def test_a_subspace_is_a_plateau_from_its_noise_to_its_variances():
    rng = np.random.default_rng(0)
    X = np.hstack([rng.standard_normal((600, 4)), 0.001 * rng.standard_normal((600, 2))])
    profile = Profile(cloud_of(X))
    profile.add(profile.cloud.first_axes())
    (longest,) = [p for p in profile.plateaus() if p.length > 1]
    assert longest.c == 2
    assert longest.length == pytest.approx(np.log(1000), abs=1.2)
    assert longest.share == pytest.approx(1.0, abs=0.05)


def plateau(i, peak, T, length, share=1.0):
    return Plateau(i, peak - 5, peak + 5, peak, T, length, share)


def test_the_finest_of_two_that_are_nearly_as_good_is_chosen():
    coarse, fine = plateau(3, 100, 400.0, 3.0), plateau(1, 50, 300.0, 3.2, share=0.4)
    assert choose([fine, coarse]) == fine
    weak = fine._replace(T=10.0)
    assert choose([weak, coarse]) == coarse
    same_rows = fine._replace(share=0.95)
    assert choose([same_rows, coarse]) == coarse


def test_a_finer_rival_makes_it_unclear_a_coarser_one_does_not():
    chosen = plateau(2, 100, 400.0, 3.0)
    assert clearness(chosen, [chosen]) > 5
    assert clearness(chosen, [chosen, plateau(4, 150, 500.0, 3.0)]) > 5
    assert clearness(chosen, [plateau(4, 50, 400.0, 3.0, share=0.4), chosen]) < 1

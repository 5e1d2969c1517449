"""Where the density of distances stops falling: one bell, or a thin one inside a thick one."""

import numpy as np
import pytest
from scipy import stats

from perpend.structure.constants import KINK, UNLIKE
from perpend.structure.layers import (
    Histogram,
    find_layers,
    gain_of_two,
    histogram,
    members_noise,
)

NOISE = {
    "gaussian": lambda rng, size: rng.standard_normal(size),
    "laplace": lambda rng, size: rng.laplace(size=size),
    "student": lambda rng, size: rng.standard_t(3, size),
    "uniform": lambda rng, size: rng.uniform(-1, 1, size),
    "of two sizes": lambda rng, size: (
        rng.standard_normal(size) * np.exp(0.7 * rng.standard_normal((size[0], 1)))
    ),
}


def distances(rng, noise, n, c):
    return np.linalg.norm(NOISE[noise](rng, (n, c)), axis=1)


def seen(J):
    return histogram(J, 1e-8)


@pytest.mark.parametrize("c", [1, 3, 10])
@pytest.mark.parametrize("n", [300, 3000])
@pytest.mark.parametrize("noise", NOISE)
def test_one_kind_of_noise_is_one_bell(noise, n, c):
    rng = np.random.default_rng([n, c])
    found = [find_layers(seen(distances(rng, noise, n, c)), c, 0.05 * n) for _ in range(20)]
    assert sum(map(bool, found)) <= 1


@pytest.mark.parametrize("c", [1, 3])
@pytest.mark.parametrize("noise", ["gaussian", "laplace", "student"])
def test_a_thin_layer_inside_a_slab_is_seen(noise, c):
    rng = np.random.default_rng(c)
    right = 0
    for _ in range(20):
        thin = distances(rng, noise, 1000, c)
        slab = np.linalg.norm(rng.uniform(-20, 20, (3000, c)), axis=1)
        layers = find_layers(seen(np.append(thin, slab)), c, 200)
        right += len(layers) == 1 and 700 < layers[0].members < 1300
    assert right >= 18


def test_of_three_layers_the_finest_comes_first():
    rng = np.random.default_rng(0)
    J = np.abs(np.concatenate([s * rng.standard_normal(2000) for s in (0.01, 1.0, 100.0)]))
    finest, *others = find_layers(seen(J), 1, 300)
    assert 0.01 < finest.radius < 0.2
    assert 1800 < finest.members < 2100
    assert all(layer.radius > finest.radius for layer in others)


def test_rows_without_any_distance_are_a_layer():
    J = np.append(np.zeros(200), np.random.default_rng(0).uniform(0.5, 1, 300))
    (layer,) = find_layers(seen(J), 1, 50)
    assert layer.is_exact
    assert layer.members == 200
    np.testing.assert_array_equal(layer.probability(J), J == 0)


def test_the_probability_falls_and_is_one_half_at_the_threshold():
    rng = np.random.default_rng(1)
    J = np.abs(np.append(rng.standard_normal(2000), rng.uniform(-15, 15, 2000)))
    (layer,) = find_layers(seen(J), 1, 200)
    r = np.linspace(0.01, layer.radius, 200)
    p = layer.probability(r)
    assert np.all(np.diff(p) <= 1e-12)
    assert layer.probability(np.array([layer.threshold]))[0] == pytest.approx(0.5, abs=0.05)
    # 2000 N(0, 1) rows and 2000 / 30 in each unit on both sides: even where
    # 2000 phi(t) = 2000 / 30.
    even = np.sqrt(-2 * np.log(np.sqrt(2 * np.pi) / 30))
    assert layer.threshold == pytest.approx(even, rel=0.1)
    assert layer.members == pytest.approx(2000, rel=0.1)


@pytest.mark.parametrize("c", [1, 2, 8])
def test_gaussian_noise_is_measured(c):
    rng = np.random.default_rng(c)
    of = seen(0.3 * distances(rng, "gaussian", 20_000, c))
    assert members_noise(of, np.ones(len(of.edges)), c) == pytest.approx(0.3, rel=0.02)


def test_heavy_tails_are_measured_between_scale_and_deviation():
    of = seen(np.abs(stats.t(3).rvs(20_000, random_state=0)))
    assert 1.1 < members_noise(of, np.ones(len(of.edges)), 1) < np.sqrt(3)


def test_a_histogram_counts_shares():
    J, share = np.array([0.0, 1e-9, 0.1, 0.5]), np.array([1.0, 0.5, 0.25, 2.0])
    of = histogram(J, 1e-8, share)
    assert isinstance(of, Histogram)
    assert of.counts[0] == 1.5
    assert of.counts.sum() == 3.75


@pytest.mark.parametrize("noise", ["gaussian", "laplace", "student", "uniform"])
def test_one_kind_of_noise_is_no_bell_in_a_slab(noise, seed):
    J = distances(np.random.default_rng(seed), noise, 4000, 1)
    assert gain_of_two(histogram(J, 1e-9)) < KINK + UNLIKE * len(J)


def test_a_bell_that_hardly_stands_out_of_its_slab(seed):
    rng = np.random.default_rng(seed)
    J = np.append(distances(rng, "student", 1600, 1), 5 * distances(rng, "uniform", 2400, 1))
    assert gain_of_two(histogram(J, 1e-9)) > KINK + UNLIKE * len(J)


@pytest.mark.parametrize("blur", [0.03, 0.1, 0.3])
def test_uniform_noise_with_soft_ends_is_of_one_kind(blur):
    """As that of a box whose axes are known up to an angle."""
    rng = np.random.default_rng(0)
    for n in (500, 5000):
        J = np.abs(rng.uniform(-1, 1, n) + blur * rng.standard_normal(n))
        assert gain_of_two(seen(J)) < KINK + UNLIKE * n

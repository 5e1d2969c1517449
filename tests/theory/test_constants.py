import math

import numpy as np
import pytest

from perpend.theory import average_height


def double_factorial(k):
    return math.prod(range(k, 0, -2))


@pytest.mark.parametrize("d", range(1, 41))
def test_the_average_height_is_the_double_factorial_of_the_paper(d):
    ratio = double_factorial(d - 2) / double_factorial(d - 1)
    expected = ratio if d % 2 else ratio * 2 / math.pi
    assert average_height(d) == pytest.approx(expected, rel=1e-13)


def test_the_average_height_is_a_mean_over_the_sphere(seed):
    u = np.random.default_rng(seed).standard_normal((100_000, 5))
    heights = np.abs(u[:, 0]) / np.linalg.norm(u, axis=1)
    assert average_height(5) == pytest.approx(heights.mean(), abs=6 * heights.std() / 316)


@pytest.mark.parametrize("d", [1e3, 1e6, 1e9])
def test_the_average_height_in_many_dimensions(d):
    expected = math.sqrt(2 / (math.pi * d)) * (1 + 1 / (4 * d))
    assert average_height(int(d)) == pytest.approx(expected, rel=1e-6)

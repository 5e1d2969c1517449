import math
from fractions import Fraction

import numpy as np
import pytest

from perpend.theory import average_height


def double_factorial(k):
    return math.prod(range(k, 0, -2))


@pytest.mark.parametrize("d", [*range(1, 41), 99, 100, 199, 200, 201, 202, 301])
def test_the_average_height_is_the_double_factorial_of_the_paper(d):
    ratio = float(Fraction(double_factorial(d - 2), double_factorial(d - 1)))
    expected = ratio if d % 2 else ratio * 2 / math.pi
    assert average_height(d) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("d", [1_001, 20_000, 999_999, 1_000_000])
def test_the_average_height_keeps_its_digits_in_many_dimensions(d):
    # c_{d+2} = c_d d/(d+1), with an exactly rounded sum of logarithms
    start = 1 if d % 2 else 2
    logs = math.fsum(math.log1p(-1 / (j + 1)) for j in range(start, d, 2))
    expected = math.exp(logs) * (1 if d % 2 else 2 / math.pi)
    assert average_height(d) == pytest.approx(expected, rel=1e-14)


def test_the_average_height_is_a_mean_over_the_sphere(seed):
    u = np.random.default_rng(seed).standard_normal((100_000, 5))
    heights = np.abs(u[:, 0]) / np.linalg.norm(u, axis=1)
    assert average_height(5) == pytest.approx(heights.mean(), abs=6 * heights.std() / 316)


def test_the_average_height_far_out():
    d = 10**9
    expected = math.sqrt(2 / (math.pi * d)) * (1 + 1 / (4 * d))
    assert average_height(d) == pytest.approx(expected, rel=1e-14)

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import assert_orthonormal_rows, assert_same_subspace
from perpend import geometry

SHAPES = [(5, 0), (5, 1), (5, 3), (5, 5), (40, 7), (1, 1), (1, 0)]


def pair_with_angles(rng, angles, n_features):
    """Two orthonormal bases with exactly these principal angles, in random position."""
    angles = np.asarray(angles)
    k = angles.size
    Q, _ = np.linalg.qr(rng.standard_normal((n_features, n_features)))
    A, E = Q[:, :k], Q[:, k : 2 * k]
    B = A * np.cos(angles) + E * np.sin(angles)
    R, S = (np.linalg.qr(rng.standard_normal((k, k)))[0] for _ in range(2))
    return A @ R, B @ S


@pytest.mark.parametrize(("D", "n"), [(1, 4), (3, 1), (30, 50), (4, 0)])
def test_random_directions_are_unit_columns(D, n):
    B = geometry.random_directions(np.random.default_rng(0), D, n)
    assert B.shape == (D, n)
    np.testing.assert_allclose(np.linalg.norm(B, axis=0), 1)


def test_random_directions_are_isotropic():
    D, n = 6, 200_000
    B = geometry.random_directions(np.random.default_rng(1), D, n)
    # mean 0, second moment I / D; entries fluctuate by less than 1 / sqrt(n), 6 sigma allowed
    np.testing.assert_allclose(B.mean(axis=1), 0, atol=6 / np.sqrt(n))
    np.testing.assert_allclose(B @ B.T / n, np.eye(D) / D, atol=6 / np.sqrt(n))


def test_more_directions_begin_with_the_same_ones():
    few = geometry.random_directions(np.random.default_rng(2), 7, 3)
    many = geometry.random_directions(np.random.default_rng(2), 7, 8)
    np.testing.assert_allclose(many[:, :3], few)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_orthonormal_spans_the_same_and_keeps_the_dtype(shape, dtype):
    A = np.random.default_rng(3).standard_normal(shape).astype(dtype)
    Q = geometry.orthonormal(A)
    tol = 50 * np.finfo(dtype).eps
    assert Q.dtype == dtype
    assert_orthonormal_rows(Q.T, tol)
    assert_same_subspace(Q.T, A.T, 10 * tol)


def test_orthonormal_finds_the_rank():
    rng = np.random.default_rng(4)
    A = rng.standard_normal((20, 3)) @ rng.standard_normal((3, 8))
    assert geometry.orthonormal(A).shape == (20, 3)
    assert geometry.orthonormal(A * 1e-200).shape == (20, 3)
    assert geometry.orthonormal(np.zeros((4, 2))).shape == (4, 0)
    assert geometry.orthonormal([[1, 2], [2, 4]]).shape == (2, 1)
    assert geometry.orthonormal(np.diag([1.0, 1e-3]), rtol=1e-2).shape == (2, 1)


@pytest.mark.parametrize("shape", SHAPES)
def test_complement_completes_the_space(shape):
    V = geometry.orthonormal(np.random.default_rng(5).standard_normal(shape))
    W = geometry.complement(V)
    assert W.shape == (shape[0], shape[0] - shape[1])
    assert_orthonormal_rows(np.concatenate([V, W], axis=1).T)


@pytest.mark.parametrize(
    "angles",
    [
        [1e-12],
        [np.pi / 2],
        [1.0, 1e-9],
        [np.pi / 2, 1e-10],  # scipy 1.17's subspace_angles returns 0 for the second
        [1.5, 0.8, 0.7, 1e-5, 1e-14, 0.0],
        [np.pi / 2 - 1e-9, 1e-9],
    ],
)
def test_principal_angles_large_and_tiny_together(angles):
    A, B = pair_with_angles(np.random.default_rng(6), angles, 15)
    for found in (geometry.principal_angles(A, B), geometry.principal_angles(B, A)):
        np.testing.assert_allclose(found, angles, rtol=1e-6, atol=2e-15)


def test_principal_angles_of_different_dimensions():
    I = np.eye(4)  # noqa: E741
    B = np.stack([np.cos(0.3) * I[0] + np.sin(0.3) * I[3]], axis=1)
    np.testing.assert_allclose(geometry.principal_angles(I[:, :3], B), [0.3])
    np.testing.assert_allclose(geometry.principal_angles(B, I[:, :3]), [0.3])
    np.testing.assert_allclose(geometry.principal_angles(I, B), [0], atol=1e-15)
    assert geometry.principal_angles(I[:, :0], B).shape == (0,)


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    k=st.integers(0, 5),
    exponent=st.floats(-14, 0),
)
def test_sine_of_largest_angle_is_that_of_the_angles(seed, k, exponent):
    rng = np.random.default_rng(seed)
    angles = np.sort(10**exponent * rng.random(k))[::-1]
    A, B = pair_with_angles(rng, angles, 12)
    expected = np.sin(angles[0]) if k else 0.0
    np.testing.assert_allclose(
        geometry.sine_of_largest_angle(A, B), expected, rtol=1e-6, atol=2e-15
    )
    # complements make the same largest angle
    np.testing.assert_allclose(
        geometry.sine_of_largest_angle(geometry.complement(A), geometry.complement(B)),
        expected,
        rtol=1e-6,
        atol=2e-15,
    )


def test_sine_of_largest_angle_needs_equal_shapes():
    with pytest.raises(ValueError, match=r"\(3, 1\) and \(3, 2\)"):
        geometry.sine_of_largest_angle(np.eye(3)[:, :1], np.eye(3)[:, :2])


def test_as_generator_is_reproducible():
    for seed in (7, np.int64(7), np.uint8(7)):
        assert geometry.as_generator(seed).integers(2**60) == np.random.default_rng(7).integers(
            2**60
        )
    rng = np.random.default_rng(0)
    assert geometry.as_generator(rng) is rng
    assert geometry.as_generator(None).random() != geometry.as_generator(None).random()


def test_as_generator_draws_from_a_random_state():
    def draws(state):
        return [geometry.as_generator(state).integers(2**60) for _ in range(2)]

    first = draws(np.random.RandomState(3))
    again = draws(np.random.RandomState(3))
    assert first == again
    assert first[0] != first[1]


@pytest.mark.parametrize("wrong", ["0", 1.0, True, [1, 2], np.random])
def test_as_generator_refuses_other_types(wrong):
    with pytest.raises(TypeError, match="random_state must be None, an int"):
        geometry.as_generator(wrong)


def test_as_generator_refuses_negative_seeds():
    with pytest.raises(ValueError, match="got -1"):
        geometry.as_generator(-1)


def double_factorial(k):
    return math.prod(range(k, 0, -2))


@pytest.mark.parametrize("d", [*range(1, 41), 99, 100, 199, 200, 201, 202, 301])
def test_the_average_height_is_the_double_factorial_of_the_paper(d):
    ratio = float(Fraction(double_factorial(d - 2), double_factorial(d - 1)))
    expected = ratio if d % 2 else ratio * 2 / math.pi
    assert geometry.average_height(d) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("d", [1_001, 20_000, 999_999, 1_000_000])
def test_the_average_height_keeps_its_digits_in_many_dimensions(d):
    # c_{d+2} = c_d d/(d+1), with an exactly rounded sum of logarithms
    start = 1 if d % 2 else 2
    logs = math.fsum(math.log1p(-1 / (j + 1)) for j in range(start, d, 2))
    expected = math.exp(logs) * (1 if d % 2 else 2 / math.pi)
    assert geometry.average_height(d) == pytest.approx(expected, rel=1e-14)


def test_the_average_height_is_a_mean_over_the_sphere(seed):
    u = np.random.default_rng(seed).standard_normal((100_000, 5))
    heights = np.abs(u[:, 0]) / np.linalg.norm(u, axis=1)
    assert geometry.average_height(5) == pytest.approx(heights.mean(), abs=6 * heights.std() / 316)


def test_the_average_height_far_out():
    d = 10**9
    expected = math.sqrt(2 / (math.pi * d)) * (1 + 1 / (4 * d))
    assert geometry.average_height(d) == pytest.approx(expected, rel=1e-14)

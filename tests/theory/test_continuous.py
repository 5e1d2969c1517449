import numpy as np
import pytest

from helpers import assert_same_subspace
from perpend.exceptions import InputError
from perpend.geometry import orthonormal, random_directions
from perpend.theory import (
    Schedule,
    average_height,
    continuous_objective,
    continuous_psgm,
    continuous_values,
    projected_starts,
    start_tangents,
    theorem1,
)


def normals_and_starts(D, c, k, seed):
    rng = np.random.default_rng(seed)
    return orthonormal(rng.standard_normal((D, c))), random_directions(rng, D, k)


def test_the_objective_is_the_mean_over_uniform_rows(seed):
    normals, B = normals_and_starts(6, 2, 4, seed)
    rng = np.random.default_rng(seed + 100)
    n, p = 50_000, 0.3
    outliers = random_directions(rng, 6, n).T
    inside = rng.standard_normal((n, 6))
    inside -= inside @ normals @ normals.T
    inliers = inside / np.linalg.norm(inside, axis=1, keepdims=True)
    heights = p * np.abs(outliers @ B) + (1 - p) * np.abs(inliers @ B)
    error = heights.std(axis=0) / np.sqrt(n)
    assert np.all(np.abs(heights.mean(axis=0) - continuous_objective(B, normals, p)) < 5 * error)


def test_the_objective_grows_with_the_norm_and_is_least_in_the_complement():
    normals, B = normals_and_starts(5, 2, 50, 0)
    f = continuous_objective(B, normals, 0.4)
    np.testing.assert_allclose(continuous_objective(3 * B, normals, 0.4), 3 * f, rtol=1e-13)
    lowest = continuous_objective(normals, normals, 0.4)
    np.testing.assert_allclose(lowest, 0.4 * average_height(5), rtol=1e-13)
    assert np.all(f > lowest[0])


def test_the_limit_is_the_projection_of_the_start(seed):
    normals, B0 = normals_and_starts(8, 3, 12, seed)
    values = continuous_values(8, 3, outlier_share=0.7)
    conditions = theorem1(values, start_tangents(B0, normals))
    assert conditions.holds  # Lemma 3: in the limit every start outside S is inside the cone
    schedule = conditions.schedule(beta=0.5)
    steps = schedule.steps(schedule.K0 + 45 * schedule.K_star)
    run = continuous_psgm(B0, normals, 0.7, steps=steps)
    limit = projected_starts(B0, normals)
    np.testing.assert_allclose(run.B, limit, atol=1e-11)
    np.testing.assert_allclose(np.linalg.norm(limit, axis=0), 1, atol=1e-14)
    # Theorem 1's bound on the way, and Theorem 5 at the end
    bound = conditions.angle_bound(schedule, np.arange(len(steps) + 1))
    assert np.all(run.tangents <= bound * (1 + 1e-9))
    assert_same_subspace(orthonormal(run.B, rtol=1e-8).T, normals.T, tol=1e-9)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_the_angle_follows_a_scalar_map(share, seed):
    normals, B0 = normals_and_starts(6, 2, 5, seed)
    mu = np.random.default_rng(seed).uniform(0, 1.5, 40)
    run = continuous_psgm(B0, normals, share, steps=mu)
    tangent = start_tangents(B0, normals)
    for k in range(40):
        a = mu[k] * (1 - share) * average_height(4) / (1 - mu[k] * share * average_height(6))
        tangent = np.abs(tangent - a * np.sqrt(1 + tangent**2))  # |tan - a / cos|
        np.testing.assert_allclose(run.tangents[k + 1], tangent, rtol=1e-7, atol=1e-9)


def test_the_projection_onto_the_complement_never_turns(seed):
    normals, B0 = normals_and_starts(7, 3, 6, seed)
    steps = np.random.default_rng(seed).uniform(0, 2, (30, 6))
    run = continuous_psgm(B0, normals, 0.5, steps=steps)
    np.testing.assert_allclose(
        projected_starts(run.B, normals), projected_starts(B0, normals), atol=1e-12
    )


def test_starts_in_the_complement_and_in_the_subspace_stay_there():
    normals = np.eye(4)[:, 2:]
    steps = Schedule(0.5, 0.5, 3, 2).steps(20)
    run = continuous_psgm(np.eye(4)[:, [0, 3]], normals, 0.5, steps=steps)
    np.testing.assert_allclose(np.abs(run.B), np.eye(4)[:, [0, 3]], atol=1e-15)
    assert np.all(np.isinf(run.tangents[:, 0]))
    assert np.all(run.tangents[:, 1] == 0)


def test_a_fixed_schedule_leaves_wider_starts_on_their_way():
    """Lemma 3's "almost surely" does not hold for a schedule that is fixed beforehand."""
    normals, values = np.eye(10)[:, 5:], continuous_values(10, 5, outlier_share=0.7)
    tangents = np.logspace(0, 8, 9)
    conditions = theorem1(values, tangents)
    assert np.all(conditions.inside)  # the cone is as wide as can be, and yet:
    flat = conditions.least_flat(conditions.step_bound)
    np.testing.assert_allclose(flat / tangents, flat[0], rtol=1e-12)  # K-diamond has no bound

    schedule = theorem1(values, np.array([5.0])).schedule()
    ends = []
    for plateaus in (45, 100, 400):
        steps = schedule.steps(schedule.K0 + plateaus * schedule.K_star)
        B0 = np.eye(10)[:, [0, 0]] * [5.0, 1e5] + normals[:, [0, 1]]
        ends.append(continuous_psgm(B0, normals, 0.7, steps=steps).tangents[-1])
    assert np.all(np.array(ends)[:, 0] < 1e-10)  # the start that it was made for arrives
    np.testing.assert_allclose(np.array(ends)[:, 1], 8.17, atol=0.01)  # the other one never


@pytest.mark.parametrize("c", [0, 4])
def test_no_complement_and_no_subspace(c):
    normals, B0 = np.eye(4)[:, :c], np.eye(4)[:, :2]
    run = continuous_psgm(B0, normals, 0.5, steps=np.full(5, 0.1))
    np.testing.assert_allclose(run.B, B0, atol=1e-15)


def test_what_is_wrong_is_said():
    B0, normals = np.eye(3)[:, :1], np.eye(3)[:, 2:]
    with pytest.raises(InputError, match="turns the iterate round"):
        continuous_psgm(B0, normals, 0.5, steps=np.array([4.0]))  # 1 / (p c_D) = 4
    with pytest.raises(InputError, match=r"outlier_share=1\.5"):
        continuous_objective(B0, normals, 1.5)
    with pytest.raises(InputError, match="none of them zero"):
        continuous_psgm(np.zeros((3, 1)), normals, 0.5, steps=np.array([0.1]))
    with pytest.raises(InputError, match="one for each iteration and start"):
        continuous_psgm(B0, normals, 0.5, steps=np.full((3, 2), 0.1))

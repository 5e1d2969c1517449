import math

import numpy as np
import pytest

from perpend.datasets import make_subspace
from perpend.exceptions import InputError
from perpend.geometry import random_directions
from perpend.theory import (
    Schedule,
    Values,
    assumption1,
    cone_probability,
    discrete_psgm,
    start_tangents,
    statistics,
    theorem1,
    widest_start,
)

FRIENDLY = Values(10_000, 40_001, 5, 10, 0.3662, 0.3821, 0.2550, 0.2629, 0.0208, 0.0082)
HARD = Values(1500, 3500, 190, 200, 0.0341, 0.0801, 0.0415, 0.0711, 0.0302, 0.0194)


def test_the_formulas_by_hand():
    E = 10_000 * 0.0208 + 40_001 * 0.0082
    result = theorem1(FRIENDLY, np.array([0.5, 2.0, 7.0]))
    assert result.push == pytest.approx(E)
    assert result.cone == pytest.approx(3662 / E)
    assert result.step_bound == pytest.approx(1 / (4 * 40_001 * 0.2629))
    np.testing.assert_array_equal(result.inside, [True, True, False])
    expected = [0.5 / (1e-6 * (3662 - E)), 2 / (1e-6 * (3662 - 2 * E)), math.inf]
    np.testing.assert_allclose(result.least_flat(1e-6), expected, rtol=1e-12)
    K_star = 1 / (math.sqrt(2) * 0.7 * result.step_bound * (3662 - E))
    assert result.least_plateau(0.7) == pytest.approx(K_star, rel=1e-12)


def test_the_promised_angle_by_hand():
    result = theorem1(FRIENDLY, np.array([0.5, 2.0]))
    mu0 = 0.8 * result.step_bound
    bound = result.angle_bound(Schedule(mu0, 0.5, K0=10, K_star=4), np.arange(20))
    flat = 0.8 / math.sqrt(2)
    late = [flat * 0.5 ** math.floor((k - 10) / 4) for k in range(10, 20)]
    np.testing.assert_allclose(bound[:, 0], [flat] * 10 + late, rtol=1e-12)
    np.testing.assert_allclose(bound[:, 1], [2.0] * 10 + late, rtol=1e-12)


def test_a_wide_start_needs_a_finite_flat_phase_exactly_inside_the_cone():
    cone = theorem1(FRIENDLY, np.zeros(1)).cone
    inside, outside = theorem1(FRIENDLY, np.array([cone * (1 - 1e-9), cone * (1 + 1e-9)])).inside
    assert inside
    assert not outside
    flat = theorem1(FRIENDLY, np.array([cone * (1 - 1e-9), cone * (1 + 1e-9)])).least_flat(1e-6)
    assert np.isfinite(flat[0])
    assert np.isinf(flat[1])


def test_the_setting_of_the_paper_is_outside_the_theorem():
    result = theorem1(HARD, np.array([math.sqrt(19)]))
    assert not result.dominates
    assert not result.holds
    assert math.degrees(math.atan(result.cone)) == pytest.approx(24.3, abs=0.1)
    assert math.isinf(result.least_plateau(0.5))
    with pytest.raises(InputError, match="no schedule is admissible"):
        result.schedule()


def test_assumption_1_asks_for_every_start():
    assert assumption1(FRIENDLY, np.array([0.1, 6.8]))
    assert not assumption1(FRIENDLY, np.array([0.1, 6.9]))


@pytest.mark.parametrize("sizes", [(2000, 1000, 3, 1), (1500, 1500, 4, 2), (3000, 6000, 6, 4)])
@pytest.mark.parametrize("share", [1.0, 0.3])
def test_the_angle_is_never_larger_than_promised(sizes, share, seed):
    N, M, D, c = sizes
    data = make_subspace(N, M, n_features=D, codimension=c, random_state=seed)
    X_in, X_out, normals = data.X[data.y == 1], data.X[data.y == -1], data.normals.T
    found = statistics(X_in, X_out, data.components.T, random_state=seed)
    B0 = random_directions(np.random.default_rng(seed), D, 30)
    tangents = start_tangents(B0, normals)
    wide = theorem1(found.estimated, tangents)
    B0 = B0[:, wide.inside]
    result = theorem1(found.estimated, tangents[wide.inside])
    assert result.holds
    assert B0.shape[1] >= 10
    schedule = result.schedule(beta=0.6, mu0=share * result.step_bound)
    steps = schedule.steps(min(schedule.K0, 1500) + 12 * schedule.K_star)
    run = discrete_psgm(X_in, X_out, B0, normals, steps=steps)
    bound = result.angle_bound(schedule, np.arange(len(steps) + 1))
    assert np.all(run.tangents <= bound * (1 + 1e-9))
    if len(steps) > schedule.K0 + schedule.K_star:
        assert np.max(bound[-1]) < 0.01  # the promise is worth something


def test_proven_values_promise_less():
    data = make_subspace(2000, 1000, n_features=3, codimension=1, random_state=0)
    X_in, X_out = data.X[data.y == 1], data.X[data.y == -1]
    found = statistics(X_in, X_out, data.components.T, random_state=0)
    start = np.array([0.5])
    estimated, certified = theorem1(found.estimated, start), theorem1(found.certified, start)
    assert certified.holds
    assert certified.cone < estimated.cone
    assert certified.step_bound <= estimated.step_bound
    assert certified.least_flat(1e-5)[0] > estimated.least_flat(1e-5)[0]
    assert certified.least_plateau(0.5) > estimated.least_plateau(0.5)


def test_the_step_bound_is_safe_where_the_least_height_is_only_bounded():
    loose = FRIENDLY._replace(n_outliers=1, c_x_min=0.2, c_x_min_most=0.37)
    assert theorem1(loose, np.ones(1)).step_bound == pytest.approx(1 / (4 * 3700))


def test_how_likely_a_random_start_is_inside(seed):
    values = FRIENDLY._replace(eta_o=0.06)
    B = random_directions(np.random.default_rng(seed), 10, 40_000)
    tangents = start_tangents(B, np.eye(10)[:, 5:])
    share = np.mean(theorem1(values, tangents).inside)
    assert 0.2 < share < 0.8
    assert cone_probability(values) == pytest.approx(share, abs=5 * 0.5 / 200)


@pytest.mark.parametrize(("d", "D"), [(1, 2), (5, 10), (190, 200)])
def test_how_wide_random_starts_are(d, D):
    values = FRIENDLY._replace(dimension=d, n_features=D)
    tangent = widest_start(values, 8, 0.9)
    # a cone of just that width holds one start with probability 0.9^(1/8)
    cone = values._replace(n_outliers=0, c_x_min=1.0, eta_x=1 / tangent)
    assert cone_probability(cone) == pytest.approx(0.9 ** (1 / 8), rel=1e-9)


def test_no_room_for_an_angle():
    everything = FRIENDLY._replace(dimension=10)
    assert cone_probability(everything) == 0
    assert math.isinf(widest_start(everything, 3, 0.9))
    origin = FRIENDLY._replace(dimension=0)
    assert cone_probability(origin) == 1
    assert widest_start(origin, 3, 0.9) == 0


def test_without_push_the_cone_is_everything_and_without_pull_nothing():
    quiet = FRIENDLY._replace(eta_x=0.0, eta_o=0.0)
    assert theorem1(quiet, np.array([1e9])).holds
    assert not theorem1(quiet, np.array([np.inf])).holds
    assert cone_probability(quiet) == 1
    empty = quiet._replace(n_inliers=0)
    assert not theorem1(empty, np.zeros(1)).holds


def test_the_schedule_cuts_when_the_paper_says():
    schedule = Schedule(mu0=np.array([1.0, 3.0]), beta=0.5, K0=4, K_star=3)
    expected = [
        mu0 if k < 4 else mu0 * 0.5 ** (math.floor((k - 4) / 3) + 1)
        for k in range(15)
        for mu0 in (1.0, 3.0)
    ]
    np.testing.assert_array_equal(schedule.steps(15).ravel(), expected)


@pytest.mark.parametrize(("beta", "factor"), [(1.0, 1), (0.5, 1.01), (0.5, 0)])
def test_a_schedule_outside_the_theorem_is_refused(beta, factor):
    result = theorem1(FRIENDLY, np.ones(1))
    with pytest.raises(InputError, match="at most mu'"):
        result.schedule(beta=beta, mu0=factor * result.step_bound)

import math

import numpy as np
import pytest

from perpend.datasets import make_subspace
from perpend.exceptions import InputError
from perpend.geometry import random_directions
from perpend.theory import (
    Schedule,
    Values,
    average_height,
    best_schedule,
    complement_error,
    continuous_values,
    corrected_theorem7,
    delta_bound,
    discrete_psgm,
    growth,
    outlier_error_bound,
    projected_singular_bound,
    start_singular_bound,
    statistics,
    theorem1,
    theorem7,
)

FRIENDLY = Values(10_000, 40_001, 5, 10, 0.3662, 0.3821, 0.2550, 0.2629, 0.0208, 0.0082)


def test_the_formulas_by_hand():
    N, M, c_D, beta, K0, K_star = 10_000, 40_001, average_height(10), 0.2, 300, 40
    mus, kappas, ratios = [1e-6, 5e-7], [], []
    for mu in mus:
        q = 1 + mu * (N * (0.0208 + 0.3821) + M * (0.0082 + 0.2629))
        r = q / (1 - mu * M * c_D) * beta ** (1 / K_star)
        ratios.append(r)
        kappas.append(M * mu / (beta ** (K0 / K_star) * (1 - r) * (1 - mu * M * c_D)))
    result = growth(FRIENDLY, Schedule(np.array(mus), beta, K0, K_star))
    np.testing.assert_allclose(result.ratio, ratios, rtol=1e-12)
    assert result.kappa == pytest.approx(max(kappas), rel=1e-9)
    e = 0.0082 + max(0.2629 - c_D, c_D - 0.2550)
    assert outlier_error_bound(FRIENDLY) == pytest.approx(e)
    bound = delta_bound(FRIENDLY, Schedule(np.array(mus), beta, K0, K_star), 9)
    assert bound == pytest.approx(3 * max(kappas) * e, rel=1e-9)


@pytest.mark.parametrize("mu0", [1e-8, 1e-6, 1e-5])
@pytest.mark.parametrize("K_star", [1, 17, 500])
def test_kappa_is_finite_exactly_below_the_bound_on_beta(mu0, K_star):
    bound = growth(FRIENDLY, Schedule(mu0, 0.5, 10, K_star)).beta_bound
    below = growth(FRIENDLY, Schedule(mu0, 0.999 * bound, 10, K_star))
    above = growth(FRIENDLY, Schedule(mu0, min(1.001 * bound, 1 - 1e-12), 10, K_star))
    assert np.all(below.ratio < 1)
    assert math.isfinite(below.kappa)
    assert np.all(above.ratio >= 1) or bound > 0.999
    assert math.isinf(above.kappa) or bound > 0.999


def test_delta_stays_below_its_bound(seed):
    for more in range(8):
        data = make_subspace(200, 60, n_features=5, codimension=2, random_state=100 * seed + more)
        X_in, X_out = data.X[data.y == 1], data.X[data.y == -1]
        found = statistics(
            X_in, X_out, data.components.T, n_starts=5, n_samples=50, random_state=0
        ).certified
        schedule = Schedule(mu0=2e-4, beta=0.5, K0=20 * more, K_star=5)
        bound = delta_bound(found, schedule, 12)
        assert math.isfinite(bound)
        B0 = random_directions(np.random.default_rng(more), 5, 12)
        steps = schedule.steps(schedule.K0 + 60)
        run = discrete_psgm(X_in, X_out, B0, data.normals.T, steps=steps)
        assert np.linalg.norm(run.delta, 2) <= bound


def test_theorem_7_is_one_about_limits():
    # Even with the best steps of a friendly setting the right side is thousands of times too large.
    conditions = theorem1(FRIENDLY, np.ones(1))
    schedule = best_schedule(FRIENDLY, conditions)
    assert conditions.least_flat(schedule.mu0)[0] <= schedule.K0
    assert schedule.K_star >= conditions.least_plateau(schedule.beta)
    assert schedule.mu0 <= conditions.step_bound
    result = theorem7(FRIENDLY, schedule, 8, C1=0.0, C2=1.0, eps=0.0)
    assert result.growth.kappa == pytest.approx(1.1e5, rel=0.05)
    assert result.right == pytest.approx(4e3, rel=0.1)
    assert not result.holds
    # ... and in the limit it holds
    limit = continuous_values(10, 5, outlier_share=0.8)
    schedule = theorem1(limit, np.ones(1)).schedule()
    result = theorem7(limit, schedule, 2, C1=1.0, C2=1.0, eps=1.0)
    assert result.right == 0
    assert result.holds
    assert result.probability == pytest.approx(1 - 2 / math.e)


def test_few_outliers_satisfy_theorem_7():
    values = FRIENDLY._replace(n_outliers=1, c_o_min=0.0, c_o_max=1.0, eta_o=1.0)
    conditions = theorem1(values, np.array([0.5]))
    result = theorem7(values, best_schedule(values, conditions), 2, C1=1.0, C2=1.0, eps=0.1)
    assert 0 < result.right < result.left < 1
    assert result.holds


def test_no_other_schedule_is_much_better():
    conditions = theorem1(FRIENDLY, np.ones(1))
    best = growth(FRIENDLY, best_schedule(FRIENDLY, conditions)).kappa
    for mu0 in conditions.step_bound * np.logspace(-5, 0, 16):
        K0 = math.ceil(conditions.least_flat(mu0)[0])
        for beta in np.linspace(0.05, 0.95, 10):
            for factor in np.logspace(0, 5, 11):
                K_star = math.ceil(factor * conditions.least_plateau(beta))
                assert growth(FRIENDLY, Schedule(mu0, beta, K0, K_star)).kappa > 0.98 * best


def test_at_the_largest_step_no_beta_satisfies_both_theorems():
    conditions = theorem1(FRIENDLY, np.ones(1))
    for beta in np.linspace(0.01, 0.99, 50):
        schedule = conditions.schedule(beta=beta)
        assert math.isinf(growth(FRIENDLY, schedule).kappa)


def test_singular_values_of_random_starts(seed):
    rng = np.random.default_rng(seed)
    for k in (10, 40):
        lower = start_singular_bound(k, 100, C1=1.0, eps=2.0)
        for _ in range(30):
            B0 = random_directions(rng, 100, k)
            assert np.linalg.svd(B0, compute_uv=False)[-1] > lower
    # more starts: harder for the paper's condition, easier for the corrected one
    assert start_singular_bound(40, 100, C1=1, eps=1) < start_singular_bound(10, 100, C1=1, eps=1)
    few, many = (projected_singular_bound(k, 5, 100, failure=0.1) for k in (10, 40))
    assert few < many


@pytest.mark.parametrize("failure", [0.5, 0.05])
def test_the_bound_on_projected_starts_holds_as_often_as_it_promises(failure, seed):
    rng, k, c, D = np.random.default_rng(seed), 100, 3, 200
    bound = projected_singular_bound(k, c, D, failure=failure)
    draws = [random_directions(rng, D, k)[:c] for _ in range(200)]
    least = np.array([np.linalg.svd(B, compute_uv=False)[-1] for B in draws])
    assert np.mean(least > bound) >= 1 - failure
    assert bound > np.median(least) / 3  # and it says something


def test_the_part_of_the_error_in_the_complement(seed):
    rng = np.random.default_rng(seed)
    X_out = random_directions(rng, 6, 300).T
    V = np.linalg.qr(rng.standard_normal((6, 2)))[0]
    error = complement_error(X_out, V, n_samples=50, random_state=0)
    B = random_directions(rng, 6, 2000)
    e = X_out.T @ np.sign(X_out @ B) / 300 - average_height(6) * B
    across = np.linalg.norm(V.T @ e, axis=0)
    assert np.quantile(across, 0.99) < error.value <= error.certified
    assert np.max(across) <= error.certified
    assert np.max(np.linalg.norm(e, axis=0)) > error.value  # less than the whole error


def test_the_corrected_theorem_holds_in_the_limit_and_never_without_spanning_starts():
    limit = continuous_values(10, 5, outlier_share=0.8)
    schedule = theorem1(limit, np.ones(1)).schedule()
    result = corrected_theorem7(limit, schedule, 60, failure=0.01)
    assert result.right == 0
    assert result.holds
    assert result.probability == 0.99
    assert not corrected_theorem7(limit, schedule, 4, failure=0.01).holds  # c - 1 starts
    # The smaller error, across, makes the right side smaller in the same ratio.
    best = best_schedule(FRIENDLY, theorem1(FRIENDLY, np.ones(1)))
    whole = corrected_theorem7(FRIENDLY, best, 60)
    half = corrected_theorem7(FRIENDLY, best, 60, error=outlier_error_bound(FRIENDLY) / 2)
    assert half.right == pytest.approx(whole.right / 2)
    assert whole.right == pytest.approx(delta_bound(FRIENDLY, best, 60))


def test_what_is_wrong_is_said():
    with pytest.raises(InputError, match="M c_D"):
        growth(FRIENDLY, Schedule(1.0, 0.5, 1, 1))
    outside = theorem1(FRIENDLY, np.array([100.0]))
    with pytest.raises(InputError, match="no schedule is admissible"):
        best_schedule(FRIENDLY, outside)

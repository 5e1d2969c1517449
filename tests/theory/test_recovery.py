import math

import numpy as np
import pytest

from helpers import mostly_slow
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
    spans_complement,
    start_singular_bound,
    start_tangents,
    statistics,
    theorem1,
    theorem7,
    widest_start,
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


def test_the_bound_of_version_0_1_by_its_constants():
    with pytest.warns(FutureWarning, match=r"no parameter C1 or eps any more: give failure"):
        bound = projected_singular_bound(40, 5, 100, C1=2.0, eps=0.5)
    assert bound == pytest.approx((math.sqrt(40) - 2 * math.sqrt(5) - 0.5) / 10)


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


class Few:
    """The corrected theorem for a few outliers about a line or a plane, all values certified."""

    failure = 0.05  # of the bound on the starts, and once more that one of them is wider

    def __init__(self, seed, c, n_inliers, n_outliers, k):
        data = make_subspace(n_inliers, n_outliers, n_features=30, codimension=c, random_state=seed)
        self.rows = data.X[data.y == 1], data.X[data.y == -1]
        self.normals, self.k = data.normals.T, k
        found = statistics(*self.rows, data.components.T, random_state=seed).certified
        error = complement_error(self.rows[1], self.normals, random_state=seed).worst
        self.widest = widest_start(found, k, 1 - self.failure)
        self.conditions = theorem1(found, np.array([self.widest]))
        self.schedule = best_schedule(found, self.conditions, least_size=0.1)
        self.result = corrected_theorem7(found, self.schedule, k, failure=self.failure, error=error)
        self.promised = self.result.probability - self.failure

    def run(self, B0, plateaus=8):
        steps = self.schedule.steps(self.schedule.K0 + plateaus * self.schedule.K_star)
        return discrete_psgm(*self.rows, B0, self.normals, steps=steps)

    def spans(self, B):
        """Whether all columns are normals, and together they span the complement."""
        s = np.linalg.svd(B, compute_uv=False)
        c = self.normals.shape[1]
        return (
            len(s) >= c and s[c - 1] > 0.01 * s[0] and start_tangents(B, self.normals).max() < 1e-3
        )


FEW = [(29, 1000, 1, 116), (29, 1000, 3, 116), (28, 3000, 3, 116)]  # c, N, M, k


@pytest.mark.parametrize("given", mostly_slow(FEW, FEW[0]))
def test_the_corrected_theorem_holds_for_finitely_many_rows_and_keeps_its_promise(given, seed):
    case = Few(seed, *given)
    assert case.conditions.holds
    assert case.result.holds
    assert 0 < case.result.right < case.result.left  # not only in the limit
    assert case.promised == pytest.approx(0.9)
    rng = np.random.default_rng(1000 + seed)
    spanned, draws = 0, 20
    for _ in range(draws):
        B0 = random_directions(rng, 30, case.k)
        run = case.run(B0)
        sides = spans_complement(B0, run.delta, case.normals)
        as_promised = start_tangents(B0, case.normals).max() < case.widest
        if as_promised and sides.singular_value > case.result.left:
            assert 0 < sides.perturbation < case.result.right
            assert case.spans(run.B)
        spanned += case.spans(run.B)
    assert spanned >= case.promised * draws


def test_the_corrected_theorem_does_not_hold_where_it_must_not():
    # fewer starts than normals: all are normals, and they can't span
    few = Few(0, 29, 1000, 3, 28)
    assert few.result.left < 0 < few.result.right
    assert not few.result.holds
    B0 = random_directions(np.random.default_rng(0), 30, 28)
    end = few.run(B0).B
    assert start_tangents(end, few.normals).max() < 1e-3
    assert not few.spans(end)
    # more outliers: the bound on what they add is too large, though the starts are spread as before
    right = [Few(0, 29, 1000, n_outliers, 116).result.right for n_outliers in (1, 3, 30)]
    assert right == sorted(right)
    assert not Few(0, 29, 1000, 30, 116).result.holds
    # outliers that outweigh the inliers: no schedule is admissible
    with pytest.raises(InputError, match="no schedule is admissible"):
        Few(0, 29, 30, 1000, 116)


def test_short_schedules_are_hardly_worse_than_the_best():
    case = Few(0, 28, 3000, 3, 116)
    found = statistics(*case.rows, np.linalg.svd(case.normals)[0][:, 28:], random_state=0).certified
    best = best_schedule(found, case.conditions)
    assert best.K0 > 1000 * case.schedule.K0
    kappa, least = (growth(found, schedule).kappa for schedule in (case.schedule, best))
    assert least <= kappa < 1.1 * least


def test_what_is_wrong_is_said():
    with pytest.raises(InputError, match="M c_D"):
        growth(FRIENDLY, Schedule(1.0, 0.5, 1, 1))
    outside = theorem1(FRIENDLY, np.array([100.0]))
    with pytest.raises(InputError, match="no schedule is admissible"):
        best_schedule(FRIENDLY, outside)
    with pytest.raises(InputError, match="least_size=0; expected above 0"):
        best_schedule(FRIENDLY, outside, least_size=0)

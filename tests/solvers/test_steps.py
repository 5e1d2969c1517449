import numpy as np
import pytest

from perpend.kernels import l1_objective_and_gradient
from perpend.rows import as_rows
from perpend.solvers import AutoStep, DecayStep, GeometricStep, MBLSStep, step_rule
from perpend.solvers.steps import STEP_RULES, Outcome


def problem(seed, n=60, D=7, k=4):
    """Unit rows, unit directions, and the objective and subgradient there."""
    rng = np.random.default_rng(seed)
    X, B = rng.standard_normal((n, D)), rng.standard_normal((D, k))
    X, B = X / np.linalg.norm(X, axis=1, keepdims=True), B / np.linalg.norm(B, axis=0)
    f, g = as_rows(X).scan(l1_objective_and_gradient, B)[:2]
    return X, B, f, g.T


def normalised(B):
    return B / np.linalg.norm(B, axis=0)


def outcome(accepted=True, streak=1, n_iter=1, *, moved=0.1, turn=0.0, change=0.1):
    """What became of the last trial of a single start."""
    fields = (accepted, streak, n_iter, moved, turn, change)
    return Outcome(*(np.array([field]) for field in fields))


def schedule(rule, f, decisions, turns=None):
    """The step sizes that a rule makes of a list of acceptances (True) and refusals (False)."""
    mu = rule.first(np.array([f]))
    streak, n_iter, sizes = 0, 0, [mu[0]]
    for yes, turn in zip(decisions, turns or [0.0] * len(decisions), strict=True):
        streak, n_iter = streak + 1 if yes else 0, n_iter + yes
        mu = rule.following(mu, outcome(yes, streak, n_iter, turn=turn))
        sizes.append(mu[0])
    return np.array(sizes)


def test_the_objective_is_the_radial_part_of_the_subgradient(seed):
    X, B, f, g = problem(seed)
    np.testing.assert_allclose(f, np.abs(X @ B).sum(axis=0), rtol=1e-14)
    np.testing.assert_allclose(g, X.T @ np.sign(X @ B), atol=1e-13)
    np.testing.assert_allclose(np.sum(B * g, axis=0), f, rtol=1e-13)


def test_the_auto_rule_searches_along_the_unit_tangent(seed):
    _, B, f, g = problem(seed)
    v, slope = AutoStep().search(B, g)
    np.testing.assert_allclose(np.linalg.norm(v, axis=0), 1)
    np.testing.assert_allclose(np.sum(B * v, axis=0), 0, atol=1e-14)
    np.testing.assert_allclose(f * B + slope * v, g, atol=1e-13)  # g = f b + G
    np.testing.assert_allclose(slope**2 + f**2, np.sum(g * g, axis=0))


def test_the_slope_is_the_derivative_of_the_objective(seed):
    X, B, f, g = problem(seed)
    v, slope = AutoStep().search(B, g)
    mu = 1e-9  # no row changes its sign
    after = np.abs(X @ normalised(B - mu * v)).sum(axis=0)
    np.testing.assert_allclose((f - after) / mu, slope, rtol=1e-5)


def test_a_euclidean_step_below_1_over_f_is_a_tangent_step(seed):
    """b - mu g = (1 - mu f) (b - nu G) with nu = mu / (1 - mu f)."""
    _, B, f, g = problem(seed)
    v, slope = AutoStep().search(B, g)
    g_itself, squared = MBLSStep().search(B, g)
    np.testing.assert_array_equal(g_itself, g)
    np.testing.assert_allclose(squared, np.sum(g * g, axis=0))
    for fraction in (0.01, 0.5, 0.9):
        mu = fraction / f
        nu = mu / (1 - mu * f)
        tangent = normalised(B - nu * slope * v)
        np.testing.assert_allclose(normalised(B - mu * g), tangent, atol=1e-13)
        np.testing.assert_allclose(nu / (1 + nu * f), mu)  # the inverse map
    for factor in (1.1, 5.0):  # beyond 1/f: up to sign, an ascent step
        mu = factor / f
        ascent = normalised(B + mu / (mu * f - 1) * slope * v)
        np.testing.assert_allclose(normalised(B - mu * g), -ascent, atol=1e-12)


def test_a_direction_without_tangent_gradient_stays():
    b = np.array([[1.0], [0.0]])
    v, slope = AutoStep().search(b, 3 * b)
    np.testing.assert_array_equal(v, 0)
    np.testing.assert_array_equal(slope, 0)


@pytest.mark.parametrize("rule", [GeometricStep(), GeometricStep(0.1, 0, 1, 0.5)])
@pytest.mark.parametrize(("K0", "K_star"), [(None, None), (0, 4), (1, 1), (7, 3), (30, 5)])
def test_the_geometric_schedule_is_the_formula_of_the_paper(rule, K0, K_star):
    if K0 is not None:
        rule = GeometricStep(rule.mu0, K0, K_star, rule.beta)
    f = 37.0
    expected = [
        rule.mu0 / f * (1 if k < rule.K0 else rule.beta ** ((k - rule.K0) // rule.K_star + 1))
        for k in range(100)
    ]
    np.testing.assert_allclose(schedule(rule, f, [True] * 99), expected, rtol=1e-13)


def test_the_geometric_rule_accepts_everything():
    rule = GeometricStep()
    assert rule.accepts(
        np.array([5.0, np.inf]), np.ones(2), np.ones(2), np.ones(2), np.ones(2)
    ).all()


@pytest.mark.parametrize(
    ("mu", "moved", "rests"),
    [(1.0, 1e-3, False), (1.0, 1e-9, True), (1.0, np.inf, False), (1e-31, np.inf, True)],
)
def test_the_geometric_rule_rests_when_it_no_longer_moves(mu, moved, rests):
    assert GeometricStep().at_rest(np.array([mu]), outcome(moved=moved), 1e-8) == rests


def test_mbls_carries_its_step_and_never_grows(seed):
    decisions = np.random.default_rng(seed).uniform(size=60) < 0.6
    sizes = schedule(MBLSStep(), 1.0, decisions)
    assert sizes[0] == 1e-2
    np.testing.assert_array_equal(sizes[1:], sizes[:-1] * np.where(decisions, 1, 0.5))


def test_mbls_asks_for_the_decrease_of_the_releases():
    mu, slope = np.array([1e-2]), np.array([400.0])  # 1e-3 * 1e-2 * 400 = 0.004
    accepts = MBLSStep().accepts
    assert accepts(np.array([9.9959]), np.array([10.0]), mu, slope, mu)
    assert not accepts(np.array([9.9961]), np.array([10.0]), mu, slope, mu)


def test_mbls_accepts_anything_at_the_floor_and_then_rests():
    rule = MBLSStep()
    sizes = schedule(rule, 1.0, [False] * 44)
    assert sizes[-2] > rule.floor >= sizes[-1]  # 44 halvings
    for mu in sizes:  # a refusal never ends it: the trial at the floor still comes
        assert not rule.at_rest(np.array([mu]), outcome(accepted=False), 1.0)
    one = np.ones(1)
    assert rule.accepts(np.array([2.0]), one, sizes[-1:], one, one)
    assert not rule.accepts(np.array([2.0]), one, sizes[-2:-1], one, one)
    after = schedule(rule, 1.0, [False] * 44 + [True])[-1:]
    assert rule.at_rest(after, outcome(accepted=True), 1.0)
    assert not rule.at_rest(sizes[-2:-1], outcome(accepted=True), 1.0)


def test_auto_grows_again_after_patience_acceptances():
    rule = AutoStep(mu0=1.0, shrink=0.5, grow=2.0, patience=3)
    sizes = schedule(rule, 1.0, [False] * 4 + [True] * 7 + [False] + [True] * 3)
    powers = [0, -1, -2, -3, -4, -4, -4, -3, -3, -3, -2, -2, -3, -3, -3, -2]
    np.testing.assert_array_equal(sizes, 2.0 ** np.array(powers))


def test_auto_shrinks_after_a_turn_back():
    turns = [0.0, -0.6, -0.8, 1.0, -1.0]
    sizes = schedule(AutoStep(back=-0.7, patience=99), 1.0, [True] * 5, turns)
    np.testing.assert_array_equal(sizes, [1, 1, 1, 0.5, 0.5, 0.25])


def test_auto_never_grows_beyond_its_first_step():
    sizes = schedule(AutoStep(mu0=0.7, patience=2), 1.0, [True] * 20)
    np.testing.assert_array_equal(sizes, 0.7)


def test_auto_asks_for_a_share_of_the_first_order_decrease():
    rule = AutoStep(armijo=0.25)
    mu, slope, f = np.array([0.5, 0.5]), np.array([8.0, 8.0]), np.array([10.0, 10.0])
    accepted = rule.accepts(np.array([8.99, 9.01]), f, mu, slope, np.ones(2))
    np.testing.assert_array_equal(accepted, [True, False])


def test_auto_rests_when_the_step_falls_to_the_tolerance():
    mu = np.array([1e-8, 1e-9, 9e-10])
    np.testing.assert_array_equal(AutoStep().at_rest(mu, outcome(), 1e-9), [False, True, True])


def test_decay_searches_once_and_then_only_decays():
    rule = DecayStep(mu0=0.1, armijo=1e-3, shrink=0.5, beta=0.9)
    mu, slope, f = np.array([0.1]), np.array([400.0]), np.array([10.0])  # asks for 0.04
    assert not rule.accepts(np.array([9.97]), f, mu, slope, np.array([0]))
    assert rule.accepts(np.array([9.95]), f, mu, slope, np.array([0]))
    assert rule.accepts(np.array([11.0]), f, mu, slope, np.array([1]))
    sizes = schedule(rule, 1.0, [False, False, True, True, True])
    np.testing.assert_allclose(sizes, 0.1 * np.array([1, 0.5, 0.25, 0.225, 0.2025, 0.18225]))


@pytest.mark.parametrize(
    ("mu", "change", "accepted", "rests"),
    [
        (1e-2, 1e-9, True, True),
        (1e-2, 1e-7, True, False),
        (1e-2, 1e-9, False, False),
        (1e-16, 1.0, True, True),
    ],
)
def test_decay_rests_when_the_objective_does(mu, change, accepted, rests):
    what = outcome(accepted=accepted, change=change)
    assert DecayStep().at_rest(np.array([mu]), what, 1e-8) == rests


def test_first_steps_of_auto_and_mbls_do_not_depend_on_the_objective():
    for rule in (AutoStep(), MBLSStep()):
        np.testing.assert_array_equal(rule.first(np.array([1e-200, 1.0, 1e9])), rule.mu0)


@pytest.mark.parametrize("name", STEP_RULES)
def test_step_rules_have_names(name):
    assert type(step_rule(name)) is STEP_RULES[name]
    rule = STEP_RULES[name](mu0=0.125)
    assert step_rule(rule) is rule

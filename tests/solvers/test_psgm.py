"""PSGM against plain references, one start at a time, and its promises as a computation."""

import numpy as np
import pytest

from helpers import assert_same_subspace
from perpend.datasets import make_subspace
from perpend.exceptions import NumericalError
from perpend.geometry import random_directions
from perpend.rows import as_rows
from perpend.solvers import AutoStep, GeometricStep, MBLSStep, psgm, riemannian

SHAPES = [(300, 200, 20, 3, 6), (60, 60, 8, 2, 5), (40, 0, 5, 1, 3), (150, 300, 3, 1, 4)]


def problem(seed, shape=SHAPES[0], noise=0.0):
    n_in, n_out, D, c, k = shape
    data = make_subspace(n_in, n_out, n_features=D, codimension=c, noise=noise, random_state=seed)
    return data, random_directions(np.random.default_rng(seed + 1000), D, k)


def reference_mbls(X, b, max_iter):
    """The authors' rule, for one start: returns b, the number of iterations and the last step."""
    f = lambda b: np.sum(np.abs(X @ b))  # noqa: E731
    step, f_old, it = 1e-2, f(b), 0
    while step > 1e-15 and it < max_iter:
        it += 1
        g = X.T @ np.sign(X @ b)
        trial = b - step * g
        while f(trial / np.linalg.norm(trial)) > f_old - 1e-3 * step * (g @ g) and step > 1e-15:
            step *= 0.5
            trial = b - step * g
        b = trial / np.linalg.norm(trial)
        f_old = f(b)
    return b, it, step


def reference_auto(X, b, max_iter, tol=1e-9):
    """The rule of perpend, for one start: backtracking along the tangent, in angles."""

    def look(b):
        g = X.T @ np.sign(X @ b)
        G = g - b * (b @ g)
        return np.sum(np.abs(X @ b)), G / np.linalg.norm(G), np.linalg.norm(G)

    step, streak, it, (f, v, slope) = 1.0, 0, 0, look(b)
    while step > tol and it < max_iter:
        trial = (b - step * v) / np.linalg.norm(b - step * v)
        f_trial, v_trial, slope_trial = look(trial)
        if f_trial <= f - 0.1 * step * slope:
            taken, it, streak = trial - b, it + 1, streak + 1
            b, f, v, slope = trial, f_trial, v_trial, slope_trial
            if -taken @ v < -0.7 * np.linalg.norm(taken):
                step /= 2
            elif streak % 5 == 0:
                step = min(1.0, 2 * step)
        else:
            step, streak = step / 2, 0
    return b, it


def reference_geometric(X, b, rule, n_iter):
    step0 = rule.mu0 / np.sum(np.abs(X @ b))
    for k in range(n_iter):
        cuts = 0 if k < rule.K0 else (k - rule.K0) // rule.K_star + 1
        b = b - step0 * rule.beta**cuts * (X.T @ np.sign(X @ b))
        b = b / np.linalg.norm(b)
    return b


def mbls(X, B, max_iter, **how):
    return psgm(as_rows(X, **how), B, rule=MBLSStep(), max_iter=max_iter, tol=1e-9)


@pytest.mark.parametrize("noise", [0.0, 0.05])
@pytest.mark.parametrize("shape", SHAPES)
def test_mbls_equals_the_reference_in_the_first_iterations(shape, noise, seed):
    data, B = problem(seed, shape, noise)
    for max_iter in range(1, 21):
        got = mbls(data.X, B, max_iter)
        for j in range(B.shape[1]):
            b, it, step = reference_mbls(data.X, B[:, j], max_iter)
            np.testing.assert_allclose(got.B[:, j], b, rtol=0, atol=1e-10)
            if step > 1e-10:  # near the floor, rounding decides whether the objective decreased
                assert got.n_iter[j] == it


@pytest.mark.parametrize("shape", SHAPES)
def test_mbls_ends_where_the_reference_ends(shape, seed):
    """The step has run to the floor: mostly on a normal, but this rule can also get stuck."""
    data, B = problem(seed, shape)
    got = mbls(data.X, B, 5000)
    for j in range(B.shape[1]):
        b, _, step = reference_mbls(data.X, B[:, j], 5000)
        assert step <= 1e-15
        np.testing.assert_allclose(got.B[:, j], b, rtol=0, atol=1e-7)
    assert got.converged.all()
    assert np.all(got.n_iter < 5000)
    assert np.min(np.linalg.norm(data.components @ got.B, axis=0)) < 1e-8
    f = np.abs(data.X @ got.B).sum(axis=0)
    np.testing.assert_allclose(got.objective, f, rtol=1e-12, atol=1e-14)


def test_mbls_is_given_the_cap_of_the_release_by_max_iter(seed):
    data, B = problem(seed, noise=0.05)
    got = mbls(data.X, B, 4)
    np.testing.assert_array_equal(got.n_iter, 4)
    assert not got.converged.any()


def test_mbls_survives_a_step_to_the_origin():
    """Here the first step is exactly 1/f: b - g/f = 0 has no direction."""
    got = mbls(np.ones((100, 1)), np.ones((1, 1)), 50)
    np.testing.assert_array_equal(np.abs(got.B), 1)
    X = np.tile(np.eye(3)[0], (100, 1))
    got = mbls(X, np.eye(3)[:, :1], 50)
    np.testing.assert_allclose(np.linalg.norm(got.B, axis=0), 1)


@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("shape", SHAPES[:2])
def test_auto_equals_the_reference(shape, noise, seed):
    data, B = problem(seed, shape, noise)
    for max_iter in (1, 2, 5, 10, 20, 40):
        got = psgm(as_rows(data.X), B, rule=AutoStep(), max_iter=max_iter, tol=1e-9)
        for j in range(B.shape[1]):
            b, it = reference_auto(data.X, B[:, j], max_iter)
            np.testing.assert_allclose(got.B[:, j], b, rtol=0, atol=1e-8)
            assert got.n_iter[j] == it


@pytest.mark.parametrize("shape", SHAPES)
def test_geometric_equals_the_reference(shape, seed):
    data, B = problem(seed, shape)
    for rule in (GeometricStep(), GeometricStep(0.1, 0, 2, 0.8), GeometricStep(0.2, 5, 3, 0.5)):
        for n_iter in (1, 2, 7, 20):
            got = psgm(as_rows(data.X), B, rule=rule, max_iter=n_iter, tol=0.0)
            np.testing.assert_array_equal(got.n_iter, n_iter)
            for j in range(B.shape[1]):
                b = reference_geometric(data.X, B[:, j], rule, n_iter)
                np.testing.assert_allclose(got.B[:, j], b, rtol=0, atol=1e-10)


RULES = [AutoStep(), MBLSStep(), GeometricStep()]
rules = pytest.mark.parametrize("rule", RULES, ids=["auto", "mbls", "geometric"])


@rules
def test_every_start_falls_onto_a_normal(rule, seed):
    data, B = problem(seed, (300, 200, 20, 3, 12))
    got = psgm(as_rows(data.X), B, rule=rule, max_iter=2000, tol=1e-9)
    assert got.converged.all()
    np.testing.assert_allclose(np.linalg.norm(got.B, axis=0), 1, rtol=1e-13)
    assert np.max(np.abs(data.components @ got.B)) < 1e-7
    U, s, _ = np.linalg.svd(got.B)
    assert s[2] > 0.02 * s[0]
    assert s[3] < 1e-6
    assert_same_subspace(U[:, :3].T, data.normals, 1e-6)
    assert 0 <= got.resolution < 1e-6


@rules
def test_a_tiny_problem_with_a_known_normal(rule):
    X = np.array([[1.0, 0, 0], [0, 1, 0], [0.6, 0.8, 0], [0.8, -0.6, 0], [0, 0, 1]])
    b = np.array([[0.3], [-0.4], [0.8]])
    got = psgm(as_rows(X), b / np.linalg.norm(b), rule=rule, max_iter=3000, tol=1e-10)
    np.testing.assert_allclose(np.abs(got.B[:, 0]), [0, 0, 1], atol=1e-6)
    np.testing.assert_allclose(got.objective, [1.0], atol=1e-5)


@pytest.mark.parametrize("noise", [0.0, 0.1])
@rules
def test_a_start_does_not_notice_the_others(rule, noise, seed):
    data, B = problem(seed, noise=noise)
    rows = as_rows(data.X)
    few = {"rule": rule, "max_iter": 25, "tol": 1e-9}
    together = psgm(rows, B, **few)
    for j in range(B.shape[1]):
        alone = psgm(rows, B[:, j : j + 1], **few)
        np.testing.assert_allclose(together.B[:, j], alone.B[:, 0], rtol=0, atol=1e-9)
        np.testing.assert_allclose(together.objective[j], alone.objective[0], rtol=1e-9)
        assert together.n_iter[j] == alone.n_iter[0]
    reversed_ = psgm(rows, B[:, ::-1], **few)
    np.testing.assert_allclose(together.B, reversed_.B[:, ::-1], rtol=0, atol=1e-9)


@pytest.mark.parametrize("power", [-500, 500])
def test_auto_does_not_depend_on_the_scale_to_the_last_bit(power, seed, one_thread):
    data, B = problem(seed)
    X = data.X * np.random.default_rng(seed).lognormal(size=(len(data.X), 1))
    plain, scaled = (
        psgm(as_rows(Z, normalize=False), B, rule=AutoStep(), max_iter=500, tol=1e-9)
        for Z in (X, np.ldexp(X, power))
    )
    np.testing.assert_array_equal(plain.B, scaled.B)
    np.testing.assert_array_equal(plain.n_iter, scaled.n_iter)


@pytest.mark.parametrize("factor", [1e-150, 1e150])
def test_auto_does_not_depend_on_the_scale(factor, seed):
    data, B = problem(seed)
    X = data.X * np.random.default_rng(seed).lognormal(size=(len(data.X), 1))
    plain, scaled = (
        psgm(as_rows(Z, normalize=False), B, rule=AutoStep(), max_iter=500, tol=1e-9)
        for Z in (X, X * factor)
    )
    np.testing.assert_allclose(plain.B, scaled.B, rtol=0, atol=1e-8)


def test_auto_does_not_collapse_where_mbls_does(seed):
    """With noise ||G|| / f falls below sqrt(armijo) = 0.03 of MBLS, and its step collapses."""
    data, B = problem(seed, (10_000, 10_000, 4, 1, 4), noise=0.2)
    auto = psgm(as_rows(data.X), B, rule=AutoStep(), max_iter=1000, tol=1e-9)
    collapsed = mbls(data.X, B, 1000)
    slope, worse = (
        AutoStep().search(d.B, data.X.T @ np.sign(data.X @ d.B)).slope / d.objective
        for d in (auto, collapsed)
    )
    assert auto.converged.all()
    assert np.max(slope) < 0.003
    assert np.median(worse) > 0.003
    assert np.all(auto.objective <= collapsed.objective)


def test_duplicating_rows_is_doubling_their_weight(seed):
    data, B = problem(seed)
    twice = psgm(as_rows(np.vstack([data.X, data.X])), B, rule=AutoStep(), max_iter=20, tol=1e-9)
    weighted = psgm(
        as_rows(data.X, weight=np.full(len(data.X), 2.0)), B, rule=AutoStep(), max_iter=20, tol=1e-9
    )
    np.testing.assert_allclose(twice.B, weighted.B, rtol=0, atol=1e-9)
    np.testing.assert_allclose(twice.objective, weighted.objective, rtol=1e-9)


@pytest.mark.parametrize(
    "how",
    [
        {"memory_budget": 0},
        {"block_rows": 13},
        {"block_rows": 64},
        {"block_rows": 10_000},
        {"n_jobs": 3, "block_rows": 20},
    ],
    ids=str,
)
@rules
def test_the_result_does_not_depend_on_how_the_rows_are_read(rule, how, seed):
    data, B = problem(seed)
    X = 3 * data.X  # so that unit rows must be made
    plain = psgm(as_rows(X), B, rule=rule, max_iter=2000, tol=1e-9)
    got = psgm(as_rows(X, **how), B, rule=rule, max_iter=2000, tol=1e-9)
    np.testing.assert_allclose(got.B, plain.B, rtol=0, atol=1e-7)


@rules
def test_no_budget_changes_no_bit(rule, one_thread):
    data, B = problem(0)
    plain, none = (
        psgm(as_rows(3 * data.X, memory_budget=m), B, rule=rule, max_iter=200, tol=1e-9)
        for m in (2**30, 0)
    )
    for a, b in zip(plain, none, strict=True):
        np.testing.assert_array_equal(a, b)


class Recording:
    """A row source that writes down how many columns each scan was asked for."""

    def __init__(self, rows):
        self._rows, self.columns = rows, []

    def __getattr__(self, name):
        return getattr(self._rows, name)

    def scan(self, kernel, B):
        self.columns.append(B.shape[1])
        return self._rows.scan(kernel, B)


def test_starts_at_rest_leave_the_computation(seed):
    data, B = problem(seed)
    rows = Recording(as_rows(data.X))
    got = psgm(rows, B, rule=AutoStep(), max_iter=1000, tol=1e-9)
    assert got.n_evaluations == len(rows.columns)
    assert rows.columns[0] == B.shape[1]
    assert np.all(np.diff(rows.columns) <= 0)
    assert rows.columns[-1] < B.shape[1]
    # A start that has used up its iterations leaves, too.
    rows = Recording(as_rows(data.X))
    psgm(rows, B, rule=GeometricStep(), max_iter=3, tol=1e-9)
    assert rows.columns == [6, 6, 6, 6]


class OneByOne(MBLSStep):
    ahead = 1


@pytest.mark.parametrize("c", [1, 2, 3, 9])
def test_several_step_sizes_in_one_scan_are_those_of_one_after_the_other(c, seed):
    data, B = problem(seed, (300, 200, 20, 4, 9))
    V = np.linalg.qr(B[:, :c])[0]
    for way in [riemannian] + [psgm] * (c == 1):
        how = {"max_iter": 200, "tol": 1e-9}
        together = way(as_rows(data.X), V, rule=MBLSStep(), **how)
        alone = way(as_rows(data.X), V, rule=OneByOne(), **how)
        np.testing.assert_array_equal(together.n_iter, alone.n_iter)
        np.testing.assert_allclose(together.B @ together.B.T, alone.B @ alone.B.T, atol=1e-9)
        fewer = together.n_evaluations / alone.n_evaluations
        assert fewer < 0.8 if c < 9 else fewer == 1


def test_a_start_on_a_normal_stays_and_counts_as_resolved(seed):
    data, B = problem(seed)
    starts = np.hstack([data.normals.T[:, :1], B])
    got = psgm(as_rows(data.X), starts, rule=AutoStep(), max_iter=1000, tol=1e-9)
    assert abs(data.normals[0] @ got.B[:, 0]) > 1 - 1e-12
    assert got.converged.all()
    assert got.resolution < 1e-6


def test_a_start_with_nowhere_to_go_rests_at_once():
    got = psgm(as_rows(np.ones((9, 1))), np.ones((1, 2)), rule=AutoStep(), max_iter=9, tol=1e-9)
    np.testing.assert_array_equal(got.B, 1)
    np.testing.assert_array_equal(got.n_iter, 0)
    np.testing.assert_array_equal(got.objective, 9)
    assert got.converged.all()
    assert got.resolution <= 1e-9
    assert got.n_evaluations == 1


def test_single_precision_comes_as_far_as_its_digits(seed):
    data, B = problem(seed)
    rows = as_rows(data.X.astype(np.float32))
    got = psgm(rows, B, rule=AutoStep(), max_iter=1000, tol=1e-6)
    assert got.converged.all()
    assert np.max(np.abs(data.components @ got.B)) < 1e-4


def test_the_callback_can_stop_it():
    data, B = problem(0)
    heard = []

    def callback(progress):
        heard.append(progress)
        return len(heard) == 3

    got = psgm(as_rows(data.X), B, rule=AutoStep(), max_iter=99, tol=1e-9, callback=callback)
    assert [p.step for p in heard] == [1, 2, 3]
    assert {p.stage for p in heard} == {"descent"}
    assert got.n_evaluations == 4
    assert not got.converged.any()


def test_the_starts_are_not_modified():
    data, B = problem(0)
    before = B.copy()
    B.flags.writeable = False
    psgm(as_rows(data.X), B, rule=AutoStep(), max_iter=5, tol=1e-9)
    np.testing.assert_array_equal(B, before)


def test_rows_that_are_not_finite_raise():
    from perpend.rows import ArrayRows

    X = np.ones((4, 2))
    X[2, 1] = np.nan
    with np.errstate(invalid="ignore"), pytest.raises(NumericalError, match="descent"):
        psgm(ArrayRows(X), np.eye(2), rule=AutoStep(), max_iter=5, tol=1e-9)


def test_joining_puts_one_after_the_other(seed):
    data, B = problem(seed)
    rows = as_rows(data.X)
    first, second = (
        psgm(rows, part, rule=AutoStep(), max_iter=m, tol=1e-9)
        for part, m in ((B[:, :2], 1000), (B[:, 2:], 3))
    )
    both = first.join(second)
    np.testing.assert_array_equal(both.B, np.hstack([first.B, second.B]))
    for name in ("objective", "n_iter", "converged"):
        joined = np.concatenate([getattr(first, name), getattr(second, name)])
        np.testing.assert_array_equal(getattr(both, name), joined)
    assert both.resolution == max(first.resolution, second.resolution)
    assert both.n_evaluations == first.n_evaluations + second.n_evaluations

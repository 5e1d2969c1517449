"""Stacks of problems: the iterates of `psgm`, the results of `DPCP`, alone and in company."""

import subprocess
import sys
from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest
from scipy import stats

from helpers import assert_orthonormal_rows, assert_same_subspace
from perpend import DPCP
from perpend.batch import BatchSolution, dpcp_batch
from perpend.batch.decide import Problems, chances, decide, profile, reference
from perpend.batch.descent import (
    CHECK,
    Limits,
    descend,
    descend_on_device,
    first,
    step,
)
from perpend.batch.finish import (
    Groups,
    correct,
    crossing,
    finish,
    likeliest_groups,
    log_ratio,
    posterior,
    sizes,
)
from perpend.datasets import make_subspace
from perpend.exceptions import InputError
from perpend.geometry import random_directions
from perpend.rows import as_rows
from perpend.rows.stacks import Rows, directly, moments, workspace
from perpend.solvers import AutoStep, MBLSStep, psgm
from perpend.structure import Axes, Cloud
from perpend.structure.checks import beyond_ellipse, tail_excess
from perpend.structure.constants import LUCK
from perpend.structure.descents import Ranks
from perpend.structure.profile import Profile
from perpend.structure.reweighted import fit_subspace

EPS = 2.0**-52
FLOOR = 2.0**-26
RULES = [pytest.param(AutoStep(), id="auto"), pytest.param(MBLSStep(), id="mbls")]


def tensor(values, device="cpu"):
    """Return a torch tensor, or skip the test with the reason."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no CUDA device")
    return torch.as_tensor(np.array(values)).to(device)


def on_gpu(values):
    return tensor(values, "cuda")


KINDS = [
    pytest.param(np.array, id="numpy"),
    pytest.param(tensor, id="torch"),
    pytest.param(on_gpu, id="cuda", marks=pytest.mark.gpu),
]


@pytest.fixture(params=KINDS)
def kind(request):
    """A function that makes arrays of one library on one device."""
    return request.param


def host(array):
    return array.cpu().numpy() if hasattr(array, "cpu") else array


def data_sets(seed, codimensions=(1, 2, 3), shape=(120, 80, 12), noise=0.0):
    """Return data sets of equal shape, one for each codimension."""
    n_in, n_out, D = shape
    return [
        make_subspace(
            n_in, n_out, n_features=D, codimension=c, noise=noise, random_state=100 * seed + i
        )
        for i, c in enumerate(codimensions)
    ]


def stacked(data):
    return np.stack([problem.X for problem in data])


def shared_starts(p, D, k, seed=0):
    """Return the same k starts (p, k, D) for all problems."""
    return np.stack([random_directions(np.random.default_rng(seed), D, k).T] * p)


def found_normals(solution, i):
    """Return the normals of problem i as rows."""
    return host(solution.normals)[i, :, : int(solution.codimension[i])].T


def assert_same_results(a, b, tol=1e-10):
    np.testing.assert_array_equal(host(a.codimension), host(b.codimension))
    np.testing.assert_array_equal(host(a.labels), host(b.labels))
    for i in range(len(a.codimension)):
        assert_same_subspace(found_normals(a, i), found_normals(b, i), tol)


# -- descents --------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("max_iter", [1, 7, 25])
def test_iterates_are_those_of_psgm(seed, rule, max_iter):
    data = data_sets(seed)
    B = shared_starts(3, 12, 6)
    state = descend(stacked(data), B, rule, Limits(max_iter, 1e-9, EPS))
    for i, problem in enumerate(data):
        one = psgm(as_rows(problem.X), B[i].T, rule=rule, max_iter=max_iter, tol=1e-9)
        np.testing.assert_array_equal(state.n_iter[i], one.n_iter)
        np.testing.assert_allclose(state.B[i].T, one.B, rtol=0, atol=1e-11)
        np.testing.assert_allclose(state.f[i], one.objective, rtol=1e-12)


@pytest.mark.parametrize("rule", RULES)
def test_descents_end_where_psgm_ends(seed, rule, kind):
    data = data_sets(seed)
    B = shared_starts(3, 12, 6)
    state = descend(kind(stacked(data)), kind(B), rule, Limits(400, 1e-9, EPS))
    for i, problem in enumerate(data):
        one = psgm(as_rows(problem.X), B[i].T, rule=rule, max_iter=400, tol=1e-9)
        np.testing.assert_allclose(host(state.B)[i].T, one.B, rtol=0, atol=1e-7)
        # near the floor of "mbls" rounding decides about the last few
        assert np.max(np.abs(host(state.n_iter)[i] - one.n_iter)) <= 10 * isinstance(rule, MBLSStep)
    assert np.all(host(state.converged))


def test_problems_that_rest_early_do_not_change_the_others(one_thread):
    easy = make_subspace(190, 10, n_features=12, codimension=1, random_state=0).X
    hard = make_subspace(80, 120, n_features=12, codimension=3, random_state=1).X
    X = np.stack([easy, hard, easy, easy])
    limits = Limits(300, 1e-9, EPS)
    B = shared_starts(4, 12, 5)
    together = descend(X, B, AutoStep(), limits)
    alone = descend(X[1:2], B[1:2], AutoStep(), limits)
    assert together.n_iter[1].max() > 2 * together.n_iter[0].max()
    for ours, single in zip(together, alone, strict=True):
        np.testing.assert_array_equal(ours[1], single[0])


# -- the two groups --------------------------------------------------------------------------------


def known(codimension, D, n):
    return sizes(np.zeros((1, 1, D)), np.array([codimension]), np.array([n]), 2.0**-26)


@pytest.mark.parametrize(("c", "D"), [(1, 3), (1, 200), (5, 30), (12, 14)])
def test_log_ratio_is_that_of_the_two_densities(c, D):
    s = 0.05
    y = np.linspace(1e-4, 0.3, 40)[None]
    ratio = log_ratio(y, Groups(np.array([[0.5]]), np.array([[s]])), known(c, D, 100))
    direct = stats.chi2.logpdf(y / s**2, c) - 2 * np.log(s)
    direct -= stats.beta.logpdf(y, c / 2, (D - c) / 2)
    turning = 1 - s**2 * (D - c - 2)
    np.testing.assert_allclose(ratio[y < turning], direct[y < turning], rtol=1e-10, atol=1e-8)


def test_probability_never_rises_with_the_distance():
    y = np.linspace(0, 1, 1001)[None]
    for s in (1e-8, 1e-3, 0.05, 0.3):
        groups = Groups(np.array([[0.4]]), np.array([[s]]))
        u = posterior(y, np.ones_like(y), groups, known(2, 20, 1001))
        assert np.all(np.isfinite(u))
        assert np.all(np.diff(u) <= 1e-15)


@pytest.mark.parametrize(("share", "s", "c"), [(0.5, 1e-8, 3), (0.3, 0.02, 1), (0.7, 0.05, 4)])
def test_threshold_is_where_both_groups_are_as_likely(share, s, c):
    groups = Groups(np.array([[share]]), np.array([[s]]))
    J = crossing(groups, np.array([c]), 25)
    around = (J * np.array([[0.99, 1.01]])) ** 2
    below, above = posterior(around, np.ones((1, 2)), groups, known(c, 25, 9))[0]
    assert above < 0.5 < below


def test_threshold_is_zero_where_nothing_is_an_inlier():
    groups = Groups(np.array([[1e-6]]), np.array([[0.5]]))
    assert crossing(groups, np.array([10]), 12)[0] == 0


@pytest.mark.parametrize("s", [1e-6, 1e-3, 0.02])
def test_likeliest_groups_are_near_the_true_ones(seed, s):
    rng = np.random.default_rng(seed)
    near = (s * rng.standard_normal((700, 2)) ** 2 * s).sum(axis=1)
    far = rng.beta(1, 9, 900)  # two normals among 20 features
    y = rng.permutation(np.concatenate([near, far]))[None]
    groups = likeliest_groups(y, np.ones_like(y), known(2, 20, 1600))
    assert 0.35 <= groups.share[0, 0] <= 0.55
    assert s / 2 <= groups.scale[0, 0] <= 2.5 * s


def test_rows_that_a_minimiser_runs_through_are_no_group(seed):
    """As many zero distances as dimensions are there for any direction that minimises."""
    rng = np.random.default_rng(seed)
    y = np.concatenate(
        [np.zeros(19), (0.01 * rng.standard_normal(500)) ** 2, rng.beta(0.5, 9.5, 500)]
    )
    groups = likeliest_groups(y[None], np.ones((1, len(y))), known(1, 20, len(y)))
    assert 0.003 <= groups.scale[0, 0] <= 0.03


# -- the finish ------------------------------------------------------------------------------------


def test_corrections_lead_to_the_smallest_eigenvectors(seed):
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.standard_normal((15, 15)))[0]
    A = (basis * np.r_[1e-3, 2e-3, 3e-3, np.geomspace(0.5, 5, 12)]) @ basis.T
    V = np.zeros((1, 5, 15))
    V[0, :3] = np.linalg.qr(basis[:, :3] + 0.1 * rng.standard_normal((15, 3)))[0].T
    for _ in range(12):
        V, turned = correct(A[None], V)
    assert_same_subspace(V[0, :3], basis[:, :3].T, 1e-12)
    assert_orthonormal_rows(V[0, :3])
    assert not V[0, 3:].any()
    assert turned[0] < 1e-12


def finished(problem, V, eps=EPS):
    """Finish from the normals V (c, D)."""
    rows = Rows(problem.X[None], np.ones((1, len(problem.X))))
    known_sizes = sizes(rows.X, np.array([len(V)]), np.array([len(problem.X)]), 2.0**-26)
    return finish(rows, V[None], known_sizes, directly)


def test_finish_is_exact_without_noise(seed):
    problem = make_subspace(200, 200, n_features=20, codimension=3, random_state=seed)
    rng = np.random.default_rng(seed)
    near = np.linalg.qr(problem.normals.T + 0.02 * rng.standard_normal((20, 3)))[0].T
    end = finished(problem, near)
    assert_same_subspace(end.V[0], problem.normals, 1e-13)


def test_finish_with_noise_is_that_of_reweighted_least_squares(seed):
    problem = make_subspace(400, 300, n_features=15, codimension=2, noise=0.05, random_state=seed)
    end = finished(problem, problem.normals)
    other = fit_subspace(as_rows(problem.X), problem.normals.T, np.eye(15), max_iter=60)
    # the same model, here row by row and there by bins of distances
    assert_same_subspace(end.V[0], other.V.T, 2e-3)
    np.testing.assert_allclose(end.groups.scale[0, 0], other.groups.scale, rtol=0.05)
    np.testing.assert_allclose(end.groups.share[0, 0], other.groups.share, atol=0.02)


def test_moments_are_weighted_second_moments():
    rng = np.random.default_rng(0)
    X, u = rng.standard_normal((2, 30, 4)), rng.random((2, 30))
    direct = [
        sum(w * np.outer(x, x) for w, x in zip(*pair, strict=True))
        for pair in zip(u, X, strict=True)
    ]
    np.testing.assert_allclose(moments(X, u), direct, rtol=1e-12)


# -- the scales ------------------------------------------------------------------------------------


def seen_on_stack(kind, X, axes, value, n_rows=None):
    """Return what `profile` tells the host about axes (p, m, D)."""
    p, n, D = X.shape
    n_rows = np.full(p, float(n)) if n_rows is None else n_rows
    law = reference(D, axes.shape[1], FLOOR)
    rows = Rows(kind(X), kind((np.arange(n) < n_rows[:, None]).astype(float)))
    chance = chances(rows.X, law, axes.shape[1], value, n_rows)
    sizes_ = sizes(rows.X, value, n_rows, FLOOR)
    words = host(profile(rows, kind(axes), sizes_, chance, law.first_bin))
    S = law.n_scales
    return words[:, : 6 * S].reshape(p, 6, S), np.split(words[:, 6 * S :], [4, 8], axis=1)


def axes_near(problem, seed, noise=1e-3):
    """Return axes (D, D), one a row, whose first ones are nearly the normals."""
    D = problem.X.shape[1]
    rng = np.random.default_rng(seed)
    start = np.vstack([problem.normals, problem.components]) + noise * rng.standard_normal((D, D))
    return np.linalg.qr(start.T)[0].T


def test_the_profile_of_a_stack_is_that_of_each_cloud(seed, kind):
    data = data_sets(seed, (1, 3, 5), (150, 100, 9), noise=0.03)
    axes = np.stack([axes_near(problem, seed) for problem in data])
    stairs, _ = seen_on_stack(kind, stacked(data), axes, np.array([1, 3, 5]))
    for i, problem in enumerate(data):
        one = Profile(Cloud(problem.X, affine=False, floor=FLOOR))
        one.add(Axes(np.zeros(9), axes[i].T, np.ones(9)))
        at = one.c - 1, np.arange(one.cloud.n_scales)
        within = one.cloud.counts(one.seen[0]).near[len(problem.normals) - 1]
        theirs = one.c, one.T, one.local[at], one.part[at], one.share[at], within
        for a, b in zip(stairs[i], theirs, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
        assert max(one.T) > 0


def test_the_ellipse_of_a_stack_is_that_of_each_cloud(seed, kind):
    rng = np.random.default_rng(seed)
    smooth = rng.standard_normal((300, 6)) * np.array([0.2, 0.5, 0.6, 0.8, 1, 1])
    problem = make_subspace(200, 100, n_features=6, codimension=1, noise=0.02, random_state=seed)
    axes = np.stack([np.eye(6), axes_near(problem, seed)])
    X = np.stack([smooth / np.linalg.norm(smooth, axis=1)[:, None], problem.X])
    _, (below, above, spread) = seen_on_stack(kind, X, axes, np.array([1, 1]))
    for i in range(2):
        cloud = Cloud(X[i], affine=False, floor=FLOOR)
        evidence, gap = beyond_ellipse(cloud, Axes(np.zeros(6), axes[i].T, np.ones(6)), 1)
        ours = max(tail_excess(np.maximum(below[i] - 5, 0), 300), tail_excess(above[i], 300))
        if i == 0:
            ratio = np.sqrt(spread[i, 1:].min() / spread[i, 0]) * np.exp(-2 / np.sqrt(300))
            np.testing.assert_allclose(ours, evidence, rtol=1e-6)
            np.testing.assert_allclose(ratio, gap, rtol=1e-3)
        else:  # both are a few steps away from different starts, and sure that it is no ellipse
            assert min(ours, evidence) > 10 * LUCK


def test_rows_that_take_no_part_are_on_no_scale(seed, kind):
    (problem,) = data_sets(seed, (2,), (150, 100, 9), noise=0.03)
    axes, value = axes_near(problem, seed)[None], np.array([2])
    more = np.concatenate([problem.X, np.zeros((40, 9))])[None]
    plain = seen_on_stack(kind, problem.X[None], axes, value)
    padded = seen_on_stack(kind, more, axes, value, np.array([250.0]))
    for a, b in zip([plain[0], *plain[1]], [padded[0], *padded[1]], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def ranks(value, score):
    ones = np.ones(1)
    return Ranks(np.array([value]), np.array([False]), ones, ones, np.array([score]))


@pytest.mark.parametrize("rank", [1, 2, 4, 6, 10])
def test_a_wrong_number_of_normals_is_corrected(seed, rank):
    """From one normal, or from too many, the scales lead to the true number."""
    data = make_subspace(300, 200, n_features=20, codimension=4, random_state=seed)
    basis = axes_near(data, seed, 0.0)[None, :10]
    rows = Rows(data.X[None], np.ones((1, 500)))
    problems = Problems(rows, np.array([500.0]), basis, 10, FLOOR, directly)
    for score in (1.0, 0.1):
        chosen, clear = decide(problems, basis, ranks(rank, score), basis[:, 0])
        assert chosen.value[0] == 4
        assert chosen.sure[0]
        assert clear[0] == (rank == 4 and score == 1)
        assert_same_subspace(chosen.end.V[0, :4], data.normals, 1e-12)


@pytest.mark.slow
def test_more_and_more_normals_are_taken_in_where_nothing_is_seen():
    """Directions that are hardly better than chance: no rank, and no scale that shows anything."""
    data = [
        make_subspace(200, 200, n_features=80, codimension=4, random_state=seed)
        for seed in range(6)
    ]
    found = dpcp_batch(stacked(data), random_state=0)
    plain = dpcp_batch(stacked(data), random_state=0, refine=False)
    assert np.mean(plain.codimension == 4) < 0.5
    assert not np.any(found.clear)
    for i, problem in enumerate(data):
        assert_same_subspace(found_normals(found, i), problem.normals, 1e-12)


# -- the functional form ---------------------------------------------------------------------------


def test_results_are_those_of_the_estimator(seed, kind):
    data = data_sets(seed, (1, 2, 3, 5), (300, 300, 20))
    found = dpcp_batch(kind(stacked(data)), random_state=seed)
    assert np.all(host(found.clear))
    for i, problem in enumerate(data):
        model = DPCP(random_state=seed).fit(problem.X)
        assert model.confidence_ >= 0.95
        assert int(found.codimension[i]) == model.codimension_
        assert_same_subspace(found_normals(found, i), model.normals_, 1e-12)
        np.testing.assert_array_equal(host(found.labels)[i], model.labels_)


def test_results_with_noise_are_nearly_those_of_the_estimator(seed):
    data = data_sets(seed, (1, 2, 4), (400, 200, 15), noise=0.05)
    found = dpcp_batch(stacked(data), random_state=seed)
    for i, problem in enumerate(data):
        model = DPCP(random_state=seed).fit(problem.X)
        assert int(found.codimension[i]) == model.codimension_
        assert_same_subspace(found_normals(found, i), model.normals_, 3e-3)
        # rows near the threshold may fall on either side of it
        assert np.mean(found.labels[i] == model.labels_) > 0.98


@pytest.mark.parametrize("step", ["auto", "mbls"])
def test_without_refinement_it_is_the_published_algorithm(seed, step, kind):
    data = data_sets(seed, (2, 3), (200, 150, 15))
    found = dpcp_batch(
        kind(stacked(data)), n_starts=8, step=step, refine=False, max_iter=200, random_state=seed
    )
    for i, problem in enumerate(data):
        model = DPCP(n_starts=8, step=step, refine=False, max_iter=200, random_state=seed)
        model.fit(problem.X)
        assert int(found.codimension[i]) == model.codimension_
        assert_same_subspace(found_normals(found, i), model.normals_, 1e-7)
        np.testing.assert_allclose(host(found.directions)[i].T, model.directions_, atol=1e-7)
        np.testing.assert_allclose(
            host(found.singular_values)[i], model.singular_values_, atol=1e-7
        )


def test_shapes_kinds_and_bases(kind):
    data = data_sets(0, (1, 3))
    X = kind(stacked(data))
    found = dpcp_batch(X, n_starts=7, random_state=0)
    assert isinstance(found, BatchSolution)
    shapes = {name: tuple(values.shape) for name, values in found._asdict().items()}
    assert shapes == {
        "codimension": (2,), "normals": (2, 12, 7), "directions": (2, 12, 7),
        "singular_values": (2, 7), "objective": (2, 7), "n_iter": (2, 7), "converged": (2, 7),
        "labels": (2, 200), "threshold": (2,), "gap": (2,), "clear": (2,),
    }  # fmt: skip
    for values in found:
        assert type(values) is type(X)
        assert getattr(values, "device", None) == getattr(X, "device", None)
    assert host(found.normals).dtype == np.float64
    assert host(found.labels).dtype.kind == "i"
    for i, problem in enumerate(data):
        assert_orthonormal_rows(found_normals(found, i))
        assert not host(found.normals)[i, :, len(problem.normals) :].any()
    np.testing.assert_allclose(np.linalg.norm(host(found.directions), axis=1), 1, atol=1e-12)
    direct = np.abs(stacked(data) @ host(found.directions)).sum(axis=1)
    np.testing.assert_allclose(host(found.objective), direct, rtol=1e-5)


def test_more_starts_than_features(kind):
    data = data_sets(3, (2, 2), (150, 60, 6))
    found = dpcp_batch(kind(stacked(data)), n_starts=20, random_state=0)
    assert tuple(found.normals.shape) == (2, 6, 20)
    assert tuple(found.singular_values.shape) == (2, 6)
    for i, problem in enumerate(data):
        assert_same_subspace(found_normals(found, i), problem.normals, 1e-12)


def test_as_many_normals_as_starts_is_not_clear():
    data = data_sets(0, (4,), (300, 100, 12))
    found = dpcp_batch(stacked(data), n_starts=4, random_state=0)
    assert not found.clear[0]
    assert dpcp_batch(stacked(data), n_starts=12, random_state=0).clear[0]


def test_rows_without_structure_are_not_clear(seed):
    X = np.random.default_rng(seed).standard_normal((4, 300, 12))
    assert not np.any(dpcp_batch(X, random_state=seed).clear)


@pytest.mark.slow
def test_rows_of_two_kinds_are_rarely_clear():
    """With one normal less, all rows are near: the inliers, and less so a cluster of outliers."""
    kinds = {"n_features": 8, "codimension": 4, "noise": 0.01, "outliers": "cluster"}
    data = [make_subspace(360, 240, **kinds, random_state=seed) for seed in range(20)]
    found = dpcp_batch(stacked(data), random_state=0)
    assert np.mean(found.clear & (found.codimension != 4)) <= 0.1
    alone = [make_subspace(600, 0, **kinds, random_state=seed) for seed in range(20)]
    found = dpcp_batch(stacked(alone), random_state=0)
    assert np.mean(found.clear & (found.codimension == 4)) >= 0.95


@pytest.mark.parametrize("D", [3, 5])
def test_a_smooth_cloud_is_no_subspace(seed, D):
    """Axes that differ by up to 2.5 from one to the next, and no outliers."""
    rng = np.random.default_rng(seed)
    scales = np.cumprod(rng.uniform(1, 2.5, (20, 1, D)), axis=2)
    X = rng.standard_normal((20, 400, D)) * scales
    assert np.sum(dpcp_batch(X, random_state=seed).clear) <= 1


def test_padding_changes_nothing(seed, kind):
    data = data_sets(seed)
    X = stacked(data)
    plain = dpcp_batch(kind(X), random_state=0)
    padded = dpcp_batch(kind(np.concatenate([X, np.zeros((3, 37, 12))], axis=1)), random_state=0)
    np.testing.assert_array_equal(host(padded.labels)[:, 200:], 1)
    assert_same_results(plain, padded._replace(labels=padded.labels[:, :200]), 1e-12)
    np.testing.assert_allclose(host(plain.threshold), host(padded.threshold), rtol=1e-9)


def test_rows_beyond_n_rows_are_not_looked_at(seed, kind):
    rng = np.random.default_rng(seed)
    data = data_sets(seed)
    X = stacked(data)
    lengths = np.array([200, 180, 150])
    rubbish, zeros = X.copy(), X.copy()
    for i, n in enumerate(lengths):
        rubbish[i, n:], zeros[i, n:] = 1e3 * rng.standard_normal((200 - n, 12)), 0
    one = dpcp_batch(kind(rubbish), random_state=0, n_rows=lengths)
    other = dpcp_batch(kind(zeros), random_state=0)
    assert_same_results(one, other, 1e-13)
    np.testing.assert_array_equal(host(one.labels)[2, 150:], 1)


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_a_problem_has_the_same_result_alone_and_in_company(seed, kind, noise):
    X = stacked(data_sets(seed, (1, 2, 3, 2, 1)))
    X = X + noise / np.sqrt(12) * np.random.default_rng(seed).standard_normal(X.shape)
    together = dpcp_batch(kind(X), random_state=0)
    for i in range(5):
        alone = dpcp_batch(kind(X[i : i + 1]), random_state=0)
        part = BatchSolution(*(values[i : i + 1] for values in together))
        assert_same_results(part, alone, 1e-12)
        np.testing.assert_allclose(host(part.objective), host(alone.objective), rtol=1e-6)


def test_large_stacks_are_solved_part_by_part(monkeypatch):
    X = stacked(data_sets(0, (1, 2, 3, 2, 1)))
    whole = dpcp_batch(X, random_state=0)
    monkeypatch.setattr("perpend.batch.form.PART_ON_HOST", 2 * (8 * X[0].size + 2**20))
    parts = dpcp_batch(X, random_state=0)
    for a, b in zip(whole, parts, strict=True):
        assert a.shape == b.shape
    assert_same_results(whole, parts, 1e-12)


def test_same_seed_same_bits(seed, kind, one_thread):
    X = kind(stacked(data_sets(seed)))
    first, second = (dpcp_batch(X, random_state=seed) for _ in range(2))
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(host(a), host(b))


def test_given_starts_are_used():
    X = stacked(data_sets(0))
    starts = np.stack([random_directions(np.random.default_rng(5), 12, 9)] * 3)
    given = dpcp_batch(X, starts=7 * starts)  # their lengths do not matter
    drawn = dpcp_batch(X, n_starts=9, random_state=np.random.default_rng(5))
    np.testing.assert_allclose(given.directions, drawn.directions, atol=1e-9)


def test_scales_of_rows_do_not_matter(seed, kind):
    X = stacked(data_sets(seed))
    lengths = 10.0 ** np.random.default_rng(seed).uniform(-200, 200, (3, 200, 1))
    plain, scaled = (dpcp_batch(kind(values), random_state=0) for values in (X, X * lengths))
    assert_same_results(plain, scaled, 1e-12)


def test_single_precision(seed, kind):
    data = data_sets(seed)
    found = dpcp_batch(kind(stacked(data).astype(np.float32)), random_state=0)
    for i, problem in enumerate(data):
        assert_same_subspace(found_normals(found, i), problem.normals, 1e-6)
        np.testing.assert_array_equal(host(found.labels)[i], problem.y)


def test_input_is_not_changed():
    X = stacked(data_sets(0))
    X.flags.writeable = False
    dpcp_batch(X, random_state=0, n_rows=[200, 150, 100])


GOOD = np.random.default_rng(0).standard_normal((2, 30, 4))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": GOOD[0]}, r"shape \(30, 4\); expected \(problems, rows, features\)"),
        ({"X": GOOD[:, :, :1]}, "at least two features"),
        ({"X": GOOD[:0]}, "shape"),
        ({"X": GOOD.tolist()}, "is a list"),
        ({"X": GOOD.astype(int)}, "expected float32 or float64"),
        ({"X": np.where(GOOD > 2, np.nan, GOOD)}, "NaN or inf in"),
        ({"X": np.where(GOOD > 2, np.inf, GOOD)}, "NaN or inf in"),
        ({"X": GOOD[:, :3]}, "Problem 0 has 3 rows that are not zero"),
        ({"n_rows": [30, 3]}, "Problem 1 has 3 rows that are not zero"),
        ({"n_rows": [30]}, r"n_rows has shape \(1,\)"),
        ({"n_rows": [30.0, 30.0]}, "ints"),
        ({"n_rows": [30, 31]}, "expected 1 to 30"),
        ({"n_starts": 0}, "n_starts=0"),
        ({"n_starts": True}, "n_starts=True"),
        ({"max_iter": 1.5}, "max_iter=1.5"),
        ({"tol": 0}, "tol=0"),
        ({"step": "geometric"}, "step='geometric'"),
        ({"starts": np.ones((2, 3, 5))}, r"starts has shape \(2, 3, 5\)"),
        ({"starts": [1, 2]}, r"starts has shape \(\)"),
        ({"starts": np.zeros((2, 4, 5))}, "zero or not finite"),
    ],
)
def test_bad_input_is_named(changes, message):
    arguments = {"X": GOOD, **changes}
    with pytest.raises(InputError, match=message):
        dpcp_batch(**arguments)


def test_importing_it_does_not_import_torch():
    code = "import sys, perpend.batch; print('torch' in sys.modules, 'triton' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


class Counted:
    """Stands for `perpend.kernels.cuda.graph.Rounds` where there is no device."""

    def __init__(self, advance, done, *, times, capture):
        self.advance, self.done, self.times = advance, done, times

    def run(self, rounds):
        for _ in range(rounds * self.times):
            self.advance()
            if self.done.all():
                return


@pytest.mark.parametrize("rule", RULES)
def test_descents_in_place_are_the_same_descents(rule, monkeypatch):
    """Without Triton the plain form is captured, and works on memory that stays where it is."""
    X, B = stacked(data_sets(0)), shared_starts(3, 12, 6)
    limits = Limits(25, 1e-9, EPS)
    plain = descend(X, B, rule, limits)
    ours = tensor(X), tensor(B)
    monkeypatch.setattr("perpend.kernels.cuda.graph.Rounds", Counted)
    from perpend.kernels.cuda.stacks import Captured

    engine = Captured(
        *ours, partial(first, rule=rule), partial(step, rule=rule, limits=limits), times=CHECK
    )
    for _ in range(2):  # it begins anew
        engine.begin(*ours, None)
        engine.loop.run(100)
        for name, a, b in zip(plain._fields, engine.end(), plain, strict=True):
            np.testing.assert_allclose(host(a), b, rtol=0, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("rule", RULES)
def test_a_problem_that_begins_at_rest(rule):
    """Half of the problems have nothing to do: zero gradients for all starts."""
    rng = np.random.default_rng(0)
    X = np.zeros((2, 20, 4))
    X[0, :, :2] = rng.standard_normal((20, 2))
    X[1] = rng.standard_normal((20, 4))
    B = np.stack([np.eye(4)[2:], np.eye(4)[2:]])
    before = B.copy()
    state = descend(X, B, rule, Limits(50, 1e-9, EPS))
    np.testing.assert_array_equal(B, before)
    np.testing.assert_array_equal(state.n_iter[0], 0)
    one = psgm(as_rows(X[1], normalize=False), B[1].T, rule=rule, max_iter=50, tol=1e-9)
    np.testing.assert_array_equal(state.n_iter[1], one.n_iter)
    np.testing.assert_allclose(state.B[1].T, one.B, atol=1e-10)


# -- on a device -----------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kernels", ["double", "torch"])
@pytest.mark.parametrize("captured", [False, True], ids=["launched", "captured"])
@pytest.mark.parametrize("shape", [(120, 80, 12), (700, 300, 50), (300, 200, 130)])
def test_kernels_give_the_iterates_of_the_plain_form(rule, kernels, captured, shape):
    X = stacked(data_sets(0, shape=shape))
    B = shared_starts(3, shape[2], 10)
    limits = Limits(25, 1e-9, EPS)
    rows, starts = on_gpu(X), on_gpu(B)
    plain = descend(X, B, rule, limits)
    for _ in range(2 if captured else 1):
        with workspace(rows, 10) if captured else nullcontext() as space:
            ours = descend_on_device(rows, starts, rule, limits, kernels=kernels, space=space)
    np.testing.assert_array_equal(host(ours.n_iter), plain.n_iter)
    np.testing.assert_allclose(host(ours.B), plain.B, rtol=0, atol=1e-10)
    np.testing.assert_allclose(host(ours.f), plain.f, rtol=1e-11)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(120, 80, 12), (700, 300, 50), (3000, 2000, 200)])
def test_pairs_come_as_near_as_their_floor(shape):
    data = data_sets(0, shape=shape)
    X, B = on_gpu(stacked(data)), on_gpu(shared_starts(3, shape[2], 10))
    from perpend.kernels.cuda import stacks

    floor = stacks.PAIR_FLOOR
    limits = Limits(400, floor, EPS, low=floor)
    state = descend_on_device(X, B, AutoStep(), limits, kernels="pair")
    assert host(state.converged).all()
    for i, problem in enumerate(data):
        beside = host(state.B)[i] @ problem.components.T
        assert np.linalg.norm(beside, axis=1).max() < 8 * floor


@pytest.mark.gpu
def test_replays_follow_their_input():
    """Captured launches are used again for other data of the same shape."""
    for seed in range(4):
        data = data_sets(seed, (seed + 1,), (300, 200, 20))
        X = stacked(data)
        for refine in (True, False):
            ours = dpcp_batch(on_gpu(X), random_state=0, refine=refine)
            assert_same_results(ours, dpcp_batch(X, random_state=0, refine=refine), 1e-7)
            assert int(ours.codimension[0]) == seed + 1


@pytest.mark.parametrize(("D", "c"), [(3, 2), (8, 7)])
def test_moments_without_any_noise_can_be_factorised(D, c, kind):
    """Lines without noise: all but one eigenvalue of their moments are rounding errors."""
    sets = [
        make_subspace(100, 50, n_features=D, codimension=c, random_state=seed) for seed in range(40)
    ]
    found = dpcp_batch(kind(np.stack([data.X for data in sets])), random_state=0)
    assert np.mean(host(found.codimension) == c) > 0.9


def test_messages_count_problems_from_the_first_of_all():
    X = np.random.default_rng(0).standard_normal((20, 1000, 8))
    X[17, 3, 0] = np.nan
    with pytest.raises(InputError, match="first in problem 17"):
        dpcp_batch(X)
    X[17] = 1.0
    X[18, 3:] = 0.0
    with pytest.raises(InputError, match="Problem 18 has 3 rows"):
        dpcp_batch(X)


def test_masks_and_odd_arguments_are_refused():
    X = np.random.default_rng(0).standard_normal((1, 50, 4))
    with pytest.raises(InputError, match="masked"):
        dpcp_batch(np.ma.masked_invalid(X))
    with pytest.raises(InputError, match="step="):
        dpcp_batch(X, step=["auto"])
    with pytest.raises(InputError, match="real numbers"):
        dpcp_batch(X, starts=np.ones((1, 4, 2), complex))


def test_a_tensor_that_requires_grad_is_refused():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    with pytest.raises(InputError, match="detach"):
        dpcp_batch(torch.randn(1, 50, 4).requires_grad_())

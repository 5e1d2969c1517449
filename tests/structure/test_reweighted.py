"""The finish at a known codimension."""

import numpy as np
import pytest
from _counting import CountingRows

from helpers import assert_orthonormal_rows, assert_same_subspace
from perpend.datasets import make_subspace
from perpend.kernels import weighted_gram
from perpend.rows import as_rows, row_span
from perpend.solvers import AutoStep, psgm, random_starts
from perpend.structure.reweighted import fit_subspace, turned_by, turned_to

SHAPES = [
    (300, 300, 20, 3),
    (500, 750, 30, 5),
    (400, 1600, 10, 6),
    (200, 200, 5, 1),
    (300, 0, 8, 2),
]


def tilted(normals, angle, seed):
    """Normals (D, c) that are wrong by `angle` in every direction."""
    D, c = normals.T.shape
    E = np.random.default_rng(seed).standard_normal((D, c))
    E = np.linalg.qr(E - normals.T @ (normals @ E))[0]
    return normals.T * np.cos(angle) + E * np.sin(angle)


def problem(seed, shape=SHAPES[0], noise=0.0):
    n_in, n_out, D, c = shape
    data = make_subspace(n_in, n_out, n_features=D, codimension=c, noise=noise, random_state=seed)
    angle = 0.3 if 2 * c <= D else 0.0
    return data, tilted(data.normals, angle, seed) if angle else data.normals.T.copy()


@pytest.mark.parametrize("shape", SHAPES)
def test_without_noise_the_normals_are_exact(shape, seed):
    data, V = problem(seed, shape)
    fit = fit_subspace(as_rows(data.X), V, np.eye(shape[2]), max_iter=60)
    assert fit.converged
    assert_orthonormal_rows(fit.V.T)
    assert_same_subspace(fit.V.T, data.normals, 1e-13)
    assert_same_subspace(fit.axes[:, shape[3] :].T, data.components, 1e-13)
    assert fit.groups.share == pytest.approx(shape[0] / (shape[0] + shape[1]), abs=0.002)
    assert fit.groups.scale == fit.groups.edges[0]


@pytest.mark.parametrize("shape", SHAPES[:3])
def test_with_noise_the_error_is_about_that_of_pca_on_the_true_inliers(shape):
    ratios = []
    for seed in range(9):
        data, V = problem(seed, shape, noise=0.05)
        fit = fit_subspace(as_rows(data.X), V, np.eye(shape[2]), max_iter=60)
        inliers = data.X[data.y == 1]
        pca = np.linalg.eigh(inliers.T @ inliers)[1][:, : shape[3]]
        ratios.append(
            np.linalg.norm(data.components @ fit.V, 2) / np.linalg.norm(data.components @ pca, 2)
        )
        noise = fit.groups.scale * np.sqrt(shape[2])
        assert noise == pytest.approx(0.05, rel=0.1)
    assert np.median(ratios) <= 1.3


def test_the_spectrum_is_that_of_the_inliers(seed):
    data, V = problem(seed)
    fit = fit_subspace(as_rows(data.X), V, np.eye(20), max_iter=60)
    inliers = data.X[data.y == 1]
    expected = np.linalg.eigvalsh(inliers.T @ inliers / len(inliers))
    np.testing.assert_allclose(fit.spectrum, expected, atol=1e-9)
    assert np.all(fit.spectrum >= 0)
    assert_orthonormal_rows(fit.axes.T)


def test_weights_count_like_repeated_rows(seed):
    data, V = problem(seed, noise=0.05)
    times = np.random.default_rng(seed).integers(0, 3, len(data.X))
    weighted = fit_subspace(as_rows(data.X, weight=times), V, np.eye(20), max_iter=30)
    repeated = fit_subspace(as_rows(np.repeat(data.X, times, axis=0)), V, np.eye(20), max_iter=30)
    assert_same_subspace(weighted.V.T, repeated.V.T, 1e-9)
    assert weighted.groups.share == pytest.approx(repeated.groups.share)


@pytest.mark.parametrize("noise", [0.0, 0.05])
@pytest.mark.parametrize("n_steps", [0, 1, 2])
def test_a_fit_that_ended_early_goes_on(n_steps, noise, seed):
    """It may take one step more than without the pause, as it forgets how the last one was."""
    data, V = problem(seed, SHAPES[1], noise)
    rows = CountingRows(as_rows(data.X))
    whole = fit_subspace(rows, V, np.eye(30), max_iter=60)
    grams = rows.n_scans[weighted_gram.__name__]
    early = fit_subspace(rows, V, np.eye(30), max_iter=n_steps)
    assert not early.converged
    later = fit_subspace(rows, early, np.eye(30), max_iter=60)
    assert later.converged
    assert rows.n_scans[weighted_gram.__name__] <= 2 * grams + 1
    assert early.n_iter + later.n_iter <= whole.n_iter + 1
    assert_same_subspace(later.V.T, whole.V.T, 1e-7)


def test_rows_at_the_edge_of_a_bin_do_not_keep_it_going(seed):
    """Single rows that change their bin turn the subspace to and fro, by less than its error."""
    data, V = problem(seed, (1500, 2250, 200, 10), noise=0.2)
    fit = fit_subspace(as_rows(data.X), V, np.eye(200), max_iter=60)
    assert fit.converged
    assert fit.n_iter <= 5


def test_no_steps_only_look(seed):
    data, V = problem(seed)
    fit = fit_subspace(as_rows(data.X), V, np.eye(20), max_iter=0)
    np.testing.assert_array_equal(fit.V, V)
    assert fit.n_iter == 0
    assert not fit.converged
    assert fit.spectrum.shape == (20,)


@pytest.mark.parametrize("noise", [0.0, 0.05])
@pytest.mark.parametrize(
    "how",
    [
        {"memory_budget": 0},
        {"block_rows": 1},
        {"block_rows": 50},
        {"block_rows": 10_000, "memory_budget": 0},
        {"n_jobs": 3, "block_rows": 20},
    ],
    ids=str,
)
def test_the_result_does_not_depend_on_how_the_rows_are_read(how, noise, seed):
    data, V = problem(seed, SHAPES[3], noise)
    X = 3 * data.X
    plain = fit_subspace(as_rows(X), V, np.eye(5), max_iter=30)
    got = fit_subspace(as_rows(X, **how), V, np.eye(5), max_iter=30)
    assert_same_subspace(got.V.T, plain.V.T, 1e-12)
    np.testing.assert_allclose(got.groups.posterior, plain.groups.posterior, atol=1e-9)
    assert got.n_iter == plain.n_iter


def test_no_budget_changes_no_bit(one_thread):
    data, V = problem(0, noise=0.05)
    plain, none = (
        fit_subspace(as_rows(3 * data.X, memory_budget=m), V, np.eye(20), max_iter=9)
        for m in (2**30, 0)
    )
    np.testing.assert_array_equal(plain.V, none.V)
    np.testing.assert_array_equal(plain.spectrum, none.spectrum)


@pytest.mark.parametrize("factor", [1e-150, 1e150])
def test_the_scale_of_the_data_does_not_matter(factor, seed):
    data, V = problem(seed, noise=0.05)
    X = data.X * np.random.default_rng(seed).lognormal(sigma=0.3, size=(len(data.X), 1))
    plain, scaled = (as_rows(Z, normalize=False) for Z in (X, factor * X))
    a, b = (fit_subspace(rows, V, np.eye(20), max_iter=30) for rows in (plain, scaled))
    assert_same_subspace(a.V.T, b.V.T, 1e-9)
    assert b.groups.scale * scaled.unit / factor == pytest.approx(a.groups.scale * plain.unit)


def test_inside_a_span_the_normals_stay_inside(seed):
    data, _ = problem(seed)
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((25, 20)))[0]  # (25, 20)
    rows = as_rows(data.X @ Q.T)
    span = row_span(rows)
    assert span.rank == 20
    fit = fit_subspace(rows, Q @ tilted(data.normals, 0.2, seed), span.basis, max_iter=60)
    assert fit.spectrum.shape == (20,)
    assert_same_subspace(fit.V.T, data.normals @ Q.T, 1e-12)


def test_descents_and_finish_recover_a_subspace_together(seed):
    data = make_subspace(300, 450, n_features=15, codimension=3, random_state=seed)
    rows = as_rows(data.X)
    span = row_span(rows)
    B = random_starts(np.random.default_rng(seed), span, 10)
    directions = psgm(rows, B, rule=AutoStep(), max_iter=500, tol=1e-6)
    V = np.linalg.svd(directions.B)[0][:, :3]
    fit = fit_subspace(rows, V, span.basis, max_iter=60)
    assert_same_subspace(fit.V.T, data.normals, 1e-13)


def test_single_precision_comes_as_far_as_its_digits(seed):
    data, V = problem(seed)
    fit = fit_subspace(as_rows(data.X.astype(np.float32)), V, np.eye(20), max_iter=60)
    assert_same_subspace(fit.V.T, data.normals, 1e-6)


def test_the_callback_can_stop_it():
    data, V = problem(0, noise=0.1)
    heard = []
    fit = fit_subspace(
        as_rows(data.X), V, np.eye(20), max_iter=60, callback=lambda p: heard.append(p) or True
    )
    assert [p.stage for p in heard] == ["finish"]
    assert fit.n_iter == 1
    assert not fit.converged


@pytest.mark.parametrize("c", [1, 5, 9, 10])
@pytest.mark.parametrize("angle", [1e-9, 0.1])
def test_the_angle_between_normals_and_axes(c, angle, seed):
    axes = np.linalg.qr(np.random.default_rng(seed).standard_normal((12, 10)))[
        0
    ]  # principal axes inside a span of dimension 10
    turn = np.eye(10)
    if c < 10:
        turn[[0, 0, 9, 9], [0, 9, 0, 9]] = [
            np.cos(angle),
            -np.sin(angle),
            np.sin(angle),
            np.cos(angle),
        ]
    V = axes @ turn[:, :c]
    expected = np.sin(angle) if c < 10 else 0.0
    assert turned_to(V, axes) == pytest.approx(expected, rel=1e-5, abs=1e-14)
    assert turned_by(V, axes[:, :c]) == pytest.approx(expected, rel=1e-5, abs=1e-14)

"""The parts of an affine fit, each against a plain reference."""

import numpy as np
import pytest
from scipy import stats

from helpers import assert_orthonormal_rows, assert_same_subspace
from perpend.affine.homogeneous import Flat, as_flat, without_offsets
from perpend.affine.origin import weigh_origin
from perpend.affine.polish import polish
from perpend.affine.views import find_views, whole_view
from perpend.datasets import make_subspace
from perpend.rows import as_rows
from perpend.rows.centred import centred_norms, centred_products, lift, room_for_lifted


def lifted(Z):
    return np.hstack([Z, np.ones((len(Z), 1))])


def test_lifted_normals_become_orthonormal_with_their_offsets(seed):
    data = make_subspace(60, 0, n_features=7, codimension=3, offset=4.0, random_state=seed)
    _, _, Vt = np.linalg.svd(lifted(data.X))
    flat = as_flat(Vt[5:].T)  # 4 dimensions and one more for the offset; 3 normals
    assert_orthonormal_rows(flat.W.T)
    assert_same_subspace(flat.W.T, data.normals)
    np.testing.assert_allclose(data.X @ flat.W + flat.w0, 0, atol=1e-12)
    np.testing.assert_allclose(lifted(data.X) @ flat.lifted, 0, atol=1e-12)


def test_the_ideal_hyperplane_is_no_normal():
    V = np.eye(5)[:, [1, 4]]  # (e_1, 0) and (0, 1): no z has 1 = 0
    flat = as_flat(V)
    assert_same_subspace(flat.W.T, np.eye(4)[[1]])
    assert flat.w0.shape == (1,)
    assert as_flat(np.zeros((5, 0))).W.shape == (4, 0)
    np.testing.assert_array_equal(without_offsets(V), [[0, 0], [1, 0], [0, 0], [0, 0]])


def test_rows_about_a_point_keep_their_digits(dtype):
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((5000, 4)) + 1e6).astype(dtype)
    A = rng.standard_normal((4, 2))
    m = np.full(4, 1e6 + 0.25)
    Z = X.astype(np.longdouble) - m
    tol = 8 * np.finfo(dtype).eps
    np.testing.assert_allclose(centred_products(X, m, A), Z @ A, rtol=tol, atol=tol)
    np.testing.assert_allclose(centred_norms(X, m), np.sqrt((Z**2).sum(axis=1)), rtol=tol)
    norms = np.sqrt(((Z @ A) ** 2).sum(axis=1))
    np.testing.assert_allclose(centred_norms(X, m, A), norms, rtol=tol, atol=tol)
    L = room_for_lifted(X)
    lift(X, m, 2.0, L)
    assert L.dtype == dtype
    np.testing.assert_allclose(L, lifted(Z / 2).astype(float), rtol=tol, atol=tol)


def test_one_cloud_one_view_two_clouds_two(seed):
    rng = np.random.default_rng(seed)
    cloud = rng.standard_normal((400, 3))
    (view,) = find_views(cloud + 1e6, None, rng)
    assert view.seen is None
    assert np.linalg.norm(view.centre - 1e6) < 0.5
    assert 0.6 < view.scale < 1.2  # the typical size of one coordinate
    two = np.vstack([cloud, cloud[:150] + np.array([20, 0, 0])])
    inside, outside = find_views(two, None, rng)
    assert sorted([inside.seen.sum(), outside.seen.sum()]) == [150, 400]
    np.testing.assert_array_equal(inside.seen, ~outside.seen)
    heavy = cloud * np.abs(rng.standard_cauchy((400, 1)))
    assert len(find_views(heavy, None, rng)) == 1


def test_a_weight_counts_like_equal_rows_in_a_view(seed):
    rng = np.random.default_rng(seed)
    X, times = rng.standard_normal((50, 3)), rng.integers(0, 4, 50)
    weighted = whole_view(X, times.astype(float), np.random.default_rng(0))
    repeated = whole_view(np.repeat(X, times, axis=0), None, np.random.default_rng(0))
    np.testing.assert_allclose(weighted.centre, repeated.centre)
    assert weighted.scale == pytest.approx(repeated.scale)


def test_the_polish_is_centred_pca_where_all_rows_are_inliers(seed):
    data = make_subspace(
        400, 0, n_features=6, codimension=2, noise=0.05, offset=0.7, random_state=seed
    )
    mean = data.X.mean(axis=0)
    _, _, Vt = np.linalg.svd(data.X - mean)
    rows = as_rows(lifted(data.X), normalize=False)
    found = polish(rows, Flat(data.normals.T, -(data.normals @ data.location)))
    assert found.converged
    assert_same_subspace(found.flat.W.T, Vt[4:], tol=1e-6)
    np.testing.assert_allclose(found.mean, mean, atol=1e-6)
    still = polish(rows, Flat(data.normals.T, -(data.normals @ data.location)), max_steps=0)
    np.testing.assert_array_equal(still.flat.W, data.normals.T)


def test_the_chance_to_miss_the_origin_is_what_it_says():
    """Planes through the origin, far from their rows' mean: the chance is uniform."""
    rng = np.random.default_rng(0)
    n, sigma, chances = 200, 0.01, []
    for _ in range(300):
        Z = rng.standard_normal((n, 4)) * [1.0, 0.5, sigma, sigma] + [3.0, -2.0, 0.0, 0.0]
        mean = Z.mean(axis=0)
        variances, axes = np.linalg.eigh(np.cov(Z.T))
        test = weigh_origin(
            mean,
            axes[:, :2],
            axes[:, 2:],
            variances=variances[2:],
            noise2=float(variances[:2].mean()),
            n_inliers=n,
        )
        chances.append(test.chance)
    assert stats.kstest(chances, "uniform").pvalue > 1e-3


def test_a_clear_offset_and_too_few_rows():
    normals, components = np.eye(3)[:, :1], np.eye(3)[:, 1:]
    how = {"variances": np.ones(2), "noise2": 1e-4}
    far = weigh_origin(np.array([0.5, 3.0, 0.0]), normals, components, n_inliers=100, **how)
    assert far.misses
    assert far.distance == 0.5
    few = weigh_origin(np.array([0.5, 3.0, 0.0]), normals, components, n_inliers=3, **how)
    assert not few.misses

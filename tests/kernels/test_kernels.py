"""Every kernel, on every array library, against plain NumPy."""

import inspect

import numpy as np
import pytest

from perpend import kernels
from perpend.kernels import Contribution

EDGES = np.geomspace(1e-3, 4.0, 32)  # 2 x 16 bins


def block(seed, dtype=np.float64):
    """A block with a zero row and a row orthogonal to the first direction."""
    rng = np.random.default_rng(seed)
    X, B = rng.standard_normal((23, 5)), rng.standard_normal((5, 4))
    X[3] = 0
    X[7], B[:, 0] = np.eye(5)[1], np.eye(5)[0]
    return X.astype(dtype), B.astype(dtype)


def spread_distances(seed, dtype=np.float64):
    """Distances in every bin, below the first edge and above the last."""
    rng = np.random.default_rng(seed)
    return np.append(np.exp(rng.uniform(np.log(1e-4), np.log(9), 21)), [0.0, 9.0]).astype(dtype)


def plain_bins(distance, edges=EDGES):
    return np.minimum(np.searchsorted(edges, distance, side="right"), len(edges) - 1)


def assert_contribution(xp, part, dtype, **expected):
    """The named parts have the expected values and the block's dtype; the others are None."""
    assert isinstance(part, Contribution)
    for name, value in zip(part._fields, part, strict=True):
        if name not in expected:
            assert value is None, f"{name} should be None"
            continue
        got = xp.numpy(value)
        assert got.dtype == dtype
        assert got.shape == expected[name].shape
        tol = 100 * np.finfo(dtype).eps
        np.testing.assert_allclose(got, expected[name], rtol=tol, atol=tol, err_msg=name)


def test_l1_objective_and_gradient(xp, dtype, seed):
    X, B = block(seed, dtype)
    part = kernels.l1_objective_and_gradient(xp.array(X), xp.array(B))
    P = X.astype(float) @ B.astype(float)
    assert_contribution(xp, part, dtype, total=np.abs(P), left=np.where(P > 0, 1.0, 0) - (P < 0))


def test_the_sign_of_zero_is_zero(xp, dtype):
    X, B = block(0, dtype)
    left = xp.numpy(kernels.l1_objective_and_gradient(xp.array(X), xp.array(B)).left)
    np.testing.assert_array_equal(left[3], 0)  # the zero row, any direction
    assert left[7, 0] == 0  # e1 . e0
    assert set(np.unique(left)) == {-1, 0, 1}


def test_l1_objective(xp, dtype, seed):
    X, B = block(seed, dtype)
    part = kernels.l1_objective(xp.array(X), xp.array(B))
    assert_contribution(xp, part, dtype, total=np.abs(X.astype(float) @ B.astype(float)))


def test_heights(xp, dtype, seed):
    X, B = block(seed, dtype)
    part = kernels.heights(xp.array(X), xp.array(B[:, 1]))
    assert_contribution(xp, part, dtype, kept=np.abs(X.astype(float) @ B[:, 1].astype(float)))


@pytest.mark.parametrize("c", [1, 3])
def test_distances(xp, dtype, seed, c):
    X, B = block(seed, dtype)
    V = np.linalg.qr(B[:, :c])[0]
    part = kernels.distances(xp.array(X), xp.array(V))
    expected = np.linalg.norm(X.astype(float) @ V.astype(float), axis=1)
    assert_contribution(xp, part, dtype, kept=expected)


@pytest.mark.parametrize("c", [1, 3])
def test_distance_and_gradient(xp, dtype, seed, c):
    X, B = block(seed, dtype)
    V = np.linalg.qr(B[:, :c])[0]
    part = kernels.distance_and_gradient(xp.array(X), xp.array(V), c)
    P = X.astype(float) @ V.astype(float)
    r = np.linalg.norm(P, axis=1, keepdims=True)
    assert_contribution(xp, part, dtype, total=r, left=P / np.where(r > 0, r, 1))
    several = np.hstack([V, 2 * V])
    part = kernels.distance_and_gradient(xp.array(X), xp.array(several), c)
    total, left = np.hstack([r, 2 * r]), np.hstack([P, P]) / np.where(r > 0, r, 1)
    assert_contribution(xp, part, dtype, total=total, left=left)


@pytest.mark.parametrize("copies", [1, 8], ids=["narrow", "wide"])
@pytest.mark.parametrize("p", [0.0, 0.5, 1.0])
def test_power_weighted_gram(xp, dtype, seed, p, copies):
    X, B = block(seed, dtype)
    X, B = np.tile(X, copies), np.tile(B, (copies, 1))
    assert (X.shape[1] > kernels.FEW_FEATURES) == (copies > 1)
    part = kernels.power_weighted_gram(xp.array(X), xp.array(B), xp.array(dtype(0.5)), p)
    r = np.linalg.norm(X.astype(float) @ B.astype(float), axis=1)
    s = np.maximum(r, 0.5)
    total, factor = (r**p if p else np.log(s))[:, None], s ** (p - 2)
    how = {"factor": factor} if copies > 1 else {"left": factor[:, None] * X}
    assert_contribution(xp, part, dtype, total=total, **how)


def test_residual_and_gradient(xp, dtype, seed):
    X, B = block(seed, dtype)
    U = np.linalg.qr(B[:, :2])[0]
    X[5] = U[:, 0]  # on the subspace: no gradient, whatever rounding leaves
    part = kernels.residual_and_gradient(xp.array(X), xp.array(U))
    X, U = X.astype(float), U.astype(float)
    R = X - X @ U @ U.T
    r = np.linalg.norm(R, axis=1, keepdims=True)
    r[[3, 5]] = 0  # and the zero row
    left = np.divide(-X @ U, r, out=np.zeros((23, 2)), where=r > 0)
    assert_contribution(xp, part, dtype, total=r, left=left, right=R)


def test_trial_distances(xp, dtype, seed):
    X, B = block(seed, dtype)
    part = kernels.trial_distances(xp.array(X), xp.array(B), 2)
    P = (X.astype(float) @ B.astype(float)).reshape(23, 2, 2)
    assert_contribution(xp, part, dtype, kept=np.linalg.norm(P, axis=2))


def test_trial_residuals(xp, dtype, seed):
    """To spans through the origin; of lifted rows, to a line in the space below."""
    X, B = block(seed, dtype)
    X[7] = X[8]  # a distance that is rounding would be zero here
    bases = [np.linalg.qr(B[:, cols])[0] for cols in ([0, 1], [1, 2], [0, 3])]
    flat, none = np.hstack(bases), np.zeros((5, 1), dtype)
    part = kernels.trial_residuals(xp.array(X), xp.array(flat), xp.array(none), 2)
    r = [np.linalg.norm(X - X.astype(float) @ U @ U.T, axis=1) for U in bases]
    assert_contribution(xp, part, dtype, kept=np.transpose(r))
    X[:, 4] = 1
    Q, one = np.linalg.qr(X[:2].T)[0], np.eye(5, dtype=dtype)[:, 4:]
    kept = xp.numpy(kernels.trial_residuals(xp.array(X), xp.array(Q), xp.array(one), 2).kept)
    a, way = X[0, :4].astype(float), X[1, :4] - X[0, :4].astype(float)
    way /= np.linalg.norm(way)
    across = X[:, :4] - a - np.outer((X[:, :4] - a) @ way, way)
    tol = {np.float64: 1e-6, np.float32: 2e-2}[dtype]
    np.testing.assert_allclose(kept[:, 0], np.linalg.norm(across, axis=1), atol=tol)


def test_soft_heights(xp, dtype, seed):
    X, B = block(seed, dtype)
    part = kernels.soft_heights(xp.array(X), xp.array(B[:, :1]), xp.array(dtype(0.5)))
    p = X.astype(float) @ B[:, :1].astype(float)
    y = np.sign(p) * np.maximum(np.abs(p) - 0.5, 0)
    assert_contribution(xp, part, dtype, total=0.5 * np.abs(y) + (y - p) ** 2 / 2, left=y)


@pytest.mark.parametrize("c", [1, 3])
def test_inverse_distance_gram(xp, dtype, seed, c):
    X, B = block(seed, dtype)
    V = np.linalg.qr(B[:, :c])[0]
    part = kernels.inverse_distance_gram(xp.array(X), xp.array(V), xp.array(dtype(0.5)))
    r = np.linalg.norm(X.astype(float) @ V.astype(float), axis=1, keepdims=True)
    assert_contribution(xp, part, dtype, total=r, left=X / np.maximum(r, 0.5))


def test_distances_are_zero_on_the_subspace(xp):
    X = np.diag([1.0, 2.0, 3.0])
    part = kernels.distances(xp.array(X), xp.array(np.eye(3)[:, 2:]))
    np.testing.assert_array_equal(xp.numpy(part.kept), [0, 0, 3])


def test_gram(xp, dtype, seed):
    X, _ = block(seed, dtype)
    assert_contribution(xp, kernels.gram(xp.array(X)), dtype, left=X)  # right is the block itself


def test_mapped_gram(xp, dtype, seed):
    X, A = block(seed, dtype)
    part = kernels.mapped_gram(xp.array(X), xp.array(A))
    P = X.astype(float) @ A.astype(float)
    assert_contribution(xp, part, dtype, left=P, right=P)
    assert part.left is part.right  # a source then computes half of the product


def test_weighted_gram(xp, dtype, seed):
    X, _ = block(seed, dtype)
    J = spread_distances(seed, dtype)
    table = np.random.default_rng(seed).uniform(size=len(EDGES)).astype(dtype)
    part = kernels.weighted_gram(
        xp.array(X), xp.array(table), xp.array(EDGES.astype(dtype)), xp.array(J)
    )
    u = table[plain_bins(J)].astype(float)
    assert_contribution(xp, part, dtype, total=u[:, None], factor=u)


def test_distance_weighted_gram(xp, dtype, seed):
    X, B = block(seed, dtype)
    V = np.linalg.qr(B)[0]
    table = np.random.default_rng(seed).uniform(size=len(EDGES)).astype(dtype)
    part = kernels.distance_weighted_gram(
        xp.array(X), kernels.distances, xp.array(V), xp.array(table), xp.array(EDGES.astype(dtype))
    )
    J = np.linalg.norm(X.astype(float) @ V.astype(float), axis=1)
    u = table[plain_bins(J)].astype(float)
    assert_contribution(xp, part, dtype, total=u[:, None], factor=u)


def test_grouped_distances_tell_the_bins(xp, dtype, seed):
    J = spread_distances(seed, dtype)
    X, V = J[:, None] * np.array([[0.6, 0.8]], dtype), np.eye(2, dtype=dtype)
    part = kernels.grouped_distances(
        xp.array(X), kernels.distances, xp.array(V), xp.array(EDGES.astype(dtype))
    )
    assert part.total is part.left is None
    np.testing.assert_allclose(xp.numpy(part.kept), J, rtol=8 * np.finfo(dtype).eps)
    bins, n_bins = part.bins
    np.testing.assert_array_equal(xp.numpy(bins), plain_bins(J))
    assert n_bins == len(EDGES)


def test_logarithmic_bins(xp, dtype, seed):
    J = spread_distances(seed, dtype)
    bins = xp.numpy(kernels.logarithmic_bins(xp.array(J), xp.array(EDGES.astype(dtype))))
    assert bins.dtype == np.int64
    np.testing.assert_array_equal(bins, plain_bins(J))


def test_bins_on_both_sides_of_each_edge(xp, dtype):
    m, nudge = len(EDGES), 1e3 * np.finfo(dtype).eps
    edges = xp.array(EDGES.astype(dtype))
    above = (EDGES * (1 + nudge)).astype(dtype)
    below = (EDGES * (1 - nudge)).astype(dtype)
    np.testing.assert_array_equal(
        xp.numpy(kernels.logarithmic_bins(xp.array(above), edges)),
        np.minimum(np.arange(m) + 1, m - 1),
    )
    np.testing.assert_array_equal(
        xp.numpy(kernels.logarithmic_bins(xp.array(below), edges)), np.arange(m)
    )


def test_an_edge_belongs_to_a_bin_beside_it(xp, dtype):
    edges = xp.array(EDGES.astype(dtype))
    bins = xp.numpy(kernels.logarithmic_bins(edges, edges))
    assert np.all((bins == np.arange(32)) | (bins == np.minimum(np.arange(32) + 1, 31)))


@pytest.mark.parametrize(
    ("distance", "expected"),
    [(0.0, 0), (1e-37, 0), (9.9e-4, 0), (3.99, 31), (4.01, 31), (1e30, 31), (np.inf, 31)],
)
def test_bins_at_the_ends(xp, dtype, distance, expected):
    bins = kernels.logarithmic_bins(
        xp.array(np.array([distance], dtype)), xp.array(EDGES.astype(dtype))
    )
    np.testing.assert_array_equal(xp.numpy(bins), [expected])


@pytest.mark.parametrize("d", [1, 3])
def test_residuals_are_the_distances_to_the_complement(xp, dtype, seed, d):
    X, _ = block(seed, dtype)
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((5, 5)))[0].astype(dtype)
    U, V = np.ascontiguousarray(Q[:, :d]), np.ascontiguousarray(Q[:, d:])
    J = np.linalg.norm(X.astype(float) @ V.astype(float), axis=1)
    part = kernels.residuals(xp.array(X), xp.array(U))
    np.testing.assert_allclose(xp.numpy(part.kept), J, atol=20 * np.finfo(dtype).eps)


def test_grouped_residuals_count_like_grouped_distances(xp, dtype, seed):
    X, _ = block(seed, dtype)
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((5, 5)))[0].astype(dtype)
    U, V = np.ascontiguousarray(Q[:, :2]), np.ascontiguousarray(Q[:, 2:])
    edges = EDGES.astype(dtype)
    J = np.linalg.norm(X.astype(float) @ V.astype(float), axis=1)
    grouped = kernels.grouped_distances(
        xp.array(X), kernels.residuals, xp.array(U), xp.array(edges)
    )
    other = kernels.grouped_distances(xp.array(X), kernels.distances, xp.array(V), xp.array(edges))
    np.testing.assert_array_equal(*(xp.numpy(part.bins[0]) for part in (grouped, other)))
    np.testing.assert_allclose(xp.numpy(grouped.kept), J, atol=20 * np.finfo(dtype).eps)


def test_residual_weighted_gram_is_that_of_the_same_distances(xp, dtype, seed):
    X, _ = block(seed, dtype)
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((5, 5)))[0].astype(dtype)
    table = np.random.default_rng(seed).uniform(size=len(EDGES)).astype(dtype)
    edges = xp.array(EDGES.astype(dtype))
    U, V = (xp.array(np.ascontiguousarray(A)) for A in (Q[:, :2], Q[:, 2:]))
    part = kernels.distance_weighted_gram(xp.array(X), kernels.residuals, U, xp.array(table), edges)
    other = kernels.distance_weighted_gram(
        xp.array(X), kernels.distances, V, xp.array(table), edges
    )
    for name in ("total", "factor"):
        np.testing.assert_array_equal(*(xp.numpy(getattr(p, name)) for p in (part, other)))


def test_every_exported_kernel_is_tested_here():
    functions = [
        name
        for name, value in vars(kernels).items()
        if inspect.isfunction(value) and value.__module__ == kernels.__name__ and name[0] != "_"
    ]
    assert len(functions) > 10
    tests = " ".join(n for n in globals() if n.startswith("test_"))
    missing = [n for n in functions if f"test_{n}" not in tests]
    assert missing == []

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import assert_orthonormal_rows, assert_same_subspace
from perpend.datasets import SubspaceData, make_subspace


def split(data):
    return data.X[data.y == 1], data.X[data.y == -1]


def rank(rows):
    return np.linalg.matrix_rank(rows, tol=1e-8)


@settings(deadline=None, max_examples=30)
@given(
    size=st.integers(1, 12).flatmap(lambda D: st.tuples(st.just(D), st.integers(0, D))),
    noise=st.sampled_from([0.0, 0.1]),
    outliers=st.sampled_from(["sphere", "heavy", "cluster", "plane"]),
    offset=st.sampled_from([0.0, 2.0]),
    seed=st.integers(0, 1000),
)
def test_shapes_labels_and_subspace(size, noise, outliers, offset, seed):
    D, c = size
    data = make_subspace(
        40,
        20,
        n_features=D,
        codimension=c,
        noise=noise,
        outliers=outliers,
        offset=offset,
        random_state=seed,
    )
    assert isinstance(data, SubspaceData)
    assert data.X.shape == (60, D)
    assert np.all(np.isfinite(data.X))
    assert (np.sum(data.y == 1), np.sum(data.y == -1)) == (40, 20)
    assert data.normals.shape == (c, D)
    assert data.components.shape == (D - c, D)
    assert_orthonormal_rows(np.concatenate([data.normals, data.components]))
    np.testing.assert_allclose(np.linalg.norm(data.location), offset)
    if noise == 0:
        inliers, _ = split(data)
        np.testing.assert_allclose((inliers - data.location) @ data.normals.T, 0, atol=1e-13)


def test_rows_have_unit_norm_and_are_shuffled():
    data = make_subspace(random_state=0, noise=0.2)
    np.testing.assert_allclose(np.linalg.norm(data.X, axis=1), 1)
    assert 100 < np.sum(data.y[:500] == 1) < 400
    assert data.X.shape == (1000, 30)
    assert data.normals.shape == (5, 30)


def test_inliers_fill_their_subspace_evenly():
    data = make_subspace(20_000, 0, n_features=8, codimension=3, random_state=1)
    moments = data.components @ data.X.T @ data.X @ data.components.T / 20_000
    np.testing.assert_allclose(moments, np.eye(5) / 5, atol=6 / np.sqrt(20_000))


def test_stretch_falls_geometrically():
    data = make_subspace(50_000, 0, n_features=6, codimension=3, stretch=0.01, random_state=2)
    coordinates = data.X @ data.components.T
    ratios = coordinates[:, 1:] / coordinates[:, :1]  # normalising cancels: ratio of two Gaussians
    # the median of |Cauchy| is its scale
    np.testing.assert_allclose(np.median(np.abs(ratios), axis=0), [0.1, 0.01], rtol=0.05)


@pytest.mark.parametrize("sigma", [1e-6, 1e-2])
def test_noise_has_the_stated_norm(sigma):
    D, c = 50, 10
    data = make_subspace(5000, 0, n_features=D, codimension=c, noise=sigma, random_state=3)
    distances = np.linalg.norm(data.X @ data.normals.T, axis=1)
    # c of the D entries of variance sigma^2 / D lie in the complement
    np.testing.assert_allclose(np.sqrt(np.mean(distances**2)), sigma * np.sqrt(c / D), rtol=0.02)


def test_one_seed_one_subspace_whatever_the_noise():
    clean = make_subspace(random_state=4)
    noisy = make_subspace(random_state=4, noise=1e-3)
    moved = make_subspace(random_state=4, offset=3.0)
    assert_same_subspace(clean.normals, noisy.normals, 1e-15)
    np.testing.assert_array_equal(clean.y, noisy.y)
    np.testing.assert_allclose(clean.X[clean.y == -1], noisy.X[noisy.y == -1])
    np.testing.assert_allclose(clean.X, noisy.X, atol=5e-3)
    np.testing.assert_allclose(split(moved)[0] - moved.location, split(clean)[0], atol=1e-14)
    np.testing.assert_allclose(split(moved)[1], split(clean)[1])
    whole = make_subspace(random_state=4, offset=3.0, move_outliers=True)
    np.testing.assert_allclose(whole.X - whole.location, clean.X, atol=1e-14)


def test_kinds_of_outliers():
    def drawn(kind):
        return split(make_subspace(10, 2000, outliers=kind, random_state=5))[1]

    sphere, heavy, cluster, plane = map(drawn, ["sphere", "heavy", "cluster", "plane"])
    for rows in (sphere, cluster, plane):
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1)
    assert [rank(rows) for rows in (sphere, heavy, cluster, plane)] == [30, 30, 30, 2]
    assert np.linalg.norm(sphere.mean(axis=0)) < 0.1
    assert np.linalg.norm(cluster.mean(axis=0)) > 0.98
    lengths = np.linalg.norm(heavy, axis=1)
    np.testing.assert_allclose(np.median(lengths), 1, rtol=0.1)
    assert lengths.max() > 100


def test_extreme_codimensions():
    full = make_subspace(20, 5, n_features=4, codimension=0, random_state=0)
    assert full.normals.shape == (0, 4)
    assert rank(split(full)[0]) == 4
    point = make_subspace(20, 5, n_features=4, codimension=4, random_state=0)
    assert point.components.shape == (0, 4)
    np.testing.assert_array_equal(split(point)[0], 0)
    noisy = make_subspace(20, 5, n_features=4, codimension=4, noise=0.1, random_state=0)
    assert 0 < np.linalg.norm(split(noisy)[0], axis=1).max() < 1
    assert make_subspace(0, 3, n_features=1, codimension=1, outliers="plane").X.shape == (3, 1)
    assert make_subspace(3, 0).y.tolist() == [1, 1, 1]


def test_random_state_kinds():
    same = [make_subspace(random_state=s).X for s in (9, np.random.default_rng(9))]
    np.testing.assert_array_equal(*same)
    legacy = np.random.RandomState(9)
    assert np.any(make_subspace(random_state=legacy).X != make_subspace(random_state=legacy).X)
    assert np.any(make_subspace().X != make_subspace().X)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"codimension": 31}, "codimension must be from 0 to n_features = 30, got 31"),
        ({"codimension": -1}, "codimension must be from 0 to n_features = 30, got -1"),
        ({"n_features": 0}, "n_features must be at least 1, got 0"),
        ({"n_inliers": -5}, "n_inliers must be at least 0, got -5"),
        ({"n_inliers": 0, "n_outliers": 0}, "no rows"),
        ({"noise": -0.1}, "noise must be finite and not negative"),
        ({"noise": np.nan}, "noise must be finite"),
        ({"offset": np.inf}, "offset must be finite"),
        ({"stretch": 0.0}, r"stretch must be in \(0, 1\]"),
        ({"stretch": 1.5}, r"stretch must be in \(0, 1\]"),
        ({"outliers": "ring"}, "outliers must be one of .*'sphere'.*got 'ring'"),
        ({"random_state": -1}, "random_state must not be negative"),
    ],
)
def test_values_out_of_range(wrong, message):
    with pytest.raises(ValueError, match=message):
        make_subspace(**wrong)


@pytest.mark.parametrize(
    "wrong", [{"n_inliers": 10.0}, {"codimension": True}, {"noise": "0"}, {"random_state": "0"}]
)
def test_wrong_types(wrong):
    with pytest.raises(TypeError, match=next(iter(wrong))):
        make_subspace(**wrong)

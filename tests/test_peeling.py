"""Several subspaces, one after the other: all of them, only them, and the rows of each."""

import os
from pathlib import Path

import numpy as np
import pytest

from helpers import assert_orthonormal_rows, assert_same_subspace, assert_sure
from perpend import DPCP, RSGM, peel
from perpend.datasets import make_subspace
from perpend.exceptions import InputError
from perpend.geometry import random_directions


def union(D, parts, n_outliers, seed, noise=0.0):
    """Rows on several subspaces, with lengths of their own; their numbers, and the normals."""
    rng = np.random.default_rng(seed)
    drawn = [
        make_subspace(n, 0, n_features=D, codimension=D - d, noise=noise, random_state=rng)
        for d, n in parts
    ]
    outliers = random_directions(rng, D, n_outliers).T
    X = np.vstack([outliers, *(part.X for part in drawn)])
    y = np.repeat(np.arange(-1, len(parts)), [n_outliers, *(n for _, n in parts)])
    X *= rng.lognormal(size=(len(X), 1))
    order = rng.permutation(len(X))
    return X[order], y[order], [part.normals for part in drawn]


def matched(found, y):
    """For each subspace in the data, the one that most of its rows were given to."""
    return [
        int(
            np.argmax([np.sum((y == i) & (found.labels == k)) for k in range(len(found.subspaces))])
        )
        for i in range(y.max() + 1)
    ]


@pytest.mark.parametrize(
    ("D", "parts", "n_outliers"),
    [
        (12, ((8, 200), (2, 300)), 0),  # a plane beside a larger subspace, and no outliers
        (9, ((3, 150), (3, 150)), 150),  # their sum is a subspace, too
        (3, ((2, 200), (2, 200)), 200),  # their normals together leave a line
        (8, ((2, 100), (2, 100), (2, 100)), 80),  # so is the sum of any two, and of all
        (60, ((5, 30), (3, 20)), 5),  # fewer rows than features
    ],
)
def test_all_subspaces_are_found_exactly(D, parts, n_outliers, seed):
    X, y, normals = union(D, parts, n_outliers, seed)
    found = assert_sure(peel(X, random_state=seed + 1000))
    assert len(found.subspaces) == len(parts)
    which = matched(found, y)
    assert sorted(which) == list(range(len(parts)))
    for i, k in enumerate(which):
        assert_same_subspace(found.subspaces[k].normals, normals[i], tol=1e-9)
    np.testing.assert_array_equal(found.labels, np.where(y < 0, -1, np.take(which, y)))


def test_a_result_holds_together(seed):
    X, _, _ = union(8, ((5, 150), (2, 150)), 100, seed, noise=0.02)
    found = assert_sure(peel(X, random_state=seed + 1000))
    assert found.labels.min() == -1
    assert found.labels.max() == len(found.subspaces) - 1
    for k, subspace in enumerate(found.subspaces):
        np.testing.assert_array_equal(subspace.members, np.flatnonzero(found.labels == k))
        assert subspace.codimension == len(subspace.normals) == 8 - len(subspace.components)
        assert_orthonormal_rows(np.vstack([subspace.normals, subspace.components]))
        own = X[subspace.members]
        sines = np.linalg.norm(own @ subspace.normals.T, axis=1) / np.linalg.norm(own, axis=1)
        np.testing.assert_allclose(sines.max(), subspace.threshold, rtol=1e-9)
        assert 0.01 < subspace.noise < 0.04
    text = found.summary()
    assert text.startswith("subspaces   2\n")
    assert f"outliers    {np.sum(found.labels == -1)} of 400 rows" in text


@pytest.mark.parametrize(("n", "D"), [(60, 3), (500, 3), (300, 12)])
def test_nothing_is_found_in_noise(n, D, seed):
    X = np.random.default_rng(seed).standard_normal((n, D))
    found = peel(X, random_state=seed + 1000)
    assert found.subspaces == []
    assert np.all(found.labels == -1)


@pytest.mark.parametrize("seed", range(4))
def test_the_edge_of_a_square_is_no_line(seed):
    """Rows end there, on one side, and those near any line are a thin cloud of their own."""
    X = np.random.default_rng(seed).uniform(-1, 1, (2000, 2))
    assert peel(X, affine=True, random_state=0).subspaces == []


def furnished(rng, n_clusters, *, planes=True):
    """Return points of a floor, a wall, clusters as large as chairs and clutter, and the plane."""
    floor = rng.uniform([0, 0, 0], [6, 5, 0], (800 * planes, 3))
    wall = rng.uniform([0, 0, 0], [0, 5, 3], (500 * planes, 3))
    X = np.vstack([floor, wall])
    X += rng.normal(0, 0.005, X.shape)
    for centre in rng.uniform([0.5, 0.5, 0.4], [5.5, 4.5, 2.6], (n_clusters, 3)):
        X = np.vstack([X, centre + rng.normal(0, rng.uniform(0.05, 0.2), (200, 3))])
    y = np.repeat([0, 1, -1], [800 * planes, 500 * planes, len(X) - 1300 * planes + 400])
    X = np.vstack([X, rng.uniform(0, [6, 5, 3], (400, 3))])
    order = rng.permutation(len(X))
    return X[order] @ np.linalg.qr(rng.standard_normal((3, 3)))[0] + 3, y[order]


@pytest.mark.parametrize("n_clusters", [2, 5])
def test_clusters_are_no_line_and_hide_no_plane(n_clusters, seed):
    X, y = furnished(np.random.default_rng([seed, n_clusters]), n_clusters)
    found = assert_sure(peel(X, affine=True, random_state=seed))
    assert [s.codimension for s in found.subspaces] == [1, 1]
    assert np.mean(found.labels == np.where(y < 0, -1, np.take(matched(found, y), y))) > 0.95


def test_clusters_alone_are_no_subspaces(seed):
    X, _ = furnished(np.random.default_rng(seed), 4, planes=False)
    assert peel(X, affine=True, random_state=seed).subspaces == []


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_a_single_subspace_has_no_shadow(noise, seed):
    X, y, normals = union(6, ((3, 800),), 200, seed, noise)
    found = assert_sure(peel(X, random_state=seed + 1000))
    assert [s.codimension for s in found.subspaces] == [3]
    assert_same_subspace(found.subspaces[0].normals, normals[0], tol=max(noise, 1e-9))
    assert np.mean(found.labels == y) > 0.98


def test_uneven_members_are_one_subspace(seed):
    data = make_subspace(400, 200, n_features=8, codimension=3, stretch=0.1, random_state=seed)
    found = assert_sure(peel(data.X, random_state=seed + 1000))
    assert [s.codimension for s in found.subspaces] == [3]


@pytest.mark.parametrize("degrees", [2, 6])
def test_close_planes_are_told_apart(degrees, seed):
    rng = np.random.default_rng(seed)
    tilt = np.deg2rad(degrees)
    turn = np.array([[1, 0, 0], [0, np.cos(tilt), np.sin(tilt)], [0, -np.sin(tilt), np.cos(tilt)]])
    flat = np.c_[rng.standard_normal((400, 2)), np.zeros(400)]
    X = np.vstack([flat[:200], flat[200:] @ turn, rng.standard_normal((100, 3))])
    found = assert_sure(peel(X, random_state=seed + 1000))
    assert sorted(len(s.members) for s in found.subspaces) == [200, 200]
    first = found.subspaces[found.labels[0]].normals
    assert_same_subspace(first, [[0, 0, 1]], tol=1e-9)


@pytest.mark.parametrize("offset", [0.0, 5.0])
def test_planes_far_from_the_origin_are_found(offset, seed):
    rng = np.random.default_rng(seed)
    points = rng.uniform(-2, 2, (700, 3))
    points[:300, 2] = rng.normal(0, 0.01, 300)
    points[300:550, 0] = rng.normal(1, 0.01, 250)
    found = assert_sure(peel(np.c_[points + offset, np.ones(700)], random_state=seed + 1000))
    assert [s.codimension for s in found.subspaces] == [1, 1]
    y = np.repeat([0, 1, -1], [300, 250, 150])
    which = matched(found, y)
    assert np.mean(found.labels == np.where(y < 0, -1, np.take(which, y))) > 0.95


def test_several_lines_in_a_plane_are_found(seed):
    angles = np.array([0.0, 0.6, 2.0]) + seed
    lines = np.repeat(np.c_[np.cos(angles), np.sin(angles)], 100, axis=0)
    rng = np.random.default_rng(seed)
    X = rng.lognormal(size=(300, 1)) * (lines + rng.normal(0, 0.02, lines.shape))
    found = assert_sure(peel(X, random_state=seed + 1000))
    assert [s.codimension for s in found.subspaces] == [1, 1, 1]
    y = np.repeat([0, 1, 2], 100)
    assert np.mean(found.labels == np.take(matched(found, y), y)) > 0.98


def test_max_subspaces_is_the_most():
    X, _, _ = union(8, ((4, 150), (2, 150)), 50, 0)
    found = assert_sure(peel(X, max_subspaces=1, random_state=1))
    assert len(found.subspaces) == 1
    assert found.limit == 1
    assert "ended       at max_subspaces=1: the other rows may lie on more." in found.summary()
    assert "max_subspaces=2" in found.summary()
    by_itself = assert_sure(peel(X, random_state=1))
    assert by_itself.limit is None
    assert "max_subspaces" not in by_itself.summary()


def test_it_unpacks_as_subspaces_and_labels():
    found = peel(union(6, [(2, 60)], 20, 0)[0], random_state=0)
    subspaces, labels = found
    assert subspaces is found.subspaces
    assert labels is found.labels


def test_same_seed_same_result():
    X, _, _ = union(3, ((2, 150), (2, 150)), 50, 0, noise=0.02)
    first, second = (peel(X, random_state=7) for _ in range(2))
    np.testing.assert_array_equal(first.labels, second.labels)
    for a, b in zip(first.subspaces, second.subspaces, strict=True):
        np.testing.assert_array_equal(a.normals, b.normals)


def test_rows_without_weight_have_no_say():
    X, y, _ = union(8, ((4, 150), (2, 150)), 50, 0)
    found = assert_sure(peel(X, sample_weight=(y != 1).astype(float), random_state=1))
    assert [s.codimension for s in found.subspaces] == [4]


def test_float32_stays_float32():
    X, y, _ = union(8, ((4, 150), (2, 150)), 50, 0)
    found = assert_sure(peel(X.astype(np.float32), random_state=1))
    assert sorted(s.codimension for s in found.subspaces) == [4, 6]
    assert all(s.normals.dtype == s.components.dtype == np.float32 for s in found.subspaces)
    assert np.mean((found.labels == -1) == (y == -1)) > 0.98


def test_without_normalising():
    X, _, _ = union(8, ((4, 150), (2, 150)), 50, 0)
    X = 1e3 * X / np.linalg.norm(X, axis=1, keepdims=True)
    found = assert_sure(peel(X, estimator=DPCP(normalize=False), random_state=1))
    assert sorted((s.codimension, len(s.members)) for s in found.subspaces) == [(4, 150), (6, 150)]


def test_a_method_that_is_told_the_codimension():
    X, _, _ = union(3, ((2, 200), (2, 200)), 100, 0)
    found = assert_sure(peel(X, estimator=RSGM(codimension=1), random_state=1))
    assert sorted(len(s.members) for s in found.subspaces) == [200, 200]
    assert all(s.codimension == 1 for s in found.subspaces)


def test_many_rows_are_found_in_a_sample():
    X, y, _ = union(4, ((2, 10_000), (2, 6_000)), 4_000, 0)
    found = assert_sure(peel(X, random_state=1))
    assert [s.codimension for s in found.subspaces] == [2, 2]
    assert np.mean((found.labels == -1) == (y == -1)) > 0.98


def test_columns_that_are_idle_are_no_subspace():
    X = np.random.default_rng(0).standard_normal((300, 4))
    X[:, 3] = 0
    assert peel(X, random_state=1).subspaces == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_subspaces": 0}, "max_subspaces=0"),
        ({"max_subspaces": 1.5}, "max_subspaces=1.5"),
        ({"estimator": "DPCP"}, "estimator is a str"),
        ({"X": np.full((5, 2), np.nan)}, "contains NaN"),
        ({"X": np.zeros((5, 2))}, "Every row of X is zero"),
    ],
)
def test_what_cannot_be_used_is_named(change, message):
    arguments = {"X": np.eye(5)[:, :2], **change}
    with pytest.raises(InputError, match=message):
        peel(**arguments)


def test_too_few_rows_are_refused_and_two_show_nothing():
    with pytest.raises(ValueError, match="minimum of 2"):
        peel(np.ones((1, 3)))
    assert peel(np.eye(2), random_state=0).subspaces == []


def test_a_row_on_an_intersection_goes_to_the_smaller_subspace():
    rng = np.random.default_rng(0)
    plane = np.c_[rng.standard_normal((200, 2)), np.zeros(200)]
    line = np.c_[rng.standard_normal(100), np.zeros((100, 2))]
    X = np.vstack([plane, line, rng.standard_normal((100, 3))])
    found = assert_sure(peel(X, random_state=1))
    assert sorted(s.codimension for s in found.subspaces) == [1, 2]
    of_line = [s.codimension for s in found.subspaces].index(2)
    np.testing.assert_array_equal(np.flatnonzero(found.labels == of_line), np.arange(200, 300))


@pytest.mark.slow
def test_a_table_full_of_things_is_found():
    file = Path(os.environ.get("PERPEND_DATA", "")) / "mosd_tabletop/test55.npz"
    if not file.is_file():
        pytest.skip("PERPEND_DATA does not name a folder with mosd_tabletop/test55.npz")
    stored = np.load(file)
    chosen = np.random.default_rng(0).choice(len(stored["points"]), 2000, replace=False)
    points, table = stored["points"][chosen].astype(float), stored["is_table"][chosen].astype(bool)
    found = peel(np.c_[points, np.ones(len(points))], random_state=1)
    scores = [
        2 * np.sum(table & (found.labels == k)) / (np.sum(table) + np.sum(found.labels == k))
        for k in range(len(found.subspaces))
    ]
    best = int(np.argmax(scores))
    assert scores[best] > 0.95
    # Of the things on the table nobody knows the truth; that is claimed of the table alone.
    assert assert_sure(found.subspaces[best]).codimension == 1


# -- affine subspaces ------------------------------------------------------------------------------


def room(seed, n=4000, noise=0.005):
    """Draw three planes of a room, with clutter; points in metres, and the plane of each."""
    rng = np.random.default_rng(seed)
    uv = rng.random((n, 2)) * [5, 4]
    height = rng.normal(0, noise, n)
    kind = rng.choice(4, n, p=[0.15, 0.4, 0.3, 0.15]) - 1
    floor, wall = np.column_stack([uv, height]), np.column_stack([height, uv])
    table = np.column_stack([1 + uv / 4, 0.8 + height])
    points = np.select([(kind == j)[:, None] for j in range(3)], [floor, wall, table])
    points[kind == -1] = rng.random((np.sum(kind == -1), 3)) * [5, 4, 3]
    Q, _ = np.linalg.qr(rng.standard_normal((3, 3)))
    return points @ Q.T + rng.normal(0, 10, 3), kind


def test_planes_of_a_room_are_found_in_metres(seed):
    points, kind = room(seed)
    found = assert_sure(peel(points, affine=True, random_state=seed))
    assert [one.codimension for one in found.subspaces] == [1, 1, 1]
    for j, k in enumerate(matched(found, kind)):
        own, members = kind == j, found.labels == k
        assert 2 * np.sum(own & members) / (np.sum(own) + np.sum(members)) > 0.9
        plane = found.subspaces[k]
        J = np.abs(np.column_stack([points[own], np.ones(np.sum(own))]) @ plane.plane)
        assert np.sqrt(np.mean(J**2)) < 0.006  # noise of .005
        np.testing.assert_allclose(plane.noise, 0.005 * np.sqrt(3), rtol=0.2)
        np.testing.assert_allclose(plane.location @ plane.normals.T, plane.intercept)
        assert plane.threshold < 0.05


def depth_image(seed, side=110, step=0.002):
    """Draw two planes as a depth camera sees them, in steps of depth; and the plane of each."""
    u, v = np.meshgrid(np.linspace(-0.5, 0.5, side), np.linspace(-0.4, 0.4, side))
    rays = np.column_stack([u.ravel(), v.ravel(), np.ones(side * side)])
    depths = np.array([1.0, 1.25]) / (rays @ np.array([[0.1, 0.75, 0.65], [-0.5, 0.4, 0.75]]).T)
    noise = np.random.default_rng(seed).normal(0, 0.0015, len(rays))
    z = np.round((depths.min(axis=1) + noise) / step) * step
    return rays * z[:, None], np.argmin(depths, axis=1)


def test_steps_of_depth_and_tails_of_noise_are_no_planes(seed):
    points, kind = depth_image(seed + 100)
    found = assert_sure(peel(points, affine=True, random_state=seed))
    assert [one.codimension for one in found.subspaces] == [1, 1]
    assert sorted(matched(found, kind)) == [0, 1]
    assert np.sum(found.labels == -1) < 0.01 * len(points)


def test_exact_flats_of_any_codimension_are_found(seed):
    rng = np.random.default_rng(seed)
    line = rng.normal(5, 1, 4) + rng.standard_normal((80, 1)) * rng.standard_normal(4)
    Q, _ = np.linalg.qr(rng.standard_normal((4, 3)))
    flat = rng.normal(-5, 1, 4) + rng.standard_normal((150, 3)) @ Q.T
    X = np.vstack([line, flat, rng.normal(0, 5, (60, 4))])
    found = assert_sure(peel(X, affine=True, random_state=seed))
    assert sorted(one.codimension for one in found.subspaces) == [1, 3]
    y = np.repeat([0, 1, -1], [80, 150, 60])
    for j, k in enumerate(matched(found, y)):
        np.testing.assert_array_equal(found.labels == k, y == j)


def test_far_from_the_origin_and_in_single_precision_nothing_changes(seed):
    points, kind = room(seed)
    far = (points + 1000).astype(np.float32)
    found = assert_sure(peel(far, affine=True, random_state=seed))
    assert [one.codimension for one in found.subspaces] == [1, 1, 1]
    assert found.subspaces[0].normals.dtype == np.float32
    for j, k in enumerate(matched(found, kind)):
        assert np.mean(found.labels[kind == j] == k) > 0.85


@pytest.mark.parametrize("n", range(1, 8))
def test_a_handful_of_points_is_no_sure_plane(n, seed):
    points = np.random.default_rng(seed).standard_normal((max(n, 2), 3))
    found = peel(points, affine=True, random_state=seed)
    assert all(one.confidence < 0.95 for one in found.subspaces)


def test_points_at_one_depth_of_a_camera_are_no_plane():
    """Depth in whole millimetres: those of equal depth would be an exact plane each."""
    rng = np.random.default_rng(0)
    points = rng.uniform([-0.4, -0.3, 0.7], [0.4, 0.3, 1.0], (3000, 3))
    points[:2000, 2] = 0.9 + 0.3 * points[:2000, 0] + rng.normal(0, 0.002, 2000)
    points[:, 2] = np.round(points[:, 2], 3)
    found = assert_sure(peel(points, affine=True, random_state=0))
    assert len(found.subspaces) == 1
    assert 0.002 < found.subspaces[0].noise < 0.006
    assert f"noise {found.subspaces[0].noise:.2g}, confidence 1.00 (sure)" in found.summary()


def test_what_does_not_fit_together_is_refused():
    points, _ = room(0, n=200)
    with pytest.raises(InputError, match="peel has affine=True, and the estimator affine=False"):
        peel(points, affine=True, estimator=DPCP())
    with pytest.raises(InputError, match="affine='auto'; expected True or False"):
        peel(points, affine="auto")
    X, _, _ = union(6, [(2, 100)], 20, seed=0)
    (line,) = peel(X, random_state=0).subspaces
    with pytest.raises(InputError, match="A plane has one normal; this subspace has 4"):
        line.plane  # noqa: B018


@pytest.mark.parametrize("value", [0.0, 5.0])
def test_a_constant_column_is_no_subspace(value, seed):
    """All rows lie on an exact plane, but no row less than another."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(size=(200, 2)), np.full(200, value)])
    assert peel(X, affine=True, random_state=seed).subspaces == []

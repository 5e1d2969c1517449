"""Distances from few components are those from many normals."""

import numpy as np
import pytest

from helpers import assert_orthonormal_rows
from perpend.rows import as_rows
from perpend.solvers import distance_edges, scan_distances, scan_grouped_distances
from perpend.solvers.reweighted import turned_by, turned_to
from perpend.solvers.sides import few_components


def frame(seed, D, c):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((D, c)))[0]


@pytest.mark.parametrize(("c", "used"), [(20, False), (74, False), (90, True), (99, True)])
def test_the_complement_of_many_normals(c, used, seed):
    V = frame(seed, 100, c)
    U = few_components(V)
    assert (U is not None) == used
    if used:
        assert U.shape == (100, 100 - c)
        assert_orthonormal_rows(np.hstack([V, U]).T, 1e-13)


def test_no_components_at_all():
    assert few_components(np.eye(5)) is None


@pytest.mark.parametrize("c", [20, 95])
def test_both_ways_give_the_same_distances(c, seed, dtype):
    rng = np.random.default_rng(seed)
    V = frame(seed, 100, c)
    X = rng.standard_normal((60, 100))
    X[:30] -= X[:30] @ V @ V.T * rng.choice([1, 1 - 1e-6], (30, 1))  # on it, and next to it
    rows = as_rows(X.astype(dtype))
    expected = np.linalg.norm(rows.take(np.arange(60)).astype(float) @ V, axis=1)
    edges = distance_edges(1.0, dtype)
    scan = scan_grouped_distances(rows, V, edges)
    tol = 20 * np.finfo(dtype).eps
    for kept in (scan_distances(rows, V).kept, scan.kept):
        np.testing.assert_allclose(rows.gather(kept), expected, rtol=0, atol=tol)
    counts = np.ravel(scan.product)
    assert counts.sum() == 60
    assert counts[0] == np.sum(expected < edges[0])


@pytest.mark.parametrize("c", [1, 5, 9, 10])
@pytest.mark.parametrize("angle", [1e-9, 0.1])
def test_the_angle_between_normals_and_axes(c, angle, seed):
    axes = frame(seed, 12, 10)  # principal axes inside a span of dimension 10
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

"""The sum of the inliers' subspace and that of a small group is seen through, or never sure."""

import numpy as np
import pytest

from perpend import DPCP, subspace_error
from perpend.codimension import Judge, distinct_rows
from perpend.codimension.inside import APART, _parts, smaller_inside
from perpend.datasets import make_subspace
from perpend.geometry import complement, orthonormal, random_directions
from perpend.rows import as_rows
from perpend.solvers import row_span

D, C, N = 17, 6, 300
SUM_OF_TWO = "may be the sum of two"


def inliers_and_line(seed, n_line, noise):
    """Return unit rows on a subspace and on a line outside it, and normals of both together."""
    rng = np.random.default_rng(seed)
    inliers = make_subspace(
        N, 0, n_features=D, codimension=C, noise=noise, stretch=0.3, random_state=rng
    )
    axis = random_directions(rng, D, 1)
    line = axis.T * rng.choice([-1.0, 1.0], (n_line, 1))
    line += noise / np.sqrt(D) * rng.standard_normal(line.shape)
    X = np.vstack([inliers.X, line])
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    both = complement(orthonormal(np.hstack([complement(inliers.normals.T), axis])))
    return X, both, inliers.normals


def looked_inside(X, V, weight=None):
    """Finish at the normals V (D, c), then look inside."""
    rows = as_rows(X, weight=weight)
    judge = Judge(rows, row_span(rows), distinct_rows(rows, np.random.default_rng(0)), True)
    found = judge.consider(V, None)
    return found, smaller_inside(judge, found)


@pytest.mark.parametrize("seed", range(5))
def test_inliers_that_are_better_supported_alone_are_the_answer(seed):
    X, both, normals = inliers_and_line(seed, 20, 0.02)
    found, smaller = looked_inside(X, both)
    assert found.codimension.value == C - 1
    assert found.codimension.confidence >= 0.95
    assert smaller.codimension.value == C
    assert smaller.support > found.support
    assert subspace_error(smaller.fit.V.T, normals) <= 0.1


@pytest.mark.parametrize("weight", [1e-4, 1.0, 100.0])
def test_outliers_with_preferred_directions_may_hide_it_whatever_their_weight(weight):
    X, both, _ = inliers_and_line(0, 20, 0.02)
    rng = np.random.default_rng(1)
    outliers = rng.standard_normal((100, D)) * np.geomspace(1, 30, D)
    X = np.vstack([X, outliers / np.linalg.norm(outliers, axis=1, keepdims=True)])
    found, smaller = looked_inside(X, both, np.full(len(X), weight))
    assert found.codimension.value == C - 1
    assert found.codimension.confidence >= 0.95
    assert smaller.codimension.value == C


def test_rows_of_weight_zero_are_not_there():
    X, both, _ = inliers_and_line(0, 20, 0.02)
    weight = np.ones(len(X))
    weight[N:] = 0  # the line
    _, again = looked_inside(X, both, weight)
    without, _ = looked_inside(X[:N], both)
    assert again.codimension.value == without.codimension.value
    assert again.codimension.confidence == pytest.approx(without.codimension.confidence)


@pytest.mark.parametrize("seed", range(5))
def test_where_the_sum_explains_more_rows_it_is_doubted(seed):
    X, both, _ = inliers_and_line(seed, 100, 0.02)
    found, again = looked_inside(X, both)
    assert again.codimension.value == C - 1
    assert again.codimension.confidence < 0.95 <= found.codimension.confidence
    assert SUM_OF_TWO in again.codimension.doubts[-1]
    assert again.codimension.doubts[-1].endswith("(use perpend.peel to find both)")
    assert again.codimension.evidence["rows_on_smaller"] in (100, N)


def walk(Y):
    """Return the squares of the projection onto the columns of Y (n, d)."""
    return np.square(Y @ np.linalg.pinv(Y))


def second_eigenvalue(H2):
    return np.sort(np.linalg.eigvals(H2 / H2.sum(axis=1, keepdims=True)).real)[-2]


@pytest.mark.parametrize("stretch", [1.0, 1e-3])
def test_the_walk_among_rows_of_two_subspaces_never_leaves_one(stretch, seed):
    rng = np.random.default_rng(seed)
    Y = np.zeros((130, 12))
    Y[:100, :9], Y[100:, 9:] = rng.standard_normal((100, 9)), rng.standard_normal((30, 3))
    Y = Y * np.geomspace(stretch, 1, 12) @ rng.standard_normal((12, 12))
    H2 = walk(Y)
    np.testing.assert_allclose(H2[:100, 100:], 0, atol=1e-15)
    np.testing.assert_allclose([H2[:100].sum(), H2[100:].sum()], [9, 3])  # their dimensions
    parts = _parts(H2, rng)
    assert parts.eigenvalue == pytest.approx(1, abs=1e-9)
    assert len(set(parts.first[:100])) == len(set(parts.first[100:])) == 1
    assert parts.first[0] != parts.first[-1]


@pytest.mark.parametrize(("n", "d"), [(40, 2), (40, 10), (100, 25), (400, 100)])
def test_the_walk_among_rows_of_one_subspace_mixes(n, d, seed):
    rng = np.random.default_rng(seed)
    Y = rng.standard_normal((n, d))
    H2 = walk(Y / np.linalg.norm(Y, axis=1, keepdims=True) * np.geomspace(1e-3, 1, d))
    found, exact = _parts(H2, rng).eigenvalue, second_eigenvalue(H2)
    assert found <= exact + 1e-12  # the power method comes from below
    assert found == pytest.approx(exact, abs=0.05)
    assert exact < APART


@pytest.mark.filterwarnings("ignore::perpend.exceptions.CodimensionWarning")
@pytest.mark.parametrize("n_outliers", [0, 10, 60])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_small_group_beside_the_inliers_is_never_taken_for_a_part_of_them(n_outliers, k, seed):
    """Few outliers besides, or many: these have no preferred direction and tell nothing."""
    for problem in range(4):
        rng = np.random.default_rng([seed, problem])
        inliers = make_subspace(
            150, n_outliers, n_features=20, codimension=6, noise=0.02, random_state=rng
        )
        group = random_directions(rng, k, 25).T @ np.linalg.qr(rng.standard_normal((20, k)))[0].T
        group *= rng.uniform(0.5, 2, (25, 1))  # else rows of a line would be the same row
        model = DPCP(random_state=seed).fit(np.vstack([inliers.X, group]))
        assert model.n_components_ in (14, k) or model.confidence_ < 0.95


def test_a_row_that_stands_often_is_no_part_of_the_inliers(seed):
    """Forty times the same row holds a dimension alone, as one row would."""
    data = make_subspace(150, 10, n_features=20, codimension=6, noise=0.02, random_state=seed)
    again = np.repeat(random_directions(np.random.default_rng(seed), 20, 1).T, 40, axis=0)
    model = DPCP(random_state=seed).fit(np.vstack([data.X, again]))
    assert model.codimension_ == 6
    assert model.confidence_ >= 0.95
    assert np.all(model.labels_[-40:] == -1)


@pytest.mark.filterwarnings("ignore::perpend.exceptions.CodimensionWarning")
@pytest.mark.parametrize("n_line", [20, 68, 100])
@pytest.mark.parametrize("noise", [0.02, 0.1])
def test_the_sum_is_never_sure(n_line, noise):
    for seed in range(5):
        X, *_ = inliers_and_line(seed, n_line, noise)
        model = DPCP(random_state=0).fit(X)
        assert model.codimension_ in (C, D - 1) or model.confidence_ < 0.95


@pytest.mark.filterwarnings("ignore::perpend.exceptions.CodimensionWarning")
@pytest.mark.parametrize("stretch", [1.0, 0.1])
@pytest.mark.parametrize("noise", [0.0, 0.02, 0.1])
def test_rows_without_any_outlier_hold_no_smaller_subspace(stretch, noise):
    for seed in range(5):
        data = make_subspace(
            N, 0, n_features=D, codimension=C, noise=noise, stretch=stretch, random_state=seed
        )
        model = DPCP(random_state=0).fit(data.X)
        assert model.codimension_ == C
        assert not any(SUM_OF_TWO in doubt for doubt in model.doubts_)

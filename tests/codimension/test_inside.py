"""The sum of the inliers' subspace and that of a small group is seen through, or never sure."""

import numpy as np
import pytest

from perpend import DPCP, subspace_error
from perpend.codimension import Judge, distinct_rows
from perpend.codimension.inside import smaller_inside
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

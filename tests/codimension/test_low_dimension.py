"""Low dimension among many features: found before any descent, and only where it stands out."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from helpers import assert_same_subspace
from perpend import DPCP
from perpend.codimension.certificate import distinct_rows
from perpend.codimension.decision import Judge
from perpend.codimension.low_dimension import landed, low_dimensional
from perpend.datasets import make_subspace
from perpend.rows import as_rows
from perpend.solvers import in_their_span, row_span

pytestmark = pytest.mark.filterwarnings("ignore::perpend.exceptions.CodimensionWarning")


def look(X, codimension=None):
    rows, span = in_their_span(as_rows(X))
    asked = []

    def ask():
        asked.append(True)
        return Judge(rows, span, distinct_rows(as_rows(X), np.random.default_rng(0)), True)

    return low_dimensional(rows, span, ask, codimension), span, bool(asked)


@pytest.mark.parametrize(
    "problem",
    [
        (200, 1024, 9, 0.7, 0.05),
        (100, 100, 3, 0.7, 0.2),
        (600, 200, 30, 0.5, 0.1),
        (400, 100, 9, 0.85, 0.05),
        (60, 300, 1, 0.5, 0.1),
    ],
)
def test_two_starts_agree_on_the_subspace(problem, seed):
    n, D, d, ratio, noise = problem
    n_inliers = round(n * (1 - ratio))
    data = make_subspace(
        n_inliers, n - n_inliers, n_features=D, codimension=D - d, noise=noise, random_state=seed
    )
    found, span, _ = look(data.X)
    assert found is not None
    assert found.codimension.value == span.rank - d
    assert found.codimension.confidence >= 0.95
    components = span.in_data(found.fit.axes[:, -d:])
    error = noise * np.sqrt(d / n_inliers * max(1, D / n_inliers))
    assert_same_subspace(components.T, data.components, 6 * error)


@pytest.mark.parametrize("shape", [(50, 1000), (200, 200), (300, 100), (2000, 100)])
def test_rows_without_preferred_direction_do_not_stand_out(shape, seed):
    found, _, asked = look(np.random.default_rng(seed).standard_normal(shape))
    assert found is None
    assert not asked


def test_high_dimension_is_left_to_the_descents(seed):
    data = make_subspace(1500, 2250, n_features=200, codimension=10, random_state=seed)
    found, _, asked = look(data.X)
    assert found is None
    assert not asked


def test_one_start_through_a_few_outliers_is_not_believed():
    """Where the inliers are hardly twice their dimension, one alone is sure and often wrong."""
    wrong = 0
    for seed in range(8):
        data = make_subspace(46, 54, n_features=100, codimension=70, noise=0.05, random_state=seed)
        found, _, _ = look(data.X)  # n < 2 R: there is an answer in any case
        if found.codimension.value != 70:
            wrong += 1
            assert found.codimension.confidence < 0.95
            assert any("other starts" in doubt for doubt in found.codimension.doubts)
    assert wrong > 0  # or these problems are too easy for this test


def test_a_told_codimension(seed):
    data = make_subspace(60, 60, n_features=800, codimension=795, noise=0.05, random_state=seed)
    model = DPCP(795, random_state=seed).fit(data.X)
    assert_same_subspace(model.components_, data.components, 0.15)
    with warnings.catch_warnings():
        # At a dimension that the rows do not have, nothing need come to rest.
        warnings.simplefilter("ignore", ConvergenceWarning)
        other = DPCP(796, random_state=seed).fit(data.X)
    assert other.n_components_ == 4
    inside = np.linalg.svd(other.components_ @ data.components.T, compute_uv=False)
    assert np.min(inside) > 0.98  # four of the five dimensions


def test_rows_that_all_lie_on_it(seed):
    data = make_subspace(80, 0, n_features=500, codimension=495, noise=0.05, random_state=seed)
    model = DPCP(random_state=seed).fit(data.X)
    assert model.n_components_ == 5
    assert_same_subspace(model.components_, data.components, 0.1)


def test_landed_starts_are_projections_onto_the_normals(seed):
    data = make_subspace(50, 50, n_features=80, codimension=70, random_state=seed)
    rows = as_rows(data.X)
    span = row_span(rows)
    V = data.normals.T
    directions = landed(rows, span, V, np.random.default_rng(seed))
    np.testing.assert_allclose(np.linalg.norm(directions.B, axis=0), 1)
    np.testing.assert_allclose(V @ (V.T @ directions.B), directions.B, atol=1e-12)
    np.testing.assert_allclose(directions.objective, np.abs(data.X @ directions.B).sum(axis=0))
    assert np.linalg.matrix_rank(directions.B) == directions.B.shape[1]

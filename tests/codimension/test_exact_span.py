"""Rows that hold a dimension alone, where the rows are few: outliers, found by linear algebra."""

import numpy as np
import pytest

from perpend import DPCP, subspace_error
from perpend.codimension.certificate import distinct_rows
from perpend.codimension.decision import Judge
from perpend.codimension.exact_span import without_lone_rows
from perpend.datasets import make_subspace
from perpend.exceptions import CodimensionWarning
from perpend.geometry import random_directions
from perpend.rows import as_rows
from perpend.solvers import in_their_span


def exact_and_cluster(seed, D=60, d=2, n_inliers=10, n_outliers=40):
    """Few exact rows and a tight cluster that fills as many dimensions as it has rows."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.standard_normal((D, d)))[0].T
    cluster = random_directions(rng, D, 1).T + 0.1 * random_directions(rng, D, n_outliers).T
    X = np.vstack([rng.standard_normal((n_inliers, d)) @ basis, cluster])
    return X, basis, np.repeat([1, -1], [n_inliers, n_outliers])


def look(X):
    rows, span = in_their_span(as_rows(X))
    distinct = distinct_rows(as_rows(X), np.random.default_rng(0))
    return without_lone_rows(Judge(rows, span, distinct, refine=True)), span


@pytest.mark.parametrize("sizes", [(60, 2, 10, 40), (300, 5, 60, 150), (40, 3, 12, 20)])
def test_exact_rows_among_a_cluster(sizes, seed):
    """The rows span fewer dimensions than they are, but that is no subspace of all of them."""
    X, basis, y = exact_and_cluster(seed, *sizes)
    model = DPCP(random_state=seed).fit(X)
    assert model.n_components_ == len(basis)
    assert model.confidence_ >= 0.95
    assert subspace_error(model.components_, basis) < 1e-10
    np.testing.assert_array_equal(model.labels_, y)


def test_the_leverage_of_an_independent_row_is_one(seed):
    """Those of the rows that depend on one another are found by leaving each row out."""
    X, _, y = exact_and_cluster(seed)
    rank = np.linalg.matrix_rank(X)
    alone = [np.linalg.matrix_rank(np.delete(X, i, axis=0)) < rank for i in range(len(X))]
    np.testing.assert_array_equal(alone, y == -1)
    found, span = look(X)
    normals = span.in_data(found.fit.V)
    near = np.linalg.norm(X @ normals, axis=1) < 1e-10
    np.testing.assert_array_equal(near, ~np.array(alone))


def test_rows_in_general_position_are_all_alike(seed):
    """As many rows as this lie in 20 dimensions, and none of them alone in any."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, 20)) @ rng.standard_normal((20, 40))
    assert look(X)[0] is None
    assert look(rng.standard_normal((30, 20)))[0] is None  # the whole space: not asked


def test_one_row_that_depends_on_two_others_is_no_group(seed):
    X = np.random.default_rng(seed).standard_normal((30, 40))
    X[2] = X[0] + X[1]
    assert look(X)[0] is None


@pytest.mark.filterwarnings("ignore::perpend.exceptions.CodimensionWarning")
@pytest.mark.parametrize("stretch", [0.03, 0.1])
def test_noise_inside_an_exact_plane_is_not_believed(stretch, seed):
    """Rows of a plane, ten times as long as it is wide, look like a line with noise inside it."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 2)) * [1, stretch] @ rng.standard_normal((2, 10))
    model = DPCP(random_state=seed).fit(X)
    assert model.n_components_ == 2 or model.confidence_ < 0.95
    if model.n_components_ == 1:
        assert any("lie exactly on a larger subspace" in doubt for doubt in model.doubts_)
        assert model.evidence_["exact_codimension"] == 8
    told = DPCP(codimension=8, random_state=seed).fit(X)
    np.testing.assert_allclose(X @ told.normals_.T, 0, atol=1e-12)


def test_a_total_of_noisy_columns_is_a_doubt_and_a_copied_column_is_none(seed):
    """The total makes an equation that all rows obey exactly; a copy says nothing about rows."""
    data = make_subspace(300, 30, n_features=8, codimension=4, noise=0.05, random_state=seed)
    copied = DPCP(random_state=seed).fit(np.column_stack([data.X, data.X[:, 0]]))
    assert copied.codimension_ == 5
    assert copied.confidence_ >= 0.95
    with pytest.warns(CodimensionWarning, match="exactly on a larger subspace"):
        total = DPCP(random_state=seed).fit(np.column_stack([data.X, data.X.sum(axis=1)]))
    assert total.codimension_ == 5

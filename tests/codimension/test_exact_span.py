"""Rows that hold a dimension alone, where the rows are few: outliers, found by linear algebra."""

import numpy as np
import pytest

from perpend import DPCP, subspace_error
from perpend.codimension.certificate import distinct_rows
from perpend.codimension.decision import Judge
from perpend.codimension.exact_span import without_lone_rows
from perpend.datasets import make_subspace
from perpend.exceptions import CodimensionWarning
from perpend.geometry import complement, orthonormal, random_directions
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


@pytest.mark.filterwarnings("ignore::perpend.exceptions.CodimensionWarning")
@pytest.mark.parametrize("kind", ["equal", "spread", "one heavy row"])
def test_lone_rows_of_any_weight(kind, seed):
    X, basis, y = exact_and_cluster(seed)
    rng = np.random.default_rng(seed)
    weight = np.exp(2 * rng.standard_normal(len(X))) if kind == "spread" else np.ones(len(X))
    if kind == "one heavy row":
        weight[-1] = 1e8
    model = DPCP(random_state=seed).fit(X, sample_weight=weight)
    assert model.n_components_ == len(basis)
    assert subspace_error(model.components_, basis) < 1e-6
    np.testing.assert_array_equal(model.labels_, y)


def test_lone_rows_in_single_precision(seed):
    rng = np.random.default_rng(seed)
    X, basis, y = exact_and_cluster(seed)
    X[y == -1] = random_directions(rng, 60, 40).T + 0.5 * random_directions(rng, 60, 1).T
    model = DPCP(random_state=seed).fit(X.astype(np.float32))
    assert model.n_components_ == 2
    assert subspace_error(model.components_, basis) < 1e-4
    np.testing.assert_array_equal(model.labels_, y)


def test_many_light_rows_are_different_rows_all_the_same(seed):
    """Their number, and not how much evidence they are, is compared with the dimensions."""
    X, *_ = exact_and_cluster(seed, 300, 5, 60, 150)
    weight = np.ones(len(X))
    weight[: len(X) // 2 - 1] = 1e-3
    distinct = distinct_rows(as_rows(X, weight=weight), np.random.default_rng(0))
    assert distinct.share.sum() < 155  # the dimensions that the rows span
    assert distinct.n_different == pytest.approx(210)


def test_light_rows_that_hold_a_dimension_alone_are_taken_out(seed):
    """Leverage does not depend on weight."""
    rng = np.random.default_rng(seed)
    inliers = rng.standard_normal((60, 5)) @ rng.standard_normal((5, 12))
    X = np.vstack([inliers, rng.standard_normal((2, 12)), rng.standard_normal((30, 12))])
    weight = np.ones(len(X))
    weight[60:62] = 0.2
    rows = as_rows(X, weight=weight)
    judge = Judge(rows, *in_their_span(rows)[1:], distinct_rows(rows, rng), refine=True)
    through = orthonormal(X[:62].T)  # the inliers' subspace and two rows more
    found = judge.follow(complement(through), None)
    assert found.codimension.value == 7

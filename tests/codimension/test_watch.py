"""Stopping early: cheap where the answer is clear, harmless where it is not."""

from itertools import pairwise

import numpy as np
import pytest
from _counting import CountingRows

from perpend import dpcp
from perpend.codimension import Judge, Watch, distinct_rows
from perpend.datasets import make_subspace
from perpend.kernels import l1_objective_and_gradient, weighted_gram
from perpend.rows import as_rows
from perpend.solvers import AutoStep, Directions, psgm, random_starts, row_span


def solved(data, seed, **parameters):
    rows = CountingRows(as_rows(data.X))
    return rows, dpcp(rows, rng=np.random.default_rng(10_000 + seed), **parameters)


def is_exact(solution, data):
    found = solution.normals.shape[1] == len(data.normals)
    return found and np.linalg.norm(data.components @ solution.normals, 2) < 1e-9


@pytest.mark.parametrize(("r", "most"), [(0.6, 60), (0.7, 120)])
def test_the_papers_setting_takes_few_products(r, most):
    """The stored benchmark has many seeds and the whole distribution; a seed may need more."""
    spent = []
    for seed in range(6):
        M = round(1500 * r / (1 - r))
        data = make_subspace(1500, M, n_features=200, codimension=10 + 2 * seed, random_state=seed)
        rows, solution = solved(data, seed, n_starts=30)
        assert is_exact(solution, data)
        assert solution.confidence >= 0.95
        spent.append(rows.products(30))
    assert np.median(spent) <= most


@pytest.mark.parametrize("codimension", [3, 16, 20])
def test_more_normals_than_starts_are_seen_on_the_way(codimension):
    data = make_subspace(
        1000, 1000, n_features=100, codimension=codimension, random_state=codimension
    )
    rows, solution = solved(data, codimension)
    assert is_exact(solution, data)
    assert solution.confidence >= 0.95
    assert solution.directions.shape[1] == 16
    assert rows.n_scans[l1_objective_and_gradient.__name__] < 80


def test_a_told_codimension_stops_early_too():
    data = make_subspace(500, 700, n_features=40, codimension=4, random_state=1)
    rows, solution = solved(data, 1, codimension=4)
    assert is_exact(solution, data)
    assert rows.n_scans[l1_objective_and_gradient.__name__] < 40


def test_without_a_finish_the_descents_come_to_rest():
    data = make_subspace(500, 700, n_features=40, codimension=4, random_state=1)
    _, solution = solved(data, 1, refine=False, n_starts=12)
    assert solution.converged
    assert np.linalg.norm(data.components @ solution.directions, 2) < 1e-7


def test_noise_does_not_keep_the_descents_going():
    data = make_subspace(500, 700, n_features=40, codimension=4, noise=0.1, random_state=2)
    rows, solution = solved(data, 2)
    assert solution.normals.shape[1] == 4
    assert solution.confidence >= 0.95
    assert rows.n_scans[l1_objective_and_gradient.__name__] < 100


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.05, 0.1, 0.2])
@pytest.mark.parametrize(("D", "c", "N", "M"), [(10, 6, 2000, 8000), (30, 5, 1000, 2333)])
def test_certifying_a_clear_answer_takes_three_weighted_grams(D, c, N, M, noise):
    """The stored benchmark has more seeds and shapes."""
    for seed in range(5):
        data = make_subspace(N, M, n_features=D, codimension=c, noise=noise, random_state=seed)
        rows, solution = solved(data, seed)
        assert solution.normals.shape[1] == c
        assert solution.confidence >= 0.95
        assert rows.n_scans[weighted_gram.__name__] <= 3


@pytest.mark.parametrize("proposed", [3, 5])
def test_a_proposal_with_nearly_the_right_number_of_normals_is_mended_at_once(proposed, seed):
    data = make_subspace(600, 600, n_features=30, codimension=4, random_state=seed)
    rows = CountingRows(as_rows(data.X))
    judge = Judge(rows, row_span(rows), distinct_rows(rows, np.random.default_rng(0)), True)
    rng = np.random.default_rng(seed)
    some = data.normals.T @ np.linalg.qr(rng.standard_normal((4, 4)))[0][:, :proposed]
    others = data.components.T @ rng.standard_normal((26, max(proposed - 4, 0)))
    V = np.linalg.qr(np.hstack([some, others]) + 0.01 * rng.standard_normal((30, proposed)))[0]
    found = judge.propose(V, None)
    assert found.codimension.value == 4
    assert rows.n_scans[weighted_gram.__name__] <= 4


def test_a_plane_inside_what_holds_all_rows_is_still_found():
    """All rows lie on a 12-dimensional subspace with noise: inliers on 10 of it, 300 on a plane."""
    rng = np.random.default_rng(3)
    basis = np.linalg.qr(rng.standard_normal((30, 12)))[0]
    X = np.vstack(
        [
            rng.standard_normal((700, 10)) @ basis[:, :10].T,
            rng.standard_normal((300, 2)) @ basis[:, 10:].T,
        ]
    )
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    X[:700] += 0.02 / np.sqrt(30) * rng.standard_normal((700, 30))
    solution = dpcp(as_rows(X), rng=np.random.default_rng(4))
    # Either subspace is right; their sum, which holds all rows, is not.
    assert solution.normals.shape[1] in (20, 28)


def watched(judge):
    """Directions without any rank, looked at once."""
    data = make_subspace(300, 300, n_features=20, codimension=3, random_state=0)
    rows = as_rows(data.X)
    span = row_span(rows)
    B = random_starts(np.random.default_rng(1), span, 8)
    f = rows.scan(l1_objective_and_gradient, B).total
    still = Directions(B, f, np.zeros(8, int), np.zeros(8, bool), 0.0, 7)
    watch = Watch(rows, span.rank, judge)
    return watch, watch(still)


def test_directions_without_a_rank_are_not_shown_to_the_judge():
    def judge():
        raise AssertionError

    watch, enough = watched(judge)
    assert not enough
    assert not watch.answered


def test_looks_come_ever_more_rarely():
    data = make_subspace(300, 300, n_features=20, codimension=3, random_state=0)
    rows = as_rows(data.X)
    B = random_starts(np.random.default_rng(1), row_span(rows), 8)
    looks = []

    def enough(directions):
        looks.append(directions.n_evaluations)
        assert directions.resolution == 0
        return False

    end = psgm(rows, B, rule=AutoStep(), max_iter=1000, tol=1e-9, enough=enough)
    alone = psgm(rows, B, rule=AutoStep(), max_iter=1000, tol=1e-9)
    np.testing.assert_array_equal(end.B, alone.B)
    assert end.resolution == alone.resolution > 0
    assert looks[0] == 6
    assert all(1 < b / a < 1.4 for a, b in pairwise(looks))
    assert len(looks) < 25


def test_enough_ends_the_descents_there():
    data = make_subspace(300, 300, n_features=20, codimension=3, random_state=0)
    rows = as_rows(data.X)
    B = random_starts(np.random.default_rng(1), row_span(rows), 8)
    seen = []

    def enough(directions):
        seen.append(directions)
        return len(seen) == 3

    end = psgm(rows, B, rule=AutoStep(), max_iter=1000, tol=1e-9, enough=enough)
    np.testing.assert_array_equal(end.B, seen[2].B)
    assert end.n_evaluations == seen[2].n_evaluations
    assert not end.converged.any()


def test_starts_that_repeat_what_is_known_wait_for_the_others():
    data = make_subspace(300, 300, n_features=20, codimension=3, random_state=0)
    rows = as_rows(data.X)
    B = random_starts(np.random.default_rng(1), row_span(rows), 8)
    widths = []

    class Widths(CountingRows):
        def scan(self, kernel, *params, **options):
            widths.append(params[0].shape[1])
            return super().scan(kernel, *params, **options)

    def known(directions):  # whatever is near a true normal
        return np.linalg.norm(data.components @ directions, axis=0) < 0.1

    options = {"rule": AutoStep(), "max_iter": 1000, "tol": 1e-9}
    waiting = psgm(Widths(rows), B, known=known, **options)
    some_wait = widths.copy()
    widths.clear()
    alone = psgm(Widths(rows), B, **options)
    # All end where they would have ended, and on the way there are fewer columns to multiply.
    np.testing.assert_allclose(waiting.B, alone.B, rtol=0, atol=1e-6)
    assert waiting.converged.all()
    first = next(i for i, width in enumerate(some_wait) if width < 8)
    assert min(some_wait[first : first + 5]) < min(widths[first : first + 5])
    assert sum(some_wait) < 1.1 * sum(widths)


def test_only_normals_of_which_the_rows_are_sure_are_known():
    watch, _ = watched(lambda: None)
    assert not np.any(watch.repeats(np.eye(20)))

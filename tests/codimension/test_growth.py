"""Growing the number of starts, with invented descents and evidence."""

import numpy as np
import pytest

from perpend.codimension import RankEvidence, grow_starts
from perpend.codimension.growth import N_STARTS_FIRST, enough_starts
from perpend.solvers import Directions


class Descents:
    """Hands out numbered starts and writes down how many were asked for."""

    def __init__(self):
        self.asked = []

    def __call__(self, k, before=None):
        first = sum(self.asked)
        self.asked.append(k)
        numbers = np.arange(first, first + k, dtype=float)
        return Directions(
            B=numbers[None, :],
            objective=numbers,
            n_iter=np.ones(k, dtype=int),
            converged=np.ones(k, dtype=bool),
            resolution=1e-9,
            n_evaluations=7,
        )


def evidence(value, saturated=False):
    none = np.empty(0)
    return RankEvidence(value, saturated, none, none, none, 1e6, 1.0, 6.0)


def rank_of(codimension):
    """What a clean problem would show: saturated as long as there are too few starts."""

    def weigh(directions):
        k = directions.B.shape[1]
        return evidence(min(codimension, k), saturated=k <= codimension)

    return weigh


def test_a_small_codimension_needs_no_growth():
    solve = Descents()
    directions, found = grow_starts(solve, rank_of(3), at_least=0, at_most=1000)
    assert solve.asked == [N_STARTS_FIRST]
    assert found.value == 3
    assert directions.n_evaluations == 7


@pytest.mark.parametrize("codimension", [1, 7, 8, 15, 16, 17, 40, 100])
def test_it_grows_until_the_starts_clearly_outnumber_the_normals(codimension):
    solve = Descents()
    directions, found = grow_starts(solve, rank_of(codimension), at_least=0, at_most=1000)
    k = directions.B.shape[1]
    assert found.value == codimension
    assert not found.saturated
    assert k == sum(solve.asked)
    assert k > 1.4 * codimension
    if len(solve.asked) > 1:  # and not earlier: half as many would not have been enough
        assert not enough_starts(k // 2, rank_of(codimension)(Descents()(k // 2)))


def test_solved_starts_are_kept_in_their_order():
    solve, seen = Descents(), []

    def weigh(directions):
        seen.append(directions.B.shape[1])
        return rank_of(40)(directions)

    directions, _ = grow_starts(solve, weigh, at_least=0, at_most=1000)
    k = directions.B.shape[1]
    np.testing.assert_array_equal(directions.B[0], np.arange(k))
    np.testing.assert_array_equal(directions.objective, np.arange(k))
    assert directions.n_evaluations == 7 * len(solve.asked)
    assert seen == list(np.cumsum(solve.asked))  # all of them are weighed, each time


def test_it_begins_with_as_many_as_it_is_told():
    solve = Descents()
    grow_starts(solve, rank_of(3), at_least=50, at_most=1000)
    assert solve.asked == [50]


@pytest.mark.parametrize("at_most", [1, 16, 17, 60, 128])
def test_growing_ends_at_the_limit(at_most):
    """Evidence that stays saturated would let it grow for ever."""
    solve = Descents()
    directions, found = grow_starts(
        solve, lambda d: evidence(d.B.shape[1], saturated=True), at_least=0, at_most=at_most
    )
    k = directions.B.shape[1]
    assert found.saturated
    assert k >= at_most
    assert k - solve.asked[-1] < at_most


def test_enough_means_clearly_more_and_not_saturated():
    assert enough_starts(16, evidence(5))
    assert not enough_starts(16, evidence(5, saturated=True))
    assert not enough_starts(16, evidence(12))
    assert not enough_starts(6, evidence(5))

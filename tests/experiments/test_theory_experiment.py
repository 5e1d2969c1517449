"""What the experiment checks holds where it must, and its page says what its numbers say."""

import dataclasses
import math

import numpy as np
import pytest

from perpend import experiments
from perpend.experiments import Results, Settings
from perpend.experiments._runner import reproduce
from perpend.experiments._store import plain
from perpend.experiments._theory_limits import C1, C2, EPS7
from perpend.experiments.theory import ratios
from perpend.theory import average_height, continuous_objective
from studies._pages import description

EXPERIMENT = experiments.load("theory")
EASY = {"part": "problem", "D": 10, "c": 8, "N": 1000, "M": 111, "r": 0.1, "seed": 0}
FINITE = {"part": "finite", "D": 30, "c": 29, "N": 1000, "draws": 2, "seed": 0}
HARD = {"part": "problem", "D": 10, "c": 1, "N": 100, "M": 900, "r": 0.9, "seed": 0}


def rows(case):
    (table,) = plain(EXPERIMENT.run(case)).values()
    return table


@pytest.mark.parametrize(("D", "c"), [(3, 1), (10, 5), (30, 25)])
@pytest.mark.parametrize("p", [0.1, 0.9])
def test_lemma_2_within_four_standard_errors(D, c, p, seed):
    found = rows({"part": "lemma2", "D": D, "c": c, "p": p, "n": 20_000, "seed": seed})
    errors = np.array([row["z"] for row in found if row["z"] is not None])
    assert len(errors) >= 29  # all but the inliers' heights over the complement, which are zero
    assert np.max(np.abs(errors)) < 4
    for row in found:
        if row["z"] is None:
            assert row["predicted"] == row["measured"] == 0
    # the prediction is Lemma 2's, and a wrong one would be noticed
    first = next(row for row in found if row["rows"] == "all")
    normals = np.eye(D)[:, D - c :]
    expected = continuous_objective(np.eye(D)[:, :1], normals, p)[0]
    assert first["predicted"] == pytest.approx(expected, rel=1e-5)
    swapped = (1 - p) * average_height(D) + p * average_height(D - c)
    assert abs(first["measured"] - swapped) > 4 * first["standard_error"]


@pytest.mark.parametrize(("D", "c"), [(3, 2), (10, 5), (30, 5)])
def test_the_continuous_method_ends_at_the_projected_starts(D, c, seed):
    found = rows({"part": "continuous", "D": D, "c": c, "p": 0.7, "seed": seed})
    assert [row["k"] for row in found] == sorted({max(1, c - 1), c, 2 * c})
    for row in found:
        assert row["holds"]
        assert row["violations"] == 0
        assert row["largest_tangent"] < 1e-10
        assert row["deviation"] < 1e-9
        assert row["rank"] == row["expected_rank"] == min(row["k"], c)


def test_a_theorem_that_holds_is_kept_and_too_few_starts_have_none(seed):
    line = {**FINITE, "M": 1, "draws": 3, "seed": seed}
    (held,), (few,) = rows({**line, "k": 116}), rows({**line, "k": 28})
    assert held["holds"]
    assert 0 < held["delta"] < held["right"] < held["left"] < held["singular"]
    assert held["probability"] == pytest.approx(0.9)
    assert held["spanned"] == 3
    assert not few["holds"]
    assert few["spanned"] == few["singular"] == 0


def test_random_starts_keep_the_promise(seed):
    found = rows({"part": "starts", "D": 50, "c": 5, "k": 15, "draws": 60, "seed": seed})
    for row in found:
        assert row["above"] >= row["promised"] - 0.1
        assert row["above_projected"] >= row["promised"] - 0.1
        assert row["median"] > row["bound"]
        assert row["median_projected"] > row["bound_projected"]
    assert {row["eps"]: row["promised"] for row in found}[2.0] == pytest.approx(0.729, abs=1e-3)
    assert 1 - 2 * math.exp(-C2 * EPS7**2) == pytest.approx(0.5)
    assert C1 == 1


@pytest.mark.parametrize("case", [EASY, HARD], ids=["easy", "hard"])
def test_bounds_are_kept_on_every_problem(case, seed):
    (row,) = rows({**case, "seed": seed})
    assert row["violations"] == row["violations_certified"] == 0
    assert row["identity"] < 1e-10
    assert row["error"] <= row["error_bound"]
    assert row["short_delta"] <= row["short_delta_bound"] < math.inf
    for suffix in ("", "_few"):
        assert row["full_rank" + suffix] or not row["lemma6" + suffix]
        assert row["reached" + suffix] > 1e-6 or not row["corrected" + suffix]
        assert row["corrected" + suffix] == (
            row["projected_singular" + suffix] > row["projected_delta" + suffix]
        )


def test_an_easy_problem_is_certified(seed):
    (row,) = rows({**EASY, "seed": seed})
    assert row["holds_certified"]
    assert row["covered_certified"] == row["covered"] == row["k"] == 10
    assert 0.3 < row["closest_certified"] <= 1
    assert row["promised_arrived"] == row["promised"] == row["arrived"] == 10
    assert row["descents"]
    assert row["dpcp"]
    assert row["assumption1_few"]
    assert row["right"] > 0


def test_a_hard_problem_is_not_covered_by_anything(seed):
    (row,) = rows({**HARD, "seed": seed})
    assert not row["dominates"]
    assert row["covered"] == row["promised"] == 0
    assert row["right"] is None
    assert not row["theorem7"]
    assert not row["descents"]


def test_the_printed_bound_on_the_errors_is_wrong():
    (row,) = rows({**EASY, "N": 1000, "M": 1000})
    assert row["error_bound_printed"] < row["error"] <= row["error_bound_estimated"]


def test_negative_bounds_are_broken_ones():
    table = [{"a": 1.0, "b": 2.0}, {"a": 1.0, "b": -1.0}, {"a": 1.0, "b": None}]
    np.testing.assert_array_equal(ratios(table, "a", "b"), [0.5, np.inf])


def test_quick_and_full_have_the_same_parts():
    quick, full = (EXPERIMENT.cases(Settings(quick=quick)) for quick in (True, False))
    assert {frozenset(case) for case in quick} == {frozenset(case) for case in full}
    problems = [case for case in full if case["part"] == "problem"]
    assert min(case["r"] for case in problems) < 0.1
    assert max(case["r"] for case in problems) > 0.9
    assert {case["D"] for case in problems} == {3, 10, 30}
    assert {case["N"] for case in problems} >= {100, 10_000}
    fewer, more = (EXPERIMENT.cases(Settings(seeds=n)) for n in (2, 3))
    assert all(case in more for case in fewer)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("theory")
    few = [
        EASY,
        HARD,
        {"part": "lemma2", "D": 5, "c": 2, "p": 0.5, "n": 1000, "seed": 0},
        {"part": "continuous", "D": 5, "c": 2, "p": 0.5, "seed": 0},
        {"part": "starts", "D": 30, "c": 3, "k": 6, "draws": 10, "seed": 0},
        {**FINITE, "M": 1, "k": 116},
        {**FINITE, "M": 30, "k": 116},
    ]
    small = dataclasses.replace(EXPERIMENT, cases=lambda _: few)
    return folder, reproduce(small, Settings(quick=True), folder)


def test_end_to_end(made):
    folder, results = made
    for stem in ("conditions", "bounds"):
        assert (folder / f"{stem}.png").stat().st_size > 10_000
        assert (folder / f"{stem}.svg").exists()
    for table in ("problem", "lemma2", "continuous", "starts", "finite"):
        assert (folder / f"{table}.csv").exists()
    page = description("theory", results)
    assert "the statements are broken 0 times" in page
    assert "| Theorem 1, balance | 1 (50 %) | 100 % | 100 % | 0 % |" in page
    assert "the limits span in 2 of 2 draws of the starts (90 % promised)" in page
    assert "1 of the 1 problems where it does not hold are recovered all the same" in page
    assert '**"Almost surely" fails for a fixed schedule**' in page
    assert "**Assumption 1 conditions the starts**" in page
    assert "**together they hold with .97, not .99**" in page
    for heading in ("## Conditions and success", "## Published and ours", "## Theorem 7"):
        assert heading in page


def test_the_page_reports_a_broken_bound(made):
    _, results = made
    tables = {name: [dict(row) for row in table] for name, table in results.tables.items()}
    tables["problem"][0]["violations"] = 3
    tables["problem"][1]["error"] = 2 * tables["problem"][1]["error_bound"]
    broken = Results("theory", True, tables, 0.0, {})
    page = description("theory", broken)
    assert "the statements are broken 4 times" in page
    assert "3 and 0 violations" in page
    assert "exceeded 1 times" in page

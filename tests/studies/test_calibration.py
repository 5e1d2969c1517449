"""The calibration's suites, what a right estimate is, and that the page says what was counted."""

from collections import Counter

import numpy as np
import pytest

from perpend.experiments import Results, Settings
from studies import STUDIES
from studies._calibration_page import counts, met
from studies._calibration_suite import (
    SIZE,
    SUITES,
    Problem,
    draw,
    own_normals,
    problem,
    score,
    starts,
)
from studies._pages import description

EVERY = {suite: [problem(suite, i) for i in range(SIZE)] for suite in SUITES}


# -- the suites ----------------------------------------------------------------------------------


def test_equal_shares_in_the_first_suite():
    first = EVERY["first"]
    kinds = {"sphere": 150, "heavy": 150, "cluster": 150, "plane": 150}
    assert Counter(p.kind for p in first) == kinds
    assert Counter(p.noise for p in first) == {0: 150, 0.02: 150, 0.1: 150, 0.4: 150}
    assert Counter(p.stretch for p in first) == {1: 200, 0.3: 200, 0.1: 200}


def test_other_shares_in_the_second_suite():
    second = EVERY["second"]
    kinds = {"sphere": 150, "heavy": 75, "cluster": 150, "plane": 225}
    assert Counter(p.kind for p in second) == kinds
    assert Counter(p.noise for p in second) == {0: 100, 0.02: 150, 0.1: 200, 0.4: 150}
    assert Counter(p.stretch for p in second) == {1: 150, 0.3: 200, 0.1: 250}


@pytest.mark.parametrize("suite", SUITES)
def test_all_ranges_hold_and_are_used(suite):
    for p in EVERY[suite]:
        assert 3 <= p.D <= 60
        assert 1 <= p.c <= p.D / 2
        assert 2 * p.D <= p.N <= 20 * p.D
        assert 0 <= p.r <= 0.9
        assert round(p.r / (1 - p.r) * p.N) == p.M
    # Uniform: 600 draws come near both ends, and noise goes with all kinds and stretches.
    assert {p.D for p in EVERY[suite]} >= {3, 60}
    assert min(p.r for p in EVERY[suite]) < 0.02
    assert max(p.r for p in EVERY[suite]) > 0.88
    assert min(p.c for p in EVERY[suite]) == 1
    assert max(2 * p.c / p.D for p in EVERY[suite]) == 1
    assert min(p.N / p.D for p in EVERY[suite]) < 2.5
    assert max(p.N / p.D for p in EVERY[suite]) > 19.5
    assert len({(p.kind, p.noise, p.stretch) for p in EVERY[suite]}) == 4 * 4 * 3


def test_the_suites_have_nothing_in_common():
    sizes = [{(p.D, p.c, p.N, p.M) for p in problems} for problems in EVERY.values()]
    assert len(sizes[0] & sizes[1]) == 0
    a, b = (draw(problems[5]).X.ravel()[:5] for problems in EVERY.values())
    assert not np.any(np.isclose(a, b))


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("index", [0, 1, 2, 3])
def test_a_problem_is_the_same_each_time_and_its_rows_are_what_it_says(suite, index):
    given = problem(suite, index)
    assert given == EVERY[suite][index]
    data, again = draw(given), draw(given)
    np.testing.assert_array_equal(data.X, again.X)
    assert data.X.shape == (given.N + given.M, given.D)
    assert np.sum(data.y == 1) == given.N
    assert data.normals.shape == (given.c, given.D)
    assert starts(given).integers(1 << 60) == starts(given).integers(1 << 60)
    assert starts(given).integers(1 << 60) != starts(problem(suite, index + 1)).integers(1 << 60)


def test_a_quick_run_never_touches_the_second_suite():
    cases = STUDIES.load("calibration").cases
    assert {case["suite"] for case in cases(Settings(quick=True))} == {"first"}
    assert {case["suite"] for case in cases(Settings(quick=True, seeds=600))} == {"first"}
    assert Counter(case["kind"] for case in cases(Settings(quick=True))) == dict.fromkeys(
        ["sphere", "heavy", "cluster", "plane"], 12
    )
    assert Counter(case["suite"] for case in cases(Settings())) == {"first": 600, "second": 600}


# -- right and wrong -----------------------------------------------------------------------------


def invented(kind, *, M=40, D=10, c=3):
    return Problem("first", 0, kind, D, c, 60, M, M / (60 + M), 0.0, 1.0)


def labels(p, inliers=0, outliers=0):
    """Truth, and labels that accept so many of the inliers and of the outliers."""
    y = np.repeat([1, -1], [p.N, p.M])
    accepted = np.r_[np.arange(p.N) < inliers, np.arange(p.M) < outliers]
    return y, np.where(accepted, 1, -1)


@pytest.mark.parametrize(
    ("kind", "codimension", "accepted", "expected"),
    [
        ("sphere", 3, (60, 0), "inliers"),
        ("sphere", 3, (60, 13), "inliers"),  # F1 = 120 / 133 = 0.902
        ("sphere", 3, (60, 14), ""),  # 120 / 134 = 0.896
        ("sphere", 3, (50, 0), "inliers"),  # 100 / 110 = 0.909
        ("sphere", 3, (49, 0), ""),  # 98 / 109 = 0.899
        ("sphere", 2, (60, 0), ""),
        ("sphere", 4, (60, 0), ""),
        ("sphere", 0, (60, 0), ""),
        ("sphere", 0, (0, 40), ""),  # outliers that have no subspace
        ("heavy", 8, (0, 40), ""),
        ("plane", 3, (60, 0), "inliers"),
        ("plane", 8, (0, 40), "outliers"),
        ("plane", 8, (8, 40), "outliers"),  # 80 / 88 = 0.909
        ("plane", 8, (9, 40), ""),  # 80 / 89 = 0.899
        ("plane", 8, (60, 0), ""),  # its codimension, but the other rows
        ("plane", 3, (0, 40), ""),
        ("plane", 1, (60, 40), ""),  # the sum of both subspaces
        ("plane", 9, (0, 40), ""),
        ("cluster", 9, (0, 40), "outliers"),
        ("cluster", 9, (60, 40), ""),
        ("cluster", 2, (60, 40), ""),  # the sum
        ("cluster", 8, (0, 40), ""),
    ],
)
def test_right_estimates(kind, codimension, accepted, expected):
    p = invented(kind)
    y, predicted = labels(p, *accepted)
    verdict = score(p, y, codimension, predicted)
    assert verdict.subspace == expected
    assert verdict.right == (expected != "")


@pytest.mark.parametrize(
    ("kind", "M", "right"), [("plane", 2, False), ("plane", 3, True), ("cluster", 1, False)]
)
def test_outliers_no_more_than_their_dimension_have_no_subspace(kind, M, right):
    p = invented(kind, M=M)
    y, predicted = labels(p, 0, M)
    own = {"plane": 8, "cluster": 9}[kind]
    assert score(p, y, own, predicted).right is right
    assert (own_normals(p, np.eye(10)[:M]) is not None) is right


def test_without_outliers_all_rows_are_the_inliers():
    p = invented("cluster", M=0)
    y, predicted = labels(p, 60)
    assert score(p, y, 3, predicted).subspace == "inliers"
    assert not score(p, y, 9, predicted).right


def test_where_both_have_one_codimension_the_labels_say_whose_it_is():
    p = invented("plane", D=3, c=1)
    for accepted, expected in [((60, 0), "inliers"), ((0, 40), "outliers"), ((30, 20), "")]:
        y, predicted = labels(p, *accepted)
        assert score(p, y, 1, predicted).subspace == expected


@pytest.mark.parametrize("kind", ["plane", "cluster"])
def test_the_outliers_own_normals(kind):
    p = invented(kind)
    data = draw(p)
    outliers = data.X[data.y == -1]
    off = np.linalg.norm(outliers @ own_normals(p, outliers).T, axis=1)
    assert np.max(off) < {"plane": 1e-7, "cluster": 0.3}[kind]
    assert own_normals(invented("heavy"), outliers) is None


# -- estimates and the page -----------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
def test_an_easy_problem_is_right_and_sure_and_a_hopeless_one_warns():
    run = STUDIES.load("calibration").run
    easy = {"suite": "first", "index": 0, "kind": "sphere", "D": 12, "c": 2, "N": 240, "M": 120,
            "r": 1 / 3, "noise": 0.0, "stretch": 1.0}  # fmt: skip
    (row,) = run(easy)["estimates"]
    assert (row["found"], row["right"], row["sure"], row["subspace"]) == (2, True, True, "inliers")
    assert (row["warned"], row["doubts"]) == (False, "")
    assert row["angle_inliers"] < 1e-6
    assert row["angle_outliers"] is None
    assert row["labelled"] == 240

    hopeless = {**easy, "N": 24, "M": 216, "r": 0.9, "noise": 0.4, "stretch": 0.1}
    (row,) = run(hopeless)["estimates"]
    assert not row["sure"]
    assert row["warned"]
    assert "more rows would" in row["doubts"]
    assert "confidence" not in row["doubts"]  # the number has a column of its own


def estimates(suite, *groups):
    """Invented estimates: (number, right, sure) each."""
    made = []
    for n, right, sure in groups:
        for _ in range(n):
            row = {
                **vars(problem(suite, len(made))), "found": 3, "confidence": 0.99 if sure else 0.5,
                "right": right, "subspace": "inliers" if right else "", "f1": 1.0,
                "f1_outliers": 0.0, "sure": sure, "labelled": 9, "angle_inliers": 0.0,
                "angle_outliers": None, "warned": not sure, "seconds": 0.1,
                "doubts": "" if sure else "only 7 rows lie there (more rows would help)",
            }  # fmt: skip
            made.append(row)
    return made


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        (((99, True, True), (1, False, True)), (True, True)),
        (((98, True, True), (1, False, True)), (False, True)),
        (((80, True, True), (20, True, False)), (True, True)),
        (((79, True, True), (20, True, False), (50, False, False)), (True, False)),
        (((5, False, False),), (True, False)),
    ],
)
def test_the_bars(groups, expected):
    assert met(estimates("first", *groups)) == expected


def test_counts_are_those_of_a_plain_loop(seed):
    rng = np.random.default_rng(seed)
    rows = [{"right": bool(a), "sure": bool(b)} for a, b in rng.integers(0, 2, (50, 2))]
    right, sure, both = counts(rows)
    assert right == sum(row["right"] for row in rows)
    assert sure == sum(row["sure"] for row in rows)
    assert both == sum(row["right"] and row["sure"] for row in rows)


def test_the_page_says_what_is_missed_and_names_every_sure_and_wrong_estimate():
    rows = estimates("first", (99, True, True), (1, False, True)) + estimates(
        "second", (40, True, True), (3, False, True), (30, True, False)
    )
    experiment = STUDIES.load("calibration")
    results = Results("calibration", False, {"estimates": rows}, 0.0, {})
    page = description("calibration", results)
    first, second = page.split("\n\n")[0].splitlines()
    assert "missed" not in first
    assert second.count("**missed**") == 2
    assert "99 of 100, 99 %" in page
    assert "40 of 43, 93.0 %" in page
    assert "40 of 70, 57.1 %" in page
    assert "4 estimates are both" in page
    for suite, index in [("first", 99), ("second", 40), ("second", 41), ("second", 42)]:
        assert f"| {suite}, {index} |" in page
    assert "| only … rows lie there (more rows would help) | 30 | 30 |" in page
    assert "Each of the 30 estimates that are not sure" in page
    (drawing,) = experiment.draw(results).values()
    assert len(drawing.axes) == 2


def test_a_missing_warning_is_said():
    rows = estimates("first", (3, True, True), (2, False, False))
    rows[-1]["warned"] = False
    page = description("calibration", Results("calibration", True, {"estimates": rows}, 0.0, {}))
    assert "**1 of the 2 estimates that are not sure come without" in page


@pytest.mark.filterwarnings("ignore")
def test_picture_and_page_of_a_few_problems():
    experiment = STUDIES.load("calibration")
    rows = [
        row
        for case in experiment.cases(Settings(quick=True))
        if case["kind"] in ("plane", "cluster") and case["D"] < 30
        for row in experiment.run(case)["estimates"]
    ]
    assert len(rows) >= 5
    results = Results("calibration", True, {"estimates": rows}, 0.0, {})
    assert set(experiment.draw(results)) == {"reliability"}
    page = description("calibration", results)
    assert "![" in page
    assert "(reliability.png)" in page
    assert "nan" not in page

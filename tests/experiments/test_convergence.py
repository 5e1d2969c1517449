"""The watched descents are the descents themselves, and the theorem keeps its promise."""

import dataclasses

import numpy as np
import pytest

from perpend import experiments
from perpend.experiments import Settings
from perpend.experiments._recording import at_iterations, first_below, watch, watch_irls
from perpend.experiments._runner import reproduce
from perpend.experiments._trials import paper_data, starts_rng
from perpend.experiments.convergence import EASIER, GIVEN, LONGER, RULES
from perpend.geometry import random_directions
from perpend.methods.dpcp_irls import dpcp_irls
from perpend.methods.rsgm import STEPS
from perpend.rows import as_rows, row_span
from perpend.solvers import psgm, riemannian, spectral_starts
from perpend.solvers.steps import STEP_RULES
from perpend.theory import start_tangents
from studies._pages import page

EXPERIMENT = experiments.load("convergence")
SMALL = {"part": "rules", "D": 20, "c": 2, "N": 200, "k": 6, "r": 0.6, "seed": 0}


@pytest.fixture(scope="module")
def data():
    return paper_data(20, 2, 200, 300, seed=3)


def largest_tangent(data):
    def measure(V):
        sine = np.linalg.svd(data.components @ V, compute_uv=False)[0]
        return np.array([sine / np.linalg.svd(data.normals @ V, compute_uv=False)[-1]])

    return measure


@pytest.mark.parametrize("name", STEP_RULES)
@pytest.mark.parametrize("max_iter", [7, 60, 400])
def test_watching_changes_nothing_and_misses_nothing(data, name, max_iter):
    rows, normals = as_rows(data.X), data.normals.T
    B0 = random_directions(starts_rng(0), 20, 6)
    options = {"rule": STEP_RULES[name](), "max_iter": max_iter, "tol": 1e-12}
    alone = psgm(rows, B0, **options)
    end, paths = watch(psgm, data.X, B0, lambda B: start_tangents(B, normals), **options)
    np.testing.assert_array_equal(end.B, alone.B)
    np.testing.assert_array_equal(end.n_iter, alone.n_iter)
    assert [len(path.tangents) - 1 for path in paths] == alone.n_iter.tolist()
    first, last = (np.array([path.tangents[i] for path in paths]) for i in (0, -1))
    np.testing.assert_allclose(first, start_tangents(B0, normals), rtol=1e-12)
    np.testing.assert_allclose(last, start_tangents(alone.B, normals), rtol=1e-12, atol=1e-15)
    assert max(path.scans[-1] for path in paths) <= alone.n_evaluations
    for path in paths:
        assert np.all(np.diff(path.scans) >= 1)
    # an iterate in the middle is that of a shorter run
    shorter = psgm(rows, B0, **{**options, "max_iter": 5})
    fifth = at_iterations(paths, np.array([5]))[:, 0]
    np.testing.assert_allclose(fifth, start_tangents(shorter.B, normals), rtol=1e-9)


@pytest.mark.parametrize("name", STEPS)
def test_frames_are_watched_at_accepted_steps_only(data, name):
    measure, options = largest_tangent(data), {"rule": STEPS[name], "tol": 1e-12}
    rows = as_rows(data.X)
    start = spectral_starts(row_span(rows), 2)
    watched, (path,) = watch(riemannian, data.X, start, measure, max_iter=80, **options)
    for n in (0, 1, 4, 80):
        end = riemannian(rows, start, max_iter=n, **options) if n else None
        V, i = (start, 0) if end is None else (end.B, end.n_iter[0])
        np.testing.assert_allclose(path.tangents[i], measure(V)[0], rtol=1e-9, atol=1e-14)
    assert len(path.tangents) - 1 == end.n_iter[0]
    assert end.n_evaluations <= watched.n_evaluations  # watched rules try one step size in a scan
    assert path.scans[-1] <= watched.n_evaluations


def test_irls_is_watched(data):
    measure = largest_tangent(data)
    path = watch_irls(data.X, 2, measure, max_iter=12, tol=1e-12)
    rng = np.random.default_rng(0)
    end = dpcp_irls(as_rows(data.X), codimension=2, max_iter=12, tol=1e-12, rng=rng)
    assert len(path.tangents) - 1 == end.n_iter
    np.testing.assert_allclose(path.tangents[-1], measure(end.directions)[0], rtol=1e-6)


def test_a_path_that_comes_back_has_not_arrived(data):
    _, paths = watch(
        psgm,
        data.X,
        random_directions(starts_rng(0), 20, 6),
        lambda B: start_tangents(B, data.normals.T),
        rule=STEP_RULES["auto"](),
        max_iter=400,
        tol=1e-12,
    )
    iterations, scans = first_below(paths, 1e-6)
    for path, k, n in zip(paths, iterations, scans, strict=True):
        assert np.all(path.tangents[int(k) :] < 1e-6)
        assert path.tangents[int(k) - 1] >= 1e-6
        assert path.scans[int(k)] == n
    assert np.all(np.isnan(first_below(paths, 1e-30)[0]))


def test_the_rules_bring_all_starts_to_normals():
    tables = EXPERIMENT.run(SMALL)
    ends = {row["method"]: row for row in tables["ends"]}
    assert set(ends) == {*RULES, LONGER, EASIER, *GIVEN}
    for name in ("auto", "mbls", "RSGM, mbls", "DPCP-IRLS"):
        assert ends[name]["arrived"] == 1
        assert ends[name]["largest_end"] < 1e-6
        assert ends[name]["slowest_scans_to"] > ends[name]["slowest_iterations_to"] > 3
    assert ends["auto"]["slowest_iterations_to"] < ends["geometric"]["median_iterations_to"]
    for row in tables["paths"]:
        assert row["least"] <= row["median"] <= row["largest"]


@pytest.mark.parametrize(("D", "c", "certified"), [(10, 8, True), (10, 5, False)])
def test_the_angle_never_exceeds_the_bound(D, c, certified, seed):
    case = {"part": "bound", "D": D, "c": c, "N": 2000, "M": 800, "k": 10, "seed": seed}
    tables = EXPERIMENT.run(case)
    (row,) = tables["theorem1"]
    assert row["certified"] == certified
    assert row["used"] >= 5
    assert row["violations"] == 0
    assert 0.3 < row["closest"] <= 1
    assert row["end"] < 1e-5
    assert all(point["largest"] <= point["bound"] * (1 + 1e-9) for point in tables["bound"])


def test_outside_the_theorem_nothing_is_compared():
    case = {"part": "bound", "D": 20, "c": 2, "N": 100, "M": 200, "k": 10, "seed": 0}
    tables = EXPERIMENT.run(case)
    (row,) = tables["theorem1"]
    assert not row["dominates"]
    assert row["violations"] is None
    assert "bound" not in tables


def test_at_the_paper_s_ratios_no_theorem_applies():
    (row,) = EXPERIMENT.run(SMALL)["conditions"]
    assert not row["dominates"]
    assert row["inside"] == 0


def test_quick_and_full_have_the_same_parts():
    quick, full = (EXPERIMENT.cases(Settings(quick=quick)) for quick in (True, False))
    assert {frozenset(case) for case in quick} == {frozenset(case) for case in full}
    rules = [case for case in full if case["part"] == "rules"]
    assert {(case["D"], case["c"], case["N"], case["k"]) for case in rules} == {(200, 10, 1500, 30)}
    assert {case["r"] for case in rules} == {0.6, 0.7}
    fewer = EXPERIMENT.cases(Settings(seeds=2))
    more = EXPERIMENT.cases(Settings(seeds=3))
    assert all(case in more for case in fewer)


def test_end_to_end(tmp_path):
    bound = {"part": "bound", "D": 10, "c": 8, "N": 500, "M": 100, "k": 10, "seed": 0}
    small = dataclasses.replace(EXPERIMENT, cases=lambda _: [SMALL, {**SMALL, "r": 0.7}, bound])
    results = reproduce(small, Settings(quick=True), tmp_path)
    for stem in ("rules", "given", "bound"):
        assert (tmp_path / f"{stem}.png").stat().st_size > 10_000
        assert (tmp_path / f"{stem}.svg").exists()
    text = page("convergence", results)
    assert "0 violations in" in text
    assert "## Theorem 1" in text
    assert "nan" not in text.lower().replace("nanmean", "")
    assert text.split("\n\n")[3].startswith(
        "Starts that arrive at a normal at 70 % outliers (D = 20"
    )
    assert results.n_cases == 3

"""The claims of the paper's first figure, the ablation's, and the page that states them."""

import warnings
from functools import cache

import numpy as np
import pytest

from perpend.experiments import Settings, load
from perpend.experiments import _implicit_bias as compute
from perpend.experiments._runner import redraw, reproduce
from perpend.experiments._store import plain
from studies._pages import description

EXPERIMENT = load("implicit-bias")
SMALL = {"D": 40, "c": 4, "k": 12, "N": 300, "r": 0.6, "max_iter": 1000}


@cache
def trials(c):
    return EXPERIMENT.run({"part": "sphere", "c": c, "N": 500, "r": 0.6, "trials": 12})


def limits(c, method):
    rows = [row for row in trials(c)["limits"] if row["method"] == method]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


@pytest.fixture(scope="module")
def fits():
    """Each combination of the ablation in four trials, small."""
    found = {}
    for kind in (compute.FREE, compute.LONG, compute.ORTHOGONAL):
        for start in ("random", "spectral"):
            case = {**SMALL, "part": "ablation", "start": start, "kind": kind}
            with warnings.catch_warnings():  # that the result is not sure, as it should be
                warnings.simplefilter("ignore")
                found[kind, start] = [
                    EXPERIMENT.run({**case, "seed": seed})["ablation"][0] for seed in range(4)
                ]
    return found


@pytest.mark.parametrize("method", [compute.SHORT, compute.PUBLISHED])
@pytest.mark.parametrize("c", [1, 2])
def test_free_descents_in_three_dimensions_end_at_normals_of_rank_c(c, method):
    found = limits(c, method)
    assert len(found["rank"]) == 3 * 12
    assert found["off_complement"].max() < 1e-8
    assert set(found["rank"]) == {c}


def test_limits_lie_near_the_projections_of_their_starts():
    degrees = limits(2, compute.SHORT)["degrees_to_projection"]
    assert np.median(degrees) < 2  # two independent directions of a plane are 90 degrees apart
    assert degrees.max() < 20


@pytest.mark.parametrize("c", [1, 2])
def test_an_orthogonal_frame_of_too_many_columns_has_one_in_the_subspace(c):
    found = limits(c, compute.RSGM)
    columns = found["off_subspace"].reshape(12, compute.GIVEN[c])
    assert set(found["rank"]) == {compute.GIVEN[c]}
    assert np.all(np.sum(columns < np.sin(np.deg2rad(5)), axis=1) == 1)
    assert np.all(np.sum(columns > np.sin(np.deg2rad(85)), axis=1) == c)


def test_the_way_leads_from_the_start_to_the_limit():
    tables = trials(1)
    for row in (row for row in tables["limits"] if row["trial"] == 0):
        path = [
            (p["x"], p["y"], p["z"])
            for p in tables["paths"]
            if (p["method"], p["start"]) == (row["method"], row["start"])
        ]
        np.testing.assert_allclose(np.linalg.norm(path, axis=1), 1, atol=1e-12)
        assert abs(path[0][2]) == pytest.approx(row["start_off_subspace"])
        assert abs(path[-1][2]) == pytest.approx(row["off_subspace"])
        steps = np.linalg.norm(np.diff(path, axis=0), axis=1)
        if row["method"] == compute.SHORT:
            assert steps.max() < 0.26  # thinned: at most five steps of 3 degrees in one


def test_only_free_columns_have_the_rank_of_the_complement(fits):
    for row in fits[compute.FREE, "random"]:
        assert row["codimension"] == row["rank_1e2"] == SMALL["c"]
        assert row["n_normals"] == SMALL["k"]
        assert row["largest_sine"] < 1e-2
    for start in ("random", "spectral"):
        for row in fits[compute.ORTHOGONAL, start]:
            assert row["rank_1e2"] == SMALL["k"]
            assert row["n_normals"] == 0
            assert row["missed"] > 0.1


def test_from_spectral_starts_the_line_search_jams_and_constant_steps_do_not(fits):
    jammed = fits[compute.FREE, "spectral"]
    assert all(row["n_normals"] < SMALL["k"] for row in jammed)
    assert all(row["codimension"] > SMALL["c"] for row in jammed)
    assert all(row["confidence"] < 0.5 for row in jammed)
    assert all(row["lp_decrease"] > 1e-4 for row in jammed)  # so they do not rest at a minimum
    for start in ("random", "spectral"):
        assert all(row["n_normals"] == SMALL["k"] for row in fits[compute.LONG, start])


def test_at_a_normal_the_linear_programme_finds_no_descent():
    from perpend.datasets import make_subspace

    data = make_subspace(100, 60, n_features=8, codimension=1, random_state=0)
    assert abs(compute._lp_decrease(data.X, data.normals[0])) < 1e-6


def test_quick_and_full_runs_differ_in_sizes_only():
    def form(case):
        sizes = ("D", "c", "k", "N", "seed", "trials")
        return {name: value for name, value in case.items() if name not in sizes}

    quick, full = (
        [form(case) for case in EXPERIMENT.cases(Settings(quick=quick))] for quick in (True, False)
    )
    assert [case for case in quick if case not in full] == []
    assert [case for case in full if case not in quick] == []
    few, many = (EXPERIMENT.cases(Settings(seeds=seeds)) for seeds in (2, 3))
    assert [case for case in few if case not in many] == []
    assert all(EXPERIMENT.cost(case) > 0 for case in many)


def test_rows_can_be_stored():
    case = {**SMALL, "part": "ablation", "start": "random", "kind": compute.FREE, "seed": 0}
    stored = plain(EXPERIMENT.run(case))
    assert len(stored["singular_values"]) == SMALL["k"]


def test_the_quick_form_draws_and_describes(tmp_path):
    results = reproduce(EXPERIMENT, Settings(quick=True, seeds=1), tmp_path)
    files = {path.name for path in tmp_path.iterdir()}
    stems = {"spheres", "ablation"}
    assert {f"{stem}.{kind}" for stem in stems for kind in ("png", "svg")} <= files
    page = description("implicit-bias", results)
    free = results.rows("ablation", kind=compute.FREE, start="random")
    right = sum(row["codimension"] == 4 for row in free)
    assert f"find the codimension in {right} of {len(free)} fits" in page
    assert "## Published and ours" in page
    assert "nan" not in page.lower()
    assert "None" not in page
    titles = [ax.get_title() for ax in EXPERIMENT.draw(results)["spheres"].axes]
    assert titles[0].endswith("rank 2, all limits are normals")
    assert titles[1].endswith("rank 3, 1 limit inside the subspace")
    assert redraw(EXPERIMENT, tmp_path).tables == results.tables

"""What every experiment and every study promises to the frame; over both registries."""

import json

import numpy as np
import pytest

from board_files import write_stand_ins
from perpend.exceptions import InputError
from perpend.experiments import Experiment, Results, Settings
from perpend.experiments._store import plain
from studies._pages import BOOKS as NAMES
from studies._pages import description


def load(name):
    return NAMES[name].load(name)


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """A small scene: spectra that mix three materials, with a little noise."""
    rng = np.random.default_rng(0)
    spectra, shares = rng.uniform(0.2, 1, (3, 34)), rng.dirichlet(np.ones(3), (20, 24))
    cube = shares @ spectra + 0.002 * rng.standard_normal((20, 24, 34))
    path = tmp_path_factory.mktemp("scene") / "scene.npy"
    np.save(path, cube)
    return path


@pytest.fixture(scope="module", autouse=True)
def real_data(tmp_path_factory):
    """Stand-ins for the data that the boards need."""
    with pytest.MonkeyPatch.context() as patch:
        root = write_stand_ins(tmp_path_factory.mktemp("data"))
        patch.setenv("PERPEND_DATA", str(root))
        yield


def settings_of(name, scene, **more):
    return Settings(quick=True, scene=scene if name == "hyperspectral" else None, **more)


def without_times(tables):
    return {
        name: [{k: v for k, v in row.items() if k != "seconds"} for row in rows]
        for name, rows in tables.items()
    }


@pytest.mark.parametrize("name", NAMES)
def test_names_and_words(name):
    experiment = load(name)
    assert isinstance(experiment, Experiment)
    assert experiment.name == name
    assert experiment.title
    assert len(experiment.about) < 80


@pytest.mark.parametrize("name", NAMES)
def test_cases_are_complete_and_more_seeds_only_add(name, scene):
    experiment = load(name)
    few = [
        json.dumps(c, sort_keys=True) for c in experiment.cases(settings_of(name, scene, seeds=1))
    ]
    more = [
        json.dumps(c, sort_keys=True) for c in experiment.cases(settings_of(name, scene, seeds=3))
    ]
    assert len(set(more)) == len(more)
    assert set(few) < set(more)
    assert all(experiment.cost(json.loads(case)) > 0 for case in more)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_a_case_is_a_pure_function_of_itself(name, scene):
    experiment = load(name)
    case = min(experiment.cases(settings_of(name, scene, seeds=1)), key=experiment.cost)
    first, second = plain(experiment.run(dict(case))), plain(experiment.run(dict(case)))
    assert json.dumps(without_times(first)) == json.dumps(without_times(second))
    for rows in first.values():
        assert all(row.keys() == rows[0].keys() for row in rows)


def results_of(experiment, cases):
    tables = {}
    for case in cases:
        for name, rows in experiment.run(case).items():
            tables.setdefault(name, []).extend(rows)
    return Results(experiment.name, True, tables, 0.0, {})


# -- phase-transition ----------------------------------------------------------------------------


def test_the_grid_of_the_phase_transition():
    cases = load("phase-transition").cases(Settings())
    assert {case["N"] for case in cases} == set(range(250, 2501, 250))
    assert {case["M"] for case in cases} == set(range(500, 5001, 500))
    assert {(case["D"], case["c"]) for case in cases} == {(200, 5)}
    assert len(cases) == 800  # 8 trials a cell


def invented(rates):
    """Phase-transition results with the given numbers of recoveries out of ten, by method."""
    rows = [
        {"N": 10, "M": 20, "method": method, "error": 1e-9 if seed < rate else 1.0, "seed": seed}
        for method, rate in rates.items()
        for seed in range(10)
    ]
    return Results("phase-transition", True, {"trials": rows}, 0.0, {})


@pytest.mark.parametrize(
    ("given", "ours", "expected"),
    [(10, 10, []), (10, 7, []), (10, 5, [(10, 20)]), (8, 0, []), (9, 0, [(10, 20)])],
)
def test_cells_that_fall_behind(given, ours, expected):
    from perpend.experiments.phase_transition import GIVEN, OURS
    from studies.paper.phase_transition import behind

    assert behind(invented({GIVEN: given, OURS: ours}), OURS) == expected


@pytest.mark.filterwarnings("ignore")
def test_an_easy_cell_is_recovered_by_all_but_the_one_given_too_much():
    experiment = load("phase-transition")
    case = {"D": 30, "c": 2, "N": 300, "M": 200, "seed": 0}
    errors = {row["method"]: row["error"] for row in experiment.run(case)["trials"]}
    wrong = {name for name, error in errors.items() if error > 1e-2}
    assert wrong == {"RSGM, given 2c"}


# -- codimension ---------------------------------------------------------------------------------


def test_the_sizes_of_the_codimension_experiment():
    cases = load("codimension").cases(Settings())
    sweep = [case for case in cases if case["part"] == "sweep"]
    assert len(sweep) == 11 * 2 * 10
    assert {case["c"] for case in sweep} == set(range(10, 21))
    assert {(case["D"], case["N"], case["starts"]) for case in sweep} == {(200, 1500, 30)}
    starts = [case for case in cases if case["part"] == "starts"]
    assert {case["c"] for case in starts} == {20}
    counts = {case["starts"] for case in starts}
    assert {5, 22, 120} <= counts  # fewer than the normals, few more, many more


@pytest.mark.filterwarnings("ignore")
def test_fewer_starts_than_normals_are_normals_and_independent():
    case = {"part": "starts", "D": 40, "N": 400, "c": 6, "r": 0.6, "starts": 4, "seed": 0}
    (row,) = load("codimension").run(case)["starts"]
    assert row["worst_sine"] < 1e-6
    assert row["last_normal"] > 0.05
    assert row["estimate"] == 4
    assert row["next"] is None


# -- hyperspectral -------------------------------------------------------------------------------


def brute_best_f1(positive, score):
    best = 0.0
    for limit in np.unique(score):
        claimed = score <= limit
        hits = np.sum(claimed & positive)
        best = max(best, 2 * hits / (claimed.sum() + positive.sum()))
    return best


def test_the_best_threshold(seed):
    from perpend.experiments.hyperspectral import best_f1

    rng = np.random.default_rng(seed)
    positive, score = rng.uniform(size=60) < 0.4, rng.integers(0, 12, 60) / 4
    assert best_f1(positive, score) == pytest.approx(brute_best_f1(positive, score))
    # Rounding errors are no information: equal distances are equal.
    nearly = 1 + 1e-14 * rng.standard_normal(60)
    share = positive.mean()
    assert best_f1(positive, nearly) == pytest.approx(2 * share / (1 + share))


@pytest.mark.filterwarnings("ignore")
def test_a_full_basis_labels_all_rows_alike(scene):
    experiment = load("hyperspectral")
    case = next(c for c in experiment.cases(settings_of("hyperspectral", scene)) if c["draw"] == 0)
    rows = {row["method"]: row for row in experiment.run(case)["scores"]}
    alike = 2 * case["ratio"] / (1 + case["ratio"])
    for name in ("RSGM, c' = 10", "DPCP-IRLS, c' = 10"):
        assert rows[name]["f1_outliers"] == pytest.approx(alike, abs=1e-6)
        assert rows[name]["f1_inliers"] == 0
        assert rows[name]["best_outliers"] == pytest.approx(alike, abs=1e-6)
    for name in ("DPCP()", "RSGM, c = 5", "DPCP-IRLS, c = 5"):
        assert rows[name]["f1_outliers"] > 0.97


def test_the_draws_share_bands_over_ratios_and_keep_the_pixels(scene):
    from perpend.experiments._scene import corrupted, load_segment

    segment = load_segment(str(scene), None)
    low, high = corrupted(segment, 10, 0.8, 3), corrupted(segment, 10, 0.9, 3)
    assert np.sum(low.y == -1) == round(0.8 * 480)
    both = (low.y == 1) & (high.y == 1)
    assert both.any()
    np.testing.assert_array_equal(low.X[both], high.X[both])
    np.testing.assert_allclose(np.linalg.norm(low.X, axis=1), 1)


def page_of_first_draw(scene):
    experiment = load("hyperspectral")
    cases = [c for c in experiment.cases(settings_of("hyperspectral", scene)) if c["draw"] == 0]
    results = results_of(experiment, [case for case in cases if case["part"] == "paper"])
    assert set(experiment.draw(results)) == {"scene"}
    page = description("hyperspectral", results)
    assert "A fair case" not in page  # only what was computed
    assert float(page.split("mean F1 of ")[1].split()[0]) > 0.9
    return page


@pytest.mark.filterwarnings("ignore")
def test_pictures_and_page_of_a_scene_of_ones_own(scene):
    assert "The scene is `scene.npy`." in page_of_first_draw(scene)


@pytest.mark.filterwarnings("ignore")
def test_a_quick_run_without_a_scene_takes_a_synthetic_one_and_says_so():
    page = page_of_first_draw(None)
    assert "outliers in a synthetic scene" in page.split("\n\n")[0]
    assert "No scene was given, so this one is synthetic" in page
    with pytest.raises(InputError, match="needs a scene"):
        load("hyperspectral").cases(Settings())

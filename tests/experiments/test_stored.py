"""The stored full-size results: what they must show, and that the pages are made of them."""

import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from helpers import CARDS
from perpend.experiments import PAPER
from perpend.experiments._store import read_results
from studies._pages import BOARDS, boards_page, page, write_joint_page
from studies._pages import BOOKS as NAMES

STORED = Path(__file__).parents[2] / "docs" / "reproduction"


@pytest.fixture(scope="module", params=NAMES)
def stored(request):
    """The name of an experiment and its stored results."""
    return request.param, read_results(STORED / request.param)


def load(name):
    return NAMES[name].load(name)


def results(name):
    return read_results(STORED / name)


def test_every_experiment_is_stored_at_full_size(stored):
    name, content = stored
    assert content is not None
    assert content.experiment == name
    assert not content.quick
    if name != "hyperspectral" and not name.startswith(f"{BOARDS}/"):  # whose cases need the data
        from perpend.experiments import Settings

        assert content.n_cases == len(load(name).cases(Settings()))


def test_pages_are_made_of_the_stored_results(stored):
    name, content = stored
    assert page(name, content) == (STORED / name / "page.md").read_text(encoding="utf-8")


def test_the_papers_experiments_have_a_summary(stored):
    name, content = stored
    rows = load(name).summary(content)
    assert bool(rows) == (name in PAPER.names)
    assert all(row.keys() == rows[0].keys() for row in rows)
    assert all(isinstance(cell, str) and cell for row in rows for cell in row.values())


def test_pictures_are_there_and_small(stored):
    name, content = stored
    for stem in load(name).draw(content):
        for suffix in (".png", ".svg"):
            assert 1000 < (STORED / name / f"{stem}{suffix}").stat().st_size < 1_500_000
        assert f"({stem}.png)" in (STORED / name / "page.md").read_text(encoding="utf-8")


def test_the_joint_page_is_made_of_the_pages(tmp_path):
    folder = tmp_path / "reproduction"
    for name in (*NAMES, BOARDS):
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "page.md").write_bytes((STORED / name / "page.md").read_bytes())
    made = write_joint_page(folder).read_text(encoding="utf-8")
    assert made == STORED.with_suffix(".md").read_text(encoding="utf-8")


def test_the_papers_set_takes_less_than_two_hours_on_two_cores():
    assert sum(results(name).seconds for name in PAPER.names) / 2 < 2 * 3600


# -- the targets ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("ratio", "target"), [(0.6, 1.0), (0.7, 0.99)])
def test_codimensions_are_found(ratio, target):
    from perpend.experiments.codimension import OURS, OURS_STARTS, right

    for method in (OURS, OURS_STARTS):
        assert np.mean(right(results("codimension"), method, ratio)) >= target


def test_fewer_starts_than_normals_are_all_normals_and_independent():
    for row in results("codimension").rows("starts"):
        if row["starts"] < row["c"]:
            assert row["worst_sine"] < 1e-3
            assert row["last_normal"] > 0.01


@pytest.mark.parametrize(("ratio", "target"), [(0.8, 0.994), (0.9, 0.993)])
def test_f1_on_the_scene(ratio, target):
    content = results("hyperspectral")
    where = {"bands": 10, "ratio": ratio}
    for method in ("DPCP()", "DPCP(n_starts=10)"):
        f1 = content.column("scores", "f1_outliers", method=method, **where)
        assert len(f1) == 20
        assert np.mean(f1) >= target
    alike = 2 * ratio / (1 + ratio)
    for method in ("RSGM", "DPCP-IRLS"):
        useless = content.column("scores", "f1_outliers", method=f"{method}, c' = 10", **where)
        assert np.all(useless <= alike + 1e-5)
        works = content.column("scores", "f1_outliers", method=f"{method}, c = 5", **where)
        assert np.mean(works) > 0.99


def test_rsgm_given_too_much_fails_everywhere_and_the_page_names_who_falls_behind():
    from perpend.experiments.phase_transition import OURS, PSGM, RECOVERED, TWICE
    from studies.paper.phase_transition import behind

    content = results("phase-transition")
    assert np.all(content.column("trials", "error", method=TWICE) > RECOVERED)
    text = (STORED / "phase-transition" / "page.md").read_text(encoding="utf-8")
    for method in (PSGM, OURS):
        for N, M in behind(content, method)[:30]:
            assert f"({N}, {M})" in text


def test_geometric_steps_recover_where_the_line_search_jams():
    """Counts of 8 that independent code found with the same schedule and data."""
    from perpend.experiments.phase_transition import GEOMETRIC, PSGM
    from studies.paper.phase_transition import recovered

    found = {(1000, 1500): (0, 6), (1250, 2500): (2, 7), (1500, 3500): (3, 8), (1500, 4000): (0, 6)}
    content = results("phase-transition")
    for cell, counts in found.items():
        assert tuple(recovered(content, m, *cell).sum() for m in (PSGM, GEOMETRIC)) == counts


def test_sure_estimates_are_right_and_right_estimates_sure():
    estimates = results("calibration").rows("estimates", suite="first")
    assert len(estimates) == 600
    sure = [estimate["right"] for estimate in estimates if estimate["sure"]]
    assert np.mean(sure) >= 0.99
    right = [estimate["sure"] for estimate in estimates if estimate["right"]]
    assert np.mean(right) >= 0.8


def test_the_second_suite_is_stored_beside_and_low_confidence_warns():
    content = results("calibration")
    assert len(content.rows("estimates", suite="second")) == 600
    for estimate in content.rows("estimates"):
        assert estimate["warned"] == (not estimate["sure"])


def test_every_method_takes_part_in_every_cell_of_the_field():
    from studies.field._methods import COSTLY, DICTIONARY, OURS
    from studies.field._problems import GRIDS

    content = results("field")
    known = content.values("trials", "method")
    assert {OURS, *CARDS} - {"DPCP"} <= set(known)  # a method without a card may be new
    cells = content.groups("trials", "grid", "x", "y", "trial")
    assert len(cells) == 3 * sum(len(grid.xs) * len(grid.ys) for grid in GRIDS.values())
    for (grid, *_), rows in cells.items():
        left_out = set() if grid == "dictionary" else {DICTIONARY}
        assert {row["method"] for row in rows} == set(known) - left_out
        assert all(row["recovered"] is not None or row["note"] == COSTLY for row in rows)


def test_the_page_of_the_field_names_who_is_ahead_of_dpcp():
    from studies.field.field import numbers

    said = numbers(results("field"))
    text = (STORED / "field" / "page.md").read_text(encoding="utf-8")
    assert "not the best choice" in text
    assert sum(map(len, said["behind"].values())) > 0
    for name, methods in said["ahead"].items():
        for method, won, lost in methods:
            assert f"`{method}` ({won} : {lost})" in text
        for x, y, *_ in said["behind"][name]:
            assert f"({x}; {y}) by" in text


def test_the_field_is_quoted_as_it_is_stored():
    from perpend.experiments._trials import percent
    from studies.field.field import numbers

    said = numbers(results("field"))
    own, (best, *_, third) = said["overall"], said["ranking"][:3]
    rest = ", ".join(f"`{name}` {percent(own[name])}" for name in (best, third))
    text = (STORED.parent / "results.md").read_text(encoding="utf-8")
    assert f"recovered in {percent(own['DPCP()'])} ({rest});" in text
    assert f"{len(said['ranking'])} methods" in text


def test_a_sweep_over_the_codimension_is_dearer_than_dpcp():
    from studies.field.sweep import OURS

    content = results("sweep")
    ours = content.column("selected", "seconds", method=OURS)
    for (method, rule), rows in content.groups("selected", "method", "rule").items():
        if method != OURS:
            seconds = content.column("selected", "seconds", method=method, rule=rule)
            assert len(rows) == len(ours) == 6
            assert np.median(seconds) > np.median(ours)


def boards():
    """The boards and their stored results."""
    names = [name for name in NAMES if name.startswith(f"{BOARDS}/")]
    return {import_module(NAMES[name].names[name]).BOARD: results(name) for name in names}


def test_the_boards_have_all_their_peers_and_a_page():
    stored = boards()
    for board, content in stored.items():
        assert "not installed" not in content.values("scores", "note"), board.name
    text = boards_page({board.name: content for board, content in stored.items()})
    assert text == (STORED / BOARDS / "page.md").read_text(encoding="utf-8")


# Which targets of which boards: a plane of a scan that cuts through two; the time on few faces.
MISSED = {"boards/rooms": [1], "boards/faces": [0, 1, 2]}


def test_the_targets_of_the_boards_are_met_but_for_those_that_are_stated():
    for board, content in boards().items():
        words = [target.met for target in board.targets(board, content)]
        missed = [k for k, word in enumerate(words) if "missed" in word]
        assert missed == MISSED.get(board.name, []), board.name
        assert "not measured" not in words


def quotes():
    """What docs/results.md says about the boards, from the stored results."""
    from studies.boards import homographies, planes, rooms, scenes, tables

    def value(module, column, method="", group="", digits=3):
        board = module.BOARD
        return f"{board.value(results(board.name), column, method, group):.{digits}f}"

    peers = [f"{name} {value(tables, 'auc', name, tables.ROBUST)}" for name in ("IForest", "MCD")]
    yield f"mean AUC {value(tables, 'auc', group=tables.ROBUST)} ({', '.join(peers)}) |"
    auc, rx = value(scenes, "auc"), value(scenes, "auc", scenes.RX)
    yield f"mean AUC {auc} (RX {rx}); F1 of the labels {value(scenes, 'f1', digits=2)} |"
    road = planes.GROUPS["roads"]
    names = ("", planes.MARKED, planes.OPEN3D)
    ours, own, open3d = (value(planes, "f1", name, road) for name in names)
    yield f"F1 within 10 cm {ours} (a plane fitted to the marked road {own}, Open3D {open3d}) |"
    right = results("boards/rooms").column("scores", "right", group=rooms.ROOMS, method=rooms.OWN)
    yield f"all planes, and no other, in {int(right.sum())} of {len(right)} |"
    for group in (homographies.HOMOGR, homographies.GROUPS["F"]):
        ours, theirs = (value(homographies, "f1", m, group) for m in ("", homographies.MAGSAC))
        yield f"mean F1 {ours} (OpenCV's USAC_MAGSAC {theirs}) |"


def test_the_boards_are_quoted_as_they_are_stored():
    text = (STORED.parent / "results.md").read_text(encoding="utf-8")
    said = list(quotes())
    assert [quote for quote in said if quote not in text] == []
    readme = (STORED.parents[1] / "README.md").read_text(encoding="utf-8")
    rows = {0: "24 public tables | mean AUC", 2: "two road scans | mean F1"}
    for i, row in (rows | {4: "8 homographies | mean F1"}).items():
        assert f"| {row} | {first_number(said[i])} |" in readme


def first_number(text):
    return re.search(r"0\.\d+", text)[0]

"""The stored full-size results: what they must show, and that the pages are made of them."""

import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

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


def test_sure_answers_are_right_and_right_answers_sure():
    answers = results("calibration").rows("answers", suite="first")
    assert len(answers) == 600
    sure = [answer["right"] for answer in answers if answer["sure"]]
    assert np.mean(sure) >= 0.99
    right = [answer["sure"] for answer in answers if answer["right"]]
    assert np.mean(right) >= 0.8


def test_the_second_suite_is_stored_beside_and_low_confidence_warns():
    content = results("calibration")
    assert len(content.rows("answers", suite="second")) == 600
    for answer in content.rows("answers"):
        assert answer["warned"] == (not answer["sure"])


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


# Which targets of which boards: labels of anomalies; a plane of a scan that cuts through two.
MISSED = {"boards/rooms": [1]}


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
    yield f"F1 within 10 cm {ours} (the road's own plane {own}, Open3D {open3d}) |"
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
    for quote in (said[0], said[2], said[4]):  # tables, roads, homographies
        assert f"{first_number(quote)} on " in readme


def first_number(text):
    return re.search(r"0\.\d+", text)[0]


def test_faces_take_no_longer_than_reweighted_pca_with_the_dimension_given():
    """In the run that is stored: both in turn, processor time."""
    content = results("boards/faces")

    def seconds(method, group):
        return np.median(content.column("scores", "seconds", method=method, group=group))

    for group in content.values("scores", "group"):
        assert seconds("DPCP()", group) < seconds("reweighted PCA, given d = 9", group)

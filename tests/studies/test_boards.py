"""The boards on small stand-ins, what they share, and one check of the data itself."""

import math
import os
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from board_files import write_stand_ins
from helpers import assert_same_subspace
from perpend.cli import main
from perpend.exceptions import InputError
from perpend.experiments import Results, Settings
from perpend.experiments._store import plain
from studies import BOARDS, STUDIES, _pages
from studies.__main__ import app
from studies.boards import _board as base
from studies.boards import _peers as peers
from studies.boards import _references as references
from studies.boards import classics, crops, faces, homographies, rooms, scenes, tables
from studies.boards._files import SOURCES, files

pytestmark = pytest.mark.filterwarnings("ignore")
MODULES = {name: __import__(f"studies.boards.{name}", fromlist=["BOARD"]) for name in BOARDS}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return write_stand_ins(tmp_path_factory.mktemp("data"))


@pytest.fixture
def data(root, monkeypatch):
    monkeypatch.setenv("PERPEND_DATA", str(root))
    return root


def few(case):
    """Enough to see everything: two files of each kind, faces at one share."""
    names = SOURCES[case["kind"]].files if "kind" in case else ()
    first = "kind" not in case or names.index(Path(case["path"]).name) < 2
    return first and case.get("share", 0.5) == 0.5


@pytest.fixture(scope="module")
def made(root):
    """Results of some quick cases of every board."""
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PERPEND_DATA", str(root))
        for name in BOARDS:
            experiment, rows = STUDIES.load(f"boards/{name}"), {}
            for case in filter(few, experiment.cases(Settings(quick=True))):
                for table, new in plain(experiment.run(case)).items():
                    assert all(row.keys() == new[0].keys() for row in new)
                    rows.setdefault(table, []).extend(new)
            found[name] = Results(f"boards/{name}", True, rows, 0.0, {})
    return found


# -- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in BOARDS if name != "rooms"])
def test_without_the_folder_everything_is_said(monkeypatch, tmp_path, name):
    board = MODULES[name].BOARD
    for value in ("", str(tmp_path / "nowhere"), str(tmp_path)):
        monkeypatch.setenv("PERPEND_DATA", value)
        with pytest.raises(InputError, match="PERPEND_DATA") as error:
            board.cases(Settings())
        for source in map(SOURCES.get, board.sources):
            assert source.original in str(error.value)
            assert source.files[0] in str(error.value)


def test_rooms_need_no_files(monkeypatch):
    monkeypatch.delenv("PERPEND_DATA", raising=False)
    assert len(rooms.BOARD.cases(Settings())) == 100


def test_a_kind_of_data_may_be_missing_but_not_one_of_its_files(monkeypatch, tmp_path):
    monkeypatch.setenv("PERPEND_DATA", str(write_stand_ins(tmp_path, ["tabletops"])))
    assert {case["kind"] for case in files("roads", "tabletops")} == {"tabletops"}
    (tmp_path / "mosd_tabletop" / "test55.npz").unlink()
    for board in (MODULES["planes"].BOARD, rooms.BOARD):
        with pytest.raises(InputError, match=r"test55\.npz: is missing"):
            board.cases(Settings())


def test_a_file_without_an_array_says_what_it_has(data, tmp_path):
    board = MODULES["planes"]
    case = board.BOARD.cases(Settings(quick=True))[0]
    np.savez(tmp_path / "other.npz", xyz=np.zeros((3, 3)))
    with pytest.raises(InputError, match=r"no array 'points'. It holds: xyz"):
        board.run({**case, "path": str(tmp_path / "other.npz")})


def test_cases_know_the_content_of_the_files(monkeypatch, tmp_path):
    monkeypatch.setenv("PERPEND_DATA", str(write_stand_ins(tmp_path, ["tables"])))
    before = tables.BOARD.cases(Settings())
    path = tmp_path / "adbench" / "6_cardio.npz"
    np.savez(path, X=np.ones((5, 2)), y=np.zeros(5))
    after = tables.BOARD.cases(Settings())
    changed = [a for a, b in zip(before, after, strict=True) if a != b]
    assert {case["path"] for case in changed} == {str(path.resolve())}
    assert len(before) == 24 * (5 + 1)


# -- every board, on data whose subspace is known ------------------------------------------------


@pytest.mark.parametrize(
    ("name", "method", "least"),
    [
        ("tables", "", 0.8),
        ("tables", "IForest", 0.8),
        ("scenes", "", 0.95),
        ("scenes", scenes.RX, 0.95),
        ("planes", "", 0.95),
        ("planes", peers.SKLEARN, 0.95),
        ("rooms", "", 0.9),
        ("homographies", "", 0.9),
        ("classics", "", 0.7),
        ("faces", "spherical PCA, given d = 9", 0.9),
    ],
)
def test_stand_ins_are_solved(made, name, method, least):
    board, results = MODULES[name].BOARD, made[name]
    group = board.groups(results)[0]
    assert board.value(results, board.measures[0].column, method, group) > least


@pytest.mark.parametrize("name", BOARDS)
def test_page_and_pictures(made, name):
    text = _pages.description(f"boards/{name}", made[name])
    assert not re.search(r"\bnan\b", text)
    for target in MODULES[name].BOARD.targets(MODULES[name].BOARD, made[name]):
        assert f"| {target.what} |" in text
    figures = STUDIES.load(f"boards/{name}").draw(made[name])
    assert {f"({stem}.png)" in text for stem in figures} == {True}
    assert set(figures) - {"scores"} == {"scenes": {"map"}, "planes": {"road"}}.get(name, set())


def test_a_missing_peer_is_said_and_its_target_not_measured(root, monkeypatch):
    monkeypatch.setenv("PERPEND_DATA", str(root))
    monkeypatch.setattr(peers, "package", lambda _: None)
    for board, n in ((tables, 4), (homographies, 3), (MODULES["planes"], 2)):
        case = board.BOARD.cases(Settings(quick=True))[0]
        rows = board.run(case)["scores"]
        absent = [row for row in rows if row["note"] == base.NOT_INSTALLED]
        assert len(absent) == n
        results = Results(board.BOARD.name, True, {"scores": rows}, 0.0, {})
        text = _pages.description(board.BOARD.name, results)
        assert text.count(f"| {base.NOT_INSTALLED} |") == n
        assert "| not measured |" in text


def test_a_peer_that_fails_has_a_note_and_ours_fails_the_case():
    def fails():
        raise ValueError("no plane")

    row = peers.row_of("peer", fails, dict)
    assert row == {"method": "peer", "note": "failed: ValueError"}
    with pytest.raises(ValueError, match="no plane"):
        peers.row_of("ours", fails, dict, may_fail=False)


def test_boards_can_be_run_one_by_one_and_have_a_page(data, tmp_path, capsys):
    out = tmp_path / "made"
    command = ["boards", "--quick", "--jobs", "1", "--out", str(out)]
    assert main([*command, "--only", "classics"], program=app, name="studies") == 0
    assert "misses 0 of the known outliers" in " ".join(capsys.readouterr().out.split())
    page = out.with_suffix(".md").read_text()
    assert page.index("## Beside other methods") < page.index("## The classics of robust PCA")
    assert "0 of 2 targets missed" in page
    links = re.findall(r"\]\(([^)#:]+)\)", page)
    assert all((tmp_path / link).exists() for link in links)
    assert main([*command, "--only", "classic"], program=app, name="studies") == 2
    assert "There are: tables, scenes" in " ".join(capsys.readouterr().err.split())
    assert main(["limits", "--only", "tables"], program=app, name="studies") == 2


# -- what they share -----------------------------------------------------------------------------


NOTHING = {"seconds": None, "note": ""}


def toy(values, own="ours", sign=1, yardsticks=()):
    """A board and results: method -> one value for each item, or for each item and seed."""
    board = base.Board(
        name="boards/toy", title="Toy", about="", own=own, item="item", items=lambda _: [{}],
        measures=(base.Measure("f1", "F1", sign),), targets=lambda *_: [],
        yardsticks=frozenset(yardsticks),
    )  # fmt: skip
    rows = [
        {"group": "", "item": i, "method": method, "seed": seed, "f1": value, **NOTHING}
        for method, items in values.items()
        for i, item in enumerate(items)
        for seed, value in enumerate(np.atleast_1d(item).tolist())
    ]  # fmt: skip
    return board, Results("boards/toy", True, plain({"scores": rows}), 0.0, {})


def test_items_weigh_alike_whatever_the_number_of_seeds():
    board, results = toy({"ours": [[0.8, 0.9, 1.0], 0.5], "peer": [0.7, 0.71]})
    assert board.value(results, "f1") == pytest.approx(0.7)
    ours, peer = sorted(board.lines(results), key=lambda line: line.method)
    assert peer.values[0] == pytest.approx(0.705)
    assert (ours.rank, peer.rank) == (1.5, 1.5)
    assert [(round(lead, 3), item) for lead, item in peer.ahead] == [(0.21, 1)]
    assert board.place(results) == (2, 2)
    assert [line.method for line in board.better(results)] == ["peer"]
    assert board.better_rank(results) == []


def test_a_better_mean_may_have_a_worse_rank():
    board, results = toy({"ours": [1.0, 0.5, 0.5], "peer": [0.1, 0.6, 0.6]})
    assert board.better(results) == []
    assert [line.method for line in board.better_rank(results)] == ["peer"]


def test_smaller_is_better_where_it_is():
    board, results = toy({"ours": [1.0, 2.0], "peer": [2.0, 1.5]}, sign=-1)
    assert board.place(results) == (1, 2)
    assert board.better(results) == []


def test_yardsticks_have_no_rank_and_a_method_with_gaps_no_mean():
    values = {"ours": [0.5, 0.5], "truth": [1.0, 1.0], "gaps": [0.9, None]}
    board, results = toy(values, yardsticks=["truth"])
    assert board.place(results) == (1, 1)
    assert board.better(results) == []
    lines = {line.method: line for line in board.lines(results)}
    assert math.isnan(lines["gaps"].values[0])
    assert math.isnan(lines["truth"].rank)
    text = base.item_table(board, results)
    assert "| 0 | 1.000 | 0.500 | **0.900** |" in text


@pytest.mark.parametrize(
    ("value", "goal", "sign", "met"),
    [
        *[(0.9, 0.9, 1, "met"), (0.89, 0.9, 1, "**missed**"), (0.89, 0.9, -1, "met")],
        *[(4, 6, -1, "met"), (7, 6, -1, "**missed**"), (0.9, math.nan, 1, "not measured")],
    ],
)
def test_targets(value, goal, sign, met):
    assert base.Target("", value, goal, sign).met == met


def test_the_best_f1_is_that_of_the_best_threshold(seed):
    rng = np.random.default_rng(seed)
    score, outlier = rng.integers(0, 12, 60).astype(float), rng.uniform(size=60) < 0.3
    by_hand = [
        2 * np.sum(outlier & (score >= t)) / (outlier.sum() + np.sum(score >= t)) for t in score
    ]
    assert base.best_f1(outlier, score) == pytest.approx(max(by_hand))


# -- parts of single boards ----------------------------------------------------------------------


def test_the_window_of_a_quick_run_holds_an_anomaly(seed):
    rng = np.random.default_rng(seed)
    mask = np.zeros((100, 80), dtype=int)
    mask.flat[rng.choice(8000, 3, replace=False)] = 1
    part = mask[scenes.around_an_anomaly(mask, 40)]
    assert part.shape == (40, 40)
    assert part.any()


def test_rooms_are_as_the_page_says():
    numbers = set()
    for seed in range(20):
        points, label = rooms.room(seed)
        k = label.max() + 1
        numbers.add(k)
        assert len(points) == 20_000
        shares = np.bincount(label[label >= 0]) / len(label)
        assert 0.0499 <= shares.min() <= shares.max() <= 0.4001
        assert np.mean(label == -1) == pytest.approx(0.15, abs=1e-3)
        for i in range(k):
            off = peers.distances(points[label == i], references.pca_plane(points[label == i]))
            assert np.sqrt(np.mean(off**2)) == pytest.approx(0.005, rel=0.1)
    assert numbers == {3, 4, 5, 6}


def test_matched_planes_have_their_f1():
    truth = np.array([0, 0, 0, 1, 1, -1])
    np.testing.assert_allclose(rooms.matched(truth, np.array([1, 1, 1, 0, 0, -1])), 1)
    np.testing.assert_allclose(
        rooms.matched(truth, np.array([0, 0, -1, 0, -1, -1])), [4 / 6, 2 / 5]
    )
    np.testing.assert_allclose(rooms.matched(truth, np.full(6, -1)), 0)


def test_crops_have_2_to_3000_points_in_three_forms():
    points = np.random.default_rng(0).uniform(-1, 1, (5000, 3))
    drawn = [crops.crop(points, np.random.default_rng(i)) for i in range(200)]
    assert {form for _, form in drawn} == set(crops.FORMS)
    for some, form in drawn:
        distinct = len(np.unique(some, axis=0))
        assert 1 <= distinct <= 3000
        assert len(some) == (3 * distinct if form == "three times" else distinct) >= 2
        assert (np.ptp(some[:, 2]) == 0) == (form == "on a plane" or distinct == 1)
    sizes = [len(some) for some, _ in drawn]
    assert min(sizes) <= 5
    assert max(sizes) > 1000


def test_crops_of_scans_never_fail_and_four_points_are_no_sure_plane(data):
    cases = crops.BOARD.cases(Settings())
    assert len(cases) == 500
    rows = [row for case in cases[::50] for row in crops.run(case)["scores"]]
    assert [(row["crashed"], row["few"], row["note"]) for row in rows] == [(0, 0, "")] * 10
    assert len({row["n"] for row in rows}) > 5


def test_a_crash_is_counted_and_not_hidden(data, monkeypatch):
    def crashes(*_, **__):
        raise np.linalg.LinAlgError("0 members")

    monkeypatch.setattr("perpend.peel", crashes)
    (row,) = crops.run(crops.BOARD.cases(Settings())[0])["scores"]
    assert (row["crashed"], row["few"], row["note"]) == (1, None, "failed: LinAlgError")
    results = Results("boards/crops", True, {"scores": [row]}, 0.0, {})
    assert [target.met for target in crops.targets(crops.BOARD, results)] == ["**missed**", "met"]


def test_a_scene_under_two_names_is_taken_once(data):
    names = [name for file in files("adelaide") for name in homographies.scenes(file)]
    assert [name for _, name in names] == ["bonython", "sene", "cube"]


# -- references ----------------------------------------------------------------------------------


def test_rx_is_the_mahalanobis_distance(seed):
    X = np.random.default_rng(seed).standard_normal((50, 4)) @ np.diag([1, 2, 3, 4])
    inverse = np.linalg.inv(np.cov(X.T))
    expected = [(x - X.mean(axis=0)) @ inverse @ (x - X.mean(axis=0)) for x in X]
    np.testing.assert_allclose(references.rx_scores(X), expected, rtol=1e-6)


def test_the_student_scatter_ignores_a_few_and_knows_the_others_law(seed):
    X = np.random.default_rng(seed).standard_normal((4000, 3)) @ np.diag([1, 5, 0.1])
    X[:100] += [0, 0, 5]
    score = references.student_scores(X)
    assert score[:100].min() > np.max(score[100:])
    from scipy.stats import chi2

    assert np.mean(score[100:] > chi2.ppf(0.99, 3)) == pytest.approx(0.01, abs=0.007)


def test_robpca_flags_what_pca_follows(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((80, 2)) @ rng.standard_normal((2, 30))
    X += 0.05 * rng.standard_normal(X.shape)
    X[:10] += 10 * rng.standard_normal(30)
    assert references.robpca_flags(X, 2, seed)[:10].all()
    assert references.robpca_flags(X, 2, seed)[10:].mean() < 0.2
    assert references.pca_flags(X, 2)[:10].mean() < 0.5


def test_peers_that_perpend_has_are_the_published_iterations(seed):
    """The numbers of earlier runs were those of these lines."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.standard_normal((40, faces.GIVEN)))[0].T
    X = np.vstack([rng.standard_normal((60, faces.GIVEN)) @ basis, rng.standard_normal((60, 40))])
    X *= rng.lognormal(0, 1, (120, 1))
    U = references.unit_rows(X)
    spherical, reweighted = (clone(peer).fit(X).components_ for peer in faces.PEERS.values())
    B = np.linalg.svd(U)[2][: faces.GIVEN]
    assert_same_subspace(references.principal_axes(U, faces.GIVEN), B, 1e-8)
    assert_same_subspace(spherical, B, 1e-8)
    for _ in range(50):
        w = 1 / np.maximum(references.residuals(U, B), 1e-3)
        B = np.linalg.svd(U * np.sqrt(w)[:, None])[2][: faces.GIVEN]
    assert_same_subspace(reweighted, B, 1e-6)  # where it stops


def test_transfer_errors_are_distances_in_the_second_view(seed):
    rng = np.random.default_rng(seed)
    H, a = np.eye(3) + 0.01 * rng.standard_normal((3, 3)), rng.standard_normal((12, 2))
    image = np.column_stack([a, np.ones(12)]) @ H.T
    b = image[:, :2] / image[:, 2:]
    np.testing.assert_allclose(references.transfer_errors(H, a, b), 0, atol=1e-9)
    np.testing.assert_allclose(references.transfer_errors(H, a, b + np.array([3, 4])), 5)


# -- the data itself -----------------------------------------------------------------------------


def test_on_the_data_itself():
    """Rows 1 to 10 of hbk."""
    if not (Path(os.environ.get("PERPEND_DATA", "")) / "classics").is_dir():
        pytest.skip("PERPEND_DATA does not name a folder with classics/")
    case = classics.BOARD.cases(Settings(quick=True))[0]
    rows = {row["method"]: row for row in classics.run(case)["scores"]}
    assert rows[classics.OWN]["missed"] == 0
    assert rows[classics.OWN]["others"] <= 6
    assert rows["MCD"]["missed"] == 0
    assert rows["PCA, given d"]["missed"] > 5

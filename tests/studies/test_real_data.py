"""The real-data experiment on small stand-ins, and one check of the data itself."""

import os
import re
from pathlib import Path

import numpy as np
import pytest

from perpend.exceptions import InputError
from perpend.experiments import Results, Settings
from perpend.experiments._store import plain
from real_data_files import write_stand_ins
from studies import STUDIES
from studies import _real_anomalies as anomalies
from studies import _real_detectors as detectors
from studies import _real_page as page
from studies import _real_references as references
from studies._pages import description
from studies._real_files import SOURCES, find_sources
from studies._real_homographies import scene_names, turned
from studies.real_data import PARTS

pytestmark = pytest.mark.filterwarnings("ignore")
EXPERIMENT = STUDIES.load("real-data")


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return write_stand_ins(tmp_path_factory.mktemp("data"))


@pytest.fixture
def data(root, monkeypatch):
    monkeypatch.setenv("PERPEND_DATA", str(root))
    return root


def few(case):
    """Enough to see every part: two files of each, faces at one share."""
    position = [str(name) for name in SOURCES[case["kind"]].files].index(Path(case["path"]).name)
    return position < 2 and case.get("share", 0.5) == 0.5


@pytest.fixture(scope="module")
def results(root):
    """Some quick cases of the stand-ins."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PERPEND_DATA", str(root))
        chosen = [c for c in EXPERIMENT.cases(Settings(quick=True)) if few(c)]
    tables = {}
    for case in chosen:
        for name, rows in plain(EXPERIMENT.run(case)).items():
            assert all(row.keys() == rows[0].keys() for row in rows)
            tables.setdefault(name, []).extend(rows)
    return Results("real-data", True, tables, 0.0, {})


# -- files ---------------------------------------------------------------------------------------


def test_without_the_folder_everything_is_said(monkeypatch, tmp_path):
    for value in ("", str(tmp_path / "nowhere"), str(tmp_path)):
        monkeypatch.setenv("PERPEND_DATA", value)
        with pytest.raises(InputError, match=r"PERPEND_DATA|none of the folders") as error:
            find_sources()
        for source in SOURCES.values():
            assert source.original in str(error.value)
            assert source.files[0] in str(error.value)


def test_a_kind_of_data_may_be_missing_but_not_one_of_its_files(monkeypatch, tmp_path):
    root = write_stand_ins(tmp_path / "some", ["tables", "detectors"])
    monkeypatch.setenv("PERPEND_DATA", str(root))
    assert set(find_sources()) == {"tables", "detectors"}
    (root / "mosd_tabletop" / "test55.npz").unlink()
    with pytest.raises(InputError, match=r"test55\.npz: is missing") as error:
        EXPERIMENT.cases(Settings())
    assert SOURCES["tables"].original in str(error.value)


def test_a_file_without_an_array_says_what_it_has(data, tmp_path):
    case = next(c for c in EXPERIMENT.cases(Settings(quick=True)) if c["kind"] == "tables")
    np.savez(tmp_path / "other.npz", xyz=np.zeros((3, 3)))
    with pytest.raises(InputError, match=r"no array 'points'. It holds: xyz"):
        EXPERIMENT.run({**case, "path": str(tmp_path / "other.npz")})


def test_cases_know_the_content_of_the_files(monkeypatch, tmp_path):
    root = write_stand_ins(tmp_path / "data", ["detectors"])
    monkeypatch.setenv("PERPEND_DATA", str(root))
    before = EXPERIMENT.cases(Settings())
    path = root / "adbench" / "6_cardio.npz"
    np.savez(path, X=np.ones((5, 2)), y=np.zeros(5))
    after = EXPERIMENT.cases(Settings())
    changed = [a for a, b in zip(before, after, strict=True) if a != b]
    assert {case["path"] for case in changed} == {str(path.resolve())}


# -- the parts, on data with known answers -------------------------------------------------------


def column(results, name, value, **where):
    return page.numbers(results, name, value, **where)


@pytest.mark.parametrize("kind", ["roads", "tables"])
def test_planes_are_found(results, kind):
    for method in ("DPCP()", "RANSAC, given c"):
        assert np.all(column(results, kind, "auc", method=method) > 0.97)
    assert np.all(column(results, kind, "codimension", method="DPCP()") == 1)


def test_anomalies_faces_and_homographies_are_found(results):
    for method in ("DPCP()", "RX"):
        assert np.all(column(results, "anomalies", "auc", method=method) > 0.95)
    assert np.all(column(results, "faces", "auc", method="spherical PCA, given d = 9") > 0.9)
    assert results.values("homographies", "scene") == ["bonython", "sene"]
    for method in ("DPCP()", "RANSAC, given c"):
        assert np.all(column(results, "homographies", "f1", method=method) > 0.9)


def test_detectors_see_the_outliers(results):
    assert np.all(column(results, "detectors", "auc", method="DPCP()") > 0.8)
    assert np.all(column(results, "detectors", "auc", method="IsolationForest") > 0.8)
    assert results.values("detectors", "data")[0] == "cardio"
    has = "PyOD" in results.values("detectors", "package")
    assert has == detectors.has_pyod()


def test_page_and_pictures(results):
    text = description("real-data", results)
    for part in PARTS.values():
        assert f"## {part.title}" in text
    assert not re.search(r"\bnan\b", text)
    assert ("PyOD was not installed" in text) == (not detectors.has_pyod())
    for stem in EXPERIMENT.draw(results):
        assert f"({stem}.png)" in text
    assert "map" in EXPERIMENT.draw(results)  # the pictures that are stored line by line
    assert "road" in EXPERIMENT.draw(results)


def test_a_page_of_one_kind_says_what_is_left_out(results):
    some = Results("real-data", True, {"faces": results.rows("faces")}, 0.0, {})
    text = description("real-data", some)
    assert "## One person among others" in text
    assert "## Homographies" not in text
    assert "Left out, as there was no such folder: kitti_roadplane" in text


def test_who_is_better_is_said(results):
    table = [dict(row) for row in results.rows("homographies")]
    for row in table:
        row["f1"] = {"DPCP()": 0.8, "RANSAC, given c": 0.9}.get(row["method"], 0.802)
    some = Results("real-data", True, {"homographies": table}, 0.0, {})
    said = description("real-data", some)
    assert "- sene: RANSAC, given c (0.900); `DPCP()` has 0.800." in said
    for row in table:
        row["f1"] = {"DPCP()": 0.95}.get(row["method"], row["f1"])
    assert "No other method has a clearly better F1" in description("real-data", some)


def test_the_window_of_a_quick_run_holds_an_anomaly(seed):
    rng = np.random.default_rng(seed)
    mask = np.zeros((100, 80), dtype=int)
    mask.flat[rng.choice(8000, 3, replace=False)] = 1
    part = mask[anomalies.around_an_anomaly(mask, 40)]
    assert part.shape == (40, 40)
    assert part.any()


# -- references ----------------------------------------------------------------------------------


def test_ransac_finds_a_plane_that_is_not_the_least_squares_one(seed):
    rng = np.random.default_rng(seed)
    points = rng.uniform(-1, 1, (600, 3))
    points[:200, 2] = 0.3 * points[:200, 0] - 0.5
    plane = references.ransac_plane(points, 0.01, 200, np.random.default_rng(seed + 1000))
    truth = np.array([0.3, 0, -1, -0.5])
    cosine = abs(plane @ truth) / np.linalg.norm(plane) / np.linalg.norm(truth)
    assert cosine > 0.9999
    least = references.pca_plane(points)
    assert abs(least @ truth) / np.linalg.norm(least) / np.linalg.norm(truth) < 0.99


def test_rx_is_the_mahalanobis_distance(seed):
    X = np.random.default_rng(seed).standard_normal((50, 4)) @ np.diag([1, 2, 3, 4])
    inverse = np.linalg.inv(np.cov(X.T))
    expected = [(x - X.mean(axis=0)) @ inverse @ (x - X.mean(axis=0)) for x in X]
    np.testing.assert_allclose(references.rx_scores(X), expected, rtol=1e-6)


def test_turned_pairs_span_what_they_spanned_and_have_no_zeros(seed):
    rng = np.random.default_rng(seed)
    rows = references.homography_rows(rng.standard_normal((7, 2)), rng.standard_normal((7, 2)))
    assert np.sum(rows == 0) == 7 * 6
    other = turned(rows, rng)
    assert np.all(other != 0)
    for a, b in zip(rows.reshape(7, 2, 9), other.reshape(7, 2, 9), strict=True):
        np.testing.assert_allclose(
            a.T @ a, b.T @ b, atol=1e-12
        )  # turning changes no sum of squares


def test_the_rows_of_a_homography_are_orthogonal_to_it(seed):
    rng = np.random.default_rng(seed)
    H, a = np.eye(3) + 0.1 * rng.standard_normal((3, 3)), rng.standard_normal((12, 2))
    image = np.column_stack([a, np.ones(12)]) @ H.T
    b = image[:, :2] / image[:, 2:]
    np.testing.assert_allclose(references.homography_rows(a, b) @ H.ravel(), 0, atol=1e-9)
    np.testing.assert_allclose(references.transfer_errors(H, a, b), 0, atol=1e-9)


def test_reweighted_pca_resists_what_pca_does_not(seed):
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.standard_normal((20, 2)))[0].T
    X = np.vstack([rng.standard_normal((60, 2)) @ basis, rng.standard_normal((60, 20)) + 1.0])
    errors = [
        np.linalg.norm(basis - (basis @ B.T) @ B, 2)
        for B in (references.reweighted_pca(X, 2), references.spherical_pca(X, 2))
    ]
    assert errors[0] < 0.02
    assert errors[1] > 10 * errors[0]


def test_robust_scaling_ignores_outliers_and_drops_constants():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal(4001), np.full(4001, 3.0), np.arange(4001) % 10 == 0])
    X[:100, 0] = 1e6
    Z = detectors.robustly_scaled(X)
    assert Z.shape[1] == 2
    assert np.std(Z[100:, 0]) == pytest.approx(1, abs=0.1)
    assert np.isfinite(Z).all()


def test_a_scene_under_two_names_is_taken_once(root):
    path = root / "adelaide_rmf" / SOURCES["homographies"].files[0]
    assert scene_names(path) == ["bonython", "sene"]


# -- the data itself -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "method", "least"),
    [("tables", "DPCP()", 0.99), ("homographies", "RANSAC, given c", 0.8)],
)
def test_on_the_data_itself(kind, method, least):
    """The first quick case: the table of test24, and the building of bonython."""
    if not (Path(os.environ.get("PERPEND_DATA", "")) / SOURCES[kind].folder).is_dir():
        pytest.skip(f"PERPEND_DATA does not name a folder with {SOURCES[kind].folder}/")
    case = next(c for c in EXPERIMENT.cases(Settings(quick=True)) if c["kind"] == kind)
    (row,) = [row for row in EXPERIMENT.run(case)[kind] if row["method"] == method]
    assert row[PARTS[kind].value] > least

"""The problems of benchmarks/decisions.py are what their pages say, and scored by what is known."""

from types import SimpleNamespace

import numpy as np
import pytest
from _suites import SUITES, TIMED
from _suites.counting import stored
from _suites.slab import DEVIATION, FACTOR, THICKNESS
from _suites.suite import best_f1, same_subspace, scored, unit
from _suites.third import can_be_right

from board_files import write_stand_ins
from perpend.metrics import outlier_f1

SEEDS = range(40_000, 40_040)
DRAWN = ["slab", "cloud", "gap", "stretched", "third"]


def model(problem, **other):
    """A fitted model with the true estimate, but for what is said otherwise."""
    c, D = problem.codimension, problem.X.shape[1]
    known = {"codimension_": c, "confidence_": 1.0, "normals_": problem.normals}
    known |= {"noise_": problem.known.get("noise", 0) * np.sqrt(D), "labels_": problem.y}
    return SimpleNamespace(**known | other)


@pytest.mark.parametrize("name", DRAWN)
def test_a_seed_says_everything(name):
    one, again, other = (SUITES[name].draw(seed, 0) for seed in (7, 7, 8))
    np.testing.assert_array_equal(one.X, again.X)
    assert one.settings == again.settings
    assert one.X.shape != other.X.shape or not np.array_equal(one.X, other.X)


@pytest.mark.parametrize("name", DRAWN)
def test_normals_are_orthonormal_and_as_many_as_the_codimension(name):
    for seed in SEEDS[:10]:
        problem = SUITES[name].draw(seed, 0)
        assert problem.normals.shape == (problem.codimension, problem.X.shape[1])
        np.testing.assert_allclose(
            problem.normals @ problem.normals.T, np.eye(problem.codimension), atol=1e-12
        )


def test_a_slab_has_the_stated_noise_thickness_and_place():
    ratios = []
    for seed in SEEDS:
        problem = SUITES["slab"].draw(seed, 0)
        set_, known = problem.settings, problem.known
        across = (problem.X - known["far"]) @ problem.normals.T
        inside, slab = across[problem.y == 1], across[problem.y == -1]
        half = set_["ratio"] * known["noise"] * THICKNESS[set_["thickness"]]
        assert np.all(np.abs(slab) <= half * (1 + 1e-9))
        assert np.abs(slab).max() > 0.99 * half  # of at least 1600 uniform numbers
        # The median of |Gauss|, |Laplace| and |Student 3| of scale 1.
        median = {"Gauss": 0.6745, "Laplace": np.log(2), "Student 3": 0.7649}[set_["law"]]
        scale = known["noise"] / (DEVIATION[set_["law"]] if set_["size"] == "deviation" else 1)
        ratios.append(np.median(np.abs(inside)) / (median * scale))
        assert len(problem.X) == 4000
        assert 0.15 <= np.mean(problem.y == 1) <= 0.6
    # A median of 600 numbers has a deviation of at most 6 %; 40 of them together 1 %.
    assert np.max(np.abs(np.log(ratios))) < 0.3
    assert abs(np.mean(np.log(ratios))) < 0.04


def test_a_cloud_has_the_stated_axes():
    for name, largest in (("cloud", 2.5), ("gap", 10)):
        for seed in SEEDS:
            problem = SUITES[name].draw(seed, 0)
            axes, D = problem.known["axes"], problem.X.shape[1]
            steps = axes[:-1] / axes[1:]
            assert 2 <= D <= 30
            assert 50 <= len(problem.X) <= 20_000
            assert steps.max() <= largest * (1 + 1e-12)
            if name == "gap":
                assert np.sum(steps > 1.5) == 1
                assert int(np.argmax(steps)) == D - problem.codimension - 1
            if not problem.affine:
                assert not problem.known["far"].any()


def test_the_rows_of_a_gap_are_ten_times_as_thin_across():
    for seed in SEEDS[:10]:
        problem = SUITES["gap"].draw(seed, 0)
        Z = problem.X - problem.X.mean(0)
        values = np.sqrt(np.linalg.eigvalsh(Z.T @ Z / len(Z)))[::-1]
        d = problem.X.shape[1] - problem.codimension
        assert values[d - 1] / values[d] > 5  # 10, but for the draws of at least 10 rows per column


def test_stretched_inliers_have_the_stated_noise():
    for case in range(SUITES["stretched"].n_cases):
        problem = SUITES["stretched"].draw(3, case)
        across = problem.X[problem.y == 1] @ problem.normals.T
        noise = problem.settings["noise"] / np.sqrt(problem.settings["D"])
        np.testing.assert_allclose(np.sqrt(np.mean(across**2)), noise, rtol=0.15)
        share = np.mean(problem.y == -1)
        np.testing.assert_allclose(share, problem.settings["r"], atol=0.01)


def test_the_third_suite_has_the_stated_noise_and_outliers():
    seen = set()
    for seed in range(40_000, 40_150):
        problem = SUITES["third"].draw(seed, 0)
        kinds, D = problem.settings, problem.X.shape[1]
        across = problem.X[problem.y == 1] @ problem.normals.T
        size = problem.known["size"]
        if kinds["noise"] == "none":
            np.testing.assert_allclose(across, 0, atol=1e-9)
        elif kinds["noise"] == "Gauss":
            luck = 4 / np.sqrt(2 * across.size)  # four deviations of a standard deviation
            np.testing.assert_allclose(np.std(across), size / np.sqrt(D), rtol=luck)
        outliers = problem.X[problem.y == -1]
        if kinds["outliers"] == "cluster" and problem.known["own"] is not None:
            centre = unit(outliers.mean(0)[None])[0]
            assert np.median(unit(outliers) @ centre) > 0.9
        if kinds["outliers"] == "near":
            sizes = np.linalg.norm(outliers @ problem.normals.T, axis=1)
            assert np.all(sizes <= 0.5 + 1e-9)
        seen |= {(name, kind) for name, kind in kinds.items()}
    assert len(seen) == 5 + 5 + 6


@pytest.fixture
def scans(tmp_path, monkeypatch):
    monkeypatch.setenv("PERPEND_DATA", str(write_stand_ins(tmp_path / "data")))
    return SUITES["scans"]


def test_scans_are_permuted_and_their_planes_are_those_of_the_marked_points(scans):
    for case in range(scans.n_cases):
        one, other = scans.draw(0, case), scans.draw(1, case)
        assert not np.array_equal(one.X, other.X)
        np.testing.assert_allclose(np.sort(one.X, axis=0), np.sort(other.X, axis=0))
        assert one.known["best_auc"] > 0.98
        homogeneous = one.settings["form"] == "xyz1"
        assert one.affine != homogeneous
        assert one.X.shape[1] == 3 + homogeneous
        X = one.X[one.y == 1] - (0 if homogeneous else one.X[one.y == 1].mean(0))
        assert np.sqrt(np.mean((X @ one.normals.T) ** 2)) < 0.01


def test_a_scan_is_fitted_and_scored(scans):
    row = scored(scans, 0, 0)
    assert row["right"]
    assert 0.95 < row["auc"] <= 1
    found = stored(scans, [row])["by"]["kind, frame, form"][0]
    assert found["smallest_auc"] == pytest.approx(row["auc"], abs=1e-6)


def test_the_true_subspace_is_right_and_others_are_not():
    slab, gap = SUITES["slab"].draw(1, 0), SUITES["gap"].draw(1, 0)
    score = SUITES["slab"].score
    assert score(slab, model(slab))["right"]
    for factor, right in ((FACTOR * 0.999, True), (FACTOR * 1.001, False), (1 / 1.501, False)):
        assert score(slab, model(slab, noise_=factor * model(slab).noise_))["right"] is right
    assert not score(slab, model(slab, codimension_=slab.codimension + 1))["right"]
    assert SUITES["gap"].score(gap, model(gap))["right"]
    turned = np.roll(gap.normals, 1, axis=1)
    assert not same_subspace(gap, model(gap, normals_=turned))
    assert not same_subspace(gap, model(gap, normals_=gap.normals[1:]))


@pytest.mark.parametrize(
    ("c", "confidence", "right"), [(0, 1, True), (1, 1, False), (1, 0.9, True)]
)
def test_only_a_sure_subspace_of_a_cloud_is_wrong(c, confidence, right):
    cloud = SUITES["cloud"].draw(1, 0)
    row = SUITES["cloud"].score(cloud, model(cloud, codimension_=c, confidence_=confidence))
    assert row["right"] is right


def test_the_outliers_own_subspace_is_right_in_the_third_suite():
    problems = (SUITES["third"].draw(seed, 0) for seed in range(1000))
    problem = next(p for p in problems if p.known["own"] and p.settings["noise"] == "none")
    score, own = SUITES["third"].score, problem.X.shape[1] - problem.known["own"]
    found = score(problem, model(problem, codimension_=own, labels_=-problem.y))
    assert found["right"]
    assert found["outliers_own"]
    assert not score(problem, model(problem, codimension_=own))["right"]
    assert score(problem, model(problem))["right"]
    assert can_be_right(problem)


def test_the_best_f1_is_that_of_the_best_threshold():
    rng = np.random.default_rng(0)
    distance, y = rng.uniform(size=50), rng.choice([-1, 1], 50)
    by_hand = max(outlier_f1(y, np.where(distance <= t, 1, -1), positive=1) for t in distance)
    assert best_f1(distance, y) == pytest.approx(by_hand)


def test_counts_by_setting_add_up():
    suite = SUITES["slab"]
    rows = [
        {"settings": suite.draw(seed, 0).settings, "seconds": 0.1 * seed, "right": seed % 2 == 0,
         "sure": seed % 3 == 0}
        for seed in range(12)
    ]  # fmt: skip
    found = stored(suite, rows)
    expected = {"problems": 12, "right": 6, "sure": 4, "right_and_sure": 2, "sure_and_wrong": 2}
    assert found["all"] == expected
    for groups in found["by"].values():
        for name, count in expected.items():
            assert sum(row[name] for row in groups) == count
    assert found["seconds"] == {"sure": 0.45, "unsure": 0.6, "longest": 1.1}


def test_clear_fits_are_without_noise():
    for case in range(1, TIMED["clear"].n_cases):  # the first has 50,000 rows
        problem = TIMED["clear"].draw(5, case)
        np.testing.assert_allclose(problem.X[problem.y == 1] @ problem.normals.T, 0, atol=1e-12)

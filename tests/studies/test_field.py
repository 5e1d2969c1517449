"""The field's experiments: what their cells hold, how estimates are measured, and the sweep."""

import numpy as np
import pytest

from perpend import _LABELS_ONLY, _METHODS
from perpend.experiments import Settings
from studies.field import field, sweep
from studies.field._methods import DICTIONARY, GIVEN, ONCE, OURS, PCA, entries, measured, too_costly
from studies.field._problems import DS_SNR, GRIDS, Problem


def drawn(name, x, y, seed=0):
    grid = GRIDS[name]
    return grid.draw(x, y, grid.sizes, np.random.default_rng(seed))


@pytest.mark.parametrize("name", [name for name in GRIDS if name != "dictionary"])
def test_inliers_lie_on_the_true_subspace_and_outliers_do_not(name):
    grid = GRIDS[name]
    problem = drawn(name, grid.xs[0], grid.ys[1])  # the least noise
    distance = np.linalg.norm(problem.X @ problem.normals.T, axis=1)
    assert np.all(distance[problem.y == 1] < 1e-12)
    assert np.all(distance[problem.y == -1] > 1e-6)
    assert problem.share == pytest.approx(np.mean(problem.y == -1))


def test_the_atoms_of_a_dictionary_are_normals_of_many_rows():
    problem = drawn("dictionary", 0.2, 1.5)
    zero = np.abs(problem.X @ problem.normals.T) < 1e-12
    assert np.all(np.abs(zero.mean(axis=0) - 0.8) < 0.08)  # 4 deviations of 640 draws are 0.06
    assert problem.codimension == 1
    atoms = problem.normals
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((3, 3)))[0]
    assert problem.error(turn @ atoms[[2, 5, 7]]) < 1e-12
    assert problem.error(atoms[:1] + atoms[1:2]) == pytest.approx(np.sqrt(0.5))
    assert problem.error(atoms) == problem.error(atoms[:0]) == 1


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("haystack", lambda x, y, s: (x * s["d"], y * s["D"], s["d"])),
        ("few", lambda x, y, s: (x * y, s["M"], x)),
        ("noise", lambda _, y, s: (1 - y, y, s["D"] - s["c"])),
        ("relative", lambda x, y, s: (1 - y, y, s["D"] - x)),
        ("cluster", lambda _, y, s: (1 - y, y, s["D"] - s["c"])),
    ],
)
def test_the_line_is_where_the_ratio_of_densities_is_one(name, counts):
    grid = GRIDS[name]
    x, y = grid.lines(np.linspace(1, 4, 7), grid.sizes)[DS_SNR]
    n_in, n_out, d = counts(x, y, grid.sizes)
    assert (n_in / d) / (n_out / (grid.sizes["D"] - d)) == pytest.approx(np.ones(7))


@pytest.mark.filterwarnings("ignore")
def test_all_methods_take_part_and_are_measured():
    rng = np.random.default_rng(0)
    problem = GRIDS["haystack"].draw(20, 2, {"D": 10, "d": 2}, rng)
    rows = {row["method"]: row for row in measured(problem, 0, 0)}
    assert {"S-REAPER" if name == "REAPER" else name for name in _METHODS} - {"DPCP"} <= set(rows)
    assert {OURS, GIVEN, PCA, "REAPER", *_LABELS_ONLY} <= set(rows)
    assert DICTIONARY not in rows
    assert all(not row["note"] for row in rows.values())
    for name in (OURS, GIVEN, "RSGM", "FMS", "TME", "RANSAC"):
        assert rows[name]["recovered"]
        assert rows[name]["auc"] > 0.99
    assert not rows[PCA]["recovered"]  # outliers turn its axes
    clean = Problem(problem.X[problem.y == 1], np.ones(40, dtype=int), problem.normals, 0.0)
    pca = entries()[PCA].make(clean, 0).fit(clean.X)
    assert clean.error(pca.normals_) < 1e-12


def test_what_is_too_costly_is_shown_and_counts_for_nobody():
    assert too_costly("DPCPLP", ONCE, 2, 1)
    assert not too_costly("DPCPLP", ONCE, 2, 0)
    assert not too_costly("RecursiveDPCP", ONCE, 2, 1)
    assert field.share([{"recovered": None}, {"recovered": True}]) == 1
    assert np.isnan(field.share([{"recovered": None}]))


@pytest.mark.parametrize("name", GRIDS)
def test_every_cell_is_a_case_in_every_trial(name):
    cases = [case for case in field.cases(Settings()) if case["grid"] == name]
    assert len(cases) == 3 * len(GRIDS[name].xs) * len(GRIDS[name].ys)


def test_the_knee_is_where_inliers_begin_to_add():
    k = np.arange(1, 31)
    for c in (1, 7, 20):  # M outliers add the root of k / D, N inliers that of (k - c) / d
        inliers = np.sqrt(np.maximum(k - c, 0) / (200 - c))
        assert sweep.knee(2250 * np.sqrt(k / 200) + 1500 * inliers) == c

"""Structures of whole clouds: found where they are, and not where there are none."""

import sys
import warnings
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import perpend
from helpers import assert_sure, mostly_slow
from perpend import DPCP, load
from perpend.datasets import make_subspace
from perpend.exceptions import CodimensionWarning
from perpend.rows.array import ArrayRows
from perpend.structure import Axes, Cloud, Profile, find_structure
from perpend.structure.checks import beyond_clusters, beyond_edge

FLOOR = 1.5e-8


def decide(X, *, affine=True, seed=0, **more):
    rng = np.random.default_rng(seed)
    return find_structure(Profile(Cloud(X, affine=affine, floor=FLOOR, **more)), rng)


def rotation(rng, D):
    return np.linalg.qr(rng.standard_normal((D, D)))[0]


def plane_in_slab(rng, D, c, share, ratio, *, n=2000):
    """Return rows of which a share has noise .1 across, the others fill a slab."""
    N = round(share * n)
    thick = ratio * np.sqrt(3) * 0.1
    across = np.vstack([0.1 * rng.standard_normal((N, c)), rng.uniform(-thick, thick, (n - N, c))])
    along = rng.uniform(-10 * thick, 10 * thick, (n, D - c))
    return np.hstack([across, along]) @ rotation(rng, D).T + 5


@pytest.mark.parametrize(("D", "c"), [(3, 1), (6, 2)])
@pytest.mark.parametrize("ratio", mostly_slow([10, 30], 10))
def test_a_plane_inside_a_slab_is_found(D, c, ratio):
    rng, right = np.random.default_rng([D, ratio]), 0
    for seed in range(10):
        X = plane_in_slab(rng, D, c, rng.uniform(0.2, 0.6), ratio)
        found = decide(X, seed=seed)
        right += found.candidate.c == c and 0.1 / 1.5 < found.candidate.sigma < 0.15
    assert right >= 9


def test_the_slab_is_listed_too():
    X = plane_in_slab(np.random.default_rng(0), 3, 1, 0.4, 20)
    found = decide(X)
    fine, coarse = found.structures[0], found.structures[-1]
    assert fine.chosen
    assert not coarse.chosen
    assert fine.candidate.n_members == pytest.approx(800, rel=0.15)
    assert coarse.candidate.n_members == pytest.approx(2000, rel=0.1)
    assert coarse.noise > 5 * fine.noise


@pytest.mark.parametrize("affine", mostly_slow([False, True], True))
def test_a_smooth_cloud_is_no_subspace_for_sure(affine):
    sure = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        D, n = int(rng.integers(2, 12)), int(rng.integers(60, 3000))
        axes = np.cumprod(np.append(1, 1 / rng.uniform(1, 2.5, D - 1)))
        X = rng.standard_normal((n, D)) * axes
        if seed % 2:
            X /= np.sqrt(rng.chisquare(4, (n, 1)) / 4)
        if not affine:
            X /= np.linalg.norm(X, axis=1)[:, None]
        found = decide(X @ rotation(rng, D).T, affine=affine, seed=seed)
        sure += found is not None and found.confidence >= 0.95
    assert sure == 0


@pytest.mark.parametrize("n_plane", [0, 800])
def test_a_plane_beside_an_edge_has_fewer_rows_on_both_sides(n_plane, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (10_000, 3))
    X[:n_plane, 2] = rng.normal(0.88, 0.02, n_plane)
    axes = Axes(np.array([0, 0, 0.88]), np.eye(3)[:, ::-1], np.full(3, 1 / 3))
    evidence = beyond_edge(Cloud(X, affine=True, floor=FLOOR), axes, 1, 0.06 if n_plane else 0.12)
    assert evidence > 50 if n_plane else evidence < 5


def clusters(rng, centres, n, long=1.0):
    """Return n rows around each centre, Gaussian and in boxes; `long` (D,) are their half-axes."""
    D = centres.shape[1]
    drawn = [rng.standard_normal((n, D)) / 2, rng.uniform(-1, 1, (n, D))]
    return np.vstack([centre + 0.3 * long * drawn[j % 2] for j, centre in enumerate(centres)])


@pytest.mark.parametrize(
    "kind", mostly_slow([(2, 1), (2, 2), (3, 2), (3, 3), (3, 5), (5, 3)], (3, 2)), ids=str
)
def test_clusters_are_no_subspace_for_sure(kind):
    """Any d + 1 of them lie on a subspace of dimension d, and a single one on many."""
    (D, n_clusters), named = kind, 0
    for seed in range(6):
        rng = np.random.default_rng([seed, D, n_clusters])
        X = clusters(rng, rng.uniform(0, 6, (n_clusters, D)), 1500 // n_clusters)
        X = np.vstack([X, rng.uniform(-1, 7, (500, D))])
        model = DPCP(affine=True, random_state=seed)
        with warnings.catch_warnings(action="ignore", category=CodimensionWarning):
            model.fit(X @ rotation(rng, D))
        assert model.confidence_ < 0.95 or model.codimension_ == 0
        named += any("clusters" in doubt for doubt in model.doubts_)
    assert named >= 4


@pytest.mark.parametrize("kind", mostly_slow([(2, 1), (3, 1), (3, 2), (5, 2)], (3, 1)), ids=str)
def test_what_goes_on_along_a_subspace_is_sure(kind):
    """A plane beside clusters, and rows that come in clusters along it, longer than the noise."""
    D, d = kind
    long = np.where(np.arange(D) < d, 1.0, 0.05)
    for seed in range(3):
        rng = np.random.default_rng([seed, D, d])
        others = clusters(rng, rng.uniform(0, 6, (1, D)), 200)
        for n_own in (1, 8):
            centres = rng.uniform(0, 6, (n_own, D)) * (long == 1)
            own = clusters(rng, centres, 800 // n_own, np.where(long == 1, 8 / n_own, long))
            X = np.vstack([own, others, rng.uniform(-6, 6, (300, D))]) @ rotation(rng, D) + 20
            model = assert_sure(DPCP(affine=True, random_state=seed).fit(X))
            assert model.codimension_ == D - d


def test_the_contrast_of_clusters_is_none_in_any_units(seed):
    """Far from any sample's limit: near 0 for what clusters share, 1 for what goes on."""
    rng = np.random.default_rng(seed)
    line = rng.normal(0, 0.2, (1000, 3)) + rng.uniform(0, 10, (1000, 1)) * [1, 0, 0]
    two = rng.normal(0, 0.2, (1000, 3)) + np.repeat([0, 8], 500)[:, None] * [1, 0, 0]
    Q = rotation(rng, 3)
    for unit in (1e-3, 1e3):
        axes = Axes(np.zeros(3), Q.T[:, ::-1], np.full(3, unit**2))
        for X, low, high in ((two, -0.1, 0.1), (line, 0.9, 1.0)):
            rows = np.vstack([X, rng.uniform(-4, 12, (500, 3))])
            cloud = Cloud(unit * rows @ Q, affine=True, floor=FLOOR)
            assert low <= beyond_clusters(cloud, axes, 2, 0.2 * unit) <= high


@pytest.mark.slow
@pytest.mark.parametrize("D", [2, 3])
def test_a_box_is_no_subspace_for_sure(D):
    for seed in range(30):
        X = np.random.default_rng(1020 + seed).uniform(-1, 1, (10_000, D))
        model = DPCP(affine=True, random_state=0)
        with warnings.catch_warnings(action="ignore", category=CodimensionWarning):
            model.fit(X)
        assert model.codimension_ == 0 or model.confidence_ < 0.95


def test_a_gap_of_ten_is_found_for_sure():
    right = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        D = int(rng.integers(3, 12))
        c = int(rng.integers(1, D))
        axes = np.where(np.arange(D) < D - c, 1.0, 0.1)
        X = (rng.standard_normal((100 * D, D)) * axes) @ rotation(rng, D).T
        found = decide(X, seed=seed)
        right += found.candidate.c == c and found.confidence >= 0.95
    assert right >= 19


def test_two_planes_that_are_as_good_make_nobody_sure():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (400, 5)).astype(float)  # every third row on each of many hyperplanes
    X = X[np.any(X != 0, axis=1)]
    found = decide(X / np.linalg.norm(X, axis=1)[:, None], affine=False)
    assert found is None or found.confidence < 0.95


def test_weights_and_equal_rows_are_the_same_evidence():
    X = plane_in_slab(np.random.default_rng(0), 3, 1, 0.5, 20, n=800)
    plain = decide(X)
    double = decide(np.vstack([X, X]), share=np.full(1600, 0.5))
    assert double.candidate.c == plain.candidate.c
    assert double.facts.contrast == pytest.approx(plain.facts.contrast, rel=0.01)
    heavy = decide(X, weight=np.full(800, 3.0))
    np.testing.assert_allclose(
        heavy.candidate.axes.A[:, 0], plain.candidate.axes.A[:, 0], atol=1e-9
    )


def test_nothing_is_found_in_random_directions():
    for seed in range(3):
        X = np.random.default_rng(seed).standard_normal((500, 6))
        found = decide(X / np.linalg.norm(X, axis=1)[:, None], affine=False, seed=seed)
        assert found is None


def test_a_plane_among_ten_times_as_many_outliers_is_found_though_not_surely(seed):
    # At no scale are most of the rows near it more than chance puts there.
    data = make_subspace(500, 4500, n_features=3, codimension=1, noise=0.1, random_state=seed)
    with pytest.warns(UserWarning, match="not sure"):
        model = DPCP(random_state=seed + 100).fit(data.X)
    assert model.codimension_ == 1
    assert np.linalg.norm(data.components @ model.normals_.T, 2) < 0.03


def test_one_outlier_in_a_hundred_is_labelled_by_the_law(seed):
    data = make_subspace(5000, 50, n_features=3, codimension=1, noise=0.1, random_state=seed)
    model = DPCP(random_state=seed + 100).fit(data.X)
    assert model.threshold_ == pytest.approx(0.218, rel=0.08)  # where the odds are even


def test_a_model_lists_its_structures(tmp_path):
    X = plane_in_slab(np.random.default_rng(1), 3, 1, 0.4, 20)
    model = DPCP(affine=True, random_state=0).fit(X)
    assert [one["chosen"] for one in model.structures_].count(True) == 1
    noise = [one["noise"] for one in model.structures_]
    assert noise == sorted(noise)
    assert "inside" in model.summary()
    model.save(tmp_path / "model.npz")
    assert load(tmp_path / "model.npz").structures_ == model.structures_


def test_a_clear_result_is_listed_as_well():
    data = make_subspace(300, 200, n_features=8, codimension=3, noise=0.02, random_state=0)
    model = DPCP(random_state=1000).fit(data.X)
    (one,) = [one for one in model.structures_ if one["chosen"]]
    assert one["codimension"] == 3
    assert one["members"] == np.sum(model.labels_ == 1)
    assert one["noise"] * np.sqrt(8) == pytest.approx(model.noise_, rel=0.05)


def test_a_thin_line_of_rows_of_all_lengths_is_no_cloud_of_outliers(seed):
    """Noise of one size is large in proportion to short rows, which are inliers all the same."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((600, 3)) * [1, 0.1, 0.08]
    model = DPCP(random_state=seed).fit(X)
    assert model.codimension_ == 2
    assert model.confidence_ >= 0.95
    assert np.mean(model.labels_ == 1) > 0.95


def test_a_core_inside_rows_that_are_only_near_is_doubted_or_found(seed):
    """Half of the rows are ten times as near to the plane: one for all of them is not sure."""
    rng = np.random.default_rng(seed)
    X = np.vstack(
        [
            rng.standard_normal((300, 4)) * [1, 1, 1, 0.02],
            rng.standard_normal((300, 4)) * [1, 1, 1, 0.25],
        ]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DPCP(random_state=seed).fit(X)
    found = np.mean(model.labels_[300:] == 1) < 0.5
    assert found or model.confidence_ < 0.95
    assert DPCP(random_state=seed).fit(X[:300]).confidence_ >= 0.95  # the core alone


def test_a_clear_fit_asks_for_one_table(seed, monkeypatch):
    """Weighing all scales and codimensions is what a decision costs."""
    calls, add = [], Profile.add
    monkeypatch.setattr(Profile, "add", lambda self, *a, **k: calls.append(a) or add(self, *a, **k))
    data = make_subspace(600, 400, n_features=40, codimension=5, noise=0.01, random_state=seed)
    assert DPCP(random_state=seed).fit(data.X).confidence_ >= 0.95
    assert len(calls) == 1


@pytest.mark.parametrize("n", [500, 20_000])  # by all rows, and by a sample first
def test_distances_to_one_and_the_same_subspace_are_computed_once(n, seed, monkeypatch):
    """Without noise two subspaces in turn may differ by rounding errors only, and both count."""
    seen, scan = [], ArrayRows.scan

    def recorded(self, kernel, *params, **options):
        if "distance" in kernel.__name__:
            (V,) = [A for A in params if np.shape(A) == (20, 3)]
            seen.append((self.shape[0], V @ V.T))
        return scan(self, kernel, *params, **options)

    monkeypatch.setattr(ArrayRows, "scan", recorded)
    size = {"n_features": 20, "codimension": 3, "noise": 0.02}
    model = DPCP(random_state=0).fit(make_subspace(n, n // 2, **size, random_state=seed).X)
    assert model.confidence_ >= 0.95
    seen.append((len(model.labels_), model.normals_.T @ model.normals_))
    near = [
        (i, j)
        for (i, (rows, P)), (j, (other, Q)) in combinations(enumerate(seen), 2)
        if rows == other and np.linalg.norm(P - Q, 2) < 1e-12
    ]
    assert near == [(len(seen) - 2, len(seen) - 1)]  # the last scan is that of the final subspace


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_a_clear_fit_visits_few_modules(noise):
    """Whoever follows one fit through the code should not have to open more than 30 files."""
    X = make_subspace(300, 200, n_features=20, codimension=3, noise=noise, random_state=0).X
    package, visited = Path(perpend.__file__).parent, set()

    def visit(frame, event, _):
        path = Path(frame.f_code.co_filename)
        if event == "call" and package in path.parents:
            visited.add(path)

    sys.setprofile(visit)
    try:
        model = DPCP(random_state=0).fit(X)
    finally:
        sys.setprofile(None)
    assert model.confidence_ >= 0.95
    assert 10 < len(visited) <= 30


@pytest.mark.parametrize("noise", [0.0, 0.02])
@pytest.mark.parametrize(("d", "n"), [(2, 200), (3, 100)])
def test_an_affine_subspace_of_few_dimensions_in_many_columns_is_never_a_larger_one(d, n, noise):
    right = 0
    for seed in range(4):
        X = make_subspace(
            n, n // 9, n_features=30, codimension=30 - d, noise=noise, offset=2.0, random_state=seed
        ).X
        model = DPCP(affine=True, random_state=seed).fit(X)
        right += model.codimension_ == 30 - d and model.confidence_ >= 0.95
    assert right == 4


def two_planes(seed, tilt, noise):
    """Three rows in four are near z = 0, one is near a plane tilted by so many degrees, exactly."""
    rng, t = np.random.default_rng(seed), np.radians(tilt)
    thick = np.c_[rng.uniform(-5, 5, (3000, 2)), noise * rng.standard_normal(3000)]
    thin = np.c_[rng.uniform(-5, 5, (1000, 2)), 0.01 * rng.standard_normal(1000)]
    turn = np.array([[1, 0, 0], [0, np.cos(t), -np.sin(t)], [0, np.sin(t), np.cos(t)]])
    return np.vstack([thick, thin @ turn.T]), turn[:, 2]


@pytest.mark.parametrize(
    "case", mostly_slow([(10, 0.2), (5, 0.1), (20, 0.4), (45, 0.1)], (10, 0.2))
)
def test_the_thinner_of_two_planes_is_found_and_the_other_one_listed(case):
    """A compromise between the two was sure, or the thin one was not seen at all."""
    for seed in range(3):
        X, normal = two_planes(seed, *case)
        model = DPCP(affine=True, random_state=seed).fit(X)
        assert model.confidence_ >= 0.95
        assert abs(model.normals_[0] @ normal) > np.cos(np.radians(0.1))
        own = [one for one in model.structures_ if one["chosen"]]
        assert 0.008 < own[0]["noise"] < 0.012
        others = [model.choose(i) for i, one in enumerate(model.structures_) if not one["chosen"]]
        assert any(one.codimension_ == 1 and one.noise_ > 2 * model.noise_ for one in others)


@pytest.mark.filterwarnings("ignore::perpend.exceptions.CodimensionWarning")
@pytest.mark.parametrize(
    "law", mostly_slow(["exponential", "lognormal", "dirichlet"], "exponential")
)
def test_a_skewed_cloud_ends_at_its_edge_and_has_no_plane_there(law):
    for D in (3, 5):
        rng = np.random.default_rng([7, D])
        if law == "exponential":
            X = rng.exponential(1, (3000, D))
        elif law == "lognormal":
            X = rng.lognormal(0, 1, (3000, D))
        else:
            X = rng.dirichlet(np.ones(D + 1), 3000)[:, :D]
        assert DPCP(affine=True, random_state=0).fit(X).confidence_ < 0.95
        if law == "lognormal":
            continue  # whose far rows make planes unsure
        # A plane across such a cloud is still found, and sure.
        across = np.hstack([rng.normal(3, 0.01, (1500, 1)) * np.std(X), X[:1500, 1:]])
        model = DPCP(affine=True, random_state=0).fit(np.vstack([X, across]))
        assert model.confidence_ >= 0.95
        assert abs(model.normals_[0, 0]) > 0.999

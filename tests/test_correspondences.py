"""Homographies and fundamental matrices: right where the truth is known, sure only then."""

import os
from pathlib import Path

import numpy as np
import pytest

import perpend
from perpend.correspondences import evidence
from perpend.correspondences.fundamental import FundamentalMatrices
from perpend.correspondences.homographies import Homographies, adjugate
from perpend.exceptions import InputError
from perpend.structure.constants import SURE

SIZE = np.array([640.0, 480.0])
H = np.array([[0.9, -0.2, 80.0], [0.1, 0.95, -10.0], [1e-4, 2e-4, 1.0]])
BOTH = [perpend.homography, perpend.fundamental_matrix]


def moved(H, points):
    """Return where the homography maps the points."""
    image = np.column_stack([points, np.ones(len(points))]) @ H.T
    return image[:, :2] / image[:, 2:]


def on_plane(rng, n=100, n_wrong=60, noise=0.5):
    """Return matches of a plane, and then wrong ones."""
    a = rng.uniform(0, SIZE, (n + n_wrong, 2))
    b = moved(H, a) + rng.normal(0, noise, a.shape)
    b[n:] = rng.uniform(0, SIZE, (n_wrong, 2))
    return a, b


def in_space(rng, n=100, n_wrong=40, noise=0.5, depth=(3.0, 7.0)):
    """Return matches of points in space, and then wrong ones; and the true matrix."""
    K = np.array([[600.0, 0, 320], [0, 600, 240], [0, 0, 1]])
    t, turn = np.array([0.5, 0.1, 0.05]), 0.1
    R = np.array([[np.cos(turn), 0, np.sin(turn)], [0, 1, 0], [-np.sin(turn), 0, np.cos(turn)]])
    a = rng.uniform(0, SIZE, (n + n_wrong, 2))
    rays = np.column_stack([a, np.ones(len(a))]) @ np.linalg.inv(K).T
    seen = (rays * rng.uniform(*depth, (len(a), 1)) @ R.T + t) @ K.T
    b = seen[:, :2] / seen[:, 2:]
    cross = np.array([[0, -t[2], t[1]], [t[2], 0, -t[0]], [-t[1], t[0], 0]])
    F = np.linalg.inv(K).T @ cross @ R @ np.linalg.inv(K)
    a, b = a + rng.normal(0, noise, a.shape), b + rng.normal(0, noise, b.shape)
    b[n:] = rng.uniform(0, SIZE, (n_wrong, 2))
    return a, b, F / np.linalg.norm(F)


def least_squares(a, b):
    """Return the homography of correct pairs by the direct linear transform, as a reference."""
    pairs = Homographies(a, b)
    h = np.linalg.svd(pairs.rows(np.random.default_rng(0)))[2][-1]
    return pairs.in_pixels(h.reshape(3, 3))


# -- right ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [0.3, 1.0])
def test_homography_is_as_good_as_least_squares_on_the_correct_pairs(noise):
    grid = np.stack(np.meshgrid([0, 320, 640], [0, 240, 480]), -1).reshape(-1, 2)
    errors = []
    for seed in range(8):
        a, b = on_plane(np.random.default_rng(seed), noise=noise)
        found = perpend.homography(a, b, random_state=seed)
        assert found.confidence >= SURE
        assert found.mask[:100].sum() >= 98
        assert found.mask[100:].sum() <= 1
        assert 0.8 * noise < found.noise < 1.4 * noise  # back in the first image it is larger
        rms = [
            np.sqrt(np.mean((moved(M, grid) - moved(H, grid)) ** 2))
            for M in (found.matrix, least_squares(a[:100], b[:100]))
        ]
        errors.append(rms)
    ours, reference = np.median(errors, axis=0)
    assert ours < 1.2 * reference


def test_exact_pairs_give_the_exact_homography():
    a, b = on_plane(np.random.default_rng(0), noise=0.0)
    found = perpend.homography(a, b, random_state=0)
    np.testing.assert_allclose(found.matrix, H, atol=1e-9)
    assert found.noise < 1e-3
    four = perpend.homography(a[:4], b[:4], random_state=0)
    np.testing.assert_allclose(four.matrix, H, atol=1e-6)
    assert four.confidence < SURE  # some homography fits any four


def test_fundamental_matrix_has_rank_two_and_fits_unseen_pairs():
    unseen, matches, _ = in_space(np.random.default_rng(99), n_wrong=0, noise=0.0)
    for seed in range(6):
        a, b, F = in_space(np.random.default_rng(seed))
        found = perpend.fundamental_matrix(a, b, random_state=seed)
        assert found.confidence >= SURE
        assert found.mask[:100].sum() >= 95
        assert 0.35 < found.noise < 0.7
        s = np.linalg.svd(found.matrix, compute_uv=False)
        assert s[2] < 1e-12 * s[0]
        pairs = FundamentalMatrices(unseen, matches)
        back = np.linalg.inv
        M = back(pairs.to_y).T @ found.matrix @ back(pairs.to_x)
        assert np.sqrt(np.median(pairs.errors(M[None]))) < 0.5
        M = back(pairs.to_y).T @ F @ back(pairs.to_x)
        assert np.sqrt(pairs.errors(M[None]).max()) < 1e-6  # the true one is exact


def test_pixels_may_have_any_unit_and_origin():
    a, b = on_plane(np.random.default_rng(3))
    found = perpend.homography(a, b, random_state=0)
    other = perpend.homography(1e-3 * a - 7, 1e3 * b + 5, random_state=0)
    np.testing.assert_array_equal(found.mask, other.mask)
    np.testing.assert_allclose(
        moved(other.matrix, 1e-3 * a - 7), 1e3 * moved(found.matrix, a) + 5, atol=50
    )


# -- sure only if right --------------------------------------------------------------------------


@pytest.mark.parametrize("function", BOTH)
def test_random_matches_are_never_sure(function):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n = (10, 30, 200)[seed % 3]
        a, b = rng.uniform(0, SIZE, (2, n, 2)) if seed % 2 else rng.normal(300, 80, (2, n, 2))
        found = function(a, b, random_state=seed)
        assert found.confidence < 0.5
        assert "could be an accident" in found.doubt


def test_a_point_that_stands_in_many_pairs_is_no_epipole():
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0, SIZE, (2, 120, 2))
    a[:40] = a[0]
    assert perpend.fundamental_matrix(a, b, random_state=0).confidence < SURE


def test_a_plane_leaves_the_fundamental_matrix_open():
    for seed in range(4):
        a, b = on_plane(np.random.default_rng(seed))
        found = perpend.fundamental_matrix(a, b, random_state=seed)
        assert found.confidence < SURE
        assert "plane" in found.doubt


def test_correct_pairs_on_a_line_leave_the_homography_open():
    rng = np.random.default_rng(0)
    a, b = on_plane(rng)
    t = rng.uniform(0, 1, (100, 1))
    a[:100] = (1 - t) * [50, 60] + t * [600, 400]
    b[:100] = moved(H, a[:100]) + rng.normal(0, 0.5, (100, 2))
    found = perpend.homography(a, b, random_state=0)
    assert found.confidence < SURE
    assert "along a line" in found.doubt


def on_lines(rng, n=80, noise=0.4):
    """Return matches of two lines in space that do not meet, and 30 wrong ones."""
    half = n // 2
    one = np.column_stack([rng.uniform(-2, 2, half), np.zeros(half), np.full(half, 6.0)])
    two = np.column_stack([np.zeros(half), rng.uniform(-1, 1, half), np.full(half, 8.0)])
    points, views = np.vstack([one, two]), []
    for shift in ([0, 0, 0], [0.4, 0.1, -0.1]):
        seen = (points + shift) @ np.array([[600.0, 0, 0], [0, 600, 0], [320, 240, 1]])
        views.append(seen[:, :2] / seen[:, 2:] + rng.normal(0, noise, (n, 2)))
    return [np.vstack([view, rng.uniform(0, SIZE, (30, 2))]) for view in views]


def test_two_lines_do_not_determine_a_fundamental_matrix():
    for seed in range(8):
        found = perpend.fundamental_matrix(*on_lines(np.random.default_rng(seed)), random_state=0)
        assert found.confidence < SURE
    a, b = on_lines(np.random.default_rng(0), n=200)
    found = perpend.fundamental_matrix(a, b, random_state=0)
    assert "on lines" in found.doubt


def test_pairs_that_are_repeated_are_no_further_evidence():
    a, b = on_plane(np.random.default_rng(0), n=5, n_wrong=0)
    once = perpend.homography(a, b, random_state=0)
    often = perpend.homography(np.tile(a, (20, 1)), np.tile(b, (20, 1)), random_state=0)
    assert once.confidence == often.confidence < SURE
    assert often.mask.shape == (100,)


def test_luck_grows_with_the_number_of_pairs():
    assert evidence.beyond_luck(40, 20, 4, 8) > SURE > evidence.beyond_luck(40, 2000, 4, 8)


# -- identities ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("relation", "size"), [(Homographies, 9), (FundamentalMatrices, 7)])
def test_derivatives_are_differences(relation, size):
    rng = np.random.default_rng(0)
    a, b, _ = in_space(rng, n_wrong=0)
    pairs = relation(a, b)
    M = pairs.valid(pairs.through(rng.integers(0, 100, (60, pairs.n_free))))[:3]
    residuals, J = pairs.linearised(M)
    np.testing.assert_allclose((residuals**2).sum(axis=1), pairs.errors(M), rtol=1e-6)
    for k in range(size):
        step = np.zeros((len(M), size))
        step[:, k] = 1e-6
        ahead, behind = (pairs.linearised(pairs.moved(M, d))[0] for d in (step, -step))
        difference = np.abs((ahead - behind) / 2e-6 - J[..., k])
        assert np.median(difference) < 1e-6 * np.median(np.abs(J[..., k]))


@pytest.mark.parametrize("relation", [Homographies, FundamentalMatrices])
def test_samples_are_fitted_exactly(relation):
    rng = np.random.default_rng(0)
    a, b, _ = in_space(rng, n_wrong=0)
    sample = np.arange(relation.n_free)
    pairs = relation(a, b)
    M = pairs.valid(pairs.through(sample[None]))
    assert len(M) > 0
    assert np.sqrt(pairs.errors(M)[:, sample].max()) < 1e-4


def test_adjugate_is_determinant_times_inverse():
    M = np.random.default_rng(0).normal(size=(5, 3, 3))
    expected = np.linalg.det(M)[:, None, None] * np.linalg.inv(M)
    np.testing.assert_allclose(adjugate(M), expected)


# -- form ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", BOTH)
def test_unpacks_as_in_opencv_and_repeats_itself(function):
    a, b, _ = in_space(np.random.default_rng(0))
    found = function(a[:, None].astype(np.float32), b.tolist(), random_state=0)
    matrix, mask = found
    assert matrix.shape == (3, 3)
    assert mask.dtype == bool
    np.testing.assert_array_equal(mask, found.probability > 0.5)
    again = function(a[:, None].astype(np.float32), b.tolist(), random_state=0)
    np.testing.assert_array_equal(again.matrix, matrix)
    assert f"{mask.sum()} of 140 pairs agree" in repr(found)
    assert "pixels" in repr(found)


LINE = np.column_stack([np.arange(20.0), 2 * np.arange(20.0)])
GOOD = np.random.default_rng(0).uniform(0, SIZE, (20, 2))


@pytest.mark.parametrize("function", BOTH)
@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (GOOD[:3], GOOD[:3], "Only 3 different pairs; a "),
        (
            np.tile(GOOD[:3], (9, 1)),
            np.tile(GOOD[:3], (9, 1)),
            "Only 3 different pairs; a ",
        ),
        (LINE, GOOD, "first lie on a line"),
        (GOOD, LINE, "second lie on a line"),
        (np.ones((20, 2)), GOOD, "first are equal"),
        (GOOD, np.where(GOOD > 600, np.nan, GOOD), r"second contains NaN or inf in \d+ rows"),
        (GOOD, GOOD[:9], "first has 20 points and second has 9"),
        (np.ones((20, 3)), GOOD, r"first has shape \(20, 3\); expected \(n, 2\)"),
        (GOOD, [["a", "b"]] * 20, "second is not an array of numbers"),
        (1e200 * GOOD, GOOD, "expected pixels"),
    ],
)
def test_bad_input_is_named(function, first, second, message):
    with pytest.raises(InputError, match=message):
        function(first, second)


def test_seven_pairs_are_too_few_for_a_fundamental_matrix():
    with pytest.raises(
        InputError, match="Only 7 different pairs; a fundamental matrix needs at least 8"
    ):
        perpend.fundamental_matrix(GOOD[:7], GOOD[7:14])


# -- photographs ---------------------------------------------------------------------------------


@pytest.mark.skipif(not os.environ.get("PERPEND_DATA"), reason="PERPEND_DATA is not set")
def test_photographs_are_matched_as_well_as_by_magsac():
    """OpenCV's USAC_MAGSAC at 3 pixels, orders 0 to 9 of the matches: F1 0.942, 1.24 pixels."""
    path = Path(os.environ["PERPEND_DATA"]) / "homogr" / "homogr_8_pairs.npz"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    data = np.load(path)
    names = [key[:-11] for key in data if key.endswith("_homography")]
    f1, error = [], []
    for name in names:
        found = perpend.homography(data[f"{name}_first"], data[f"{name}_second"], random_state=0)
        truth = data[f"{name}_inlier"].astype(bool)
        f1.append(2 * np.sum(truth & found.mask) / (truth.sum() + found.mask.sum()))
        marked = moved(found.matrix, data[f"{name}_check_first"]) - data[f"{name}_check_second"]
        error.append(np.median(np.linalg.norm(marked, axis=1)))
    assert len(names) == 8
    assert np.mean(f1) >= 0.942
    assert np.median(error) <= 1.24

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perpend import metrics
from perpend.exceptions import InputError

I3 = np.eye(3)
NONE = np.zeros((0, 3))


def test_all_names_are_public():
    public = {name for name in dir(metrics) if callable(getattr(metrics, name))}
    public = {n for n in public if getattr(metrics, n).__module__ == metrics.__name__}
    assert {name for name in public if not name.startswith("_")} == set(metrics.__all__)


@pytest.mark.parametrize("angle", [0.0, 1e-15, 1e-9, 1e-3, 1.0, np.pi / 2])
def test_lines_at_a_known_angle(angle):
    a, b = [[1, 0, 0]], [[np.cos(angle), np.sin(angle), 0]]
    np.testing.assert_allclose(metrics.subspace_error(a, b), np.sin(angle), atol=1e-17)
    np.testing.assert_allclose(metrics.principal_angles(a, b), [angle], atol=1e-17)
    # 2 (1 - cos t) = (2 sin(t / 2))^2: the chord
    np.testing.assert_allclose(metrics.subspace_distance(a, b), 2 * np.sin(angle / 2), atol=1e-17)


def test_different_codimensions():
    assert metrics.subspace_error(I3[:1], I3[:2]) == 1.0
    assert metrics.subspace_error(NONE, I3[:1]) == 1.0
    np.testing.assert_allclose(metrics.subspace_distance(I3[:1], I3), np.sqrt(2))
    np.testing.assert_allclose(metrics.subspace_distance(I3[:1], I3[1:]), np.sqrt(3))
    np.testing.assert_allclose(metrics.subspace_distance(NONE, I3), np.sqrt(3))
    assert not metrics.codimension_hit(I3[:1], I3[:2])


def test_empty_and_full_bases():
    assert metrics.subspace_error(NONE, NONE) == 0.0
    assert metrics.subspace_distance(NONE, NONE) == 0.0
    assert metrics.principal_angles(NONE, I3).shape == (0,)
    assert metrics.codimension_hit(NONE, NONE) is True
    np.testing.assert_allclose(metrics.subspace_error(I3, I3[::-1]), 0, atol=1e-15)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 4), m=st.integers(1, 4))
def test_only_the_span_counts_and_rotations_change_nothing(seed, k, m):
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((k, 6)), rng.standard_normal((m, 6))
    Q, _ = np.linalg.qr(rng.standard_normal((6, 6)))
    mixed = np.linalg.qr(rng.standard_normal((k, k)))[0] @ a @ Q
    scaled = 10.0 ** rng.integers(-150, 150, (m, 1)) * (b @ Q)
    for measure in (metrics.subspace_error, metrics.subspace_distance, metrics.principal_angles):
        np.testing.assert_allclose(measure(mixed, scaled), measure(a, b), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(measure(b, a), measure(a, b), rtol=1e-9, atol=1e-12)


def test_distance_is_a_metric():
    rng = np.random.default_rng(0)
    for _ in range(50):
        a, b, c = (rng.standard_normal((3, 7)) for _ in range(3))
        direct = metrics.subspace_distance(a, c)
        assert direct <= metrics.subspace_distance(a, b) + metrics.subspace_distance(b, c) + 1e-12


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ([[1, 0, 0]], [[1, 0]], "same number of columns.*got 3 and 2"),
        ([1, 0, 0], [[1, 0, 0]], r"first basis must be 2-D.*shape \(3,\)"),
        ([[1, 0, 0]], [[1, np.nan, 0]], "second basis must be finite, got nan in row 0, column 1"),
        ([[1, 0, 0]], [[1, np.inf, 0]], "second basis must be finite, got inf"),
        ([[1, 0, 0], [2, 0, 0]], [[1, 0, 0]], "linearly independent rows, got 2 rows of rank 1"),
        ([[0, 0, 0]], [[1, 0, 0]], "got 1 rows of rank 0"),
        (np.eye(3), np.ones((4, 3)), "linearly independent"),
    ],
)
@pytest.mark.parametrize(
    "measure",
    [
        metrics.subspace_error,
        metrics.subspace_distance,
        metrics.principal_angles,
        metrics.codimension_hit,
    ],
)
def test_bad_bases(measure, a, b, message):
    with pytest.raises(InputError, match=message):
        measure(a, b)


def test_f1_by_hand():
    truth, guess = [1, 1, 1, -1, -1], [1, 1, -1, -1, 1]
    np.testing.assert_allclose(metrics.outlier_f1(truth, guess), 0.5)
    np.testing.assert_allclose(metrics.outlier_f1(truth, guess, positive=1), 2 / 3)
    assert metrics.outlier_f1([1, 1], [1, 1]) == 1.0  # nothing to find, nothing claimed
    assert metrics.outlier_f1([1, 1], [1, -1]) == 0.0
    assert metrics.outlier_f1([1, -1], [1, 1]) == 0.0


def test_auc_by_hand():
    assert metrics.outlier_auc([1, 1, -1], [0.0, -0.1, -0.2]) == 1.0
    assert metrics.outlier_auc([1, 1, -1], [-0.2, -0.1, 0.0]) == 0.0
    assert metrics.outlier_auc([1, -1], [0.3, 0.3]) == 0.5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.outlier_f1([0, 1], [1, 1]), r"y_true must hold only \+1.*got 0 in row 0"),
        (lambda: metrics.outlier_f1([1, 1], [1, 2]), "y_pred must hold only.*got 2 in row 1"),
        (lambda: metrics.outlier_f1([1, 1], [1]), "same length, got 2 and 1"),
        (lambda: metrics.outlier_f1([], []), "not empty"),
        (lambda: metrics.outlier_f1([[1]], [1]), "1-D"),
        (lambda: metrics.outlier_f1([1], [1], positive=0), "positive must be -1 or 1, got 0"),
        (lambda: metrics.outlier_auc([1, 1], [1, 2]), "only one kind"),
        (lambda: metrics.outlier_auc([1, -1], [1, np.nan]), "finite, got nan in row 1"),
        (lambda: metrics.outlier_auc([1, -1], [1]), "same length, got 2 and 1"),
        (lambda: metrics.outlier_auc([1, -1], [[1, 2]]), "scores must be 1-D"),
    ],
)
def test_bad_labels_and_scores(call, message):
    with pytest.raises(ValueError, match=message):
        call()

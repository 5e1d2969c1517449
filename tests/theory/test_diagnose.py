import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from perpend import DPCP
from perpend.datasets import make_subspace
from perpend.exceptions import InputError
from perpend.theory import Verdict, diagnose


def fitted(**data):
    X = make_subspace(random_state=0, **data).X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # doubts about the codimension are another matter
        return DPCP(random_state=0).fit(X), X


def frozen(d, c, labels):
    basis = np.eye(d + c)
    return SimpleNamespace(
        components_=basis[:d],
        normals_=basis[d:],
        directions_=basis[d:],
        predict=lambda X: np.asarray(labels),
    )


def verdicts(diagnosis):
    return [guarantee.verdict for guarantee in diagnosis.guarantees]


def test_a_plane_in_space_is_certified():
    model, X = fitted(n_inliers=2000, n_outliers=1000, n_features=3, codimension=1)
    assert model.codimension_ == 1
    diagnosis = diagnose(model, X)
    assert verdicts(diagnosis)[:2] == [Verdict.CERTIFIED, Verdict.CERTIFIED]
    assert diagnosis.statistics.n_outliers == pytest.approx(1000, abs=5)
    assert "certified" in str(diagnosis)


def test_a_line_without_outliers_is_certified_for_every_start():
    X = np.outer(np.linspace(-1, 1, 20), [1.0, 0, 0])
    model = frozen(1, 2, np.ones(20))
    # Two starts may be nearly parallel across the line, so that little is certain of their span.
    assert verdicts(diagnose(model, X)) == [*[Verdict.CERTIFIED] * 3, Verdict.OPEN]
    model.directions_ = np.tile(np.eye(3), (10, 1))
    diagnosis = diagnose(model, X)
    assert verdicts(diagnosis) == [Verdict.CERTIFIED] * 4
    assert "no outliers" in str(diagnosis)


def test_constants_that_are_known_by_now_are_ignored():
    X = np.outer(np.linspace(-1, 1, 20), [1.0, 0, 0])
    model = frozen(1, 2, np.ones(20))
    with pytest.warns(
        FutureWarning, match=r"no parameter C1 or C2 any more: .* until perpend 0\.4"
    ):
        diagnosis = diagnose(model, X, C1=1.0, C2=1.0)
    assert verdicts(diagnosis) == verdicts(diagnose(model, X))


def test_estimates_alone_are_not_a_certificate():
    model, X = fitted(n_inliers=3000, n_outliers=2000, n_features=10, codimension=5)
    diagnosis = diagnose(model, X)
    assert verdicts(diagnosis)[:2] == [Verdict.ESTIMATED, Verdict.ESTIMATED]
    assert verdicts(diagnosis)[3] is Verdict.OPEN


def test_both_sides_of_theorem_7_are_shown_where_all_starts_are_in_the_cone():
    model, X = fitted(n_inliers=3000, n_outliers=20, n_features=7, codimension=5)
    model.directions_ = np.tile(model.directions_, (10, 1))  # 160 starts
    guarantee = diagnose(model, X).guarantees[3]
    left, right = (float(n) for n in guarantee.numbers.split(": ")[1].split(" against "))
    assert 0 < left < right
    assert guarantee.verdict is Verdict.OPEN


@pytest.mark.parametrize(
    "data",
    [
        {"n_inliers": 150, "n_outliers": 350, "n_features": 30, "codimension": 3},
        {"n_inliers": 60, "n_outliers": 0, "n_features": 6, "codimension": 2},
        {"n_inliers": 0, "n_outliers": 80, "n_features": 4, "codimension": 1},
        {"n_inliers": 300, "n_outliers": 200, "n_features": 8, "codimension": 2, "noise": 0.05},
        {"n_inliers": 50, "n_outliers": 50, "n_features": 3, "codimension": 2},
    ],
)
def test_nothing_is_ever_called_failed(data):
    model, X = fitted(**data)
    text = str(diagnose(model, X, n_starts=5, n_samples=50))
    assert "fail" not in text.lower()
    assert "nan" not in text
    if model.codimension_:
        assert "certified" in text
        assert "has no noise" in text


@pytest.mark.parametrize(
    ("d", "c", "labels", "words"),
    [
        (3, 0, [1, 1, -1], "codimension is 0"),
        (0, 3, [1, 1, -1], "dimension is 0"),
        (2, 1, [-1, -1, -1], "no inliers"),
    ],
)
def test_where_there_is_nothing_to_say_it_is_said(d, c, labels, words):
    diagnosis = diagnose(frozen(d, c, labels), np.eye(3))
    assert words in str(diagnosis)
    assert diagnosis.guarantees == ()


def test_the_model_says_which_rows_are_meant():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.standard_normal((40, 3)) * [1, 1, 0], rng.standard_normal((20, 3))])
    model = frozen(2, 1, np.repeat([1, -1], [40, 20]))
    here = diagnose(model, X).statistics
    model.location_, model.normalize = np.array([0.0, 0.0, 5.0]), False
    moved = diagnose(model, X + model.location_)
    assert moved.statistics.c_x_min.value == pytest.approx(here.c_x_min.value, rel=1e-9)
    assert "normalize=False" in str(moved)


def test_float32_models_pass():
    X = make_subspace(300, 200, n_features=6, codimension=2, random_state=0).X.astype(np.float32)
    diagnosis = diagnose(DPCP(random_state=0).fit(X), X)
    assert diagnosis.statistics.dimension == 4


def test_the_result_is_the_same_each_time():
    model, X = fitted(n_inliers=100, n_outliers=50, n_features=5, codimension=2)
    assert str(diagnose(model, X)) == str(diagnose(model, X))


def test_what_is_wrong_is_said():
    X = np.eye(3)
    with pytest.raises(InputError, match=r"DPCP has no normals_.*Call model\.fit"):
        diagnose(DPCP(), X)
    with pytest.raises(InputError, match=r"expected \(n_samples, 3\)"):
        diagnose(frozen(2, 1, [1, 1]), np.eye(2))

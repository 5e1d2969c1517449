"""The detector for PyOD keeps PyOD's contract, and its scores are the model's distances."""

import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from perpend import DPCP, RobustStandardizer, equations
from perpend.exceptions import InputError, MissingExtraError

needs_pyod = pytest.mark.skipif(not find_spec("pyod"), reason="PyOD is not installed")


def table(n=400, seed=0):
    """Four columns with a relation, 20 rows that break it."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4)) + 3
    X[:, 3] = X[:, 0] - X[:, 1] + 0.02 * rng.standard_normal(n)
    X[:20, 3] += rng.choice([-2, 2], 20)
    return X * [1.0, 1.0, 1e5, 1.0], (np.arange(n) < 20).astype(int)


@pytest.fixture
def detector():
    from perpend.pyod import DPCPDetector

    return DPCPDetector(contamination=0.05, random_state=0)


@needs_pyod
def test_scores_labels_and_threshold_are_those_of_the_recommended_call(detector):
    X, y = table()
    assert detector.fit(X) is detector
    last = DPCP(affine=True, outliers="both", random_state=0)
    expected = -make_pipeline(RobustStandardizer(), last).fit(X).score_samples(X)
    np.testing.assert_allclose(detector.decision_scores_, expected, rtol=1e-12)
    assert detector.threshold_ == pytest.approx(np.percentile(expected, 95), rel=1e-12)
    np.testing.assert_array_equal(detector.labels_, y)
    np.testing.assert_array_equal(detector.decision_function(X), detector.decision_scores_)
    np.testing.assert_array_equal(detector.predict(X), detector.labels_)
    assert len(equations(detector.estimator_)) == 1


@needs_pyod
def test_what_comes_from_the_base_class_works(detector):
    from pyod.models.base import BaseDetector

    X, _ = table()
    new, truth = table(seed=1)
    assert isinstance(detector, BaseDetector)
    for method in ("linear", "unify"):
        p = detector.fit(X).predict_proba(new, method=method)
        np.testing.assert_allclose(p.sum(axis=1), 1)
        assert p[truth == 1, 1].min() > p[truth == 0, 1].max()
    labels, confidence = detector.predict(new, return_confidence=True)
    np.testing.assert_array_equal(labels[truth == 1], 1)
    assert np.all((confidence >= 0) & (confidence <= 1))
    assert detector._predict_rank(new[:5]).shape == (5,)


@needs_pyod
def test_parameters_are_kept_cloned_and_used(detector):
    from perpend.pyod import DPCPDetector

    X, _ = table()
    copy = clone(detector)
    assert copy.get_params() == detector.get_params()
    plain = DPCPDetector(estimator=DPCP(codimension=1, random_state=0)).fit(X[:, [0, 1, 3]])
    assert plain.contamination == 0.1
    assert isinstance(plain.estimator_, DPCP)
    assert not hasattr(plain.estimator, "labels_")
    with pytest.raises(ValueError, match="contamination"):
        DPCPDetector(contamination=0.7)


@needs_pyod
def test_bad_input_is_refused_as_by_the_model(detector):
    X, _ = table()
    with pytest.raises(NotFittedError):
        detector.decision_function(X)
    X[3, 1] = np.nan
    with pytest.raises(InputError, match="row 3, column 1"):
        detector.fit(X)


def test_without_pyod_the_error_says_what_to_install():
    code = "import sys; sys.modules['pyod'] = None; import perpend.pyod"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert MissingExtraError.__name__ in done.stderr
    assert "pip install 'perpend[detectors]'" in done.stderr

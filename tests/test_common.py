"""scikit-learn's own checks, for every method in the registry; no failure is expected."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from perpend._labels_only import LABELS_ONLY
from perpend.estimator import METHODS
from perpend.exceptions import CodimensionWarning

ESTIMATORS = [METHODS[name](random_state=0) for name in sorted(METHODS)]
ESTIMATORS += [LABELS_ONLY[name]() for name in sorted(LABELS_ONLY)]
AFFINE = [METHODS["DPCP"](affine=affine, max_iter=100, random_state=0) for affine in (True, "auto")]

# The checks use tiny random data on which nothing is sure, and some set too few iterations.
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{CodimensionWarning.__module__}.CodimensionWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn(estimator: object, check: object) -> None:
    check(estimator)  # type: ignore[operator]


@pytest.mark.slow
@parametrize_with_checks(AFFINE)
def test_scikit_learn_with_affine_subspaces(estimator: object, check: object) -> None:
    check(estimator)  # type: ignore[operator]

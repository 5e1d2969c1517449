"""Who tells the codimension hears no doubts about it, but those about noise, groups and rows."""

import warnings

import numpy as np
import pytest

from perpend import DPCP, RSGM
from perpend.datasets import make_subspace
from perpend.exceptions import CodimensionWarning

C = 2


def problem(seed, **more):
    return make_subspace(200, 100, n_features=10, codimension=C, random_state=seed, **more).X


def with_long_rows(seed):
    X = problem(seed, noise=0.01).copy()
    X[:2] *= 40
    return X


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("method", [DPCP, RSGM])
def test_long_rows_are_doubtful_whoever_told_the_codimension(method, seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category=UserWarning)
        model = method(C, normalize=False, random_state=seed + 1000).fit(with_long_rows(seed))
    assert any("times the typical norm" in doubt for doubt in model.doubts_)
    assert not any("codimension" in doubt for doubt in model.doubts_)


def test_the_same_doubt_is_a_warning_where_nothing_was_told():
    with pytest.warns(CodimensionWarning, match="times the typical norm"):
        DPCP(normalize=False, random_state=1000).fit(with_long_rows(0))


@pytest.mark.parametrize("seed", range(3))
def test_a_wrong_codimension_is_not_doubted_itself(seed):
    """Too few normals: the spectrum contradicts, but noise and groups are as they should be."""
    X = problem(seed, noise=0.01)
    model = DPCP(C - 1, random_state=seed + 1000).fit(X)  # a warning would be an error
    assert model.confidence_ < 0.5
    assert model.doubts_ == ()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("seed", range(3))
def test_noise_that_blurs_the_groups_is_told(seed):
    X = problem(seed, noise=0.3)
    model = DPCP(C - 1, random_state=seed + 1000).fit(X)
    assert any("overlap" in doubt for doubt in model.doubts_)


@pytest.mark.parametrize("seed", range(3))
def test_a_clear_answer_has_no_doubts(seed):
    model = DPCP(C, random_state=seed + 1000).fit(problem(seed, noise=0.01))
    assert model.confidence_ > 0.95
    assert model.doubts_ == ()


@pytest.mark.parametrize("seed", range(3))
def test_distances_that_are_no_noise_are_told(seed):
    """All rows lie just above or just below the plane, none of them on it."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((600, 6))
    X[:, 5] = 0.03 * rng.choice([-1, 1], 600)
    told = DPCP(1, random_state=seed + 1000).fit(X)  # a warning would be an error
    assert any("not as noise would be" in doubt for doubt in told.doubts_)
    with pytest.warns(CodimensionWarning, match="not as noise would be"):
        DPCP(random_state=seed + 1000).fit(X)

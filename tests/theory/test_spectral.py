import numpy as np
import pytest

from perpend.datasets import make_subspace
from perpend.exceptions import InputError
from perpend.geometry import random_directions
from perpend.theory import spectral_limit, spectral_overlap


@pytest.mark.parametrize("n_outliers", [4000, 9000])
def test_the_smallest_axes_know_as_much_as_predicted(n_outliers, seed):
    rng, D, c, N = np.random.default_rng(seed), 300, 4, 3000
    X = random_directions(rng, D, N + n_outliers).T
    X[:N, :c] = 0
    X[:N] /= np.linalg.norm(X[:N], axis=1, keepdims=True)
    axes = np.linalg.eigh(X.T @ X)[1][:, :c]
    known = np.sum(axes[:c] ** 2) / c
    assert known == pytest.approx(spectral_overlap(N, n_outliers, D, c), abs=0.05)


@pytest.mark.parametrize(("N", "D", "c"), [(1500, 200, 5), (300, 30, 1), (500, 100, 50)])
def test_the_limit_is_where_nothing_is_known(N, D, c):
    r = spectral_limit(N, D, c)
    before, beyond = (N * share / (1 - share) for share in (r - 1e-4, r + 1e-4))
    assert 0 < spectral_overlap(N, before, D, c) < 0.01
    assert spectral_overlap(N, beyond, D, c) == 0


def test_the_ends():
    assert spectral_overlap(100, 0, 10, 2) == 1
    assert spectral_limit(100, 200, 5) == 0  # fewer rows than features know nothing
    with pytest.raises(InputError, match="codimension from 1 to"):
        spectral_limit(100, 10, 10)


def test_with_finitely_many_rows_the_axes_know_much_more_at_the_limit():
    """What the page on the maths says."""
    N, D, c = 1500, 200, 5
    for r, measured, predicted in [(0.84, 0.36, 0.23), (0.872, 0.25, 0.004), (0.9, 0.19, 0)]:
        data = make_subspace(N, round(N * r / (1 - r)), n_features=D, codimension=c, random_state=0)
        axes = np.linalg.eigh(data.X.T @ data.X)[1][:, :c]
        assert np.sum((data.normals @ axes) ** 2) / c == pytest.approx(measured, abs=0.05)
        n_outliers = round(N * r / (1 - r))
        assert spectral_overlap(N, n_outliers, D, c) == pytest.approx(predicted, abs=0.005)

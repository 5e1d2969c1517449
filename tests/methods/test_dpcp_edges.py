"""Degenerate data: the right codimension, a clear error, or a low confidence with a warning.

Never sure and wrong, never NaN.
"""

import warnings

import numpy as np
import pytest

from helpers import mostly_slow
from perpend import DPCP
from perpend.datasets import make_subspace
from perpend.exceptions import CodimensionWarning, InputError

RNG = np.random.default_rng(7)


def gaussian(n: int, d: int) -> np.ndarray:
    return RNG.standard_normal((n, d))


def on_subspace(n: int, dimension: int, n_features: int) -> np.ndarray:
    return gaussian(n, dimension) @ gaussian(dimension, n_features)


def mixed() -> np.ndarray:
    return make_subspace(200, 300, n_features=10, codimension=3, random_state=3).X


SURE = {  # name: (data, codimension); it must be right and sure
    "no outliers": (on_subspace(500, 25, 30), 5),
    "no outliers, a plane": (on_subspace(100, 2, 3), 1),
    "no outliers, noise": (make_subspace(500, 0, noise=0.1, random_state=0).X, 5),
    "fewer rows than columns, on a subspace": (on_subspace(15, 4, 30), 26),
    "some zero rows": (np.vstack([mixed(), np.zeros((50, 10))]), 3),
    "mostly zero rows": (np.vstack([mixed(), np.zeros((3000, 10))]), 3),
    "every row many times": (np.repeat(mixed(), 10, axis=0), 3),
    "constant columns of zeros": (np.hstack([mixed(), np.zeros((500, 2))]), 5),
    "a line in the plane": (np.vstack([on_subspace(50, 1, 2), gaussian(50, 2)]), 1),
    "rows of all sizes": (mixed() * 10.0 ** RNG.uniform(-100, 100, (500, 1)), 3),
    "outliers on a plane": (
        make_subspace(300, 600, n_features=10, codimension=3, outliers="plane", random_state=0).X,
        8,
    ),
    "one column": (gaussian(50, 1), 0),
    "very many outliers alone": (gaussian(20_000, 2), 0),
}


@pytest.mark.parametrize("name", SURE)
def test_right_and_sure(name: str) -> None:
    X, codimension = SURE[name]
    model = DPCP(random_state=0).fit(X)
    assert model.codimension_ == codimension
    assert model.confidence_ >= 0.95
    assert_finite(model)


UNSURE = {  # name: (data, codimension or None); a warning must come
    "all outliers": (gaussian(1000, 30), 0),
    "few outliers": (gaussian(50, 10), 0),
    "one row more than columns": (gaussian(11, 10), 0),
    "as many rows as columns": (gaussian(10, 10), 0),
    "fewer rows than columns": (gaussian(15, 30), 15),
    "two rows": (gaussian(2, 10), 8),
    "one row many times": (np.repeat(gaussian(1, 10), 50, axis=0), 9),
    "few outliers many times": (np.repeat(gaussian(15, 10), 50, axis=0), 0),
    "all positive": (RNG.integers(0, 3, (300, 6)).astype(float), None),
    "equal columns": (np.repeat(gaussian(500, 3), 2, axis=1), 3),
    "a row that stands often": (np.vstack([gaussian(10, 20)] + [gaussian(1, 20)] * 100), None),
    "an idle column hides nothing": (
        np.hstack(
            [
                make_subspace(60, 600, n_features=20, codimension=2, random_state=1).X,
                np.zeros((660, 1)),
            ]
        ),
        None,
    ),
    "a line, which is one row when scaled": (
        make_subspace(3000, 3000, n_features=3, codimension=2, random_state=0).X,
        None,
    ),
    "heavy tails": (np.random.default_rng(0).standard_t(2, (1000, 8)), None),
    "uniform in a cube": (RNG.uniform(0, 1, (500, 8)), None),
    "a constant column of ones": (np.hstack([gaussian(500, 4), np.ones((500, 1))]), 0),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", UNSURE)
def test_unsure_and_says_so(name: str) -> None:
    X, codimension = UNSURE[name]
    with pytest.warns(CodimensionWarning, match="not sure") as caught:
        model = DPCP(random_state=0).fit(X)
    assert model.confidence_ < 0.95
    assert codimension is None or model.codimension_ == codimension
    assert str(caught[-1].message).endswith(").")  # what to do stands in brackets at the end
    assert_finite(model)


def test_fewer_rows_than_columns_with_outliers() -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        inliers = rng.standard_normal((15, 4)) @ rng.standard_normal((4, 30))
        X = np.vstack([inliers, rng.standard_normal((6, 30))])
        model = DPCP(random_state=seed).fit(X)
        assert model.codimension_ == 26
        assert model.confidence_ >= 0.95
        assert_finite(model)


@pytest.mark.parametrize("n_rows_per_feature", mostly_slow([1, 2, 5, 20], 2, 20))
@pytest.mark.parametrize("n_features", mostly_slow([2, 3, 5, 10, 20], 2, 5))
def test_pure_outliers_never_get_a_sure_subspace(n_features: int, n_rows_per_feature: int) -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n_features * n_rows_per_feature + 1, n_features))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = DPCP(random_state=seed).fit(X)
        assert model.codimension_ == 0


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("scale", [1e-310, 1e-150, 1e150, 1e300])
def test_the_scale_of_the_data_does_not_matter(scale: float, normalize: bool) -> None:
    X = mixed()
    one = DPCP(normalize=normalize, random_state=0).fit(X)
    other = DPCP(normalize=normalize, random_state=0).fit(X * scale)
    assert other.codimension_ == one.codimension_ == 3
    assert other.confidence_ >= 0.95
    np.testing.assert_array_equal(other.labels_, one.labels_)
    np.testing.assert_allclose(np.abs(other.normals_ @ one.components_.T), 0, atol=1e-9)
    assert_finite(other)


def test_weights_of_any_size() -> None:
    X = mixed()
    for weight in (1e-300, 1e300):
        model = DPCP(random_state=0).fit(X, sample_weight=np.full(500, weight))
        assert model.codimension_ == 3
        assert model.confidence_ >= 0.95
        assert_finite(model)


@pytest.mark.filterwarnings("ignore::perpend.exceptions.CodimensionWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_uneven_weights_make_no_structure() -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        weight = rng.lognormal(0, 2, 500)
        X = rng.standard_normal((500, 8))
        assert DPCP(random_state=seed).fit(X, sample_weight=weight).codimension_ == 0
        X[::2, :3] = 0  # and hide none
        model = DPCP(random_state=seed).fit(X, sample_weight=weight)
        assert model.codimension_ == 3
        assert model.confidence_ >= 0.95


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::perpend.exceptions.CodimensionWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_uneven_lengths_make_no_structure() -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((2000, 8)) * rng.lognormal(0, 2, (2000, 1))
        model = DPCP(normalize=False, random_state=seed).fit(X)
        assert model.codimension_ == 0


@pytest.mark.parametrize("scales", [(1, 1, 1, 100), (1, 1, 1, 10), (1, 1, 1, 1, 1, 30, 30)])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_short_rows_of_large_columns_are_no_outliers_for_sure(scales, seed) -> None:
    """Noise as large in short rows as in long ones: in proportion, the short ones are far away."""
    X = np.random.default_rng(seed).standard_normal((1000, len(scales))) * scales
    model = DPCP(random_state=seed + 1000).fit(X)
    assert np.mean(model.labels_ == -1) < 0.02
    assert model.confidence_ >= 0.95
    assert model.codimension_ == np.sum(np.array(scales) == 1)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_rows_of_any_length_with_noise_in_proportion_are_no_doubt(seed) -> None:
    data = make_subspace(600, 400, n_features=8, codimension=3, noise=0.05, random_state=seed)
    lengths = np.random.default_rng(seed + 50).uniform(0.1, 10, (1000, 1))
    model = DPCP(random_state=seed + 1000).fit(data.X * lengths)
    assert model.codimension_ == 3
    assert model.confidence_ >= 0.95


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_rows_of_any_length_with_equal_noise_and_outliers_are_no_doubt(seed) -> None:
    """Among outliers far from the subspace, a few short rows do not matter."""
    data = make_subspace(600, 400, n_features=8, codimension=3, random_state=seed)
    rng = np.random.default_rng(seed + 50)
    X = data.X * rng.uniform(1, 10, (1000, 1)) + rng.normal(0, 0.02, (1000, 8))
    model = DPCP(random_state=seed + 1000).fit(X)
    assert model.codimension_ == 3
    assert model.confidence_ >= 0.95


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_short_outliers_that_are_near_by_chance_are_no_doubt(seed) -> None:
    data = make_subspace(
        600, 200, n_features=40, codimension=13, noise=0.4, outliers="heavy", random_state=seed
    )
    model = DPCP(random_state=seed + 1000).fit(data.X)
    assert model.codimension_ == 13
    assert model.confidence_ >= 0.95


def test_all_rows_zero_is_an_error() -> None:
    with pytest.raises(InputError, match="Every row of X is zero"):
        DPCP().fit(np.zeros((20, 5)))


def test_one_row_is_an_error() -> None:
    with pytest.raises(ValueError, match="1 sample"):
        DPCP().fit(gaussian(1, 5))


def test_a_norm_beyond_the_floats_is_an_error() -> None:
    X = gaussian(10, 5)
    X[3] = 1.7e308
    with pytest.raises(InputError, match="row 3"):
        DPCP().fit(X)


NO_NUMBERS = (
    *("doubts_", "evidence_", "feature_names_in_", "history_", "profile_", "structures_"),
)


def assert_finite(model: DPCP) -> None:
    for name, value in vars(model).items():
        if name.endswith("_") and name not in NO_NUMBERS:
            assert np.all(np.isfinite(np.asarray(value, dtype=float))), name


@pytest.mark.parametrize(("dtype", "factor"), [(np.float64, 1e9), (np.float32, 1e5)])
def test_a_few_huge_rows_make_nobody_sure(dtype, factor):
    """They push all others below the rounding errors of the second moments."""
    data = make_subspace(400, 200, n_features=6, codimension=3, random_state=0)
    X = data.X.astype(dtype)
    X[-2:] *= dtype(factor)
    with pytest.warns(CodimensionWarning, match="longest row"):
        model = DPCP(normalize=False, random_state=0).fit(X)
    assert model.confidence_ < 0.95

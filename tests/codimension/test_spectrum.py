import numpy as np
import pytest

from perpend.codimension import largest_gap
from perpend.codimension.spectrum import last_rise


@pytest.mark.parametrize("c", [1, 3, 9])
@pytest.mark.parametrize("noise", [0.0, 1e-20, 1e-6, 0.01])
def test_the_gap_is_where_the_noise_ends(c, noise, seed):
    rng = np.random.default_rng(seed)
    small, large = noise * rng.uniform(0.8, 1.2, c), rng.uniform(0.8, 1.2, 10 - c)
    gap = largest_gap(np.sort(np.append(small, large)), np.float64)
    assert gap.value == c
    assert gap.ratio > 40
    assert 1 <= gap.runner_up < 2  # rounding errors make no gaps among themselves


def test_ratio_and_runner_up():
    gap = largest_gap(np.array([1.0, 3.0, 30.0, 60.0]), np.float64)
    assert gap == (2, 10.0, 3.0, 1)


def test_the_scale_of_the_spectrum_does_not_matter():
    spectrum = np.array([1e-9, 2e-9, 0.5, 0.7])
    for factor in (1e-200, 1e200):
        np.testing.assert_allclose(
            largest_gap(factor * spectrum, np.float64), largest_gap(spectrum, np.float64)
        )


def test_what_is_rounding_depends_on_the_precision():
    spectrum = np.array([1e-12, 1e-9, 1e-6, 1.0])
    assert largest_gap(spectrum, np.float32).runner_up == pytest.approx(1, abs=0.5)
    assert largest_gap(spectrum, np.float64).runner_up == pytest.approx(1000)


@pytest.mark.parametrize(
    ("spectrum", "expected"),
    [([2.0], (0, 1.0, 1.0, 0)), ([1.0, 4.0], (1, 4.0, 1.0, 0)), ([], (0, 1.0, 1.0, 0))],
)
def test_short_spectra(spectrum, expected):
    assert largest_gap(np.array(spectrum), np.float64) == expected


def test_a_spectrum_of_zeros_has_no_gap():
    assert largest_gap(np.zeros(4), np.float64).ratio == 1


def test_few_rows_end_the_spectrum_without_a_gap():
    """40 rows in 100 dimensions: 60 eigenvalues are zero in any case."""
    spectrum = np.sort(np.r_[np.zeros(60), np.linspace(0.9e-3, 1.1e-3, 35), np.linspace(1, 1.2, 5)])
    assert largest_gap(spectrum, np.float64).value == 60
    gap = largest_gap(spectrum, np.float64, n_rows=40)
    assert gap.value == 95
    assert gap.ratio == pytest.approx(1 / 1.1e-3)
    assert gap.runner_up < 1.1
    assert 61 < gap.second < 100


def test_exact_rows_that_are_few_still_show_their_dimension():
    spectrum = np.r_[np.zeros(90), np.ones(10)]
    assert largest_gap(spectrum, np.float64, n_rows=12).value == 90


def test_as_many_rows_as_dimensions_or_more_change_nothing():
    spectrum = np.array([1e-9, 2e-9, 0.5, 0.7])
    assert largest_gap(spectrum, np.float64, n_rows=4.5) == largest_gap(spectrum, np.float64)
    assert largest_gap(np.array([0.1, 1.0]), np.float64, n_rows=1).value == 1


@pytest.mark.parametrize(("ratio", "expected"), [(2.0, 3), (20.0, 2), (1e3, 1), (1e9, None)])
def test_the_last_rise_is_above_all_others(ratio, expected):
    """They rise by 1e5, by 50, by 4 and by 1.5."""
    spectrum = np.cumprod([1e-8, 1e5, 50.0, 4.0, 1.5])
    assert last_rise(spectrum, np.float64, 100, ratio) == expected


def test_that_few_rows_end_the_spectrum_is_no_rise():
    spectrum = np.sort(np.r_[np.zeros(60), np.linspace(1, 1.2, 40)])
    assert last_rise(spectrum, np.float64, 100.5, 10.0) == 60
    assert last_rise(spectrum, np.float64, 40, 10.0) is None

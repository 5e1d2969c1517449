"""The picture of the profile: what it holds, and what it says."""

import warnings

import numpy as np
import pytest
from matplotlib.figure import Figure

import perpend
from perpend import DPCP, RSGM
from perpend.datasets import make_subspace
from perpend.exceptions import InputError
from perpend.plots import ProfileDisplay, SpectrumDisplay

SCALES = np.geomspace(1e-3, 10, 81)  # twenty to a decade
CHOSEN = {"codimension": 2, "noise": 0.01, "members": 400, "chosen": True}
OTHER = {"codimension": 1, "noise": 0.3, "members": 900, "chosen": False}


def made_up(**more):
    """Two plateaus: codimension 2 from 0.005 to 0.1, codimension 1 from 0.2 to 3."""
    contrast = np.zeros((3, len(SCALES)))
    contrast[1, (SCALES > 0.005) & (SCALES < 0.1)] = 50
    contrast[0, (SCALES > 0.2) & (SCALES < 3)] = 80
    contrast[2, 40] = 5  # a single scale is no plateau
    return ProfileDisplay(SCALES, [1, 2, 3], contrast, **more)


@pytest.fixture(scope="module")
def model():
    """A plane in a slab twenty times as thick."""
    rng = np.random.default_rng(0)
    X = rng.uniform([-20, -20, -1], [20, 20, 1], (3000, 3))
    X[:1200, 2] = rng.normal(0, 0.05, 1200)
    return DPCP(affine=True, random_state=1000).fit(X)


def test_plateaus_are_found():
    fine, coarse = made_up().bars
    assert (fine.codimension, coarse.codimension) == (2, 1)
    np.testing.assert_allclose([fine.first, fine.last], [0.005, 0.1], rtol=0.15)
    np.testing.assert_allclose([coarse.first, coarse.last], [0.2, 3], rtol=0.15)


def test_the_length_is_that_of_the_chosen_plateau():
    assert made_up().length is None
    assert made_up(structures=[CHOSEN, OTHER]).length == pytest.approx(20, rel=0.25)
    swapped = [{**CHOSEN, "chosen": False}, {**OTHER, "chosen": True}]
    assert made_up(structures=swapped).length == pytest.approx(15, rel=0.25)


def test_it_is_drawn_with_bars_marks_and_labels():
    display = made_up(structures=[CHOSEN, OTHER], xlabel="metres").plot()
    ax = display.ax_
    texts = [text.get_text().replace("\u00a0", " ") for text in ax.texts]
    assert texts == ["noise 0.01, 400 rows", "900 rows"]
    assert ax.get_xscale() == "log"
    assert ax.get_xlabel() == "metres"
    assert "Codimension 2 over a factor of" in ax.get_title()
    bars = [line for line in ax.lines if len(line.get_xdata()) == 2]
    assert len(bars) == 2
    assert {tuple(line.get_ydata()) for line in bars} == {(2, 2), (1, 1)}
    assert list(ax.get_yticks()) == [1, 2, 3]


def test_without_structures_and_with_one_codimension():
    line = ProfileDisplay(SCALES, [1], (SCALES < 0.1)[None].astype(float))
    assert line.plot().ax_.get_title() == "Scale and codimension"
    assert "codimension 1 from 0.001" in line.description
    nothing = ProfileDisplay(SCALES, [1, 2], np.zeros((2, len(SCALES))))
    assert nothing.plot().bars == []
    assert "none" in nothing.description


def test_an_exact_structure_has_its_place_at_the_left_end():
    exact = made_up(structures=[{**CHOSEN, "noise": 0.0}]).plot()
    mark = [line for line in exact.ax_.lines if len(line.get_xdata()) == 1]
    assert mark[0].get_xdata()[0] == SCALES[0]


def test_it_holds_the_profile_of_the_model(model, tmp_path):
    ax = Figure().subplots()
    display = ProfileDisplay.from_estimator(model, ax=ax)
    assert display.ax_ is ax
    np.testing.assert_array_equal(display.contrast, model.profile_["contrast"])
    assert display.contrast.shape == (len(display.codimensions), len(display.scales))
    assert np.all(display.contrast >= 0)
    (bar,) = [bar for bar in display.bars if bar.first < 0.05 < bar.last]
    assert bar.codimension == 1
    assert bar.last > 1
    assert "(data units)" in display.xlabel
    model.save(tmp_path / "model.npz")
    loaded = perpend.load(tmp_path / "model.npz")
    assert ProfileDisplay.of(loaded).description == display.description


def test_it_follows_a_choice(model):
    slab = ProfileDisplay.of(model.choose(-1))
    assert slab.chosen["noise"] > 5 * ProfileDisplay.of(model).chosen["noise"]
    assert slab.bars == ProfileDisplay.of(model).bars


def test_scales_are_in_the_units_of_the_labels(model):
    X = make_subspace(400, 400, n_features=6, codimension=2, noise=0.05, random_state=0).X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one, ten = (
            DPCP(affine=True, random_state=0).fit(factor * X).profile_ for factor in (1, 10)
        )
    np.testing.assert_allclose(ten["scales"], 10 * one["scales"], rtol=1e-6)


def test_normals_outside_of_the_span_count():
    rng = np.random.default_rng(0)
    X = rng.uniform(-10, 10, (600, 3))
    X[:400, 2] = 0  # on a plane, exactly
    model = DPCP(random_state=0).fit(np.hstack([X, X[:, :1], X[:, 1:2]]))
    assert list(model.profile_["codimensions"]) == [3, 4]
    assert model.codimension_ == 3


def test_the_profile_takes_the_place_of_the_spectrum_where_scales_decided(model):
    assert isinstance(model.plot().panels[0], ProfileDisplay)
    X = make_subspace(300, 100, n_features=8, codimension=4, random_state=0).X
    assert isinstance(DPCP(random_state=0).fit(X).plot().panels[0], SpectrumDisplay)


def test_without_a_profile_it_says_so():
    X = make_subspace(300, 100, n_features=8, codimension=4, random_state=0).X
    model = RSGM(4, random_state=0).fit(X)
    with pytest.raises(InputError, match=r"has no profile.*SpectrumDisplay"):
        ProfileDisplay.from_estimator(model)
    del model.profile_
    with pytest.raises(InputError, match=r"earlier version.*Fit it again"):
        ProfileDisplay.from_estimator(model)

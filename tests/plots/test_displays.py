"""Displays: the arrays they hold against plain computations, and what they draw."""

import os
import subprocess
import sys
import warnings

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from scipy import stats

import perpend
from helpers import mostly_slow
from perpend import DPCP, RSGM, plots
from perpend.datasets import make_subspace
from perpend.estimator import METHODS
from perpend.exceptions import InputError, MissingExtraError
from perpend.formats._dataset import Dataset
from perpend.plots import (
    CloudDisplay,
    ConvergenceDisplay,
    DistanceDisplay,
    DistanceMapDisplay,
    MaskDisplay,
    PhaseTransitionDisplay,
    PrincipalAnglesDisplay,
    ReliabilityDisplay,
    SpectrumDisplay,
    SpreadDisplay,
    SummaryDisplay,
)

NOISY = make_subspace(300, 200, n_features=8, codimension=3, noise=0.02, random_state=0)
EXACT = make_subspace(200, 300, n_features=8, codimension=3, random_state=0)
SPACE = make_subspace(200, 100, n_features=3, codimension=1, noise=0.01, random_state=0)
MOVED = make_subspace(
    200, 100, n_features=3, codimension=1, noise=0.01, offset=2.0, move_outliers=True,
    random_state=0,
)  # fmt: skip
STREET = np.random.default_rng(0).uniform([-20, -20, -1], [20, 20, 1], (3000, 3))
STREET[:1200, 2] *= 0.05  # a road inside
STRETCHED = make_subspace(
    500, 500, n_features=30, codimension=5, noise=0.05, stretch=0.1, random_state=0
)


def fitted(X, model=None):
    """Return the model fitted to X; doubts are not what is tested here."""
    model = DPCP(random_state=1000) if model is None else model
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X)


MODELS = {
    "noisy": lambda: fitted(NOISY.X),
    "exact": lambda: fitted(EXACT.X),
    "space": lambda: fitted(SPACE.X),
    "affine": lambda: fitted(MOVED.X, DPCP(affine=True, random_state=1000)),
    "layers": lambda: fitted(STREET, DPCP(affine=True, random_state=1000)),
    "the outer layer": lambda: MODELS["layers"]().choose(-1),
    "stretched": lambda: fitted(STRETCHED.X),
    "not normalised": lambda: fitted(7 * NOISY.X, DPCP(normalize=False, random_state=1000)),
    "float32": lambda: fitted(NOISY.X.astype(np.float32)),
    "paper": lambda: fitted(NOISY.X, DPCP(refine=False, random_state=1000)),
    "codimension 0": lambda: fitted(NOISY.X, DPCP(0, random_state=1000)),
    "no subspace": lambda: fitted(np.random.default_rng(0).standard_normal((60, 5))),
    "dimension 0": lambda: fitted(NOISY.X, RSGM(8)),
    "only inliers": lambda: fitted(EXACT.X[EXACT.y == 1]),
    "one feature": lambda: fitted(np.arange(1.0, 9.0)[:, None]),
    **{
        name: lambda kind=kind: fitted(NOISY.X, kind(codimension=3, random_state=1000))
        for name, kind in sorted(METHODS.items())
    },
}


@pytest.fixture(scope="module")
def model():
    cache = {}

    def get(name):
        if name not in cache:
            cache[name] = MODELS[name]()
        return cache[name]

    return get


# -- the four panels ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", mostly_slow(MODELS, "noisy", "codimension 0"))
def test_every_fit_has_four_readable_panels(model, name, assert_readable):
    display = model(name).plot()
    assert isinstance(display.figure_, Figure)
    assert [panel.ax_ for panel in display.panels] == list(display.ax_)
    assert f"{display.verdict.split(':')[0]}" in display.figure_.get_suptitle()
    assert display.description.count(".") >= 5
    assert_readable(display.figure_)


@pytest.mark.parametrize(
    "name", mostly_slow(["noisy", "affine", "codimension 0", "RSGM"], "affine")
)
def test_a_loaded_model_is_drawn_like_the_saved_one(model, name, tmp_path):
    model(name).save(tmp_path / "model.npz")
    loaded = perpend.load(tmp_path / "model.npz")
    files = []
    for stem, each in (("saved", model(name)), ("loaded", loaded)):
        display = each.plot()
        files.append([path.read_bytes() for path in plots.save(display.figure_, tmp_path / stem)])
        files[-1].append(display.description)
    assert files[0] == files[1]


def test_what_an_old_model_file_lacks_is_named(model):
    old = fitted(NOISY.X)
    del old.history_, old._distance_record
    display = old.plot()
    said = [" ".join(text.get_text() for text in ax.texts) for ax in display.ax_]
    assert "not recorded" in said[1]
    assert "not recorded" in said[2]
    assert "not recorded" in display.description


def test_the_verdict_says_what_was_found(model):
    assert plots.verdict(model("noisy")) == (
        f"Sure (confidence {np.floor(100 * model('noisy').confidence_) / 100:.2f}): a subspace of "
        f"dimension 5 in 8 features, codimension 3; {(model('noisy').labels_ == -1).sum()} of 500 "
        f"rows ({(model('noisy').labels_ == -1).mean():.1%}) are outliers."
    ).replace("%)", " %)")
    assert "an affine subspace of dimension 2" in plots.verdict(model("affine"))
    assert "no subspace was found" in plots.verdict(model("no subspace"))
    unsure = fitted(NOISY.X)
    unsure.confidence_ = 0.9499
    assert plots.verdict(unsure).startswith("Not sure (confidence 0.94)")


def test_axes_that_are_given_are_used(model):
    figure = Figure()
    axes = figure.subplots(2, 2)
    display = SummaryDisplay.from_estimator(model("noisy"), ax=axes)
    assert display.figure_ is figure
    assert all(ax.has_data() for ax in axes.flat)
    assert figure.get_suptitle() == ""  # a figure that is not ours keeps its title
    with pytest.raises(InputError, match=r"ax has 1 axes; expected 4"):
        display.plot(axes[0, 0])
    assert SpectrumDisplay.from_estimator(model("noisy"), ax=axes[0, 0]).ax_ is axes[0, 0]


def test_a_figure_of_its_own_is_one_that_pyplot_shows(model, tmp_path):
    assert plt.get_fignums() == []
    display = model("noisy").plot()
    assert plt.gcf() is display.figure_
    plt.savefig(tmp_path / "current.png")
    assert (tmp_path / "current.png").stat().st_size > 10_000
    spectrum = SpectrumDisplay.from_estimator(model("noisy"))
    assert plt.gcf() is spectrum.figure_
    assert len(plt.get_fignums()) == 2
    assert SpectrumDisplay.of(model("noisy")).plot(spectrum.ax_).figure_ is spectrum.figure_
    assert len(plt.get_fignums()) == 2


def test_a_notebook_shows_a_figure_once(model):
    display = model("noisy").plot()
    assert display._repr_html_() is None  # open: pyplot shows it
    plt.close(display.figure_)
    shown = display._repr_html_()
    assert shown.startswith('<img src="data:image/png;base64,iVBOR')
    assert "Singular values of" in shown.partition(' alt="')[2]
    assert SpectrumDisplay.of(model("noisy"))._repr_html_() is None  # not drawn yet
    parts = plt.figure(layout="constrained").subfigures(1, 2)
    part = SpectrumDisplay.from_estimator(model("noisy"), ax=parts[0].subplots())
    assert part._repr_html_() is None
    plt.close("all")
    assert part._repr_html_().startswith("<img ")
    plt.figure()  # of the same number
    assert part._repr_html_().startswith("<img ")


def test_a_picture_that_fails_leaves_no_figure_open(model):
    display = SummaryDisplay([SpectrumDisplay.of(model("noisy"))], "one panel is not enough")
    with pytest.raises(InputError, match=r"ax has 4 axes; expected 1"):
        display.plot()
    assert plt.get_fignums() == []


@pytest.mark.slow
def test_a_users_settings_are_neither_used_nor_changed(model, tmp_path):
    def draw(stem):
        return [path.read_bytes() for path in plots.save(model("noisy").plot().figure_, stem)]

    plain = draw(tmp_path / "plain")
    theirs = {
        "font.size": 30,
        "figure.dpi": 40,
        "figure.facecolor": "red",
        "figure.frameon": False,
        "figure.subplot.left": 0.4,
        "figure.autolayout": True,
        "figure.constrained_layout.w_pad": 0.5,
    }
    with mpl.rc_context(theirs):
        assert draw(tmp_path / "styled") == plain
        assert {key: mpl.rcParams[key] for key in theirs} == theirs


@pytest.mark.slow
def test_settings_of_a_backend_that_starts_with_the_first_figure_stay(tmp_path):
    # As in notebooks, where it turns the interactive mode on, without which they show nothing.
    (tmp_path / "backend.py").write_text(
        "from matplotlib.backends.backend_agg import *\n"
        "from matplotlib import interactive\n"
        "interactive(True)\n"
    )
    code = (
        "import matplotlib as mpl; from perpend import plots; "
        "plots.PhaseTransitionDisplay([0, 1], [0, 1], [[0, 1], [1, 0]]).plot(); "
        "assert mpl.is_interactive()"
    )
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "MPLBACKEND": "module://backend"}
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300, env=environment)


def test_no_matplotlib_before_something_is_drawn_and_no_pyplot_on_axes_that_are_given():
    code = (
        "import sys; from perpend import DPCP, datasets, plots; "
        "m = DPCP(random_state=1).fit(datasets.make_subspace(60, 40, random_state=0).X); "
        "assert 'matplotlib' not in sys.modules; "
        "from matplotlib.figure import Figure; "
        "d = plots.SummaryDisplay.from_estimator(m, ax=Figure().subplots(2, 2)); "
        "assert d._repr_html_() and 'matplotlib.pyplot' not in sys.modules; "
        "m.plot(); assert 'matplotlib.pyplot' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


def test_without_matplotlib_the_error_says_how_to_get_it(model, monkeypatch):
    monkeypatch.setattr("perpend.plots._style.find_spec", lambda name: None)
    for draw in (model("noisy").plot, SpectrumDisplay.of(model("noisy")).plot):
        with pytest.raises(MissingExtraError, match=r"pip install 'perpend\[plots\]'"):
            draw()


# -- what they hold ----------------------------------------------------------------------------


def test_the_spectrum_is_that_of_the_directions(model):
    display = SpectrumDisplay.from_estimator(model("noisy"))
    s = np.linalg.svd(model("noisy").directions_, compute_uv=False)
    np.testing.assert_allclose(display.singular_values, s, rtol=1e-12)
    assert display.n_normals == 3
    np.testing.assert_allclose(display.gap, s[2] / s[3])
    first, others = display.ax_.lines[:2]
    assert (len(first.get_xdata()), len(others.get_xdata())) == (3, 5)
    assert "falls by" in display.ax_.texts[0].get_text()


def test_normals_outside_the_span_of_the_rows_are_not_among_the_directions():
    X = np.hstack([NOISY.X, NOISY.X[:, :1]])  # the ninth column repeats the first
    model = fitted(X)
    assert model.codimension_ == 4
    assert SpectrumDisplay.from_estimator(model).n_normals == 3
    assert SpectrumDisplay.from_estimator(model).n_others == 1
    spread = SpreadDisplay.from_estimator(model)  # has all axes
    assert (len(spread.spread), spread.n_normals) == (9, 4)


def test_the_spread_is_that_of_the_inliers(model):
    display = SpreadDisplay.from_estimator(model("noisy"))
    X = NOISY.X / np.linalg.norm(NOISY.X, axis=1, keepdims=True)
    s = np.linalg.svd(X[model("noisy").labels_ == 1], compute_uv=False)
    np.testing.assert_allclose(display.spread, s / s[0], rtol=0.02)
    np.testing.assert_allclose(display.gap, s[4] / s[5], rtol=0.05)
    assert display.n_rows_by_chance == 5


@pytest.mark.parametrize("name", ["noisy", "exact", "affine", "not normalised", "float32", "paper"])
def test_the_distances_of_the_fit_are_those_of_its_rows(model, name):
    X = {"exact": EXACT.X, "affine": MOVED.X, "not normalised": 7 * NOISY.X}.get(name, NOISY.X)
    X = X.astype(np.float32) if name == "float32" else X
    kept = DistanceDisplay.from_estimator(model(name))
    J = -model(name).score_samples(X)
    # The same up to rows at the edge of a bin, which rounding may put on either side.
    counts = np.histogram(J, np.append(0.0, kept.edges * (1 + 1e-12)))[0]
    assert np.abs(np.cumsum(kept.counts - counts)).max() <= 0.01 * len(X)
    assert kept.counts.sum() == len(X)
    assert abs(kept.n_beyond - (model(name).labels_ == -1).sum()) <= 1


def test_distances_of_other_rows_are_counted_anew(model):
    far = 1e6 * np.random.default_rng(0).standard_normal((40, 3))
    display = DistanceDisplay.from_estimator(model("affine"), far)
    J = model("affine").distance(far)
    assert display.counts.sum() == 40
    assert display.edges[-1] >= J.max()
    np.testing.assert_allclose(
        np.cumsum(display.counts)[::50], [(edge >= J).sum() for edge in display.edges[::50]], atol=1
    )


def test_the_curves_are_the_two_laws(model):
    display = DistanceDisplay.from_estimator(model("noisy"))
    record = model("noisy")._distance_record
    inliers = stats.chi(3, scale=record["scale"]).cdf(display.edges)
    outliers = stats.beta(1.5, 2.5).cdf(np.minimum(display.edges, 1) ** 2)
    np.testing.assert_allclose(np.cumsum(display.inliers), record["n_inliers"] * inliers, atol=1e-6)
    np.testing.assert_allclose(
        np.cumsum(display.outliers), record["n_outliers"] * outliers, atol=1e-6
    )
    np.testing.assert_allclose(display.inliers.sum(), 300, rtol=0.05)
    assert DistanceDisplay.from_estimator(model("exact")).inliers is None  # no noise, no curve


def test_bars_add_up_and_a_small_group_gets_a_logarithmic_axis():
    edges = np.geomspace(1e-6, 1, 512)
    counts = np.zeros(512)
    counts[100:140], counts[500:510] = 1000, 1
    display = DistanceDisplay(edges, counts, threshold=edges[300]).plot()
    assert display.ax_.get_yscale() == "log"
    near, far = (patch.get_data() for patch in display.ax_.patches)
    assert (near.values.sum(), far.values.sum()) == (40_000, 10)
    assert near.edges[-1] == far.edges[0] == display.threshold  # no bar has both colours
    assert display.plot(log_y=False).ax_.get_yscale() == "linear"
    assert display.n_beyond == 10


@pytest.mark.parametrize("name", sorted(METHODS))
def test_the_history_has_every_step_and_the_callback_still_gets_them(name):
    heard = []
    model = fitted(NOISY.X, METHODS[name](codimension=3, random_state=1000, callback=heard.append))
    history = model.history_
    assert len(heard) == history["n_steps"].sum()
    assert heard or not METHODS[name].capabilities.iterates
    np.testing.assert_array_equal(history["objective"], [step.objective for step in heard])
    np.testing.assert_array_equal(history["change"], [step.change for step in heard])
    assert history["stages"] == tuple(step.stage for step in heard if step.step == 1)
    least = [step.objective if step.objectives is None else step.objectives.min() for step in heard]
    np.testing.assert_array_equal(history["least"], least)
    assert np.all(history["least"] <= history["objective"] * (1 + 1e-12))
    assert np.all(history["objective"] <= history["largest"] * (1 + 1e-12))


def test_recording_changes_no_result_and_a_callback_may_end_the_loop():
    stopped = fitted(
        NOISY.X, DPCP(refine=False, random_state=1000, callback=lambda step: step.step == 3)
    )
    assert set(stopped.history_["n_steps"]) == {3}


def test_descents_are_drawn_run_by_run():
    display = ConvergenceDisplay(
        ("descent", "finish", "descent"),
        [3, 1, 2],
        objective=[4, 2, 1, 9, 8, 4],
        least=[2, 1, 1, 9, 4, 4],
        largest=[8, 4, 1, 9, 8, 4],
        change=[1, 0.5, 0, 0, 1, 0.25],
        converged=True,
    ).plot()
    lines = [line for line in display.ax_.lines if len(line.get_xdata()) in {3, 2}]
    drawn = {tuple(line.get_ydata()) for line in lines}
    assert {(1.0, 0.5, 0.25), (1.0, 0.5)} <= drawn
    assert "75 % converged when stopped" in display.ax_.get_title()
    assert "1 steps of finish" in display.ax_.get_title()


# -- the others --------------------------------------------------------------------------------


def test_angles_between_models_and_to_the_truth(model):
    display = PrincipalAnglesDisplay.from_estimator(model("noisy"), NOISY.normals)
    cosines = np.linalg.svd(model("noisy").normals_ @ NOISY.normals.T, compute_uv=False)
    np.testing.assert_allclose(display.angles, np.arccos(np.minimum(cosines, 1))[::-1], atol=1e-7)
    same = PrincipalAnglesDisplay.from_estimator(model("noisy"), model("noisy"))
    assert same.angles.max() < 1e-7
    other = PrincipalAnglesDisplay.from_estimator(model("noisy"), NOISY.normals[:1])
    assert other.dimensions == (3, 1)
    assert "2 without a partner" in other.description
    nothing = PrincipalAnglesDisplay.from_estimator(model("codimension 0"), NOISY.normals)
    assert "none" in nothing.ax_.texts[0].get_text()
    with pytest.raises(InputError, match="expected a fitted model or rows"):
        PrincipalAnglesDisplay.from_estimator(model("noisy"), NOISY.normals[0])


def test_a_table_of_trials_becomes_a_map():
    rows = [
        {"method": "DPCP()", "N": N, "M": M, "error": 1e-6 if 10 * N + 50 * seed > M else 0.5}
        for N in (10, 20, 30)
        for M in (100, 200, 300, 400)
        for seed in range(4)
    ]
    display = PhaseTransitionDisplay.from_table(rows, method="DPCP()")
    expected = [
        [np.mean([10 * N + 50 * seed > M for seed in range(4)]) for N in (10, 20, 30)]
        for M in (100, 200, 300, 400)
    ]
    np.testing.assert_allclose(display.share, expected)
    assert display.n_tolerated.tolist() == [1, 2, 3]
    with pytest.warns(FutureWarning, match="n_borne is now called n_tolerated"):
        assert display.n_borne.tolist() == [1, 2, 3]
    assert display.n_trials == 48
    with pytest.raises(InputError, match=r"not in the table, which has: DPCP\(\)"):
        PhaseTransitionDisplay.from_table(rows, method="PCA")
    with pytest.raises(InputError, match="expected 2 rows"):
        PhaseTransitionDisplay([1], [1, 2], [[0.5]])


def test_a_mask_lies_where_the_outliers_are(model, assert_readable):
    scene = NOISY.X[:480].reshape(20, 24, 8).copy()
    scene[3, 4, 5] = np.nan
    display = MaskDisplay.from_estimator(model("noisy"), scene, bands=[7, 0, 3])
    labels = model("noisy").predict(NOISY.X[:480]).reshape(20, 24)
    labels[3, 4] = 0
    np.testing.assert_array_equal(display.mask, labels)
    low, high = np.nanpercentile(NOISY.X[:480, 7][labels.ravel() != 0], [2, 98])
    red = np.clip((scene[..., 7] - low) / (high - low), 0, 1)
    red[3, 4] = display.image[3, 4, 0]
    np.testing.assert_allclose(display.image[..., 0], red, atol=1e-12)
    drawn = np.asarray(display.ax_.images[0].get_array())
    outlier = np.array(mpl.colors.to_rgb(plots.COLORS[1]))
    far = np.abs(drawn - outlier).max(axis=2)
    assert far[labels == -1].max() < 0.2  # of the outliers' colour, whatever is below
    np.testing.assert_allclose(drawn[labels == 1], display.image[labels == 1])
    assert len(set(drawn[3, 4])) == 1  # grey
    assert "1 pixels without data" in display.description
    assert_readable(display.figure_)


def test_a_dataset_of_an_image_knows_its_pixels_and_bands(model):
    positions = np.flatnonzero(np.arange(500) % 7)
    data = Dataset(
        NOISY.X[positions], "scene.hdr", "envi", "image", (20, 25),
        columns=tuple(f"band {i}" for i in range(8)), positions=positions,
    )  # fmt: skip
    display = MaskDisplay.from_estimator(model("noisy"), data)
    assert (display.mask.ravel() == 0).sum() == 500 - len(positions)
    np.testing.assert_array_equal(display.mask.ravel()[positions], model("noisy").predict(data.X))
    assert display.bands == ("band 6", "band 4", "band 1")
    table = Dataset(NOISY.X, "rows.csv", "csv", "table", (500,))
    with pytest.raises(InputError, match=r"rows\.csv is a table; expected an image"):
        MaskDisplay.from_estimator(model("noisy"), table)
    with pytest.raises(InputError, match="three numbers from 0 to 7"):
        MaskDisplay.from_estimator(model("noisy"), data, bands=[1, 2, 8])


def test_a_large_scene_is_drawn_small_and_no_outlier_is_lost():
    mask = np.ones((30, 3000), dtype=int)
    mask[7, 1234] = -1
    display = MaskDisplay(np.zeros((30, 3000, 3)), mask).plot()
    drawn = np.asarray(display.ax_.images[0].get_array())
    assert max(drawn.shape) <= 1200
    assert np.count_nonzero(drawn.sum(axis=2)) == 1
    assert display.n_outliers == 1


@pytest.mark.parametrize(("name", "data"), [("space", SPACE), ("affine", MOVED)])
def test_a_cloud_shows_the_fitted_plane(model, name, data, assert_readable):
    display = CloudDisplay.from_estimator(model(name), data.X)
    plane = np.transpose(display.ax_.lines[-1].get_data_3d())  # its corners
    assert plane.shape == (5, 3)
    heights = plane @ model(name).normals_.T - model(name).intercept_
    np.testing.assert_allclose(heights, 0, atol=1e-9)
    assert (display.n_inliers, display.n_outliers) == tuple(
        int((model(name).labels_ == label).sum()) for label in (1, -1)
    )
    assert_readable(display.figure_)


def test_a_large_cloud_is_a_seeded_choice_and_all_points_are_counted(model):
    X = np.tile(SPACE.X, (5, 1))
    one, two, three = (
        CloudDisplay.from_estimator(model("space"), X, n_points=700, random_state=seed)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one.points, two.points)
    assert not np.array_equal(one.points, three.points)
    assert one.points.shape == (700, 3)
    assert one.n_inliers + one.n_outliers == 1500
    assert "700 of 1" in one.ax_.get_title()


def test_a_cloud_needs_three_columns_and_axes_in_space(model):
    display = CloudDisplay.from_estimator(model("noisy"), NOISY.X, columns=(0, 3, 7))
    np.testing.assert_array_equal(display.points, NOISY.X[:, [0, 3, 7]])
    assert display.components is None  # a subspace of eight dimensions is no plane in space
    with pytest.raises(InputError, match="three of the 8 features"):
        CloudDisplay.from_estimator(model("noisy"), NOISY.X, columns=(0, 1, 8))
    with pytest.raises(InputError, match="projection='3d'"):
        display.plot(Figure().subplots())


def test_a_few_far_points_do_not_shrink_the_cloud(model):
    X = np.vstack([SPACE.X, [[1e6, 0, 0]]])
    display = CloudDisplay.from_estimator(model("space"), X)
    assert display.ax_.get_xlim()[1] < 10
    assert "1 of them out of view" in display.ax_.get_title()


def test_reliability_of_the_outlier_probabilities(model):
    display = ReliabilityDisplay.from_estimator(model("noisy"), NOISY.X, NOISY.y)
    p = model("noisy").outlier_probability(NOISY.X)
    assert display.n.tolist() == np.histogram(p, np.linspace(0, 1, 11))[0].tolist()
    assert display.hits.sum() == 200
    assert display.ax_.get_xlabel().startswith("outlier probability")
    with pytest.raises(InputError, match="not one of the edges"):
        ReliabilityDisplay((0, 0.5, 1), [1, 1], [0, 1], sure=0.7)


OTHERS = {
    "angles": lambda: PrincipalAnglesDisplay([1e-9, 0.1, 1.0], (3, 4), what="normals"),
    "phase": lambda: PhaseTransitionDisplay([1, 2], [3, 4], [[1, 1], [0, 1]], title="DPCP()"),
    "reliability": lambda: ReliabilityDisplay((0, 0.5, 0.95, 1), [9, 0, 7], [2, 0, 7], sure=0.95),
    "no points": lambda: CloudDisplay(np.zeros((0, 3)), np.zeros(0)),
    "one point": lambda: CloudDisplay(np.ones((1, 3)), np.ones(1)),
    "no pixel": lambda: MaskDisplay(np.zeros((2, 3, 3)), np.zeros((2, 3))),
}


@pytest.mark.parametrize("name", OTHERS)
def test_displays_of_plain_arrays_are_readable(name, assert_readable):
    display = OTHERS[name]().plot()
    assert display.description.endswith(".")
    assert_readable(display.figure_)


def test_distances_of_a_scene_on_a_logarithmic_scale():
    distance = np.full((30, 2500), 2.0)
    distance[:3], distance[:, 0] = 1.0, np.nan
    distance[7, 1201] = 64.0
    display = DistanceMapDisplay(distance, 16.0).plot()
    assert display.ends == (1.0, 64.0)
    np.testing.assert_allclose(display._heat(np.array([0.0, 1.0, 8.0, 99.0])), [0, 0, 0.5, 1])
    colors = display._colors(1250)  # two by two become one: the farthest counts
    assert colors.shape == (15, 1250, 3)
    assert np.unravel_index(colors.sum(axis=2).argmax(), (15, 1250)) == (3, 600)
    assert "from 1 to 64 on a logarithmic scale. 1 are beyond the threshold, 16." in (
        display.description
    )
    for values in (np.zeros((4, 4)), np.full((4, 4), np.nan), np.full((4, 4), 3.0)):
        assert np.all(np.isfinite(DistanceMapDisplay(values, 1.0).plot()._colors(9)))
    with pytest.raises(InputError, match="expected \\(height, width\\)"):
        DistanceMapDisplay(np.zeros(3), 1.0)


def test_the_map_of_distances_is_that_of_the_scores(model):
    fitted = model("noisy")
    X = np.random.default_rng(0).standard_normal((12, fitted.n_features_in_))
    scene = X.reshape(3, 4, -1).copy()
    scene[1, 2, 0] = np.nan
    shown = DistanceMapDisplay.from_estimator(fitted, scene).distance.ravel()
    assert np.isnan(shown[6])
    np.testing.assert_allclose(np.delete(shown, 6), -fitted.score_samples(np.delete(X, 6, axis=0)))


# -- methods side by side ------------------------------------------------------------------------


def test_a_comparison_is_drawn_and_readable(assert_readable):
    names = ["DPCP", "RGraph", "DoubleOverparameterization", "PCA"]
    found = perpend.compare(NOISY.X, methods=names, random_state=0)
    display = found.plot()
    assert isinstance(display, plots.ComparisonDisplay)
    assert len(display.ax_) == 3
    assert "with DPCP: PCA " in display.description
    cells = display._cells("labels").layers[0].levels[::-1]
    agreement = found.label_agreement
    limits = [0, 0.9, 0.95, 0.99, 0.999]
    np.testing.assert_array_equal(cells, np.sum(agreement[..., None] >= limits, axis=-1))
    angles = display._cells("angle").layers[0].levels[::-1]
    assert np.all(angles[1:3] == 0)  # no subspace
    assert_readable(display.figure_)
    with pytest.raises(InputError, match="ax has 1 axes; expected 3"):
        found.plot(ax=plt.figure().subplots())
    plt.close("all")

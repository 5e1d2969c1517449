"""Pictures: what they show, that nothing is cut off or on top of another, and that equal data give
equal files."""

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt

from helpers import mostly_slow
from perpend import plots
from perpend.exceptions import MissingExtraError

RNG = np.random.default_rng(0)
X = np.linspace(0.1, 0.9, 9)
NORMAL = np.array([0.5, 0.2, 0.9])
POINTS = RNG.normal(size=(8, 3))
TRUTH = np.repeat([2, 4, 6], 10)

FIGURES = {
    "heatmaps": lambda: plots.heatmaps(
        {"DPCP": np.tile(X, (4, 1)), "RSGM": np.full((4, 9), np.nan), "PCA": np.zeros((4, 9))},
        X,
        [1, 2, 3, 4],
        xlabel="outlier ratio",
        ylabel="codimension",
        label="share of exact recoveries",
        lines={"theory": (X, 5 - 5 * X)},
    ),
    "one cell": lambda: plots.heatmaps(
        {"DPCP": [[0.5]]}, [3], [4], xlabel="x", ylabel="y", label="z", numbers="{:.2f}"
    ),
    "curves": lambda: plots.curves(
        {"": {f"method {i}": (X, 10 ** (-i * X), X / 9, X) for i in range(9)}},
        xlabel="step",
        ylabel="error",
        log_y=True,
        levels={"published": 0.01},
    ),
    "curves in panels": lambda: plots.curves(
        {f"c = {c}": {"DPCP": (X, X**c), "a longer name": (X, X)} for c in range(1, 6)},
        xlabel="outlier ratio",
        ylabel="F1",
        ylim=(0, 1.02),
    ),
    "estimates": lambda: plots.estimates_against_truth(
        {"DPCP": (TRUTH, TRUTH), "PCA": (TRUTH, np.where(TRUTH > 3, np.nan, 9))}
    ),
    "images": lambda: plots.images(
        {"mask": X.reshape(3, 3) > 0.5, "colours": RNG.random((4, 6, 3)), "map": X.reshape(3, 3)}
    ),
    "images with a scale": lambda: plots.images({"a": X[None]}, limits=(0, 1), label="distance"),
    "reliability": lambda: plots.reliability(
        {
            "first": (np.linspace(0, 1, 2000), np.arange(2000) % 3 > 0),
            "second": ([0.1, 0.97, 1.0], [False, False, True]),
        },
        sure=0.95,
    ),
    "sphere": lambda: plots.sphere(
        {
            "all": plots.OnSphere(
                subspace=NORMAL,
                complement=np.cross(NORMAL, np.eye(3)[:2]),
                starts=POINTS,
                limits=-POINTS[:5],
                strays=POINTS[5:] + 0.1,
                targets=POINTS[:5],
                paths=[POINTS[:2], POINTS[3:5], POINTS[5:]],
            ),
            "nothing": plots.OnSphere(),
        },
        complement="all normals",
    ),
}


@pytest.fixture(params=FIGURES, ids=lambda name: name.replace(" ", "-"))
def drawing(request):
    return FIGURES[request.param]()


def test_nothing_is_cut_off_and_no_texts_overlap(drawing, assert_readable):
    assert_readable(drawing)


@pytest.mark.parametrize(
    "name", mostly_slow(["one cell", "estimates", "images", "sphere"], "estimates")
)
def test_equal_data_give_equal_files(name, tmp_path):
    files = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        state = RNG.bit_generator.state
        paths = plots.save(FIGURES[name](), tmp_path / folder / "figure.v1")
        RNG.bit_generator.state = state
        assert [path.name for path in paths] == ["figure.v1.png", "figure.v1.svg"]
        files.append([path.read_bytes() for path in paths])
    assert files[0] == files[1]
    assert b"date" not in files[0][1].lower()


def test_a_users_settings_are_neither_used_nor_changed(tmp_path):
    def draw(stem):
        return [path.read_bytes() for path in plots.save(FIGURES["one cell"](), tmp_path / stem)]

    plain = draw("plain")
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "red", "svg.hashsalt": "other"}):
        assert draw("styled") == plain
        assert mpl.rcParams["font.size"] == 30


@pytest.mark.parametrize("name", FIGURES)
def test_figures_for_files_are_not_known_to_pyplot(name):
    FIGURES[name]()
    assert plt.get_fignums() == []


def test_importing_plots_loads_no_matplotlib_and_drawing_no_pyplot():
    code = (
        "import sys; from perpend import plots; assert 'matplotlib' not in sys.modules; "
        "plots.curves({'': {'a': ([1, 2], [1, 2])}}, xlabel='x', ylabel='y'); "
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_without_matplotlib_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("perpend.plots._style.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'perpend\[plots\]'"):
        FIGURES["curves"]()
    with pytest.raises(ImportError):
        plots.require_matplotlib()


def test_maps_share_one_scale_and_put_cells_at_their_places():
    figure = FIGURES["heatmaps"]()
    meshes = [ax.collections[0] for ax in figure.axes[:3]]
    assert {mesh.get_clim() for mesh in meshes} == {(0.0, 1.0)}
    np.testing.assert_allclose(meshes[0].get_coordinates()[0, :, 0], np.linspace(0.05, 0.95, 10))
    assert meshes[1].get_array().mask.all()


def test_estimates_say_how_many_are_right():
    figure = FIGURES["estimates"]()
    assert [ax.get_title() for ax in figure.axes] == ["DPCP\n30 of 30 right", "PCA\n0 of 30 right"]
    dots = figure.axes[0].collections[0]
    np.testing.assert_array_equal(dots.get_offsets(), [[2, 2], [4, 4], [6, 6]])


def test_lines_of_equal_names_have_equal_colours():
    figure = plots.curves(
        {"a": {"DPCP": (X, X), "PCA": (X, X)}, "b": {"PCA": (X, X)}}, xlabel="x", ylabel="y"
    )
    colors = [{line.get_label(): line.get_color() for line in ax.lines} for ax in figure.axes]
    assert colors[0]["PCA"] == colors[1]["PCA"] != colors[0]["DPCP"]


def test_values_without_a_logarithm_are_left_out():
    figure = plots.curves(
        {"": {"a": (X, np.where(X > 0.5, 0.0, X), X - 1, X)}}, xlabel="x", ylabel="y", log_y=True
    )
    assert np.isnan(figure.axes[0].lines[0].get_ydata()).sum() == 4


def test_points_behind_the_sphere_are_faint():
    towards = np.array([np.cos(0.6), np.sin(0.6), 0.4])
    scene = plots.OnSphere(limits=np.stack([towards, -towards]))
    behind, before = plots.sphere({"": scene}).axes[0].collections
    assert len(behind.get_offsets()) == len(before.get_offsets()) == 1
    assert behind.get_alpha() < 0.5 < before.get_alpha()


def test_a_path_and_a_great_circle_stay_on_the_sphere():
    scene = plots.OnSphere(subspace=np.eye(3)[1:], paths=[np.eye(3)[[0, 1]]])
    axes = plots.sphere({"": scene}, view=(90.0, 0.0)).axes[0]  # seen from the third axis
    path = [
        np.hypot(*line.get_data()) for line in axes.lines if line.get_color() == plots.COLORS[0]
    ]
    assert np.nanmin(np.concatenate(path)) > 0.999  # not the chord, which comes as near as 0.71
    ring = [line.get_xydata() for line in axes.lines if line.get_color() == plots.COLORS[-1]]
    np.testing.assert_allclose(np.nanmax(np.abs(np.concatenate(ring)), axis=0), [1, 0], atol=1e-9)


def test_the_panel_above_an_empty_place_has_its_numbers():
    maps = dict.fromkeys("abcde", np.ones((2, 2)))
    figure = plots.heatmaps(maps, [1, 2], [1, 2], xlabel="x", ylabel="y", label="z")
    shown = [ax.xaxis.get_tick_params()["labelbottom"] for ax in figure.axes[:5]]
    assert shown == [False, False, True, True, True]


def test_dots_show_every_value_and_their_mean():
    panels = {"left": {"a": np.array([0.2, 0.4, np.nan]), "b": np.array([])}, "right": {"c": [1.0]}}
    figure = plots.dots(panels, xlabel="AUC", highlight="a")
    left, right = figure.axes
    assert [text.get_text() for text in left.get_yticklabels()] == ["a", "b", "c"]
    points = np.vstack([np.asarray(c.get_offsets()) for c in left.collections])
    np.testing.assert_allclose(points, [[0.2, 0], [0.4, 0], [0.3, 0]])  # two values and their mean
    points = np.vstack([np.asarray(c.get_offsets()) for c in right.collections])
    np.testing.assert_allclose(points, [[1, 2], [1, 2]])
    assert left.get_ylim()[0] > left.get_ylim()[1]  # the first name is on top

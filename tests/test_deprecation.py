"""Old names work until the version that they are announced for, and say what to write instead."""

import inspect
import types

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

import perpend.formats
import perpend.geometry
import perpend.metrics
import perpend.plots
from perpend import DPCP
from perpend._deprecation import removed_parameters, renamed_names, renamed_parameters
from perpend.datasets import make_subspace
from perpend.report import write_report


class Model(BaseEstimator):
    @renamed_parameters(until="0.4", n_rounds="max_iter")
    def __init__(self, *, max_iter=5):
        self.max_iter = max_iter


def test_an_old_parameter_works_and_warns():
    with pytest.warns(FutureWarning, match=r"n_rounds is now called max_iter.*until perpend 0\.4"):
        model = Model(n_rounds=7)
    assert model.get_params() == {"max_iter": 7}
    assert clone(model).max_iter == 7  # without a warning, which would be an error here
    assert list(inspect.signature(Model).parameters) == ["max_iter"]


def test_the_warning_points_to_the_call():
    with pytest.warns(FutureWarning) as caught:
        Model(n_rounds=7)
    assert caught[0].filename == __file__


def test_old_and_new_together_are_refused():
    with pytest.raises(TypeError, match="max_iter is given twice"):
        Model(n_rounds=7, max_iter=8)


def test_an_unknown_parameter_is_refused_as_ever():
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        Model(rounds=7)


def test_an_old_name_of_a_module_works_and_warns():
    module = types.ModuleType("perpend.metrics")
    names = {"angles": "principal_angles", "sine": "perpend.geometry.sine_of_largest_angle"}
    module.__getattr__ = renamed_names("perpend.metrics", names, until="0.4")
    with pytest.warns(FutureWarning, match=r"perpend\.metrics\.principal_angles") as caught:
        assert module.angles is perpend.metrics.principal_angles
    assert caught[0].filename == __file__
    with pytest.warns(FutureWarning, match=r"perpend\.geometry\.sine_of_largest_angle"):
        assert module.sine is perpend.geometry.sine_of_largest_angle
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        module.other  # noqa: B018


# -- the names of 0.1 ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        (perpend.formats, "Answer", "Labelled"),
        (perpend.formats, "write_answer", "write_labelled"),
        (perpend.plots, "AnswerDisplay", "SummaryDisplay"),
    ],
)
def test_names_of_the_first_release_work_and_warn(module, old, new):
    with pytest.warns(FutureWarning, match=rf"{old} is now called {module.__name__}\.{new}"):
        assert getattr(module, old) is getattr(module, new)


def test_parameters_of_the_first_release_work_and_warn(tmp_path):
    (tmp_path / "x.csv").write_text("1,2\n3,4\n", encoding="utf-8")
    data = perpend.formats.read(tmp_path / "x.csv")
    labelled = perpend.formats.Labelled(np.array([1, -1]), np.zeros(2), np.zeros(2))
    with pytest.warns(FutureWarning, match="The parameter answer is now called labelled"):
        path = perpend.formats.write_labelled(data, answer=labelled, folder=tmp_path)
    assert path.name == "x-labelled.csv"
    X = make_subspace(60, 20, n_features=4, codimension=2, random_state=0).X
    model = DPCP(random_state=0).fit(X)
    flipped = perpend.formats.Labelled(-model.labels_, *np.zeros((2, 80)))
    with pytest.warns(FutureWarning, match="The parameter answer is now called labelled"):
        page = write_report(tmp_path / "report.html", model, X, answer=flipped)
    assert "20 of 80 rows" in page.read_text(encoding="utf-8")


@removed_parameters("b", until="0.4", instead="leave it out.")
def double(a):
    return 2 * a


@removed_parameters("b", until="0.4", instead="give c.", former=lambda a, b: a - b)
def add(a, *, c):
    return a + c


def test_a_parameter_without_a_successor_works_and_warns():
    with pytest.warns(
        FutureWarning, match=r"double has no parameter b .*: leave it out\."
    ) as caught:
        assert double(3, b=1) == 6
    assert caught[0].filename == __file__
    with pytest.warns(FutureWarning, match=r"give c\. It works until perpend 0\.4"):
        assert add(3, b=1) == 2  # as the function was
    assert (double(3), add(3, c=1)) == (6, 4)  # without a warning, which would be an error here
    assert list(inspect.signature(add).parameters) == ["a", "c"]

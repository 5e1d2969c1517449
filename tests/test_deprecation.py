"""Old names work until the version that they are announced for, and say what to write instead."""

import inspect
import types

import pytest
from sklearn.base import BaseEstimator, clone

import perpend.geometry
import perpend.metrics
from perpend._deprecation import renamed_names, renamed_parameters


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

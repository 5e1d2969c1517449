"""Pipelines of scalers and a method in model files."""

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

import perpend
from model_files import forge, npy_bytes
from perpend import DPCP, RobustStandardizer
from perpend.exceptions import InputError, ModelFileError

SCALERS = [
    RobustStandardizer(),
    RobustStandardizer(with_centering=False),
    StandardScaler(),
    StandardScaler(with_mean=False, with_std=False),
    RobustScaler(unit_variance=True, quantile_range=(20.0, 80.0)),
    RobustScaler(with_centering=False, with_scaling=False),
    MinMaxScaler(feature_range=(-1, 2)),
    MaxAbsScaler(),
]


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 4)) * [1, 50, 0.1, 3] + [0, 7, 3, -2]
    return pd.DataFrame(X, columns=list("abcd")).assign(e=lambda t: t.a + 0.1 * t.b)


@pytest.mark.parametrize("scaler", SCALERS, ids=str)
def test_a_loaded_pipeline_gives_the_same_numbers(tmp_path, frame, scaler):
    model = make_pipeline(scaler, DPCP(1, affine=True, random_state=0)).fit(frame)
    perpend.save(model, tmp_path / "model.npz")
    again = perpend.load(tmp_path / "model.npz")
    assert isinstance(again, Pipeline)
    assert list(again.named_steps) == list(model.named_steps)
    assert str(again[0]) == str(model[0])
    for method in ("predict", "score_samples", "transform"):
        np.testing.assert_array_equal(
            getattr(again, method)(frame), getattr(model, method)(frame), strict=True
        )
    assert list(again.feature_names_in_) == list(frame)
    assert perpend.equations(again)[0].text == perpend.equations(model)[0].text


def test_pipelines_inside_one_another_become_one(tmp_path, frame):
    inner = make_pipeline(StandardScaler(), DPCP(1, affine=True, random_state=0))
    model = Pipeline([("standardscaler", StandardScaler()), ("rest", inner)]).fit(frame)
    perpend.save(model, tmp_path / "model.npz")
    again = perpend.load(tmp_path / "model.npz")
    assert len(again) == 3
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))


def test_other_steps_are_refused(tmp_path, frame):
    class Mine(StandardScaler):
        pass

    for step, says in (
        (PCA(2), "does more than scale"),
        (Mine(), "not a scaler that a model file"),
    ):
        model = make_pipeline(step, DPCP(1, affine=True, random_state=0)).fit(frame)
        with pytest.raises(InputError, match=says):
            perpend.save(model, tmp_path / "model.npz")
    assert not (tmp_path / "model.npz").exists()


def spoiled(**changes):
    return lambda head: head["pipeline"]["dict"]["scalers"]["list"][0]["dict"].update(changes)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (spoiled(**{"class": "PCA"}), "does not know"),
        (
            lambda head: head["pipeline"]["dict"].update(names={"list": ["a", "a"]}),
            "names of its steps",
        ),
        (lambda head: head["pipeline"]["dict"].update(names={"list": ["a"]}), "names of its steps"),
        (lambda head: head.pop("pipeline"), "does not use"),
        (spoiled(attributes={"dict": {}}), "array|fitted"),
    ],
)
def test_forged_files_are_refused(tmp_path, frame, change, says):
    path = tmp_path / "model.npz"
    perpend.save(make_pipeline(RobustStandardizer(), DPCP(1, random_state=0)).fit(frame), path)
    forge(path, header=change)
    with pytest.raises(ModelFileError, match=says):
        perpend.load(path)


@pytest.mark.parametrize("scale", [np.zeros(5), np.full(5, np.nan), np.ones(4), -np.ones(5)])
def test_scales_that_no_scaler_has(tmp_path, frame, scale):
    path = tmp_path / "model.npz"
    perpend.save(make_pipeline(RobustStandardizer(), DPCP(1, random_state=0)).fit(frame), path)
    forge(path, members={"pipeline.scalers.0.attributes.scale_": npy_bytes(scale)})
    with pytest.raises(ModelFileError, match=r"of RobustStandardizer|RobustStandardizer has"):
        perpend.load(path)

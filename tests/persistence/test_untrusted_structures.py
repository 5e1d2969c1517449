"""Files that lie about the other structures of a model, or about its profile, are refused."""

import numpy as np
import pytest

from model_files import LAYERS, forge, npy_bytes, refused
from perpend import DPCP, load


@pytest.fixture(scope="module")
def layers():
    model = DPCP(affine=True, random_state=0).fit(LAYERS)
    assert [one["chosen"] for one in model.structures_] == [True, False]
    return model


@pytest.fixture
def file(layers, tmp_path):
    layers.save(tmp_path / "model.npz")
    return tmp_path / "model.npz"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("normals_", np.eye(2, 6)),
        ("normals_", np.full((1, 6), np.nan)),
        ("components_", np.eye(5, 6)[:, ::-1]),
        ("location_", np.ones(5)),
        ("intercept_", np.array([1e3])),
        ("labels_", np.ones(200, dtype=int)),
        ("labels_", np.ones(199, dtype=bool)),
        ("labels_", np.ones((200, 1), dtype=bool)),
        ("directions_", np.zeros((3, 6))),
        ("_outlier_odds.distance", np.ones(7)),
        ("_distance_record.counts", np.full(1024, -1.0)),
    ],
)
def test_arrays_of_another_structure(file, name, value):
    forge(file, members={f"attributes._others.1.{name}": npy_bytes(value)})
    refused(file, "fit|not finite|not orthonormal|growing|is not that of a subspace")


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("codimension_", 2, "do not fit"),
        ("threshold_", -1.0, "do not fit"),
        ("confidence_", "high", "not a number"),
        ("doubts_", {"list": []}, "not all text"),
        ("evidence_", 3, "not a table|does not use"),
        ("predict", 3, "not that of a subspace"),
        ("affine_", False, "not that of a subspace"),
        ("random_state", 3, "not that of a subspace"),
    ],
)
def test_values_of_another_structure(file, name, value, match):
    def lie(head):
        head["attributes"]["dict"]["_others"]["list"][1]["dict"][name] = value

    forge(file, header=lie)
    refused(file, match)


@pytest.mark.parametrize(
    "change",
    [
        lambda others: others.reverse(),
        lambda others: others.append(None),
        lambda others: others.pop(0),
        lambda others: others.__setitem__(0, {"dict": {}}),
        lambda others: others.__setitem__(0, 1),
    ],
    ids=["in another order", "one more", "one less", "one of nothing", "a number"],
)
def test_others_that_are_not_those_of_the_list(file, change):
    forge(file, header=lambda head: change(head["attributes"]["dict"]["_others"]["list"]))
    refused(file, "not those of structures_|not that of a subspace|readable")


@pytest.mark.parametrize("chosen", [(True, True), (False, False), (False, True)])
def test_one_structure_is_the_chosen_one(file, chosen):
    def lie(head):
        for one, value in zip(
            head["attributes"]["dict"]["structures_"]["list"], chosen, strict=True
        ):
            one["dict"]["chosen"] = value

    forge(file, header=lie)
    refused(file, "several or none|not that of a subspace")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("scales", np.ones(9)),
        ("scales", np.zeros(0)),
        ("codimensions", np.arange(5)),
        ("codimensions", np.ones((5, 1))),
        ("contrast", np.ones((5, 3))),
        ("contrast", None),
    ],
)
def test_profiles_that_make_no_sense(file, layers, name, value):
    if value is None:
        value = np.full(layers.profile_[name].shape, np.nan)
    forge(file, members={f"attributes.profile_.{name}": npy_bytes(value)})
    refused(file, "profile_ is not a table")


def test_forging_nothing_is_harmless(file, layers):
    forge(file)
    assert load(file).choose(1).threshold_ == layers.choose(1).threshold_

"""`choose(i)`: a fitted model of another structure that the fit has seen."""

import copy

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from helpers import assert_orthonormal_rows, assert_same_subspace
from model_files import DATA, assert_equal, assert_same_model, assert_same_results, load_copy
from perpend import DPCP, RSGM
from perpend._learned import OF_DESCENTS, OF_SUBSPACE
from perpend.exceptions import InputError

ROAD, SLAB, SOMEWHERE = 1200, 3000, 2000  # rows
# The confidence of the fit itself does not matter here.
pytestmark = pytest.mark.filterwarnings("ignore::perpend.exceptions.CodimensionWarning")


def street(seed=0):
    """A road inside a street that is twenty times as thick."""
    rng = np.random.default_rng(seed)
    X = rng.uniform([-20, -20, -1], [20, 20, 1], (SLAB, 3))
    X[:ROAD, 2] = rng.normal(0, 0.05, ROAD)
    return X


def wire(seed=0):
    """A wire in a sheet through the origin, among points anywhere; and which rows are which."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-10, 10, (3 * SOMEWHERE, 3))
    X[:SOMEWHERE, 1:] = rng.normal(0, 0.01, (SOMEWHERE, 2))
    X[SOMEWHERE : 2 * SOMEWHERE, 2] = rng.normal(0, 0.1, SOMEWHERE)
    return X


def fitted(X, **options):
    return DPCP(**{"random_state": 1000, **options}).fit(X)


def with_ones(X):
    return np.column_stack([X + np.array([0, 0, 5]), np.ones(len(X))])


CASES = {
    "affine": (street, {"affine": True}),
    "affine, float32": (lambda: street().astype(np.float32), {"affine": True}),
    "a line in a plane": (wire, {"affine": True}),
    "linear": (lambda: with_ones(street()), {}),
    "linear, not normalised": (wire, {"normalize": False}),
    "a threshold": (street, {"affine": True, "threshold": 0.3}),
    "a share of outliers": (street, {"affine": True, "contamination": 0.25}),
}


@pytest.fixture(scope="module", params=CASES, ids=lambda name: name.replace(" ", "-"))
def case(request):
    """Rows and a model that has seen several structures in them."""
    make, options = CASES[request.param]
    X = make()
    model = fitted(X, **options)
    assert len(model.structures_) > 1
    return X, model


@pytest.fixture(scope="module")
def road():
    return fitted(street(), affine=True)


# -- every structure can be chosen -----------------------------------------------------------------


def test_all_attributes_follow(case):
    X, model = case
    for i, structure in enumerate(model.structures_):
        other = model.choose(i)
        assert type(other) is DPCP
        assert other.get_params() == model.get_params()
        assert other.codimension_ == structure["codimension"] == len(other.normals_)
        assert other.n_components_ == len(other.components_) == X.shape[1] - other.codimension_
        basis = np.vstack([other.normals_, other.components_])
        assert basis.dtype == X.dtype
        assert_orthonormal_rows(basis, tol=1e-5 if X.dtype == np.float32 else 1e-12)
        intercept = other.normals_.astype(float) @ other.location_
        np.testing.assert_allclose(intercept, other.intercept_, rtol=1e-6, atol=1e-9)
        assert [one["chosen"] for one in other.structures_].index(True) == i
        assert [one["chosen"] for one in other.structures_].count(True) == 1
        assert other.offset_ == -other.threshold_
        assert other.transform(X).shape == (len(X), other.n_components_)
        assert len(other.get_feature_names_out()) == other.n_components_


def test_labels_and_probabilities_are_those_of_the_structure(case):
    X, model = case
    for i in range(len(model.structures_)):
        other = model.choose(i)
        np.testing.assert_array_equal(other.predict(X), other.labels_)
        assert other.labels_.dtype == model.labels_.dtype
        if other.threshold == "auto" and other.contamination is None:
            p = other.outlier_probability(X)
            np.testing.assert_array_equal(p > 0.5, other.labels_ == -1)


def test_the_noise_is_that_of_the_structure(case):
    X, model = case
    for i, structure in enumerate(model.structures_):
        noise = model.choose(i).noise_ / np.sqrt(X.shape[1])
        # A layer is listed with where it ends, which is more than the deviation in it.
        assert structure["noise"] / 3 < noise < 2 * structure["noise"]


def test_the_original_stays_as_it_is(case):
    _, model = case
    before = copy.deepcopy(vars(model))
    for i in range(len(model.structures_)):
        other = model.choose(i)
        assert other is not model
        other.set_params(threshold=7.0).set_output(transform="pandas")
        other.structures_[i]["noise"] = -1.0
    model.choose(0).choose(-1)
    assert_equal(vars(model), before)


def test_choosing_the_chosen_one_and_choosing_back_give_an_equal_model(case):
    X, model = case
    chosen = [one["chosen"] for one in model.structures_].index(True)
    assert_same_model(model.choose(chosen), model)
    for i in range(len(model.structures_)):
        for way in (model.choose(i), model.choose(-1).choose(i).choose(0)):
            assert_same_model(way.choose(chosen), model)
        assert_same_model(model.choose(i - len(model.structures_)), model.choose(i))
        assert_same_results(model.choose(i).choose(chosen), model, X[:50])


def test_only_the_choice_of_the_fit_may_be_sure(case):
    _, model = case
    for i, structure in enumerate(model.structures_):
        other = model.choose(i)
        by_hand = [doubt for doubt in other.doubts_ if "chosen by hand" in doubt]
        if structure["chosen"]:
            assert not by_hand
        else:
            assert other.confidence_ <= 0.9
            chosen = [one["chosen"] for one in model.structures_].index(True)
            assert f"choose({chosen})" in by_hand[0]


def test_after_saving_and_loading(case, tmp_path):
    X, model = case
    loaded = load_copy(model, tmp_path)
    assert_same_model(loaded, model)
    for i in range(len(model.structures_)):
        assert_same_model(loaded.choose(i), model.choose(i))
        again = load_copy(model.choose(i), tmp_path)
        assert_same_model(again, model.choose(i))
        assert_same_model(again.choose(0), model.choose(0))
        assert_same_results(again, model.choose(i), X[:50])


def test_a_table_has_all_that_is_learned_about_a_subspace():
    for X, options in ((street(), {"affine": True}), (wire(), {"normalize": False})):
        model = fitted(X, **options)
        other = next(one for one in model._others if one is not None)
        of_the_fit = {"affine_", "history_", "n_features_in_", "profile_", "structures_", "_others"}
        of_the_fit |= {"_reference", "_law", "n_missing_", "undecided_"}
        learned = set(vars(model)) - set(model.get_params()) - of_the_fit
        own = set(OF_SUBSPACE) | (set(OF_DESCENTS) if model.affine_ else set())
        assert set(other) == own
        assert learned == {*OF_SUBSPACE, *OF_DESCENTS}


# -- and is the right one --------------------------------------------------------------------------


def test_a_road_and_the_street_around_it(seed):
    X = street(seed)
    model = fitted(X, affine=True)
    slab = model.choose(len(model.structures_) - 1)
    assert_same_subspace(slab.normals_, [[0, 0, 1]], tol=0.01)
    assert np.mean(slab.labels_ == 1) > 0.97
    assert slab.threshold_ > 0.9
    assert (model.labels_ == 1).sum() < 1.3 * ROAD


def test_a_wire_in_a_sheet(seed):
    X = wire(seed)
    model = fitted(X, affine=True)
    (fine,) = [i for i, one in enumerate(model.structures_) if one["codimension"] == 2]
    (coarse,) = [i for i, one in enumerate(model.structures_) if one["codimension"] == 1]
    line, plane = model.choose(fine), model.choose(coarse)
    assert_same_subspace(line.components_, [[1, 0, 0]], tol=0.001)
    assert_same_subspace(plane.normals_, [[0, 0, 1]], tol=0.01)
    assert np.mean(line.labels_[:SOMEWHERE] == 1) > 0.98
    assert np.mean(line.labels_[SOMEWHERE:] == 1) < 0.01
    assert np.mean(plane.labels_[: 2 * SOMEWHERE] == 1) > 0.95


def test_rows_of_a_sample_lead_to_labels_of_all():
    """There are so many rows that a sample decides, and all rows confirm each structure."""
    X = with_ones(np.vstack([street(seed) for seed in range(10)]))
    model = fitted(X)
    for i in range(len(model.structures_)):
        other = model.choose(i)
        assert other.labels_.shape == (10 * SLAB,)
        np.testing.assert_array_equal(other.predict(X), other.labels_)
    slab = [one["codimension"] for one in model.structures_].index(1, 1)
    assert np.mean(model.choose(slab).labels_ == 1) > 0.97


def test_rows_that_span_less_than_the_space():
    """Normals outside of the span belong to every structure."""
    X = wire() @ np.linalg.qr(np.random.default_rng(1).standard_normal((5, 3)))[0].T
    model = fitted(X, normalize=False, codimension=3)
    assert len(model.structures_) > 1
    for i, one in enumerate(model.structures_):
        other = model.choose(i)
        assert other.codimension_ == one["codimension"] >= 3
        assert np.max(np.abs(X @ other.normals_.T), axis=0).min() < 1e-9
        np.testing.assert_array_equal(other.predict(X), other.labels_)


def test_weights_count_like_rows(dtype):
    X = street().astype(dtype)
    weight = np.ones(SLAB)
    weight[:100], weight[-50:] = 3, 0
    model = fitted(X, affine=True)
    weighted = DPCP(affine=True, random_state=1000).fit(X, sample_weight=weight)
    slab = weighted.choose(-1)
    np.testing.assert_array_equal(slab.predict(X), slab.labels_)
    assert slab.threshold_ == pytest.approx(model.choose(-1).threshold_, rel=0.2)
    assert slab._distance_record["counts"].sum() == pytest.approx(weight.sum())


# -- as scikit-learn has it ------------------------------------------------------------------------


def test_a_clone_is_not_fitted_and_fits_the_same_again(road):
    slab = road.choose(1)
    again = clone(slab)
    with pytest.raises(NotFittedError):
        again.choose(0)
    assert_same_model(again.fit(street()), road)
    assert_same_model(slab.fit(street()), road)


def test_inside_a_pipeline():
    X = street()
    pipeline = make_pipeline(StandardScaler(with_std=False), DPCP(affine=True, random_state=1000))
    pipeline.fit(X)
    road = pipeline.predict(X)
    pipeline.steps[-1] = ("dpcp", pipeline[-1].choose(-1))
    slab = pipeline.predict(X)
    np.testing.assert_array_equal(slab, pipeline[-1].labels_)
    assert (slab == 1).sum() > 2 * (road == 1).sum()


def test_names_and_containers_come_along():
    frame = pd.DataFrame(street(), columns=["x", "y", "z"])
    model = fitted(frame, affine=True).set_output(transform="pandas")
    slab = model.choose(-1)
    assert list(slab.feature_names_in_) == ["x", "y", "z"]
    assert isinstance(slab.transform(frame), pd.DataFrame)
    slab.set_output(transform="default")
    assert isinstance(model.transform(frame), pd.DataFrame)


# -- what cannot be chosen -------------------------------------------------------------------------


@pytest.mark.parametrize("i", [2, -3, 10**9, 0.0, "0", None, [0]])
def test_a_place_that_is_not_there(road, i):
    with pytest.raises(InputError, match=r"i=.*structures_, from 0 to 1"):
        road.choose(i)


def test_numpy_integers_are_places(road):
    assert_same_model(road.choose(np.int32(1)), road.choose(1))


def test_an_unfitted_model():
    with pytest.raises(NotFittedError):
        DPCP().choose(0)


def test_a_single_structure_is_the_chosen_one():
    for model in (DPCP(random_state=0), RSGM(2, random_state=0)):
        assert_same_model(model.fit(DATA.X).choose(0), model)
        with pytest.raises(InputError, match="from 0 to 0"):
            model.choose(1)


def test_where_nothing_was_seen():
    model = fitted(np.random.default_rng(0).standard_normal((300, 4)))
    assert model.codimension_ == 0
    with pytest.raises(InputError, match="structures_ is empty"):
        model.choose(0)

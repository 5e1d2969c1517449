"""Files that earlier versions wrote load with the same results; tests/data/models has them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from perpend import load
from perpend.exceptions import InputError
from perpend.persistence import save
from perpend.persistence.archive import HEADER, parse_header, read_members
from perpend.persistence.model import SCHEMA

FOLDER = Path(__file__).parents[1] / "data" / "models"
FILES = sorted(path for path in FOLDER.glob("*.npz") if not path.stem.endswith("-results"))
AFFINE = {"schema2-affine", "schema2-odds", "schema2-plane", "schema3-affine"}
BEFORE_CHOOSE = [path for path in FILES if path.stem[:7] in {"schema1", "schema2"}]
RESULTS = {"predict", "transform", "distance", "score_samples", "outlier_probability"}


def results_of(path):
    """The rows and what the version that wrote the file said of them."""
    with np.load(path.with_name(f"{path.stem}-results.npz")) as file:
        return dict(file)


def frame(model, X):
    """The rows as the model knows them."""
    names = getattr(model, "feature_names_in_", None)
    return X if names is None else pd.DataFrame(X, columns=names)


def test_there_are_files_of_every_earlier_schema():
    schemas = {parse_header(read_members(path)[HEADER])["schema"] for path in FILES}
    assert schemas == set(range(1, SCHEMA))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_old_file_loads_and_gives_the_same_results(path):
    model, stored = load(path), results_of(path)
    np.testing.assert_array_equal(model.labels_, stored.pop("labels"))
    X = frame(model, stored.pop("X"))
    for name in RESULTS & set(stored):
        found = getattr(model, name)(X)
        assert found.dtype == stored[name].dtype
        # Sums may be formed in another order since then.
        tol = 1e-5 if found.dtype == np.float32 else 1e-12
        np.testing.assert_allclose(found, stored[name], rtol=tol, atol=tol, err_msg=name)
    np.testing.assert_array_equal(model.predict(X), stored["predict"])
    assert len(RESULTS & set(stored)) >= 4


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_an_old_file_did_not_know_is_said(path):
    model, stored = load(path), results_of(path)
    assert model.affine_ is (path.stem in AFFINE)
    assert "outlier" in model.summary()
    if "outlier_probability" not in stored:
        with pytest.raises(InputError, match="earlier version"):
            model.outlier_probability(frame(model, stored["X"]))


@pytest.mark.parametrize("path", BEFORE_CHOOSE, ids=lambda path: path.stem)
def test_an_old_model_has_only_the_chosen_subspace(path):
    with pytest.raises(InputError, match=r"which stored only the chosen subspace.*again"):
        load(path).choose(0)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_old_model_has_the_variances_that_it_showed_and_goes_on(path):
    model, X = load(path), results_of(path)["X"]
    if path.stem in AFFINE:  # those shown are of rows with a 1 more
        assert model._inlier_variances is None
    else:
        shown = model.evidence_["inlier_spectrum"]
        np.testing.assert_array_equal(np.sort(model._inlier_variances), shown)
    if not hasattr(model, "partial_fit"):
        return
    if hasattr(model, "_distance_record"):
        n_fitted = len(model.labels_)
        assert model.partial_fit(frame(model, X)).n_samples_seen_ == n_fitted + len(X)
    else:
        with pytest.raises(InputError, match=r"earlier version.*again"):
            model.partial_fit(frame(model, X))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_old_model_can_be_saved_again(path, tmp_path):
    save(load(path), tmp_path / "m.npz")
    model, again = load(path), load(tmp_path / "m.npz")
    X = frame(model, results_of(path)["X"])
    np.testing.assert_array_equal(model.score_samples(X), again.score_samples(X))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_old_model_has_a_score_or_says_why_not(path):
    model, X = load(path), results_of(path)["X"]
    if hasattr(model, "_distance_record") and not model.affine_:
        assert model.score(frame(model, X)) > 0
    else:
        with pytest.raises(InputError, match=r"earlier version.*score.*again"):
            model.score(frame(model, X))

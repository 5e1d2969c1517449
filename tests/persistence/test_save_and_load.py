"""Models come back from a file bit for bit."""

import io
import tracemalloc

import numpy as np
import pandas as pd
import pytest

import perpend
from model_files import (
    DATA,
    NEW,
    assert_equal,
    assert_same_model,
    assert_same_results,
    load_copy,
    npy_bytes,
)
from perpend import DPCP, _files
from perpend._files import writing
from perpend.estimator import METHODS
from perpend.exceptions import InputError
from perpend.persistence import load, save
from perpend.solvers.steps import GeometricStep

# -- there and back --------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::perpend.exceptions.CodimensionWarning")
@pytest.mark.parametrize("name", sorted(METHODS))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_method_gives_the_same_results_after_loading(name, dtype, tmp_path):
    X = DATA.X.astype(dtype)
    model = METHODS[name](random_state=0).fit(X)
    save(model, tmp_path / "m.npz")
    loaded = perpend.load(tmp_path / "m.npz")
    assert type(loaded) is type(model)
    assert_same_model(loaded, model)
    assert_same_results(loaded, model, NEW.astype(dtype))
    assert loaded.summary() == model.summary()


def test_saving_what_was_loaded_gives_the_same_file(path, tmp_path):
    save(load(path), tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == path.read_bytes()


def test_names_of_features_come_back(tmp_path):
    names = ["rot", "grün", "a,b", 'quote"', "naïve ", "f"]
    frame = pd.DataFrame(DATA.X, columns=names)
    model = DPCP(random_state=0).fit(frame).set_output(transform="pandas")
    model.save(tmp_path / "m.npz")
    loaded = load(tmp_path / "m.npz")
    assert_equal(loaded.feature_names_in_, model.feature_names_in_)
    pd.testing.assert_frame_equal(loaded.transform(frame), model.transform(frame))
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame.rename(columns={"f": "g"}))


def test_parameters_come_back(tmp_path):
    init = np.asfortranarray(np.random.default_rng(0).standard_normal((7, 6)))
    rule = GeometricStep(mu0=0.2, K0=80)
    model = DPCP(2, init=init, step=rule, threshold=0.25, max_iter=np.int64(900), tol=1e-8)
    model.fit(DATA.X).save(tmp_path / "m.npz")
    loaded = load(tmp_path / "m.npz")
    assert_same_model(loaded, model)
    assert loaded.init.flags.f_contiguous
    assert_same_results(loaded.fit(DATA.X), model, NEW)


def test_init_as_a_list(tmp_path):
    model = DPCP(init=np.eye(6).tolist()).fit(DATA.X)
    model.save(tmp_path / "m.npz")
    assert load(tmp_path / "m.npz").init == model.init


def test_callbacks_and_generators_are_left_behind(tmp_path):
    model = DPCP(random_state=np.random.default_rng(0), callback=lambda _: None).fit(DATA.X)
    model.save(tmp_path / "m.npz")
    loaded = load(tmp_path / "m.npz")
    assert loaded.random_state is None
    assert loaded.callback is None
    assert_same_results(loaded, model, NEW)


def test_no_subspace_is_a_result_too(tmp_path):
    X = np.random.default_rng(0).standard_normal((200, 4))
    with pytest.warns(UserWarning, match="codimension 0 is not sure"):
        model = DPCP(random_state=0).fit(X)
    model.save(tmp_path / "m.npz")
    loaded = load(tmp_path / "m.npz")
    assert loaded.normals_.shape == (0, 4)
    assert_same_results(loaded, model, X)


def test_scalars_that_json_does_not_know(fitted, tmp_path):
    model = load_copy(fitted, tmp_path)
    model.evidence_ = {"a": np.inf, "b": np.float32(0.1), "c": (1, [None, True]), "d": np.array(3)}
    save(model, tmp_path / "m.npz")
    assert_equal(load(tmp_path / "m.npz").evidence_, model.evidence_)


# -- what cannot be saved --------------------------------------------------------------------------


def test_an_unfitted_model_is_refused(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        save(DPCP(), tmp_path / "m.npz")
    assert not list(tmp_path.iterdir())


def test_an_object_that_cannot_be_stored_is_named(fitted, tmp_path):
    class MyRule(GeometricStep):
        pass

    model = load_copy(fitted, tmp_path)
    with pytest.raises(InputError, match=r"parameters\.step is of type MyRule.*set_params"):
        save(model.set_params(step=MyRule()), tmp_path / "m.npz")


# -- atomic writing --------------------------------------------------------------------------------


def test_a_failed_write_leaves_the_old_file(path, fitted, monkeypatch):
    before = path.read_bytes()

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_files.os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left on device") as caught:
        save(fitted, path)
    assert caught.value.filename == str(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_an_interruption_leaves_no_draft(tmp_path):
    def write():
        with writing(tmp_path / "a.txt") as stream:
            stream.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert not list(tmp_path.iterdir())


def test_a_missing_folder_is_named(fitted, tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        save(fitted, tmp_path / "nowhere" / "m.npz")
    assert caught.value.filename == str(tmp_path / "nowhere" / "m.npz")


ARRAYS = [np.eye(3)[:2], np.eye(3)[:2].T, np.ones((4, 4))[::2, ::2], np.zeros((0, 3)), 2.5, True]


@pytest.mark.parametrize("array", ARRAYS)
def test_arrays_are_written_as_numpy_does(array):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array), version=(1, 0))
    assert npy_bytes(np.asarray(array)) == stream.getvalue()


def test_saving_needs_no_copy_of_the_labels(tmp_path):
    model = DPCP(random_state=0).fit(DATA.X)
    model.labels_ = np.ones(2_000_000, int)
    tracemalloc.start()
    model.save(tmp_path / "model.npz")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < model.labels_.nbytes / 4
    np.testing.assert_array_equal(load(tmp_path / "model.npz").labels_, model.labels_)

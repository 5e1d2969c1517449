"""Models come back from a file bit for bit, and no file can do harm."""

import copy
import json
import zipfile

import numpy as np
import pandas as pd
import pytest

import perpend
from perpend import DPCP, persistence
from perpend.datasets import make_subspace
from perpend.estimator import METHODS
from perpend.exceptions import InputError, ModelFileError
from perpend.persistence import HEADER, load, save, writing
from perpend.solvers.steps import GeometricStep

DATA = make_subspace(80, 60, n_features=6, codimension=2, random_state=0)
NEW = make_subspace(30, 30, n_features=6, codimension=2, random_state=1).X


@pytest.fixture(scope="module")
def fitted():
    return DPCP(random_state=0).fit(DATA.X)


@pytest.fixture
def path(fitted, tmp_path):
    """A file with a good model."""
    file = tmp_path / "model.npz"
    fitted.save(file)
    return file


def assert_equal(a, b):
    """Equal in value and type, through arrays and containers."""
    assert type(a) is type(b), f"{type(a)} is not {type(b)}"
    if isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            assert_equal(a[key], b[key])
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    else:
        assert a == b


def assert_same_model(a, b):
    assert_equal(vars(a), {key: vars(b)[key] for key in vars(a)})
    assert set(vars(a)) == set(vars(b))


def assert_same_answers(a, b, X):
    answers = ("predict", "transform", "distance", "score_samples", "decision_function")
    for method in (*answers, "outlier_probability", "explain"):
        assert_equal(getattr(a, method)(X), getattr(b, method)(X))


# -- there and back --------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", sorted(METHODS))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_method_answers_the_same_after_loading(name, dtype, tmp_path):
    X = DATA.X.astype(dtype)
    model = METHODS[name](random_state=0).fit(X)
    save(model, tmp_path / "m.npz")
    loaded = perpend.load(tmp_path / "m.npz")
    assert type(loaded) is type(model)
    assert_same_model(loaded, model)
    assert_same_answers(loaded, model, NEW.astype(dtype))
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
    assert_same_answers(loaded.fit(DATA.X), model, NEW)


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
    assert_same_answers(loaded, model, NEW)


def test_no_subspace_is_an_answer_too(tmp_path):
    X = np.random.default_rng(0).standard_normal((200, 4))
    with pytest.warns(UserWarning, match="codimension 0 is not sure"):
        model = DPCP(random_state=0).fit(X)
    model.save(tmp_path / "m.npz")
    loaded = load(tmp_path / "m.npz")
    assert loaded.normals_.shape == (0, 4)
    assert_same_answers(loaded, model, X)


def test_scalars_that_json_does_not_know(fitted, tmp_path):
    model = load_copy(fitted, tmp_path)
    model.evidence_ = {"a": np.inf, "b": np.float32(0.1), "c": (1, [None, True]), "d": np.array(3)}
    save(model, tmp_path / "m.npz")
    assert_equal(load(tmp_path / "m.npz").evidence_, model.evidence_)


def load_copy(model, folder):
    save(model, folder / "copy.npz")
    return load(folder / "copy.npz")


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

    monkeypatch.setattr(persistence.os, "fsync", full_disk)
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


# -- files that cannot be trusted ------------------------------------------------------------------


def forge(path, *, header=None, members=None, sign=True, compression=zipfile.ZIP_STORED):
    """Rewrite a model file: `header` changes the header, `members` adds or replaces bytes."""
    with zipfile.ZipFile(path) as archive:
        content = {name.removesuffix(".npy"): archive.read(name) for name in archive.namelist()}
    head = json.loads(persistence._array(HEADER, content.pop(HEADER)).tobytes())
    content.update(members or {})
    if header is not None:
        header(head)
    if sign:
        named = {name: content.get(name, b"") for name in head["arrays"]}
        head["sha256"] = persistence._digest(head, named)
    text = np.frombuffer(json.dumps(head).encode(), np.uint8)
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("header.npy", persistence._npy_bytes(text))
        for name, data in content.items():
            archive.writestr(f"{name}.npy", data)


def refused(path, match):
    with pytest.raises(ModelFileError, match=match) as caught:
        load(path)
    assert str(path) in str(caught.value)


def test_forging_nothing_is_harmless(path, fitted):
    forge(path)
    assert_same_model(load(path), load_copy(fitted, path.parent))


def test_missing_file_and_folder(tmp_path):
    refused(tmp_path / "none.npz", "no such file")
    refused(tmp_path, "no such file")


@pytest.mark.parametrize("data", [b"", b"hello", b"PK\x03\x04" + bytes(100), b"PK\x05\x06" * 9])
def test_other_formats(tmp_path, data):
    (tmp_path / "m.npz").write_bytes(data)
    refused(tmp_path / "m.npz", "not a (readable )?model")


def test_an_archive_without_a_header(tmp_path):
    np.savez(tmp_path / "m.npz", X=np.ones(3))
    refused(tmp_path / "m.npz", "has no header")


def test_every_truncation_is_noticed(path):
    data = path.read_bytes()
    for length in np.linspace(0, len(data) - 1, 60).astype(int):
        path.write_bytes(data[:length])
        refused(path, "model")


def test_every_flipped_byte_is_noticed_or_harmless(path, fitted):
    """Some bytes mean nothing (dates, flags of the archive); none changes the model."""
    data = path.read_bytes()
    for position in np.random.default_rng(0).choice(len(data), 300, replace=False):
        broken = bytearray(data)
        broken[position] ^= 0x15
        path.write_bytes(broken)
        try:
            model = load(path)
        except ModelFileError:
            continue
        assert_same_model(model, load_copy(fitted, path.parent))


def test_damage_is_told_by_the_checksum(path):
    array = persistence._npy_bytes(np.zeros((2, 6)))
    forge(path, members={"attributes.normals_": array}, sign=False)
    refused(path, "checksum differs")
    forge(path, header=lambda head: head.update(perpend="9"), sign=False)
    refused(path, "checksum differs")


def test_a_file_from_before_affine_subspaces(path, fitted):
    def older(head):
        head.update(schema=1, perpend="0.1.0")
        del head["parameters"]["dict"]["affine"], head["attributes"]["dict"]["affine_"]

    forge(path, header=older)
    model = load(path)
    assert model.affine is False
    assert model.affine_ is False
    assert_same_answers(model, fitted, NEW)


def test_affine_is_true_or_false(path):
    forge(path, header=lambda head: head["attributes"]["dict"].update(affine_="yes"))
    refused(path, "affine_ is 'yes', not true or false")


def test_a_newer_schema_asks_for_an_upgrade(path):
    forge(path, header=lambda head: head.update(schema=3, perpend="7.0"), sign=False)
    refused(path, r"perpend 7\.0 in a newer form \(schema 3\).*Upgrade perpend")


@pytest.mark.parametrize("name", ["os.system", "SubspaceEstimator", "Popen", "", 5])
def test_only_methods_of_perpend_are_built(path, name):
    forge(path, header=lambda head: head.update({"class": name}))
    refused(path, "not a method of perpend")


def test_a_pickle_is_never_loaded(path, tmp_path):
    np.save(tmp_path / "evil.npy", np.array([print], dtype=object), allow_pickle=True)
    evil = (tmp_path / "evil.npy").read_bytes()
    forge(path, members={"attributes.labels_": evil})
    refused(path, "never loads a pickle")


def test_members_that_the_header_does_not_name(path):
    forge(path, members={"extra": persistence._npy_bytes(np.ones(2))})
    refused(path, "not those that the header names")
    forge(path, members={"../../escape": b""}, header=lambda head: head["arrays"].append("extra"))
    refused(path, "not those that the header names")


def test_twice_the_same_member(path):
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr("attributes.labels_.npy", b"")
    refused(path, "members that perpend does not write")


def test_a_file_that_expands_is_refused_unread(path):
    bomb = persistence._npy_bytes(np.zeros(10_000_000, np.uint8))
    forge(path, members={"attributes.labels_": bomb}, compression=zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 100_000
    refused(path, "is compressed")


def test_members_that_overlap_are_refused_unread(path):
    """The directory may name the same bytes many times."""
    with zipfile.ZipFile(path, "a") as archive:
        largest = max(archive.filelist, key=lambda info: info.file_size)
        for i in range(100):
            twin = copy.copy(largest)
            twin.filename = f"twin{i}.npy"
            archive.filelist.append(twin)
        archive._didModify = True
    refused(path, "declares more data than the file holds")


def test_an_array_that_declares_too_much(path):
    def npy(shape):
        header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
        return b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + header.encode()

    for shape in ((2**40, 6), (-2, -6), (-1,)):
        forge(path, members={"attributes.normals_": npy(shape)})
        refused(path, "not the size that it declares|readable")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("attributes.normals_", np.zeros((3, 6))),
        ("attributes.normals_", np.full((2, 6), np.nan)),
        ("attributes.components_", np.zeros((4, 5))),
        ("attributes.location_", np.zeros((1, 6))),
        ("attributes.directions_", np.zeros((16, 5))),
        ("attributes._outlier_odds.distance", np.ones(7)),
        ("attributes._outlier_odds.distance", np.linspace(0, 1, 256)),
        ("attributes._outlier_odds.distance", np.zeros(0)),
        ("attributes._outlier_odds.log_odds", np.full(256, np.nan)),
        ("attributes._outlier_odds.log_odds", np.linspace(1, 0, 256)),
        ("attributes._distance_record.edges", np.ones(1024)),
        ("attributes._distance_record.edges", np.zeros(0)),
        ("attributes._distance_record.counts", np.ones(7)),
        ("attributes._distance_record.counts", np.full(1024, -1.0)),
        ("attributes.history_.n_steps", np.ones(1, dtype=int)),
        ("attributes.history_.objective", np.ones(1)),
    ],
)
def test_arrays_that_do_not_fit_together(path, name, value):
    forge(path, members={name: persistence._npy_bytes(value)})
    refused(path, "does not fit|not finite|growing|readable|no counts|not as many")


def test_files_from_before_there_were_probabilities(path, fitted):
    def older(head):
        del head["attributes"]["dict"]["_outlier_odds"]
        head["arrays"] = [name for name in head["arrays"] if "_outlier_odds" not in name]

    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            if "_outlier_odds" not in name:
                archive.writestr(name, data)
    forge(path, header=older)
    loaded = load(path)
    assert_equal(loaded.predict(NEW), fitted.predict(NEW))
    assert_equal(loaded.explain(NEW), fitted.explain(NEW))
    with pytest.raises(InputError, match="earlier version"):
        loaded.outlier_probability(NEW)


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("codimension_", 3, "does not fit"),
        ("n_features_in_", "6", "readable|fit"),
        ("_n_features_out", 10**9, "does not fit"),
        ("threshold_", "low", "not a number"),
        ("threshold_", float("nan"), "not a number"),
        ("predict", 1, "would overwrite 'predict'"),
        ("__class__", 1, "would overwrite"),
        ("tol", 1.0, "would overwrite"),
        ("not a name", 1, "would overwrite"),
        ("_outlier_odds", {"dict": {"threshold": 1.0}}, "growing numbers"),
        ("_outlier_odds", 3, "growing numbers"),
        ("_distance_record", {"dict": {"edges": 1.0}}, "readable"),
        ("history_", {"dict": {}}, "readable"),
        ("history_", 3, "readable"),
        ("labels_", {"array": "nowhere"}, "readable"),
        ("labels_", {"unknown": 1}, "does not write"),
        ("labels_", [1, 2], "does not write"),
    ],
)
def test_attributes_that_make_no_sense(path, name, value, match):
    forge(path, header=lambda head: head["attributes"]["dict"].update({name: value}))
    refused(path, match)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_iter", "many"),
        ("no_such_parameter", 1),
        ("step", {"rule": "nowhere", "constants": {"dict": {}}}),
        ("step", {"rule": "auto", "constants": {"dict": {"__class__": 1}}}),
    ],
)
def test_parameters_that_make_no_sense(path, name, value):
    forge(path, header=lambda head: head["parameters"]["dict"].update({name: value}))
    refused(path, "not a readable model file")


@pytest.mark.parametrize("text", [b"[" * 100_000, b"{", b"[]", b"\xff", b"{}", b"1" * 10_000])
def test_a_header_that_is_not_one(path, text):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.npy", persistence._npy_bytes(np.frombuffer(text, np.uint8)))
    refused(path, "not a")

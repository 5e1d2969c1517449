"""No file can do harm: damaged and hostile ones are refused."""

import copy
import json
import zipfile

import numpy as np
import pytest

from model_files import (
    NEW,
    assert_equal,
    assert_same_model,
    assert_same_results,
    forge,
    load_copy,
    npy_bytes,
    refused,
)
from perpend.exceptions import InputError, ModelFileError
from perpend.persistence import archive, load

NUMBERS = ("objective_per_direction", "inlier_spectrum")
EVIDENCE = {"list": [{"array": f"attributes.evidence_.{name}"} for name in NUMBERS]}
ODDS = {name: {"array": f"attributes._outlier_odds.{name}"} for name in ("distance", "log_odds")}


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


def test_the_checksum_detects_damage(path):
    array = npy_bytes(np.zeros((2, 6)))
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
    assert_same_results(model, fitted, NEW)


def test_affine_is_true_or_false(path):
    forge(path, header=lambda head: head["attributes"]["dict"].update(affine_="yes"))
    refused(path, "affine_ is 'yes', not true or false")


@pytest.mark.parametrize("schema", [0, -1, True, 1.0, "2", None, [2]])
def test_schemas_that_never_were(path, schema):
    forge(path, header=lambda head: head.update(schema=schema))
    refused(path, "does not exist")


def test_a_newer_schema_asks_for_an_upgrade(path):
    forge(path, header=lambda head: head.update(schema=5, perpend="7.0"), sign=False)
    refused(path, r"perpend 7\.0 in a newer form \(schema 5\).*Upgrade perpend")


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
    forge(path, members={"extra": npy_bytes(np.ones(2))})
    refused(path, "not those that the header names")


@pytest.mark.parametrize("name", ["extra", "../../escape", "/etc/passwd", "C:\\x", "ü"])
def test_members_that_the_header_names_and_does_not_use(path, name):
    """A name is a name, never a path."""

    def changed(head):
        head["arrays"].append(name)

    forge(path, members={name: npy_bytes(np.ones(2))}, header=changed)
    refused(path, "does not use|not those that the header names")
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_twice_the_same_member(path):
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr("attributes.labels_.npy", b"")
    refused(path, "members that perpend does not write")


def test_a_file_that_expands_is_refused_unread(path):
    bomb = npy_bytes(np.zeros(10_000_000, np.uint8))
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
        refused(path, "not have the size that it declares|does not write")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("attributes.normals_", np.zeros((3, 6))),
        ("attributes.normals_", np.full((2, 6), np.nan)),
        ("attributes.components_", np.zeros((4, 5))),
        ("attributes.location_", np.zeros((1, 6))),
        ("attributes.directions_", np.zeros((16, 5))),
        ("attributes.normals_", np.ones((2, 6))),
        ("attributes.normals_", np.eye(2, 6, dtype=int)),
        ("attributes.normals_", np.eye(2, 6).astype("f2") * 1.01),
        ("attributes.normals_", np.diag([1, 1e300]) @ np.eye(2, 6)),
        ("attributes.components_", np.eye(4, 6)),  # a basis, but not orthogonal to the normals
        ("attributes.location_", np.full(6, 1e-3)),
        ("attributes.intercept_", np.array([0.0, 1e200])),
        ("attributes.singular_values_", np.zeros((16, 1))),
        ("attributes.labels_", np.zeros(140, dtype=int)),
        ("attributes.labels_", np.ones((140, 1), dtype=int)),
        ("attributes._inlier_variances", np.ones(5)),
        ("attributes._inlier_variances", np.full(6, np.inf)),
        ("attributes._inlier_variances", np.ones(6, dtype=int)),
        ("attributes._distance_record.edges", np.ones(1024)),
        ("attributes._distance_record.edges", np.zeros(0)),
        ("attributes._distance_record.counts", np.ones(7)),
        ("attributes._distance_record.counts", np.full(1024, -1.0)),
        ("attributes._distance_record.counts", np.full(1024, np.nan)),
        ("attributes._distance_record.norms", -np.ones(1)),
        ("attributes.history_.n_steps", np.array([-3])),
        ("attributes.history_.n_steps", np.ones(1, dtype=int)),
        ("attributes.history_.objective", np.ones(1)),
        ("attributes.history_.change", np.ones((2, 2))),
        ("attributes._outlier_odds.distance", np.ones(7)),
        ("attributes._outlier_odds.distance", np.linspace(0, 1, 256)),
        ("attributes._outlier_odds.distance", np.zeros(0)),
        ("attributes._outlier_odds.log_odds", np.full(256, np.nan)),
        ("attributes._outlier_odds.log_odds", np.linspace(1, 0, 256)),
    ],
)
def test_arrays_that_do_not_fit_together(path, name, value):
    forge(path, members={name: npy_bytes(value)})
    refused(
        path,
        "does not fit|do not fit|not finite|not orthonormal|not \\+1|growing|not add up|readable",
    )


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
        ("codimension_", 3, "do not fit"),
        ("codimension_", -2, "not a count"),
        ("codimension_", True, "not a count"),
        ("n_features_in_", "6", "not a count"),
        ("n_features_in_", 10**40, "do not fit"),
        ("n_starts_", 10**9, "does not fit"),
        ("_n_features_out", 10**9, "do not fit"),
        ("threshold_", "low", "not a number"),
        ("threshold_", {"float": "nan"}, "not a number"),
        ("threshold_", float("nan"), "holds NaN, which is not a number"),
        ("threshold_", {"float": "1_0"}, "does not write"),
        ("threshold_", 0.5, "offset_ do not fit"),
        ("confidence_", None, "not a number"),
        ("converged_", 1, "not true or false"),
        ("evidence_", EVIDENCE, "not a table"),
        ("doubts_", {"tuple": ["one", 2]}, "not all text"),
        ("_skl_callbacks", {"list": ["x"]}, "would overwrite"),
        ("_validate_params", 1, "would overwrite"),
        ("feature_names_in_", {"strings": ["a"] * 5, "dtype": "object"}, "does not fit"),
        ("feature_names_in_", {"strings": [1] * 6, "dtype": "object"}, "something else"),
        ("feature_names_in_", {"strings": ["a"] * 6, "dtype": "V"}, "does not write"),
        ("predict", 1, "would overwrite 'predict'"),
        ("__class__", 1, "would overwrite"),
        ("tol", 1.0, "would overwrite"),
        ("not a name", 1, "would overwrite"),
        ("_outlier_odds", {"dict": {**ODDS, "more": 1.0}}, "growing numbers"),
        ("_outlier_odds", {"list": list(ODDS.values())}, "growing numbers"),
        ("_outlier_odds", 3, "does not use"),
        ("unused_", ODDS["distance"], "readable"),  # twice the same array
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
        ("step", {"rule": "auto", "constants": {"list": []}}),
        ("callback", "print"),
        ("n_jobs", 0),
        ("init", {"rule": "auto", "constants": {"dict": {}}}),
    ],
)
def test_parameters_that_make_no_sense(path, name, value):
    forge(path, header=lambda head: head["parameters"]["dict"].update({name: value}))
    refused(path, "not a readable model file")


@pytest.mark.parametrize("text", [b"[" * 100_000, b"{", b"[]", b"\xff", b"{}", b"1" * 10_000])
def test_a_header_that_is_not_one(path, text):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.npy", npy_bytes(np.frombuffer(text, np.uint8)))
    refused(path, "not a")


def test_a_header_with_the_same_name_twice(path):
    text = b'{"format": "perpend model", "format": "perpend model"}'
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.npy", npy_bytes(np.frombuffer(text, np.uint8)))
    refused(path, "the same name twice")


def test_a_header_beyond_all_measure_is_refused_unread(path, fitted, monkeypatch):
    monkeypatch.setattr(archive, "LARGEST_HEADER", 1000)
    forge(path, header=lambda head: head.update(perpend="x" * 2000))
    refused(path, "header is larger than 1000 bytes")
    with pytest.raises(InputError, match="column names"):
        fitted.save(path)


@pytest.mark.parametrize("depth", [50, 990, 5000])
def test_a_header_of_absurd_depth(path, depth):
    value = {"array": "attributes.labels_"}
    text = json.dumps(value)
    for _ in range(depth):
        text = f'{{"list": [{text}]}}'
    nested = '"nested_": ' + text

    with zipfile.ZipFile(path) as file:
        content = {name: file.read(name) for name in file.namelist()}
    head = archive.parse_array("header", content["header.npy"]).tobytes()
    head = head.replace(b'"dict": {', b'"dict": {' + nested.encode() + b", ", 1)
    content["header.npy"] = npy_bytes(np.frombuffer(head, np.uint8))
    with zipfile.ZipFile(path, "w") as file:
        for name, data in content.items():
            file.writestr(name, data)
    refused(path, "readable|checksum differs")


@pytest.mark.parametrize(
    "description",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': ((((((((1,),),),),),),),), }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (2,), }",
        "{'descr': '<f8,<f8', 'fortran_order': False, 'shape': (2,), }",
        "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (2,), }",
        "{'descr': '|V16', 'fortran_order': False, 'shape': (2,), }",
        "{'descr': '<f7', 'fortran_order': False, 'shape': (2,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2L,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2, }",
        "__import__('os').system('true')",
        "",
    ],
)
def test_descriptions_that_numpy_does_not_write(path, description):
    text = description.encode().ljust(117) + b"\n"
    data = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(16)
    forge(path, members={"attributes.intercept_": data})
    refused(path, "does not write|never loads a pickle|readable|not the size")

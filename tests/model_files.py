"""Model files for the tests: written, forged, and compared bit for bit."""

import json
import zipfile
from functools import partial

import numpy as np

import helpers
from perpend.datasets import make_subspace
from perpend.exceptions import ModelFileError
from perpend.persistence import load, save
from perpend.persistence.archive import HEADER, digest, npy_parts, parse_array

DATA = make_subspace(80, 60, n_features=6, codimension=2, random_state=0)
LAYERS = np.random.default_rng(0).uniform(-1, 1, (200, 6)) * [10, 10, 10, 10, 10, 0.5]
LAYERS[:100, 5] *= 0.02  # a thin layer inside a thick one
NEW = make_subspace(30, 30, n_features=6, codimension=2, random_state=1).X


def assert_equal(a, b):
    """Equal in value and type, through arrays and containers."""
    assert type(a) is type(b), f"{type(a)} is not {type(b)}"
    if isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            assert_equal(a[key], b[key])
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            assert_equal(one, other)
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    else:
        assert a == b or (np.isnan(a) and np.isnan(b))


def assert_same_model(a, b):
    assert_equal(vars(a), {key: vars(b)[key] for key in vars(a)})
    assert set(vars(a)) == set(vars(b))


def assert_same_results(a, b, X):
    calls = ("predict", "transform", "distance", "score_samples", "decision_function")
    for method in (*calls, "outlier_probability", "explain"):
        assert_equal(getattr(a, method)(X), getattr(b, method)(X))


def load_copy(model, folder):
    save(model, folder / "copy.npz")
    return load(folder / "copy.npz")


def npy_bytes(array):
    """An array in the .npy format."""
    return b"".join(map(bytes, npy_parts(array)))


def forge(path, *, header=None, members=None, sign=True, compression=zipfile.ZIP_STORED):
    """Rewrite a model file: `header` changes the header, `members` adds or replaces bytes."""
    with zipfile.ZipFile(path) as archive:
        content = {name.removesuffix(".npy"): archive.read(name) for name in archive.namelist()}
    head = json.loads(parse_array(HEADER, content.pop(HEADER)).tobytes())
    content.update(members or {})
    if header is not None:
        header(head)
    if sign:
        named = {name: content.get(name, b"") for name in head["arrays"]}
        head["sha256"] = digest(head, named.values())
    text = np.frombuffer(json.dumps(head).encode(), np.uint8)
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("header.npy", npy_bytes(text))
        for name, data in content.items():
            archive.writestr(f"{name}.npy", data)


refused = partial(helpers.refused, error=ModelFileError, reader=load)
"""The model file is refused, with a message that names it."""

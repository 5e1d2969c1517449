"""Random damage and random lies: a file is refused, or the model in it works.

``PERPEND_FUZZ`` sets the number of examples of each test.
"""

import copy
import json
import os
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from model_files import DATA, LAYERS, NEW, npy_bytes
from perpend import DPCP
from perpend.exceptions import ModelFileError
from perpend.persistence import load
from perpend.persistence.archive import HEADER, digest, parse_header, read_members

EXAMPLES = int(os.environ.get("PERPEND_FUZZ", "60"))
fuzzed = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


class Good:
    """A good file: its bytes, header and members, and the results of its model."""

    def __init__(self, path, scores):
        self.path, self.scores = path, scores
        self.data = path.read_bytes()
        self.members = read_members(path)
        self.header = parse_header(self.members.pop(HEADER))


MODELS = {
    "given": (DPCP(3, step="mbls", threshold=0.2, random_state=0), DATA.X),
    "layers": (DPCP(affine=True, random_state=0), LAYERS),
}


@pytest.fixture(scope="module", params=MODELS)
def good(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("fuzz") / "model.npz"
    model, X = MODELS[request.param]
    model.fit(X).save(path)
    return Good(path, model.score_samples(NEW))


def write(path, header, members):
    """Write a file with a checksum that fits."""
    named = {name: members.get(name, b"") for name in header["arrays"] if isinstance(name, str)}
    header = {**header, "sha256": digest({**header, "arrays": list(named)}, named.values())}
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in {HEADER: npy_bytes(text), **members}.items():
            archive.writestr(f"{name}.npy", data)


def check_results(model):
    """Call everything; a model that was not refused must give sound results."""
    for i in range(len(getattr(model, "structures_", ()) if hasattr(model, "_others") else ())):
        check_result(model.choose(i))
    check_result(model)


def check_result(model):
    labels = model.predict(NEW)
    assert set(np.unique(labels)) <= {-1, 1}
    for method in ("transform", "distance", "score_samples", "explain"):
        assert np.all(np.isfinite(getattr(model, method)(NEW))), method
    p = model.outlier_probability(NEW)
    assert np.all((p >= 0) & (p <= 1))
    assert "confidence" in model.summary()


somewhere = st.integers(0, 10**6)


def one_of(choices, where):
    return choices[where % len(choices)]


# -- damage ----------------------------------------------------------------------------------------

edits = st.lists(
    st.tuples(
        st.sampled_from(["replace", "insert", "delete", "repeat"]),
        st.floats(0, 1),
        st.binary(min_size=1, max_size=8),
    ),
    min_size=1,
    max_size=4,
)


def damaged(data, changes):
    data = bytearray(data)
    for kind, where, new in changes:
        at = int(where * len(data))
        old = slice(at, at if kind == "insert" else at + len(new))
        data[old] = {"delete": b"", "repeat": bytes(data[old]) * 2}.get(kind, new)
    return bytes(data)


@fuzzed
@given(edits)
def test_damage_is_noticed_or_changes_nothing(good, changes):
    good.path.write_bytes(damaged(good.data, changes))
    try:
        model = load(good.path)
    except ModelFileError:
        return
    np.testing.assert_array_equal(model.score_samples(NEW), good.scores)


@fuzzed
@given(edits, somewhere)
def test_damaged_arrays_with_the_right_checksum(good, changes, where):
    name = one_of(sorted(good.members), where)
    members = {**good.members, name: damaged(good.members[name], changes)}
    write(good.path, good.header, members)
    try:
        model = load(good.path)
    except ModelFileError:
        return
    check_results(model)


# -- lies ------------------------------------------------------------------------------------------

leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.integers(-3, 12)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["auto", "inf", "nan", "attributes.normals_", "DPCP", "RSGM"])
)
lies = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["dict", "list", "tuple", "float", "array", "scalar", "rule", "x"]),
            inner,
            max_size=2,
        )
    ),
    max_leaves=6,
)


def places(value, path=()):
    """All the ways into a tree of JSON."""
    yield path
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(item, (*path, key))


def placed(tree, path, value):
    *way, last = path
    tree = copy.deepcopy(tree)
    at = tree
    for key in way:
        at = at[key]
    at[last] = value
    return tree


@fuzzed
@given(lies, somewhere)
def test_a_lie_in_the_header_is_refused_or_does_no_harm(good, lie, where):
    # A device that is not here is no lie of the file: the model says so when it is used.
    ways = [way for way in places(good.header) if way and way[-1] not in ("sha256", "device")]
    ways = [way for way in ways if way[0] != "arrays"]
    write(good.path, placed(good.header, one_of(ways, where), lie), good.members)
    try:
        model = load(good.path)
    except ModelFileError:
        return
    check_results(model)

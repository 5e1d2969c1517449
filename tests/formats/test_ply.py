import struct

import numpy as np
import pytest
from hypothesis import given

from helpers import refused
from perpend.formats import read, write_labelled
from scene_files import QUICK, SEEDS, damage, in_records, some_labels, survives

trimesh = pytest.importorskip("trimesh", reason="trimesh is not installed")

FORMATS = ["ascii", "binary_little_endian", "binary_big_endian"]
TYPES = {"char": "b", "uchar": "B", "short": "h", "ushort": "H", "int": "i", "uint": "I"}
TYPES |= {"float": "f", "double": "d"}
POINTS = [(0.5 * i, i * i - 3.25, 1.0 / (i + 1)) for i in range(6)]
FACES = [(0, 1, 2), (1, 2, 3, 4), ()]
TRIANGLES = [(0, 1, 2), (1, 2, 3)]


def packed(kind, types, values):
    """One row of numbers, as text or as bytes."""
    if kind == "ascii":
        return (" ".join(map(repr, values)) + "\n").encode()
    order = "<" if "little" in kind else ">"
    return struct.pack(order + "".join(TYPES[t] for t in types), *values)


def ply(path, kind="ascii", properties=("float x", "float y", "float z"), rows=POINTS, **kwargs):
    """Ten lines that write a PLY, faces before or after the points."""
    n, faces, first = kwargs.get("n", len(rows)), kwargs.get("faces", ()), kwargs.get("first")
    points = [f"element vertex {n}", *(f"property {p}" for p in properties)]
    lists = (
        [f"element face {len(faces)}", "property list uchar int vertex_indices"] if faces else []
    )
    middle = lists + points if first else points + lists
    head = ["ply", f"format {kind} 1.0", "comment made by hand", *middle, "end_header", ""]
    body = b"".join(packed(kind, [p.split()[0] for p in properties], row) for row in rows)
    mesh = b"".join(
        packed(kind, ["uchar"] + ["int"] * len(face), [len(face), *face]) for face in faces
    )
    path.write_bytes("\n".join(head).encode() + (mesh + body if first else body + mesh))
    return path


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("faces", [(), FACES])
@pytest.mark.parametrize("kind", FORMATS)
def test_points_before_or_after_faces(tmp_path, kind, faces, first):
    path = ply(tmp_path / "cloud.ply", kind, faces=faces, first=first)
    dataset = read(path)
    assert dataset.kind == "cloud"
    assert dataset.shape == (6,)
    assert dataset.columns == ("x", "y", "z")
    assert dataset.stored_dtype == "float32"
    assert dataset.X.dtype == (np.float64 if kind == "ascii" else np.float32)
    np.testing.assert_allclose(dataset.X, POINTS, rtol=1e-7)
    assert dataset.X.flags.c_contiguous
    assert dataset.X.flags.aligned


@pytest.mark.parametrize("kind", FORMATS)
def test_fields_of_all_types(tmp_path, kind):
    types = list(TYPES)
    rows = [[i + j for j in range(len(types))] for i in range(5)]
    path = ply(tmp_path / "cloud.ply", kind, [f"{t} of_{t}" for t in types], rows)
    wanted = [f"of_{t}" for t in reversed(types)]
    dataset = read(path, columns=wanted)
    assert dataset.columns == tuple(wanted)
    np.testing.assert_array_equal(dataset.X, np.array(rows)[:, ::-1])
    refused(path, 'has no column "x". Its columns: "of_char"')


@pytest.mark.parametrize("encoding", ["ascii", "binary"])
@pytest.mark.parametrize("colours", [False, True])
def test_reads_what_trimesh_writes(tmp_path, encoding, colours):
    mesh = trimesh.creation.icosphere(subdivisions=2)
    if colours:
        mesh.visual.vertex_colors = np.arange(4 * len(mesh.vertices)).reshape(-1, 4) % 256
    path = tmp_path / "mesh.ply"
    path.write_bytes(trimesh.exchange.ply.export_ply(mesh, encoding=encoding))
    np.testing.assert_allclose(read(path).X, mesh.vertices, rtol=1e-6, atol=1e-7)
    if colours:
        red = read(path, columns=["red"]).X[:, 0]
        np.testing.assert_array_equal(red, mesh.visual.vertex_colors[:, 0])


def test_doubles_and_text_keep_coordinates_far_from_the_origin(tmp_path):
    rows = [(500000.123, 4649776.224, 123.456), (500000.124, 4649776.225, 123.457)]
    doubles = ["double x", "double y", "double z"]
    for name, kind, properties in [
        ("a", "binary_little_endian", doubles),
        ("b", "ascii", doubles),
        ("c", "ascii", ["float x", "float y", "float z"]),
    ]:
        dataset = read(ply(tmp_path / f"{name}.ply", kind, properties, rows))
        np.testing.assert_array_equal(dataset.X, rows)


@pytest.mark.parametrize("kind", FORMATS)
def test_points_that_are_nowhere_are_left_out(tmp_path, kind):
    rows = [(1, 2, 3), (float("nan"), 0, 0), (0, 0, 0), (4, float("inf"), 6)]
    dataset = read(ply(tmp_path / "cloud.ply", kind, rows=rows))
    np.testing.assert_array_equal(dataset.positions, [0, 2])
    np.testing.assert_array_equal(dataset.X, [rows[0], rows[2]])
    assert dataset.counts[:3] == (2, 0, 1)
    assert dataset.shape == (4,)
    path = ply(tmp_path / "none.ply", kind, rows=[(float("nan"),) * 3])
    refused(path, "all of its 1 points have a NaN")


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("kind", FORMATS)
def test_the_labels_are_three_more_properties_of_the_mesh(tmp_path, kind, first):
    properties = ["double x", "double y", "double z", "uchar distance"]
    rows = [(*point, i) for i, point in enumerate(POINTS)]
    rows[2] = (float("nan"), 0.0, 0.0, 7)
    path = ply(tmp_path / "cloud.ply", kind, properties, rows, faces=TRIANGLES, first=first)
    dataset = read(path)
    labelled = some_labels(dataset)
    out = write_labelled(dataset, labelled, tmp_path / "out")
    assert out.name == "cloud-labelled.ply"
    names = ["distance", "perpend_distance", "probability", "inlier"]
    old, *new = np.array(_fields(out, names)).T
    np.testing.assert_array_equal(old, [0, 1, 7, 3, 4, 5])
    np.testing.assert_array_equal(new[2], in_records(dataset, labelled.labels == 1, 255))
    for column, values in zip(new, labelled[1:], strict=False):
        expected = in_records(dataset, values, np.nan).astype("f4")
        np.testing.assert_array_equal(column.astype("f4"), expected)
    np.testing.assert_array_equal(read(out).X, dataset.X)
    assert b"comment made by hand" in out.read_bytes()
    if not first:  # the faces stand behind the points, byte for byte
        mesh = b"".join(packed(kind, ["uchar"] + ["int"] * len(f), [len(f), *f]) for f in TRIANGLES)
        assert out.read_bytes().endswith(mesh)


def _fields(path, names):
    """Fields as trimesh reads them, NaN and all."""
    with path.open("rb") as stream:
        loaded = trimesh.exchange.ply.load_ply(stream)
    data = loaded["metadata"]["_ply_raw"]["vertex"]["data"]
    return list(zip(*(np.ravel(data[name]).tolist() for name in names), strict=True))


def test_a_file_that_has_changed_is_refused(tmp_path):
    path = ply(tmp_path / "cloud.ply")
    dataset = read(path)
    ply(path, rows=POINTS[:3])
    with pytest.raises(ValueError, match=r"cloud.ply: has changed since it was read"):
        write_labelled(dataset, some_labels(dataset), tmp_path / "out")


GOOD = "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nend_header\n1\n"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("ply\n", "PLY!\n"), 'does not begin with a line "ply"'),
        (("end_header\n", ""), 'no line "end_header"'),
        (("end_header\n1\n", "end_header"), 'no line "end_header"'),
        (("ascii", "binary_middle_endian"), 'line 2: cannot read "format binary_middle'),
        (("1.0", "2.0"), 'line 2: cannot read "format ascii 2.0"'),
        (("format ascii 1.0\n", ""), "line 2: cannot read"),
        (("vertex 1", "vertex -1"), 'line 3: cannot read "element vertex -1"'),
        (("vertex 1", "vertex 1e6"), "line 3: cannot read"),
        (("vertex 1", "vertex 0"), "declares no points"),
        (("vertex 1", "point 1"), 'declares 0 elements "vertex"'),
        (("vertex 1", "vertex 999999999999999"), "at least 2.0 PB, but holds 2 bytes"),
        (("float x", "quad x"), 'line 4: cannot read the property "quad x"'),
        (("float x", "list uchar int x"), "points hold lists"),
        (("float x", "float x\nproperty int x"), "the same name"),
        (
            ("float x\n", "float x\nelement a 1\nproperty list float int q\n"),
            "length of type float",
        ),
        (("\n1\n", "\none\n"), "could not convert string 'one' to float64 at row 0, column 1"),
        (("\n1\n", "\n1 2\n"), "1 lines of 2 numbers, but its header says 1 of 1"),
        (("\n1\n", "\n\n"), "has 0 lines|declares 1 points"),
    ],
)
def test_headers_that_do_not_fit(tmp_path, change, message):
    assert change[0] in GOOD
    path = tmp_path / "cloud.ply"
    path.write_text(GOOD.replace(*change), encoding="utf-8")
    refused(path, message, columns=["x"])


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("first", [False, True])
def test_cut_anywhere(tmp_path, kind, first):
    path = ply(tmp_path / "cloud.ply", kind, faces=FACES[:2], first=first)
    good = path.read_bytes()
    last = packed(kind, ["float"] * 3, POINTS[-1])
    # text may lose digits of the last number without anybody noticing
    end = good.index(last) + (last.rindex(b" ") + 1 if kind == "ascii" else len(last))
    for length in range(end):
        path.write_bytes(good[:length])
        assert survives(path) is None, length


def test_a_list_that_lies_about_its_length(tmp_path):
    path = ply(tmp_path / "cloud.ply", "binary_little_endian", faces=FACES, first=True)
    good = path.read_bytes()
    at = good.index(b"end_header\n") + 11
    path.write_bytes(good[:at] + b"\xff" + good[at + 1 :])
    refused(path, "ends before its points|ends within its points")


def test_more_points_than_the_header_counts(tmp_path):
    path = ply(tmp_path / "cloud.ply", "binary_little_endian", n=5)
    refused(path, r"declares 5 points \(60 bytes\) but holds 72 bytes")


def test_too_large_for_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("perpend.formats._checks.memory_limit", lambda: 10)
    for kind in FORMATS:
        refused(ply(tmp_path / "cloud.ply", kind), "bytes of memory")


@pytest.mark.parametrize("kind", FORMATS)
@QUICK
@given(SEEDS)
def test_damaged(tmp_path, kind, seed):
    path = ply(tmp_path / "cloud.ply", kind, faces=FACES, first=seed % 2)
    rng = np.random.default_rng(seed)
    path.write_bytes(damage(path.read_bytes(), rng, focus=250))
    survives(path)

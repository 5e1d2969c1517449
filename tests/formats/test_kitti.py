import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from helpers import refused
from perpend.formats import read, write_labelled
from scene_files import QUICK, SEEDS, damage, in_records, some_labels, survives


def scan(path, n=50, seed=0):
    """A scan as KITTI's own tools write it: float32, nothing else."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(-60, 60, (n, 4)).astype(np.float32)
    points[:, 3] = rng.uniform(0, 1, n)
    points.tofile(path)
    return points


def test_points_as_written(tmp_path):
    points = scan(tmp_path / "000001.bin")
    dataset = read(tmp_path / "000001.bin")
    assert dataset.kind == "cloud"
    assert dataset.shape == (50,)
    assert dataset.columns == ("x", "y", "z")
    assert dataset.X.dtype == np.float32
    assert dataset.X.flags.c_contiguous
    np.testing.assert_array_equal(dataset.X, points[:, :3])


def test_reflectance_on_request(tmp_path):
    points = scan(tmp_path / "a.bin")
    dataset = read(tmp_path / "a.bin", columns=["reflectance", "x"])
    np.testing.assert_array_equal(dataset.X, points[:, [3, 0]])
    refused(tmp_path / "a.bin", 'no column "intensity".*"reflectance"', columns=["intensity"])


def test_the_labels_are_a_ply_in_the_order_of_the_scan(tmp_path):
    points = scan(tmp_path / "a.bin")
    points[[3, 9], 1] = np.nan
    points[5, :3] = 0
    points.tofile(tmp_path / "a.bin")
    dataset = read(tmp_path / "a.bin")
    assert dataset.counts[:3] == (2, 0, 1)
    labelled = some_labels(dataset)
    out = write_labelled(dataset, labelled, tmp_path / "out")
    assert out.name == "a-labelled.ply"
    data = out.read_bytes()
    body = data[data.index(b"end_header\n") + 11 :]
    names = [line.split()[-1] for line in data[: -len(body)].decode().splitlines()[3:-1]]
    types = {"inlier": "u1"}
    cloud = np.frombuffer(body, [(name, types.get(name, "<f4")) for name in names])
    assert names == ["x", "y", "z", "reflectance", "distance", "probability", "inlier"]
    for j, name in enumerate(names[:4]):
        np.testing.assert_array_equal(cloud[name], points[:, j])
    expected = in_records(dataset, labelled.labels == 1, 255)
    np.testing.assert_array_equal(cloud["inlier"], expected)
    expected = in_records(dataset, labelled.distance, np.nan).astype("f4")
    np.testing.assert_array_equal(cloud["distance"], expected)


@pytest.mark.parametrize(
    "other",
    [
        np.arange(400, dtype="<f8"),
        np.arange(400, dtype="<i4"),
        np.arange(400, dtype=">f4"),
        np.full(400, 1e9, "<f4"),
        np.full(400, np.nan, "<f4"),
        np.zeros(400, "<f4"),
        np.tile(np.float32([1, 2, 3, -7]), 100),
        np.frombuffer(b"perpend is not a scan, but text." * 40, "u1"),
        np.frombuffer(np.random.default_rng(0).bytes(1600), "u1"),
    ],
)
def test_other_things_that_end_in_bin(tmp_path, other):
    other.tofile(tmp_path / "a.bin")
    refused(tmp_path / "a.bin", "does not look like a KITTI scan")


def test_cut(tmp_path):
    scan(tmp_path / "a.bin")
    good = (tmp_path / "a.bin").read_bytes()
    for length in [1, 4, 15, 17, len(good) - 1]:
        (tmp_path / "a.bin").write_bytes(good[:length])
        refused(tmp_path / "a.bin", "not a whole number of points")


def test_too_large_for_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("perpend.formats._checks.memory_limit", lambda: 10)
    scan(tmp_path / "a.bin")
    refused(tmp_path / "a.bin", "needs 600 bytes of memory")


@QUICK
@given(SEEDS)
def test_damaged(tmp_path, seed):
    scan(tmp_path / "a.bin")
    path = tmp_path / "a.bin"
    path.write_bytes(damage(path.read_bytes(), np.random.default_rng(seed), focus=800))
    survives(path)


@pytest.mark.skipif("PERPEND_DATA" not in os.environ, reason="PERPEND_DATA names no folder")
def test_a_real_scan(tmp_path):
    files = sorted((Path(os.environ["PERPEND_DATA"]) / "kitti_roadplane").glob("*.npz"))
    assert files
    for file in files:
        points = np.load(file)["points"]
        np.column_stack([points, np.full(len(points), 0.3, np.float32)]).tofile(tmp_path / "a.bin")
        np.testing.assert_array_equal(read(tmp_path / "a.bin").X, points)

import sys

import numpy as np
import pytest
from hypothesis import given

from helpers import refused
from perpend.exceptions import MissingExtraError
from perpend.formats import read, write_labelled
from scene_files import QUICK, SEEDS, damage, some_labels, survives

laspy = pytest.importorskip("laspy", reason="laspy is not installed")
lazrs = pytest.importorskip("lazrs", reason="lazrs is not installed")

UTM = np.array([500000.0, 4649776.0, 100.0])


def scan(path, n=60, version="1.4", point_format=6, seed=0):
    """A scan of laspy's own making, near the origin of nothing."""
    rng = np.random.default_rng(seed)
    header = laspy.LasHeader(version=version, point_format=point_format)
    header.scales, header.offsets = np.full(3, 0.001), UTM
    header.add_extra_dim(laspy.ExtraBytesParams("echo", "float32"))
    header.add_extra_dim(laspy.ExtraBytesParams("normal", "3f8"))
    las = laspy.LasData(header)
    las.xyz = UTM + rng.integers(-(10**5), 10**5, (n, 3)) / 1000
    las.intensity = rng.integers(0, 2**16, n)
    las.classification = rng.integers(0, 20, n)
    las.echo = rng.uniform(0, 1, n)
    las.write(path)
    return las


@pytest.mark.parametrize("suffix", [".las", ".laz"])
@pytest.mark.parametrize(
    ("version", "point_format"), [("1.2", 0), ("1.2", 3), ("1.3", 1), ("1.4", 6), ("1.4", 7)]
)
def test_reads_what_laspy_writes(tmp_path, suffix, version, point_format):
    path = tmp_path / f"a{suffix}"
    las = scan(path, version=version, point_format=point_format)
    dataset = read(path)
    assert dataset.kind == "cloud"
    assert dataset.format == "las"
    assert dataset.shape == (60,)
    assert dataset.columns == ("x", "y", "z")
    assert dataset.stored_dtype == "int32 scaled"
    assert dataset.X.dtype == np.float64
    np.testing.assert_array_equal(dataset.X, np.asarray(las.xyz))


@pytest.mark.parametrize("suffix", [".las", ".laz"])
def test_other_dimensions_on_request(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    las = scan(path)
    dataset = read(path, columns=["z", "intensity", "echo", "classification"])
    expected = [las.z, las.intensity, las.echo, las.classification]
    np.testing.assert_array_equal(dataset.X, np.stack([np.asarray(c, float) for c in expected], 1))
    refused(path, 'no column "normal".*"x", "y", "z"', columns=["normal"])


def test_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("perpend.formats._las.ROWS", 7)
    for suffix in (".las", ".laz"):
        las = scan(tmp_path / f"a{suffix}")
        dataset = read(tmp_path / f"a{suffix}")
        np.testing.assert_array_equal(dataset.X, np.asarray(las.xyz))
        labelled = some_labels(dataset)
        out = laspy.read(write_labelled(dataset, labelled, tmp_path / "out"))
        np.testing.assert_array_equal(out.inlier, labelled.labels == 1)


@pytest.mark.parametrize("suffix", [".las", ".laz"])
@pytest.mark.parametrize(("version", "point_format"), [("1.2", 3), ("1.4", 6)])
def test_the_labels_are_three_more_dimensions_of_the_scan(tmp_path, suffix, version, point_format):
    path = tmp_path / f"a{suffix}"
    las = scan(path, version=version, point_format=point_format)
    dataset = read(path)
    labelled = some_labels(dataset)
    out = write_labelled(dataset, labelled, tmp_path / "out")
    assert out == tmp_path / "out" / f"a-labelled{suffix}"
    with laspy.open(out) as reader:
        assert reader.header.are_points_compressed == (suffix == ".laz")
        back = reader.read()
    np.testing.assert_array_equal(back.inlier, labelled.labels == 1)
    np.testing.assert_array_equal(back.distance, labelled.distance.astype("f4"))
    np.testing.assert_array_equal(back.probability, labelled.probability.astype("f4"))
    for name in las.point_format.dimension_names:
        np.testing.assert_array_equal(back[name], las[name])
    np.testing.assert_array_equal(back.header.scales, las.header.scales)
    np.testing.assert_array_equal(read(out).X, dataset.X)
    again = write_labelled(read(out), labelled, tmp_path / "again")  # the names are taken by now
    assert "perpend_inlier" in laspy.read(again).point_format.dimension_names


def test_coordinate_system_and_records_behind_the_points_stay(tmp_path):
    path = tmp_path / "a.las"
    las = scan(path)
    wkt = laspy.vlrs.known.WktCoordinateSystemVlr('PROJCS["UTM"]')
    las.header.vlrs.append(wkt)
    las.evlrs = laspy.vlrs.vlrlist.VLRList([laspy.VLR("me", 7, "note", b"behind")])
    las.write(path)
    dataset = read(path)
    back = laspy.read(write_labelled(dataset, some_labels(dataset), tmp_path / "out"))
    assert back.vlrs.get("WktCoordinateSystemVlr")[0].string.startswith("PROJCS")
    assert back.evlrs[0].record_data == b"behind"


def changed(path, at, *values):
    data = bytearray(path.read_bytes())
    data[at : at + len(values)] = bytes(values)
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("suffix", [".las", ".laz"])
@pytest.mark.parametrize(
    ("at", "values", "message"),
    [
        (0, b"LAZF", "does not begin with LASF"),
        (24, b"\x02", "LAS version 2.4"),
        (25, b"\x09", "LAS version 1.9"),
        (94, b"\x10\x00", "header is too short"),
        (96, b"\xff\xff\xff\xff", "do not fit between the header and the points"),
        (100, b"\xff\xff\xff\xff", "do not fit between the header and the points"),
        (105, b"\x00\x00", "declares no points"),
        (105, b"\x05\x00", "cannot be read as a laser scan|Cut-off copy"),
        (243, b"\xff\xff\xff\xff", "records behind the points do not fit"),
        (247, b"\x00" * 8, "declares no points"),
        (247, b"\xff" * 8, "declares 1844.* but holds|would expand to"),
        (247, b"\x00\x00\x01\x00", "declares 65536 points|blocks do not hold 65536 points"),
    ],
)
def test_headers_that_do_not_fit(tmp_path, suffix, at, values, message):
    path = tmp_path / f"a{suffix}"
    scan(path)
    changed(path, at, *values)
    refused(path, message)


def test_compressed_blocks_that_are_not_there(tmp_path):
    path = tmp_path / "a.laz"
    scan(path)
    good = path.read_bytes()
    offset = int.from_bytes(good[96:100], "little")
    table = int.from_bytes(good[offset : offset + 8], "little")
    changed(path, offset, *(0xFF for _ in range(7)), 0x7F)
    refused(path, "no table of its blocks")
    path.write_bytes(good)
    changed(path, table + 4, 0xFF, 0xFF, 0xFF, 0xFF)
    refused(path, "4294967295 blocks do not fit")


def test_layers_that_lie_about_their_length(tmp_path):
    path = tmp_path / "a.laz"
    scan(path)
    good = path.read_bytes()
    offset, point = int.from_bytes(good[96:100], "little"), int.from_bytes(good[105:107], "little")
    for layer in range(9):  # the decompressor would take 4 GB for it
        path.write_bytes(good)
        changed(path, offset + 8 + point + 4 + 4 * layer, 0xFE, 0xFF, 0xFF, 0xFF)
        refused(path, "layers of its blocks do not fit")


@pytest.mark.parametrize("point_format", [3, 6])
def test_several_compressed_blocks(tmp_path, point_format):
    las = scan(tmp_path / "a.laz", n=120_000, version="1.4", point_format=point_format)
    np.testing.assert_array_equal(read(tmp_path / "a.laz").X, np.asarray(las.xyz))


def test_compressed_blocks_of_different_sizes(tmp_path):
    path = tmp_path / "a.laz"
    las = scan(path)
    good = path.read_bytes()
    offset = int.from_bytes(good[96:100], "little")
    with laspy.open(path) as reader:
        old = reader.header.vlrs.get("LasZipVlr")[0].record_data
    vlr = lazrs.LazVlr.new_for_compression(6, las.point_format.size - 30, True)
    raw = las.points.memoryview().tobytes()
    cut = 17 * las.point_format.size
    with path.open("w+b") as stream:
        stream.write(good[:offset].replace(bytes(old), vlr.record_data()))
        packer = lazrs.LasZipCompressor(stream, vlr)
        packer.compress_many(np.frombuffer(raw[:cut], "u1"))
        packer.finish_current_chunk()
        packer.compress_many(np.frombuffer(raw[cut:], "u1"))
        packer.done()
    np.testing.assert_array_equal(read(path).X, np.asarray(las.xyz))
    changed(path, 247, 61)
    refused(path, "its 2 blocks do not hold 61 points")


@pytest.mark.parametrize("suffix", [".las", ".laz"])
def test_cut_anywhere(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    scan(path, n=20)
    good = path.read_bytes()
    for length in [*range(0, len(good) - 20, 13), *range(len(good) - 20, len(good))]:
        path.write_bytes(good[:length])
        assert survives(path) is None, length


def test_scales_that_are_no_numbers(tmp_path):
    path = tmp_path / "a.las"
    scan(path)
    changed(path, 131, *np.float64(np.nan).tobytes())
    refused(path, "all of its 60 points have a NaN")


@pytest.mark.parametrize(("suffix", "package"), [(".las", "laspy"), (".laz", "lazrs")])
def test_missing_package(tmp_path, monkeypatch, suffix, package):
    path = tmp_path / f"a{suffix}"
    scan(path)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError) as caught:
        read(path)
    line = f'reading {suffix} needs {package}. Run: pip install "perpend[pointcloud]"'
    assert str(caught.value) == line


@pytest.mark.parametrize("suffix", [".las", ".laz"])
@QUICK
@given(SEEDS)
def test_damaged(tmp_path, suffix, seed):
    path = tmp_path / f"a{suffix}"
    good = tmp_path / f"good{suffix}"
    if not good.exists():
        scan(good, n=20)
    path.write_bytes(damage(good.read_bytes(), np.random.default_rng(seed), focus=700))
    survives(path)

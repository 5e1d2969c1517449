import numpy as np
import pytest
from hypothesis import given

from helpers import refused
from perpend.exceptions import InputError
from perpend.formats import read, write_labelled
from scene_files import QUICK, SEEDS, damage, in_records, some_labels, survives

spectral = pytest.importorskip("spectral", reason="spectral is not installed")
envi = pytest.importorskip("spectral.io.envi")

LINES, SAMPLES, BANDS = 5, 4, 3
SCENE = np.arange(LINES * SAMPLES * BANDS).reshape(LINES, SAMPLES, BANDS) + 1
HEADER = """ENVI
samples = 4
lines = 5
bands = 3
header offset = 0
data type = 4
interleave = bip
byte order = 0
"""
MAP = "map info = {UTM, 1, 1, 500000.0, 4100000.0, 30.0, 30.0, 11, North, WGS-84}"
CRS = 'coordinate system string = {PROJCS["UTM_Zone_11N",GEOGCS["GCS_WGS_1984"]]}'


def scene(folder, header=HEADER, raw=None, name="cube", suffix=".img"):
    """A header as it is given, and the raw file of SCENE in float32 by default."""
    (folder / f"{name}.hdr").write_text(header, encoding="utf-8")
    raw = SCENE.astype("<f4").tobytes() if raw is None else raw
    (folder / f"{name}{suffix}").write_bytes(raw)
    return folder / f"{name}.hdr"


@pytest.mark.parametrize("interleave", ["bsq", "bil", "bip"])
@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("dtype", ["u1", "i2", "i4", "f4", "f8", "u2", "u4", "i8", "u8"])
def test_reads_what_spectral_writes(tmp_path, dtype, order, interleave):
    path = tmp_path / "cube.hdr"
    envi.save_image(
        str(path), SCENE.astype(dtype), dtype=dtype, byteorder=order, interleave=interleave
    )
    dataset = read(path)
    assert dataset.kind == "image"
    assert dataset.format == "envi"
    assert dataset.shape == (LINES, SAMPLES)
    assert dataset.stored_dtype == np.dtype(dtype).name
    assert dataset.X.dtype == (np.float32 if dtype == "f4" else np.float64)
    np.testing.assert_array_equal(dataset.X, SCENE.reshape(-1, BANDS))
    np.testing.assert_array_equal(dataset.X, envi.open(str(path)).load().reshape(-1, BANDS))
    assert dataset.columns == ("band 1", "band 2", "band 3")
    assert dataset.positions is None


@pytest.mark.parametrize("interleave", ["bsq", "bip"])
def test_floats_stay_on_disk(tmp_path, interleave):
    path = tmp_path / "cube.hdr"
    envi.save_image(str(path), SCENE.astype("f4"), dtype="f4", interleave=interleave)
    X = read(path).X
    while X.base is not None and not isinstance(X, np.memmap):
        X = X.base
    assert isinstance(X, np.memmap)


def test_the_raw_file_or_the_header_with_either_kind_of_name(tmp_path):
    path = scene(tmp_path)
    expected = read(path).X
    np.testing.assert_array_equal(read(path.with_suffix(".img")).X, expected)
    path.rename(tmp_path / "cube.img.HDR")
    np.testing.assert_array_equal(read(tmp_path / "cube.img").X, expected)
    np.testing.assert_array_equal(read(tmp_path / "cube.img.HDR").X, expected)
    (tmp_path / "cube.img").rename(tmp_path / "cube")
    (tmp_path / "cube.img.HDR").rename(tmp_path / "cube.hdr")
    np.testing.assert_array_equal(read(tmp_path / "cube.hdr").X, expected)


def test_header_offset_and_odd_spelling(tmp_path):
    header = HEADER.replace("header offset = 0", "Header   Offset=7").replace("bands =", "BANDS=")
    header = header.replace("\n", "\r\n") + "; comment = 3\r\nnonsense\r\n"
    raw = b"skipped" + SCENE.astype("<f4").tobytes()
    dataset = read(scene(tmp_path, header, raw))
    np.testing.assert_array_equal(dataset.X, SCENE.reshape(-1, BANDS))
    assert dataset.X.flags.aligned


def test_bad_bands_are_left_out_and_listed(tmp_path):
    header = HEADER + "band names = {red,\n green, far\n red}\nbbl = {1,\n 0, 1.0}\n"
    dataset = read(scene(tmp_path, header))
    assert dataset.columns == ("red", "far red")
    assert dataset.counts.dropped_columns == ("green",)
    np.testing.assert_array_equal(dataset.X, SCENE.reshape(-1, BANDS)[:, [0, 2]])


def test_a_bad_band_may_be_chosen(tmp_path):
    header = HEADER + "wavelength units = Nanometers\nwavelength = {412.5, 500, 610}\nbbl={1,0,1}\n"
    dataset = read(scene(tmp_path, header), columns=["610 nm", "500 nm"])
    assert dataset.columns == ("610 nm", "500 nm")
    assert dataset.counts.dropped_columns == ()
    np.testing.assert_array_equal(dataset.X, SCENE.reshape(-1, BANDS)[:, [2, 1]])
    refused(tmp_path / "cube.hdr", 'no column "red".*"412.5 nm"', columns=["red"])


@pytest.mark.parametrize("interleave", ["bsq", "bil", "bip"])
def test_ignore_value(tmp_path, interleave):
    cube = SCENE.astype("f4")
    cube[0, 1] = cube[3, 2] = -9999  # no data
    cube[1, 1, 0] = -9999  # partly
    cube[2, 2, 1] = np.nan
    cube[4, 0] = 0
    path = tmp_path / "cube.hdr"
    envi.save_image(str(path), cube, interleave=interleave, metadata={"data ignore value": "-9999"})
    dataset = read(path)
    left_out = [0 * SAMPLES + 1, 3 * SAMPLES + 2, 2 * SAMPLES + 2]
    kept = [i for i in range(LINES * SAMPLES) if i not in left_out]
    assert dataset.counts == (1, 2, 1, (), 1)
    np.testing.assert_array_equal(dataset.positions, kept)
    np.testing.assert_array_equal(dataset.X, cube.reshape(-1, BANDS)[kept])


def test_ignore_value_counts_only_bands_that_are_kept(tmp_path):
    cube = SCENE.astype("<f4")
    cube[0, 0, :2] = -1
    header = HEADER + "bbl = {1, 1, 0}\ndata ignore value = -1\n"
    dataset = read(scene(tmp_path, header, cube.tobytes()))
    assert dataset.counts.ignored == 1
    assert dataset.positions[0] == 1


def test_the_labels_are_a_georeferenced_classification(tmp_path):
    cube = SCENE.astype("f4")
    cube[1, 2] = 0
    header = HEADER + f"data ignore value = 0\n{MAP}\n{CRS}\n"
    dataset = read(scene(tmp_path, header, cube.tobytes()))
    labelled = some_labels(dataset)
    out = write_labelled(dataset, labelled, tmp_path / "out")
    assert out == tmp_path / "out" / "cube-labelled.hdr"
    mask = envi.open(str(out))
    classes = np.where(labelled.labels == 1, 1, 2)
    expected = in_records(dataset, classes, 0).reshape(LINES, SAMPLES)
    np.testing.assert_array_equal(mask.read_band(0), expected)
    assert mask.metadata["class names"] == ["no data", "inlier", "outlier"]
    assert mask.metadata["file type"] == "ENVI Classification"
    assert mask.metadata["map info"][3:5] == ["500000.0", "4100000.0"]
    assert 'PROJCS["UTM_Zone_11N"' in ",".join(mask.metadata["coordinate system string"])
    values = envi.open(str(tmp_path / "out" / "cube-labelled-distance.hdr"))
    for band, column in enumerate([labelled.distance, labelled.probability]):
        expected = in_records(dataset, column, np.nan).reshape(LINES, SAMPLES)
        np.testing.assert_array_equal(values.read_band(band), expected.astype("f4"))
    assert read(out).shape == dataset.shape  # and we read our own


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("ENVI", "RIFF"), "does not begin with the word ENVI"),
        (("samples = 4\n", ""), "no line 'samples = ...'"),
        (("data type = 4\n", ""), "no line 'data type = ...'"),
        (("bands = 3", "bands = three"), 'bands = "three" is not a count'),
        (("bands = 3", "bands = -3"), 'bands = "-3" is not a count'),
        (("bands = 3", "bands = 0"), "bands is 0, so there are no values"),
        (("bands = 3", "bands = 4"), r"says 320 bytes but cube.img is 240 bytes \(cut-off copy"),
        (("bands = 3", "bands = 2"), r"says 160 bytes but cube.img is 240 bytes \(wrong"),
        (("bands = 3", "bands = 999999999"), "at most 1048576"),
        (("lines = 5", "lines = 999999999999999"), "says 48.0 PB but cube.img is 240 bytes"),
        (("header offset = 0", "header offset = 1"), "says 241 bytes"),
        (("data type = 4", "data type = 6"), "complex numbers"),
        (("data type = 4", "data type = 9"), "complex numbers"),
        (("data type = 4", "data type = 7"), "'data type = 7' is unknown"),
        (("byte order = 0", "byte order = 2"), "neither 0"),
        (("interleave = bip", "interleave = tiles"), "not one of bsq, bil, bip"),
        (("interleave = bip", "bbl = {1, 0}"), "'bbl' has 2 entries for 3 bands"),
        (("interleave = bip", "bbl = {0, 0, 0}"), "every band as bad"),
        (("interleave = bip", "bbl = {1, x, 0}"), 'bbl: "x" is not a number'),
        (("interleave = bip", "band names = {a, b"), 'braces of "band names" are not closed'),
        (("interleave = bip", "data ignore value = none"), '"none" is not a number'),
        (("interleave = bip", "file compression = 1"), "compressed"),
        (("interleave = bip", "file type = ENVI Spectral Library"), "library of spectra"),
        (("interleave = bip", "major frame offsets = {8, 0}"), "not supported"),
    ],
)
def test_headers_that_do_not_fit(tmp_path, change, message):
    assert change[0] in HEADER
    refused(scene(tmp_path, HEADER.replace(*change)), message)


def test_sizes_that_differ_by_little_are_given_in_bytes(tmp_path):
    header = HEADER.replace("lines = 5", "lines = 50000")
    raw = np.zeros(50000 * SAMPLES * BANDS, "<f4").tobytes()[:-4]
    refused(scene(tmp_path, header, raw), "says 2400000 bytes but cube.img is 2399996 bytes")


def test_a_scene_needs_both_files(tmp_path):
    path = scene(tmp_path)
    (tmp_path / "other.raw").write_bytes(b"1234")
    refused(tmp_path / "other.raw", "no header other.hdr beside it")
    (tmp_path / "cube.img").rename(tmp_path / "elsewhere.img")
    refused(path, "no raw file beside it")
    for name in ("cube.img", "cube.dat"):
        (tmp_path / name).write_bytes(SCENE.astype("<f4").tobytes())
    refused(path, 'may belong to "cube.dat", "cube.img"')
    np.testing.assert_array_equal(read(tmp_path / "cube.dat").X, SCENE.reshape(-1, BANDS))


def test_nothing_but_no_data(tmp_path):
    header = HEADER + "data ignore value = 0\n"
    raw = np.zeros(SCENE.size, "<f4").tobytes()
    refused(scene(tmp_path, header, raw), "no pixel has data: 20 of 20 are marked as no data")


def test_too_large_for_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("perpend.formats._checks.memory_limit", lambda: 100)
    path = scene(tmp_path, HEADER.replace("interleave = bip", "interleave = bil"))
    refused(path, "needs 240 bytes of memory", error=InputError)


def test_variable_is_refused(tmp_path):
    refused(scene(tmp_path), "no variable", variable="x")


@QUICK
@given(SEEDS)
def test_damaged_headers(tmp_path, seed):
    extra = f"bbl = {{1,0,1}}\nband names = {{a, b, c}}\ndata ignore value = 3\n{MAP}\n"
    path = scene(tmp_path)
    good = (HEADER + extra).encode()
    path.write_bytes(damage(good, np.random.default_rng(seed), len(good)))
    survives(path)

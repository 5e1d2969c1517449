import gc
import logging
import sys
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given

from helpers import refused
from perpend.exceptions import InputError, MissingExtraError
from perpend.formats import open_blocks, read, write_labelled
from scene_files import QUICK, SEEDS, damage, in_records, some_labels, survives

rasterio = pytest.importorskip("rasterio", reason="rasterio is not installed")
tifffile = pytest.importorskip("tifffile", reason="tifffile is not installed")

pytestmark = pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
HEIGHT, WIDTH, BANDS = 5, 4, 3
SCENE = np.arange(HEIGHT * WIDTH * BANDS).reshape(HEIGHT, WIDTH, BANDS) + 1
PIXELS = SCENE.reshape(-1, BANDS)
UTM = {"crs": "EPSG:32611", "transform": (30.0, 0, 500000, 0, -30.0, 4100000)}
TYPES = ["uint8", "uint16", "int16", "uint32", "int32", "float32", "float64"]


@pytest.fixture(params=["rasterio", "tifffile"])
def library(request, monkeypatch):
    """Read by rasterio, and again as if it were not installed."""
    if request.param == "tifffile":
        monkeypatch.setitem(sys.modules, "rasterio", None)
    return request.param


def geotiff(path, cube=SCENE, dtype="float32", **profile):
    """A file of rasterio's own making."""
    transform = rasterio.Affine(*UTM["transform"])
    profile = {"driver": "GTiff", "crs": UTM["crs"], "transform": transform} | profile
    height, width, bands = cube.shape
    with rasterio.open(
        path, "w", height=height, width=width, count=bands, dtype=dtype, **profile
    ) as file:
        file.write(np.moveaxis(cube, -1, 0).astype(dtype))
    return path


@pytest.mark.parametrize("interleave", ["pixel", "band"])
@pytest.mark.parametrize("dtype", TYPES)
def test_reads_what_rasterio_writes(tmp_path, library, dtype, interleave):
    path = geotiff(tmp_path / "a.tif", dtype=dtype, interleave=interleave)
    dataset = read(path)
    assert dataset.kind == "image"
    assert dataset.format == "geotiff"
    assert dataset.shape == (HEIGHT, WIDTH)
    assert dataset.stored_dtype == dtype
    assert dataset.columns == ("band 1", "band 2", "band 3")
    assert dataset.X.dtype == (np.float32 if dtype == "float32" else np.float64)
    np.testing.assert_array_equal(dataset.X, PIXELS)
    assert dataset.origin.library == library


@pytest.mark.parametrize(
    ("order", "bigtiff"), [("<", False), (">", False), ("<", True), (">", True)]
)
@pytest.mark.parametrize("planar", ["contig", "separate"])
@pytest.mark.parametrize("dtype", ["uint16", "float32"])
@pytest.mark.usefixtures("library")
def test_reads_what_tifffile_writes(tmp_path, planar, order, bigtiff, dtype):
    cube = SCENE if planar == "contig" else np.moveaxis(SCENE, -1, 0)
    tifffile.imwrite(
        tmp_path / "a.tiff",
        cube.astype(dtype),
        photometric="minisblack",
        planarconfig=planar,
        byteorder=order,
        bigtiff=bigtiff,
    )
    np.testing.assert_array_equal(read(tmp_path / "a.tiff").X, PIXELS)


@pytest.mark.parametrize("compress", ["deflate", "lzw", "zstd"])
@pytest.mark.parametrize("tiled", [False, True])
def test_compressed(tmp_path, compress, tiled):
    cube = np.random.default_rng(0).integers(0, 99, (70, 50, 2))
    blocks = {"tiled": True, "blockxsize": 16, "blockysize": 32} if tiled else {}
    path = geotiff(tmp_path / "a.tif", cube, "int16", compress=compress, **blocks)
    np.testing.assert_array_equal(read(path).X, cube.reshape(-1, 2))


def test_compression_beyond_tifffile_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rasterio", None)
    monkeypatch.setitem(sys.modules, "imagecodecs", None)
    path = geotiff(tmp_path / "a.tif", compress="lzw")
    with pytest.raises(MissingExtraError) as caught:
        read(path)
    assert 'needs rasterio. Run: pip install "perpend[geo]"' in str(caught.value)


def test_strips_that_are_declared_but_not_listed(monkeypatch):
    """Found by damage at random: eleven million strips of one bit a pixel, filled one by one."""
    monkeypatch.setitem(sys.modules, "rasterio", None)
    with pytest.raises(InputError, match="declares 11426312 strips or tiles but lists 1"):
        read(Path(__file__).parent / "found" / "tifffile-17474.tif")


def test_missing_package(tmp_path, monkeypatch):
    path = geotiff(tmp_path / "a.tif")
    monkeypatch.setitem(sys.modules, "rasterio", None)
    monkeypatch.setitem(sys.modules, "tifffile", None)
    with pytest.raises(MissingExtraError) as caught:
        read(path)
    assert str(caught.value) == 'reading .tif needs tifffile. Run: pip install "perpend[images]"'


def test_rows_in_several_strips(tmp_path, monkeypatch):
    monkeypatch.setattr("perpend.formats._tiff.STRIP", 100)
    cube = np.random.default_rng(0).normal(size=(37, 8, 3))
    path = geotiff(tmp_path / "a.tif", cube, "float64", blockysize=4)
    np.testing.assert_array_equal(read(path).X, cube.reshape(-1, 3))


def test_pages_are_bands(tmp_path, library):
    stack = np.moveaxis(SCENE, -1, 0).astype("u2")
    tifffile.imwrite(tmp_path / "a.tif", stack, photometric="minisblack")
    dataset = read(tmp_path / "a.tif")
    assert dataset.columns == ("page 1", "page 2", "page 3")
    np.testing.assert_array_equal(dataset.X, PIXELS)
    dataset = read(tmp_path / "a.tif", columns=["page 3", "page 1"])
    np.testing.assert_array_equal(dataset.X, PIXELS[:, [2, 0]])
    np.testing.assert_array_equal(read(tmp_path / "a.tif", variable="2").X, PIXELS[:, [1]])
    refused(tmp_path / "a.tif", 'no page "4", only 1 to 3', variable="4")


def test_pages_that_differ_must_be_chosen(tmp_path, library):
    with tifffile.TiffWriter(tmp_path / "a.tif") as file:
        file.write(SCENE.astype("u2"), photometric="minisblack", planarconfig="contig")
        file.write(np.ones((7, 6), "u2"), photometric="minisblack")
    refused(tmp_path / "a.tif", r'pages differ.*"1" \(5 x 4 x 3\), "2" \(7 x 6 x 1\)')
    np.testing.assert_array_equal(read(tmp_path / "a.tif", variable="1").X, PIXELS)


def test_previews_are_skipped(tmp_path, library):
    cube = np.random.default_rng(0).integers(0, 99, (64, 64, 2))
    path = geotiff(tmp_path / "a.tif", cube, "uint8")
    with rasterio.open(path, "r+") as file:
        file.build_overviews([2, 4])
    np.testing.assert_array_equal(read(path).X, cube.reshape(-1, 2))


def test_band_names(tmp_path):
    path = geotiff(tmp_path / "a.tif")
    with rasterio.open(path, "r+") as file:
        file.set_band_description(2, "green")
    assert read(path).columns == ("band 1", "green", "band 3")
    np.testing.assert_array_equal(read(path, columns=["green"]).X, PIXELS[:, [1]])


def test_nodata_value(tmp_path, library):
    cube = SCENE.astype(float)
    cube[0, 1] = cube[3, 2] = -9999
    cube[1, 1, 0] = -9999
    cube[2, 2, 1] = np.nan
    path = geotiff(tmp_path / "a.tif", cube, nodata=-9999)
    dataset = read(path)
    left_out = [1, 3 * WIDTH + 2, 2 * WIDTH + 2]
    kept = [i for i in range(HEIGHT * WIDTH) if i not in left_out]
    assert dataset.counts == (1, 2, 0, (), 1)
    np.testing.assert_array_equal(dataset.positions, kept)
    np.testing.assert_array_equal(dataset.X, cube.reshape(-1, BANDS)[kept])


def test_internal_mask(tmp_path):
    shown = np.ones((HEIGHT, WIDTH), bool)
    shown[2, 1] = shown[4, 3] = False
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True):
        path = geotiff(tmp_path / "a.tif")
        with rasterio.open(path, "r+") as file:
            file.write_mask(shown)
    dataset = read(path)
    assert dataset.counts.ignored == 2
    np.testing.assert_array_equal(dataset.positions, np.flatnonzero(shown))


def test_transparent_pixels(tmp_path, library):
    alpha = np.full((HEIGHT, WIDTH, 1), 255)
    alpha[1, 1] = 0
    cube = np.concatenate([SCENE, alpha], axis=-1)
    path = geotiff(tmp_path / "a.tif", cube, "uint8", photometric="rgb", ALPHA="YES")
    dataset = read(path)
    assert dataset.X.shape == (HEIGHT * WIDTH - 1, BANDS)
    assert dataset.counts.dropped_columns == ("alpha",)
    assert dataset.counts.ignored == 1


def test_the_labels_are_a_mask_in_the_same_place(tmp_path, library):
    cube = SCENE.astype(float)
    cube[1, 2] = -1
    dataset = read(geotiff(tmp_path / "a.tif", cube, nodata=-1))
    labelled = some_labels(dataset)
    out = write_labelled(dataset, labelled, tmp_path / "out")
    assert out == tmp_path / "out" / "a-labelled.tif"
    with rasterio.open(out) as file:
        assert file.crs == rasterio.crs.CRS.from_string(UTM["crs"])
        assert file.transform == rasterio.Affine(*UTM["transform"])
        assert file.nodata == 255
        expected = in_records(dataset, labelled.labels == 1, 255).reshape(HEIGHT, WIDTH)
        np.testing.assert_array_equal(file.read(1), expected)
    with rasterio.open(tmp_path / "out" / "a-labelled-distance.tif") as file:
        assert file.crs == rasterio.crs.CRS.from_string(UTM["crs"])
        assert np.isnan(file.nodata)
        for band, values in enumerate(labelled[1:], start=1):
            expected = in_records(dataset, values, np.nan).astype("f4").reshape(HEIGHT, WIDTH)
            np.testing.assert_array_equal(file.read(band), expected)
    assert read(out).counts.ignored == 1  # and we read our own


def test_the_labels_of_a_plain_tiff(tmp_path, library):
    tifffile.imwrite(tmp_path / "a.tif", np.arange(20, dtype="u2").reshape(4, 5))
    dataset = read(tmp_path / "a.tif")
    labelled = some_labels(dataset)
    out = write_labelled(dataset, labelled, tmp_path / "out")
    expected = (labelled.labels == 1).reshape(4, 5)
    np.testing.assert_array_equal(tifffile.imread(out), expected)


def test_ground_control_points_stay(tmp_path):
    corners = [(row, column) for row in (0, 4) for column in (0, 3)]
    points = [rasterio.control.GroundControlPoint(r, c, x=10 + c, y=20 - r) for r, c in corners]
    path = tmp_path / "a.tif"
    geotiff(path, gcps=points, transform=None)
    dataset = read(path)
    out = write_labelled(dataset, some_labels(dataset), tmp_path / "out")
    with rasterio.open(out) as file:
        assert [(p.row, p.col, p.x, p.y) for p in file.gcps[0]] == [
            (p.row, p.col, p.x, p.y) for p in points
        ]


def test_refused(tmp_path, library):
    path = tmp_path / "a.tif"
    path.write_bytes(b"not a TIFF at all")
    refused(path, "does not begin like a TIFF file")
    geotiff(path, dtype="complex64")
    refused(path, '"complex64", not real numbers')
    geotiff(path, SCENE[..., :1] * 0, nodata=0)
    refused(path, "no pixel has data: 20 of 20")
    geotiff(path)
    refused(path, 'no column "red"', columns=["red"])


def test_a_scene_that_stays_open_changes_nothing_else(tmp_path, library, monkeypatch):
    monkeypatch.setattr("perpend.formats._tiff.STRIP", 1)  # a line at a time
    logger = logging.getLogger(library)

    def settings():
        return warnings.filters[:], logger.level, rasterio.env.hasenv()

    path, before = geotiff(tmp_path / "a.tif", blockysize=1), settings()
    scenes = [open_blocks(path) for _ in range(2)]
    for start in range(0, 3 * WIDTH, WIDTH):  # in turns, and not to the end
        for scene in scenes:
            np.testing.assert_array_equal(
                scene.read(start, start + WIDTH), PIXELS[start : start + WIDTH]
            )
            assert settings() == before
    scenes.clear()
    gc.collect()
    assert settings() == before


def test_absurd_sizes_in_a_small_file(tmp_path, library):
    path = tmp_path / "a.tif"
    big = {"height": 100_000, "width": 100_000, "count": 1, "dtype": "float64"}
    for more in ({"compress": "deflate"}, {"compress": "deflate", "tiled": True}, {}):
        with rasterio.open(path, "w", driver="GTiff", sparse_ok=True, bigtiff=True, **big, **more):
            pass
        refused(path, "would expand to 80.0 GB|cut-off copy, or sparse|not a readable TIFF")


@pytest.mark.parametrize("compress", [None, "deflate"])
def test_cut_anywhere(tmp_path, library, compress):
    cube = np.random.default_rng(0).normal(size=(16, 9, 3))
    path = geotiff(tmp_path / "a.tif", cube, **({"compress": compress} if compress else {}))
    good = path.read_bytes()
    for length in [*range(0, len(good), 29), *range(len(good) - 9, len(good))]:
        path.write_bytes(good[:length])
        assert survives(path) is None, length


@pytest.mark.parametrize("by", ["rasterio", "tifffile"])
@QUICK
@given(SEEDS)
@example(1751)  # an error of GDAL that is none of rasterio's
def test_damaged(tmp_path, by, seed):
    good = tmp_path / "good.tif"
    if not good.exists():
        cube = np.random.default_rng(0).normal(size=(16, 9, 3))
        geotiff(good, cube, compress="deflate", nodata=3)
    path = tmp_path / "a.tif"
    path.write_bytes(damage(good.read_bytes(), np.random.default_rng(seed), focus=600))
    with pytest.MonkeyPatch.context() as patch:
        if by == "tifffile":
            patch.setitem(sys.modules, "rasterio", None)
        with suppress(MissingExtraError):  # the damage may name another compression
            survives(path)

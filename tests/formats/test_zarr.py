import json
import sys
import zlib

import numpy as np
import pytest

from helpers import refused
from perpend.exceptions import MissingExtraError, TooLargeError
from perpend.formats import Labelled, read, write_labelled
from perpend.formats._packed import NO_BOUND, of_blosc, of_lz4, of_zlib, of_zstd

zarr = pytest.importorskip("zarr")
numcodecs = pytest.importorskip("numcodecs")
pytestmark = pytest.mark.filterwarnings("ignore:.*not part in the Zarr format 3:UserWarning")

X = np.random.default_rng(0).random((50, 7))
SCENE = np.random.default_rng(1).integers(0, 999, (6, 5, 4)).astype("u2")
PACKERS = {
    2: [
        None,
        "auto",
        *(numcodecs.get_codec({"id": i}) for i in ["blosc", "gzip", "lz4", "zlib", "zstd"]),
    ],
    3: [
        *(None, "auto", zarr.codecs.BloscCodec(), zarr.codecs.GzipCodec()),
        zarr.codecs.ZstdCodec(level=19, checksum=True),
    ],
}


def write(path, data=X, version=3, name="group/x", **kwargs):
    if path.suffix == ".zip":
        store = zarr.storage.ZipStore(path, mode="w")
    else:
        store = zarr.storage.LocalStore(path)
    group = zarr.open_group(store, mode="w", zarr_format=version)
    group.create_array(name, data=np.asarray(data), **kwargs)
    store.close()
    return path


def metadata(path, version, name="group/x"):
    return path / name / ("zarr.json" if version == 3 else ".zarray")


def edit(path, version, **changes):
    """Change what an array says of itself."""
    file = metadata(path, version)
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


@pytest.mark.parametrize("suffix", [".zarr", ".zip"])
@pytest.mark.parametrize(
    ("version", "packer"),
    [(version, packer) for version, packers in PACKERS.items() for packer in packers],
    ids=lambda value: str(value) if isinstance(value, int | str) else type(value).__name__,
)
def test_what_zarr_writes_is_read(tmp_path, suffix, version, packer):
    path = write(tmp_path / f"x{suffix}", version=version, chunks=(20, 4), compressors=packer)
    data = read(path)
    assert (data.format, data.kind, data.shape) == ("zarr", "table", (50,))
    np.testing.assert_array_equal(data.X, X)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("dtype", ["f4", ">f4", "f2", "i8", "u2", "?"])
def test_dtypes(tmp_path, version, dtype):
    array = (10 * X).astype(dtype)
    data = read(write(tmp_path / "x.zarr", array, version))
    assert data.X.dtype == (np.float32 if data.stored_dtype == "float32" else np.float64)
    np.testing.assert_array_equal(data.X, array.astype(float))


@pytest.mark.parametrize("version", [2, 3])
def test_an_image_beside_others(tmp_path, version):
    path = write(tmp_path / "x.zarr", SCENE, version, chunks=(4, 4, 4))
    group = zarr.open_group(path, mode="r+")
    group.create_array("mask", data=SCENE[:, :, 0])
    group.create_array("waves", data=np.ones(4))
    data = read(path)
    assert (data.kind, data.shape) == ("image", (6, 5))
    np.testing.assert_array_equal(data.X, SCENE.reshape(30, 4))
    np.testing.assert_array_equal(read(path, variable="/mask/").X, SCENE[:, :, 0])
    refused(path, r'no array "q".*"group/x" \(6, 5, 4\), "mask" \(6, 5\)', variable="q")


def test_an_array_without_a_group_filters_and_fortran_order(tmp_path):
    zarr.create_array(
        tmp_path / "x.zarr", data=(9 * X).astype("i4"), zarr_format=2, order="F",
        filters=[numcodecs.Delta("i4")], compressors=numcodecs.Zlib(),
    )  # fmt: skip
    np.testing.assert_array_equal(read(tmp_path / "x.zarr").X, (9 * X).astype("i4"))


def test_missing_chunks_hold_the_fill_value(tmp_path):
    array = zarr.create_array(
        tmp_path / "x.zarr", shape=(40, 6), chunks=(9, 4), dtype="f4", fill_value=7
    )
    array[10:20, :2] = 1
    expected = array[...]
    assert {1, 7} == set(expected.flat)
    np.testing.assert_array_equal(read(tmp_path / "x.zarr").X, expected)


# --- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ([2**40, 7], "chunks, but 1 files are stored. Is it incomplete"),
        ([-3, 7], "no values|impossible|cannot be read|not a readable"),
        ([50, 7, 1, 1], "declares an impossible shape"),
        (["50", 7], "declares an impossible shape"),
        ("50", "declares an impossible shape"),
        (None, "its metadata cannot be read"),
        ([0, 7], "so there are no values"),
    ],
)
def test_shapes_that_lie(tmp_path, version, shape, message):
    path = write(tmp_path / "x.zarr", version=version, chunks=(50, 7))
    edit(path, version, shape=shape)
    refused(path, message)


def test_sizes_that_lie(tmp_path):
    path = write(tmp_path / "x.zarr", np.zeros((9000, 1000)), chunks=(1000, 1000))
    refused(path, "would expand to 72.0 MB, more than 100 times as much")
    path = write(tmp_path / "y.zarr", version=2, chunks=(50, 7))
    edit(path, 2, chunks=[2**14, 2**14])
    refused(path, "would expand to 2.1 GB")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dtype": "|O"}, "holds records or Python objects"),
        ({"dtype": [["a", "<f8"]]}, "holds records or Python objects"),
        ({"dtype": "<c8"}, '"complex64", not real numbers'),
        ({"filters": [{"id": "pickle"}]}, 'is compressed in an unknown way ."pickle", "blosc'),
        ({"compressor": {"id": "pickle", "protocol": 5}}, 'unknown way ."pickle".'),
        ({"filters": [{"id": "zlib"}]}, 'unknown way ."zlib", "blosc'),
        ({"compressor": {"id": "bz2"}}, 'unknown way ."bz2".'),
        ({"filters": 3}, "its metadata cannot be read"),
    ],
)
def test_pickles_and_stacks_of_packers(tmp_path, changes, message):
    path = write(tmp_path / "x.zarr", version=2)
    edit(path, 2, **changes)
    refused(path, message)


def test_shards_and_odd_types_of_zarr_3(tmp_path):
    refused(
        write(tmp_path / "x.zarr", chunks=(5, 7), shards=(25, 7)), "unknown way .*sharding_indexed"
    )
    path = write(tmp_path / "y.zarr")
    edit(path, 3, data_type={"name": "struct"})
    refused(path, "holds values of type")
    edit(path, 3, data_type="string")
    refused(path, "cannot be read|not real numbers")


@pytest.mark.parametrize(
    ("packer", "bomb"),
    [
        (numcodecs.Zlib(), zlib.compress(bytes(1 << 24))),
        (numcodecs.Zstd(), numcodecs.Zstd().encode(bytes(1 << 24))),
        (numcodecs.LZ4(), numcodecs.LZ4().encode(bytes(1 << 24))),
        (numcodecs.Blosc(), numcodecs.Blosc().encode(bytes(1 << 24))),
    ],
    ids=lambda value: getattr(value, "codec_id", ""),
)
def test_chunks_that_become_more_than_they_say(tmp_path, packer, bomb):
    path = write(tmp_path / "x.zarr", version=2, chunks=(50, 7), compressors=packer)
    (path / "group/x/0.0").write_bytes(bomb)
    refused(path, 'chunk "group/x/0.0" would become larger than declared')


def test_damaged_metadata_and_chunks(tmp_path):
    path = write(tmp_path / "x.zarr", chunks=(50, 7))
    chunk = path / "group/x/c/0/0"
    chunk.write_bytes(chunk.read_bytes()[:-5])
    refused(path, "chunk .* would become larger|not a readable Zarr store")
    for content in (b"", b"{", b"[" * 10**5, b"[1]", b'{"node_type": "array"}', b"\xff"):
        metadata(path, 3).write_bytes(content)
        refused(path, "metadata cannot be read|no array in this store|not a readable")


def test_folders_that_are_no_stores(tmp_path):
    (tmp_path / "x.zarr").mkdir()
    refused(tmp_path / "x.zarr", "there is no array in this store")
    refused(tmp_path / "none.zarr", "no such file")
    (tmp_path / "y.zip").write_bytes(b"junk")
    refused(tmp_path / "y.zip", "not a readable Zarr store")
    path = write(tmp_path / "z.zarr")
    (path / "link").symlink_to(tmp_path)
    refused(path, '"link" is a link or not a regular file')


def test_a_zip_bomb(tmp_path):
    import zipfile

    path = write(tmp_path / "x.zip")
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("group/x/c/9/9", bytes(70_000_000))
    refused(path, "would expand to 70.0 MB, more than 100 times")


def test_memory(tmp_path, monkeypatch):
    path = write(tmp_path / "x.zarr")
    monkeypatch.setattr("perpend.formats._checks.memory_limit", lambda: 90)
    with pytest.raises(TooLargeError):
        read(path)


# --- how large a chunk becomes ----------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 255, 256, 70_000, 300_000])
@pytest.mark.parametrize("values", ["zeros", "noise"])
def test_bounds_hold_and_are_not_far_off(n, values):
    plain = bytes(n) if values == "zeros" else np.random.default_rng(0).bytes(n)
    for bound, packed, slack in [
        (of_zlib, zlib.compress(plain), 0),
        (of_zlib, numcodecs.GZip().encode(plain), 0),
        (of_lz4, numcodecs.LZ4().encode(plain) if n else bytes(4), 0),
        (of_zstd, numcodecs.Zstd().encode(plain), 1 << 17),
        (of_zstd, numcodecs.Zstd(checksum=True).encode(plain), 1 << 17),
        (of_zstd, 3 * numcodecs.Zstd().encode(plain), 2 * n + 3 * (1 << 17)),
        (of_blosc, numcodecs.Blosc().encode(plain) if n else bytes(16), 0),
    ]:
        assert n <= bound(packed) <= n + slack


def test_bounds_of_damaged_chunks():
    assert of_zstd(b"junk") == NO_BOUND
    assert of_zstd(numcodecs.Zstd().encode(bytes(999))[:-3]) == NO_BOUND
    assert of_blosc(b"junk") == of_lz4(b"x") == NO_BOUND
    assert of_zlib(zlib.compress(bytes(10**6))[:-9]) <= 10**6


# --- labels and the extra ---------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".zarr", ".zip"])
@pytest.mark.parametrize("version", [2, 3])
def test_the_labels_are_a_store(tmp_path, suffix, version):
    data = read(write(tmp_path / f"x{suffix}", SCENE, version))
    labels = np.where(np.arange(30) % 3 == 0, -1, 1)
    labelled = Labelled(labels, np.arange(30.0), np.zeros(30))
    for _ in range(2):  # the second replaces the first
        written = write_labelled(data, labelled, tmp_path / "out")
    assert written.name == f"x-labelled{suffix}"
    assert list(written.parent.iterdir()) == [written]
    np.testing.assert_array_equal(read(written, variable="inlier").X, (labels == 1).reshape(6, 5))
    np.testing.assert_array_equal(
        read(written, variable="distance").X, np.arange(30.0).reshape(6, 5)
    )


def test_without_zarr(tmp_path, monkeypatch):
    path = write(tmp_path / "x.zarr")
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(MissingExtraError, match=r'needs zarr. Run: pip install "perpend\[zarr\]"'):
        read(path)

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.io

from helpers import refused
from perpend.formats import Counts, Dataset, read

SCENE = np.arange(60.0).reshape(3, 4, 5)
SUFFIXES = [".mat", ".npy", ".npz"]
ARCHIVES = [".mat", ".npz"]


def write(path, *, compressed=True, **arrays):
    """Write arrays in the format of the suffix; only the first into a .npy file."""
    if path.suffix == ".mat":
        scipy.io.savemat(path, arrays, do_compression=compressed)
    elif path.suffix == ".npz":
        (np.savez_compressed if compressed else np.savez)(path, **arrays)
    else:
        np.save(path, next(iter(arrays.values())))
    return path


def cube(path, **kwargs):
    """Read a scene without gaps: height x width x bands."""
    data = read(path, **kwargs)
    assert data.positions is None
    return data.X.reshape(*data.shape, -1)


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("dtype", ["f8", "f4", ">f8", "i2", "u2", "u1", "i8", "?"])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_round_trip(tmp_path, suffix, dtype, compressed):
    array = np.asarray(SCENE % 2 if dtype == "?" else SCENE, dtype=dtype)
    path = write(tmp_path / f"scene{suffix}", scene=array, compressed=compressed)
    data = read(str(path))
    assert isinstance(data, Dataset)
    assert type(data.X) is np.ndarray
    assert data.source == str(path)
    assert data.format == suffix[1:]
    assert data.kind == "image"
    assert data.shape == (3, 4)
    assert data.positions is None
    assert data.columns is None
    assert data.X.dtype == (np.float32 if dtype == "f4" else np.float64)
    if suffix != ".mat":  # MATLAB has no logical arrays of its own, and no foreign byte order
        assert np.dtype(data.stored_dtype) == array.dtype
    np.testing.assert_array_equal(data.X, array.astype(float).reshape(12, 5))
    assert data.counts.zero == np.count_nonzero(~array.any(axis=2))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_pixels_with_gaps_are_left_out_and_counted(tmp_path, suffix):
    scene = SCENE.copy()
    scene[0, 1, 2], scene[2, 3, 4], scene[1, 1] = np.nan, np.inf, 0
    data = read(write(tmp_path / f"x{suffix}", a=scene))
    assert data.counts == Counts(nan=2, zero=1)
    assert data.shape == (3, 4)
    np.testing.assert_array_equal(data.positions, np.delete(np.arange(12), [1, 11]))
    np.testing.assert_array_equal(data.X, scene.reshape(12, 5)[data.positions])


def test_an_image_without_any_pixel(tmp_path):
    refused(write(tmp_path / "x.npy", a=SCENE * np.nan), "pixels have a NaN or an infinity")


def test_npy_is_mapped_not_read(tmp_path):
    X = read(write(tmp_path / "x.npy", a=SCENE)).X
    assert isinstance(X.base.base, np.memmap)
    assert not X.flags.writeable


@pytest.mark.parametrize("suffix", ARCHIVES)
def test_the_only_cube_among_other_arrays_is_taken(tmp_path, suffix):
    arrays = {"labels": np.ones((3, 4)), "scene": SCENE, "waves": np.ones((1, 5))}
    path = write(tmp_path / f"x{suffix}", **arrays, name="Jasper", odd=SCENE * 1j)
    np.testing.assert_array_equal(cube(path), SCENE)
    np.testing.assert_array_equal(cube(path, variable="scene"), SCENE)
    assert read(path, variable="labels").kind == "table"
    listing = r'"scene" \(3, 4, 5\), "labels" \(3, 4\)'
    refused(path, rf'no array "truth"\. Choose one by variable=.*: {listing}', variable="truth")


@pytest.mark.parametrize("suffix", ARCHIVES)
def test_several_cubes_need_a_choice(tmp_path, suffix):
    others = {f"v{i}": np.ones((2, 2)) for i in range(30)}
    path = write(tmp_path / f"x{suffix}", **others, scene=SCENE, truth=SCENE[:, :, :2])
    refused(
        path,
        r"holds several arrays, 32 with 2 or 3 dimensions\. Choose one by variable=\.\.\.: "
        r'"scene" \(3, 4, 5\), "truth" \(3, 4, 2\), "v0" \(2, 2\).* and 12 more',
    )
    np.testing.assert_array_equal(cube(path, variable="truth"), SCENE[:, :, :2])


@pytest.mark.parametrize("suffix", ARCHIVES)
def test_a_scene_is_preferred_to_maps_over_its_pixels(tmp_path, suffix):
    path = write(tmp_path / f"x{suffix}", maps=SCENE[:, :, :1], scene=SCENE)
    np.testing.assert_array_equal(cube(path), SCENE)
    path = write(tmp_path / f"y{suffix}", other=SCENE[:2, :, :1], scene=SCENE)  # other pixels
    refused(path, r"2 with 2 or 3 dimensions\. Choose one")


@pytest.mark.parametrize("suffix", ARCHIVES)
def test_no_cube_among_several_arrays(tmp_path, suffix):
    path = write(tmp_path / f"x{suffix}", a="text", b=np.ones((2, 2, 2, 2)), c=SCENE * 1j)
    refused(path, r'none of its arrays holds real.* in 2 or 3 .*"b" \(2, 2, 2, 2\).*Reshape')
    refused(path, r'"c" \(3, 4, 5\) complex')
    path = write(tmp_path / f"y{suffix}", a=np.ones((2, 2)), b=np.ones((2, 3)), c=SCENE * 1j)
    refused(path, r'several arrays, 2 with 2 or 3 .*"a" \(2, 2\), "b" \(2, 3\).*complex')


@pytest.mark.parametrize("suffix", ARCHIVES)
def test_a_table_is_preferred_to_labels_of_its_rows(tmp_path, suffix):
    X = np.random.default_rng(0).random((9, 4))
    path = write(tmp_path / f"x{suffix}", y=np.ones(9), X=X, about="text")
    np.testing.assert_array_equal(read(path).X, X)
    if suffix == ".mat":  # has no arrays of one dimension
        path = write(tmp_path / f"y{suffix}", y=np.ones((9, 1)), X=X)
        np.testing.assert_array_equal(read(path).X, X)


@pytest.mark.parametrize("suffix", ARCHIVES)
def test_a_scene_beside_a_table_as_large_needs_a_choice(tmp_path, suffix):
    path = write(tmp_path / f"x{suffix}", scene=SCENE, spectra=SCENE.reshape(12, 5))
    refused(path, r'"scene" \(3, 4, 5\), "spectra" \(12, 5\)')


def test_an_unreadable_array_might_be_a_second_cube(tmp_path):
    path = write(tmp_path / "x.npz", scene=SCENE)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("b.npy", b"?")
    refused(path, r'1 with 2 or 3 dimensions, some of them unreadable.*"scene".*"b" \(unreadable\)')
    np.testing.assert_array_equal(cube(path, variable="scene"), SCENE)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.ones((2, 2, 2, 2)), r"4 dimension\(s\), shape \(2, 2, 2, 2\)\. .* image, to 3: height"),
        (np.ones((2, 0, 3)), r"shape \(2, 0, 3\), so there are no values|shape \(0, 0\)"),
        (SCENE * 1j, r'"complex.*real numbers'),
        (np.array([[["a", "b"]]]), "not .*real numbers"),
    ],
)
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_arrays_that_are_no_scene(tmp_path, suffix, array, message):
    refused(write(tmp_path / f"x{suffix}", a=array), message)


def test_pickles_are_refused(tmp_path):
    objects = np.array([[[1, None]]])
    refused(write(tmp_path / "x.npy", a=objects), "Python objects, which only pickle can read")
    refused(write(tmp_path / "x.npz", a=objects), "Python objects, which only pickle can read")


def test_the_checks_of_npy_files_hold_for_cubes(tmp_path):
    path = write(tmp_path / "x.npy", a=SCENE)
    path.write_bytes(path.read_bytes()[:-1])
    refused(path, "declares 3 x 4 x 5 values of float64 .480 bytes. but holds 479 bytes.*cut-off")
    path = write(tmp_path / "bomb.npz", a=np.zeros((900, 100, 100)))
    refused(path, "would expand to 72.0 MB, more than 100 times as much")
    refused(write(tmp_path / "y.npy", a=SCENE), 'no variable "a" to choose', variable="a")


def test_files_that_are_not_there(tmp_path):
    for suffix in SUFFIXES:
        refused(tmp_path / f"none{suffix}", "no such file")
        (tmp_path / f"empty{suffix}").touch()
        refused(tmp_path / f"empty{suffix}", r"empty \(0 bytes\)")
    refused(tmp_path, "is a directory. Give one of the files")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_no_permission(tmp_path, monkeypatch, suffix):
    path = write(tmp_path / f"x{suffix}", a=SCENE)

    def forbid(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("io.open", forbid)  # what Path.open calls; root may read everything
    monkeypatch.setattr("zipfile.ZipFile", forbid)
    refused(path, r"cannot be read \(Permission denied\)")


def test_scipy_io_is_imported_only_for_mat_files():
    code = "import sys, perpend.formats; print('scipy.io' in sys.modules)"
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    assert printed.stdout.strip() == "False"


# --- real scenes ------------------------------------------------------------------------------


def data_file(name):
    folder = os.environ.get("PERPEND_DATA")
    path = Path(folder or "") / name
    if not folder or not path.exists():
        pytest.skip(f"PERPEND_DATA does not name a folder with {name}")
    return path


def test_jasper_ridge():
    path = data_file("hsi_jasper/jasper_ridge_100x100x198.npz")
    np.testing.assert_array_equal(cube(path), cube(path, variable="cube"))
    values = cube(path, variable="cube")
    assert values.shape == (100, 100, 198)
    assert values.dtype == np.float64
    with np.load(path) as archive:
        np.testing.assert_array_equal(values, archive["cube"])


def test_a_real_scene_with_a_mask_needs_no_choice():
    path = data_file("hsi_anomaly/hydice.npz")
    with np.load(path) as archive:
        np.testing.assert_array_equal(cube(path), archive["cube"])

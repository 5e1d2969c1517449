import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.io

from perpend.exceptions import InputError, PerpendError
from perpend.formats import read

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


def refused(path, message, **kwargs):
    with pytest.raises(InputError, match=message) as caught:
        read(path, **kwargs)
    assert isinstance(caught.value, PerpendError)
    assert isinstance(caught.value, ValueError)
    assert path.name in str(caught.value)


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("dtype", ["f8", "f4", ">f8", "i2", "u2", "u1", "i8", "?"])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_round_trip(tmp_path, suffix, dtype, compressed):
    array = np.asarray(SCENE % 2 if dtype == "?" else SCENE, dtype=dtype)
    path = write(tmp_path / f"scene{suffix}", scene=array, compressed=compressed)
    cube = read(str(path))
    assert isinstance(cube, Cube)
    assert type(cube.values) is np.ndarray
    assert cube.source == str(path)
    assert cube.values.dtype == (np.float32 if dtype == "f4" else np.float64)
    np.testing.assert_array_equal(cube.values, array.astype(float))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_gaps_are_left_to_the_caller(tmp_path, suffix):
    scene = SCENE.copy()
    scene[0, 1, 2], scene[2, 3, 4] = np.nan, np.inf
    np.testing.assert_array_equal(cube(write(tmp_path / f"x{suffix}", a=scene)), scene)


def test_npy_is_mapped_not_read(tmp_path):
    values = cube(write(tmp_path / "x.npy", a=SCENE))
    assert isinstance(values.base, np.memmap)
    assert not values.flags.writeable


@pytest.mark.parametrize("suffix", ARCHIVES)
def test_the_only_cube_among_other_arrays_is_taken(tmp_path, suffix):
    arrays = {"labels": np.ones((3, 4)), "scene": SCENE, "waves": np.ones((1, 5))}
    path = write(tmp_path / f"x{suffix}", **arrays, name="Jasper", odd=SCENE * 1j)
    np.testing.assert_array_equal(cube(path), SCENE)
    np.testing.assert_array_equal(cube(path, variable="scene"), SCENE)
    refused(path, r'"labels": has 2 dim.*height x width x bands', variable="labels")
    listing = r'"scene" \(3, 4, 5\), "labels" \(3, 4\)'
    refused(path, rf'no array "truth"\. Choose one by variable=.*: {listing}', variable="truth")


@pytest.mark.parametrize("suffix", ARCHIVES)
def test_several_cubes_need_a_choice(tmp_path, suffix):
    others = {f"v{i}": np.ones((2, 2)) for i in range(30)}
    path = write(tmp_path / f"x{suffix}", **others, scene=SCENE, truth=SCENE[:, :, :2])
    refused(
        path,
        r"holds several arrays, 2 with 3 dimensions\. Choose one by variable=\.\.\.: "
        r'"scene" \(3, 4, 5\), "truth" \(3, 4, 2\), "v0" \(2, 2\).* and 12 more',
    )
    np.testing.assert_array_equal(cube(path, variable="truth"), SCENE[:, :, :2])


@pytest.mark.parametrize("suffix", ARCHIVES)
def test_a_scene_is_preferred_to_maps_over_its_pixels(tmp_path, suffix):
    path = write(tmp_path / f"x{suffix}", maps=SCENE[:, :, :1], scene=SCENE)
    np.testing.assert_array_equal(cube(path), SCENE)
    path = write(tmp_path / f"y{suffix}", other=SCENE[:2, :, :1], scene=SCENE)  # other pixels
    refused(path, r"2 with 3 dimensions\. Choose one")


@pytest.mark.parametrize("suffix", ARCHIVES)
def test_no_cube_among_several_arrays(tmp_path, suffix):
    path = write(tmp_path / f"x{suffix}", a=np.ones((2, 2)), b=np.ones((2, 3)), c=SCENE * 1j)
    refused(path, r'none of its arrays holds real.* in 3 .*"a" \(2, 2\), "b" \(2, 3\).*A scene')
    refused(path, r'"c" \(3, 4, 5\) complex')


def test_an_unreadable_array_might_be_a_second_cube(tmp_path):
    path = write(tmp_path / "x.npz", scene=SCENE)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("b.npy", b"?")
    refused(path, r'1 with 3 dimensions, some of them unreadable.*"scene".*"b" \(unreadable\)')
    np.testing.assert_array_equal(cube(path, variable="scene"), SCENE)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (
            np.ones((4, 3)),
            r"2 dimension\(s\), shape \(4, 3\)\. A scene needs 3: height x width x b",
        ),
        (np.ones((2, 2, 2, 2)), r"4 dimension\(s\), shape \(2, 2, 2, 2\)\. A scene needs 3"),
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
    (tmp_path / "scan.csv").write_text("1,2\n")
    refused(tmp_path / "scan.csv", r'files of type "\.csv".*work: \.mat, \.npy, \.npz\.')


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
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    assert answer.stdout.strip() == "False"


# --- real scenes ------------------------------------------------------------------------------


def data_file(name):
    folder = os.environ.get("PERPEND_DATA")
    path = Path(folder or "") / name
    if not folder or not path.exists():
        pytest.skip(f"PERPEND_DATA does not name a folder with {name}")
    return path


def test_jasper_ridge():
    path = data_file("hsi_jasper/jasper_ridge_100x100x198.npz")
    np.testing.assert_array_equal(cube(path).values, read(path, variable="cube"))
    values = cube(path, variable="cube")
    assert values.shape == (100, 100, 198)
    assert values.dtype == np.float64
    with np.load(path) as archive:
        np.testing.assert_array_equal(values, archive["cube"])


def test_a_real_scene_with_a_mask_needs_no_choice():
    path = data_file("hsi_anomaly/hydice.npz")
    with np.load(path) as archive:
        np.testing.assert_array_equal(cube(path), archive["cube"])

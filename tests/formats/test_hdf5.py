import io
import sys
import zlib

import numpy as np
import pytest
import scipy.io

from helpers import refused
from perpend.exceptions import MissingExtraError
from perpend.formats import Labelled, read, write_labelled

h5py = pytest.importorskip("h5py")

X = np.random.default_rng(0).random((50, 7))
SCENE = np.random.default_rng(1).integers(0, 999, (6, 5, 4)).astype("u2")


def write(path, name="x", data=X, **kwargs):
    with h5py.File(path, "w") as file:
        file.create_dataset(name, data=data, **kwargs)
    return path


def write_mat73(path, **arrays):
    """As MATLAB's save -v7.3 does: 512 bytes of its own, axes reversed, and the class of each."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, (kind, array) in arrays.items():
            file.create_dataset(name, data=array.T, compression="gzip", chunks=True)
            file[name].attrs["MATLAB_class"] = np.bytes_(kind)
        file["#refs#/a"] = np.ones((40, 40))
    with path.open("r+b") as stream:
        stream.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")
    return path


@pytest.mark.parametrize("dtype", ["f8", ">f8", "f4", "f2", "i2", ">u4", "?"])
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"chunks": (9, 3)},
        {"compression": "gzip"},
        {"compression": "gzip", "shuffle": True, "chunks": (9, 3)},
        {"compression": "gzip", "shuffle": True, "fletcher32": True},
        {"compression": "gzip", "maxshape": (None, None), "chunks": (16, 16)},
        {"compression": "lzf", "shuffle": True},
        {"fletcher32": True},
    ],
    ids=str,
)
def test_what_h5py_writes_is_read(tmp_path, how, dtype):
    array = (10 * X).astype(dtype)
    data = read(write(tmp_path / "x.h5", "group/x", array, **how))
    assert (data.format, data.kind, data.shape) == ("hdf5", "table", (50,))
    assert data.X.dtype == (np.float32 if dtype == "f4" else np.float64)
    assert np.dtype(data.stored_dtype) == array.dtype
    np.testing.assert_array_equal(data.X, array.astype(float))


@pytest.mark.parametrize("suffix", [".h5", ".hdf5", ".he5", ".HDF5"])
@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_an_image(tmp_path, suffix, libver):
    path = tmp_path / f"x{suffix}"
    with h5py.File(path, "w", libver=libver) as file:
        file.create_dataset("scene", data=SCENE, compression="gzip", chunks=(4, 4, 3))
        file["mask"] = SCENE[:, :, 0]
        file["waves"] = np.ones(4)
    data = read(path)
    assert (data.kind, data.shape) == ("image", (6, 5))
    np.testing.assert_array_equal(data.X, SCENE.reshape(30, 4))
    np.testing.assert_array_equal(read(path, variable="/mask").X, SCENE[:, :, 0])


def test_chunks_that_were_never_written_hold_the_fill_value(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        item = file.create_dataset(
            "x", (40, 6), "f4", chunks=(9, 4), compression="gzip", fillvalue=7
        )
        item[10:20, :2] = 1
        expected = item[()]
    assert {1, 7} == set(expected.flat)
    np.testing.assert_array_equal(read(tmp_path / "x.h5").X, expected)


def test_a_dataset_that_has_shrunk(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        item = file.create_dataset(
            "x", data=X, chunks=(9, 3), maxshape=(None, None), compression="gzip"
        )
        item.resize((20, 5))
    np.testing.assert_array_equal(read(tmp_path / "x.h5").X, X[:20, :5])


def test_prisma_stores_the_bands_in_the_middle(tmp_path):
    name = "HDFEOS/SWATHS/PRS_L2D_HCO/Data Fields/VNIR_Cube"
    data = read(write(tmp_path / "x.he5", name, np.moveaxis(SCENE, -1, 1)))
    np.testing.assert_array_equal(data.X, SCENE.reshape(30, 4))


# --- MATLAB v7.3 ------------------------------------------------------------------------------


def test_matlab_v73_is_transposed(tmp_path):
    path = write_mat73(tmp_path / "x.mat", scene=("uint16", SCENE), y=("double", np.ones((30, 1))))
    data = read(path)
    assert (data.format, data.kind, data.shape) == ("mat", "image", (6, 5))
    np.testing.assert_array_equal(data.X, SCENE.reshape(30, 4))
    path = write_mat73(tmp_path / "y.mat", X=("single", X.astype("f4")))
    assert read(path).X.dtype == np.float32
    np.testing.assert_array_equal(read(path).X, X.astype("f4"))


def test_the_labels_of_v73_are_a_mat_file_of_version_5(tmp_path):
    path = write_mat73(tmp_path / "x.mat", X=("double", X))
    labelled = Labelled(np.ones(50), np.arange(50.0), np.zeros(50))
    loaded = scipy.io.loadmat(write_labelled(read(path), labelled, tmp_path))
    np.testing.assert_array_equal(loaded["distance"], np.arange(50.0)[:, None])


def test_matlab_text_cells_and_nothing(tmp_path):
    path = write_mat73(tmp_path / "x.mat", text=("char", SCENE[0]), X=("double", X))
    np.testing.assert_array_equal(read(path).X, X)
    refused(path, 'holds values of MATLAB\'s type "char", not real numbers', variable="text")
    with h5py.File(path, "r+") as file:
        file["cell"] = np.array([file["X"].ref], h5py.ref_dtype)
        file["none"] = np.array([0, 0], "u8")
        file["none"].attrs["MATLAB_empty"] = 1
    refused(path, "holds text or references", variable="cell")
    refused(path, "holds nothing", variable="none")


def test_a_struct_is_read_by_the_path_of_its_field(tmp_path):
    path = write_mat73(tmp_path / "x.mat", **{"s/a": ("double", X), "s/b": ("double", X)})
    np.testing.assert_array_equal(read(path, variable="s/a").X, X)
    refused(path, r'several arrays, 2 with.*"s/a" \(50, 7\), "s/b" \(50, 7\)')


def test_v73_without_hdf5(tmp_path):
    path = tmp_path / "x.mat"
    path.write_bytes(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + bytes(600))
    refused(path, "does not begin like an HDF5 file")


# --- what is refused --------------------------------------------------------------------------


def test_what_leads_out_of_the_file(tmp_path):
    write(tmp_path / "other.h5")
    path = write(tmp_path / "x.h5")
    (tmp_path / "raw").write_bytes(X.tobytes())
    with h5py.File(path, "r+") as file:
        file["soft"] = h5py.SoftLink("/x")
        file["out"] = h5py.ExternalLink("other.h5", "/x")
        layout = h5py.VirtualLayout(X.shape, float)
        layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "x", X.shape)
        file.create_virtual_dataset("virtual", layout)
        file.create_dataset("raw", X.shape, float, external=[(tmp_path / "raw", 0, X.nbytes)])
        file["loop"] = file["/"]
    np.testing.assert_array_equal(read(path).X, X)
    refused(path, r'"soft" is a link \(to "/x"\). Links are not followed', variable="soft")
    refused(path, r'"out" is a link \(to "other.h5 /x"\)', variable="out")
    refused(path, "parts of other arrays .a virtual dataset.", variable="virtual")
    refused(path, "values that lie in another file", variable="raw")


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.array(["a", "b"], "S1"), "holds text"),
        (np.ones((2, 2), complex), "holds complex numbers"),
        (np.zeros(3, [("a", float)]), "holds records"),
        (np.ones(3), r"has 1 dimension\(s\), shape \(3,\)\. Reshape it to 2"),
        (np.ones((2, 2, 2, 2)), "has 4 dim"),
        (np.ones((0, 4)), r"shape \(0, 4\), so there are no values"),
        (h5py.Empty(float), "holds nothing"),
        ("text", "holds text or references"),
    ],
)
def test_other_things_than_numbers(tmp_path, array, message):
    refused(write(tmp_path / "x.h5", data=array), message)


def test_files_without_arrays(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_group("a/b")
    refused(tmp_path / "x.h5", "there is no array in this file")


def test_declared_sizes(tmp_path):
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", (2**40, 8), "f8", chunks=(2**10, 8), compression="gzip")
    refused(path, "0 bytes would expand to 70.4 TB, more than 100 times as much")
    write(path, data=np.zeros((9000, 1000)), compression="gzip")
    assert path.stat().st_size < 200_000
    refused(path, "would expand to 72.0 MB")
    with h5py.File(path, "w") as file:
        file.create_dataset(
            "x", (2, 2), "f8", chunks=(2**14, 2**14), maxshape=(None, None), compression="gzip"
        )
    refused(path, "would expand to 2.1 GB")


def test_a_chunk_that_becomes_more_than_it_says(tmp_path):
    path = write(tmp_path / "x.h5", data=np.ones((8, 8)), compression="gzip", chunks=(8, 8))
    with h5py.File(path, "r+") as file:
        file["x"].id.write_direct_chunk((0, 0), zlib.compress(bytes(1 << 24)))
    refused(path, "a chunk is not of the size it declares")


def test_chunks_that_are_packed_in_part(tmp_path):
    path = write(tmp_path / "x.h5", data=np.ones((8, 8)), compression="gzip", chunks=(4, 8))
    plain = np.full((4, 8), 7.0)
    with h5py.File(path, "r+") as file:  # the mask says that gzip was not applied to the chunk
        file["x"].id.write_direct_chunk((4, 0), plain.tobytes(), filter_mask=1)
    np.testing.assert_array_equal(read(path).X, np.vstack([np.ones((4, 8)), plain]))
    with h5py.File(path, "r+") as file:
        file["x"].id.write_direct_chunk((4, 0), plain.tobytes()[:-8], filter_mask=1)
    refused(path, "a chunk is not of the size it declares")


def test_a_checksum_below_gzip(tmp_path):
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        settings = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        settings.set_chunk((5, 7))
        settings.set_fletcher32()
        settings.set_shuffle()
        settings.set_deflate(5)
        space = h5py.h5s.create_simple(X.shape)
        h5py.h5d.create(file.id, b"x", h5py.h5t.NATIVE_DOUBLE, space, settings)
        file["x"][...] = X
    np.testing.assert_array_equal(read(path).X, X)


def test_filters_that_are_not_known_or_doubled(tmp_path):
    for codes in ([1, 1], [1, 32000], [1, 2], [32015]):
        path = tmp_path / "x.h5"
        with h5py.File(path, "w") as file:
            settings = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            settings.set_chunk((5, 7))
            for code in codes:
                settings.set_filter(code, h5py.h5z.FLAG_OPTIONAL, (5,))
            space = h5py.h5s.create_simple(X.shape)
            h5py.h5d.create(file.id, b"x", h5py.h5t.NATIVE_DOUBLE, space, settings)
            file["x"][...] = X
        refused(path, "is compressed in an unknown way")


@pytest.mark.parametrize("keep", [0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.999])
@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_cut_off_files(tmp_path, keep, libver):
    stream = io.BytesIO()
    with h5py.File(stream, "w", libver=libver) as file:
        file.create_dataset("x", data=X, compression="gzip")
    content = stream.getvalue()
    path = tmp_path / "x.h5"
    path.write_bytes(content[: int(keep * len(content))])
    refused(path, "not a readable HDF5 file .*truncated|not a readable HDF5 file|cut off")


def test_other_files(tmp_path):
    path = tmp_path / "x.h5"
    path.write_bytes(b"1,2\n" * 999)
    refused(path, "does not begin like an HDF5 file")


# --- labels and the extra ---------------------------------------------------------------------


def test_the_labels_are_an_hdf5_file(tmp_path):
    data = read(write(tmp_path / "x.hdf5", data=SCENE))
    labels = np.where(np.arange(30) % 3 == 0, -1, 1)
    written = write_labelled(data, Labelled(labels, np.arange(30.0), np.zeros(30)), tmp_path)
    assert written.name == "x-labelled.hdf5"
    with h5py.File(written) as file:
        np.testing.assert_array_equal(file["inlier"][()], (labels == 1).reshape(6, 5))
        np.testing.assert_array_equal(file["distance"][()], np.arange(30.0).reshape(6, 5))


def test_without_h5py(tmp_path, monkeypatch):
    path = write(tmp_path / "x.h5")
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(MissingExtraError, match=r'needs h5py. Run: pip install "perpend\[hdf5\]"'):
        read(path)

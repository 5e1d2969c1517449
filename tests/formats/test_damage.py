"""Damaged files of every format: an InputError, and neither a crash, a hang nor much memory.

``tests/formats/fuzz.py`` does the same for as many files as you like. What it found is in
``tests/formats/found``.
"""

import ast
import subprocess
import sys
import zlib
from pathlib import Path

import array_samples
import fuzz
import numpy as np
import pytest
import scipy.io
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import mostly_slow
from perpend.cli import main
from perpend.exceptions import InputError
from perpend.formats import read

FOUND = sorted((Path(__file__).parent / "found").iterdir())
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="limits the memory by way of /proc")


def skip_without_packages(name):
    try:
        fuzz.valid_files(name)
    except ImportError as error:
        pytest.skip(f"needs {error.name}")


@pytest.fixture(params=sorted(array_samples.SAMPLES))
def name(request):
    skip_without_packages(request.param)
    return request.param


@pytest.fixture(
    params=mostly_slow(sorted({*fuzz.SAMPLES} - {"tifffile"}), "csv", "hdf5", "parquet", "zarr")
)  # tifffile hides another package
def any_name(request):
    skip_without_packages(request.param)
    return request.param


def test_the_valid_files_are_read(any_name, tmp_path):
    for i, files in enumerate(fuzz.valid_files(any_name)):
        data = read(fuzz.write_files(tmp_path / str(i), files))
        assert data.X.size > 0


@settings(deadline=None, max_examples=200)
@given(
    pick=st.tuples(st.floats(0, 0.99), st.floats(0, 0.99)),
    edits=st.lists(
        st.tuples(
            st.sampled_from(fuzz.KINDS),
            st.floats(0, 0.999999),
            st.one_of(st.sampled_from(fuzz.ODD_BYTES), st.integers(0, 2**32 - 1)),
        ),
        min_size=1,
        max_size=5,
    ),
)
def check_damage(tmp_path_factory, name, pick, edits):
    samples = fuzz.valid_files(name)
    files = dict(samples[int(pick[0] * len(samples))])
    victim = list(files)[int(pick[1] * len(files))]
    files[victim] = fuzz.damaged(files[victim], edits)
    path = fuzz.write_files(tmp_path_factory.mktemp("damage"), files)
    assert fuzz.outcome(path) in fuzz.FINE


def test_no_damage_escapes_as_another_error(any_name, tmp_path_factory):
    check_damage(tmp_path_factory, any_name)


@pytest.mark.slow
@LINUX
def test_damaged_files_take_little_memory_and_never_crash(any_name):
    assert fuzz.fuzz(any_name, 60) == {}


@pytest.mark.parametrize("share", [0.01, 0.2, 0.4, 0.6, 0.8, 0.95])
def test_cut_off_files(name, share, tmp_path):
    if name == "csv":
        pytest.skip("the first lines of a text table are a text table")
    for i, files in enumerate(fuzz.valid_files(name)):
        largest = max(files, key=lambda file: len(files[file]))
        cut = files | {largest: files[largest][: int(share * len(files[largest]))]}
        path = fuzz.write_files(tmp_path / str(i), cut)
        if path.suffix == ".arrow":
            continue  # a stream may end after each batch
        with pytest.raises(InputError):
            read(path)


def test_wrong_magic(name, tmp_path):
    if name == "zarr":
        pytest.skip("a folder")
    file, content = next(iter(fuzz.valid_files(name)[0].items()))
    (tmp_path / file).write_bytes(b"\xffWRONG\x00\xff" + content[8:])
    if name.startswith("mat"):  # begins with a text that may be anything
        place = 120 if name == "mat" else 512
        damage = content[:place] + b"\xffWRONG\x00\xff" + content[place + 8 :]
        (tmp_path / file).write_bytes(damage)
    with pytest.raises(InputError):
        read(tmp_path / file)


def test_the_command_line_says_what_is_wrong(name, tmp_path, capsys):
    file, content = next(iter(fuzz.valid_files(name)[0].items()))
    path = fuzz.write_files(tmp_path, {file: b"\xff\xfe" + content[2:40]})
    assert main(["fit", str(path), "-o", str(tmp_path / "out")]) == 3
    err = capsys.readouterr().err
    assert err.startswith("error: ")
    assert "Traceback" not in err
    assert not (tmp_path / "out").exists()


@LINUX
def test_what_was_found():
    pytest.importorskip("pyarrow")
    code = (
        "import sys; from pathlib import Path; import fuzz; "
        "sys.exit(str([p for p in sys.argv[1:] if fuzz.outcome(Path(p)) not in fuzz.FINE]))"
    )
    command = [sys.executable, "-c", code, *map(str, FOUND)]
    here = Path(__file__).parent
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, check=False)
    assert done.stderr == "[]\n"


# --- more memory than a small file may take ----------------------------------------------------


@pytest.mark.slow
@LINUX
def test_small_files_that_would_become_large(tmp_path):
    h5py, zarr = pytest.importorskip("h5py"), pytest.importorskip("zarr")
    parquet, pa = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    more = np.zeros((1 << 17, 75))  # 75 MiB; up to 64 are let through in any case
    np.savez_compressed(tmp_path / "a.npz", more)
    scipy.io.savemat(tmp_path / "b.mat", {"X": more}, do_compression=True)
    with h5py.File(tmp_path / "c.h5", "w") as file:
        file.create_dataset("X", data=np.ones((8, 8)), compression="gzip", chunks=(8, 8))
        file["X"].id.write_direct_chunk((0, 0), zlib.compress(bytes(1 << 29), 1))
    zarr.create_array(tmp_path / "d.zarr", data=more, chunks=more.shape)
    table = pa.table({f"x{j}": more[:, j] for j in range(more.shape[1])})
    parquet.write_table(table, tmp_path / "e.parquet")
    paths = sorted(tmp_path.iterdir())
    assert len(paths) == 5
    code = (
        "import sys, h5py, zarr, pyarrow.parquet, scipy.io; from pathlib import Path; "
        "import fuzz; fuzz.limit_memory(); "
        "print([fuzz.outcome_and_memory(Path(p)) for p in sys.argv[1:]])"
    )
    command = [sys.executable, "-c", code, *map(str, paths)]
    here = Path(__file__).parent
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, check=True)
    for path, (result, taken) in zip(paths, ast.literal_eval(done.stdout), strict=True):
        assert (path, result) == (path, "InputError")
        assert taken < 100 << 20

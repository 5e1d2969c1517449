"""Rows of a file, block by block: the same as all at once, in bounded memory, and clear errors."""

import gzip
import logging
import os
import pickle
import subprocess
import sys
import tracemalloc
import warnings
import zipfile
from pathlib import Path

import fuzz
import numpy as np
import pyarrow as pa
import pytest
import scipy.io
from pyarrow import feather, parquet

from perpend import DPCP, open_rows
from perpend.datasets import make_subspace
from perpend.exceptions import InputError, TooLargeError
from perpend.formats import _stream as stream
from perpend.formats import open_blocks, opened, read

RNG = np.random.default_rng(0)
TABLE = RNG.standard_normal((5000, 6))
SCENE = RNG.standard_normal((50, 40, 6)).astype("f4")
SCENE[3:5, 7] = np.nan
MiB = 2**20


def save_text(path, rows=TABLE, opened=open):
    with opened(path, "wt") as stream:
        stream.write("id,a,b,c,d,e,f\n")
        stream.writelines(
            f"s{i},{','.join(map(repr, row))}\n" for i, row in enumerate(rows.tolist())
        )


def save_table(path, rows=TABLE, **how):
    table = pa.table({"name": ["x"] * len(rows), **{f"c{j}": rows[:, j] for j in range(6)}})
    if path.suffix == ".parquet":
        parquet.write_table(table, path, **how)
    else:
        feather.write_feather(table, path, compression="uncompressed", **how)


def save_folder(path, suffix=".parquet"):
    path.mkdir()
    for i, part in enumerate(np.array_split(TABLE, 3)):
        (path / f"day={i}").mkdir()
        save_table(path / f"day={i}" / f"part{suffix}", part)
    return path


def save_h5(path, values=TABLE, **how):
    import h5py

    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=values, **how)


def save_zarr(path, values=TABLE, **how):
    import zarr

    array = zarr.create_array(path, shape=values.shape, dtype=values.dtype, **how)
    array[...] = values


def save_envi(path, interleave):
    order = {"bsq": (2, 0, 1), "bil": (0, 2, 1), "bip": (0, 1, 2)}[interleave]
    SCENE.transpose(order).tofile(path.with_suffix(".img"))
    path.write_text(
        f"ENVI\nlines = 50\nsamples = 40\nbands = 6\ndata type = 4\ninterleave = {interleave}\n"
    )


def save_tiff(path, **how):
    import rasterio

    shape = {"height": 50, "width": 40, "count": 6, "dtype": "float32"}
    how |= {"transform": rasterio.Affine(2, 0, 0, 0, -2, 0), "nodata": -1}
    with rasterio.open(path, "w", driver="GTiff", **shape, **how) as image:
        image.write(np.where(np.arange(40) < 3, -1, SCENE.transpose(2, 0, 1)))


SAVED = {
    "c.npy": lambda path: np.save(path, TABLE),
    "fortran.npy": lambda path: np.save(path, np.asfortranarray(TABLE.astype("f4"))),
    "counts.npy": lambda path: np.save(path, (9 * TABLE).astype("i2")),
    "scene.npy": lambda path: np.save(path, SCENE),
    "fortran-scene.npy": lambda path: np.save(path, np.asfortranarray(SCENE)),
    "foreign.npy": lambda path: np.save(path, TABLE.astype(">f4")),
    "turned-scene.npy": lambda path: np.save(path, SCENE.transpose(2, 0, 1)),
    "stored.npz": lambda path: np.savez(path, TABLE),
    "packed.npz": lambda path: np.savez_compressed(path, TABLE),
    "fortran.npz": lambda path: np.savez_compressed(path, np.asfortranarray(TABLE)),
    "scene.npz": lambda path: np.savez_compressed(path, SCENE),
    "x.csv": save_text,
    "x.csv.gz": lambda path: save_text(path, opened=gzip.open),
    "x.xyz": lambda path: np.savetxt(path, TABLE),
    "x.mat": lambda path: scipy.io.savemat(path, {"X": SCENE}),
    "x.h5": save_h5,
    "chunks.h5": lambda path: save_h5(path, chunks=(700, 4), compression="gzip"),
    "scene.h5": lambda path: save_h5(path, SCENE, chunks=(7, 9, 2)),
    "x.zarr": lambda path: save_zarr(path, chunks=(700, 4)),
    "scene.zarr": lambda path: save_zarr(path, SCENE, chunks=(7, 9, 2)),
    "x.parquet": lambda path: save_table(path, row_group_size=1700),
    "x.feather": lambda path: save_table(path, chunksize=900),
    "folder": save_folder,
    "arrows": lambda path: save_folder(path, ".arrow"),
    "bsq.hdr": lambda path: save_envi(path, "bsq"),
    "bil.hdr": lambda path: save_envi(path, "bil"),
    "bip.hdr": lambda path: save_envi(path, "bip"),
    "x.tif": save_tiff,
    "tiles.tif": lambda path: save_tiff(path, tiled=True, blockxsize=16, blockysize=16),
}


@pytest.fixture(autouse=True)
def small_steps(monkeypatch):
    """Several blocks in small files."""
    monkeypatch.setattr(stream, "BLOCK", 10_000)
    monkeypatch.setattr(stream, "SPAN", 64)
    monkeypatch.setattr("perpend.formats._tables.BATCH_ROWS", 300)
    monkeypatch.setattr("perpend.formats._csv.ROWS", 300)
    monkeypatch.setattr("perpend.formats._npz.PIECE", 10_000)
    monkeypatch.setattr("perpend.formats._tiff.STRIP", 10_000)
    monkeypatch.setattr("perpend.formats._las.ROWS", 7)


def check_blocks(path, **how):
    whole, blocks = read(path, **how), open_blocks(path, **how)
    assert blocks.shape == whole.X.shape
    assert blocks.dtype == whole.X.dtype
    assert (blocks.about.columns, blocks.about.shape) == (whole.columns, whole.shape)
    n, step = len(whole.X), max(1, len(whole.X) // 7)
    for size in (step, step + 1):  # a second pass, in other blocks
        parts = [blocks.read(i, min(i + size, n)) for i in range(0, n, size)]
        assert all(part.flags.c_contiguous and part.flags.writeable for part in parts)
        np.testing.assert_array_equal(np.concatenate(parts), whole.X)
    for _ in range(8):
        start, stop = sorted(RNG.integers(0, n + 1, 2))
        np.testing.assert_array_equal(blocks.read(start, stop), whole.X[start:stop])
    if blocks.pick is not None:
        some = RNG.integers(0, n, 9)
        np.testing.assert_array_equal(blocks.pick(some), whole.X[some])
    if whole.positions is not None:
        places = np.concatenate([where for _, where in blocks.places(0, n)])
        np.testing.assert_array_equal(places, whole.positions)
        assert blocks.counts == whole.counts
    return blocks


@pytest.mark.parametrize("name", SAVED)
def test_blocks_are_the_rows_of_the_file(tmp_path, name):
    SAVED[name](tmp_path / name)
    check_blocks(tmp_path / name)
    if "csv" not in name and "x." not in name:
        check_blocks(tmp_path / name, exclude=["2"])


@pytest.mark.parametrize("columns", [["4", "1"], ["3-5"]])
@pytest.mark.parametrize("name", [name for name in SAVED if name.endswith((".npy", ".npz"))])
def test_blocks_of_some_columns(tmp_path, name, columns):
    SAVED[name](tmp_path / name)
    check_blocks(tmp_path / name, columns=columns)


@pytest.mark.parametrize("interleave", ["bsq", "bil", "bip"])
def test_blocks_of_some_bands(tmp_path, interleave):
    save_envi(tmp_path / "x.hdr", interleave)
    check_blocks(tmp_path / "x.hdr", columns=["4", "1"])


@pytest.mark.parametrize("name", sorted({*fuzz.SAMPLES} - {"tifffile"}))
def test_every_format_has_blocks(tmp_path, name):
    for i, files in enumerate(fuzz.valid_files(name)):
        check_blocks(fuzz.write_files(tmp_path / str(i), files))


@pytest.mark.parametrize(
    "name", ["c.npy", "fortran.npy", "packed.npz", "fortran.npz", "x.h5", "x.zarr"]
)
def test_points_that_are_columns(tmp_path, name):
    SAVED[name](tmp_path / name)
    assert check_blocks(tmp_path / name, transpose=True).shape == (6, 5000)


@pytest.mark.parametrize("name", ["x.csv", "scene.h5"])
def test_blocks_can_be_sent_to_another_process(tmp_path, name):
    SAVED[name](tmp_path / name)
    blocks = open_blocks(tmp_path / name, exclude=["2" if name == "scene.h5" else "b"])
    again = pickle.loads(pickle.dumps(blocks))
    np.testing.assert_array_equal(again.read(5, 1000), blocks.read(5, 1000))
    assert again.columns == blocks.columns


@pytest.mark.parametrize("name", ["x.csv", "x.parquet", "c.npy", "fortran.npz", "bsq.hdr"])
def test_blocks_that_were_selected_can_be_sent(tmp_path, monkeypatch, name):
    SAVED[name](tmp_path / name)
    monkeypatch.chdir(tmp_path)
    blocks = opened(name).ready().only([4, 1, 2]).only([0, 2]).without_gaps()
    X = blocks.read(0, blocks.shape[0])
    whole = read(name).X[:, [4, 2]]
    np.testing.assert_array_equal(X, whole[np.isfinite(whole).all(axis=1)])
    sent = pickle.dumps(blocks)
    monkeypatch.chdir("/")  # the other process is in another folder,
    monkeypatch.setattr(stream.Blocks, "without_gaps", None)  # and need not look for gaps again
    again = pickle.loads(sent)
    assert (again.shape, again.columns) == (blocks.shape, blocks.columns)
    np.testing.assert_array_equal(again.read(1000, 1900), X[1000:1900])


def test_another_file_in_its_place_is_refused(tmp_path):
    np.save(tmp_path / "x.npy", TABLE)
    sent = pickle.dumps(open_blocks(tmp_path / "x.npy"))
    np.save(tmp_path / "x.npy", TABLE[:100])
    with pytest.raises(InputError, match=r"x\.npy: has 4928 bytes here, and 240128 where it was"):
        pickle.loads(sent)


def test_a_text_that_was_read_is_read_again_in_blocks(tmp_path):
    save_text(tmp_path / "x.csv")
    blocks = opened(tmp_path / "x.csv")
    X = blocks.dataset().X
    np.testing.assert_array_equal(blocks.ready().read(2000, 4000), X[2000:4000])


def test_rows_of_text_begin_anywhere(tmp_path):
    text = '# ä\r\nä,"b\nc",d\r\n' + "".join(f'"{i}\n",{i / 7},ß{i}\r\n\r\n' for i in range(2000))
    (tmp_path / "x.csv").write_text(text, encoding="utf-8-sig", newline="")
    blocks = check_blocks(tmp_path / "x.csv")
    assert blocks.about.counts.dropped_columns == ("d",)
    assert len(blocks._marks) > 3


# --- memory -----------------------------------------------------------------------------------

LARGE = RNG.standard_normal((200_000, 12)).astype("f4")  # 9.6 MB


@pytest.mark.parametrize(
    "name", ["x.npy", "f.npy", "x.npz", "p.npz", "x.parquet", "x.h5", "x.zarr"]
)
def test_memory_is_bounded(tmp_path, name, monkeypatch):
    monkeypatch.undo()
    path = tmp_path / name
    X = np.tile(LARGE, (4, 1)) if name == "x.parquet" else LARGE
    savers = {
        "x.npy": lambda: np.save(path, X),
        "f.npy": lambda: np.save(path, np.asfortranarray(X)),
        "x.npz": lambda: np.savez(path, X),
        "p.npz": lambda: np.savez_compressed(path, X),
        "x.parquet": lambda: _one_group(path, X),
        "x.h5": lambda: save_h5(path, X, chunks=(1000, 12)),
        "x.zarr": lambda: save_zarr(path, X, chunks=(1000, 12)),
    }
    savers[name]()
    monkeypatch.setattr(stream, "BLOCK", MiB)
    monkeypatch.setattr("perpend.formats._npz.PIECE", MiB // 4)
    _peak(path, X, limit=X.nbytes // 2)  # pyarrow has a page of each column


def test_memory_of_text_is_bounded(tmp_path, monkeypatch):
    monkeypatch.undo()
    X = LARGE[:20_000].astype(float)
    np.savetxt(tmp_path / "x.csv", X, delimiter=",")
    monkeypatch.setattr("perpend.formats._csv.ROWS", 1000)
    _peak(tmp_path / "x.csv", X, limit=MiB)  # the rows are 1.9 MB, the text is 6


def _one_group(path, X):
    parquet.write_table(
        pa.table({str(j): X[:, j] for j in range(X.shape[1])}), path, use_dictionary=False
    )
    assert parquet.ParquetFile(path).num_row_groups == 1


def _peak(path, X, limit):
    open_blocks(path).read(0, 100)  # imports
    before, arrow, total = pa.total_allocated_bytes(), 0, 0  # which tracemalloc does not see
    tracemalloc.start()
    blocks = open_blocks(path)
    for i in range(0, len(X), 5000):
        total += blocks.read(i, min(i + 5000, len(X))).sum(axis=0)
        arrow = max(arrow, pa.total_allocated_bytes() - before)
    peak = tracemalloc.get_traced_memory()[1] + arrow
    tracemalloc.stop()
    np.testing.assert_allclose(total, X.sum(axis=0), rtol=1e-4)
    assert peak < limit


@pytest.mark.parametrize("name", ["x.mat", "chunks.h5", "fortran.npz"])
def test_what_can_only_be_read_at_once_is_refused(tmp_path, name):
    SAVED[name](tmp_path / name)
    with pytest.raises(TooLargeError, match=r"must be read in one piece, and the memory limit is"):
        open_blocks(tmp_path / name, memory_limit=5000)


# --- errors -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["c.npy", "packed.npz", "x.csv", "chunks.h5", "x.parquet", "bil.hdr"]
)
def test_a_file_that_is_cut_short_while_it_is_read(tmp_path, name):
    SAVED[name](tmp_path / name)
    blocks = open_blocks(tmp_path / name)
    blocks.read(0, 1000)
    file = tmp_path / name.replace(".hdr", ".img")
    os.truncate(file, file.stat().st_size // 2)
    with pytest.raises(InputError, match=rf"{name}: has changed.*rows 10\d\d to 1\d\d\d"):
        blocks.read(1000, 1500)


CUT_WHILE_READ = """
import os, sys
import numpy as np
from perpend.exceptions import InputError
from perpend.formats import open_blocks
from perpend.formats import _stream

class Cut(_stream.Blocks):
    def _check_unchanged(self, *rows):
        super()._check_unchanged(*rows)
        os.truncate(sys.argv[2], 4096)  # after it was looked at, before it is read

blocks = open_blocks(sys.argv[1])
blocks.__class__ = Cut
try:
    blocks.pick(np.array([1200, 1900])) if sys.argv[3] == "pick" else blocks.read(1200, 1900)
except InputError as error:
    print(error)
"""


@pytest.mark.parametrize("how", ["read", "pick"])
@pytest.mark.parametrize("name", ["c.npy", "fortran.npy", "stored.npz", "bsq.hdr", "bil.hdr"])
def test_a_file_that_is_cut_while_rows_are_copied(tmp_path, name, how):
    path = tmp_path / name
    SAVED[name](path)
    if how == "pick" and open_blocks(path).pick is None:
        pytest.skip("single rows of this file are slow to read")
    file = path.with_suffix(".img") if path.suffix == ".hdr" else path
    command = [sys.executable, "-c", CUT_WHILE_READ, path, file, how]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.returncode  # -7: SIGBUS
    assert f"{name}: has changed since it was opened" in done.stdout


def test_a_part_that_vanishes(tmp_path):
    folder = save_folder(tmp_path / "folder")
    blocks = open_blocks(folder)
    (folder / "day=2" / "part.parquet").unlink()
    with pytest.raises(InputError, match=r"day=2.part.parquet: has changed .* rows 10 to 20 were"):
        blocks.read(10, 20)


def test_a_part_that_is_written_anew(tmp_path):
    folder = save_folder(tmp_path / "folder")
    blocks = open_blocks(folder)
    blocks.read(0, 10)
    part = folder / "day=2" / "part.parquet"
    rows = parquet.read_table(part)
    parquet.write_table(rows.take(np.arange(len(rows))[::-1]), part)  # as many, in another order
    with pytest.raises(InputError, match=r"day=2.part.parquet: has changed .* rows 10 to 20 were"):
        blocks.read(10, 20)
    sent = pickle.dumps(open_blocks(folder))
    parquet.write_table(rows.slice(1), part)
    with pytest.raises(InputError, match=r"folder: has \d+ bytes here, and \d+ where it was"):
        pickle.loads(sent)


def test_damage_in_the_middle_says_which_rows(tmp_path):
    np.savez_compressed(tmp_path / "x.npz", np.arange(40_000.0).reshape(-1, 4))
    with zipfile.ZipFile(tmp_path / "x.npz") as archive:
        (member,) = archive.infolist()
    content = bytearray((tmp_path / "x.npz").read_bytes())
    middle = member.header_offset + member.compress_size // 2
    content[middle : middle + 50] = b"\xff" * 50
    (tmp_path / "x.npz").write_bytes(content)
    blocks = open_blocks(tmp_path / "x.npz")
    blocks.read(0, 1000)
    with pytest.raises(InputError, match=r"x.npz: rows 1000 to 10000: not a readable .npz"):
        blocks.read(1000, 10_000)


def test_text_in_the_middle_of_a_column(tmp_path):
    save_text(tmp_path / "x.csv")
    lines = (tmp_path / "x.csv").read_text().splitlines()
    lines[3000] = lines[3000].replace(",", ",oops", 1)
    (tmp_path / "x.csv").write_text("\n".join(lines))
    with pytest.raises(InputError, match=r'line 3001, column "a": cannot read "oops'):
        open_blocks(tmp_path / "x.csv")


def test_rows_of_another_length_in_the_middle(tmp_path):
    save_text(tmp_path / "x.csv")
    with (tmp_path / "x.csv").open("a") as stream:
        stream.write("s,1,2\n")
    with pytest.raises(InputError, match="line 5002 has 3 cells, but line 1 has 7"):
        open_blocks(tmp_path / "x.csv")


@pytest.mark.parametrize("change", ["type", "name"])
def test_a_folder_with_different_columns(tmp_path, change):
    folder = save_folder(tmp_path / "folder")
    table = parquet.read_table(folder / "day=1" / "part.parquet")
    table = (
        table.rename_columns([*table.column_names[:-1], "other"])
        if change == "name"
        else table.set_column(2, "c1", pa.array(["text"] * len(table)))
    )
    parquet.write_table(table, folder / "day=1" / "part.parquet")
    column = {"name": '"c5" is not there, but "double"', "type": '"c1" is "string", but "double"'}
    with pytest.raises(InputError, match=rf"day=1.part.parquet: column {column[change]} in part"):
        open_blocks(folder)


def test_folders_without_tables(tmp_path):
    (tmp_path / "empty.parquet").mkdir()
    with pytest.raises(InputError, match=r"there is no .parquet file in this folder"):
        open_blocks(tmp_path / "empty.parquet")
    with pytest.raises(InputError, match="is a directory"):
        open_blocks(tmp_path)


def test_not_finite_in_the_middle_of_a_block(tmp_path):
    X = make_subspace(3000, 1000, n_features=6, codimension=2, random_state=0).X
    X[2345, 3] = np.inf
    np.savez_compressed(tmp_path / "x.npz", X)
    with pytest.raises(InputError, match=r"row 2345 of .*x.npz, column 3"):
        DPCP().fit(open_rows(tmp_path / "x.npz", memory_limit="4MiB"))


def process_state():
    """What all readers of a process share."""
    levels = [logging.getLogger(name).getEffectiveLevel() for name in ("rasterio._env", "tifffile")]
    return [*warnings.filters], levels, np.geterr(), dict(os.environ), Path.cwd()


@pytest.mark.parametrize("name", [*SAVED, "tifffile"])
def test_two_files_in_turns_leave_nothing_behind(tmp_path, name, monkeypatch):
    file = "x.tif" if name == "tifffile" else name
    if name == "tifffile":
        monkeypatch.setattr("perpend.formats._tiff._library", lambda _: name)
    paths = [tmp_path / "a" / file, tmp_path / "b" / file]
    for path in paths:
        path.parent.mkdir()
        SAVED[file](path)
    whole = read(paths[0]).X
    all_blocks, before = [open_blocks(path) for path in paths], process_state()
    step = len(whole) // 4
    for start in (0, step, 2 * step):
        for shift, blocks in enumerate(all_blocks):
            rows = slice(start + step // 3 * shift, start + step)
            np.testing.assert_array_equal(blocks.read(rows.start, rows.stop), whole[rows])
            assert process_state() == before
    for blocks in all_blocks:  # from the beginning, the first one first
        np.testing.assert_array_equal(blocks.read(0, 10), whole[:10])
    del blocks
    all_blocks.clear()
    assert process_state() == before


def test_not_finite_in_a_file_of_a_folder(tmp_path):
    folder = save_folder(tmp_path / "folder")
    part = folder / "day=1" / "part.parquet"
    table = parquet.read_table(part)
    values = table["c3"].to_numpy().copy()
    values[[77, 78]] = np.inf
    parquet.write_table(table.set_column(4, "c3", pa.array(values)), part)
    blocks = open_blocks(folder)
    row = len(TABLE[: -(-len(TABLE) // 3)]) + 77
    assert blocks.place_of(row) == f" = row 77 of {part}"
    assert [blocks.file_of(i)[1] for i in (0, row - 78, len(TABLE) - 1)] == [0, row - 78, 1665]
    with pytest.raises(
        InputError, match=rf"first: row {row} = row 77 of .*day=1.part.parquet, col"
    ):
        DPCP().fit(open_rows(folder, memory_limit="4MiB"))
    assert blocks.without_gaps().place_of(row) == f" = row 79 of {part}"


@pytest.mark.parametrize("name", ["x.csv", "x.parquet", "packed.npz"])
def test_a_fit_of_a_file_is_that_of_its_rows(tmp_path, name):
    X = make_subspace(3000, 2000, n_features=6, codimension=2, noise=0.01, random_state=1).X
    save = {"x.csv": save_text, "x.parquet": save_table, "packed.npz": np.savez_compressed}[name]
    save(tmp_path / name, X)
    model = DPCP(random_state=0).fit(X)
    other = DPCP(random_state=0).fit(open_rows(tmp_path / name, memory_limit="4MiB"))
    assert np.array_equal(model.labels_, other.labels_)

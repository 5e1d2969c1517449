"""Files larger than the memory limit: read block by block, with the same results."""

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from perpend._files import draft_folder
from perpend.cli import _memory, _output, _streaming
from perpend.datasets import make_subspace
from perpend.formats import read
from perpend.rows import plan

LIMIT = ("--memory-limit", "200kB")


@pytest.fixture
def read_again(monkeypatch):
    """Rows of a few windows are read again in every pass, as those of many are."""
    monkeypatch.setattr(plan, "HELD", 0)


ROWS = make_subspace(1800, 1200, n_features=6, codimension=2, noise=0.01, random_state=3).X
NAMES = [f"c{j}" for j in range(6)]


@pytest.fixture(autouse=True)
def little_memory(monkeypatch):
    """No fixed buffers, so that small files are too large; and several blocks."""
    monkeypatch.setattr(_memory, "BASE", 0)
    monkeypatch.setattr(_streaming, "COPIES", 50)
    monkeypatch.setattr(_streaming, "WRITTEN_AT_ONCE", 700)
    monkeypatch.setattr(_streaming, "SURVEYED", 20_000)


def table(path, rows=ROWS, **more):
    columns = {"row id": np.arange(len(rows)) * 3 + 7, "name": ["a"] * len(rows), **more}
    columns |= {name: rows[:, j] * 10.0**j for j, name in enumerate(NAMES)}
    columns["k"] = np.ones(len(rows))
    parquet.write_table(pa.table(columns), path)


def scene(path):
    cube = ROWS.astype("<f4").reshape(50, 60, 6).copy()
    cube[:9, 5] = np.nan
    cube[40:, :30] = -9999
    cube.tofile(Path(path).with_suffix(".img"))
    lines = "ENVI\nlines = 50\nsamples = 60\nbands = 6\ndata type = 4\ninterleave = bip\n"
    Path(path).write_text(f"{lines}data ignore value = -9999\n")


def text(path):
    """Row numbers without a name, days, and the rows."""
    i = np.arange(len(ROWS))
    days = 20240101 + 100 * (i % 12) + i % 28
    X = np.column_stack([i + i // 7, days, ROWS])
    np.savetxt(
        path, X, fmt="%.17g", delimiter=",", header=",".join(["", "day", *NAMES]), comments=""
    )


def cloud(path):
    np.savetxt(path, make_subspace(1200, 800, n_features=3, codimension=1, offset=1.0).X)


SAVED = {
    "x.npy": lambda path: np.save(path, ROWS),
    "x.npz": lambda path: np.savez_compressed(path, ROWS),
    "x.csv": text,
    "x.xyz": cloud,
    "x.parquet": table,
    "x.hdr": scene,
}


def same(folder, other):
    """The same labels, and the same distances up to rounding, in all files of labels."""
    names = [sorted(path.name for path in Path(f).glob("*labelled*")) for f in (folder, other)]
    assert names[0] == names[1] != []
    for name in names[0]:
        if not name.endswith(".img"):
            a, b = (values(Path(place, name)) for place in (folder, other))
            np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-12)
    same_labels(folder, other)


def values(path):
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            return np.column_stack([*arrays.values()])
    return read(path).X


def same_labels(*folders):
    rows, others = (np.loadtxt(f"{f}/labels.csv", delimiter=",", skiprows=1) for f in folders)
    np.testing.assert_array_equal(rows[:, [0, 3]], others[:, [0, 3]])


def files(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


@pytest.mark.parametrize("name", SAVED)
def test_the_same_results_as_in_memory(run, home, read_again, name):
    SAVED[name](name)
    whole = run("fit", name, "-o", "whole", "--no-report")
    parts = run("fit", name, "-o", "parts", "--no-report", *LIMIT)
    assert whole.code == parts.code
    assert whole.code in (0, 4)
    assert "block by block" not in whole.err
    assert "The memory limit is 200.0 kB, so they are read block by block, " in parts.err
    same("whole", "parts")
    result, other = (json.loads(Path(f, "result.json").read_text()) for f in ("whole", "parts"))
    if name == "x.csv":
        assert result["input"]["left_out"] == {"dates": ["day"], "numbers the rows": ["1"]}
    passes = other.pop("blocks")["passes"]
    assert 5 < passes < 40  # all rows take part, as they are few
    for one in (result, other):
        del one["timings"], one["files"], one["parameters"]
    for key in ("evidence", "noise", "threshold", "confidence", "structures", "standardize"):
        assert plain(other.pop(key)) == pytest.approx(plain(result.pop(key)), rel=1e-5, nan_ok=True)
    assert other == result
    again = run("apply", "whole", name, "-o", "again", *LIMIT)
    assert "read block by block, 2 times" in again.err
    same("again", "whole")
    assert again.out.splitlines()[3].startswith(("outliers", "left out"))


def plain(value):
    """All numbers of a nested value, in order."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for one in value for number in plain(one)]
    return [value] if isinstance(value, int | float) else []


@pytest.mark.parametrize("outliers", ["across", "both"])
@pytest.mark.parametrize("affine", ["no", "yes", "auto"])
def test_rows_are_read_as_often_as_was_said_at_most(run, home, affine, outliers):
    X = make_subspace(12_000, 12_000, n_features=12, codimension=1, noise=0.05, random_state=7).X
    np.savez_compressed("x.npz", X)  # single rows of it take a pass, too
    how = ("-o", "out", "--no-report", "--affine", affine, "--outliers", outliers)
    how = (*how, "--memory-limit", "2MB")
    said = int(re.search(r"at most (\d+) times", run("fit", "x.npz", *how).err)[1])
    result = json.loads(Path("out/result.json").read_text())
    assert len(result["structures"]) == 1
    assert said / 2 < result["blocks"]["passes"] <= said


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("affine", ["no", "yes"])
def test_rows_that_fit_are_read_twice(run, home, affine, seed):
    X = make_subspace(2000, 2000, n_features=12, codimension=1, noise=0.05, random_state=seed).X
    np.savez_compressed("x.npz", X)
    how = ("-o", "out", "--no-report", "--affine", affine, "--memory-limit", "1.03MB")
    assert "they are read block by block, twice, and then held." in run("fit", "x.npz", *how).err
    result = json.loads(Path("out/result.json").read_text())
    assert result["blocks"]["passes"] <= 2


def test_the_report_says_what_it_shows(run, home, monkeypatch):
    monkeypatch.setattr(_streaming, "SHOWN", 500)
    table("x.parquet")
    scene("x.hdr")
    assert run("fit", "x.parquet", "-o", "out", *LIMIT).code == 0
    page = Path("out/report.html").read_text()
    assert "This page shows 500 of its 3 000 rows, evenly spaced" in page.replace("\u2009", " ")
    assert "x.parquet: 500 of 3 000 rows" in page
    assert run("fit", "x.hdr", "-o", "scene", *LIMIT).code in (0, 4)
    assert "evenly spaced" in Path("scene/report.html").read_text()
    assert not list(Path("out").glob("*.raw"))


def test_a_text_of_many_rows_is_summarised(run, home):
    """Hints about its numbers need a window of it, not all of them at once, column by column."""
    X = make_subspace(12_000, 8000, n_features=6, codimension=1, random_state=1).X
    X[::50, 2:4] = -9999
    np.savetxt("x.csv", X, delimiter=",", fmt="%.4g", header="a,b,c,d,e,f", comments="")
    done = run("fit", "x.csv", "-o", "out", "--no-report", "--memory-limit", "500kB")
    assert done.code in (0, 4)
    assert '-9999 stands far out again and again in columns "c", "d"' in " ".join(done.out.split())
    assert "read block by block" in done.err


def test_quiet_says_nothing(run, home):
    np.save("x.npy", ROWS)
    done = run("fit", "x.npy", "-o", "out", "--no-report", "--quiet", *LIMIT)
    assert (done.out, done.err) == ("", "")


def test_columns_are_found_by_name(run, home):
    table("x.parquet")
    order = parquet.read_table("x.parquet").select(["c5", "name", *NAMES[:5], "k", "row id"])
    parquet.write_table(order, "y.parquet")
    run("fit", "x.parquet", "-o", "whole", "--no-report")
    run("apply", "whole", "y.parquet", "-o", "out", *LIMIT)
    same_labels("out", "whole")


@pytest.mark.parametrize("policy", ["error", "drop-rows", "drop-cols"])
def test_gaps(run, home, policy):
    rows = ROWS.copy()
    rows[[5, 2900, 2950], [1, 1, 1]] = np.nan, np.inf, np.nan
    table("x.parquet", rows)
    how = ("x.parquet", "--no-report", "--nan", policy)
    whole, parts = run("fit", *how, "-o", "whole"), run("fit", *how, "-o", "parts", *LIMIT)
    assert whole.code == parts.code
    if policy == "error":
        message = "3 values are missing, NaN or infinite, in 3 rows (the first, counting from 1: "
        assert message + 'row 6, column "c1")' in parts.err
    else:
        same("whole", "parts")


def test_gaps_in_new_rows(run, home):
    np.save("x.npy", ROWS)
    rows = ROWS.copy()
    rows[2000, 3] = np.nan
    np.save("y.npy", rows)
    run("fit", "x.npy", "-o", "model", "--no-report")
    assert "row 2001, column 4" in run("apply", "model", "y.npy", "-o", "a", *LIMIT).err
    run("apply", "model", "y.npy", "-o", "b", "--nan", "drop-rows", *LIMIT)
    run("apply", "model", "y.npy", "-o", "c", "--nan", "drop-rows")
    same("b", "c")


def test_what_needs_all_rows_stays_in_memory(run, home):
    np.save("x.npy", ROWS[:300])
    for how in (("--nan", "mask"), ("--method", "OutlierPursuit", "--codimension", 2)):
        done = run("fit", "x.npy", "-o", "out", "--no-report", "--force", *how, "--json")
        assert "block by block" not in done.err
        assert done.code in (0, 4)
    done = run("fit", "x.npy", "-o", "out", "--force", "--nan", "mask", "--memory-limit", "10kB")
    assert done.code == 5
    assert "--memory-limit" in done.err


def test_nothing_is_there_to_find(run, home):
    np.save("x.npy", np.zeros((3000, 6)))
    assert "every value is zero" in run("fit", "x.npy", "-o", "out", *LIMIT).err


def test_earlier_results_stay_if_the_disk_is_full(run, home, monkeypatch):
    np.save("x.npy", ROWS)
    run("fit", "x.npy", "-o", "out", "--no-report", *LIMIT)
    before, keep = files("out"), _streaming.Labels._keep

    def full(self, files, labelled, places, n):
        keep(self, files, labelled, places, n)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(_streaming.Labels, "_keep", full)
    done = run("fit", "x.npy", "-o", "out", "--no-report", "--force", *LIMIT)
    assert done.code == 5
    assert "No space left on device. Free some disk space" in done.err
    assert files("out") == before


KILLED = """
import os, signal, sys
from perpend.cli import _memory, _output, main
_memory.BASE = 0
_output.save_model = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # labels are written by then
main(sys.argv[1:])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
def test_drafts_of_killed_processes_are_removed(run, home):
    np.save("x.npy", ROWS)
    command = [sys.executable, "-c", KILLED, "fit", "x.npy", "-o", "out", "--no-report"]
    assert subprocess.run(command, timeout=120, check=False).returncode == -signal.SIGKILL
    (left,) = Path("out").iterdir()
    assert (left / "labels.csv").exists()
    with draft_folder(Path("out")) as mine:  # of a process that lives
        assert not left.exists()
        assert run("fit", "x.npy", "-o", "out", "--no-report").code == 0
        assert mine.exists()
    assert sorted(files("out")) == ["labels.csv", "model.npz", "result.json", "x-labelled.npy"]


def test_a_file_that_is_cut_short_during_a_fit(run, home, monkeypatch):
    np.save("x.npy", ROWS)
    stored = _streaming.stored

    def cut(*args):
        os.truncate("x.npy", 50_000)
        return stored(*args)

    monkeypatch.setattr(_streaming, "stored", cut)
    done = run("fit", "x.npy", "-o", "out", *LIMIT)
    assert done.code == 3
    assert "error: x.npy: has changed since it was opened, before rows 0 to" in done.err
    assert not Path("out").exists()


def test_a_folder_of_tables(run, home):
    Path("parts").mkdir()
    table("x.parquet")
    for i, part in enumerate(np.array_split(np.arange(3000), 3)):
        parquet.write_table(parquet.read_table("x.parquet").take(part), f"parts/{i}.parquet")
    run("fit", "x.parquet", "-o", "whole", "--no-report")
    shutil.copytree("parts", "gaps")
    rows = ROWS[2000:].copy()
    rows[7, 2] = np.nan
    table("gaps/2.parquet", rows)
    said = run("fit", "gaps", "-o", "out", *LIMIT).err
    assert f"row 2008 = row 8 of {Path('gaps', '2.parquet')}, column" in said
    assert run("fit", "parts", "-o", "out", "--no-report", *LIMIT).code == 0
    same_labels("out", "whole")
    assert parquet.read_table("out/parts-labelled.parquet").num_rows == 3000


def test_labels_in_a_folder_are_replaced_as_a_whole(run, home):
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    zarr.create_array("x.zarr", data=ROWS, chunks=(500, 6))
    command = ("fit", "x.zarr", "-o", "out", "--no-report", *LIMIT)
    run(*command)
    Path("out/x-labelled.zarr/old").touch()
    assert run(*command, "--force").code == 0
    kept = sorted(path.name for path in Path("out").iterdir())
    assert kept == ["labels.csv", "model.npz", "result.json", "x-labelled.zarr"]
    assert not Path("out/x-labelled.zarr/old").exists()
    result = json.loads(Path("out/result.json").read_text())
    assert [*result["files"]] == ["labels.csv", "model.npz", "x-labelled.zarr"]


def test_labels_are_written_block_by_block(run, home, monkeypatch):
    np.save("x.npy", ROWS)
    pieces = []

    def counted(path, parts, write=_output.write_labels):
        write(path, (pieces.append(len(places)) or (places, a) for places, a in parts))

    monkeypatch.setattr(_output, "write_labels", counted)
    run("fit", "x.npy", "-o", "out", "--no-report", *LIMIT)
    assert sum(pieces) == len(ROWS)
    assert max(pieces) * 6 * 8 <= 200_000 / 8


def test_memory_of_the_command_grows_by_a_few_values_for_each_row(run, home):
    how = ("--no-report", "-q", "--affine", "yes", "--standardize", "none", "--force")
    peaks, few, many = [], 40_000, 160_000  # both are searched in a sample
    for n in (few, few, many):  # the first time loads what a fit uses
        X = make_subspace(n // 2, n // 2, n_features=60, codimension=4, noise=0.02, random_state=0)
        np.save("x.npy", X.X.astype("f4"))
        tracemalloc.start()
        assert run("fit", "x.npy", "-o", "out", *how, "--memory-limit", "8MB").code == 0
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] - peaks[1] < 40 * (many - few)  # a row itself has 240 bytes

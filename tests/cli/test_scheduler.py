"""``perpend fit --scheduler ADDRESS``: the same result, computed by the workers of a cluster."""

import json
import logging
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from helpers import mostly_slow
from perpend.cli import _cluster, _memory, _streaming, main
from perpend.datasets import make_subspace

distributed = pytest.importorskip("distributed", reason="distributed is not installed")


ROWS = make_subspace(20_000, 10_000, n_features=8, codimension=2, noise=0.01, random_state=0).X
LIMIT = ("--memory-limit", "2MB", "--standardize", "none", "--affine", "no")


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, make_subspace(300, 200, n_features=8, codimension=2, random_state=0).X)
    return str(path)


def test_the_workers_find_the_same(rows, tmp_path):
    out = [str(tmp_path / name) for name in "ab"]
    with distributed.LocalCluster(
        n_workers=1, processes=False, dashboard_address=":0", silence_logs=logging.CRITICAL
    ) as cluster:
        cluster_at = ["--scheduler", cluster.scheduler_address]
        assert main(["fit", rows, "-o", out[0], "--no-report", *cluster_at]) == 0
    assert main(["fit", rows, "-o", out[1], "--no-report"]) == 0
    labels = [np.genfromtxt(f"{folder}/labels.csv", delimiter=",", names=True) for folder in out]
    np.testing.assert_array_equal(labels[0]["inlier"], labels[1]["inlier"])


def test_without_a_scheduler_there_it_says_so(rows, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(_cluster, "TIMEOUT", 1)
    nobody = ["--scheduler", "tcp://127.0.0.1:9", "--json"]
    assert main(["fit", rows, "-o", str(tmp_path / "c"), *nobody]) == 3
    assert "no Dask scheduler answered" in json.loads(capsys.readouterr().out)["error"]


# -- files larger than the memory limit ------------------------------------------------------------


def table(path, gap):
    columns = np.column_stack([np.arange(len(ROWS)), ROWS, np.ones(len(ROWS))])
    columns[[5, 17_000], 3] = gap
    names = ["row", *"abcdefgh", "one"]
    np.savetxt(path, columns, delimiter=",", header=",".join(names), comments="")


def scene(path, _):
    cube = ROWS.astype("<f4").reshape(100, 300, 8).copy()
    cube[:9, 5] = np.nan
    cube.transpose(2, 0, 1).tofile(path.with_suffix(".img"))
    about = "lines = 100\nsamples = 300\nbands = 8\ndata type = 4\ninterleave = bsq\n"
    path.write_text(f"ENVI\n{about}")


@pytest.fixture(scope="module")
def workers():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0",
        silence_logs=logging.CRITICAL,
    ) as cluster:  # fmt: skip
        yield cluster.scheduler_address


CASES = {
    "array": ("x.npy", lambda path, _: np.save(path, ROWS), 0, ()),
    "transposed": ("x.npy", lambda path, _: np.save(path, ROWS.T), 0, ("--transpose",)),
    "columns left out": ("x.csv", table, 0, ()),
    "rows left out": ("x.csv", table, np.nan, ("--nan", "drop-rows")),
    "scene": ("x.hdr", scene, 0, ()),
}


@pytest.mark.parametrize("case", mostly_slow(CASES, "array"))
def test_the_workers_read_a_file_larger_than_the_limit(
    tmp_path, capsys, monkeypatch, workers, case
):
    name, save, gap, how = CASES[case]
    monkeypatch.setattr(_memory, "BASE", 0)
    monkeypatch.setattr(_streaming, "COPIES", 50)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)  # bars can't be sent to workers
    monkeypatch.setenv("TERM", "xterm")
    path = tmp_path / name
    save(path, gap)
    out = [str(tmp_path / place) for place in "ab"]
    command = ["fit", str(path), "--no-report", *LIMIT, *how, "-o"]
    assert main([*command, out[0], "--scheduler", workers]) == 0
    assert "read block by block" in " ".join(capsys.readouterr().err.split())
    assert main([*command, out[1]]) == 0
    labels = [np.genfromtxt(f"{folder}/labels.csv", delimiter=",", names=True) for folder in out]
    np.testing.assert_array_equal(labels[0]["row"], labels[1]["row"])
    np.testing.assert_array_equal(labels[0]["inlier"], labels[1]["inlier"])


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
def test_ctrl_c_on_a_cluster_is_quiet_and_goes_on(tmp_path, workers):
    big = make_subspace(40_000, 40_000, n_features=30, codimension=4, random_state=5).X
    np.save(tmp_path / "x.npy", big)
    saved, eager = tmp_path / "out" / "fit.checkpoint", "journal.SECONDS = 0"
    lines = "import sys", "from perpend.cli import main", "from perpend.rows import journal", eager
    code = "\n".join([*lines, 'if __name__ == "__main__": sys.exit(main(sys.argv[1:]))'])
    how = ["--method", "RSGM", "--codimension", "4", "--affine", "no", "--no-report", "--resume"]
    out = ["-o", str(tmp_path / "out"), "--scheduler", workers]
    command = [sys.executable, "-c", code, "fit", str(tmp_path / "x.npy"), *how, *out]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not (saved.exists() and saved.stat().st_size > 5_000):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert "Traceback" not in said
    assert said.endswith(f"saved to {saved}: run the same command again to go on\ninterrupted\n")
    assert main(["fit", str(tmp_path / "x.npy"), *how, *out]) == 0
    assert not saved.exists()

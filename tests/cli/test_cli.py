"""The command line as users meet it: what it prints, what it writes, how it ends."""

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import perpend
from perpend.cli import _output, _progress, main
from perpend.cli._console import complain
from perpend.datasets import make_subspace
from perpend.exceptions import NumericalError
from perpend.solvers import Progress

DATA = make_subspace(120, 80, n_features=6, codimension=2, noise=0.01, random_state=0)
COLUMNS = ["B1", "B2", "B3", "B4", "B5", "B6"]


@pytest.fixture
def csv(tmp_path, monkeypatch):
    """A good table, in a folder that is the current one."""
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "scan.csv", DATA.X)
    return "scan.csv"


def write_csv(path, X):
    np.savetxt(path, X, delimiter=",", header=",".join(COLUMNS), comments="")


def in_a_process(*args, code="", **env):
    """Run a command, or some code, in a fresh process."""
    command = [sys.executable, *(["-c", code] if code else ["-m", "perpend"]), *args]
    environment = {**os.environ, **env}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env=environment
    )


# -- the program -----------------------------------------------------------------------------------


def test_version(run):
    assert run("--version") == (0, f"perpend {perpend.__version__}\n", "")


def test_help_lists_the_commands(run):
    code, out, _ = run("--help")
    assert code == 0
    listed = re.findall(
        r"^  ([a-z]+) ", out.partition("Commands:")[2].partition("Exit")[0], re.MULTILINE
    )
    assert listed == ["demo", "inspect", "fit", "apply", "compare", "report", "reproduce", "doctor"]


def test_no_command_shows_the_help(run):
    _, out, err = run()
    assert "Usage: perpend" in out + err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["fot"], "No such command"),
        (["fit"], "Missing argument"),
        (["fit", "a.csv"], "Missing option"),
        (["fit", "a.csv", "-o", "out", "--codimension", "two"], "'two' is neither auto nor"),
        (["fit", "a.csv", "-o", "out", "--codimension", "-1"], "whole number >= 0"),
        (["fit", "a.csv", "-o", "out", "--starts", "0"], "whole number >= 1"),
        (["fit", "a.csv", "-o", "out", "--threshold", "nan"], "number >= 0"),
        (["demo", "--seed", "-1"], "--seed"),
        (["demo", "--nonsense"], "No such option"),
    ],
)
def test_usage_errors(run, args, message):
    code, out, err = run(*args)
    assert code == 2
    assert out == ""
    assert err.startswith("error: ")
    assert message in err
    assert "--help" in err


def test_python_m_is_the_same_program():
    done = in_a_process("fit")
    assert done.returncode == 2
    assert "See: perpend fit --help" in done.stderr
    assert in_a_process("--help").stdout.startswith("Usage: perpend ")


# -- demo ------------------------------------------------------------------------------------------


def test_demo_in_a_pipe():
    done = in_a_process("demo", FORCE_COLOR="1")
    assert done.returncode == 0
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert "\r" not in done.stdout
    keys = [line.split()[0] for line in done.stdout.splitlines() if not line.startswith(" ")]
    assert keys == ["data", "subspace", "confidence", "outliers", "truth", "PCA", "time", "next"]
    assert "dimension 25 of 30, codimension 5" in done.stdout
    assert "1 500 of 2 500 rows (60.0 %)" in done.stdout
    assert "F1 1.000" in done.stdout


def test_demo_writes_a_report_but_never_over_another(run, tmp_path):
    folder = tmp_path / "demo"
    assert run("demo", "-o", folder)[0] == 0
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "25-dimensional subspace in 30 columns" in page
    code, _, err = run("demo", "-o", folder)
    assert code == 2
    assert "already has report.html. Use --force" in err
    assert run("demo", "-o", folder, "--force")[0] == 0


def test_demo_takes_a_seed(run):
    code, out, _ = run("demo", "--seed", 3)
    assert code == 0
    assert "seed 3" in out
    assert "codimension 5" in out


@pytest.mark.skipif(sys.platform == "win32", reason="no pipes of this kind")
def test_a_reader_that_leaves_is_no_error():
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "perpend", "demo"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, timeout=120, check=False)
    os.close(write)
    assert done.returncode == 0
    assert done.stderr == b""


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
def test_demo_on_a_terminal_shows_its_progress():
    pty = pytest.importorskip("pty")
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "perpend", "demo"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=follower, env=environment
    ) as process:
        os.close(follower)
        shown = b""
        with contextlib.suppress(OSError):  # that is how the end of a terminal looks
            while piece := os.read(leader, 1 << 16):
                shown += piece
        out = process.stdout.read()
    os.close(leader)
    assert process.returncode == 0
    assert b"\x1b" not in out
    assert b"loading NumPy" in shown
    assert b"\x1b[2K" in shown  # it cleans up behind itself


# -- fit: what it writes ---------------------------------------------------------------------------


def test_fit_writes_labels_model_and_result(run, csv, tmp_path):
    code, out, err = run("fit", csv, "-o", "results")
    assert (code, err) == (0, "")
    assert "dimension 4 of 6, codimension 2" in out
    assert "200 rows x 6 columns" in out
    folder = tmp_path / "results"
    names = ["labels.csv", "model.npz", "report.html", "report.json", "scan-labelled.csv"]
    assert sorted(p.name for p in folder.iterdir()) == sorted([*names, "result.json"])

    pipeline = perpend.load(folder / "model.npz")
    X = pipeline[0].transform(pd.read_csv(csv))  # it knows the names of the columns
    model = pipeline[-1]
    head = "row,distance,probability,inlier"
    assert (folder / "labels.csv").read_text().splitlines()[0] == head
    values = np.loadtxt(folder / "labels.csv", delimiter=",", skiprows=1)
    row, distance, probability, inlier = values.T
    np.testing.assert_array_equal(row, np.arange(200))
    np.testing.assert_array_equal(distance, -model.score_samples(X))
    np.testing.assert_array_equal(probability, model.outlier_probability(X))
    np.testing.assert_array_equal(inlier, model.predict(X) == 1)

    result = json.loads((folder / "result.json").read_text())
    assert result["schema_version"] == 2
    assert result["perpend"] == perpend.__version__
    assert set(result["versions"]) == {"python", "numpy", "scipy", "scikit-learn"}
    assert result["input"]["name"] == "scan.csv"
    assert result["input"]["shape"] == [200, 6]
    assert result["input"]["columns"] == COLUMNS
    assert result["input"]["dtype"] == "float64"
    assert result["input"]["sha256"] == _output.sha256(tmp_path / "scan.csv")
    assert (result["codimension"], result["dimension"], result["seed"]) == (2, 4, 0)
    assert result["sure"] is True
    assert result["confidence"] >= 0.95
    assert result["evidence"] == _output.plain(model.evidence_)
    assert result["threshold"] == model.threshold_
    np.testing.assert_array_equal(inlier, distance <= result["threshold"])
    assert result["outliers"] == int(np.sum(inlier == 0))
    assert result["outlier_share"] == np.mean(inlier == 0)
    assert result["parameters"]["codimension"] == "auto"
    assert "callback" not in result["parameters"]
    assert result["warnings"] == []
    assert set(result["timings"]) == {"read", "fit"}
    assert result["files"] == {name: _output.sha256(folder / name) for name in names}
    table = pd.read_csv(folder / "scan-labelled.csv")
    assert list(table) == [*COLUMNS, "distance", "probability", "inlier"]
    np.testing.assert_array_equal(table["inlier"], inlier)
    assert "scan.csv" in (folder / "report.html").read_text(encoding="utf-8")


def test_the_same_seed_gives_the_same_files(run, csv, tmp_path):
    for name in "ab":
        assert run("fit", csv, "-o", name, "--seed", 7)[0] == 0
    for file in ("labels.csv", "model.npz"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_json_goes_to_stdout(run, csv, tmp_path):
    code, out, err = run("fit", csv, "-o", "results", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == json.loads((tmp_path / "results" / "result.json").read_text())


def test_options_reach_the_estimator(run, csv, tmp_path):
    options = "--codimension 1 --starts 9 --threshold 0.5 --no-normalize --no-refine --seed 4"
    run("fit", csv, "-o", "results", *options.split())
    model = perpend.load(tmp_path / "results" / "model.npz")[-1]
    assert (model.codimension, model.n_starts, model.threshold) == (1, 9, 0.5)
    assert (model.normalize, model.refine, model.random_state) == (False, False, 4)
    assert model.threshold_ == 0.5
    assert model.n_starts_ == 9


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_npy_and_npz(run, csv, tmp_path, dtype):
    X = DATA.X.astype(dtype)
    np.save("one.npy", X)
    np.savez("two.npz", a=X, b=X[:5])
    assert run("fit", "one.npy", "-o", "npy")[0] == 0
    assert run("fit", "two.npz", "-o", "npz", "--variable", "a")[0] == 0
    results = [json.loads((tmp_path / d / "result.json").read_text()) for d in ("npy", "npz")]
    assert [r["input"]["dtype"] for r in results] == [dtype, dtype]
    assert results[0]["threshold"] == results[1]["threshold"]


def test_results_are_not_overwritten_without_force(run, csv, tmp_path):
    assert run("fit", csv, "-o", "results")[0] == 0
    before = (tmp_path / "results" / "model.npz").read_bytes()
    code, out, err = run("fit", csv, "-o", "results", "--seed", 1)
    assert (code, out) == (2, "")
    assert err.startswith("error: results: already has labels.csv, model.npz, result.json, report")
    assert "--force" in err
    assert (tmp_path / "results" / "model.npz").read_bytes() == before
    assert run("fit", csv, "-o", "results", "--seed", 1, "--force")[0] == 0
    assert json.loads((tmp_path / "results" / "result.json").read_text())["seed"] == 1


def test_the_input_is_never_overwritten(run, csv, tmp_path):
    (tmp_path / "results").mkdir()
    write_csv(tmp_path / "results" / "labels.csv", DATA.X)
    code, _, err = run("fit", "results/labels.csv", "-o", "results", "--force")
    assert code == 2
    assert "would overwrite" in err


def test_a_full_disk_leaves_what_was_there(run, csv, tmp_path, monkeypatch):
    assert run("fit", csv, "-o", "results")[0] == 0
    before = {p.name: p.read_bytes() for p in (tmp_path / "results").iterdir()}

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    code, out, err = run("fit", csv, "-o", "results", "--force")
    assert (code, out) == (5, "")
    assert err.startswith("error: results/labels.csv: No space left on device.")
    assert {p.name: p.read_bytes() for p in (tmp_path / "results").iterdir()} == before


# -- fit: results that are not sure ----------------------------------------------------------------


def test_messages_speak_of_options(capsys):
    complain("too few (raise n_starts)")
    assert capsys.readouterr().err == "error: too few (raise --starts)\n"


def test_not_sure_is_exit_code_4_with_results(run, csv, tmp_path):
    noisy = make_subspace(60, 60, n_features=6, codimension=2, noise=0.4, random_state=0)
    write_csv(tmp_path / csv, noisy.X)
    code, out, err = run("fit", csv, "-o", "results", "--starts", 2, "--standardize", "none")
    assert code == 4
    assert err.startswith("warning: codimension 2 is not sure")
    assert "(more rows would help)" in err
    assert "UserWarning" not in err
    assert "confidence  medium" in out
    result = json.loads((tmp_path / "results" / "result.json").read_text())
    assert result["sure"] is False
    assert len(result["warnings"]) == 1


def test_no_subspace_is_exit_code_4_with_results(run, csv, tmp_path):
    np.save("noise.npy", np.random.default_rng(0).standard_normal((300, 4)))
    code, out, _ = run("fit", "noise.npy", "-o", "results")
    assert code == 4
    assert "none found" in out
    assert json.loads((tmp_path / "results" / "result.json").read_text())["codimension"] == 0


# -- fit: input that cannot be used ----------------------------------------------------------------


def with_gaps(path):
    X = DATA.X.copy()
    X[104, 2] = X[104, 3] = X[110, 0] = np.nan
    write_csv(path, X)


def with_text(path):
    path.write_text("a,b\n1,2\n3,gone\n")


BAD = {
    "missing.csv": (None, "no such file"),
    "folder.csv": (lambda path: path.mkdir(), "is a directory"),
    "gaps.csv": (with_gaps, '3 values are missing.* in 2 rows .*row 105, column "B3"'),
    "text.csv": (with_text, 'line 3, column "b": cannot read "gone"'),
    "one.csv": (lambda path: path.write_text("1,2,3\n"), "only one row"),
    "empty.csv": (lambda path: path.write_text(""), "empty"),
    "zero.csv": (lambda path: path.write_text("0,0\n0,0\n"), "is zero"),
    "data.xls": (lambda path: path.write_text("1"), "cannot read files of type"),
    "junk.npz": (lambda path: path.write_bytes(b"junk"), "not a readable .npz"),
    "two.npz": (lambda path: np.savez(path, a=DATA.X, b=DATA.X), "several arrays.*--variable"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_exit_code_3(run, csv, tmp_path, name):
    make, message = BAD[name]
    if make:
        make(tmp_path / name)
    code, out, err = run("fit", name, "-o", "results")
    assert (code, out) == (3, "")
    assert err.startswith(f"error: {name}: ")
    assert err.count("\n") == 1
    assert re.search(message, err), err
    assert not (tmp_path / "results").exists()


def test_parameters_that_do_not_fit_the_data(run, csv):
    code, _, err = run("fit", csv, "-o", "results", "--codimension", 9)
    assert code == 3
    assert err.startswith("error: scan.csv: codimension=9 is larger than the number of features")


@pytest.mark.parametrize("folder", ["scan.csv", "scan.csv/sub/folder"])
def test_an_output_folder_that_is_a_file(run, csv, folder):
    code, _, err = run("fit", csv, "-o", folder)
    assert code == 2
    assert "scan.csv: is a file" in err


def test_names_with_control_characters_are_shown_harmlessly(run, csv):
    code, _, err = run("fit", "evil\x1b[31m.csv", "-o", "results")
    assert code == 3
    assert "\x1b" not in err


# -- fit: when it ends early -----------------------------------------------------------------------


def test_interruption_is_exit_code_130(run, csv, tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(perpend.DPCP, "fit", interrupt)
    code, out, err = run("fit", csv, "-o", "results")
    assert (code, out, err) == (130, "", "interrupted\n")
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("problem", "code"),
    [
        (MemoryError("Unable to allocate 8 TiB"), 5),
        (ZeroDivisionError("division by zero"), 1),
        (np.linalg.LinAlgError("did not converge"), 1),
        (NumericalError("The objective became nan"), 1),
    ],
)
def test_other_problems_have_no_traceback(run, csv, monkeypatch, problem, code):
    def fail(*_args, **_kwargs):
        raise problem

    monkeypatch.setattr(perpend.DPCP, "fit", fail)
    monkeypatch.setattr(tempfile, "tempdir", str(Path.cwd()))
    done, out, err = run("fit", csv, "-o", "results")
    assert (done, out) == (code, "")
    assert err.startswith("error: ")
    assert str(problem) in err


def test_a_bug_leaves_a_log(run, csv, monkeypatch, tmp_path):
    def fail(*_args, **_kwargs):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(perpend.DPCP, "fit", fail)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code, _, err = run("fit", csv, "-o", "results")
    assert code == 1
    assert err.count("\n") == 1
    log = Path(re.search(r"details are in (\S+\.log)", err)[1])
    assert log.parent == tmp_path
    assert "Traceback" in log.read_text()
    assert "ZeroDivisionError: division by zero" in log.read_text()


def test_a_bug_in_the_report_costs_nothing_else(run, csv, monkeypatch, tmp_path):
    def fail(*_args, **_kwargs):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("perpend.report.write_report", fail)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code, out, err = run("fit", csv, "-o", "results")
    assert code == 0
    assert err.startswith("warning: there is no report.html: ZeroDivisionError")
    assert "results/labels.csv  model.npz  scan-labelled.csv  result.json" in out
    result = json.loads((tmp_path / "results" / "result.json").read_text())
    assert len(result["warnings"]) == 1


def test_a_bug_shows_its_traceback_on_request(csv, monkeypatch, capsys):
    def fail(*_args, **_kwargs):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(perpend.DPCP, "fit", fail)
    monkeypatch.setattr(tempfile, "tempdir", str(Path.cwd()))
    monkeypatch.setenv("PERPEND_DEBUG", "1")
    assert main(["fit", csv, "-o", "results"]) == 1
    assert "Traceback" in capsys.readouterr().err


# -- progress --------------------------------------------------------------------------------------


def test_no_progress_where_none_is_wanted(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    with _progress.monitor(quiet=True) as watch:
        watch.phase("loading")
        for step in range(25):
            now[0] += 11.0
            watch(Progress("descent", step, 1.0, 0.75, 0.0))
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""


def test_progress_without_a_terminal_is_a_line_now_and_then(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now[0])
    with _progress.monitor() as watch:
        watch.phase("loading")
        for step in range(25):
            now[0] += 1.0
            watch(Progress("descent", step, 1.0, 0.75, 0.0))
        now[0] += 11
        watch(Progress("finish", 3, 1.0, 0.1, 0.0))
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "searching, step 11: 25% done, about 0:30 left in this stage",
        "searching, step 22: 25% done, about 1:03 left in this stage",
        "polishing, step 3",
    ]

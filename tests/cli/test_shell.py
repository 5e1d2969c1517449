"""``perpend doctor``, ``perpend report``, completion and closed streams."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import perpend
from perpend._progress import ProgressBar
from perpend.cli._options import METHODS, complete_format, complete_method, complete_path

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
MODULE, FUNCTION = PROJECT["project"]["scripts"]["perpend"].split(":")
SCRIPT = f"import sys; from {MODULE} import {FUNCTION}; sys.exit({FUNCTION}())"  # as pip writes it


def completions(line, cwd):
    words = line.split(" ")
    environment = {
        **os.environ,
        "_PERPEND_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    code = "from perpend.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=environment,
        cwd=cwd,
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_completion(home):
    (home / "scan.csv").touch()
    (home / "scenes").mkdir()
    assert completions("perpend in", home) == ["inspect"]
    assert completions("perpend fit sc", home) == ["scan.csv", "scenes/"]
    assert completions("perpend fit scan.csv --method R", home) == [
        name for name in METHODS if name.startswith("R")
    ]
    assert completions("perpend fit scan.csv --affine a", home) == ["auto"]


def test_completion_of_paths_methods_and_formats(home):
    (home / "scenes").mkdir()
    (home / "scenes" / "a.hdr").touch()
    (home / ".hidden").touch()
    assert complete_path("") == ["scenes/", "tmp/"]
    assert complete_path("scenes/") == ["scenes/a.hdr"]
    assert complete_path(".h") == [".hidden"]
    assert complete_path("nowhere/x") == []
    assert complete_method("") == list(METHODS)
    assert complete_method("dpcp-i") == ["DPCPIRLS"]
    assert complete_format("np") == ["npy", "npz"]


@pytest.mark.parametrize(
    "line",
    [
        *("--help", "--version", "fit --help", "fit", "inspect", "compare --help", "doctor -h"),
        *("reproduce", "reproduce --help", "reproduce nonsense"),
        "reproduce theory --scene x.mat",
    ],
)
def test_help_and_usage_errors_load_nothing_heavy(line):
    code = (
        "import sys; from perpend.cli import main; main(sys.argv[1:]); "
        "heavy = {'numpy', 'scipy', 'sklearn', 'pandas', 'matplotlib', 'rich'} & set(sys.modules); "
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    command = [sys.executable, "-c", code, *line.split()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="no such shell")
def test_standard_input_that_is_closed(home):
    command = f"exec {sys.executable} -m perpend inspect - <&-"
    done = subprocess.run(
        command, shell=True, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 3
    assert done.stderr.startswith("error: standard input: is closed.")
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="no such shell")
def test_standard_output_that_is_closed(csv):
    command = f"exec {sys.executable} -m perpend inspect {csv} --json >&-"
    done = subprocess.run(
        command, shell=True, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("start", [["-m", "perpend"], ["-c", SCRIPT]], ids=["module", "script"])
def test_an_interruption_of_the_imports_is_exit_code_130(home, start):
    (home / "typer.py").write_text("raise KeyboardInterrupt\n")  # ours is the first one found
    path = os.pathsep.join([str(home), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, *start, "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


# -- json ------------------------------------------------------------------------------------------


def test_a_bug_in_json(run, csv, monkeypatch):
    def fail(*_args, **_kwargs):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(perpend.DPCP, "fit", fail)
    done = run("fit", csv, "-o", "results", "--json")
    assert done.code == 1
    said = json.loads(done.out)
    assert said == {"error": done.err.removeprefix("error: ").rstrip("\n"), "exit_code": 1}
    assert said["error"].startswith("ZeroDivisionError: division by zero. This looks like a bug")


def test_a_file_called_like_the_option_gives_no_json(run, home):
    done = run("inspect", "--", "--json")
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith("error: --json: no such file")


@pytest.mark.parametrize("name", ["no\xa0break", "dele\x7fte", "tag\U000e0041", "Größe"])
def test_json_of_names_that_cannot_be_printed(run, home, name):
    (home / "scan.csv").write_text(f"a,{name}\n1,2\n3,5\n4,4\n", encoding="utf-8")
    assert json.loads(run("inspect", "scan.csv", "--json").out)["columns"] == ["a", name]


# -- doctor ----------------------------------------------------------------------------------------


def test_doctor(run):
    done = run("doctor")
    assert (done.code, done.err) == (0, "")
    assert f"perpend     {perpend.__version__}, Python" in done.out
    assert "self-test   passed" in done.out


def test_doctor_in_json(run):
    found = json.loads(run("doctor", "--json").out)
    assert found["self_test"]["passed"] is True
    assert found["versions"]["numpy"]
    assert found["memory"] > 0


def test_doctor_names_what_is_missing(run, monkeypatch):
    needs = ["numpy>=2", 'nosuchpackage>=1; extra == "magic"', 'pytest>=8; extra == "dev"']
    needs += ['numpy; extra == "plots"', 'perpend[plots]; extra == "dev"']
    monkeypatch.setattr("importlib.metadata.requires", lambda _: needs)
    extras = json.loads(run("doctor", "--json").out)["extras"]
    assert extras["magic"] == {"nosuchpackage": None}
    assert list(extras) == ["magic", "plots"]
    said = run("doctor").out
    assert 'extras      magic: nosuchpackage missing: pip install "perpend[magic]"\n' in said
    assert f"\n            plots: numpy {np.__version__}\n" in said


def test_doctor_survives_what_is_broken(run, monkeypatch):
    def fail(*_args, **_kwargs):
        raise OSError("libblas is gone")

    monkeypatch.setattr(perpend.DPCP, "fit", fail)
    done = run("doctor")
    assert done.code == 0
    assert "FAILED: OSError: libblas is gone" in done.out


# -- report ----------------------------------------------------------------------------------------


def test_report_again(run, csv, home):
    assert run("fit", csv, "-o", "out", "-q").code == 0
    page = (home / "out" / "report.html").read_text(encoding="utf-8")
    assert run("report", "out").code == 2
    (home / "out" / "report.html").unlink()
    done = run("report", "out")
    assert (done.code, done.out) == (0, "wrote       out/report.html\n")
    assert (home / "out" / "report.html").read_text(encoding="utf-8") == page
    assert run("report", "out", "--force", "-q").out == ""


def test_report_of_a_folder_without_facts(run, csv, home):
    assert run("fit", csv, "-o", "out", "-q", "--no-report").code == 0
    assert not (home / "out" / "report.json").exists()
    assert run("report", "out").code == 0
    assert "subspace" in (home / "out" / "report.html").read_text(encoding="utf-8")


def test_a_file_is_left_to_its_reader(run, csv, monkeypatch):
    # If typer checked whether the file is readable, the exit code would be 2, not 3.
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    assert run("inspect", csv).code == 0


def test_the_clock_of_the_bar_runs_on_when_all_descents_have_converged(monkeypatch):
    shown = []
    monkeypatch.setattr("rich.progress.Progress.update", lambda *_, **new: shown.append(new))
    converged = SimpleNamespace(stage="descent", step=7, change=0.0)
    with ProgressBar() as watch:
        watch(converged)
    assert 0.9 < shown[-1]["completed"] < shown[-1]["total"]  # rich stops it where they are equal

"""``perpend reproduce`` as users meet it; what the frame does is tested in tests/experiments."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from helpers import mostly_slow
from perpend import experiments
from perpend.cli import _progress, main
from perpend.cli.reproduce import show_cases
from perpend.experiments._runner import Progress

TOY = """
import time
from pathlib import Path
from perpend.experiments import Experiment

HERE = Path(__file__).parent

def run(case):
    if case["seed"] == 0 and (HERE / "broken").exists():
        raise ValueError("no luck")
    while case["seed"] > 1 and (HERE / "slow").exists():
        time.sleep(0.05)
    return {"points": [{**case, "y": 2 * case["seed"]}]}

def draw(results):
    from perpend import plots
    x, y = (results.column("points", name) for name in ("seed", "y"))
    return {"toy": plots.curves({"": {"y": (x, y)}}, xlabel="seed", ylabel="y")}

EXPERIMENT = Experiment(
    name="toy",
    title="A toy",
    about="Doubles numbers.",
    cases=lambda s: [{"seed": i} for i in range(s.seeds or (2 if s.quick else 4))],
    run=run,
    draw=draw,
    summary=lambda s: [{k: str(v) for k, v in row.items()} for row in s.rows("points")],
)
"""
PROGRAM = """
import signal
import sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
sys.path.insert(0, sys.argv.pop(1))
from perpend import experiments
experiments.NAMES.clear(); experiments.NAMES.update(toy="perpend_toy")
from perpend.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder with the toy in it; the current folder is an empty one beside it."""
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "perpend_toy.py").write_text(TOY)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.syspath_prepend(folder)
    registry = dict(experiments.NAMES)  # shared by reference, so it is changed in place
    experiments.NAMES.clear()
    experiments.NAMES["toy"] = "perpend_toy"
    yield folder
    experiments.NAMES.clear()
    experiments.NAMES.update(registry)
    sys.modules.pop("perpend_toy", None)


@pytest.fixture(name="run")
def run_reproduce(run):
    return lambda *args: run("reproduce", *args)


# -- what can be asked -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["phase-transitions"], "Did you mean 'phase-transition'? There are: implicit-bias, "),
        (["calibration"], "from a checkout of perpend, run: python -m studies calibration"),
        (["real_data"], "python -m studies boards"),
        (["theory", "--scene", "a.mat"], "theory takes no scene; hyperspectral does"),
        (["theory", "--seeds", "0"], "--seeds"),
        (["theory", "--jobs", "0"], "--jobs"),
        (["theory", "--redraw", "--force"], "--redraw"),
        ([], "Missing argument"),
    ],
)
def test_usage_errors(run, args, message):
    code, out, err = run(*args)
    assert (code, out) == (2, "")
    assert message in err
    assert "See: perpend reproduce --help" in err


def test_list_names_them_all(run, home):
    code, out, _ = run("list")
    assert code == 0
    assert out.splitlines() == ["toy  Doubles numbers.", "all  all of them, one after another"]


# -- a run -----------------------------------------------------------------------------------------


def test_a_run_says_what_it_found_and_wrote(run, home):
    code, out, err = run("toy", "--quick", "--jobs", 2)
    assert (code, err) == (0, "")
    assert "experiment  toy: A toy\n" in out
    assert "quick size, 2 cases" in out
    assert "result      seed  y\n            0     0\n            1     2\n" in out
    assert "python -m studies pages --out reproduction\n" in out
    for name in ("points.csv", "results.json", "toy.png", "toy.svg"):
        assert name in out
        assert (Path("reproduction/toy") / name).exists()


def test_all_and_redraw(run, home):
    assert run("toy", "--redraw")[0] == run("all", "--redraw")[0] == 3
    assert run("all", "--quick", "-o", "docs/made")[0] == 0
    Path("docs/made/toy/toy.png").unlink()
    (home / "broken").touch()  # would fail if it computed
    for name in ("toy", "all"):
        assert run(name, "--redraw", "-o", "docs/made")[0] == 0
    assert Path("docs/made/toy/toy.png").exists()


def test_a_quick_run_does_not_replace_full_size(run, home):
    assert run("toy", "--seeds", 1)[0] == 0
    code, _, err = run("toy", "--quick")
    assert code == 2
    assert "holds results of full size" in err
    assert run("toy", "--quick", "--force")[0] == 0
    assert json.loads(Path("reproduction/toy/results.json").read_text())["quick"] is True


def test_a_failed_case_is_named(run, home):
    (home / "broken").touch()
    code, out, err = run("toy", "--quick", "--jobs", 1)
    assert (code, out) == (1, "")
    assert (
        'error: toy: 1 case failed, 1 are done and kept:\n  {"seed":0}: ValueError: no luck' in err
    )


# -- places that cannot be written to --------------------------------------------------------------


def test_a_file_in_the_way(run, home):
    Path("taken").touch()
    for out in ("taken", "taken/below"):
        code, _, err = run("toy", "--out", out)
        assert code == 2
        assert "taken: is a file, so there can be no folder" in err


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may do anything")
def test_a_folder_without_permission(run, home):
    Path("closed").mkdir(mode=0o555)
    code, _, err = run("toy", "--out", "closed/made")
    assert code == 5
    assert "closed: Permission denied" in err


def test_permission_is_asked_for_before_any_work(run, home, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    code, _, err = run("toy")
    assert code == 5
    assert "Permission denied" in err
    assert not Path("reproduction").exists()


def test_without_matplotlib(run, home, monkeypatch):
    monkeypatch.setattr("perpend.plots._style.find_spec", lambda name: None)
    code, _, err = run("toy")
    assert code == 6
    assert "pip install 'perpend[plots]'" in err
    assert not Path("reproduction").exists()


# -- interruption ----------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="no signals of this kind")
@pytest.mark.parametrize("how", mostly_slow([signal.SIGINT, signal.SIGKILL], signal.SIGINT))
def test_an_interrupted_run_keeps_what_is_finished(run, home, how):
    (home / "slow").touch()
    command = [sys.executable, "-c", PROGRAM, str(home), "reproduce", "toy", "--jobs", "1"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    checkpoint = Path("reproduction/toy/cases.jsonl")
    deadline = time.monotonic() + 60
    while not checkpoint.exists() or len(checkpoint.read_text().splitlines()) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    if how == signal.SIGINT:  # as a terminal does: to the workers, too
        os.killpg(process.pid, how)
    else:
        process.send_signal(how)
    _, err = process.communicate(timeout=30)  # ends only when the workers have closed stderr, too
    assert "Traceback" not in err
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert "Go on with: perpend reproduce toy --out reproduction" in err
    kept = checkpoint.read_text()
    (home / "slow").unlink()
    assert run("toy")[0] == 0
    assert checkpoint.read_text().startswith(kept)
    assert len(checkpoint.read_text().splitlines()) == 4


# -- progress --------------------------------------------------------------------------------------


def test_progress_in_a_pipe_is_a_line_now_and_then(capsys, monkeypatch):
    monkeypatch.setattr(_progress, "LINE_SECONDS", -1.0)
    with _progress.monitor() as watch:
        show = show_cases(watch, "toy")
        show(Progress(0, 200, 0.0, None))
        show(Progress(37, 200, 0.2, 754.0))
        monkeypatch.setattr(_progress, "LINE_SECONDS", 10.0)
        show(Progress(38, 200, 0.2, 750.0))
    assert capsys.readouterr().err.splitlines() == [
        "toy: 0% done, 0 of 200 cases",
        "toy: 20% done, 37 of 200 cases, about 12:34 left",
    ]


def test_progress_on_a_terminal_is_a_bar(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    with _progress.monitor() as watch:
        show_cases(watch, "phase-transition")(Progress(37, 200, 0.25, 754.0))
    err = capsys.readouterr().err
    assert "phase-transition" in err
    assert "25%" in err
    assert "37 of 200 cases, about 12:34 left" in err


# -- scenes --------------------------------------------------------------------------------------


def scene_error(tmp_path, monkeypatch, capsys, scene):
    """Run with a scene that cannot be used; return the message."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PERPEND_DATA", raising=False)
    options = [] if scene is None else ["--quick", "--scene", str(scene)]
    assert main(["reproduce", "hyperspectral", *options]) == 3
    assert not (tmp_path / "reproduction" / "hyperspectral" / "cases.jsonl").exists()
    return capsys.readouterr().err


def test_scenes_that_cannot_be_used(tmp_path, monkeypatch, capsys):
    def error(name, content):
        np.save(tmp_path / name, content)
        return scene_error(tmp_path, monkeypatch, capsys, tmp_path / name)

    assert "needs a scene. Name a file with --scene" in scene_error(
        tmp_path, monkeypatch, capsys, None
    )
    missing = scene_error(tmp_path, monkeypatch, capsys, tmp_path / "no.npy")
    assert "no.npy: " in missing
    (tmp_path / "junk.npz").write_bytes(b"no archive")
    assert "not a readable .npz" in scene_error(
        tmp_path, monkeypatch, capsys, tmp_path / "junk.npz"
    )
    rng = np.random.default_rng(0)
    assert "has 9 bands that are not constant (9 in all)" in error("few.npy", rng.random((5, 6, 9)))
    dark = rng.random((5, 6, 12))
    dark[:, :, ::3] = 0.5
    assert "has 8 bands that are not constant (12 in all)" in error("dark.npy", dark)
    assert "height x width x bands" in error("flat.npy", rng.random((30, 12)))
    holes = rng.random((5, 6, 12))
    holes[1, 2, 3] = np.nan
    assert "row 1, column 2" in error("holes.npy", holes)


def test_fewer_trials_do_not_replace_more(run, home):
    assert run("toy", "--seeds", "5")[0] == 0
    code, _, err = run("toy", "--seeds", "3")
    assert code == 2
    assert "holds results of full size with 5 cases" in err
    assert run("toy", "--seeds", "6")[0] == run("toy", "--seeds", "3", "--force")[0] == 0

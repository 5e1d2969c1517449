"""The frame that experiments run in: nothing is lost, nothing is computed twice, nothing depends
on the number of processes, and pictures come from what is stored."""

import csv
import json
import math
import os
import sys
import textwrap

import numpy as np
import pytest

from perpend import __version__, experiments
from perpend.exceptions import InputError, MissingExtraError
from perpend.experiments import Results, Settings, _store
from perpend.experiments._runner import CasesFailedError, redraw, reproduce

TOY = """
import math, os, time
from pathlib import Path
from perpend.experiments import Experiment

HERE = Path(__file__).parent

def cases(settings):
    n = settings.seeds or (2 if settings.quick else 4)
    return [{"size": size, "seed": seed} for size in (3, 5) for seed in range(n)]

def run(case):
    with (HERE / "calls.txt").open("a") as stream:
        stream.write(f"{case['size']} {case['seed']}\\n")
    if (HERE / "broken").exists() and case == {"size": 5, "seed": 1}:
        raise ValueError("this one never works")
    if (HERE / "deadly").exists() and case == {"size": 5, "seed": 1}:
        os._exit(7)
    time.sleep(0.01 * (case["seed"] % 2))  # they end in another order than they begin
    x = math.sin(case["size"] + case["seed"]) / 3
    rows = [{**case, "x": x, "good": x > 0, "bad": math.nan}]
    return {"points": rows, "notes": [{"text": f"seed {case['seed']}"}]}

def draw(results):
    from perpend import plots
    lines = {
        f"size {size}": tuple(results.column("points", name, size=size) for name in ("seed", "x"))
        for size in results.values("points", "size")
    }
    return {"toy": plots.curves({"": lines}, xlabel="seed", ylabel="x")}

EXPERIMENT = Experiment(
    "toy", "A toy: two sizes", "For tests.", cases, run, draw, cost=lambda case: case["size"]
)
"""
QUICK = Settings(quick=True)


class Toy:
    """The experiment, and what it has done."""

    def __init__(self, home):
        self.home = home
        self.experiment = experiments.load("toy")

    def calls(self):
        path = self.home / "calls.txt"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return sorted(tuple(map(int, line.split())) for line in lines)


@pytest.fixture
def toy(tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    (home / "perpend_toy.py").write_text(TOY)
    monkeypatch.syspath_prepend(home)
    monkeypatch.setitem(experiments.NAMES, "toy", "perpend_toy")
    yield Toy(home)
    sys.modules.pop("perpend_toy", None)


ALL = [(3, 0), (3, 1), (5, 0), (5, 1)]


# -- files -----------------------------------------------------------------------------------------


def test_a_run_leaves_everything_and_all_files_agree(toy, tmp_path):
    folder = tmp_path / "out" / "toy"
    results = reproduce(toy.experiment, QUICK, folder, jobs=2)
    assert toy.calls() == ALL
    names = {"results.json", "points.csv", "notes.csv", "toy.png", "toy.svg"}
    assert {path.name for path in folder.iterdir()} == names | {"cases.jsonl"}

    stored = json.loads((folder / "results.json").read_text())
    assert stored["schema"] == 1
    assert stored["experiment"] == "toy"
    assert stored["quick"] is True
    assert stored["settings"] == {"quick": True, "seeds": None, "scene": None}
    assert stored["versions"]["perpend"] == __version__
    assert set(stored["versions"]) == {"perpend", "python", "numpy", "scipy", "scikit-learn"}
    assert stored["n_cases"] == 4
    points = stored["tables"]["points"]
    assert points["size"] == [3, 3, 5, 5]
    assert points["seed"] == [0, 1, 0, 1]
    assert points["x"] == [float(f"{math.sin(n) / 3:.6g}") for n in (3, 4, 5, 6)]
    assert points["good"] == [True, False, False, False]
    assert points["bad"] == [None] * 4

    assert results == _store.read_results(folder)
    np.testing.assert_array_equal(results.column("points", "x"), points["x"])
    assert np.all(np.isnan(results.column("points", "bad", size=3)))
    assert results.values("points", "size") == [3, 5]
    assert results.rows("notes") == [{"text": f"seed {seed}"} for seed in (0, 1, 0, 1)]
    with (folder / "points.csv").open() as stream:
        assert [float(row["x"]) for row in csv.DictReader(stream)] == points["x"]

    assert (folder / "toy.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (folder / "toy.svg").read_text()


def test_results_do_not_depend_on_the_number_of_processes(toy, tmp_path):
    made = []
    for jobs in (1, 3):
        folder = tmp_path / f"jobs{jobs}" / "toy"
        results = reproduce(toy.experiment, Settings(), folder, jobs=jobs)
        files = {p.name: p.read_bytes() for p in folder.iterdir() if p.suffix in (".csv", ".svg")}
        made.append((results.tables, results.digest, files, (folder / "toy.png").read_bytes()))
    assert made[0] == made[1]


def test_workers_have_one_thread(tmp_path, monkeypatch):
    (tmp_path / "perpend_threads.py").write_text(
        textwrap.dedent("""
        import os
        from types import SimpleNamespace

        def run(case):
            import numpy, scipy.linalg, threadpoolctl
            found = [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]
            return {"t": [{"most": max(found), "variable": os.environ["OPENBLAS_NUM_THREADS"]}]}

        EXPERIMENT = SimpleNamespace(run=run)
        """)
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    from perpend.experiments._workers import compute

    (outcome,) = [o for o in compute("perpend_threads", [{}], 1) if o is not None]
    assert outcome.tables == {"t": [{"most": 1, "variable": "1"}]}
    assert os.environ["OPENBLAS_NUM_THREADS"] == "2"


# -- going on --------------------------------------------------------------------------------------


def test_an_interrupted_run_goes_on_where_it_stopped(toy, tmp_path):
    seen = []

    def interrupt(progress):
        seen.append(progress)
        if progress.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce(toy.experiment, QUICK, tmp_path / "toy", jobs=1, progress=interrupt)
    begun = toy.calls()
    assert (5, 0) in begun  # the long ones come first
    assert seen[0].seconds_left is None
    assert seen[-1].share == 10 / 16
    assert not (tmp_path / "toy" / "results.json").exists()

    first = []
    reproduce(toy.experiment, QUICK, tmp_path / "toy", jobs=1, progress=first.append)
    assert toy.calls() == [(3, 0), (3, 1)]
    assert first[0].done == 2
    assert first[0].seconds_left is not None
    assert (first[-1].done, first[-1].share, first[-1].seconds_left) == (4, 1.0, 0.0)


@pytest.mark.parametrize("damage", [b'{"perpend": "0.1', b"\xff\x00 nonsense\n", b"[]\n"])
def test_a_damaged_line_of_the_checkpoint_is_computed_again(toy, tmp_path, damage):
    folder = tmp_path / "toy"
    results = reproduce(toy.experiment, QUICK, folder, jobs=2)
    toy.calls()
    lines = (folder / "cases.jsonl").read_bytes().splitlines(keepends=True)
    lost = json.loads(lines[-1])["case"]
    (folder / "cases.jsonl").write_bytes(b"".join(lines[:-1]) + damage)
    (folder / "results.json").unlink()
    again = reproduce(toy.experiment, QUICK, folder, jobs=1)
    assert toy.calls() == [(lost["size"], lost["seed"])]
    assert again.tables == results.tables
    assert len(_store.read_cases(folder)) == 4  # the new line is whole


def test_more_seeds_compute_only_the_new_ones(toy, tmp_path):
    reproduce(toy.experiment, Settings(seeds=1), tmp_path / "toy")
    assert toy.calls() == [(3, 0), (5, 0)]
    results = reproduce(toy.experiment, Settings(seeds=2), tmp_path / "toy")
    assert toy.calls() == [(3, 1), (5, 1)]
    assert results.column("points", "seed").tolist() == [0, 1, 0, 1]


def test_cases_of_another_version_are_not_used(toy, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(_store, "__version__", "0.0.1")
        reproduce(toy.experiment, Settings(seeds=1), tmp_path / "toy")
    toy.calls()
    reproduce(toy.experiment, Settings(seeds=1), tmp_path / "toy")
    assert toy.calls() == [(3, 0), (5, 0)]


def test_stored_results_are_only_drawn(toy, tmp_path):
    folder = tmp_path / "toy"
    results = reproduce(toy.experiment, QUICK, folder)
    (folder / "cases.jsonl").unlink()  # results.json is enough
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    toy.calls()
    for picture in folder.glob("toy.*"):
        picture.unlink()
    assert reproduce(toy.experiment, QUICK, folder) == results
    assert redraw(toy.experiment, folder) == results
    assert toy.calls() == []
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_drawing_looks_at_the_store_only(toy, tmp_path):
    folder = tmp_path / "toy"
    reproduce(toy.experiment, QUICK, folder)
    before = (folder / "toy.svg").read_bytes()
    text = (folder / "results.json").read_text()
    (folder / "results.json").write_text(
        text.replace('"x": [', '"x": [0.9, 0.8, 0.7, 0.6], "y": [')
    )
    assert redraw(toy.experiment, folder).column("points", "x").tolist() == [0.9, 0.8, 0.7, 0.6]
    assert (folder / "toy.svg").read_bytes() != before


def test_force_computes_everything_anew_and_can_be_interrupted(toy, tmp_path):
    folder = tmp_path / "toy"
    reproduce(toy.experiment, QUICK, folder)
    toy.calls()

    def interrupt(progress):
        if progress.done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce(toy.experiment, QUICK, folder, progress=interrupt, force=True)
    assert len(_store.read_results(folder).rows("points")) == 4  # the old ones, still to be seen
    begun = toy.calls()
    reproduce(toy.experiment, QUICK, folder)
    assert set(begun + toy.calls()) == set(ALL)


# -- what goes wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "message"),
    [("broken", "ValueError: this one never works"), ("deadly", "process ended .* code 7")],
)
def test_a_case_that_fails_does_not_lose_the_others(toy, tmp_path, fault, message):
    (toy.home / fault).touch()
    folder = tmp_path / "toy"
    with pytest.raises(CasesFailedError, match=message) as error:
        reproduce(toy.experiment, QUICK, folder, jobs=1)
    assert '{"seed":1,"size":5}' in str(error.value)
    assert "1 case failed, 3 are done and kept" in str(error.value)
    assert toy.calls() == ALL
    assert not (folder / "results.json").exists()
    (toy.home / fault).unlink()
    reproduce(toy.experiment, QUICK, folder, jobs=1)
    assert toy.calls() == [(5, 1)]


def test_redraw_needs_results(toy, tmp_path):
    with pytest.raises(InputError, match="no stored results"):
        redraw(toy.experiment, tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not readable"),
        ("[]", "not readable"),
        ('{"schema": 1}', "not readable"),
        ('{"schema": 99}', "newer perpend"),
    ],
)
def test_damaged_results_are_an_error(tmp_path, text, message):
    (tmp_path / "results.json").write_text(text)
    with pytest.raises(InputError, match=message):
        _store.read_results(tmp_path)


def test_without_matplotlib_nothing_begins(toy, tmp_path, monkeypatch):
    monkeypatch.setattr("perpend.plots._style.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'perpend\[plots\]'"):
        reproduce(toy.experiment, QUICK, tmp_path / "toy")
    assert toy.calls() == []


def test_names():
    assert list(experiments.NAMES)[:2] == ["implicit-bias", "phase-transition"]
    with pytest.raises(InputError, match=r"'phase_transitoin'.*mean 'phase-transition'.*There are"):
        experiments.load("phase_transitoin")


# -- the store -------------------------------------------------------------------------------------


def test_rows_are_stored_plainly():
    row = {"a": np.float64(1 / 3), "b": np.int64(7), "c": np.bool_(True), "d": "x", "e": None}
    (kept,) = _store.plain({"t": [{**row, "f": -math.inf, "g": np.float32(0.1)}]})["t"]
    assert kept == {"a": 0.333333, "b": 7, "c": True, "d": "x", "e": None, "f": None, "g": 0.1}
    assert [type(kept[name]) for name in "abc"] == [float, int, bool]
    with pytest.raises(TypeError, match="'a' holds a list"):
        _store.plain({"t": [{"a": np.zeros(2)}]})
    with pytest.raises(TypeError, match=r"'\.\./t'"):
        _store.plain({"../t": []})


def test_rows_may_lack_columns_and_tables_may_be_empty(tmp_path):
    tables = {"t": [{"a": 1}, {"b": "x"}], "empty": []}
    _store.write_results(tmp_path, Results("toy", True, tables, 1.0, {}))
    back = _store.read_results(tmp_path)
    assert back.rows("t") == [{"a": 1, "b": None}, {"a": None, "b": "x"}]
    assert back.column("t", "b").tolist() == [None, "x"]
    assert back.rows("empty") == back.rows("unknown") == []
    _store.write_csv(tmp_path, back)
    assert {path.name for path in tmp_path.glob("*.csv")} == {"t.csv", "empty.csv"}

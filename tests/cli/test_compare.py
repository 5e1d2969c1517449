"""``perpend compare``: all methods side by side."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import perpend
from helpers import PUBLISHED
from perpend.cli import _progress
from perpend.cli._options import METHODS

LINES = [*METHODS, *perpend._LABELS_ONLY, "PCA"]
NEEDY = [name for name in METHODS if getattr(perpend, name).capabilities.needs_dimension]


def methods(done):
    return {row["method"]: row for row in json.loads(done.out)["methods"]}


def test_the_table(run, csv):
    done = run("compare", csv)
    assert done.code == 0
    head, *lines = done.out.split("\n\n")[1].splitlines()
    assert head.split()[:2] == ["method", "codimension"]
    assert [line.split()[0] for line in lines] == LINES


def test_the_next_step_repeats_what_was_given(run, csv):
    which = ("--columns", "B1,B2,B3,B4", "--methods", "DPCP")
    done = run("compare", csv, "--affine", "auto", "--seed", 3, *which)
    said = f"perpend fit {csv} -o RESULTS --affine auto --columns B1,B2,B3,B4 --seed 3"
    assert done.out.splitlines()[-1].split(maxsplit=1) == ["next", said]
    assert run("compare", csv, "--methods", "DPCP").out.endswith(f"perpend fit {csv} -o RESULTS\n")


def test_options_that_it_does_not_have_are_those_of_fit(run, csv, monkeypatch):
    fit = perpend.DPCP.fit

    def not_converged(model, X):
        warnings.warn("Raise max_iter, or tol.", UserWarning, stacklevel=2)
        return fit(model, X)

    monkeypatch.setattr(perpend.DPCP, "fit", not_converged)
    done = run("compare", csv, "--methods", "DPCP")
    assert "warning: DPCP: Raise --max-iter of perpend fit, or tol." in done.err


def test_json(run, csv, data):
    rows = methods(run("compare", csv, "--json"))
    assert list(rows) == LINES
    assert all(row["problem"] is None for row in rows.values())
    assert all(row["codimension"] == 2 for row in rows.values() if row["given"])
    # Methods of low dimension may find another codimension, but are not sure of it then.
    found = {name: row for name, row in rows.items() if row["codimension"] is not None}
    assert all(row["codimension"] == 2 or row["confidence"] < 0.95 for row in found.values())
    assert set(rows) - set(found) == set(perpend._LABELS_ONLY)
    assert [name for name, row in rows.items() if not row["given"]] == [
        name for name in LINES if name not in [*NEEDY, "PCA"]
    ]
    assert all(row["told"] == row["given"] for row in rows.values())  # as in version 0.1
    assert all(rows[name]["confidence"] >= 0.95 for name in PUBLISHED)
    for name in PUBLISHED[1:]:
        assert rows[name]["label_agreement"] > 0.97
        assert rows[name]["largest_angle_degrees"] < 1
    assert rows["PCA"]["largest_angle_degrees"] > 2
    assert rows["PCA"]["outliers"] == rows["DPCP"]["outliers"]


def test_if_one_method_fails_the_others_go_on(run, csv, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("no luck")

    monkeypatch.setattr(perpend.RSGM, "fit", fail)
    some = ("--methods", "DPCP,RSGM,RecursiveDPCP,PCA")
    done = run("compare", csv, *some)
    assert done.code == 0
    assert "failed: ZeroDivisionError: no luck" in done.out
    rows = methods(run("compare", csv, *some, "--json"))
    assert rows["RSGM"]["problem"] == "failed: ZeroDivisionError: no luck"
    assert rows["RecursiveDPCP"]["codimension"] == rows["PCA"]["codimension"] == 2


def test_without_dpcp_the_codimension_is_unknown(run, csv, monkeypatch):
    def fail(*_):
        raise MemoryError("too much")

    for name in set(LINES[:-1]) - set(NEEDY):
        monkeypatch.setattr(getattr(perpend, name), "fit", fail)
    done = run("compare", csv)
    assert done.code == 5  # nothing ran
    assert "too much" in done.err
    done = run("compare", csv, "--codimension", 2, "--json")
    assert done.code == 4
    rows = methods(done)
    assert rows["DPCP"]["problem"].startswith("failed: not enough memory")
    assert rows["RSGM"]["codimension"] == 2
    assert rows["PCA"]["codimension"] == 2


def test_no_subspace(run, home):
    np.save("noise.npy", np.random.default_rng(0).standard_normal((300, 4)))
    done = run("compare", "noise.npy")
    assert done.code == 4
    assert done.out.count("not run: DPCP found codimension 0") == len(NEEDY) + 1  # and PCA


@pytest.mark.parametrize("codes", [(1, -1), (0, 1)])
def test_with_true_labels(run, home, data, codes):
    labels = np.where(data.y == 1, *codes)
    table = np.column_stack([data.X[:, :3], labels, data.X[:, 3:]])
    np.savetxt("rows.csv", table, delimiter=",", header="a,b,c,good,d,e,f", comments="")
    rows = methods(run("compare", "rows.csv", "--truth", "good", "--methods", "dpcp,PCA", "--json"))
    assert rows["DPCP"]["f1"] > 0.97 > rows["PCA"]["f1"]
    assert rows["DPCP"]["codimension"] + rows["DPCP"]["dimension"] == 6
    done = run("compare", "rows.csv", "--truth", "a")
    assert done.code == 3
    assert 'column "a" has the values' in done.err


def test_some_methods_and_the_files(run, csv):
    done = run("compare", csv, "--methods", "RGraph,RSGM", "--time-limit", 60, "-o", "out")
    assert done.code == 0
    assert "by DPCP (sure)" in done.out
    table = (Path("out") / "comparison.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in table] == ["method", "RGraph", "RSGM"]
    assert (Path("out") / "pairs.csv").read_text().startswith("method,other,label_agreement,")
    assert json.loads((Path("out") / "comparison.json").read_text())["codimension"] == 2
    assert {"comparison.png", "comparison.svg"} <= {path.name for path in Path("out").iterdir()}
    assert run("compare", csv, "-o", "out").code == 2  # they exist
    assert "there is no method 'RGraf'" in run("compare", csv, "--methods", "RGraf").err


def test_progress_says_how_long_it_may_take(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now[0])
    with _progress.monitor() as watch:
        for done, name in enumerate("abc"):
            watch.part(name, done, 3)
            now[0] += 20.0
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["b, 2 of 3: 33% done, about 0:40 left", "c, 3 of 3: 67% done, about 0:20 left"]


def test_gaps_and_blank_lines(run, csv, home):
    """Other kinds of methods need complete rows; the facts about the data stand together."""
    head = run("compare", csv, "--methods", "DPCP").out.split("\n\n")[0]
    assert [line.split()[0] for line in head.splitlines()] == ["data", "columns"]
    text = Path(csv).read_text("utf-8").splitlines()
    text[3] = "," + text[3].split(",", 1)[1]
    Path("gaps.csv").write_text("\n".join(text), "utf-8")
    done = run("compare", "gaps.csv", "--methods", "DPCP")
    assert done.code == 3
    assert "Use --nan drop-rows or --nan drop-cols, or fill" in done.err
    assert (
        "need complete rows. Use --nan drop-rows."
        in run("compare", "gaps.csv", "--nan", "mask").err
    )
    assert run("inspect", "gaps.csv").out.endswith("-o RESULTS --nan mask\n")

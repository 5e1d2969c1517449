"""Columns without names have one number, the same in every place that the user sees."""

import json

import numpy as np
import pytest

from perpend.datasets import make_subspace

COLUMN = 5  # as users count, from 1


@pytest.fixture
def rows():
    """Rows whose only outlier is one by this column."""
    X = make_subspace(150, 0, n_features=6, codimension=2, noise=0.01, random_state=0).X
    X[40, COLUMN - 1] += 3
    return X


def blamed(folder):
    with open(f"{folder}/report.json") as stream:  # noqa: PTH123
        facts = json.load(stream)
    (row,) = [row for row in facts["outliers"]["rows"] if row["row"] == 40]
    return facts["data"]["columns"][max(row["blame"], key=lambda blame: blame["share"])["column"]]


def page(folder):
    with open(f"{folder}/report.html", encoding="utf-8") as stream:  # noqa: PTH123
        return stream.read()


def test_a_table(run, home, rows):
    np.save("rows.npy", rows)
    assert (
        "columns     without names; --columns counts them from 1" in run("inspect", "rows.npy").out
    )
    assert run("fit", "rows.npy", "-o", "out").code == 0
    assert blamed("out") == f"column {COLUMN}"
    assert "without names, counted from 1" in page("out")
    assert ">column 6<" in page("out")
    assert ">column 0<" not in page("out")
    # what the page says is what the options understand
    assert run("fit", "rows.npy", "--columns", "6,5,4,3,2,1", "-o", "turned").code == 0
    assert blamed("turned") == f"column {COLUMN}"
    assert "counted from 1" not in page("turned")  # they were named


def test_text_without_a_header_and_with_words(run, home, rows):
    lines = [" ".join(["rock", *map(str, row)]) for row in rows.tolist()]
    with open("rows.txt", "w") as stream:  # noqa: PTH123
        stream.write("0 " + lines[0].removeprefix("rock ") + "\n" + "\n".join(lines[1:]))
    done = run("fit", "rows.txt", "-o", "out")
    assert done.code == 3
    assert 'column 1: cannot read "rock"' in done.err
    numbers = ",".join(str(j) for j in range(2, 8))
    assert run("fit", "rows.txt", "--columns", numbers, "-o", "out").code == 0
    assert blamed("out") == f"column {COLUMN + 1}"


def test_an_image(run, home, rows):
    np.save("scene.npy", rows.reshape(10, 15, 6))
    assert "bands       without names" in run("inspect", "scene.npy").out
    assert run("fit", "scene.npy", "-o", "out").code == 0
    assert blamed("out") == f"band {COLUMN}"


def test_the_page_drawn_again(run, home, rows):
    np.save("rows.npy", rows)
    assert run("fit", "rows.npy", "--columns", "6,5,4,3,2,1", "-o", "out").code == 0
    (home / "out" / "report.json").unlink()
    assert run("report", "out", "--force").code == 0
    assert ">column 6<" in page("out")


def test_help_says_so(run):
    for command in ("inspect", "fit", "apply", "compare"):
        assert "numbers from 1" in " ".join(run(command, "--help").out.replace("│", " ").split())

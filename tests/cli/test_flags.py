"""Nearly constant columns of a table: what they hide is found, and labels are by the relations."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import perpend
from perpend.cli import _memory, _streaming

NAMES = ["a", "b", "c", "ab", "bc", "abc"]
BAD = np.arange(300) < 20


def result(folder="out"):
    return json.loads(Path(folder, "result.json").read_text(encoding="utf-8"))


def flagged(folder="out"):
    return pd.read_csv(f"{folder}/labels.csv")["inlier"].to_numpy() == 0


def plant(n=300):
    """Draw rows with three relations and noise; 20 of them break one, and one has a flag."""
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(10, 2, (3, n))
    X = np.column_stack([a, b, c, a + b, b - c, a + b + c]) + rng.normal(0, 0.05, (n, 6))
    X[np.arange(20), rng.integers(0, 6, 20)] += 1.5
    return pd.DataFrame(X, columns=NAMES).assign(flag=(np.arange(n) == 100) * 1.0)


@pytest.fixture
def table(home):
    frame = plant()
    frame[["a", "flag", *NAMES[1:]]].to_csv("flag.csv", index=False)
    frame[NAMES].to_csv("plain.csv", index=False)
    return frame


def test_the_result_is_that_of_the_other_columns(run, table):
    done = run("fit", "flag.csv", "-o", "out")
    run("fit", "plain.csv", "-o", "plain", "-q")
    assert (done.code, done.err) == (0, "")
    assert np.array_equal(flagged(), flagged("plain"))
    assert np.all(flagged()[BAD])
    for name in ("codimension", "confidence", "threshold", "noise", "relations", "evidence"):
        assert result()[name] == result("plain")[name]
    assert result()["nearly_constant"] == ["flag = 0"]
    assert result()["input"]["left_out"] == {"nearly constant": ["flag"]}
    assert 'left out    column "flag" (nearly constant)\n' in done.out
    assert "constant    nearly constant columns: flag = 0\n            left out of the" in done.out
    assert "codimension 3, affine\nconfidence  high" in done.out
    page = Path("out/report.html").read_text("utf-8")
    assert "280 of 300 rows lie near a 3-dimensional affine subspace in 6 columns" in page
    assert "Left out as they are nearly constant and hide relations: flag = 0." in page
    assert "all 3 of these hold, in the data's own units" in page


def test_new_rows_need_the_other_columns_only(run, table):
    run("fit", "flag.csv", "-o", "out", "--no-report", "-q")
    for name in ("flag.csv", "plain.csv"):
        assert run("apply", "out", name, "-o", name[:-4], "-q").code == 0
        assert np.array_equal(flagged(name[:-4]), flagged())
    assert perpend.load("out/model.npz")[-1].n_features_in_ == 6


def test_named_columns_are_kept_with_a_warning(run, table):
    done = run("fit", "flag.csv", "--columns", "1-7", "-o", "out", "--no-report")
    assert (result()["codimension"], flagged().sum()) == (1, 1)
    assert "the labels follow the nearly constant column (flag = 0), which hides" in done.err
    assert result()["without_constants"]["codimension"] == 3


def test_a_file_that_is_read_block_by_block_has_the_warning(run, home, monkeypatch):
    monkeypatch.setattr(_memory, "BASE", 0)
    monkeypatch.setattr(_streaming, "COPIES", 50)
    plant(1500).to_csv("large.csv", index=False)
    done = run("fit", "large.csv", "--memory-limit", "200kB", "-o", "out", "--no-report")
    assert done.code == 0, done.err
    assert "block by block" in done.err
    assert result()["codimension"] == 1
    assert any("Leave it out, for example by --exclude." in w for w in result()["warnings"])


def test_a_column_without_long_tails_is_no_hidden_relation(run, home):
    """Among columns with long tails it looks like a normal, but no equation says more of it."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_t(2, (2000, 3)), columns=list("abc"))
    frame["a"] = rng.uniform(size=2000)
    frame.assign(flag=(np.arange(2000) < 20) * 1.0).to_csv("t.csv", index=False)
    done = run("fit", "t.csv", "-o", "out")
    assert "others      without them: no relations between the other 3 columns" in done.out
    assert "Without them, there is no relation" in Path("out/report.html").read_text("utf-8")
    found = result()["without_constants"]
    assert (found["codimension"], found["relations"]) == (1, [])
    assert result()["input"]["left_out"] == {}
    assert result()["codimension"] == 1
    assert result()["nearly_constant"] == ["flag = 0"]


def test_outliers_of_any_kind_need_no_subspace(run, table):
    done = run("fit", "flag.csv", "--outliers", "both", "-o", "out", "--no-report")
    assert "flag = 0; subspace and confidence above say no more than this\nothers  " in done.out
    assert np.all(flagged()[BAD])
    assert flagged()[100]
    assert flagged().sum() <= 25


def test_gaps_take_part_in_it(run, table):
    frame = table.mask(np.random.default_rng(0).random(table.shape) < 0.01)
    frame.to_csv("flag.csv", index=False)
    done = run("fit", "flag.csv", "--missing", "mask", "-o", "out")
    assert "there is no report" not in done.err
    assert result()["codimension"] == 3
    assert result()["missing"] == frame[NAMES].isna().to_numpy().sum() > 0
    assert flagged()[BAD].sum() >= 18


def test_rows_with_too_few_values_are_named_in_plain_words(run, home):
    frame = plant().drop(columns="flag")
    frame.iloc[7, 1:] = np.nan
    frame.to_csv("gaps.csv", index=False)
    done = run("fit", "gaps.csv", "--nan", "mask", "-o", "out", "--no-report")
    assert "1 of 300 rows has too few observed" in done.err
    assert "(row 7, counting from 0). It was left out, with the label +1." in done.err
    frame.iloc[40:50, 1:] = np.nan
    frame.to_csv("gaps.csv", index=False)
    done = run("fit", "gaps.csv", "--nan", "mask", "-o", "out", "--no-report", "--force")
    assert '43, ... listed as "undecided" in result.json, counting from 0). They' in done.err
    assert result()["undecided"] == [7, *range(40, 50)]

"""``perpend apply``: labels of new rows by a saved model."""

import json

import numpy as np
import pandas as pd
import pytest

import perpend
from perpend.exceptions import CodimensionWarning


@pytest.fixture
def fitted(run, csv):
    assert run("fit", csv, "-o", "out", "--no-report", "-q").code == 0
    return pd.read_csv(csv)


def test_the_same_rows_get_the_same_labels(run, csv, fitted):
    done = run("apply", "out/model.npz", csv, "-o", "new")
    assert (done.code, done.err) == (0, "")
    with open("out/labels.csv") as a, open("new/labels.csv") as b:  # noqa: PTH123
        assert a.read() == b.read()
    assert "out/model.npz: DPCP, codimension 2 of 6" in done.out


def test_the_folder_of_results_is_enough(run, csv, fitted):
    done = run("apply", "out", csv, "-o", "new", "--json")
    found = json.loads(done.out)
    assert found["command"] == "apply"
    assert found["codimension"] == 2
    assert set(found["files"]) == {"labels.csv", "scan-labelled.csv"}


def test_columns_are_found_by_name(run, csv, fitted):
    shuffled = fitted[["B6", "B1", "B3", "B2", "B5", "B4"]].assign(extra=1.0)
    shuffled.to_csv("shuffled.csv", index=False)
    assert run("apply", "out", "shuffled.csv", "-o", "new").code == 0
    a, b = (pd.read_csv(f"{name}/labels.csv") for name in ("out", "new"))
    pd.testing.assert_frame_equal(a, b)


def test_a_missing_column_is_named(run, csv, fitted):
    fitted.drop(columns=["B2", "B5"]).to_csv("less.csv", index=False)
    done = run("apply", "out", "less.csv", "-o", "new")
    assert done.code == 3
    assert 'less.csv: has no column "B2" and 1 more, which out/model.npz needs' in done.err


def test_rows_without_names_need_the_right_number(run, csv, fitted):
    np.save("rows.npy", fitted.to_numpy()[:9])
    assert run("apply", "out", "rows.npy", "-o", "new").code == 0
    np.save("rows.npy", fitted.to_numpy()[:, :5])
    done = run("apply", "out", "rows.npy", "-o", "new2")
    assert done.code == 3
    assert "has 5 columns, but out/model.npz was fitted to 6" in done.err


def test_one_row_is_enough(run, csv, fitted):
    fitted[:1].to_csv("one.csv", index=False)
    assert run("apply", "out", "one.csv", "-o", "new").code == 0


def test_another_threshold(run, csv, fitted):
    done = run("apply", "out", csv, "-o", "new", "--threshold", "1e9")
    assert "0 of 200 rows" in done.out
    assert "(given)" in done.out


def test_data_of_another_kind_is_pointed_out(run, csv, fitted):
    turned = np.linalg.qr(np.random.default_rng(5).standard_normal((6, 6)))[0]
    np.save("other.npy", np.tile(fitted.to_numpy() @ turned, (10, 1)))
    labels = run("apply", "out", "other.npy", "-o", "new", "--json")
    found = json.loads(labels.out)
    (remark,) = found["warnings"]
    fits = 2000 - found["outliers"]
    assert fits < 20
    assert remark.startswith(f"only {fits} of 2 000 rows fit the subspace of out/model.npz")
    assert "60 % of the rows of the fit" in remark
    assert "Check the units, the order of the columns and the preprocessing." in remark
    assert labels.err == f"warning: {remark}\n"


def test_columns_in_another_order_without_names(run, csv, fitted):
    np.save("other.npy", fitted.to_numpy()[:100, ::-1])
    done = run("apply", "out", "other.npy", "-o", "new")
    assert done.code == 0
    assert "does not look like the same kind of data" in done.err


def test_a_few_outliers_alone_are_no_other_kind_of_data(run, csv, fitted, data):
    fitted[data.y == -1].to_csv("outliers.csv", index=False)
    assert "same kind" in run("apply", "out", "outliers.csv", "-o", "all").err  # 80 in a row
    fitted[data.y == -1][:7].to_csv("few.csv", index=False)  # 0.4 ** 7 is more than 1 in 1000
    assert run("apply", "out", "few.csv", "-o", "few").err == ""


def test_a_given_threshold_gives_no_warning(run, csv, fitted):
    assert run("apply", "out", csv, "-o", "new", "--threshold", "0").err == ""


def test_gaps(run, csv, fitted):
    fitted.loc[4, "B1"] = np.nan
    fitted.to_csv("gaps.csv", index=False)
    done = run("apply", "out", "gaps.csv", "-o", "new")
    assert done.code == 3
    assert "Use --nan drop-rows, or fill the gaps" in done.err
    assert run("apply", "out", "gaps.csv", "-o", "new", "--nan", "drop-rows").code == 0
    assert len(pd.read_csv("new/labels.csv")) == 199


def test_no_overwriting(run, csv, fitted):
    assert run("apply", "out", csv, "-o", "new").code == 0
    assert run("apply", "out", csv, "-o", "new").code == 2
    assert run("apply", "out", csv, "-o", "new", "--force").code == 0


def test_a_model_that_is_not_sure_says_so(run, csv, fitted):
    with pytest.warns(CodimensionWarning):
        perpend.DPCP(random_state=0).fit(np.random.default_rng(0).standard_normal((300, 6))).save(
            "n.npz"
        )
    done = run("apply", "n.npz", csv, "-o", "new")
    assert done.code == 4
    assert "found no subspace" in done.err
    assert len(pd.read_csv("new/labels.csv")) == 200

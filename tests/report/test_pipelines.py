"""Pages about pipelines: equations and values in the data's own units."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from perpend import DPCP, RobustStandardizer
from perpend.formats._dataset import Labelled
from perpend.report import write_report
from report.test_equations import printed


def plant(n=300, seed=0):
    """A pressure in pascal and a volume flow in cubic metres a second; 12 broken rows."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(2e5, 5e4, n), rng.normal(0.02, 0.005, n)
    X = np.c_[a, b, 2 * a + 1e6 * b, rng.normal(0, 1, n), 3e-5 * a]
    X *= 1 + 1e-6 * rng.standard_normal(X.shape)
    X[:12, 2] += 5e4
    return pd.DataFrame(X, columns=["pressure", "flow", "force", "noise", "level"])


@pytest.fixture
def pipeline():
    return make_pipeline(RobustStandardizer(), DPCP(affine=True, random_state=0)).fit(plant())


def facts_of(folder, model, data, **options):
    write_report(folder / "page.html", model, data, facts_path=folder / "facts.json", **options)
    return json.loads((folder / "facts.json").read_text("utf-8"))


def test_equations_and_values_are_in_the_units_of_the_data(tmp_path, pipeline):
    frame = plant()
    facts = facts_of(tmp_path, pipeline, frame)
    assert printed(facts) == ["level = 3 × 10⁻⁵ pressure", "force = 2 pressure + 1 × 10⁶ flow"]
    assert facts["data"]["columns"] == list(frame)
    blamed = {row["row"]: row["blame"][0] for row in facts["outliers"]["rows"]}
    assert set(blamed) == set(range(12))
    for row, blame in blamed.items():
        assert blame["column"] == 2
        assert blame["value"] == pytest.approx(frame["force"][row])
        assert blame["fits"] == pytest.approx(frame["force"][row] - 5e4, rel=1e-4)
    inliers = frame.to_numpy()[12:]
    for normal, b in zip(facts["estimate"]["normals"], facts["estimate"]["intercept"], strict=True):
        np.testing.assert_allclose(inliers @ normal, b, atol=1e-3 * np.std(inliers * normal))
    assert "scaled the columns" in (tmp_path / "page.html").read_text("utf-8")


def test_a_single_relation_and_a_page_without_rows(tmp_path):
    frame = plant()[["pressure", "flow", "force"]]
    model = make_pipeline(RobustStandardizer(), DPCP(affine=True, random_state=0)).fit(frame)
    assert printed(facts_of(tmp_path, model, frame)) == ["force = 2 pressure + 1 × 10⁶ flow"]
    without = facts_of(tmp_path, model, None)
    assert without["data"]["columns"] == list(frame)
    assert without["outliers"] is None
    assert "force" in printed(without)[0]


def test_known_labels_are_used(tmp_path, pipeline):
    frame = plant()
    n = len(frame)
    labelled = Labelled(pipeline.predict(frame), -pipeline.score_samples(frame), np.full(n, np.nan))
    known = facts_of(tmp_path, pipeline, frame, labelled=labelled)
    assert known["estimate"]["solved"] == facts_of(tmp_path, pipeline, frame)["estimate"]["solved"]

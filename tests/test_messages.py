"""Messages count in the user's columns and rows, and advise what is not set already."""

import re
import warnings

import numpy as np
import pytest

from perpend import DPCP
from perpend.exceptions import CodimensionWarning
from perpend.plots import SpectrumDisplay, SpreadDisplay
from perpend.report._facts import gather
from perpend.report._page import page
from perpend.structure import Cloud, Profile, find_structure


def on_subspace(n_in, n_out, D, c, noise=0.0):
    rng = np.random.default_rng(0)
    N = np.linalg.qr(rng.standard_normal((D, D)))[0][:, :c]
    X = rng.standard_normal((n_in + n_out, D))
    X[:n_in] -= X[:n_in] @ N @ N.T
    X[:n_in] += noise * rng.standard_normal((n_in, D))
    return X


def embedded(X, D):
    """Return the same rows in more columns, all of which they need."""
    rng = np.random.default_rng(5)
    return X @ np.linalg.qr(rng.standard_normal((D, X.shape[1])))[0].T


def quiet(X, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CodimensionWarning)
        return DPCP(random_state=0, **settings).fit(X)


def text_of(model, X):
    return re.sub(r"<[^>]+>", "", page(gather(model, X)))


def test_rows_of_low_rank_are_counted_in_all_columns():
    X = embedded(on_subspace(400, 150, 12, 4, 0.05), 20)
    model = quiet(X)
    assert (model.codimension_, model.n_components_) == (12, 8)
    assert model.evidence_["directions_rank"] == 12
    assert model.doubts_ == ()  # eight of the normals hold for all rows, and hide no others
    assert model.evidence_["exact_codimension"] == 8
    spread, directions = SpreadDisplay.of(model), SpectrumDisplay.of(model)
    assert (len(spread.spread), spread.n_normals) == (20, 12)
    assert (directions.n_normals, directions.n_others) == (4, 8)
    assert len(directions.singular_values) == 12  # 16 directions in a span of 12 dimensions
    text = text_of(model, X)
    assert "near an 8-dimensional subspace in 20 columns" in text
    assert "descents from random starts agree with the distances" in text
    assert "20 without a subspace" in text


def test_a_rival_is_counted_in_all_columns():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((400, 8)) * 0.7 ** np.arange(8)
    rivals = []
    for n_outside in (0, 3):  # normals that hold for all rows
        cloud = Cloud(X, affine=False, floor=1e-8)
        cloud.n_outside = n_outside
        decision = find_structure(Profile(cloud), np.random.default_rng(0))
        rivals.append(decision.facts.rival)
    assert rivals[0] > 0
    assert rivals[1] == rivals[0] + 3


def test_an_affine_plane_in_space_has_three_axes():
    rng = np.random.default_rng(0)
    X = rng.uniform(-5, 5, (1000, 3)) * [1, 1, 0.4]
    X[:600, 2] = 1 + rng.normal(0, 0.01, 600)
    model = DPCP(affine=True, random_state=0).fit(X)
    spread = SpreadDisplay.of(model)
    assert (len(spread.spread), spread.n_normals) == (3, 1)
    inliers = X[:600]  # in the units of the data
    variances = np.sort(np.linalg.eigvalsh(np.cov(inliers.T)))
    np.testing.assert_allclose(model.evidence_["inlier_spectrum"][1:], variances[1:], rtol=0.1)
    assert 1 / 2 < model.evidence_["inlier_gap"] / (variances[1] / variances[0]) < 2
    assert "2 along the subspace" in text_of(model, X)


def test_the_gap_is_the_one_at_the_codimension():
    """A direction far longer than the others is a larger step than that to the noise."""
    X = on_subspace(500, 200, 6, 2, 0.02) * [200.0, 1, 1, 1, 1, 1]
    model = quiet(X, codimension=2, normalize=False)
    t = model.evidence_["inlier_spectrum"]
    np.testing.assert_allclose(model.evidence_["inlier_gap"], t[2] / t[1])
    np.testing.assert_allclose(
        model.evidence_["inlier_gap_runner_up"],
        max(t[4] / t[3], t[5] / t[4], t[3] / t[2], t[1] / t[0]),
    )


def test_the_dimension_of_few_rows_is_that_of_their_affine_span():
    X = np.random.default_rng(0).standard_normal((10, 30))
    for affine, dimension in ((False, 10), (True, 9)):
        model = quiet(X, affine=affine)
        assert model.n_components_ == model.evidence_["rank"] == dimension
        assert f"10 rows always span at most {dimension} dimensions" in model.doubts_[0]


def test_hardly_more_rows_than_dimensions_are_weak_evidence():
    """Any 4 rows span 4 dimensions; the fifth is the only one that need not lie there."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5, 4)) @ rng.standard_normal((4, 30))
    model = quiet(X)
    assert model.n_components_ == 4
    assert "any 4 rows lie on such a subspace, so 5 are weak evidence" in model.doubts_[0]


def test_normalizing_is_no_advice_for_affine_rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 4)) * np.where(np.arange(400) < 6, 1e3, 1.0)[:, None]
    model = quiet(X, affine=True)
    assert any("times as far out as a typical one" in doubt for doubt in model.doubts_)
    assert not any("normalize=True" in doubt for doubt in model.doubts_)


def test_a_summary_says_why_it_is_not_sure():
    model = quiet(np.random.default_rng(0).standard_normal((9, 5)))
    assert f"because     {model.doubts_[0]}" in model.summary()
    assert "because" not in DPCP(random_state=0).fit(on_subspace(300, 50, 5, 1)).summary()


def test_many_equations_are_the_simplest_few():
    """Ten columns repeat one another with noise, among relations between many columns."""
    rng = np.random.default_rng(0)
    base = rng.standard_normal((500, 6))
    X = np.hstack([base, base, base @ rng.standard_normal((6, 6))])
    X += 0.001 * rng.standard_normal(X.shape)
    model = quiet(X)
    assert model.codimension_ == 12
    facts = gather(model, X)
    solved = facts["estimate"]["solved"]
    assert len(solved) == 8
    lengths = [len(one["terms"]) for one in solved]
    assert lengths[:6] == [1] * 6
    text = text_of(model, X)
    assert "These are the 8 simplest" in text
    assert "perpend.equations(perpend.load" in text


def test_without_a_short_equation_none_is_shown():
    X = embedded(on_subspace(300, 0, 12, 2, 0.01), 90)
    model = quiet(X)
    assert model.codimension_ > 64
    assert gather(model, X)["estimate"]["solved"] == []
    assert "None of them is short" in text_of(model, X)


def test_a_single_outlier_reads_as_one():
    X = on_subspace(300, 1, 6, 2, 0.01)
    model = DPCP(random_state=0).fit(X)
    text = text_of(model, X)
    assert "(the only one)" in text
    assert "both of these hold" in text


@pytest.mark.parametrize("affine", [False, True])
def test_nothing_found_shows_no_directions(affine):
    X = np.random.default_rng(0).standard_normal((300, 5))
    model = quiet(X, affine=affine)
    facts = gather(model, X)
    assert facts["pictures"]["directions"] is None
    text = text_of(model, X)
    assert "affine=False is enough" not in text
    assert "together span" not in text

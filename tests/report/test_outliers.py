"""The table of outliers with a single normal, and the places of points."""

import re

import numpy as np
import pytest

from perpend.report._facts import gather
from perpend.report._page import page
from report.cases import cloud, dataset, fitted


def plane(seed=0, gross=0):
    """A plane in three columns of different units; in each a few values are wrong by far."""
    rng = np.random.default_rng(seed)
    net, shipping = rng.uniform(20, 60, 300), rng.uniform(3, 9, 300)
    X = np.c_[net, 6 * shipping, net + 6 * shipping] + 0.02 * rng.standard_normal((300, 3))
    culprits = np.arange(gross) % 3
    X[np.arange(gross), culprits] += 400 * rng.choice([-1, 1], gross)
    return X, culprits


@pytest.mark.parametrize("seed", range(3))
def test_a_value_wrong_by_far_is_found_with_a_single_normal(seed):
    X, culprits = plane(seed, gross=30)
    model = fitted(X, affine=True)
    assert model.codimension_ == 1
    rows = {row["row"]: row for row in gather(model, dataset(X))["outliers"]["rows"]}
    assert set(range(30)) <= set(rows)
    for i, culprit in enumerate(culprits):
        # No other column could make up for it with a value that it has elsewhere.
        assert [b["column"] for b in rows[i]["blame"]] == [culprit]


def test_columns_are_ranked_by_the_way_they_would_have_to_go():
    X, _ = plane()
    X[:40, 2] += np.linspace(5, 60, 40)
    model = fitted(X, affine=True)
    assert model.codimension_ == 1
    inliers, (n,), (b,) = X[model.labels_ == 1], model.normals_, model.intercept_
    found = gather(model, dataset(X))["outliers"]["rows"]
    assert any(len(row["blame"]) > 1 for row in found)
    for row in found:
        x, expected = X[row["row"]], []
        for j in range(3):
            fits = x[j] - (x @ n - b) / n[j]
            low, high = inliers[:, j].min(), inliers[:, j].max()
            if low - 0.1 * (high - low) <= fits <= high + 0.1 * (high - low):
                expected.append((abs(x[j] - fits) / inliers[:, j].std(), j, fits))
        assert [b["column"] for b in row["blame"]] == [j for _, j, _ in sorted(expected)]
        for blame, (moves, j, fits) in zip(row["blame"], sorted(expected), strict=True):
            assert blame["moves"] == pytest.approx(moves)
            fixed = x.copy()
            fixed[j] = blame["fits"]
            assert blame["fits"] == pytest.approx(fits)
            assert model.distance(fixed[None])[0] < 1e-9 * np.linalg.norm(x)


def test_the_page_says_how_a_single_normal_names_columns():
    X, _ = plane(gross=30)
    text = page(gather(fitted(X, affine=True), dataset(X, columns=("net", "ship", "total"))))
    assert "which one is wrong is a guess" in text
    assert "Columns that may make it one" in text
    cell = re.sub(r"<[^>]*>", "", re.search(r'data-label="Columns">(.*?)</td>', text)[1])
    assert re.fullmatch(r"(net|ship|total) [\d.]+ spreads: −?[\d.]+ → −?[\d.]+", cell)


def test_a_column_that_is_the_same_in_all_inliers_is_to_blame():
    X = np.random.default_rng(0).standard_normal((100, 3))
    X[20:, 2] = 5.0
    rows = gather(fitted(X, affine=True), dataset(X))["outliers"]["rows"]
    assert len(rows) == 20
    assert all(row["blame"][0]["column"] == 2 for row in rows)
    assert all(row["blame"][0]["fits"] == pytest.approx(5.0) for row in rows)


@pytest.mark.parametrize("offset", [0.0, 5e6])
def test_points_have_places_with_digits_that_tell_them_apart(offset):
    X = cloud().data.X + offset
    facts = gather(fitted(X, affine=True), dataset(X, "cloud", columns=("x", "y", "z")))
    for row in facts["outliers"]["rows"]:
        np.testing.assert_array_equal(row["place"], X[row["row"]])
    text = page(facts)
    size = facts["pictures"]["cloud"]["size"]
    for j, axis in enumerate("xyz"):
        cells = re.findall(rf'data-sort="([^"]*)" data-label="{axis}"[^>]*>([^<]*)<', text)
        assert len(cells) == len(facts["outliers"]["rows"])
        for (exact, shown), row in zip(cells, facts["outliers"]["rows"], strict=True):
            assert float(exact) == row["place"][j]
            assert abs(float(shown.replace("−", "-")) - float(exact)) < size / 1000


def test_a_table_has_no_places():
    X, _ = plane(gross=30)
    assert all(
        row["place"] is None
        for row in gather(fitted(X, affine=True), dataset(X))["outliers"]["rows"]
    )

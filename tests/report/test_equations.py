"""Equations that are solved: the planted ones, and the subspace fulfils what is printed."""

import html
import re

import numpy as np
import pytest

from perpend import DPCP
from perpend.datasets import make_subspace
from perpend.report._equations import constants
from perpend.report._facts import gather
from perpend.report._page import page
from report.cases import cloud, dataset, fitted, table
from report.payloads import PAYLOADS
from report.test_page import invoices

POWERS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
TERM = r"([+-]?)([\d.]*(?:e-?\d+)?)([a-z]*)"


def printed(facts) -> list[str]:
    lines = re.findall(r'class="equation">(.*?)</p>', page(facts))
    return [html.unescape(re.sub(r"<[^>]*>", "", line)) for line in lines]


def read(line: str, names: str) -> tuple[int, np.ndarray, float]:
    """Return the column on the left, and the coefficients and the constant on the right."""
    line = line.replace("−", "-").replace("\u202f", "").replace(" ", "")
    line = re.sub(r"×10([⁻⁰-⁹¹²³]+)", lambda m: "e" + m[1].translate(POWERS), line)
    left, right = line.split("=")
    coefficients, constant = np.zeros(len(names)), 0.0
    for sign, value, name in re.findall(TERM, right):
        number = float(f"{sign}{value or 1}") if value or name else 0.0
        if name:
            coefficients[names.index(name)] = number
        else:
            constant += number
    return names.index(left), coefficients, constant


@pytest.mark.parametrize("affine", [False, True])
def test_relations_between_columns_are_the_equations(affine):
    X = invoices()
    data = dataset(X, columns=("net", "tax", "shipping", "total", "weight"))
    model = fitted(X, affine=affine)
    assert model.affine_ is affine
    assert printed(gather(model, data)) == ["tax = 0.19 net", "total = 1.19 net + shipping"]


@pytest.mark.parametrize("offset", [0.0, 3e5])
@pytest.mark.parametrize("seed", range(3))
def test_planted_relations_come_back_within_their_noise(seed, offset):
    rng = np.random.default_rng(seed)
    free, noise = rng.standard_normal((400, 3)) * [10.0, 20.0, 30.0], 0.01
    A = rng.uniform(0.5, 2, (2, 3)) * rng.choice([-1, 1], (2, 3))
    X = np.c_[free, free @ A.T + [100.0, 0.0]] + noise * rng.standard_normal((400, 5))
    X[:80] = rng.standard_normal((80, 5)) * [10.0, 20.0, 30.0, 30.0, 30.0]
    X += offset
    model = fitted(X, affine=True)
    lines = printed(gather(model, dataset(X, columns=tuple("abcde"))))
    assert len(lines) == 2
    for line in lines:
        p, coefficients, constant = read(line, "abcde")
        inliers = X[80:]
        miss = inliers @ coefficients + constant - inliers[:, p]
        # The noise of the columns that take part, and as much again for rounding and small terms.
        own = noise * np.hypot(1.0, np.linalg.norm(coefficients))
        small = 1e-3 * np.std(inliers[:, p])
        assert np.sqrt(np.mean(np.square(miss))) < 2 * own + small


@pytest.mark.parametrize("seed", range(5))
def test_the_subspace_fulfils_what_is_printed(seed):
    X = make_subspace(200, 100, n_features=7, codimension=3, random_state=seed).X
    model = DPCP(random_state=seed + 1000).fit(X)
    facts = gather(model, dataset(X, columns=tuple("abcdefg")))
    on_it = model.inverse_transform(model.transform(X[model.labels_ == 1]))
    lines = printed(facts)
    assert len(lines) == model.codimension_ == 3
    for line, solved in zip(lines, facts["estimate"]["solved"], strict=True):
        p, coefficients, constant = read(line, "abcdefg")
        miss = np.abs(on_it @ coefficients + constant - on_it[:, p])
        spread = np.sqrt(np.mean(np.square(on_it[:, p])))
        # Rounding costs at most a ten-thousandth, and what is left out a thousandth.
        assert np.sqrt(np.mean(miss**2)) < (1.1e-3 if solved["left_out"] else 1.01e-4) * spread


def test_units_do_not_matter():
    X = make_subspace(200, 100, n_features=6, codimension=2, noise=0.001, random_state=0).X
    here, there = (
        gather(fitted(scale * X, normalize=False), scale * X)["estimate"]["solved"]
        for scale in (1.0, 1e-3)
    )
    for one, other in zip(here, there, strict=True):
        assert one["column"] == other["column"]
        values = [[term["value"] for term in eq["terms"]] for eq in (one, other)]
        np.testing.assert_allclose(*values, rtol=1e-6)


def test_the_basis_of_the_normals_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    X = make_subspace(200, 100, n_features=6, codimension=3, random_state=seed).X
    model = fitted(X)
    before = gather(model, X)["estimate"]["solved"]
    model.normals_ = np.linalg.qr(rng.standard_normal((3, 3)))[0] @ model.normals_
    after = gather(model, X)["estimate"]["solved"]
    assert len(before) == 3
    for one, other in zip(before, after, strict=True):
        assert one["column"] == other["column"]
        values = [[term["value"] for term in eq["terms"]] for eq in (one, other)]
        np.testing.assert_allclose(*values, rtol=1e-9)


def test_a_column_that_never_changes_is_its_value():
    rng = np.random.default_rng(0)
    X = np.c_[rng.standard_normal((200, 2)), np.full(200, 7.25), np.zeros(200)]
    X[:, 3] = 2 * X[:, 0] - X[:, 1]
    X[:30, 2:] += rng.standard_normal((30, 2))
    facts = gather(fitted(X, affine=True), dataset(X, columns=tuple("abcd")))
    assert printed(facts) == ["d = 2 a − b"]
    assert constants(facts) == ["c = 7.25"]


@pytest.mark.parametrize("size", [1.0, 1e30])
def test_rows_that_are_all_alike_are_their_values(size):
    X = size * np.tile([1.5, -2.0, 0.25], (40, 1))
    model = fitted(X, codimension=2, affine=True)
    estimate = gather(model, dataset(X, columns=tuple("abc")))["estimate"]
    assert estimate["solved"] == []
    assert len(estimate["constants"]) == 2
    for one in estimate["constants"]:
        miss = sum(term["value"] * X[0, term["column"]] for term in one["terms"]) + one["constant"]
        assert miss == pytest.approx(X[0, one["column"]])
        assert np.isfinite(one["error"])


def test_one_normal_and_no_rows_are_as_before_and_many_normals_the_simplest():
    assert gather(*cloud())["estimate"]["solved"] is None
    assert gather(table().model)["estimate"]["solved"] is None
    X = np.random.default_rng(0).standard_normal((200, 2)) @ np.ones((2, 12))
    X[:, 0] *= -1.0
    simplest = gather(fitted(X), X)["estimate"]["solved"]  # of eleven
    assert [len(one["terms"]) for one in simplest] == [1] * 8
    facts = gather(*table())
    del facts["estimate"]["solved"]  # as in a file of an earlier version
    assert all(line.endswith("= 0") for line in printed(facts))


def test_names_that_begin_with_a_number_are_kept_apart_from_coefficients():
    X = invoices()
    data = dataset(X, columns=("400 nm", "tax", "2 b", "total", "weight"))
    assert printed(gather(fitted(X), data)) == [
        "tax = 0.19 · 400 nm",
        "total = 1.19 · 400 nm + 1 · 2 b",
    ]


def test_names_in_solved_equations_are_only_text():
    X, model = invoices(), fitted(invoices())
    for payload in PAYLOADS:
        text = page(gather(model, dataset(X, columns=(payload, *"bcde"))))
        (line, _) = re.findall(r'class="equation">(.*?)</p>', text)
        assert set(re.findall(r"<[^>]*>", line)) <= {
            '<span class="term">', "</span>", "<i>", "</i>", "<bdi>", "</bdi>"
        }  # fmt: skip

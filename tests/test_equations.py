"""Equations: planted relations come back in the user's units, and rows say which they break."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from helpers import mostly_slow
from perpend import DPCP, RobustStandardizer, equations, save
from perpend.exceptions import InputError
from perpend.relations import equations_apart
from perpend.relations.solved import solved, surface_of_rows
from perpend.relations.sparse import candidates, sparsest
from perpend.report import write_report

D, C, NOISE = 20, 6, 0.01


def planted(seed, n=1000):
    """A table with 6 relations of 3 or 4 columns in different units, and 8 % broken rows.

    Two relations share at most one free column: then no mixture of them is as short as they are.
    """
    rng = np.random.default_rng(seed)
    free, A, supports = rng.standard_normal((n, D - C)), np.zeros((C, D)), []
    while len(supports) < C:
        new = set(rng.choice(D - C, rng.integers(2, 4), replace=False).tolist())
        if all(len(new & old) <= 1 for old in supports):
            supports.append(new)
    for i, support in enumerate(supports):
        own = sorted(support)
        A[i, own] = rng.uniform(0.5, 2, len(own)) * rng.choice([-1, 1], len(own))
        A[i, D - C + i] = -1
    X = np.c_[free, free @ A[:, : D - C].T] + NOISE * rng.standard_normal((n, D))
    broken = rng.permutation(n)[: round(0.08 * n)]
    related = np.flatnonzero(np.any(A, axis=0))
    X[broken, rng.choice(related, len(broken))] += rng.choice([-3, 3], len(broken))
    unit, order = 10.0 ** rng.uniform(-3, 4, D), rng.permutation(D)
    X = (X + rng.normal(0, 3, D)) * unit
    return X[:, order], (A / unit)[:, order], broken


def in_columns(found, names):
    """Return the coefficients as an array (n_equations, n_columns)."""
    return np.array([[one.coefficients.get(name, 0.0) for name in names] for one in found])


@pytest.mark.parametrize("seed", mostly_slow(range(176000, 176010)))
@pytest.mark.parametrize("with_rows", [True, False])
def test_planted_relations_come_back_in_the_units_of_the_table(seed, with_rows):
    X, A, broken = planted(seed)
    names = [f"column {j}" for j in range(D)]
    model = make_pipeline(RobustStandardizer(), DPCP(affine=True, random_state=0)).fit(X)
    found = equations(model, names, X=X if with_rows else None)
    assert len(found) == len(found.relations) == C
    assert found.constants == []
    spread = np.median(np.abs(X - np.median(X, axis=0)), axis=0)
    rows = {tuple(np.flatnonzero(row)): row * spread for row in in_columns(found, names)}
    for a in A * spread:
        row = rows[tuple(np.flatnonzero(a))]  # the same columns, and the same up to scale
        cosine = abs(a @ row) / (np.linalg.norm(a) * np.linalg.norm(row))
        assert np.sqrt(1 - cosine**2) < 0.3 * NOISE
    residuals = np.delete(found.residuals(X), broken, axis=0)
    expected = [one.noise for one in found]
    np.testing.assert_allclose(np.std(residuals, axis=0), expected, rtol=0.1 if with_rows else 0.3)
    by = found.broken(X).by
    assert np.quantile(np.delete(by, broken), 0.99) < 5 < np.quantile(by[broken], 0.05)


def test_a_column_that_never_changes_is_no_multiple_of_the_rounding_of_others():
    rows = np.random.default_rng(176110).normal(0, 20, (500, 5))
    rows[:, 2], rows[:, 4] = 0.0, rows[:, 0] - rows[:, 1]
    slopes = 3e-12 * np.array([1.0, -2.0, 0.0, 1.5, 0.5])
    normals = np.array([[1.0, -1.0, 0.0, 0.0, -1.0], np.eye(5)[2] + slopes])
    found = solved(surface_of_rows(normals, np.zeros(5), rows, scale=np.full(5, 20.0)))
    assert [sorted([one.column, *one.columns]) for one in found] == [[2], [0, 1, 4]]


@pytest.mark.parametrize("seed", mostly_slow(range(176120, 176140)))
def test_relations_differ_by_more_than_what_is_lost_in_their_noise(seed):
    """Without its small terms one relation of much noise may be another one, said twice."""
    rng = np.random.default_rng(seed)
    normals = np.linalg.qr(rng.standard_normal((10, 3)))[0].T
    rows = rng.standard_normal((400, 10))
    rows -= 0.5 * rows @ normals.T @ normals
    found = solved(surface_of_rows(normals, np.zeros(10), rows))
    texts = [(one.column, *one.columns) for one in found]
    assert len({tuple(sorted(text)) for text in texts}) == 3, texts


def test_a_row_says_which_relation_it_breaks_and_by_how_much():
    X, _, broken = planted(176100)
    model = make_pipeline(RobustStandardizer(), DPCP(affine=True, random_state=0)).fit(X)
    found = equations(model, X=X)
    row = np.delete(X, broken, axis=0)[:1]
    for k, one in enumerate(found):
        own = [j for j in range(D) if all((f"x{j}" in e.coefficients) == (e is one) for e in found)]
        changed = row.copy()
        changed[0, own[0]] += 20 * one.noise / one.coefficients[f"x{own[0]}"]
        place, by = found.broken(changed)
        assert place[0] == k
        change = (found.residuals(changed) - found.residuals(row))[0]
        np.testing.assert_allclose(change[k], 20 * one.noise, rtol=1e-6)
        assert by[0] == pytest.approx(abs(found.residuals(changed)[0, k]) / one.noise)


SCALERS = [
    RobustStandardizer(),
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_std=False),
    RobustScaler(),
    RobustScaler(with_centering=False),
    MinMaxScaler(feature_range=(-1, 2)),
    MaxAbsScaler(),
    Pipeline([("a", MinMaxScaler()), ("b", "passthrough"), ("c", RobustStandardizer())]),
]


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("scaler", SCALERS, ids=str)
def test_any_scaler_gives_the_subspace_of_the_pipeline(scaler, affine):
    """An equation with all its terms is exactly as far from 0 as the scaled row is off it."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4)) * [1.0, 2.0, 3.0, 1.0]
    X[:, 3] = X[:, 0] - 2 * X[:, 1] + 0.7 * X[:, 2] + 0.05 * rng.standard_normal(300)
    X[:, 0] += 5.0 * affine
    method = DPCP(codimension=1, affine=affine, normalize=False, random_state=0)
    model = make_pipeline(clone(scaler), method).fit(X)
    (one,) = found = equations(model)
    assert len(one.coefficients) == 4
    distance = model[-1].distance(model[:-1].transform(X))
    ratio = np.abs(found.residuals(X)[:, 0]) / distance
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-6)
    with_rows = equations(model, X=X)
    inliers = X[model.predict(X) == 1]
    rms = np.sqrt(np.mean(np.square(with_rows.residuals(inliers))))
    assert rms == pytest.approx(with_rows[0].noise, rel=1e-6)


def invoices(n=400):
    rng = np.random.default_rng(0)
    net, shipping = rng.lognormal(5, 1, n), rng.uniform(3, 40, n)
    X = np.c_[net, 0.19 * net, shipping, 1.19 * net + shipping, np.full(n, 24.0)]
    X[:, :4] = np.round(X[:, :4], 2)
    X[:10, 4] = 12.0
    X[10:30, 3] += 100
    return pd.DataFrame(X, columns=["net", "tax", "shipping", "total", "hours"])


def test_constant_columns_are_listed_apart():
    frame = invoices()
    pipeline = make_pipeline(RobustStandardizer(), DPCP(affine=True, random_state=0)).fit(frame)
    found = equations(pipeline, X=frame)
    texts = [text.partition(" ± ")[0] for text in map(str, found)]
    assert texts == ["tax = 0.19 net", "total = 1.19 net + shipping", "hours = 24"]
    assert [one.single_column for one in found] == [False, False, True]
    assert found.constants == [found[2]]
    assert found.relations == found[:2]
    *lines, last = str(found).splitlines()
    assert lines == [one.text for one in found[:2]]
    assert last == f"nearly constant columns: {found[2].text}"
    assert found.constants[0].coefficients == {"hours": 1.0}
    assert found.constants[0].constant == -24.0
    # Prices are rounded to cents, uniformly: total - 1.19 net - shipping has this deviation.
    cents = np.sqrt((1 + 1.19**2 + 1) / 12) * 0.01
    assert found[1].noise == pytest.approx(cents, rel=0.15)
    place, by = found.broken(frame)
    assert set(place[:10]) == {2}
    assert set(place[10:30]) == {1}
    assert by[:30].min() > 100
    np.testing.assert_allclose(found.residuals(frame)[10:30, 1], 100, atol=0.05)


def test_a_model_without_scalers_has_equations_too():
    rng = np.random.default_rng(0)
    net, shipping = rng.uniform(20, 60, 300), rng.uniform(3, 40, 300)
    X = np.c_[net, 0.19 * net, shipping, 1.19 * net + shipping]
    X += 0.01 * rng.standard_normal(X.shape)
    frame = pd.DataFrame(X, columns=["net", "tax", "shipping", "total"])
    found = equations(DPCP(affine=True, random_state=0).fit(frame))
    assert [one.column for one in found] == ["tax", "total"]
    assert found[1].coefficients == pytest.approx(
        {"net": -1.19, "shipping": -1.0, "total": 1.0}, abs=1e-3
    )


def test_linear_models_know_their_noise_only_from_rows():
    X = np.random.default_rng(0).standard_normal((200, 3))
    X[:, 2] = X[:, 0] - 2 * X[:, 1] + 0.01 * X[:, 2]
    model = DPCP(random_state=0).fit(X)
    found = equations(model)
    assert np.isnan(found[0].noise)
    assert "±" not in found[0].text
    assert found[0].constant == 0
    with pytest.raises(InputError, match=r"equations\(model, X=X\)"):
        found.broken(X)
    (one,) = equations(model, X=X)
    assert one.text.startswith("x2 = x0 - 2 x1 ± ")
    assert one.noise == pytest.approx(0.01, rel=0.1)


def test_codimension_0_has_no_equations():
    X = np.random.default_rng(0).standard_normal((200, 3))
    model = DPCP(codimension=0, random_state=0).fit(X)
    found = equations(model)
    assert len(found) == 0
    assert found.residuals(X).shape == (200, 0)
    assert np.all(found.broken(X).equation == -1)
    assert "codimension 0" in repr(found)


def test_exact_relations_are_broken_by_what_is_more_than_rounding():
    rng = np.random.default_rng(0)
    X = rng.integers(1, 1000, (300, 3)).astype(float)
    X = np.c_[X, X.sum(axis=1)]
    X[0, 3] += 1
    model = make_pipeline(RobustStandardizer(), DPCP(affine=True, random_state=0)).fit(X)
    found = equations(model, list("abcs"), X=X)
    assert found[0].text.startswith("s = a + b + c ± ")
    by = found.broken(X).by
    assert by[1:].max() < 5
    assert by[0] > 1e6


def test_a_constant_that_texts_leave_out_still_counts():
    """One of 10 noises, but a thousandth of the column's spread: residuals are about 0."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 3))
    X[:, 2] = X[:, 0] + X[:, 1] + 1e-4 * rng.standard_normal(500) + 1e-3
    model = make_pipeline(RobustStandardizer(), DPCP(affine=True, random_state=0)).fit(X)
    (one,) = found = equations(model, X=X)
    assert one.text.startswith("x2 = x0 + x1 ± ")
    assert one.constant == pytest.approx(-1e-3, abs=2e-5)
    residuals = found.residuals(X)
    assert np.abs(np.mean(residuals)) < 0.2 * one.noise
    assert np.std(residuals) == pytest.approx(one.noise, rel=0.05)


def test_wrong_input_is_explained():
    X = np.random.default_rng(0).standard_normal((100, 3))
    model = make_pipeline(PCA(), DPCP(codimension=1, random_state=0)).fit(X)
    with pytest.raises(InputError, match=r'"pca" .*PCA\(\).* more than scale columns'):
        equations(model)
    with pytest.raises(InputError, match="clip"):
        equations(make_pipeline(MinMaxScaler(clip=True), DPCP(codimension=1)).fit(X))
    with pytest.raises(InputError, match="model is a PCA"):
        equations(PCA().fit(X))
    with pytest.raises(InputError, match=r"2 names, 2 of them different; expected 3 different"):
        equations(model[-1], ["a", "b"])
    with pytest.raises(InputError, match="3 names, 2 of them different"):
        equations(model[-1], ["a", "b", "a"])
    with pytest.raises(InputError, match=r"shape \(100, 2\)"):
        equations(model[-1]).residuals(X[:, :2])


def test_constant_columns_are_told_apart_also_in_wide_tables(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 6)) * [1, 1, 1, 1, 1, 5] + [0, 0, 0, 3, 0, 0]
    X[:, 2] = 2 * X[:, 0] - X[:, 1]
    X[:570, 3:5] = [3.0, 0.0]
    model = make_pipeline(RobustStandardizer(), DPCP(3, affine=True, random_state=0)).fit(X)
    relations, constants = equations_apart(model, "abcdef", X)
    assert [one.text.partition(" ±")[0] for one in relations] == ["c = 2 a - b"]
    assert [one.text.partition(" ±")[0] for one in constants] == ["d = 3", "e = 0"]
    monkeypatch.setattr("perpend.relations.solved.MOST_PRODUCTS", 0)
    none, again = equations_apart(model, "abcdef", X)
    assert none is None
    assert again == constants


def test_noise_is_not_called_a_constant_column():
    X = np.random.default_rng(0).standard_normal((500, 5))
    model = make_pipeline(RobustStandardizer(), DPCP(3, affine=True, random_state=0)).fit(X)
    assert equations_apart(model, "abcde", X)[1] == []


def test_labels_of_both_kinds_leave_the_equations_as_they_are():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 4))
    X[:, 3] = X[:, 0] + X[:, 1] + 0.01 * rng.standard_normal(500)
    X[:40, 3] += 1.0
    fits = [
        make_pipeline(
            RobustStandardizer(), DPCP(1, affine=True, outliers=kind, random_state=0)
        ).fit(X)
        for kind in ("across", "both")
    ]
    first, second = (equations(model, X=X)[0] for model in fits)
    assert second.noise == pytest.approx(first.noise, rel=0.05)
    assert first.noise == pytest.approx(0.01, rel=0.1)


@pytest.mark.parametrize("seed", range(5))
def test_the_sparse_basis_spans_the_same_and_ignores_the_basis(seed):
    rng = np.random.default_rng(seed)
    R = rng.standard_normal((5, 12)) * (rng.random((5, 12)) < 0.3)
    R[:, 7:] += np.eye(5)
    Q = np.linalg.qr(R.T)[0].T
    turned = np.linalg.qr(rng.standard_normal((5, 5)))[0] @ Q
    found = []
    for basis in (Q, turned):
        V = candidates(basis)
        np.testing.assert_allclose(V @ Q.T @ Q, V, atol=1e-10)
        supports = [tuple(np.flatnonzero(np.abs(v) > 1e-2).tolist()) for v in V]
        chosen = sparsest(V, supports, 5)
        assert np.linalg.matrix_rank(V[chosen]) == 5
        found.append(sorted(supports[i] for i in chosen))
    assert found[0] == found[1]
    assert sum(map(len, found[0])) <= np.count_nonzero(R)


def orders(n=300):
    """Two relations between four columns, and a row that breaks one."""
    rng = np.random.default_rng(3)
    net, shipping = rng.lognormal(5, 1, n), rng.integers(3, 40, n)
    columns = {"net": net, "shipping": shipping, "tax": 0.19 * net, "total": 1.19 * net + shipping}
    X = pd.DataFrame(columns)
    X.loc[5, "total"] += 1000
    return X


@pytest.mark.parametrize("named", [True, False])
def test_columns_may_have_scalers_of_their_own(named):
    X = orders()
    keys = [["tax", "shipping"], slice("total", "total")] if named else [[2, 1], slice(3, 4)]
    parts = [("one", RobustStandardizer(), keys[0]), ("two", StandardScaler(), keys[1])]
    X = X if named else X.to_numpy()
    apart = ColumnTransformer(parts, remainder="passthrough")
    model = make_pipeline(StandardScaler(), apart, DPCP(affine=True, random_state=0))
    model.set_params(standardscaler="passthrough") if named else None
    found = equations(model.fit(X), list(orders().columns), X=X)
    texts = [one.text.split(" ± ")[0] for one in found]
    assert texts == ["tax = 0.19 net", "total = 1.19 net + shipping"]
    assert found[found.broken(X).equation[5]].column == "total"
    assert np.median(np.abs(found.residuals(X))) < 1e-9
    with pytest.raises(InputError, match=r"changes the order of the columns.*in the order of the"):
        save(model, "nowhere.npz")


def test_columns_in_their_order_need_no_other_words(tmp_path):
    X = orders()
    one = ColumnTransformer([("all", RobustStandardizer(), list(X))])
    plain = make_pipeline(RobustStandardizer(), DPCP(affine=True, random_state=0)).fit(X)
    model = make_pipeline(one, DPCP(affine=True, random_state=0)).fit(X)
    assert [e.text for e in equations(model)] == [e.text for e in equations(plain)]
    write_report(tmp_path / "page.html", model, X)
    assert (tmp_path / "page.html").exists()


@pytest.mark.parametrize(
    ("columns", "remainder", "message"),
    [
        (["net", "tax"], "drop", "leaves out column shipping.*before the pipeline"),
        (["net", "tax", "total"], "passthrough", "takes more than once column net"),
    ],
)
def test_columns_that_are_left_out_or_repeated_are_named(columns, remainder, message):
    parts = [("one", StandardScaler(), columns)]
    parts += [("two", StandardScaler(), ["net"])] * (remainder == "passthrough")
    parts = ColumnTransformer(parts, remainder=remainder)
    model = make_pipeline(parts, DPCP(1, affine=True, random_state=0)).fit(orders())
    with pytest.raises(InputError, match=message):
        equations(model)


def test_imputers_are_refused_with_another_way():
    X = orders().to_numpy()
    X[7, 1] = np.nan
    model = make_pipeline(SimpleImputer(), StandardScaler(), DPCP(2, affine=True, random_state=0))
    with pytest.raises(InputError, match=r'fills missing values.*use DPCP\(missing="mask"\)'):
        equations(model.fit(X))
    masked = DPCP(2, affine=True, missing="mask", random_state=0)
    assert len(equations(make_pipeline(StandardScaler(), masked).fit(X))) == 2

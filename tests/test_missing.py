"""Rows with missing entries: ``missing="mask"``."""

import warnings

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from helpers import assert_same_subspace
from perpend import DPCP, DPCPIRLS, RSGM, RobustStandardizer, equations, load, peel, subspace_error
from perpend.datasets import make_subspace
from perpend.exceptions import InputError, MissingWarning
from perpend.report import write_report
from perpend.rows.masked import Gaps, Law, likeliest

QUIET = "ignore::perpend.exceptions.MissingWarning"
MASK = {"missing": "mask", "random_state": 0}


def with_gaps(X, share, seed=0):
    X = X.copy()
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return X


def plane(seed=0, n_outliers=200, c=4, **options):
    return make_subspace(
        300, n_outliers, n_features=10, codimension=c, random_state=seed, **options
    )


def some_law(seed, D=7, c=3):
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((D, D)))[0]
    return Law(rng.standard_normal(D), Q[:, :c], Q[:, c:], 1 + rng.random(D - c), 0.01)


# -- what observed entries say ---------------------------------------------------------------------


def test_gaps_are_filled_by_what_is_expected(seed):
    rng, law = np.random.default_rng(seed), some_law(seed)
    X = with_gaps(rng.standard_normal((40, 7)), 0.4, seed)
    fill = law.fill(X, gaps := Gaps(X))
    A = np.vstack([law.normals.T, np.sqrt(law.noise / law.variances)[:, None] * law.axes.T])
    for x, y, lost in zip(X, fill.X, fill.lost, strict=True):
        M = np.isnan(x)
        at = A[:, ~M] @ (x - law.centre)[~M]
        expected = np.linalg.lstsq(A[:, M], -at, rcond=None)[0] + law.centre[M]
        np.testing.assert_allclose(y[M], expected, atol=1e-10)
        np.testing.assert_array_equal(y[~M], x[~M])
        # Of unit noise along the normals, so much is taken up by filling: a trace.
        hat = A[:, M] @ np.linalg.pinv(A[:, M])
        assert lost == pytest.approx(np.trace(hat[:3, :3]), abs=1e-10)
    assert bool(gaps)
    assert not Gaps(np.zeros((3, 2)))


def test_random_entries_have_the_conditional_law():
    law = some_law(1)
    X = np.tile(np.where(np.arange(7) < 3, np.nan, 1.0), (200_000, 1))
    fill = law.fill(X, Gaps(X), np.random.default_rng(0))
    S = law.noise * np.linalg.inv(law.precision)
    M, rest = slice(0, 3), slice(3, 7)
    expected = S[M, M] - S[M, rest] @ np.linalg.solve(S[rest, rest], S[rest, M])
    noise = np.sqrt(law.noise) * fill.noise[:, M]
    np.testing.assert_allclose(noise.T @ noise / len(X), expected, rtol=0.03, atol=1e-4)


def log_likelihood(X, law):
    S = law.noise * np.linalg.inv(law.precision)
    rows = [(x[~np.isnan(x)], ~np.isnan(x)) for x in X]
    return sum(multivariate_normal(law.centre[o], S[np.ix_(o, o)]).logpdf(x) for x, o in rows)


def test_the_law_is_the_likeliest_one(seed):
    rng, true = np.random.default_rng(seed), some_law(seed)
    spread = np.linalg.cholesky(true.noise * np.linalg.inv(true.precision))
    X = with_gaps(true.centre + rng.standard_normal((60, 7)) @ spread.T, 0.2, seed)
    law = likeliest(X, Gaps(X), np.ones(60), true, moves=True)
    best = log_likelihood(X, law)
    assert best > log_likelihood(X, true)
    for _ in range(5):  # it is a maximum: no other law nearby is likelier
        turn = np.linalg.qr(np.eye(7) + 0.01 * rng.standard_normal((7, 7)))[0]
        other = law._replace(normals=turn @ law.normals, axes=turn @ law.axes)
        assert log_likelihood(X, other) < best
    assert log_likelihood(X, law._replace(noise=1.05 * law.noise)) < best
    assert log_likelihood(X, law._replace(centre=law.centre + 0.01)) < best


# -- fits ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("c", "share"), [(5, 0.05), (15, 0.2)])
@pytest.mark.filterwarnings(QUIET)
def test_the_subspace_is_found(c, share):
    data = make_subspace(500, 750, n_features=30, codimension=c, noise=0.01, random_state=7)
    complete = DPCP(random_state=0).fit(data.X)
    model = DPCP(**MASK).fit(X := with_gaps(data.X, share))
    assert model.codimension_ == c
    assert model.confidence_ >= 0.95
    error, least = (subspace_error(one.normals_, data.normals) for one in (model, complete))
    assert error < 1.6 * least
    decided = np.setdiff1d(np.arange(len(X)), model.undecided_)
    assert np.mean(model.labels_[decided] == data.y[decided]) > 0.99
    assert model.noise_ == pytest.approx(0.01, rel=0.05)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert "missing" in model.summary()


@pytest.mark.filterwarnings("ignore::perpend.exceptions.CodimensionWarning", QUIET)
@pytest.mark.parametrize("affine", [False, True])
def test_a_cloud_is_never_sure(seed, affine):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((200, 8)) * np.exp(rng.normal(0, 0.5, 8))
    model = DPCP(affine=affine, **MASK).fit(with_gaps(X, 0.15, seed))
    assert model.codimension_ == 0 or model.confidence_ < 0.95


@pytest.mark.filterwarnings("ignore::perpend.exceptions.CodimensionWarning", QUIET)
def test_what_no_row_can_confirm_is_not_sure(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 5))
    X -= X.mean(axis=1, keepdims=True)  # a plane that involves all columns alike,
    X[np.arange(300), rng.integers(5, size=300)] = np.nan  # and one is missing in each row
    model = DPCP(**MASK).fit(X)
    assert model.confidence_ < 0.95


@pytest.mark.filterwarnings(QUIET)
@pytest.mark.filterwarnings("ignore::perpend.exceptions.CodimensionWarning")  # 0.90 for seed 1
def test_without_noise_it_is_exact(seed):
    data = plane(seed)
    model = DPCP(**MASK).fit(X := with_gaps(data.X, 0.1, seed))
    assert_same_subspace(model.normals_, data.normals, 1e-8)
    inlier = data.y == 1
    points = model.inverse_transform(model.transform(X))
    known = np.setdiff1d(np.flatnonzero(inlier), model.undecided_)
    np.testing.assert_allclose(points[known], data.X[known], atol=1e-5)


@pytest.mark.parametrize("kind", [RSGM, DPCPIRLS])
@pytest.mark.filterwarnings(QUIET)
def test_other_methods(kind):
    data = plane(noise=0.01)
    model = kind(codimension=4, **MASK).fit(with_gaps(data.X, 0.05))
    assert subspace_error(model.normals_, data.normals) < 0.02


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.filterwarnings(QUIET)
def test_affine(dtype):
    data = plane(1, noise=0.01, offset=100.0)
    X = with_gaps(data.X, 0.05).astype(dtype)
    model = DPCP(affine=True, **MASK).fit(X)
    assert model.codimension_ == 4
    assert subspace_error(model.normals_, data.normals) < 0.01
    assert model.normals_.dtype == model.distance(X).dtype == dtype
    decided = np.setdiff1d(np.arange(len(X)), model.undecided_)
    assert np.mean(model.labels_[decided] == data.y[decided]) > 0.98


@pytest.mark.filterwarnings(QUIET)
def test_rows_of_weight_zero_do_not_count():
    data, other = plane(noise=0.01), plane(5, noise=0.01)
    X = with_gaps(np.vstack([data.X, other.X]), 0.05)
    weight = np.repeat([1.0, 0.0], len(data.X))
    model = DPCP(**MASK).fit(X, sample_weight=weight)
    assert subspace_error(model.normals_, data.normals) < 0.02


@pytest.mark.filterwarnings(QUIET)
def test_many_rows_are_sampled_first():
    data = make_subspace(9000, 3000, n_features=6, codimension=3, noise=0.01, random_state=0)
    model = DPCP(**MASK).fit(with_gaps(data.X, 0.05))
    assert model.codimension_ == 3
    assert subspace_error(model.normals_, data.normals) < 1e-3
    assert model._distance_record["counts"].sum() == len(data.X) - len(model.undecided_)


def test_nothing_changes_where_nothing_is_missing():
    X = plane(noise=0.01).X
    usual, masked = DPCP(random_state=0).fit(X), DPCP(**MASK).fit(X)
    for name in ("normals_", "labels_", "threshold_", "confidence_"):
        np.testing.assert_array_equal(getattr(usual, name), getattr(masked, name))
    assert masked.n_missing_ == 0
    X[0, 1] = np.nan
    assert np.isfinite(masked.distance(X)).all()


# -- rows ------------------------------------------------------------------------------------------


def test_rows_with_too_few_entries_are_named():
    data = plane(noise=0.01)
    X = with_gaps(data.X, 0.02)
    X[[3, 17], 2:8] = np.nan
    with pytest.warns(
        MissingWarning, match=r"2 of 500 rows have too few .*codimension 4 \(rows 3, 17, c"
    ):
        model = DPCP(**MASK).fit(X)
    np.testing.assert_array_equal(model.undecided_, [3, 17])
    few = X[[3, 17]]
    assert np.isnan(model.distance(few)).all()
    np.testing.assert_array_equal(model.decision_function(few), 0)
    np.testing.assert_array_equal(model.predict(few), 1)
    share = np.mean(model.labels_ == -1)
    np.testing.assert_allclose(model.outlier_probability(few), share)
    assert np.isfinite(model.explain(X)).all()
    assert model.n_missing_ == np.isnan(X).sum()


def test_columns_that_no_normal_involves_may_be_missing():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 6))
    X[:300, 3] = X[:300, :3].sum(axis=1) + 0.01 * rng.standard_normal(300)
    gaps = X.copy()
    gaps[::2, 5] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error", MissingWarning)
        model = DPCP(affine=True, **MASK).fit(gaps)
    complete = DPCP(affine=True, random_state=0).fit(X)
    assert model.codimension_ == complete.codimension_ == 1
    assert np.mean(model.labels_ == complete.labels_) > 0.99


@pytest.mark.filterwarnings(QUIET)
def test_both_kinds_of_outliers():
    data = plane(noise=0.02, n_outliers=20)
    X = with_gaps(data.X, 0.1)
    X[0] *= 30  # far out, within
    model = DPCP(affine=True, outliers="both", **MASK).fit(X)
    assert model.labels_[0] == -1
    assert np.mean(model.labels_[data.y == -1] == -1) > 0.9
    assert np.mean(model.labels_[data.y == 1] == 1) > 0.95
    assert np.all((model.explain(X) >= 0) & (model.explain(X) <= 1))


@pytest.mark.filterwarnings(QUIET)
def test_saved_models_and_other_structures_keep_it(tmp_path):
    rng = np.random.default_rng(0)
    slab = rng.uniform([-20, -20, -1, -5], [20, 20, 1, 5], (2000, 4))
    slab[:800, 2:] = rng.normal(0, 0.05, (800, 2))
    X = with_gaps(slab, 0.03)
    model = DPCP(affine=True, **MASK).fit(X)
    model.save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))
    np.testing.assert_array_equal(again.undecided_, model.undecided_)
    for i in range(len(model.structures_)):
        chosen = again.choose(i)
        np.testing.assert_array_equal(chosen.predict(X), chosen.labels_)
        assert (chosen.labels_ == 1).sum() == model.structures_[i]["members"]


@pytest.mark.filterwarnings(QUIET)
def test_pipelines_and_reports(tmp_path):
    data = plane(noise=0.01)
    X = with_gaps(data.X, 0.05) * np.arange(1, 11)
    model = make_pipeline(RobustStandardizer(), DPCP(affine=True, **MASK)).fit(X)
    assert model[-1].codimension_ == 4
    own = clone(model[-1]).fit(X)
    own.report(tmp_path / "report.html", X)
    assert "the fit used the others" in (tmp_path / "report.html").read_text("utf-8")


@pytest.mark.filterwarnings(QUIET)
@pytest.mark.parametrize("outliers", ["across", "both"])
@pytest.mark.parametrize("share", [0.05, 0.5])  # with the latter no row is complete
def test_the_report_of_a_pipeline(tmp_path, outliers, share):
    X = with_gaps(plane(noise=0.01).X, share) * np.arange(1, 11)
    model = make_pipeline(RobustStandardizer(), DPCP(affine=True, outliers=outliers, **MASK))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # half of the entries: not sure
        write_report(tmp_path / "report.html", model.fit(X), X)
    assert "in the data's own units" in (tmp_path / "report.html").read_text("utf-8")


@pytest.mark.filterwarnings(QUIET)
def test_equations_leave_out_what_is_missing():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 6))
    X[:, 2], X[:, 5] = X[:, 0] + X[:, 1], X[:, 3] - X[:, 4]
    X[9, 2] += 5
    model = DPCP(affine=True, **MASK).fit(with_gaps(X + 1e-3 * rng.standard_normal(X.shape), 0.03))
    found = equations(model, X=X)
    X[9, 4] = np.nan
    residuals = np.abs(found.residuals(X)[9])
    assert np.isnan(residuals).sum() == 1
    assert np.nanmax(residuals) == pytest.approx(5, abs=0.1)
    assert found.broken(X).equation[9] == np.nanargmax(residuals)


# -- refusals --------------------------------------------------------------------------------------


def test_clear_errors():
    X = plane().X
    gaps = with_gaps(X, 0.05)
    with pytest.raises(InputError, match='missing="mask"'):
        DPCP().fit(gaps)
    usual = DPCP(random_state=0).fit(X)
    with pytest.raises(InputError, match="was fitted with missing"):
        usual.set_params(missing="mask").predict(gaps)
    with pytest.raises(InputError, match="contains inf: 1 entry"):
        DPCP(**MASK).fit(inf_at(gaps))
    gaps[:, 2] = np.nan
    with pytest.raises(InputError, match="Column 2 of X has no observed entry"):
        DPCP(**MASK).fit(gaps)
    model = DPCP(**MASK).fit(X)
    with pytest.raises(InputError, match="score needs complete"):
        model.score(gaps)
    with pytest.raises(InputError, match=r"NaN.* impute them first\.$"):
        peel(gaps)
    with pytest.raises(InputError, match=r'peel needs complete rows.* Use missing="error"'):
        peel(gaps, estimator=DPCP(missing="mask"))


def inf_at(X):
    X = X.copy()
    X[5, 5] = np.inf
    return X


@pytest.mark.filterwarnings(QUIET)
def test_score_is_that_of_complete_rows():
    data = plane(noise=0.01)
    X = with_gaps(data.X, 0.02)
    model, whole = DPCP(**MASK).fit(X), ~np.isnan(X).any(axis=1)
    assert model.score(X) == model.score(X[whole])


def test_the_tag_follows():
    assert DPCP(missing="mask").__sklearn_tags__().input_tags.allow_nan
    assert not DPCP().__sklearn_tags__().input_tags.allow_nan

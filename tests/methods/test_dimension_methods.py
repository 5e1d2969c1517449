"""Methods for a given dimension: plain references, where theory has them succeed, and fail."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from helpers import assert_same_subspace, assert_sure
from perpend import (
    DPCPIRLS,
    FMS,
    GGD,
    GMS,
    REAPER,
    RSGM,
    STE,
    TME,
    RANSACPlus,
    SphericalPCA,
    subspace_error,
)
from perpend.datasets import make_subspace
from perpend.exceptions import InputError
from perpend.methods.reaper import water_level

EXACT = [REAPER, FMS, GGD, TME, STE, GMS]
ALL = [*EXACT, SphericalPCA]
SEEDS = range(5)

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::perpend.exceptions.CodimensionWarning"),
]


def problem(seed, n_inliers=150, n_outliers=150, D=20, d=5, **more):
    return make_subspace(
        n_inliers, n_outliers, n_features=D, codimension=D - d, random_state=seed, **more
    )


def error(model, data):
    return subspace_error(model.fit(data.X).normals_, data.normals)


# -- against references ----------------------------------------------------------------------------


def axes(X, w):
    """Eigenvalues and vectors of the weighted second moments, descending."""
    s, U = np.linalg.eigh(X.T @ (w[:, None] * X))
    return s[::-1], U[:, ::-1]


def reference_reaper(X, d, n_iter):
    w = np.ones(len(X))
    for _ in range(n_iter + 1):
        s, U = axes(X, w)
        for i in range(d + 1, len(s) + 1):
            level = (i - d) / np.sum(1 / s[:i])
            if s[i - 1] > level >= (s[i] if i < len(s) else 0):
                break
        P = (U * np.maximum(0, 1 - level / s)) @ U.T
        w = 1 / np.maximum(np.linalg.norm(X - X @ P, axis=1), 1e-10)
    return U[:, d:]


def reference_fms(X, d, n_iter, *, p=1.0, delta=1e-10, quantile=None):
    w, least = np.ones(len(X)), np.inf
    for _ in range(n_iter + 1):
        U = axes(X, w)[1][:, d:]
        r = np.linalg.norm(X @ U, axis=1)
        if quantile is not None:
            delta = least = min(least, np.quantile(r, quantile, method="inverted_cdf"))
        w = np.maximum(r, delta) ** (p - 2)
    return U


def reference_tme(X, d, n_iter, gamma=None):
    D = X.shape[1]
    S = np.eye(D)
    for _ in range(n_iter):
        w = 1 / (np.sum((X @ np.linalg.inv(S + 1e-10 * np.eye(D))) * X, axis=1) + 1e-10)
        s, U = axes(X, w)
        if gamma is not None:
            s[d:] = np.mean(s[d:]) / gamma
        S = (U * s) @ U.T / np.sum(s)
    return U[:, d:]


def reference_gms(X, d, n_iter):
    w = np.ones(len(X))
    for _ in range(n_iter + 1):
        S = X.T @ (w[:, None] * X)
        Q = np.linalg.inv(S) / np.trace(np.linalg.inv(S))
        w = 1 / np.maximum(np.linalg.norm(X @ Q, axis=1), 1e-10)
    return np.linalg.eigh(Q)[1][:, d:]


def reference_ggd(X, d, n_iter, shrinking=False):
    U, step = axes(X, np.ones(len(X)))[1][:, :d], 1 / len(X)

    def objective(U):
        return np.linalg.norm(X - X @ U @ U.T, axis=1).sum()

    for k in range(n_iter):
        R = X - X @ U @ U.T
        G = (R / np.linalg.norm(R, axis=1)[:, None]).T @ (X @ U)
        W, s, Zt = np.linalg.svd(G, full_matrices=False)
        while True:
            V = (U @ Zt.T * np.cos(s * step) + W * np.sin(s * step)) @ Zt
            if shrinking or objective(V) < objective(U):
                break
            step /= 2
        if shrinking:
            step *= 0.1 if (k + 1) % 50 == 0 else 1
        else:
            step = min(2 * step, 1 / len(X))
        U = V
    return np.linalg.qr(U, mode="complete")[0][:, d:]


REFERENCES = {
    "REAPER": (REAPER, {}, reference_reaper, {}),
    "FMS": (FMS, {"smoothing": 1e-10}, reference_fms, {}),
    "FMS, p": (FMS, {"smoothing": 1e-6, "p": 0.5}, reference_fms, {"p": 0.5, "delta": 1e-6}),
    "FMS-DS": (FMS, {"quantile": 0.3}, reference_fms, {"quantile": 0.3}),
    "TME": (TME, {}, reference_tme, {}),
    "STE": (STE, {"gamma": 4.0}, reference_tme, {"gamma": 4.0}),
    "GMS": (GMS, {}, reference_gms, {}),
    "GGD": (GGD, {}, reference_ggd, {}),
    "GGD, shrinking": (GGD, {"step": "shrinking"}, reference_ggd, {"shrinking": True}),
}


@pytest.mark.parametrize("n_iter", [1, 4, 12])
@pytest.mark.parametrize("name", REFERENCES)
def test_iterates_are_those_of_a_plain_reference(name, n_iter, seed):
    method, options, reference, more = REFERENCES[name]
    X = problem(seed, noise=0.05, D=12, d=4).X
    model = method(n_components=4, max_iter=n_iter, tol=1e-15, **options).fit(X)
    assert_same_subspace(model.normals_, reference(X, 4, n_iter, **more).T, tol=1e-8)
    assert model.n_iter_ == n_iter


def test_ste_keeps_the_gamma_that_has_most_rows_near(seed):
    data = problem(seed, 90, 310, noise=0.02)
    models = [STE(n_components=5, gamma=g).fit(data.X) for g in (2.0, 4.0, 6.0, 8.0, 10.0)]
    r = np.array([np.linalg.norm(data.X @ m.normals_.T, axis=1) for m in models])
    best = models[np.argmax(np.sum(r < np.median(r), axis=1))]
    assert_same_subspace(STE(n_components=5).fit(data.X).normals_, best.normals_, 1e-12)


def test_the_water_level_fills_the_trace():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        variances = np.sort(rng.uniform(0.01, 1, 9) ** 3)
        for c in range(1, 9):
            nu = np.maximum(0, 1 - water_level(variances, c) / variances)
            assert np.sum(nu) == pytest.approx(9 - c)


@pytest.mark.parametrize("n", [40, 200])
def test_the_rival_of_the_benchmark_is_fms(n, seed):
    """The benchmark times the bare iteration."""
    from low_dimension import STEPS, reweighted_pca

    X = problem(seed, n // 2, n // 2, D=60, d=4, noise=0.05).X
    model = FMS(n_components=4, smoothing=1e-10, max_iter=STEPS - 1, tol=1e-15).fit(X)
    assert_same_subspace(model.components_, reweighted_pca(X, 4, -np.inf).T, 1e-8)


def test_spherical_pca_is_pca_of_unit_rows(seed):
    X = problem(seed, noise=0.1).X * np.random.default_rng(seed).lognormal(0, 3, (300, 1))
    U = X / np.linalg.norm(X, axis=1, keepdims=True)
    expected = axes(U, np.ones(300))[1][:, 5:].T
    for normalize in (True, False):
        model = SphericalPCA(n_components=5, normalize=normalize).fit(X)
        assert_same_subspace(model.normals_, expected, 1e-8)


@pytest.mark.parametrize("D", [6, 400])
def test_rows_of_all_lengths_leave_the_method_as_it_is(D, seed):
    """Only short rows look like outliers: labels change, and the subspace must not."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 3)) @ rng.standard_normal((3, D)) / np.sqrt(D)
    X = X * rng.lognormal(0, 1.5, (300, 1)) + 0.05 / np.sqrt(D) * rng.standard_normal((300, D))
    U = X / np.linalg.norm(X, axis=1, keepdims=True)
    model = SphericalPCA(n_components=3).fit(X)
    assert_same_subspace(model.components_, np.linalg.svd(U, full_matrices=False)[2][:3], 1e-8)
    basis = np.vstack([model.components_, model.normals_])
    assert_allclose(basis @ basis.T, np.eye(D), atol=1e-8)
    model = FMS(n_components=3, smoothing=0.01, max_iter=4, tol=1e-15).fit(X)
    if D == 6:
        assert_same_subspace(model.normals_, reference_fms(U, 3, 4, delta=0.01).T, 1e-8)


def test_affine_spherical_pca_is_about_the_spatial_median(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_t(2, (200, 5)) * [5, 3, 1, 0.5, 0.2] + 30
    m = np.median(X, axis=0)
    for _ in range(3000):
        w = 1 / np.linalg.norm(X - m, axis=1)
        m = w @ X / w.sum()
    U = (X - m) / np.linalg.norm(X - m, axis=1, keepdims=True)
    model = SphericalPCA(n_components=2, affine=True).fit(X)
    assert_same_subspace(model.normals_, axes(U, np.ones(200))[1][:, 2:].T, 1e-8)
    assert_allclose(model.normals_ @ m, model.intercept_, atol=1e-7)
    assert model.affine_
    on_a_row = np.vstack([X, np.repeat(m[None], 30, axis=0)])  # the median is a row, then
    again = SphericalPCA(n_components=2, affine=True).fit(on_a_row)
    assert_allclose(again.normals_ @ m, again.intercept_, atol=1e-7)


# -- where their theory says that they recover, and that they fail ---------------------------------


HAYSTACK = {  # inliers, outliers, features, dimension: of each paper's own experiments, or smaller
    REAPER: (100, 150, 50, 5),
    FMS: (100, 100, 100, 5),
    GGD: (200, 200, 100, 5),
    TME: (120, 280, 20, 5),  # a share of .3, above 5/20
    STE: (90, 310, 20, 5),  # a share of .225, below
    GMS: (150, 250, 20, 5),
}


@pytest.mark.parametrize("method", EXACT)
def test_each_recovers_where_its_paper_says(method):
    *sizes, d = HAYSTACK[method]
    for seed in SEEDS:
        data = problem(seed, *sizes, d)
        model = assert_sure(method(n_components=d).fit(data.X))
        assert subspace_error(model.normals_, data.normals) < 1e-8
        assert_array_equal(model.labels_, data.y)
        assert model.converged_


def test_gms_needs_no_dimension():
    for seed in SEEDS:
        data = problem(seed, d=4 + seed)
        model = assert_sure(GMS().fit(data.X))
        assert (model.n_components_, model.converged_) == (4 + seed, True)
        assert subspace_error(model.normals_, data.normals) < 1e-8
    nothing = GMS().fit(np.random.default_rng(0).standard_normal((300, 6)))
    assert nothing.confidence_ < 0.5


@pytest.mark.parametrize("method", [GMS, RANSACPlus])
@pytest.mark.parametrize(("D", "d"), [(10, 4), (20, 3), (30, 6), (15, 2)])
def test_rows_that_are_all_on_a_subspace(method, D, d):
    """All that they span is the answer, whether or not the methods see a fall inside."""
    for seed in SEEDS:
        data = problem(seed, 300, 0, D, d)
        model = method(random_state=seed).fit(data.X)
        assert model.n_components_ == d
        assert model.confidence_ > 0.95
        assert_array_equal(model.labels_, data.y)
        assert subspace_error(model.normals_, data.normals) < 1e-8


def test_columns_that_say_nothing_change_nothing():
    """Not even with so much noise that a cloud may have as large a fall."""
    data = make_subspace(300, 200, n_features=20, codimension=16, noise=0.3, random_state=0)
    wider = np.hstack([data.X, np.zeros((500, 2)), data.X[:, :1]])
    assert GMS().fit(wider).n_components_ == GMS().fit(data.X).n_components_ == 4
    exact = problem(0, 300, 300, 20, 4).X
    related = np.hstack([exact, exact[:, :2].sum(axis=1, keepdims=True)])
    assert GMS().fit(related).n_components_ == 4


def test_tme_turns_at_the_share_of_inliers_that_is_the_relative_dimension():
    """d/D = 1/4; STE goes on below."""
    for seed in SEEDS:
        above, below = problem(seed, 110, 290), problem(seed, 80, 320)
        assert error(TME(n_components=5), below) > 0.05
        for method, data in ((TME, above), (STE, below)):
            model = method(n_components=5)
            assert error(model, data) < 1e-7
            assert_sure(model)


def test_at_a_high_relative_dimension_the_relaxations_fail():
    """Nonconvex methods for the same sum do not."""
    for seed in SEEDS:
        data = problem(seed, 300, 450, d=16)
        for method in (REAPER, GMS, TME):
            assert error(method(n_components=16), data) > 0.05
        for method in (FMS, GGD):
            model = method(n_components=16)
            assert error(model, data) < 1e-8
            assert_sure(model)


@pytest.mark.parametrize("method", [FMS, GGD, REAPER])
def test_outliers_on_a_line_with_more_rows_win(method):
    """The sum of distances is smaller for the other subspace; the others have no chance either."""
    data = problem(0, 60, 0, D=10, d=1)
    line = np.random.default_rng(0).standard_normal(10)
    X = np.vstack([data.X, np.outer(np.linspace(1, 2, 200), line)])
    model = method(n_components=1).fit(X)
    assert_same_subspace(model.components_, line[None], 1e-8)
    assert subspace_error(model.normals_, data.normals) > 0.5


def test_spherical_pca_tolerates_long_tails_but_is_not_exact_among_outliers(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((2000, 6)) * [4, 3, 1, 1, 1, 1] * rng.standard_cauchy((2000, 1))
    assert error_of(SphericalPCA(n_components=2).fit(X), 2) < 0.1
    data = problem(seed)
    assert 1e-3 < error(SphericalPCA(n_components=5), data) < 0.2


def error_of(model, d):
    return subspace_error(model.components_, np.eye(model.n_features_in_)[:d])


# -- the same problem ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_methods_for_the_same_sum_have_the_same_minimiser(seed):
    data = problem(seed, 200, 150, D=8, d=6, noise=0.02)
    options = {"codimension": 2, "max_iter": 20_000}
    models = [
        FMS(tol=1e-10, smoothing=1e-10, **options), GGD(tol=1e-13, **options),
        RSGM(tol=1e-14, **options), RSGM(tol=1e-14, step="geometric", **options),
        DPCPIRLS(2, tol=1e-13, max_iter=300),
    ]  # fmt: skip
    first, *others = (model.fit(data.X) for model in models)
    for model in others:
        assert model.objective_ == pytest.approx(first.objective_, rel=1e-12)
        assert_same_subspace(model.normals_, first.normals_, 1e-7)


# -- the common face -------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ALL)
def test_dimensions_at_both_ends(method):
    data = problem(0, D=6, d=3)
    point, space = method(6).fit(data.X), method(0).fit(data.X)
    assert (point.n_components_, space.n_components_) == (0, 6)
    assert np.all(point.labels_ == -1)
    assert np.all(space.labels_ == 1)
    assert space.confidence_ <= 0.5
    with pytest.raises(InputError, match="n_components=7 is larger than the number of features"):
        method(n_components=7).fit(data.X)
    with pytest.raises(ValueError, match="NaN"):
        method(n_components=2).fit(np.where(data.X > 0.9, np.nan, data.X))


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("d", [2, 3])
def test_fewer_rows_than_features(method, d):
    """Of 40 rows with 60 features, 30 are on a subspace; or all are."""
    data = problem(0, 30, 10, D=60, d=d)
    model = method(n_components=d).fit(data.X)
    # GMS needs outliers in all directions, and here each has a direction of its own.
    tol = {SphericalPCA: 0.5, GMS: 0.05}.get(method, 1e-6)
    assert subspace_error(model.normals_, data.normals) < tol
    if tol == 1e-6:
        assert_sure(model)
    # Not sure: nothing is across the subspace that the rows span, so nothing was searched there.
    inside = method(n_components=d).fit(data.X[data.y == 1])
    assert subspace_error(inside.normals_, data.normals) < 1e-10


@pytest.mark.parametrize("method", ALL)
def test_weights_count_like_repetition(method):
    data = problem(0, noise=0.02)
    weight = np.random.default_rng(0).integers(0, 4, len(data.X))
    weighted = method(n_components=5).fit(data.X, sample_weight=weight)
    repeated = method(n_components=5).fit(np.repeat(data.X, weight, axis=0))
    assert_same_subspace(weighted.normals_, repeated.normals_, 1e-7)


@pytest.mark.parametrize("method", ALL)
def test_many_rows_of_one_kind_and_whole_numbers(method):
    """Rows at distance zero must not drown the others."""
    rng = np.random.default_rng(0)
    X = rng.integers(-9, 10, (300, 6)).astype(float)
    X[:200, 3:] = 0
    X[:60] = [1, 0, 0, 0, 0, 0]
    model = assert_sure(method(n_components=3).fit(X))
    tol = 0.1 if method is SphericalPCA else 1e-6
    assert subspace_error(model.components_, np.eye(6)[:3]) < tol
    assert np.all(model.labels_[:200] == 1)


@pytest.mark.parametrize("method", ALL)
def test_the_scale_of_rows_that_are_not_normalised_does_not_matter(method):
    data = problem(0, noise=0.02)
    one, *others = (
        method(n_components=5, normalize=False).fit(data.X * scale) for scale in (1.0, 1e-6, 1e6)
    )
    for other in others:
        assert_same_subspace(other.normals_, one.normals_, 1e-6)


@pytest.mark.parametrize("method", ALL)
def test_single_precision_converges(method):
    data = problem(0, 300, 200)
    model = assert_sure(method(n_components=5).fit(data.X.astype(np.float32)))
    assert model.converged_
    tol = 0.2 if method is SphericalPCA else 1e-4
    assert subspace_error(model.normals_.astype(float), data.normals) < tol


@pytest.mark.parametrize("method", EXACT)
def test_affine_subspaces(method):
    data = problem(0, 300, 100, D=8, d=2, offset=10.0)
    model = assert_sure(method(n_components=2, affine=True).fit(data.X))
    assert_same_subspace(model.normals_, data.normals, 1e-5)
    assert np.linalg.norm(data.normals @ (model.location_ - data.location)) < 1e-4

"""The methods that need a given codimension: published constants, and what the paper says."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from helpers import assert_sure, mostly_slow
from perpend import (
    DPCP,
    DPCPIRLS,
    FMS,
    GGD,
    RANSAC,
    RSGM,
    RecursiveDPCP,
    as_rows,
    dpcp_irls,
    rsgm,
    subspace_error,
)
from perpend.datasets import make_subspace
from perpend.exceptions import InputError
from perpend.geometry import complement

GIVEN = [RSGM, DPCPIRLS, RecursiveDPCP, FMS, GGD]
QUIET = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def problem(seed, n_inliers=300, n_outliers=450, D=20, c=4, **more):
    return make_subspace(
        n_inliers, n_outliers, n_features=D, codimension=c, random_state=seed, **more
    )


def spectral(X, c):
    return np.linalg.eigh(X.T @ X)[1][:, :c]


# -- against references ----------------------------------------------------------------------------


def reference_rsgm_mbls(X, c, n_iter):
    """The first release, written down from its description."""
    B, step = spectral(X, c), 1e-2
    f = np.linalg.norm(X @ B, axis=1).sum()
    for _ in range(n_iter):
        if step <= 1e-15:
            break
        P = X @ B
        r = np.linalg.norm(P, axis=1)
        G = X[r > 0].T @ (P[r > 0] / r[r > 0, None])
        G -= B @ (B.T @ G)
        while True:
            trial = np.linalg.qr(B - step * G)[0]
            f_trial = np.linalg.norm(X @ trial, axis=1).sum()
            if f_trial <= f - 1e-3 * step * np.sum(G * G) or step <= 1e-15:
                break
            step *= 0.5
        B, f = trial, f_trial
    return B


def reference_rsgm_decay(X, c, n_iter, tol=1e-8):
    """The second release with the constants of its experiments."""
    B, step, f = spectral(X, c), 0.1, None
    for k in range(n_iter):
        P = X @ B
        r = np.linalg.norm(P, axis=1)
        f_old = r.sum()
        G = X.T @ (P / np.where(r > 0, r, 1)[:, None])
        G -= B @ (B.T @ G)
        trial = np.linalg.qr(B - step * G)[0]
        while k == 0 and np.linalg.norm(X @ trial, axis=1).sum() > f_old:
            step *= 0.9
            trial = np.linalg.qr(B - step * G)[0]
        B, step = trial, step * 0.9
        f = np.linalg.norm(X @ B, axis=1).sum()
        if abs(1 - f / f_old) <= tol:
            break
    return B


def reference_psgm(X, n_iter):
    """One normal, as released: projected subgradients with a modified backtracking line search."""
    b, step = spectral(X, 1)[:, 0], 1e-2
    for _ in range(n_iter):
        f, g = np.abs(X @ b).sum(), X.T @ np.sign(X @ b)
        while True:
            trial = (b - step * g) / np.linalg.norm(b - step * g)
            if np.abs(X @ trial).sum() <= f - 1e-3 * step * (g @ g):
                break
            step *= 0.5
        b = trial
    return b


def reference_irls(X, c, n_iter):
    w, J_old = np.ones(len(X)), np.inf
    for _ in range(n_iter):
        B = np.linalg.eigh(X.T @ (w[:, None] * X))[1][:, :c]
        r = np.linalg.norm(X @ B, axis=1)
        w = 1 / np.maximum(r, 1e-9)
        if 1 - r.sum() / (J_old + 1e-9) <= 1e-6:
            break
        J_old = r.sum()
    return B


@QUIET
@pytest.mark.parametrize("n_iter", [1, 3, 10, 25])
@pytest.mark.parametrize(
    ("step", "reference"), [("mbls", reference_rsgm_mbls), ("decay", reference_rsgm_decay)]
)
@pytest.mark.parametrize("c", [1, 4])  # a vector, and a frame
def test_rsgm_is_the_published_one(seed, step, reference, n_iter, c):
    data = problem(seed, noise=0.05)
    model = RSGM(c, step=step, max_iter=n_iter).fit(data.X)
    assert subspace_error(model.normals_, reference(data.X, c, n_iter).T) < 1e-8


@QUIET
@pytest.mark.parametrize("n_iter", [1, 3, 10, 100])
def test_irls_is_the_published_one(seed, n_iter):
    data = problem(seed, noise=0.05)
    # Their first pass is our start.
    model = DPCPIRLS(4, max_iter=n_iter).fit(data.X)
    expected = reference_irls(data.X, 4, n_iter + 1)
    assert subspace_error(model.normals_, expected.T) < 1e-8
    assert model.objective_ == pytest.approx(np.mean(np.linalg.norm(data.X @ expected, axis=1)))


@QUIET
@pytest.mark.parametrize("n_iter", [1, 5, 20])
def test_recursive_is_the_published_descent_in_the_remaining_space(seed, n_iter):
    X = problem(seed, noise=0.05).X
    found = np.zeros((20, 0))
    for _ in range(3):
        A = complement(found)
        found = np.column_stack([found, A @ reference_psgm(X @ A, n_iter)])
    model = RecursiveDPCP(3, max_iter=n_iter).fit(X)
    assert subspace_error(model.directions_, found.T) < 1e-8


@QUIET
def test_recursive_equals_single_normals_in_the_remaining_space(seed):
    """One normal at a time, each by DPCP with one spectral start on the rows in reduced space."""
    X = problem(seed, noise=0.05).X
    model = RecursiveDPCP(3, step="auto", max_iter=400, tol=1e-10).fit(X)
    found = np.zeros((20, 0))
    for j in range(3):
        A = complement(found)
        one = DPCP(1, n_starts=1, init="spectral", refine=False, normalize=False, max_iter=400,
                   tol=1e-10).fit(X @ A)  # fmt: skip
        b = A @ one.directions_[0]
        assert abs(b @ model.directions_[j]) == pytest.approx(1, abs=1e-6)
        found = np.column_stack([found, model.directions_[j]])
    assert_allclose(found.T @ found, np.eye(3), atol=1e-12)


# -- what the paper says about c -------------------------------------------------------------------


@QUIET
@pytest.mark.parametrize("method", GIVEN)
def test_with_the_true_codimension_they_recover(method, seed):
    data = problem(seed)
    model = method(4).fit(data.X)
    assert subspace_error(model.normals_, data.normals) < 1e-4
    assert_array_equal(model.labels_, data.y)
    assert model.codimension_ == 4
    assert_sure(model)


@QUIET
@pytest.mark.parametrize("method", GIVEN)
def test_with_too_small_a_codimension_they_find_some_normals(method, seed):
    data = problem(seed)
    model = method(2).fit(data.X)
    assert np.linalg.norm(model.normals_ @ data.components.T, 2) < 1e-4  # normals, all of them
    assert model.codimension_ == 2
    assert subspace_error(model.normals_, data.normals) == 1
    assert model.confidence_ < 0.95  # the inliers' spectrum shows that there are more


@QUIET
@pytest.mark.filterwarnings("ignore::perpend.exceptions.CodimensionWarning")
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("times", [1, 30])
def test_a_subspace_through_one_outlier_is_not_sure(affine, times):
    """Too large by one, it holds all inliers and one outlier exactly, however often that occurs."""
    for seed in range(500, 506):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((80, 2)) @ rng.standard_normal((2, 7))
        X[60:] = rng.standard_normal((20, 7))
        X = np.concatenate([X, *(times - 1) * [X[60:]]]) + 3.0 * affine
        for method in (RANSAC, FMS, GGD, RSGM):
            model = method(n_components=3, affine=affine, random_state=seed).fit(X)
            assert model.confidence_ < 0.95
            assert_sure(method(n_components=2, affine=affine, random_state=seed).fit(X[:80]))


@QUIET
@pytest.mark.parametrize("method", GIVEN)
def test_with_too_large_a_codimension_they_take_vectors_of_the_subspace(method, seed):
    data = problem(seed)
    model = method(8).fit(data.X)
    inside = np.linalg.svd(model.normals_ @ data.components.T, compute_uv=False)
    # Eight orthonormal vectors, four dimensions to be normal in: four lie in the subspace.
    assert_allclose(inside[:4], 1, atol=0.2)
    assert model.confidence_ < 0.95
    free = DPCP(n_starts=8, step="mbls", refine=False, random_state=seed + 1_000_000).fit(data.X)
    assert free.codimension_ == 4  # without orthogonality, the rank shows it


@QUIET
def test_recursive_finds_normals_first_and_then_vectors_of_the_subspace(seed):
    data = problem(seed)
    model = RecursiveDPCP(6).fit(data.X)
    inside = np.linalg.norm(model.directions_ @ data.components.T, axis=1)
    assert np.all(inside[:4] < 1e-4)
    assert np.all(inside[4:] > 0.9)


@QUIET
@pytest.mark.parametrize("method", GIVEN)
def test_a_full_basis_labels_all_rows_alike(method):
    data = problem(0, D=8, c=3)
    model = method(8).fit(data.X)
    assert model.n_components_ == 0
    assert np.all(model.labels_ == -1)
    assert_allclose(-model.score_samples(data.X), 1)


# -- the common face -------------------------------------------------------------------------------


def test_single_normal_dpcp_is_a_hyperplane_finder(seed):
    data = problem(seed, c=1)
    model = DPCP(n_starts=1, init="spectral").fit(data.X)
    assert model.n_starts_ == 1
    assert model.codimension_ == 1
    assert subspace_error(model.normals_, data.normals) < 1e-9


@QUIET
@pytest.mark.parametrize("method", GIVEN)
def test_one_normal_is_the_default(method):
    data = problem(0, c=1)
    assert subspace_error(assert_sure(method().fit(data.X)).normals_, data.normals) < 1e-4


@pytest.mark.parametrize("method", GIVEN)
def test_too_large_a_codimension_is_an_error(method):
    with pytest.raises(InputError, match="codimension=21 is larger than the number of features"):
        method(21).fit(problem(0).X)
    with pytest.raises(ValueError, match="codimension"):
        method("auto").fit(problem(0).X)


@QUIET
@pytest.mark.parametrize("method", GIVEN)
def test_normals_outside_the_span_come_first(method):
    data = problem(0)
    X = np.hstack([data.X, np.zeros((len(data.X), 2))])
    for codimension in (0, 1, 2, 6):
        model = method(codimension).fit(X)
        basis = np.vstack([model.components_, model.normals_])
        assert_allclose(basis @ basis.T, np.eye(22), atol=1e-10)
        assert len(model.normals_) == codimension
        outside = np.linalg.norm(model.normals_[:, 20:]) ** 2
        assert outside == pytest.approx(min(codimension, 2))
    assert_sure(model)
    assert_array_equal(model.labels_, data.y)


@QUIET
def test_starts_of_rsgm():
    data = problem(0)
    for init in ("random", data.normals + 0.01):
        model = assert_sure(RSGM(4, init=init, random_state=1).fit(data.X))
        assert subspace_error(model.normals_, data.normals) < 1e-4
    with pytest.raises(InputError, match=r"init has shape \(3, 20\); expected \(4, 20\)"):
        RSGM(4, init=np.eye(20)[:3]).fit(data.X)
    with pytest.raises(InputError, match="NaN or infinite"):
        RSGM(4, init=np.full((4, 20), np.nan)).fit(data.X)
    X = np.hstack([data.X, np.zeros((len(data.X), 1))])
    model = RSGM(5, init=np.eye(21)[-5:]).fit(X)  # of these, one is outside the span
    assert subspace_error(model.normals_[:, :20][:4], data.normals) < 1e-4
    with pytest.raises(InputError, match="rank 2 inside the span of X, and 4 directions"):
        RSGM(4, init=np.repeat(np.eye(20)[:2], 2, axis=0)).fit(data.X)


@QUIET
@pytest.mark.parametrize("method", GIVEN)
def test_weights_count_like_repetition(method):
    data = problem(0, noise=0.02)
    weight = np.random.default_rng(0).integers(0, 4, len(data.X))
    weighted = method(4).fit(data.X, sample_weight=weight)
    repeated = method(4).fit(np.repeat(data.X, weight, axis=0))
    assert subspace_error(weighted.normals_, repeated.normals_) < 1e-6


def test_a_callback_ends_the_descent():
    steps = []

    def stop(progress):
        steps.append(progress.step)
        return progress.step == 3

    rows, rng = as_rows(problem(0).X), np.random.default_rng(0)
    assert rsgm(rows, codimension=4, rng=rng, callback=stop).n_iter <= 3
    assert steps == [1, 2, 3]
    assert dpcp_irls(rows, codimension=4, rng=rng, callback=lambda p: p.step == 2).n_iter == 2


@QUIET
@pytest.mark.parametrize("method", GIVEN)
def test_a_given_codimension_of_zero_is_never_sure(method):
    data = problem(0, n_inliers=3000, n_outliers=3000, D=4, c=2)
    model = method(0).fit(data.X)
    assert model.codimension_ == 0
    assert model.confidence_ <= 0.5
    assert DPCP(0, random_state=1).fit(data.X).confidence_ <= 0.5


@QUIET
@pytest.mark.parametrize("scale", mostly_slow([1e-8, 1e-4, 1e4, 1e8], 1e-8))
@pytest.mark.parametrize("method", GIVEN)
def test_the_scale_of_rows_that_are_not_normalised_does_not_matter(method, scale):
    data = problem(0, noise=0.02)
    one = method(4, normalize=False).fit(data.X)
    other = method(4, normalize=False).fit(data.X * scale)
    assert subspace_error(one.normals_, data.normals) < 0.02
    assert subspace_error(other.normals_, one.normals_) < 0.01
    assert other.noise_ == pytest.approx(one.noise_ * scale, rel=0.05)
    assert np.mean(other.labels_ == one.labels_) > 0.995


@pytest.mark.parametrize("method", GIVEN)
def test_single_precision_converges(method):
    data = problem(0)
    model = assert_sure(method(4, max_iter=500).fit(data.X.astype(np.float32)))
    assert model.converged_
    assert subspace_error(model.normals_.astype(float), data.normals) < 1e-4


@pytest.mark.filterwarnings("ignore::perpend.exceptions.CodimensionWarning")
@pytest.mark.parametrize("seed", [0, 5])
def test_who_tells_the_codimension_gets_no_worse_than_who_does_not(seed):
    """Relations among columns of different size: two normals alone are not found from a start."""
    rng = np.random.default_rng(seed)
    free = rng.standard_normal((400, 3)) * [3.0, 10.0, 30.0]
    A = rng.uniform(0.5, 2, (2, 3)) * rng.choice([-1, 1], (2, 3))
    X = np.c_[free, free @ A.T + [100.0, 0.0]] + 0.01 * rng.standard_normal((400, 5))
    X[:80] = rng.standard_normal((80, 5)) * [3.0, 10.0, 30.0, 30.0, 30.0]
    normals = np.linalg.qr(np.c_[A, -np.eye(2)].T)[0].T
    for codimension in ("auto", 2):
        model = DPCP(codimension=codimension, affine=True, random_state=seed + 1000)
        assert_sure(model.fit(X))
        assert subspace_error(model.normals_, normals) < 1e-3

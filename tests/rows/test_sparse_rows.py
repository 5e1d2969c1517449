"""Sparse rows: the sums of their dense twins, and nothing of their size is made dense."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from helpers import mostly_slow
from perpend import DPCP, as_rows, kernels
from perpend._typing import Array
from perpend.datasets import make_subspace
from perpend.exceptions import InputError, UnitsWarning
from perpend.metrics import subspace_distance
from perpend.rows.sparse import SparseRows
from perpend.rows.views import View, lifted


def rows_on_relations(seed: int, n: int = 6000, D: int = 30, c: int = 3) -> sparse.csr_array:
    """Return sparse rows whose last c columns are sums of others; in 40 % they are anything."""
    rng = np.random.default_rng(seed)
    S = sparse.random_array((n, D - c), density=0.3, rng=rng, format="csr")
    X = np.hstack([S.toarray(), S @ rng.standard_normal((D - c, c))])
    out = rng.random(n) < 0.4
    X[out, D - c :] = rng.standard_normal((out.sum(), c))
    return sparse.csr_array(X)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("D", [9, 30])  # some kernels have another form for few columns
def test_every_kernel_gives_what_it_gives_of_dense_rows(
    weighted, normalize, affine, D, seed
) -> None:
    rng, S = np.random.default_rng(seed), rows_on_relations(seed, D=D)
    weight = rng.uniform(0, 2, S.shape[0]) if weighted else None
    sources = []
    for X in (S.toarray(), SparseRows(S)):
        if affine:
            centre = np.full(D, 0.1)  # of rank one in a sparse column,
            centre[2] = 30.0  # and subtracted before where it is far away
            view = View(centre, 0.7, None)
            sources.append(lifted(X, weight, view, n_jobs=1, unit_rows=normalize).rows)
        else:
            sources.append(as_rows(X, weight=weight, normalize=normalize))
    own, other = sources
    V, _ = np.linalg.qr(rng.standard_normal((own.shape[1], 4)))
    edges = np.geomspace(1e-3, 10, 50)
    scans: list[tuple[Array, ...]] = [
        (kernels.gram,),
        (kernels.mapped_gram, V),
        (kernels.l1_objective_and_gradient, V),
        (kernels.distance_and_gradient, V, 2),
        (kernels.residual_and_gradient, V),
        (kernels.inverse_distance_gram, V, np.array(0.01)),
        (kernels.power_weighted_gram, V, np.array(0.01), 0.5),
        (kernels.distance_weighted_gram, kernels.distances, V, np.linspace(1, 0, 50), edges),
        (kernels.distance_weighted_gram, kernels.residuals, V, np.linspace(1, 0, 50), edges),
        (kernels.soft_heights, V[:, :1], np.array(0.1)),
    ]
    for scan in scans:
        a, b = own.scan(*scan), other.scan(*scan)
        np.testing.assert_allclose(b.product, a.product, rtol=1e-9, atol=1e-9)
        if a.total is not None:
            np.testing.assert_allclose(b.total, a.total, rtol=1e-9)
    for kernel, *params in (
        (kernels.distances, V),
        (kernels.residuals, V),
        (kernels.trial_distances, V, 2),
    ):
        a, b = (rows.scan(kernel, *params, keep=True).kept for rows in (own, other))
        np.testing.assert_allclose(other.gather(b), own.gather(a), atol=1e-12)
    some = np.array([0, 5, 4000])
    np.testing.assert_allclose(other.take(some), own.take(some), atol=1e-14)
    np.testing.assert_allclose(other.subset(some).take([1]), own.take(some)[1:2], atol=1e-14)
    turned = other.mapped(V)
    assert turned is not None
    np.testing.assert_allclose(turned.take(some), own.take(some) @ V, atol=1e-12)


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_a_fit_finds_the_relations_of_dense_rows(affine, kind, seed) -> None:
    S = kind(rows_on_relations(seed))
    sparsely = DPCP(affine=affine, random_state=seed).fit(S)
    densely = DPCP(affine=affine, random_state=seed).fit(S.toarray())
    assert sparsely.codimension_ == densely.codimension_ == 3
    assert subspace_distance(sparsely.normals_, densely.normals_) <= 1e-8
    assert np.array_equal(sparsely.labels_, densely.labels_)
    assert np.array_equal(sparsely.predict(S), densely.labels_)
    np.testing.assert_allclose(
        np.abs(sparsely.transform(S)), np.abs(densely.transform(S.toarray()))
    )


def both(X: Array, seed: int) -> tuple[DPCP, DPCP]:
    """Fit an affine subspace to dense rows and to the same rows as CSR; NumPy's is sure."""
    own, other = (DPCP(affine=True, random_state=seed).fit(Y) for Y in (X, sparse.csr_array(X)))
    assert own.confidence_ > 0.95
    assert other.codimension_ == own.codimension_
    assert np.array_equal(other.labels_, own.labels_)
    single = own.normals_.dtype == np.float32  # rounded at their distance from the origin
    assert other.noise_ == pytest.approx(own.noise_, rel=1e-3 if single else 1e-4, abs=1e-12)
    return own, other


@pytest.mark.parametrize("offset", mostly_slow([1e2, 1e4, 1e6], 1e4))
@pytest.mark.parametrize("noise", [0.0, 1e-3])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-8), (np.float32, 1e-6)])
def test_rows_far_from_the_origin(offset, noise, dtype, tolerance, seed) -> None:
    data = make_subspace(
        3000, 2000, n_features=9, codimension=2, noise=noise, offset=1.0, random_state=seed
    )
    away = offset * np.random.default_rng(seed).standard_normal(9)
    own, other = both((data.X + away).astype(dtype), seed)
    assert subspace_distance(other.normals_, own.normals_) <= tolerance
    eps = 100 * float(np.finfo(dtype).eps)  # in units of the noise-free rows, of norm one
    np.testing.assert_allclose(other.location_, own.location_, rtol=eps, atol=eps)


def test_some_columns_far_from_zero_beside_sparse_ones(seed) -> None:
    X = rows_on_relations(seed).toarray()
    X[:, -3:] += [5e5, 2000.0, -3e4]
    own, other = both(X, seed)
    assert own.codimension_ == 3
    assert subspace_distance(other.normals_, own.normals_) <= 1e-8
    assert other.evidence_["gain"] == pytest.approx(own.evidence_["gain"])


def test_a_column_in_other_units_hides_no_digits_of_the_others(seed) -> None:
    rng, n = np.random.default_rng(seed), 6000
    A = rng.standard_normal((n, 6))
    Z = A[:, 1:] @ rng.standard_normal((5, 2)) + 1e-3 * rng.standard_normal((n, 2))
    out = rng.random(n) < 0.3
    Z[out] = 3 * rng.standard_normal((out.sum(), 2))
    A[:, 0] *= 1e4
    X = np.hstack([A, Z]) + 2e3 * rng.standard_normal(8)  # near zero in units of the first column
    with pytest.warns(UnitsWarning):
        own, other = both(X, seed)
    assert subspace_distance(other.normals_, own.normals_) <= 1e-13


@pytest.mark.parametrize("affine", [False, True])
def test_large_rows_stay_sparse(affine) -> None:
    n, D = 60_000, 300  # 144 MB if they were dense
    rng = np.random.default_rng(0)
    S = sparse.random_array((n, D), density=0.01, rng=rng, format="csr")
    X = SparseRows(S)
    tracemalloc.start()
    if affine:
        view = View(S.mean(axis=0), float(np.sqrt(S.power(2).mean())), None)
        rows = lifted(X, None, view, n_jobs=1).rows
    else:
        rows = as_rows(X)
    rows.scan(kernels.gram)
    rows.scan(kernels.l1_objective_and_gradient, rng.standard_normal((rows.shape[1], 5)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < n * D * 8 / 8


def test_what_is_not_finite_is_named() -> None:
    S = rows_on_relations(0).tolil()
    S[17, 4] = np.inf
    with pytest.raises(InputError, match="row 17, column 4"):
        DPCP().fit(S.tocsr())


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array])
@pytest.mark.parametrize("affine", [False, True])
def test_what_the_user_gave_stays_as_it_is(kind, affine) -> None:
    """Entries twice and in any order, and arrays that may not be written to."""
    S = rows_on_relations(0).tocoo()
    shuffle = np.random.default_rng(0).permutation(S.nnz)
    values, row, column = (np.concatenate([v[shuffle]] * 2) for v in (S.data / 2, *S.coords))
    outer, inner = (column, row) if kind is sparse.csc_array else (row, column)
    order, ends = np.argsort(outer, kind="stable"), np.cumsum(np.bincount(outer))
    parts = values[order], inner[order].astype(np.int32), np.append(0, ends).astype(np.int32)
    for part in parts:
        part.flags.writeable = False
    X, before = kind(parts, shape=S.shape), [part.copy() for part in parts]
    model = DPCP(affine=affine, random_state=0).fit(X)
    twin = DPCP(affine=affine, random_state=0).fit(S.toarray())
    assert model.codimension_ == twin.codimension_
    assert np.array_equal(model.labels_, twin.labels_)
    np.testing.assert_allclose(model.transform(X), twin.transform(S.toarray()), atol=1e-7)
    for part, own, old in zip(parts, (X.data, X.indices, X.indptr), before, strict=True):
        assert np.array_equal(own, old)
        assert np.array_equal(part, old)


def test_a_report_has_what_that_of_dense_rows_has(tmp_path) -> None:
    S = rows_on_relations(0)[:800]
    model = DPCP(random_state=0).fit(S)
    for name, rows in (("sparse", S), ("dense", S.toarray())):
        model.report(tmp_path / name, rows, title="rows")
    pages = [(tmp_path / name).read_text(encoding="utf-8") for name in ("sparse", "dense")]
    assert "800 rows" in pages[0]
    assert abs(len(pages[0]) - len(pages[1])) < 100  # but for the time and last digits


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_mapped_rows_have_the_type_of_the_rows(dtype) -> None:
    S = rows_on_relations(0).astype(dtype)
    V = np.linalg.qr(np.random.default_rng(0).standard_normal((30, 5)))[0]
    own, other = as_rows(S.toarray()).mapped(V), as_rows(SparseRows(S)).mapped(V)
    assert other.dtype == own.dtype == dtype
    assert other.take(np.arange(3)).dtype == dtype
    index = np.arange(0, 6000, 7)
    np.testing.assert_allclose(other.take(index), own.take(index), atol=1e-6)
    assert as_rows(SparseRows(S), memory_budget=100).mapped(V) is None

"""ArrayRows: whatever the layout, block size, budget and threads, the sums are the plain ones."""

import numpy as np
import pytest

from perpend.kernels import (
    Contribution,
    distances,
    gram,
    heights,
    l1_objective_and_gradient,
)
from perpend.rows import ArrayRows, Kept, as_rows

N, D, K = 101, 6, 3
BLOCKS = [1, 7, 16, 100, 101, 500, None]


def data(seed, dtype=np.float64, n=N):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D)) * rng.lognormal(size=(n, 1))
    return X.astype(dtype), np.linalg.qr(rng.standard_normal((D, K)))[0]


def unit(X):
    X = X.astype(np.float64)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def everything(X, B, scale=1):
    """A kernel that uses every part of a contribution."""
    P = X @ B
    return Contribution(total=P * scale, left=np.abs(P), right=np.cos(X), kept=P)


def assert_close(got, expected, dtype=np.float64, n=N):
    """Equal up to the rounding of n terms in this dtype."""
    tol = n * np.finfo(dtype).eps
    scale = np.max(np.abs(expected))
    np.testing.assert_allclose(got, expected, rtol=0, atol=tol * max(scale, 1))


def view(X, layout):
    """The same values in another memory layout."""
    n, D = X.shape
    if layout == "C":
        return np.ascontiguousarray(X)
    if layout == "F":
        return np.asfortranarray(X)
    if layout == "read-only":
        X = X.copy()
        X.flags.writeable = False
        return X
    wide = np.full((2 * n, 3 * D), np.nan, X.dtype)
    strided = wide[::-2, ::3]
    strided[...] = X
    return strided


@pytest.mark.parametrize("layout", ["C", "F", "read-only", "strided"])
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("budget", [0, 2**30])
def test_sums_are_those_of_plain_numpy(dtype, layout, normalize, budget, seed):
    X, B = data(seed, dtype)
    given = view(X, layout)
    rows = as_rows(given, normalize=normalize, memory_budget=budget, block_rows=16)
    U = unit(X) if normalize else X.astype(float) / rows.unit
    P = U @ B
    scan = rows.scan(everything, B, 2)
    assert scan.total.dtype == scan.product.dtype == np.float64
    assert_close(scan.total, 2 * P.sum(axis=0), dtype)
    assert_close(scan.product, np.abs(P).T @ np.cos(U), dtype)
    assert scan.kept is None
    np.testing.assert_array_equal(given, X)


@pytest.mark.parametrize("layout", ["C", "F", "read-only", "strided"])
@pytest.mark.parametrize("how", [{}, {"normalize": False}, {"memory_budget": 0}], ids=str)
def test_objective_and_gradient_on_both_paths(path, dtype, layout, how, seed):
    X, B = data(seed, dtype, n=1500)
    X[::50] = 0
    w = np.random.default_rng(seed).uniform(size=1500)
    rows = as_rows(view(X, layout), weight=w, **how)
    w = rows.gather(rows.weights)
    f, g = rows.scan(l1_objective_and_gradient, B)[:2]
    U = rows.take(np.arange(1500)).astype(float)
    P = U @ B
    assert f.dtype == g.dtype == np.float64
    assert_close(f, w @ np.abs(P), dtype, n=1500)
    assert_close(g, (w[:, None] * np.sign(P)).T @ U, dtype, n=1500)


def test_the_block_stands_on_the_right_where_a_kernel_gives_none(path, dtype, seed):
    X, B = data(seed, dtype)
    w = np.random.default_rng(seed).uniform(size=N)
    rows = as_rows(X, weight=w, block_rows=10)
    U = unit(X)
    f, g = rows.scan(l1_objective_and_gradient, B)[:2]
    assert_close(f, w @ np.abs(U @ B), dtype)
    assert_close(g, (w[:, None] * np.sign(U @ B)).T @ U, dtype)
    assert_close(rows.scan(gram).product, U.T @ (w[:, None] * U), dtype)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("budget", [0, 2**30])
def test_symmetric_products_are_those_of_plain_numpy(dtype, weighted, budget, seed):
    """A kernel that gives one array as both sides, or the block itself, has half the work."""
    X, _ = data(seed, dtype)
    w = np.random.default_rng(seed).uniform(size=N) if weighted else np.ones(N)
    rows = as_rows(X, weight=w if weighted else None, memory_budget=budget, block_rows=10)

    def cosines(X):
        C = np.cos(X)
        return Contribution(left=C, right=C)

    C = np.cos(unit(X))
    for kernel, A in [(gram, unit(X)), (cosines, C)]:
        product = rows.scan(kernel).product
        assert_close(product, A.T @ (w[:, None] * A), dtype)
        np.testing.assert_array_equal(product, product.T)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("block_rows", BLOCKS)
def test_bins_add_up_weights(weighted, block_rows, dtype, seed):
    X, _ = data(seed, dtype)
    w = np.random.default_rng(seed).uniform(size=N) if weighted else None
    rows = as_rows(X, weight=w, normalize=False, block_rows=block_rows)
    counts = rows.scan(lambda X: Contribution(bins=((X[:, 0] > 0).astype(int), 3))).product
    expected = np.bincount(X[:, 0] > 0, w, minlength=3)
    np.testing.assert_allclose(counts, expected, rtol=N * np.finfo(dtype).eps)


@pytest.mark.parametrize("share", [0.2, 0.9])  # of rows with a factor
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("block_rows", BLOCKS)
def test_factors_weigh_the_second_moments(share, weighted, block_rows, dtype, seed):
    X, _ = data(seed, dtype)
    rng = np.random.default_rng(seed)
    w = rng.uniform(size=N) if weighted else np.ones(N)
    rows = as_rows(X, weight=w if weighted else None, normalize=False, block_rows=block_rows)
    u = (rng.uniform(size=N) * (rng.uniform(size=N) < share)).astype(dtype)
    kept = Kept(lambda rows: u[rows])
    got = rows.scan(lambda X, u: Contribution(factor=u), using=(kept,)).product
    X = rows.take(np.arange(N)).astype(float)  # as kernels see them
    assert_close(got, (X.T * (w * u)) @ X, dtype)
    np.testing.assert_array_equal(got, got.T)


def test_parts_that_a_kernel_does_not_give_are_none():
    X, B = data(0)
    scan = as_rows(X).scan(heights, B[:, 0])
    assert scan == (None, None, None)


@pytest.mark.parametrize("block_rows", BLOCKS)
def test_weights_and_masks_count_like_repeated_and_absent_rows(block_rows, seed):
    X, B = data(seed)
    rng = np.random.default_rng(seed)
    times, mask = rng.integers(0, 4, N), rng.uniform(size=N) < 0.7
    weighted = as_rows(X, weight=times, mask=mask, block_rows=block_rows)
    repeated = as_rows(np.repeat(X[mask], times[mask], axis=0), block_rows=block_rows)
    for a, b in zip(
        weighted.scan(everything, B)[:2], repeated.scan(everything, B)[:2], strict=True
    ):
        assert_close(a, b)
    assert weighted.total_weight == repeated.total_weight == times[mask].sum()
    np.testing.assert_array_equal(weighted.gather(weighted.weights), times * mask)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("how", ["weight", "mask"])
@pytest.mark.parametrize("scale", [1.0, 1e-150])
@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_an_absent_row_of_any_size_changes_nothing(normalize, how, scale, size):
    X, B = data(0)
    X *= scale
    more = np.vstack([X, np.full((1, D), size)])
    part = np.append(np.ones(N), 0.0)
    chosen = {"weight": part} if how == "weight" else {"mask": part > 0}
    without = as_rows(X, normalize=normalize)
    rows = as_rows(more, normalize=normalize, **chosen)
    assert rows.unit == without.unit
    np.testing.assert_array_equal(rows.norms, without.norms)
    scan, expected = rows.scan(everything, B), without.scan(everything, B)
    assert_close(scan.total, expected.total)
    assert_close(scan.product, expected.product)


def test_the_weights_of_all_rows_are_one_by_default(dtype):
    X, _ = data(0, dtype)
    rows = as_rows(X, block_rows=7)
    weights = rows.gather(rows.weights)
    assert weights.dtype == dtype
    np.testing.assert_array_equal(weights, np.ones(N))
    assert rows.total_weight == N


def test_zero_rows_take_no_part(dtype):
    X, B = data(0, dtype)
    X[[0, 40, N - 1]] = 0
    rows = as_rows(X, weight=np.full(N, 2.0), block_rows=16)
    weights = rows.gather(rows.weights)
    np.testing.assert_array_equal(np.flatnonzero(weights == 0), [0, 40, N - 1])
    assert rows.total_weight == 2 * (N - 3)
    ones = as_rows(X).scan(lambda X: Contribution(total=np.ones((len(X), 1), dtype)))
    np.testing.assert_array_equal(ones.total, [N - 3])
    np.testing.assert_array_equal(rows.take(np.array([40])), np.zeros((1, D)))
    assert np.all(np.isfinite(rows.scan(everything, B).product))


# -- blocks, threads, budget ----------------------------------------------------------------------


@pytest.mark.parametrize("block_rows", BLOCKS)
def test_block_sizes_agree_to_rounding(block_rows, dtype, seed):
    X, B = data(seed, dtype)
    rows = as_rows(X, block_rows=block_rows)
    assert len(rows.blocks(K)) == (1 if block_rows is None else -(-N // block_rows))
    scan, one = rows.scan(everything, B), as_rows(X, block_rows=N).scan(everything, B)
    assert_close(scan.total, one.total, dtype)
    assert_close(scan.product, one.product, dtype)


@pytest.mark.parametrize("budget", [0, 50_000, 2**30])
@pytest.mark.parametrize("n_jobs", [1, 2, 3])
@pytest.mark.parametrize("layout", ["C", "F"])
def test_threads_and_budget_change_no_bit(n_jobs, budget, layout, dtype, one_thread):
    X, B = data(1, dtype, n=1500)
    X = view(X, layout)
    w = np.random.default_rng(0).uniform(size=1500)
    plain = as_rows(X, weight=w, block_rows=16)
    rows = as_rows(X, weight=w, block_rows=16, n_jobs=n_jobs, memory_budget=budget)
    expected, scan = plain.scan(everything, B, keep=True), rows.scan(everything, B, keep=True)
    np.testing.assert_array_equal(scan.total, expected.total)
    np.testing.assert_array_equal(scan.product, expected.product)
    np.testing.assert_array_equal(rows.gather(scan.kept), plain.gather(expected.kept))
    again = rows.scan(spread, using=(scan.kept,))
    np.testing.assert_array_equal(again.total, plain.scan(spread, using=(expected.kept,)).total)


def spread(X, P):
    return Contribution(total=X[:, :K] * P)


def test_sums_across_blocks_are_formed_in_double_precision():
    ones = np.ones((2**16, 1), np.float32)
    rows = as_rows(np.vstack([ones, ones]), block_rows=256)
    tenth = np.float32(0.1)
    total = rows.scan(lambda X: Contribution(total=tenth * X)).total
    np.testing.assert_allclose(total, 2**17 * float(tenth), rtol=1e-6)


def test_default_blocks_fit_the_cache_and_are_never_tiny():
    def block_rows(n, D, k=0, keep=False):
        sizes = []

        def kernel(X, *params):
            sizes.append(len(X))
            return Contribution(kept=X[:, 0])

        rows = as_rows(np.ones((n, D)))
        rows.scan(kernel, *([np.ones((D, k))] if k else []), keep=keep)
        return sizes[1:] if keep else sizes  # the first is the sample of a kept value

    assert block_rows(10_000, 10) == [3276, 3276, 3276, 172]
    assert block_rows(600, 5000) == [256, 256, 88]  # (D, D) sums are dear: few of them
    assert block_rows(300, 500, k=32) == [62, 62, 62, 62, 52]  # 62 * 500 * 32 < 1e6
    assert block_rows(100, 5000, k=32) == [48, 48, 4]
    assert block_rows(5, 3) == [5]
    # Kept values lie in blocks of one size, whatever the kernel: D / 4 rows for many features.
    assert block_rows(200, 500, k=32, keep=True) == block_rows(200, 500, keep=True) == [125, 75]


# -- kept values ----------------------------------------------------------------------------------


class Counting:
    """A kernel that counts its calls."""

    def __init__(self):
        self.calls = 0

    def __call__(self, X, B):
        self.calls += 1
        return everything(X, B)


@pytest.mark.parametrize("block_rows", BLOCKS)
@pytest.mark.parametrize("budget", [0, 2**30])
def test_kept_values_are_gathered_in_the_order_of_the_rows(block_rows, budget, seed):
    X, B = data(seed)
    rows = as_rows(X, block_rows=block_rows, memory_budget=budget, n_jobs=2)
    assert_close(rows.gather(rows.scan(everything, B, keep=True).kept), unit(X) @ B)
    J = rows.gather(rows.scan(distances, B, keep=True).kept)
    assert J.shape == (N,)
    assert_close(J, np.linalg.norm(unit(X) @ B, axis=1))


@pytest.mark.parametrize("block_rows", BLOCKS)
@pytest.mark.parametrize("budget", [0, 2**30])
def test_a_later_scan_sees_each_row_with_its_kept_value(block_rows, budget, seed):
    X, B = data(seed)
    rows = as_rows(X, block_rows=block_rows, memory_budget=budget)
    first = rows.scan(heights, B[:, 0], keep=True).kept
    second = rows.scan(heights, B[:, 1], keep=True).kept

    def both(X, power, a, b):
        return Contribution(total=(a**power * b)[:, None] * X, kept=a - b)

    scan = rows.scan(both, 2, using=(first, second), keep=True)
    a, b = np.abs(unit(X) @ B[:, :2]).T
    assert_close(scan.total, (a**2 * b) @ unit(X))
    assert_close(rows.gather(scan.kept), a - b)


def test_kept_values_are_computed_once_where_they_fit_and_anew_where_not():
    X, B = data(0)
    calls = {}
    for budget in (0, 2**30):
        rows = as_rows(X, block_rows=10, memory_budget=budget)
        kernel = Counting()
        kept = rows.scan(kernel, B, keep=True).kept
        before = kernel.calls
        n_blocks = len(rows.blocks(K))
        assert before <= n_blocks + 1  # one more to learn the shape of the kept values
        for _ in range(2):
            rows.gather(kept)
        rows.scan(spread, using=(kept,))
        calls[budget] = (kernel.calls - before) / n_blocks
    assert calls == {0: 3, 2**30: 0}


def test_nothing_is_kept_unless_asked():
    X, B = data(0)
    kernel = Counting()
    rows = as_rows(X, block_rows=10)
    rows.scan(kernel, B)
    assert kernel.calls == len(rows.blocks(K))


def test_the_budget_counts_the_unit_rows_first():
    X, B = data(0)
    kept_bytes = N * K * 8
    for budget, stored in [
        (kept_bytes - 1, False),
        (kept_bytes, True),  # X does not fit, the kept values do
        (X.nbytes + kept_bytes - 1, False),
        (X.nbytes + kept_bytes, True),
    ]:
        rows = as_rows(X, memory_budget=budget)
        kernel = Counting()
        kept = rows.scan(kernel, B, keep=True).kept
        before = kernel.calls
        rows.gather(kept)
        assert (kernel.calls == before) is stored, budget


def test_kept_is_made_of_pieces():
    X, _ = data(0)
    rows = as_rows(X, block_rows=40)
    mine = Kept(lambda rows: np.full(rows.stop - rows.start, float(rows.start // 40)))
    np.testing.assert_array_equal(rows.gather(mine), np.repeat([0.0, 1.0, 2.0], [40, 40, 21]))


def test_an_array_can_be_used_without_preparation():
    X, B = data(0)
    rows = ArrayRows(X)
    assert_close(rows.scan(everything, B).total, (X @ B).sum(axis=0))
    assert rows.total_weight == N


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("budget", [0, 2**30])
def test_a_subset_has_the_rows_and_weights_of_the_whole(dtype, normalize, budget, seed):
    X, B = data(seed, dtype)
    weight = np.random.default_rng(seed).uniform(size=N)
    rows = as_rows(X, weight=weight, normalize=normalize, memory_budget=budget, block_rows=16)
    chosen = np.array([3, 50, 4, 99])
    some = rows.subset(chosen)
    assert some.shape == (4, D)
    assert some.dtype == dtype
    assert some.precision == np.finfo(dtype).eps
    assert some.unit == rows.unit
    np.testing.assert_array_equal(some.norms, rows.norms)
    np.testing.assert_array_equal(some.gather(some.weights), rows.gather(rows.weights)[chosen])
    np.testing.assert_array_equal(some.gather(some.lengths), rows.gather(rows.lengths)[chosen])
    np.testing.assert_array_equal(some.take(np.arange(4)), rows.take(chosen))
    w, P = some.gather(some.weights), some.take(np.arange(4)) @ B.astype(dtype)
    assert_close(some.scan(l1_objective_and_gradient, B).total, w @ np.abs(P), dtype)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("budget", [None, 0])
def test_mapped_rows_are_coordinates(dtype, seed, normalize, budget):
    X, B = data(seed, dtype)
    w = np.random.default_rng(seed).uniform(0.5, 2, N)
    X = (X @ B @ B.T).astype(dtype)  # rows in the span of B
    kept = {} if budget is None else {"memory_budget": budget}
    rows = as_rows(X, weight=w, normalize=normalize, **kept)
    turned = rows.mapped(B)
    if budget == 0:
        assert turned is None
        return
    assert turned.shape == (N, K)
    assert turned.dtype == dtype
    every = np.arange(N)
    assert_close(turned.take(every), rows.take(every).astype(float) @ B, dtype)
    np.testing.assert_array_equal(turned.gather(turned.weights), rows.gather(rows.weights))
    np.testing.assert_array_equal(turned.gather(turned.lengths), rows.gather(rows.lengths))
    np.testing.assert_array_equal(turned.norms, rows.norms)
    assert (turned.unit, turned.total_weight) == (rows.unit, rows.total_weight)
    assert_close(turned.scan(gram).product, B.T @ rows.scan(gram).product @ B, dtype)

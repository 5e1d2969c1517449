"""TorchRows: on tensors, the sums and the row values are those of ArrayRows on the same numbers."""

import sys
import types
from itertools import pairwise

import numpy as np
import pytest

from perpend.exceptions import InputError
from perpend.kernels import (
    Contribution,
    distance_weighted_gram,
    distances,
    gram,
    grouped_distances,
    heights,
    inverse_distance_gram,
    l1_objective,
    l1_objective_and_gradient,
    power_weighted_gram,
    residuals,
    weighted_gram,
)
from perpend.rows import ArrayRows, as_rows, kinds

torch = pytest.importorskip("torch", reason="torch is not installed")

from perpend.rows import torch as torch_module  # noqa: E402
from perpend.rows.preparation import row_norms  # noqa: E402
from perpend.rows.torch import TorchRows, full_precision  # noqa: E402

N, D, K = 601, 6, 3
BLOCKS = [1, 7, 300, 601, 5000, None]
EDGES = np.geomspace(1e-3, 4.0, 32)


@pytest.fixture(autouse=True)
def _tensors_stay_tensors(monkeypatch):
    monkeypatch.setattr(kinds, "READ_AS_NUMPY", set())


def data(seed, dtype=np.float64, n=N):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D)) * rng.lognormal(size=(n, 1))
    return X.astype(dtype), np.linalg.qr(rng.standard_normal((D, K)))[0]


def everything(X, B, scale=1):
    """A kernel that uses every part of a contribution, for both kinds of arrays."""
    P = X @ B
    return Contribution(total=P * scale, left=abs(P), right=X * X, kept=P)


def assert_close(got, expected, dtype=np.float64, n=N):
    """Equal up to the rounding of n terms in this dtype."""
    tol = n * np.finfo(dtype).eps
    np.testing.assert_allclose(got, expected, rtol=0, atol=tol * max(np.max(np.abs(expected)), 1))


def view(X, layout):
    """The same values as a tensor in another memory layout."""
    if layout == "C":
        return torch.tensor(X)
    if layout == "F":
        return torch.tensor(np.ascontiguousarray(X.T)).T
    wide = torch.full((2 * len(X), 3 * X.shape[1]), torch.nan, dtype=torch.tensor(X).dtype)
    wide[::2, ::3] = torch.tensor(X)
    return wide[::2, ::3]


# -- sums -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["C", "F", "strided"])
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("budget", [0, 2**30])
@pytest.mark.parametrize("weighted", [True, False])
def test_sums_are_those_of_numpy_rows(dtype, layout, normalize, budget, weighted):
    X, B = data(0, dtype)
    given = view(X, layout)
    weight = np.random.default_rng(1).uniform(size=N) if weighted else None
    options = {"weight": weight, "normalize": normalize, "memory_budget": budget}
    rows, plain = as_rows(given, **options), as_rows(X, **options)
    scan, expected = rows.scan(everything, B, 2), plain.scan(everything, B, 2)
    assert scan.total.dtype == scan.product.dtype == np.float64
    assert_close(scan.total, expected.total, dtype)
    assert_close(scan.product, expected.product, dtype)
    assert scan.kept is None
    np.testing.assert_array_equal(given.numpy(), X)  # the user's tensor stays as it is


@pytest.mark.parametrize("block_rows", BLOCKS)
def test_every_kernel_gives_the_sums_of_numpy_rows(block_rows, seed):
    X, B = data(seed)
    rows, plain = as_rows(torch.tensor(X), block_rows=block_rows), as_rows(X)
    table = np.random.default_rng(seed).uniform(size=32)
    for kernel, *params in [
        (l1_objective_and_gradient, B),
        (l1_objective, B),
        (gram,),
        (inverse_distance_gram, B, np.asarray(0.5)),
        (power_weighted_gram, B, np.asarray(0.5), 0.0),
    ]:
        scan, expected = rows.scan(kernel, *params), plain.scan(kernel, *params)
        for got, value in zip(scan[:2], expected[:2], strict=True):
            assert (got is None) == (value is None)
            if value is not None:
                assert_close(got, value)
    kept, other = (r.scan(distances, B, keep=True).kept for r in (rows, plain))
    scan = rows.scan(weighted_gram, table, EDGES, using=(kept,))
    assert_close(scan.product, plain.scan(weighted_gram, table, EDGES, using=(other,)).product)
    for kernel, *params in [
        (grouped_distances, distances, B, EDGES),
        (distance_weighted_gram, distances, B, table, EDGES),
        (distance_weighted_gram, residuals, np.linalg.qr(B)[0], table, EDGES),
    ]:
        assert_close(rows.scan(kernel, *params).product, plain.scan(kernel, *params).product)


def test_the_same_scan_gives_the_same_bits(dtype):
    X, B = data(0, dtype)
    rows = as_rows(torch.tensor(X))
    one, two = (rows.scan(l1_objective_and_gradient, B) for _ in range(2))
    np.testing.assert_array_equal(one.total, two.total)
    np.testing.assert_array_equal(one.product, two.product)


def test_sums_beyond_a_group_are_formed_in_double_precision():
    n, tenth = 2**18, np.float32(0.1)
    rows = TorchRows(torch.full((n, 2), 0.1))
    scan = rows.scan(lambda X: Contribution(total=X, left=X))
    np.testing.assert_allclose(scan.total, n * float(tenth), rtol=1e-7)
    np.testing.assert_allclose(scan.product, n * float(tenth) ** 2, rtol=2e-6)


def test_blocks_keep_scratch_within_its_budget(dtype):
    for d in (2, 50, 1000):
        rows = TorchRows(torch.zeros((1, d), dtype=torch.tensor(dtype(0)).dtype).expand(10**6, d))
        for width in (1, 16, 2 * d):
            blocks = rows.blocks(width)
            assert blocks[0].start == 0
            assert blocks[-1].stop == 10**6
            assert all(a.stop == b.start for a, b in pairwise(blocks))
            size = blocks[0].stop * np.dtype(dtype).itemsize * (d + 2 * width)
            assert size <= torch_module.SCRATCH_CPU or blocks[0].stop == torch_module.GROUP_ROWS


# -- weights, zero rows, norms --------------------------------------------------------------------


def test_weights_and_masks_count_like_repeated_and_absent_rows(seed):
    X, B = data(seed)
    rng = np.random.default_rng(seed)
    times, mask = rng.integers(0, 4, N), rng.uniform(size=N) < 0.7
    weighted = as_rows(torch.tensor(X), weight=torch.tensor(times), mask=torch.tensor(mask))
    repeated = as_rows(torch.tensor(np.repeat(X[mask], times[mask], axis=0)))
    for a, b in zip(
        weighted.scan(everything, B)[:2], repeated.scan(everything, B)[:2], strict=True
    ):
        assert_close(a, b)
    assert weighted.total_weight == repeated.total_weight == times[mask].sum()
    np.testing.assert_array_equal(weighted.gather(weighted.weights), times * mask)


def test_the_weights_of_all_rows_are_one_by_default(dtype):
    X, _ = data(0, dtype)
    rows = as_rows(torch.tensor(X), block_rows=7)
    weights = rows.gather(rows.weights)
    assert weights.dtype == dtype
    np.testing.assert_array_equal(weights, np.ones(N))
    assert rows.total_weight == N


def test_zero_rows_take_no_part(dtype):
    X, B = data(0, dtype)
    X[[0, 40, N - 1]] = 0
    rows = as_rows(torch.tensor(X), weight=np.full(N, 2.0))
    np.testing.assert_array_equal(np.flatnonzero(rows.gather(rows.weights) == 0), [0, 40, N - 1])
    assert rows.total_weight == 2 * (N - 3)
    ones = as_rows(torch.tensor(X)).scan(lambda X: Contribution(total=X[:, :1] * 0 + 1))
    np.testing.assert_array_equal(ones.total, [N - 3])
    np.testing.assert_array_equal(rows.take(np.array([40])), np.zeros((1, D)))
    assert np.all(np.isfinite(rows.scan(everything, B).product))


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_an_absent_row_of_any_size_changes_nothing(normalize, size):
    X, B = data(0)
    more = torch.tensor(np.vstack([X, np.full((1, D), size)]))
    without = as_rows(torch.tensor(X), normalize=normalize)
    rows = as_rows(more, normalize=normalize, weight=np.append(np.ones(N), 0.0))
    assert rows.unit == without.unit
    np.testing.assert_array_equal(rows.norms, without.norms)
    assert_close(rows.scan(everything, B).product, without.scan(everything, B).product)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("power", [-1060, -500, -3, 0, 120, 1000])
def test_rows_of_any_scale_look_like_those_of_numpy(power, normalize):
    X = np.ldexp(np.rint(data(0)[0] * 64), power)  # few digits, so that even subnormals hold them
    rows, plain = as_rows(torch.tensor(X), normalize=normalize), as_rows(X, normalize=normalize)
    seen, expected = (r.take(np.arange(N)) for r in (rows, plain))
    np.testing.assert_allclose(seen, expected, rtol=1e-14)
    assert rows.unit == plain.unit
    np.testing.assert_allclose(rows.norms, plain.norms, rtol=1e-14)
    lengths, given = (r.gather(r.lengths) for r in (rows, plain))
    np.testing.assert_allclose(lengths, given, rtol=1e-14)


def test_the_smallest_numbers_there_are_get_unit_norm(dtype):
    X = np.finfo(dtype).smallest_subnormal * np.array([[1, 1], [3, 4], [1, 0], [0, 0]])
    given = torch.tensor(X.astype(dtype))
    seen = as_rows(given).take(np.arange(4))
    h = np.sqrt(0.5)
    np.testing.assert_allclose(seen, [[h, h], [0.6, 0.8], [1, 0], [0, 0]], rtol=1e-6)
    np.testing.assert_array_equal(given.numpy(), X.astype(dtype))


def test_row_norms(dtype):
    X, _ = data(0, dtype)
    np.testing.assert_allclose(row_norms(torch.tensor(X)), np.linalg.norm(X, axis=1), rtol=1e-6)
    extreme = torch.tensor([[3e-200, 4e-200], [3e200, 4e200], [0.0, 0.0]], dtype=torch.float64)
    np.testing.assert_allclose(row_norms(extreme), [5e-200, 5e200, 0], rtol=1e-15)
    np.testing.assert_array_equal(row_norms(torch.ones((3, 0))), np.zeros(3))


def test_a_row_that_is_too_large_gets_the_message_of_numpy_rows(dtype):
    X, _ = data(0, dtype)
    X[57, :2] = 0.9 * np.finfo(dtype).max
    messages = []
    for given in (X, torch.tensor(X)):
        with pytest.raises(InputError, match="row 57 of X is too large") as error:
            as_rows(given)
        messages.append(str(error.value))
    assert messages[0] == messages[1]


def test_numbers_about_the_rows_are_those_of_numpy(dtype):
    X, _ = data(0, dtype)
    rows, plain = as_rows(torch.tensor(X)), as_rows(X)
    assert rows.shape == plain.shape
    assert rows.dtype == plain.dtype
    assert rows.precision == plain.precision == np.finfo(rows.dtype).eps
    np.testing.assert_array_equal(rows.norms, [1.0])


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_half_precision_is_read_as_single(half):
    X = torch.tensor(data(0)[0]).to(getattr(torch, half))
    rows = as_rows(X)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows.take(np.arange(N)), axis=1), 1, rtol=1e-6)


# -- kept values, rows taken ----------------------------------------------------------------------


@pytest.mark.parametrize("block_rows", BLOCKS)
@pytest.mark.parametrize("budget", [0, 2**30])
def test_kept_values_come_in_the_order_of_the_rows(block_rows, budget):
    X, B = data(0)
    rows = as_rows(torch.tensor(X), block_rows=block_rows, memory_budget=budget)
    kept = rows.scan(distances, B, keep=True).kept
    U = X / np.linalg.norm(X, axis=1, keepdims=True)
    assert_close(rows.gather(kept), np.linalg.norm(U @ B, axis=1))
    assert isinstance(rows.collect(kept), torch.Tensor)
    other = rows.scan(heights, B[:, 0], keep=True).kept

    def both(X, a, b):
        return Contribution(total=(a * b)[:, None] * X, kept=a - b)

    scan = rows.scan(both, using=(kept, other), keep=True)
    a, b = np.linalg.norm(U @ B, axis=1), np.abs(U @ B[:, 0])
    assert_close(scan.total, (a * b) @ U)
    assert_close(rows.gather(scan.kept), a - b)


def test_kept_values_are_computed_once_where_they_fit_and_anew_where_not():
    X, B = data(0)
    calls = []

    def counting(X, B):
        calls.append(1)
        return everything(X, B)

    n_blocks = len(range(0, N, 100))
    for budget, again in ((0, n_blocks), (2**30, 0)):
        rows = as_rows(torch.tensor(X), block_rows=100, memory_budget=budget)
        calls.clear()
        kept = rows.scan(counting, B, keep=True).kept
        assert len(calls) == n_blocks + 1  # one row more, to learn the shape of the kept values
        calls.clear()
        rows.gather(kept)
        assert len(calls) == again


def test_unit_rows_are_stored_where_they_fit_and_rows_of_unit_norm_are_never_copied():
    X, _ = data(0)
    given = torch.tensor(X)
    assert as_rows(given, memory_budget=X.nbytes)._divisor is None
    assert as_rows(given, memory_budget=X.nbytes - 1)._divisor is not None
    unit = given / torch.linalg.vector_norm(given, dim=1, keepdim=True)
    assert as_rows(unit)._X.data_ptr() == unit.data_ptr()
    assert as_rows(given * 1e9, normalize=False)._divisor is not None  # scaled in each block


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("budget", [0, 2**30])
def test_a_subset_has_the_rows_and_weights_of_the_whole(dtype, normalize, budget):
    X, B = data(0, dtype)
    weight = np.random.default_rng(0).uniform(size=N)
    rows = as_rows(torch.tensor(X), weight=weight, normalize=normalize, memory_budget=budget)
    chosen = np.array([3, 50, 4, 99])
    some = rows.subset(chosen)
    assert some.shape == (4, D)
    assert some.dtype == dtype
    assert some.unit == rows.unit
    np.testing.assert_array_equal(some.norms, rows.norms)
    np.testing.assert_array_equal(some.gather(some.weights), rows.gather(rows.weights)[chosen])
    np.testing.assert_array_equal(some.gather(some.lengths), rows.gather(rows.lengths)[chosen])
    np.testing.assert_array_equal(some.take(np.arange(4)), rows.take(chosen))
    w, P = some.gather(some.weights), some.take(np.arange(4)) @ B.astype(dtype)
    assert_close(some.scan(l1_objective_and_gradient, B).total, w @ np.abs(P), dtype)


# -- which rows for which array -------------------------------------------------------------------


def test_tensors_in_memory_are_read_as_numpy_and_others_on_their_device(monkeypatch):
    X = torch.tensor(data(0)[0])
    assert isinstance(as_rows(X, weight=torch.ones(N), n_jobs=2), TorchRows)
    monkeypatch.setattr(kinds, "READ_AS_NUMPY", {"cpu"})
    rows = as_rows(X, normalize=False, weight=torch.ones(N))
    assert isinstance(rows, ArrayRows)
    assert np.shares_memory(rows._X, X.numpy())


# -- precision ------------------------------------------------------------------------------------


def settings():
    try:
        summary = torch.get_float32_matmul_precision()
    except RuntimeError:
        summary = "mixed"
    backends = [torch.backends.cuda.matmul, torch.backends.mkldnn.matmul]
    return [summary, *(getattr(b, "fp32_precision", None) for b in backends)]


@pytest.fixture
def precise_afterwards():
    yield
    torch.set_float32_matmul_precision("highest")


@pytest.mark.parametrize("allowed", ["highest", "high", "medium"])
def test_products_are_precise_whatever_users_allow(allowed, precise_afterwards):
    torch.set_float32_matmul_precision(allowed)
    before, seen = settings(), []
    rows = as_rows(torch.tensor(data(0, np.float32)[0]))
    rows.scan(lambda X: seen.append(settings()) or Contribution(left=X))
    assert {s[0] for s in seen} == {"highest"}
    assert {value for s in seen for value in s[1:]} <= {None, "none", "ieee"}
    assert settings() == before


@pytest.mark.skipif(
    not hasattr(torch.backends.mkldnn, "matmul"), reason="this torch has no switch for each backend"
)
def test_products_are_precise_where_single_backends_are_set(precise_afterwards):
    torch.backends.mkldnn.matmul.fp32_precision = "bf16"
    before = settings()
    with full_precision():
        assert set(settings()[1:]) <= {"none", "ieee"}
    assert settings() == before


# -- the fused twin -------------------------------------------------------------------------------


class FakePrepared:
    """What a fused kernel of `perpend.kernels.cuda` offers, in plain torch."""

    precision = 2.0**-16

    def __init__(self, X):
        self.X, self.weights = X, []

    def l1_objective_and_gradient(self, B, weight):
        self.weights.append(weight)
        P = self.X @ B
        w = torch.ones(len(self.X), dtype=B.dtype) if weight is None else weight
        total, product = w @ P.abs(), (w[:, None] * P.sign()).T @ self.X
        return total.to(torch.float64), product.to(torch.float64)


@pytest.fixture
def prepared(monkeypatch):
    """Everything that the fake package has prepared so far."""
    made = []

    def prepare(X, precision="auto"):
        made.append(FakePrepared(X))
        return made[-1]

    package = types.ModuleType("perpend.kernels.cuda")
    package.prepare = prepare
    monkeypatch.setitem(sys.modules, "perpend.kernels.cuda", package)
    monkeypatch.setattr(torch_module, "FUSED_DEVICES", {"cpu"})
    return made


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("budget", [0, 2**30])
def test_the_fused_twin_gives_the_same_sums(prepared, weighted, normalize, budget):
    X, B = data(0)
    weight = np.random.default_rng(1).uniform(size=N) if weighted else None
    options = {"weight": weight, "normalize": normalize, "memory_budget": budget}
    rows, plain = as_rows(torch.tensor(X), **options), as_rows(X, **options)
    assert rows.scan(gram).product.shape == (D, D)
    assert prepared == []  # made at the first use
    for _ in range(2):
        scan, expected = (r.scan(l1_objective_and_gradient, B) for r in (rows, plain))
        assert_close(scan.total, expected.total)
        assert_close(scan.product, expected.product)
        assert scan.kept is None
    assert len(prepared) == 1
    assert len(prepared[0].weights) == 2
    if normalize and budget:  # made of the unit rows, and without weights where there are none
        norms = torch.linalg.vector_norm(prepared[0].X, dim=1)
        np.testing.assert_allclose(norms, 1, rtol=1e-14)
        assert (prepared[0].weights[0] is None) == (not weighted)


def test_the_precision_is_the_twins_before_the_first_scan(prepared):
    X = torch.tensor(data(0)[0])
    rows = as_rows(X)
    assert rows.precision == 2.0**-16
    assert rows.subset(np.arange(10)).precision == 2.0**-16
    assert rows.dtype == np.float64
    assert as_rows(X, fused=False).precision == np.finfo(float).eps


def test_there_is_no_twin_where_none_fits(prepared, monkeypatch):
    X, B = data(0)
    expected = as_rows(X).scan(l1_objective_and_gradient, B)

    def is_plain(rows):
        assert_close(rows.scan(l1_objective_and_gradient, B).product, expected.product)
        assert rows.precision == np.finfo(float).eps

    is_plain(as_rows(torch.tensor(X), fused=False))
    is_plain(as_rows(torch.tensor(X * 1e200), memory_budget=0))  # beyond single precision
    sys.modules["perpend.kernels.cuda"].prepare = lambda X: None
    is_plain(as_rows(torch.tensor(X)))
    monkeypatch.setitem(sys.modules, "perpend.kernels.cuda", None)  # importing it fails
    is_plain(as_rows(torch.tensor(X)))
    assert prepared == []


def test_tensors_elsewhere_have_no_twin(prepared, monkeypatch):
    monkeypatch.setattr(torch_module, "FUSED_DEVICES", {"cuda"})
    assert as_rows(torch.tensor(data(0)[0])).precision == np.finfo(float).eps
    assert prepared == []


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("block_rows", BLOCKS)
def test_mapped_rows_are_those_of_numpy(dtype, normalize, block_rows):
    X, B = data(0, dtype)
    X = (X @ B @ B.T).astype(dtype)
    w = np.random.default_rng(0).uniform(0.5, 2, N)
    rows = as_rows(torch.tensor(X), weight=w, normalize=normalize, block_rows=block_rows)
    turned, plain = rows.mapped(B), as_rows(X, weight=w, normalize=normalize).mapped(B)
    assert isinstance(turned, TorchRows)
    every = np.arange(N)
    assert_close(turned.take(every), plain.take(every), dtype)
    assert_close(turned.scan(gram).product, plain.scan(gram).product, dtype)
    assert_close(turned.gather(turned.weights), plain.gather(plain.weights), dtype)
    assert_close(turned.gather(turned.lengths), plain.gather(plain.lengths), dtype)
    assert turned.unit == plain.unit


def test_no_room_for_mapped_rows():
    X, B = data(0)
    assert as_rows(torch.tensor(X), memory_budget=8).mapped(B) is None

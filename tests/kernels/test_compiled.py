"""The compiled twin gives the sums of plain NumPy, on every kind of processor it is built for.

Most data here are small whole numbers: every sum is then exact, whatever its order, so that equal
means equal, and x.b = 0 happens often.
"""

import ctypes
import itertools

import numpy as np
import pytest

from perpend.kernels import compiled, gram, l1_objective_and_gradient
from perpend.kernels.compiled import l1
from perpend.kernels.compiled.l1 import VARIANTS

needs_library = pytest.mark.skipif(not compiled.available(), reason="no compiled library in use")


@pytest.fixture(params=VARIANTS)
def variant(request):
    if request.param not in compiled.variants():
        pytest.skip(f"no {request.param} variant here")
    return request.param


def whole(rng, shape, dtype):
    """Small whole numbers, as X and B."""
    return rng.integers(-3, 4, shape).astype(dtype)


def plain(X, B, weight=None, divisor=None):
    """The definition, in float64."""
    X, B = X.astype(np.float64), B.astype(np.float64)
    X = X if divisor is None else X / divisor[:, None].astype(np.float64)
    w = np.ones(len(X)) if weight is None else weight.astype(np.float64)
    P = X @ B
    return w @ np.abs(P), (np.sign(P) * w[:, None]).T @ X


def sums(X, B, weight=None, divisor=None, variant=None):
    assert compiled.L1Sums.fits(X, weight, divisor, B)
    return compiled.L1Sums(X, weight, divisor, B, variant=variant)(slice(0, len(X)))


def assert_equal(got, expected):
    for a, b in zip(got, expected, strict=True):
        assert a.dtype == np.float64
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("part", range(4))
def test_every_number_of_directions_and_of_features(variant, dtype, part):
    rng = np.random.default_rng(part)
    shapes = [(k, int(rng.integers(1, 131))) for k in range(1, 71)]
    shapes += [(int(rng.integers(1, 71)), D) for D in range(1, 131)]
    for k, D in shapes[part::4]:
        n = int(rng.integers(1, 150))
        X, B = whole(rng, (n, D), dtype), whole(rng, (D, k), dtype)
        assert_equal(sums(X, B, variant=variant), plain(X, B))


@pytest.mark.parametrize("n", [1, 2, 5, 6, 7, 47, 48, 49, 95, 97, 191, 193, 383, 385, 1000])
@pytest.mark.parametrize("k", [3, 17, 30, 70])
def test_every_tail_of_rows(variant, dtype, n, k, seed):
    rng = np.random.default_rng(seed)
    X, B = whole(rng, (n, 21), dtype), whole(rng, (21, k), dtype)
    weight, divisor = rng.integers(0, 4, n).astype(dtype), 2.0 ** rng.integers(-2, 3, n)
    divisor = divisor.astype(dtype)
    assert_equal(sums(X, B, variant=variant), plain(X, B))
    assert_equal(sums(X, B, weight, divisor, variant), plain(X, B, weight, divisor))


@pytest.mark.parametrize("D", [511, 512, 513, 1024, 1500])
def test_rows_of_many_features(variant, dtype, D):
    rng = np.random.default_rng(D)
    X, B = whole(rng, (100, D), dtype), whole(rng, (D, 11), dtype)
    assert_equal(sums(X, B, variant=variant), plain(X, B))


@pytest.mark.parametrize("D", [3, 16, 40])
def test_any_layout_is_read_where_it_lies(variant, dtype, D, seed):
    rng = np.random.default_rng(seed)
    X, B = whole(rng, (101, D), dtype), whole(rng, (D, 13), dtype)
    wide = np.full((2 * 101, 3 * D), np.nan, dtype)
    wide[::-2, ::3] = X
    inner = np.full((103, D + 5), np.nan, dtype)
    inner[1:-1, 2:-3] = X
    read_only = X.copy()
    read_only.flags.writeable = False
    layouts = [np.asfortranarray(X), wide[::-2, ::3], inner[1:-1, 2:-3], read_only]
    layouts += [np.asfortranarray(X)[::-1, ::-1][::-1, ::-1], np.asfortranarray(inner)[1:-1, 2:-3]]
    for view in layouts:
        np.testing.assert_array_equal(view, X)
        assert_equal(sums(view, B, variant=variant), plain(X, B))


def test_zero_rows_and_right_angles_pull_nowhere(variant, dtype):
    X = np.zeros((50, 9), dtype)
    X[::7, 0] = 1  # orthogonal to both directions
    X[3, 1] = -2
    B = np.zeros((9, 2), dtype)
    B[1, 0] = B[2, 1] = 1
    total, product = sums(X, B, variant=variant)
    np.testing.assert_array_equal(total, [2, 0])
    expected = np.zeros((2, 9))
    expected[0, 1] = 2
    np.testing.assert_array_equal(product, expected)
    assert not np.signbit(product).any()


def test_quotients_are_those_that_numpy_forms(variant, dtype, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((200, 33)).astype(dtype)
    limits = np.finfo(dtype)
    divisor = np.exp(rng.uniform(np.log(limits.tiny) / 2, np.log(limits.max) / 2, 200))
    divisor[:4] = limits.max / 2, 2.0 ** (limits.maxexp - 1), limits.tiny, limits.tiny / 4
    X[:4] *= divisor[:4, None].astype(dtype) / 8
    divisor = divisor.astype(dtype)
    B = rng.standard_normal((33, 9)).astype(dtype)
    got = sums(X, B, divisor=divisor, variant=variant)
    assert_equal(got, sums(X / divisor[:, None], B, variant=variant))


def test_rounding_is_that_of_one_block(variant, dtype, seed):
    rng = np.random.default_rng(seed)
    X, B = rng.standard_normal((20_000, 7)).astype(dtype), rng.standard_normal((7, 5)).astype(dtype)
    got, expected = sums(X, B, variant=variant), plain(X, B)
    # 384 rows at most are added up in the type of X. A sign may flip where x.b is lost in rounding.
    eps = 384 * np.finfo(dtype).eps
    np.testing.assert_allclose(got[0], expected[0], rtol=eps)
    near = np.sum(np.abs(X.astype(float) @ B) < 100 * np.finfo(dtype).eps)
    np.testing.assert_allclose(got[1], expected[1], rtol=0, atol=eps * 20_000 + 10 * near)


@needs_library
@pytest.mark.parametrize("shape", [(1, 1), (5000, 200), (200_000, 500), (100, 10**6), (191, 10**4)])
def test_groups_cover_all_rows_and_are_of_one_size(shape):
    groups = l1._groups(*shape)
    assert groups[0].start == 0
    assert groups[-1].stop == shape[0]
    assert all(a.stop == b.start for a, b in itertools.pairwise(groups))
    assert len({g.stop - g.start for g in groups[:-1]}) <= 1
    assert len(groups) <= l1.GROUPS_MOST
    assert len(groups) == 1 or groups[0].stop % l1.GROUP_UNIT == 0
    assert len(groups) == 1 or groups[0].stop >= 4 * l1.GROUP_UNIT


@needs_library
def test_sums_of_ranges_add_up(dtype, seed):
    rng = np.random.default_rng(seed)
    X, B = whole(rng, (700, 10), dtype), whole(rng, (10, 4), dtype)
    weight, divisor = rng.integers(0, 3, 700).astype(dtype), np.full(700, 2, dtype)
    part = compiled.L1Sums(X, weight, divisor, B)
    cuts = [0, 1, 300, 650, 700]
    parts = [part(slice(a, b)) for a, b in itertools.pairwise(cuts)]
    assert_equal([sum(p) for p in zip(*parts, strict=True)], plain(X, B, weight, divisor))


# -- when there is a twin -------------------------------------------------------------------------


@needs_library
def test_a_twin_is_found_by_its_kernel():
    X, B = np.ones((3, 2)), np.ones((2, 1))
    assert isinstance(
        compiled.twin(l1_objective_and_gradient, X, None, None, (B,)), compiled.L1Sums
    )
    assert compiled.twin(gram, X, None, None, ()) is None


def test_what_the_library_cannot_read_has_no_twin():
    X, B = np.ones((4, 3)), np.ones((3, 2))
    assert compiled.L1Sums.fits(X, np.ones(4), np.ones(4), B)
    assert not compiled.L1Sums.fits(X, np.ones(4, np.float32), None, B)
    assert not compiled.L1Sums.fits(X, None, np.ones(8)[::2], B)
    assert not compiled.L1Sums.fits(X.astype(np.longdouble), None, None, B)
    assert not compiled.L1Sums.fits(X.astype(">f8"), None, None, B)
    assert not compiled.L1Sums.fits(np.ones((0, 3)), None, None, B)
    assert not compiled.L1Sums.fits(X, None, None, np.ones((3, 0)))
    assert not compiled.L1Sums.fits(X, None, None, np.ones((4, 2)))
    assert not compiled.L1Sums.fits(X, np.ones(3), None, B)
    assert not compiled.L1Sums.fits(X, None, None, np.ones(3))
    assert not compiled.L1Sums.fits(X, None, None)
    shifted = np.ones(4 * 3 * 8 + 1, np.uint8)[1:].view(np.float64).reshape(4, 3)
    assert not compiled.L1Sums.fits(shifted, None, None, B)
    packed = np.zeros(4, [("a", np.float64), ("b", np.float32)])["a"]
    assert not compiled.L1Sums.fits(packed[:, None], None, None, np.ones((1, 1)))


def test_the_environment_turns_it_off(monkeypatch):
    monkeypatch.setenv("PERPEND_COMPILED", "0")
    assert not compiled.available()
    assert compiled.variants() == ()
    X, B = np.ones((3, 2)), np.ones((2, 1))
    assert compiled.twin(l1_objective_and_gradient, X, None, None, (B,)) is None


@pytest.mark.parametrize("what", ["missing", "broken", "another version"])
def test_without_a_library_that_fits_there_is_none(monkeypatch, tmp_path, what):
    path = tmp_path / "_l1.so"
    if what == "broken":
        path.write_bytes(b"not a library")
    if what == "another version":
        if not compiled.available():
            pytest.skip("no compiled library in use")
        path = l1.LIBRARY
        monkeypatch.setattr(l1, "ABI", ctypes.CDLL(str(path)).perpend_abi() + 1)
    monkeypatch.setattr(l1, "LIBRARY", path)
    l1._load.cache_clear()
    try:
        assert not compiled.available()
    finally:
        l1._load.cache_clear()


@needs_library
def test_rows_shorter_than_a_long_vector_take_a_shorter_one(monkeypatch):
    monkeypatch.setattr(l1, "_runnable", lambda: VARIANTS)
    assert l1._fastest(D=8, itemsize=8) == l1._fastest(D=16, itemsize=4) == "avx512"
    assert l1._fastest(D=7, itemsize=8) == l1._fastest(D=15, itemsize=4) == "avx2"
    monkeypatch.setattr(l1, "_runnable", lambda: VARIANTS[:1])
    assert l1._fastest(D=7, itemsize=8) == "baseline"

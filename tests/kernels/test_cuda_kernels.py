"""The fused CUDA kernels against the plain formulas in float64.

What needs no GPU (plans, layouts, imports) is tested everywhere; the rest is marked ``gpu``.
"""

import subprocess
import sys

import numpy as np
import pytest

from perpend.kernels.cuda import prepare
from perpend.kernels.cuda.plan import (
    MOST_FEATURES,
    MOST_PLAIN_FEATURES,
    SHARED_BYTES,
    row_plan,
    tile_plan,
)

PRECISIONS = ["float64", "float32", "bf16x2", "bf16"]
# n, D, k, weighted: tails of every kind, one row, one feature, more columns than a kernel takes
SHAPES = [
    (1, 1, 1, False),
    (1000, 5, 3, True),
    (777, 10, 10, False),
    (5000, 16, 20, True),
    (33, 13, 7, False),
    (20_000, 24, 16, True),
    (4097, 64, 16, False),
    (3001, 100, 33, True),
    (2500, 200, 40, False),
    (2500, 200, 12, True),
    (2000, 256, 32, True),
    (1999, 377, 5, False),
    (1500, 512, 17, True),
]


def reference(X, B, weight=None):
    """Return P, f, G and the weights, by the plain formulas in float64."""
    X, B = X.double(), B.double()
    w = X.new_ones(X.shape[0]) if weight is None else weight.double()
    P = X @ B
    f = w @ P.abs()
    G = P.sign().T @ (w[:, None] * X)
    return P, f, G, w


# --- without a GPU -------------------------------------------------------------------------------


def test_importing_loads_neither_torch_nor_the_bindings():
    code = (
        "import sys, perpend.kernels.cuda as c\n"
        "assert not {'torch', 'triton', 'cuda.bindings'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_there_is_no_kernel_for_an_array_that_is_not_on_a_gpu():
    assert prepare(np.ones((4, 3))) is None


def test_there_is_no_kernel_for_a_tensor_on_the_cpu():
    torch = pytest.importorskip("torch")
    assert prepare(torch.ones(4, 3)) is None


def test_an_unknown_precision_is_refused():
    with pytest.raises(ValueError, match="precision must be one of"):
        prepare(np.ones((4, 3)), "float16")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("float64", "parts"), [(True, 1), (False, 1), (False, 2)])
def test_every_shape_has_a_plan_that_fits_a_multiprocessor(float64, parts, weighted):
    for features in range(1, MOST_FEATURES + 1):
        for columns in (1, 16, 17, 100):
            plan = tile_plan(float64, parts, features, columns, weighted)
            assert plan.shared_bytes <= SHARED_BYTES
            assert plan.stages >= 2  # one is read while another is filled
            assert 64 % plan.step_rows == 0  # the layout pads to 64 rows
            assert plan.warps % plan.team == 0
            assert plan.warps // plan.team < 16  # a barrier for each team
            assert 8 * plan.blocks >= features


def test_every_small_shape_has_a_plan():
    for features in range(1, MOST_PLAIN_FEATURES + 1):
        for columns in (1, 3, 10, 16, 40):
            plan = row_plan(features, columns, weighted=False)
            assert plan.shared_bytes <= SHARED_BYTES
            assert plan.tiles % 2 == 0  # two rows of a thread at a time
            assert plan.columns * features <= 128  # sums in registers


@pytest.fixture
def layout():
    pytest.importorskip("torch")
    from perpend.kernels.cuda import layout

    return layout


def test_float64_tiles_hold_the_rows(layout):
    torch = pytest.importorskip("torch")
    X = torch.arange(70.0 * 13, dtype=torch.float64).reshape(70, 13)
    tiles = layout.float64_tiles(X)
    assert tiles.shape == (16, 2, 2, 8, 4)
    rows = tiles.permute(0, 3, 1, 2, 4).reshape(128, 16)
    assert torch.equal(rows[:70, :13], X)
    assert not rows[70:].any()
    assert not rows[:, 13:].any()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bf16_tiles_hold_the_rows_to_16_bits(dtype, layout):
    torch = pytest.importorskip("torch")
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(150, 21, generator=generator, dtype=getattr(torch, dtype))
    tiles = layout.bf16_tiles(X, 2)
    assert tiles.shape == (12, 3, 2, 16, 8)
    rows = tiles.double().sum(dim=2).permute(0, 2, 1, 3).reshape(192, 24)
    assert ((rows[:150, :21] - X).abs() <= 2.0**-16 * X.abs()).all()
    assert not rows[150:].any()
    assert not rows[:, 21:].any()
    assert torch.equal(layout.bf16_tiles(X, 1)[:, :, 0], tiles[:, :, 0])


def test_a_conversion_in_pieces_is_the_same(monkeypatch, layout):
    torch = pytest.importorskip("torch")
    X = torch.randn(1000, 9, generator=torch.Generator().manual_seed(0))
    whole = layout.bf16_tiles(X, 2), layout.float64_tiles(X)
    monkeypatch.setattr(layout, "CHUNK_BYTES", 1)
    assert torch.equal(layout.bf16_tiles(X, 2), whole[0])
    assert torch.equal(layout.float64_tiles(X), whole[1])


# --- on a GPU ------------------------------------------------------------------------------------


@pytest.fixture
def torch():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    if torch.cuda.get_device_capability() < (9, 0):
        pytest.skip("needs compute capability 9.0")
    pytest.importorskip("cuda.bindings")
    torch.manual_seed(0)
    return torch


def random_case(torch, shape, precision):
    n, D, k, weighted = shape
    dtype = torch.float64 if precision == "float64" else torch.float32
    X = torch.randn(n, D, dtype=dtype, device="cuda")
    X[3::7] = 0  # zero rows contribute nothing
    B = torch.randn(D, k, dtype=torch.float64, device="cuda")
    weight = torch.rand(n, device="cuda") if weighted else None
    return X, B / B.norm(dim=0), weight


@pytest.mark.gpu
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sums_equal_the_plain_ones(torch, shape, precision):
    _, D, k, _ = shape
    if precision == "float32" and D > MOST_PLAIN_FEATURES:
        pytest.skip("float32 is for few features")
    X, B, weight = random_case(torch, shape, precision)
    prepared = prepare(X, precision)
    f, G = prepared.l1_objective_and_gradient(B, weight)
    P, f_plain, G_plain, w = reference(X, B, weight)
    assert f.shape == (k,)
    assert G.shape == (k, D)
    assert f.dtype == G.dtype == torch.float64

    # float32 sums err by 1e-6 at most; the sign of a product within its error may be any
    relative = prepared.precision + (1e-15 * D if precision == "float64" else 1e-6)
    norms = X.double().norm(dim=1)
    unsure = P.abs() <= 4 * relative * norms[:, None]  # (n, k)
    parts = w[:, None] * X.double().abs()
    assert ((f - f_plain).abs() <= relative * (w @ norms)).all()
    assert (
        (G - G_plain).abs() <= 2 * relative * parts.sum(0) + 2 * unsure.double().T @ parts
    ).all()


@pytest.mark.gpu
@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_second_call_gives_the_same_bits(torch, precision):
    X, B, weight = random_case(torch, (100_003, 15, 12, True), precision)
    prepared = prepare(X, precision)
    first = prepared.l1_objective_and_gradient(B, weight)
    for _ in range(5):
        again = prepared.l1_objective_and_gradient(B, weight)
        assert torch.equal(again[0], first[0])
        assert torch.equal(again[1], first[1])


@pytest.mark.gpu
@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_sign_of_zero_is_zero(torch, precision):
    X = torch.randint(-1, 2, (1001, 12), device="cuda").double()  # exact everywhere, many zeros
    B = torch.eye(12, dtype=torch.float64, device="cuda")[:, :5].clone()
    B[:, 4] = 0
    f, G = prepare(X, precision).l1_objective_and_gradient(B)
    _, f_plain, G_plain, _ = reference(X, B)
    torch.testing.assert_close(f, f_plain, rtol=1e-12, atol=0)
    assert torch.equal(G, G_plain)


@pytest.mark.gpu
@pytest.mark.parametrize("precision", PRECISIONS)
def test_weights_of_zero_and_one_select_rows(torch, precision):
    X, B, _ = random_case(torch, (3000, 16, 8, False), precision)
    mask = torch.rand(3000, device="cuda") < 0.5
    f, G = prepare(X, precision).l1_objective_and_gradient(B, mask.double())
    f_chosen, G_chosen = prepare(X[mask], precision).l1_objective_and_gradient(B)
    torch.testing.assert_close(f, f_chosen, rtol=1e-6, atol=0)
    torch.testing.assert_close(G, G_chosen, rtol=0, atol=1e-6 * float(f_chosen.max()))


@pytest.mark.gpu
@pytest.mark.parametrize("precision", PRECISIONS)
def test_rows_in_several_launches_add_up(torch, precision, monkeypatch):
    monkeypatch.setattr("perpend.kernels.cuda.prepared.LONGEST_TILED", 64)
    monkeypatch.setattr("perpend.kernels.cuda.prepared.PlainRows._longest", 128)
    X, B, weight = random_case(torch, (2_000_011, 6, 5, True), precision)
    f, G = prepare(X, precision).l1_objective_and_gradient(B, weight)
    monkeypatch.undo()
    f_one, G_one = prepare(X, precision).l1_objective_and_gradient(B, weight)
    torch.testing.assert_close(f, f_one, rtol=1e-6, atol=0)
    torch.testing.assert_close(G, G_one, rtol=0, atol=1e-5 * float(f_one.max()))


@pytest.mark.gpu
@pytest.mark.parametrize("shifted", [False, True], ids=["random", "growing"])
def test_two_parts_are_as_good_as_promised(torch, shifted):
    X, B, _ = random_case(torch, (3_000_000, 64, 16, False), "bf16x2")
    if shifted:  # sums that keep growing: the worst case for rounding towards zero
        X += 3 * B.sum(dim=1).float()
    f, G = prepare(X, "bf16x2").l1_objective_and_gradient(B)
    _, f_plain, G_plain, _ = reference(X, B)
    assert ((f - f_plain).abs() / f_plain).max() <= 1e-6
    assert (G - G_plain).norm() / G_plain.norm() <= 1e-4


@pytest.mark.gpu
def test_float32_is_as_good_as_promised(torch):
    X, B, _ = random_case(torch, (3_000_000, 10, 10, False), "float32")
    f, G = prepare(X).l1_objective_and_gradient(B)
    _, f_plain, G_plain, _ = reference(X, B)
    assert ((f - f_plain).abs() / f_plain).max() <= 1e-7
    assert (G - G_plain).norm() / G_plain.norm() <= 1e-5


@pytest.mark.gpu
def test_auto_is_float32_for_few_features_and_two_parts_for_more(torch):
    assert prepare(torch.ones(5, 16, device="cuda")).precision == 2.0**-24
    assert prepare(torch.ones(5, 17, device="cuda")).precision == 2.0**-16


@pytest.mark.gpu
def test_a_view_of_other_rows_is_read_as_it_is(torch):
    X = torch.randn(501, 9, device="cuda")[1:, 1:]  # neither contiguous nor aligned
    B = torch.randn(8, 3, device="cuda")
    for precision in PRECISIONS:
        f, _ = prepare(X, precision).l1_objective_and_gradient(B)
        torch.testing.assert_close(f, reference(X, B)[1], rtol=1e-2, atol=0)


@pytest.mark.gpu
def test_shapes_that_do_not_match_are_refused(torch):
    prepared = prepare(torch.ones(5, 4, device="cuda"))
    with pytest.raises(ValueError, match="B must have shape"):
        prepared.l1_objective_and_gradient(torch.ones(3, 2, device="cuda"))
    with pytest.raises(ValueError, match="weight must have shape"):
        prepared.l1_objective_and_gradient(
            torch.ones(4, 2, device="cuda"), torch.ones(4, device="cuda")
        )


@pytest.mark.gpu
@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_captured_call_can_be_replayed_with_another_b(torch, precision):
    X, B, _ = random_case(torch, (5000, 12, 7, False), precision)
    prepared = prepare(X, precision)
    prepared.l1_objective_and_gradient(B)  # compiles
    place = B.clone()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        f, G = prepared.l1_objective_and_gradient(place)
    other = B.flip(0)
    place.copy_(other)
    graph.replay()
    f_direct, G_direct = prepared.l1_objective_and_gradient(other)
    assert torch.equal(f, f_direct)
    assert torch.equal(G, G_direct)


@pytest.mark.gpu
def test_there_is_no_kernel_for_other_types_and_shapes(torch):
    assert prepare(torch.ones(5, 5, dtype=torch.float16, device="cuda")) is None
    assert prepare(torch.ones(5, device="cuda")) is None
    assert prepare(torch.ones(0, 5, device="cuda")) is None
    assert prepare(torch.ones(5, MOST_FEATURES + 1, device="cuda")) is None
    assert prepare(torch.ones(5, MOST_PLAIN_FEATURES + 1, device="cuda"), "float32") is None


@pytest.mark.gpu
def test_there_is_no_kernel_where_the_copy_does_not_fit(torch):
    X = torch.ones(1, 64, device="cuda").expand(10**11, 64)  # 25 TB of the same row
    assert prepare(X, "bf16x2") is None

r"""Triton kernels for stacks of problems: the fused pass, and the step rule for every start.

One iteration is two launches. The pass has several programs for each problem; each reads its share
of the rows once for both products,

.. math:: P = X B^T, \qquad f = \sum |P|, \qquad G = \mathrm{sign}(P)^T X,

and adds its part of f and G to those of the others. The step has one program for each start of
each problem and follows `perpend.solvers.steps` in float64. Converged problems cost a launch and no
more.

The sums across programs are formed in integers, as multiples of 2^(e - 62) where 2^e is above the
number of rows, which no entry exceeds. Integers can be added in any order with the same result, so
equal input gives equal bits; and their rounding is that of float64 at the size of the largest sum.

Rows come as a pair of bfloat16 numbers (high, low), which hold 16 bits of each entry, or as they
are in float64. A pair needs five products: sign(P) is exact in any format, so G needs two, and P
three, as the product of the two low parts is below the precision.
"""

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

from perpend._typing import Array

HALF = torch.bfloat16  # each part of a pair
LARGEST_TILE = 256  # features: beyond that the sums do not fit the registers
MOST_STARTS = 32
STEP_WARPS = 4
MOST_COPIES = 16


@triton.jit
def pass_kernel(  # noqa: PLR0917
    X_high: tl.tensor,  # (p, n, STRIDE): high parts, or the rows themselves
    X_low: tl.tensor,  # the same; not read without PAIR
    T_high: tl.tensor,  # (p, KP, DP): high parts of the trial points, or these themselves
    T_low: tl.tensor,
    converged: tl.tensor,  # (p, k)
    G: tl.tensor,  # (p, k, COPIES, DP) integers
    F: tl.tensor,  # (p, k, COPIES) integers
    constants: tl.tensor,
    n: tl.tensor,
    k: tl.tensor,
    STRIDE: tl.constexpr,  # a constant, so that the compiler knows how many entries go together
    PAIR: tl.constexpr,
    KP: tl.constexpr,
    DP: tl.constexpr,
    ROWS: tl.constexpr,
    STAGES: tl.constexpr,
    COPIES: tl.constexpr,  # of the sums, so that fewer programs meet at one address
    EARLY: tl.constexpr,  # launched before the kernel before it has ended
):
    """Add f and G of one share of the rows."""
    problem = tl.program_id(1).to(tl.int64)
    j, d = tl.arange(0, KP), tl.arange(0, DP)
    if EARLY:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    asleep = tl.load(converged + problem * k + j, mask=j < k, other=1)
    unit = tl.load(constants + 11)
    if tl.sum(asleep, 0) < KP:
        place = problem * KP * DP + j[None, :] * DP + d[:, None]
        t_high = tl.load(T_high + place)  # (DP, KP)
        if PAIR:
            t_low = tl.load(T_low + place)
        kind: tl.constexpr = tl.float32 if PAIR else tl.float64
        g = tl.zeros((DP, KP), dtype=kind)
        f = tl.zeros((ROWS, KP), dtype=kind)
        first, programs = tl.program_id(0), tl.num_programs(0)
        for block in tl.range(first, tl.cdiv(n, ROWS), programs, num_stages=STAGES):
            row = block * ROWS + tl.arange(0, ROWS)
            at = (problem * n + row)[:, None] * STRIDE + d[None, :]
            inside = (row < n)[:, None] & (d < STRIDE)[None, :]
            x_high = tl.load(X_high + at, mask=inside, other=0.0)
            if PAIR:
                x_low = tl.load(X_low + at, mask=inside, other=0.0)
                P = tl.dot(x_low, t_high, input_precision="ieee")  # small terms first
                P = tl.dot(x_high, t_low, P, input_precision="ieee")
                P = tl.dot(x_high, t_high, P, input_precision="ieee")
            else:
                P = tl.dot(x_high, t_high, out_dtype=kind, input_precision="ieee")
            s = tl.where(P > 0, 1.0, tl.where(P < 0, -1.0, 0.0)).to(x_high.dtype)
            if PAIR:
                g = tl.dot(tl.trans(x_low), s, g, input_precision="ieee")
                g = tl.dot(tl.trans(x_high), s, g, input_precision="ieee")
            else:
                g = tl.dot(tl.trans(x_high), s, g, out_dtype=kind, input_precision="ieee")
            f += tl.abs(P)
        # The unit is a power of two: scaling is exact in either precision.
        g_units = (g * unit.to(kind)).to(tl.int64)
        f_units = (tl.sum(f, 0) * unit.to(kind)).to(tl.int64)
        copy = (problem * k + j) * COPIES + first % COPIES  # (KP,)
        wanted = (j < k)[None, :] & (d < STRIDE)[:, None]
        tl.atomic_add(G + copy[None, :] * DP + d[:, None], g_units, mask=wanted, sem="relaxed")
        tl.atomic_add(F + copy, f_units, mask=j < k, sem="relaxed")


@triton.jit
def _add_pairs(a, b, c, d):
    """Return the sums of two pairs: two reductions for one wait."""
    return a + c, b + d


@triton.jit
def step_kernel(  # noqa: PLR0915, PLR0917
    G: tl.tensor,
    F: tl.tensor,
    B: tl.tensor,  # (p, k, D) and so on: the fields of `perpend.batch.descent.Starts`
    f: tl.tensor,
    v: tl.tensor,
    slope: tl.tensor,
    mu: tl.tensor,
    streak: tl.tensor,
    n_iter: tl.tensor,
    chord: tl.tensor,
    converged: tl.tensor,
    T: tl.tensor,  # (p, KP, DP) the next trial points,
    T_high: tl.tensor,  # and as a pair
    T_low: tl.tensor,
    constants: tl.tensor,  # of the rule and the limits: as arguments they would be float32
    k: tl.tensor,
    D: tl.constexpr,
    FIRST: tl.constexpr,
    MBLS: tl.constexpr,
    PAIR: tl.constexpr,
    KP: tl.constexpr,
    DP: tl.constexpr,
    COPIES: tl.constexpr,
    EARLY: tl.constexpr,
):
    """Draw the conclusions of one start's trial, and write its next one.

    Everything is read before anything is decided, even for a converged start: one wait for the
    memory instead of several.
    """
    j = tl.program_id(0)
    problem = tl.program_id(1).to(tl.int64)
    start = problem * k + j
    d = tl.arange(0, DP)
    inside = d < D
    at = start * D + d
    trial_at = (problem * KP + j) * DP + d
    if EARLY:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    awake = True if FIRST else tl.load(converged + start) == 0
    copy = start * COPIES + tl.arange(0, COPIES)
    sums_at = copy[:, None] * DP + d[None, :]
    sums = tl.load(G + sums_at)
    totals = tl.load(F + copy)
    t = tl.load(T + trial_at)
    b = tl.load(B + at, mask=inside, other=0.0)
    v_old = tl.load(v + at, mask=inside, other=0.0)
    f_old, slope_old, mu_old = tl.load(f + start), tl.load(slope + start), tl.load(mu + start)
    streak_old, n_old = tl.load(streak + start), tl.load(n_iter + start)
    chord_old = tl.load(chord + start)
    mu0, armijo, shrink = tl.load(constants), tl.load(constants + 1), tl.load(constants + 2)
    grow, patience, back = tl.load(constants + 3), tl.load(constants + 4), tl.load(constants + 5)
    floor, max_iter, tol = tl.load(constants + 6), tl.load(constants + 7), tl.load(constants + 8)
    unseen, low = tl.load(constants + 9), tl.load(constants + 10)
    one = 1.0 / tl.load(constants + 11)
    g = tl.sum(sums, 0).to(tl.float64) * one
    f_new = tl.sum(totals, 0).to(tl.float64) * one

    # The direction to move against, were this trial accepted.
    way = t - b
    way2, across = tl.reduce((way * way, t * g), 0, _add_pairs)
    length = tl.sqrt(way2)
    if MBLS:
        v_new = g
        slope_new = tl.sum(g * g, 0)
    else:
        tangent = g - t * across
        tangent2, along = tl.reduce((tangent * tangent, way * tangent), 0, _add_pairs)
        slope_new = tl.sqrt(tangent2)
        v_new = tangent * (1.0 / tl.where(slope_new > 0, slope_new, 1.0))

    if FIRST:
        f_next, b_next, v_next, slope_next, mu_next = f_new, t, v_new, slope_new, mu0
        streak_next, n_next = 0 * streak_old, 0 * n_old
        chord_next = 0 * mu0 + float("inf")
        rest = slope_new == 0
    else:
        accepted = f_new <= f_old - armijo * mu_old * slope_old
        if MBLS:
            accepted = accepted | (mu_old <= floor)
        streak_next = tl.where(accepted, streak_old + 1, 0)
        n_next = n_old + accepted.to(tl.int32)
        if MBLS:
            mu_next = tl.where(accepted, mu_old, shrink * mu_old)
        else:
            # the cosine between the step and the new way down, 0 where one of them vanishes
            size = length * slope_new
            turn = -along / tl.where(size > 0, size, float("inf"))
            patient = (streak_next > 0) & (streak_next % patience.to(tl.int32) == 0)
            grown = tl.where(patient, tl.minimum(grow * mu_old, mu0), mu_old)
            too_long = (accepted == 0) | (turn < back)
            mu_next = tl.where(too_long, shrink * mu_old, grown)
        f_next = tl.where(accepted, f_new, f_old)
        b_next = tl.where(accepted, t, b)
        v_next = tl.where(accepted, v_new, v_old)
        slope_next = tl.where(accepted, slope_new, slope_old)
        chord_next = tl.where(accepted, length, chord_old)
        rest = (accepted & (length <= unseen)) | (n_next >= max_iter)
        if MBLS:
            rest = rest | (accepted & (mu_next <= floor)) | (mu_next * tl.sqrt(slope_next) < low)
        else:
            rest = rest | (mu_next <= tol) | (tl.where(slope_next > 0, mu_next, 0.0) < low)

    ahead = b_next - mu_next * v_next
    size = tl.sqrt(tl.sum(ahead * ahead, 0))
    # A Euclidean step of exactly 1/f can end at the origin. Staying gains nothing: refused.
    ahead = tl.where(size > 0, ahead * (1.0 / tl.where(size > 0, size, 1.0)), b_next)
    # The next pass begins at zero. By now all threads have read the sums.
    tl.store(G + sums_at, tl.zeros((COPIES, DP), dtype=tl.int64))
    tl.store(F + copy, tl.zeros((COPIES,), dtype=tl.int64))
    if awake:
        tl.store(B + at, b_next, mask=inside)
        tl.store(v + at, v_next, mask=inside)
        tl.store(f + start, f_next)
        tl.store(slope + start, slope_next)
        tl.store(mu + start, mu_next)
        tl.store(streak + start, streak_next)
        tl.store(n_iter + start, n_next)
        tl.store(chord + start, chord_next)
        tl.store(converged + start, rest.to(tl.int32))
        tl.store(T + trial_at, ahead)
        if PAIR:
            high = ahead.to(tl.float32).to(T_high.dtype.element_ty)
            rest_of_it = (ahead - high.to(tl.float64)).to(tl.float32)
            tl.store(T_high + trial_at, high)
            tl.store(T_low + trial_at, rest_of_it.to(T_low.dtype.element_ty))


class Shape(NamedTuple):
    """Sizes of a stack of problems, and how its passes are cut."""

    p: int
    n: int
    D: int
    k: int
    pair: bool  # bfloat16 pairs, otherwise float64
    rows: int  # in one block
    programs: int  # for each problem
    stages: int
    warps: int
    copies: int  # of the sums

    @property
    def tile_starts(self) -> int:
        """Starts in a tile: a product on tensor cores has at least 16 columns."""
        return max(16, int(triton.next_power_of_2(self.k)))

    @property
    def tile_features(self) -> int:
        """Features in a tile."""
        return max(16, int(triton.next_power_of_2(self.D)))

    @property
    def shared_bytes(self) -> int:
        """Shared memory of the pass: the rows in flight, the trial points, the signs."""
        KP, DP = self.tile_starts, self.tile_features
        if self.pair:
            return 4 * self.rows * DP * self.stages + 4 * DP * KP + 2 * self.rows * KP
        return 8 * self.rows * DP + 8 * DP * KP + 2**14


def shape(p: int, n: int, D: int, k: int, *, pair: bool, device: Any) -> Shape | None:
    """Choose blocks and programs: enough for all processors, and no more than blocks.

    None means that the fused pass has no room for so many features and starts.
    """
    properties = torch.cuda.get_device_properties(device)
    rows = 64 if pair else 32 if k <= 16 else 16
    programs = max(1, min(-(-n // rows), -(-properties.multi_processor_count // p)))
    warps = 4 if pair else 8
    copies = min(MOST_COPIES, 2 ** max(0, (programs // 4).bit_length() - 1))
    for stages in (3, 2, 1) if pair else (1,):
        found = Shape(p, n, D, k, pair, rows, programs, stages, warps, copies)
        room = found.shared_bytes <= getattr(properties, "shared_memory_per_block_optin", 0)
        if room and D <= LARGEST_TILE and k <= MOST_STARTS:
            return found
    return None


class Buffers:
    """Everything that the two kernels read and write, at fixed addresses; all zero at first."""

    def __init__(self, shape: Shape, device: Any) -> None:
        p, n, D, k = shape[:4]
        KP, DP = shape.tile_starts, shape.tile_features

        def zeros(*size: int, dtype: Any = torch.float64) -> Array:
            return torch.zeros(size, dtype=dtype, device=device)

        self.T = self.T_high = self.T_low = zeros(p, KP, DP)
        if shape.pair:
            stride = -(-D // 8) * 8  # whole words of 16 bytes
            self.X_high, self.X_low = (zeros(p, n, stride, dtype=HALF) for _ in range(2))
            self.T_high, self.T_low = (zeros(p, KP, DP, dtype=HALF) for _ in range(2))
        else:
            self.X_high = self.X_low = zeros(p, n, D)
        self.G = zeros(p, k, shape.copies, DP, dtype=torch.int64)
        self.F = zeros(p, k, shape.copies, dtype=torch.int64)
        self.constants = zeros(12)  # of the rule and the limits, and the unit of the sums
        self.constants[-1] = unit_of_sums(n)
        # The fields of a descent's state
        self.B, self.v = (zeros(p, k, D) for _ in range(2))
        self.f, self.slope, self.mu, self.chord = (zeros(p, k) for _ in range(4))
        self.streak, self.n_iter, self.converged = (
            zeros(p, k, dtype=torch.int32) for _ in range(3)
        )


def load(shape: Shape, to: Buffers, X: Array, B: Array, constants: Array) -> None:
    """Fill in the rows (p, n, D), the starts (p, k, D) and the constants."""
    to.constants[:-1] = constants
    to.converged.zero_()
    to.G.zero_()
    to.F.zero_()
    to.T[:, : shape.k, : shape.D] = B
    if shape.pair:
        _split(X, to.X_high[..., : shape.D], to.X_low[..., : shape.D])
        _split(to.T, to.T_high, to.T_low)
    else:
        to.X_high.copy_(X)


def unit_of_sums(n: int) -> float:
    """Return into how many parts 1 is divided, so that sums over n unit rows fit 63 bits."""
    return 2.0 ** (62 - n.bit_length())


def _split(values: Array, high: Array, low: Array) -> None:
    high.copy_(values)
    low.copy_(values - high)  # in the precision of the values


def launch_pass(shape: Shape, at: Buffers, *, early: bool = False) -> None:
    """Evaluate all trial points."""
    pass_kernel[(shape.programs, shape.p)](
        at.X_high, at.X_low, at.T_high, at.T_low, at.converged, at.G, at.F, at.constants,
        shape.n, shape.k, at.X_high.shape[2],
        PAIR=shape.pair, KP=shape.tile_starts, DP=shape.tile_features, ROWS=shape.rows,
        STAGES=shape.stages, COPIES=shape.copies, EARLY=early,
        num_warps=shape.warps, launch_pdl=early,
    )  # fmt: skip


def launch_step(shape: Shape, at: Buffers, *, mbls: bool, first: bool, early: bool = False) -> None:
    """Let every start conclude, and choose its next trial point."""
    step_kernel[(shape.k, shape.p)](
        at.G, at.F,
        at.B, at.f, at.v, at.slope, at.mu, at.streak, at.n_iter, at.chord, at.converged,
        at.T, at.T_high, at.T_low, at.constants, shape.k, shape.D,
        FIRST=first, MBLS=mbls, PAIR=shape.pair, KP=shape.tile_starts, DP=shape.tile_features,
        COPIES=shape.copies, EARLY=early, num_warps=STEP_WARPS, launch_pdl=early,
    )  # fmt: skip

"""From the rank of the directions to an estimate: the descents propose, the scales decide.

A finish at fewer normals than there are still finds the inliers, and then the scales show the true
number; so does one at more. Proposals are the rank of the directions, then what the scales show.
Where they show nothing, a finish from the single direction of smallest objective takes in more
and more normals: near the limit of what can be recovered, each finds more of the inliers.

The scales are those of `perpend.structure`, at the axes of the smallest second moments of the
probable inliers: squared heights along them, cumulated, are distances for every codimension.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import special

from perpend._typing import Array
from perpend.batch.finish import Finished, Groups, Sizes, finish, sizes
from perpend.geometry import library
from perpend.rows import stacks
from perpend.rows.stacks import Rows, Run, directly, double, like, packed, pick, some, unpacked
from perpend.structure import constants as k
from perpend.structure import effort
from perpend.structure.checks import TAILS, TYLER_STEPS, Facts, confidence_of, tail_excess
from perpend.structure.cloud import BITS, Chance, Counts, Reference, radius
from perpend.structure.descents import Ranks
from perpend.structure.layers import Histogram, find_layers
from perpend.structure.profile import (
    Staircase,
    beyond_flat,
    choose,
    clearness,
    contrasts,
    find_plateaus,
)

MAX_TURNS = 7  # of proposals: one, two, four and eight normals, and three more


class Problems(NamedTuple):
    """The rows, what is known of them, and how functions of them are called."""

    rows: Rows
    n_rows: Array  # (p,) rows that are not zero, on the host
    directions: Array  # (p, m, D) orthonormal rows: where small moments are looked for
    n_starts: int
    floor: float  # distances below are rounding
    run: Run

    def start(self, basis: Array, value: Array) -> tuple[Array, Sizes]:
        """Return the first `value` (p,) rows of a basis, zero beyond, and the problems' sizes."""
        X, (p, m, D) = self.rows.X, basis.shape
        V = np.zeros((p, self.n_starts, D))
        V[:, :m] = np.where((np.arange(m) < value[:, None])[..., None], basis, 0.0)
        return like(X, V), sizes(X, value, self.n_rows, self.floor)


class Estimate(NamedTuple):
    """A finished estimate for each problem; all on the host but for `end`."""

    end: Finished
    value: Array  # (p,) codimension
    groups: Groups
    axes: Array  # (p, m, D) smallest moments first
    others: Array  # (p, C) contrast over that of `value`, infinite for what the scales choose
    weight: Array  # (p,) evidence times persistence; below 0 where nothing is significant
    agrees: Array  # (p,) bool: the scales choose `value`,
    sure: Array  # (p,) bool: and surely


def decide(problems: Problems, basis: Array, rank: Ranks, best: Array) -> tuple[Estimate, Array]:
    """Choose codimension and normals, and say where they are clear; all this is on the host.

    The first proposal are the first rows of the basis (p, m, D), by the rank of the directions;
    `best` (p, D) is a single direction. What is clear is only compared with what has more contrast.
    """
    estimate, all_ = consider(problems, basis, rank.value), np.arange(len(best))
    tried = np.zeros(estimate.others.shape, dtype=bool)
    axes = np.repeat(best[:, None], basis.shape[1], axis=1)
    for turn in range(MAX_TURNS + 1):
        nothing = estimate.weight <= 0
        tried[all_, estimate.value - 1] |= ~nothing
        others = np.where(tried, 0.0, estimate.others)
        clear = estimate.sure & (estimate.value == rank.value) & (rank.score >= k.CLEAR_SCORE)
        value = np.where(others.max(axis=1) > clear, np.argmax(others, axis=1) + 1, 0)
        value[nothing] = 2**turn if 3 * 2**turn <= 2 * basis.shape[1] else 0
        (open_,) = np.nonzero(value)
        if len(open_) == 0 or turn == MAX_TURNS:
            break
        if turn == 0:
            estimate = some(estimate, all_)  # replayed results are overwritten
        tried[open_, value[open_] - 1] |= ~nothing[open_]
        axes[~nothing] = estimate.axes[~nothing]
        rows, n_rows, directions = (some(values, open_) for values in problems[:3])
        part = Problems(rows, n_rows, directions, *problems[3:5], directly)  # new shapes: no replay
        other = consider(part, axes[open_], value[open_])
        axes[open_] = other.axes
        # Better is where the scales choose what was finished, or have more evidence.
        as_good = other.agrees == estimate.agrees[open_]
        more = other.weight > estimate.weight[open_]
        (better,) = np.nonzero(np.where(as_good, more, other.agrees))
        stacks.put(some(other, better), estimate, open_[better])
    return estimate, clear


def consider(problems: Problems, basis: Array, value: Array) -> Estimate:
    """Finish at the first `value` rows of the basis (p, m, D), and evaluate all scales there."""
    X, (p, m, D) = problems.rows.X, problems.directions.shape
    V, known = problems.start(basis, value)
    solving = problems.run if p == 1 else directly  # stacks of equations can't be captured
    end = finish(problems.rows, V, known, solving)
    words = solving(_inverse_step, problems.directions, end)
    A, Z, *groups = unpacked(words, (D, D), (D, m), (1,), (1,))
    # Ritz vectors of the moments A in the span of Z: one inverse step away from the directions,
    # moments below a gap are met to rounding, those above it only roughly, and no more is needed.
    # Nearly parallel columns are the rule here; Householder's factors do not mind.
    Q = np.linalg.qr(Z)[0]
    axes = (Q @ np.linalg.eigh(Q.mT @ A @ Q)[1]).mT  # (p, m, D)
    law = reference(D, m, problems.floor)
    chance = chances(X, law, m, value, problems.n_rows)
    words = problems.run(profile, problems.rows, like(X, axes), known, chance, law.first_bin)
    weighed = _weighed(problems, law, value, Groups(*groups), words)
    return Estimate(end, value.copy(), Groups(*groups), axes, *weighed)


def _inverse_step(directions: Array, end: Finished) -> Array:
    """Return moments, A^-1 times the directions (p, m, D), and groups, as one row by problem."""
    return packed(end.A, stacks.solve_positive(end.A, directions.mT), *end.groups)


def _weighed(
    problems: Problems, law: Reference, value: Array, groups: Groups, words: Array
) -> list[Array]:
    """Return the last fields of an estimate: choice and checks of `perpend.structure`."""
    (_, m, D), n, t, S = problems.directions.shape, problems.n_rows, len(TAILS), law.n_scales
    stairs, within, below, above, spread = unpacked(words, (5, S), (S,), (t,), (t,), (m,))
    below = np.maximum(below - (D - value)[:, None], 0)
    ellipse = np.maximum(tail_excess(below, n[:, None]), tail_excess(above, n[:, None]))
    thin = np.arange(m) < value[:, None]
    gap = np.min(np.where(thin, np.inf, spread), axis=1)
    gap = np.sqrt(gap / np.max(np.where(thin, spread, 0.0), axis=1)) * np.exp(-2 / np.sqrt(n))
    # Where nearly all rows are near, with noise, they may be of two kinds: a plane in a slab.
    slab = (groups.share > k.ALL_ROWS) & (groups.scale > k.EXACT * problems.floor)
    weighed = []
    for i, c in enumerate(value.tolist()):
        seen, contrast = Staircase(*stairs[i]), np.zeros(len(law.codimensions))
        all_ = find_plateaus(seen, law.wide)
        if not all_:
            weighed.append((contrast, min(float(np.max(seen.T)), 0.0), False, False))
            continue
        best = choose(all_)
        np.maximum.at(contrast, [p.c - 1 for p in all_], [p.T for p in all_])
        others = contrast / max(contrast[c - 1], 1.0)
        others[best.c - 1] = np.inf
        facts = Facts(
            contrast=best.T,
            parameters=c * (D - c),
            clearness=clearness(best, all_),
            length=best.length,
            n_members=best.share * n[i],
            n_free=D - c,
            ellipse=float(ellipse[i]),
            gap=float(gap[i]),
        )
        # The last of the axes are only roughly met, if they are not all that there are.
        sure = best.c == c and (m == D or 3 * c <= 2 * m) and confidence_of(facts)[0] >= k.SURE
        if sure and slab[i, 0]:
            distances = Histogram(law.scales * radius(c), np.diff(within[i], prepend=0.0))
            sure = not find_layers(distances, c, max(k.LEAST_SHARE * n[i], 2.0 * (D - c)))
        weighed.append((others, best.weight, best.c == c, sure))
    return [np.array(column) for column in zip(*weighed, strict=True)]


# -- the scales ------------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def reference(D: int, m: int, floor: float) -> Reference:
    """Return scales and reference law of unit rows, for up to m normals."""
    sizes = np.arange(1, min(m, D - 1) + 1)
    return Reference(np.ones(1), D, sizes, affine=False, floor=floor)


@lru_cache(maxsize=1024)
def _bounds(c: int, m: int) -> Array:
    """Return the shares of c of m axes that few rows of an elliptical cloud are below, or above."""
    return special.betaincinv(c / 2, max(m - c, 1) / 2, np.concatenate([TAILS, 1 - TAILS]))


def chances(X: Array, law: Reference, m: int, value: Array, n_rows: Array) -> tuple[Array, Array]:
    """Return what chance gives, by codimension (C, 2 + 2 S), and by problem (p, C + 2 t)."""
    sizes = np.stack([law.free, np.square(radius(law.codimensions))], axis=1)
    own = [
        np.concatenate([law.needed_among(n), _bounds(c, m)])
        for c, n in zip(value.tolist(), n_rows.tolist(), strict=True)
    ]
    by_codimension = np.concatenate([sizes, law.log_q, law.log_q_far], axis=1)
    return like(X, by_codimension), like(X, np.stack(own))


def profile(
    rows: Rows, axes: Array, sizes: Sizes, chance: tuple[Array, Array], first_bin: int
) -> Array:
    """Return all that the host must know about axes (p, m, D), as one row for each problem.

    That is the staircase and, of the problem's own codimension, how many rows are within which
    scale; then counts of rows and spreads, by which to tell an elliptical cloud.
    """
    xp, (law, own) = library(axes), chance
    H2 = (rows.X @ axes.mT) ** 2  # (p, n, m)
    C, S = len(law), law.shape[1] // 2 - 1
    known = Chance(law[:, 0], own[:, :C], law[:, 2 : S + 2], law[:, S + 2 :])
    u = xp.asarray(xp.cumsum(H2, axis=2)[..., :C] / law[:, 1], dtype=xp.float32)
    bins = xp.clip((u.view(xp.int32) >> BITS) - first_bin, 0, S - 1)
    bins = xp.where(rows.present[..., None] > 0, bins, S)  # rows that take no part, out of the way
    N = xp.cumsum(stacks.counted(bins, S + 1)[..., :S], axis=2)  # (p, C, S) rows within r,
    later = (  # and within more; beyond the last scale nothing is added
        xp.concatenate([N[..., steps:]] + [N[..., -1:]] * steps, axis=2)
        for steps in (effort.OCTAVE, k.OUTER * effort.OCTAVE)
    )
    counts = Counts(N, *later)
    local, T = contrasts(known, counts, xp)
    best = xp.argmax(T, axis=1)[:, None]
    excess, part = beyond_flat(counts, xp.exp(known.log_q), xp)
    c, _, n, _ = sizes.columns[..., None]
    seen = (pick(values, best) for values in (T, local, part, excess / n))
    own_place = 0 * best + xp.asarray(c - 1, dtype=best.dtype)
    ellipse = _ellipse(H2 + sizes.least**2, rows.present, sizes, own)
    return packed(*Staircase(best + 1, *seen), pick(N, own_place), *ellipse)


def _ellipse(H2: Array, present: Array, sizes: Sizes, own: Array) -> list[Array]:
    """Return how many rows are below and above the bounds, and the spreads along the axes.

    This is `perpend.structure.checks.beyond_ellipse` in the space of these axes alone: what is
    elliptical is so in every projection. The spreads' common factor does not matter.
    """
    here, t = present[:, None, :], len(TAILS)
    spread = here @ H2
    for _ in range(TYLER_STEPS):
        spread = (here / (H2 @ (1 / spread).mT).mT) @ H2  # (p, 1, m)
    normals = double(stacks.counting(H2, H2.shape[2]) <= sizes.columns[0])[:, None, :]
    thin = (H2 @ (normals / spread).mT) / (H2 @ (1 / spread).mT)  # (p, n, 1)
    few = thin < own[:, None, -2 * t : -t], thin > own[:, None, -t:]
    return [*(here @ double(rows) for rows in few), spread]

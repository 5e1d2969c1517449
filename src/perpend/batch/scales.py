"""At which scales rows concentrate, and on how many normals: `perpend.structure`, for stacks.

The axes are those of the smallest second moments of the probable inliers. One product gives the
heights along them; cumulated, their squares are the distances for every codimension at once.
"""

from functools import lru_cache

import numpy as np
from scipy import special

from perpend._typing import Array
from perpend.batch.arrays import counting, double, library, like, pick, transposed
from perpend.batch.finish import Rows
from perpend.batch.groups import Sizes
from perpend.structure import constants as k
from perpend.structure.checks import TAILS, TYLER_STEPS
from perpend.structure.cloud import BITS, Chance, Counts, Reference, radius
from perpend.structure.profile import Staircase, beyond_flat, contrasts


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
    H2 = (rows.X @ transposed(axes)) ** 2  # (p, n, m)
    stairs, own = _staircase(H2, rows.present, sizes, chance, first_bin)
    ellipse = _ellipse(H2 + sizes.least**2, rows.present, sizes, chance[1])
    words = [values.reshape(len(axes), -1) for values in (*stairs, own, *ellipse)]
    return library(axes).concatenate(words, axis=1)


def _staircase(
    H2: Array, present: Array, sizes: Sizes, chance: tuple[Array, Array], first_bin: int
) -> tuple[Staircase, Array]:
    xp, (law, own) = library(H2), chance
    C, S = len(law), law.shape[1] // 2 - 1
    known = Chance(law[:, 0], own[:, :C], law[:, 2 : S + 2], law[:, S + 2 :])
    u = xp.asarray(xp.cumsum(H2, axis=2)[..., :C] / law[:, 1], dtype=xp.float32)
    bins = xp.clip((u.view(xp.int32) >> BITS) - first_bin, 0, S - 1)
    bins = xp.where(present[..., None] > 0, bins, S)  # rows that take no part, out of the way
    N = xp.cumsum(_counted(bins, S + 1)[..., :S], axis=2)  # (p, C, S) rows within r,
    later = (  # and within more; beyond the last scale nothing is added
        xp.concatenate([N[..., steps:]] + [N[..., -1:]] * steps, axis=2)
        for steps in (k.OCTAVE, k.FAR * k.OCTAVE)
    )
    counts = Counts(N, *later)
    local, T = contrasts(known, counts, xp)
    best = xp.argmax(T, axis=1)[:, None]
    excess, part = beyond_flat(counts, xp.exp(known.log_q), xp)
    c, _, n, _ = sizes.columns[..., None]
    seen = (pick(values, best) for values in (T, local, part, excess / n))
    own_place = 0 * best + xp.asarray(c - 1, dtype=best.dtype)
    return Staircase(best + 1, *seen), pick(N, own_place)


def _counted(bins: Array, size: int) -> Array:
    """Return how often (p, C, size) each number below `size` is in the bins (p, n, C)."""
    xp, (p, _, C) = library(bins), bins.shape
    offset = size * (counting(bins, p * C) - 1).reshape(p, 1, C)
    at = xp.asarray(bins + offset, dtype=xp.int64).reshape(-1)
    if xp is np:
        return np.bincount(at, minlength=p * C * size).reshape(p, C, size).astype(float)
    # Whole numbers may be added in any order: the same bits every time.
    N = xp.zeros(p * C * size, dtype=xp.float64, device=bins.device)
    return N.scatter_add_(0, at, xp.ones_like(at, dtype=N.dtype)).reshape(p, C, size)


def _ellipse(H2: Array, present: Array, sizes: Sizes, own: Array) -> list[Array]:
    """Return how many rows are below and above the bounds, and the spreads along the axes.

    This is `perpend.structure.checks.beyond_ellipse` in the space of these axes alone: what is
    elliptical is so in every projection. The spreads' common factor does not matter.
    """
    here, t = present[:, None, :], len(TAILS)
    spread = here @ H2
    for _ in range(TYLER_STEPS):
        spread = (here / transposed(H2 @ transposed(1 / spread))) @ H2  # (p, 1, m)
    normals = double(counting(H2, H2.shape[2]) <= sizes.columns[0])[:, None, :]
    thin = (H2 @ transposed(normals / spread)) / (H2 @ transposed(1 / spread))  # (p, n, 1)
    few = thin < own[:, None, -2 * t : -t], thin > own[:, None, -t:]
    return [*(here @ double(rows) for rows in few), spread]

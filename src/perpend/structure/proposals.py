r"""Proposals for many columns or few rows, where descents are at a loss or take long.

A subspace of low dimension stands out in second moments: those of n rows without preferred
direction in R dimensions stay below

.. math:: \frac nR \Bigl(1 + \sqrt{R / n}\Bigr)^2

(Marchenko and Pastur). Where the largest one exceeds this, reweighting begins at the complement of
a few of the largest axes. From the smallest axes it finds what is near the spectral limit. And of n
rows that span R < n dimensions, those whose leverage is 1 depend on no others,

.. math:: w_i \, x_i^T G^+ x_i = 1,

so the others and their subspace are found without any search.

And is a found subspace the sum of two? Its rows tell, by whom they have anything in common with.
Let H be the projection onto the columns of the rows on it, in coordinates of the subspace (with a
column of ones where it is affine),

.. math:: H = Y (Y^T Y)^{-1} Y^T, \qquad \sum_j H_{ij}^2 = H_{ii},

so that :math:`P_{ij} = H_{ij}^2 / H_{ii}` are the probabilities of a walk from row to row. Where
these are rows of two subspaces that have only the origin in common, H is zero between the two, the
walk never leaves its part, and P has the eigenvalue 1 twice. Rows of one subspace mix at once.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.kernels import distances
from perpend.rows import RowSpan
from perpend.structure import constants as k
from perpend.structure.cloud import Axes, Cloud
from perpend.structure.ground import Ground

STANDS_OUT = 1.2  # times the largest second moment of rows without preferred direction
FEW_ROWS = 2.0  # rows per dimension of the span; with fewer, descents are at a loss
ALONE = 1e-4  # below a leverage of 1 at the most
MAX_SWEEP = 120  # steps of reweighting from a start that is hardly better than chance
FIRST_SIZES = 3  # codimensions from which reweighting looks before any path
TOO_MANY = 4096  # rows: the walk is a matrix of their square
POWER_STEPS = 40  # of the power method


def largest_axes(ground: Ground) -> Iterator[int]:
    """Propose what reweighting finds from the complements of a few of the largest axes.

    One start alone may run through a few outliers, so there are several.
    """
    R, n = ground.span.rank, ground.rows.shape[0]
    few = n < FEW_ROWS * R
    if R < 2 or not (few or R >= k.WIDE) or not stands_out(ground.span, n):
        return
    for d in dict.fromkeys((min(16, -(-R // 3)), min(32, R // 2), max(min(4, R // 6), 1))):
        ground.propose(ground.span.axes[:, : R - d])
        yield 1


def stands_out(span: RowSpan, n_rows: int) -> bool:
    """Say whether the largest second moment exceeds that of rows without preferred direction.

    Linearly independent rows have room in all features of the data, not only in their span.
    """
    largest = float(span.variances[-1] / np.sum(span.variances)) * n_rows
    return largest > STANDS_OUT * largest_by_chance(n_rows, room(span, n_rows))


def room(span: RowSpan, n_rows: int) -> int:
    """Return the number of dimensions in which rows without preferred direction would be."""
    return span.rank if span.rank < n_rows else span.n_features


def largest_by_chance(n_rows: float, room: int) -> float:
    """Return the largest second moment of unit rows without preferred direction."""
    return (1 + math.sqrt(n_rows / room)) ** 2


def dependent_rows(ground: Ground) -> Iterator[int]:
    """Propose the subspace of the rows that depend on one another, where others do not."""
    rows, span = ground.rows, ground.span
    if span.n_outside == 0 or ground.distinct.n_different <= span.rank + 1:
        return
    root = span.axes / np.sqrt(span.variances)  # (D', R): G^+ is this times its transpose
    kept = rows.scan(distances, root, keep=True).kept
    assert kept is not None
    leverage = ground.distinct.in_common * np.square(rows.gather(kept))
    # Weights that differ by orders of magnitude cost as many digits.
    rounding = max(ALONE, 10 * math.sqrt(float(np.finfo(rows.dtype).eps)))
    lone = np.flatnonzero(leverage > 1 - rounding)
    if not 0 < ground.distinct.part[lone].sum() < span.rank - 0.5:
        return
    # G^+ x of such a row is orthogonal to every other row.
    B = root @ (root.T @ rows.take(lone).T.astype(float))
    U, s, _ = np.linalg.svd(B / np.linalg.norm(B, axis=0), full_matrices=False)
    ground.add(ground.fitted(U[:, s > ALONE * s[0]]))
    yield 2  # no search, so nothing to be led astray


def smallest_axes(ground: Ground, sizes: list[int]) -> Iterator[int]:
    """Propose what reweighting finds from the axes of least variance, at these codimensions."""
    for c in sizes:
        ground.add(ground.fitted(ground.span.axes[:, :c], MAX_SWEEP, ground.span.variances))
        yield 1


def sweep_sizes(rank: int, near: int = 1) -> list[int]:
    """Return the codimensions from which to look, each at most 1.5 times another; nearest first.

    >>> sweep_sizes(30)
    [1, 2, 3, 4, 6, 8, 12, 16, 24]
    """
    sizes = {m * 2**j for j in range(rank.bit_length()) for m in (1, 3)} | {2}
    some = [size for size in sizes if size < rank]
    return sorted(some, key=lambda size: abs(math.log(size / near)))


# -- parts of a sum --------------------------------------------------------------------------------


class Part(NamedTuple):
    """One of two subspaces inside another."""

    codimension: int
    axes: Axes


def parts(
    cloud: Cloud, axes: Axes, c: int, members: Array, rng: np.random.Generator
) -> Iterator[Part]:
    """Yield the two parts of the members' subspace, the larger first, if there are two.

    `members` are numbers of rows.
    """
    d, enough = cloud.D - c, max(k.ENOUGH_FOR_WALK, 2 * (cloud.D - c))
    if len(members) > enough:
        members = np.sort(rng.choice(members, enough, replace=False, shuffle=False))
    if d < 2 or not d + int(cloud.affine) < len(members) <= TOO_MANY:
        return
    Y = cloud.about(axes.centre)[members] @ axes.A[:, c:]
    if cloud.affine:
        Y = np.hstack([Y, np.full((len(Y), 1), np.sqrt(np.mean(np.square(Y))))])
    # Rows of any weight and length show equally well where the others are.
    Y /= np.maximum(np.linalg.norm(Y, axis=1, keepdims=True), np.finfo(float).tiny)
    Q, R = np.linalg.qr(Y)
    size = np.abs(np.diag(R))
    if np.min(size) <= 1e-12 * np.max(size):
        return  # the chosen rows lie on less, exactly
    eigenvalue, first = _second(np.square(Q @ Q.T), rng)
    if eigenvalue < k.APART:
        return
    for part in sorted((first, ~first), key=np.count_nonzero, reverse=True):
        kept = round(float(np.sum(np.square(Q[part])))) - int(cloud.affine)
        if 0 < kept < d:
            some = cloud.X[members[part]]
            centre = some.mean(axis=0) if cloud.affine else axes.centre
            P = (some - centre) @ axes.A[:, c:]
            _, turned = np.linalg.eigh(P.T @ P)
            A = np.hstack([axes.A[:, :c], axes.A[:, c:] @ turned])
            yield Part(c + d - kept, Axes(centre, A, axes.variances))


def _second(H2: Array, rng: np.random.Generator) -> tuple[float, Array]:
    """Return the second eigenvalue of the walk, and which rows (n,) are on one side of it.

    D^(-1/2) H2 D^(-1/2), with the row sums D, is symmetric and has the eigenvalues of P; its first
    eigenvector is D^(1/2) 1. The power method finds the second.
    """
    root = np.sqrt(np.maximum(H2.sum(axis=1), np.finfo(float).tiny))
    S = H2 / root
    S /= root[:, None]
    first = root / np.linalg.norm(root)
    v, eigenvalue = rng.standard_normal(len(S)), 0.0
    for _ in range(POWER_STEPS):
        v -= first * (first @ v)
        v /= max(float(np.linalg.norm(v)), np.finfo(float).tiny)
        after = S @ v
        eigenvalue, v = float(v @ after), after
    return eigenvalue, v > 0

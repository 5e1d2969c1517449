"""What scans say about rows: their span, their distances to a subspace, and which are equal.

A direction that is orthogonal to every row is a normal and needs no search. If the rows span a
smaller space, everything is solved in coordinates of that space: the same result at lower cost.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from perpend._typing import Array, Kernel
from perpend.exceptions import InputError
from perpend.geometry import complement
from perpend.kernels import (
    distance_weighted_gram,
    distances,
    gram,
    grouped_distances,
    heights,
    mapped_gram,
    residuals,
)
from perpend.rows.source import RowSource, Scan

ROWS_PER_FEATURE = 0.5  # up to so many, the rows are factorised, not their D x D moments
SMALL_SPAN = 0.9  # share of the features: if the rows span no more, they are mapped to their span
FEW_TO_TURN = 4  # rows per feature: up to so many, mapping them costs less than their moments
FEW_COMPONENTS = 3  # times fewer than normals: components take two products and a difference


class RowSpan(NamedTuple):
    """Where the rows live. Subgradients never leave the span, so neither do descents in it.

    The rows have D' features: the D of the data, or, once they are turned into their span, R.
    """

    basis: Array  # (D', R) orthonormal; the identity if the rows span everything
    rest: Array  # (D, D - R) orthonormal: orthogonal to every row
    moments: Callable[[], Array]  # forms (D, D): sum of w x x.T
    axes: Array  # (D', R) principal axes, smallest second moment first
    variances: Array  # (R,) the second moments along them
    rounding: float  # second moments up to this one are rounding errors
    rotation: Array | None = None  # (D, R) from the rows' coordinates to the data's; None: the same

    @property
    def rank(self) -> int:
        """The dimension of the span."""
        return int(self.basis.shape[1])

    @property
    def n_features(self) -> int:
        """The dimension of the space of the data."""
        return len(self.rest)

    @property
    def n_outside(self) -> int:
        """The number of directions that are orthogonal to every row."""
        return int(self.rest.shape[1])

    @property
    def n_idle_columns(self) -> int:
        """The number of columns that are zero or a multiple of an earlier one.

        They lower the rank of the rows, but say nothing about which rows belong together.
        """
        moments = self.moments()
        size = np.sqrt(np.diag(moments))
        active = size > 0
        scaled = moments[np.ix_(active, active)] / np.outer(size[active], size[active])
        multiples = np.triu(np.abs(scaled) > 1 - 1e-12, k=1)
        return int(np.sum(~active) + np.sum(np.any(multiples, axis=0)))

    @property
    def is_smaller(self) -> bool:
        """Whether the rows span less than the space, not only because of idle columns."""
        return self.n_outside > 0 and self.rank + self.n_idle_columns < self.n_features

    def inside(self, B: Array) -> Array:
        """Return the part of the directions B (D, k) inside the span, in the rows' coordinates."""
        if self.rotation is not None:
            return self.rotation.T @ B
        return B if self.n_outside == 0 else self.basis @ (self.basis.T @ B)

    def from_span(self, V: Array) -> Array:
        """Return directions (R, k) of the span in the rows' coordinates."""
        return V if len(self.basis) == self.rank else self.basis @ V

    def in_data(self, B: Array) -> Array:
        """Return directions B (D', k) in the coordinates of the data."""
        return B if self.rotation is None else self.rotation @ B

    def some_rest(self, k: int) -> tuple[Array, Array]:
        """Split `rest` into k directions and the others.

        The basis of `rest` depends on rounding. A caller who wants some of it gets the directions
        next to the coordinate axes that lie farthest inside.
        """
        rest = self.rest
        if k < self.n_outside:
            Q, R, _ = linalg.qr(rest @ rest.T, pivoting=True)  # depends on the span of rest alone
            rest = Q[:, : self.n_outside] * np.where(np.diag(R)[: self.n_outside] < 0, -1.0, 1.0)
        return rest[:, :k], rest[:, k:]


def row_span(rows: RowSource) -> RowSpan:
    """Find the span of the rows in one scan; in single precision it may take two.

    That of few rows is found from the rows themselves. The squares of their singular values are the
    eigenvalues of the moments, so the tolerance for rounding is the same in both.
    """
    n, D = rows.shape
    few = n <= ROWS_PER_FEATURE * D
    if few:
        weight = rows.gather(rows.weights).astype(float)
        present = np.flatnonzero(weight > 0)
        half = np.sqrt(weight[present])[:, None] * rows.take(present).astype(float)
        _, s, A = np.linalg.svd(half, full_matrices=False)
        variances, axes = s[::-1] ** 2, A[::-1].T
    else:
        moments = rows.scan(gram).product
        variances, axes = np.linalg.eigh(moments)
    # Rounding errors of the rows are below 64 eps of the largest coordinate. In double precision
    # the second moments have larger rounding errors of their own, and those decide.
    largest, tolerance = float(np.max(variances, initial=0.0)), rank_tolerance(rows.dtype)
    rounding = max(tolerance**2, rank_tolerance(np.float64)) * largest
    weak = variances <= tolerance * largest
    if not few and np.any(weak) and rows.dtype == np.float32:
        # Next to large coordinates the squares of small ones are rounded away. On their own they
        # keep their digits.
        variances[weak], A = np.linalg.eigh(rows.scan(mapped_gram, axes[:, weak]).product)
        axes[:, weak] = axes[:, weak] @ A
    inside = variances > rounding
    if not np.any(inside):
        raise InputError(
            "Every row of X is zero or has weight zero, so there is no direction to fit. "
            "Pass some rows that are not zero."
        )
    return RowSpan(
        basis=np.eye(D) if np.all(inside) and not few else axes[:, inside],
        rest=complement(axes[:, inside]) if few else axes[:, ~inside],
        moments=(lambda: half.T @ half) if few else (lambda: moments),
        axes=axes[:, inside],
        variances=variances[inside],
        rounding=rounding,
    )


def in_their_span(rows: RowSource) -> tuple[RowSource, RowSpan]:
    """Find the span of the rows, and map them to it if that makes them clearly shorter.

    Few rows are mapped to any span that is smaller than the space: otherwise their D x D moments
    would have to be mapped in every step. Lengths and angles stay as they are. The rows are
    returned unchanged if the copy is over the source's memory budget.
    """
    span = row_span(rows)
    cheap = rows.shape[0] <= FEW_TO_TURN * span.n_features
    if span.rank > (span.n_features - 1 if cheap else SMALL_SPAN * span.n_features):
        return rows, span
    turned = rows.mapped(span.axes)
    if turned is None:
        return rows, span
    same = np.eye(span.rank)
    return turned, span._replace(basis=same, axes=same, rotation=span.axes)


def rank_tolerance(dtype: Any) -> float:
    """Return the eigenvalue, relative to the largest, below which second moments are rounding."""
    return 64 * float(np.finfo(dtype).eps)


# -- distances -------------------------------------------------------------------------------------


def scan_distances(rows: RowSource, V: Array, U: Array | None = None) -> Scan:
    """Keep the distance of each row to the complement of the orthonormal V (D, c).

    `U` is an orthonormal basis of that complement, or of the part that the rows fill, if it is
    known.
    """
    return rows.scan(*_measure(V, U), keep=True)


def scan_grouped_distances(rows: RowSource, V: Array, edges: Array, U: Array | None = None) -> Scan:
    """Keep these distances and give their histogram over the bins that end at the edges."""
    return rows.scan(grouped_distances, *_measure(V, U), edges, keep=True)


def scan_weighted_gram(rows: RowSource, V: Array, table: Array, edges: Array) -> Scan:
    """Give sum_i u_i x_i x_i.T and sum_i u_i, with the table's value u_i at the row's distance."""
    return rows.scan(distance_weighted_gram, *_measure(V), table, edges)


def _measure(V: Array, U: Array | None = None) -> tuple[Kernel, Array]:
    """Return the cheaper kernel for distances to the complement of V, and its basis."""
    U = few_components(V, U)
    return (distances, V) if U is None else (residuals, U)


def few_components(V: Array, known: Array | None = None) -> Array | None:
    """Return the complement (D, D - c) of the orthonormal V (D, c), or None if it is not small.

    If it is not `known`, random vectors are projected off V, which costs less than completing a
    basis of many columns. The second projection removes the rounding errors of the first.
    """
    D, c = V.shape
    if c < FEW_COMPONENTS * (D - c) or c == D:
        return None
    if known is not None:
        return known
    A = np.random.default_rng(0).standard_normal((D, D - c))  # any vectors do, always the same
    for _ in range(2):
        A, _ = np.linalg.qr(A - V @ (V.T @ A))
    return A


# -- equal rows ------------------------------------------------------------------------------------


class Distinct(NamedTuple):
    """Which rows are equal."""

    share: Array  # (n,) how much each row counts as evidence
    in_common: Array  # (n,) the weight of each row and of those that are equal to it
    part: Array  # (n,) of that weight which is the row's own
    first: Array  # (n,) bool: one row of each kind

    @property
    def n_different(self) -> float:
        """The number of rows that differ, whatever they weigh."""
        return float(self.part.sum())

    def of_kind(self, rows: Array) -> tuple[Array, Array]:
        """Return the weight and the evidence of these rows (m,) with all that are equal to them.

        The weights are relative to their mean.
        """
        weight = self.in_common[rows]
        return weight / np.mean(weight), self.share[rows] / self.part[rows]


def distinct_rows(rows: RowSource, rng: np.random.Generator) -> Distinct:
    """Say how much each row counts as evidence.

    Rows that are equal up to sign count together like one row, however many there are and however
    heavy; and like less than one if they weigh less than a typical distinct row. So data in which
    every row occurs m times, or has weight m, are the same evidence as the data once.

    Equal rows have equal heights over a random direction; different ones almost surely do not.
    """
    b = rng.standard_normal(rows.shape[1])
    kept = rows.scan(heights, b / np.linalg.norm(b), keep=True).kept
    assert kept is not None
    height = rows.gather(kept).astype(float) * rows.gather(rows.lengths)
    weight = rows.gather(rows.weights).astype(float)
    present = np.flatnonzero(weight > 0)
    order = present[np.argsort(height[present], kind="stable")]
    tolerance = 4 * np.finfo(rows.dtype).eps * height[order]
    group = np.cumsum(np.diff(height[order], prepend=-np.inf) > tolerance) - 1
    total = np.bincount(group, weight[order])
    share, in_common, part = np.zeros((3, len(weight)))
    share[order] = weight[order] / np.maximum(total, np.median(total))[group]
    in_common[order] = total[group]
    part[order] = weight[order] / total[group]
    first = np.zeros(len(weight), dtype=bool)
    first[order[np.diff(group, prepend=-1) > 0]] = True
    return Distinct(share, in_common, part, first)

r"""The rows of a linear search: in their span, in memory as a cloud, and refined by the law.

The law of outliers without preferred direction (`perpend.structure.law`) is the most efficient way
from normals that are nearly right to the best ones, and near the spectral limit the only one. It
proposes; whether what it finds is a subspace is for the profile to say.

With many columns or few rows, descents are at a loss or take long. But a subspace of low dimension
stands out in second moments: those of n rows without preferred direction in R dimensions stay below

.. math:: \frac nR \Bigl(1 + \sqrt{R / n}\Bigr)^2

(Marchenko and Pastur). Where the largest one exceeds this, reweighting begins at the complement of
a few of the largest axes. From the smallest axes it finds what is near the spectral limit. And of n
rows that span R < n dimensions, those whose leverage is 1 depend on no others,

.. math:: w_i \, x_i^T G^+ x_i = 1,

so the others and their subspace are found without any search.
"""

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from perpend._typing import Array, Auto
from perpend.kernels import distances
from perpend.rows import Distinct, RowSource, RowSpan, distinct_rows, in_their_span
from perpend.solvers import Callback, Fit
from perpend.structure import constants as k
from perpend.structure import effort
from perpend.structure.cloud import Axes, Cloud, sample_size
from perpend.structure.labels import misfit_of, with_threshold
from perpend.structure.law import distance_edges
from perpend.structure.layers import Histogram, find_layers
from perpend.structure.profile import Plateau, Profile, clearness
from perpend.structure.reweighted import fit_subspace

STANDS_OUT = 1.2  # times the largest second moment of rows without preferred direction
FEW_ROWS = 2.0  # rows per dimension of the span; with fewer, descents are at a loss
ALONE = 1e-4  # below a leverage of 1 at the most
MAX_SWEEP = 120  # steps of reweighting from a start that is hardly better than chance
MAX_FINISH = 60  # steps of reweighting
FEW_STEPS = 4  # the same on the way, where a candidate that takes longer may come again
ALIKE = 1e-3  # of the largest variance: along axes with less, rows vary as good as not at all
MAX_REVISIONS = 4  # of the codimension, by the profile


class Ground:
    """Rows in their span; everything is computed when it is first needed.

    Of a given codimension, normals outside the span are taken first: `n_rest` of these, and `fixed`
    inside of it. Both are None where it is unknown.
    """

    def __init__(
        self,
        rows: RowSource,
        rng: np.random.Generator,
        callback: Callback | None = None,
        codimension: int | Auto = "auto",
    ) -> None:
        self.given, self.rng, self.callback, self.codimension = rows, rng, callback, codimension
        self.rows, self.span = in_their_span(rows)
        self.fixed = self.n_rest = None
        if codimension != "auto":
            self.n_rest = min(codimension, self.span.n_outside)
            self.fixed = codimension - self.n_rest

    @property
    def n_outside(self) -> int:
        """The normals outside the span that are taken."""
        return self.span.n_outside if self.n_rest is None else self.n_rest

    @cached_property
    def distinct(self) -> Distinct:
        """Which rows are equal."""
        return distinct_rows(self.given, self.rng)

    @property
    def n_distinct(self) -> float:
        """The number of rows, without counting equal ones twice."""
        return float(self.distinct.share.sum())

    @cached_property
    def profile(self) -> Profile:
        """What a sample in memory shows."""
        return Profile(self.cloud(sample_size(self.span.rank)), self.callback)

    def cloud(self, size: int | None = None) -> Cloud:
        """Return up to so many of the rows in memory, in coordinates of their span."""
        chosen = np.flatnonzero(self.distinct.first)  # equal rows are one, with their weight
        if size is not None and len(chosen) > size:
            chosen = np.sort(self.rng.choice(chosen, size, replace=False, shuffle=False))
        X = self.rows.take(chosen).astype(float)
        if X.shape[1] > self.span.rank:
            X = X @ self.span.basis
        weight, share = self.distinct.of_kind(chosen)
        lengths = self.rows.gather(self.rows.lengths).astype(float)[chosen]
        floor = float(distance_edges(1.0, self.rows.dtype)[0])
        how: dict[str, Any] = {"weight": weight, "share": share, "lengths": lengths}
        if self.span.n_outside:
            how["basis"] = self.span.in_data(self.span.from_span(np.eye(self.span.rank)))
        return Cloud(X, affine=False, floor=floor, n_outside=self.span.n_outside, **how)

    def axes_of(self, fit: Fit) -> Axes:
        """Return the axes of a fit as the cloud sees them."""
        span = self.span
        A = fit.axes if len(fit.axes) == span.rank else span.basis.T @ fit.axes
        return Axes(np.zeros(span.rank), A, fit.spectrum)

    def normals(self, axes: Axes, c: int) -> Array:
        """Return the first of these axes, normals (D', c), as the rows see them."""
        return self.span.from_span(axes.A[:, :c])

    # -- refining by the law -----------------------------------------------------------------------

    def fitted(
        self, start: Array | Fit, max_steps: int = MAX_FINISH, variances: Array | None = None
    ) -> Fit:
        """Refine normals (D', c) by the law; with no steps, only evaluate them.

        The start may be axes of all rows, with their `variances` (R,).
        """
        return fit_subspace(
            self.rows,
            start,
            self.span.basis,
            n_distinct=self.n_distinct,
            max_iter=max_steps,
            variances=variances,
            callback=self.callback,
        )

    def add(self, fit: Fit) -> Fit:
        """Show a fit to the profile, with the threshold that suits its outliers."""
        fit = self.with_threshold(fit)
        lawful = self.law_holds(fit) and self._is_single(fit)
        self.profile.add(self.axes_of(fit), fit, lawful=lawful)
        return fit

    def propose(self, V: Array) -> tuple[Fit, Plateau | None]:
        """Go from V (D', c), of descents on their way, to the codimension that the profile shows.

        The variances of the rows that are near correct c first. Also return the plateau that was
        chosen last; the fit has converged where that is clear.
        """
        start = self.fitted(V, 0)
        t = np.maximum(start.spectrum, ALIKE * start.spectrum[-1])
        c = int(np.argmax(t[1:] / t[:-1])) + 1  # where the variances rise most
        fit = self.fitted(start if c == V.shape[1] else start.axes[:, :c], FEW_STEPS)
        for _ in range(MAX_REVISIONS):
            fit = self.add(fit)
            chosen = self.profile.chosen()
            if chosen is None:
                break
            if chosen.c != fit.V.shape[1]:
                there = self.normals(self.profile.axes_at(chosen), chosen.c)
                fit = self.fitted(there, FEW_STEPS)
            elif fit.converged or clearness(chosen, self.profile.plateaus()) < 1:
                break
            else:
                fit = self.fitted(fit)
        return fit, chosen

    def law_holds(self, fit: Fit) -> bool:
        """Say whether there are outliers beside a converged fit, and they follow the law."""
        groups = fit.groups
        if not fit.converged or groups.is_exact:
            return fit.converged
        norms, c, rank = self.rows.norms, fit.V.shape[1], self.span.rank
        misfit = misfit_of(groups, norms, c, rank, self._distinct)
        few = (1 - groups.share) * self.n_distinct < k.ROWS_IN_BIN  # to say that they follow it
        return misfit <= k.MISFIT and not (few and groups.share > k.ALL_ROWS)

    def _is_single(self, fit: Fit) -> bool:
        """Say whether the members are of one kind, and not some thinner than the others."""
        groups = fit.groups
        counts = groups.counts * self._distinct
        seen, least = Histogram(groups.edges, counts), k.LEAST_SHARE * float(counts.sum())
        end = 1.1 * groups.threshold
        return groups.is_exact or not find_layers(seen, fit.V.shape[1], least, r_max=end)

    def with_threshold(self, fit: Fit) -> Fit:
        """Return a fit whose threshold makes the fewest wrong labels."""
        c, norms = fit.V.shape[1], self.rows.norms
        groups = with_threshold(fit.groups, norms, c, self.span.rank - c, self._distinct)
        return fit._replace(groups=groups)

    @property
    def _distinct(self) -> float:
        """What a row's weight counts as evidence."""
        return self.n_distinct / self.rows.total_weight


# -- proposals -------------------------------------------------------------------------------------


def largest_axes(ground: Ground) -> Iterator[int]:
    """Propose what reweighting finds from the complements of a few of the largest axes.

    That is where the largest one stands out. One start alone may run through a few outliers, so
    there are several.
    """
    span, R, n = ground.span, ground.span.rank, ground.rows.shape[0]
    if R < 2 or (n >= FEW_ROWS * R and R < effort.WIDE):
        return
    largest = float(span.variances[-1] / np.sum(span.variances)) * n
    if largest <= STANDS_OUT * largest_by_chance(n, room(span, n)):
        return
    for d in dict.fromkeys((min(16, -(-R // 3)), min(32, R // 2), max(min(4, R // 6), 1))):
        ground.propose(span.axes[:, : R - d])
        yield 1


def room(span: RowSpan, n_rows: int) -> int:
    """Return the number of dimensions in which rows without preferred direction would be.

    Linearly independent rows have room in all features of the data, not only in their span.
    """
    return span.rank if span.rank < n_rows else span.n_features


def largest_by_chance(n_rows: float, room: int) -> float:
    """Return the largest second moment of unit rows without preferred direction."""
    return (1 + math.sqrt(n_rows / room)) ** 2


def largest_fall(values: Array, *, then_zero: bool, luck: float = 1.0) -> int:
    """Return after how many of the values (R,), largest first and positive, they fall most.

    `then_zero`: these are all that rows have which span less than the space. The next value would
    be zero, and the fall after the last one is the largest of all: all R count. But that is true of
    any exact relation between columns, so a fall inside comes first if no cloud has one like it.
    `luck` is how much larger than those of a cloud's axes falls may be, as extremes of many.
    """
    falls = values[:-1] / values[1:]
    if len(falls) == 0 or (then_zero and np.max(falls) < luck * k.GAP**2):  # GAP is of lengths
        return len(values)
    return int(np.argmax(falls)) + 1


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
    """Return the codimensions to start from, each at most 1.5 times another; nearest first.

    >>> sweep_sizes(30)
    [1, 2, 3, 4, 6, 8, 12, 16, 24]
    """
    sizes = {m * 2**j for j in range(rank.bit_length()) for m in (1, 3)} | {2}
    some = [size for size in sizes if size < rank]
    return sorted(some, key=lambda size: abs(math.log(size / near)))

r"""Iteratively reweighted least squares with a given number of normals: the part that is shared.

Rows are measured by ||A.T x|| and weighted by a power of it, and the principal axes and variances
of the weighted second moments give the next A:

.. math:: \sum_i \frac{x_i x_i^T}{\max(\|A^T x_i\|, \delta)^{2-p}}
    = U \operatorname{diag}(\lambda)\, U^T, \qquad A \leftarrow \mathrm{measure}(\lambda, U)

A method says how A follows from axes and variances, how the rows are weighted, and what must stop
changing. The normals are the axes of least variance.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from perpend._typing import Array
from perpend.kernels import distances, power_weighted_gram
from perpend.rows import RowSource, RowSpan
from perpend.solvers.loop import Callback, Directions, ended, iterate

SUM_ROUNDING = 16.0  # times eps: what rounding errors of sums may change between two steps
NO_LENGTH = 1e-18  # of the largest row: no direction; its square is a number in single precision
LOWEST = float(np.finfo(float).eps)  # of the largest variance: smaller ones are rounding errors


class Weighted(NamedTuple):
    """Where the reweighting is."""

    V: Array  # (D, c) the axes of least variance
    variances: Array  # (R,) ascending: those of the moments that A was made from
    A: Array  # (D, k)
    objective: float
    moments: Array  # (D, D) of the rows weighted by A
    floor: float  # the least ||A.T x|| that counts
    change: float = np.inf


Measure: TypeAlias = Callable[[Array, Array], Array]
"""From variances (R,) ascending, and axes (m, R), to A (m, k): columns chosen, scaled or mixed."""

Weigh: TypeAlias = Callable[[Array, float], tuple[float, Array, float]]
"""From A and the last floor to the objective, the weighted moments and the floor."""


def reweight(
    span: RowSpan,
    c: int,
    measure: Measure,
    weigh: Weigh,
    change: Callable[[Weighted, Weighted], float],
    *,
    start: Array | None = None,
    max_iter: int,
    tol: float,
    callback: Callback | None = None,
) -> tuple[Directions, Weighted]:
    """Repeat until `change` is at most `tol`; return c normals inside the span, and the last state.

    The first A is that of all rows with equal weights, if no `start` (D, k) is given.
    """

    def step(old: Weighted) -> Weighted:
        # Weights up to 1/delta make huge moments along the subspace and leave those across it
        # small. The error of eigh is relative to the huge ones, but so is the gap between the
        # two, so the space across is found to rounding all the same.
        M = span.basis.T @ old.moments @ span.basis
        variances, axes = np.linalg.eigh((M + M.T) / 2)
        variances = np.maximum(variances, max(LOWEST * variances[-1], np.finfo(float).tiny))
        A = span.basis @ measure(variances, axes)
        new = Weighted(span.basis @ axes[:, :c], variances, A, *weigh(A, old.floor))
        return new._replace(change=change(old, new))

    A = measure(span.variances, span.axes) if start is None else start
    first = Weighted(span.axes[:, :c], span.variances, A, *weigh(A, np.inf))
    run = iterate(step, first, max_steps=max_iter, tol=tol, stage="reweighting", callback=callback)
    return ended(run, run.state.V, tol), run.state


def tyler(
    rows: RowSource,
    span: RowSpan,
    c: int,
    measure: Measure,
    *,
    max_iter: int,
    tol: float,
    callback: Callback | None,
) -> Directions:
    r"""Weigh by 1 / r^2 = 1 / (x.T S^-1 x), for A A.T the inverse of a scatter matrix S.

    The objective is the total weight times
    :math:`\exp(\frac1n \sum_i \log x_i^T S^{-1} x_i) \det(S)^{1/D}`.
    """
    power = by_power(rows, NO_LENGTH, 0.0)

    def weigh(A: Array, before: float) -> tuple[float, Array, float]:
        logs, moments, floor = power(A, before)
        total = rows.total_weight
        log_det = -float(np.mean(np.log(np.einsum("ij,ij->j", A, A))))  # columns are orthogonal
        return total * float(np.exp(2 * logs / total + log_det)), moments, floor

    return reweight(
        span, c, measure, weigh, _scatter_change, start=span.basis, max_iter=max_iter,
        tol=attainable(tol, rows), callback=callback,
    )[0]  # fmt: skip


def inverse_root(ridge: float) -> Measure:
    """Measure rows by (x.T (S + ridge I)^-1 x)^(1/2), with S the moments with trace one."""
    return lambda variances, axes: axes / np.sqrt(variances / np.sum(variances) + ridge)


def first_axes(c: int) -> Measure:
    """Measure rows by their distance to the complement of the c axes of least variance."""
    return lambda _, axes: axes[:, :c]


# -- weights ---------------------------------------------------------------------------------------


def by_power(rows: RowSource, delta: float, p: float = 1.0) -> Weigh:
    """Weigh by max(r, delta)^(p-2) with r = ||A.T x||; the objective is the sum of r^p."""

    def weigh(A: Array, _: float) -> tuple[float, Array, float]:
        scan = rows.scan(power_weighted_gram, A, np.asarray(delta, dtype=rows.dtype), p)
        return float(scan.total[0]), scan.product, delta

    return weigh


# -- what must stop changing -----------------------------------------------------------------------


def decrease(old: Weighted, new: Weighted) -> float:
    """By how much the objective fell, relatively."""
    return 1 - new.objective / old.objective if old.objective > 0 else 0.0


def turn(old: Weighted, new: Weighted) -> float:
    """The sine of the largest angle by which the normals turned."""
    return float(np.linalg.norm(new.V - old.V @ (old.V.T @ new.V), 2))


def _scatter_change(old: Weighted, new: Weighted) -> float:
    """The Frobenius norm of the change of the moments, with trace one."""
    a, b = (one.moments / np.einsum("ii", one.moments) for one in (old, new))
    return float(np.sqrt(np.vdot(a - b, a - b)))


def attainable(tol: float, rows: RowSource) -> float:
    """Return the tolerance, or what rounding errors leave of it."""
    return max(tol, SUM_ROUNDING * float(np.finfo(rows.dtype).eps))


# -- distances, and their quantiles ----------------------------------------------------------------


def scanned_distances(rows: RowSource, V: Array) -> Array:
    """Return the distances (n,) of the rows to the complement of V (D, c), in memory."""
    kept = rows.scan(distances, V, keep=True).kept
    assert kept is not None
    return rows.gather(kept).astype(float)


def weighted_quantile(values: Array, weight: Array, share: float) -> float:
    """Return the least of the values (n,) that at least this share of the weight is up to."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weight[order], dtype=float)
    return float(values[order][np.searchsorted(reached, share * reached[-1])])

r"""Reweighted least squares at a known codimension: the finish.

.. math:: V \leftarrow \text{the } c \text{ smallest eigenvectors of } \sum_i u_i x_i x_i^T

where u_i is the probability, under the two-group model of the distances, that row i is an inlier.
This is expectation-maximisation for "a subspace with Gaussian noise among outliers without
preferred direction": the weights sharpen by themselves as the noise estimate falls. Where the
inliers are exact, they end at zero and one and V is exact to rounding; with noise it is as good as
PCA on the true inliers, up to what can't be told apart.
"""

from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.kernels import weighted_gram
from perpend.rows import RowSource, Scan
from perpend.solvers.loop import Callback, Status, iterate
from perpend.solvers.result import Fit
from perpend.solvers.sides import scan_grouped_distances
from perpend.solvers.two_groups import TwoGroups, distance_edges, two_groups


class _State(NamedTuple):
    V: Array  # (D, c)
    groups: TwoGroups  # by the distance to V, or to what V was before its last, tiny turn
    spectrum: Array  # (R,) ascending
    axes: Array  # (D, R) principal axes of the inliers
    objective: float
    change: float


def fit_subspace(
    rows: RowSource,
    V: Array,
    span: Array,
    *,
    max_iter: int,
    tol: float = 1e-3,
    callback: Callback | None = None,
) -> Fit:
    """Refine the normals V (D, c) inside `span` (D, R); with ``max_iter=0`` only look at them.

    It is finished when V turns by less than `tol` times the inliers' scale: a thousandth of the
    noise is far below the statistical error, and of rounding errors it is nothing.
    """

    def look(V: Array, change: float) -> _State:
        groups, spectrum, axes = _inliers(rows, V, span)
        return _State(V, groups, spectrum, axes, groups.scale, change)

    def step(state: _State) -> _State:
        V = state.axes[:, : state.V.shape[1]]
        change = turned_to(state.V, state.axes) * float(rows.norms[-1]) / state.groups.scale
        # A turn that is too small to count changes no distance either: the rows need not be asked.
        return state._replace(V=V, change=change) if change <= tol else look(V, change)

    start = look(V, np.inf)
    run = iterate(step, start, max_steps=max_iter, tol=tol, stage="finish", callback=callback)
    end = run.state
    return Fit(
        end.V, end.groups, end.spectrum, end.axes, run.n_steps, run.status is Status.CONVERGED
    )


def _inliers(rows: RowSource, V: Array, span: Array) -> tuple[TwoGroups, Array, Array]:
    """Tell the two groups apart and return the inliers' second moments along their axes."""
    c, R = V.shape[1], span.shape[1]
    edges = distance_edges(float(rows.norms[-1]), rows.dtype)
    look = scan_grouped_distances(rows, V, edges)
    assert look.kept is not None
    groups = two_groups(np.ravel(look.product), edges, rows.norms, c, R - c)
    scan = rows.scan(weighted_gram, groups.posterior, edges, using=(look.kept,))
    return groups, *principal_axes(scan, span)


def principal_axes(scan: Scan, span: Array) -> tuple[Array, Array]:
    """Return the second moments (R,), ascending, and the axes (D, R) of a weighted gram matrix."""
    moments = scan.product / max(scan.total[0], np.finfo(float).tiny)
    if len(span) == span.shape[1]:
        spectrum, axes = np.linalg.eigh(moments)
    else:
        spectrum, axes = np.linalg.eigh(span.T @ moments @ span)
        axes = span @ axes
    return np.maximum(spectrum, 0.0), axes


def turned_by(V: Array, W: Array) -> float:
    """Return the sine of the largest angle by which W (D, c) leaves the span of V (D, c)."""
    return float(np.linalg.norm(W - V @ (V.T @ W), 2))


def turned_to(V: Array, axes: Array) -> float:
    """Return the sine of the largest angle between V (D, c) and the first c of the axes (D, R).

    V lies in the span of the axes, so what of it is not along the first c is along the others; the
    smaller of the two products says it.
    """
    c, R = V.shape[1], axes.shape[1]
    if c < R - c:
        return turned_by(V, axes[:, :c])
    return float(np.linalg.norm(V.T @ axes[:, c:], 2)) if c < R else 0.0

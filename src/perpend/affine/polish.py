r"""The polish: expectation-maximisation for an affine subspace in the space of the data.

.. math::
    \mu \leftarrow \frac{\sum_i u_i z_i}{\sum_i u_i}, \qquad
    W \leftarrow \text{the } c \text{ smallest eigenvectors of }
    \sum_i u_i (z_i - \mu)(z_i - \mu)^T

where u_i is the probability, under the two-group model of the Euclidean distances, that row i is an
inlier. It is `perpend.solvers.reweighted` with a location: without noise the answer is exact to
rounding, with noise it is as good as centred PCA on the true inliers, up to what can't be told
apart.
"""

from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.affine.homogeneous import Flat
from perpend.kernels import grouped_distances, weighted_gram
from perpend.rows import RowSource
from perpend.solvers import (
    TwoGroups,
    distance_edges,
    iterate,
    label_threshold,
    outlier_law,
    row_span,
    turned_by,
    two_groups,
)
from perpend.solvers.loop import Callback

MAX_STEPS = 20  # from an answer that is finished in homogeneous coordinates
TOL = 1e-3  # in units of the inliers' scale
CYCLE = 0.05  # the same; rows at the edge of a bin may make the steps go round in a circle


class Polished(NamedTuple):
    """An affine subspace and its inliers, in the coordinates of the view."""

    flat: Flat
    groups: TwoGroups | None  # None where all rows lie on the subspace
    mean: Array  # (D,) of the inliers, on the subspace
    variances: Array  # (D,) ascending: of the inliers along their principal axes about the mean
    axes: Array  # (D, D) these axes
    converged: bool
    sizes: tuple[int, int]  # numbers of normals and of other directions in the lifted rows' span

    @property
    def spread(self) -> float:
        """The typical size of one coordinate of the inliers about their mean."""
        return float(np.sqrt(np.mean(self.variances)))


class _State(NamedTuple):
    flat: Flat
    groups: TwoGroups | None
    mean: Array
    variances: Array
    axes: Array
    objective: float
    change: float


def polish(
    rows: RowSource, flat: Flat, *, max_steps: int = MAX_STEPS, callback: Callback | None = None
) -> Polished:
    """Refine an affine subspace among lifted rows that are not normalised.

    With ``max_steps=0`` its place stays, and only the inliers are looked at.
    """
    D, c = flat.W.shape
    rank = row_span(rows).rank
    inside = c - (D + 1 - rank)  # normals that not all rows are orthogonal to
    edges = distance_edges(float(rows.norms[-1]), rows.dtype)

    def look(flat: Flat, change: float) -> _State:
        scan = rows.scan(grouped_distances, flat.lifted, edges, keep=True)
        assert scan.kept is not None
        groups, table = None, np.ones(len(edges))
        if 0 < inside < rank:
            counts = np.ravel(scan.product)
            groups = two_groups(counts, edges, rows.norms, inside, rank - inside)
            table = groups.posterior
        gram = rows.scan(weighted_gram, table, edges, using=(scan.kept,))
        scale = edges[0] if groups is None else groups.scale
        return _State(flat, groups, *_moments(gram.product), float(scale), change)

    def step(state: _State) -> _State:
        W = state.axes[:, :c]
        flat = Flat(W, -(state.mean @ W))
        radius = float(np.sqrt(np.sum(state.variances)))
        shift = float(np.linalg.norm(state.mean @ state.flat.W + state.flat.w0))
        turn = turned_by(state.flat.W, W)
        change = (turn * radius + shift) / (state.objective * rows.unit)
        return state._replace(flat=flat, change=change) if change <= TOL else look(flat, change)

    start = look(flat, np.inf if max_steps and inside > 0 else 0.0)
    run = iterate(step, start, max_steps=max_steps, tol=TOL, stage="polish", callback=callback)
    end, converged = run.state, run.state.change <= CYCLE or max_steps == 0
    groups = None if end.groups is None else _with_threshold(end.groups, rows, inside, rank)
    if inside <= 0 and max_steps:  # all rows are inliers: no weight changes, one step is all
        W = end.axes[:, :c]
        end = end._replace(flat=Flat(W, -(end.mean @ W)))
    W, w0 = end.flat
    mean = end.mean - W @ (W.T @ end.mean + w0)  # onto the subspace
    sizes = (inside, rank - inside)
    return Polished(end.flat, groups, mean, end.variances, end.axes, converged, sizes)


def _moments(gram: Array) -> tuple[Array, Array, Array]:
    """Return mean, variances and axes of lifted rows (z, 1) from their weighted gram matrix."""
    total = max(gram[-1, -1], np.finfo(float).tiny)
    mean = gram[:-1, -1] / total
    variances, axes = np.linalg.eigh(gram[:-1, :-1] / total - np.outer(mean, mean))
    return mean, np.maximum(variances, 0.0), axes


def _with_threshold(groups: TwoGroups, rows: RowSource, inside: int, rank: int) -> TwoGroups:
    law = outlier_law(groups.edges, rows.norms, inside, rank - inside)
    threshold = label_threshold(groups.counts, groups.edges, law, groups.threshold)
    return groups._replace(threshold=threshold)

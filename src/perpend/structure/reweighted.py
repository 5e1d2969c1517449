r"""Joint reweighted least squares at a known codimension: the second engine, and the finish.

.. math:: V \leftarrow \text{the } c \text{ smallest eigenvectors of } \sum_i u_i x_i x_i^T

where u_i is the probability, under the two-group model of the distances, that row i is an inlier.
This is expectation-maximisation for "a subspace with Gaussian noise among outliers without
preferred direction". The weights graduate by themselves: where V is hardly better than chance the
most likely noise is wide and all rows count nearly alike, and it falls as V turns towards the
inliers. Where these are exact, the weights end at zero and one and V is exact to rounding; with
noise it is as good as PCA on the true inliers, up to what can't be told apart.

A row that helped to place V is nearer to it than it would be otherwise, and with most rows outliers
that is as large as what the inliers do. So each distance is the one to the subspace that the
*other* rows would have: to first order (perturbation of the eigenvectors)

.. math::
    J_{-i} = J_i (1 + a u_i), \qquad
    a = \frac{1}{\sum_i u_i} \sum_{m > c} \frac{\lambda_m}{\lambda_m - \bar\lambda}

with the eigenvalues in ascending order, their mean over the normals, and a the mean leverage of the
rows. Under it, outliers follow their law as if V had been given.
"""

from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.kernels import weighted_gram
from perpend.rows import Kept, RowSource, scan_grouped_distances
from perpend.solvers import Callback, Fit, Status, TwoGroups, iterate
from perpend.structure.law import SHARE_MOST, distance_edges, group_model

TOL = 1e-3  # times the inliers' scale: a turn that is smaller ends the steps
MAX_LEVERAGE = 1.0  # of a single row; the first order means nothing beyond
FIRST_STEPS = 10  # from the spectral start, in which
FIRST_SHARE = 0.5  # is the largest share of inliers: with all of them the start would never move
NEGLIGIBLE = 0.05  # of the error that the noise makes: what is left undone
SMALL_TURN = 0.2  # of the inliers' distances, whose squares hardly change by it, nor do the groups
STEADY_TURN = 0.9  # ratio of a turn to the one before, from which on turns do not shrink
STEADY_NOISE = 0.95  # ratio of the noise to that of the step before: from here on it has converged
GROWING_STEPS = 10  # steps after which the evidence must have grown
LEAST_GROWTH = 1.04  # by so much, or nothing will come of it


class _State(NamedTuple):
    V: Array  # (D, c)
    groups: TwoGroups  # by the distance to V, or to what V was before its last, tiny turn
    spectrum: Array  # (R,) ascending
    axes: Array  # (D, R) principal axes of the inliers
    gains: tuple[float, ...]  # of the two groups over outliers alone, step by step
    weights: Array  # (m,) of the rows when they were last seen from the others' subspace
    steady: bool  # whether the inliers' noise is what it was a step before
    change: float
    objective: float  # the inliers' noise
    kept: Kept | None = None  # the distances


def fit_subspace(
    rows: RowSource,
    start: Array | Fit,
    span: Array,
    *,
    max_iter: int,
    n_distinct: float | None = None,
    variances: Array | None = None,
    callback: Callback | None = None,
) -> Fit:
    """Refine normals (D, c) inside `span` (D, R); with ``max_iter=0`` only evaluate them.

    A fit that ran out of steps goes on from where it was. It is finished when the normals turn by
    less than `TOL` times the inliers' scale, or when all turns that are still to come are far below
    the statistical error. `n_distinct` is the number of rows, without counting equal ones twice;
    their weight by default.

    With the second moments `variances` (R,) of all rows, the start are the first of their own axes,
    which know nothing of the descents; it is given up where nothing comes of it. How long they are
    better than chance says `perpend.theory.spectral`.
    """
    own, largest = variances is not None, float(rows.norms[-1])
    c = (start.V if isinstance(start, Fit) else start).shape[1]
    n_rows = rows.total_weight if n_distinct is None else n_distinct
    edges = distance_edges(largest, rows.dtype)
    model = group_model(edges, rows.norms, c, span.shape[1] - c)

    def evaluate(
        V: Array,
        leverage: float,
        weights: Array,
        before: _State | None = None,
        change: float = np.inf,
    ) -> _State:
        """Tell the groups apart at V, the first of the axes `before`; find the inliers' axes."""
        U, gains = (None, ()) if before is None else (before.axes[:, c:], before.gains)
        scan = scan_grouped_distances(rows, V, edges, U)
        assert scan.kept is not None
        most = FIRST_SHARE if own and len(gains) < FIRST_STEPS else SHARE_MOST
        groups = model.fit(np.ravel(scan.product), leverage, weights, most)
        inliers = rows.scan(weighted_gram, groups.posterior, edges, using=(scan.kept,))
        moments = inliers.product / max(inliers.total[0], np.finfo(float).tiny)
        axes, gains = axes_of_moments(moments, span), (*gains, _evidence(groups))
        steady = before is not None and groups.scale >= STEADY_NOISE * before.objective
        return _State(V, groups, *axes, gains, weights, steady, change, groups.scale, scan.kept)

    def step(state: _State) -> _State:
        """Turn V to the inliers' smallest axes."""
        V, groups = state.axes[:, :c], state.groups
        change = turned_to(state.V, state.axes) * largest / groups.scale
        n_inliers = float(groups.counts @ groups.posterior) * n_rows / rows.total_weight
        # A turn too small to count changes no distance either: no scan is needed.
        if change <= TOL or _is_settled(state, change, n_inliers):
            return state._replace(V=V, change=0.0)
        leverage, weights = mean_leverage(state.spectrum, c, n_inliers), groups.posterior
        # Rows that weigh more look farther away, and then weigh less: the mean ends a swing.
        if state.steady:
            weights = (weights + state.weights) / 2
        return evaluate(V, leverage, weights, state, change)

    def is_stalled(state: _State) -> bool:
        gains = state.gains
        return len(gains) > GROWING_STEPS and gains[-1] < LEAST_GROWTH * gains[-1 - GROWING_STEPS]

    if isinstance(start, Fit):  # but for what it was a step before
        gain, scale = (_evidence(start.groups),), start.groups.scale
        weights = start.groups.posterior
        state = _State(*start[:4], gain, weights, steady=False, change=np.inf, objective=scale)
    else:  # all rows, alike, have placed axes of their own
        leverage = mean_leverage(variances, c, n_rows) if own else 0.0
        state = evaluate(start, leverage, np.ones(len(edges)))
    run = iterate(
        step,
        state,
        max_steps=max_iter,
        tol=TOL,
        stage="reweighting" if own else "finish",
        callback=callback,
        enough=is_stalled if own else None,
    )
    end, converged = run.state, run.status is Status.CONVERGED
    kept = None if max_iter else end.kept  # they are not needed after steps
    return Fit(end.V, end.groups, end.spectrum, end.axes, run.n_steps, converged, kept)


def _is_settled(state: _State, change: float, n_inliers: float) -> bool:
    """Say whether a turn of this size, in units of the noise, is small enough to stop.

    The noise of N rows turns their subspace by about scale sqrt(d R / N). Turns that shrink by the
    same ratio q every time still add up to change q / (1 - q). The inliers' distances, about
    scale sqrt(c), change by at most this turn.
    """
    R, c = len(state.spectrum), state.V.shape[1]
    error, ratio = np.sqrt((R - c) * R / max(n_inliers, 1.0)), change / state.change
    if ratio > STEADY_TURN:
        return bool(change <= NEGLIGIBLE * min(error, 1.0))
    converged = state.steady and change <= SMALL_TURN * np.sqrt(c)
    return bool(converged and change * ratio / (1 - ratio) <= NEGLIGIBLE * error)


def _evidence(groups: TwoGroups) -> float:
    """Return the likelihood of the two groups over that of outliers alone, as a logarithm."""
    return float(groups.counts @ groups.gain)


def mean_leverage(spectrum: Array, codimension: int, n_rows: float) -> float:
    """Return the mean leverage of rows with these second moments (R,) on the smallest axes."""
    inside, outside = spectrum[codimension:], float(np.mean(spectrum[:codimension]))
    gap = np.maximum(inside - outside, np.finfo(float).tiny)
    with np.errstate(over="ignore"):  # no gap at all
        lever = float(np.sum(inside / gap))
    return min(lever / max(n_rows, 1.0), MAX_LEVERAGE)


def axes_of_moments(moments: Array, span: Array) -> tuple[Array, Array]:
    """Return variances (R,), ascending, and axes (D, R) of moments (D, D) in the span (D, R)."""
    if len(span) == span.shape[1]:
        spectrum, axes = np.linalg.eigh(moments)
    else:
        spectrum, axes = np.linalg.eigh(span.T @ moments @ span)
        axes = span @ axes
    return np.maximum(spectrum, 0.0), axes


def turned_by(V: Array, W: Array) -> float:
    """Return the sine of the largest angle by which W (D, c) leaves the span of V (D, c)."""
    return float(np.linalg.norm(W - V @ (V.T @ W), 2)) if W.size else 0.0


def turned_to(V: Array, axes: Array) -> float:
    """Return the sine of the largest angle between V (D, c) and the first c of the axes (D, R).

    V lies in the span of the axes, so what of it is not along the first c is along the others; the
    smaller of the two products says it.
    """
    c, R = V.shape[1], axes.shape[1]
    if c < R - c:
        return turned_by(V, axes[:, :c])
    return float(np.linalg.norm(V.T @ axes[:, c:], 2)) if c < R else 0.0

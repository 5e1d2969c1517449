"""From the structure of a sample to all rows, wherever they are: a few scans.

Up to four take the principal axes of the members, as the sample weighs distances; the last one
counts the distances, in which the structure of the sample is found again. Linear and affine fits
differ in how normals follow from the members' moments, and in nothing else.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.kernels import logarithmic_bins
from perpend.rows import Kept, RowSource, RowSpan, scan_grouped_distances, scan_weighted_gram
from perpend.solvers import Callback, Fit, TwoGroups, iterate
from perpend.structure import constants as k
from perpend.structure.labels import with_threshold
from perpend.structure.law import SHARE_LEAST, SHARE_MOST, distance_edges, group_model, knots
from perpend.structure.layers import Histogram, find_layers, layer_noise, members_noise
from perpend.structure.reweighted import TOL, axes_of_moments, turned_to
from perpend.structure.settle import Candidate

STEPS = 4
ALMOST = 1 - 1e-12  # the largest probability of a member
SAMPLE_ERRORS = 3.0  # by so many times its own error the sample's normals may turn among all rows


class Confirmed(NamedTuple):
    """Normals among all rows, the members' second moments, and the two groups."""

    V: Array  # (D', c), as the rows see it
    moments: Array  # (D', D') of the members, by their weight
    objective: float  # the noise
    change: float  # in units of the noise
    groups: TwoGroups | None = None  # None where all rows are members
    kept: Kept | None = None  # the distances of all rows


def confirm(
    rows: RowSource,
    V: Array,
    candidate: Candidate | None,
    turn: Callable[[Array, Array], tuple[Array, float]],
    *,
    sizes: tuple[int, int],
    unit: float = 1.0,
    steps: int = STEPS,
    U: Array | None = None,
    callback: Callback | None = None,
) -> Confirmed:
    """Take a few steps over all rows from the normals V, and tell members from others.

    The members are those of the `candidate` of a sample, or by the law of the outliers; without any
    among the first of the `sizes`, the numbers of normals and of other directions in the rows'
    span, all rows are. ``turn(V, moments)`` gives the members' normals, and by how far they differ
    from V at the members' distance. What the rows see times `unit` is what the sample saw.
    """
    edges = distance_edges(float(rows.norms[-1]), rows.dtype)

    def groups_at(V: Array) -> tuple[TwoGroups | None, Kept | None]:
        if sizes[0] == 0:
            return None, None
        scan = scan_grouped_distances(rows, V, edges, U)
        counts = np.ravel(scan.product)
        if candidate is not None and candidate.fit is None:
            return _by_density(Histogram(edges, counts), candidate, 1 / unit), scan.kept
        groups = group_model(edges, rows.norms, *sizes).fit(counts)
        return with_threshold(groups, rows.norms, *sizes, distinct=1.0), scan.kept

    table, scale = np.ones(len(edges)), float(edges[0])
    if candidate is not None:
        table, scale = _weights(candidate, edges * unit), max(candidate.sigma / unit, scale)
    elif (groups := groups_at(V)[0]) is not None:
        table, scale = groups.posterior, groups.scale

    def step(state: Confirmed) -> Confirmed:
        gram = scan_weighted_gram(rows, state.V, table, edges)
        moments = gram.product / max(float(gram.total[0]), np.finfo(float).tiny)
        V, moved = turn(state.V, moments)
        return Confirmed(V, moments, scale, moved / scale)

    start = Confirmed(V, np.empty(0), scale, np.inf)
    run = iterate(step, start, max_steps=steps, tol=TOL, stage="polish", callback=callback)
    groups, kept = groups_at(run.state.V)
    groups = None if groups is None else groups._replace(weights=table)
    return run.state._replace(groups=groups, kept=kept)


def _weights(candidate: Candidate, edges: Array) -> Array:
    """Return what a row in each bin weighs among the members, by its distance."""
    middle = knots(edges)
    middle[0] = 0.0  # rounding errors, which may be larger here than the sample's noise
    if candidate.fit is not None:
        groups = candidate.fit.groups
        return groups.posterior[logarithmic_bins(middle, groups.edges)]
    if candidate.layer is None:
        return (middle <= max(candidate.threshold, float(edges[0]))).astype(float)
    inner = candidate.layer.probability(knots(candidate.seen.edges))
    reach = members_noise(candidate.seen, inner, candidate.c) * (
        math.sqrt(candidate.c) + k.NEAR_REACH
    )
    bell = np.maximum(1 - np.square(middle / reach), 0.0)
    return candidate.layer.probability(middle) * bell


def _by_density(seen: Histogram, candidate: Candidate, unit: float) -> TwoGroups:
    """Return members and others by their distance, as the sample's structure is among these rows.

    Of the layers that are seen it is the one whose end is nearest to that of the sample.
    """
    c, edges, total = candidate.c, seen.edges, float(seen.counts.sum())
    middle, layer = knots(edges), None
    middle[0] = 0.0  # rounding errors
    threshold = min(max(candidate.threshold * unit, float(edges[0])), float(edges[-1]))
    p = (middle <= threshold).astype(float)
    if candidate.layer is not None:
        p = candidate.layer.probability(middle / unit)
        layers = find_layers(seen, c, k.LEAST_SHARE / 2 * total)
        if layers := [one for one in layers if not one.is_exact]:
            end = math.log(candidate.layer.radius * unit)
            layer = min(layers, key=lambda one: abs(math.log(one.radius) - end))
            # Two samples of the same kind of rows: tails are longer than one of them shows.
            p, threshold = layer.probability(middle), max(layer.threshold, threshold)
    p = np.minimum(np.minimum.accumulate(p), ALMOST)
    share = min(max(float(seen.counts @ p) / total, SHARE_LEAST), SHARE_MOST)
    own = members_noise(seen, p, c) if layer is None else layer_noise(seen, layer, c, mean=True)
    scale = float(edges[0]) if candidate.is_exact else max(own, float(edges[2]))
    gain = np.log1p(-share) - np.log1p(-p)
    return TwoGroups(edges, p, gain, seen.counts, share, scale, threshold)


def among(
    rows: RowSource,
    span: RowSpan,
    A: Array,
    candidate: Candidate,
    *,
    sampled: bool,
    callback: Callback | None = None,
) -> tuple[Fit, Kept]:
    """Return the linear subspace of the members among these rows, and all distances to it.

    The axes A (D', R) of a decision are those of all members, unless its rows were `sampled`.
    """
    c, spectrum, R = candidate.c, candidate.axes.variances, span.rank

    def turn(V: Array, moments: Array) -> tuple[Array, float]:
        nonlocal spectrum, A
        spectrum, A = axes_of_moments(moments, span.basis)
        return A[:, :c], turned_to(V, A) * float(rows.norms[-1])

    # Few rows in many columns: a second spectrum takes long and moves nothing.
    steps, U = (1 if span.n_outside else STEPS, None) if sampled else (0, A[:, c:])
    end = confirm(
        rows, A[:, :c], candidate, turn, sizes=(c, R - c), steps=steps, U=U, callback=callback
    )
    # An angle of scale * sqrt(d R / N) is what the noise of N unit rows does to their subspace.
    error = math.sqrt((R - c) * R / max(candidate.n_members, 1.0))
    converged = not sampled or end.change <= max(TOL, SAMPLE_ERRORS * error)
    assert end.groups is not None
    assert end.kept is not None
    return Fit(end.V, end.groups, spectrum, A, 0, converged), end.kept

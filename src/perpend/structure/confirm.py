"""From the structure of a sample to all rows, wherever they are: at most three scans.

Up to two take the principal axes of the members, as the sample weighs distances; the last one
counts the distances, in which the structure of the sample is found again.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.kernels import logarithmic_bins
from perpend.rows import Kept, RowSource, scan_grouped_distances, scan_weighted_gram
from perpend.solvers import TwoGroups
from perpend.solvers.loop import Callback, iterate
from perpend.structure import constants as k
from perpend.structure.law import knots
from perpend.structure.layers import Histogram, find_layers, layer_noise, members_noise
from perpend.structure.members import Found
from perpend.structure.settle import REACH

STEPS = 4
AT_REST = 1e-3  # of the noise: a turn that changes no distance
ALMOST = 1 - 1e-12  # the largest probability of a member


class Turned(NamedTuple):
    """Normals among all rows, and the members' second moments."""

    V: Array  # (D', c), as the rows see it
    moments: Array  # (D', D') of the members, by their weight
    objective: float  # the noise
    change: float


def turn_to_members(
    rows: RowSource,
    V: Array,
    table: Array,
    edges: Array,
    *,
    noise: float,
    turn: Callable[[Array, Array], tuple[Array, float]],
    steps: int = STEPS,
    callback: Callback | None = None,
) -> Turned:
    """Take a few steps over all rows from the normals V.

    A row in a bin of distances weighs as the `table` says, and ``turn(V, moments)`` gives the
    members' normals, and by how far they differ from V at the members' distance.
    """
    scale = max(noise, float(edges[0]))

    def step(state: Turned) -> Turned:
        gram = scan_weighted_gram(rows, state.V, table, edges)
        moments = gram.product / max(float(gram.total[0]), np.finfo(float).tiny)
        V, moved = turn(state.V, moments)
        return Turned(V, moments, scale, moved / scale)

    start = Turned(V, np.empty(0), scale, np.inf)
    run = iterate(step, start, max_steps=steps, tol=AT_REST, stage="polish", callback=callback)
    return run.state


def weights_by_bin(found: Found, edges: Array) -> Array:
    """Return what a row in each bin weighs among the members, by its distance."""
    middle = knots(edges)
    if found.fit is not None:
        groups = found.fit.groups
        return groups.posterior[logarithmic_bins(middle, groups.edges)]
    if found.layer is None:
        return (middle <= max(found.threshold, float(edges[0]))).astype(float)
    inner = found.layer.probability(knots(found.seen.edges))
    reach = members_noise(found.seen, inner, found.c) * (math.sqrt(found.c) + REACH)
    bell = np.maximum(1 - np.square(middle / reach), 0.0)
    return found.layer.probability(middle) * bell


def count(rows: RowSource, V: Array, edges: Array, U: Array | None = None) -> tuple[Array, Kept]:
    """Count the distances of all rows to the complement of V, and keep them."""
    scan = scan_grouped_distances(rows, V, edges, U)
    assert scan.kept is not None
    return np.ravel(scan.product), scan.kept


def groups_by_density(
    seen: Histogram, found: Found, unit: float, *, sampled: bool = True
) -> TwoGroups:
    """Return members and others by their distance, as the sample's structure is among these rows.

    Of the layers that are seen it is the one whose end is nearest to that of the sample; if it was
    not `sampled`, it was found in these very rows.
    """
    c, total = found.c, float(seen.counts.sum())
    middle = knots(seen.edges)
    layer = None
    threshold = max(found.threshold * unit, float(seen.edges[0]))
    p = (middle <= threshold).astype(float)
    if found.layer is not None:
        p = found.layer.probability(middle / unit)
        layers = [one for one in find_layers(seen, c, k.FEW / 2 * total) if not one.is_exact]
        if layers:
            end = math.log(found.layer.radius * unit)
            layer = min(layers, key=lambda one: abs(math.log(one.radius) - end))
            p = layer.probability(middle)
            # Two looks at the same rows, in other bins: tails are longer than one of them shows.
            threshold = layer.threshold if sampled else max(layer.threshold, threshold)
    p = np.minimum(np.minimum.accumulate(p), ALMOST)
    members = float(seen.counts @ p)
    share = min(max(members / total, 1e-6), 1 - 1e-6)
    noise = members_noise(seen, p, c) if layer is None else layer_noise(seen, layer, c)
    return TwoGroups(
        edges=seen.edges,
        posterior=p,
        gain=np.log1p(-share) - np.log1p(-p),
        counts=seen.counts,
        share=share,
        scale=float(seen.edges[0]) if found.is_exact else max(noise, float(seen.edges[2])),
        threshold=threshold,
        rough=True,
    )

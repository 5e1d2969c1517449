"""From the structure of a sample to all rows, wherever they are: a few scans.

Each step counts the distances of all rows in one scan, finds the layer of the sample's structure in
that histogram, and takes the principal axes of its members in another.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.kernels import grouped_distances, weighted_gram
from perpend.rows import Kept, RowSource
from perpend.solvers import TwoGroups
from perpend.solvers.loop import Callback, iterate
from perpend.structure import constants as k
from perpend.structure.layers import Histogram, find_layers, members_noise
from perpend.structure.search import Decision
from perpend.structure.settle import REACH

STEPS = 3
AT_REST = 1e-3  # of the noise: a turn that changes no distance
ALMOST = 1 - 1e-12  # the largest probability of a member


class Confirmed(NamedTuple):
    """A subspace among all rows."""

    V: Array  # (D', c), as the rows see it
    groups: TwoGroups
    moments: Array  # (D', D') of the members, by their weight
    kept: Kept  # the distances
    n_steps: int
    change: float

    @property
    def objective(self) -> float:
        """The noise."""
        return self.groups.scale


def confirm(
    rows: RowSource,
    V: Array,
    decision: Decision,
    *,
    edges: Array,
    unit: float,
    turn: Callable[[Array, Array], tuple[Array, float]],
    callback: Callback | None = None,
) -> Confirmed:
    """Take a few steps over all rows from the normals V.

    `unit` turns the decision's distances into those that the kernels see, and ``turn(V, moments)``
    gives the members' normals, and by how far they differ from V at the members' distance.
    """

    def look(V: Array, n_steps: int, change: float) -> Confirmed:
        scan = rows.scan(grouped_distances, V, edges, keep=True)
        assert scan.kept is not None
        seen = Histogram(edges, np.ravel(scan.product))
        groups = groups_of(seen, decision, unit)
        table = groups.posterior * _bell(edges, groups, V.shape[1], decision)
        gram = rows.scan(weighted_gram, table, edges, using=(scan.kept,))
        moments = gram.product / max(float(gram.total[0]), np.finfo(float).tiny)
        return Confirmed(V, groups, moments, scan.kept, n_steps, change)

    def step(state: Confirmed) -> Confirmed:
        V, moved = turn(state.V, state.moments)
        change = moved / max(state.groups.scale, np.finfo(float).tiny)
        return look(V, state.n_steps + 1, change)

    start = look(V, 0, np.inf)
    run = iterate(step, start, max_steps=STEPS, tol=AT_REST, stage="polish", callback=callback)
    return run.state


def _bell(edges: Array, groups: TwoGroups, c: int, decision: Decision) -> Array:
    """Return the weights 1 - J^2 / R^2 of the polish, by bin."""
    if decision.layer is None:
        return np.ones(len(edges))
    reach = groups.scale * (math.sqrt(c) + REACH)
    return np.maximum(1 - np.square(_middle(edges) / reach), 0.0)


def groups_of(seen: Histogram, decision: Decision, unit: float) -> TwoGroups:
    """Return members and others by their distance, as the sample's structure is among these rows.

    Of the layers that are seen it is the one whose end is nearest to that of the sample.
    """
    c, total = decision.codimension, float(seen.counts.sum())
    middle = _middle(seen.edges)
    threshold = decision.threshold * unit
    p = (middle <= threshold).astype(float)
    if decision.layer is not None:
        p = decision.layer.probability(middle / unit)
        least = k.FEW / 2 * total
        layers = [one for one in find_layers(seen, c, least) if not one.is_exact]
        if layers:
            end = math.log(decision.layer.radius * unit)
            layer = min(layers, key=lambda one: abs(math.log(one.radius) - end))
            p, threshold = layer.probability(middle), layer.threshold
    p = np.minimum(np.minimum.accumulate(p), ALMOST)
    members = float(seen.counts @ p)
    share = min(max(members / total, 1e-6), 1 - 1e-6)
    return TwoGroups(
        edges=seen.edges,
        posterior=p,
        gain=np.log1p(-share) - np.log1p(-p),
        counts=seen.counts,
        share=share,
        scale=max(members_noise(seen, p, c), float(seen.edges[2])),
        threshold=threshold,
    )


def _middle(edges: Array) -> Array:
    """Return the distance (m,) that stands for each bin."""
    middle: Array = edges * math.sqrt(edges[0] / edges[1])
    middle[0] = edges[0]
    return middle

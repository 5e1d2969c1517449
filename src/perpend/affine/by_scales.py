"""The affine subspace at the scale at which rows concentrate, without homogeneous coordinates.

A sample says where it is (`perpend.structure`); all rows confirm it, lifted about the members'
mean, where distances are Euclidean.
"""

import math

import numpy as np

from perpend._typing import Array
from perpend.affine.fit import ROUNDING, AffineFit
from perpend.affine.origin import weigh_origin
from perpend.affine.views import View, find_views
from perpend.geometry import complement, random_directions
from perpend.kernels import l1_objective
from perpend.rows import RowSource, as_rows
from perpend.rows.centred import centred_norms, lift, room_for_lifted
from perpend.rows.distinct import distinct_rows
from perpend.rows.kinds import to_numpy
from perpend.solvers import Fit, Solution, TwoGroups, distance_edges, row_span, turned_by
from perpend.solvers.distance_record import DistanceRecord
from perpend.solvers.loop import Callback
from perpend.structure import SURE, Cloud, Decision, Profile, find_structure
from perpend.structure import constants as k
from perpend.structure.answer import evidence_of, structures_in
from perpend.structure.confirm import Turned, count, groups_by_density, turn_to_members
from perpend.structure.layers import Histogram

FAR = 100.0  # times the members' radius: rows farther away have no say
GROWTH = 4  # the next sample, in units of the last
N_LANDED = 16  # starts that are shown where nobody descends


def find_by_scales(
    X: Array,
    weight: Array | None,
    *,
    sample: int | None,
    n_jobs: int,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> AffineFit | None:
    """Find the affine subspace of the inliers among the rows of X (n, D), if there is one.

    `sample` is how many rows are asked first; all of them if it is None.
    """
    weights = None if weight is None else to_numpy(weight).astype(float)
    found = []
    for view in find_views(X, weight, rng):
        seen = np.ones(X.shape[0], dtype=bool) if view.seen is None else view.seen
        if weights is not None:
            seen = seen & (weights > 0)
        decided = _decide(X, weights, seen, sample, n_jobs=n_jobs, rng=rng, callback=callback)
        if decided is None:
            return None  # rows that span less than the space have an exact answer already
        if decided[1] is not None:
            found.append((view, decided[0], decided[1]))
    if not found:
        return None
    # Of two clouds that are far apart, the surer one counts, or the larger.
    view, cloud, decision = max(
        found, key=lambda one: (one[2].confidence >= SURE, one[2].found.n_members / one[1].n)
    )
    if decision.found.is_exact:
        return None
    return _among_all_rows(
        X, weights, view, cloud, decision, n_jobs=n_jobs, rng=rng, callback=callback
    )


def _decide(
    X: Array,
    weight: Array | None,
    seen: Array,
    sample: int | None,
    *,
    n_jobs: int,
    rng: np.random.Generator,
    callback: Callback | None,
) -> tuple[Cloud, Decision | None] | None:
    """Find the structure of the rows that are seen: by a sample, slowly by all where it is none."""
    cloud = _cloud(X, weight, seen, sample, n_jobs=n_jobs, rng=rng)
    if cloud is None:
        return None
    decision = find_structure(Profile(cloud), rng, callback=callback)
    n_seen = np.count_nonzero(seen)
    while (  # more rows cure one doubt, that it may be an accident
        decision is not None
        and not decision.facts.is_significant
        and sample is not None
        and sample < n_seen
    ):
        sample *= GROWTH
        larger = _cloud(X, weight, seen, sample, n_jobs=n_jobs, rng=rng)
        cloud = cloud if larger is None else larger
        decision = find_structure(Profile(cloud), rng, callback=callback)
    if decision is None and np.count_nonzero(seen) <= k.MOST_PER_COLUMN * X.shape[1]:
        everything = _cloud(X, weight, seen, None, n_jobs=n_jobs, rng=rng)
        cloud = cloud if everything is None else everything
        decision = find_structure(Profile(cloud), rng, slowly=True, callback=callback)
    return cloud, decision


def _cloud(
    X: Array,
    weight: Array | None,
    seen: Array,
    sample: int | None,
    *,
    n_jobs: int,
    rng: np.random.Generator,
) -> Cloud | None:
    """Return a sample in memory; None where the rows span less than the space."""
    D, chosen = X.shape[1], np.flatnonzero(seen)
    size = len(chosen) if sample is None else sample
    if len(chosen) > size:
        chosen = np.sort(rng.choice(chosen, size, replace=False, shuffle=False))
    given = to_numpy(X[chosen])
    S = given.astype(float)
    w = None if weight is None else weight[chosen] / np.mean(weight[chosen])
    if len(S) < D + 2:
        return None
    centre = np.median(S, axis=0)
    scale = float(np.median(np.linalg.norm(S - centre, axis=1))) / math.sqrt(D)
    if scale == 0:
        return None
    lifted = np.hstack([(S - centre) / scale, np.ones((len(S), 1))]).astype(given.dtype)
    rows = as_rows(lifted, weight=w, normalize=False, n_jobs=n_jobs)
    if row_span(rows).n_outside:
        return None
    share = distinct_rows(rows, np.random.default_rng(0)).share
    return Cloud(S, affine=True, weight=w, share=share, floor=_floor(given.dtype))


def _floor(dtype: np.dtype) -> float:
    return float(distance_edges(1.0, dtype)[0])


def _among_all_rows(
    X: Array,
    weight: Array | None,
    view: View,
    cloud: Cloud,
    decision: Decision,
    *,
    n_jobs: int,
    rng: np.random.Generator,
    callback: Callback | None,
) -> AffineFit:
    c, axes = decision.codimension, decision.found.axes
    spread = math.sqrt(float(np.mean(axes.variances)))
    # Rows that are far away have no say, or all others would be rounding errors beside them.
    near = to_numpy(centred_norms(X, axes.centre)) <= FAR * spread * math.sqrt(X.shape[1])
    view = View(axes.centre, spread, near if view.seen is None else near & view.seen)
    L = room_for_lifted(X)
    lift(X, view.centre, view.scale, L)
    rows = as_rows(
        L,
        weight=weight,
        mask=view.seen,
        normalize=False,
        memory_budget=L.nbytes - 1,
        n_jobs=n_jobs,
    )
    unit = view.scale * rows.unit
    edges = distance_edges(float(rows.norms[-1]), rows.dtype)

    def turn(V: Array, moments: Array) -> tuple[Array, float]:
        mean, variances, A = _moments(moments)
        W, w0, new = V[:-1], V[-1], A[:, :c]
        moved = turned_by(W, new) * math.sqrt(float(np.sum(variances)))
        moved += float(np.linalg.norm(mean @ W + w0))
        return np.vstack([new, -(mean @ new)]), moved / rows.unit

    start = np.vstack([axes.A[:, :c], np.zeros(c)])
    end = turn_to_members(
        rows, start, decision.found, edges=edges, unit=1 / unit, turn=turn, callback=callback
    )
    counts, kept = count(rows, end.V, edges)
    groups = groups_by_density(Histogram(edges, counts), decision.found, 1 / unit)
    n_seen = np.count_nonzero(rows.gather(rows.weights))
    seen = structures_in(decision, 1.0, n_seen / cloud.n)
    return _as_fit(end, groups, decision, view, rows, rng=rng, seen=seen)


def _moments(gram: Array) -> tuple[Array, Array, Array]:
    """Return mean, variances and axes of lifted rows (z, 1) from their mean gram matrix."""
    mean = gram[:-1, -1] / max(float(gram[-1, -1]), np.finfo(float).tiny)
    second = gram[:-1, :-1] / max(float(gram[-1, -1]), np.finfo(float).tiny)
    variances, axes = np.linalg.eigh(second - np.outer(mean, mean))
    return mean, np.maximum(variances, 0.0), axes


def _as_fit(
    found: Turned,
    counted: TwoGroups,
    decision: Decision,
    view: View,
    rows: RowSource,
    *,
    rng: np.random.Generator,
    seen: tuple[dict[str, object], ...],
) -> AffineFit:
    D, c = len(view.centre), decision.codimension
    unit = view.scale * rows.unit
    mean, variances, A = _moments(found.moments)
    W, w0 = found.V[:-1], found.V[-1]
    mean = mean - W @ (W.T @ mean + w0)  # onto the subspace
    location = view.centre + view.scale * mean
    inside = complement(W)
    spread = (inside.T @ A) * variances @ (A.T @ inside)
    own, turned = np.linalg.eigh(spread)
    components = (inside @ turned)[:, ::-1]
    along = np.maximum(own, 0.0)[::-1] * view.scale**2
    groups = in_units(counted, unit)
    B = W @ (W.T @ random_directions(rng, D, N_LANDED))
    B /= np.linalg.norm(B, axis=0)
    spectrum = np.sort(np.append(variances, 1.0))  # of the lifted rows
    lifted = np.vstack([B, -(mean @ B)])
    objective = rows.scan(l1_objective, lifted).total / rows.total_weight
    lifted_fit = Fit(found.V, counted, spectrum, found.V, 0, converged=True)
    solution = Solution(
        normals=W,
        components=components,
        directions=B,
        singular_values=np.linalg.svd(B, compute_uv=False),
        objective=float(np.mean(objective)) * unit,
        confidence=decision.confidence,
        evidence={
            **evidence_of(decision.facts, decision.needed, lifted_fit, rows.dtype, 1.0),
            # Of all rows, and not of the sample that decided.
            "rows_on_subspace": next(one["members"] for one in seen if one["chosen"]),
        },
        groups=groups,
        doubts=tuple(str(doubt) for doubt in decision.doubts),
        n_iter=1,
        converged=True,
        rank=D + 1,
        distances=None,
        structures=seen,
    )
    radius = math.sqrt(float(np.sum(along)))
    rounding = ROUNDING * (float(np.linalg.norm(location)) + radius)
    rounding *= float(np.finfo(rows.dtype).eps)
    n_members = groups.share * np.count_nonzero(rows.gather(rows.weights))
    return AffineFit(
        solution=solution,
        location=location,
        origin=weigh_origin(
            location,
            W,
            components,
            variances=along,
            noise2=groups.scale**2 + rounding**2,
            n_inliers=n_members,
        ),
        floor=max(float(groups.edges[0]), rounding),
        radius=radius,
        record=DistanceRecord.of(counted, rows.norms, c, D + 1 - c, unit),
    )


def in_units(groups: TwoGroups, unit: float) -> TwoGroups:
    """Return the groups with distances in other units."""
    return groups._replace(
        edges=groups.edges * unit, scale=groups.scale * unit, threshold=groups.threshold * unit
    )

"""Affine subspaces in the units of the data, from lifted rows.

About a centre m with the scale s, a row is lifted to ((x - m) / s, 1): an affine subspace of
dimension d is a linear one of dimension d + 1 there, with as many normals. A lifted normal (w, w0)
says w.z + w0 = 0. With the w orthonormal, lifted rows times normals are Euclidean distances.
"""

import math
from typing import NamedTuple, Self

import numpy as np

from perpend._typing import Array
from perpend.geometry import complement
from perpend.kernels import l1_objective
from perpend.rows import RowSource, as_rows
from perpend.rows.centred import centred_norms, lift, room_for_lifted
from perpend.rows.kinds import to_numpy
from perpend.solvers import Solution, TwoGroups
from perpend.solvers.loop import Callback
from perpend.structure.checks import DOUBTFUL, SURE, Verdict
from perpend.structure.confirm import (
    STEPS,
    count,
    groups_by_density,
    turn_to_members,
    weights_by_bin,
)
from perpend.structure.labels import DistanceRecord, with_threshold
from perpend.structure.law import distance_edges, two_groups
from perpend.structure.layers import Histogram
from perpend.structure.members import Found
from perpend.structure.origin import OriginTest, weigh_origin
from perpend.structure.reweighted import turned_by
from perpend.structure.views import View

FARTHEST = 1e6
"""Times the scale of the view. Normals that meet the rows' space only beyond this are those of the
ideal hyperplane, on which nothing lies."""

FAR = 100.0  # times the members' radius: rows farther away have no say
LIKELY = 0.5  # confidence from which on an affine subspace may be preferred to a linear one
REMOTE = 3.0  # times the inliers' radius
ROUNDING = 8.0  # times eps and the size of the numbers: a distance that is nothing but rounding


class Flat(NamedTuple):
    """An affine subspace in the coordinates of a view: all z with W.T z + w0 = 0."""

    W: Array  # (D, c) orthonormal
    w0: Array  # (c,)

    @property
    def lifted(self) -> Array:
        """The normals with their offsets, (D + 1, c): lifted rows times these are distances."""
        return np.vstack([self.W, self.w0])


def as_flat(V: Array) -> Flat:
    """Return the affine subspace of the lifted normals V (D + 1, c), orthonormal columns.

    W = V[:-1] has c - 1 singular values 1 and one sqrt(1 - |w0|^2), which is small where the
    subspace is far away. That normal is left out where it is too far.
    """
    W, w0 = V[:-1], V[-1]
    if W.shape[1] == 0:
        return Flat(W, w0)
    U, s, Rt = np.linalg.svd(W, full_matrices=False)  # W.T z = -w0  <=>  U.T z = -(Rt w0) / s
    near = s > np.linalg.norm(w0) / FARTHEST
    return Flat(U[:, near], (Rt @ w0)[near] / s[near])


class Lifted(NamedTuple):
    """Rows lifted about a view, not normalised."""

    rows: RowSource
    view: View

    @property
    def unit(self) -> float:
        """What the kernels see times this is in the units of the data."""
        return self.view.scale * self.rows.unit


def lifted(
    X: Array,
    weight: Array | None,
    view: View,
    *,
    n_jobs: int,
    unit_rows: bool = False,
    fused: bool = True,
) -> Lifted:
    """Lift the rows of X (n, D) about a view; one array of the size of X is formed."""
    L = room_for_lifted(X)
    lift(X, view.centre, view.scale, L)
    rows = as_rows(
        L,
        weight=weight,
        mask=view.seen,
        normalize=unit_rows,
        memory_budget=L.nbytes - 1,  # room for values of each row, and not for another X
        n_jobs=n_jobs,
        fused=fused,
    )
    return Lifted(rows, view)


def near_view(X: Array, centre: Array, spread: float, view: View) -> View:
    """Return the view from the members' mean, with the size of one of their coordinates.

    Rows that are far away have no say, or all others would be rounding errors beside them; nor have
    those of another cloud, which would be members with a long lever.
    """
    scale = spread if spread > 0 else view.scale
    near = to_numpy(centred_norms(X, centre)) <= FAR * scale * math.sqrt(X.shape[1])
    return View(centre, scale, near if view.seen is None else near & view.seen)


class AffineFit(NamedTuple):
    """An affine subspace in the units of the data."""

    solution: Solution  # normals and components (D, .); its groups are Euclidean distances
    location: Array  # (D,) the inliers' mean, on the subspace
    origin: OriginTest
    floor: float  # a distance below this is a rounding error
    radius: float  # of the inliers about the location
    record: DistanceRecord | None  # of the rows that were seen; None where all are inliers
    others: tuple["AffineFit", ...] = ()  # for each structure of the solution that is not chosen

    @property
    def evidence(self) -> dict[str, object]:
        """What it says about the origin, by name."""
        return {
            "affine_confidence": self.solution.confidence,
            "affine_codimension": self.solution.normals.shape[1],
            "origin_distance": self.origin.distance,
            "origin_error": self.origin.error,
            "origin_chance": self.origin.chance,
        }

    @property
    def is_needed(self) -> bool:
        """Whether the rows ask for an affine subspace, whatever a linear one has to offer.

        It clearly misses the origin, and the rows are sure of it; or it is likely, and the inliers
        are so far from the origin that from there they all lie in one direction.
        """
        if not self.origin.misses:
            return False
        remote = self.origin.distance > REMOTE * self.radius
        return self.solution.confidence >= (LIKELY if remote else SURE)

    def by_descents_alone(self) -> Self:
        """Return the same, where the scales of the rows themselves do not show it."""
        doubt = "it is seen in homogeneous coordinates alone (more rows, or less noise, would help)"
        solution = self.solution._replace(
            confidence=min(self.solution.confidence, DOUBTFUL),
            doubts=(*self.solution.doubts, doubt),
        )
        return self._replace(solution=solution)

    def is_better_than(self, linear: Solution) -> bool:
        """Whether it clearly misses the origin and the rows support it more than a linear one."""
        likely = self.origin.misses and self.solution.confidence >= LIKELY
        return likely and _support(self.solution) > _support(linear)


def _support(solution: Solution) -> float:
    """Return the gain of a subspace beyond what accidents reach."""
    if solution.normals.shape[1] == 0:
        return -math.inf
    gain, needed = (solution.evidence.get(name) for name in ("gain", "gain_needed"))
    if not isinstance(gain, float) or not isinstance(needed, float):
        return math.inf  # all rows lie on it
    return gain - needed


class Members(NamedTuple):
    """An affine subspace among all rows that are seen, with its members."""

    flat: Flat
    mean: Array  # (D,) of the members, on the subspace
    variances: Array  # (D,) ascending: about the mean
    axes: Array  # (D, D)
    groups: TwoGroups | None  # None where all rows are members
    sizes: tuple[int, int]  # numbers of normals and of other directions in the lifted rows' span


def members_among(
    seen: Lifted,
    flat: Flat,
    found: Found | None,
    *,
    n_outside: int,
    steps: int = STEPS,
    callback: Callback | None = None,
) -> Members:
    """Find the members of a subspace among lifted rows, and turn it to them in a few steps.

    They are those of `found` in a sample, or by the law of the outliers. `n_outside` of the normals
    are orthogonal to every row.
    """
    rows, unit, (D, c) = seen.rows, seen.unit, flat.W.shape
    edges = distance_edges(float(rows.norms[-1]), rows.dtype)
    sizes = inside, _ = c - n_outside, D + 1 - c

    def groups_at(flat: Flat) -> TwoGroups:
        counts, _ = count(rows, flat.lifted, edges)
        if found is not None:
            return groups_by_density(Histogram(edges, counts), found, 1 / unit)
        groups = two_groups(counts, edges, rows.norms, *sizes)
        return with_threshold(groups, rows.norms, *sizes, distinct=1.0)

    def turn(V: Array, moments: Array) -> tuple[Array, float]:
        mean, variances, A = _moments(moments)
        W, w0, new = V[:-1], V[-1], A[:, :c]
        moved = turned_by(W, new) * math.sqrt(float(np.sum(variances)))
        moved += float(np.linalg.norm(mean @ W + w0))
        return np.vstack([new, -(mean @ new)]), moved / rows.unit

    table, noise = np.ones(len(edges)), 0.0
    if inside > 0 and found is not None:
        table, noise = weights_by_bin(found, edges * unit), found.sigma / unit
    elif inside > 0:
        groups = groups_at(flat)
        table, noise = groups.posterior, groups.scale
    end = turn_to_members(
        rows,
        flat.lifted,
        table,
        edges,
        noise=noise,
        turn=turn,
        steps=max(steps, 1),
        callback=callback,
    )
    mean, variances, A = _moments(end.moments)
    W, w0 = flat = Flat(end.V[:-1], end.V[-1]) if steps else flat
    mean = mean - W @ (W.T @ mean + w0)  # onto the subspace
    return Members(flat, mean, variances, A, groups_at(flat) if inside > 0 else None, sizes)


def _moments(gram: Array) -> tuple[Array, Array, Array]:
    """Return mean, variances and axes of lifted rows (z, 1) from their mean gram matrix."""
    total = max(float(gram[-1, -1]), np.finfo(float).tiny)
    mean = gram[:-1, -1] / total
    variances, axes = np.linalg.eigh(gram[:-1, :-1] / total - np.outer(mean, mean))
    return mean, np.maximum(variances, 0.0), axes


def as_fit(seen: Lifted, members: Members, verdict: Verdict, directions: Array) -> AffineFit:
    """Bring a subspace back to the units of the data; `directions` (D, k) belong to it."""
    rows, view, unit = seen.rows, seen.view, seen.unit
    W, _ = members.flat
    location = view.centre + view.scale * members.mean
    components, along = _components(members)
    along = along * view.scale**2
    groups = None if members.groups is None else in_units(members.groups, unit)
    radius = math.sqrt(float(np.sum(along)))
    rounding = ROUNDING * (float(np.linalg.norm(location)) + radius)
    rounding *= float(np.finfo(rows.dtype).eps)
    offset = -(members.mean @ directions)
    height = rows.scan(l1_objective, np.vstack([directions, offset])).total / rows.total_weight
    solution = Solution(
        normals=W,
        components=components,
        directions=directions,
        singular_values=np.linalg.svd(directions, compute_uv=False),
        objective=float(np.mean(height)) * unit if len(height) else 0.0,
        confidence=verdict.confidence,
        evidence=verdict.evidence,
        groups=groups,
        doubts=verdict.doubts,
        n_iter=1,
        converged=True,
        rank=len(W) + 1,
        distances=None,
    )
    n_seen = np.count_nonzero(rows.gather(rows.weights))
    noise2 = _noise2(members, view, groups) + rounding**2
    n_members = (1.0 if groups is None else groups.share) * n_seen
    edges = distance_edges(float(rows.norms[-1]), rows.dtype)
    counted = members.groups
    return AffineFit(
        solution=solution,
        location=location,
        origin=weigh_origin(
            location, W, components, variances=along, noise2=noise2, n_inliers=n_members
        ),
        floor=max(float(edges[0]) * unit, rounding),
        radius=radius,
        record=None
        if counted is None
        else DistanceRecord.of(counted, rows.norms, *members.sizes, unit),
    )


def _noise2(members: Members, view: View, groups: TwoGroups | None) -> float:
    """Return the variance of the noise in one coordinate, at the least what eigh can see."""
    c = members.flat.W.shape[1]
    seen = float(np.mean(members.variances[:c])) if c else 0.0
    noise2 = (seen + float(np.finfo(float).eps * np.sum(members.variances))) * view.scale**2
    if groups is not None and not groups.is_exact:
        noise2 = max(noise2, groups.scale**2)  # the weights cut off the inliers' far end
    return noise2


def _components(members: Members) -> tuple[Array, Array]:
    """Return the members' principal axes (D, d) and variances in the subspace, largest first."""
    inside = complement(members.flat.W)
    A = inside.T @ members.axes
    variances, axes = np.linalg.eigh((A * members.variances) @ A.T)
    return (inside @ axes)[:, ::-1], np.maximum(variances, 0.0)[::-1]


def in_units(groups: TwoGroups, unit: float) -> TwoGroups:
    """Return the groups with distances in other units."""
    return groups._replace(
        edges=groups.edges * unit, scale=groups.scale * unit, threshold=groups.threshold * unit
    )

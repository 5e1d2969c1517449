r"""Affine subspaces among lifted rows, and back in the units of the data.

About a centre m with the scale s, a row is lifted to ((x - m) / s, 1): an affine subspace of
dimension d is a linear one of dimension d + 1 there, with as many normals. A lifted normal (w, w0)
says w.z + w0 = 0. With the w orthonormal, lifted rows times normals are Euclidean distances.

Whether it misses the origin by more than its own error: under "it passes through", the offset h is
zero but for the error of the mean mu of N inliers and of the directions, which grows with the
distance from the mean along the subspace,

.. math::
    \operatorname{var} h_j = \frac{\sigma^2}{N}
    \Bigl(1 + \sum_k \frac{(c_k \cdot \mu)^2}{\lambda_k}\Bigr), \qquad
    \frac{|h|^2}{\operatorname{var} h_j} \sim \chi^2_c

with c_k the components and lambda_k the inliers' variances along them.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy import stats

from perpend._typing import Array
from perpend.geometry import complement
from perpend.kernels import l1_objective
from perpend.rows.views import Lifted
from perpend.solvers import Callback, Solution, TwoGroups
from perpend.structure import constants as k
from perpend.structure.checks import Verdict
from perpend.structure.confirm import confirm
from perpend.structure.law import distance_edges
from perpend.structure.reweighted import turned_by
from perpend.structure.settle import Candidate

FARTHEST = 1e6
"""Times the scale of the view. Normals that meet the rows' space only beyond this are those of the
ideal hyperplane, on which nothing lies."""

PREFERABLE = 0.5  # confidence from which on an affine subspace may be preferred to a linear one
DISTANCE_ROUNDING = 8.0  # times eps and the size of the numbers: such a distance may be 0


class AffineFit(NamedTuple):
    """An affine subspace in the units of the data."""

    solution: Solution  # normals and components (D, .); its groups are Euclidean distances
    location: Array  # (D,) the inliers' mean, on the subspace
    origin_distance: float
    origin_error: float  # standard error of each coordinate of the offset
    floor: float  # a distance below this is a rounding error
    radius: float  # of the inliers about the location
    norms: Array  # of the lifted rows, in the units of the data
    sizes: tuple[int, int]  # numbers of normals and of other directions in their span
    others: tuple["AffineFit", ...] = ()  # for each structure of the solution that is not chosen

    @property
    def origin_chance(self) -> float:
        """The chance that a subspace through the origin seems to be so far from it."""
        c, error = self.solution.normals.shape[1], self.origin_error
        if c == 0 or math.isinf(error):
            return 1.0
        if error == 0:
            return float(self.origin_distance == 0)
        return float(stats.chi2.sf((self.origin_distance / error) ** 2, c))

    @property
    def evidence(self) -> dict[str, object]:
        """What it says about the origin, by name."""
        return {
            "affine_confidence": self.solution.confidence,
            "affine_codimension": self.solution.normals.shape[1],
            "origin_distance": self.origin_distance,
            "origin_error": self.origin_error,
            "origin_chance": self.origin_chance,
        }

    @property
    def is_needed(self) -> bool:
        """Whether the rows need an affine subspace, however good a linear one is.

        It clearly misses the origin, and the rows are sure of it; or it is likely, and the inliers
        are so far from the origin that from there they all lie in one direction.
        """
        if self.origin_chance >= k.BY_CHANCE:
            return False
        remote = self.origin_distance > k.REMOTE * self.radius
        return self.solution.confidence >= (PREFERABLE if remote else k.SURE)

    def is_better_than(self, linear: Solution) -> bool:
        """Whether it clearly misses the origin and the rows support it more than a linear one."""
        likely = self.origin_chance < k.BY_CHANCE and self.solution.confidence >= PREFERABLE
        return likely and (linear.normals.shape[1] == 0 or self.solution.support > linear.support)


def euclidean(V: Array) -> Array:
    """Turn orthonormal lifted normals V (D + 1, c) so that lifted rows times them are distances.

    W = V[:-1] has c - 1 singular values 1 and one sqrt(1 - |w0|^2), which is small where the
    subspace is far away. That normal is left out where it is too far.
    """
    W, w0 = V[:-1], V[-1]
    if W.shape[1] == 0:
        return V
    U, s, Rt = np.linalg.svd(W, full_matrices=False)  # W.T z = -w0  <=>  U.T z = -(Rt w0) / s
    near = s > np.linalg.norm(w0) / FARTHEST
    return np.vstack([U[:, near], (Rt @ w0)[near] / s[near]])


class Members(NamedTuple):
    """An affine subspace among all rows that are seen, with its members."""

    V: Array  # (D + 1, c): all z with (z, 1) V = 0; V[:-1] is orthonormal
    mean: Array  # (D,) of the members, on the subspace
    variances: Array  # (D,) ascending: about the mean
    axes: Array  # (D, D)
    groups: TwoGroups | None  # None where all rows are members
    sizes: tuple[int, int]  # numbers of normals and of other directions in the lifted rows' span


def members_among(
    seen: Lifted,
    V: Array,
    candidate: Candidate | None,
    *,
    n_outside: int,
    steps: int,
    callback: Callback | None,
) -> Members:
    """Find the members of a subspace among lifted rows, and turn it to them in a few steps.

    `n_outside` of the normals are orthogonal to every row. With no steps it stays as it is.
    """
    rows, c = seen.rows, V.shape[1]
    sizes = (c - n_outside, len(V) - c)

    def turn(V: Array, moments: Array) -> tuple[Array, float]:
        if not steps:
            return V, 0.0
        mean, variances, A = moments_about_mean(moments)
        W, w0, new = V[:-1], V[-1], A[:, :c]
        moved = turned_by(W, new) * math.sqrt(float(np.sum(variances)))
        moved += float(np.linalg.norm(mean @ W + w0))
        return np.vstack([new, -(mean @ new)]), moved / rows.unit

    scans = max(steps, 1)
    end = confirm(
        rows, V, candidate, turn, sizes=sizes, unit=seen.unit, steps=scans, callback=callback
    )
    mean, variances, A = moments_about_mean(end.moments)
    W, w0 = end.V[:-1], end.V[-1]
    mean = mean - W @ (W.T @ mean + w0)  # onto the subspace
    return Members(end.V, mean, variances, A, end.groups, sizes)


def moments_about_mean(gram: Array) -> tuple[Array, Array, Array]:
    """Return mean, variances and axes of lifted rows (z, 1) from their mean gram matrix."""
    total = max(float(gram[-1, -1]), np.finfo(float).tiny)
    mean = gram[:-1, -1] / total
    variances, axes = np.linalg.eigh(gram[:-1, :-1] / total - np.outer(mean, mean))
    return mean, np.maximum(variances, 0.0), axes


def in_data(seen: Lifted, members: Members, verdict: Verdict, directions: Array) -> AffineFit:
    """Bring a subspace back to the units of the data; `directions` (D, k) belong to it."""
    rows, (centre, scale, _), unit, groups = seen.rows, seen.view, seen.unit, members.groups
    W, location = members.V[:-1], centre + scale * members.mean
    # The members' principal axes and variances in the subspace, largest first.
    inside = complement(W)
    A = inside.T @ members.axes
    variances, axes = np.linalg.eigh((A * members.variances) @ A.T)
    components, along = (inside @ axes)[:, ::-1], np.maximum(variances, 0.0)[::-1] * scale**2
    radius, eps = math.sqrt(float(np.sum(along))), float(np.finfo(rows.dtype).eps)
    rounding = DISTANCE_ROUNDING * (float(np.linalg.norm(location)) + radius) * eps
    # The variance of the noise in one coordinate, at the least what eigh can see.
    c, n_members = W.shape[1], float(np.count_nonzero(rows.gather(rows.weights)))
    noise2 = float(np.mean(members.variances[:c])) if c else 0.0
    noise2 = (noise2 + np.finfo(float).eps * float(np.sum(members.variances))) * scale**2
    if groups is not None:
        parts = ("edges", "scale", "threshold")
        groups = groups._replace(**{name: getattr(groups, name) * unit for name in parts})
        n_members *= groups.share
        if not groups.is_exact:
            noise2 = max(noise2, groups.scale**2)  # the weights cut off the inliers' far end
    noise2 += rounding**2
    with np.errstate(over="ignore"):  # equal members leave the directions open: no limit
        lever = np.sum(np.square(location @ components) / np.maximum(along, np.finfo(float).tiny))
    free = n_members - components.shape[1] - 1
    refined = np.array_equal(W, members.axes[:, :c])
    across = members.variances[:c] * scale**2
    offset = -(members.mean @ directions)
    height = rows.scan(l1_objective, np.vstack([directions, offset])).total
    height = height / (rows.total_weight or 1.0)  # nothing may be near
    solution = Solution(
        normals=W,
        components=components,
        directions=directions,
        singular_values=np.linalg.svd(directions, compute_uv=False),
        objective=float(np.mean(height)) * unit if len(height) else 0.0,
        confidence=verdict.confidence,
        evidence=verdict.evidence,
        support=verdict.support,
        gap=verdict.gap,
        groups=groups,
        doubts=tuple(map(str, verdict.doubts)),
        n_iter=1,
        converged=True,
        rank=len(W) + 1,
        distances=None,
        variances=np.append(across, along) if refined else None,
    )
    edges = distance_edges(float(rows.norms[-1]), rows.dtype)
    return AffineFit(
        solution=solution,
        location=location,
        origin_distance=float(np.linalg.norm(location @ W)),
        origin_error=math.sqrt(noise2 / free * (1 + lever)) if c and free > 0 else math.inf,
        floor=max(float(edges[0]) * unit, rounding),
        radius=radius,
        norms=rows.norms * unit,
        sizes=members.sizes,
    )

"""From rows to an affine subspace: views, a method in homogeneous coordinates, and the polish."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.affine.homogeneous import Flat, as_flat, without_offsets
from perpend.affine.origin import OriginTest, weigh_origin
from perpend.affine.polish import MAX_STEPS, Polished, polish
from perpend.affine.views import View, find_views, whole_view
from perpend.geometry import complement
from perpend.rows import RowSource, as_rows
from perpend.rows.centred import centred_norms, lift, room_for_lifted
from perpend.rows.kinds import to_numpy
from perpend.solvers import Solution, TwoGroups, distance_edges
from perpend.solvers.distance_record import DistanceRecord
from perpend.solvers.loop import Callback
from perpend.structure import DOUBTFUL, SURE

FIRST_STEPS = 3  # of the polish in the view of the search, before that of the inliers
SAME = 1e-9  # times the scale of the view: inliers that are all equal, but for rounding
FAR = 100.0  # times the inliers' radius: rows farther away have no say in the polish
LIKELY = 0.5  # confidence from which on an affine subspace may be preferred to a linear one
REMOTE = 3.0  # times the inliers' radius
ROUNDING = 8.0  # times eps and the size of the numbers: a distance that is nothing but rounding


class AffineFit(NamedTuple):
    """An affine subspace in the units of the data."""

    solution: Solution  # normals and components (D, .); its groups are Euclidean distances
    location: Array  # (D,) the inliers' mean, on the subspace
    origin: OriginTest
    floor: float  # a distance below this is a rounding error
    radius: float  # of the inliers about the location
    record: DistanceRecord | None  # of the rows that the polish saw; None where all are inliers

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

    def is_better_than(self, linear: Solution) -> bool:
        """Whether it clearly misses the origin and the rows support it more than a linear one."""
        likely = self.origin.misses and self.solution.confidence >= LIKELY
        return likely and _support(self.solution) > _support(linear)


class _Answer(NamedTuple):
    view: View
    solution: Solution
    n_rows: float  # weight of the inliers

    @property
    def is_sure(self) -> bool:
        """Whether there are normals, for sure."""
        return self.solution.confidence >= SURE and self.solution.normals.shape[1] > 0


def fit_affine(
    X: Array,
    weight: Array | None,
    solve: Callable[[RowSource], Solution],
    *,
    normalize: bool,
    refine: bool,
    n_jobs: int,
    fused: bool,
    told: bool,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> AffineFit:
    """Find the affine subspace of the inliers among the rows of X (n, D).

    `solve` is a method, which sees lifted rows: unit rows if `normalize`. Without `refine` its
    answer is brought back as it is. One array of the size of X is formed, and no other.
    """
    L = room_for_lifted(X)

    def lifted(view: View, *, unit: bool) -> RowSource:
        lift(X, view.centre, view.scale, L)
        return as_rows(
            L,
            weight=weight,
            mask=view.seen,
            normalize=unit,
            memory_budget=L.nbytes - 1,  # room for values of each row, and not for another X
            n_jobs=n_jobs,
            fused=fused,
        )

    def answer(view: View) -> _Answer:
        rows = lifted(view, unit=normalize)
        solution = solve(rows)
        share = 1.0 if solution.groups is None else solution.groups.share
        return _Answer(view, solution._replace(distances=None), share * rows.total_weight)

    answers = [answer(view) for view in find_views(X, weight, rng)]
    if len(answers) > 1 and not any(a.is_sure for a in answers):
        answers = [answer(whole_view(X, weight, rng))]
    best = max(answers, key=lambda a: (a.is_sure, a.n_rows))

    flat = as_flat(best.solution.normals)
    steps = (FIRST_STEPS, MAX_STEPS) if refine else (0, 0)
    rows = lifted(best.view, unit=False)
    first = polish(rows, flat, max_steps=steps[0], callback=callback)
    view = _view_of_inliers(X, best.view, first)
    rows = lifted(view, unit=False)
    # The mean is the new centre and lies on the subspace, which therefore has no offset here.
    flat = Flat(first.flat.W, np.zeros(first.flat.W.shape[1]))
    last = polish(rows, flat, max_steps=steps[1], callback=callback)
    return _in_units_of_data(best.solution, last, view, rows, told=told)


def _view_of_inliers(X: Array, view: View, found: Polished) -> View:
    """Return the view from the inliers' mean in which their coordinates have size one."""
    centre = view.centre + view.scale * found.mean
    equal = found.spread <= SAME  # a point without noise has no scale of its own
    scale = view.scale * (1.0 if equal else found.spread)
    near = to_numpy(centred_norms(X, centre)) <= FAR * scale * np.sqrt(len(centre))
    # Where the subspace meets another cloud, rows there would be inliers with a long lever.
    return View(centre, scale, near if view.seen is None else near & view.seen)


def _in_units_of_data(
    found: Solution, last: Polished, view: View, rows: RowSource, *, told: bool
) -> AffineFit:
    W, unit = last.flat.W, view.scale * rows.unit
    location = view.centre + view.scale * last.mean
    components, variances = _components(last)
    variances = variances * view.scale**2
    groups = last.groups
    if groups is not None:
        groups = groups._replace(
            edges=groups.edges * unit,
            scale=groups.scale * unit,
            threshold=groups.threshold * unit,
        )
    radius = float(np.sqrt(np.sum(variances)))
    rounding = (float(np.linalg.norm(location)) + radius) * float(np.finfo(rows.dtype).eps)
    rounding *= ROUNDING
    B = without_offsets(found.directions)
    solution = found._replace(
        normals=W,
        components=components,
        directions=B,
        singular_values=np.linalg.svd(B, compute_uv=False),
        groups=groups,
        converged=found.converged and last.converged,
        structures=(),  # those of the lifted rows say nothing about these
    )
    exact = groups is not None and groups.is_exact
    if not told and exact and not (found.groups and found.groups.is_exact):
        doubt = "a few rows are equal, or lie on it exactly, and the others do not (add rows)"
        solution = solution._replace(
            confidence=min(solution.confidence, DOUBTFUL), doubts=(*solution.doubts, doubt)
        )
    if W.shape[1] < found.normals.shape[1]:
        doubt = "a normal was found that no row is near to (rows may be in several places)"
        solution = solution._replace(confidence=0.0, doubts=(*found.doubts, doubt))
    return AffineFit(
        solution=solution,
        location=location,
        origin=weigh_origin(
            location,
            W,
            components,
            variances=variances,
            noise2=_noise2(last, view, groups) + rounding**2,
            n_inliers=(1.0 if groups is None else groups.share)
            * np.count_nonzero(rows.gather(rows.weights)),
        ),
        floor=max(float(distance_edges(float(rows.norms[-1]), rows.dtype)[0]) * unit, rounding),
        radius=radius,
        record=None
        if last.groups is None
        else DistanceRecord.of(last.groups, rows.norms, *last.sizes, unit),
    )


def _support(solution: Solution) -> float:
    """Return the gain of a subspace beyond what accidents reach."""
    if solution.normals.shape[1] == 0:
        return -math.inf
    gain, needed = (solution.evidence.get(name) for name in ("gain", "gain_needed"))
    if not isinstance(gain, float) or not isinstance(needed, float):
        return math.inf  # all rows lie on it
    return gain - needed


def _noise2(last: Polished, view: View, groups: TwoGroups | None) -> float:
    """Return the variance of the noise in one coordinate, at the least what eigh can see."""
    c = last.flat.W.shape[1]
    seen = float(np.mean(last.variances[:c])) if c else 0.0
    noise2 = (seen + float(np.finfo(float).eps * np.sum(last.variances))) * view.scale**2
    if groups is not None and not groups.is_exact:
        noise2 = max(noise2, groups.scale**2)  # the weights cut off the inliers' far end
    return noise2


def _components(found: Polished) -> tuple[Array, Array]:
    """Return the inliers' principal axes (D, d) and variances in the subspace, largest first."""
    inside = complement(found.flat.W)
    A = inside.T @ found.axes
    variances, axes = np.linalg.eigh((A * found.variances) @ A.T)
    return (inside @ axes)[:, ::-1], np.maximum(variances, 0.0)[::-1]

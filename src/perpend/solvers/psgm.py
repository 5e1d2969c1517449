r"""Projected subgradient descent on the sphere (PSGM), all starts at once.

.. math:: \min_b \sum_i |x_i \cdot b| \quad\text{subject to}\quad \|b\| = 1

Each step is one scan that gives objective and subgradient at every start's trial point. A start
whose trial is accepted has its next gradient already; one whose trial is refused tries a shorter
step in the next scan, while the others go on. Nobody waits, nothing is kept with the rows, and
starts that have converged leave the product. A single start has the scan for itself: a rule whose
steps are mostly refused tries several lengths in it, and takes the longest that is accepted.

The Riemannian subgradient method on orthonormal frames is the same descent with a single start, the
frame, as one long column: all normals at once, orthogonal.

.. math:: \min_V \sum_i \|V^T x_i\| \quad\text{subject to}\quad V^T V = I
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from perpend._typing import Array, Kernel
from perpend.exceptions import InputError
from perpend.geometry import random_directions
from perpend.kernels import distance_and_gradient, l1_objective_and_gradient
from perpend.rows import RowSource, RowSpan
from perpend.solvers import steps
from perpend.solvers.loop import Callback, Directions, Status, iterate

FIRST_CHECK = 6  # evaluations before somebody may find that this is enough
CHECK_AGAIN = 1.15  # times as many evaluations before the next check
LEAST = float(np.finfo(float).tiny)  # an objective, beside which zero is no change
COLUMNS = 12  # of a scan that hardly takes longer than one of a single column


class Surface(NamedTuple):
    """Where the starts are, one a column."""

    evaluate: Callable[[Array], tuple[Array, Array]]  # objectives (k,) and subgradients
    search: Callable[[Array, Array], steps.Search]  # where to step next, given both
    retract: Callable[[Array, Array], Array]  # trial points onto the surface; from where they came
    turned: Callable[[Array, Array, Array], tuple[Array, Array]]  # `moved` and `turn`: old, new, v
    unseen: float  # angles that are lost in rounding
    columns: int = 1  # of a scan that one point takes


class _State(NamedTuple):
    B: Array  # (D, k) points of the surface
    objectives: Array  # (k,)
    v: Array  # (D, k) direction to move against
    slope: Array  # (k,)
    mu: Array  # (k,) size of the next step
    streak: Array  # (k,) acceptances since the last refusal
    n_iter: Array  # (k,) accepted steps
    moved: Array  # (k,) angle of the last accepted step, infinite before the first
    relative: Array  # (k,) change of the objective in that step
    converged: Array  # (k,) bool
    objective: float = 0.0  # mean over the starts
    change: float = 0.0  # share of the starts that have not converged
    n_evaluations: int = 0  # scans

    def after(self, n_evaluations: int) -> "_State":
        """Return the same with what the loop needs."""
        k = len(self.objectives)  # np.mean is slow: a tenth of a pass over few rows
        left = k - np.count_nonzero(self.converged)
        return _State(*self[:-3], float(steps.total(self.objectives) / k), left / k, n_evaluations)

    def only(self, a: Array) -> "_State":
        """Return the starts `a` alone."""
        return _State(*(values[..., a] for values in self[:-3]))

    def put(self, a: Array, those: "_State") -> "_State":
        """Return all starts, the starts `a` as in `those`."""
        new = _State(*(values.copy(order="K") for values in self[:-3]))
        for values, part in zip(new[:-3], those[:-3], strict=True):
            values[..., a] = part
        return new

    def where(self, accepted: Array, old: "_State") -> "_State":
        """Return the starts that are `accepted`, and the others as in `old`."""
        if np.count_nonzero(accepted) == len(accepted):
            return self
        both = zip(self[:-3], old[:-3], strict=True)
        return _State(*(np.where(accepted, new, before) for new, before in both))

    def directions(self, max_iter: int, resolution: float = 0.0) -> Directions:
        """Return where the starts are, converged or not."""
        converged = self.converged & (self.n_iter < max_iter)
        here = np.ascontiguousarray(self.B), self.objectives, self.n_iter, converged
        return Directions(*here, resolution, self.n_evaluations)


def psgm(
    rows: RowSource,
    B: Array,
    *,
    rule: steps.StepRule,
    max_iter: int,
    tol: float,
    orthogonal_to: Array | None = None,
    enough: Callable[[Directions], bool] | None = None,
    callback: Callback | None = None,
    surface: Surface | None = None,
) -> Directions:
    """Descend from every column of B (D, k) and return where each start ended.

    B must be orthogonal to the orthonormal columns `orthogonal_to` (D, j); the descents stay so.
    `enough` is shown the directions on their way, ever more rarely, and may end the descents.
    The `surface` is the sphere, if it is not given.
    """
    there = surface or _sphere(rows, rule.search, orthogonal_to)
    k, ahead = B.shape[1], min(getattr(rule, "ahead", 1), COLUMNS // there.columns)
    sizes = rule.shrink ** np.arange(ahead) if k == 1 and ahead > 1 else np.ones(1)
    several, shortest = sizes.size > 1, np.arange(sizes.size) == sizes.size - 1
    none = np.zeros(k, dtype=np.int64)

    def step(old: _State) -> _State:
        # Most passes are over all starts, and over few rows each array made takes its share.
        a = None if old.change == 1 else np.flatnonzero(~old.converged)
        now = old if a is None else old.only(a)
        mu, streak = now.mu * sizes if several else now.mu, now.streak
        trial = there.retract(now.B - mu * now.v, now.B)
        f, g = there.evaluate(trial)
        accepted = rule.accepts(f, now.objectives, mu, now.slope, now.n_iter)
        if several:  # the first that is accepted counts; those after it were in vain
            i = int((accepted | shortest).argmax())
            one, streak = slice(i, i + 1), streak if i == 0 else none
            mu, trial, f, g, accepted = mu[one], trial[:, one], f[one], g[:, one], accepted[one]

        new, turn = now, 0.0
        if np.count_nonzero(accepted):
            v, slope = there.search(trial, g)
            moved, turn = there.turned(now.B, trial, v)
            relative = np.abs(f - now.objectives) / np.maximum(now.objectives, LEAST)
            counts = now.streak, now.n_iter
            new = _State(trial, f, v, slope, now.mu, *counts, moved, relative, now.converged)
            new = new.where(accepted, now)
        streak, n_iter = (streak + 1) * accepted, now.n_iter + accepted
        outcome = steps.Outcome(accepted, streak, n_iter, new.moved, accepted * turn, new.relative)
        mu = rule.following(mu, outcome)
        # Steps that are lost in rounding may be accepted for ever: the objective stays the same.
        lost = accepted & (new.moved <= there.unseen)
        done = rule.at_rest(mu, outcome, tol) | lost | (n_iter >= max_iter)
        new = _State(*new[:4], mu, streak, n_iter, new.moved, new.relative, done)
        return (new if a is None else old.put(a, new)).after(old.n_evaluations + 1)

    next_check = FIRST_CHECK

    def check(state: _State) -> bool:
        nonlocal next_check
        if enough is None or state.n_evaluations < next_check or state.change == 0:
            return False
        next_check = int(CHECK_AGAIN * next_check) + 1
        return enough(state.directions(max_iter))

    f, g = there.evaluate(B)
    v, slope = there.search(B, g)
    never = np.full(f.shape, np.inf)
    nowhere = np.linalg.norm(v, axis=0) == 0
    B, v = np.asfortranarray(B), np.asfortranarray(v)  # every column side by side
    start = _State(B, f, v, slope, rule.first(f), none, none, never, never, nowhere).after(1)
    most = steps.budget(max_iter)
    run = iterate(step, start, max_steps=most, stage="descent", callback=callback, enough=check)
    if run.status is Status.ENOUGH:
        return run.state.directions(max_iter)
    known = steps.resolution(run.state.moved, run.state.converged, tol)
    return run.state.directions(max_iter, float(known))


def _sphere(
    rows: RowSource, search: Callable[[Array, Array], steps.Search], orthogonal_to: Array | None
) -> Surface:
    """Return the surface of unit vectors."""

    def evaluate(B: Array) -> tuple[Array, Array]:
        scan = rows.scan(l1_objective_and_gradient, B)
        g = scan.product.T  # (D, k)
        if orthogonal_to is not None:
            g = g - orthogonal_to @ (orthogonal_to.T @ g)
        return scan.total, g

    def turned(old: Array, new: Array, v: Array) -> tuple[Array, Array]:
        return _angle(old, new)[0], steps.cosine(new - old, -v)

    return Surface(evaluate, search, steps.on_sphere, turned, rows.precision)


def _angle(old: Array, new: Array, *_: Array) -> tuple[Array, Array]:
    """Return the angles between unit vectors, and that nothing is known about a turn."""
    # Half the chord is the sine of half the angle; the arc sine is exact for tiny angles.
    half = steps.lengths(new - old) / 2
    return 2 * np.arcsin(np.minimum(half, 1)), np.zeros(half.shape)


def riemannian(
    rows: RowSource,
    V: Array,
    *,
    rule: steps.StepRule,
    max_iter: int,
    tol: float,
    callback: Callback | None = None,
    kernel: Kernel | None = None,
    retract: Callable[[Array, Array], Array] | None = None,
) -> Directions:
    """Descend from the orthonormal frame V (D, c); `rule` sees one start, the frame.

    Each step moves the frame against the tangent part G = g - V (V.T g) of the subgradient and
    makes it orthonormal again by a thin QR factorisation (``orth`` of the releases drops a column
    where the rank falls), or by ``retract(V - mu G, V)``, for frames (1, D, c). A `kernel` gives
    objective and g.T; that of the sum of distances is the default.
    """
    if kernel is None and V.shape[1] == 1:  # a point of the sphere
        surface = _sphere(rows, steps.down_the_tangent, None)._replace(turned=_angle)
    else:
        surface = _frames(rows, V.shape, kernel, retract)
    B = V.reshape(-1, 1)
    end = psgm(rows, B, rule=rule, max_iter=max_iter, tol=tol, callback=callback, surface=surface)
    return end._replace(B=end.B.reshape(V.shape))


def _frames(
    rows: RowSource,
    shape: tuple[int, int],
    kernel: Kernel | None,
    retract: Callable[[Array, Array], Array] | None,
) -> Surface:
    """Return the surface of orthonormal frames (D, c), each of which is one long column."""
    D, c = shape
    # Only the kernel that is the default takes frames side by side.
    measure, more = (distance_and_gradient, [c]) if kernel is None else (kernel, [])

    def apart(B: Array) -> Array:
        return B.T.reshape(-1, D, c)  # (T, D, c)

    def long(V: Array) -> Array:
        return V.reshape(len(V), -1).T  # (D c, T)

    def evaluate(B: Array) -> tuple[Array, Array]:
        scan = rows.scan(measure, apart(B).swapaxes(0, 1).reshape(D, -1), *more)
        return scan.total, long(scan.product.reshape(-1, c, D).swapaxes(1, 2))

    def search(B: Array, g: Array) -> steps.Search:
        V, g = apart(B), apart(g)
        return steps.StepRule().search(B, long(g - V @ (V.swapaxes(1, 2) @ g)))

    def orthonormal(trial: Array, old: Array) -> Array:
        if retract is not None:
            return long(retract(apart(trial), apart(old)))
        # Without signs from R the factor Q would jump between steps; the rule only sees the span.
        Q, R = np.linalg.qr(apart(trial))
        negative = np.diagonal(R, axis1=1, axis2=2) < 0
        return long(Q * np.where(negative, -1.0, 1.0)[:, None])

    def turned(old: Array, new: Array, _: Array) -> tuple[Array, Array]:
        W, V = apart(old), apart(new)
        sines = np.linalg.svd(V - W @ (W.swapaxes(1, 2) @ V), compute_uv=False)
        return np.arcsin(np.minimum(sines[:, 0], 1.0)), np.zeros(1)

    # Q and W (W.T V) are each rounded by eps a column, the spectral norm by sqrt(c) of that.
    unseen = 4 * np.sqrt(c) * float(np.finfo(rows.dtype).eps)
    return Surface(evaluate, search, orthonormal, turned, unseen, COLUMNS if kernel else c)


# -- where the descents begin ----------------------------------------------------------------------


def random_starts(rng: np.random.Generator, span: RowSpan, n_starts: int) -> Array:
    """Draw directions (D, n_starts) uniformly on the unit sphere of the rows' span."""
    B = random_directions(rng, span.rank, n_starts)
    return B if span.rank == len(span.basis) else span.basis @ B


def spectral_starts(span: RowSpan, n_starts: int) -> Array:
    """Return the axes (D, k) along which the rows vary least, at most as many as there are."""
    return span.axes[:, :n_starts]


def given_starts(init: Array, span: RowSpan) -> Array:
    """Return the given directions, one a row of `init`, as unit columns (D, k) inside the span."""
    B = np.asarray(init, dtype=float)
    n_features = span.n_features
    if B.ndim != 2 or B.shape[1] != n_features or len(B) == 0:
        raise InputError(
            f"init has shape {B.shape}; expected (n_starts, {n_features}): one direction a row."
        )
    norms = np.linalg.norm(B, axis=1)
    if not np.all(np.isfinite(norms) & (norms > 0)):
        raise InputError("init has a row that is zero or not finite; give directions.")
    B = (B / norms[:, None]).T
    if span.rank == n_features:
        return B
    inside = span.inside(B)  # what is orthogonal to every row is known already
    lengths = np.linalg.norm(inside, axis=0)
    if np.any(lengths < 1e-8):
        raise InputError(
            f"init has a direction that is orthogonal to every row (row {np.argmin(lengths)}); "
            "leave it out."
        )
    return inside / lengths

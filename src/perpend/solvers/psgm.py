r"""Projected subgradient descent on the sphere (PSGM), all starts at once.

.. math:: \min_b \sum_i |x_i \cdot b| \quad\text{subject to}\quad \|b\| = 1

Each step is one scan that gives objective and subgradient at every start's trial point. A start
whose trial is accepted has its next gradient already; one whose trial is refused tries a shorter
step in the next scan, while the others go on. Nobody waits, nothing is kept with the rows, and
starts that have converged leave the product.

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
from perpend.solvers.loop import Callback, Status, iterate
from perpend.solvers.result import Directions

FIRST_CHECK = 6  # evaluations before somebody may find that this is enough
CHECK_AGAIN = 1.15  # times as many evaluations before the next check


class Surface(NamedTuple):
    """Where the starts are, one a column."""

    evaluate: Callable[[Array], tuple[Array, Array]]  # objectives (k,) and subgradients
    search: Callable[[Array, Array], steps.Search]  # where to step next, given both
    retract: Callable[[Array, Array], Array]  # trial points onto the surface; from where they came
    turned: Callable[[Array, Array, Array], tuple[Array, Array]]  # `moved` and `turn`: old, new, v
    unseen: float  # angles that are lost in rounding


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
        means = float(np.mean(self.objectives)), float(np.mean(~self.converged))
        return _State(*self[:-3], *means, n_evaluations)

    def directions(self, max_iter: int, resolution: float = 0.0) -> Directions:
        """Return where the starts are, converged or not."""
        converged = self.converged & (self.n_iter < max_iter)
        here = self.B, self.objectives, self.n_iter, converged
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
    there = surface or _sphere(rows, rule, orthogonal_to)

    def step(old: _State) -> _State:
        a = np.flatnonzero(~old.converged)
        mu, before = old.mu[a], old.objectives[a]
        trial = there.retract(old.B[:, a] - mu * old.v[:, a], old.B[:, a])
        f, g = there.evaluate(trial)
        accepted = rule.accepts(f, before, mu, old.slope[a], old.n_iter[a])

        new = _State(*(values.copy() for values in old[:-3]))
        yes, taken, turn = a[accepted], trial[:, accepted], np.zeros(a.size)
        new.B[:, yes], new.objectives[yes] = taken, f[accepted]
        new.streak[a] = np.where(accepted, old.streak[a] + 1, 0)
        new.n_iter[yes] += 1
        if yes.size:
            new.v[:, yes], new.slope[yes] = there.search(taken, g[:, accepted])
            new.moved[yes], turn[accepted] = there.turned(old.B[:, yes], taken, new.v[:, yes])
        new.relative[yes] = (np.abs(f - before) / np.where(before > 0, before, 1))[accepted]
        so_far = new.streak[a], new.n_iter[a], new.moved[a]
        outcome = steps.Outcome(accepted, *so_far, turn, new.relative[a])
        new.mu[a] = rule.following(mu, outcome)
        # Steps that are lost in rounding may be accepted for ever: the objective stays the same.
        lost = accepted & (outcome.moved <= there.unseen)
        done = rule.at_rest(new.mu[a], outcome, tol) | lost
        new.converged[a] = done | (outcome.n_iter >= max_iter)
        return new.after(old.n_evaluations + 1)

    next_check = FIRST_CHECK

    def check(state: _State) -> bool:
        nonlocal next_check
        if enough is None or state.n_evaluations < next_check or state.change == 0:
            return False
        next_check = int(CHECK_AGAIN * next_check) + 1
        return enough(state.directions(max_iter))

    f, g = there.evaluate(B)
    v, slope = there.search(B, g)
    none, never = np.zeros(f.shape, dtype=np.int64), np.full(f.shape, np.inf)
    nowhere = np.linalg.norm(v, axis=0) == 0
    start = _State(B, f, v, slope, rule.first(f), none, none, never, never, nowhere).after(1)
    most = steps.budget(max_iter)
    run = iterate(step, start, max_steps=most, stage="descent", callback=callback, enough=check)
    if run.status is Status.ENOUGH:
        return run.state.directions(max_iter)
    known = steps.resolution(run.state.moved, run.state.converged, tol)
    return run.state.directions(max_iter, float(known))


def _sphere(rows: RowSource, rule: steps.StepRule, orthogonal_to: Array | None) -> Surface:
    def evaluate(B: Array) -> tuple[Array, Array]:
        scan = rows.scan(l1_objective_and_gradient, B)
        g = scan.product.T  # (D, k)
        if orthogonal_to is not None:
            g = g - orthogonal_to @ (orthogonal_to.T @ g)
        return scan.total, g

    def turned(old: Array, new: Array, v: Array) -> tuple[Array, Array]:
        chord = new - old
        # Half the chord is the sine of half the angle; the arc sine is exact for tiny angles.
        half = np.linalg.norm(chord, axis=0) / 2
        return 2 * np.arcsin(np.minimum(half, 1)), steps.cosine(chord, -v)

    return Surface(evaluate, rule.search, steps.on_sphere, turned, rows.precision)


def riemannian(
    rows: RowSource,
    V: Array,
    *,
    rule: steps.StepRule,
    max_iter: int,
    tol: float,
    callback: Callback | None = None,
    kernel: Kernel = distance_and_gradient,
    retract: Callable[[Array, Array], Array] | None = None,
) -> Directions:
    """Descend from the orthonormal frame V (D, c); `rule` sees one start, the frame.

    Each step moves the frame against the tangent part G = g - V (V.T g) of the subgradient and
    makes it orthonormal again by a thin QR factorisation (``orth`` of the releases drops a column
    where the rank falls), or by ``retract(V - mu G, V)``. The `kernel` gives objective and g.T.
    """
    shape = V.shape

    def evaluate(B: Array) -> tuple[Array, Array]:
        V = B.reshape(shape)
        scan = rows.scan(kernel, V)
        g = scan.product.T  # (D, c)
        return scan.total, (g - V @ (V.T @ g)).reshape(-1, 1)

    def orthonormal(trial: Array, old: Array) -> Array:
        if retract is not None:
            return retract(trial.reshape(shape), old.reshape(shape)).reshape(-1, 1)
        # Without signs from R the factor Q would jump between steps; the rule only sees the span.
        Q, R = np.linalg.qr(trial.reshape(shape))
        return (Q * np.where(np.diag(R) < 0, -1.0, 1.0)).reshape(-1, 1)

    def turned(old: Array, new: Array, _: Array) -> tuple[Array, Array]:
        W, V = old.reshape(shape), new.reshape(shape)
        sine = np.linalg.norm(V - W @ (W.T @ V), 2)
        return np.arcsin(np.minimum(sine, 1.0)), np.zeros(1)

    along_g, unseen = steps.StepRule().search, float(np.finfo(rows.dtype).eps)
    frames, B = Surface(evaluate, along_g, orthonormal, turned, unseen), V.reshape(-1, 1)
    end = psgm(rows, B, rule=rule, max_iter=max_iter, tol=tol, callback=callback, surface=frames)
    return end._replace(B=end.B.reshape(shape))


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

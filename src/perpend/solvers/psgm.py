r"""Projected subgradient descent on the sphere (PSGM), all starts at once.

.. math:: \min_b \sum_i |x_i \cdot b| \quad\text{subject to}\quad \|b\| = 1

Each step is one scan that gives objective and subgradient at every start's trial point. A start
whose trial is accepted has its next gradient already; one whose trial is refused tries a shorter
step in the next scan, while the others go on. Nobody waits, nothing is kept with the rows, and
starts that are at rest leave the product.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.geometry import random_directions
from perpend.kernels import l1_objective_and_gradient
from perpend.rows import RowSource, RowSpan
from perpend.solvers.loop import Callback, Status, iterate
from perpend.solvers.result import Directions
from perpend.solvers.steps import Outcome, StepRule

FIRST_LOOK = 6  # evaluations before somebody may find that this is enough
LOOK_AGAIN = 1.15  # times as many evaluations at the next look


class _Starts(NamedTuple):
    B: Array  # (D, k) unit columns
    f: Array  # (k,) objective
    v: Array  # (D, k) direction to move against
    slope: Array  # (k,)
    mu: Array  # (k,) size of the next step
    streak: Array  # (k,) acceptances since the last refusal
    n_iter: Array  # (k,) accepted steps
    moved: Array  # (k,) angle of the last accepted step, infinite before the first
    change: Array  # (k,) relative change of the objective in that step
    resting: Array  # (k,) bool


class _State(NamedTuple):
    starts: _Starts
    objective: float  # mean over the starts
    change: float  # share of the starts that are not at rest
    n_evaluations: int  # scans

    @property
    def objectives(self) -> Array:
        """The objective of each start."""
        return self.starts.f


def psgm(
    rows: RowSource,
    B: Array,
    *,
    rule: StepRule,
    max_iter: int,
    tol: float,
    orthogonal_to: Array | None = None,
    enough: Callable[[Directions], bool] | None = None,
    known: Callable[[Array], Array] | None = None,
    callback: Callback | None = None,
) -> Directions:
    """Descend from every column of B (D, k) and return where each start ended.

    B must be orthogonal to the orthonormal columns `orthogonal_to` (D, j); the descents stay so.
    `enough` is shown the directions on their way, ever more rarely, and may end the descents.
    `known` says which directions (D, k) repeat what is known; these wait for the others.
    """
    unseen = rows.precision

    def evaluate(B: Array) -> tuple[Array, Array]:
        scan = rows.scan(l1_objective_and_gradient, B)
        g = scan.product.T  # (D, k)
        if orthogonal_to is not None:
            g = g - orthogonal_to @ (orthogonal_to.T @ g)
        return scan.total, g

    def step(state: _State) -> _State:
        old = state.starts
        a = np.flatnonzero(~old.resting)
        if known is not None:
            waits = known(old.B[:, a])
            a = a if np.all(waits) else a[~waits]
        mu = old.mu[a]
        trial = old.B[:, a] - mu * old.v[:, a]
        length = np.linalg.norm(trial, axis=0)
        # A Euclidean step of exactly 1/f can end at the origin. Staying gains nothing: refused.
        trial = np.where(length > 0, trial / np.where(length > 0, length, 1), old.B[:, a])
        f, g = evaluate(trial)
        accepted = rule.accepts(f, old.f[a], mu, old.slope[a], old.n_iter[a])

        new = _Starts(*(values.copy() for values in old))
        yes = a[accepted]
        new.B[:, yes], new.f[yes] = trial[:, accepted], f[accepted]
        new.v[:, yes], new.slope[yes] = rule.search(trial[:, accepted], g[:, accepted])
        new.streak[a] = np.where(accepted, old.streak[a] + 1, 0)
        new.n_iter[yes] += 1
        chord = new.B[:, yes] - old.B[:, yes]
        # Half the chord is the sine of half the angle; the arc sine is exact for tiny angles.
        half = np.linalg.norm(chord, axis=0) / 2
        new.moved[yes] = 2 * np.arcsin(np.minimum(half, 1))
        new.change[yes] = np.abs(f[accepted] - old.f[yes]) / np.where(old.f[yes] > 0, old.f[yes], 1)
        turn = np.zeros(a.size)
        turn[accepted] = _cosine(chord, -new.v[:, yes])
        outcome = Outcome(accepted, new.streak[a], new.n_iter[a], new.moved[a], turn, new.change[a])
        new.mu[a] = rule.following(mu, outcome)
        # Steps that are lost in rounding may be accepted for ever: the objective stays the same.
        lost = accepted & (new.moved[a] <= unseen)
        done = rule.at_rest(new.mu[a], outcome, tol) | lost
        new.resting[a] = done | (new.n_iter[a] >= max_iter)
        return _state(new, state.n_evaluations + 1)

    f, g = evaluate(B)
    search = rule.search(B, g)
    k = B.shape[1]
    zeros = np.zeros(k, dtype=np.int64)
    nowhere = np.linalg.norm(search.v, axis=0) == 0
    never = np.full(k, np.inf)
    start = _Starts(B, f, *search, rule.first(f), zeros, zeros, never, never, nowhere)
    # A refusal shrinks the step; there are at most as many as it takes down to the floor, and one
    # more for every time that the step has grown.
    budget = 2 * max_iter + 200
    run = iterate(
        step,
        _state(start, 1),
        max_steps=budget,
        stage="descent",
        callback=callback,
        enough=None if enough is None else _Looks(enough, max_iter),
    )
    end = run.state.starts
    if run.status is Status.ENOUGH:
        return _on_the_way(run.state, max_iter)
    # A start that rests without having moved was there already, as far as steps can tell.
    moved = np.where(np.isfinite(end.moved), end.moved, np.where(end.resting, tol, 1.0))
    resolution = float(np.max(np.minimum(moved, 1.0)))
    return _on_the_way(run.state, max_iter)._replace(resolution=resolution)


class _Looks:
    """Shows the directions to whoever may find them enough, at growing intervals."""

    def __init__(self, enough: Callable[[Directions], bool], max_iter: int) -> None:
        self.enough, self.max_iter = enough, max_iter
        self.next = FIRST_LOOK

    def __call__(self, state: _State) -> bool:
        if state.n_evaluations < self.next or state.change == 0:
            return False
        self.next = int(LOOK_AGAIN * self.next) + 1
        return self.enough(_on_the_way(state, self.max_iter))


def _on_the_way(state: _State, max_iter: int) -> Directions:
    """Return where the starts are, whether they rest there or not."""
    starts = state.starts
    return Directions(
        B=starts.B,
        objective=starts.f,
        n_iter=starts.n_iter,
        converged=starts.resting & (starts.n_iter < max_iter),
        resolution=0.0,
        n_evaluations=state.n_evaluations,
    )


def _state(starts: _Starts, n_evaluations: int) -> _State:
    objective, moving = float(np.mean(starts.f)), float(np.mean(~starts.resting))
    return _State(starts, objective, moving, n_evaluations)


def _cosine(A: Array, B: Array) -> Array:
    """Return the cosine between the columns of A and those of B, 0 where one of them vanishes."""
    scale = np.linalg.norm(A, axis=0) * np.linalg.norm(B, axis=0)
    return np.sum(A * B, axis=0) / np.where(scale > 0, scale, np.inf)


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

r"""Projected subgradient descent on the sphere (PSGM), all starts at once.

.. math:: \min_b \sum_i |x_i \cdot b| \quad\text{subject to}\quad \|b\| = 1

Each step is one scan that gives objective and subgradient at every start's trial point. A start
whose trial is accepted has its next gradient already; one whose trial is refused tries a shorter
step in the next scan, while the others go on. Nobody waits, nothing is kept with the rows, and
starts that are at rest leave the product.
"""

from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.kernels import l1_objective_and_gradient
from perpend.rows import RowSource
from perpend.solvers.loop import Callback, iterate
from perpend.solvers.result import Directions
from perpend.solvers.steps import Outcome, StepRule


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


def psgm(
    rows: RowSource,
    B: Array,
    *,
    rule: StepRule,
    max_iter: int,
    tol: float,
    orthogonal_to: Array | None = None,
    callback: Callback | None = None,
) -> Directions:
    """Descend from every column of B (D, k) and return where each start came to rest.

    B must be orthogonal to the orthonormal columns `orthogonal_to` (D, j); the descents stay so.
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
        return _state(new)

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
    run = iterate(step, _state(start), max_steps=budget, stage="descent", callback=callback)
    end = run.state.starts
    # A start that rests without having moved was there already, as far as steps can tell.
    moved = np.where(np.isfinite(end.moved), end.moved, np.where(end.resting, tol, 1.0))
    return Directions(
        B=end.B,
        objective=end.f,
        n_iter=end.n_iter,
        converged=end.resting & (end.n_iter < max_iter),
        resolution=float(np.max(np.minimum(moved, 1.0))),
        n_evaluations=run.n_steps + 1,
    )


def _state(starts: _Starts) -> _State:
    return _State(starts, float(np.mean(starts.f)), float(np.mean(~starts.resting)))


def _cosine(A: Array, B: Array) -> Array:
    """Return the cosine between the columns of A and those of B, 0 where one of them vanishes."""
    scale = np.linalg.norm(A, axis=0) * np.linalg.norm(B, axis=0)
    return np.sum(A * B, axis=0) / np.where(scale > 0, scale, np.inf)

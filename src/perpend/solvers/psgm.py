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
from perpend.solvers.steps import Outcome, Search, StepRule


class _State(NamedTuple):
    B: Array  # (D, k) unit columns
    f: Array  # (k,) objective
    v: Array  # (D, k) direction to move against
    slope: Array  # (k,)
    mu: Array  # (k,) size of the next step
    streak: Array  # (k,) acceptances since the last refusal
    n_iter: Array  # (k,) accepted steps
    moved: Array  # (k,) angle of the last accepted step
    resting: Array  # (k,) bool
    objective: float  # mean over the starts
    change: float  # the longest step still to come, relative


def psgm(
    rows: RowSource,
    B: Array,
    *,
    rule: StepRule,
    max_iter: int,
    tol: float,
    callback: Callback | None = None,
) -> Directions:
    """Descend from every column of B (D, k) and return where each start came to rest."""

    def evaluate(B: Array) -> tuple[Array, Array]:
        scan = rows.scan(l1_objective_and_gradient, B)
        return scan.total, scan.product.T  # (k,), (D, k)

    def step(state: _State) -> _State:
        a = np.flatnonzero(~state.resting)
        mu = state.mu[a]
        trial = state.B[:, a] - mu * state.v[:, a]
        length = np.linalg.norm(trial, axis=0)
        # A Euclidean step of exactly 1/f can end at the origin. Staying gains nothing: refused.
        trial = np.where(length > 0, trial / np.where(length > 0, length, 1), state.B[:, a])
        f, g = evaluate(trial)
        accepted = rule.accepts(f, state.f[a], mu, state.slope[a])

        yes = a[accepted]
        step_taken = trial[:, accepted] - state.B[:, yes]
        v, slope = rule.search(trial[:, accepted], g[:, accepted])
        new = {name: getattr(state, name).copy() for name in _State._fields[:9]}
        new["B"][:, yes], new["f"][yes] = trial[:, accepted], f[accepted]
        new["v"][:, yes], new["slope"][yes] = v, slope
        new["streak"][a] = np.where(accepted, state.streak[a] + 1, 0)
        new["n_iter"][yes] += 1
        # Half the chord is the sine of half the angle; the arc sine is exact for tiny angles.
        chord = np.linalg.norm(step_taken, axis=0)
        new["moved"][yes] = 2 * np.arcsin(np.minimum(chord / 2, 1))
        turn = np.zeros(a.size)
        turn[accepted] = _cosine(step_taken, -v)
        outcome = Outcome(accepted, new["streak"][a], new["n_iter"][a], new["moved"][a], turn)
        new["mu"][a] = rule.following(mu, outcome)
        new["resting"][a] = rule.at_rest(new["mu"][a], outcome, tol)
        return _settle(_State(**new, objective=0.0, change=0.0), max_iter)

    f, g = evaluate(B)
    search: Search = rule.search(B, g)
    k = B.shape[1]
    counts = np.zeros(k, dtype=np.int64)
    nowhere = np.linalg.norm(search.v, axis=0) == 0
    start = _State(
        B, f, *search, rule.first(f), counts, counts, np.full(k, np.inf), nowhere, 0.0, 0.0
    )
    # A refusal halves the step; there are at most as many as halvings down to the floor, and one
    # more for every time that the step has grown.
    budget = 2 * max_iter + 200
    run = iterate(
        step, _settle(start, max_iter), max_steps=budget, stage="descent", callback=callback
    )
    end = run.state
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


def _settle(state: _State, max_iter: int) -> _State:
    """Let starts rest that have used up their iterations, and say how the whole is doing."""
    resting = state.resting | (state.n_iter >= max_iter)
    return state._replace(
        resting=resting,
        objective=float(np.mean(state.f)),
        change=float(np.mean(~resting)),
    )


def _cosine(A: Array, B: Array) -> Array:
    """Return the cosine between the columns of A and those of B, 0 where one of them vanishes."""
    scale = np.linalg.norm(A, axis=0) * np.linalg.norm(B, axis=0)
    return np.sum(A * B, axis=0) / np.where(scale > 0, scale, np.inf)

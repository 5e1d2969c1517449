r"""Projected subgradient descent for many problems at once, in the words NumPy and torch share.

This is `perpend.solvers.psgm` with one more axis, by the same step rules. Every start of every
problem has its own step size and is accepted or refused by itself; one pass at the trial points
gives objective and subgradient of all. Directions are rows here: B is (p, k, D).
"""

from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from perpend._typing import Array
from perpend.geometry import library
from perpend.rows.stacks import directly, evaluate, like, norm, on_cuda, put, some, to_host
from perpend.solvers import AutoStep, MBLSStep, Outcome
from perpend.solvers.steps import budget, cosine, on_sphere

Rule: TypeAlias = AutoStep | MBLSStep
CHECK = 10  # passes on a device between two checks of who has converged


class Starts(NamedTuple):
    """The state of all descents; the leading axes are (p, k)."""

    B: Array  # (p, k, D) unit rows
    f: Array  # objective
    v: Array  # (p, k, D) direction to move against
    slope: Array  # decrease per unit step that the rule counts on
    mu: Array  # size of the next step
    streak: Array  # acceptances since the last refusal
    n_iter: Array  # accepted steps
    chord: Array  # length of the last accepted step, infinite before the first
    converged: Array  # bool


class Limits(NamedTuple):
    """When a start has converged."""

    max_iter: int
    tol: float  # "auto" has converged when its next step is shorter
    unseen: float  # a step that is shorter is lost in rounding
    low: float = 0.0  # the floor of a low precision: no rule goes on below it


def descend(X: Array, B: Array, rule: Rule, limits: Limits) -> Starts:
    """Descend from B (p, k, D) over the unit rows X (p, n, D) until every start has converged.

    Converged problems leave the product as soon as they are half of those in it.
    """
    part, running = first(X, B, rule), np.arange(len(B))
    state: Starts = some(part, running)
    for n_done in range(budget(limits.max_iter)):
        if n_done % (CHECK if on_cuda(X) else 1) == 0:
            left = ~to_host(part.converged).all(axis=1)
            if not left.any():
                break
            if 2 * left.sum() <= len(left):
                put(part, state, running)
                running, X, part = running[left], X[left], some(part, left)
        part = step(X, part, rule, limits)
    put(part, state, running)
    return state


def first(X: Array, B: Array, rule: Rule) -> Starts:
    """Return the state before the first step."""
    xp, (f, g) = library(B), evaluate(X, B)
    v, slope = rule.search(B, g, axis=-1)
    none = xp.zeros_like(f, dtype=xp.int64)
    mu, chord = rule.first(f), xp.full_like(f, float("inf"))
    return Starts(xp.asarray(B, copy=True), f, v, slope, mu, none, none + 0, chord, norm(v) == 0)


def step(X: Array, old: Starts, rule: Rule, limits: Limits) -> Starts:
    """Try one step with every start, and draw the conclusions of the rule."""
    xp = library(old.B)
    trial = on_sphere(old.B - old.mu[..., None] * old.v, old.B, axis=-1)
    f, g = evaluate(X, trial)
    accepted = rule.accepts(f, old.f, old.mu, old.slope, old.n_iter) & ~old.converged
    yes, chord = accepted[..., None], trial - old.B
    v, slope = rule.search(trial, g, axis=-1)
    streak = xp.where(accepted, old.streak + 1, xp.where(old.converged, old.streak, 0))
    length, turn = norm(chord), cosine(chord, -v, axis=-1)
    outcome = Outcome(accepted, streak, old.n_iter + accepted, turn=turn)
    mu = rule.following(old.mu, outcome)
    v = xp.where(yes, v, old.v)
    # Steps that are lost in rounding may be accepted for ever: the objective stays the same.
    done = (accepted & (length <= limits.unseen)) | (outcome.n_iter >= limits.max_iter)
    done = done | (mu * norm(v) < limits.low) | rule.at_rest(mu, outcome, limits.tol)
    return Starts(
        B=xp.where(yes, trial, old.B),
        f=xp.where(accepted, f, old.f),
        v=v,
        slope=xp.where(accepted, slope, old.slope),
        mu=xp.where(old.converged, old.mu, mu),
        streak=streak,
        n_iter=outcome.n_iter,
        chord=xp.where(accepted, length, old.chord),
        converged=old.converged | done,
    )


def descend_on_device(
    X: Array, B: Array, rule: Rule, limits: Limits, *, kernels: str, space: Any = None
) -> Starts:
    """Do the same on a CUDA device, by the `kernels` of its plan.

    With a workspace, X must be the same tensor in every call, and what is returned is overwritten
    by the next one.
    """
    if kernels == "torch" and space is None:
        return descend(X, B, rule, limits)
    from perpend.kernels.cuda.stacks import Captured, Fused

    mbls, engines = isinstance(rule, MBLSStep), {} if space is None else space.engines
    key = (kernels, rule, limits) if kernels == "torch" else (kernels, mbls)
    if key not in engines and kernels == "torch":
        how = partial(first, rule=rule), partial(step, rule=rule, limits=limits)
        engines[key] = Captured(X, B, *how, times=CHECK)
    elif key not in engines:
        pair, capture = kernels == "pair", space is not None
        engines[key] = Fused(X, B, pair=pair, mbls=mbls, times=CHECK, capture=capture)
    engine, run = engines[key], directly if space is None else space.run
    run(engine.begin, X, B, like(X, constants(rule, limits)))
    engine.loop.run(-(-budget(limits.max_iter) // CHECK))
    return Starts(*run(engine.end))


def constants(rule: Rule, limits: Limits) -> Array:
    """Return the numbers that the step kernel asks for, in its order; on the host."""
    names = ("mu0", "armijo", "shrink", "grow", "patience", "back", "floor")
    values = [getattr(rule, name, 0.0) for name in names]
    return np.array([*values, limits.max_iter, limits.tol, limits.unseen, limits.low])

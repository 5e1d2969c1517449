r"""Projected subgradient descent for many problems at once, in the words NumPy and torch share.

This is `perpend.solvers.psgm` with one more axis. Every start of every problem has its own step
size and is accepted or refused by itself; one pass at the trial points gives objective and
subgradient of all. Directions are rows here: B is (p, k, D).
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeAlias

from perpend._typing import Array
from perpend.batch.arrays import library, norm, on_cuda, put, some, to_host, transposed
from perpend.solvers import AutoStep, MBLSStep

Rule: TypeAlias = AutoStep | MBLSStep
Evaluate: TypeAlias = Callable[[Array], tuple[Array, Array]]

LOOK = 10  # passes on a device between two looks at who is at rest


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
    resting: Array  # bool


class Limits(NamedTuple):
    """When a start is at rest."""

    max_iter: int
    tol: float  # "auto" rests when its next step is shorter
    unseen: float  # a step that is shorter is lost in rounding
    low: float = 0.0  # the floor of a low precision: no rule goes on below it

    @property
    def budget(self) -> int:
        """The number of passes, as in `psgm`: one for each iteration and for each refusal."""
        return 2 * self.max_iter + 200


def evaluate(X: Array, B: Array) -> tuple[Array, Array]:
    """Return f (p, k) and g (p, k, D) at B: sum |x.b| and sum sign(x.b) x; sign(0) = 0."""
    xp = library(X)
    P = X @ transposed(xp.asarray(B, dtype=X.dtype))  # (p, n, k)
    f = xp.sum(xp.abs(P), axis=1, dtype=B.dtype)
    return f, xp.asarray(transposed(xp.sign(P)) @ X, dtype=B.dtype)


def descend(X: Array, B: Array, rule: Rule, limits: Limits) -> Starts:
    """Descend from B (p, k, D) over the unit rows X (p, n, D) until every start is at rest.

    Problems at rest leave the product as soon as they are half of those in it.
    """
    state = part = first(B, *evaluate(X, B), rule)
    running = None  # all of them
    for n_done in range(limits.budget):
        if n_done % (LOOK if on_cuda(X) else 1) == 0:
            left = ~to_host(part.resting).all(axis=1)
            if not left.any():
                break
            if 2 * left.sum() <= len(left):
                state = _whole(state, running, part)
                running = left.nonzero()[0] if running is None else running[left]
                X, part = X[left], some(part, left)
        part = step(part, partial(evaluate, X), rule, limits)
    return _whole(state, running, part)


def first(B: Array, f: Array, g: Array, rule: Rule) -> Starts:
    """Return the state before the first step."""
    xp = library(B)
    v, slope = search(B, g, rule)
    none = xp.zeros_like(f, dtype=xp.int64)
    mu, chord = xp.full_like(f, rule.mu0), xp.full_like(f, float("inf"))
    return Starts(xp.asarray(B, copy=True), f, v, slope, mu, none, none + 0, chord, norm(v) == 0)


def step(old: Starts, evaluate: Evaluate, rule: Rule, limits: Limits) -> Starts:
    """Try one step with every start, and draw the conclusions of the rule."""
    xp = library(old.B)
    trial = old.B - old.mu[..., None] * old.v
    length = norm(trial)[..., None]
    # A Euclidean step of exactly 1/f can end at the origin. Staying gains nothing: refused.
    trial = xp.where(length > 0, trial / xp.where(length > 0, length, 1.0), old.B)
    f, g = evaluate(trial)

    enough = f <= old.f - rule.armijo * old.mu * old.slope
    if isinstance(rule, MBLSStep):
        enough = enough | (old.mu <= rule.floor)
    accepted = enough & ~old.resting
    yes = accepted[..., None]
    chord = trial - old.B
    v, slope = search(trial, g, rule)
    streak = xp.where(accepted, old.streak + 1, xp.where(old.resting, old.streak, 0))
    n_iter = old.n_iter + accepted
    length = norm(chord)
    mu = following(old.mu, accepted, streak, _cosine(chord, -v), rule)
    v = xp.where(yes, v, old.v)

    # Steps that are lost in rounding may be accepted for ever: the objective stays the same.
    done = accepted & (length <= limits.unseen)
    done = done | (n_iter >= limits.max_iter) | (mu * norm(v) < limits.low)
    short = (mu <= rule.floor) & accepted if isinstance(rule, MBLSStep) else mu <= limits.tol
    return Starts(
        B=xp.where(yes, trial, old.B),
        f=xp.where(accepted, f, old.f),
        v=v,
        slope=xp.where(accepted, slope, old.slope),
        mu=xp.where(old.resting, old.mu, mu),
        streak=streak,
        n_iter=n_iter,
        chord=xp.where(accepted, length, old.chord),
        resting=old.resting | done | short,
    )


def search(B: Array, g: Array, rule: Rule) -> tuple[Array, Array]:
    """Return the direction to move against and the slope along it; see `perpend.solvers.steps`."""
    xp = library(B)
    if isinstance(rule, MBLSStep):
        return g, xp.sum(g * g, axis=-1)
    G = g - B * xp.sum(B * g, axis=-1, keepdims=True)  # the tangent part
    size = norm(G)
    return G / xp.where(size > 0, size, 1.0)[..., None], size


def following(mu: Array, accepted: Array, streak: Array, turn: Array, rule: Rule) -> Array:
    """Return the next step sizes."""
    xp = library(mu)
    if isinstance(rule, MBLSStep):
        return xp.where(accepted, mu, rule.shrink * mu)
    patient = (streak > 0) & (streak % rule.patience == 0)
    grown = xp.where(patient, xp.clip(rule.grow * mu, None, rule.mu0), mu)
    return xp.where(~accepted | (turn < rule.back), rule.shrink * mu, grown)


def _cosine(A: Array, B: Array) -> Array:
    """Return the cosines between the rows of A and B, 0 where one of them vanishes."""
    xp = library(A)
    scale = norm(A) * norm(B)
    return xp.sum(A * B, axis=-1) / xp.where(scale > 0, scale, float("inf"))


def _whole(state: Starts, running: Array | None, part: Starts) -> Starts:
    """Return the state of all problems, with what became of those that were still running."""
    if running is None:
        return part
    put(part, state, running)
    return state

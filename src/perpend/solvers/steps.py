r"""Step rules of projected subgradient descent, one step size for each start.

Every rule moves :math:`b \leftarrow (b - \mu v) / \|b - \mu v\|` and differs in the direction v, in
the decrease it asks for, and in what it makes of success and failure. The identities
:math:`b \cdot g = f(b)` and :math:`g = f b + G` (G the tangent part of the subgradient g) say that
a Euclidean step mu < 1/f is exactly the tangent step mu / (1 - mu f).

Directions are columns. The rules that serve stacks of problems take them along another `axis`, too,
and arrays of torch.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.geometry import library


class Search(NamedTuple):
    """Where each start steps next."""

    v: Array  # (D, k) the direction to move against
    slope: Array  # (k,) the decrease of the objective per unit step, to first order


class Outcome(NamedTuple):
    """What became of the last trials, one entry for each start; None where no rule asks for it."""

    accepted: Array  # bool
    streak: Array  # acceptances since the last refusal
    n_iter: Array  # accepted steps so far
    moved: Array = None  # angle of the last accepted step, infinite before the first
    turn: Array = None  # cosine between that step and the new way down; -1: straight back
    change: Array = None  # |f - f_old| / f_old of that step, infinite before the first


class StepRule:
    """How long the steps are: a backtracking line search, unless a rule says otherwise.

    Arrays have one entry for each start. Any object with these methods will do as a rule.
    """

    mu0, armijo, shrink, floor = 1.0, 0.0, 0.5, 0.0  # fields of a rule hide them
    ahead = 1  # sizes that a single start may try in one scan, each for the case of a refusal

    def search(self, B: Array, g: Array, axis: int = 0) -> Search:
        """Return where to step next, given directions B and subgradients g (D, k).

        Here that is against g itself, with the slope ||g||^2.
        """
        del B
        return Search(g, total(g * g, axis))

    def first(self, f: Array) -> Array:
        """Return the first step sizes, given the objectives at the starts: the same everywhere."""
        return library(f).full_like(f, self.mu0)

    def accepts(self, f_trial: Array, f: Array, mu: Array, slope: Array, n_iter: Array) -> Array:
        """Say which trials become the next iterates; `n_iter` counts those before.

        They need f(trial) <= f - armijo mu slope, except at the floor.
        """
        del n_iter
        falls: Array = f_trial <= f - self.armijo * mu * slope
        return falls | (mu <= self.floor) if self.floor else falls

    def following(self, mu: Array, outcome: Outcome) -> Array:
        """Return the next step sizes: shorter after a refusal, otherwise the same."""
        return library(mu).where(outcome.accepted, mu, self.shrink * mu)

    def at_rest(self, mu: Array, outcome: Outcome, tol: float) -> Array:
        """Say which starts are done: where the trial at the floor has been accepted."""
        del tol
        return (mu <= self.floor) & outcome.accepted


@dataclass(frozen=True)
class AutoStep(StepRule):
    """Scale-free backtracking along the tangent; perpend's own rule.

    The step size is the tangent of the angle moved, so it has no unit and nothing depends on the
    scale or number of the rows. Sufficient decrease is measured with the tangent gradient: with the
    Euclidean one the test cannot pass once ||G|| / f < sqrt(armijo), and the step collapses.
    A demanding `armijo` refuses long steps that gain little: starts then fall onto a nearby normal
    instead of wandering to a common one, which keeps the rank of the solutions. After `patience`
    acceptances in a row the step grows again; after a step that turned back it shrinks.
    """

    mu0: float = 1.0  # 45 degrees
    armijo: float = 0.1
    shrink: float = 0.5
    grow: float = 2.0
    patience: int = 5
    back: float = -0.7  # a cosine below this is a turn back

    def search(self, B: Array, g: Array, axis: int = 0) -> Search:
        """Return the unit tangent G / ||G|| with G = g - b (b.g); the slope is ||G||."""
        xp, G = library(B), _tangent(B, g, axis)
        norm = lengths(G, axis, keepdims=True)
        return Search(G / xp.where(norm > 0, norm, 1.0), norm.squeeze(axis))

    def following(self, mu: Array, outcome: Outcome) -> Array:
        """Shrink after a refusal or a turn back, grow after `patience` acceptances."""
        xp, streak = library(mu), outcome.streak
        patient = (streak > 0) & (streak % self.patience == 0)
        grown = xp.where(patient, xp.clip(self.grow * mu, None, self.mu0), mu)
        too_long = ~outcome.accepted | (outcome.turn < self.back)
        return xp.where(too_long, self.shrink * mu, grown)

    def at_rest(self, mu: Array, outcome: Outcome, tol: float) -> Array:
        """Rest when the next step could only move by less than `tol`."""
        del outcome
        return mu <= tol


@dataclass(frozen=True)
class MBLSStep(StepRule):
    """Modified backtracking line search (Zhu et al. 2018), with the constants of the releases.

    Euclidean subgradient; the step is carried from iteration to iteration and never grows; at the
    floor the last trial is accepted although it failed. Not scale-free: it is meant for the sum
    over unit rows. It knows no tolerance on the movement, only its floor. Towards a sharp minimum
    nearly every step of the last size is refused, and half or a quarter of it accepted.
    """

    ahead = 4
    mu0: float = 1e-2
    armijo: float = 1e-3
    shrink: float = 0.5
    floor: float = 1e-15


@dataclass(frozen=True)
class GeometricStep(StepRule):
    r"""The paper's piecewise geometrically diminishing rule, without a line search.

    .. math::
        \mu^k = \mu^0 \;(k < K_0), \qquad
        \mu^k = \mu^0 \beta^{\lfloor (k - K_0)/K_* \rfloor + 1} \;(k \ge K_0)

    `mu0` is in units of 1 / f(b0), the objective at the start, and must stay below 1: a Euclidean
    step beyond 1 / f climbs. The theorem asks for mu0 <= 1/4 or so; its K0 and K* depend on
    statistics that nobody knows beforehand. The defaults bring all starts to normals at 60 %
    outliers (200 features, 1500 inliers) and five of six at 70 %; K0=120 brings all, less diverse.
    """

    mu0: float = 0.25
    K0: int = 60
    K_star: int = 10
    beta: float = 0.7
    floor: float = 1e-30

    def first(self, f: Array) -> Array:
        """Start with mu0 / f(b0), already cut once where K0 = 0."""
        mu0 = self.mu0 if self.K0 > 0 else self.beta * self.mu0
        return mu0 / np.where(f > 0, f, 1)

    def accepts(self, f_trial: Array, f: Array, mu: Array, slope: Array, n_iter: Array) -> Array:
        """Accept every trial."""
        del f, mu, slope, n_iter
        return np.ones(f_trial.shape, dtype=bool)

    def following(self, mu: Array, outcome: Outcome) -> Array:
        """Cut by beta at k = K0 and every K* iterations after it."""
        k = outcome.n_iter
        cut = (k >= self.K0) & ((k - self.K0) % self.K_star == 0)
        return np.where(cut, self.beta * mu, mu)

    def at_rest(self, mu: Array, outcome: Outcome, tol: float) -> Array:
        """Rest when the last step moved by less than `tol`."""
        return (outcome.moved <= tol) | (mu <= self.floor)


@dataclass(frozen=True)
class DecayStep(StepRule):
    """The authors' practice since 2021: one line search, then a step that only decays.

    The first step backtracks by `shrink` until the objective falls by armijo mu ||G||^2; afterwards
    the step is multiplied by `beta` at every iteration, whatever the objective does. The whole way
    is at most 1 / (1 - beta) times the first step: enough from a spectral start, often not from a
    random one. It has converged when the objective changes by less than `tol`, relatively.
    """

    mu0: float = 0.1
    armijo: float = 1e-3
    shrink: float = 0.5
    beta: float = 0.9
    floor: float = 1e-15

    def search(self, B: Array, g: Array, axis: int = 0) -> Search:
        """Return the tangent G = g - b (b.g); the slope is ||G||^2."""
        return down_the_tangent(B, g, axis)

    def accepts(self, f_trial: Array, f: Array, mu: Array, slope: Array, n_iter: Array) -> Array:
        """Ask the first step for the decrease, and the others for nothing."""
        return (n_iter > 0) | super().accepts(f_trial, f, mu, slope, n_iter)

    def following(self, mu: Array, outcome: Outcome) -> Array:
        """Decay after every iteration; backtrack before the first."""
        return np.where(outcome.accepted, self.beta, self.shrink) * mu

    def at_rest(self, mu: Array, outcome: Outcome, tol: float) -> Array:
        """Rest when the last step changed the objective by less than `tol`."""
        return outcome.accepted & ((outcome.change <= tol) | (mu <= self.floor))


# What an object must have to be a step rule, and the rules that have a name.
STEP_METHODS = ["search", "first", "accepts", "following", "at_rest"]
STEP_RULES: dict[str, type[Any]] = {
    "auto": AutoStep,
    "mbls": MBLSStep,
    "geometric": GeometricStep,
    "decay": DecayStep,
}


def step_rule(step: str | StepRule) -> StepRule:
    """Return the rule of that name, or the rule itself."""
    rule: StepRule = STEP_RULES[step]() if isinstance(step, str) else step
    return rule


def budget(max_iter: int) -> int:
    """Return the most passes: one for each iteration, each growth, and each halving to a floor."""
    return 2 * max_iter + 200


# -- on the sphere; directions are unit vectors along an axis --------------------------------------


def _tangent(B: Array, g: Array, axis: int = 0) -> Array:
    """Return the part of each gradient that is orthogonal to its direction."""
    return g - B * total(B * g, axis, keepdims=True)


def down_the_tangent(B: Array, g: Array, axis: int = 0) -> Search:
    """Return the tangent G = g - b (b.g); the slope is ||G||^2."""
    G = _tangent(B, g, axis)
    return Search(G, total(G * G, axis))


def on_sphere(trial: Array, B: Array, axis: int = 0) -> Array:
    """Return the trial points at unit length, and B where they have none."""
    xp, length = library(trial), lengths(trial, axis, keepdims=True)
    some = length > 0
    if xp is np and np.count_nonzero(some) == some.size:
        return trial / length
    # A Euclidean step of exactly 1/f can end at the origin. Staying gains nothing: refused.
    return xp.where(some, trial / xp.where(some, length, 1.0), B)


def lengths(A: Array, axis: int = 0, *, keepdims: bool = False) -> Array:
    """Return the lengths of vectors; `vector_norm` takes longer, for the same numbers."""
    return library(A).sqrt(total(A * A, axis, keepdims=keepdims))


def total(A: Array, axis: int = 0, *, keepdims: bool = False) -> Array:
    """Return the sums along an axis; on few numbers the method takes longer than adding up."""
    add: Any = np.add.reduce if isinstance(A, np.ndarray) else type(A).sum
    return add(A, axis, keepdims=keepdims)


def cosine(A: Array, B: Array, axis: int = 0) -> Array:
    """Return the cosines between vectors, 0 where one of them vanishes."""
    xp = library(A)
    scale = lengths(A, axis) * lengths(B, axis)
    return xp.sum(A * B, axis=axis) / xp.where(scale > 0, scale, float("inf"))


def resolution(moved: Array, converged: Array, tol: float) -> Array:
    """Return the largest angle (...,) of the last steps (..., k): ends are not known better."""
    # A start that converged without having moved was there already, as far as steps can tell.
    moved = np.where(np.isfinite(moved), moved, np.where(converged, tol, 1.0))
    return np.max(np.minimum(moved, 1.0), axis=-1)

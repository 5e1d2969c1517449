r"""The Riemannian subgradient method on orthonormal frames: all normals at once, orthogonal.

.. math:: \min_V \sum_i \|V^T x_i\| \quad\text{subject to}\quad V^T V = I

Each step moves the frame against the tangent part G = g - V (V.T g) of the subgradient and makes it
orthonormal again by a thin QR factorisation (``orth`` of the releases drops a column where the rank
falls). As in `psgm`, one scan gives objective and subgradient at the trial point.
"""

import math
from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.kernels import distance_and_gradient
from perpend.rows import RowSource
from perpend.solvers.loop import Callback, Status, iterate
from perpend.solvers.result import Directions
from perpend.solvers.steps import Outcome, StepRule


class _Frame(NamedTuple):
    V: Array  # (D, c) orthonormal
    G: Array  # (D, c) tangent subgradient
    f: float
    mu: float  # size of the next step
    streak: int  # acceptances since the last refusal
    n_iter: int  # accepted steps
    moved: float  # angle of the last accepted step, infinite before the first
    objective: float
    change: float  # 1 until the frame is at rest, then 0


def riemannian(
    rows: RowSource,
    V: Array,
    *,
    rule: StepRule,
    max_iter: int,
    tol: float,
    callback: Callback | None = None,
) -> Directions:
    """Descend from the orthonormal frame V (D, c); `rule` sees one start, the frame."""
    unseen = float(np.finfo(rows.dtype).eps)

    def evaluate(V: Array) -> tuple[float, Array]:
        scan = rows.scan(distance_and_gradient, V)
        g = scan.product.T  # (D, c)
        return float(scan.total[0]), g - V @ (V.T @ g)

    def step(old: _Frame) -> _Frame:
        # Without signs from R the factor Q would jump between steps; the rule only sees the span.
        trial, R = np.linalg.qr(old.V - old.mu * old.G)
        trial = trial * np.where(np.diag(R) < 0, -1.0, 1.0)
        f, G = evaluate(trial)
        mu, slope = np.array([old.mu]), np.array([np.sum(old.G * old.G)])
        n_iter = np.array([old.n_iter])
        accepted = bool(rule.accepts(np.array([f]), np.array([old.f]), mu, slope, n_iter)[0])
        new = old
        if accepted:
            turned = trial - old.V @ (old.V.T @ trial)
            moved = math.asin(min(float(np.linalg.norm(turned, 2)), 1.0))
            new = old._replace(V=trial, G=G, f=f, n_iter=old.n_iter + 1, moved=moved)
        new = new._replace(streak=old.streak + 1 if accepted else 0)
        relative = abs(new.f - old.f) / old.f if old.f > 0 else 0.0
        fields = (accepted, new.streak, new.n_iter, new.moved, 0.0, relative)
        outcome = Outcome(*(np.array([field]) for field in fields))
        mu = rule.following(mu, outcome)
        # Steps that are lost in rounding may be accepted for ever: the objective stays the same.
        lost = accepted and new.moved <= unseen
        rest = bool(rule.at_rest(mu, outcome, tol)[0]) or lost or new.n_iter >= max_iter
        return new._replace(mu=float(mu[0]), objective=new.f, change=0.0 if rest else 1.0)

    f, G = evaluate(V)
    mu = float(rule.first(np.array([f]))[0])
    start = _Frame(V, G, f, mu, 0, 0, np.inf, f, 1.0 if np.any(G) else 0.0)
    run = iterate(step, start, max_steps=2 * max_iter + 200, stage="descent", callback=callback)
    end = run.state
    return Directions(
        B=end.V,
        objective=np.array([end.f]),  # one for the whole frame
        n_iter=np.array([end.n_iter]),
        converged=np.array([run.status is Status.CONVERGED and end.n_iter < max_iter]),
        resolution=min(end.moved, 1.0) if np.isfinite(end.moved) else tol,
        n_evaluations=run.n_steps + 1,
    )

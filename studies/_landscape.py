r"""The l1 objective of one data set: at the normals, and at the limits of descents.

It can have its minimum at a normal only if no descent ends lower. A normal n is a local minimiser
if the objective rises in every direction v of the subspace, where inliers pull and outliers push:

.. math:: \sum_{\text{in}} |x \cdot v| > |g \cdot v|, \qquad
    g = \sum_{\text{out}} \operatorname{sign}(x \cdot n)\, x

The least left side with g.v = 1 is a linear program.
"""

from dataclasses import dataclass

import numpy as np

from perpend._typing import Array
from perpend.datasets import SubspaceData
from perpend.experiments._experiment import Row
from perpend.experiments._trials import RECOVERED
from perpend.geometry import complement, random_directions
from perpend.rows import as_rows
from perpend.solvers import AutoStep, Dense, GeometricStep, psgm
from perpend.solvers.dense import least_crossing

N_STARTS = 4
STEPS = 1000


@dataclass(frozen=True)
class EqualAngles(GeometricStep):
    """Steps by a fixed angle along the tangent, which diminish geometrically.

    The paper's rule has steps in proportion to the tangent gradient, which is small among many
    outliers; these are as long there as anywhere.
    """

    mu0: float = 0.12  # the tangent of the angle
    K0: int = 300
    K_star: int = 20
    beta: float = 0.7

    search = AutoStep.search

    def first(self, f: Array) -> Array:
        """Start with the same angle everywhere."""
        return np.full_like(f, self.mu0)


def landscape(data: SubspaceData, rng: np.random.Generator) -> Row:
    """Return the objective at the best normal and at the lowest limit, and what each is."""
    V = data.normals.T  # (D, c)
    outliers, inliers = data.X[data.y == -1], data.X[data.y == 1]
    within, values = _limits(outliers @ V, rng)
    n = V @ within[:, np.argmin(values)]
    ends, objectives = _limits(data.X, rng)
    sines = np.linalg.norm(ends - V @ (V.T @ ends), axis=0)
    lowest = int(np.argmin(objectives))
    return {
        "at_normal": float(np.min(values)),
        "at_limit": float(objectives[lowest]),
        "sine_of_limit": float(sines[lowest]),
        "limits": N_STARTS,
        "normals": int(np.sum(sines < RECOVERED)),
        "pull": _pull(inliers, outliers, n, complement(V)),
    }


def _limits(X: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return where descents from random starts end, (D, k), and the sums of |x.b| there."""
    B = random_directions(rng, X.shape[1], N_STARTS)
    rows = as_rows(np.ascontiguousarray(X), normalize=False)
    found = psgm(rows, B, rule=EqualAngles(), max_iter=STEPS, tol=1e-15)
    return found.B, found.objective


def _pull(inliers: Array, outliers: Array, n: Array, S: Array) -> float:
    """Return the inliers' pull over the outliers' push, least over S; from 1 on n is a minimum."""
    push = S.T @ (outliers.T @ np.sign(outliers @ n))  # in coordinates of the subspace
    X = inliers @ S
    v = least_crossing(Dense(X, np.ones(len(X))), push[:, None])
    return float(np.abs(X @ v).sum() / abs(push @ v[:, 0]))

"""The subspace as equations that can be read: some columns as combinations of the others.

The rows of N are orthonormal, and any other basis of the same normals says the same, so an equation
taken from N is a mixture of all relations in the data. Solved for c columns p, the pivots, with the
others r, the same subspace is

    x_p = N_p^-1 b - N_p^-1 N_r x_r,

one equation for each pivot, in which a relation between few columns has few terms.
"""

from typing import TypedDict

import numpy as np

from perpend._typing import Array
from perpend.estimator import SubspaceEstimator
from perpend.rows.kinds import to_numpy

MOST = 8  # equations
TERMS = 12  # of an equation that are kept
ROWS = 2000  # inliers that are asked what matters
AS_GOOD = 0.5  # a pivot this good beside the best one will do
WORST = 1e6  # condition from which on nothing is solved
NEGLIGIBLE = 1e-3  # of a column's spread
LEAST = 1e-6  # of the largest spread: a column that never changes has none


class Term(TypedDict):
    """A coefficient and its column."""

    column: int
    value: float
    size: float  # of the column's values, as a root mean square over the inliers


class Solved(TypedDict):
    """One column as a combination of others."""

    column: int
    terms: list[Term]
    constant: float
    more: int  # terms that are not among these
    left_out: bool  # whether there were others, too small to matter
    error: float  # what the rounding of a coefficient may change


def solved_equations(
    model: SubspaceEstimator, X: Array | None, labels: Array
) -> list[Solved] | None:
    """Solve the equations of a subspace; None where it says no more than the normals do.

    That is so with a single normal, with many, without rows to say what matters in which unit, and
    where no choice of pivots is well conditioned.
    """
    N = to_numpy(model.normals_).astype(float)
    if X is None or not 1 < len(N) <= MOST or not np.any(labels == 1):
        return None
    inliers = np.flatnonzero(labels == 1)
    rows = X[inliers[:: -(-len(inliers) // ROWS)]].astype(float)
    location = to_numpy(model.location_).astype(float)  # 0 if linear
    unit = float(np.max(np.abs(rows)))
    if not unit > 0:
        return None
    # In this unit no square over- or underflows.
    rows, location = (rows - location) / unit, location / unit
    spread = np.sqrt(np.mean(np.square(rows), axis=0))
    spread = np.maximum(spread, LEAST * max(float(spread.max()), np.finfo(float).eps))
    pivots = np.sort(_pivots(N * spread))
    N_p = N[:, pivots] * spread[pivots]
    if not np.linalg.cond(N_p) < WORST:
        return None
    A = -np.linalg.solve(N_p, N) * spread[pivots, None]  # (c, D): x_p = A x_r around the location
    A[:, pivots] = 0.0
    return [
        _equation(int(p), a, rows, location, unit=unit, affine=bool(model.affine_))
        for p, a in zip(pivots, A, strict=True)
    ]


def _pivots(A: Array) -> Array:
    """Choose columns of A (c, D) that span its range: a QR decomposition with column pivoting.

    The choice must not depend on the basis, so the rows are made orthonormal first. Of columns that
    are about as good as the best the last is taken: sums stand behind what they are made of.
    """
    Q = np.linalg.qr(A.T)[0].T
    chosen: list[int] = []
    for _ in range(len(A)):
        rest = np.linalg.norm(Q, axis=0)
        rest[chosen] = 0.0
        chosen.append(int(np.flatnonzero(rest >= AS_GOOD * rest.max())[-1]))
        q = Q[:, chosen[-1]] / max(float(rest[chosen[-1]]), np.finfo(float).tiny)
        Q = Q - np.outer(q, q @ Q)
    return np.array(chosen)


def _equation(
    p: int, a: Array, rows: Array, location: Array, *, unit: float, affine: bool
) -> Solved:
    """Write x_p = a x + constant with the terms that matter; `rows` are around the location.

    What is left out changes the inliers by less than their noise in this equation, all of it
    together, or by less than a thousandth of the column's spread.
    """
    spread = np.sqrt(np.mean(np.square(rows), axis=0))
    noise = float(np.sqrt(np.mean(np.square(rows[:, p] - rows @ a))))
    limit = max(noise, NEGLIGIBLE * float(spread[p]))
    order = np.argsort(np.abs(a) * spread, kind="stable")  # the least first
    lost = np.sqrt(np.mean(np.square(np.cumsum(rows[:, order] * a[order], axis=1)), axis=0))
    n_lost = int(np.argmax(lost > limit)) if np.any(lost > limit) else len(a)
    kept = order[n_lost:][::-1]
    constant = float(location[p] - a[kept] @ location[kept]) if affine else 0.0
    if abs(constant) <= limit - (float(lost[n_lost - 1]) if n_lost else 0.0):
        constant = 0.0
    size = np.hypot(spread, location)
    shown = np.sort(kept[:TERMS])
    return Solved(
        column=p,
        terms=[Term(column=int(j), value=float(a[j]), size=unit * float(size[j])) for j in shown],
        constant=unit * constant,
        more=len(kept) - len(shown),
        left_out=bool(np.any(a[order[:n_lost]] != 0)),
        error=unit * max(noise, float(spread[p]) / 10_000) / (len(shown) + 1),
    )

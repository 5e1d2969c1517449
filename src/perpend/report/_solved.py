"""The subspace as readable equations: some columns as combinations of the others.

Any basis of the normals gives equations of the same subspace, and those of the rows of N mix all
relations in the data. Solved for c columns p, the pivots, with the others r, the subspace is

    x_p = N_p^-1 b - N_p^-1 N_r x_r,

one equation for each pivot. A relation between few columns then has few terms.
"""

import numpy as np

from perpend._typing import Array
from perpend.estimator import SubspaceEstimator
from perpend.report._text import Facts
from perpend.rows.kinds import to_numpy

MOST_EQUATIONS = 8
TERMS = 12  # of an equation that are kept
MOST_INLIERS = 2000  # that decide which terms matter
GOOD_PIVOT = 0.5  # of the best pivot's norm is good enough
MAX_CONDITION = 1e6  # beyond it nothing is solved
SMALL_TERM = 1e-3  # of a column's spread is left out
LEAST_SPREAD = 1e-6  # of the largest spread, for columns that never change


def solved_equations(
    model: SubspaceEstimator, X: Array | None, labels: Array
) -> list[Facts] | None:
    """Solve the equations of a subspace for some columns; None if that does not help.

    It does not with a single normal, with many, without rows that give the scale of each column,
    and if no choice of pivots is well conditioned.
    """
    N = to_numpy(model.normals_).astype(float)
    if X is None or not 1 < len(N) <= MOST_EQUATIONS or not np.any(labels == 1):
        return None
    inliers = np.flatnonzero(labels == 1)
    rows = X[inliers[:: -(-len(inliers) // MOST_INLIERS)]].astype(float)
    location = to_numpy(model.location_).astype(float)  # 0 if linear
    unit = float(np.max(np.abs(rows)))
    if not unit > 0:
        return None
    # In this unit no square overflows or underflows.
    rows, location = (rows - location) / unit, location / unit
    spread = np.sqrt(np.mean(np.square(rows), axis=0))
    spread = np.maximum(spread, LEAST_SPREAD * max(float(spread.max()), np.finfo(float).eps))
    pivots = np.sort(_pivots(N * spread))
    N_p = N[:, pivots] * spread[pivots]
    if not np.linalg.cond(N_p) < MAX_CONDITION:
        return None
    A = -np.linalg.solve(N_p, N) * spread[pivots, None]  # (c, D): x_p = A x_r around the location
    A[:, pivots] = 0.0
    return [
        _equation(int(p), a, rows, location, unit=unit, affine=bool(model.affine_))
        for p, a in zip(pivots, A, strict=True)
    ]


def _pivots(A: Array) -> Array:
    """Choose columns of A (c, D) that span its range: a QR decomposition with column pivoting.

    The choice must not depend on the basis, so the rows are made orthonormal first. Among columns
    about as good as the best, the last is taken: a sum usually comes after its terms.
    """
    Q = np.linalg.qr(A.T)[0].T
    chosen: list[int] = []
    for _ in range(len(A)):
        norms = np.linalg.norm(Q, axis=0)
        norms[chosen] = 0.0
        chosen.append(int(np.flatnonzero(norms >= GOOD_PIVOT * norms.max())[-1]))
        q = Q[:, chosen[-1]] / max(float(norms[chosen[-1]]), np.finfo(float).tiny)
        Q = Q - np.outer(q, q @ Q)
    return np.array(chosen)


def _equation(
    p: int, a: Array, rows: Array, location: Array, *, unit: float, affine: bool
) -> Facts:
    """Return x_p = a x + constant with the terms that matter; `rows` are relative to the location.

    All terms that are left out together change the inliers by less than their noise in this
    equation, or by less than a thousandth of the column's spread.
    """
    spread = np.sqrt(np.mean(np.square(rows), axis=0))
    noise = float(np.sqrt(np.mean(np.square(rows[:, p] - rows @ a))))
    limit = max(noise, SMALL_TERM * float(spread[p]))
    order = np.argsort(np.abs(a) * spread, kind="stable")  # the least first
    lost = np.sqrt(np.mean(np.square(np.cumsum(rows[:, order] * a[order], axis=1)), axis=0))
    n_lost = int(np.argmax(lost > limit)) if np.any(lost > limit) else len(a)
    kept = order[n_lost:][::-1]
    constant = float(location[p] - a[kept] @ location[kept]) if affine else 0.0
    if abs(constant) <= limit - (float(lost[n_lost - 1]) if n_lost else 0.0):
        constant = 0.0
    size = np.hypot(spread, location)
    shown = np.sort(kept[:TERMS])
    return {
        "column": p,
        # The size of a column's values is a root mean square over the inliers.
        "terms": [
            {"column": int(j), "value": float(a[j]), "size": unit * float(size[j])} for j in shown
        ],
        "constant": unit * constant,
        "more": len(kept) - len(shown),  # terms that are not among these
        "left_out": bool(np.any(a[order[:n_lost]] != 0)),  # others that are too small to matter
        # how much the rounding of a coefficient may change
        "error": unit * max(noise, float(spread[p]) / 10_000) / (len(shown) + 1),
    }

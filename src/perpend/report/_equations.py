"""The subspace as equations in the data's own names and units.

Any basis of the normals gives equations of the same subspace, and those of the rows of N mix all
relations in the data. Solved for c columns p, the pivots, with the others r, the subspace is

    x_p = N_p^-1 b - N_p^-1 N_r x_r,

one equation for each pivot. A relation between few columns then has few terms.
"""

import math
from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.estimator import SubspaceEstimator
from perpend.plots._words import number, plural
from perpend.report._words import Facts, column_name, digits_needed, short
from perpend.rows.kinds import to_numpy

FIRST = 3  # equations are shown if there are many
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


class Part(NamedTuple):
    """A term of an equation: the name of a column, and the text before and after it."""

    before: str
    name: str = ""
    after: str = ""


def equations(facts: Facts) -> list[list[Part]]:
    """Return the equations: some columns as combinations of the others, or the normals."""
    estimate, names = facts["estimate"], facts["data"]["columns"]
    c, solved = estimate["codimension"], estimate.get("solved")
    if solved is not None:
        return [_one_solved(one, names) for one in solved]
    shown = c if c <= min(MOST_EQUATIONS, len(estimate["normals"])) else FIRST
    return [
        _one_normal(normal, b, facts)
        for normal, b in zip(estimate["normals"][:shown], estimate["intercept"], strict=False)
    ]


def _one_solved(one: Facts, names: list[str]) -> list[Part]:
    """Write column = terms + constant, with as many digits as the inliers' values need."""
    error, constant = one["error"], one["constant"]
    terms = [
        (term["value"], _fewest_digits(term["value"], term["size"], error), term["column"])
        for term in one["terms"]
    ]
    parts = _sum(terms, one["more"], names)
    if constant or not parts:
        parts.append(_term(constant, _fewest_digits(constant, 1.0, error), first=not parts))
    return [Part("", column_name(names, one["column"]), " = "), *parts]


def _one_normal(normal: list[float], intercept: float, facts: Facts) -> list[Part]:
    """Write normal @ x = intercept, the largest coefficient positive; it holds near the rows."""
    at, error = facts["estimate"]["location"], _allowed_error(facts)
    largest = max(normal, key=abs)
    sign = 1.0 if largest >= 0 else -1.0
    values = {j: sign * v for j, v in enumerate(normal) if abs(v) > 1e-12 * abs(largest)}
    kept = sorted(sorted(values, key=lambda j: -abs(values[j]))[:TERMS])
    terms = [(values[j], digits_needed(values[j], at[j], error), j) for j in kept]
    right = number(sign * intercept, max(6, digits_needed(intercept, 1.0, error)))
    parts = _sum(terms, len(values) - len(kept), facts["data"]["columns"])
    return [*parts, Part(f" = {right}")]


def _sum(terms: list[tuple[float, int, int]], more: int, names: list[str]) -> list[Part]:
    """Write terms, each a coefficient, its digits and its column, and how many are left out."""
    parts = [
        _term(value, digits, column_name(names, j), first=k == 0)
        for k, (value, digits, j) in enumerate(terms)
    ]
    return [*parts, Part(f" + {plural(more, 'smaller term')}")] if more else parts


def _fewest_digits(value: float, factor: float, error: float) -> int:
    """Return the digits of the roundest value that, times a factor, is within an error.

    >>> _fewest_digits(0.190005, 100.0, 0.001), _fewest_digits(0.190005, 1e3, 0.001)
    (2, 6)
    """
    most = digits_needed(value, factor, error)
    near = (n for n in range(1, most) if abs(float(f"{value:.{n}g}") - value) * factor <= error)
    return next(near, most)


def _term(value: float, shown: int, column: str = "", *, first: bool) -> Part:
    """Write a signed coefficient before its column, or alone; a factor of 1 is left out."""
    joint = ("−" if value < 0 else "") if first else (" − " if value < 0 else " + ")
    factor = number(abs(value), shown)
    if column[:1].isdigit():  # "0.5 400 nm" would read as one number
        factor += " · "
    elif column:
        factor = "" if factor == "1" else f"{factor} "
    return Part(joint + factor, column)


def mean(facts: Facts) -> str:
    """Return a point on an affine subspace."""
    error, location = _allowed_error(facts), facts["estimate"]["location"]
    pairs = list(zip(facts["data"]["columns"], location, strict=False))
    at = ", ".join(
        f"{short(n, 20)} = {number(v, max(5, digits_needed(v, 1.0, error)))}"
        for n, v in pairs[:TERMS]
    )
    return at + (" …" if len(location) > TERMS else "")


def _allowed_error(facts: Facts) -> float:
    """Return by how much a written equation may be off at the rows; 0 means any.

    Far from the origin a coefficient is multiplied by a large number, and its digits matter.
    """
    estimate, off = facts["estimate"], facts["data"]["off_origin"]
    if not estimate["affine"]:
        return 0.0
    radius = math.hypot(*estimate["location"]) / off if off else 0.0
    allowed: float = max(estimate["threshold"] / 10, radius / 10_000)
    return allowed / (len(estimate["location"]) + 1)

"""Outliers as whole rows beside a matrix of low rank: one convex program, two published methods."""

import math
from typing import Any

import numpy as np

from perpend._typing import Auto
from perpend.rows import RowSource, RowSpan, check_source
from perpend.solvers import Callback, Directions, Solution, dense, ended
from perpend.solvers.alm import row_space, split, whole_rows
from perpend.structure.linear import solve_fixed, solve_free


def low_rank_and_rows(
    rows: RowSource,
    codimension: int | Auto,
    lam: float,
    *,
    max_iter: int,
    tol: float,
    rng: np.random.Generator,
    callback: Callback | None,
) -> Solution:
    r"""Take the subspace from min ||L||_* + lam sum_j ||C_j||, L + C = X.

    Rows of weight w count like w equal rows: these have equal parts, so L has the singular values
    of its rows times sqrt(w), and the penalty of such a row is ``lam sqrt(w)`` times its norm then.
    """

    def find(rows: RowSource, span: RowSpan, c: int | None = None) -> Directions:
        X, weight = dense(rows)
        root = np.sqrt(weight)
        Y = root[:, None] * (X @ span.basis)
        how: dict[str, Any] = {"max_iter": max_iter, "tol": tol, "callback": callback}
        run = split(Y, whole_rows(lam * root), **how)
        V, rank = row_space(run.state.L)
        if rank == 0:  # all rows are outliers: take the axis that L would have first
            V, rank = row_space(run.state.Y)[0], 1
        # Rows without a part in C are equal to those of L: without noise they give its row space
        # to rounding, and not only to the tolerance.
        exact, its_rank = row_space(Y[~np.any(run.state.S, axis=1)])
        V = exact if its_rank == rank else V
        chosen = span.basis @ V[:, rank if c is None else span.rank - c :]
        return ended(run, chosen, tol)

    if codimension == "auto":
        return solve_free(rows, find, rng)
    return solve_fixed(rows, codimension, find, rng)


def row_weight(rows: RowSource, lam: float | Auto, outlier_share: float | None = None) -> float:
    """Return lam, or what is right for so many outliers, or if nobody knows how many."""
    check_source(rows)
    n = rows.total_weight or 1.0  # without rows: an error later
    if not isinstance(lam, str):
        return float(lam)
    if outlier_share:
        return 3 / (7 * math.sqrt(outlier_share * n))  # Xu, Caramanis and Sanghavi (2012)
    # As in the comparisons of Lerman, McCoy, Tropp and Zhang (2015).
    return 0.8 * math.sqrt(rows.shape[1] / n)

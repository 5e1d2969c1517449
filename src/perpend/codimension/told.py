"""Solving at a codimension that was told: what all such methods share."""

from collections.abc import Callable

import numpy as np

from perpend.codimension.answer import as_solution, n_inside, told_answer
from perpend.codimension.certificate import distinct_rows
from perpend.codimension.decision import Judge
from perpend.exceptions import InputError
from perpend.rows import RowSource
from perpend.solvers import Directions, RowSpan, Solution, in_their_span


def solve_told(
    rows: RowSource,
    codimension: int,
    find: Callable[[RowSource, RowSpan, int], Directions],
    rng: np.random.Generator,
) -> Solution:
    """Let ``find(rows, span, c)`` look for c orthonormal normals inside the span, and weigh them.

    The rows are turned into their span where that is smaller: `find` gets them as they are solved.
    The confidence says how far the rows support the codimension that was told; nothing is refined.
    """
    if codimension > rows.shape[1]:
        raise InputError(
            f"codimension={codimension} is larger than the number of features ({rows.shape[1]})."
        )
    turned, span = in_their_span(rows)
    inside = n_inside(span, codimension)
    directions = find(turned, span, inside) if inside else _no_directions(turned.shape[1])
    judge = Judge(turned, span, distinct_rows(rows, rng), refine=False)
    answer = told_answer(judge, codimension, directions.B)
    directions = directions._replace(B=span.in_data(directions.B))
    converged = bool(np.all(directions.converged))
    return as_solution(rows, answer, directions, told=True, converged=converged)


def _no_directions(n_features: int) -> Directions:
    return Directions(
        B=np.zeros((n_features, 0)),
        objective=np.zeros(1),
        n_iter=np.zeros(1, dtype=np.int64),
        converged=np.ones(1, dtype=bool),
        resolution=0.0,
        n_evaluations=0,
    )

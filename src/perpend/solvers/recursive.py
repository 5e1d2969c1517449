"""One normal after the other: each is sought in the complement of those before."""

from collections.abc import Callable

import numpy as np

from perpend._typing import Array
from perpend.geometry import complement
from perpend.rows import RowSpan
from perpend.solvers.loop import Directions


def one_by_one(
    span: RowSpan, c: int, next_normal: Callable[[Array, Array, Array], Directions]
) -> Directions:
    """Find c normals by ``next_normal(start, A, B)``, each orthogonal to those before, B (D', j).

    A (D', R - j) is an orthonormal basis of where it may be, and the start (D', 1) the axis there
    along which the rows vary least.
    """
    found = None
    for _ in range(c):
        B = np.zeros((len(span.basis), 0)) if found is None else found.B
        A = span.basis @ complement(span.basis.T @ B)
        half = np.sqrt(span.variances)[:, None] * (span.axes.T @ A)  # moments = half.T @ half
        _, axes = np.linalg.eigh(half.T @ half)
        one = next_normal(A @ axes[:, :1], A, B)
        b = one.B - B @ (B.T @ one.B)  # rounding errors of many steps
        one = one._replace(B=b / np.linalg.norm(b, axis=0))
        found = one if found is None else found.join(one)
    assert found is not None
    return found

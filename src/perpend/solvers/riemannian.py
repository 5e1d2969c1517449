r"""The Riemannian subgradient method on orthonormal frames: all normals at once, orthogonal.

.. math:: \min_V \sum_i \|V^T x_i\| \quad\text{subject to}\quad V^T V = I

Each step moves the frame against the tangent part G = g - V (V.T g) of the subgradient and makes it
orthonormal again by a thin QR factorisation (``orth`` of the releases drops a column where the rank
falls). It is the descent of `psgm` with a single start, the frame, as one long column.
"""

import numpy as np

from perpend._typing import Array
from perpend.kernels import distance_and_gradient
from perpend.rows import RowSource
from perpend.solvers.loop import Callback
from perpend.solvers.psgm import Surface, psgm
from perpend.solvers.result import Directions
from perpend.solvers.steps import Search, StepRule


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
    shape = V.shape

    def evaluate(B: Array) -> tuple[Array, Array]:
        V = B.reshape(shape)
        scan = rows.scan(distance_and_gradient, V)
        g = scan.product.T  # (D, c)
        return scan.total, (g - V @ (V.T @ g)).reshape(-1, 1)

    def search(_: Array, G: Array) -> Search:
        return Search(G, np.sum(G * G, axis=0))

    def orthonormal(trial: Array, _: Array) -> Array:
        # Without signs from R the factor Q would jump between steps; the rule only sees the span.
        Q, R = np.linalg.qr(trial.reshape(shape))
        return (Q * np.where(np.diag(R) < 0, -1.0, 1.0)).reshape(-1, 1)

    def turned(old: Array, new: Array, _: Array) -> tuple[Array, Array]:
        W, V = old.reshape(shape), new.reshape(shape)
        sine = np.linalg.norm(V - W @ (W.T @ V), 2)
        return np.arcsin(np.minimum(sine, 1.0)), np.zeros(1)

    frames = Surface(evaluate, search, orthonormal, turned, float(np.finfo(rows.dtype).eps))
    B = V.reshape(-1, 1)
    end = psgm(rows, B, rule=rule, max_iter=max_iter, tol=tol, callback=callback, surface=frames)
    return end._replace(B=end.B.reshape(shape))

r"""An elastic net to rounding, from coefficients that nearly solve it.

.. math:: \min_r \tfrac12 \|x - A r\|^2 + t\,\bigl(\|r\|_1 + \tfrac\rho2 \|r\|^2\bigr)

Where the signs of r are known it is a linear system. Coefficients go straight to its solution; the
first that reaches zero on the way leaves, and the column with the largest product with the
residual, if that is above t, enters. Each step lowers the objective, so they come to an end
(H. Lee, A. Battle, R. Raina, A. Y. Ng. Efficient sparse coding algorithms. NeurIPS 2006).
"""

import numpy as np

from perpend._typing import Array

SLACK = 1e-9  # relative: products above t by no more are rounding errors
LEAST = 1e-12  # of the curvature: for columns that are multiples of one another, with rho = 0


def elastic_net(x: Array, A: Array, r: Array, t: float, rho: float) -> Array:
    """Return the coefficients (n,) of x (D,) in the columns of A (D, n); r is near them."""
    r, signs = r.copy(), np.sign(r)
    for _ in range(sum(A.shape)):  # a handful is enough near the solution
        used = np.flatnonzero(signs)
        M, before = A[:, used], r[used]
        moments = M.T @ M
        moments.flat[:: len(used) + 1] += max(t * rho, LEAST)
        there = np.linalg.solve(moments, M.T @ x - t * signs[used])
        turned = np.flatnonzero(signs[used] * there < 0)
        if len(turned):
            shares = before[turned] / (before - there)[turned]
            first = int(np.argmin(shares))
            r[used] += shares[first] * (there - before)
            r[used[turned[first]]] = signs[used[turned[first]]] = 0
            continue
        r[used] = there
        products = (x - M @ there) @ A
        products[used] = 0
        most = int(np.argmax(np.abs(products)))
        if abs(products[most]) <= t * (1 + SLACK):
            break
        signs[most] = np.sign(products[most])
    return r

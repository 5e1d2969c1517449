r"""The objective of DPCP and its subgradient, for all directions at once.

.. math:: f(b) = \sum_i |x_i \cdot b|, \qquad g(b) = \sum_i \mathrm{sign}(x_i \cdot b)\, x_i
"""

from perpend._typing import Array, namespace
from perpend.kernels.contribution import Contribution


def l1_objective_and_gradient(X: Array, B: Array) -> Contribution:
    """Give |X B| to be summed and sign(X B).T X; sign(0) = 0, so a zero row pulls nowhere."""
    xp = namespace(X)
    P = X @ B  # (b, k)
    return Contribution(total=xp.abs(P), left=xp.sign(P))


def l1_objective(X: Array, B: Array) -> Contribution:
    """Give |X B| to be summed, without the gradient."""
    return Contribution(total=namespace(X).abs(X @ B))


def heights(X: Array, b: Array) -> Contribution:
    """Keep |x.b| of each row, for one direction b (D,)."""
    return Contribution(kept=namespace(X).abs(X @ b))

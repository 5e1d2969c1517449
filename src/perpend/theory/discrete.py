r"""The discrete iteration compared with the continuous one: the effect of finitely many outliers.

Plain PSGM on inliers X in S and outliers O moves the part of an iterate in the complement by

.. math::
    P_\perp b^{k+1} = \frac{1 - \mu^k M c_D}{\|b^k\|} P_\perp b^k - \mu^k M P_\perp e_O^k, \qquad
    e_O^k = \tfrac1M O^T \mathrm{sign}(O \hat b^k) - c_D \hat b^k

where b^k is the iterate before it is scaled to norm one. Unrolled, this is an identity at every K:

.. math::
    \frac{P_\perp b^K}{\|P_\perp b^K\|} = \frac{P_\perp (b^0 - \delta^K)}{\|\cdot\|}, \qquad
    \delta^K = \sum_{k < K} \Big(\prod_{j \le k} \frac{\|b^j\|}{1 - \mu^j M c_D}\Big) \mu^k M e_O^k

Inliers and outliers must be known, so it serves simulations and the study of fitted models.
"""

from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.geometry import average_height
from perpend.rows import as_rows
from perpend.theory._checks import basis, directions, objective_and_gradient, step_sizes, unit_rows
from perpend.theory.continuous import start_tangents
from perpend.theory.statistics import Values


class DiscreteRun(NamedTuple):
    """Where plain PSGM went, and how far the outliers turned it from the continuous path."""

    B: Array  # (D, k) unit: the last iterates
    delta: Array  # (D, k)
    error: Array  # (k,) the largest ||e_O|| on the way
    tangents: Array  # (K + 1, k) tan of the angle to the complement, the start's first


def discrete_psgm(
    X_in: Array, X_out: Array, B0: Array, normals: Array, *, steps: Array
) -> DiscreteRun:
    """Run plain PSGM with given steps from every column of B0 and add up delta on the way.

    Parameters
    ----------
    X_in, X_out : arrays of shape (N, D) and (M, D)
        Inliers and outliers, either of them possibly none; rows are scaled to norm one. The
        inliers must be free of noise: the identity takes them to be orthogonal to `normals`.
    B0 : array of shape (D, k)
        Starts; they are scaled to norm one.
    steps : array of shape (K,) or (K, k)
        Step sizes, below 1 / (M c_D), such as ``Schedule(...).steps(K)``. They multiply the
        subgradient of the sum over all rows.

    Notes
    -----
    The paper's e_O has a stray minus sign, and the term of the inliers is printed with c_D instead
    of c_d; the projection removes that term either way.

    Examples
    --------
    >>> from perpend.theory import projected_starts
    >>> rng = np.random.default_rng(0)
    >>> X_in, X_out = rng.standard_normal((90, 4)) * [1, 1, 0, 0], rng.standard_normal((60, 4))
    >>> B0, normals = rng.standard_normal((4, 3)), np.eye(4)[:, 2:]
    >>> run = discrete_psgm(X_in, X_out, B0, normals, steps=np.full(50, 1e-3))
    >>> reached = projected_starts(run.B, normals)
    >>> bool(np.allclose(reached, projected_starts(B0, normals, run.delta), atol=1e-12))
    True
    """
    B = directions("B0", B0)
    D, n_starts = B.shape
    normals = basis("normals", normals, D)
    inliers = as_rows(unit_rows("X_in", X_in, D))
    outliers = as_rows(unit_rows("X_out", X_out, D))
    M, c_D = outliers.shape[0], average_height(D)
    norm = factor = np.ones(n_starts)  # of the iterate before it is scaled; the product before e_O
    delta, error = np.zeros_like(B), np.zeros(n_starts)
    tangents = [start_tangents(B, normals)]
    for mu in step_sizes(steps, n_starts, 1 / (M * c_D) if M else np.inf, "1 / (M c_D)"):
        g_in, g_out = (objective_and_gradient(rows, B)[1] for rows in (inliers, outliers))
        e = g_out / M - c_D * B if M else g_out  # e_O
        factor = factor * norm / (1 - mu * M * c_D)
        delta = delta + factor * mu * M * e
        error = np.maximum(error, np.linalg.norm(e, axis=0))
        b = B - mu * (g_in + g_out)
        norm = np.linalg.norm(b, axis=0)
        B = b / norm
        tangents.append(start_tangents(B, normals))
    return DiscreteRun(B, delta, error, np.array(tangents))


def outlier_error_bound(values: Values) -> float:
    """Return a bound on ||e_O||: eta_O + max(c_O,max - c_D, c_D - c_O,min).

    The paper prints eta_O + c_O,max - c_d. c_D is used, as e_O is defined with it; c_d is larger
    and could make the bound negative. The proof also drops an absolute value: a mean height below
    c_D is as much of an error as one above, hence the maximum. It is proven with
    certified values; with estimates it may be too small.

    Examples
    --------
    >>> values = Values(10_000, 40_001, 5, 10, 0.3662, 0.3821, 0.2550, 0.2629, 0.0208, 0.0082)
    >>> round(outlier_error_bound(values), 4)
    0.0124
    """
    if values.n_outliers == 0:
        return 0.0
    c_D = average_height(values.n_features)
    return values.eta_o + max(values.c_o_max - c_D, c_D - values.c_o_min)


class FullRank(NamedTuple):
    """A smallest singular value against the size of a perturbation."""

    singular_value: float  # the smallest one
    perturbation: float  # its spectral norm

    @property
    def holds(self) -> bool:
        """Whether the perturbation is too small to lower the rank."""
        return self.singular_value > self.perturbation


def lemma6(B0: Array, delta: Array) -> FullRank:
    """Lemma 6: B^0 - Delta (D, k) has full rank k if sigma_k(B^0) > ||Delta||_2.

    For the span this is neither necessary nor sufficient, see `spans_complement`. With more starts
    than features sigma_k is zero and the lemma never applies.
    """
    B0, delta = np.asarray(B0, dtype=np.float64), np.asarray(delta, dtype=np.float64)
    return _full_rank(B0, delta, B0.shape[1])


def spans_complement(B0: Array, delta: Array, normals: Array) -> FullRank:
    """The limits span the complement of S if sigma_c(P_perp B^0) > ||P_perp Delta||_2.

    The paper says that full rank of B^0 - Delta suffices. It does not: columns of full rank may lie
    in S and vanish under the projection. This condition suffices, by
    the same inequality for singular values. It also gets easier with more starts, not harder.
    """
    B0 = np.asarray(B0, dtype=np.float64)
    normals = basis("normals", normals, len(B0))
    return _full_rank(normals.T @ B0, normals.T @ np.asarray(delta), normals.shape[1])


def _full_rank(A: Array, perturbation: Array, rank: int) -> FullRank:
    values = np.linalg.svd(A, compute_uv=False)
    least = float(values[rank - 1]) if 0 < rank <= len(values) else 0.0
    return FullRank(least, float(np.linalg.norm(perturbation, 2)) if perturbation.size else 0.0)

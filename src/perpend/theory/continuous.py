r"""The limit of infinitely many rows: Lemmas 2 to 4 and Theorem 5. Sums become means over spheres.

.. math:: f(b) = p\, c_D \|b\| + (1 - p)\, c_d \|P_S b\|

for outliers uniform on the sphere of R^D, with probability p, and inliers uniform on that of the
d-dimensional S. It has no local minima outside the complement of S: with steps that suit the angle
of a start outside S, the projected subgradient method ends at the normalised projection of the
start onto the complement. As many uniform starts as the codimension have projections that span the
complement almost surely, which is Theorem 5.

The paper's Lemma 3 says "almost surely" of the end, too. That is not so for a schedule that is
fixed beforehand: the flat phase that Theorem 1 requires (K-diamond) grows without bound as the
start nears S, and a start wider than the schedule was made for may stop on its way. Such starts are
rare, but not of probability zero.
"""

from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.geometry import average_height
from perpend.theory._checks import basis, directions, normalised, step_sizes
from perpend.theory.statistics import Values


class ContinuousRun(NamedTuple):
    """Where the continuous iteration went."""

    B: Array  # (D, k) unit: the last iterates
    tangents: Array  # (K + 1, k) tan of the angle to the complement, the start's first


def continuous_values(n_features: int, codimension: int, outlier_share: float) -> Values:
    """Return the statistics of the continuous problem: c_D, c_d, and both eta zero.

    There are no numbers of rows, only shares, so step sizes belong to the mean over the rows.

    Examples
    --------
    >>> values = continuous_values(30, 5, outlier_share=0.7)
    >>> round(values.c_x_min, 4), round(values.c_o_max, 4), values.eta_o
    (0.1612, 0.1469, 0.0)
    """
    if not 0 <= outlier_share <= 1:
        raise InputError(f"outlier_share={outlier_share}; expected a probability, from 0 to 1.")
    p, d = float(outlier_share), n_features - codimension
    c_d, c_D = average_height(d) if d else 0.0, average_height(n_features)
    return Values(1 - p, p, d, n_features, c_d, c_d, c_D, c_D, 0.0, 0.0)


def continuous_objective(B: Array, normals: Array, outlier_share: float) -> Array:
    """Return Lemma 2's objective (k,) for the columns of B (D, k).

    Parameters
    ----------
    B : array of shape (D, k)
        Any columns; the objective grows with their norm.

    Notes
    -----
    The paper's proof swaps inliers and outliers in the discrete measures and puts p on the inlier
    term; the statement, which is used here, is right.

    Examples
    --------
    >>> normals = np.eye(3)[:, 2:]
    >>> continuous_objective(np.eye(3), normals, outlier_share=0.5).round(4)
    array([0.5683, 0.5683, 0.25  ])
    """
    B = np.asarray(B, dtype=np.float64)
    normals = basis("normals", normals, len(B))
    v = continuous_values(len(B), normals.shape[1], outlier_share)
    inside = np.linalg.norm(_inside(B, normals), axis=0)  # ||b|| cos(phi)
    outlying: Array = v.n_outliers * v.c_o_max * np.linalg.norm(B, axis=0)
    return outlying + v.n_inliers * v.c_x_max * inside


def continuous_psgm(
    B0: Array, normals: Array, outlier_share: float, *, steps: Array
) -> ContinuousRun:
    r"""Run the projected subgradient method on the continuous objective, all starts at once.

    .. math:: b \leftarrow \frac{b - \mu (p c_D b + (1 - p) c_d s)}{\|\cdot\|}, \qquad
        s = P_S b / \|P_S b\|

    Parameters
    ----------
    B0 : array of shape (D, k)
        Starts; they are scaled to norm one.
    steps : array of shape (K,) or (K, k)
        Step sizes, below 1 / (p c_D), such as ``Schedule(...).steps(K)``. Theorem 1 applied to
        `continuous_values` says which schedules converge.

    Notes
    -----
    The paper prints the second half of a step as the projection onto the complement of S. The
    projection onto the unit sphere is used: with the other, one step would be enough and Lemma 4
    would say nothing. The paper also defines s once without normalising it; its footnote, which
    normalises, is right, as the mean of sign(z.b) z is c_d times a *unit* vector. A start in the
    complement has s = 0, which is a subgradient.
    """
    B = directions("B0", B0)
    normals = basis("normals", normals, len(B))
    v = continuous_values(len(B), normals.shape[1], outlier_share)
    pull, push = v.n_inliers * v.c_x_min, v.n_outliers * v.c_o_max
    tangents = [start_tangents(B, normals)]
    for mu in step_sizes(steps, B.shape[1], 1 / push if push else np.inf, "1 / (p c_D)"):
        B = normalised(B - mu * (push * B + pull * normalised(_inside(B, normals))))
        tangents.append(start_tangents(B, normals))
    return ContinuousRun(B, np.array(tangents))


def projected_starts(B0: Array, normals: Array, delta: Array | float = 0.0) -> Array:
    r"""Return the normalised projections of b^0 - delta onto the complement of S, (D, k).

    .. math:: \hat b = \frac{P_\perp (b^0 - \delta)}{\|P_\perp (b^0 - \delta)\|}

    Without delta they are the limits of the continuous method (Lemma 4); with the delta of
    `discrete_psgm` they are exactly what that method has reached in the complement.

    Parameters
    ----------
    delta : array of shape (D, k), or 0
        What is taken from the starts.

    Returns
    -------
    array of shape (D, k)
        Columns of norm one.

    Notes
    -----
    The paper's proof of Lemma 4 lets its product begin at k = 1 and requires mu != 1/(p c_D). It
    begins at k = 0, and mu < 1/(p c_D) is needed; otherwise the limit may have the other sign. The
    proof of Theorem 5 prints P_perp(B^0) = B_perp B_perp^T, where a factor B^0 is missing, and a 2
    in a diagonal matrix of reciprocals, where a 1 is meant.
    """
    B0 = directions("B0", B0)
    normals = basis("normals", normals, len(B0))
    return normalised(normals @ (normals.T @ (B0 - delta)))


def start_tangents(B: Array, normals: Array) -> Array:
    """Return tan(theta) (k,), theta the angle of each column of B to the complement of S.

    Parameters
    ----------
    B : array of shape (D, k)
        Any columns but zero.

    Returns
    -------
    array of shape (k,)
        Infinite for columns in S.

    Examples
    --------
    >>> start_tangents(np.array([[3.0, 0.0], [0.0, 1.0], [4.0, 0.0]]), np.eye(3)[:, 2:])
    array([0.75,  inf])
    """
    B = np.asarray(B, dtype=np.float64)
    sine = np.linalg.norm(_inside(B, normals), axis=0)
    cosine = np.linalg.norm(normals.T @ B, axis=0)
    return np.divide(sine, cosine, out=np.full(sine.shape, np.inf), where=cosine > 0)


def _inside(B: Array, normals: Array) -> Array:
    """Return P_S B."""
    return B - normals @ (normals.T @ B)

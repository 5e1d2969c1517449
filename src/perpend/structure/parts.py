r"""Is the found subspace the sum of two? Its rows tell, by whom they have anything in common with.

Let H be the projection onto the columns of the rows on it, in coordinates of the subspace (with a
column of ones where it is affine),

.. math:: H = Y (Y^T Y)^{-1} Y^T, \qquad \sum_j H_{ij}^2 = H_{ii},

so that :math:`P_{ij} = H_{ij}^2 / H_{ii}` are the probabilities of a walk from row to row. Where
these are rows of two subspaces that have only the origin in common, H is zero between the two, the
walk never leaves its part, and P has the eigenvalue 1 twice. Rows of one subspace mix at once.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.structure import constants as k
from perpend.structure.cloud import Axes, Cloud

TOO_MANY = 4096  # rows: the walk is a matrix of their square
POWER_STEPS = 40  # of the power method


class Part(NamedTuple):
    """One of two subspaces inside another."""

    codimension: int
    axes: Axes


def parts(
    cloud: Cloud, axes: Axes, c: int, members: Array, rng: np.random.Generator
) -> Iterator[Part]:
    """Yield the two parts of the members' subspace, the larger first, if there are two.

    `members` are numbers of rows.
    """
    d, enough = cloud.D - c, max(k.ENOUGH_FOR_WALK, 2 * (cloud.D - c))
    if len(members) > enough:
        members = np.sort(rng.choice(members, enough, replace=False, shuffle=False))
    if d < 2 or not d + int(cloud.affine) < len(members) <= TOO_MANY:
        return
    Y = cloud.about(axes.centre)[members] @ axes.A[:, c:]
    if cloud.affine:
        Y = np.hstack([Y, np.full((len(Y), 1), np.sqrt(np.mean(np.square(Y))))])
    # Rows of any weight and length show equally well where the others are.
    Y /= np.maximum(np.linalg.norm(Y, axis=1, keepdims=True), np.finfo(float).tiny)
    Q, R = np.linalg.qr(Y)
    size = np.abs(np.diag(R))
    if np.min(size) <= 1e-12 * np.max(size):
        return  # the chosen rows lie on less, exactly
    eigenvalue, first = _second(np.square(Q @ Q.T), rng)
    if eigenvalue < k.APART:
        return
    for part in sorted((first, ~first), key=np.count_nonzero, reverse=True):
        kept = round(float(np.sum(np.square(Q[part])))) - int(cloud.affine)
        if 0 < kept < d:
            some = cloud.X[members[part]]
            centre = some.mean(axis=0) if cloud.affine else axes.centre
            P = (some - centre) @ axes.A[:, c:]
            _, turned = np.linalg.eigh(P.T @ P)
            A = np.hstack([axes.A[:, :c], axes.A[:, c:] @ turned])
            yield Part(c + d - kept, Axes(centre, A, axes.variances))


def _second(H2: Array, rng: np.random.Generator) -> tuple[float, Array]:
    """Return the second eigenvalue of the walk, and which rows (n,) are on one side of it.

    D^(-1/2) H2 D^(-1/2), with the row sums D, is symmetric and has the eigenvalues of P; its first
    eigenvector is D^(1/2) 1. The power method finds the second.
    """
    root = np.sqrt(np.maximum(H2.sum(axis=1), np.finfo(float).tiny))
    S = H2 / root
    S /= root[:, None]
    first = root / np.linalg.norm(root)
    v, eigenvalue = rng.standard_normal(len(S)), 0.0
    for _ in range(POWER_STEPS):
        v -= first * (first @ v)
        v /= max(float(np.linalg.norm(v)), np.finfo(float).tiny)
        after = S @ v
        eigenvalue, v = float(v @ after), after
    return eigenvalue, v > 0

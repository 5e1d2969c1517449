r"""Is the found subspace the sum of two? Its rows tell, by whom they have anything in common with.

Inliers and a small group beside them, a tight cluster or a plane, lie on a common subspace, whose
rows are as near to it as the inliers are to theirs: a clear answer with a dimension too many. Let H
be the projection onto the columns of the rows on it, in coordinates of the subspace,

.. math:: H = Y (Y^T Y)^{-1} Y^T, \qquad \sum_j H_{ij}^2 = H_{ii}

(as :math:`H^2 = H`), so that :math:`P_{ij} = H_{ij}^2 / H_{ii}` are the probabilities of a walk
from row to row. It does not depend on how the rows are spread in the subspace. Where these are rows
of two subspaces that have only the origin in common, H is zero between the two, the walk never
leaves its part, and P has the eigenvalue 1 twice. Rows of one subspace mix at once: for n of them
in d dimensions, without preferred direction, the second eigenvalue is about the larger of
:math:`2/(d+2)` and :math:`d/n + \sqrt{8/n}`. Where it is close to 1 its eigenvector has one sign on
each part, and each part's dimension is the sum of its :math:`H_{ii}`.
"""

from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.codimension.certificate import row_distances
from perpend.codimension.decision import Judge, Judgement
from perpend.codimension.result import SURE
from perpend.geometry import orthonormal

ENOUGH = 400  # rows to see two parts by,
ENOUGH_PER_DIMENSION = 2  # or so many for each dimension,
TOO_MANY = 4096  # but not more: the walk is a matrix of their square
APART = 0.8  # the second eigenvalue from which on rows may be of two kinds
N_STEPS = 40  # of the power method
AS_THIN = 1.5  # times the noise around the found subspace: the most around a smaller one
ON_SMALLER = "rows_on_smaller"  # name of the evidence


def smaller_inside(judge: Judge, found: Judgement) -> Judgement:
    """Return a smaller subspace that is better supported, or a doubt where there is another one."""
    if not judge.refine or found.codimension.confidence < SURE or found.certificate.n_free < 2:
        return found
    for normals in _normals_of_parts(judge, found):
        smaller = judge.consider(np.hstack([found.fit.V, normals]), found.evidence)
        if smaller.certificate.confidence < SURE or not _is_as_thin(smaller, found):
            continue
        if smaller.fit.converged and smaller.support > found.support:
            return smaller_inside(judge, smaller)
        return _may_be_two(judge, found, smaller)
    return found


def _is_as_thin(smaller: Judgement, found: Judgement) -> bool:
    return smaller.fit.groups.scale <= AS_THIN * found.fit.groups.scale


def _near(judge: Judge, found: Judgement) -> Array:
    """Say which rows (n,) lie on the subspace and count."""
    J = row_distances(judge.rows, found.fit.V)
    near: Array = (found.fit.groups.threshold >= J) & (judge.share > 0)
    return near


def _normals_of_parts(judge: Judge, found: Judgement) -> list[Array]:
    """Return normals (D, k) inside the subspace for each of two parts of its rows, if there are."""
    d, rng = found.certificate.n_free, np.random.default_rng(0)
    members, enough = np.flatnonzero(_near(judge, found)), max(ENOUGH, ENOUGH_PER_DIMENSION * d)
    if len(members) > enough:
        members = np.sort(rng.choice(members, enough, replace=False, shuffle=False))
    if not d < len(members) <= TOO_MANY:
        return []
    axes = found.fit.axes[:, -d:]  # (D, d)
    Y = judge.rows.take(members).astype(float) @ axes
    # Rows of any weight and length show equally well where the others are.
    Y /= np.maximum(np.linalg.norm(Y, axis=1, keepdims=True), np.finfo(float).tiny)
    Q, R = np.linalg.qr(Y)  # Q.T Q = 1 and H = Q Q.T
    size = np.abs(np.diag(R))
    if np.min(size) <= len(R) * np.finfo(judge.rows.dtype).eps * np.max(size):
        return []  # the chosen rows lie on less, exactly
    H = Q @ Q.T
    parts = _parts(np.square(H, out=H), rng)
    if parts.eigenvalue < APART:
        return []
    normals = []
    for part in sorted((parts.first, ~parts.first), key=np.count_nonzero, reverse=True):
        kept = round(float(np.sum(np.square(Q[part]))))  # its dimension
        if 0 < kept < d:
            # Beside the part's own directions, Q.T Q of its rows is zero.
            _, turned = np.linalg.eigh(Q[part].T @ Q[part])
            normals.append(orthonormal(axes @ np.linalg.solve(R, turned[:, : d - kept])))
    return normals


class _Parts(NamedTuple):
    first: Array  # (n,) bool: of the first part
    eigenvalue: float  # the second largest, from below


def _parts(H2: Array, rng: np.random.Generator) -> _Parts:
    """Part the rows by the second eigenvector of the walk, given the squares of H (n, n).

    S = D^(-1/2) H2 D^(-1/2), with the row sums D, is symmetric and positive semidefinite, and has
    the eigenvalues of P. Its first eigenvector is D^(1/2) 1. The power method finds the second.
    """
    root = np.sqrt(np.maximum(H2.sum(axis=1), np.finfo(float).tiny))
    S = H2 / root
    S /= root[:, None]
    first = root / np.linalg.norm(root)
    v = rng.standard_normal(len(S))
    eigenvalue = 0.0
    for _ in range(N_STEPS):
        v -= first * (first @ v)
        v /= max(float(np.linalg.norm(v)), np.finfo(float).tiny)
        after = S @ v
        eigenvalue, v = float(v @ after), after
    return _Parts(v > 0, eigenvalue)


def _may_be_two(judge: Judge, found: Judgement, smaller: Judgement) -> Judgement:
    """Say that the subspace holds a smaller one."""
    on_both = _near(judge, found) & _near(judge, smaller)
    n = round(float(judge.share[on_both].sum()))
    doubt = (
        f"{n} of the {found.certificate.n_rows} rows on the subspace lie on a smaller one inside: "
        "it may be the sum of two (use perpend.peel to find both)"
    )
    return found._replace(codimension=found.codimension.doubted(doubt, **{ON_SMALLER: n}))

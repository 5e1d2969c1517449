"""How far an estimate is from the truth.

Bases are *rows*, of shape (k, D), exactly like the learned ``normals_`` and ``components_``. They
need not be orthonormal, only linearly independent, and a basis with no rows is fine. Labels are
scikit-learn's: +1 for inliers, -1 for outliers; scores are higher for inliers, as those of
``score_samples``.

Methods never measure themselves: arrays go in, plain numbers come out.
"""

import numpy as np

from perpend import geometry
from perpend._typing import Array
from perpend.exceptions import InputError

__all__ = [
    "codimension_hit",
    "outlier_auc",
    "outlier_f1",
    "principal_angles",
    "subspace_distance",
    "subspace_error",
]


def subspace_error(normals: Array, true_normals: Array) -> float:
    """Sine of the largest principal angle between the recovered and the true complement.

    Parameters
    ----------
    normals : array of shape (c', D)
        Rows that span the recovered complement, such as ``model.normals_``.
    true_normals : array of shape (c, D)
        Rows that span the true one.

    Returns
    -------
    float
        In [0, 1], computed from sines, so that tiny errors keep their digits. It is 1 if the
        codimensions differ, and 0 if both are zero. The subspaces themselves make the same largest
        angle as their complements, so ``components_`` give the same number.

    Examples
    --------
    >>> round(subspace_error([[1, 0, 0]], [[3, 4, 0]]), 12)
    0.8
    >>> subspace_error([[1, 0, 0]], [[1, 0, 0], [0, 1, 0]])
    1.0
    """
    A, B = _bases(normals, true_normals)
    return geometry.sine_of_largest_angle(A, B) if A.shape == B.shape else 1.0


def subspace_distance(a: Array, b: Array) -> float:
    r"""Distance between two subspaces of possibly different dimension.

    .. math:: \sqrt{2 \sum_i (1 - \cos\theta_i) + |c' - c|}

    with the min(c', c) principal angles :math:`\theta_i`. For equal dimensions it is the distance,
    in the Frobenius norm, between the two orthonormal bases rotated to match best.

    Parameters
    ----------
    a, b : arrays of shape (c', D) and (c, D)
        Rows that span the subspaces.

    Returns
    -------
    float
        0 for equal subspaces; tiny distances keep their digits.

    Examples
    --------
    >>> subspace_distance([[1, 0, 0]], [[1, 0, 0], [0, 1, 0]])
    1.0
    >>> round(subspace_distance([[1, 0, 0]], [[0, 0, 1]]), 6)
    1.414214
    """
    A, B = _bases(a, b)
    angles = geometry.principal_angles(A, B)
    # 1 - cos(t) = 2 sin^2(t / 2) does not cancel for tiny t
    squares = 4 * float(np.sum(np.sin(angles / 2) ** 2))
    return float(np.sqrt(squares + abs(A.shape[1] - B.shape[1])))


def principal_angles(a: Array, b: Array) -> Array:
    """Principal angles between two subspaces, in radians, the largest first.

    Parameters
    ----------
    a, b : arrays of shape (k, D) and (m, D)
        Rows that span the subspaces.

    Returns
    -------
    array of shape (min(k, m),)
        Angles in [0, pi/2].

    Examples
    --------
    >>> np.rad2deg(principal_angles([[1, 0, 0], [0, 1, 0]], [[1, 1, 0], [0, 1, 1]])).round(6)
    array([54.73561,  0.     ])
    """
    return geometry.principal_angles(*_bases(a, b))


def codimension_hit(normals: Array, true_normals: Array) -> bool:
    """Whether the codimension was found: both bases have the same number of rows.

    Parameters
    ----------
    normals, true_normals : arrays of shape (c', D) and (c, D)
        Rows that span the recovered and the true complement.

    Returns
    -------
    bool

    Examples
    --------
    >>> codimension_hit([[1, 0, 0]], [[0, 1, 0]])
    True
    """
    A, B = _bases(normals, true_normals)
    return bool(A.shape[1] == B.shape[1])


def outlier_f1(y_true: Array, y_pred: Array, positive: int = -1) -> float:
    """F1 score, the harmonic mean of precision and recall.

    Parameters
    ----------
    y_true, y_pred : arrays of shape (n,)
        True and predicted labels, +1 or -1.
    positive : {-1, 1}
        The class that is to be found; outliers by default.

    Returns
    -------
    float
        In [0, 1]; 1 if there was nothing to find and nothing was reported.

    Examples
    --------
    >>> outlier_f1([1, 1, -1, -1], [1, -1, -1, -1])
    0.8
    """
    from sklearn.metrics import f1_score

    if positive not in (-1, 1):
        raise ValueError(f"positive must be -1 or 1, got {positive!r}.")
    y_true, y_pred = _labels("y_true", y_true), _labels("y_pred", y_pred)
    _same_length(y_true, "y_pred", y_pred)
    return float(f1_score(y_true == positive, y_pred == positive, zero_division=1.0))


def outlier_auc(y_true: Array, scores: Array) -> float:
    """Area under the ROC curve: how often an inlier scores higher than an outlier.

    Parameters
    ----------
    y_true : array of shape (n,)
        True labels, +1 or -1; both must occur.
    scores : array of shape (n,)
        Higher for inliers, such as ``model.score_samples(X)``.

    Returns
    -------
    float
        In [0, 1]: 1 for a perfect ranking, 0.5 for a random one.

    Examples
    --------
    >>> outlier_auc([1, 1, -1, -1], [-0.1, -0.4, -0.3, -0.9])
    0.75
    """
    from sklearn.metrics import roc_auc_score

    y_true, scores = _labels("y_true", y_true), np.asarray(scores, dtype=np.float64)
    if scores.ndim != 1:
        raise InputError(f"scores must be 1-D, got shape {scores.shape}.")
    _same_length(y_true, "scores", scores)
    if not np.all(np.isfinite(scores)):
        row = int(np.argmin(np.isfinite(scores)))
        raise InputError(f"scores must be finite, got {scores[row]} in row {row}.")
    if np.all(y_true == 1) or np.all(y_true == -1):
        raise InputError("y_true must hold inliers (+1) and outliers (-1); it has only one kind.")
    return float(roc_auc_score(y_true == 1, scores))


def _bases(a: Array, b: Array) -> tuple[Array, Array]:
    """Check two row bases and return orthonormal columns that span the same."""
    A, B = _basis("first", a), _basis("second", b)
    if A.shape[0] != B.shape[0]:
        raise InputError(
            "both bases must have the same number of columns (features), "
            f"got {A.shape[0]} and {B.shape[0]}."
        )
    return A, B


def _basis(name: str, rows: Array) -> Array:
    rows = np.asarray(rows, dtype=np.float64)
    if rows.ndim != 2:
        raise InputError(
            f"the {name} basis must be 2-D, one vector per row, got shape {rows.shape}."
        )
    if not np.all(np.isfinite(rows)):
        row, column = np.argwhere(~np.isfinite(rows))[0]
        raise InputError(
            f"the {name} basis must be finite, got {rows[row, column]} "
            f"in row {row}, column {column}."
        )
    if rows.size:
        # The length of a basis vector is arbitrary: 1e200 and 1e-200 must not decide the rank.
        largest = np.max(np.abs(rows), axis=1, keepdims=True)
        rows = rows / np.where(largest > 0, largest, 1)
    A = geometry.orthonormal(rows.T)
    if A.shape[1] < rows.shape[0]:
        raise InputError(
            f"the {name} basis must have linearly independent rows, "
            f"got {rows.shape[0]} rows of rank {A.shape[1]}."
        )
    return A


def _labels(name: str, y: Array) -> Array:
    y = np.asarray(y)
    if y.ndim != 1 or y.size == 0:
        raise InputError(f"{name} must be 1-D and not empty, got shape {y.shape}.")
    wrong = ~np.isin(y, (-1, 1))
    if np.any(wrong):
        row = int(np.argmax(wrong))
        raise InputError(
            f"{name} must hold only +1 (inlier) and -1 (outlier), got {y[row]} in row {row}."
        )
    return y


def _same_length(y_true: Array, name: str, other: Array) -> None:
    if y_true.shape != other.shape:
        sizes = f"{y_true.size} and {other.size}"
        raise InputError(f"y_true and {name} must have the same length, got {sizes}.")

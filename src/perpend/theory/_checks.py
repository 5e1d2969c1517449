"""The arguments of the theory, explained and checked in one place."""

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.kernels import l1_objective_and_gradient
from perpend.rows import RowSource
from perpend.rows.preparation import row_norms

ORTHONORMAL = 1e-5  # largest deviation of A.T A from the identity, by entries; float32 models pass

EXPLAINED = {
    "values": "Values\n``statistics(...).estimated`` or ``.certified``.\n",
    "tangents": "array of shape (n_starts,)\ntan(theta_0) of the starts, see `start_tangents`.\n",
    "schedule": "Schedule\nThe step sizes.\n",
    "mu0": "float\nThe first step size.\n",
    "beta": "float\nThe factor by which the step is cut, between 0 and 1.\n",
    "k": "array of int\nThe iterations, from 0.\n",
    "n_steps": "int\nNumber of iterations.\n",
    "n_starts": "int\nk, the number of starts, which are uniform.\n",
    "n_features": "int\nD.\n",
    "n_inliers": "int\nN.\n",
    "n_outliers": "int\nM.\n",
    "codimension": "int\nc.\n",
    "outlier_share": "float\np, the probability that a row is an outlier.\n",
    "B0": "array of shape (D, k)\nStarts, in the columns.\n",
    "delta": "array of shape (D, k)\nThe perturbation, such as that of `discrete_psgm`.\n",
    "normals": """array of shape (D, c)
Orthonormal columns that span the complement of the inliers' subspace.
""",
    "C1": "float\nThe constant of the theorem, which the paper leaves open.\n",
    "eps": "float\nA larger value makes the bound lower and more probable.\n",
    "random_state": "None, int, numpy.random.Generator or numpy.random.RandomState\n",
    "return Any": "array",
}
"""What parameters mean that a docstring leaves out."""


def unit_rows(name: str, X: Array, n_features: int | None = None) -> Array:
    """Return the rows of X (n, D) at unit norm, in float64 and without those that are zero."""
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2:
        raise InputError(f"{name} has shape {X.shape}; expected one row for each sample.")
    if n_features is not None and X.shape[1] != n_features:
        raise InputError(f"{name} has {X.shape[1]} columns; expected {n_features}.")
    if not np.all(np.isfinite(X)):
        row, column = np.argwhere(~np.isfinite(X))[0]
        raise InputError(
            f"{name} is {X[row, column]} in row {row}, column {column}. Drop these rows or "
            "columns, or impute them first."
        )
    norms = row_norms(X)
    return X[norms > 0] / norms[norms > 0, None]


def basis(name: str, A: Array, n_features: int) -> Array:
    """Return A (D, k), a basis with orthonormal columns."""
    A = np.asarray(A, dtype=np.float64)
    if A.ndim != 2 or A.shape[0] != n_features:
        raise InputError(
            f"{name} has shape {A.shape}; expected ({n_features}, k). In the theory bases are "
            f"columns: pass model.{name}_.T."
        )
    error = float(np.max(np.abs(A.T @ A - np.eye(A.shape[1])), initial=0.0))
    if not error <= ORTHONORMAL:
        raise InputError(
            f"{name}: the columns are not orthonormal (off by {error:.1e}); expected an "
            "orthonormal basis, as numpy.linalg.qr gives it, one vector in each column."
        )
    return A


def directions(name: str, B: Array) -> Array:
    """Return the columns of B (D, k) at unit norm."""
    B = np.asarray(B, dtype=np.float64)
    norms = np.linalg.norm(B, axis=0) if B.ndim == 2 else np.zeros(1)
    if not np.all((norms > 0) & np.isfinite(norms)):
        raise InputError(
            f"{name} has shape {B.shape} and columns of norm {np.min(norms)} to {np.max(norms)}; "
            "expected directions in the columns, none of them zero."
        )
    return B / norms


def step_sizes(steps: Array, n_starts: int, largest: float, why: str) -> Array:
    """Return step sizes (K, k), one row for each iteration, all below `largest`."""
    mu = np.asarray(steps, dtype=np.float64)
    mu = mu[:, None] if mu.ndim == 1 else mu
    if mu.ndim != 2 or mu.shape[1] not in (1, n_starts):
        raise InputError(
            f"steps has shape {np.shape(steps)}; expected one number for each iteration, (K,), or "
            f"one for each iteration and start, (K, {n_starts})."
        )
    if not np.all((mu >= 0) & (mu < largest)):
        raise InputError(
            f"steps range from {np.min(mu):.3g} to {np.max(mu):.3g}; expected sizes from 0 to "
            f"below {largest:.3g} = {why}: a longer step turns the iterate round."
        )
    return np.broadcast_to(mu, (len(mu), n_starts))


def objective_and_gradient(rows: RowSource, B: Array) -> tuple[Array, Array]:
    """Return sum_i |x_i.b| (k,) and sum_i sign(x_i.b) x_i (D, k) for every column b of B."""
    if rows.shape[0] == 0:
        return np.zeros(B.shape[1]), np.zeros(B.shape)
    scan = rows.scan(l1_objective_and_gradient, B)
    return scan.total, scan.product.T


def normalised(A: Array) -> Array:
    """Divide the columns by their norms; a zero column stays zero."""
    norms = np.linalg.norm(A, axis=0)
    return A / np.where(norms > 0, norms, 1)

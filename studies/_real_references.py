"""Short versions of the methods that stand beside ours on real data. None of them is tuned."""

import numpy as np

from perpend._typing import Array

BATCH = 25  # planes that are scored together


def pca_plane(points: Array) -> Array:
    """Return the homogeneous normal (4,) of the least-squares plane through points (n, 3)."""
    centre = points.mean(axis=0)
    normal = np.linalg.eigh(np.cov(points.T))[1][:, 0]
    return np.append(normal, -normal @ centre)


def ransac_plane(points: Array, threshold: float, draws: int, rng: np.random.Generator) -> Array:
    """Return the plane through three points that has most points within `threshold` of it.

    It is fitted again, by least squares, to these points. The plane is homogeneous, (4,).
    """
    best, most = np.zeros(4), -1
    for _ in range(-(-draws // BATCH)):
        p, q, r = np.moveaxis(points[rng.integers(len(points), size=(BATCH, 3))], 1, 0)
        normals = np.cross(q - p, r - p)
        length = np.linalg.norm(normals, axis=1, keepdims=True)
        normals = normals / np.where(length > 0, length, 1)
        offsets = np.sum(normals * p, axis=1)
        near = np.abs(points @ normals.T - offsets) < threshold
        counts = np.where(length[:, 0] > 0, near.sum(axis=0), -1)
        i = int(np.argmax(counts))
        if counts[i] > most:
            best, most = np.append(normals[i], -offsets[i]), int(counts[i])
    inliers = np.abs(points @ best[:3] + best[3]) < threshold
    return pca_plane(points[inliers]) if inliers.sum() > 3 else best


def rx_scores(X: Array) -> Array:
    """Return the RX detector's score: the squared Mahalanobis distance from the mean."""
    centred = X - X.mean(axis=0)
    covariance = centred.T @ centred / (len(X) - 1)
    # Bands may be linear combinations of others: a trace of the variance keeps it invertible.
    ridge = 1e-9 * np.trace(covariance) / len(covariance)
    whitened = np.linalg.solve(covariance + ridge * np.eye(len(covariance)), centred.T)
    return np.asarray(np.sum(centred * whitened.T, axis=1))


def residuals(X: Array, basis: Array) -> Array:
    """Return the distances of rows from the span of orthonormal basis rows (d, D)."""
    return np.asarray(np.linalg.norm(X - (X @ basis.T) @ basis, axis=1))


def principal_axes(X: Array, d: int) -> Array:
    """Return the d right singular vectors (d, D) of X with the largest singular values."""
    if len(X) < X.shape[1]:
        return np.asarray(np.linalg.svd(X, full_matrices=False)[2][:d])
    return np.asarray(np.linalg.eigh(X.T @ X)[1][:, ::-1][:, :d].T)


def unit_rows(X: Array) -> Array:
    """Return rows scaled to unit norm; zero rows stay."""
    length = np.linalg.norm(X, axis=1, keepdims=True)
    return np.asarray(X / np.where(length > 0, length, 1))


def spherical_pca(X: Array, d: int) -> Array:
    """Return the principal axes of the rows scaled to unit norm."""
    return principal_axes(unit_rows(X), d)


def reweighted_pca(X: Array, d: int, *, floor: float = 1e-3, steps: int = 50) -> Array:
    """Minimise the sum of distances of unit rows by reweighted PCA (fast median subspace)."""
    X = unit_rows(X)
    basis = principal_axes(X, d)
    for _ in range(steps):
        weight = 1 / np.maximum(residuals(X, basis), floor)
        basis = principal_axes(X * np.sqrt(weight)[:, None], d)
    return basis


def scaled_points(points: Array) -> tuple[Array, float]:
    """Return image points (n, 2) about their mean at a mean distance of sqrt(2), and the scale."""
    centred = points - points.mean(axis=0)
    scale = float(np.sqrt(2) / np.mean(np.linalg.norm(centred, axis=1)))
    return centred * scale, scale


def homography_rows(a: Array, b: Array) -> Array:
    """Return the two equations (2 n, 9) that each correspondence a -> b puts on a homography.

    With x = (a, 1): the rows (x, 0, -b_1 x) and (0, x, -b_2 x) are orthogonal to its nine entries.
    """
    x = np.column_stack([a, np.ones(len(a))])
    zero = np.zeros_like(x)
    pairs = [np.hstack([x, zero, -b[:, :1] * x]), np.hstack([zero, x, -b[:, 1:] * x])]
    return np.stack(pairs, axis=1).reshape(-1, 9)


def transfer_errors(H: Array, a: Array, b: Array) -> Array:
    """Return the distances between H(a) and b."""
    image = np.column_stack([a, np.ones(len(a))]) @ H.T
    with np.errstate(all="ignore"):  # points that go to infinity are far away
        errors = np.linalg.norm(image[:, :2] / image[:, 2:] - b, axis=1)
    return np.asarray(np.nan_to_num(errors, nan=np.inf))


def ransac_homography(
    a: Array, b: Array, threshold: float, draws: int, rng: np.random.Generator
) -> Array:
    """Return the errors under the homography through four points that has most within `threshold`.

    It is fitted again to these correspondences.
    """
    best = np.full(len(a), np.inf)
    for _ in range(draws):
        four = rng.choice(len(a), 4, replace=False)
        errors = transfer_errors(_fit(a[four], b[four]), a, b)
        if np.sum(errors < threshold) > np.sum(best < threshold):
            best = errors
    near = best < threshold
    return transfer_errors(_fit(a[near], b[near]), a, b) if near.sum() >= 4 else best


def _fit(a: Array, b: Array) -> Array:
    rows = homography_rows(a, b)
    return np.asarray(np.linalg.svd(rows, full_matrices=len(rows) < 9)[2][-1].reshape(3, 3))

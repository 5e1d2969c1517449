"""Short versions of methods that stand beside ours on the boards. None of them is tuned.

Methods that perpend has are the public ones: see `PEERS` of the boards. PCA is scikit-learn's.
"""

from collections.abc import Callable

import numpy as np
from scipy import stats

from perpend._typing import Array

QUANTILE = 0.975  # of Gaussian rows that ROBPCA and the MCD do not flag, as published


def pca_plane(points: Array) -> Array:
    """Return the homogeneous normal (4,) of the least-squares plane through points (n, 3)."""
    from perpend.comparison import PCABaseline  # late, as it loads all of perpend

    model = PCABaseline(1, affine=True).fit(points)
    return np.append(model.normals_[0], -model.normals_[0] @ model.location_)


def rx_scores(X: Array) -> Array:
    """Return the RX detector's score: the squared Mahalanobis distance from the mean."""
    centred = X - X.mean(axis=0)
    covariance = centred.T @ centred / (len(X) - 1)
    # Bands may be linear combinations of others: a trace of the variance keeps it invertible.
    ridge = 1e-9 * np.trace(covariance) / len(covariance)
    whitened = np.linalg.solve(covariance + ridge * np.eye(len(covariance)), centred.T)
    return np.asarray(np.sum(centred * whitened.T, axis=1))


def student_scores(X: Array, *, steps: int = 100) -> Array:
    """Return squared Mahalanobis distances by location and scatter of a Student law.

    One degree of freedom: rows get the weight (1 + D) / (1 + q), q being their squared distance. At
    the end the median of q is that of the chi-square law, so that Gaussian rows have its quantiles.
    """
    D = X.shape[1]
    weight = np.ones(len(X))
    for _ in range(steps):
        centred = X - np.average(X, axis=0, weights=weight)
        scatter = (centred * weight[:, None]).T @ centred / len(X)
        scatter += 1e-9 * np.trace(scatter) / D * np.eye(D)  # as for RX
        q = np.sum(centred * np.linalg.solve(scatter, centred.T).T, axis=1)
        last, weight = weight, (1 + D) / (1 + q)
        if np.max(np.abs(weight / last - 1)) < 1e-4:
            break
    return np.asarray(q * stats.chi2.median(D) / np.median(q))


def mcd_flags(X: Array, seed: int) -> Array:
    """Return which rows are beyond the chi-square quantile of their robust distance (MCD)."""
    from sklearn.covariance import MinCovDet

    distances = MinCovDet(random_state=seed).fit(X).dist_
    return np.asarray(distances > stats.chi2.ppf(QUANTILE, X.shape[1]))


def pca_flags(X: Array, k: int) -> Array:
    """Return which rows are far by classical PCA, off its k axes or within them."""
    centred = X - X.mean(axis=0)
    return _beyond(centred, principal_axes(centred, k), lambda T: np.sum(T**2 / T.var(axis=0), 1))


def robpca_flags(X: Array, k: int, seed: int, *, directions: int = 250) -> Array:
    """Return which rows ROBPCA flags: off its k axes, or far within them (Hubert and others, 2005).

    The axes are those of the three quarters of the rows that stick out least in directions through
    two rows, then of all rows near them; distances within are by the MCD.
    """
    from sklearn.covariance import MinCovDet

    rng, n = np.random.default_rng([seed, 13]), len(X)
    X = (X - X.mean(axis=0)) @ principal_axes(X - X.mean(axis=0), min(n - 1, X.shape[1])).T
    pairs = rng.permuted(np.tile(np.arange(n), (directions, 1)), axis=1)[:, :2]
    along = X @ unit_rows(X[pairs[:, 0]] - X[pairs[:, 1]]).T
    away = np.abs(along - np.median(along, axis=0))
    worst = np.max(away / np.maximum(np.median(away, axis=0), 1e-12), axis=1)
    core = X[np.argsort(worst, kind="stable")[: (3 * n) // 4]]
    for _ in range(2):
        centred = X - core.mean(axis=0)
        axes = principal_axes(core - core.mean(axis=0), k)
        off = residuals(centred, axes)
        core = X[off <= _off_limit(off)]
    return _beyond(centred, axes, lambda T: MinCovDet(random_state=seed).fit(T).dist_)


def _beyond(centred: Array, axes: Array, within: Callable[[Array], Array]) -> Array:
    off, scores = residuals(centred, axes), centred @ axes.T
    return (off > _off_limit(off)) | (within(scores) > stats.chi2.ppf(QUANTILE, len(axes)))


def _off_limit(off: Array) -> float:
    """Return the quantile of distances whose powers 2/3 are nearly Gaussian."""
    power = off ** (2 / 3)
    spread = 1.4826 * np.median(np.abs(power - np.median(power)))
    return float((np.median(power) + spread * stats.norm.ppf(QUANTILE)) ** 1.5)


def residuals(X: Array, basis: Array) -> Array:
    """Return the distances of rows from the span of orthonormal basis rows (d, D)."""
    return np.asarray(np.linalg.norm(X - (X @ basis.T) @ basis, axis=1))


def principal_axes(X: Array, d: int) -> Array:
    """Return the first d axes (d, D) of scikit-learn's PCA, through the origin."""
    from perpend.comparison import PCABaseline

    axes: Array = PCABaseline(n_components=d, normalize=False).fit(X).components_
    return axes


def unit_rows(X: Array) -> Array:
    """Return rows scaled to unit norm; zero rows stay."""
    length = np.linalg.norm(X, axis=1, keepdims=True)
    return np.asarray(X / np.where(length > 0, length, 1))


def transfer_errors(H: Array, a: Array, b: Array) -> Array:
    """Return the distances between H(a) and b."""
    image = np.column_stack([a, np.ones(len(a))]) @ H.T
    with np.errstate(all="ignore"):  # points that go to infinity are far away
        errors = np.linalg.norm(image[:, :2] / image[:, 2:] - b, axis=1)
    return np.asarray(np.nan_to_num(errors, nan=np.inf))

"""Inliers near a random subspace, outliers elsewhere: the model of the theory.

All draws come from one Generator in a fixed order: subspace, inliers, outliers, order of the rows,
noise. With one seed, a change of only the noise or the offset therefore moves the same inliers off
the same subspace, so curves over the noise level are comparable.
"""

import math
import numbers
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from perpend._typing import Array, RandomState
from perpend.geometry import as_generator, random_directions

CLUSTER_RADIUS = 0.1  # expected distance of an outlier in the cluster from its unit-norm centre


class SubspaceData(NamedTuple):
    """Rows with their labels and the subspace they were made from.

    The inliers' subspace is ``location + span(components)``, or equally all x with
    ``normals @ (x - location) = 0``.
    """

    X: Array  # (n, D)
    y: Array  # (n,) +1 inlier, -1 outlier
    normals: Array  # (c, D) orthonormal rows
    components: Array  # (d, D) orthonormal rows
    location: Array  # (D,) zero without an offset


def make_subspace(
    n_inliers: int = 500,
    n_outliers: int = 500,
    *,
    n_features: int = 30,
    codimension: int = 5,
    noise: float = 0.0,
    outliers: str = "sphere",
    stretch: float = 1.0,
    offset: float = 0.0,
    move_outliers: bool = False,
    random_state: RandomState = None,
) -> SubspaceData:
    """Draw inliers from a random subspace and outliers from elsewhere, in random order.

    Parameters
    ----------
    n_inliers, n_outliers : int
        Number of rows of each kind.
    n_features : int
        D, the number of columns.
    codimension : int
        c, from 0 (the subspace is the whole space) to D (it is a point).
    noise : float
        sigma: each unit-norm inlier gets a Gaussian vector of expected norm sigma (its entries have
        standard deviation sigma / sqrt(D)), then the row is normalised again.
    outliers : {"sphere", "heavy", "cluster", "plane"}
        Uniform unit vectors; uniform directions with Cauchy-distributed lengths; unit vectors
        around one random centre; unit vectors in one random plane.
    stretch : float
        In (0, 1]. Before they are normalised, the coordinates of the inliers in the subspace have
        standard deviations that fall geometrically from 1 to `stretch`. With 1 the inliers are
        uniform on the unit sphere of the subspace.
    offset : float
        Distance by which the inliers are moved away from the origin, in a random direction. If it
        is not zero, rows are not normalised after the noise. The outliers stay where they are,
        around the origin, unless `move_outliers`.
    move_outliers : bool
        Whether the outliers are moved along with the inliers, so that the whole cloud is away from
        the origin.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        Pass an int for the same data each time.

    Returns
    -------
    SubspaceData
        A named tuple with `X`, `y`, `normals`, `components` and `location`.

    Notes
    -----
    With ``codimension == n_features`` the inliers have no direction to be normalised along: they
    lie at the origin (or the offset), apart from the noise.

    Examples
    --------
    >>> data = make_subspace(n_features=10, codimension=3, random_state=0)
    >>> data.X.shape, data.normals.shape, data.components.shape
    ((1000, 10), (3, 10), (7, 10))
    >>> inliers = data.X[data.y == 1]
    >>> bool(abs(inliers @ data.normals.T).max() < 1e-14)
    True
    """
    D = _count("n_features", n_features, minimum=1)
    c = _count("codimension", codimension, maximum=D)
    n_in, n_out = _count("n_inliers", n_inliers), _count("n_outliers", n_outliers)
    if n_in + n_out == 0:
        raise ValueError("n_inliers and n_outliers must not both be 0: there would be no rows.")
    sigma, length = _amount("noise", noise), _amount("offset", offset)
    if not 0 < _amount("stretch", stretch) <= 1:
        raise ValueError(f"stretch must be in (0, 1], got {stretch!r}.")
    if outliers not in OUTLIERS:
        raise ValueError(f"outliers must be one of {sorted(OUTLIERS)}, got {outliers!r}.")

    rng = as_generator(random_state)
    Q, _ = np.linalg.qr(rng.standard_normal((D, D)))  # any of its columns span a random subspace
    normals, components = Q[:, :c].T, Q[:, c:].T
    location = length * random_directions(rng, D, 1)[:, 0]

    scales = np.geomspace(1.0, stretch, D - c)
    inliers = _unit(rng.standard_normal((n_in, D - c)) * scales) @ components
    others = OUTLIERS[outliers](rng, n_out, D)
    order = rng.permutation(n_in + n_out)
    if sigma > 0:
        inliers += sigma / math.sqrt(D) * rng.standard_normal((n_in, D))
        if length == 0 and c < D:
            inliers = _unit(inliers)

    X = np.concatenate([inliers + location, others + location if move_outliers else others])
    y = np.concatenate([np.ones(n_in, dtype=int), -np.ones(n_out, dtype=int)])
    return SubspaceData(X[order], y[order], normals, components, location)


def _sphere(rng: np.random.Generator, n: int, D: int) -> Array:
    """Uniform unit vectors."""
    return random_directions(rng, D, n).T


def _heavy(rng: np.random.Generator, n: int, D: int) -> Array:
    """Uniform directions; half of the lengths exceed 1, about one in 640 exceeds 1000."""
    return random_directions(rng, D, n).T * np.abs(rng.standard_cauchy((n, 1)))


def _cluster(rng: np.random.Generator, n: int, D: int) -> Array:
    """Unit vectors around one random centre."""
    centre = random_directions(rng, D, 1).T  # (1, D)
    return _unit(centre + CLUSTER_RADIUS / math.sqrt(D) * rng.standard_normal((n, D)))


def _plane(rng: np.random.Generator, n: int, D: int) -> Array:
    """Uniform unit vectors of one random plane: a low-dimensional rival of the inliers."""
    k = min(2, D)
    basis, _ = np.linalg.qr(rng.standard_normal((D, k)))  # (D, k)
    return random_directions(rng, k, n).T @ basis.T


OUTLIERS: dict[str, Callable[[np.random.Generator, int, int], Array]] = {
    "sphere": _sphere,
    "heavy": _heavy,
    "cluster": _cluster,
    "plane": _plane,
}


def _unit(rows: Array) -> Array:
    if rows.shape[1] == 0:
        return rows
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _count(name: str, value: int, *, minimum: int = 0, maximum: int | None = None) -> int:
    if not isinstance(value, numbers.Integral) or isinstance(value, bool):
        raise TypeError(f"{name} must be an int, got {value!r}.")
    if maximum is not None and not minimum <= value <= maximum:
        raise ValueError(f"{name} must be from {minimum} to n_features = {maximum}, got {value}.")
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {value}.")
    return int(value)


def _amount(name: str, value: float) -> float:
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, got {value!r}.")
    if not 0 <= value < math.inf:
        raise ValueError(f"{name} must be finite and not negative, got {value!r}.")
    return float(value)

"""The functional form: matched points in, the relation between two views out."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from perpend._docs import explained
from perpend._typing import Array, RandomState
from perpend.correspondences.evidence import confidence_of
from perpend.correspondences.fundamental import FundamentalMatrices
from perpend.correspondences.homographies import Homographies
from perpend.correspondences.pairs import Pairs
from perpend.correspondences.search import find
from perpend.exceptions import InputError
from perpend.geometry import as_generator
from perpend.structure.constants import SURE

FLAT = 1e-6  # of their length: points that are no wider lie on a line, up to rounding
SEED = {
    "random_state": "int, Generator, RandomState or None, default=None\nDraws starts and samples."
}
SIZES = 1e-100, 1e100  # of coordinates whose squares are numbers


@dataclass(frozen=True, repr=False, eq=False)
class Relation:
    """What relates two views; unpacks as ``matrix, mask``, as OpenCV's results do.

    Attributes
    ----------
    matrix : array of shape (3, 3)
        Of the points as they were given, with last entry 1 (or of norm 1, if it is zero).
    mask : array of bool, shape (n,)
        The pairs that agree: probability above one half.
    probability : array of shape (n,)
        The probability that a pair is correct.
    noise : float
        Standard deviation of a correct pair's error, in pixels: of one coordinate of the transfer
        error for a homography, of Sampson's error for a fundamental matrix.
    confidence : float
        In [0, 1]; from 0.95 on it is called sure.
    doubt : str
        Why it is not sure, and what would help; empty if it is.
    kind : str
        "homography" or "fundamental matrix".
    """

    matrix: Array
    mask: Array
    probability: Array
    noise: float
    confidence: float
    doubt: str
    kind: str

    def __iter__(self) -> Iterator[Array]:
        return iter((self.matrix, self.mask))

    def __repr__(self) -> str:
        sure = "sure" if self.confidence >= SURE else f"not sure: {self.doubt}"
        return (
            f"Relation({self.kind}, {int(self.mask.sum())} of {len(self.mask)} pairs agree, noise "
            f"{self.noise:.2g} pixels, confidence {self.confidence:.2f} ({sure}))"
        )


@explained(SEED)
def homography(first: Array, second: Array, *, random_state: RandomState = None) -> Relation:
    """Find the homography that maps points of one image to their matches in another.

    Two views of a plane, or from one place, are related by ``second ~ H first``. Most of the
    matches may be wrong; no threshold is needed.

    Parameters
    ----------
    first, second : array of shape (n, 2)
        Matched points in pixels, row by row; at least four. OpenCV's shape (n, 1, 2) will do.

    Examples
    --------
    >>> import numpy as np
    >>> from perpend import homography
    >>> rng = np.random.default_rng(0)
    >>> first = rng.uniform(0, [640, 480], (100, 2))
    >>> second = first @ [[0.9, 0.1], [-0.1, 0.9]] + [20, 30] + rng.normal(0, 0.5, (100, 2))
    >>> second[60:] = rng.uniform(0, [640, 480], (40, 2))
    >>> H, mask = homography(first, second, random_state=0)
    >>> int(mask[:60].sum()), int(mask[60:].sum())
    (60, 0)
    >>> H.round(1)[:, :2] + 0.0
    array([[ 0.9, -0.1],
           [ 0.1,  0.9],
           [ 0. ,  0. ]])
    """
    return _related(_Kind("homography", Homographies, 4), first, second, random_state)


@explained(SEED)
def fundamental_matrix(
    first: Array, second: Array, *, random_state: RandomState = None
) -> Relation:
    """Find the fundamental matrix F of two views of a scene: ``second.T F first = 0``.

    F has rank 2. Points on one plane do not determine it; the result is then not sure.

    Parameters
    ----------
    first, second : array of shape (n, 2)
        Matched points in pixels, row by row; at least eight. OpenCV's shape (n, 1, 2) will do.

    Examples
    --------
    A camera moves to the right: matches stay on their line, and nearer points move farther.

    >>> import numpy as np
    >>> from perpend import fundamental_matrix
    >>> rng = np.random.default_rng(0)
    >>> first = rng.uniform(0, [640, 480], (100, 2))
    >>> second = first - [1, 0] * rng.uniform(5, 60, (100, 1)) + rng.normal(0, 0.3, (100, 2))
    >>> second[70:] = rng.uniform(0, [640, 480], (30, 2))
    >>> fundamental_matrix(first, second, random_state=0).mask[:70].all()
    np.True_
    """
    kind = _Kind("fundamental matrix", FundamentalMatrices, 8)
    return _related(kind, first, second, random_state)


class _Kind(NamedTuple):
    name: str
    pairs: type[Pairs]
    least: int  # pairs


def _related(kind: _Kind, first: Any, second: Any, random_state: RandomState) -> Relation:
    rng = as_generator(random_state)
    a, b = _points("first", first), _points("second", second)
    if len(a) != len(b):
        raise InputError(
            f"first has {len(a)} points and second has {len(b)}; expected equal numbers: row i of "
            "both is one match."
        )
    # A match that is listed twice counts as one.
    distinct, place = np.unique(np.hstack([a, b]), axis=0, return_inverse=True)
    if len(distinct) < kind.least:
        raise InputError(
            f"Only {len(distinct)} different pairs; a {kind.name} needs at least {kind.least}."
        )
    for name, points in (("first", distinct[:, :2]), ("second", distinct[:, 2:])):
        _check_spread(name, points, kind.name)
    pairs = kind.pairs(distinct[:, :2], distinct[:, 2:])
    estimate = find(pairs, rng)
    confidence, doubt = confidence_of(pairs, estimate, rng)
    p = estimate.probability[place.reshape(-1)]
    matrix = pairs.in_pixels(estimate.M)
    return Relation(matrix, p > 0.5, p, estimate.deviation, confidence, doubt, kind.name)


def _points(name: str, points: Any) -> Array:
    """Return points as floats (n, 2), or say what is wrong with them."""
    try:
        array = np.asarray(points, dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is not an array of numbers: {error}") from error
    if array.ndim == 3 and array.shape[1] == 1:  # OpenCV's
        array = array[:, 0]
    if array.ndim != 2 or array.shape[1] != 2:
        raise InputError(
            f"{name} has shape {array.shape}; expected (n, 2): the pixel coordinates of one point "
            "a row. Divide homogeneous points by their last coordinate."
        )
    bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if len(bad):
        raise InputError(
            f"{name} contains NaN or inf in {len(bad)} rows (first: row {bad[0]}). Leave these "
            "pairs out, in both arrays."
        )
    return array


def _check_spread(name: str, points: Array, kind: str) -> None:
    centred = points - points.mean(axis=0)
    size = float(np.abs(centred).max())
    if size <= max(SIZES[0], 1e-12 * float(np.abs(points).max())):
        raise InputError(f"All points of {name} are equal; they do not determine a {kind}.")
    if size > SIZES[1]:
        raise InputError(f"{name} has coordinates of {size:.0e}; expected pixels.")
    long, wide = np.linalg.svd(centred / size, compute_uv=False)
    if wide <= FLAT * long:
        raise InputError(
            f"All points of {name} lie on a line; they do not determine a {kind}. Use points that "
            "are spread over the image."
        )

r"""Relations in the data's own units: sparse, solved for a column, as round as the noise allows.

A subspace is :math:`N (x - x_0) = 0`. In units of the columns' spreads s its normals are N diag(s);
`perpend.relations.sparse` finds relations between few columns among them, and each is written as

    x_p = sum_j a_j x_j + constant,

for a column p that matters in it. Terms that together change inliers by less than the noise of the
relation are left out.
"""

from typing import Any, NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.relations.sparse import GOOD_PIVOT, candidates, sparsest, unit

SEARCH_ERROR = 1e-5  # of a relation that the search of sparse ones may leave
SMALL_TERM = 1e-6  # of a column's spread is left out, however exact the relation is
SMALL_CONSTANT = 1e-3  # of a column's spread is left out in texts
IS_ZERO = 1e-9  # of the spread of a single column is rounding; a spread is at least
LEAST_SPREAD = 1e-6  # of the largest spread, for columns that never change
LOST_SPREAD = 1e-4  # of a column's spread may be lost by rounding
MOST_DIGITS = 12
NEARLY_CONSTANT = 0.5  # of the spread of all rows: inliers that vary more are not constant there
MOST_ROWS = 2000  # that decide which terms matter
MOST_PRODUCTS = 1e7  # c D^2 of a table whose relations are looked for unasked; takes two seconds


class Surface(NamedTuple):
    """The subspace normals @ (x - centre) = 0, with what is known about its inliers."""

    normals: Array  # (c, D)
    centre: Array  # (D,) a point on it
    spread: Array  # (D,) of the inliers in each column
    moments: Array  # (D, D) of the inliers about the centre, in units of the spread
    rows: Array | None  # (n, D) some inliers in these units; without them:
    noise: float  # in these units, along one normal
    whole: Any = 1.0  # (D,) spread of all rows in each column, or one number for all of them


class Relation(NamedTuple):
    """One column as a combination of others: x_p = values @ x[columns] + constant, up to noise."""

    column: int
    columns: Array  # (k,)
    values: Array  # (k,)
    constant: float
    noise: float  # standard deviation, in the units of the column
    sizes: Array  # (k,) of the columns' values, as a root mean square
    limit: float  # a constant up to it is left out in texts
    error: float  # how much the rounding of a coefficient may change
    left_out: bool  # whether there were terms too small to matter

    @property
    def shown_constant(self) -> float:
        """The constant as texts have it: 0 if it does not matter."""
        return 0.0 if self.columns.size and abs(self.constant) <= self.limit else self.constant


def surface_of_rows(
    normals: Array, centre: Array, rows: Array, scale: Array | None = None
) -> Surface:
    """Return a surface with the spreads of some inliers (n, D); `scale` is that of all rows."""
    some = rows[:: max(1, -(-len(rows) // MOST_ROWS))].astype(float) - centre
    largest = np.max(np.abs(some), axis=0)
    unit = np.where(largest > 0, largest, 1.0)  # so that no square over- or underflows
    spread = unit * np.sqrt(np.mean(np.square(some / unit), axis=0))
    if scale is None:
        scale = spread.max() or np.max(np.abs(centre)) or 1.0
    spread = np.maximum(spread, LEAST_SPREAD * scale)
    some = some / spread
    return Surface(normals, centre, spread, some.T @ some / len(some), some, np.nan, scale)


def surface_of_model(normals: Array, centre: Array, spread: Array, noise: float) -> Surface:
    """Return a surface whose inliers spread evenly along it: what a model knows without rows."""
    D = len(spread)
    Q = _orthonormal(normals * spread)
    along = np.eye(D) - Q.T @ Q
    moments = along * (D / max(D - len(Q), 1)) + noise**2 * Q.T @ Q
    return Surface(normals, centre, spread, moments, None, noise)


def solved(surface: Surface) -> list[Relation]:
    """Return the relations, sparsest first; each is solved for a column of its own if it can be."""
    c = len(surface.normals)
    if not c:
        return []
    Q = _orthonormal(surface.normals * surface.spread)
    V = candidates(Q)
    supports = [_terms_that_matter(v, surface, SEARCH_ERROR) for v in V]
    # Of relations that differ only by what is lost in the noise, one is enough.
    left = [np.isin(range(len(v)), some) * v for v, some in zip(V, supports, strict=True)]
    taken: set[int] = set()
    found = []
    for i in sparsest(unit(np.array(left)), supports, c):
        some = supports[i]
        v = _refitted(V[i], some, Q)
        if len(some) > 1:  # a column that never changes is no multiple of the rounding of others
            some = _terms_that_matter(v, surface, SMALL_TERM)
        kept = np.array(some)
        size = np.abs(v[kept])
        good = kept[size >= GOOD_PIVOT * size.max()]
        free = [int(j) for j in good if int(j) not in taken]
        p = free[-1] if free else int(good[-1])  # a sum usually comes after its terms
        taken.add(p)
        found.append(_relation(p, v, kept, surface))
    return found


def apart(surface: Surface) -> tuple[list[Relation] | None, list[Relation]]:
    """Return the relations between columns, and those that say only that a column is constant.

    Of wide tables only the latter, and None: columns whose own axis is a normal, up to the noise.
    What is lost in the noise altogether is neither.
    """
    (c, D), several, constants = surface.normals.shape, None, []
    if c * D * D <= MOST_PRODUCTS:
        found = solved(surface)
        several = [one for one in found if one.columns.size]
        constants = list({one.column: one for one in found if not one.columns.size}.values())
    else:
        Q = _orthonormal(surface.normals * surface.spread)
        for j in np.flatnonzero(np.sum(np.square(Q), axis=0) > GOOD_PIVOT).tolist():
            v = Q[:, j] @ Q
            if _terms_that_matter(v, surface, SEARCH_ERROR) == (j,):
                constants.append(_relation(j, v, np.array([j]), surface))
    quiet = surface.spread <= NEARLY_CONSTANT * np.broadcast_to(surface.whole, D)
    return several, [one for one in constants if quiet[one.column]]


def _orthonormal(M: Array) -> Array:
    """Return an orthonormal basis of the rows; columns of any size count alike."""
    largest = np.max(np.abs(M), axis=1, keepdims=True)
    Q: Array = np.linalg.qr((M / np.where(largest > 0, largest, 1.0)).T)[0].T
    return Q


def _noise(v: Array, surface: Surface) -> float:
    if surface.rows is None:
        return surface.noise * float(np.linalg.norm(v))
    return float(np.sqrt(np.mean(np.square(surface.rows @ v))))


def _lost(v: Array, order: Array, surface: Surface) -> Array:
    """Return by how much inliers change, as a root mean square, without the first k of the terms.

    (v_1..k)^T C (v_1..k), for all k at once: sums along rows and columns of v_i C_ij v_j.
    """
    products = (v[:, None] * surface.moments * v)[np.ix_(order, order)]
    squares = np.diagonal(np.cumsum(np.cumsum(products, axis=0), axis=1))
    return np.sqrt(np.maximum(squares, 0.0))


def _terms_that_matter(v: Array, surface: Surface, small: float) -> tuple[int, ...]:
    """Return the columns of a relation that are neither lost in its noise nor small, in order."""
    size = np.abs(v) * np.sqrt(np.diagonal(surface.moments))
    order = np.argsort(size, kind="stable")  # the least first
    limit = max(_noise(v, surface), small * float(np.max(np.abs(v))))
    n_lost = int(np.sum(np.cumprod(_lost(v, order, surface) <= limit)))
    if n_lost == len(v):  # a column that never changes
        return (int(np.argmax(np.abs(v))),)
    return tuple(sorted(order[n_lost:].tolist()))


def _refitted(v: Array, kept: tuple[int, ...], Q: Array) -> Array:
    """Return the relation near v that comes closest to having these terms only.

    All others vanish in Q^T w if w is orthogonal to their columns of Q: it is projected on the left
    singular vectors of these columns that are as nearly so as w is already.
    """
    others = np.delete(Q, kept, axis=1)
    if not others.shape[1]:
        return v
    w = Q @ v
    U, sizes, _ = np.linalg.svd(others)  # c vectors, at most c sizes
    near = U[:, np.append(sizes, np.zeros(len(Q) - len(sizes))) <= 2 * np.linalg.norm(w @ others)]
    if not near.shape[1]:  # all of it is rounding
        near = U[:, -1:]
    u: Array = (near @ (near.T @ w)) @ Q
    return u / np.linalg.norm(u)


def _relation(p: int, v: Array, kept: Array, surface: Surface) -> Relation:
    spread, centre = surface.spread, surface.centre
    others = kept[kept != p]
    short = np.zeros_like(v)
    short[kept] = v[kept]
    # v / s are the coefficients in the data's own units; divided by -v_p / s_p it is solved for p
    values = -(v[others] / v[p]) * (spread[p] / spread[others])
    noise = _noise(short, surface) / abs(float(v[p])) * float(spread[p])
    constant = float(centre[p] - values @ centre[others])
    if not len(others):  # a column that never changes but by rounding
        noise, constant = (0.0 if abs(x) <= IS_ZERO * spread[p] else x for x in (noise, constant))
    return Relation(
        column=p,
        columns=others,
        values=values,
        constant=constant,
        noise=noise,
        sizes=np.hypot(spread[others], centre[others]),
        limit=max(noise, SMALL_CONSTANT * float(spread[p])),
        error=max(noise, LOST_SPREAD * float(spread[p])) / (len(others) + 1),
        left_out=len(kept) < int(np.count_nonzero(np.abs(v) > 1e-12 * np.max(np.abs(v)))),
    )


def fewest_digits(value: float, factor: float, error: float) -> int:
    """Return the digits of the roundest value that, times a factor, is within an error.

    >>> fewest_digits(0.190005, 100.0, 0.001), fewest_digits(0.190005, 1e3, 0.001)
    (2, 6)
    """
    digits = range(1, MOST_DIGITS)
    near = (n for n in digits if abs(float(f"{value:.{n}g}") - value) * factor <= error)
    return next(near, MOST_DIGITS)

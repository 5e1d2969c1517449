r"""What one block of rows contributes: pure functions of a block, written in array-API code.

A kernel is called as ``kernel(X, *params, *using)`` with one block ``X`` of shape (b, D), the same
parameters for every block, and the values that an earlier scan kept with these rows. It returns a
`Contribution`. The row source handles weights, masks, norms and where the rows are.

The objective of DPCP and its subgradient, for all directions at once, are

.. math:: f(b) = \sum_i |x_i \cdot b|, \qquad g(b) = \sum_i \mathrm{sign}(x_i \cdot b)\, x_i
"""

from typing import NamedTuple

from perpend._typing import Array, Kernel
from perpend.geometry import namespace

FEW_FEATURES = 24  # features up to which a general product is faster than a symmetric one
SIDE_BY_SIDE = 24  # columns up to which sums over them are faster with the rows side by side


class Contribution(NamedTuple):
    """What one block adds to a scan; parts that a kernel does not need stay None.

    With w the row weights of the source, a scan adds up, over all blocks and in a fixed order,

    - ``w @ total``, of shape (m,), and
    - ``left.T @ (w * right)``, of shape (p, q); `right` is the block itself where it is None, or
      the sum of w in each bin, of shape (m,), where `bins` are given instead, or
      ``right.T @ (w * factor * right)``, of shape (q, q), with the rows' own `factor`,

    and keeps `kept` with the rows if ``keep=True``.
    """

    total: Array | None = None  # (b, m)
    left: Array | None = None  # (b, p)
    right: Array | None = None  # (b, q)
    bins: tuple[Array, int] | None = None  # (b,), each below the number of bins
    factor: Array | None = None  # (b,), not negative: a source may leave out rows without any
    kept: Array | None = None  # (b,) or (b, m)


# -- the l1 objective ------------------------------------------------------------------------------


def l1_objective_and_gradient(X: Array, B: Array) -> Contribution:
    """Give |X B| to be summed and sign(X B).T X; sign(0) = 0, so a zero row pulls nowhere."""
    xp, P = namespace(X), X @ B  # (b, k)
    return Contribution(total=xp.abs(P), left=xp.sign(P))


def l1_objective(X: Array, B: Array) -> Contribution:
    """Give |X B| to be summed, without the gradient."""
    return Contribution(total=namespace(X).abs(X @ B))


def heights(X: Array, b: Array) -> Contribution:
    """Keep |x.b| of each row, for one direction b (D,)."""
    return Contribution(kept=namespace(X).abs(X @ b))


def soft_heights(X: Array, b: Array, tau: Array) -> Contribution:
    """Give tau |y| + (y - x.b)^2 / 2 to be summed and y.T X; y is x.b, nearer to 0 by tau."""
    xp, P = namespace(X), X @ b  # (b, 1)
    size = xp.abs(P)
    beyond = xp.maximum(size - tau, xp.zeros_like(size))
    return Contribution(total=tau * beyond + (size - beyond) ** 2 / 2, left=xp.sign(P) * beyond)


# -- distances -------------------------------------------------------------------------------------


def distances(X: Array, V: Array) -> Contribution:
    """Keep ||V.T x||, the distance of each row to the complement of the orthonormal V (D, c)."""
    return Contribution(kept=_norms(X @ V))


def residuals(X: Array, U: Array) -> Contribution:
    """Keep ||x - U U.T x||, the distance of each row to the span of the orthonormal U (D, d).

    The difference keeps the digits of tiny distances, which ||x||^2 - ||U.T x||^2 would lose.
    """
    return Contribution(kept=_norms(X - (X @ U) @ U.T))


def distance_and_gradient(X: Array, V: Array, c: int) -> Contribution:
    """Give r = ||V.T x|| to be summed and (X V / r).T X; a row at distance 0 pulls nowhere.

    That is for each of T matrices V (D, c), which stand side by side.
    """
    xp, P = namespace(X), V.T @ X.T  # (T c, b): long rows are fast
    each = xp.reshape(P, (P.shape[0] // c, c, P.shape[1]))
    r = xp.sqrt(xp.sum(each * each, axis=1))  # (T, b)
    pull = each / xp.where(r > 0, r, xp.ones_like(r))[:, None, :]
    return Contribution(total=r.T, left=xp.reshape(pull, P.shape).T)


def trial_distances(X: Array, N: Array, c: int) -> Contribution:
    """Keep ||N.T x|| of each row for each of T matrices (D, c), which stand side by side."""
    xp, P = namespace(X), X @ N
    P = xp.reshape(P * P, (X.shape[0], N.shape[1] // c, c))
    return Contribution(kept=xp.sqrt(xp.sum(P, axis=2)))


def trial_residuals(X: Array, Q: Array, one: Array, d: int) -> Contribution:
    """Keep the distance of each row to each of T subspaces, whose bases (D, d) are side by side.

    It is |x|^2 - |Q.T x|^2, so distances below the root of the rounding errors are zero. If rows
    are lifted, (z, 1), and `one` (D, 1) is the direction of the 1, it is the Euclidean distance of
    z: with the part p of x across the subspace, |p|^2 + (one.p)^2 / |Q.T one|^2 (Sherman and
    Morrison). Without it `one` is zero.
    """
    xp, T = namespace(X), Q.shape[1] // d
    P, e = xp.reshape(X @ Q, (X.shape[0], T, d)), xp.reshape(one.T @ Q, (1, T, d))
    inside, size = xp.sum(P * P, axis=2), xp.sum(X * X, axis=1, keepdims=True)  # (b, T), (b, 1)
    eps = 4 * X.shape[1] * float(xp.finfo(X.dtype).eps)
    across = xp.where(size - inside > eps * size, size - inside, xp.zeros_like(inside))
    length = xp.sum(e * e, axis=2)  # (1, T)
    along = X @ one - xp.sum(P * e, axis=2)
    extra = along * along / xp.where(length > 0, length, xp.ones_like(length))
    extra = xp.where(across > 0, extra, xp.zeros_like(extra))
    return Contribution(kept=xp.sqrt(across + extra))


def residual_and_gradient(X: Array, U: Array) -> Contribution:
    """Give r = ||x - U U.T x|| to be summed and its gradient in U (D, d), transposed.

    That is -(X U / r).T (X - X U U.T); a row at a distance that is rounding pulls nowhere.
    """
    xp, P = namespace(X), X @ U  # (b, d)
    R = X - P @ U.T
    r = _norms(R, keepdims=True)
    # Rounding errors of the difference have the size eps ||x||, and no direction.
    far = xp.astype(r > 8 * xp.finfo(X.dtype).eps * _norms(P, keepdims=True), X.dtype)
    return Contribution(total=r, left=-P * (far / (r + (1 - far))), right=R)


def logarithmic_bins(distance: Array, edges: Array) -> Array:
    """Return the bin (b,) of each distance: bin j is from edges[j-1] to edges[j].

    The m edges grow geometrically, so the bin is a logarithm away; up to rounding, an edge belongs
    to the bin above it. Distances below the first edge are in bin 0, those above the last edge in
    the last bin, number m - 1.
    """
    xp = namespace(distance)
    low = xp.log(edges[0])
    width = (xp.log(edges[-1]) - low) / (edges.shape[0] - 1)
    positive = xp.maximum(distance, edges[0] / 2)  # log(0); anything below the first edge is bin 0
    bins = xp.floor((xp.log(positive) - low) / width) + 1
    return xp.astype(xp.clip(bins, 0, edges.shape[0] - 1), xp.int64)


def grouped_distances(X: Array, measure: Kernel, A: Array, edges: Array) -> Contribution:
    """Keep the distance of each row and give its histogram over the m bins of `logarithmic_bins`.

    `measure` is one of `distances` and `residuals`, and A is its parameter.
    """
    distance = measure(X, A).kept
    return Contribution(bins=(logarithmic_bins(distance, edges), edges.shape[0]), kept=distance)


# -- second moments --------------------------------------------------------------------------------


def gram(X: Array) -> Contribution:
    """Give X.T X."""
    return Contribution(left=X)


def mapped_gram(X: Array, A: Array) -> Contribution:
    """Give (X A).T (X A), for A of shape (D, k)."""
    P = X @ A
    return Contribution(left=P, right=P)


def weighted_gram(X: Array, table: Array, edges: Array, distance: Array) -> Contribution:
    """Give sum_i u_i x_i x_i.T and sum_i u_i, where u_i is the table's value at the row's distance.

    `table` holds one value for each bin of `logarithmic_bins`.
    """
    u = namespace(X).take(table, logarithmic_bins(distance, edges))  # (b,)
    return Contribution(total=u[:, None], factor=u)


def distance_weighted_gram(
    X: Array, measure: Kernel, A: Array, table: Array, edges: Array
) -> Contribution:
    """Give what `weighted_gram` gives for the distances of `measure`, as in `grouped_distances`.

    This is a whole step of reweighted least squares in one pass over the rows, for callers who know
    the weights of the bins in advance.
    """
    return weighted_gram(X, table, edges, measure(X, A).kept)


def inverse_distance_gram(X: Array, V: Array, floor: Array) -> Contribution:
    """Give r = ||V.T x|| to be summed and sum_i x_i x_i.T / max(r_i, floor)."""
    r = _norms(X @ V, keepdims=True)
    return Contribution(total=r, left=X / namespace(X).maximum(r, floor))


def power_weighted_gram(X: Array, A: Array, floor: Array, p: float) -> Contribution:
    """Give sum_i x_i x_i.T / max(r_i, floor)^(2-p), with r = ||A.T x||, and r^p to be summed.

    For p = 0 that is log max(r, floor).
    """
    xp, square = namespace(X), _squares(X, A)
    bounded = xp.maximum(square, floor * floor)
    if p == 0:
        total, factor = xp.log(bounded) / 2, 1 / bounded
    elif p == 1:  # the usual powers without pow, which takes as long as all the rest
        total, factor = xp.sqrt(square), 1 / xp.sqrt(bounded)
    else:
        total, factor = square ** (p / 2), bounded ** (p / 2 - 1)
    if X.shape[1] <= FEW_FEATURES:
        return Contribution(total=total[:, None], left=factor[:, None] * X)
    return Contribution(total=total[:, None], factor=factor)


def _squares(X: Array, A: Array) -> Array:
    """Return ||A.T x||^2 of each row (b,), in the way that is faster for so many columns of A."""
    xp = namespace(X)
    if A.shape[1] <= SIDE_BY_SIDE:
        P = A.T @ X.T
        return xp.sum(P * P, axis=0)
    P = X @ A
    return xp.vecdot(P, P)  # a third of the time of a sum along the rows


def _norms(P: Array, *, keepdims: bool = False) -> Array:
    """Return the norms of the rows, (b,) or (b, 1)."""
    xp = namespace(P)
    return xp.sqrt(xp.sum(P * P, axis=1, keepdims=keepdims))

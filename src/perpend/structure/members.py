r"""The members of a chosen plateau, and their axes.

Where the outliers follow the law of directions without preference, the law tells the groups apart,
as it says most about them. Elsewhere it is the density around the subspace: the members are those
of its finest layer.

Is a found subspace the sum of two? Its rows tell, by whom they have anything in common with. Let H
be the projection onto the columns of the rows on it, in coordinates of the subspace (with a column
of ones where it is affine),

.. math:: H = Y (Y^T Y)^{-1} Y^T, \qquad \sum_j H_{ij}^2 = H_{ii},

so that :math:`P_{ij} = H_{ij}^2 / H_{ii}` are the probabilities of a walk from row to row. Where
these are rows of two subspaces that have only the origin in common, H is zero between the two, the
walk never leaves its part, and P has the eigenvalue 1 twice. Rows of one subspace mix at once.
"""

from collections.abc import Iterator
from copy import copy
from functools import partial

import numpy as np
from scipy import linalg

from perpend._typing import Array
from perpend.kernels import logarithmic_bins
from perpend.solvers import Fit
from perpend.structure import constants as k
from perpend.structure import effort
from perpend.structure.cloud import Axes, Cloud, radius
from perpend.structure.layers import Histogram, Layer, find_layers, histogram
from perpend.structure.profile import Plateau, Profile
from perpend.structure.settle import Candidate, Settled, polish, settle, within

TOO_MANY = 4096  # rows: the walk is a matrix of their square
POWER_STEPS = 40  # of the power method
LONE = 1e-6  # below a leverage of 1 at the most: a row that depends on no others
DEGENERATE = 1e-7  # of the largest: a smaller pivot is nothing but rounding errors


def find_members(profile: Profile, chosen: Plateau) -> Candidate:
    """Find the members of a plateau: by the law where it holds, or those of its finest layer."""
    cloud, c, lawful = profile.cloud, chosen.c, []
    for one in profile.fits:
        if one.lawful and one.fit.V.shape[1] == c:
            j = cloud.scale_at(one.fit.groups.scale)
            own = slice(max(j - effort.OCTAVE, 0), j + 1)  # where noise of this size is seen best
            T, best = np.max(one.T[own]), np.max(profile.best[c - 1, own])
            lawful += [one] if T > 0 and k.AS_GOOD * best <= T else []
    if lawful:
        finest = min(lawful, key=lambda one: one.fit.groups.scale)
        return by_the_law(cloud, profile.seen[finest.number], finest.fit)
    settled, end = settled_at(profile, chosen), float(cloud.scales[chosen.last])
    layer = _finest(profile, chosen)
    if settled.sigma <= k.EXACT * cloud.floor and (layer is None or layer[0].is_exact):
        return within(cloud, c, settled)
    if layer is None:
        w = (cloud.squares(settled.axes, c) <= settled.threshold**2).astype(float)
    else:
        w = layer[0].probability(np.sqrt(cloud.squares(layer[1], c)))
    if np.count_nonzero(w > 0.1) < cloud.D - c + 2:
        return within(cloud, c, settled)
    allowed = partial(is_seen_best, profile, c)
    candidate = polish(cloud, cloud.pca(w), c, w, least_members(cloud, c), allowed=allowed)
    if candidate.sigma > 2 * end:  # members are of the plateau's scales, and not all that are left
        return within(cloud, c, settled)._replace(vague=True)
    return candidate


def settled_at(profile: Profile, p: Plateau, first: int | None = None) -> Settled:
    """Settle the axes at the peak of a plateau, with the noise not below its first scale."""
    scales = profile.cloud.scales
    least = float(scales[p.first if first is None else first])
    return settle(profile.cloud, profile.axes_at(p), p.c, float(scales[p.peak]), least=least)


def is_seen_best(profile: Profile, c: int, layer: Layer, J: Array) -> bool:
    """Say whether, at the scale of a layer, nothing is seen better than by its distances J (n,).

    Neither another codimension, as of a wire in a sheet, nor, clearly, other axes, as of a table
    beside a compromise between the table and the floor.
    """
    j = profile.cloud.scale_at(layer.radius / radius(c))
    best = profile.best[:, j]
    if np.max(best) <= 0 or np.argmax(best) != c - 1:
        return bool(np.max(best) <= 0)
    return bool(profile.contrast(np.square(J), c)[j] >= k.AS_GOOD * best[c - 1])


def least_members(cloud: Cloud, c: int) -> float:
    """Return the members that a layer must have."""
    return max(k.LEAST_SHARE * cloud.n, 2.0 * float(cloud.free[c - 1]))


def by_the_law(cloud: Cloud, axes: Axes, fit: Fit, V: Array | None = None) -> Candidate:
    """Take the members as the law tells them, with the axes of the fit as the cloud sees them.

    The normals V (R, c), seen alike, are the first of the axes but for fits without a finish.
    """
    c, groups = fit.V.shape[1], fit.groups
    J = np.sqrt(cloud.squares(axes, c)) if V is None else np.linalg.norm(cloud.X @ V, axis=1)
    n_members = cloud.total((groups.threshold >= J).astype(float))
    p = groups.posterior[logarithmic_bins(J, groups.edges)]
    seen, settled = Histogram(groups.edges, groups.counts), (groups.scale, groups.threshold)
    return Candidate(c, axes, *settled, n_members, J, p, seen, groups.is_exact, fit=fit)


def _finest(profile: Profile, chosen: Plateau) -> tuple[Layer, Axes] | None:
    """Return the finest layer of the chosen codimension, and the axes that show it.

    From the largest layer downwards, always to the largest one inside.
    """
    cloud, c, least = profile.cloud, chosen.c, least_members(profile.cloud, chosen.c)
    scales = np.flatnonzero((profile.T > 0) & (profile.c == c))
    scales = scales[scales <= chosen.last]
    first: dict[int, int] = {}  # where axes are tried first, by their number
    for j in [chosen.peak, *scales[:: -effort.OCTAVE // 2]]:
        first.setdefault(int(profile.of[c - 1, j]), int(j))
    seen: list[tuple[Layer, Axes, Array]] = []
    for number, j in first.items():
        axes, r_max = profile.seen[number], 2 * float(cloud.scales[j] * radius(c))
        J = np.sqrt(cloud.squares(axes, c))
        of = histogram(J, cloud.floor, cloud.share)
        # Axes that were found at another scale had all their freedom to find something here.
        luck = 0.0 if j == chosen.peak else (float(cloud.needed[c - 1]) - k.LUCK) / 2
        layers = find_layers(of, c, least, r_max=r_max, luck=luck)
        some = [layer for layer in layers if is_seen_best(profile, c, layer, J)]
        seen += [(layer, axes, layer.radius >= J) for layer in some]
    best = None
    while seen:
        best = max(seen, key=lambda one: one[0].members)
        end, rows = k.FEWER * best[0].radius, best[2]
        seen = [one for one in seen if one[0].radius < end and np.mean(rows[one[2]]) >= k.AS_GOOD]
    return None if best is None else best[:2]


def without_lone_rows(profile: Profile, candidate: Candidate, T: float) -> tuple[Candidate, float]:
    """Leave out members that alone account for a dimension of an exact subspace.

    Such a row depends on no others, so its leverage is 1. Along some direction it is the only one,
    so the members' least variance there is at most what a single row can give.
    """
    cloud, c, axes = profile.cloud, candidate.c, candidate.axes
    members = np.flatnonzero(candidate.probability > 0.5)
    if not cloud.D - c < len(members) <= TOO_MANY:
        return candidate, T
    X = cloud.about(axes.centre)
    weight = np.ones(len(members)) if cloud.weight is None else cloud.weight[members]
    alone = np.max(weight * np.einsum("ij,ij->i", X, X)[members]) / weight.sum()
    if axes.variances[c] > 2 * alone:
        return candidate, T
    Y = X[members] @ axes.A[:, c:]
    Q, _ = np.linalg.qr(Y / np.maximum(np.linalg.norm(Y, axis=1, keepdims=True), cloud.floor))
    lone = np.sum(np.square(Q), axis=1) > 1 - LONE
    more = c + int(np.count_nonzero(lone))
    if not c < more < cloud.D:
        return candidate, T
    w = np.zeros(len(cloud.X))
    w[members[~lone]] = 1.0
    settled = Settled(cloud.pca(w), candidate.sigma, candidate.threshold)
    profile.add(settled.axes)
    fewer = float(np.max(profile.table[more - 1]))
    return (within(cloud, more, settled), fewer) if fewer > 0 else (candidate, T)


def on_less(profile: Profile, candidate: Candidate, T: float) -> tuple[Candidate, float]:
    """Add normals along which the members are as thin as along those that were found.

    Where inliers and a few others lie on a common subspace, the members are the inliers alone.
    """
    cloud, variances = profile.cloud, candidate.axes.variances
    more = int(np.sum(variances <= k.AS_THIN**2 * variances[candidate.c - 1]))
    if not candidate.c < more < cloud.D:
        return candidate, T
    profile.add(candidate.axes)
    if np.max(profile.table[more - 1]) <= 0:
        return candidate, T
    allowed, least = partial(is_seen_best, profile, more), least_members(cloud, more)
    polished = polish(cloud, candidate.axes, more, candidate.probability, least, allowed=allowed)
    if polished.n_members < k.FEWER * candidate.n_members:
        return candidate, T
    profile.add(polished.axes)
    return polished, float(np.max(profile.table[more - 1]))


def smaller_inside(profile: Profile, candidate: Candidate, rng: np.random.Generator) -> int | None:
    """Return how many members lie on a smaller subspace inside, where that is no accident.

    It is as thin as what was found, which then may be the sum of two.
    """
    cloud, most = profile.cloud, 0.0
    for c, axes in _parts(cloud, candidate, rng):
        settled = settle(cloud, axes, c, candidate.sigma)
        profile.add(settled.axes)
        n = within(cloud, c, settled).n_members
        thin = settled.sigma <= k.AS_THIN * candidate.sigma
        enough = n >= k.LEAST_SHARE * candidate.n_members
        if np.max(profile.table[c - 1]) > 0 and thin and enough:
            most = max(most, n)
    return round(most) or None


def _parts(
    cloud: Cloud, candidate: Candidate, rng: np.random.Generator
) -> Iterator[tuple[int, Axes]]:
    """Yield codimension and axes of the two parts of the members' subspace, if there are two."""
    axes, c, d = candidate.axes, candidate.c, cloud.D - candidate.c
    members = np.flatnonzero(candidate.probability > 0.5)
    enough = max(effort.ENOUGH_FOR_WALK, 2 * d)
    if len(members) > enough:
        members = np.sort(rng.choice(members, enough, replace=False, shuffle=False))
    if d < 2 or not d + int(cloud.affine) < len(members) <= TOO_MANY:
        return
    Y = cloud.about(axes.centre)[members] @ axes.A[:, c:]
    if cloud.affine:
        Y = np.hstack([Y, np.full((len(Y), 1), np.sqrt(np.mean(np.square(Y))))])
    # Rows of any weight and length show equally well where the others are.
    Y /= np.maximum(np.linalg.norm(Y, axis=1, keepdims=True), np.finfo(float).tiny)
    try:
        L = np.linalg.cholesky(Y.T @ Y)  # in half the time of a QR decomposition of Y
    except np.linalg.LinAlgError:
        return  # the chosen rows lie on less, exactly
    size = np.diag(L)
    if np.min(size) <= DEGENERATE * np.max(size):
        return  # up to rounding errors, which count twice in Y^T Y
    Q = linalg.solve_triangular(L, Y.T, lower=True).T
    eigenvalue, first = _second(np.square(Q @ Q.T), rng)
    if eigenvalue < k.TWO_PARTS:
        return
    for part in sorted((first, ~first), key=np.count_nonzero, reverse=True):
        kept = round(float(np.sum(np.square(Q[part])))) - int(cloud.affine)
        if 0 < kept < d:
            some = cloud.X[members[part]]
            centre = some.mean(axis=0) if cloud.affine else axes.centre
            P = (some - centre) @ axes.A[:, c:]
            _, turned = np.linalg.eigh(P.T @ P)
            A = np.hstack([axes.A[:, :c], axes.A[:, c:] @ turned])
            yield cloud.D - kept, Axes(centre, A, axes.variances)


def _second(H2: Array, rng: np.random.Generator) -> tuple[float, Array]:
    """Return the second eigenvalue of the walk, and which rows (n,) are on one side of it.

    D^(-1/2) H2 D^(-1/2), with the row sums D, is symmetric and has the eigenvalues of P; its first
    eigenvector is D^(1/2) 1. The power method finds the second.
    """
    root = np.sqrt(np.maximum(H2.sum(axis=1), np.finfo(float).tiny))
    S = H2 / root / root[:, None]
    first = root / np.linalg.norm(root)
    v, eigenvalue = rng.standard_normal(len(S)), 0.0
    for _ in range(POWER_STEPS):
        v -= first * (first @ v)
        v /= max(float(np.linalg.norm(v)), np.finfo(float).tiny)
        after = S @ v
        eigenvalue, v = float(v @ after), after
    return eigenvalue, v > 0


def point_among(cloud: Cloud) -> Candidate:
    """Find the point around which rows concentrate most: a subspace of dimension 0.

    A ball shrinks around the mean of its rows, and the one with the largest contrast counts. Equal
    rows are no accident here: they are what is looked for.
    """
    cloud = copy(cloud)
    count = np.ones(len(cloud.X)) if cloud.weight is None else cloud.weight
    cloud.share, cloud.n = count, float(count.sum())
    D, r, least = cloud.D, cloud.typical / 2, k.LEAST_SHARE * cloud.n  # the cloud is no point
    axes, best, weights = cloud.first_axes(), -np.inf, np.ones(len(cloud.X))
    while r > cloud.floor:
        J2 = np.square(cloud.X - axes.centre).sum(axis=1)
        w = np.maximum(1 - J2 / r**2, 0.0)
        if w @ count < least:
            break
        near, double = (float(count[reach**2 >= J2].sum()) for reach in (r, 2 * r))
        # n2 KL(n1 / n2 || 2^-D) is about n1 log(n1 2^D / n2) where n1 / n2 is large
        contrast = near * np.log(near * 2.0**D / double)
        if contrast >= (1 - 1e-9) * best:  # the smaller of two that are as good
            best, weights = contrast, w
        axes, r = cloud.pca(w), effort.SHRINK * r
    axes = cloud.pca(weights)
    most = int(np.argmax(count * (weights > 0)))
    if count[most] >= least:  # equal rows
        return within(cloud, D, Settled(axes._replace(centre=cloud.X[most]), *2 * (cloud.floor,)))
    return polish(cloud, axes, D, weights, least)

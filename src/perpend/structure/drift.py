r"""Second moments of the members of a subspace, as rows arrive, and whether it is still theirs.

Rows are seen from a frame: heights n over the subspace, coordinates z along it (with a 1 where it
is affine). The subspace of the members minimises sum_i rho(|n_i|) with weights w = rho' / J at
J = |n|. Turned by T, heights are n + T z, and to second order in T the sum is that of the *fixed*
second moments

.. math::
    \sum w\, n n^T, \qquad \sum w\, n z^T, \qquad h \sum w\, z z^T, \qquad
    h = \frac{\sum (w + w' J / c)}{\sum w},

where h says that weights change as the subspace turns: so much of the members holds a turn back
(n and z are independent, and rows of a flat density cancel in the sum). Written in the coordinates
of the data these moments add up over rows that were seen from different frames, and their axes are
the joint Newton step: frames that were off by e leave an error of the order e^2.

**Turned?** At the subspace of the earlier rows, the scores C = sum w n z^T of m new members have
mean zero, and variances v_j M with M = sum (w^2 J^2 / c) z z^T and the relative noise v_j along
normal j. The subspace of the m' earlier members is uncertain as well, which adds
m / (m' - dim z) times that, and

.. math:: S = \sum_j C_j M^{-1} C_j^T / (v_j (1 + m / (m' - \dim z))) \sim \chi^2_{c \dim z}.

**Fewer members?** Their number among n rows follows a beta-binomial law, given earlier rows.
**Flatter?** The smallest variance of the new members along the subspace, in units of the earlier
ones': where a direction has gone, the codimension has grown.
"""

import math
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import stats

from perpend._typing import Array
from perpend.kernels import logarithmic_bins
from perpend.structure.flats import moments_about_mean
from perpend.structure.labels import (
    ALL_ON_IT,
    LEAST_HOLD,
    NormalsError,
    OutlierOdds,
    outlier_probability,
)
from perpend.structure.law import knots

NO_MEMBER = 1e-6  # a probability: what is below adds nothing but time
ENOUGH_PER_DIMENSION = 4.0  # members: their smallest variance is then seen to be no accident
SAME_AXIS = 1e-12  # of the largest variance, each in its own unit: rounding


class Frame(NamedTuple):
    """A subspace from which rows are seen, and what a row at each distance weighs."""

    normals: Array  # (D, c)
    components: Array  # (D, d) largest variance first
    origin: Array  # (D,) of coordinates
    offset: Array  # (c,) heights are (x - origin) @ normals + offset
    edges: Array  # (m,) of distances, geometric
    weights: Array  # (m,)
    hold: float  # h: the share of the members that holds a turn back
    n_inside: int  # normals inside the span of the rows
    is_affine: bool
    unit_rows: bool
    is_exact: bool  # members have no noise but rounding errors

    @classmethod
    def of(cls, model: Any) -> Self | None:
        """Return that of a fitted model; None where there is nothing to turn."""
        c, d, record = model.codimension_, model.n_components_, model._distance_record
        if not (c and d):
            return None
        odds = OutlierOdds(**model._outlier_odds)
        edges, n_inside, exact = odds.threshold * np.array([1.0, 2.0]), c, True
        if record is not None:
            edges, n_inside = record["edges"], record["codimension"]
            exact = bool(record["scale"] <= edges[1])
        J = knots(edges)
        J[0] = 0.0  # rounding errors
        w = 1 - outlier_probability(J, odds)
        w[w < NO_MEMBER] = 0.0
        hold = 1.0
        if not exact:
            lost, members = record["counts"] @ (np.gradient(w, J) * J), record["counts"] @ w
            hold = min(max(1 + float(lost / members) / n_inside, LEAST_HOLD), 1.0)
        N, U = (np.asarray(A, dtype=float).T for A in (model.normals_, model.components_))
        origin, affine = np.asarray(model.location_, dtype=float), bool(model.affine_)
        kind = (affine, bool(model.normalize) and not affine, exact)
        return cls(N, U, origin, np.zeros(c), edges, w, hold, int(n_inside), *kind)

    @property
    def n_along(self) -> int:
        """The number of coordinates z."""
        return int(self.components.shape[1]) + self.is_affine

    @property
    def basis(self) -> Array:
        """The map (D', D') from heights and coordinates (n, z) to rows, (x - origin, 1) if affine.

        x - origin = N (n - offset) + U u.
        """
        B = np.hstack([self.normals, self.components])
        if not self.is_affine:
            return B
        last = np.append(-(self.normals @ self.offset), 1.0)
        return np.hstack([np.vstack([B, np.zeros(B.shape[1])]), last[:, None]])

    def inside(self, moments: Array) -> Array:
        """Return moments (D', D') in heights and coordinates."""
        inverse = np.hstack([self.normals, self.components]).T
        if self.is_affine:
            offset = np.append(self.offset, np.zeros(self.components.shape[1]))[:, None]
            inverse = np.vstack([np.hstack([inverse, offset]), np.eye(len(inverse) + 1)[-1]])
        return inverse @ moments @ inverse.T


class Moments(NamedTuple):
    """What a run of rows adds up to."""

    first: int  # number of the first row
    n_rows: int
    blocks: int  # how many blocks it was made of; 0 for the earliest rows
    weight: float
    weight2: float  # sum of squared weights
    members: float  # weight of the members
    gram: Array  # (D', D')
    scores: Array  # (D', D') the variances of scores
    uneven: float  # sum of squared leverages on the scores, times the squared number of members

    def plus(self, later: "Moments") -> "Moments":
        """Return those of both runs."""
        rest = (a + b for a, b in zip(self[1:], later[1:], strict=True))
        return Moments(self.first, *rest)

    @property
    def share(self) -> float:
        """Of the members among the rows."""
        return self.members / self.weight

    @property
    def n_effective(self) -> float:
        """Rows of equal weight that would say as much."""
        return self.weight**2 / self.weight2

    @property
    def n_members(self) -> float:
        """The number of members, in such rows."""
        return self.share * self.n_effective


def measure(frame: Frame, X: Array, weight: Array, first: int) -> tuple[Moments, Array]:
    """Return the moments of rows X (n, D) with these weights, and the weight in each bin."""
    Y = np.asarray(X, dtype=float) - frame.origin
    if frame.unit_rows:
        norms = np.linalg.norm(Y, axis=1)
        weight, Y = np.where(norms > 0, weight, 0.0), Y / np.where(norms > 0, norms, 1.0)[:, None]
    heights = Y @ frame.normals + frame.offset
    J = np.linalg.norm(heights, axis=1)
    bins = logarithmic_bins(J, frame.edges)
    counts = np.bincount(bins, weight, minlength=len(frame.edges))
    own = frame.weights[bins] * weight
    near = own > 0
    own, J = own[near], J[near]
    Z = Y[near] @ frame.components
    if frame.is_affine:
        Z = np.hstack([Z, np.ones((len(Z), 1))])
    P, c = np.hstack([heights[near], Z]), heights.shape[1]
    inside, B = (P.T * own) @ P, frame.basis
    inside[c:, c:] *= frame.hold
    along = (Z.T * np.square(own * J)) @ Z / frame.n_inside
    sums = (float(weight.sum()), float(weight @ weight), float(own.sum()))
    gram, scores = B @ inside @ B.T, B[:, c:] @ along @ B[:, c:].T
    leverage = np.sum(np.square(_whitened((Z * (own * J)[:, None]).T, along)), axis=0)
    uneven = float(np.sum(np.square(leverage / frame.n_inside))) * sums[2] ** 2
    return Moments(first, len(X), 1, *sums, gram, scores, uneven), counts


def placed(moments: Moments, frame: Frame) -> Moments:
    """Return the moments of rows that have placed the frame: they are nearer to it than others.

    Of m members the noise is seen to be smaller by (m - dim z) / m.
    """
    m, free = moments.n_members, moments.n_members - frame.n_along
    return moments._replace(blocks=0, scores=moments.scores * (m / max(free, m / 2)))


def of_fit(model: Any, frame: Frame, new: Moments) -> Moments | None:
    """Return the moments of the rows of a fit by what it has learned; None if that is too little.

    The inliers' variances are in the units of the solver. What these are, say the `new` members, if
    there are enough of them, else the distances of those of the fit.
    """
    record, variances = model._distance_record, getattr(model, "_inlier_variances", None)
    if record is None or variances is None:
        return None
    c, d = frame.normals.shape[1], frame.components.shape[1]
    counts, J = record["counts"], knots(frame.edges)
    squares, members = counts @ np.square(frame.weights * J), float(counts @ frame.weights)
    across, along = np.split(variances, [c])
    unit, total = 1.0, float(across.sum())
    if new.members > 0 and new.n_members >= ENOUGH_PER_DIMENSION * d:
        seen = np.trace(frame.inside(new.gram)[c : c + d, c : c + d])
        unit = float(seen / (frame.hold * new.members) / along.sum())
    elif not (frame.unit_rows or frame.is_exact) and total > 0:
        unit = float(counts @ (frame.weights * J**2)) / members / total
    along = np.append(along * unit, np.ones(int(frame.is_affine)))
    B, inside = frame.basis, np.append(members * unit * across, frame.hold * members * along)
    gram, scores = (B * inside) @ B.T, (B[:, c:] * (squares / frame.n_inside * along)) @ B[:, c:].T
    n, uneven = float(counts.sum()), members * len(along) ** 2
    return Moments(0, len(model.labels_), 0, n, n, members, gram, scores, uneven)


def subspace_of(moments: Moments, frame: Frame) -> Frame:
    """Return the frame of the members' own axes."""
    c = frame.normals.shape[1]
    if frame.is_affine:
        mean, _, A = moments_about_mean(moments.gram)
        offset = -(mean @ A[:, :c])
    else:
        A, offset = np.linalg.eigh(moments.gram)[1], np.zeros(c)
        A[:, :c] = np.roll(A[:, :c], frame.n_inside - c, axis=1)  # those outside the span are last
    return frame._replace(normals=A[:, :c], components=A[:, c:][:, ::-1], offset=offset)


def errors_of(moments: Moments, frame: Frame) -> NormalsError:
    """Return how uncertain the axes of the moments are: A^-1 B A^-1, as in `normals_error`."""
    c, d = frame.normals.shape[1], frame.components.shape[1]
    K, B = frame.inside(moments.gram), frame.inside(moments.scores)[c:, c:]
    across, A, tiny = np.diag(K)[:c], K[c:, c:], np.finfo(float).tiny
    A = A - np.diag(np.append(np.full(d, np.mean(across)), np.zeros(len(A) - d)))
    known, inverse = np.diag(A)[:d] > SAME_AXIS * np.max(np.diag(A)[:d]), np.linalg.pinv(A)
    covariance = inverse @ B @ inverse
    along = np.where(known, np.minimum(np.diag(covariance)[:d], 1.0), 1.0)
    offset = 0.0
    if frame.is_affine:
        at = np.append(A[-1, :-1] / A[-1, -1], 1.0)  # at the members' mean
        offset = float(at @ covariance @ at)
    relative = across * (frame.n_inside / max(float(across.sum()), tiny))
    return NormalsError(along, relative, offset, max(moments.n_members - len(A), 1.0))


# -- tests -----------------------------------------------------------------------------------------


def chance_of_turn(new: Moments, old: Moments, frame: Frame, usual: float) -> tuple[float, float]:
    """Return the chance of scores as large as the new ones, and their S per degree of freedom.

    `usual` is what the latter is where nothing turns. S has the variance of chi-squared and, for
    rows of uneven leverage h, c^2 (sum h^2 - (sum h)^2 / m) on top: the chance is that of a
    multiple of chi-squared with this mean and variance.
    """
    at, c = subspace_of(old, frame), frame.normals.shape[1]
    both = old.plus(new)
    C, noise = at.inside(new.gram)[:c, c:], np.diag(at.inside(both.gram))[:c]
    M = at.inside(both.scores)[c:, c:] * (new.members / both.members)
    M *= 1 + new.n_members / (old.n_members - M.shape[0])  # as many rows are on any subspace
    seen = noise > ALL_ON_IT * np.max(noise)
    relative = noise[seen] / np.mean(noise[seen])
    scores = _whitened(C[seen].T, M) / np.sqrt(relative)
    S, free = float(np.sum(scores**2)), scores.size
    excess = np.sum(seen) ** 2 * new.uneven / new.members**2 - free**2 / new.n_members
    wider = 1 + max(float(excess), 0.0) / (2 * free)
    return float(stats.chi2.sf(S / usual / wider, free / wider)), S / free


def raised(moments: Moments, frame: Frame, model: Any) -> float:
    """Return the members' mean squared height over the subspace of a model, relative to their own.

    Up to 2 the two subspaces differ by less than the noise.
    """
    N, c = np.asarray(model.normals_, dtype=float).T, frame.normals.shape[1]
    other = frame._replace(normals=N, offset=frame.origin @ N - np.asarray(model.intercept_))
    own, seen = (np.trace(one.inside(moments.gram)[:c, :c]) for one in (frame, other))
    return float(seen / max(own, moments.members * frame.edges[0] ** 2))  # rounding errors


def fewer(new: Moments, old: Moments, least: float) -> float:
    """Return the chance of so few members, where the share of them is the earlier one, or `least`.

    The smaller of the two counts: a share at which the subspace was confirmed is not checked twice.
    """
    p, n, m = min(old.share, least), old.n_effective, int(new.n_effective)
    return float(stats.betabinom.cdf(math.floor(new.share * m), m, p * n + 1, (1 - p) * n + 1))


def flattest(new: Moments, old: Moments, frame: Frame) -> float:
    """Return the smallest variance of the new members along the subspace, relative to the old."""
    c = frame.normals.shape[1]
    before, now = (frame.inside(one.gram)[c:, c:] / one.members for one in (old, new))
    half = _whitened(now, before)
    return float(np.linalg.eigvalsh(_whitened(half.T, before))[0])


def _whitened(A: Array, M: Array) -> Array:
    """Return M^(-1/2) A for A (k, m), in the axes of M (k, k) that are not empty."""
    size = np.sqrt(np.diag(M))
    size[size == 0] = 1.0
    variances, axes = np.linalg.eigh(M / np.outer(size, size))
    full = variances > SAME_AXIS * variances[-1]
    return (axes[:, full].T @ (A / size[:, None])) / np.sqrt(variances[full])[:, None]

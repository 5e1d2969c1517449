r"""The same search where outliers have preferred directions: whiten the rows, and look again.

Outliers of real data are not uniform on the sphere; all rows of a street are nearly horizontal. As
a law of direction with any second moment C there is the angular central Gaussian,

.. math:: \log\frac{p(u)}{p_\text{uniform}(u)} =
    -\frac12\log\det C - \frac R2\log(u^T C^{-1} u), \qquad \|u\| = 1, \quad \operatorname{tr} C = 1

and y = C^(-1/2) u, scaled to its norm again, is then uniform. Linear maps keep subspaces, so the
whitened rows have one where the rows have one: the search is repeated there, and the two
answers are compared by their likelihoods, which this law makes comparable. Variances that decay
alone make the law likely, so the whitened rows must also be surer of their subspace. And C is the
outliers' own only where these are many: where they are few, whitening makes the directions
that they alone fill look like normals of all other rows. Then it is only a second opinion on the
plain answer: where both lead to the same subspace and only decaying variances, such as a mean far
from the origin, had kept the rows from being sure of its dimension, the whitened rows may be.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import optimize

from perpend._typing import Array
from perpend.codimension.answer import in_whole_space
from perpend.codimension.certificate import mapped_lengths, row_distances
from perpend.codimension.confidence import NOISE_LIMIT, noise_share
from perpend.codimension.decision import SAME
from perpend.codimension.exact_span import EXACT_CODIMENSION
from perpend.codimension.found import Found
from perpend.codimension.inside import ON_SMALLER
from perpend.geometry import orthonormal
from perpend.kernels import gram, logarithmic_bins
from perpend.rows import RowSource
from perpend.solvers import (
    Fit,
    RowSpan,
    TwoGroups,
    distance_edges,
    principal_axes,
    row_span,
    turned_by,
)

LIKELY = 0.5  # confidence from which on the whitened rows' answer may replace the plain one
GAPS = ("inlier_gap", "inlier_gap_runner_up")
MOST_INLIERS = 0.75  # share of inliers up to which outliers have made the second moments


class _Whitened(NamedTuple):
    rows: RowSource  # (n, R)
    map: Array  # (D, R) from the rows to them
    gain: float  # log-likelihood of the directions beyond the uniform law, less what luck reaches


def by_whitening(rows: RowSource, plain: Found, search: Callable[[RowSource], Found]) -> Found:
    """Return the answer of the whitened rows where it explains the rows better than the plain one.

    `search` finds the subspace among any rows.
    """
    span = row_span(rows)
    white = _whitened(rows, span, plain.n_distinct)
    if white is None:
        return plain
    found = search(white.rows)
    surer = found.answer.codimension.confidence > max(plain.answer.codimension.confidence, LIKELY)
    if found.answer.fit is None or not surer:
        return plain
    groups, known = found.answer.fit.groups, plain.answer.codimension.evidence
    # Hardly a subspace is the dense middle of heavy-tailed noise, say.
    hardly = noise_share(found.answer.fit, white.rows.norms) > NOISE_LIMIT
    # Whitened rows do not know that all rows lie exactly on more.
    if hardly or (EXACT_CODIMENSION in known and not groups.is_exact):
        return plain
    if not groups.is_exact and groups.share > MOST_INLIERS:  # exact inliers can't be false
        confirmed = _agree(plain, found, white) and ON_SMALLER not in known
        return _confirmed(plain, found) if confirmed else plain
    if found.support + white.gain <= plain.support:
        return plain
    fit = _brought_back(rows, white, found, span)
    answer = in_whole_space(span, found.answer.codimension, fit)
    return found._replace(
        answer=answer,
        directions=found.directions._replace(B=_mapped(white.map, found.directions.B)),
        span=span,
        whitened=True,
    )


def _agree(plain: Found, found: Found, white: _Whitened) -> bool:
    """Say whether both ways lead to the same subspace, up to a few degrees."""
    V, W = plain.answer.normals, orthonormal(_mapped(white.map, found.answer.normals))
    return V.shape == W.shape and turned_by(V, W) <= SAME


def _confirmed(plain: Found, found: Found) -> Found:
    """Return the plain answer, as sure as the whitened rows are of it."""
    own, other = plain.answer.codimension, found.answer.codimension
    gaps = {f"whitened_{name}": other.evidence[name] for name in GAPS}
    sure = other._replace(value=own.value, evidence={**own.evidence, **gaps})
    return plain._replace(answer=plain.answer._replace(codimension=sure), whitened=True)


def _whitened(rows: RowSource, span: RowSpan, n_distinct: float) -> _Whitened | None:
    """Whiten the rows; None where chance alone could make their second moments, or for memory."""
    R = span.rank
    C = span.variances / span.variances.sum()  # along the axes
    A = span.axes / np.sqrt(C)
    length = mapped_lengths(rows, A).astype(float)
    own = mapped_lengths(rows, span.axes).astype(float)
    weight = rows.gather(rows.weights).astype(float)
    present = (weight > 0) & (own > 0)
    stretch = np.log(length[present] / own[present])
    mean = -np.sum(np.log(C)) / 2 - R * np.average(stretch, weights=weight[present])
    gain = n_distinct * float(mean) - (R * (R + 1) / 2 - 1) * math.log(n_distinct) / 2
    turned = rows.mapped(A, rescale=True) if gain > 0 else None
    return None if turned is None else _Whitened(turned, A, gain)


def _mapped(A: Array, B: Array) -> Array:
    """Return directions B (R, k) of the whitened rows as directions of the rows: w.y = (A w).x."""
    B = A @ B
    return B / np.linalg.norm(B, axis=0)


def _brought_back(rows: RowSource, white: _Whitened, found: Found, span: RowSpan) -> Fit:
    """Return the fit in the rows' own geometry: PCA of the inliers, labels by its distances."""
    fit = found.answer.fit
    assert fit is not None
    J = row_distances(white.rows, found.answer.normals)
    inlier = fit.groups.posterior[logarithmic_bins(J, fit.groups.edges)]  # (n,)
    members = np.flatnonzero(fit.groups.threshold >= J)
    c = found.answer.normals.shape[1]
    if len(members) > span.rank - c:
        inliers = rows.subset(members)
        moments = inliers.scan(gram)._replace(total=np.array([inliers.total_weight]))
        spectrum, axes = principal_axes(moments, span.basis)
        V = axes[:, :c]
    else:
        spectrum, axes = span.variances, span.axes
        V = orthonormal(_mapped(white.map, found.answer.normals))
    groups = _groups(rows, row_distances(rows, V), inlier, c)
    return Fit(V, groups, spectrum, axes, fit.n_iter, fit.converged)


def _groups(rows: RowSource, J: Array, inlier: Array, codimension: int) -> TwoGroups:
    """Describe the inliers' probabilities (n,) as a falling function of the distances J (n,)."""
    edges = distance_edges(float(rows.norms[-1]), rows.dtype)
    weight = rows.gather(rows.weights).astype(float)
    bins = logarithmic_bins(J, edges)
    counts = np.bincount(bins, weight, minlength=len(edges))
    inliers = np.bincount(bins, weight * inlier, minlength=len(edges))
    seen = np.flatnonzero(counts)
    falling = optimize.isotonic_regression(
        inliers[seen] / counts[seen], weights=counts[seen], increasing=False
    ).x
    posterior = np.clip(np.interp(np.arange(len(edges)), seen, falling), 0.0, 1 - 1e-12)
    share = float(inliers.sum() / counts.sum())
    right = np.cumsum(counts * (2 * posterior - 1))  # labelled rightly more than wrongly, up to j
    noise2 = float(np.sum(weight * inlier * np.square(J)) / (codimension * inliers.sum()))
    return TwoGroups(
        edges=edges,
        posterior=posterior,
        gain=np.log1p(-min(share, 1 - 1e-12)) - np.log1p(-posterior),
        counts=counts,
        share=share,
        scale=float(np.clip(math.sqrt(noise2), edges[0], edges[-1])),
        threshold=float(edges[np.argmax(right)]),
    )

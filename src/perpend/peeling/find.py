"""One subspace among rows that may lie on several: proposals, the rows' choice, a closer look.

A fit to rows on several subspaces goes wrong in three ways. It may find their *sum*, so every found
subspace is searched for a smaller one inside. It may pool normals of different subspaces, which
leaves their *intersection* or nothing, so single directions are asked, too. And it may find one
thick subspace *between* two that are close to one another, so its rows are looked at with their
thickness stretched to one, where the two are far apart.
"""

import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from perpend._typing import Array
from perpend.codimension import sample_sizes
from perpend.geometry import complement, orthonormal, sine_of_largest_angle
from perpend.peeling.frame import whitening
from perpend.peeling.jury import FEW_STEPS, Candidate, Data, Jury

N_SINGLES = 8  # single directions that are asked
N_TRIES = 3  # proposals that are looked at closely
APART = 0.17  # sine of the angle (10 degrees) between proposals that differ
AS_THIN = 3.0  # times the noise around a subspace: the most around a part of it
THIN = 1e-3  # of the members' squared norm (3 % of their norm): what looks like noise there, is
NOT_NOISE = 2.0  # Kolmogorov-Smirnov distance times the root of the number: one in a thousand
THINNER = 0.5  # times the thickness of a subspace: the most of the two that it was made of
TURNED = 0.3  # sine of the angle, after stretching, from which on it is another subspace


class Search(NamedTuple):
    """How a single subspace is proposed."""

    estimator: Any  # a SubspaceEstimator, not fitted
    rng: np.random.Generator

    @property
    def inside(self) -> bool:
        """Whether found subspaces are searched for smaller ones: not if a codimension was told."""
        return bool(getattr(self.estimator, "codimension", "auto") == "auto")

    def fit(self, data: Data) -> Any:
        """Fit a fresh copy of the estimator; its doubts are for the rows to settle."""
        model = fresh(self.estimator).set_params(random_state=int(self.rng.integers(2**31)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # not sure, or not at rest
            return model.fit(data.X, sample_weight=data.weight)


def fresh(estimator: Any) -> Any:
    """Return a copy with the same parameters that was never fitted."""
    return type(estimator)(**estimator.get_params(deep=False))


def find_next(search: Search, data: Data) -> Candidate | None:
    """Return a subspace that the rows support, or None; where there are many, ask a sample.

    What a sample finds is for all rows to confirm. That there is nothing to be found, too: few rows
    can't show a thin subspace.
    """
    sample_size = getattr(search.estimator, "sample_size", None)
    for size in sample_sizes(sample_size, *data.X.shape):
        drawn = np.sort(search.rng.choice(len(data.X), size, replace=False, shuffle=False))
        found = find_one(search, data.some(drawn))
        if found is not None:
            confirmed = Jury(data, search.rng).weigh(found.normals)
            if confirmed is not None and confirmed.is_subspace:
                return confirmed
    return find_one(search, data)


def find_one(search: Search, data: Data, *, closer: bool = True) -> Candidate | None:
    """Return a subspace that the rows support and that holds no smaller one, or None.

    `closer` says whether a thick subspace is taken apart.
    """
    if not data.can_be_asked:
        return None
    jury = Jury(data, search.rng)
    if jury.span.rank < data.X.shape[1]:
        return _in_span(search, jury)
    tried: list[Array] = []
    for proposal in _proposals(search, jury)[:N_TRIES]:
        best = jury.weigh(proposal.normals)
        if best is None or not best.supported or _among(best.normals, tried):
            continue
        tried.append(best.normals)
        if closer and (best.noise_share > THIN or _is_no_noise(jury, best)):
            best = _taken_apart(search, jury, best) or best
        best = _smallest(search, jury, best)
        if best.is_subspace:
            return best
    return None


def _in_span(search: Search, jury: Jury) -> Candidate | None:
    """Look inside the span of the rows; else the span is an answer, if not by idle columns."""
    span = jury.span
    inner = find_one(search, jury.data.mapped(span.basis))
    lifted = None
    if inner is not None:
        lifted = jury.weigh(np.hstack([span.basis @ inner.normals, span.rest]))
    if span.rank + span.n_idle_columns == len(span.basis):
        return lifted
    whole = jury.weigh_span()
    if lifted is not None and lifted.supported and lifted.scale <= AS_THIN * whole.floor:
        return lifted
    return whole if whole.supported else lifted


def _proposals(search: Search, jury: Jury) -> list[Candidate]:
    """Fit, and let the rows weigh the answer and single directions; the best supported first."""
    model = search.fit(jury.data)
    proposals = [model.normals_.T, *_singles(model.directions_, jury.data.X)]
    weighed = [jury.weigh(V, FEW_STEPS) for V in proposals]
    supported = [found for found in weighed if found is not None and found.supported]
    return sorted(supported, key=lambda found: -found.support)


def _among(V: Array, others: list[Array]) -> bool:
    """Whether one of the other subspaces is nearly the same."""
    return any(W.shape == V.shape and sine_of_largest_angle(V, W) < APART for W in others)


def _singles(directions: Array, X: Array) -> list[Array]:
    """Return directions of low objective, one by one, that are not close to one another."""
    B = np.asarray(directions, dtype=float).T
    B = B[:, np.linalg.norm(B, axis=0) > 0]
    lengths = np.linalg.norm(X, axis=1)
    heights = np.mean(np.abs(X @ B) / np.where(lengths > 0, lengths, 1)[:, None], axis=0)
    chosen: list[Array] = []
    for j in np.argsort(heights, kind="stable"):
        b = B[:, [j]] / np.linalg.norm(B[:, j])
        if not _among(b, chosen):
            chosen.append(b)
        if len(chosen) == N_SINGLES:
            break
    return chosen


def _smallest(search: Search, jury: Jury, outer: Candidate) -> Candidate:
    """Return a smaller subspace inside, if some of the members lie on it as closely.

    The members' coordinates in the subspace are stretched to equal variances, so that only a
    subspace shows there, not an uneven spread.
    """
    basis = complement(outer.normals)
    if not search.inside or basis.shape[1] < 2:
        return outer
    members = jury.data.some(outer.members)
    stretch = basis @ whitening(members.X @ basis)  # (D, r)
    inner = find_one(search, members.mapped(stretch))
    if inner is None:
        return outer
    smaller = jury.weigh(orthonormal(np.hstack([outer.normals, stretch @ inner.normals])))
    thin = AS_THIN * max(outer.scale, outer.floor)
    if smaller is None or not smaller.supported or smaller.scale > thin:
        return outer
    return smaller if smaller.per_member > outer.per_member else outer


def _is_no_noise(jury: Jury, found: Candidate) -> bool:
    """Whether the members' distances J are not those of Gaussian noise, J^2 / s^2 ~ chi^2_c."""
    if found.exact:
        return False
    J = np.sort(jury.data.distances(found.normals)[found.members]) / found.scale
    c = found.normals.shape[1]
    law = special.gammainc(c / 2, J**2 / 2) / special.gammainc(c / 2, J[-1] ** 2 / 2)
    steps = np.arange(len(J) + 1) / len(J)
    distance = max(np.max(steps[1:] - law), np.max(law - steps[:-1]))
    return bool(distance * np.sqrt(len(J)) > NOT_NOISE)


def _taken_apart(search: Search, jury: Jury, thick: Candidate) -> Candidate | None:
    """Return one of the thinner subspaces that a thick one was made of, if it was.

    Noise around one subspace looks the same everywhere once all variances are equal; two close
    subspaces are then far apart.
    """
    members = jury.data.some(thick.members)
    stretch = whitening(members.X)  # (D, r)
    if stretch.shape[1] < len(stretch):
        return None
    part = find_one(search, members.mapped(stretch), closer=False)
    if part is None:
        return None
    before = orthonormal(np.linalg.solve(stretch, thick.normals))  # the same subspace, stretched
    if before.shape == part.normals.shape and sine_of_largest_angle(before, part.normals) < TURNED:
        return None  # only the denser core of the same subspace
    thin = jury.weigh(orthonormal(stretch @ part.normals))
    if thin is None or not thin.supported or thin.scale > THINNER * thick.scale:
        return None
    return thin

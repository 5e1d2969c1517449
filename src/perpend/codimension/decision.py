"""What the rows say about a candidate: a finish, the inliers' spectrum, and the certificate."""

from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.codimension.certificate import (
    Certificate,
    Distinct,
    Glance,
    certify,
    distinct_counts,
    glance,
    mapped_lengths,
    row_distances,
)
from perpend.codimension.confidence import weigh
from perpend.codimension.directions import RankEvidence
from perpend.codimension.result import SURE, Codimension
from perpend.codimension.spectrum import SpectralGap, largest_gap, last_rise
from perpend.rows import RowSource
from perpend.solvers import (
    Fit,
    RowSpan,
    fit_from_spectrum,
    fit_subspace,
    groups_by_distance,
    turned_to,
)
from perpend.solvers.loop import Callback

MAX_FINISH = 60  # steps of reweighted least squares
MAX_SWEEP = 120  # the same from a start that is hardly better than chance
FEW_STEPS = 4  # on the way, where a candidate that takes longer may come again
STEEP = 10.0  # a rise of the inliers' variance that deserves a look, though it is not the steepest
NEARBY = 1.5  # ratio up to which two codimensions may be taken for each other
SAME = 0.1  # sine of the largest angle up to which two answers are the same
N_PROBES = 32  # random directions to estimate leverages with
MOST_LEVERAGE = 0.6  # of a row among the inliers; one that holds a dimension alone has 1
MAX_REVISIONS = 6  # changes of the codimension after looking at the inliers' spectrum


class Judgement(NamedTuple):
    """A candidate subspace and all that speaks for or against it."""

    fit: Fit
    gap: SpectralGap
    certificate: Certificate
    codimension: Codimension
    evidence: RankEvidence | None  # of the descents, where they had a say

    @property
    def support(self) -> float:
        """What the certificate says; it may be compared between codimensions."""
        return self.certificate.support


class Judge(NamedTuple):
    """The rows as a jury."""

    rows: RowSource
    span: RowSpan
    distinct: Distinct
    refine: bool
    callback: Callback | None = None

    @property
    def n_distinct(self) -> float:
        """The number of rows, without counting equal ones twice."""
        return float(self.share.sum())

    @property
    def share(self) -> Array:
        """How much each row (n,) counts as evidence."""
        return self.distinct.share

    @property
    def heaviest(self) -> float:
        """The share of the weight that the most frequent row holds, with those equal to it."""
        return float(np.max(self.distinct.in_common)) / self.rows.total_weight

    def from_spectrum(
        self, codimension: int, evidence: RankEvidence | None = None, *, follow: bool = True
    ) -> Judgement:
        """Look for a subspace by the second engine, which knows nothing of the descents.

        At fewer normals than there are, the same inliers are found, all of them, and their spectrum
        then shows how many there are: `follow` it.
        """
        fit = fit_from_spectrum(
            self.rows,
            self.span,
            codimension,
            n_distinct=self.n_distinct,
            max_iter=MAX_SWEEP,
            callback=self.callback,
        )
        found = self._weighed(fit, evidence)
        if follow and found.support > 0:
            found = self._followed(found, evidence)
        # What was given up too early is seen only now.
        likely = self.weigh_again(found, None).codimension.confidence >= SURE
        return self.complete(found, evidence) if likely else found

    def consider(
        self, V: Array, evidence: RankEvidence | None, max_steps: int = MAX_FINISH
    ) -> Judgement:
        """Finish at the normals V, without changing their number, and weigh the result.

        Without `evidence`, where no independent descents proposed the codimension, only the rows
        speak.
        """
        return self._weighed(self._fitted(V, max_steps), evidence)

    def propose(self, V: Array, evidence: RankEvidence | None) -> Judgement:
        """Follow from V, of descents on their way, for a few steps.

        These may show a few normals too many or too few. A single look at the inliers' spectrum
        tells, by a steep rise nearby. Of several the last one counts: those among the normals are
        of descents that are not equally far.
        """
        fit = self._fitted(V, 0)
        c = V.shape[1]
        value = last_rise(fit.spectrum, self.rows.dtype, self._n_inliers(fit), STEEP)
        nearby = value is not None and max(value, c) <= NEARBY * min(value, c)
        moved = self.refine and nearby and value != c
        fit = self._fitted(fit.axes[:, :value] if moved else fit, FEW_STEPS)
        return self._followed(self._weighed(fit, evidence), evidence, FEW_STEPS)

    def _fitted(self, start: Array | Fit, max_steps: int) -> Fit:
        return fit_subspace(
            self.rows,
            start,
            self.span.basis,
            n_distinct=self.n_distinct,
            max_iter=max_steps if self.refine else 0,
            callback=self.callback,
        )

    def _n_inliers(self, fit: Fit) -> float:
        return fit.groups.share * self.n_distinct

    def _weighed(self, fit: Fit, evidence: RankEvidence | None) -> Judgement:
        gap = largest_gap(fit.spectrum, self.rows.dtype, self._n_inliers(fit))
        dimension = self.span.rank - fit.V.shape[1]
        certificate = certify(self.rows, fit.V, fit.groups, dimension, self.share)
        fit = fit._replace(groups=fit.groups._replace(threshold=certificate.threshold))
        codimension = weigh(fit, gap, certificate, evidence, self.rows.norms)
        return Judgement(fit, gap, certificate, codimension, evidence)

    def _without_spoilers(self, judgement: Judgement) -> Array | None:
        """Return normals of the subspace without inliers that hold one of its dimensions alone.

        The leverage x.T G^+ x of a row, with G the inliers' second moments, is 1 if the others lie
        in fewer dimensions, whatever the axes are, and d / N on average. With random directions W
        it is the mean of (w.T G^(-1/2) x)^2. Equal rows have one in common.
        """
        fit, dimension = judgement.fit, judgement.certificate.n_free
        n_inliers = fit.groups.share * self.rows.total_weight
        if dimension > MOST_LEVERAGE / 2 * n_inliers:
            return None
        spectrum, axes = fit.spectrum[-dimension:], fit.axes[:, -dimension:]
        W = np.random.default_rng(0).standard_normal((dimension, N_PROBES)) / np.sqrt(N_PROBES)
        A = (axes / np.sqrt(np.maximum(spectrum, np.finfo(float).tiny) * n_inliers)) @ W
        near = row_distances(self.rows, fit.V) <= fit.groups.threshold
        leverage = self.distinct.in_common * np.square(mapped_lengths(self.rows, A))
        spoilers = np.flatnonzero(near & (leverage > MOST_LEVERAGE))
        n_spoilers = round(float(self.distinct.part[spoilers].sum()))
        if not 0 < n_spoilers < dimension:
            return None
        weight = self.rows.gather(self.rows.weights)[spoilers].astype(float)
        H = np.sqrt(weight)[:, None] * (self.rows.take(spoilers) @ axes)  # (m, d)
        _, turned = np.linalg.eigh(np.diag(spectrum * n_inliers) - H.T @ H)
        return np.hstack([fit.V, axes @ turned[:, :n_spoilers]])

    def _better_neighbour(self, judgement: Judgement, seen: dict[int, float]) -> Array | None:
        """Return normals of a neighbouring codimension that look better supported, if there are."""
        fit, c = judgement.fit, judgement.fit.V.shape[1]
        if fit.groups.scale <= fit.groups.edges[0]:
            return None  # exact inliers: what is not zero is no noise
        own = self.glance(fit.V).support
        for value in dict.fromkeys([c + 1, judgement.gap.second, c - 1]):
            if 0 < value < self.span.rank and value not in seen:
                V = fit.axes[:, :value]
                if self.glance(V, fit.axes[:, value:]).support > own:
                    return V
        return None

    def glance(self, V: Array, U: Array | None = None) -> Glance:
        """Say what speaks for the normals V, and components U, as they are; a thin product."""
        c, R = V.shape[1], self.span.rank
        J = row_distances(self.rows, V, U)
        groups = groups_by_distance(self.rows, J, c, R)
        return glance(distinct_counts(J, groups, self.share), groups, c, R - c)

    def weigh_again(self, judgement: Judgement, evidence: RankEvidence | None) -> Judgement:
        """Weigh the same subspace with other evidence from the descents; no row is asked."""
        fit, gap, certificate, *_ = judgement
        codimension = weigh(fit, gap, certificate, evidence, self.rows.norms)
        return judgement._replace(codimension=codimension, evidence=evidence)

    def complete(self, judgement: Judgement, evidence: RankEvidence | None) -> Judgement:
        """Go on from where a few steps ended, if they did not come to rest."""
        if judgement.fit.converged or not self.refine:
            return judgement
        return self._weighed(self._fitted(judgement.fit, MAX_FINISH), evidence)

    def follow(
        self, V: Array, evidence: RankEvidence | None, max_steps: int = MAX_FINISH
    ) -> Judgement:
        """Finish at V, then follow the inliers' spectrum; return the best supported on the way.

        A subspace that runs through one outlier as well is found exactly, but that outlier alone
        makes the variance along one of its axes: a second steep rise, behind the first one, or at
        the least a dimension that a single row holds.
        """
        return self._followed(self.consider(V, evidence, max_steps), evidence, max_steps)

    def _followed(
        self, judgement: Judgement, evidence: RankEvidence | None, max_steps: int = MAX_FINISH
    ) -> Judgement:
        best = judgement
        seen: dict[int, float] = {}  # the best support at each codimension
        for _ in range(MAX_REVISIONS if self.refine else 0):
            c = judgement.fit.V.shape[1]
            seen[c] = max(judgement.support, seen.get(c, judgement.support))
            V = self._next(judgement, seen)
            if V is None:
                break
            judgement = self.consider(V, evidence, max_steps)
            best = max(best, judgement, key=support)
        return best

    def _next(self, judgement: Judgement, seen: dict[int, float]) -> Array | None:
        """Return the normals to try next: by the spectrum, without spoilers, or a neighbour's."""
        gap, axes = judgement.gap, judgement.fit.axes
        for value in (gap.value, gap.second) if gap.runner_up > STEEP else (gap.value,):
            # Once more from a better place than the one from which it was tried.
            again = value != judgement.fit.V.shape[1] and seen.get(value, 0.0) < judgement.support
            if value not in seen or again:
                return axes[:, :value]
        V = self._without_spoilers(judgement)
        return self._better_neighbour(judgement, seen) if V is None else V


def same(one: Judgement, other: Judgement) -> bool:
    """Say whether two judgements are about the same subspace, up to a few degrees."""
    V, W = one.fit.V, other.fit.V  # the first columns of their axes, as both are finished
    return V.shape == W.shape and turned_to(V, other.fit.axes) <= SAME


def support(judgement: Judgement) -> float:
    """Return what judgements are compared by."""
    return judgement.support

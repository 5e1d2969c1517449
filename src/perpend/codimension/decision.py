"""From a proposal to an answer: the descents propose, the rows decide."""

import math
from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.codimension.certificate import Certificate, certify
from perpend.codimension.confidence import weigh
from perpend.codimension.directions import RankEvidence
from perpend.codimension.result import SURE, Codimension
from perpend.codimension.spectrum import SpectralGap, largest_gap
from perpend.rows import RowSource
from perpend.solvers import Fit, RowSpan, fit_subspace
from perpend.solvers.loop import Callback

MAX_FINISH = 60  # steps of reweighted least squares
FEW_STEPS = 4  # on the way, where a candidate that takes longer may come again
STEEP = 10.0  # a rise of the inliers' variance that deserves a look, though it is not the steepest
MAX_REVISIONS = 6  # changes of the codimension after looking at the inliers' spectrum


class Judgement(NamedTuple):
    """A candidate subspace and all that speaks for or against it."""

    fit: Fit
    gap: SpectralGap
    certificate: Certificate
    codimension: Codimension

    @property
    def support(self) -> float:
        """The gain beyond what accidents reach; it may be compared between codimensions."""
        return self.certificate.gain - self.certificate.needed


class Judge(NamedTuple):
    """The rows as a jury; `share` says how distinct each row is."""

    rows: RowSource
    span: RowSpan
    share: Array
    refine: bool
    callback: Callback | None = None

    @property
    def heaviest(self) -> float:
        """The share of the weight that the most frequent row holds, with those equal to it."""
        weight = self.rows.gather(self.rows.weights)
        counts = weight > 0
        return float(np.max(weight[counts] / self.share[counts])) / self.rows.total_weight

    def choose(self, evidence: RankEvidence, first: Judgement | None = None) -> Judgement | None:
        """Choose the codimension inside the span; None means that there are no normals there.

        The rank of the directions is the first candidate, unless there is one already. Where that
        is not sure, others are tried and the one with the best support wins.
        """
        candidate = min(evidence.value, self.span.rank - 1)
        if candidate == 0:
            return None
        best = first or self.follow(evidence.basis[:, :candidate], evidence)
        if not self.refine:
            return best
        if best.codimension.confidence < SURE:
            best = self._climb(best, evidence)
        return self.if_likely(best)

    def if_likely(self, best: Judgement) -> Judgement | None:
        """Return the judgement, or None where "no normals" is the better answer.

        More rows than the dimension of their span lie on a subspace for certain, if that leaves
        directions free; inside it, only a likely answer is worth more than that certainty.
        """
        certain = self.span.n_outside > 0 and self.share.sum() > self.span.rank + 0.5
        likely = best.codimension.confidence if certain else best.certificate.confidence
        return best if likely >= 0.5 else None

    def _climb(self, best: Judgement, evidence: RankEvidence) -> Judgement:
        """Try one normal, then twice as many as were found, as long as the support grows.

        A finish at fewer normals than there are still finds the inliers, all of them, and the axes
        along which these vary least are candidates for more normals. In the end single normals are
        added or taken away, as long as that helps: a subspace that runs through a few outliers by
        accident is too large by as many dimensions, and where the inliers' variances decay without
        a gap, the support alone says where to stop.
        """
        V, support = evidence.basis[:, :1], -math.inf
        while V.shape[1] < self.span.rank:
            challenger = self.follow(V, evidence)
            best = max(best, challenger, key=_support)
            if challenger.support <= support:
                break
            support = challenger.support
            V = challenger.fit.axes[:, : 2 * challenger.codimension.value]
        for change in (1, -1):
            while 0 < best.codimension.value + change < self.span.rank:
                V = best.fit.axes[:, : best.codimension.value + change]
                challenger = self.consider(V, evidence)
                if challenger.support <= best.support:
                    break
                best = challenger
        return best

    def consider(
        self, V: Array, evidence: RankEvidence | None, max_steps: int = MAX_FINISH
    ) -> Judgement:
        """Finish at the normals V, without changing their number, and weigh the result.

        Without `evidence`, where no independent descents proposed the codimension, only the rows
        speak.
        """
        steps = max_steps if self.refine else 0
        fit = fit_subspace(self.rows, V, self.span.basis, max_iter=steps, callback=self.callback)
        gap = largest_gap(fit.spectrum, self.rows.dtype, self._n_inliers(fit))
        dimension = self.span.rank - V.shape[1]
        certificate = certify(self.rows, fit.V, fit.groups, dimension, self.share)
        fit = fit._replace(groups=fit.groups._replace(threshold=certificate.threshold))
        return Judgement(
            fit, gap, certificate, weigh(fit, gap, certificate, evidence, self.rows.norms)
        )

    def weigh_again(self, judgement: Judgement, evidence: RankEvidence | None) -> Judgement:
        """Weigh the same subspace with other evidence from the descents; no row is asked."""
        fit, gap, certificate, _ = judgement
        return Judgement(
            fit, gap, certificate, weigh(fit, gap, certificate, evidence, self.rows.norms)
        )

    def _n_inliers(self, fit: Fit) -> float:
        return fit.groups.share * int(np.count_nonzero(self.share))

    def complete(self, judgement: Judgement, evidence: RankEvidence | None) -> Judgement:
        """Go on from where a few steps ended, if they did not come to rest."""
        if judgement.fit.converged or not self.refine:
            return judgement
        return self.consider(judgement.fit.V, evidence)

    def follow(
        self, V: Array, evidence: RankEvidence | None, max_steps: int = MAX_FINISH
    ) -> Judgement:
        """Finish at V, then follow the inliers' spectrum; return the best supported on the way.

        A subspace that runs through one outlier as well is found exactly, but that outlier alone
        makes the variance along one of its axes: a second steep rise, behind the first one.
        """
        judgement = best = self.consider(V, evidence, max_steps)
        seen = {V.shape[1]}
        for _ in range(MAX_REVISIONS if self.refine else 0):
            gap = judgement.gap
            value = gap.second if gap.value in seen and gap.runner_up > STEEP else gap.value
            if value in seen:
                break
            seen.add(value)
            judgement = self.consider(judgement.fit.axes[:, :value], evidence, max_steps)
            best = max(best, judgement, key=_support)
        return best


def _support(judgement: Judgement) -> float:
    return judgement.support

"""Which codimension the descents lead to: their proposal, finished and followed."""

from perpend.codimension.certificate import ALL_ROWS
from perpend.codimension.decision import Judge, Judgement
from perpend.codimension.directions import RankEvidence
from perpend.codimension.result import SURE


def choose(
    judge: Judge, evidence: RankEvidence, first: Judgement | None = None
) -> Judgement | None:
    """Choose the codimension inside the span; None means that there are no normals there.

    The rank of the directions is the candidate, unless there is one already.
    """
    candidate = min(evidence.value, judge.span.rank - 1)
    if candidate == 0:
        return None
    V = evidence.basis[:, :candidate]
    if not judge.refine:
        return first or judge.consider(V, evidence)
    best = first or judge.propose(V, evidence)
    if best.codimension.confidence >= SURE:  # else it is for the scales to decide
        best = judge.complete(best, evidence)
    return if_likely(judge, best)


def if_likely(judge: Judge, best: Judgement) -> Judgement | None:
    """Return the judgement, or None where "no normals" is the better answer.

    More rows than the dimension of their span lie on a subspace for certain, if that leaves
    directions free; inside it, only a likely answer is worth more than that certainty.
    """
    certain = judge.span.n_outside > 0 and judge.n_distinct > judge.span.rank + 0.5
    likely = best.codimension.confidence if certain else best.certificate.confidence
    return best if likely >= 0.5 else None


def is_sure(judgement: Judgement) -> bool:
    """Whether rows, and descents where they were asked, are sure of a subspace."""
    return judgement.fit.converged and judgement.codimension.confidence >= SURE


def stands(judgement: Judgement) -> bool:
    """Whether a sure answer stands, however the search would go on.

    A subspace that holds all rows may be the sum of two smaller ones, which are found later: that
    is for the end to decide.
    """
    return is_sure(judgement) and judgement.fit.groups.share <= ALL_ROWS

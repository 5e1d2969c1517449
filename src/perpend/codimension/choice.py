"""Which codimension: the descents propose, joint reweighting decides.

Where the descents' proposal is not sure, the second engine takes over: reweighting from the axes of
least variance, which knows nothing of the descents, at a short list of codimensions. A subspace
that two of these ways lead to, each of its own accord, has two witnesses.
"""

import math

from perpend.codimension.certificate import ALL_ROWS
from perpend.codimension.decision import NEARBY, Judge, Judgement, same, support
from perpend.codimension.directions import RankEvidence
from perpend.codimension.result import SURE


def choose(
    judge: Judge,
    evidence: RankEvidence,
    first: Judgement | None = None,
    swept: Judgement | None = None,
) -> Judgement | None:
    """Choose the codimension inside the span; None means that there are no normals there.

    The rank of the directions is the first candidate, unless there is one already. Where that
    is not sure, others are tried and the one with the best support wins.

    Parameters
    ----------
    first : an answer that stands
    swept : what `sweep` returned, where it was called before
    """
    candidate = min(evidence.value, judge.span.rank - 1)
    if candidate == 0:
        return None
    best = first or judge.follow(evidence.basis[:, :candidate], evidence)
    if not judge.refine:
        return best
    if not is_sure(best):
        best = sweep(judge, evidence, best) if swept is None else _joined(judge, best, swept)
    if not is_sure(best):
        best = _by_single_normals(judge, best, evidence)
    return if_likely(judge, best)


def if_likely(judge: Judge, best: Judgement) -> Judgement | None:
    """Return the judgement, or None where "no normals" is the better answer.

    More rows than the dimension of their span lie on a subspace for certain, if that leaves
    directions free; inside it, only a likely answer is worth more than that certainty.
    """
    certain = judge.span.n_outside > 0 and judge.n_distinct > judge.span.rank + 0.5
    likely = best.codimension.confidence if certain else best.certificate.confidence
    return best if likely >= 0.5 else None


def sweep(judge: Judge, evidence: RankEvidence, best: Judgement | None = None) -> Judgement:
    """Let the second engine look from a few codimensions; return the best supported answer.

    It ends with the first answer that two ways agree on and that is sure then.
    """
    proposed = evidence.value if best is None else best.codimension.value
    sizes = [min(proposed, judge.span.rank - 1), *sweep_sizes(judge.span.rank)]
    sizes = list(dict.fromkeys(sizes))
    while sizes:
        found = judge.from_spectrum(sizes.pop(0), evidence)
        best = found if best is None else _joined(judge, best, found)
        if stands(best):
            break
        if is_sure(judge.weigh_again(best, None)):  # but for a second witness
            sizes = _nearest_first(sizes, best.codimension.value)
    assert best is not None
    return best


def _nearest_first(sizes: list[int], codimension: int) -> list[int]:
    """Order the codimensions by how soon they lead to the found one, if that is where they lead.

    From fewer normals the same inliers are found, from more of them some are lost. The nearest ones
    are hardly another way, and come last.

    >>> _nearest_first([1, 2, 3, 4, 6, 8, 12, 16], 10)
    [6, 4, 3, 2, 1, 16, 8, 12]
    """

    def order(k: int) -> tuple[bool, bool, float]:
        away = math.log(k / codimension)
        return abs(away) < math.log(NEARBY), away > 0, abs(away)

    return sorted(sizes, key=order)


def _joined(judge: Judge, one: Judgement, other: Judgement) -> Judgement:
    """Return the better supported answer; if both are the same, the descents need not agree."""
    best = max(one, other, key=support)
    return judge.weigh_again(best, None) if same(one, other) else best


def is_sure(judgement: Judgement) -> bool:
    """Whether rows, and descents where they were asked, are sure of a subspace."""
    return judgement.fit.converged and judgement.codimension.confidence >= SURE


def stands(judgement: Judgement) -> bool:
    """Whether a sure answer stands, however the search would go on.

    A subspace that holds all rows may be the sum of two smaller ones, which are found later: that
    is for the end to decide.
    """
    return is_sure(judgement) and judgement.fit.groups.share <= ALL_ROWS


def sweep_sizes(rank: int) -> list[int]:
    """Return the codimensions from which the second engine looks, each at most 1.5 times the last.

    >>> sweep_sizes(30)
    [1, 2, 3, 4, 6, 8, 12, 16, 24]
    """
    sizes = {m * 2**j for j in range(rank.bit_length()) for m in (1, 3)} | {2}
    return sorted(k for k in sizes if k < rank)


def _by_single_normals(judge: Judge, best: Judgement, evidence: RankEvidence) -> Judgement:
    """Add single normals or take them away, as long as that helps.

    A subspace that runs through a few outliers by accident is too large by as many dimensions, and
    where the inliers' variances decay without a gap, the support alone says where to stop.
    """
    for change in (1, -1):
        while 0 < best.codimension.value + change < judge.span.rank:
            V = best.fit.axes[:, : best.codimension.value + change]
            challenger = judge.consider(V, evidence)
            if challenger.support <= best.support:
                break
            best = challenger
    return best

"""How many starts: as many as it takes for the codimension to be clearly below their number."""

from collections.abc import Callable

from perpend.codimension.directions import RankEvidence
from perpend.solvers import Directions

N_STARTS_FIRST = 16


def enough_starts(n_starts: int, evidence: RankEvidence) -> bool:
    """Say whether the starts clearly outnumber the normals.

    k random starts, projected onto a complement of dimension c, have singular values between about
    sqrt(k) - sqrt(c) and sqrt(k) + sqrt(c): with k = 1.5 c the smallest is a tenth of the largest.
    """
    return not evidence.saturated and n_starts >= 1.5 * evidence.value + 5


def grow_starts(
    solve: Callable[[int, Directions | None], Directions],
    weigh: Callable[[Directions], RankEvidence],
    *,
    sure: Callable[[], bool] = lambda: False,
    at_least: int,
    at_most: int,
) -> tuple[Directions, RankEvidence]:
    """Double the number of starts, keeping those already solved, until there are enough.

    Parameters
    ----------
    solve : function of a number of new starts and of those solved before
    weigh : function that weighs the evidence of all directions so far
    sure : function that says whether the answer is clear already
    at_least : the number of starts to begin with, if it is larger than usual
    at_most : the number of starts at which growing ends in any case
    """
    directions = solve(max(N_STARTS_FIRST, at_least), None)
    evidence = weigh(directions)
    while not (
        sure() or directions.B.shape[1] >= at_most or enough_starts(directions.B.shape[1], evidence)
    ):
        directions = directions.join(solve(directions.B.shape[1], directions))
        evidence = weigh(directions)
    return directions, evidence

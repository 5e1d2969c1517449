"""What a search returns: an answer, and how it came about."""

from typing import NamedTuple

from perpend.codimension.answer import Answer
from perpend.codimension.result import SURE
from perpend.rows import Kept
from perpend.solvers import Directions, RowSpan
from perpend.structure import Decision


class Found(NamedTuple):
    """An answer, and how it came about."""

    answer: Answer
    directions: Directions
    span: RowSpan
    n_distinct: float  # how many rows count as evidence
    converged: bool
    distances: Kept | None = None  # of all rows, where they are known
    stands_out: bool = False  # whether the subspace was seen in the second moments of the rows
    decision: Decision | None = None  # by which scales gave the answer, where they did
    structures: tuple[dict[str, object], ...] = ()  # that were seen

    @property
    def sure(self) -> bool:
        """Whether the answer is sure."""
        return self.converged and self.answer.codimension.confidence >= SURE

    @property
    def support(self) -> float:
        """The log-likelihood beyond that of rows without any subspace, less what luck reaches."""
        return self.answer.codimension.support

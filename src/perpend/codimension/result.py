"""The answer to "how many normals?"."""

from typing import NamedTuple, Self

SURE = 0.95
"""From this confidence on, an answer counts as sure."""

DOUBTFUL = 0.9
"""An answer with a doubt is never surer than that."""


class Codimension(NamedTuple):
    """A codimension, how sure it is, and why."""

    value: int  # inside the span of the rows; what is orthogonal to every row comes on top
    confidence: float  # in [0, 1]
    evidence: dict[str, object]
    doubts: tuple[str, ...]  # what lowers the confidence, and what would help
    about_rows: tuple[str, ...] = ()  # those that are as true of a codimension that was told

    def doubted(self, doubt: str, **evidence: object) -> Self:
        """Return the same with one more doubt, and the evidence for it."""
        return self._replace(
            confidence=min(self.confidence, DOUBTFUL),
            evidence={**self.evidence, **evidence},
            doubts=(*self.doubts, doubt),
        )

    @property
    def support(self) -> float:
        """The log-likelihood beyond that of rows without any subspace, less what luck reaches."""
        gain, needed = self.evidence.get("gain", 0.0), self.evidence.get("gain_needed", 0.0)
        assert isinstance(gain, float)
        assert isinstance(needed, float)
        return gain - needed

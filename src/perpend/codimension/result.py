"""The answer to "how many normals?"."""

from typing import NamedTuple

SURE = 0.95
"""From this confidence on, an answer counts as sure."""


class Codimension(NamedTuple):
    """A codimension, how sure it is, and why."""

    value: int
    confidence: float  # in [0, 1]
    evidence: dict[str, object]
    doubts: tuple[str, ...]  # what lowers the confidence, and what would help

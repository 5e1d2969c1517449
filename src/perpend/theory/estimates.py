"""A number with a bound on one side from a search, and perhaps a certified one on the other."""

from enum import Enum
from typing import NamedTuple


class Estimate(NamedTuple):
    """The best value found for a minimum or a maximum, and on which side of the truth it lies.

    A maximum that was searched for can only be larger than what was found, so its `value` is a
    "lower" bound; a minimum can only be smaller. `certified` bounds the truth from the other side,
    up to rounding.

    >>> Estimate(0.37, "upper", "best of 20 descents", certified=0.2).interval
    (0.2, 0.37)
    """

    value: float  # the best that was found
    bound: str  # "lower": the truth is at least `value`; "upper": it is at most that
    how: str  # in words
    certified: float | None = None  # a bound from the other side, if one is known

    @property
    def interval(self) -> tuple[float, float]:
        """The interval that holds the truth."""
        if self.bound == "lower":
            return self.value, float("inf") if self.certified is None else self.certified
        return float("-inf") if self.certified is None else self.certified, self.value

    @property
    def worst(self) -> float:
        """The end of the interval that was not found but proven; infinite if there is none."""
        low, high = self.interval
        return high if self.bound == "lower" else low

    def __str__(self) -> str:
        low, high = self.interval
        if low == high:
            return f"{self.value:.4f} exactly"
        return f"{self.value:.4f}, the truth is in [{low:.4f}, {high:.4f}]"


class Verdict(Enum):
    """What is known about a sufficient condition; no value means that it is false.

    The conditions are far from necessary, so a method may well succeed where none is certified.
    """

    CERTIFIED = "certified"
    ESTIMATED = "holds for the estimates, not certified"
    OPEN = "not certified"

    @classmethod
    def of(cls, *, estimated: bool, certified: bool) -> "Verdict":
        """Return the verdict on a condition that was tried with estimates and with proven bounds.

        >>> Verdict.of(estimated=True, certified=False).value
        'holds for the estimates, not certified'
        """
        if certified:
            return cls.CERTIFIED
        return cls.ESTIMATED if estimated else cls.OPEN

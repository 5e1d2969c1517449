"""What a section of the page is, what a target is, and how sizes are written."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from _text import filled, number, span, table

__all__ = ["Result", "Section", "Target", "at_least", "at_most", "number", "sizes", "span"]

TEMPLATES = Path(__file__).parents[1] / "templates"

Result = dict[str, Any]


class Target(NamedTuple):
    """What a figure should be, what was measured, and whether that is enough."""

    what: str
    required: str
    measured: str
    met: bool

    @property
    def verdict(self) -> str:
        """Return the word for the page."""
        return "met" if self.met else "**missed**"


def _nothing(result: Result) -> Any:
    del result
    return []


@dataclass(frozen=True)
class Section:
    """One part of the page, made from results/NAME.json and templates/NAME.md.

    `keys` are what it needs of the file; `numbers` returns what the template needs besides `r`,
    the results.
    """

    name: str
    title: str
    keys: tuple[str, ...]
    draw: Callable[[Result], dict[str, Any]]
    targets: Callable[[Result], list[Target]] = _nothing
    numbers: Callable[[Result], dict[str, Any]] = lambda _: {}
    script: str = ""  # that measures it, if it is not called NAME.py

    @property
    def command(self) -> str:
        """Return how it is measured."""
        return f"python benchmarks/{self.script or self.name + '.py'}"

    def describe(self, result: Result) -> str:
        """Return the text, with tables and pictures."""
        return filled(TEMPLATES / f"{self.name}.md", r=result, **self.numbers(result)).strip()


def at_most(
    what: str, values: Iterable[float], limit: float, unit: str = "", note: str = ""
) -> Target:
    """Require that no value exceeds the limit; one that is not a number does."""
    values = list(values)
    met = bool(values) and all(value <= limit for value in values)
    return Target(what, f"at most {limit:g}{unit}", span(values) + note, met)


def at_least(
    what: str, values: Iterable[float], limit: float, unit: str = "", note: str = ""
) -> Target:
    """Require that no value is below the limit."""
    values = list(values)
    met = bool(values) and all(value >= limit for value in values)
    return Target(what, f"at least {limit:g}{unit}", span(values) + note, met)


def targets_table(targets: Sequence[Target]) -> str:
    """Return the targets with their verdicts."""
    rows = [[target.what, target.required, target.measured, target.verdict] for target in targets]
    return table(["target", "required", "measured", ""], rows)


def sizes(shape: Sequence[int]) -> str:
    """Write rows, features and starts.

    >>> sizes([50000, 200, 30])
    '50,000 × 200, 30'
    """
    n, D, k = shape
    return f"{n:,} × {D}, {k}"

"""What a section of the page is, what a bar is, and how numbers are written."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from perpend.experiments._text import table

Result = dict[str, Any]


class Bar(NamedTuple):
    """What we ask of a figure, what was measured, and whether that is enough."""

    what: str
    asked: str
    measured: str
    held: bool

    @property
    def verdict(self) -> str:
        """Return the word for the page."""
        return "held" if self.held else "**missed**"


class Section(NamedTuple):
    """One part of the page, made from results/NAME.json; `keys` are what it needs of the file."""

    name: str
    title: str
    command: str
    keys: tuple[str, ...]
    describe: Callable[[Result], str]
    bars: Callable[[Result], list[Bar]]
    draw: Callable[[Result], dict[str, Any]]


def at_most(
    what: str, values: Iterable[float], limit: float, unit: str = "", note: str = ""
) -> Bar:
    """Ask that no value exceeds the limit; one that is not a number does."""
    values = list(values)
    held = bool(values) and all(value <= limit for value in values)
    return Bar(what, f"at most {limit:g}{unit}", span(values) + note, held)


def at_least(
    what: str, values: Iterable[float], limit: float, unit: str = "", note: str = ""
) -> Bar:
    """Ask that no value is below the limit."""
    values = list(values)
    held = bool(values) and all(value >= limit for value in values)
    return Bar(what, f"at least {limit:g}{unit}", span(values) + note, held)


def bars_table(bars: Sequence[Bar]) -> str:
    """Return the bars with their verdicts."""
    rows = [[bar.what, bar.asked, bar.measured, bar.verdict] for bar in bars]
    return table(["bar", "asked", "measured", ""], rows)


def image(stem: str, text: str) -> str:
    """Return the Markdown of a picture in docs/benchmarks."""
    return f"![{text}](benchmarks/{stem}.png)"


def number(value: float) -> str:
    """Write a number with three digits, and thousands with commas.

    >>> number(0.98765), number(12.0), number(385.4), number(1234567), number(3)
    ('0.988', '12.0', '385', '1,234,567', '3')
    """
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:#.3g}".rstrip(".")


def span(values: Iterable[float]) -> str:
    """Write the smallest and the largest of some numbers.

    >>> span([3.0, 1.5, 2.0]), span([2])
    ('1.50 to 3.00', '2')
    """
    values = list(values)
    if not values:
        return "nothing"
    low, high = number(min(values)), number(max(values))
    return low if low == high else f"{low} to {high}"


def sizes(shape: Sequence[int]) -> str:
    """Write rows, features and starts.

    >>> sizes([50000, 200, 30])
    '50,000 × 200, 30'
    """
    n, D, k = shape
    return f"{n:,} × {D}, {k}"

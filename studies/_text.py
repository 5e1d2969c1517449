"""Markdown pages: templates with numbers filled in, and how numbers are written in them.

One environment for experiments, studies and benchmarks. A template sees what it is given and the
functions of `FILTERS`; a name that nobody gave is an error.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perpend.experiments._trials import percent

if TYPE_CHECKING:
    from jinja2 import Environment


def filled(template: Path, **values: Any) -> str:
    """Return a template with its numbers filled in; of several empty lines one is left."""
    text = _environment(template.parent).get_template(template.name).render(values)
    return re.sub(r"\n{3,}", "\n\n", text)


@cache
def _environment(folder: Path) -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(folder),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )
    made.filters |= FILTERS
    made.globals["zip"] = zip
    return made


# -- how things are written ------------------------------------------------------------------------


def anchor(title: str) -> str:
    """Return the anchor that Markdown viewers give a heading.

    >>> anchor("Codimension: found, not given")
    'codimension-found-not-given'
    """
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def duration(seconds: float) -> str:
    """Say a time in the units one would.

    >>> duration(0.4), duration(42), duration(754), duration(12000)
    ('1 s', '42 s', '13 min', '3 h 20 min')
    """
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def table(header: Sequence[Any], rows: Iterable[Sequence[Any]]) -> str:
    """Return a Markdown table.

    >>> print(table(["method", "F1"], [["RSGM", 0.5]]))
    | method | F1 |
    |---|---|
    | RSGM | 0.5 |
    """
    lines = [header, ["---"] * len(header), *rows]
    first, rule, *rest = ["| " + " | ".join(str(cell) for cell in line) + " |" for line in lines]
    return "\n".join([first, rule.replace(" ", ""), *rest])


def listed(items: Iterable[Any], *, at_most: int = 12) -> str:
    """Return items with commas; the end of a long list is counted, not written.

    >>> listed([1, 2, 3], at_most=2)
    '1, 2 and 1 more'
    """
    texts = [str(item) for item in items]
    if not texts:
        return "none"
    more = len(texts) - at_most
    return ", ".join(texts[:at_most]) + (f" and {more} more" if more > 0 else "")


def formatted(value: float | None, spec: str) -> str:
    """Return a number in the given format, a dash where there is none.

    >>> formatted(0.1234, ".2f"), formatted(None, ".2f"), formatted(math.nan, ".1g")
    ('0.12', '-', '-')
    """
    return "-" if value is None or math.isnan(value) else format(value, spec)


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


def counted(n: int, one: str, many: str = "") -> str:
    """Return a number with its noun.

    >>> counted(1, "trial"), counted(3, "trial"), counted(2, "person", "people")
    ('1 trial', '3 trials', '2 people')
    """
    return f"{n} {one if n == 1 else many or one + 's'}"


def there(values: Iterable[float | None]) -> list[float]:
    """Return the numbers that are there: neither None nor NaN."""
    return [float(value) for value in values if value is not None and not math.isnan(value)]


def mean(values: Iterable[float | None]) -> float:
    """Return the mean of what is there, NaN for nothing."""
    import numpy as np

    found = there(values)
    return float(np.mean(found)) if found else math.nan


def median(values: Iterable[float | None]) -> float:
    """Return the median of what is there, NaN for nothing."""
    import numpy as np

    found = there(values)
    return float(np.median(found)) if found else math.nan


def short_time(seconds: float) -> str:
    """Write a short time with two digits.

    >>> short_time(0.000123), short_time(0.456), short_time(12.3), short_time(math.nan)
    ('0.12 ms', '460 ms', '12 s', '-')
    """
    if math.isnan(seconds):
        return "-"
    rounded = float(f"{seconds:.2g}")
    return f"{rounded:g} s" if rounded >= 1 else f"{float(f'{1000 * rounded:.2g}'):g} ms"


FILTERS: dict[str, Callable[..., Any]] = {
    "counted": counted,
    "f": formatted,
    "listed": listed,
    "mean": mean,
    "median": median,
    "number": number,
    "percent": percent,
    "short_time": short_time,
    "span": span,
}

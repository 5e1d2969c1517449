"""What the parts of the real-data page share: means with their spread, and who is better."""

from typing import Any, NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.experiments._experiment import Results
from studies._text import table

OURS = "DPCP()"
CLEARLY = 0.005  # of AUC or F1: smaller differences are called equal


def spread(values: Array, *, digits: int = 3) -> str:
    """Return mean and standard deviation, the latter only where there are several values.

    >>> spread(np.array([0.5, 0.7])), spread(np.array([0.5])), spread(np.array([np.nan]))
    ('0.600 ± 0.100', '0.500', '-')
    """
    values = values[np.isfinite(values)]
    if len(values) == 0:
        return "-"
    mean = f"{np.mean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ± {np.std(values):.{digits}f}"


def numbers(results: Results, name: str, value: str, **where: object) -> Array:
    """Return a column of numbers as floats; what is missing is NaN."""
    values = [row[value] for row in results.rows(name, **where)]
    return np.array([np.nan if v is None else v for v in values], dtype=float)


def mean(results: Results, name: str, value: str, **where: object) -> float:
    """Return the mean of a column over the rows that have it; NaN if none has."""
    values = numbers(results, name, value, **where)
    values = values[np.isfinite(values)]
    return float(np.mean(values)) if len(values) else float("nan")


def over_items(results: Results, name: str, value: str, by: str, method: str) -> Array:
    """Return a method's mean for each item (scene, table, ...): items weigh alike."""
    items = results.values(name, by)
    return np.array([mean(results, name, value, **{by: i, "method": method}) for i in items])


def methods_by_items(results: Results, name: str, value: str, by: str) -> str:
    """Return the table: a line for each method, a column for each item, and the mean over them."""
    items = results.values(name, by)
    lines = []
    for method in results.values(name, "method"):
        cells = [
            spread(numbers(results, name, value, **{by: item, "method": method})) for item in items
        ]
        average = over_items(results, name, value, by, method)
        lines.append(
            [named(method), *cells, f"{np.mean(average):.3f}" if not _gaps(average) else "-"]
        )
    return table(["method", *map(str, items), "mean"], lines)


def found(results: Results, name: str, by: str, own: str = OURS) -> str:
    """Return what our method found and how sure it was, item by item."""
    lines = []
    for item in results.values(name, by):
        where = {by: item, "method": own}
        seen = sorted({int(c) for c in numbers(results, name, "codimension", **where)})
        codimension = str(seen[0]) if len(seen) == 1 else f"{seen[0]} to {seen[-1]}"
        confidence = spread(numbers(results, name, "confidence", **where), digits=2)
        seconds = f"{np.median(numbers(results, name, 'seconds', **where)):.1f} s"
        lines.append([item, codimension, confidence, seconds])
    return table([by, "codimension found", "confidence", "median CPU time"], lines)


class Better(NamedTuple):
    """Methods that are clearly better than ours on one item, the best first."""

    item: Any
    others: list[tuple[str, float]]
    ours: float


def ahead(results: Results, name: str, value: str, by: str, own: str = OURS) -> list[Better]:
    """Return where other methods are clearly better than ours."""
    found = []
    for item in results.values(name, by):
        ours = mean(results, name, value, **{by: item, "method": own})
        others = [
            (method, mean(results, name, value, **{by: item, "method": method}))
            for method in results.values(name, "method")
            if not method.startswith("DPCP(")
        ]
        better = sorted((m for m in others if m[1] > ours + CLEARLY), key=lambda m: -m[1])
        found += [Better(item, better, ours)] if better else []
    return found


def named(method: str) -> str:
    """Return a method as it stands on the page: calls as code."""
    if method.endswith(")"):
        return f"`{method}`"
    head, comma, rest = method.partition(",")
    return f"`{head}`{comma}{rest}" if head.endswith(")") else method


def _gaps(values: Array) -> bool:
    return bool(np.any(~np.isfinite(values)))


def hex_line(values: Array) -> str:
    """Write numbers from 0 to 1 as two hexadecimal digits each; missing ones as dots.

    >>> hex_line(np.array([0.0, 1.0, np.nan]))
    '00ff..'
    """
    return "".join(
        f"{round(255 * min(max(v, 0.0), 1.0)):02x}" if np.isfinite(v) else ".." for v in values
    )


def from_hex(line: str) -> Array:
    """Read what `hex_line` wrote.

    >>> from_hex("00ff..")
    array([ 0.,  1., nan])
    """
    pairs = [line[i : i + 2] for i in range(0, len(line), 2)]
    return np.array([np.nan if pair == ".." else int(pair, 16) / 255 for pair in pairs])


def image(results: Results, name: str, panel: str) -> Array:
    """Return a picture that is stored line by line."""
    return np.array([from_hex(line) for line in results.column(name, "pixels", panel=panel)])

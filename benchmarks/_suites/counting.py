"""From estimates to what is stored: counts, by setting, and times."""

import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from _suites.suite import Row, Suite


def stored(suite: Suite, rows: list[Row]) -> Row:
    """Return what is kept of a run: counts of all estimates and by setting, and CPU seconds."""
    return {
        "all": counted(suite, rows),
        "by": {
            ", ".join(names): [
                {**settings, **counted(suite, some)}
                for settings, some in grouped(rows, names, in_order=suite.n_cases > 1)
            ]
            for names in suite.by
        },
        "seconds": seconds(rows),
    }


def counted(suite: Suite, rows: list[Row]) -> Row:
    """Count what is true of the estimates."""
    flags = [name for name, value in rows[0].items() if isinstance(value, bool)]
    return {
        "problems": len(rows),
        **{name: sum(row[name] for row in rows) for name in flags},
        "right_and_sure": sum(row["right"] and row["sure"] for row in rows),
        "sure_and_wrong": sum(row["sure"] and not row["right"] for row in rows),
        **suite.summary(rows),
    }


def grouped(
    rows: Iterable[Row], names: tuple[str, ...], *, in_order: bool
) -> list[tuple[Row, list[Row]]]:
    """Return rows with equal settings together, in the order in which they come or sorted."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row["settings"][name] for name in names), []).append(row)
    keys = list(groups) if in_order else sorted(groups, key=_by_numbers)
    return [(dict(zip(names, key, strict=True)), groups[key]) for key in keys]


def _by_numbers(key: tuple[Any, ...]) -> list[tuple[int, str]]:
    """Sort "6 to 15" before "16 to 30"."""
    parts = re.split(r"(\d+)", " ".join(map(str, key)))
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


def seconds(rows: list[Row]) -> Row:
    """Return the median where the estimate is sure and where it is not, and the longest fit."""
    times = {
        "sure": [row["seconds"] for row in rows if row["sure"]],
        "unsure": [row["seconds"] for row in rows if not row["sure"]],
    }
    medians = {name: _rounded(np.median, taken) for name, taken in times.items()}
    return {**medians, "longest": _rounded(max, times["sure"] + times["unsure"])}


def _rounded(function: Callable[[list[float]], Any], values: list[float]) -> float | None:
    return round(float(function(values)), 4) if values else None

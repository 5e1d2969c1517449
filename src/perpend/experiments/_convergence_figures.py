"""The figures of the experiment `convergence`; look at nothing but the stored rows."""

from typing import Any

import numpy as np

from perpend._typing import Array
from perpend.experiments._convergence_page import RULES, TOLD, by_setting, setting
from perpend.experiments._experiment import Results, Row
from perpend.experiments._text import percent

BOUND, STEPS, AUTO = "Theorem 1's bound", "PSGM with the theorem's steps", "PSGM, auto"
FLOOR, TOP = 1e-13, 20.0  # of the angles shown


def draw(results: Results) -> dict[str, Any]:
    """Draw the rules, the methods that are told the codimension, and the bound."""
    from perpend import plots

    names: dict[str, Any] = {"xlabel": "iterations", "markers": False, "log_y": True}
    names["ylim"] = (FLOOR, TOP)
    ratios = results.values("ends", "r")
    rules: dict[str, Any] = {
        f"{percent(r)} outliers": {m: _band(results, m, r) for m in RULES} for r in ratios
    }
    told: dict[str, Any] = {
        f"{percent(r)} outliers": {
            name: _band(results, method, r)[::2][:2]  # x and the largest angle
            for name, method in {"PSGM, auto": "auto", "PSGM, mbls": "mbls"}.items()
        }
        | {method: _band(results, method, r)[:2] for method in TOLD}
        for r in ratios
    }
    bound = {
        setting(rows[0], "\n") + _proven(results, rows[0]): _bound_lines(rows)
        for rows in by_setting(results, "bound")
    }
    size = (4.4, 3.6)
    return {
        "rules": plots.curves(
            rules, **names, xlim=(0, 500), panel=size,
            ylabel="tan of the angle to the complement\n(median start; shaded: to the slowest)",
        ),
        "told": plots.curves(
            told, **names, xlim=(0, 250), panel=size,
            ylabel="tan of the largest angle\nto the complement",
        ),
        "bound": plots.curves(
            bound, **names, panel=(3.7, 3.4), ylabel="tan of the largest angle\nto the complement",
        ),
    }  # fmt: skip


def _band(results: Results, method: str, r: float) -> tuple[Array, ...]:
    """Return iterations, the median start, the slowest start, and the median start again.

    All are medians over the trials: the slowest of 30 starts, not of all 300.
    """
    rows = results.rows("paths", method=method, r=r)
    seeds = sorted({row["seed"] for row in rows})
    paths = [[row for row in rows if row["seed"] == seed] for seed in seeds]
    x = np.unique([row["iteration"] for row in rows])
    median = np.array([_held(path, "median", x) for path in paths])
    largest = np.array([_held(path, "largest", x) for path in paths])
    middle = np.maximum(np.median(median, axis=0), FLOOR / 10)
    return x, middle, np.maximum(np.median(largest, axis=0), FLOOR / 10), middle


def _held(path: list[Row], column: str, x: Array) -> Array:
    """Return a column at the iterations x; after the last one it stays where it is.

    Only some iterations are stored; between them a line on the logarithmic axis is drawn.
    """
    iterations = np.array([row["iteration"] for row in path])
    values = np.maximum(np.array([row[column] for row in path], dtype=float), FLOOR / 10)
    return np.exp(np.interp(x, iterations, np.log(values)))


def _proven(results: Results, row: Row) -> str:
    key = {name: row[name] for name in ("D", "c", "N", "M", "seed")}
    return "\n" + (
        "conditions certified"
        if results.rows("theorem1", **key)[0]["certified"]
        else "conditions hold for estimates"
    )


def _bound_lines(rows: list[Row]) -> dict[str, tuple[Array, ...]]:
    """Return bound and angles of the first trial; each has a schedule of its own."""
    first = [row for row in rows if row["seed"] == rows[0]["seed"]]
    x = np.array([row["iteration"] for row in first])
    columns = {BOUND: "bound", STEPS: "largest", AUTO: "auto"}
    return {name: (x, np.array([row[column] for row in first])) for name, column in columns.items()}

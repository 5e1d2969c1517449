"""The numbers on the page of the experiment `convergence`, from the stored rows alone."""

from typing import Any

import numpy as np

from perpend.experiments._experiment import Results, Row
from perpend.experiments.convergence import (
    ARRIVED,
    EASIER,
    GIVEN,
    INSIDE,
    LONGER,
    RULES,
    by_setting,
    setting,
)

WORDS = {
    "auto": "perpend's own",
    EASIER: "the same, content with a smaller decrease",
    "mbls": "line search of the releases",
    "geometric": "the paper's rule, the library's constants",
    LONGER: "the same, twice as long at its first step",
    "decay": "the authors' since 2021",
    "RSGM, mbls": "given c, all normals together",
    "RSGM, decay": "given c, all normals together",
    "DPCP-IRLS": "given c, reweighted least squares",
}


def numbers(results: Results) -> dict[str, Any]:
    """Return which starts arrive, how fast, and whether the theorem keeps its promise."""
    ratios = results.values("ends", "r")
    checked = [row for row in results.rows("theorem1") if row["violations"] is not None]
    first = results.rows("ends")[0]
    return {
        "first": first,
        "typical": np.degrees(np.arctan(np.sqrt((first["D"] - first["c"]) / first["c"]))),
        "ends": {(m, r): _ends(results.rows("ends", method=m, r=r)) for r in ratios for m in WORDS},
        "ratios": ratios,
        "words": WORDS,
        "RULES": RULES,
        "GIVEN": GIVEN,
        "LONGER": LONGER,
        "EASIER": EASIER,
        "arrived": ARRIVED,
        "inside": INSIDE,
        "n_angles": sum(row["used"] * (row["steps"] + 1) for row in checked),
        "violations": sum(row["violations"] for row in checked),
        "theorem": [_theorem(rows) for rows in by_setting(results, "theorem1")],
        "conditions": {r: _conditions(results.rows("conditions", r=r)) for r in ratios},
    }


def _ends(rows: list[Row]) -> Row:
    """Return where the trials of a method ended, together."""

    def worst(column: str) -> float | None:
        values = [row[column] for row in rows]
        return None if None in values else max(values)

    columns = ("arrived", "converged_elsewhere", "median_iterations_to", "spread")
    values = {name: [row[name] for row in rows] for name in columns}
    to = values["median_iterations_to"]
    frame = None in values["spread"]
    return {
        "arrive": np.mean(values["arrived"]),
        "elsewhere": None if frame else np.mean(values["converged_elsewhere"]),
        "median": None if None in to else np.median(to),
        "slowest": worst("slowest_iterations_to"),
        "scans": worst("slowest_scans_to"),
        "largest": worst("largest_end"),
        "spread": None if frame else np.median(values["spread"]),
    }


def _theorem(rows: list[Row]) -> Row:
    """Return how the theorem does in one setting; what was not run is None."""
    done = [row for row in rows if row["violations"] is not None]
    found = {
        "setting": setting(rows[0]),
        "certified": sum(row["certified"] for row in rows),
        "n": len(rows),
        "cone": np.median([row["cone"] for row in rows]),
        "used": sum(row["used"] for row in rows),
        "starts": sum(row["k"] for row in rows),
        "done": bool(done),
    }
    if done:
        found |= {name: np.median([row[name] for row in done]) for name in ("K0", "K_star")}
        found |= {name: max(row[name] for row in done) for name in ("closest", "end")}
        found["violations"] = sum(row["violations"] for row in done)
    return found


def _conditions(rows: list[Row]) -> Row:
    """Return what Theorem 1 requires at one share of outliers; angles in degrees."""
    return {
        "dominates": sum(row["dominates"] for row in rows),
        "n": len(rows),
        "cone": np.degrees(np.arctan(np.median([row["cone"] for row in rows]))),
        "nearest": np.degrees(np.arctan(min(row["nearest_start"] for row in rows))),
        "inside": np.mean([row["inside"] for row in rows]),
        **{name: np.median([row[name] for row in rows]) for name in ("pull", "push")},
    }

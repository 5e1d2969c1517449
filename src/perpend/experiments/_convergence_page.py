"""The numbers on the page of the experiment `convergence`, from the stored rows alone."""

from typing import Any

import numpy as np

from perpend.experiments._experiment import Results, Row

ARRIVED = 1e-6  # tan of the angle below which a start counts as being at a normal
INSIDE = 0.8  # of the cone; starts closer to its edge would need ever longer schedules
LONGER, EASIER = "geometric, K0 = 120", "auto, armijo = 0.01"
RULES = ("auto", "mbls", "geometric", "decay")
TOLD = ("RSGM, mbls", "RSGM, decay", "DPCP-IRLS")
WORDS = {
    "auto": "perpend's own",
    EASIER: "the same, content with a smaller decrease",
    "mbls": "line search of the releases",
    "geometric": "the paper's rule, the library's constants",
    LONGER: "the same, twice as long at its first step",
    "decay": "the authors' since 2021",
    "RSGM, mbls": "told c, all normals together",
    "RSGM, decay": "told c, all normals together",
    "DPCP-IRLS": "told c, reweighted least squares",
}


def numbers(results: Results) -> dict[str, Any]:
    """Return who arrives, how fast, and whether the theorem keeps its promise."""
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
        "TOLD": TOLD,
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

    columns = ("arrived", "resting_elsewhere", "median_iterations_to", "spread")
    values = {name: [row[name] for row in rows] for name in columns}
    to = values["median_iterations_to"]
    told = None in values["spread"]
    return {
        "arrive": np.mean(values["arrived"]),
        "elsewhere": None if told else np.mean(values["resting_elsewhere"]),
        "median": None if None in to else np.median(to),
        "slowest": worst("slowest_iterations_to"),
        "scans": worst("slowest_scans_to"),
        "largest": worst("largest_end"),
        "spread": None if told else np.median(values["spread"]),
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
    """Return what Theorem 1 asks for at one share of outliers; angles in degrees."""
    return {
        "dominates": sum(row["dominates"] for row in rows),
        "n": len(rows),
        "cone": np.degrees(np.arctan(np.median([row["cone"] for row in rows]))),
        "nearest": np.degrees(np.arctan(min(row["nearest_start"] for row in rows))),
        "inside": np.mean([row["inside"] for row in rows]),
        **{name: np.median([row[name] for row in rows]) for name in ("pull", "push")},
    }


def by_setting(results: Results, name: str) -> list[list[Row]]:
    """Return the rows of a table, those of each setting together."""
    settings: dict[str, list[Row]] = {}
    for row in results.rows(name):
        settings.setdefault(setting(row), []).append(row)
    return list(settings.values())


def setting(row: Row, between: str = ", ") -> str:
    """Return the sizes of a problem in words."""
    return f"D = {row['D']}, c = {row['c']}{between}N = {row['N']}, M = {row['M']}"

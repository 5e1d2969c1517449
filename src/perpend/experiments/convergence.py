"""How fast the descents reach the complement: all step rules, and Theorem 1's bound beside them.

First the paper's setting of Figure 3, where no theorem applies: the step rules from the same random
starts, with RSGM and DPCP-IRLS, given the codimension, for comparison. Then settings where Theorem
1 applies: plain PSGM with the theorem's own steps, against the angle that it promises.
"""

from typing import Any

import numpy as np

from perpend._typing import Array
from perpend.experiments._experiment import Case, Experiment, Results, Row, Settings, Tables
from perpend.experiments._trials import percent, shares

ARRIVED = 1e-6  # tan of the angle below which a start counts as being at a normal
INSIDE = 0.8  # of the cone; starts closer to its edge would need ever longer schedules
LONGER, EASIER = "geometric, K0 = 120", "auto, armijo = 0.01"
RULES = ("auto", "mbls", "geometric", "decay")
GIVEN = ("RSGM, mbls", "RSGM, decay", "DPCP-IRLS")  # the codimension
SETTING = ("D", "c", "N", "M")


def cases(settings: Settings) -> list[Case]:
    """Return one case for each trial of the rules, and for each trial of the bound."""
    seeds = settings.seeds or (2 if settings.quick else 10)
    if settings.quick:
        shape = {"D": 40, "c": 3, "N": 450, "k": 9}
        bounds = [(10, 8, 2000, 800), (10, 5, 2000, 4000), (30, 5, 6000, 3000)]
    else:
        shape = {"D": 200, "c": 10, "N": 1500, "k": 30}
        bounds = [(10, 8, 10_000, 4000), (10, 5, 10_000, 40_001), (30, 5, 10_000, 10_000)]
    rules = [
        {"part": "rules", **shape, "r": r, "seed": seed}
        for seed in range(seeds)
        for r in (0.6, 0.7)
    ]
    bound = [
        {"part": "bound", "D": D, "c": c, "N": N, "M": M, "k": 20, "seed": seed}
        for seed in range(seeds)
        for D, c, N, M in bounds
    ]
    return rules + bound


def run(case: Case) -> Tables:
    """Compute one case of either part."""
    from perpend.experiments import _convergence

    return _convergence.rules(case) if case["part"] == "rules" else _convergence.bound(case)


def cost(case: Case) -> float:
    """Return the relative time: rows times features times starts."""
    n = case["N"] / (1 - case["r"]) if case["part"] == "rules" else (case["N"] + case["M"]) / 3
    return float(n * case["D"] * case["k"])


def summary(results: Results) -> list[dict[str, str]]:
    """Return which share of the starts arrives at a normal, by rule and share of outliers."""
    return shares(results, "ends", ("method",), "r", arrive=lambda row: row["arrived"])


# -- the figures -----------------------------------------------------------------------------------

BOUND, STEPS, AUTO = "Theorem 1's bound", "PSGM with the theorem's steps", "PSGM, auto"
FLOOR, TOP = 1e-13, 20.0  # of the angles shown


def draw(results: Results) -> dict[str, Any]:
    """Draw the rules, the methods that are given the codimension, and the bound."""
    from perpend import plots

    names: dict[str, Any] = {"xlabel": "iterations", "markers": False, "log_y": True}
    names["ylim"] = (FLOOR, TOP)
    rules: dict[str, Any] = {}
    given: dict[str, Any] = {}
    for r in results.values("ends", "r"):
        title = f"{percent(r)} outliers"
        rules[title] = {method: _band(results, method, r) for method in RULES}
        given[title] = (
            {
                f"PSGM, {method}": rules[title][method][::2][:2]  # x and the largest angle
                for method in ("auto", "mbls")
            }
            | {method: _band(results, method, r)[:2] for method in GIVEN}
        )
    bound = {_title(results, rows[0]): _bound_lines(rows) for rows in by_setting(results, "bound")}
    size = (4.4, 3.6)
    return {
        "rules": plots.curves(
            rules, **names, xlim=(0, 500), panel=size,
            ylabel="tan of the angle to the complement\n(median start; shaded: to the slowest)",
        ),
        "given": plots.curves(
            given, **names, xlim=(0, 250), panel=size,
            ylabel="tan of the largest angle\nto the complement",
        ),
        "bound": plots.curves(
            bound, **names, panel=(3.7, 3.4), ylabel="tan of the largest angle\nto the complement",
        ),
    }  # fmt: skip


def _band(results: Results, method: str, r: float) -> tuple[Array, ...]:
    """Return iterations, the median start, the slowest start, and the median start again.

    All are medians over the trials: the slowest of 30 starts, not of all 300. Only some iterations
    are stored; between them a line on the logarithmic axis is drawn, after the last one a flat one.
    """
    paths = results.groups("paths", "seed", method=method, r=r).values()
    x = np.unique([row["iteration"] for path in paths for row in path])

    def over_trials(column: str) -> Array:
        logs = []
        for path in paths:
            values = np.maximum(np.array([row[column] for row in path], dtype=float), FLOOR / 10)
            logs.append(np.interp(x, [row["iteration"] for row in path], np.log(values)))
        return np.maximum(np.median(np.exp(logs), axis=0), FLOOR / 10)

    middle = over_trials("median")
    return x, middle, over_trials("largest"), middle


def _title(results: Results, row: Row) -> str:
    (theorem,) = results.rows("theorem1", **{name: row[name] for name in (*SETTING, "seed")})
    proven = "conditions certified" if theorem["certified"] else "conditions hold for estimates"
    return setting(row, "\n") + "\n" + proven


def _bound_lines(rows: list[Row]) -> dict[str, tuple[Array, ...]]:
    """Return bound and angles of the first trial; each has a schedule of its own."""
    first = [row for row in rows if row["seed"] == rows[0]["seed"]]
    x = np.array([row["iteration"] for row in first])
    columns = {BOUND: "bound", STEPS: "largest", AUTO: "auto"}
    return {name: (x, np.array([row[column] for row in first])) for name, column in columns.items()}


def by_setting(results: Results, name: str) -> list[list[Row]]:
    """Return the rows of a table, those of each setting together."""
    return list(results.groups(name, *SETTING).values())


def setting(row: Row, between: str = ", ") -> str:
    """Return the sizes of a problem in words."""
    return f"D = {row['D']}, c = {row['c']}{between}N = {row['N']}, M = {row['M']}"


EXPERIMENT = Experiment(
    name="convergence",
    title="How fast the descents converge",
    about="angle to the complement over iterations, all step rules, Theorem 1's bound",
    cases=cases,
    run=run,
    draw=draw,
    summary=summary,
    cost=cost,
)

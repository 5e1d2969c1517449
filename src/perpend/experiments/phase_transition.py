"""The paper's Figure 2: how many outliers among how many inliers are tolerated, c unknown.

D = 200, c = 5. DPCP-PSGM is given twice the codimension as its number of starts and runs once with
the line search of the releases, once with the paper's geometric steps. RSGM is given once the true
codimension and once twice as much, and `DPCP()` nothing.
"""

from typing import Any

import numpy as np

from perpend._typing import Array
from perpend.experiments._experiment import Case, Experiment, Results, Settings, Tables
from perpend.experiments._trials import (
    RECOVERED,
    dpcp_psgm,
    measured,
    paper_data,
    shares,
    starts_rng,
)

PSGM, GEOMETRIC = "DPCP-PSGM, c' = 2c", "DPCP-PSGM, geometric steps"
GIVEN, TWICE, OURS = "RSGM, given c", "RSGM, given 2c", "DPCP()"
METHODS = (PSGM, GEOMETRIC, GIVEN, TWICE, OURS)
OFTEN = 0.9  # of the trials: a cell counts as recovered


def cases(settings: Settings) -> list[Case]:
    """Return one case for each cell and trial; all methods see the same data."""
    if settings.quick:
        D, c, seeds = 40, 2, settings.seeds or 2
        inliers, outliers = [50, 150, 250, 350, 500], [100, 300, 500, 700, 1000]
    else:
        D, c, seeds = 200, 5, settings.seeds or 8
        inliers, outliers = list(range(250, 2501, 250)), list(range(500, 5001, 500))
    return [
        {"D": D, "c": c, "N": N, "M": M, "seed": seed}
        for seed in range(seeds)
        for M in outliers
        for N in inliers
    ]


def run(case: Case) -> Tables:
    """Fit the methods to one data set."""
    from perpend import DPCP, RSGM

    c, seed = case["c"], case["seed"]
    data = paper_data(**case)
    models = {
        PSGM: dpcp_psgm(2 * c, seed),
        GEOMETRIC: dpcp_psgm(2 * c, seed, step="geometric"),
        GIVEN: RSGM(c),
        TWICE: RSGM(2 * c),
        OURS: DPCP(random_state=starts_rng(seed)),
    }
    rows = [{**case, "method": name, **measured(model, data)} for name, model in models.items()]
    return {"trials": rows}


def cost(case: Case) -> float:
    """Return the relative time: rows, and more where there is little to be found."""
    total = case["N"] + case["M"]
    return float(total * (1 + 5 * case["M"] / total))


def cells(results: Results, method: str, column: str) -> Array:
    """Return the mean of a column over the trials in every cell, (outliers, inliers).

    The column "recovered" is whether the subspace was recovered.
    """
    groups = results.groups("trials", "M", "N", method=method)

    def value(row: dict[str, Any]) -> float:
        return float(row["error"] < RECOVERED if column == "recovered" else row[column])

    outliers, inliers = results.values("trials", "M"), results.values("trials", "N")
    return np.array([[np.mean([*map(value, groups[M, N])]) for N in inliers] for M in outliers])


def summary(results: Results) -> list[dict[str, str]]:
    """Return which share of the trials each method recovers."""
    return shares(
        results, "trials", ("method",), "D", recovered=lambda row: row["error"] < RECOVERED
    )


def draw(results: Results) -> dict[str, Any]:
    """Draw the mean distance, as the paper does, and the share of recoveries."""
    from perpend import plots

    axes = results.values("trials", "N"), results.values("trials", "M")
    c = results.values("trials", "c")[0]
    names: dict[str, Any] = {"xlabel": "number of inliers N", "ylabel": "number of outliers M"}
    distance, rate = (
        {name: cells(results, name, column) for name in METHODS}
        for column in ("distance", "recovered")
    )
    return {
        "distance": plots.heatmaps(
            distance, *axes, **names, columns=3, cmap="cividis_r",
            label="mean subspace distance", limits=(0.0, float(np.sqrt(3 * c))),
        ),
        "recovery": plots.heatmaps(
            rate, *axes, **names, columns=3, label="share of trials recovered"
        ),
    }  # fmt: skip


EXPERIMENT = Experiment(
    name="phase-transition",
    title="How many outliers are tolerated (Figure 2)",
    about="subspace distance over the numbers of inliers and outliers, five methods",
    cases=cases,
    run=run,
    draw=draw,
    summary=summary,
    cost=cost,
)

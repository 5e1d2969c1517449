"""The paper's Figure 2: how many outliers among how many inliers can be borne, codimension unknown.

D = 200, c = 5. DPCP-PSGM is given twice the codimension as its number of starts, RSGM once the true
codimension and once twice as much, and `DPCP()` nothing.
"""

from typing import Any

import numpy as np

from perpend._typing import Array
from perpend.experiments._cells import OFTEN, TEST, falls_behind
from perpend.experiments._experiment import Case, Experiment, Results, Settings, Tables
from perpend.experiments._text import from_template
from perpend.experiments._trials import RECOVERED, dpcp_psgm, measured, paper_data, starts_rng

PSGM, TOLD, TWICE, OURS = "DPCP-PSGM, c' = 2c", "RSGM, told c", "RSGM, told 2c", "DPCP()"
METHODS = (PSGM, TOLD, TWICE, OURS)


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
    """Fit the four methods to one data set."""
    from perpend import DPCP, RSGM

    D, c, seed = case["D"], case["c"], case["seed"]
    data = paper_data(D, c, case["N"], case["M"], seed)
    models = {
        PSGM: dpcp_psgm(2 * c, seed),
        TOLD: RSGM(c),
        TWICE: RSGM(2 * c),
        OURS: DPCP(random_state=starts_rng(seed)),
    }
    return {
        "trials": [
            {**case, "method": name, **measured(model, data)} for name, model in models.items()
        ]
    }


def cost(case: Case) -> float:
    """Return the relative time: rows, and more where there is little to be found."""
    total = case["N"] + case["M"]
    return float(total * (1 + 5 * case["M"] / total))


# -- looking at the results --------------------------------------------------------------------


def recovered(results: Results, method: str, N: int, M: int) -> Array:
    """Return for each trial of a cell whether the subspace was recovered."""
    return results.column("trials", "error", method=method, N=N, M=M) < RECOVERED


def _map(results: Results, method: str, value: str) -> Array:
    """Return the mean over the trials in every cell, (outliers, inliers)."""
    inliers, outliers = _axes(results)
    cells: dict[tuple[int, int], list[float]] = {(M, N): [] for M in outliers for N in inliers}
    for row in results.rows("trials", method=method):
        number = row["error"] < RECOVERED if value == "recovered" else row[value]
        cells[row["M"], row["N"]].append(float(number))
    return np.array([[np.mean(cells[M, N]) for N in inliers] for M in outliers])


def _axes(results: Results) -> tuple[list[int], list[int]]:
    return results.values("trials", "N"), results.values("trials", "M")


def behind(results: Results, method: str) -> list[tuple[int, int]]:
    """Return the cells (N, M) where RSGM, given c, recovers often and `method` clearly less."""
    inliers, outliers = _axes(results)
    return [
        (N, M)
        for N in inliers
        for M in outliers
        if falls_behind(recovered(results, method, N, M), recovered(results, TOLD, N, M))
    ]


def draw(results: Results) -> dict[str, Any]:
    """Draw the mean distance, as the paper does, and the share of recoveries."""
    from perpend import plots

    inliers, outliers = _axes(results)
    c = results.values("trials", "c")[0]
    names: dict[str, Any] = {"xlabel": "number of inliers N", "ylabel": "number of outliers M"}
    distance = {name: _map(results, name, "distance") for name in METHODS}
    rate = {name: _map(results, name, "recovered") for name in METHODS}
    return {
        "distance": plots.heatmaps(
            distance, inliers, outliers, **names, columns=4, cmap="cividis_r",
            label="mean subspace distance", limits=(0.0, float(np.sqrt(3 * c))),
        ),
        "recovery": plots.heatmaps(
            rate, inliers, outliers, **names, columns=4, label="share of trials recovered"
        ),
    }  # fmt: skip


def numbers(results: Results) -> dict[str, Any]:
    """Return who recovers how many cells, and who falls behind RSGM where."""
    often = {name: int((_map(results, name, "recovered") >= OFTEN).sum()) for name in METHODS}
    return {
        "often": often,
        "n_cells": len(_axes(results)[0]) * len(_axes(results)[1]),
        "limit": RECOVERED,
        "behind": {name: behind(results, name) for name in (PSGM, OURS)},
        **TEST,
    }


EXPERIMENT = Experiment(
    name="phase-transition",
    title="Outliers that can be borne (Figure 2)",
    about="subspace distance over the numbers of inliers and outliers, four methods",
    cases=cases,
    run=run,
    draw=draw,
    describe=from_template(__file__, numbers),
    cost=cost,
)

"""Beyond the l1 limit: how many outliers `DPCP()` tolerates, beside methods that are given c.

D = 200, c = 5, N inliers, outlier ratio r. With more outliers, and earlier with few rows, the
minimisers of the l1 objective stop being normals, so that no optimiser of it can succeed: where, is
computed for one data set of each cell. `DPCP()` is given only the rows; DPCP-PSGM has twice the
codimension as its number of starts and is given the codimension, as the others are; it runs with
the line search of the releases, and with the paper's geometric steps.
"""

from typing import Any

import numpy as np

from perpend._typing import Array
from perpend.experiments._experiment import Case, Experiment, Results, Settings, Tables
from perpend.experiments._trials import (
    RECOVERED,
    dpcp_psgm,
    measured,
    n_outliers,
    paper_data,
    starts_rng,
)
from perpend.experiments.phase_transition import OFTEN
from studies._cells import TEST, falls_behind
from studies._landscape import EqualAngles, landscape

OURS, PSGM, GEOMETRIC = "DPCP()", "DPCP-PSGM, given c", "DPCP-PSGM, geometric steps"
RSGM_, IRLS = "RSGM, given c", "DPCP-IRLS, given c"
METHODS = (OURS, PSGM, GEOMETRIC, RSGM_, IRLS)
GEOMETRIC_SEEDS = 2  # the first trials of each cell: its 1000 iterations take longest of all


def cases(settings: Settings) -> list[Case]:
    """Return one case for each cell and trial; all methods see the same data."""
    if settings.quick:
        D, c, seeds = 40, 2, settings.seeds or 2
        inliers, ratios = [100, 300], [0.5, 0.7, 0.85, 0.95]
    else:
        D, c, seeds = 200, 5, settings.seeds or 10
        inliers = [500, 1000, 1500, 2000, 2500]
        ratios = [0.5, 0.6, 0.7, 0.75, 0.8, 0.84, 0.88, 0.92, 0.95]
    return [
        {"D": D, "c": c, "N": N, "r": r, "seed": seed}
        for seed in range(seeds)
        for r in ratios
        for N in inliers
    ]


def run(case: Case) -> Tables:
    """Fit the methods to one data set."""
    from perpend import DPCP, DPCPIRLS, RSGM

    D, c, N, seed = case["D"], case["c"], case["N"], case["seed"]
    data = paper_data(D, c, N, n_outliers(N, case["r"]), seed)
    models = {
        OURS: DPCP(random_state=starts_rng(seed)),
        PSGM: dpcp_psgm(2 * c, seed, codimension=c),
        RSGM_: RSGM(c),
        IRLS: DPCPIRLS(c),
    }
    if seed < GEOMETRIC_SEEDS:
        models[GEOMETRIC] = dpcp_psgm(2 * c, seed, codimension=c, step="geometric")
    fits = [{**case, "method": name, **measured(model, data)} for name, model in models.items()]
    tables: Tables = {"trials": fits}
    if seed == 0:  # what the objective is like, in one data set of each cell
        tables["landscape"] = [{**case, **landscape(data, starts_rng(seed))}]
    return tables


def cost(case: Case) -> float:
    """Return the relative time: rows, and more where there is little to be found."""
    return float(case["N"] / (1 - case["r"]) * (1 + 5 * case["r"]))


# -- looking at the results --------------------------------------------------------------------


def recovered(results: Results, method: str, N: int, r: float) -> Array:
    """Return for each trial of a cell whether the subspace was recovered."""
    return results.column("trials", "error", method=method, N=N, r=r) < RECOVERED


def _axes(results: Results) -> tuple[list[int], list[float]]:
    return results.values("trials", "N"), results.values("trials", "r")


def rates(results: Results, method: str) -> Array:
    """Return the share of recovered trials in every cell, (ratios, inliers)."""
    inliers, ratios = _axes(results)
    return np.array([[recovered(results, method, N, r).mean() for N in inliers] for r in ratios])


def behind(results: Results, method: str) -> list[tuple[int, float]]:
    """Return the cells (N, r) where `method` recovers often and `DPCP()` clearly less."""
    inliers, ratios = _axes(results)
    return [
        (N, r)
        for N in inliers
        for r in ratios
        if falls_behind(recovered(results, OURS, N, r), recovered(results, method, N, r))
    ]


def failing_steps(results: Results) -> dict[float, dict[str, list[int]]]:
    """Return by the ratio r the N where normals are minimisers, and where the steps fail there.

    Steps fail where neither rule recovers any trial; `reached`: where steps of equal angles end at
    normals.
    """
    found: dict[float, dict[str, list[int]]] = {}
    for row in results.rows("landscape"):
        N, r = row["N"], row["r"]
        lists = found.setdefault(r, {"minimisers": [], "reached": [], "missed": []})
        if row["pull"] < 1:
            continue
        lists["minimisers"].append(N)
        if row["normals"] > 0:
            lists["reached"].append(N)
        if not any(recovered(results, name, N, r).any() for name in (PSGM, GEOMETRIC)):
            lists["missed"].append(N)
    return found


def draw(results: Results) -> dict[str, Any]:
    """Draw the share of recoveries of each method."""
    from perpend import plots
    from perpend.theory import spectral_limit

    inliers, ratios = _axes(results)
    D, c = results.values("trials", "D")[0], results.values("trials", "c")[0]
    border = np.array([spectral_limit(N, D, c) for N in inliers])
    return {
        "recovery": plots.heatmaps(
            {name: rates(results, name) for name in METHODS}, inliers, ratios, columns=3,
            xlabel="number of inliers N", ylabel="outlier ratio r",
            label="share of trials recovered",
            lines={"limit of spectral starts": (inliers, border)},
        )
    }  # fmt: skip


def numbers(results: Results) -> dict[str, Any]:
    """Return who recovers how many cells, and where others are ahead of `DPCP()`."""
    from perpend.structure import SURE

    shares = {name: rates(results, name) for name in METHODS}
    ours = results.rows("trials", method=OURS)
    return {
        "often": {name: int((share >= OFTEN).sum()) for name, share in shares.items()},
        "n_cells": shares[OURS].size,
        "by_ratio": {
            r: [share[i].mean() for share in shares.values()]
            for i, r in enumerate(_axes(results)[1])
        },
        "behind": [(name, *cell) for name in METHODS[1:] for cell in behind(results, name)],
        "wrong": sum(row["confidence"] >= SURE and row["error"] >= RECOVERED for row in ours),
        "limit": RECOVERED,
        "n_geometric": GEOMETRIC_SEEDS,
        "landscape": failing_steps(results),
        "angle": EqualAngles.mu0,
        **TEST,
    }


EXPERIMENT = Experiment(
    name="limits",
    title="Beyond the l1 limit",
    about="how many outliers are tolerated, beside methods with the codimension given",
    cases=cases,
    run=run,
    draw=draw,
    cost=cost,
)

"""The paper's Figure 3: the codimension found, and what the number of starts does to it.

D = 200, N = 1500 inliers. First c = 10 ... 20 with c' = 30 starts and 60 or 70 % outliers, then
c = 20 with c' from 5 to 120 starts.
"""

from typing import Any

import numpy as np

from perpend._typing import Array
from perpend.experiments._experiment import Case, Experiment, Results, Row, Settings, Tables
from perpend.experiments._text import from_template, percent
from perpend.experiments._trials import dpcp_psgm, fitted, n_outliers, paper_data, starts_rng

# How a rank is read off the published run's directions: the paper does not say.
PUBLISHED_GAP, PUBLISHED_FINE = "published, clearest gap", "published, s > 1e-6"
PUBLISHED_COARSE, PUBLISHED_LONG = "published, s > 0.1", "published, 1000 iterations"
OURS_TOLD, OURS = "DPCP(n_starts=c')", "DPCP()"
DRAWN = (PUBLISHED_FINE, PUBLISHED_GAP, OURS)
METHODS = (PUBLISHED_FINE, PUBLISHED_COARSE, PUBLISHED_GAP, PUBLISHED_LONG, OURS_TOLD, OURS)


def cases(settings: Settings) -> list[Case]:
    """Return the cases of both parts: the sweep over c and the one over the number of starts."""
    if settings.quick:
        D, N, codimensions, few, seeds = 60, 450, [3, 4, 5, 6], 9, settings.seeds or 2
        starts = [2, 4, 6, 7, 9, 18, 36]
    else:
        D, N, codimensions, few, seeds = 200, 1500, list(range(10, 21)), 30, settings.seeds or 10
        starts = [5, 10, 15, 20, 22, 24, 26, 30, 40, 60, 90, 120]
    ratios = (0.6, 0.7)
    shape = {"D": D, "N": N}
    sweep = [
        {"part": "sweep", **shape, "c": c, "r": r, "starts": few, "seed": seed}
        for seed in range(seeds)
        for r in ratios
        for c in codimensions
    ]
    effect = [
        {"part": "starts", **shape, "c": codimensions[-1], "r": r, "starts": k, "seed": seed}
        for seed in range(seeds)
        for r in ratios
        for k in starts
    ]
    return sweep + effect


def run(case: Case) -> Tables:
    """Fit the published algorithm and ours to one data set."""
    M = n_outliers(case["N"], case["r"])
    data = paper_data(case["D"], case["c"], case["N"], M, case["seed"])
    part = _sweep if case["part"] == "sweep" else _starts
    given = {name: value for name, value in case.items() if name != "part"}
    return {case["part"]: [{**given, **row} for row in part(case, data)]}


def _sweep(case: Case, data: Any) -> list[Row]:
    """Return the codimension by every rule."""
    from perpend import DPCP

    k, seed = case["starts"], case["seed"]
    published, _ = fitted(dpcp_psgm(k, seed), data.X)
    longer, _ = fitted(dpcp_psgm(k, seed, max_iter=1000), data.X)
    told, _ = fitted(DPCP(n_starts=k, random_state=starts_rng(seed)), data.X)
    free, _ = fitted(DPCP(random_state=starts_rng(seed)), data.X)
    s = published.singular_values_ / published.singular_values_[0]
    found = {
        PUBLISHED_FINE: (int(np.sum(s > 1e-6)), None),
        PUBLISHED_COARSE: (int(np.sum(s > 0.1)), None),
        PUBLISHED_GAP: (published.codimension_, published.confidence_),
        PUBLISHED_LONG: (longer.codimension_, longer.confidence_),
        OURS_TOLD: (told.codimension_, told.confidence_),
        OURS: (free.codimension_, free.confidence_),
    }
    return [
        {"method": name, "estimate": int(estimate), "confidence": confidence}
        for name, (estimate, confidence) in found.items()
    ]


def _starts(case: Case, data: Any) -> list[Row]:
    """Return what the directions of one number of starts look like."""
    from perpend import DPCP

    k, c, seed = case["starts"], case["c"], case["seed"]
    published, seconds = fitted(dpcp_psgm(k, seed, max_iter=1000), data.X)
    ours, _ = fitted(DPCP(n_starts=k, random_state=starts_rng(seed)), data.X)
    s = published.singular_values_ / published.singular_values_[0]
    inside = np.linalg.norm(published.directions_ @ data.components.T, axis=1)
    return [
        {
            "estimate": int(published.codimension_),
            "ours": int(ours.codimension_),
            "confidence": float(ours.confidence_),
            "last_normal": float(s[min(k, c) - 1]),
            "next": float(s[c]) if k > c else None,
            "worst_sine": float(np.max(inside)),
            "seconds": seconds,
        }
    ]


def cost(case: Case) -> float:
    """Return the relative time: rows, and starts beyond those of the first part."""
    return float((1 + case["starts"] / 30) / (1 - case["r"]))


# -- looking at the results --------------------------------------------------------------------


def right(results: Results, method: str, r: float) -> Array:
    """Return for each trial of the sweep whether the codimension is right."""
    where = {"method": method, "r": r}
    return results.column("sweep", "estimate", **where) == results.column("sweep", "c", **where)


def draw(results: Results) -> dict[str, Any]:
    """Draw estimated over true codimensions, and the singular values over the starts."""
    from perpend import plots

    panels = {}
    for r in results.values("sweep", "r"):
        for method in DRAWN:
            where = {"method": method, "r": r}
            panels[f"{method}, r = {r}"] = (
                results.column("sweep", "c", **where),
                results.column("sweep", "estimate", **where),
            )
    starts = results.values("starts", "starts")
    values: dict[str, Any] = {}
    for r in results.values("starts", "r"):
        last = [_quartiles(results, "last_normal", r, k) for k in starts]
        after = [_quartiles(results, "next", r, k) for k in starts]
        values[f"{percent(r)} outliers"] = {
            "last normal": _band(starts, last),
            "next": _band(starts, after),
        }
    return {
        "codimension": plots.estimates_against_truth(panels, columns=len(DRAWN)),
        "starts": plots.curves(
            values, xlabel="number of starts c'", ylabel="singular value / largest", log_x=True,
            log_y=True, ylim=(1e-16, 2.0),
        ),
    }  # fmt: skip


def _quartiles(results: Results, name: str, r: float, k: int) -> Array:
    column = results.column("starts", name, r=r, starts=k)
    if np.all(np.isnan(column)):
        return np.full(3, np.nan)
    return np.maximum(np.nanquantile(column, [0.25, 0.5, 0.75]), 1e-17)


def _band(starts: list[int], quartiles: list[Array]) -> tuple[Array, ...]:
    low, middle, high = np.transpose(quartiles)
    seen = ~np.isnan(middle)
    return np.array(starts)[seen], middle[seen], low[seen], high[seen]


def numbers(results: Results) -> dict[str, Any]:
    """Return how often each rule is right, who is wrong, and what more starts bring."""
    ratios = results.values("sweep", "r")
    without_tolerance = {PUBLISHED_GAP, PUBLISHED_LONG, OURS_TOLD, OURS}
    wrong = [
        (row["r"], row["c"], row["method"], row["estimate"])
        for row in results.rows("sweep")
        if row["method"] in without_tolerance and row["estimate"] != row["c"]
    ]
    return {
        "right": {m: {r: np.mean(right(results, m, r)) for r in ratios} for m in METHODS},
        "GAP": PUBLISHED_GAP,
        "OURS": OURS,
        "wrong": sorted(wrong),
        "few": [row for row in results.rows("starts") if row["starts"] < row["c"]],
    }


EXPERIMENT = Experiment(
    name="codimension",
    title="The codimension found (Figure 3)",
    about="estimated against true codimension, and the effect of the number of starts",
    cases=cases,
    run=run,
    draw=draw,
    describe=from_template(__file__, numbers),
    cost=cost,
)

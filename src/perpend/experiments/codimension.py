"""The paper's Figure 3: the codimension found, and what the number of starts does to it.

D = 200, N = 1500 inliers. First c = 10 ... 20 with c' = 30 starts and 60 or 70 % outliers, then
c = 20 with c' from 5 to 120 starts.
"""

from typing import Any

import numpy as np

from perpend._typing import Array
from perpend.experiments._experiment import Case, Experiment, Results, Row, Settings, Tables
from perpend.experiments._trials import (
    dpcp_psgm,
    fitted,
    n_outliers,
    paper_data,
    percent,
    shares,
    starts_rng,
)

# How a rank is read off the published run's directions: the paper does not say.
PUBLISHED_GAP, PUBLISHED_FINE = "published, clearest gap", "published, s > 1e-6"
PUBLISHED_COARSE, PUBLISHED_LONG = "published, s > 0.1", "published, 1000 iterations"
OURS_STARTS, OURS = "DPCP(n_starts=c')", "DPCP()"
DRAWN = (PUBLISHED_FINE, PUBLISHED_GAP, OURS)
METHODS = (PUBLISHED_FINE, PUBLISHED_COARSE, PUBLISHED_GAP, PUBLISHED_LONG, OURS_STARTS, OURS)
RATIOS = (0.6, 0.7)


def cases(settings: Settings) -> list[Case]:
    """Return the cases of both parts: the sweep over c and the one over the number of starts."""
    if settings.quick:
        D, N, codimensions, few, seeds = 60, 450, [3, 4, 5, 6], 9, settings.seeds or 2
        starts = [2, 4, 6, 7, 9, 18, 36]
    else:
        D, N, codimensions, few, seeds = 200, 1500, list(range(10, 21)), 30, settings.seeds or 10
        starts = [5, 10, 15, 20, 22, 24, 26, 30, 40, 60, 90, 120]
    sweep, effect = [(c, few) for c in codimensions], [(codimensions[-1], k) for k in starts]
    return [
        {"part": part, "D": D, "N": N, "c": c, "r": r, "starts": k, "seed": seed}
        for part, pairs in {"sweep": sweep, "starts": effect}.items()
        for seed in range(seeds)
        for r in RATIOS
        for c, k in pairs
    ]


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
    models = {
        PUBLISHED_GAP: dpcp_psgm(k, seed),
        PUBLISHED_LONG: dpcp_psgm(k, seed, max_iter=1000),
        OURS_STARTS: DPCP(n_starts=k, random_state=starts_rng(seed)),
        OURS: DPCP(random_state=starts_rng(seed)),
    }
    models = {name: fitted(model, data.X)[0] for name, model in models.items()}
    found = {name: (model.codimension_, model.confidence_) for name, model in models.items()}
    s = models[PUBLISHED_GAP].singular_values_
    for name, tolerance in {PUBLISHED_FINE: 1e-6, PUBLISHED_COARSE: 0.1}.items():
        found[name] = np.sum(s > tolerance * s[0]), None
    return [
        {"method": name, "estimate": int(found[name][0]), "confidence": found[name][1]}
        for name in METHODS
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


# -- results ---------------------------------------------------------------------------------------


def right(results: Results, method: str, r: float) -> Array:
    """Return for each trial of the sweep whether the codimension is right."""
    where = {"method": method, "r": r}
    return results.column("sweep", "estimate", **where) == results.column("sweep", "c", **where)


def summary(results: Results) -> list[dict[str, str]]:
    """Return how often each rule is right, by the share of outliers."""
    return shares(results, "sweep", ("method",), "r", right=lambda row: row["estimate"] == row["c"])


def draw(results: Results) -> dict[str, Any]:
    """Draw estimated over true codimensions, and the singular values over the starts."""
    from perpend import plots

    panels, values = {}, {}
    for r in RATIOS:
        for method in DRAWN:
            where = {"method": method, "r": r}
            x, y = (results.column("sweep", name, **where) for name in ("c", "estimate"))
            panels[f"{method}, r = {r}"] = x, y
        values[f"{percent(r)} outliers"] = {
            "last normal": _band(results, "last_normal", r),
            "next": _band(results, "next", r),
        }
    return {
        "codimension": plots.estimates_against_truth(panels, columns=len(DRAWN)),
        "starts": plots.curves(
            values, xlabel="number of starts c'", ylabel="singular value / largest", log_x=True,
            log_y=True, ylim=(1e-16, 2.0),
        ),
    }  # fmt: skip


def _band(results: Results, name: str, r: float) -> tuple[Array, ...]:
    """Return the numbers of starts for which there are values; their median and quartiles."""
    found = []
    for k in results.values("starts", "starts"):
        column = results.column("starts", name, r=r, starts=k)
        if not np.all(np.isnan(column)):
            found.append((k, *np.maximum(np.nanquantile(column, [0.5, 0.25, 0.75]), 1e-17)))
    return tuple(np.transpose(found))


EXPERIMENT = Experiment(
    name="codimension",
    title="The codimension found (Figure 3)",
    about="estimated against true codimension, and the effect of the number of starts",
    cases=cases,
    run=run,
    draw=draw,
    summary=summary,
    cost=cost,
)

"""How fast the descents reach the complement: all step rules, and Theorem 1's bound beside them.

First the paper's setting of Figure 3, where no theorem applies: the step rules from the same random
starts, with RSGM and DPCP-IRLS, told the codimension, for comparison. Then settings where Theorem 1
applies: plain PSGM with the theorem's own steps, against the angle that it promises.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.experiments import _convergence_page as page
from perpend.experiments._convergence_figures import draw
from perpend.experiments._experiment import Case, Experiment, Row, Settings, Tables
from perpend.experiments._text import from_template
from perpend.experiments._trials import n_outliers, paper_data, starts_rng

if TYPE_CHECKING:
    from perpend.datasets import SubspaceData
    from perpend.experiments._recording import Path

TOL = 1e-12  # so small that the whole way down is seen; DPCP's own default is 1e-9
MAX_ITER, MAX_ITER_IRLS = 1000, 100
ITERATIONS = np.unique(np.r_[0:60:3, 60:200:10, 200:1001:40])  # at which the angles are stored
LONGER = 120  # a flat phase for the geometric rule that is twice as long as the library's
EASIER = 0.01  # a tenth of the decrease that the library's own rule asks for
N_PLATEAUS = 20
ROUNDING = 1e-9  # relative; an angle that much above the bound is none


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
    return _rules(case) if case["part"] == "rules" else _bound(case)


def cost(case: Case) -> float:
    """Return the relative time: rows times features times starts."""
    n = case["N"] / (1 - case["r"]) if case["part"] == "rules" else (case["N"] + case["M"]) / 3
    return float(n * case["D"] * case["k"])


# -- the step rules ----------------------------------------------------------------------------


class _Watched(NamedTuple):
    paths: list["Path"]
    rest: Array | None  # (k,) which starts came to rest before the iterations ran out
    spread: float | None  # least over largest singular value of the ends in the complement


def _rules(case: Case) -> Tables:
    """Run every rule from the same starts, and the methods that are told the codimension."""
    M = n_outliers(case["N"], case["r"])
    data = paper_data(case["D"], case["c"], case["N"], M, case["seed"])
    key = {name: case[name] for name in ("D", "c", "N", "k", "r", "seed")}
    paths: list[Row] = []
    ends: list[Row] = []
    for method, watched in {**_from_starts(case, data), **_told(case, data)}.items():
        paths += [{**key, "method": method, **row} for row in _path_rows(watched.paths)]
        ends.append({**key, "method": method, **_end(watched)})
    return {"paths": paths, "ends": ends, "conditions": [{**key, **_conditions(case, data)}]}


def _from_starts(case: Case, data: "SubspaceData") -> dict[str, _Watched]:
    """Return the paths of all starts, which of them rest, and the spread of their ends."""
    from perpend.experiments._recording import watch_psgm
    from perpend.geometry import random_directions
    from perpend.rows import as_rows
    from perpend.solvers import AutoStep, GeometricStep
    from perpend.solvers.steps import STEP_RULES
    from perpend.theory import start_tangents

    rows, normals = as_rows(data.X), data.normals.T
    B0 = random_directions(starts_rng(case["seed"]), case["D"], case["k"])
    rules: dict[str, Any] = {name: rule() for name, rule in STEP_RULES.items()}
    rules[page.LONGER] = GeometricStep(K0=LONGER)
    rules[page.EASIER] = AutoStep(armijo=EASIER)
    found = {}
    for name, rule in rules.items():
        end, paths = watch_psgm(
            rows,
            B0,
            lambda B: start_tangents(B, normals),
            rule=rule,
            max_iter=MAX_ITER,
            tol=TOL,
        )
        s = np.linalg.svd(data.normals @ end.B, compute_uv=False)
        found[name] = _Watched(paths, end.converged, float(s[-1] / s[0]))
    return found


def _told(case: Case, data: "SubspaceData") -> dict[str, _Watched]:
    """Return the one path of each method that moves all normals together."""
    from perpend.experiments._recording import watch_irls, watch_rsgm
    from perpend.methods.rsgm import STEPS

    def tangent(V: Array) -> Array:
        """Return tan of the largest principal angle between the frame and the complement."""
        sine = np.linalg.svd(data.components @ V, compute_uv=False)[0]
        cosine = np.linalg.svd(data.normals @ V, compute_uv=False)[-1]
        return np.array([sine / max(cosine, np.finfo(float).tiny)])

    c = case["c"]
    paths = {
        f"RSGM, {name}": watch_rsgm(data.X, c, tangent, rule=rule, max_iter=MAX_ITER, tol=TOL)
        for name, rule in STEPS.items()
    }
    paths["DPCP-IRLS"] = watch_irls(data.X, c, tangent, max_iter=MAX_ITER_IRLS, tol=TOL)
    return {name: _Watched([path], None, None) for name, path in paths.items()}


def _path_rows(paths: list["Path"]) -> list[Row]:
    """Return least, middle and largest angle over the starts, at the stored iterations."""
    from perpend.experiments._recording import at_iterations

    last = max(len(path.tangents) for path in paths) - 1
    shown = np.append(ITERATIONS[last > ITERATIONS], last)
    tangents = at_iterations(paths, shown)
    values = zip(shown, tangents.min(0), np.median(tangents, axis=0), tangents.max(0), strict=True)
    return [
        {"iteration": k, "least": low, "median": middle, "largest": high}
        for k, low, middle, high in values
    ]


def _end(watched: _Watched) -> Row:
    """Return where a method ended, and what it took to get there."""
    from perpend.experiments._recording import first_below

    paths = watched.paths
    ends = np.array([path.tangents[-1] for path in paths])
    iterations, scans = first_below(paths, page.ARRIVED)
    arrived = np.isfinite(iterations)
    return {
        "arrived": np.mean(arrived),
        "resting_elsewhere": None if watched.rest is None else np.mean(watched.rest & ~arrived),
        "median_end": np.median(ends),
        "largest_end": np.max(ends),
        "iterations": max(len(path.tangents) for path in paths) - 1,
        "median_iterations_to": np.median(iterations[arrived]) if arrived.any() else None,
        "slowest_iterations_to": np.max(iterations) if arrived.all() else None,
        "slowest_scans_to": np.max(scans) if arrived.all() else None,
        "spread": watched.spread,
    }


def _conditions(case: Case, data: "SubspaceData") -> Row:
    """Return what Theorem 1 says here; estimates flatter it, if anything."""
    from perpend.geometry import random_directions
    from perpend.theory import start_tangents, statistics, theorem1

    B0 = random_directions(starts_rng(case["seed"]), case["D"], case["k"])
    X_in, X_out = data.X[data.y == 1], data.X[data.y == -1]
    found = statistics(
        X_in, X_out, data.components.T, n_starts=10, n_samples=500, random_state=case["seed"]
    )
    result = theorem1(found.estimated, start_tangents(B0, data.normals.T))
    return {
        "pull": result.pull,
        "push": result.push,
        "cone": result.cone,
        "dominates": result.dominates,
        "inside": np.mean(result.inside),
        "nearest_start": np.min(result.tangents),
    }


# -- the theorem -------------------------------------------------------------------------------


def _bound(case: Case) -> Tables:
    """Run plain PSGM with the steps that the theorem asks for, and compare with its promise."""
    from perpend.experiments._recording import at_iterations, watch_psgm
    from perpend.geometry import random_directions
    from perpend.rows import as_rows
    from perpend.solvers import AutoStep
    from perpend.theory import discrete_psgm, start_tangents, statistics, theorem1

    data = paper_data(case["D"], case["c"], case["N"], case["M"], case["seed"])
    X_in, X_out, normals = data.X[data.y == 1], data.X[data.y == -1], data.normals.T
    found = statistics(X_in, X_out, data.components.T, random_state=case["seed"])
    B0 = random_directions(starts_rng(case["seed"]), case["D"], case["k"])
    tangents = start_tangents(B0, normals)
    certified = theorem1(found.certified, tangents).dominates
    values = found.certified if certified else found.estimated
    everyone = theorem1(values, tangents)
    used = tangents < page.INSIDE * everyone.cone
    key = {name: case[name] for name in ("D", "c", "N", "M", "k", "seed")}
    row = {
        **key,
        "certified": certified,
        "dominates": everyone.dominates,
        "cone": everyone.cone,
        "inside": np.sum(everyone.inside),
        "used": np.sum(used),
    }
    if not (everyone.dominates and used.any()):
        nothing = dict.fromkeys(("mu0", "K0", "K_star", "steps", "violations", "closest", "end"))
        return {"theorem1": [{**row, **nothing}]}

    conditions = theorem1(values, tangents[used])
    schedule = conditions.schedule()
    n_steps = schedule.K0 + N_PLATEAUS * schedule.K_star
    way = discrete_psgm(X_in, X_out, B0[:, used], normals, steps=schedule.steps(n_steps)).tangents
    bound = conditions.angle_bound(schedule, np.arange(n_steps + 1))
    row |= {
        "mu0": schedule.mu0,
        "K0": schedule.K0,
        "K_star": schedule.K_star,
        "steps": n_steps,
        "violations": np.sum(way > bound * (1 + ROUNDING)),
        "closest": np.max(way[1:] / bound[1:]),
        "end": np.max(way[-1]),
    }
    _, paths = watch_psgm(
        as_rows(data.X),
        B0[:, used],
        lambda B: start_tangents(B, normals),
        rule=AutoStep(),
        max_iter=MAX_ITER,
        tol=TOL,
    )
    shown = np.unique(np.linspace(0, n_steps, 81).astype(int))
    auto = at_iterations(paths, shown).max(axis=0)
    drawn = [
        {**key, "iteration": k, "bound": np.max(bound[k]), "largest": np.max(way[k]), "auto": a}
        for k, a in zip(shown, auto, strict=True)
    ]
    return {"theorem1": [row], "bound": drawn}


EXPERIMENT = Experiment(
    name="convergence",
    title="How fast the descents converge",
    about="angle to the complement over iterations, all step rules, Theorem 1's bound",
    cases=cases,
    run=run,
    draw=draw,
    describe=from_template(__file__, page.numbers),
    cost=cost,
)

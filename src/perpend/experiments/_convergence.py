"""What the experiment `convergence` computes: watched descents, and Theorem 1's bound."""

from typing import Any, NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.experiments._experiment import Case, Row, Tables
from perpend.experiments._recording import Path, at_iterations, first_below, watch, watch_irls
from perpend.experiments._trials import Problem, paper_problem, violations
from perpend.experiments.convergence import ARRIVED, EASIER, INSIDE, LONGER
from perpend.methods.rsgm import STEPS
from perpend.rows import as_rows, row_span
from perpend.solvers import AutoStep, GeometricStep, psgm, riemannian, spectral_starts
from perpend.solvers.steps import STEP_RULES
from perpend.theory import discrete_psgm, start_tangents, statistics, theorem1

TOL = 1e-12  # so small that the whole way down is seen; DPCP's own default is 1e-9
CAPS: dict[str, Any] = {"max_iter": 1000, "tol": TOL}
MAX_ITER_IRLS = 100
ITERATIONS = np.unique(np.r_[0:60:3, 60:200:10, 200:1001:40])  # at which the angles are stored
N_PLATEAUS = 20


# -- the step rules --------------------------------------------------------------------------------


class _Watched(NamedTuple):
    paths: list[Path]
    converged: Array | None = None  # (k,) which starts did before the iterations ran out
    spread: float | None = None  # least over largest singular value of the ends in the complement


def rules(case: Case) -> Tables:
    """Run every rule from the same starts, and the methods with the codimension given."""
    given = paper_problem(case, case["k"])
    key = {name: case[name] for name in ("D", "c", "N", "k", "r", "seed")}
    paths: list[Row] = []
    ends: list[Row] = []
    for method, watched in {**_from_starts(given), **_frames(given)}.items():
        paths += [{**key, "method": method, **row} for row in _path_rows(watched.paths)]
        ends.append({**key, "method": method, **_end(watched)})
    conditions = {**key, **_conditions(given, case["seed"])}
    return {"paths": paths, "ends": ends, "conditions": [conditions]}


def _from_starts(given: Problem) -> dict[str, _Watched]:
    """Return the paths of all starts, which of them converge, and the spread of their ends."""
    rules: dict[str, Any] = {name: rule() for name, rule in STEP_RULES.items()}
    rules[LONGER] = GeometricStep(K0=120)  # a flat phase twice as long as the library's
    rules[EASIER] = AutoStep(armijo=0.01)  # a tenth of the decrease that the library requires
    found = {}
    for name, rule in rules.items():
        end, paths = _watch_starts(given, given.B0, rule)
        s = np.linalg.svd(given.data.normals @ end.B, compute_uv=False)
        found[name] = _Watched(paths, end.converged, float(s[-1] / s[0]))
    return found


def _watch_starts(given: Problem, B0: Array, rule: Any) -> tuple[Any, list[Path]]:
    def tangents(B: Array) -> Array:
        return start_tangents(B, given.normals)

    return watch(psgm, given.data.X, B0, tangents, rule=rule, **CAPS)


def _frames(given: Problem) -> dict[str, _Watched]:
    """Return the one path of each method that moves all normals together."""
    X, c = given.data.X, given.normals.shape[1]

    def tangent(V: Array) -> Array:
        """Return tan of the largest principal angle between the frame and the complement."""
        sine = np.linalg.svd(given.data.components @ V, compute_uv=False)[0]
        cosine = np.linalg.svd(given.data.normals @ V, compute_uv=False)[-1]
        return np.array([sine / max(cosine, np.finfo(float).tiny)])

    V0 = spectral_starts(row_span(as_rows(X)), c)
    found = {
        f"RSGM, {name}": _Watched(watch(riemannian, X, V0, tangent, rule=STEPS[name], **CAPS)[1])
        for name in ("mbls", "decay")
    }
    path = watch_irls(X, c, tangent, max_iter=MAX_ITER_IRLS, tol=TOL)
    return {**found, "DPCP-IRLS": _Watched([path])}


def _path_rows(paths: list[Path]) -> list[Row]:
    """Return least, middle and largest angle over the starts, at the stored iterations."""
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
    paths, converged = watched.paths, watched.converged
    ends = np.array([path.tangents[-1] for path in paths])
    iterations, scans = first_below(paths, ARRIVED)
    arrived = np.isfinite(iterations)
    return {
        "arrived": np.mean(arrived),
        "converged_elsewhere": None if converged is None else np.mean(converged & ~arrived),
        "median_end": np.median(ends),
        "largest_end": np.max(ends),
        "iterations": max(len(path.tangents) for path in paths) - 1,
        "median_iterations_to": np.median(iterations[arrived]) if arrived.any() else None,
        "slowest_iterations_to": np.max(iterations) if arrived.all() else None,
        "slowest_scans_to": np.max(scans) if arrived.all() else None,
        "spread": watched.spread,
    }


def _conditions(given: Problem, seed: int) -> Row:
    """Return what Theorem 1 says here; estimates flatter it, if anything."""
    found = statistics(
        *(given.X_in, given.X_out, given.data.components.T),
        n_starts=10,
        n_samples=500,
        random_state=seed,
    )
    result = theorem1(found.estimated, start_tangents(given.B0, given.normals))
    return {
        "pull": result.pull,
        "push": result.push,
        "cone": result.cone,
        "dominates": result.dominates,
        "inside": np.mean(result.inside),
        "nearest_start": np.min(result.tangents),
    }


# -- the theorem -----------------------------------------------------------------------------------


def bound(case: Case) -> Tables:
    """Run plain PSGM with the steps that the theorem requires, and compare with its promise."""
    given = paper_problem(case, case["k"])
    X_in, X_out, normals = given.X_in, given.X_out, given.normals
    found = statistics(X_in, X_out, given.data.components.T, random_state=case["seed"])
    tangents = start_tangents(given.B0, normals)
    certified = theorem1(found.certified, tangents).dominates
    values = found.certified if certified else found.estimated
    everyone = theorem1(values, tangents)
    used = tangents < INSIDE * everyone.cone
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

    B0 = given.B0[:, used]
    conditions = theorem1(values, tangents[used])
    schedule = conditions.schedule()
    n_steps = schedule.K0 + N_PLATEAUS * schedule.K_star
    way = discrete_psgm(X_in, X_out, B0, normals, steps=schedule.steps(n_steps)).tangents
    bound = conditions.angle_bound(schedule, np.arange(n_steps + 1))
    row |= {
        "mu0": schedule.mu0,
        "K0": schedule.K0,
        "K_star": schedule.K_star,
        "steps": n_steps,
        "violations": violations(way, bound),
        "closest": np.max(way[1:] / bound[1:]),
        "end": np.max(way[-1]),
    }
    _, paths = _watch_starts(given, B0, AutoStep())
    shown = np.unique(np.linspace(0, n_steps, 81).astype(int))
    auto = at_iterations(paths, shown).max(axis=0)
    drawn = [
        {**key, "iteration": k, "bound": np.max(bound[k]), "largest": np.max(way[k]), "auto": a}
        for k, a in zip(shown, auto, strict=True)
    ]
    return {"theorem1": [row], "bound": drawn}

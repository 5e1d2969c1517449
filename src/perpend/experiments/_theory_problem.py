"""Checks of `theory` on one problem: N inliers, M outliers, k random starts.

One run of plain PSGM, with the steps that Theorem 1 requires where it applies, serves all checks
along the way. What the method itself achieves is measured apart: by `psgm` with the library's own
step rule from the same starts, and by `DPCP()`.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from perpend import DPCP, theory
from perpend._typing import Array
from perpend.experiments._experiment import Case, Row
from perpend.experiments._theory_limits import C1, C2, EPS7, NUMERICAL_RANK
from perpend.experiments._trials import RECOVERED, measured, paper_problem, starts_rng, violations
from perpend.rows import as_rows
from perpend.solvers import AutoStep, psgm

if TYPE_CHECKING:
    from perpend.datasets import SubspaceData

BETA, N_PLATEAUS = 0.5, 10
INSIDE = 0.7  # of the cone: for wider starts the flat phase need not be long enough
MOST_FLAT, MOST_PLATEAU, MOST_STEPS = 600, 300, 1500
MOST_WORK = 15_000_000  # rows times steps: long runs over many rows are cut short
LENGTHS = (1, 10, 100)  # at which the identity is checked, beside the end
CANCELLED = 1e-5  # what is left of a difference, relative to its terms
N_DIRECTIONS = 500  # at which the outliers' error is measured, before the climbs
SHORT_STEPS = 0.02  # of mu': steps for which the bound on Delta is finite
ARRIVED, SPREAD = 1e-6, 1e-3  # tan of the angle; least over largest singular value


class _Given(NamedTuple):
    data: "SubspaceData"
    X_in: Array
    X_out: Array
    normals: Array  # (D, c)
    B0: Array  # (D, k)
    found: theory.Statistics
    estimated: theory.Theorem1
    certified: theory.Theorem1


def problem(case: Case) -> list[Row]:
    """Return one row: every condition, every bound, and what happened."""
    given = _given(case)
    schedule = _schedule(given)
    n_steps = min(schedule.K0 + N_PLATEAUS * schedule.K_star, MOST_STEPS)
    n_steps = min(n_steps, MOST_WORK // len(given.data.X))
    run = _run(given, schedule.steps(n_steps))
    return [
        {
            "k": given.B0.shape[1],
            "steps": n_steps,
            **_theorem1(given, schedule, run),
            **_identity(given, [run, *(_run(given, schedule.steps(K)) for K in LENGTHS)]),
            **_errors(given, run),
            **_ranks(given, run),
            **_delta(given),
            **_theorem7(given),
            **_corrected(given),
            **_outcome(case, given),
        }
    ]


def _given(case: Case) -> _Given:
    drawn = paper_problem(case, min(2 * case["c"] + 2, case["D"]))
    found = theory.statistics(
        *(drawn.X_in, drawn.X_out, drawn.data.components.T),
        n_starts=10,
        n_samples=500,
        random_state=case["seed"],
    )
    tangents = theory.start_tangents(drawn.B0, drawn.normals)
    both = theory.theorem1(found.estimated, tangents), theory.theorem1(found.certified, tangents)
    return _Given(*drawn, found, *both)


def _run(given: _Given, steps: Array) -> theory.DiscreteRun:
    return theory.discrete_psgm(given.X_in, given.X_out, given.B0, given.normals, steps=steps)


# -- Theorem 1 and Assumption 1 --------------------------------------------------------------------


def _schedule(given: _Given) -> theory.Schedule:
    """Return the theorem's steps where there are any, and longer ones that resemble them if not.

    The certified mu' is the smaller one, so it suits both; and mu0 f stays below 1/2, or a step
    would turn the iterate round (mu' knows only c_X,min, which may be tiny). Where the theorem has
    no K0 and K*, its formulas without eta serve, twice as long; both are capped, so a start may be
    left uncovered.
    """
    e = given.estimated
    v = given.found.certified
    most = v.n_inliers * v.c_x_max + v.n_outliers * v.c_o_max  # of the objective f
    mu0 = min(given.certified.step_bound, 0.5 / most)
    K0 = 2 * float(np.max(e.tangents)) / (mu0 * e.pull)
    K_star = 2 / (math.sqrt(2) * BETA * mu0 * e.pull)
    for conditions in (e, given.certified):
        flat = conditions.least_flat(mu0)[conditions.tangents < INSIDE * conditions.cone]
        if conditions.pull > conditions.push and flat.size:
            K0 = max(K0, float(np.max(flat)))
            K_star = max(K_star, conditions.least_plateau(BETA))
    return theory.Schedule(
        mu0, BETA, math.ceil(min(K0, MOST_FLAT)), max(1, math.ceil(min(K_star, MOST_PLATEAU)))
    )


def _theorem1(given: _Given, schedule: theory.Schedule, run: theory.DiscreteRun) -> Row:
    """Compare the angles of the starts that the theorem covers, at these steps, with its bound."""
    row: Row = {
        "inside": np.mean(given.estimated.inside),
        "inside_predicted": theory.cone_probability(given.found.estimated),
    }
    for suffix, conditions in (("", given.estimated), ("_certified", given.certified)):
        covered = (
            conditions.inside
            & (conditions.least_flat(schedule.mu0) <= schedule.K0)
            & (conditions.least_plateau(BETA) <= schedule.K_star)
        )
        bound = conditions.angle_bound(schedule, np.arange(len(run.tangents)))[:, covered]
        way = run.tangents[:, covered]
        ratio = way[1:] / bound[1:]
        row |= {
            f"cone{suffix}": conditions.cone,
            f"dominates{suffix}": conditions.pull > conditions.push,
            f"holds{suffix}": conditions.holds,
            f"covered{suffix}": np.sum(covered),
            f"violations{suffix}": violations(way, bound),
            f"closest{suffix}": np.max(ratio) if ratio.size else None,
        }
    return row


# -- finitely many rows ----------------------------------------------------------------------------


def _identity(given: _Given, runs: list[theory.DiscreteRun]) -> Row:
    """Return how far normalise(P b^K) is from normalise(P (b^0 - delta^K)), over all starts and K.

    Where P (b^0 - delta) is the tiny difference of large numbers no digits are left to compare.
    """
    worst, cancelled = 0.0, 0
    for run in runs:
        reached = theory.projected_starts(run.B, given.normals)
        implied = theory.projected_starts(given.B0, given.normals, run.delta)
        deviation = np.max(np.abs(reached - implied), axis=0)
        left = np.linalg.norm(given.data.normals @ (given.B0 - run.delta), axis=0)
        clear = left > CANCELLED * (1 + np.linalg.norm(run.delta, axis=0))
        worst = max(worst, float(np.max(deviation[clear], initial=0.0)))
        cancelled += int(np.sum(~clear))
    return {"identity": worst, "cancelled": cancelled}


def _errors(given: _Given, run: theory.DiscreteRun) -> Row:
    """Return the largest ||e_O|| on the way, and its bounds: ours and the one printed."""
    v = given.found.estimated
    return {
        "error": np.max(run.error),
        "error_bound": theory.outlier_error_bound(given.found.certified),
        "error_bound_estimated": theory.outlier_error_bound(v),
        "error_bound_printed": v.eta_o + v.c_o_max - theory.average_height(v.dimension),
    }


def _ranks(given: _Given, run: theory.DiscreteRun) -> Row:
    """Return Lemma 6, the condition that serves its purpose, and the ranks they are about.

    For all starts, and for the first c of them: the fewest that can span, which favours the lemma.
    """
    c = given.normals.shape[1]
    row: Row = {}
    for suffix, k in (("", given.B0.shape[1]), ("_few", c)):
        B0, delta = given.B0[:, :k], run.delta[:, :k]
        full, spans = theory.lemma6(B0, delta), theory.spans_complement(B0, delta, given.normals)
        s = np.linalg.svd(B0 - delta, compute_uv=False)
        ends = theory.projected_starts(run.B[:, :k], given.normals)
        reached = np.linalg.svd(ends, compute_uv=False)
        row |= {
            f"start_singular{suffix}": full.singular_value,
            f"delta_norm{suffix}": full.perturbation,
            f"lemma6{suffix}": full.holds,
            f"full_rank{suffix}": s[-1] > NUMERICAL_RANK * s[0],
            f"projected_singular{suffix}": spans.singular_value,
            f"projected_delta{suffix}": spans.perturbation,
            f"corrected{suffix}": spans.holds,
            f"reached{suffix}": reached[c - 1] / reached[0],
        }
    return row


def _delta(given: _Given) -> Row:
    """Return ||Delta|| and its bound at steps so short that the bound is finite."""
    schedule = theory.Schedule(SHORT_STEPS * given.certified.step_bound, BETA, K0=20, K_star=5)
    run = _run(given, schedule.steps(220))
    k = given.B0.shape[1]
    return {
        "short_delta": np.linalg.norm(run.delta, 2),
        "short_delta_bound": theory.delta_bound(given.found.certified, schedule, k),
        "short_delta_bound_estimated": theory.delta_bound(given.found.estimated, schedule, k),
    }


def _theorem7(given: _Given) -> Row:
    """Return both sides for c starts and the best steps, which favours the theorem.

    Without Assumption 1 for these starts there is nothing to evaluate.
    """
    D, c = given.normals.shape
    conditions = theory.theorem1(given.found.estimated, given.estimated.tangents[:c])
    left = theory.start_singular_bound(c, D, C1=C1, eps=EPS7)
    row: Row = {"left": left, "assumption1_few": conditions.holds}
    if not conditions.holds:
        return row | {"right": None, "kappa": None, "theorem7": False, "favourable": False}
    schedule = theory.best_schedule(given.found.estimated, conditions)
    result = theory.theorem7(given.found.estimated, schedule, c, C1=C1, C2=C2, eps=EPS7)
    return row | {
        "right": result.right,
        "kappa": result.growth.kappa,
        "theorem7": result.holds,
        "favourable": result.right < 1,  # C1 = eps = 0: no constants could be better
    }


def _corrected(given: _Given) -> Row:
    """Return both sides of the corrected theorem, for all starts, the best steps, and one half."""
    v, k = given.found.estimated, given.B0.shape[1]
    left = theory.projected_singular_bound(k, v.codimension, v.n_features, failure=0.5)
    across = theory.complement_error(
        given.X_out, given.normals, n_samples=N_DIRECTIONS, random_state=0
    )
    row: Row = {"corrected_left": left, "complement_error": across.value}
    if not given.estimated.holds:
        return row | {"corrected_right": None, "theorem7_corrected": False}
    schedule = theory.best_schedule(v, given.estimated)
    result = theory.corrected_theorem7(v, schedule, k, failure=0.5, error=across.value)
    return row | {"corrected_right": result.right, "theorem7_corrected": result.holds}


# -- the method ------------------------------------------------------------------------------------


def _outcome(case: Case, given: _Given) -> Row:
    """Return what descents from the same starts achieve, and what `DPCP()` does."""
    end = psgm(as_rows(given.data.X), given.B0, rule=AutoStep(), max_iter=1000, tol=1e-9)
    arrived = theory.start_tangents(end.B, given.normals) < ARRIVED
    s = np.linalg.svd(given.data.normals @ end.B, compute_uv=False)
    model = measured(DPCP(random_state=starts_rng(case["seed"])), given.data)
    promised = given.estimated.inside & (given.estimated.pull > given.estimated.push)
    return {
        "promised": np.sum(promised),
        "promised_arrived": np.sum(promised & arrived),
        "arrived": np.sum(arrived),
        "descents": bool(arrived.all()) and s[-1] > SPREAD * s[0],
        "codimension": model["codimension"],
        "dpcp": model["error"] < RECOVERED,
    }

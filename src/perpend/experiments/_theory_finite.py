"""Problems of `theory` with so few outliers that the corrected Theorem 7 holds, and others.

The condition is evaluated with certified statistics, so what holds is proven for these rows. Then
plain PSGM runs with the steps of the theorem from many draws of k starts.
"""

import numpy as np

from perpend import theory
from perpend.experiments._experiment import Case, Row
from perpend.experiments._trials import paper_problem

FAILURE = 0.05  # of the bound on the starts, and once more that one is wider than supposed
LEAST_SIZE = 0.1  # of mu': some 150 iterations
N_PLATEAUS = 8  # angles shrink by 1/e on each
ARRIVED, SPREAD = 1e-3, 1e-3  # tan of the angle; least over largest singular value


def finite(case: Case) -> list[Row]:
    """Return both sides of the corrected theorem, and how often k starts span the complement."""
    k, draws = case["k"], case["draws"]
    drawn = paper_problem(case, k * draws)
    data, normals = drawn.data, drawn.normals
    v = theory.statistics(
        drawn.X_in, drawn.X_out, data.components.T, random_state=case["seed"]
    ).certified
    error = theory.complement_error(drawn.X_out, normals, random_state=case["seed"]).worst
    # Theorem 1 for all starts up to an angle that they exceed with probability FAILURE
    conditions = theory.theorem1(v, np.array([theory.widest_start(v, k, 1 - FAILURE)]))
    schedule = theory.best_schedule(v, conditions, least_size=LEAST_SIZE)
    result = theory.corrected_theorem7(v, schedule, k, failure=FAILURE, error=error)
    steps = schedule.steps(schedule.K0 + N_PLATEAUS * schedule.K_star)
    spanned, singular, delta = 0, [], []
    for B0 in np.hsplit(drawn.B0, draws):
        run = theory.discrete_psgm(drawn.X_in, drawn.X_out, B0, normals, steps=steps)
        sides = theory.spans_complement(B0, run.delta, normals)
        s = np.linalg.svd(normals.T @ run.B, compute_uv=False)
        spans = len(s) == case["c"] and s[-1] > SPREAD * s[0]
        spanned += spans and np.max(run.tangents[-1]) < ARRIVED
        singular.append(sides.singular_value)
        delta.append(sides.perturbation)
    return [
        {
            "c_x_min": v.c_x_min,
            "eta_x": v.eta_x,
            "left": result.left,
            "right": result.right,
            "holds": result.holds,
            "probability": max(0.0, result.probability - FAILURE),
            "steps": len(steps),
            "singular": np.min(singular),
            "delta": np.max(delta),
            "spanned": spanned,
        }
    ]

"""Escape and diversity: a line search, the paper's geometric steps, and the one before the other.

A line search brings starts to normals on their own side of the complement, so that the ends are
diverse, and jams in ravines: those that arrive at D = 200 end 30 to 43 degrees (medians) from the
projections of their starts. Geometric steps require no decrease and leave ravines; meanwhile
outliers push all starts towards common places of the complement, 46 to 60 degrees away. What a step
of angle t adds to that drift is in proportion to t, so the angles that a rule adds up are its
price:

- geometric, about 0.12 rad for 300 iterations, then cut by 0.7 every 20: some 44 rad;
- a line search: a few rad, as every step must gain in proportion to its length;
- the rule that is tried here: a line search covers the way for 100 iterations, then steps of 0.2
  rad, cut by 0.7 every 30 iterations and always accepted, only have to leave the ravine: 20 rad.

Settings: the ten cells of the paper's Figure 2 where the line search falls behind, and small
problems. The codimension is unknown, and there are twice as many starts; seeds from 216000 on;
the constants were chosen on others.
Run ``python benchmarks/schedules.py``; ``--store`` writes results/schedules.json.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

from dataclasses import dataclass
from typing import Any

import numpy as np
from _store import hardware, options, store

from perpend import DPCP
from perpend._typing import Array
from perpend.experiments._trials import (
    RECOVERED,
    SCHEDULE,
    measured,
    n_outliers,
    paper_data,
    starts_rng,
)
from perpend.solvers import AutoStep, GeometricStep, MBLSStep
from perpend.solvers.steps import Outcome

CELLS = [(750, 1000), (1000, 1500), (1000, 2500), (1250, 2500), (1250, 3000)]
CELLS += [(1250, 3500), (1500, 3500), (1500, 4000), (1500, 4500), (1500, 5000)]
FIRST_SEED = 216_000
FIGURE2 = [{"D": 200, "c": 5, "N": N, "M": M} for N, M in CELLS]
SMALL = [
    {"D": D, "c": c, "N": 10 * D, "M": n_outliers(10 * D, r)}
    for D in (30, 45, 60)
    for c in (3, 6)
    for r in (0.6, 0.7)
]
SETTINGS = {"Figure 2": (FIGURE2, 2), "30 to 60 features": (SMALL, 10)}  # and seeds of each


@dataclass(frozen=True)
class LineThenGeometric(AutoStep):
    """A line search for `K0` iterations, then angles that shrink geometrically."""

    K0: int = 100
    angle: float = 0.2
    K_star: int = 30
    beta: float = 0.7
    floor: float = 1e-4  # of the line search, which must not end in a ravine

    def accepts(self, f_trial: Array, f: Array, mu: Array, slope: Array, n_iter: Array) -> Array:
        """Ask for a decrease before K0 only, and not at the floor."""
        return super().accepts(f_trial, f, mu, slope, n_iter) | (n_iter >= self.K0)

    def following(self, mu: Array, outcome: Outcome) -> Array:
        """Follow the line search before K0, and the schedule after it."""
        line = np.maximum(super().following(mu, outcome), self.floor)
        cuts = np.floor((outcome.n_iter - self.K0) / self.K_star)
        return np.where(outcome.n_iter >= self.K0, self.angle * self.beta**cuts, line)

    def at_rest(self, mu: Array, outcome: Outcome, tol: float) -> Array:
        """Rest only after K0."""
        return (mu <= tol) & (outcome.n_iter >= self.K0)


RULES: dict[str, tuple[Any, int]] = {  # and the most iterations
    "line search of the releases": (MBLSStep(), 200),
    "line search, perpend's": (AutoStep(), 1000),
    "geometric": (GeometricStep(**SCHEDULE), 1000),
    "line search, then geometric": (LineThenGeometric(), 1000),
}


def one(case: dict[str, int], seed: int, name: str) -> dict[str, float]:
    """Run one rule on one problem."""
    data, (rule, cap), c = paper_data(**case, seed=seed), RULES[name], case["c"]
    model = DPCP(
        n_starts=2 * c, step=rule, refine=False, max_iter=cap, random_state=starts_rng(seed)
    )
    found = measured(model, data)
    ends = model.directions_.T  # (D, k)
    inside = data.normals @ ends
    singular = np.linalg.svd(inside, compute_uv=False)
    sines = np.linalg.norm(ends - data.normals.T @ inside, axis=0)
    return {
        "recovered": float(found["error"] < RECOVERED),
        "right": float(found["codimension"] == c),
        "arrived": float(np.mean(sines < RECOVERED)),
        "spread": float(singular[c - 1] / singular[0]),
        "seconds": found["seconds"],
    }


def main() -> None:
    """Print the table, and store it if that is wanted."""
    chosen = options(__doc__).parse_args()
    results = []
    for where, (cases, seeds) in SETTINGS.items():
        for name in RULES:
            rows = [one(case, FIRST_SEED + s, name) for case in cases for s in range(seeds)]
            means = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
            spread = float(np.median([row["spread"] for row in rows]))
            n = sum(int(row["recovered"]) for row in rows)
            row = {"settings": where, "rule": name, "trials": len(rows)}
            results.append({**row, **means, "recovered": n, "spread": spread})
            print({**results[-1]}, flush=True)
    if chosen.store:
        found = {"hardware": hardware(), "first_seed": FIRST_SEED, "results": results}
        store("schedules", found)


if __name__ == "__main__":
    main()

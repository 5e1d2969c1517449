"""Whole fits, as ratios in one run: to a gram-PCA, and to methods with the codimension given.

- (50000, 200), codimension 10, 40 % outliers, no noise: how many gram-PCAs, `eigh(X.T @ X)`, does
  `DPCP()` take, with sampling and without?
- D = 200, 1500 inliers, 70 % outliers, codimension 10: `DPCP()`, given only the rows, against
  RSGM and DPCP-IRLS, with the codimension given. RSGM gets the fewest iterations, in steps of
  ten, that bring its error below 1e-6, found beforehand and not timed.

One thread. Run ``python benchmarks/fits.py``; ``--store`` writes benchmarks/results/fits.json.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from _store import hardware, options, store

from perpend import DPCP, DPCPIRLS, RSGM, subspace_error
from perpend.datasets import SubspaceData, make_subspace

REPEATS = 7
SEEDS = 3


def best(functions: dict[str, Callable[[], Any]], repeats: int = REPEATS) -> dict[str, float]:
    """Return the shortest time of each; they take turns, so that a busy moment hits all alike."""
    times = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            times[name].append(time.perf_counter() - start)
    return {name: min(taken) for name, taken in times.items()}


def error(model: Any, data: SubspaceData) -> float:
    """Return the error of a fit; 1 where the codimension is wrong."""
    return float(subspace_error(model.fit(data.X).normals_, data.normals))


def in_gram_pcas(seed: int) -> list[dict[str, Any]]:
    """Time whole fits to many rows, in gram-PCAs of the same rows."""
    data = make_subspace(30_000, 20_000, n_features=200, codimension=10, random_state=seed)
    X = data.X
    models = {
        "DPCP()": (DPCP(random_state=1000 + seed), 10),
        "DPCP(sample_size=None)": (DPCP(sample_size=None, random_state=1000 + seed), 25),
    }
    errors = {name: error(model, data) for name, (model, _) in models.items()}
    fits = {name: lambda model=model: model.fit(X) for name, (model, _) in models.items()}
    seconds = best({"gram-PCA": lambda: np.linalg.eigh(X.T @ X), **fits})
    return [
        {
            "seed": seed,
            "method": name,
            "gram_pcas": round(seconds[name] / seconds["gram-PCA"], 2),
            "target": target,
            "error": errors[name],
            "sure": bool(model.confidence_ >= 0.95),
            "milliseconds": round(1e3 * seconds[name], 1),
        }
        for name, (model, target) in models.items()
    ]


def against_given(seed: int) -> list[dict[str, Any]]:
    """Time a whole fit to hard data against methods with the codimension given."""
    data = make_subspace(1500, 3500, n_features=200, codimension=10, random_state=seed)
    enough = next(n for n in range(10, 1000, 10) if error(RSGM(10, max_iter=n), data) < 1e-6)
    models = {
        "DPCP()": DPCP(random_state=1000 + seed),
        "RSGM, given c, to 1e-6": RSGM(10, max_iter=enough),
        "RSGM, given c": RSGM(10),
        "DPCP-IRLS, given c": DPCPIRLS(10),
    }
    errors = {name: error(model, data) for name, model in models.items()}
    seconds = best({name: lambda m=model: m.fit(data.X) for name, model in models.items()})
    return [
        {
            "seed": seed,
            "method": name,
            "times_dpcp": round(seconds[name] / seconds["DPCP()"], 2),
            "error": errors[name],
            "iterations": int(model.n_iter_),
            "milliseconds": round(1e3 * seconds[name], 1),
        }
        for name, model in models.items()
    ]


def main() -> None:
    """Print the tables; store them with --store."""
    chosen = options(__doc__).parse_args()
    results: dict[str, list[dict[str, Any]]] = {"gram_pcas": [], "given": []}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # RSGM is stopped before it comes to rest, on purpose
        for seed in range(SEEDS):
            results["gram_pcas"] += in_gram_pcas(seed)
            results["given"] += against_given(seed)
    for row in results["gram_pcas"] + results["given"]:
        print(row)
    if chosen.store:
        store("fits", {"hardware": hardware(), **results})


if __name__ == "__main__":
    main()

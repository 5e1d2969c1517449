"""Low dimension, large codimension: `DPCP()`, given only the rows, against reweighted PCA given d.

Settings with 1024 features and a subspace of dimension 9, noise 0.05, from 200 rows, fewer than
features, to 5000; and 50 rows of 1000 features, dimension 3. The rival is the usual one, FMS
(Lerman and Maunu 2018),

    U <- the d largest eigenvectors of sum_i x_i x_i.T / max(||x_i - U U.T x_i||, eps)

from PCA of the unit rows, by the smaller of the two gram matrices and only d of its eigenvectors.
It is written here without all that `perpend.FMS` does beside it (labels, confidence), so that the
times are those of its quickest form; a test checks that both are the same subspace.
It is given d, and run twice: with 30 steps, and to the first step that lowers the sum of distances
by less than 1e-6 of it. Times are those of the processor, in turns, on one thread.

Run ``python benchmarks/low_dimension.py``; ``--store`` writes results/low_dimension.json.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import time
import warnings
from typing import Any

import numpy as np
from _store import hardware, options, store
from scipy import linalg

from perpend import DPCP, subspace_error
from perpend._typing import Array
from perpend.datasets import make_subspace

SETTINGS = [
    {"rows": n, "features": 1024, "dimension": 9, "outliers": r}
    for n in (200, 1000, 5000)
    for r in (0.3, 0.5, 0.7)
] + [{"rows": 50, "features": 1000, "dimension": 3, "outliers": 0.5}]
NOISE = 0.05
SEEDS, SEEDS_OF_MANY, MANY = 10, 3, 5000  # fewer where there are many rows
TIMED_SEEDS, REPEATS = 1, 2
STEPS, TOL, EPS = 30, 1e-6, 1e-10


def reweighted_pca(X: Array, d: int, tol: float) -> Array:
    """Return an orthonormal basis (D, d) of the subspace that minimises the sum of distances."""
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    few, weight, before = X.shape[0] < X.shape[1], np.ones(len(X)), np.inf
    for _ in range(STEPS):
        A = np.sqrt(weight)[:, None] * X
        G = A @ A.T if few else A.T @ A
        values, vectors = linalg.eigh(G, subset_by_index=[len(G) - d, len(G) - 1])
        U = A.T @ vectors / np.sqrt(values) if few else vectors
        J = np.linalg.norm(X - (X @ U) @ U.T, axis=1)
        if before - J.sum() < tol * before:
            break
        before, weight = J.sum(), 1 / np.maximum(J, EPS)
    return U


def one(setting: dict[str, Any], seed: int, *, timed: bool) -> dict[str, Any]:
    """Fit one problem, and say what came out."""
    n, D, d = setting["rows"], setting["features"], setting["dimension"]
    n_in = round(n * (1 - setting["outliers"]))
    data = make_subspace(
        n_in, n - n_in, n_features=D, codimension=D - d, noise=NOISE, random_state=seed
    )
    model = DPCP(random_state=1000 + seed)
    ways = {
        "dpcp": lambda: model.fit(data.X),
        "thirty": lambda: reweighted_pca(data.X, d, -np.inf),
        "stopped": lambda: reweighted_pca(data.X, d, TOL),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(REPEATS if timed else 1):
        for name in ways if timed else ["dpcp"]:
            start = time.process_time()
            ways[name]()
            seconds[name].append(time.process_time() - start)
    given = reweighted_pca(data.X, d, TOL)
    right = model.n_components_ == d
    inliers = data.X[data.y == 1]
    best = np.linalg.svd(inliers, full_matrices=False)[2][:d]
    return {
        "right": bool(right),
        "sure": bool(model.confidence_ >= 0.95),
        "error": float(subspace_error(model.components_, data.components)) if right else 1.0,
        "error_given": float(subspace_error(given.T, data.components)),
        "error_of_inliers_pca": float(subspace_error(best, data.components)),
        "wrong_labels": int(np.sum(model.labels_ != data.y)),
        "seconds": {name: min(taken) for name, taken in seconds.items() if timed},
    }


def summary(setting: dict[str, Any], fits: list[dict[str, Any]]) -> dict[str, Any]:
    """Count right estimates, and compare times within each fit."""
    timed = [fit["seconds"] for fit in fits if fit["seconds"]]
    errors = ("error", "error_given", "error_of_inliers_pca")
    return {
        **setting,
        "seeds": len(fits),
        "right": sum(fit["right"] for fit in fits),
        "sure": sum(fit["sure"] for fit in fits),
        **{name: float(f"{np.median([fit[name] for fit in fits]):.3g}") for name in errors},
        "wrong_labels": sum(fit["wrong_labels"] for fit in fits),
        "milliseconds": {
            name: round(1e3 * float(np.median([t[name] for t in timed])), 1) for name in timed[0]
        },
        "over_thirty_steps": round(float(np.median([t["dpcp"] / t["thirty"] for t in timed])), 2),
        "over_stopped": round(float(np.median([t["dpcp"] / t["stopped"] for t in timed])), 2),
    }


def main() -> None:
    """Print the table; store it with --store."""
    chosen = options(__doc__, seeds=SEEDS).parse_args()
    results = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an unsure estimate is counted, not announced
        for setting in SETTINGS:
            n_seeds = min(chosen.seeds, SEEDS_OF_MANY if setting["rows"] >= MANY else SEEDS)
            fits = [one(setting, s, timed=s < TIMED_SEEDS) for s in range(n_seeds)]
            results.append(summary(setting, fits))
            print(results[-1], flush=True)
    if chosen.store:
        settings = {"noise": NOISE, "steps": STEPS, "tol": TOL, "timed_seeds": TIMED_SEEDS}
        store("low_dimension", {"hardware": hardware(), **settings, "results": results})


if __name__ == "__main__":
    main()

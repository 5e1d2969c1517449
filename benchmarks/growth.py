"""How the time of a whole fit grows with rows, features and starts: slopes on log-log axes.

A fixed number of iterations of the paper's geometric rule, without sampling and without a finish,
so that every fit does the same work for each row. Validation, unit rows, span, evidence and labels
count as well. One thread, best of three.

Run ``python benchmarks/growth.py``; ``--store`` writes benchmarks/results/growth.json.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import time
import warnings
from typing import Any

import numpy as np
from _store import hardware, options, store

from perpend import DPCP

ITERATIONS = 30
AROUND = {"n": 100_000, "D": 100, "starts": 32}
SIZES = {
    "n": [10_000, 30_000, 100_000, 300_000, 1_000_000],
    "D": [25, 50, 100, 200, 400],
    "starts": [4, 8, 16, 32, 64],
}
REPEATS = 3


def seconds(n: int, D: int, starts: int) -> float:
    """Return the shortest time of a fit to random rows; a third of them lies on a subspace."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, D))
    X[: n // 3, -D // 5 :] = 0
    model = DPCP(
        n_starts=starts,
        step="geometric",
        refine=False,
        sample_size=None,
        max_iter=ITERATIONS,
        random_state=1,
    )
    taken = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        model.fit(X)
        taken.append(time.perf_counter() - start)
    return min(taken)


def main() -> None:
    """Print times and slopes; store them with --store."""
    chosen = options(__doc__).parse_args()
    results: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few iterations do not converge, on purpose
        for name, sizes in SIZES.items():
            times = [seconds(**{**AROUND, name: size}) for size in sizes]
            slope = float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
            results[name] = {"sizes": sizes, "seconds": times, "slope": round(slope, 3)}
            print(f"{name:7} slope {slope:.3f}  ", [f"{t:.3g} s" for t in times], flush=True)
    if chosen.store:
        about = {"hardware": hardware(), "iterations": ITERATIONS, "around": AROUND}
        store("growth", {**about, "results": results})


if __name__ == "__main__":
    main()

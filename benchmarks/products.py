"""How much work a whole fit takes, counted in products: no clock, so the same on every machine.

The paper's setting: D = 200, 1500 inliers, 30 starts, unknown codimension (10 to 20), 60 % and 70 %
outliers. Everything counts: the span of the rows, the descents, the evidence and the finish; a gram
matrix of all rows is 6.7 products, a weighted one leaves out rows without weight. Beside it the
published rule: the modified backtracking line search run to its end, without any finish.

Run ``python benchmarks/products.py``; ``--store`` writes benchmarks/results/products.json.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from _counting import CountingRows
from _store import options, store

from perpend import dpcp
from perpend.datasets import make_subspace
from perpend.rows import as_rows

D, N, STARTS = 200, 1500, 30
TARGETS = {0.6: 60, 0.7: 120}
WAYS: dict[str, dict[str, Any]] = {
    "DPCP": {},
    "published rule": {"step": "mbls", "refine": False, "max_iter": 2000},
}


def trial(r: float, seed: int, way: str) -> tuple[float, bool]:
    """Return the products of one fit, and whether its subspace is exact."""
    c = 10 + seed % 11
    data = make_subspace(N, round(N * r / (1 - r)), n_features=D, codimension=c, random_state=seed)
    rows = CountingRows(as_rows(data.X))
    rng = np.random.default_rng(1_000_000 + seed)  # not the numbers that drew the subspace
    solution = dpcp(rows, n_starts=STARTS, rng=rng, **WAYS[way])
    right = solution.normals.shape[1] == c
    tol = 1e-9 if way == "DPCP" else 1e-6  # the published rule has no finish
    exact = right and float(np.linalg.norm(data.components @ solution.normals, 2)) < tol
    return rows.products(STARTS), bool(exact)


def main() -> None:
    """Print the table; store it with --store."""
    chosen = options(__doc__, seeds=100, first=0).parse_args()
    results = []
    print("   r  way               exact   of  median   90 %    max  within the target")
    with ProcessPoolExecutor(2) as pool:
        for r, target in TARGETS.items():
            for way in WAYS:
                seeds = range(chosen.first, chosen.first + chosen.seeds)
                n = len(seeds)
                spent, exact = map(
                    np.array, zip(*pool.map(trial, [r] * n, seeds, [way] * n), strict=True)
                )
                row = {
                    "r": r,
                    "way": way,
                    "seeds": n,
                    "exact": int(exact.sum()),
                    "median": round(float(np.median(spent)), 1),
                    "ninety_percent": round(float(np.quantile(spent, 0.9)), 1),
                    "largest": round(float(spent.max()), 1),
                    "target": target,
                    "within": round(float(np.mean(spent <= target)), 3),
                }
                results.append(row)
                print(
                    f"{r:4}  {way:16} {row['exact']:6} {n:4} {row['median']:7} "
                    f"{row['ninety_percent']:6} {row['largest']:6} "
                    f"{row['within']:8.0%} of {target}",
                    flush=True,
                )
    if chosen.store:
        about = {"D": D, "n_inliers": N, "n_starts": STARTS, "first_seed": chosen.first}
        store("products", {**about, "results": results})


if __name__ == "__main__":
    main()

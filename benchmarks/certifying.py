"""What it costs to certify an estimate, counted in weighted gram matrices: no clock.

The descents propose normals, and joint reweighting finishes and certifies them, one weighted gram
matrix a step. A fit is *clear* if the descents' proposal was certified before others had to
propose (axes of all rows, or paths); otherwise their steps count as well, and are counted apart.

Run ``python benchmarks/certifying.py``; ``--store`` writes benchmarks/results/certifying.json.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

from concurrent.futures import ProcessPoolExecutor
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from _counting import CountingRows
from _store import options, store

from perpend import dpcp
from perpend.datasets import make_subspace
from perpend.kernels import weighted_gram
from perpend.rows import as_rows

TARGET = 3
SHAPES = ((10, 6, 2000, 0.8), (30, 5, 1000, 0.7), (200, 10, 1500, 0.6), (200, 10, 1500, 0.7))
NOISES = (0.0, 0.01, 0.05, 0.1, 0.2)


class Trial(NamedTuple):
    """What one fit took."""

    right: bool
    clear: bool
    grams: int


def trial(shape: tuple[int, int, int, float], noise: float, seed: int) -> Trial:
    """Fit one problem, given only the rows, and count."""
    D, c, N, r = shape
    M = round(N * r / (1 - r))
    data = make_subspace(N, M, n_features=D, codimension=c, noise=noise, random_state=seed)
    rows, stages = CountingRows(as_rows(data.X)), set[str]()
    rng = np.random.default_rng(1_000_000 + seed)
    solution = dpcp(rows, rng=rng, callback=lambda progress: stages.add(progress.stage))
    clear = not stages & {"reweighting", "path"}
    return Trial(solution.normals.shape[1] == c, clear, rows.n_scans[weighted_gram.__name__])


def summary(trials: list[Trial]) -> dict[str, Any]:
    """Return the counts of one setting; without clear fits there is nothing to require."""
    grams = np.array([trial.grams for trial in trials])
    clear = np.array([trial.clear for trial in trials])
    row: dict[str, Any] = {
        "seeds": len(trials),
        "right": sum(trial.right for trial in trials),
        "clear": int(clear.sum()),
    }
    for name, some in (("clear_grams", grams[clear]), ("other_grams", grams[~clear])):
        quantiles = np.quantile(some, (0.5, 0.9, 1.0)) if len(some) else None
        row[name] = None if quantiles is None else [round(float(q), 1) for q in quantiles]
    return row


def main() -> None:
    """Print the table; store it with --store."""
    chosen = options(__doc__, seeds=50, first=0).parse_args()
    n = chosen.seeds
    seeds = range(chosen.first, chosen.first + n)
    results = []
    print("   D   c     N    r noise  seeds right clear  grams: median, 90 %, largest; not clear")
    with ProcessPoolExecutor(2) as pool:
        for shape, noise in product(SHAPES, NOISES):
            counts = summary(list(pool.map(trial, [shape] * n, [noise] * n, seeds)))
            setting = dict(zip(("D", "c", "n_inliers", "r"), shape, strict=True))
            results.append({**setting, "noise": noise, **counts})
            print(
                f"{shape[0]:4} {shape[1]:3} {shape[2]:5} {shape[3]:4} {noise:5} {n:6} "
                f"{counts['right']:5} {counts['clear']:5}  {counts['clear_grams']}; "
                f"{counts['other_grams']}",
                flush=True,
            )
    if chosen.store:
        store("certifying", {"first_seed": chosen.first, "target": TARGET, "results": results})


if __name__ == "__main__":
    main()

"""What does a fit gain on rows without any structure? The ground under the confidence.

For Gaussian rows, which lie on no subspace, this prints the largest gain that any candidate
subspace reaches at any scale, of the descents, of joint reweighting or of a path, divided by the
gain that `perpend.structure.profile` requires. An estimate is "no accident" above 1.

Run ``python benchmarks/no_structure.py``; ``--jobs 4`` takes more processes than two, ``--store``
writes the table.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from _store import options, store

from perpend.rows import as_rows
from perpend.solvers import AutoStep
from perpend.structure import Descent, find_structure
from perpend.structure.descents import Descents
from perpend.structure.ground import Ground, smallest_axes, sweep_sizes

SHAPES = [  # rows, features, seeds
    (5, 2, 60),
    (50, 2, 60),
    (1000, 2, 30),
    (8, 3, 60),
    (200, 3, 60),
    (3000, 3, 30),
    (10, 5, 60),
    (400, 5, 60),
    (11, 10, 40),
    (50, 10, 40),
    (200, 10, 40),
    (2000, 10, 20),
    (31, 30, 20),
    (150, 30, 20),
    (600, 30, 20),
    (4000, 30, 10),
    (400, 100, 8),
    (2000, 100, 8),
    (1000, 200, 4),
]


def largest_gain(n_rows: int, n_features: int, seed: int) -> tuple[float, float]:
    """Return the largest gain over the needed one, and the largest confidence, of one draw."""
    rng = np.random.default_rng(seed)
    rows = as_rows(rng.standard_normal((n_rows, n_features)))
    ground, rank = Ground(rows, rng), n_features
    descents = Descents(ground, Descent("auto", "random", AutoStep(), 1000, 1e-9))
    evidence = descents.descend(watched=False)
    candidate = min(evidence.value, rank - 1)
    while candidate > 0:
        ground.add(ground.fitted(evidence.basis[:, :candidate]))
        candidate //= 2
    sweep = smallest_axes(ground, sweep_sizes(rank))
    decision = find_structure(ground.profile, rng, proposals=sweep, fixed=None)
    gain, needed = ground.profile.best, ground.profile.cloud.needed[:, None]
    return float(np.max(1 + gain / needed)), 0.0 if decision is None else decision.confidence


def main() -> None:
    """Print the table; store it with --store."""
    chosen = options(__doc__, jobs=2).parse_args()
    warnings.simplefilter("ignore")
    results = []
    print("  rows features  seeds  gain / needed: median, largest   largest confidence")
    with ProcessPoolExecutor(chosen.jobs) as pool:
        for n, D, seeds in SHAPES:
            draws = pool.map(largest_gain, [n] * seeds, [D] * seeds, range(seeds))
            ratio, confidence = np.array(list(draws)).T
            row = {
                "shape": [n, D],
                "seeds": seeds,
                "median": float(np.median(ratio)),
                "largest": float(ratio.max()),
                "largest_confidence": float(confidence.max()),
            }
            results.append(row)
            print(
                f"{n:6} {D:6} {seeds:8} {row['median']:14.2f} {row['largest']:8.2f} "
                f"{row['largest_confidence']:18.3f}",
                flush=True,
            )
    if chosen.store:
        store("no_structure", {"results": results})


if __name__ == "__main__":
    main()

"""What does a fit gain on rows without any structure? The ground under the confidence.

For Gaussian rows, which lie on no subspace, this prints the largest gain that any candidate
subspace reaches, of the descents or of joint reweighting, divided by the gain that
`perpend.codimension.certificate` asks for. An answer is "no accident" above 1.

Run ``python benchmarks/no_structure.py``; ``--jobs 4`` takes more processes than two, ``--store``
writes the table.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from _store import store
from perpend.codimension import Judge, distinct_rows, grow_starts, rank_of_directions
from perpend.codimension.by_scales import sweep_sizes

from perpend.rows import as_rows
from perpend.solvers import AutoStep, psgm, random_starts, row_span

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
    span = row_span(rows)
    rule = AutoStep()
    _, evidence = grow_starts(
        lambda k, _: psgm(rows, random_starts(rng, span, k), rule=rule, max_iter=1000, tol=1e-9),
        lambda directions: rank_of_directions(rows, directions, span.rank),
        at_least=0,
        at_most=2 * span.rank + 16,
    )
    judge = Judge(rows, span, distinct_rows(rows, rng), refine=True)
    candidate, ratios, confidences = min(evidence.value, span.rank - 1), [0.0], [0.0]
    found = [judge.from_spectrum(k, evidence) for k in sweep_sizes(span.rank)]
    while candidate > 0:
        found.append(judge.follow(evidence.basis[:, :candidate], evidence))
        candidate //= 2
    ratios += [one.certificate.gain / one.certificate.needed for one in found]
    confidences += [one.codimension.confidence for one in found]
    return max(ratios), max(confidences)


def main() -> None:
    """Print the table; store it if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--store", action="store_true", help="write results/no_structure.json")
    chosen = parser.parse_args()
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

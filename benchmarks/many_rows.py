"""Many rows: time, scans and memory of a sampled fit.

10 million rows of 100 features in float32, 4 GB; codimension 10, 40 % outliers, two threads. The
time is given in units of a plain reading pass over the same rows (their norms, in the same run),
and the memory beyond the data as the largest resident set during the fit.

Run ``python benchmarks/many_rows.py`` (about two minutes, 8 GiB of memory); ``--rows 1000000`` is a
quick look, ``--store`` writes benchmarks/results/many_rows.json.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import resource
import time
from typing import Any

import numpy as np
from _counting import CountingRows
from _store import hardware, options, store

from perpend import DPCP, dpcp
from perpend.geometry import complement, orthonormal
from perpend.rows import as_rows

D, C, SHARE, BLOCK = 100, 10, 0.4, 100_000


def rows_on_a_subspace(n: int, seed: int) -> tuple[Any, Any, Any]:
    """Return rows in float32, made in blocks; the labels; and the normals (C, D)."""
    rng = np.random.default_rng(seed)
    normals = orthonormal(rng.standard_normal((D, C)))
    basis = complement(normals).astype(np.float32)
    X = np.empty((n, D), np.float32)
    y = np.where(rng.uniform(size=n) < SHARE, -1, 1).astype(np.int8)
    for start in range(0, n, BLOCK):
        block, label = X[start : start + BLOCK], y[start : start + BLOCK]
        rng.standard_normal(out=block, dtype=np.float32)
        block[label == 1] = block[label == 1] @ basis @ basis.T
    return X, y, normals.T


def peak() -> float:
    """Return the largest resident set so far, in bytes."""
    return 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def scans_of(X: Any) -> dict[str, int]:
    """Return how often all rows were scanned for what, beside the validating scan."""
    rows = CountingRows(as_rows(X, n_jobs=2))
    dpcp(rows, rng=np.random.default_rng(1))
    return dict(rows.n_scans)


def main() -> None:
    """Print the figures; store them with --store."""
    parser = options(__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    chosen = parser.parse_args()
    X, y, normals = rows_on_a_subspace(chosen.rows, 0)
    before = peak()
    model = DPCP(random_state=1, n_jobs=2)
    start = time.perf_counter()
    model.fit(X)
    fit_seconds = time.perf_counter() - start
    beyond = peak() - before
    start = time.perf_counter()
    as_rows(X, n_jobs=2)
    pass_seconds = time.perf_counter() - start
    error = float(np.linalg.norm(model.components_ @ normals.T, 2))
    results = {
        "rows": chosen.rows,
        "features": D,
        "data_gib": round(X.nbytes / 2**30, 2),
        "memory_beyond_the_data_gib": round(beyond / 2**30, 3),
        "seconds": round(fit_seconds, 2),
        "validating_passes": round(fit_seconds / pass_seconds, 2),
        "scans_after_validating": scans_of(X),
        "codimension": model.codimension_,
        "confidence": round(model.confidence_, 4),
        "error": error,
        "wrong_labels": int(np.sum(model.labels_ != y)),
    }
    for name, value in results.items():
        print(f"{name:28} {value}")
    if chosen.store:
        store("many_rows", {"hardware": hardware(), **results})


if __name__ == "__main__":
    main()

"""Whole fits on a GPU: time, agreement with the processor, and gram-PCAs of the same tensor.

Tensors that are on the device already, codimension 10, 40 % outliers, no noise. The first fit
compiles kernels and is not timed. The estimates are compared with a fit to the same rows in memory.

Run ``python benchmarks/cuda_fits.py``; ``--store`` writes benchmarks/results/cuda_fits.json.
"""

import time
from typing import Any

import numpy as np
import torch
from _store import hardware, options, store

from perpend import DPCP, subspace_error
from perpend.datasets import make_subspace

SIZES = [(50_000, 200), (500_000, 200), (2_000_000, 50)]
REPEATS = 5


def seconds(function: Any) -> float:
    """Return the shortest time of a call, once it has run before."""
    function()
    taken = []
    for _ in range(REPEATS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        function()
        torch.cuda.synchronize()
        taken.append(time.perf_counter() - start)
    return min(taken)


def row(n: int, D: int, dtype: Any, sample_size: Any) -> dict[str, Any]:
    """Fit the same rows in memory and on the device."""
    data = make_subspace(3 * n // 5, 2 * n // 5, n_features=D, codimension=10, random_state=n)
    X = data.X.astype(dtype)
    on_device = torch.from_numpy(X).cuda()
    model = DPCP(sample_size=sample_size, random_state=1)
    start = time.perf_counter()
    model.fit(X)
    in_memory = time.perf_counter() - start
    normals, labels = model.normals_, model.labels_
    fit = seconds(lambda: model.fit(on_device))
    gram = seconds(lambda: torch.linalg.eigh((on_device.T @ on_device).double()))
    return {
        "shape": [n, D],
        "dtype": np.dtype(dtype).name,
        "sample_size": sample_size,
        "milliseconds": round(1e3 * fit, 2),
        "gram_pcas": round(fit / gram, 2),
        "times_faster_than_memory": round(in_memory / fit, 1),
        "codimension": model.codimension_,
        "sure": bool(model.confidence_ >= 0.95),
        "distance_to_memory": float(subspace_error(model.normals_.cpu().numpy(), normals)),
        "error": float(subspace_error(model.normals_.cpu().numpy(), data.normals)),
        "other_labels": int(np.sum(model.labels_.cpu().numpy() != labels)),
    }


def main() -> None:
    """Print the figures; store them with --store."""
    chosen = options(__doc__).parse_args()
    results = []
    for n, D in SIZES:
        for dtype in (np.float64, np.float32):
            for sample_size in ("auto", None):
                results.append(row(n, D, dtype, sample_size))
                print(results[-1], flush=True)
    if chosen.store:
        about = {**hardware(), "device": torch.cuda.get_device_name(), "torch": torch.__version__}
        store("cuda_fits", {"hardware": about, "results": results})


if __name__ == "__main__":
    main()

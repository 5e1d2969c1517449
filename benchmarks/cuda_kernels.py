"""The fused CUDA kernels: share of the copy bandwidth, and how much faster than plain torch.

Everything is measured in one run, on random rows many times larger than the cache, as medians of
single calls between device events. A share is the bytes of X, read once, over the time, over the
bandwidth of a large device-to-device copy (bytes read and written). A copy also writes, so a kernel
that only reads can exceed it. Plain torch is ``P = X @ B; P.abs().sum(0); P.sign().T @ X`` in the
same precision (float32 for high and low bf16 parts). Errors are against plain torch in float64.

Run ``python benchmarks/cuda_kernels.py``; add ``--store`` to write benchmarks/results/cuda.json.
"""

import statistics
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Any, NamedTuple

import torch
from _store import hardware, store

from perpend.kernels.cuda import prepare

REPEATS = 25
BLOCK = 1 << 19  # rows of the float64 reference at a time
BYTES = {"float64": 8, "float32": 4, "bf16x2": 4, "bf16": 2}  # of one entry of X as stored
PLAIN = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bf16x2": torch.float32,
    "bf16": torch.bfloat16,
}


class Case(NamedTuple):
    """One line of the table; `target` is the share that we require, if any."""

    precision: str
    D: int
    k: int
    target: float | None
    gigabytes: float = 2.0
    weighted: bool = False


CASES = [
    *(Case(p, D, 16, 0.80) for p in ("bf16x2", "bf16") for D in (64, 80, 100, 128, 200, 256)),
    *(Case("float64", D, 16, 0.80) for D in (64, 100, 128, 200, 256)),
    Case("float32", 10, 10, 0.70, gigabytes=4.0),
    *(Case("bf16x2", D, 32, 0.60) for D in (64, 128, 200, 256)),
    *(Case("bf16", D, 32, None) for D in (64, 128, 200, 256)),
    *(Case("float64", D, 32, None) for D in (64, 200)),
    *(Case("bf16x2", D, 16, None) for D in (32, 300, 384, 512)),
    *(Case("float32", D, k, None, gigabytes=4.0) for D, k in ((4, 10), (16, 16))),
    *(Case(p, 200, 16, None, weighted=True) for p in ("bf16x2", "bf16", "float64")),
    Case("float32", 10, 10, None, gigabytes=4.0, weighted=True),
]


def median_ms(call: Callable[[], Any], repeats: int = REPEATS) -> float:
    """Return the median time of one call on the device."""
    for _ in range(3):
        call()
    pairs = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(repeats)]
    for before, after in pairs:
        before.record()
        call()
        after.record()
    torch.cuda.synchronize()
    return statistics.median(before.elapsed_time(after) for before, after in pairs)


def copy_bandwidth() -> float:
    """Return bytes read and written per second of a copy of 2 GB."""
    source = torch.randn(1 << 29, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.nbytes / (median_ms(lambda: target.copy_(source)) / 1e3)


def plain(X: Any, B: Any, weight: Any) -> tuple[Any, Any]:
    """Return both sums as one would write them."""
    P = X @ B
    S = P.sign()
    if weight is not None:
        P, S = P * weight[:, None], S * weight[:, None]
    return P.abs().sum(0), S.T @ X


def reference(X: Any, B: Any, weight: Any) -> tuple[Any, Any]:
    """Return both sums in float64, a block of rows at a time."""
    f, G = torch.zeros_like(B[0]), torch.zeros_like(B.T)
    for i in range(0, len(X), BLOCK):
        w = None if weight is None else weight[i : i + BLOCK].double()
        df, dG = plain(X[i : i + BLOCK].double(), B, w)
        f, G = f + df, G + dG
    return f, G


def measure(case: Case, bandwidth: float) -> dict[str, Any]:
    """Time one case and compare it with both references."""
    torch.manual_seed(0)
    size = case.D * BYTES[case.precision]
    n = int(case.gigabytes * 1e9) // size
    wide = torch.float64 if case.precision == "float64" else torch.float32
    X = torch.randn(n, case.D, dtype=wide, device="cuda")
    B = torch.nn.functional.normalize(
        torch.randn(case.D, case.k, dtype=torch.float64, device="cuda"), dim=0
    )
    weight = torch.rand(n, device="cuda", dtype=wide) if case.weighted else None
    rows = prepare(X, case.precision)
    assert rows is not None, case
    f, G = rows.l1_objective_and_gradient(B, weight)
    again = rows.l1_objective_and_gradient(B, weight)
    f_true, G_true = reference(X, B, weight)
    ms = median_ms(lambda: rows.l1_objective_and_gradient(B, weight))
    dtype = PLAIN[case.precision]
    X_plain, B_plain = X.to(dtype), B.to(dtype)
    w_plain = None if weight is None else weight.to(dtype)
    del X
    plain_ms = median_ms(lambda: plain(X_plain, B_plain, w_plain), 5)
    return {
        "precision": case.precision,
        "shape": [n, case.D, case.k],
        "weighted": case.weighted,
        "ms": ms,
        "share_of_copy_bandwidth": n * size / (ms / 1e3) / bandwidth,
        "target": case.target,
        "faster_than_plain_torch": plain_ms / ms,
        "objective_error": float(((f - f_true).abs() / f_true).max()),
        "gradient_error": float((G - G_true).norm() / G_true.norm()),
        "same_bits_again": torch.equal(f, again[0]) and torch.equal(G, again[1]),
    }


def device() -> dict[str, Any]:
    """Return what matters of the device and its software."""
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    driver = subprocess.run(query, capture_output=True, text=True, check=False).stdout.split()
    properties = torch.cuda.get_device_properties(0)
    return {
        "device": properties.name,
        "multiprocessors": properties.multi_processor_count,
        "cache_bytes": properties.L2_cache_size,
        "driver": driver[0] if driver else None,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        **{name: version(name) for name in ("cuda-bindings", "triton")},
    }


def main() -> None:
    """Print the table; store it with --store."""
    bandwidth = copy_bandwidth()
    print(f"{torch.cuda.get_device_name()}: copy {bandwidth / 1e12:.2f} TB/s, read and written")
    print(
        "precision           n    D   k  w      ms   share  goal  x plain    f error  G error  same"
    )
    results = []
    for case in CASES:
        row = measure(case, bandwidth)
        torch.cuda.empty_cache()
        results.append(row)
        n, D, k = row["shape"]
        target = "    " if case.target is None else f"{case.target:.2f}"
        print(
            f"{case.precision:10} {n:10} {D:4} {k:3} {'w' if case.weighted else '-':>2}"
            f"{row['ms']:8.3f}{row['share_of_copy_bandwidth']:8.3f}  {target}"
            f"{row['faster_than_plain_torch']:9.1f}{row['objective_error']:11.1e}"
            f"{row['gradient_error']:9.1e}  {row['same_bits_again']}",
            flush=True,
        )
    if "--store" in sys.argv:
        content = {"hardware": {**hardware(), **device()}, "copy_bytes_per_second": bandwidth}
        store("cuda", {**content, "results": results})


if __name__ == "__main__":
    main()

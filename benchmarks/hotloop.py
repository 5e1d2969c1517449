"""How near the hot loop comes to the machine's limit, as ratios in one run.

The limit of one pass over the rows is what its two products (4 n D k flops) take at the rate of a
large square GEMM on one thread. Two tables:

- one pass, ``rows.scan(l1_objective_and_gradient, B)``: with the compiled kernel and with NumPy, on
  one thread and on two, in float64 and float32;
- one accepted iteration of ``step="auto"``, line search included, from the same starts to the same
  end; beside it two rivals that run the same rule (`_line_searches.py`).

Times are the best of several, interleaved. Run ``python benchmarks/hotloop.py``; add ``--store`` to
write benchmarks/results/hotloop.json.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from _line_searches import RULE, TOL, Free, Plain, synchronous
from _store import hardware, store

from perpend.datasets import make_subspace
from perpend.geometry import random_directions
from perpend.kernels import compiled, l1_objective_and_gradient
from perpend.rows import ArrayRows
from perpend.solvers import psgm

SIZES = [
    (5000, 200, 10),
    (5000, 200, 30),
    (50_000, 200, 30),
    (200_000, 500, 32),
    (1_000_000, 50, 16),
    (2_000_000, 10, 10),
]
WAYS = {"compiled": ("1", 1), "compiled, 2 threads": ("1", 2), "numpy": ("0", 1)}
WAYS["numpy, 2 threads"] = ("0", 2)
PASS_SECONDS = 0.5  # so long one pass is repeated in each way, and at least
PASSES_LEAST = 3  # times
ITERATION_FLOPS = 1.5e11  # large problems are stopped after so much work
RUNS = 3
MAX_ITER = 1000


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds that a call takes, and its result."""
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def gemm_rate(dtype: Any) -> float:
    """Return the flops per second of a large product on one thread."""
    A = np.random.default_rng(0).standard_normal((1024, 1024)).astype(dtype)
    return 2 * 1024**3 / min(timed(lambda: A @ A)[0] for _ in range(8))


def read_bandwidth() -> float:
    """Return the bytes per second that one thread reads from memory."""
    x = np.ones(2**25)
    return x.nbytes / min(timed(lambda: x @ x)[0] for _ in range(5))


def use(way: str) -> int:
    """Choose the path of a way; return its number of threads."""
    os.environ["PERPEND_COMPILED"], threads = WAYS[way]
    return threads


def plain_pass(X: Any, B: Any) -> tuple[Any, Any]:
    """Return objective and gradient as one would write them."""
    P = X @ B
    return np.abs(P).sum(axis=0), X.T @ np.sign(P)


def best_of(calls: dict[str, Callable[[], Any]], seconds: float, least: int) -> dict[str, float]:
    """Return the shortest time of each call; they take turns."""
    best = dict.fromkeys(calls, np.inf)
    rounds = 0
    end = time.perf_counter() + seconds * len(calls)
    while time.perf_counter() < end or rounds < least:
        rounds += 1
        for name, call in calls.items():
            best[name] = min(best[name], timed(call)[0])
    return best


def one_pass(X: Any, B: Any) -> dict[str, Any]:
    """Time one pass in every way."""
    n, D = X.shape
    B = B.astype(X.dtype)

    def scan(way: str) -> Callable[[], Any]:
        rows = ArrayRows(X, n_jobs=WAYS[way][1])
        return lambda: (use(way), rows.scan(l1_objective_and_gradient, B))

    calls = {way: scan(way) for way in WAYS}
    before = gemm_rate(X.dtype)
    best = best_of({**calls, "plain": lambda: plain_pass(X, B)}, PASS_SECONDS, PASSES_LEAST)
    rate = max(before, gemm_rate(X.dtype))
    limit = 4 * n * D * B.shape[1] / rate
    return {
        "shape": [n, D, B.shape[1]],
        "dtype": X.dtype.name,
        "gemm_gflops": rate / 1e9,
        "ms": {way: 1e3 * best[way] for way in (*WAYS, "plain")},
        "share_of_gemm_rate": {way: limit / best[way] for way in ("compiled", "numpy", "plain")},
        "two_threads_over_one": {
            way: best[way] / best[f"{way}, 2 threads"] for way in ("compiled", "numpy")
        },
        "faster_than_plain": {way: best["plain"] / best[way] for way in ("compiled", "numpy")},
    }


def one_iteration(X: Any, B: Any) -> dict[str, Any]:
    """Time whole descents of the rule in every way, and of its rivals."""
    n, D = X.shape
    flops = 4 * n * D * B.shape[1]
    max_iter = int(min(MAX_ITER, max(8, ITERATION_FLOPS / flops)))

    def descent(way: str) -> Callable[[], Any]:
        rows = ArrayRows(X, n_jobs=WAYS[way][1])
        return lambda: (use(way), psgm(rows, B, rule=RULE, max_iter=max_iter, tol=TOL))[1]

    calls = {way: descent(way) for way in ("compiled", "compiled, 2 threads", "numpy")}
    calls["plain"] = lambda: synchronous(Plain(X, B), max_iter)
    calls["free"] = lambda: synchronous(Free(X, B), max_iter)
    runs = RUNS if flops < 1e9 else 1
    best: dict[str, float] = {}
    ends: dict[str, Any] = {}
    rate = gemm_rate(X.dtype)
    for _ in range(runs):
        for name, call in calls.items():
            seconds, end = timed(call)
            ends[name] = end if name in ("plain", "free") else float(np.mean(end.n_iter))
            if name == "compiled":
                evaluations = end.n_evaluations
            best[name] = min(best.get(name, np.inf), seconds / ends[name])
        rate = max(rate, gemm_rate(X.dtype))
    for iterations in ends.values():  # the same rule from the same starts
        assert abs(iterations - ends["compiled"]) < 0.1 * ends["compiled"], ends
    return {
        "shape": [n, D, B.shape[1]],
        "iterations": ends["compiled"],
        "evaluations": evaluations,
        "ms_per_iteration": {name: 1e3 * seconds for name, seconds in best.items()},
        "share_of_gemm_rate": {way: flops / rate / best[way] for way in ("compiled", "numpy")},
        "two_threads_over_one": best["compiled"] / best["compiled, 2 threads"],
        "faster_than_plain": best["plain"] / best["compiled"],
        "faster_than_free_line_search": best["free"] / best["compiled"],
    }


def main() -> None:
    """Print both tables; store them with --store."""
    if not compiled.available():
        print('There is no compiled library here: "compiled" means NumPy, too.')
    bandwidth = read_bandwidth()
    print(f"reads {bandwidth / 1e9:.1f} GB/s on one thread\n")
    print("one pass                                ms   share of GEMM rate   2 threads  x plain")
    print("(n, D, starts)                    compiled   compiled  numpy      compiled   compiled")
    passes, iterations = [], []
    for n, D, k in SIZES:
        data = make_subspace(n // 2, n - n // 2, n_features=D, codimension=k // 3, random_state=0)
        B = random_directions(np.random.default_rng(1), D, k)
        for dtype in (np.float64, np.float32):
            row = one_pass(data.X.astype(dtype), B)
            passes.append(row)
            share, two = row["share_of_gemm_rate"], row["two_threads_over_one"]
            print(
                f"{(n, D, k)!s:22}{row['dtype']:8}{row['ms']['compiled']:10.2f}"
                f"{share['compiled']:10.2f}{share['numpy']:8.2f}{two['compiled']:12.2f}"
                f"{row['faster_than_plain']['compiled']:11.2f}",
                flush=True,
            )
        iterations.append(one_iteration(data.X, B))
    print("\none accepted iteration of step='auto', float64")
    print("(n, D, starts)         its  passes   ms/it  share  2 threads  x numpy  x plain  x free")
    for row in iterations:
        ms = row["ms_per_iteration"]
        print(
            f"{tuple(row['shape'])!s:22}{row['iterations']:4.0f}{row['evaluations']:8d}"
            f"{ms['compiled']:8.2f}{row['share_of_gemm_rate']['compiled']:7.2f}"
            f"{row['two_threads_over_one']:10.2f}{ms['numpy'] / ms['compiled']:10.2f}"
            f"{row['faster_than_plain']:9.2f}{row['faster_than_free_line_search']:8.2f}"
        )
    if "--store" in sys.argv:
        content = {"read_bytes_per_second": bandwidth, "passes": passes, "iterations": iterations}
        store("hotloop", {"hardware": hardware(), **content})


if __name__ == "__main__":
    main()

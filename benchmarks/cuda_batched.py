"""Stacks of problems and small problems on a CUDA device, as ratios to eager torch in one run.

- One small problem, (5000, 200) with 10 starts: time of an iteration and of a whole warm fit.
- 64 such problems at once: time of an iteration.
- The paper's phase transition: the 1000 data sets of ``perpend reproduce phase-transition``, made
  from the same seeds and solved in batches, compared trial by trial with the stored results.

Run ``python benchmarks/cuda_batched.py`` on a machine with a CUDA device and Triton; add
``--store`` to write benchmarks/results/cuda_batched.json.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import csv
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from _store import hardware, store

from perpend import subspace_error
from perpend.batch import dpcp_batch
from perpend.batch.descent import CHECK, Limits, constants, first, step
from perpend.datasets import make_subspace
from perpend.experiments._trials import RECOVERED, paper_data, starts_rng
from perpend.experiments.phase_transition import OFTEN, OURS, PSGM
from perpend.geometry import random_directions
from perpend.kernels.cuda import batched, stacks
from perpend.rows.stacks import evaluate
from perpend.solvers import AutoStep

N, M, D, C, K = 3000, 2000, 200, 5, 10
STORED = Path(__file__).parents[1] / "docs/reproduction/phase-transition/trials.csv"
FOR_EVER = Limits(max_iter=10**9, tol=0.0, unseen=-1.0)  # for timing iterations, not descents
ROUNDS = 5
ROWS_IN_BATCH = 2**20  # rows of all problems of one batch together


def seconds(run: Callable[[], Any], repeats: int) -> float:
    """Return the median time of a call, the device's work included."""
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        run()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return float(np.median(times))


def problems(p: int) -> tuple[Any, Any]:
    """Return p noiseless problems (p, n, D) and starts (p, K, D) on the device."""
    X = [make_subspace(N, M, n_features=D, codimension=C, random_state=i).X for i in range(p)]
    B = random_directions(np.random.default_rng(0), D, K).T
    return torch.as_tensor(np.stack(X)).cuda(), torch.as_tensor(np.stack([B] * p)).cuda()


def fused_iteration(X: Any, B: Any, *, pair: bool, repeats: int = 20, **changes: Any) -> float:
    """Return the time of one captured iteration of the fused kernels, with a changed shape."""
    shape = batched.shape(*X.shape, B.shape[1], pair=pair, device=X.device)
    assert shape is not None
    with mock.patch.object(batched, "shape", return_value=shape._replace(**changes)):
        fused = stacks.Fused(X, B, pair=pair, mbls=False, times=CHECK, capture=True)
    fused.begin(X, B, torch.as_tensor(constants(AutoStep(), FOR_EVER)))

    def rounds() -> None:  # one after the other, as in a descent
        for _ in range(ROUNDS):
            fused.loop._replay()

    return seconds(rounds, repeats) / (ROUNDS * CHECK)


def eager_iteration(X: Any, B: Any, repeats: int = 20) -> float:
    """Return the time of one iteration of the plain form in torch."""
    rule = AutoStep()
    state = first(X, B, rule)

    def rounds() -> None:
        for _ in range(CHECK):
            step(X, state, rule, FOR_EVER)

    return seconds(rounds, repeats) / CHECK


def accuracy(X: Any, B: Any) -> dict[str, float]:
    """Return how far the fused pass is from plain float64, for objective and gradient."""
    f, g = evaluate(X, B)
    errors = {}
    for name in ("pair", "double"):
        fused = stacks.Fused(X, B, pair=name == "pair", mbls=False, times=CHECK, capture=False)
        known = torch.as_tensor(constants(AutoStep(), FOR_EVER))
        batched.load(fused.shape, fused.buffers, X, B, known)
        batched.launch_pass(fused.shape, fused.buffers)
        unit = batched.unit_of_sums(X.shape[1])
        G, F = (sums.sum(2).double() / unit for sums in (fused.buffers.G, fused.buffers.F))
        errors[f"{name}_objective"] = float((F - f).norm() / f.norm())
        errors[f"{name}_gradient"] = float((G[..., : X.shape[2]] - g).norm() / g.norm())
    return errors


def small() -> dict[str, Any]:
    """One small problem: iterations, and whole fits."""
    X, B = problems(1)
    data = make_subspace(N, M, n_features=D, codimension=C, random_state=0)
    T = B.swapaxes(1, 2)

    def fit(**options: Any) -> Any:
        return dpcp_batch(X, starts=T, **options)

    found = fit()
    c = int(found.codimension[0])
    us = {
        "pair": 1e6 * fused_iteration(X, B, pair=True),
        "double": 1e6 * fused_iteration(X, B, pair=False),
        "eager": 1e6 * eager_iteration(X, B),
    }
    with mock.patch.object(stacks, "plan", return_value=_plan("torch")):
        fit()
        eager_fit = seconds(fit, 5)
    ms = {
        "fit": 1e3 * seconds(fit, 30),
        "fit_without_finish": 1e3 * seconds(lambda: fit(refine=False), 10),
        "fit_in_plain_torch": 1e3 * eager_fit,
    }
    again = fit()
    return {
        "shape": [N + M, D, K],
        "iteration_us": us,
        "eager_over_pair": us["eager"] / us["pair"],
        "fit_ms": ms,
        "n_iter": int(found.n_iter.max()),
        "codimension": c,
        "error": subspace_error(found.normals[0, :, :c].T.cpu().numpy(), data.normals),
        "wrong_labels": int((found.labels[0].cpu().numpy() != data.y).sum()),
        "same_bits_again": all(torch.equal(a, b) for a, b in zip(found, again, strict=True)),
        "relative_error_of_a_pass": accuracy(X, B),
    }


def many(p: int = 64) -> dict[str, Any]:
    """Many small problems: time of one iteration of all."""
    X, B = problems(p)
    us = {
        "pair": 1e6 * fused_iteration(X, B, pair=True),
        "double": 1e6 * fused_iteration(X, B, pair=False),
        "eager": 1e6 * eager_iteration(X, B),
    }
    read = X.numel() * 4 / (1e-6 * us["pair"])
    return {
        "problems": p,
        "iteration_us": us,
        "pair_us_each": us["pair"] / p,
        "eager_over_pair": us["eager"] / us["pair"],
        "pair_reads_bytes_per_second": read,
        "fit_ms_each": 1e3 * seconds(lambda: dpcp_batch(X, n_starts=K, random_state=0), 3) / p,
    }


# -- the grid --------------------------------------------------------------------------------------


def stored_trials(method: str) -> dict[tuple[int, int, int], dict[str, float]]:
    """Return the stored rows of a method by (N, M, seed)."""
    with STORED.open() as lines:
        return {
            (int(row["N"]), int(row["M"]), int(row["seed"])): {
                "error": float(row["error"]), "codimension": float(row["codimension"])
            }
            for row in csv.DictReader(lines)
            if row["method"] == method
        }  # fmt: skip


def batches(cases: list[tuple[int, int, int]]) -> Iterator[list[tuple[int, int, int]]]:
    """Put cases of similar size together: by rows, at most ROWS_IN_BATCH in a batch."""
    batch: list[tuple[int, int, int]] = []
    for case in sorted(cases, key=lambda case: case[0] + case[1]):
        if batch and (len(batch) + 1) * (case[0] + case[1]) > ROWS_IN_BATCH:
            yield batch
            batch = []
        batch.append(case)
    yield batch


def make_batch(batch: list[tuple[int, int, int]], pool: ThreadPoolExecutor) -> tuple[Any, Any, Any]:
    """Return rows (p, n, D) filled up with zeros, the numbers of rows, and the true normals."""
    longest = max(n_in + n_out for n_in, n_out, _ in batch)
    X = np.zeros((len(batch), longest, D))

    def make(i: int) -> Any:
        data = paper_data(D, C, batch[i][0], batch[i][1], batch[i][2])
        X[i, : len(data.X)] = data.X
        return data.normals

    normals = list(pool.map(make, range(len(batch))))
    return X, np.array([n_in + n_out for n_in, n_out, _ in batch]), normals


def solve_grid(k: int, kernels: str | None, **options: Any) -> dict[str, Any]:
    """Make and solve all cases; return errors by case, and the times."""
    cases = list(stored_trials(PSGM))
    starts = {seed: random_directions(starts_rng(seed), D, k) for seed in {c[2] for c in cases}}
    spent = {"data": 0.0, "copy": 0.0, "solve": 0.0, "measure": 0.0}
    found: dict[tuple[int, int, int], dict[str, float]] = {}
    plan = stacks.plan if kernels is None else mock.Mock(return_value=_plan(kernels))
    begin = time.perf_counter()
    with ThreadPoolExecutor(os.cpu_count()) as pool, mock.patch.object(stacks, "plan", plan):
        for batch in batches(cases):
            t = [time.perf_counter()]
            X, rows, truth = make_batch(batch, pool)
            t.append(time.perf_counter())
            X = torch.as_tensor(X).cuda()
            T = np.stack([starts[seed] for _, _, seed in batch])
            torch.cuda.synchronize()
            t.append(time.perf_counter())
            estimate = dpcp_batch(X, starts=T, n_rows=rows, **options)
            normals, codimension = estimate.normals.cpu().numpy(), estimate.codimension.tolist()
            t.append(time.perf_counter())
            for case, V, c, true in zip(batch, normals, codimension, truth, strict=True):
                found[case] = {"error": subspace_error(V[:, :c].T, true), "codimension": c}
            t.append(time.perf_counter())
            for name, a, b in zip(spent, t, t[1:], strict=False):
                spent[name] += b - a
    return {"found": found, "seconds": {"total": time.perf_counter() - begin, **spent}}


def _plan(kernels: str) -> stacks.Plan:
    return stacks.Plan(kernels, stacks.PAIR_FLOOR if kernels == "pair" else 0.0)


def recovered_cells(trials: dict[tuple[int, int, int], dict[str, float]]) -> set[tuple[int, int]]:
    """Return the cells in which 90 % of the trials are recovered."""
    cells: dict[tuple[int, int], list[bool]] = {}
    for (n_in, n_out, _), trial in trials.items():
        cells.setdefault((n_in, n_out), []).append(trial["error"] < RECOVERED)
    return {cell for cell, flags in cells.items() if np.mean(flags) >= OFTEN}


def compare(found: Any, stored: Any) -> dict[str, Any]:
    """Say in which trials and cells the two agree, and how near the limit the others are."""
    differ = [
        [*case, stored[case]["error"], found[case]["error"], stored[case]["codimension"],
         found[case]["codimension"]]
        for case in stored
        if (stored[case]["error"] < RECOVERED) != (found[case]["error"] < RECOVERED)
    ]  # fmt: skip
    ours, theirs = recovered_cells(found), recovered_cells(stored)
    return {
        "trials": len(stored),
        "recovered_trials": [
            sum(t["error"] < RECOVERED for t in table.values()) for table in (stored, found)
        ],
        "same_codimension": sum(
            found[case]["codimension"] == stored[case]["codimension"] for case in stored
        ),
        "recovered_cells": [len(theirs), len(ours)],
        "cells_that_differ": sorted(ours ^ theirs),
        "trials_that_differ": differ,
        "trials_columns": "N, M, seed, error stored and here, codimension stored and here",
    }


def grid() -> dict[str, Any]:
    """Solve the grid of the phase transition in three ways."""
    published = {"step": "mbls", "refine": False, "max_iter": 200}
    runs = {
        "published, float64": (solve_grid(2 * C, None, **published), PSGM),
        "published, bfloat16 pairs": (solve_grid(2 * C, "pair", **published), PSGM),
        "dpcp_batch()": (solve_grid(16, None), OURS),
    }
    return {
        name: {"seconds": run["seconds"], **compare(run["found"], stored_trials(method))}
        for name, (run, method) in runs.items()
    }


def main() -> None:
    """Measure everything, print it, and store it with --store."""
    properties = torch.cuda.get_device_properties(0)
    content = {
        "hardware": {
            **hardware(),
            "device": properties.name,
            "processors": properties.multi_processor_count,
            "torch": torch.__version__,
            "cores": os.cpu_count(),
        }
    }
    for part in (small, many, grid):
        content[part.__name__] = part()
        print(part.__name__, content[part.__name__], flush=True)
    if "--store" in sys.argv:
        store("cuda_batched", content)


if __name__ == "__main__":
    main()

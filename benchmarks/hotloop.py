"""Time of one whole iteration of ``step="auto"``, line search included, as ratios in one run.

Three ways to run the same rule from the same starts to the same end, on one thread:

- perpend: one fused pass over row blocks gives objective and gradient at every trial point;
- plain NumPy: one product for each trial of the starts that still search, one for the gradient;
- free line search: ``P = X B`` and ``Q = X G`` are kept, so that a trial costs no product; also
  in row blocks.

The limit is what two products (4 n D k flops) would take at the machine's own GEMM rate.
Run ``python benchmarks/hotloop.py``; add ``--store`` to write benchmarks/results/hotloop.json.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from _store import hardware, store

from perpend.datasets import make_subspace
from perpend.geometry import random_directions
from perpend.rows import as_rows
from perpend.rows.array import BLOCK_ENTRIES
from perpend.solvers import AutoStep, Outcome, psgm

SIZES = [(5000, 200, 10), (50_000, 200, 30), (1_000_000, 50, 16), (2_000_000, 10, 10)]
RULE = AutoStep()
TOL = 1e-9
MAX_ITER = 1000
REPEATS = 3


class Plain:
    """The products of plain NumPy: one for each trial, one for the gradient."""

    def __init__(self, X: Any, B: Any) -> None:
        self.X, self.B = X, B
        self.P = X @ B

    def gradient(self) -> Any:
        """Return X.T sign(X B)."""
        return self.X.T @ np.sign(self.P)

    def look(self, v: Any) -> None:
        """Prepare trials along v."""
        self.v: Any = v
        self.ahead: Any = None

    def objective(self, mu: Any, columns: Any) -> Any:
        """Return the objective after these steps, and remember where they lead."""
        trial = self.B[:, columns] - mu * self.v[:, columns]
        trial /= np.linalg.norm(trial, axis=0)
        P = self.X @ trial
        if len(columns) == self.B.shape[1]:
            self.ahead = P, trial
        else:
            self.ahead = self.ahead or (self.P.copy(), self.B.copy())
            self.ahead[0][:, columns], self.ahead[1][:, columns] = P, trial
        return np.abs(P).sum(axis=0)

    def move(self, mu: Any) -> None:  # noqa: ARG002
        """Take the last trial of every start."""
        self.P, self.B = self.ahead or (self.P, self.B)

    def leave(self, stay: Any) -> None:
        """Let the other starts rest."""
        self.P, self.B = self.P[:, stay], self.B[:, stay]


class Free(Plain):
    """The free line search: X v is kept too, so that a trial costs no product; in row blocks."""

    def __init__(self, X: Any, B: Any) -> None:
        rows = BLOCK_ENTRIES // X.shape[1]
        self.blocks = [slice(i, i + rows) for i in range(0, len(X), rows)]
        super().__init__(X, B)

    def gradient(self) -> Any:
        """Return X.T sign(X B)."""
        return sum(np.sign(self.P[s]).T @ self.X[s] for s in self.blocks).T

    def look(self, v: Any) -> None:
        """Prepare trials along v."""
        self.v, self.Q = v, np.empty_like(self.P)
        for s in self.blocks:
            np.matmul(self.X[s], v, out=self.Q[s])

    def objective(self, mu: Any, columns: Any) -> Any:
        """Return the sum of |P - mu Q| / sqrt(1 + mu^2)."""
        every = slice(None) if len(columns) == self.B.shape[1] else columns
        f = sum(np.abs(self.P[s, every] - mu * self.Q[s, every]).sum(axis=0) for s in self.blocks)
        return f / np.sqrt(1 + mu**2)

    def move(self, mu: Any) -> None:
        """Take a step mu of every start; some may be zero."""
        h = np.sqrt(1 + mu**2)
        self.B = (self.B - mu * self.v) / h
        for s in self.blocks:
            self.P[s] -= mu * self.Q[s]
            self.P[s] /= h


def synchronous(products: Plain) -> float:
    """Run the rule with all starts in step, as one would write it; return the mean iterations."""
    k = products.B.shape[1]
    f, mu = np.abs(products.P).sum(axis=0), np.full(k, RULE.mu0)
    n_iter, streak = np.zeros((2, k), dtype=int)
    total, before = 0, None
    while products.B.shape[1]:
        v, slope = RULE.search(products.B, products.gradient())
        if before is not None:
            taken = products.B - before
            turn = -np.sum(taken * v, axis=0) / np.linalg.norm(taken, axis=0)
            everyone = np.ones(len(mu), dtype=bool)
            mu = RULE.following(mu, Outcome(everyone, streak, n_iter, turn, turn, turn))
        before = products.B
        products.look(v)
        searching = np.flatnonzero(mu > TOL)
        accepted = np.zeros(len(mu), dtype=bool)
        while searching.size:
            f_trial = products.objective(mu[searching], searching)
            yes = RULE.accepts(
                f_trial, f[searching], mu[searching], slope[searching], n_iter[searching]
            )
            accepted[searching[yes]] = True
            f[searching[yes]] = f_trial[yes]
            streak[searching] = np.where(yes, streak[searching] + 1, 0)
            searching = searching[~yes]
            mu[searching] *= RULE.shrink
            searching = searching[mu[searching] > TOL]
        products.move(np.where(accepted, mu, 0.0))
        n_iter += accepted
        total += int(accepted.sum())
        stay = accepted & (n_iter < MAX_ITER)
        if not stay.all():
            products.leave(stay)
            f, mu, n_iter, streak, before = (x[..., stay] for x in (f, mu, n_iter, streak, before))
    return total / k


def gemm_rate() -> float:
    """Return the flops per second of a large product on one thread."""
    A = np.random.default_rng(0).standard_normal((1024, 1024))
    return 2 * 1024**3 / min(timed(lambda: A @ A)[0] for _ in range(10))


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds that a call takes, and its result."""
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def measure(n: int, D: int, k: int) -> dict[str, Any]:
    """Run all three from the same starts, best of several, interleaved."""
    data = make_subspace(n // 2, n - n // 2, n_features=D, codimension=k // 3, random_state=0)
    X = data.X
    B = random_directions(np.random.default_rng(1), D, k)
    rows = as_rows(X)
    ways: dict[str, Callable[[], Any]] = {
        "perpend": lambda: psgm(rows, B, rule=RULE, max_iter=MAX_ITER, tol=TOL),
        "plain": lambda: synchronous(Plain(X, B)),
        "free": lambda: synchronous(Free(X, B)),
    }
    best: dict[str, float] = {}
    ends: dict[str, Any] = {}
    for _ in range(REPEATS):
        for name, run in ways.items():
            seconds, ends[name] = timed(run)
            best[name] = min(seconds, best.get(name, np.inf))
    iterations = float(np.mean(ends["perpend"].n_iter))
    for name in ("plain", "free"):
        assert abs(ends[name] - iterations) < 0.1 * iterations, (name, ends[name], iterations)
    two_products = 4 * n * D * k / gemm_rate()
    ours = best["perpend"] / iterations
    return {
        "shape": [n, D, k],
        "iterations": iterations,
        "evaluations": ends["perpend"].n_evaluations,
        "ms_per_iteration": 1e3 * ours,
        "faster_than_plain": best["plain"] / ends["plain"] / ours,
        "faster_than_free_line_search": best["free"] / ends["free"] / ours,
        "share_of_gemm_rate": two_products / ours,
    }


def main() -> None:
    """Print the table; store it if asked to."""
    print("(n, D, starts)         its  ms/it   x plain  x free  share of two products at GEMM rate")
    results = []
    for size in SIZES:
        row = measure(*size)
        results.append(row)
        print(
            f"{size!s:22}{row['iterations']:4.0f} {row['ms_per_iteration']:7.2f}"
            f"{row['faster_than_plain']:8.2f}{row['faster_than_free_line_search']:8.2f}"
            f"{row['share_of_gemm_rate']:8.2f}",
            flush=True,
        )
    if "--store" in sys.argv:
        store("hotloop", {"hardware": hardware(), "results": results})


if __name__ == "__main__":
    main()

"""RSGM and STE beside Python code that others have released, on the same rows in one run.

The released code is run as it is, from a folder that you name; none of it is in this project:

- ``RSG.py`` by authors of `RSGM`: folder ``python`` of the repository
  A-Riemannian-SubGradient-Solver-for-Least-Absolute-Distance-Problem of github.com/tding1;
- ``STE.py``, a port of the Matlab code of `STE` (github.com/alexfengg/STE) with a function
  ``STE(X, d, gam)``, which others have published.

*Search* is what the released function does: from unit rows to the subspace, with the start, the
same steps and the same end. *Fit* is all that ``fit`` does: checks, span, labels, odds, confidence.
Both use the same constants, and both are asked how many iterations they made. Times are those of
the processor on one thread, in turns: medians of several.

Run ``python benchmarks/released.py FOLDER``; ``--store`` writes results/released.json.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import sys
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _store import hardware, options, store

from perpend import RSGM, STE, subspace_error
from perpend._typing import Array
from perpend.datasets import make_subspace
from perpend.methods.rsgm import STEPS
from perpend.rows import row_span
from perpend.rows.array import ArrayRows
from perpend.solvers import Directions, riemannian, spectral_starts
from perpend.solvers.loop import Progress

SIZES = [  # rows, features, codimension
    (2000, 9, 1),
    (2000, 9, 3),
    (50_000, 4, 1),
    (5000, 50, 5),
    (5000, 200, 5),
    (20_000, 100, 5),
]
OUTLIERS, GAMMA, STE_CAPS = 0.3, 2.0, {"tol": 1e-6, "max_iter": 500}  # the port's
REPEATS, SECONDS = 51, 6.0  # of each, and no further repeat after so many


class Clock:
    """Counts the steps of a reweighting and the time from the first to the last."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def __call__(self, progress: Progress) -> None:
        """Take the time after a step."""
        if progress.stage == "reweighting":
            self.times.append(time.process_time())

    @property
    def seconds(self) -> float:
        """The time of all steps; the first one is taken to be as long as the others."""
        n = len(self.times)
        return (self.times[-1] - self.times[0]) * n / (n - 1)


class Run(NamedTuple):
    """What one side took."""

    seconds: dict[str, float]
    normals: Array
    counts: dict[str, int]


def descent(X: Array, c: int) -> Directions:
    """Return the frame that `RSGM` ends at, from unit rows: the start, and the descent."""
    rows, how = ArrayRows(X), RSGM()
    start = spectral_starts(row_span(rows), c)
    return riemannian(rows, start, rule=STEPS["mbls"], max_iter=how.max_iter, tol=how.tol)


def ours(model: Any, X: Array) -> Run:
    """Take the seconds of fit and search, and count iterations and passes over the rows."""
    start = time.process_time()
    model.set_params(callback=None).fit(X)
    fit = time.process_time() - start
    if isinstance(model, RSGM):
        start = time.process_time()
        end = descent(X, model.codimension)
        search = time.process_time() - start
        counts = {"search": int(end.n_iter[0]), "passes": end.n_evaluations}
        return Run({"fit": fit, "search": search}, end.B.T, counts)
    clock = Clock()  # the port begins at the identity, so there is no start to add
    model.set_params(callback=clock).fit(X)
    counts = {"search": int(model.n_iter_), "passes": 1 + len(clock.times)}
    return Run({"fit": fit, "search": clock.seconds}, model.normals_, counts)


def theirs(find: Callable[[], tuple[Array, int]]) -> Run:
    """Take the seconds of the released function, and its number of iterations."""
    start = time.process_time()
    normals, n_iter = find()
    return Run({"released": time.process_time() - start}, normals, {"released": n_iter})


def compared(method: str, size: tuple[int, int, int]) -> dict[str, Any]:
    """Run both in turns, and return median times and how far their subspaces are apart."""
    n, D, c = size
    N = round(n * (1 - OUTLIERS))
    X = make_subspace(N, n - N, n_features=D, codimension=c, random_state=0).X
    columns = np.ascontiguousarray(X.T)
    if method == "RSGM":
        model: Any = RSGM(c)

        def find() -> tuple[Array, int]:
            solver = import_module("RSG").RiemannianSubGradient(c=c)
            found = solver.RSG_sphere(columns) if c == 1 else solver.RSG(columns)
            return found.B.reshape(D, c).T, found.it
    else:
        model = STE(c, gamma=GAMMA, **STE_CAPS)

        def find() -> tuple[Array, int]:
            scatter, all_ = import_module("STE").STE(columns, D - c, GAMMA)
            return np.linalg.eigh(scatter)[1][:, :c].T, len(all_)

    taken: dict[str, list[float]] = {}
    began = time.process_time()
    for i in range(REPEATS):
        if i and time.process_time() - began > SECONDS:
            break
        mine, other = ours(model, X), theirs(find)
        for name, seconds in {**mine.seconds, **other.seconds}.items():
            taken.setdefault(name, []).append(seconds)
    return {
        "method": method, "rows": n, "features": D, "codimension": c,
        "milliseconds": {name: 1e3 * float(np.median(all_)) for name, all_ in taken.items()},
        "iterations": {**mine.counts, **other.counts},
        "apart": subspace_error(mine.normals, other.normals),
    }  # fmt: skip


def main() -> None:
    """Print the table, and store it if that is wanted."""
    parser = options(__doc__)
    parser.add_argument("folder", type=Path, help="with RSG.py and STE.py")
    chosen = parser.parse_args()
    missing = [name for name in ("RSG.py", "STE.py") if not (chosen.folder / name).exists()]
    if missing:
        parser.error(f"{chosen.folder} has no {' and no '.join(missing)}.")
    sys.path.insert(0, str(chosen.folder))
    warnings.simplefilter("ignore")
    results = []
    for method in ("RSGM", "STE"):
        for size in SIZES:
            results.append(compared(method, size))
            row = results[-1]
            times = "  ".join(f"{k} {v:.1f} ms" for k, v in row["milliseconds"].items())
            print(f"{method:5} {size!s:16} {times}  apart {row['apart']:.0e}", flush=True)
    if chosen.store:
        store("released", {"hardware": hardware(), "outliers": OUTLIERS, "results": results})


if __name__ == "__main__":
    main()

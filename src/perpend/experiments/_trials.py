"""What the synthetic experiments share: the paper's data, its algorithm, and the measuring."""

import time
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsFloat

import numpy as np

from perpend._typing import Array
from perpend.experiments._experiment import Case, Results, Row

if TYPE_CHECKING:
    from perpend.datasets import SubspaceData
    from perpend.estimator import SubspaceEstimator

RECOVERED = 1e-2  # subspace error; 200 iterations of the published step often end above 1e-6
# The paper's piecewise geometric rule, in units of 1 / f(b0). It prints no constants: these are the
# best of four schedules that were tried on data of Figure 2, and the same in every experiment.
SCHEDULE: dict[str, Any] = {"mu0": 0.25, "K0": 300, "K_star": 20, "beta": 0.7}


def paper_data(D: int, c: int, N: int, M: int, seed: int) -> "SubspaceData":
    """Return unit inliers on a random subspace and unit outliers, both uniform, as in the paper."""
    from perpend.datasets import make_subspace

    rng = np.random.default_rng([seed, D, c, N, M])
    return make_subspace(N, M, n_features=D, codimension=c, random_state=rng)


def n_outliers(N: int, r: float) -> int:
    """Return M such that r = M / (M + N)."""
    return round(r / (1 - r) * N)


def starts_rng(seed: int) -> np.random.Generator:
    """Return a generator for the starts that has nothing in common with that of the data."""
    return np.random.default_rng([1_000_003, seed])


def violations(tangents: Array, bound: Array) -> int:
    """Return how many angles are above their bound, by more than rounding."""
    return int(np.sum(tangents > bound * (1 + 1e-9)))


class Problem(NamedTuple):
    """Data and random starts, as the theory needs them."""

    data: "SubspaceData"
    X_in: Array
    X_out: Array
    normals: Array  # (D, c)
    B0: Array  # (D, k)


def paper_problem(case: Case, n_starts: int) -> Problem:
    """Return the data of a case (D, c, N, M or r, seed) and starts for it."""
    from perpend.geometry import random_directions

    D, N, seed = case["D"], case["N"], case["seed"]
    M = case["M"] if "M" in case else n_outliers(N, case["r"])
    data = paper_data(D, case["c"], N, M, seed)
    B0 = random_directions(starts_rng(seed), D, n_starts)
    return Problem(data, data.X[data.y == 1], data.X[data.y == -1], data.normals.T, B0)


def dpcp_psgm(n_starts: int, seed: int, **options: Any) -> "SubspaceEstimator":
    """Return Algorithm 1 of the paper with the line search of the same group's releases.

    ``step="geometric"`` takes the paper's own rule, with `SCHEDULE`, instead.
    """
    from perpend import DPCP, solvers

    options = {"step": "mbls", "max_iter": 200, **options}
    if options["step"] == "geometric":
        options |= {"step": solvers.GeometricStep(**SCHEDULE), "max_iter": 1000}
    return DPCP(n_starts=n_starts, refine=False, random_state=starts_rng(seed), **options)


def fitted(model: "SubspaceEstimator", X: Array) -> tuple["SubspaceEstimator", float]:
    """Fit, and return the model and the CPU seconds it took; no warnings on screen.

    Where there is a GPU, it computes. A model without a seed gets one.
    """
    from perpend.rows.kinds import has_gpu

    seed = 0 if model.random_state is None else model.random_state
    model.set_params(device="cuda" if has_gpu() else None, random_state=seed)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    return model, time.process_time() - start


def measured(model: "SubspaceEstimator", data: "SubspaceData") -> Row:
    """Fit the model and return how far its estimate is from the truth."""
    from perpend import subspace_distance, subspace_error

    model, seconds = fitted(model, data.X)
    return {
        "codimension": int(model.codimension_),
        "distance": subspace_distance(model.normals_, data.normals),
        "error": subspace_error(model.normals_, data.normals),
        "confidence": float(model.confidence_),
        "iterations": int(model.n_iter_),
        "seconds": seconds,
    }


def percent(share: SupportsFloat) -> str:
    """Return a share as a percentage; only all and nothing are written as such.

    >>> percent(1.0), percent(0.996), percent(0.5), percent(0.9999), percent(0.0001)
    ('100 %', '99.6 %', '50 %', '99.9 %', '0.1 %')
    """
    value = round(100 * float(share), 6)
    if value.is_integer():
        return f"{value:.0f} %"
    return f"{min(max(round(value, 1), 0.1), 99.9):.1f} %"


def shares(
    results: Results, table: str, by: tuple[str, ...], across: str, **share: Callable[[Row], Any]
) -> list[dict[str, str]]:
    """Return the mean of a share over the trials: lines by some columns, across another one."""
    ((what, value),) = share.items()
    lines = []
    for key in results.groups(table, *by):
        line = dict(zip(by, key, strict=True))
        means = {
            f"{what}, {across} = {x}": percent(np.mean([value(row) for row in rows]))
            for (x,), rows in results.groups(table, across, **line).items()
        }
        lines.append({name: str(x) for name, x in line.items()} | means)
    return lines

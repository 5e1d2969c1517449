"""Rows in batches: `partial_fit` against `fit` on all rows, and the drift that it reports.

30 features, codimension 5, half of the rows outliers, noise 0.05, batches of 500 rows:

- *accuracy*: 100 batches, the error over that of `fit` on the same rows, also without noise;
- *turn*: 50 batches, then ten of rows that are turned by 10 degrees, in the plane of a random
  normal and a random direction of the subspace;
- *quiet*: 1000 batches in which nothing changes;
- *codimension*: 50 batches, then ten in which a normal is gone, or a direction of the subspace;
- *slow*: 200 batches, each turned by 0.02 degrees more.

Run ``python benchmarks/streaming.py``; ``--store`` writes results/streaming.json.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import pickle
import time
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from _store import hardware, options, store

from perpend import DPCP, subspace_error
from perpend._typing import Array
from perpend.datasets import make_subspace
from perpend.datasets._subspace import SubspaceData

FIRST_SEED = 217_020
SEEDS, QUIET_SEEDS = 20, 10
FEATURES, CODIMENSION, NOISE, BATCH = 30, 5, 0.05, 500
BATCHES, BEFORE, AFTER, QUIET, SLOW = 100, 50, 10, 1000, 200
ANGLE, SLOW_ANGLE = 10.0, 0.02  # degrees


def rows(seed: int, batches: int, codimension: int = CODIMENSION, noise: float = NOISE) -> Any:
    """Draw so many batches at once."""
    half = batches * BATCH // 2
    sizes = {"n_features": FEATURES, "codimension": codimension, "noise": noise}
    return make_subspace(half, half, **sizes, random_state=seed)


def cut(X: Array) -> Iterable[Array]:
    """Return the batches."""
    return X.reshape(-1, BATCH, FEATURES)


def turned(data: SubspaceData, degrees: float, rng: np.random.Generator) -> Array:
    """Return the rotation (D, D) of a random normal towards a random direction of the subspace."""
    n, u = (rng.standard_normal(len(A)) @ A for A in (data.normals, data.components))
    P = np.column_stack([n / np.linalg.norm(n), u / np.linalg.norm(u)])
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return np.eye(FEATURES) + P @ np.array([[c - 1, -s], [s, c - 1]]) @ P.T


def streamed(batches: Iterable[Array], seed: int) -> DPCP:
    """Return the model after all batches."""
    model = DPCP(random_state=seed)
    for batch in batches:
        model.partial_fit(batch)
    return model


def error(model: DPCP, normals: Array) -> float:
    """Return the subspace error, 1 where the codimension is wrong."""
    right = model.codimension_ == len(normals)
    return float(subspace_error(model.normals_, normals)) if right else 1.0


def accuracy(seed: int, noise: float) -> dict[str, Any]:
    """Compare with the fit on all rows."""
    data = rows(seed, BATCHES, noise=noise)
    start = time.process_time()
    model = streamed(cut(data.X), seed)
    seconds = time.process_time() - start
    fitted = DPCP(random_state=seed).fit(data.X)
    return {
        "error": error(model, data.normals),
        "error_of_fit": error(fitted, data.normals),
        "sure": bool(model.confidence_ >= 0.95),
        "reports": len(model.drifts_),
        "kilobytes": len(pickle.dumps(model)) // 1000,
        "ms_per_batch": 1e3 * seconds / BATCHES,
    }


def change(seed: int, codimension: int, degrees: float) -> dict[str, Any]:
    """Say when a change was reported, and what was found in the end."""
    first, rng = rows(seed, BEFORE), np.random.default_rng(seed)
    second = rows(seed + 10_000, AFTER, codimension)
    R = turned(first, degrees, rng)
    # in the axes of the first: its normals stay normals, or turn
    own, other = (np.vstack([one.normals, one.components]) for one in (first, second))
    R = R @ own.T @ other
    model = streamed([*cut(first.X), *cut(second.X @ R.T)], seed)
    late = [one["batch"] - BEFORE for one in model.drifts_ if one["batch"] > BEFORE]
    return {
        "early_reports": len(model.drifts_) - len(late),
        "delay": late[0] if late else None,  # 1: in the first batch after the change
        "reports": len(late),
        "angle": model.drifts_[-1]["angle"] if late else None,
        "error": error(model, second.normals @ R.T),
    }


def slow(seed: int) -> dict[str, Any]:
    """Follow a subspace that turns all the time."""
    data, R = rows(seed, SLOW), None
    model, off = DPCP(random_state=seed), []
    for i, batch in enumerate(cut(data.X)):
        R = turned(data, i * SLOW_ANGLE, np.random.default_rng(seed))
        model.partial_fit(batch @ R.T)
        off.append(error(model, data.normals @ R.T))
    late = np.degrees(np.arcsin(np.minimum(off[SLOW // 2 :], 1.0)))
    return {"reports": len(model.drifts_), "median_angle_off": float(np.median(late))}


def main() -> None:
    """Print the figures; store them with --store."""
    chosen = options(__doc__, seeds=SEEDS, first=FIRST_SEED).parse_args()
    n, first = chosen.seeds, chosen.first
    kinds = {"turn": (CODIMENSION, ANGLE), "gone": (CODIMENSION - 1, 0.0)}
    kinds["flatter"] = (CODIMENSION + 1, 0.0)
    result: dict[str, Any] = {"hardware": hardware(), "first_seed": first, "batch": BATCH}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # drift is counted, not announced
        for name, noise in (("noisy", NOISE), ("exact", 0.0)):
            result[name] = [accuracy(first + i + (noise == 0) * 50, noise) for i in range(n)]
        for j, (name, kind) in enumerate(kinds.items(), 1):
            result[name] = [change(first + 100 * j + i, *kind) for i in range(n)]
        result["slow"] = [slow(first + 500 + i) for i in range(min(n, 5))]
        result["quiet"] = [
            len(streamed(cut(rows(first + 600 + i, QUIET).X), first + 600 + i).drifts_)
            for i in range(min(n, QUIET_SEEDS))
        ]
    for name, part in result.items():
        print(name, part, flush=True)
    if chosen.store:
        store("streaming", result)


if __name__ == "__main__":
    main()

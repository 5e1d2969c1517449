"""Planes: how often the 95 % region holds the truth, and what a frame costs after another one.

Draws planes in 3-D and subspaces of codimension 3 in 10 features, with and without outliers, and
counts how often the true one is inside the 95 % region of the fit (``p_value`` of at least 0.05).
Then a drive: frames of 100,000 points whose road tilts slowly, fitted without and with
``init=last``; and the KITTI frames in the folder named by PERPEND_DATA, each after the other.

Run ``python benchmarks/planes.py`` (about ten minutes on one core). ``--draws 50`` is a quick try,
``--store`` writes benchmarks/results/planes.json.
"""

import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _store import hardware, options, store

from perpend import DPCP
from perpend.datasets import make_subspace
from perpend.exceptions import CodimensionWarning

DRAWS, N = 1000, 1000
SHARES = (0.0, 0.3, 0.6)  # of outliers
LEAST, MOST = 0.93, 0.97
FRAMES, POINTS, SEEDS = 20, 100_000, 10
Array = np.ndarray[Any, Any]


def plane(rng: np.random.Generator, n_out: int) -> tuple[Array, Array, Array | None]:
    """Return points of a room around a plane with noise .02, its normal and its intercept."""
    n = N - n_out
    X = rng.uniform([-4, -3, -1.5], [4, 3, 2.5], (N, 3))
    X[:n, 2] = 0
    X[:n] += rng.normal(0, 0.02, (n, 3))
    Q, _ = np.linalg.qr(rng.standard_normal((3, 3)))
    away = rng.normal(0, 5, 3)
    return X @ Q.T + away, Q[:, 2:].T, Q[:, 2:].T @ away


def subspace(rng: np.random.Generator, n_out: int) -> tuple[Array, Array, Array | None]:
    """Return rows around a linear subspace of codimension 3 in 10 features, and its normals."""
    data = make_subspace(
        N - n_out, n_out, n_features=10, codimension=3, noise=0.05, random_state=rng
    )
    return data.X, data.normals, None


def coverage(draws: int) -> list[dict[str, Any]]:
    """Count the draws whose 95 % region holds the truth."""
    results = []
    for name, draw, affine in (("plane", plane, True), ("subspace", subspace, False)):
        for share in SHARES:
            inside, angles, other = 0, [], 0
            for seed in range(draws):
                X, normals, offset = draw(np.random.default_rng([18, seed]), round(share * N))
                model = DPCP(affine=affine, random_state=seed).fit(X)
                if model.codimension_ != len(normals):
                    other += 1
                    continue
                inside += model.p_value(normals, offset) >= 0.05
                angles.append(model.uncertainty().angle)
            row = {"kind": name, "outliers": share, "draws": draws, "inside": int(inside)}
            row |= {"other_codimension": other, "angle": float(np.median(angles))}
            results.append(row)
            print(row, flush=True)
    return results


def frame(i: int) -> tuple[Array, Array]:
    """Return a street whose road has tilted by .1 and .05 degrees a frame, and its normal."""
    rng, m = np.random.default_rng([19, i]), round(0.35 * POINTS)
    road = np.column_stack([rng.uniform([-40, -8], [40, 8], (m, 2)), rng.normal(0, 0.02, m)])
    k = POINTS - m
    beside = rng.choice([-1, 1], k) * rng.uniform(6, 15, k)
    things = np.column_stack([rng.uniform(-40, 40, k), beside, np.abs(rng.normal(0, 1.5, k))])
    a, b = np.radians([0.1 * i, 0.05 * i])
    pitch = [[np.cos(a), 0, np.sin(a)], [0, 1, 0], [-np.sin(a), 0, np.cos(a)]]
    roll = [[1, 0, 0], [0, np.cos(b), -np.sin(b)], [0, np.sin(b), np.cos(b)]]
    R = np.array(pitch) @ np.array(roll)
    return np.vstack([road, things]) @ R.T + [0, 0, -1.7 + 0.01 * i], R[:, 2]


def fitted(X: Array, seed: int, init: DPCP | None = None) -> tuple[DPCP, float]:
    """Return a model and its CPU seconds."""
    start = time.process_time()
    model = DPCP(affine=True, random_state=seed).fit(X, init=init)
    return model, time.process_time() - start


def compared(name: str, pairs: list[tuple[Array, Array | None, int]]) -> dict[str, Any]:
    """Fit frames without and with the last one as start; each has points, normal and seed."""
    seconds: dict[str, list[float]] = {"without": [], "with": []}
    last, tracked, angles = None, 0, []
    for X, normal, seed in pairs:
        cold, time_cold = fitted(X, seed)
        if last is not None:
            warm, time_warm = fitted(X, seed, last)
            seconds["without"].append(time_cold)
            seconds["with"].append(time_warm)
            tracked += "path" not in warm.history_["stages"]
            true = cold.normals_[0] if normal is None else normal
            sine = np.linalg.norm(np.cross(warm.normals_[0], true))
            angles.append(float(np.degrees(np.arcsin(min(sine, 1.0)))))
        last = cold if last is None else warm
    row = {"name": name, "frames": len(angles), "points": len(pairs[0][0]), "tracked": tracked}
    row |= {key: float(np.median(values)) for key, values in seconds.items()}
    row |= {"median_angle": float(np.median(angles)), "largest_angle": max(angles)}
    print(row, flush=True)
    return row


def main() -> None:
    """Run the draws and the frames; store them with --store."""
    parser = options(__doc__)
    parser.add_argument("--draws", type=int, default=DRAWS)
    chosen = parser.parse_args()
    frames = [compared("a drive", [(*frame(i), i) for i in range(FRAMES)])]
    folder = Path(os.environ.get("PERPEND_DATA", "")) / "kitti_roadplane"
    scans = [np.load(path)["points"] for path in sorted(folder.glob("*.npz"))]
    if len(scans) > 1:
        pairs = [(scans[i % len(scans)], None, i) for i in range(1 + 2 * SEEDS)]
        frames.append(compared("KITTI, two frames in turn", pairs))
    found = {"least": LEAST, "most": MOST, "coverage": coverage(chosen.draws), "frames": frames}
    if chosen.store:
        store("planes", {"hardware": hardware(), **found})


if __name__ == "__main__":
    warnings.simplefilter("ignore", CodimensionWarning)
    main()

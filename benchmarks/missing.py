"""How much is lost with missing entries? Many seeds, stored results.

Inliers are uniform on the unit sphere of a subspace of R^30, with noise 0.01; 60 % of the rows are
outliers, uniform on the whole sphere. Entries are missing at random. ``DPCP(missing="mask")`` is
beside the same fit to the complete rows, to those rows alone that happen to be complete, and to
rows with column means for missing entries. Clouds have no subspace: no estimate there may be sure.

Run ``python benchmarks/missing.py`` (about ten minutes on one core). ``--seeds 5`` is a quick try,
``--first 1000`` takes other seeds, ``--store`` writes benchmarks/results/missing.json.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import time
import warnings
from typing import Any

import numpy as np
from _store import hardware, options, store

from perpend import DPCP, subspace_error
from perpend._typing import Array
from perpend.datasets import make_subspace

SEEDS, FIRST = 50, 200_000
RATIO = 1.5
D, N_INLIERS, N_OUTLIERS, NOISE = 30, 500, 750, 0.01
# codimension, share missing, and whether there is a target
SETTINGS = [(5, 0.05, True), (15, 0.2, True), (2, 0.02, False), (5, 0.1, False), (15, 0.3, False)]
CLOUDS = [(200, 8, 0.1), (300, 20, 0.2), (1000, 10, 0.05)]  # rows, features, share missing
WAYS = ("complete", "mask", "drop", "mean")


def prepared(X: Array, gaps: Array) -> dict[str, Array]:
    """Return the rows as each way sees them."""
    means = np.where(np.isnan(gaps), np.nanmean(gaps, axis=0), gaps)
    whole = ~np.isnan(gaps).any(axis=1)
    return {"complete": X, "mask": gaps, "drop": gaps[whole], "mean": means}


def with_gaps(X: Array, share: float, seed: int) -> Array:
    """Return the rows with entries missing at random."""
    rng = np.random.default_rng([seed, 1])
    return np.where(rng.random(X.shape) < share, np.nan, X)


def fitted(X: Array, seed: int, way: str) -> DPCP | None:
    """Fit, given only the rows; None without enough of them."""
    if len(X) < 2:
        return None
    missing = "mask" if way == "mask" else "error"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return DPCP(missing=missing, random_state=seed + 1_000_000).fit(X)


def trial(c: int, share: float, seed: int) -> dict[str, dict[str, float]]:
    """Return what each way finds."""
    data = make_subspace(
        N_INLIERS, N_OUTLIERS, n_features=D, codimension=c, noise=NOISE, random_state=seed
    )
    found = {}
    for way, X in prepared(data.X, with_gaps(data.X, share, seed)).items():
        began = time.process_time()
        model = fitted(X, seed, way)
        right = model is not None and model.codimension_ == c
        found[way] = {
            "right": float(right),
            "sure": float(model is not None and model.confidence_ >= 0.95),
            "error": subspace_error(model.normals_, data.normals) if model and right else 1.0,
            "seconds": time.process_time() - began,
        }
        if way == "mask" and model is not None:
            decided = np.delete(model.labels_ == data.y, model.undecided_)
            found[way] |= {
                "labels": float(decided.mean()),
                "undecided": len(model.undecided_) / len(X),
            }
    return found


def run(c: int, share: float, target: bool, seeds: range) -> dict[str, Any]:
    """Run all seeds of a setting."""
    trials = [trial(c, share, seed) for seed in seeds]
    row: dict[str, Any] = {"c": c, "share": share, "seeds": len(seeds), "ways": {}}
    for way in WAYS:
        numbers = [one[way] for one in trials]
        sure_wrong = sum(one["sure"] and not one["right"] for one in numbers)
        row["ways"][way] = {
            "right": sum(one["right"] for one in numbers),
            "sure": sum(one["sure"] for one in numbers),
            "sure_and_wrong": sure_wrong,
            "error": float(np.mean([one["error"] for one in numbers])),
            "seconds": float(np.median([one["seconds"] for one in numbers])),
        }
    ratios = [one["mask"]["error"] / one["complete"]["error"] for one in trials]
    row["ratio"] = row["ways"]["mask"]["error"] / row["ways"]["complete"]["error"]
    row["worst"] = max(ratios)
    row["labels"] = float(np.mean([one["mask"]["labels"] for one in trials]))
    row["undecided"] = float(np.mean([one["mask"]["undecided"] for one in trials]))
    row["target"] = RATIO if target else None
    return row


def run_clouds(n: int, n_features: int, share: float, seeds: range) -> dict[str, Any]:
    """Return how many estimates are sure where there is no subspace."""
    sure = 0
    for seed in seeds:
        X = np.random.default_rng([seed, 2]).standard_normal((n, n_features))
        model = fitted(with_gaps(X, share, seed), seed, "mask")
        assert model is not None
        sure += model.confidence_ >= 0.95 and model.codimension_ > 0
    return {"n": n, "D": n_features, "share": share, "seeds": len(seeds), "sure": int(sure)}


def main() -> None:
    """Print the tables; store them with --store."""
    chosen = options(__doc__, seeds=SEEDS, first=FIRST).parse_args()
    seeds = range(chosen.first, chosen.first + chosen.seeds)
    mixed, clouds = [], []
    for c, share, target in SETTINGS:
        row = run(c, share, target, seeds)
        mixed.append(row)
        print(f"c {c}, {share:.0%} missing: ratio {row['ratio']:.3f}, worst {row['worst']:.3f}")
        print(f"   labels {row['labels']:.4f}, undecided {row['undecided']:.4f}")
        for way, numbers in row["ways"].items():
            print("  ", way, {key: round(value, 4) for key, value in numbers.items()}, flush=True)
    for shape in CLOUDS:
        clouds.append(run_clouds(*shape, seeds))
        print(clouds[-1], flush=True)
    if chosen.store:
        content = {"first_seed": chosen.first, "mixed": mixed, "clouds": clouds}
        store("missing", {"hardware": hardware(), **content})


if __name__ == "__main__":
    main()

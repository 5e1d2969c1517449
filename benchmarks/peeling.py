"""How often `perpend.peel` finds all subspaces, and nothing where there is none.

Members are uniform on the unit sphere of their subspace, outliers on the whole sphere; every row
then has a length of its own, as rows that are equal count once. *All found*: as many subspaces as
there are, each with the right codimension and a member F1 of 0.95 or more.

Run ``python benchmarks/peeling.py`` (about an hour on two cores). ``--seeds 5`` is a quick try,
``--first 1000`` takes other seeds, ``--only "R^3"`` the settings with this in their name,
``--store`` writes benchmarks/results/peeling.json and keeps what it holds of other settings.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import json
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from _store import RESULTS, hardware, options, store

from perpend import peel
from perpend.datasets import make_subspace
from perpend.geometry import random_directions

F1 = 0.95  # of the members, at the least


class Setting(NamedTuple):
    """One row of the table; `least` is the share of the seeds that must be right, if any must."""

    name: str
    n_features: int
    parts: tuple[tuple[int, int], ...]  # dimension and number of rows of each subspace
    n_outliers: int
    noise: float = 0.0
    seeds: int = 20
    least: float | None = None
    outliers: str = "sphere"


def settings() -> list[Setting]:
    """Return the table."""
    table = []
    for noise in (0.0, 0.02):
        table += [
            Setting(
                "25 dimensions and a plane, R^30", 30, ((25, 500), (2, 1000)), 0, noise, 50, 0.9
            ),
            Setting("two of 10 dimensions, R^30", 30, ((10, 300),) * 2, 300, noise, 50, 0.9),
            Setting("three of 10 dimensions, R^30", 30, ((10, 300),) * 3, 300, noise),
            Setting("10 dimensions, 500 and 200, R^30", 30, ((10, 500), (10, 200)), 300, noise),
            Setting("two planes, R^3", 3, ((2, 200),) * 2, 200, noise),
            Setting("a line and a plane, R^3", 3, ((1, 200), (2, 200)), 200, noise),
            Setting("three planes, R^4", 4, ((2, 200),) * 3, 200, noise),
            Setting("25 dimensions alone, R^30", 30, ((25, 500),), 500, noise),
            Setting("a plane alone, R^3", 3, ((2, 200),), 200, noise),
        ]
    for kind in ("sphere", "normal"):
        for D, n in ((3, 300), (3, 3000), (10, 300), (10, 3000), (30, 300), (30, 3000)):
            name = f"nothing, {n} rows, {kind}, R^{D}"
            table.append(Setting(name, D, (), n, 0.0, 20, 1.0, kind))
    return table


def draw(setting: Setting, seed: int) -> tuple[Any, Any]:
    """Return rows in random order, and the number of the subspace of each, -1 for outliers."""
    rng = np.random.default_rng(seed)
    D = setting.n_features
    rows = [random_directions(rng, D, setting.n_outliers).T]
    for d, n in setting.parts:
        rows.append(
            make_subspace(
                n, 0, n_features=D, codimension=D - d, noise=setting.noise, random_state=rng
            ).X
        )
    y = np.repeat(np.arange(-1, len(setting.parts)), [len(part) for part in rows])
    X = np.vstack(rows)
    if setting.outliers == "normal":
        X *= np.sqrt(rng.chisquare(D, len(X)))[:, None]  # Gaussian vectors have these lengths
    elif setting.parts:
        X *= rng.lognormal(size=len(X))[:, None]
    order = rng.permutation(len(X))
    return X[order], y[order]


def trial(setting: Setting, seed: int) -> tuple[int, float, float, float]:
    """Return how many were found, the smallest F1, the smallest confidence, and the time."""
    X, y = draw(setting, seed)
    D = setting.n_features
    start = time.process_time()
    # The same seed would draw the starts from the numbers that drew the data.
    found = peel(X, random_state=seed + 1_000_000)
    seconds = time.process_time() - start
    scores = [
        max((_f1(found.labels == k, y == i) for k in _with(D - d, found)), default=0.0)
        for i, (d, _) in enumerate(setting.parts)
    ]
    confidence = min((s.confidence for s in found.subspaces), default=1.0)
    return len(found.subspaces), min(scores, default=1.0), confidence, seconds


def _with(codimension: int, found: Any) -> list[Any]:
    """Return the numbers of the subspaces with this codimension."""
    return [k for k, s in enumerate(found.subspaces) if s.codimension == codimension]


def _f1(members: Any, truth: Any) -> float:
    return float(2 * np.sum(members & truth) / (np.sum(members) + np.sum(truth)))


def run(setting: Setting, seeds: range, pool: ProcessPoolExecutor) -> dict[str, Any]:
    """Run all seeds of a setting and count."""
    count, f1, confidence, seconds = map(
        np.array, zip(*pool.map(trial, [setting] * len(seeds), seeds), strict=True)
    )
    there = len(setting.parts)
    right = (count == there) & (f1 >= F1)
    return {
        **setting._asdict(),
        "seeds": len(seeds),
        "first_seed": seeds[0],
        "right": int(right.sum()),
        "too_many": int(np.sum(count > there)),
        "too_few": int(np.sum(count < there)),
        "median_f1": float(np.median(f1)),
        "sure": int(np.sum(right & (confidence >= 0.95))),
        "median_seconds": float(np.median(seconds)),
    }


def verdicts(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Return, for each setting with a target, how often it is met and whether that is enough."""
    return {
        f"{row['name']}, noise {row['noise']:g}": {
            "right": row["right"],
            "of": row["seeds"],
            "required": row["least"],
            "met": row["right"] >= row["least"] * row["seeds"],
        }
        for row in results
        if row["least"] is not None
    }


def kept_before() -> dict[tuple[str, float], dict[str, Any]]:
    """Return the stored rows by name and noise."""
    path = RESULTS / "peeling.json"
    rows = json.loads(path.read_text())["results"] if path.exists() else []
    return {(row["name"], row["noise"]): row for row in rows}


def main() -> None:
    """Print the table; store it with --store."""
    parser = options(__doc__, seeds=None, first=0, jobs=2)
    parser.add_argument("--only", default="", help="settings with this in their name")
    chosen = parser.parse_args()
    print(f"{'':38} noise seeds right  many   few  sure     F1  CPU s")
    table, measured = settings(), {}
    with ProcessPoolExecutor(chosen.jobs) as pool:
        for setting in table:
            if chosen.only not in f"{setting.name}, noise {setting.noise:g}":
                continue
            count = chosen.seeds or setting.seeds
            row = run(setting, range(chosen.first, chosen.first + count), pool)
            measured[setting.name, setting.noise] = row
            print(
                f"{row['name']:38} {row['noise']:5} {count:5} {row['right']:5} "
                f"{row['too_many']:5} {row['too_few']:5} {row['sure']:5} {row['median_f1']:6.3f} "
                f"{row['median_seconds']:6.1f}",
                flush=True,
            )
    if chosen.store:
        known = kept_before() | measured
        keys = [(setting.name, setting.noise) for setting in table]
        results = [known[key] for key in keys if key in known]
        store("peeling", {"hardware": hardware(), "targets": verdicts(results), "results": results})
    missed = [
        name for name, target in verdicts(list(measured.values())).items() if not target["met"]
    ]
    if missed:
        raise SystemExit(f"targets that are missed: {'; '.join(missed)}")


if __name__ == "__main__":
    main()

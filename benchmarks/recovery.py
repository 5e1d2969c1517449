"""How often is the subspace recovered, and how sure is the estimate? Many seeds, stored results.

Inliers are uniform on the unit sphere of the subspace, outliers on the whole sphere; r is the share
of outliers. *Exact*: right codimension and subspace error below 1e-9. *Sure*: confidence 0.95.

Run ``python benchmarks/recovery.py`` (about 20 minutes on two cores). ``--seeds 5`` is a quick
try, ``--first 1000`` takes other seeds, ``--store`` writes benchmarks/results/recovery.json. A
target is checked over all codimensions of a setting together.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from _store import hardware, options, store

from perpend import DPCP, subspace_error
from perpend.datasets import make_subspace


class Setting(NamedTuple):
    """One row of the table; `target` names what must be met."""

    n_features: int
    codimension: int
    n_inliers: int
    n_outliers: int
    seeds: int
    target: str  # "exact" or "right"
    least: float  # share of the seeds in which the target must be met
    noise: float = 0.0
    n_starts: Any = "auto"

    @property
    def group(self) -> tuple[Any, ...]:
        """What settings have in common that differ in the codimension alone."""
        return self.n_features, self.n_inliers, self.n_outliers, self.noise, self.n_starts


def settings() -> list[Setting]:
    """Return the table of what must hold."""
    table = []
    for n_starts in (30, "auto"):
        for c in range(10, 21):
            table.append(Setting(200, c, 1500, 2250, 20, "exact", 1.0, n_starts=n_starts))
            table.append(Setting(200, c, 1500, 3500, 20, "exact", 0.99, n_starts=n_starts))
    table += [
        Setting(200, 5, 1500, 1500, 20, "exact", 1.0, n_starts=10),
        Setting(200, 5, 1500, 3000, 20, "exact", 1.0, n_starts=10),
        Setting(30, 5, 500, 1167, 50, "exact", 1.0),
        Setting(10, 6, 2000, 8000, 50, "exact", 1.0),
        Setting(3, 1, 200, 200, 50, "exact", 1.0),
    ]
    for noise in (0.05, 0.1):
        table += [
            Setting(200, 10, 1500, 2250, 100, "right", 0.98, noise),
            Setting(30, 5, 1000, 1500, 100, "right", 0.98, noise),
            Setting(10, 6, 2000, 8000, 100, "right", 0.98, noise),
        ]
    return table


def trial(setting: Setting, seed: int) -> tuple[bool, float, float, float]:
    """Return whether the codimension is right, the error, the confidence, and the time."""
    data = make_subspace(
        setting.n_inliers,
        setting.n_outliers,
        n_features=setting.n_features,
        codimension=setting.codimension,
        noise=setting.noise,
        random_state=seed,
    )
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # The same seed would draw the starts from the numbers that drew the subspace.
        model = DPCP(n_starts=setting.n_starts, random_state=seed + 1_000_000).fit(data.X)
    seconds = time.perf_counter() - start
    right = model.codimension_ == setting.codimension
    return right, subspace_error(model.normals_, data.normals), model.confidence_, seconds


def run(setting: Setting, seeds: range, pool: ProcessPoolExecutor) -> dict[str, Any]:
    """Run all seeds of a setting and count."""
    right, error, confidence, seconds = map(
        np.array, zip(*pool.map(trial, [setting] * len(seeds), seeds), strict=True)
    )
    sure = confidence >= 0.95
    return {
        **setting._asdict(),
        "seeds": len(seeds),
        "right": int(right.sum()),
        "exact": int(np.sum(right & (error < 1e-9))),
        "sure": int(sure.sum()),
        "sure_and_wrong": int(np.sum(sure & ~right)),
        "median_error": float(np.median(error)),
        "median_seconds": float(np.median(seconds)),
    }


def verdicts(table: list[Setting], results: list[dict[str, Any]]) -> dict[str, Any]:
    """Return, for each group of settings, how often its target is met, and if that is enough."""
    found: dict[str, Any] = {}
    for group in dict.fromkeys(setting.group for setting in table):
        members = [i for i, setting in enumerate(table) if setting.group == group]
        target, least = table[members[0]].target, table[members[0]].least
        met = sum(results[i][target] for i in members)
        seeds = sum(results[i]["seeds"] for i in members)
        wrong = sum(results[i]["sure_and_wrong"] for i in members)
        name = "D={} N={} M={} noise={} n_starts={}".format(*group)
        found[name] = {
            target: met,
            "of": seeds,
            "required": least,
            "sure_and_wrong": wrong,
            "met": met >= least * seeds and wrong == 0,
        }
    return found


def main() -> None:
    """Print the table; store it with --store."""
    chosen = options(__doc__, seeds=None, first=0).parse_args()
    print("   D   c     N     M noise starts  seeds right exact  sure wrong&sure  error")
    table, results = settings(), []
    with ProcessPoolExecutor(2) as pool:
        for setting in table:
            count = chosen.seeds or setting.seeds
            row = run(setting, range(chosen.first, chosen.first + count), pool)
            results.append(row)
            print(
                f"{row['n_features']:4} {row['codimension']:3} {row['n_inliers']:5} "
                f"{row['n_outliers']:5} {row['noise']:5} {row['n_starts']!s:>6} {count:6} "
                f"{row['right']:5} {row['exact']:5} {row['sure']:5} {row['sure_and_wrong']:8} "
                f"{row['median_error']:9.1e}",
                flush=True,
            )
    summary = verdicts(table, results)
    for name, verdict in summary.items():
        print(name, verdict)
    if chosen.store:
        content = {"hardware": hardware(), "first_seed": chosen.first, "targets": summary}
        store("recovery", {**content, "results": results})
    if not all(verdict["met"] for verdict in summary.values()):
        raise SystemExit("some targets are missed")


if __name__ == "__main__":
    main()

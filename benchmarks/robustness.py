"""How much the estimate tolerates: noise, stretched inliers, and more outliers than the l1 limit.

Three parts, each with `DPCP()` given only the rows; r is the share of outliers, uniform on the
sphere. *noise*: the error over that of an oracle, PCA on the true inliers. *stretched*: inliers
whose standard deviations fall geometrically from 1 to the stretch, without noise. *beyond*:
without noise, at shares of outliers at which descents on the l1 objective alone mostly fail.
*Recovered*: right codimension, and an error below the part's bound if it has one. *Sure*:
confidence 0.95.

Run ``python benchmarks/robustness.py`` (about 40 minutes on two cores). ``--only noise`` runs one
part, ``--seeds 3`` is a quick try, ``--first 1000`` takes other seeds, ``--store`` writes
benchmarks/results/robustness.json after every setting and keeps what it holds of other settings.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import json
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from _store import RESULTS, hardware, options, store

from perpend import DPCP, subspace_error
from perpend.datasets import SubspaceData, make_subspace
from perpend.rows.kinds import has_gpu

RATIO = 1.2  # median error over the oracle's, at the most
NOISE_OFF = 0.1  # of the true noise: how far the median of `noise_` may be from it
SURE = 0.95


class Setting(NamedTuple):
    """One row of the table; `least` is the share of the seeds that must be recovered."""

    part: str
    n_features: int
    codimension: int
    n_inliers: int
    r: float
    least: float
    seeds: int
    within: float | None = None  # bound of the error, if there is one
    noise: float = 0.0
    stretch: float = 1.0

    @property
    def n_outliers(self) -> int:
        """M = r / (1 - r) N."""
        return round(self.r / (1 - self.r) * self.n_inliers)

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells a setting from all others."""
        return tuple(getattr(self, name) for name in KEY)


KEY = ("part", "n_features", "codimension", "n_inliers", "r", "noise", "stretch")


def settings() -> list[Setting]:
    """Return the table of what must hold."""
    table = [
        Setting("noise", *shape, 0.98, 50, noise=noise)
        for shape in ((10, 6, 2000, 0.8), (30, 5, 1000, 0.7), (200, 10, 1500, 0.6),
                      (200, 10, 1500, 0.7))
        for noise in (0.01, 0.05, 0.1, 0.2)
    ]  # fmt: skip
    table += [
        Setting("stretched", *shape, least, 100, within=1e-6, stretch=stretch)
        for shape in ((30, 5, 500, 0.5), (30, 5, 500, 0.7), (100, 20, 2000, 0.5))
        for stretch, least in ((0.1, 0.98), (0.03, 0.95), (0.01, 0.6))
    ]
    table += [
        Setting("beyond", 200, c, 1500, r, least, 100, within=1e-9)
        for c, r, least in ((5, 0.8, 0.99), (5, 0.84, 0.95), (5, 0.86, 0.8), (10, 0.9, 0.8))
    ]
    return table


class Trial(NamedTuple):
    """What one fit gave."""

    right: bool
    error: float
    confidence: float
    noise: float
    oracle_error: float
    seconds: float


def trial(setting: Setting, seed: int) -> Trial:
    """Fit one problem."""
    data = make_subspace(
        setting.n_inliers,
        setting.n_outliers,
        n_features=setting.n_features,
        codimension=setting.codimension,
        noise=setting.noise,
        stretch=setting.stretch,
        random_state=seed,
    )
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an unsure estimate is counted, not announced
        # The same seed would draw the starts from the numbers that drew the subspace.
        device = "cuda" if has_gpu() else None
        model = DPCP(random_state=seed + 1_000_000, device=device).fit(data.X)
    seconds = time.process_time() - start
    return Trial(
        model.codimension_ == setting.codimension,
        subspace_error(model.normals_, data.normals),
        model.confidence_,
        model.noise_,
        oracle_error(data) if setting.noise > 0 else 0.0,
        seconds,
    )


def oracle_error(data: SubspaceData) -> float:
    """Return the error of the c smallest eigenvectors of the inliers' gram matrix."""
    inliers = data.X[data.y == 1]  # of unit norm
    _, vectors = np.linalg.eigh(inliers.T @ inliers)
    return subspace_error(vectors[:, : len(data.normals)].T, data.normals)


def run(setting: Setting, seeds: range, pool: ProcessPoolExecutor) -> dict[str, Any]:
    """Run all seeds of a setting and count."""
    trials = pool.map(trial, [setting] * len(seeds), seeds)
    right, error, confidence, noise, oracle, seconds = map(np.array, zip(*trials, strict=True))
    sure = confidence >= SURE
    recovered = right if setting.within is None else right & (error < setting.within)
    row = {
        **setting._asdict(),
        "n_outliers": setting.n_outliers,
        "seeds": len(seeds),
        "first_seed": seeds[0],
        "right": int(right.sum()),
        "recovered": int(recovered.sum()),
        "sure": int(sure.sum()),
        "sure_and_wrong": int(np.sum(sure & ~right)),
        "median_error": float(np.median(error)),
        "median_seconds": float(np.median(seconds)),
    }
    if setting.noise > 0:
        row |= {
            "median_oracle_error": float(np.median(oracle)),
            "ratio_of_medians": float(np.median(error) / np.median(oracle)),
            "median_of_ratios": float(np.median(error / oracle)),
            "median_noise": float(np.median(noise)),
        }
    return row


def verdict(row: dict[str, Any]) -> dict[str, Any]:
    """Return what is required of a setting, what was found, and whether that is enough."""
    found = {name: row[name] for name in ("recovered", "least", "seeds", "sure_and_wrong")}
    holds = row["recovered"] >= row["least"] * row["seeds"]
    if row["noise"] > 0:
        found |= {name: row[name] for name in ("ratio_of_medians", "median_noise")}
        holds &= row["ratio_of_medians"] <= RATIO
        holds &= abs(row["median_noise"] / row["noise"] - 1) <= NOISE_OFF
    return {**found, "met": bool(holds)}


def verdicts(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the verdict of each setting by its name."""
    name = "{} D={} c={} N={} r={} noise={} stretch={}"
    return {name.format(*(row[key] for key in KEY)): verdict(row) for row in results}


def kept_before() -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return the stored rows by what tells them apart."""
    path = RESULTS / "robustness.json"
    rows = json.loads(path.read_text())["results"] if path.exists() else []
    return {tuple(row[name] for name in KEY): row for row in rows}


def store_with_the_others(measured: dict[tuple[Any, ...], dict[str, Any]]) -> None:
    """Write what was measured, beside what is stored of the settings that were not."""
    known = kept_before() | measured
    table = settings()
    results = [known[setting.key] for setting in table if setting.key in known]
    parts = [setting.part for setting in table]
    content = {
        "hardware": hardware(),
        "limits": {"ratio": RATIO, "noise": NOISE_OFF},
        "settings": {part: parts.count(part) for part in dict.fromkeys(parts)},
        "targets": verdicts(results),
    }
    store("robustness", {**content, "results": results})


def main() -> None:
    """Print the table; store it with --store."""
    table, measured = settings(), {}
    parts = list(dict.fromkeys(setting.part for setting in table))
    parser = options(__doc__, seeds=None, first=0, jobs=2)
    parser.add_argument("--only", choices=parts, help="one part alone (default: all)")
    chosen = parser.parse_args()
    print("part         D   c     N     r noise stretch seeds right recov  sure wrong&sure")
    with ProcessPoolExecutor(chosen.jobs) as pool:
        for setting in table:
            if chosen.only not in (None, setting.part):
                continue
            count = chosen.seeds or setting.seeds
            row = run(setting, range(chosen.first, chosen.first + count), pool)
            measured[setting.key] = row
            print(_line(row), flush=True)
            if chosen.store:
                store_with_the_others(measured)
    missed = [
        name for name, target in verdicts(list(measured.values())).items() if not target["met"]
    ]
    if missed:
        raise SystemExit(f"targets that are missed: {'; '.join(missed)}")


def _line(row: dict[str, Any]) -> str:
    text = (
        f"{row['part']:9} {row['n_features']:4} {row['codimension']:3} {row['n_inliers']:5} "
        f"{row['r']:5} {row['noise']:5} {row['stretch']:7} {row['seeds']:5} {row['right']:5} "
        f"{row['recovered']:5} {row['sure']:5} {row['sure_and_wrong']:10}  "
        f"error {row['median_error']:.1e}, {row['median_seconds']:.2f} CPU s"
    )
    if row["noise"] > 0:
        text += (
            f", over the oracle {row['ratio_of_medians']:.3f} "
            f"(median of ratios {row['median_of_ratios']:.3f}), noise_ {row['median_noise']:.4f}"
        )
    return text


if __name__ == "__main__":
    main()

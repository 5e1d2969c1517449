"""How good are labels without a given threshold? Many seeds, stored results.

Inliers are uniform on the unit sphere of the subspace, with Gaussian noise; outliers are uniform on
the whole sphere. The *ratio* is the F1 of the own threshold over the F1 of the best threshold
for the same distances, which is chosen in hindsight, with the labels at hand. The target, 0.99,
is on the mean over the seeds, with outliers as the positive class. The threshold of *true odds*,
which is given share and noise and so where a row is as likely an inlier as an outlier, shows what
is possible without hindsight. Settings in which the subspace is not found in two seeds are given
up. Where there is no outlier, at most 1 % of the rows may be flagged.

Run ``python benchmarks/labels.py`` (about half an hour on one core). ``--seeds 5`` is a quick try,
``--first 1000`` takes other seeds, ``--store`` writes benchmarks/results/labels.json.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import math
import warnings
from typing import Any, NamedTuple

import numpy as np
from _store import options, store
from scipy import optimize, special

from perpend import DPCP
from perpend._typing import Array
from perpend.datasets import make_subspace

SEEDS = 20
RATIO, FLAGGED = 0.99, 0.01
TRIES = 2  # seeds after which a setting is given up, if the subspace was found in none
SHAPES = [(30, 5, 1000), (10, 6, 2000), (200, 10, 1500), (3, 1, 500), (3, 1, 20_000)]  # D, c, N
SHARES, NOISES = (0.01, 0.3, 0.9), (0.02, 0.1)
CLEAN = [*SHAPES, (30, 5, 200), (10, 6, 200), (3, 1, 200)]
STUDENT = "Student noise 0.1"
DEGREES = 3  # of freedom of Student's distribution; its variance is then 3 as well
KINDS = {  # of data without outliers: noise, and options of the fit
    "noise 0.02": (0.02, {}),
    "noise 0.1": (0.1, {}),
    "no noise": (0.0, {}),
    "noise 0.1, normalize=False": (0.1, {"normalize": False}),
    STUDENT: (0.1, {}),
}


class Setting(NamedTuple):
    """Inliers and outliers together."""

    D: int
    c: int
    n_inliers: int
    n_outliers: int
    noise: float


def settings() -> list[Setting]:
    """Return all settings with outliers."""
    return [
        Setting(D, c, n, round(n * share / (1 - share)), noise)
        for D, c, n in SHAPES
        for share in SHARES
        for noise in NOISES
    ]


def f1(J: Array, y: Array, thresholds: Array, positive: int) -> Array:
    """Return the F1 of the labels "outlier beyond t" for each threshold t."""
    beyond = {
        kind: np.sum(y == kind) - np.searchsorted(np.sort(J[y == kind]), thresholds, side="right")
        for kind in (-1, 1)
    }
    wrong = beyond[1] + np.sum(y == -1) - beyond[-1]
    hits = beyond[-1] if positive == -1 else np.sum(y == 1) - beyond[1]
    return 2 * hits / np.maximum(2 * hits + wrong, 1)


def true_odds(setting: Setting) -> float:
    """Return the distance at which a row is as likely an inlier as an outlier."""
    D, c, n_in, n_out, noise = setting
    s2 = noise**2 / D / (1 + noise**2)

    def log_odds(J2: float) -> float:
        inlier = -J2 / (2 * s2) - c / 2 * math.log(2 * s2) - special.gammaln(c / 2)
        outlier = ((D - c) / 2 - 1) * math.log1p(-J2) - special.betaln(c / 2, (D - c) / 2)
        return float(math.log(n_in / n_out) + inlier - outlier)

    return math.sqrt(optimize.brentq(log_odds, 0.0, 0.9))


def fitted(X: Array, seed: int, **options: Any) -> DPCP:
    """Fit, given only the rows; starts have seeds of their own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return DPCP(random_state=seed + 1_000_000, **options).fit(X)


def trial(setting: Setting, seed: int) -> list[float] | None:
    """Return F1, the best F1, three ratios and the error of counting by probabilities.

    None where the codimension is wrong.
    """
    D, c, n_in, n_out, noise = setting
    data = make_subspace(n_in, n_out, n_features=D, codimension=c, noise=noise, random_state=seed)
    model = fitted(data.X, seed)
    if model.codimension_ != c:
        return None
    J, y = -model.score_samples(data.X), data.y
    thresholds = np.array([model.threshold_, true_odds(setting)])
    best = {kind: f1(J, y, np.append(J, 0.0), kind).max() for kind in (-1, 1)}
    found = {kind: f1(J, y, thresholds, kind) / best[kind] for kind in (-1, 1)}
    expected = model.outlier_probability(data.X).sum()
    numbers = [
        found[-1][0] * best[-1],
        best[-1],
        *found[-1],
        found[1][0],
        abs(expected - n_out) / n_out,
    ]
    return [float(number) for number in numbers]


def run(setting: Setting, seeds: range) -> dict[str, Any]:
    """Run all seeds of a setting; the ratios are over those in which the codimension is right."""
    trials = [trial(setting, seed) for seed in seeds[:TRIES]]
    if not any(trials):
        return {**setting._asdict(), "seeds": len(trials), "right": 0, "target": None}
    trials += [trial(setting, seed) for seed in seeds[TRIES:]]
    numbers = [found for found in trials if found is not None]
    own, best, ratio, true, inlier, miscount = np.array(numbers).T
    return {
        **setting._asdict(),
        "seeds": len(seeds),
        "right": len(numbers),
        "f1": float(own.mean()),
        "best_f1": float(best.mean()),
        "ratio": {
            "mean": float(ratio.mean()),
            "median": float(np.median(ratio)),
            "ten_percent": float(np.quantile(ratio, 0.1)),
            "worst": float(ratio.min()),
        },
        "true_odds_ratio": float(true.mean()),
        "inliers_positive_ratio": float(inlier.mean()),
        "miscounted_by_probabilities": float(np.median(miscount)),
        "target": RATIO,
    }


def clean_rows(D: int, c: int, n: int, kind: str, seed: int) -> Array:
    """Return rows without an outlier, not all of norm one where that is not required."""
    noise, options = KINDS[kind]
    if kind != STUDENT and not options:
        return make_subspace(n, 0, n_features=D, codimension=c, noise=noise, random_state=seed).X
    X = make_subspace(n, 0, n_features=D, codimension=c, random_state=seed).X
    rng = np.random.default_rng([seed, 1])
    if kind == STUDENT:
        e = rng.standard_t(DEGREES, X.shape) / math.sqrt(DEGREES)
    else:
        e = rng.standard_normal(X.shape)
    return X + noise / math.sqrt(D) * e


def run_clean(D: int, c: int, n: int, kind: str, seeds: range) -> dict[str, Any]:
    """Return the share of rows that are flagged though no row is an outlier."""
    flagged, right = [], 0
    for seed in seeds:
        model = fitted(clean_rows(D, c, n, kind, seed), seed, **KINDS[kind][1])
        flagged.append(float(np.mean(model.labels_ == -1)))
        right += model.codimension_ == c
    return {
        "D": D,
        "c": c,
        "n_inliers": n,
        "kind": kind,
        "seeds": len(seeds),
        "right": right,
        "flagged": {"mean": float(np.mean(flagged)), "worst": max(flagged)},
        "target": None if kind == STUDENT else FLAGGED,
    }


def main() -> None:
    """Print the tables; store them with --store."""
    chosen = options(__doc__, seeds=SEEDS, first=0).parse_args()
    seeds = range(chosen.first, chosen.first + chosen.seeds)
    print("   D   c    N     M noise right    F1  best | ratio median  10 %  worst | true inlier")
    mixed, clean = [], []
    for setting in settings():
        row = run(setting, seeds)
        mixed.append(row)
        place = "{:4} {:3} {:4} {:5} {:5} {:5}".format(*setting, row["right"])
        if row["target"] is None:
            print(place, "the subspace is not found", flush=True)
            continue
        ratios = " ".join(f"{value:.4f}" for value in row["ratio"].values())
        print(
            place,
            f"{row['f1']:.3f} {row['best_f1']:.3f} | {ratios} | "
            f"{row['true_odds_ratio']:.4f} {row['inliers_positive_ratio']:.4f}",
            flush=True,
        )
    print("   D   c    N  flagged: mean  worst, where there is no outlier")
    for shape in CLEAN:
        for kind in KINDS:
            row = run_clean(*shape, kind, seeds)
            clean.append(row)
            mean, worst = row["flagged"].values()
            print("{:4} {:3} {:4}".format(*shape), f"{mean:14.4f} {worst:.4f}  {kind}", flush=True)
    if chosen.store:
        store("labels", {"first_seed": chosen.first, "mixed": mixed, "clean": clean})


if __name__ == "__main__":
    main()

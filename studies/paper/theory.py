"""The numbers on the page of the experiment `theory`, from the stored rows alone."""

from statistics import NormalDist
from typing import Any

import numpy as np

from perpend.experiments._experiment import Results, Row
from perpend.experiments.theory import CONDITIONS, ratios
from perpend.theory import continuous_psgm, continuous_values, theorem1

BOUNDS = {  # name on the page -> measured, bound
    "norm of e_O, certified statistics": ("error", "error_bound"),
    "norm of e_O, estimated statistics": ("error", "error_bound_estimated"),
    "norm of Delta, certified statistics": ("short_delta", "short_delta_bound"),
    "norm of Delta, estimated statistics": ("short_delta", "short_delta_bound_estimated"),
    "tan(angle) at its closest, certified (Theorem 1)": ("closest_certified", None),
    "tan(angle) at its closest, estimated (Theorem 1)": ("closest", None),
}


def numbers(results: Results) -> dict[str, Any]:
    """Return how often conditions hold, and whether the statements do."""
    rows, limits = results.rows("problem"), results.rows("continuous")
    z = results.column("lemma2", "z").astype(float)
    z = z[np.isfinite(z)]
    bounds = {name: ratios(rows, *columns) for name, columns in BOUNDS.items()}
    proven = [bounds[name] for name in list(BOUNDS)[:3:2]]  # certified
    printed = ratios(rows, "error", "error_bound_printed")
    sums = ("violations", "violations_certified", "covered", "covered_certified", "cancelled", "k")
    return {
        "rows": rows,
        "share": share,
        "conditions": {
            name: [[row for row in rows if bool(row[column]) is met] for met in (True, False)]
            for name, column in CONDITIONS.items()
        },
        "sums": {name: sum(row[name] for row in rows) for name in (*sums, *_STARTS)},
        "broken": sum(row["violations"] + row["violations_certified"] for row in rows)
        + sum(row["violations"] for row in limits)
        + sum(int(np.sum(ratio > 1)) for ratio in proven),
        "groups": _groups(results),
        "z": np.abs(z).tolist(),
        # the median of the largest of so many absolute values of standard normals
        "z_expected": NormalDist().inv_cdf((1 + 0.5 ** (1 / len(z))) / 2),
        "z_rms": np.sqrt(np.mean(z**2)),
        "limits": limits,
        "ranks": sum(row["rank"] == row["expected_rank"] for row in limits),
        "deficient": sum(
            row["lemma6" + few] and not row["full_rank" + few]
            for row in rows
            for few in ("", "_few")
        ),
        "bounds": {name: ratio.tolist() for name, ratio in bounds.items() if len(ratio)},
        "starts": _starts(results),
        "lemma6": _lemma6(rows),
        "n_printed": len(printed),
        "negative": int(np.sum(np.isinf(printed))),
        "exceeded": int(np.sum(printed > 1)),
        "outside": _outside(),
        "finite": _finite(results),
    }


def _finite(results: Results) -> Row:
    """Return the problems of the corrected Theorem 7, each over its trials, and those it covers."""
    rows = []
    for trials in results.groups("finite", "D", "c", "N", "M", "k").values():
        sums = {name: sum(row[name] for row in trials) for name in ("draws", "spanned")}
        worst = {name: max(row[name] for row in trials) for name in ("right", "delta")}
        worst["singular"] = min(row["singular"] for row in trials)
        rows.append({**trials[0], **worst, **sums, "holds": all(row["holds"] for row in trials)})
    held = [row for row in rows if row["holds"]]
    return {
        "rows": rows,
        "n_held": len(held),
        "beyond": sum(not row["holds"] and row["spanned"] == row["draws"] for row in rows),
        "promised": min((row["probability"] for row in held), default=None),
        **{name: sum(row[name] for row in held) for name in ("draws", "spanned")},
        "wider": min((row["singular"] / row["left"] for row in held), default=None),
        "smaller": max((row["delta"] / row["right"] for row in held), default=None),
    }


def _outside(fits: float = 5.0, start: float = 1e5) -> Row:
    """Return where a start ends that is wider than a schedule was made for (continuous method)."""
    normals = np.eye(10)[:, 5:]
    conditions = theorem1(continuous_values(10, 5, 0.5), np.array([fits]))
    schedule = conditions.schedule()
    steps = schedule.steps(schedule.K0 + 200 * schedule.K_star)
    B0 = np.eye(10)[:, :1] * start + normals[:, :1]
    end = continuous_psgm(B0, normals, 0.5, steps=steps)
    return {"start": start, "end": float(end.tangents[-1, 0])}


_STARTS = ("promised", "promised_arrived", "arrived", "assumption1_few", "theorem7")


def share(rows: list[Row], name: str) -> float | None:
    """Return how often a column is true, None for no rows."""
    return float(np.mean([bool(row[name]) for row in rows])) if rows else None


def _groups(results: Results) -> dict[str, list[Row]]:
    """Return the problems by their shape, their share of outliers and their inliers."""
    shapes = dict.fromkeys((row["D"], row["c"]) for row in results.rows("problem"))
    groups = {f"D = {D}, c = {c}": results.rows("problem", D=D, c=c) for D, c in shapes}
    for name in ("r", "N"):
        for value in sorted(results.values("problem", name)):
            groups[f"{name} = {value:g}"] = results.rows("problem", **{name: value})
    return groups


def _starts(results: Results) -> list[Row]:
    """Return the singular values of random starts beside their bounds, means over the trials."""
    groups = results.groups("starts", "D", "c", "k", "eps")
    names = [name for name in results.rows("starts")[0] if name not in ("D", "c", "k", "seed")]
    return [
        {"size": f"{D}, {c}, {k}", **{n: np.mean([row[n] for row in rows]) for n in names}}
        for (D, c, k, _), rows in groups.items()
    ]


def _lemma6(rows: list[Row]) -> list[tuple[str, list[float], list[float]]]:
    """Return how well the limits span where Lemma 6 holds, and where it does not."""
    found = []
    for name, few in (("all k starts", ""), ("c starts", "_few")):
        for label, column in (("Lemma 6", "lemma6"), ("corrected", "corrected")):
            met, rest = (
                [row["reached" + few] for row in rows if bool(row[column + few]) is value]
                for value in (True, False)
            )
            found.append((f"{label}, {name}", met, rest))
    return found

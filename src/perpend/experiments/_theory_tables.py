"""Tables on the page of the experiment `theory`."""

from typing import Any

import numpy as np

from perpend._typing import Array
from perpend.experiments._experiment import Results, Row
from perpend.experiments._text import percent, table


def statements(results: Results) -> str:
    """Return one line for each statement: what is published, and what was found."""
    z = results.column("lemma2", "z").astype(float)
    z = z[np.isfinite(z)]
    limits = results.rows("continuous")
    ranks = sum(row["rank"] == row["expected_rank"] for row in limits)
    rows = results.rows("problem")
    covered, certified = (sum(row[n] for row in rows) for n in ("covered", "covered_certified"))
    lines: list[list[Any]] = [
        [
            "Lemma 2", "mean of abs(z.b) = p c_D + (1 - p) c_d cos(phi)",
            f"{len(z)} means over up to {max(results.values('lemma2', 'n'))} rows",
            f"largest deviation {np.max(np.abs(z)):.1f} standard errors ({_expected(len(z)):.1f} expected), "
            f"root mean square {np.sqrt(np.mean(z**2)):.2f} (1 expected)",
        ],
        [
            "Lemma 3", "the continuous method ends at normals", f"{len(limits)} runs",
            f"largest tan(angle) {max(row['largest_tangent'] for row in limits):.0e}",
        ],
        [
            "Lemma 4", "at the normalised projection of the start", f"{len(limits)} runs",
            f"largest deviation {max(row['deviation'] for row in limits):.0e}: rounding, as few digits of P_S b are left where an iterate lands far closer than its step is long",
        ],
        [
            "Theorem 5", "k >= c starts span: rank min(k, c)", f"{len(limits)} runs, k from c - 1 to 2c",
            f"rank as stated in {ranks} of {len(limits)}",
        ],
        [
            "Theorem 1, continuous", "its bound at every iteration", f"{len(limits)} runs",
            f"{sum(row['violations'] for row in limits)} violations",
        ],
        [
            "Theorem 1", "its bound at every iteration",
            f"{covered} starts (estimated), {certified} (certified), up to {max(row['steps'] for row in rows)} iterations",
            f"{sum(row['violations'] for row in rows)} and {sum(row['violations_certified'] for row in rows)} violations",
        ],
        [
            "identity", "normalise(P b^K) = normalise(P (b^0 - delta^K)), P onto the complement",
            f"{len(rows)} problems, K = 1, 10, 100 and the end",
            f"largest deviation {max(row['identity'] for row in rows):.0e}; left out are "
            f"{sum(row['cancelled'] for row in rows)} of {4 * sum(row['k'] for row in rows)} pairs of start and K, where "
            "P (b^0 - delta) is a tiny difference of large numbers and rounding has taken the digits",
        ],
        ["bound on e_O", "eta_O + max(c_O,max - c_D, c_D - c_O,min)", f"{len(rows)} problems", _broken(rows, "error", "error_bound")],
        ["bound on Delta", "sqrt(k) kappa times that", f"{len(rows)} problems", _broken(rows, "short_delta", "short_delta_bound")],
        ["Lemma 6", "sigma_k(B^0) > norm of Delta: full rank", f"{sum(r['lemma6'] + r['lemma6_few'] for r in rows)} times it holds",
         f"rank deficient {sum(r['lemma6'] and not r['full_rank'] for r in rows) + sum(r['lemma6_few'] and not r['full_rank_few'] for r in rows)} times"],
        ["Theorem 7", "the limits span", f"{sum(row['theorem7'] for row in rows)} problems where it holds",
         f"descents do not span in {sum(row['theorem7'] and not row['descents'] for row in rows)}"
         if any(row["theorem7"] for row in rows) else "nothing to check: its condition never holds"],
    ]  # fmt: skip
    return table(["", "published", "checked on", "ours"], lines)


def _expected(n: int) -> float:
    """Return the median of the largest of n absolute values of independent standard normals."""
    from statistics import NormalDist

    return NormalDist().inv_cdf((1 + 0.5 ** (1 / n)) / 2)


def ratios(rows: list[Row], measured: str, bound: str) -> Array:
    """Return measured / bound; infinite where the bound is negative."""
    pairs = [(row[measured], row[bound]) for row in rows if row[bound] is not None]
    return np.array([a / b if b > 0 else np.inf for a, b in pairs])


def _broken(rows: list[Row], measured: str, bound: str) -> str:
    ratio = ratios(rows, measured, bound)
    return f"exceeded {int(np.sum(ratio > 1))} times; at most {np.max(ratio):.2f} of the bound"


def bounds(results: Results) -> str:
    """Return how close measured values come to their bounds."""
    rows = results.rows("problem")
    lines = []
    for name, measured, bound in (
        ("norm of e_O, certified statistics", "error", "error_bound"),
        ("norm of e_O, estimated statistics", "error", "error_bound_estimated"),
        ("norm of Delta, certified statistics", "short_delta", "short_delta_bound"),
        ("norm of Delta, estimated statistics", "short_delta", "short_delta_bound_estimated"),
    ):
        ratio = ratios(rows, measured, bound)
        quantiles = np.quantile(ratio, [0.0, 0.5, 1.0])
        lines.append([name, *(f"{q:.2g}" for q in quantiles), int(np.sum(ratio > 1))])
    for name, column in (("certified", "closest_certified"), ("estimated", "closest")):
        ratio = np.array([row[column] for row in rows if row[column] is not None])
        if len(ratio):
            quantiles = np.quantile(ratio, [0.0, 0.5, 1.0])
            lines.append(
                [
                    f"tan(angle) at its closest, {name} (Theorem 1)",
                    *(f"{q:.2g}" for q in quantiles),
                    int(np.sum(ratio > 1)),
                ]
            )
    return (
        table(["measured / bound", "least", "median", "largest", "above 1"], lines)
        + "\n\nDelta is measured at steps of 0.02 mu', K0 = 20, K* = 5, beta = 1/2, for which its bound is finite; it holds at every K. "
        "At mu^0 = mu' no beta satisfies both theorems. The certified bounds are loose because the statistics are: in more than two "
        "dimensions the proof of eta knows only second moments, which do not fall with the number of rows."
    )


def random_starts(results: Results) -> str:
    """Return the singular values of random starts beside their bounds."""
    lines = []
    for D, c, k in dict.fromkeys((r["D"], r["c"], r["k"]) for r in results.rows("starts")):
        for eps in results.values("starts", "eps"):
            rows = results.rows("starts", D=D, c=c, k=k, eps=eps)

            def mean(name: str, rows: list[Row] = rows) -> float:
                return float(np.mean([row[name] for row in rows]))

            lines.append(
                [f"{D}, {c}, {k}", f"{eps:g}", percent(round(mean("promised"), 3)),
                 f"{mean('median'):.3f}", f"{mean('bound'):.3f}", percent(mean("above")),
                 f"{mean('median_projected'):.3f}", f"{mean('bound_projected'):.3f}", percent(mean("above_projected"))]
            )  # fmt: skip
    header = ["D, c, k", "eps", "promised", "sigma_k(B^0), median", "bound", "above"]
    return table([*header, "sigma_c(P B^0), median", "bound", "above"], lines)


def lemma6_ranks(rows: list[Row]) -> str:
    """Return how well the limits span where Lemma 6 holds, and where it does not."""
    lines = []
    for name, suffix in (("all k starts", ""), ("c starts", "_few")):
        for label, column in (("Lemma 6", "lemma6"), ("corrected", "corrected")):
            held = [row for row in rows if row[column + suffix]]
            rest = [row for row in rows if not row[column + suffix]]
            lines.append(
                [f"{label}, {name}", len(held), *_reached(held, suffix), *_reached(rest, suffix)]
            )
    header = ["condition", "holds", "spread reached where it holds, least", "median"]
    return (
        table([*header, "where it does not, least", "median"], lines)
        + "\n\nSpread: the c-th over the largest singular value of what the run has reached in the complement; 0 would mean "
        "that the limits do not span. With k = D starts sigma_k(B^0) is close to zero, so Lemma 6 rarely applies."
    )


def _reached(rows: list[Row], suffix: str) -> list[str]:
    values = [row["reached" + suffix] for row in rows]
    return [f"{np.min(values):.1g}", f"{np.median(values):.2g}"] if values else ["-", "-"]

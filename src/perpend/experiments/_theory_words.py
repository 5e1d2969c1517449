"""The page of the experiment `theory`, in words and tables."""

import numpy as np

from perpend.experiments._experiment import Results, Row
from perpend.experiments._text import percent, table
from perpend.experiments._theory_tables import (
    bounds,
    lemma6_ranks,
    random_starts,
    ratios,
    statements,
)

CONDITIONS = {  # name on page and figure -> column
    "Theorem 1, balance": "dominates",
    "Theorem 1, balance certified": "dominates_certified",
    "Assumption 1, all starts": "holds",
    "Assumption 1, certified": "holds_certified",
    "Lemma 6, all starts": "lemma6",
    "Lemma 6, c starts": "lemma6_few",
    "Lemma 6 corrected, all starts": "corrected",
    "Theorem 7, c starts": "theorem7",
}


def describe(results: Results) -> str:
    """Say of each statement how often its conditions hold and whether it does."""
    rows = results.rows("problem")
    sizes = [
        f"{name} = {', '.join(f'{value:g}' for value in sorted(results.values('problem', name)))}"
        for name in ("D", "c", "N", "r")
    ]
    return f"""\
{_headline(results)}

## Conditions and success

{len(rows)} problems ({"; ".join(sizes)}; {_trials(results)} each): unit inliers, uniform
in a random subspace, and unit outliers, uniform; from easy to impossible. Conditions are evaluated with estimates of the
statistics, which err in favour of the theory, and where it says "certified" with proven bounds. "Descents": every one
of the k = min(2c + 2, D) random starts ends at a normal (tan of the angle below 1e-6, the library's own steps), and
together they span the complement. "DPCP()": right codimension, and a subspace error below 0.01; its finish also recovers
where descents end at other local minima.

![Share of starts that arrive over Theorem 1's balance, and how often each condition holds](conditions.png)

{_conditions_table(rows)}

Lemma 6 is about the rank of what is reached, not about arriving: where it or its corrected form holds, descents may still
end at other local minima.

{_starts_words(rows)}

{_shapes_table(results)}

Inliers on a line (d = 1) are not on this grid: rows of unit norm on a line are equal up to sign, and `DPCP()` counts
equal rows as one.

## Published and ours, statement by statement

{statements(results)}

## The bounds, and how loose they are

![Measured values relative to their bounds](bounds.png)

{bounds(results)}

## Random starts

Lower bounds for singular values of k uniform unit columns, with C1 = 1 and C2 = 1/2, the constants for Gaussian columns; the paper
leaves them open. sigma_k(B^0) is what Lemma 6 and Theorem 7 use, sigma_c(P B^0), P the projection onto the complement,
is what the span needs. The first bound falls with the number of starts, the second grows.

{random_starts(results)}

## Lemma 6 and its gap

The paper concludes from full rank of B^0 - Delta that the limits span the complement. Full rank alone does not give
that: columns of full rank may lie in the subspace and vanish under the projection. sigma_c(P B^0) > ||P Delta|| does.

{lemma6_ranks(rows)}

## Theorem 7

{_theorem7_words(rows)}

## Misprints that matter here

- The bound on e_O (Lemma 7 of the appendix) and Theorem 7: printed with c_d, where c_D belongs, as e_O is defined with it; and an absolute value is
  dropped. {_printed_words(rows)}
- kappa lacks a factor 1 / (1 - mu^0 M c_D): k + 1 denominators stand against k norms. It is included here.
- eta_X is printed over the whole sphere; over that of the subspace it is meant, or Theorem 1 could never apply.
- The continuous iteration is printed with the projection onto the complement in its second half; the projection onto the
  sphere is meant, or one step would be enough.
- Theorem 1 prints tan(theta_0) on the left side of its promise; theta_k is meant.
"""


def _trials(results: Results) -> str:
    n = len(results.values("problem", "seed"))
    return f"{n} trial{'' if n == 1 else 's'}"


def _headline(results: Results) -> str:
    rows = results.rows("problem")
    broken = sum(row["violations"] + row["violations_certified"] for row in rows)
    broken += sum(row["violations"] for row in results.rows("continuous"))
    for measured, bound in (("error", "error_bound"), ("short_delta", "short_delta_bound")):
        broken += int(np.sum(ratios(rows, measured, bound) > 1))
    return (
        f"Where their conditions hold, for estimates of the statistics or certified, the statements are broken {broken} times; the finite-K identity is off by at most "
        f"{max(row['identity'] for row in rows):.0e}. The conditions are far from necessary: of {len(rows)} problems "
        f"Theorem 1's balance holds in {_percent(rows, 'dominates')}, Assumption 1 in {_percent(rows, 'holds')} and "
        f"Theorem 7 in {_percent(rows, 'theorem7')}, while `DPCP()` succeeds in {_percent(rows, 'dpcp')}."
    )


def _share(rows: list[Row], name: str) -> float:
    return float(np.mean([bool(row[name]) for row in rows])) if rows else float("nan")


def _percent(rows: list[Row], name: str) -> str:
    return percent(_share(rows, name)) if rows else "-"


def _conditions_table(rows: list[Row]) -> str:
    lines = []
    for name, column in CONDITIONS.items():
        parts = [[row for row in rows if bool(row[column]) is value] for value in (True, False)]
        outcomes = [_percent(part, outcome) for part in parts for outcome in ("descents", "dpcp")]
        lines.append([name, f"{len(parts[0])} ({percent(len(parts[0]) / len(rows))})", *outcomes])
    lines.append(
        ["all problems", str(len(rows)), _percent(rows, "descents"), _percent(rows, "dpcp")]
    )
    lines[-1] += ["", ""]
    header = ["condition", "holds", "descents succeed where it holds", "DPCP() there"]
    return table([*header, "descents where it does not", "DPCP() there"], lines)


def _starts_words(rows: list[Row]) -> str:
    promised, kept = (sum(row[name] for row in rows) for name in ("promised", "promised_arrived"))
    everyone, arrived = (sum(row[name] for row in rows) for name in ("k", "arrived"))
    others = everyone - promised
    predicted = np.array([row["inside_predicted"] for row in rows])
    inside = np.array([row["inside"] for row in rows])
    return (
        f"Start by start: {promised} of {everyone} starts satisfy Theorem 1 (balance, and inside the cone), and {kept} of them "
        f"arrive; of the {others} others {arrived - kept} do ({percent((arrived - kept) / max(others, 1))}). "
        f"The share of starts inside the cone is {percent(float(np.mean(inside)))}; the Beta distribution of a uniform "
        f"direction's angle predicts {percent(float(np.mean(predicted)))}."
    )


def _shapes_table(results: Results) -> str:
    shown = ("dominates", "holds", "holds_certified", "lemma6_few", "corrected", "theorem7")
    lines = []
    for D, c in dict.fromkeys((row["D"], row["c"]) for row in results.rows("problem")):
        rows = results.rows("problem", D=D, c=c)
        lines.append(
            [f"D = {D}, c = {c}", *(_percent(rows, n) for n in (*shown, "descents", "dpcp"))]
        )
    for r in sorted(results.values("problem", "r")):
        rows = results.rows("problem", r=r)
        lines.append([f"r = {r:g}", *(_percent(rows, n) for n in (*shown, "descents", "dpcp"))])
    for N in sorted(results.values("problem", "N")):
        rows = results.rows("problem", N=N)
        lines.append([f"N = {N}", *(_percent(rows, n) for n in (*shown, "descents", "dpcp"))])
    header = ["", "balance", "Assumption 1", "certified", "Lemma 6, c starts", "corrected"]
    return table([*header, "Theorem 7", "descents", "DPCP()"], lines)


def _theorem7_words(rows: list[Row]) -> str:
    defined = [row for row in rows if row["right"] is not None]
    unbounded = sum(row["assumption1_few"] and row["right"] is None for row in rows)
    favourable = [row for row in rows if row["favourable"]]
    text = (
        f"The condition is left > right, with c' = c, the fewest starts that can span and so the most favourable, and "
        f"the steps that make kappa smallest. Assumption 1 holds for these starts in {sum(r['assumption1_few'] for r in rows)} "
        f"of {len(rows)} problems"
    )
    text += (
        f"; in {unbounded} of these the right side is beyond floating-point numbers. "
        if unbounded
        else ". "
    )
    if defined:
        right = np.array([row["right"] for row in defined])
        text += (
            f"The right side is {np.min(right):.2g} at its least, {np.median(right):.1g} in the median (kappa "
            f"{np.median([row['kappa'] for row in defined]):.1g}); the left side is below 1. "
        )
    small = [row for row in rows if row["left"] > 0]
    text += (
        f"With C1 = 1, C2 = 1/2 and a probability of one half it holds in {sum(r['theorem7'] for r in rows)} problems. Its demands "
        f"pull in opposite directions: the left side is positive only where c is small against D ({len(small)} problems), but "
        f"random starts are then far from the complement, and Assumption 1 holds in {sum(r['assumption1_few'] for r in small)} "
        "of these. "
    )
    if favourable:
        shares = sorted({row["r"] for row in favourable})
        text += (
            f"With the best constants imaginable (C1 = eps = 0) it would hold in {len(favourable)}, all of them with "
            f"r <= {shares[-1]:g}. "
        )
    others = [row for row in rows if not row["theorem7"]]
    return text + (
        f"Where it does not hold, the descents succeed in {_percent(others, 'descents')} of the problems. It is a theorem about "
        "the limit of many rows, where the right side tends to zero."
    )


def _printed_words(rows: list[Row]) -> str:
    ratio = ratios(rows, "error", "error_bound_printed")
    negative = int(np.sum(np.isinf(ratio)))
    return (
        f"As printed (with estimates) the bound is negative in {negative} of {len(ratio)} problems and exceeded in "
        f"{int(np.sum(ratio > 1)) - negative} more."
    )

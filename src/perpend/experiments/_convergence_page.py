"""The page of the experiment `convergence`; looks at nothing but the stored rows."""

from typing import Any

import numpy as np

from perpend.experiments._experiment import Results, Row
from perpend.experiments._text import percent, table

ARRIVED = 1e-6  # tan of the angle below which a start counts as being at a normal
INSIDE = 0.8  # of the cone; starts closer to its edge would need ever longer schedules
LONGER, EASIER = "geometric, K0 = 120", "auto, armijo = 0.01"
RULES = ("auto", "mbls", "geometric", "decay")
TOLD = ("RSGM, mbls", "RSGM, decay", "DPCP-IRLS")
WORDS = {
    "auto": "perpend's own",
    EASIER: "the same, content with a smaller decrease",
    "mbls": "line search of the releases",
    "geometric": "the paper's rule, the library's constants",
    LONGER: "the same, twice as long at its first step",
    "decay": "the authors' since 2021",
    "RSGM, mbls": "told c, all normals together",
    "RSGM, decay": "told c, all normals together",
    "DPCP-IRLS": "told c, reweighted least squares",
}


def describe(results: Results) -> str:
    """Say who arrives, how fast, and whether the theorem keeps its promise."""
    first = results.rows("ends")[0]
    ratios = results.values("ends", "r")
    n_trials = len(results.values("ends", "seed"))
    theorem = results.rows("theorem1")
    checked = [row for row in theorem if row["violations"] is not None]
    n_angles = sum(row["used"] * (row["steps"] + 1) for row in checked)
    violations = sum(row["violations"] for row in checked)
    dominated = [row for row in results.rows("conditions") if row["dominates"]]
    sizes = f"D = {first['D']}, c = {first['c']}, N = {first['N']}, {first['k']} starts"
    return f"""\
Starts that arrive at a normal at {percent(ratios[-1])} outliers ({sizes}): {_arrivals(results, ratios[-1])}.
Where Theorem 1 applies, {violations} of {n_angles} angles exceed its bound. At the setting of Figure 3 it applies in
{len(dominated)} of {len(results.rows("conditions"))} trials; the descents do not need it.

## The step rules

{sizes}; unit rows, uniform inliers and outliers; {n_trials} trials for each share of outliers, all rules from the
same random starts. The angle is that of a direction to the true complement, about
{_typical_angle(first):.0f} degrees for a random start. An iteration is an accepted step; a scan is a pass over
the rows, refused trials of a line search with them. A start has arrived when tan(angle) stays below {ARRIVED:g}.

![Angle to the complement over iterations for the four step rules](rules.png)

Lines and the edge of the shading are medians over the trials; the table has the slowest start of all.

{_rules_table(results, ("auto", EASIER, "mbls", "geometric", LONGER, "decay"))}

Slowest: over all starts and trials, "-" if not all arrive. Spread: the smallest over the largest singular value of the
ends inside the complement, median over the trials; the codimension can be read off the better the larger it is.

{_reasons(results)}

## Told the codimension

RSGM and DPCP-IRLS move all c normals together, from the axes along which the rows vary least. Their angle is the
largest between the two complements; for PSGM, which is not told c, it is that of the slowest start.

![Largest angle over iterations for methods that are told the codimension and for PSGM](told.png)

{_rules_table(results, TOLD)}

An iteration of DPCP-IRLS costs a weighted Gram matrix and an eigenproblem. It comes to rest near 1e-9, because that is
the smallest distance from which it makes a weight (`delta`).

## Theorem 1

Theorem 1 (Zhu et al. 2018, Theorem 3) asks for N c_X,min >= N eta_X + M eta_O and for starts inside the cone
tan(theta_0) < N c_X,min / (N eta_X + M eta_O). Where "certified", both are proven with bounds on the statistics; the
others hold for estimates of them, which err in the theorem's favour. mu0 = mu', K0 and K* are the shortest that the
theorem allows (beta = 1/2), for the starts inside {INSIDE:g} of the cone.

![Theorem 1's bound on the angle and the measured angle, three settings](bound.png)

{_theorem_table(results)}

"Closest" is the largest angle / bound (in tangents) after the first step, over all trials. The figure shows the first
trial. The bound comes in steps, since it is cut only every K* iterations. Two misprints matter here: the theorem
prints tan(theta_0) on the left side of its promise, where theta_k is meant, and K* with c_X, where c_X,min is.

## Published and ours

| | published | ours |
|---|---|---|
| convergence at rate beta every K* iterations, where the conditions hold (Theorem 1) | proven | {violations} violations in {n_angles} angles |
| Figure 3's setting ({sizes}) | the method succeeds; the conditions are not evaluated | {_fig3(results)} |

The conditions are sufficient and far from necessary. They ask the pull of the inliers to exceed everything else in the
worst direction, while a descent meets typical ones.
"""


def by_setting(results: Results, name: str) -> list[list[Row]]:
    """Return the rows of a table, those of each setting together."""
    settings: dict[str, list[Row]] = {}
    for row in results.rows(name):
        settings.setdefault(setting(row), []).append(row)
    return list(settings.values())


def setting(row: Row, between: str = ", ") -> str:
    """Return the sizes of a problem in words."""
    return f"D = {row['D']}, c = {row['c']}{between}N = {row['N']}, M = {row['M']}"


def _typical_angle(row: Row) -> float:
    return float(np.degrees(np.arctan(np.sqrt((row["D"] - row["c"]) / row["c"]))))


def _share(results: Results, method: str, r: float) -> float:
    return float(np.mean(results.column("ends", "arrived", method=method, r=r)))


def _arrivals(results: Results, r: float) -> str:
    return ", ".join(f"{method} {percent(_share(results, method, r))}" for method in RULES)


def _rules_table(results: Results, methods: tuple[str, ...]) -> str:
    frames = methods == TOLD
    lines = []
    for r in results.values("ends", "r"):
        for method in methods:
            rows = results.rows("ends", method=method, r=r)
            line = [
                r,
                method,
                WORDS[method],
                percent(_share(results, method, r)),
                _number(rows, "median_iterations_to", np.median),
                _number(rows, "slowest_iterations_to", np.max),
                _number(rows, "slowest_scans_to", np.max),
                f"{max(row['largest_end'] for row in rows):.0e}",
            ]
            if not frames:
                line.append(f"{np.median([row['spread'] for row in rows]):.2f}")
            lines.append(line)
    header = ["r", "rule", "", "arrive", "iterations, median", "slowest", "scans, slowest"]
    return table([*header, "largest end", *([] if frames else ["spread"])], lines)


def _number(rows: list[Row], column: str, how: Any) -> str:
    values = [row[column] for row in rows]
    return "-" if None in values else f"{how(values):.0f}"


def _reasons(results: Results) -> str:
    """Explain who does not arrive; only what the numbers show."""
    r = results.values("ends", "r")[-1]
    lines = []
    short, longer = _share(results, "geometric", r), _share(results, LONGER, r)
    if short < 1:
        spread = [
            float(np.median(results.column("ends", "spread", method=method, r=r)))
            for method in ("geometric", LONGER)
        ]
        lines.append(
            f"The geometric rule loses {percent(1 - short)} of its starts at r = {r}: its flat phase of 60 iterations "
            "is over before they have come near, and a step that only shrinks has a finite way to go. With a flat "
            f"phase twice as long {percent(longer)} arrive. The price of long steps is diversity: the spread "
            f"goes from {spread[0]:.2f} to {spread[1]:.2f}, as starts drift to common places while the steps are long."
        )
    decay = _share(results, "decay", r)
    if decay < 1:
        lines.append(
            f"The decaying rule loses {percent(1 - decay)} for the same reason: the whole way is at most ten times the "
            "first step. It is meant for a spectral start, from which (RSGM, below) it arrives."
        )
    lines += _ravines(results, r)
    for method in ("auto", "mbls"):
        missing = 1 - _share(results, method, r)
        stuck = float(np.mean(results.column("ends", "resting_elsewhere", method=method, r=r)))
        if missing > 0:
            lines.append(
                f"`{method}` has brought {percent(missing)} of its starts to no normal at r = {r}: {percent(stuck)} "
                "rest at other local minima, the others are on their way when the iterations end."
            )
    return "\n\n".join(lines) or "All rules bring all starts to a normal here."


def _ravines(results: Results, r: float) -> list[str]:
    """Explain a slowest start of `auto` that is slower than that of the published line search."""
    slowest = {}
    for method in ("auto", EASIER, "mbls"):
        values = [row["slowest_iterations_to"] for row in results.rows("ends", method=method, r=r)]
        if None in values:
            return []
        slowest[method] = int(max(values))
    if slowest["auto"] <= 1.5 * slowest["mbls"]:
        return []
    spread = [
        float(np.median(results.column("ends", "spread", method=method, r=r)))
        for method in ("auto", EASIER)
    ]
    return [
        f"The slowest start of `auto` takes {slowest['auto']} iterations, that of `mbls` {slowest['mbls']}: it lingers in a "
        "shallow ravine, away from any normal, where few steps gain the decrease that `auto` asks for. Content with "
        f"a tenth of it, the slowest takes {slowest[EASIER]}; the spread is then {spread[1]:.2f} instead of {spread[0]:.2f}."
    ]


def _theorem_table(results: Results) -> str:
    lines = []
    for rows in by_setting(results, "theorem1"):
        done = [row for row in rows if row["violations"] is not None]
        line = [
            setting(rows[0]),
            f"{sum(row['certified'] for row in rows)} of {len(rows)}",
            f"{np.median([row['cone'] for row in rows]):.1f}",
            f"{sum(row['used'] for row in rows)} of {sum(row['k'] for row in rows)}",
        ]
        if done:
            line += [
                f"{np.median([row['K0'] for row in done]):.0f}, "
                f"{np.median([row['K_star'] for row in done]):.0f}",
                sum(row["violations"] for row in done),
                f"{max(row['closest'] for row in done):.2f}",
                f"{max(row['end'] for row in done):.0e}",
            ]
        lines.append(line + ["-"] * (8 - len(line)))
    header = ["setting", "certified", "cone", "starts used", "K0, K*", "violations", "closest"]
    return table([*header, "largest end"], lines)


def _fig3(results: Results) -> str:
    parts = []
    for r in results.values("conditions", "r"):
        rows = results.rows("conditions", r=r)
        cone = np.degrees(np.arctan(np.median([row["cone"] for row in rows])))
        nearest = np.degrees(np.arctan(min(row["nearest_start"] for row in rows)))
        pull, push = (np.median([row[name] for row in rows]) for name in ("pull", "push"))
        inside = float(np.mean([row["inside"] for row in rows]))
        parts.append(
            f"r = {r}: N c_X,min = {pull:.0f} against N eta_X + M eta_O = {push:.0f}; the cone has {cone:.0f} degrees, "
            f"the nearest of all starts is at {nearest:.0f}; {percent(inside)} of the starts are inside, and "
            f"{percent(_share(results, 'auto', r))} arrive (auto)"
        )
    return "; ".join(parts)

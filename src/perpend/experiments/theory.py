"""The paper's statements, checked by numbers: how often conditions hold, and what happens if not.

Lemmas about means over spheres are checked by sampling (Lemma 2) and by running the continuous
method (Lemmas 3 and 4, Theorem 5). Everything about finitely many rows is checked on one grid of
problems, from easy to impossible: Theorem 1, Assumption 1, the identity for the limits, the bounds
on the outliers' errors, Lemma 6, Theorem 7, and the method itself. On that grid Theorem 7 never
holds, so its corrected form is checked on further problems, where it does.
"""

from typing import Any

import numpy as np

from perpend._typing import Array
from perpend.experiments._experiment import Case, Experiment, Results, Row, Settings, Tables
from perpend.experiments._trials import n_outliers, percent

CONDITIONS = {  # name on page and figure -> column
    "Theorem 1, balance": "dominates",
    "Theorem 1, balance certified": "dominates_certified",
    "Assumption 1, all starts": "holds",
    "Assumption 1, certified": "holds_certified",
    "Lemma 6, all starts": "lemma6",
    "Lemma 6, c starts": "lemma6_few",
    "Lemma 6 corrected, all starts": "corrected",
    "Theorem 7, c starts": "theorem7",
    "Theorem 7 corrected, all starts": "theorem7_corrected",
}
SHAPES = [(3, 1), (10, 1), (10, 5), (10, 8), (30, 5), (30, 25)]  # D, c
MOST_ROWS = 34_000
FINITE = [  # D, c, N, M, k: the corrected Theorem 7 holds in all but the last three
    *[(30, 29, 1000, 1, 116), (30, 29, 1000, 3, 116), (30, 29, 3000, 10, 116)],
    *[(30, 28, 3000, 3, 116), (30, 28, 3000, 10, 232)],
    *[(30, 29, 1000, 30, 116), (10, 9, 1000, 10, 60), (30, 29, 1000, 3, 28)],
]


def cases(settings: Settings) -> list[Case]:
    """Return the cases of the five parts."""
    quick = settings.quick
    shapes = [(3, 1), (10, 5), (10, 8)] if quick else SHAPES
    inliers = [30, 100, 1000] if quick else [30, 100, 300, 1000, 10_000]
    shares = [0.01, 0.5, 0.9] if quick else [0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97]
    spheres = [(3, 1), (10, 5), (30, 5)] if quick else [*SHAPES, (3, 2), (200, 10)]
    ratios = [0.1, 0.5, 0.9]
    sizes = [(30, 5, 10), (200, 5, 10), (200, 10, 10), (200, 10, 30), (200, 20, 30)]
    n, draws = (4000, 20) if quick else (40_000, 100)
    parts: list[list[Case]] = [
        [
            {"part": "problem", "D": D, "c": c, "N": N, "M": M, "r": r}
            for D, c in shapes
            for N in inliers
            for r in shares
            if N + (M := max(1, n_outliers(N, r))) <= MOST_ROWS
        ],
        [{"part": "lemma2", "D": D, "c": c, "p": p, "n": n} for D, c in spheres for p in ratios],
        [{"part": "continuous", "D": D, "c": c, "p": p} for D, c in spheres for p in ratios],
        [{"part": "starts", "D": D, "c": c, "k": k, "draws": draws} for D, c, k in sizes],
        [
            {"part": "finite", "D": D, "c": c, "N": N, "M": M, "k": k, "draws": 2 if quick else 40}
            for D, c, N, M, k in FINITE
        ],
    ]
    seeds = range(settings.seeds or (1 if quick else 3))
    return [{**case, "seed": seed} for part in parts for seed in seeds for case in part]


def run(case: Case) -> Tables:
    """Compute a case of any part."""
    from perpend.experiments import _theory_finite, _theory_limits, _theory_problem

    module = {"problem": _theory_problem, "finite": _theory_finite}.get(
        case["part"], _theory_limits
    )
    rows = getattr(module, case["part"])(case)
    given = {name: value for name, value in case.items() if name != "part"}
    return {case["part"]: [{**given, **row} for row in rows]}


def cost(case: Case) -> float:
    """Return the relative time, about the seconds."""
    if case["part"] == "problem":
        return float(0.2 + 5e-6 * (case["N"] + case["M"]) * case["D"])
    return 0.2 * case["draws"] if case["part"] == "finite" else 0.1


def summary(results: Results) -> list[dict[str, str]]:
    """Return how often each condition holds, and how often the method succeeds."""
    columns = {**CONDITIONS, "all descents reach normals": "descents", "DPCP() succeeds": "dpcp"}
    rows = results.rows("problem")
    return [
        {"condition": name, "holds": percent(np.mean([bool(row[column]) for row in rows]))}
        for name, column in columns.items()
    ]


# -- the figures -----------------------------------------------------------------------------------

DRAWN = {  # name in the figure -> measured, bound
    "angle, certified (Theorem 1)": ("closest_certified", None),
    "angle, estimated (Theorem 1)": ("closest", None),
    "‖e_O‖, certified": ("error", "error_bound"),
    "‖e_O‖, estimated": ("error", "error_bound_estimated"),
    "‖e_O‖, as printed": ("error", "error_bound_printed"),
    "‖Δ‖, certified": ("short_delta", "short_delta_bound"),
    "‖Δ‖, estimated": ("short_delta", "short_delta_bound_estimated"),
}
LEAST_SHOWN = 1e-4  # of the ratios shown


def draw(results: Results) -> dict[str, Any]:
    """Draw conditions against success, and measured values against their bounds."""
    return {"conditions": _draw_conditions(results), "bounds": _draw_bounds(results)}


def _draw_conditions(results: Results) -> Any:
    from perpend import plots

    with plots.figure(1, 2, panel=(5.2, 3.9)) as (drawing, axes):
        left, right = axes[0]
        for color, D in zip(plots.COLORS, results.values("problem", "D"), strict=False):
            x, y = _by_problem(results, D)
            left.scatter(x, y, s=22, color=color, alpha=0.75, linewidths=0, label=f"D = {D}")
        left.axvline(1, color="#8A8A8A", linestyle="--", linewidth=1.2, zorder=1)
        left.set(
            xscale="log", ylim=(-0.05, 1.12), xlabel="N c_X,min / (N η_X + M η_O)",
            ylabel="starts that arrive at a normal", title="Theorem 1's balance, and the descents",
        )  # fmt: skip
        for text, side, shift in (("theorem silent", "right", -6), ("may apply", "left", 6)):
            left.annotate(
                text, (1, 1.04), xytext=(shift, 4), textcoords="offset points", ha=side,
                fontsize=8, color="#555555",
            )  # fmt: skip
        left.legend(loc="lower right")
        _dumbbells(right, results, plots.COLORS)
    return drawing


def _by_problem(results: Results, D: int) -> tuple[Array, Array]:
    """Return the balance and the share of arriving starts of each problem, over its trials."""
    groups = results.groups("problem", "c", "N", "M", D=D).values()
    x = [np.median([row["cone"] for row in rows]) for rows in groups]
    y = [np.mean([row["arrived"] / row["k"] for row in rows]) for rows in groups]
    return np.array(x), np.array(y)


def _dumbbells(ax: Any, results: Results, colors: tuple[str, ...]) -> None:
    """Draw, for each condition, how often it holds and how often `DPCP()` succeeds without it."""
    rows = results.rows("problem")
    success = np.array([row["dpcp"] for row in rows])
    names = list(CONDITIONS)[::-1]
    for height, name in enumerate(names):
        holds = np.array([row[CONDITIONS[name]] for row in rows], dtype=bool)
        share = float(np.mean(holds))
        ax.barh(height, share, color=colors[0], height=0.55, label="condition holds")
        ax.annotate(
            percent(share), (share, height), xytext=(4, 0), textcoords="offset points",
            va="center", fontsize=8, color="#333333",
        )  # fmt: skip
        if not holds.all():
            ax.plot(
                float(np.mean(success[~holds])), height, "D", color=colors[1],
                label="DPCP() succeeds where it does not",
            )  # fmt: skip
    ax.axvline(float(np.mean(success)), color="black", linestyle=":", linewidth=1.3,
               label="DPCP() succeeds, all problems")  # fmt: skip
    ax.set(yticks=range(len(names)), yticklabels=names, xlim=(0, 1.08), xlabel="share of problems")
    ax.set_title("How often conditions hold")
    ax.grid(visible=False, axis="y")
    shown = dict(zip(*ax.get_legend_handles_labels()[::-1], strict=True))
    ax.figure.legend(shown.values(), shown, loc="outside lower center", ncols=3)


def _draw_bounds(results: Results) -> Any:
    """Draw measured value / bound for every problem, one line of dots for each bound."""
    from perpend import plots

    rng = np.random.default_rng(0)  # only moves the dots apart
    with plots.figure(1, 1, panel=(8.0, 3.6)) as (drawing, axes):
        ax = axes[0, 0]
        names = list(DRAWN)[::-1]
        for height, name in enumerate(names):
            ratio = ratios(results.rows("problem"), *DRAWN[name])
            lift = height + rng.uniform(-0.25, 0.25, len(ratio))
            met = ratio <= 1
            for part, color in ((met, plots.COLORS[0]), (~met, plots.COLORS[1])):
                ax.scatter(
                    np.clip(ratio[part], LEAST_SHOWN, 1e2), lift[part], s=9, color=color, alpha=0.5,
                    linewidths=0,
                )  # fmt: skip
        ax.axvline(1, color="black", linewidth=1.2)
        ax.set(
            xscale="log", xlim=(LEAST_SHOWN / 2, 2e2), yticks=range(len(names)), yticklabels=names,
            xlabel="measured / bound (broken beyond 1; at the right edge: negative bounds)",
        )  # fmt: skip
        ax.grid(visible=False, axis="y")
    return drawing


def ratios(rows: list[Row], measured: str, bound: str | None) -> Array:
    """Return measured / bound, infinite where the bound is negative.

    Only of rows that have it. Without a bound, what is measured is the ratio.
    """
    if bound is None:
        return np.array([row[measured] for row in rows if row[measured] is not None])
    pairs = [(row[measured], row[bound]) for row in rows if row[bound] is not None]
    return np.array([a / b if b > 0 else np.inf for a, b in pairs])


EXPERIMENT = Experiment(
    name="theory",
    title="The theory, checked by numbers",
    about="how often the conditions of lemmas and theorems hold, and what if not",
    cases=cases,
    run=run,
    draw=draw,
    summary=summary,
    cost=cost,
)

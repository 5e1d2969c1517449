"""The figures of the experiment `theory`, from the stored rows alone."""

from typing import Any

import numpy as np

from perpend._typing import Array
from perpend.experiments._experiment import Results
from perpend.experiments._text import percent
from perpend.experiments._theory_page import CONDITIONS, ratios

DRAWN = {  # name in the figure -> measured, bound
    "angle, certified (Theorem 1)": ("closest_certified", None),
    "angle, estimated (Theorem 1)": ("closest", None),
    "‖e_O‖, certified": ("error", "error_bound"),
    "‖e_O‖, estimated": ("error", "error_bound_estimated"),
    "‖e_O‖, as printed": ("error", "error_bound_printed"),
    "‖Δ‖, certified": ("short_delta", "short_delta_bound"),
    "‖Δ‖, estimated": ("short_delta", "short_delta_bound_estimated"),
}
LEAST = 1e-4  # of the ratios shown


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
    groups: dict[tuple[Any, ...], list[tuple[float, float]]] = {}
    for row in results.rows("problem", D=D):
        key = (row["c"], row["N"], row["M"])
        groups.setdefault(key, []).append((row["cone"], row["arrived"] / row["k"]))
    x, y = np.array([(np.median(g, axis=0)[0], np.mean(g, axis=0)[1]) for g in groups.values()]).T
    return x, y


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
            held = ratio <= 1
            for part, color in ((held, plots.COLORS[0]), (~held, plots.COLORS[1])):
                ax.scatter(
                    np.clip(ratio[part], LEAST, 1e2), lift[part], s=9, color=color, alpha=0.5,
                    linewidths=0,
                )  # fmt: skip
        ax.axvline(1, color="black", linewidth=1.2)
        ax.set(
            xscale="log", xlim=(LEAST / 2, 2e2), yticks=range(len(names)), yticklabels=names,
            xlabel="measured / bound (broken beyond 1; at the right edge: negative bounds)",
        )  # fmt: skip
        ax.grid(visible=False, axis="y")
    return drawing

"""The sections on growth and on many rows."""

from typing import Any

import numpy as np

from _page.drawing import level_bars, upright_line, whole_ticks
from _page.section import Result, Section, Target, at_most
from perpend.plots import COLORS, figure
from perpend.plots._style import MUTED

WORDS = {"n": "rows", "D": "features", "starts": "starts"}
SLOPE_IN_ROWS, SLACK = 1.0, 0.05
MEMORY_GIB, SCANS = 1.0, 3

# -- growth ----------------------------------------------------------------------------------------


def targets_growth(result: Result) -> list[Target]:
    """Twice the rows must take twice the time."""
    slope = result["results"]["n"]["slope"]
    met = abs(slope - SLOPE_IN_ROWS) <= SLACK
    return [Target("slope in the rows", f"{SLOPE_IN_ROWS:.2f} ± {SLACK}", f"{slope:.3f}", met)]


def draw_growth(result: Result) -> dict[str, Any]:
    """Draw times with their fitted lines, and a line of slope 1."""
    parts = result["results"]
    with figure(1, len(parts), panel=(3.3, 3.1), sharey=True) as (drawing, axes):
        for i, (ax, (name, part)) in enumerate(zip(axes.flat, parts.items(), strict=True)):
            x, y = np.array(part["sizes"], float), np.array(part["seconds"])
            slope, start = np.polyfit(np.log(x), np.log(y), 1)
            line = np.exp(start + slope * np.log(x))
            ax.plot(x, y[-1] * x / x[-1], color=MUTED, linewidth=1.1, linestyle="--", zorder=1)
            ax.plot(x, line, color=COLORS[i], linewidth=1.2)
            ax.plot(x, y, "o", color=COLORS[i])
            ax.set(xscale="log", yscale="log", xlabel=WORDS[name])
            text = f"slope {part['slope']:.2f}"
            ax.text(0.06, 0.93, text, transform=ax.transAxes, color=COLORS[i], va="top")
            if name == "n":
                target = f"target {SLOPE_IN_ROWS:.2f} ± {SLACK}"
                ax.text(
                    0.06, 0.83, target, transform=ax.transAxes, color=MUTED, va="top", fontsize=8
                )
            ax.text(0.94, 0.06, "dashed: slope 1", transform=ax.transAxes, color=MUTED,
                    ha="right", fontsize=8)  # fmt: skip
            whole_ticks(ax.xaxis, part["sizes"])
        axes[0, 0].set_ylabel("seconds for a fit")
        axes[0, 0].yaxis.set_major_formatter("{x:g}")
    return {"growth": drawing}


# -- many rows -------------------------------------------------------------------------------------


def _scans(result: Result) -> int:
    return int(sum(result["scans_after_validating"].values()))


def targets_many_rows(result: Result) -> list[Target]:
    """Little memory and few scans."""
    size = f"{result['rows']:,} rows"
    memory = result["memory_beyond_the_data_gib"]
    return [
        at_most(f"{size}: memory beyond the data", [memory], MEMORY_GIB, " GiB"),
        at_most(f"{size}: scans after the validating one", [_scans(result)], SCANS),
    ]


def draw_many_rows(result: Result) -> dict[str, Any]:
    """Draw memory and scans beside their targets."""
    memory = {
        "the data": result["data_gib"],
        "beyond the data": result["memory_beyond_the_data_gib"],
    }
    with figure(1, 2, panel=(4.8, 2.0)) as (drawing, axes):
        left, right = axes.flat
        sizes = [f"{value:.2f} GiB" for value in memory.values()]
        level_bars(left, memory, sizes, (MUTED, COLORS[0]))
        upright_line(left, MEMORY_GIB, f"target {MEMORY_GIB:g} GiB", (0, 0.5))
        left.set(xlabel="memory (GiB)", xlim=(0, 1.25 * max(MEMORY_GIB, *memory.values())))
        scans = {n.replace("_", " "): k for n, k in result["scans_after_validating"].items()}
        colors = [*(MUTED for _ in scans), COLORS[0]]
        scans["all"] = _scans(result)
        level_bars(right, scans, [f"{count}" for count in scans.values()], colors)
        upright_line(right, SCANS, f"target {SCANS}", (0, 1 / len(scans)))
        right.set(xlabel="scans of all rows", xlim=(0, 1.25 * max(SCANS, _scans(result))))
        right.set_xticks(range(max(SCANS, _scans(result)) + 1))
    return {"many-rows": drawing}


GROWTH = Section(
    "growth",
    "How the time grows",
    ("results", "around"),
    draw_growth,
    targets_growth,
    lambda _: {"words": WORDS},
)
MANY_ROWS = Section(
    "many_rows",
    "Many rows",
    ("scans_after_validating", "memory_beyond_the_data_gib"),
    draw_many_rows,
    targets_many_rows,
)

"""The section on decisions: scans, slabs, clouds, stretched inliers, the third suite."""

from typing import Any

from _text import percent, table

from _page.decision_targets import (
    RIGHT_SURE,
    SLAB_RIGHT,
    SLAB_SURE_AND_WRONG,
    SURE_RIGHT,
    fraction,
    frame,
    setting,
    share,
    targets,
    time_limit,
)
from _page.drawing import Dots, dot_panels, whole_ticks
from _page.section import Result, Section, number
from perpend.plots import COLORS, figure
from perpend.plots._style import MARKERS, MUTED

SUITES = ("scans", "slab", "cloud", "gap", "stretched", "third")


def numbers(result: Result) -> dict[str, Any]:
    """Return the rows of the times, and how scans and settings are called."""
    return {"suites": SUITES, "frame": frame, "setting": setting, "times": time_lines(result)}


def time_lines(result: Result) -> list[list[Any]]:
    """Return name, number of fits, seconds of both versions and their ratio."""
    return [
        [label, fits, number(taken["now"]), number(taken["before"]), fraction(ratio)]
        for label, fits, taken, ratio, _ in _time_rows(result["times"])
    ]


def _time_rows(times: Result) -> list[tuple[str, int, Result, float, float | None]]:
    """Return name, number of fits, both times, their ratio and the target of every line."""
    found = []
    for name, stored in times.items():
        word = "longest" if name == "third" else "median"
        for row in stored["rows"]:
            what = {"scans": frame, "clear": lambda row: f"clear, {row['data']}"}.get(name)
            label = what(row) if what else "third suite, the longest fit"
            limit = time_limit(name, row)
            found.append((label, row["fits"], row[word], row[f"{word}_ratio"], limit))
    return found


def times_table(result: Result) -> str:
    """Show seconds of both versions and their ratios."""
    return table(["", "fits", "CPU seconds", "version 0.1", "ratio"], time_lines(result))


# -- drawing -----------------------------------------------------------------------------------


def draw(result: Result) -> dict[str, Any]:
    """Draw what is stored."""
    suites = result["suites"]
    drawn = {
        f"decisions-{name}": function(suites[name])
        for name, function in (("slab", _draw_slab), ("third", _draw_third))
        if name in suites
    }
    if result["times"]:
        drawn["decisions-times"] = _draw_times(result["times"])
    return drawn


ROUND = (1 / 40, 1 / 20, 1 / 10, 1 / 5, 1)  # ratios on the axis


def _draw_slab(stored: Result) -> Any:
    """Draw both shares over the ratio of thicknesses, a line for each share of the rows."""
    rows = stored["by"]["ratio, share"]
    ratios = sorted({row["ratio"] for row in rows})
    shares = list(dict.fromkeys(sorted(row["share"] for row in rows)))
    panels = {"right": SLAB_RIGHT, "sure_and_wrong": SLAB_SURE_AND_WRONG}
    with figure(1, 2, panel=(3.6, 2.8)) as (drawing, axes):
        for ax, (key, limit) in zip(axes.flat, panels.items(), strict=True):
            for name, color, marker in zip(shares, COLORS, MARKERS, strict=False):
                line = [row for row in rows if row["share"] == name]
                ax.plot(
                    [row["ratio"] for row in line],
                    [100 * share(row[key], row["problems"]) for row in line],
                    color=color, marker=marker, label=name,
                )  # fmt: skip
            ax.axhline(100 * limit, color=MUTED, linestyle="--", linewidth=1.1, zorder=1)
            ax.set(xscale="log", xlabel="slab over noise", ylabel="% of the draws")
            ax.set_title(f"{key.replace('_', ' ')} (target {percent(limit)})")
            whole_ticks(ax.xaxis, ratios)
        axes.flat[0].set_ylim(top=103)
        axes.flat[1].set_ylim(bottom=-0.5)
        legend = {"title": "rows near the plane", "title_fontsize": 8, "fontsize": 8}
        axes.flat[1].legend(loc="upper left", bbox_to_anchor=(1.01, 1), **legend)
    return drawing


def _draw_third(stored: Result) -> Any:
    """Draw both shares for each kind of inliers, noise and outliers."""
    rows = [(what, row) for what, some in stored["by"].items() for row in some]
    names = [f"{what}: {row[what]}" for what, row in rows]
    sure = [100 * share(row["right_and_sure"], row["sure"]) for _, row in rows]
    right = [100 * share(row["right_and_sure"], row["right"]) for _, row in rows]
    series = {
        "right ones that are sure": Dots(right, COLORS[1], "s", filled=False),
        "sure ones that are right": Dots(sure),
    }
    lines = {f"target {100 * limit:g}": 100 * limit for limit in (SURE_RIGHT, RIGHT_SURE)}
    return dot_panels({"": series}, names, xlabel="% of the estimates", lines=lines)


def _draw_times(times: Result) -> Any:
    """Draw the ratios, each with its target."""
    rows = _time_rows(times)
    ratios = [ratio for *_, ratio, _ in rows]
    limits = [float("nan") if limit is None else limit for *_, limit in rows]
    series = {"measured": Dots(ratios), "target": Dots(limits, COLORS[1], "|")}
    low, high = 0.7 * min(*ratios, ROUND[0]), 1.3 * max(*ratios, ROUND[-1])
    names = [label for label, *_ in rows]
    drawing = dot_panels(
        {"": series}, names, xlabel="CPU time over that of version 0.1", lines={}, xlim=(low, high),
        xscale="log",
    )  # fmt: skip
    drawing.axes[0].xaxis.set_ticks(ROUND, [fraction(ratio) for ratio in ROUND])
    drawing.axes[0].xaxis.set_ticks([], minor=True)
    return drawing


SECTION = Section(
    "decisions",
    "Decisions on scans, slabs and clouds",
    ("suites", "times"),
    draw,
    targets,
    numbers,
    "decisions.py SUITE",
)

"""The section on decisions: scans, slabs, clouds, stretched inliers, the third suite."""

from typing import Any

from _page.decision_bars import (
    RIGHT_SURE,
    SLAB_RIGHT,
    SLAB_SURE_AND_WRONG,
    SURE_RIGHT,
    bars,
    fraction,
    frame,
    setting,
    share,
    time_limit,
)
from _page.drawing import Dots, dot_plot, upright_bar, whole_ticks
from _page.section import Result, Section, image, number
from perpend.experiments._text import percent, table
from perpend.plots import COLORS, figure
from perpend.plots._style import MARKERS, MUTED

COMMAND = "python benchmarks/decisions.py"
WORDS = {
    "scans": "**Scans.** A road in KITTI frames and a table in Kinect scenes. The seeds permute "
    "the rows. *AUC* ranks the points by the distance that decides their labels; *least squares* "
    "is that of the plane through the marked points.",
    "slab": "**A plane in a slab.** Both are there, and the plane is the answer: *right* means "
    "its codimension, and `noise_` within a factor of 1.5 of the plane's noise. 4000 rows, D = 3, "
    "c = 1 or D = 8, c = 3; 15 to 60 % of them near the plane. The *ratio* is that of the slab's "
    "half-width, or of its standard deviation (*thickness*, drawn), to the noise; the noise is the "
    "standard deviation of its law, or its scale (*size*, drawn).",
    "cloud": "**Smooth clouds.** Gaussian and Student ellipsoids and boxes, neighbouring axes "
    "within a factor of 2.5, D = 2 to 30, 50 to 20,000 rows: there is no subspace, and being sure "
    "of one is wrong.",
    "gap": "**One gap of 10.** The same clouds with neighbouring axes within 1.5 and once 10, "
    "without outliers; *right* means the subspace of the long axes.",
    "stretched": "**Stretched inliers with noise.** The inliers' axes in the subspace fall from 1 "
    "to the stretch. *Right* means the subspace; *labels fit* means an F1 of 0.9, and *can fit* "
    "that the true subspace reaches it with some threshold.",
    "third": "**The third calibration suite.** Clustered, heavy-tailed and cubic inliers, "
    "Student noise and noise that differs by row or column, anisotropic, planar and near "
    "outliers, D = 3 to 60; *right* as on the calibration page.",
}
TIME_WORDS = (
    "**Times against version 0.1.** Both versions fit the same rows in turn, in one run, each in a "
    "process of its own with one thread; CPU seconds of the fit. *Clear* fits are those of "
    "[whole fits](#whole-fits) and of the products."
)


def describe(result: Result) -> str:
    """Show each suite that is stored, and say which is not, or not all of it."""
    suites, times = result["suites"], result["times"]
    parts = [
        "`DPCP(affine=..., random_state=seed)`, told nothing else, on data as people have them, "
        "and on clouds where there is nothing to find. *Sure* means a confidence of 0.95."
    ]
    for name, words in WORDS.items():
        parts.append(words)
        if name not in suites:
            parts.append(f"Left out: not stored. `{COMMAND} {name} --store` makes it.")
            continue
        stored = suites[name]
        if name in PICTURES:
            parts.append(image(f"decisions-{name}", PICTURES[name]))
        parts += _tables(name, stored)
        if stored["draws"] < stored["full"]:
            parts.append(
                f"**A small run**: {stored['draws']} of {stored['full']} seeds are stored; "
                f"`{COMMAND} {name} --first {stored['first_seed']} --store` makes all of them."
            )
    parts.append(TIME_WORDS)
    if times:
        parts.append(image("decisions-times", "CPU time of fits over that of version 0.1"))
        parts.append(times_table(times))
    else:
        parts.append(f"Left out: not stored. `{COMMAND} scans --against SRC --store` makes them.")
    return "\n\n".join(parts)


def _tables(name: str, stored: Result) -> list[str]:
    found, seconds = stored["all"], stored["seconds"]
    n, seeds = found["problems"], f"seeds from {stored['first_seed']}"
    both, wrong = found["right_and_sure"], found["sure_and_wrong"]
    match name:
        case "scans":
            return [_scans(stored["by"]["kind, frame, form"]), f"{stored['draws']} {seeds}."]
        case "slab":
            return [
                f"{n} draws, {seeds}: {found['right']} right, {found['sure']} sure, {wrong} sure "
                f"and wrong; the codimension is right in {found['right_codimension']}. With the "
                "law's standard deviation as the true noise throughout, "
                f"{found['right_by_deviation']} would be right.",
                *(_counts(rows) for rows in stored["by"].values()),
            ]
        case "cloud":
            text = f"{n} draws, {seeds}: sure of a subspace in {wrong}."
            return [text, *(_counts(rows) for rows in stored["by"].values() if wrong)]
        case "gap":
            text = f"{n} draws, {seeds}: {found['right']} right, {both} of them sure, "
            return [f"{text}{wrong} sure and wrong.", _counts(stored["by"]["features"])]
        case "stretched":
            return [_stretched(next(iter(stored["by"].values()))), f"{stored['draws']} {seeds}."]
        case _:
            return [
                f"{n} problems, {seeds}: {found['right']} right ({found['outliers_own']} of them "
                f"the outliers' own subspace), {found['sure']} sure, {both} both. Out of reach: "
                f"{found['out_of_reach']}, where even the true subspace does not allow labels that "
                f"fit; of the answers that are sure and wrong, {wrong} in all, "
                f"{found['sure_out_of_reach']} are to such problems. Median CPU seconds: "
                f"{_seconds(seconds['sure'])} sure, {_seconds(seconds['unsure'])} unsure; the "
                f"longest fit {_seconds(seconds['longest'])}.",
                *(_counts(rows) for rows in stored["by"].values()),
            ]


def _seconds(value: float | None) -> str:
    return "none" if value is None else number(value)


def _counts(rows: list[Result]) -> str:
    """Show counts by settings, which come first in a row."""
    names = list(rows[0])[: list(rows[0]).index("problems")]
    header = [*names, "problems", "right", "sure", "sure and wrong"]
    keys = [*names, "problems", "right", "sure", "sure_and_wrong"]
    return table(header, [[_word(row[key]) for key in keys] for row in rows])


def _word(value: Any) -> Any:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else value


def _scans(rows: list[Result]) -> str:
    header = ["scan", "AUC, mean", "smallest", "least squares", "sure", "sure and wrong"]
    cells = [
        [
            frame(row),
            *(f"{row[key]:.4f}" for key in ("auc", "smallest_auc", "best_auc")),
            f"{row['sure']} of {row['problems']}",
            row["sure_and_wrong"],
        ]
        for row in rows
    ]
    return table(header, cells)


def _stretched(rows: list[Result]) -> str:
    header = ["data", "right", "sure", "sure and wrong", "labels fit", "can fit"]
    keys = ("sure", "sure_and_wrong", "labels_fit", "labels_can_fit")
    cells = [
        [setting(row), f"{row['right']} of {row['problems']}", *(row[key] for key in keys)]
        for row in rows
    ]
    return table(header, cells)


def _time_rows(times: Result) -> list[tuple[str, int, Result, float, float | None]]:
    """Return name, number of fits, both times, their ratio and the bar of every line."""
    found = []
    for name, stored in times.items():
        word = "longest" if name == "third" else "median"
        for row in stored["rows"]:
            what = {"scans": frame, "clear": lambda row: f"clear, {row['data']}"}.get(name)
            label = what(row) if what else "third suite, the longest fit"
            limit = time_limit(name, row)
            found.append((label, row["fits"], row[word], row[f"{word}_ratio"], limit))
    return found


def times_table(times: Result) -> str:
    """Show seconds of both versions and their ratios."""
    cells = [
        [label, fits, number(taken["now"]), number(taken["before"]), fraction(ratio)]
        for label, fits, taken, ratio, _ in _time_rows(times)
    ]
    return table(["", "fits", "CPU seconds", "version 0.1", "ratio"], cells)


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
PICTURES = {
    "slab": "Right answers, and sure and wrong ones, over the slab's thickness",
    "third": "Sure answers that are right and right answers that are sure, by kind of problem",
}


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
            ax.set_title(f"{key.replace('_', ' ')} (bar {percent(limit)})")
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
    with figure(1, 1, panel=(6.4, 0.26 * len(rows) + 1.0)) as (drawing, axes):
        ax = axes[0, 0]
        dot_plot(ax, names, series)
        for limit in (SURE_RIGHT, RIGHT_SURE):
            upright_bar(ax, 100 * limit, f"bar {100 * limit:g}")
        ax.set(xlabel="% of the answers")
        ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1), fontsize=8)
    return drawing


def _draw_times(times: Result) -> Any:
    """Draw the ratios, each with its bar."""
    rows = _time_rows(times)
    ratios = [ratio for *_, ratio, _ in rows]
    limits = [float("nan") if limit is None else limit for *_, limit in rows]
    series = {"measured": Dots(ratios), "bar": Dots(limits, COLORS[1], "|")}
    low, high = 0.7 * min(*ratios, ROUND[0]), 1.3 * max(*ratios, ROUND[-1])
    with figure(1, 1, panel=(5.6, 0.3 * len(rows) + 0.9)) as (drawing, axes):
        ax = axes[0, 0]
        dot_plot(ax, [label for label, *_ in rows], series)
        ax.set(xscale="log", xlim=(low, high), xlabel="CPU time over that of version 0.1")
        ax.xaxis.set_ticks(ROUND, [fraction(ratio) for ratio in ROUND])
        ax.xaxis.set_ticks([], minor=True)
        ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1), fontsize=8)
    return drawing


SECTION = Section(
    "decisions",
    "Decisions on scans, slabs and clouds",
    f"{COMMAND} SUITE",
    ("suites", "times"),
    describe,
    bars,
    draw,
)

"""The section on labels that nobody helped with."""

from typing import Any

from _page.drawing import Dots, dot_plot, upright_bar
from _page.section import Bar, Result, Section, at_least, at_most, image, span
from perpend.experiments._text import percent, table
from perpend.plots import COLORS, figure


def describe(result: Result) -> str:
    """Say what a ratio means, and show all of them."""
    rows = judged(result)
    header = ["features", "codimension", "inliers", "outliers", "noise", "F1", "best F1", "ratio"]
    header += ["median; 10 %; worst", "with the true odds", "inliers positive", "miscounted"]
    return "\n\n".join(
        [
            '`threshold="auto"` is told neither the share of outliers nor the noise. The *ratio* '
            "is the F1 of its labels over the F1 of the best threshold for the same distances, "
            "chosen in hindsight; outliers are the positive class. The bar is on the mean over "
            f"{rows[0]['seeds']} seeds.",
            image("labels", "F1 of the labels over the F1 of the best threshold"),
            table(header, [_line(row) for row in rows]),
            "*With the true odds*: the same ratio for the threshold at which a row is as likely an "
            "inlier as an outlier, by the true share and the true noise. Hardly more is possible "
            "without looking at the labels: where there are five outliers, one of them among the "
            "inliers, hindsight alone knows on which side of it to cut; with two hundred, it knows "
            "hardly more. *Miscounted*: by how much the sum of `outlier_probability` differs from "
            f"the number of outliers, in the median. {_not_found(result)}",
            _without_outliers(result),
        ]
    )


def judged(result: Result) -> list[Result]:
    """Return the settings in which the subspace is found."""
    return [row for row in result["mixed"] if row["bar"] is not None]


def _line(row: Result) -> list[Any]:
    ratio = row["ratio"]
    others = "; ".join(f"{ratio[name]:.3f}" for name in ("median", "ten_percent", "worst"))
    return [
        *(row["D"], row["c"], f"{row['n_inliers']:,}"),
        f"{row['n_outliers']:,} ({percent(_share(row))})",
        *(row["noise"], f"{row['f1']:.3f}", f"{row['best_f1']:.3f}", f"{ratio['mean']:.4f}"),
        *(others, f"{row['true_odds_ratio']:.4f}", f"{row['inliers_positive_ratio']:.4f}"),
        percent(row["miscounted_by_probabilities"]),
    ]


def _shape(row: Result) -> tuple[int, int, int]:
    return row["D"], row["c"], row["n_inliers"]


def _share(row: Result) -> float:
    return round(row["n_outliers"] / (row["n_outliers"] + row["n_inliers"]), 2)


def _not_found(result: Result) -> str:
    lost = [
        f"{row['D']} features, {row['n_inliers']:,} inliers, {percent(_share(row))} outliers, "
        f"noise {row['noise']}"
        for row in result["mixed"]
        if row["bar"] is None
    ]
    return f"Given up, as the subspace is not found there: {'; '.join(lost)}." if lost else ""


def _without_outliers(result: Result) -> str:
    kinds = dict.fromkeys(row["kind"] for row in result["clean"])
    rows = []
    for kind in kinds:
        some = [row for row in result["clean"] if row["kind"] == kind]
        means = [100 * row["flagged"]["mean"] for row in some]
        worst = max(row["flagged"]["worst"] for row in some)
        smallest = min(row["n_inliers"] for row in some)
        rows.append([kind, len(some), f"{smallest:,}", f"{span(means)} %", percent(worst)])
    header = ["rows without an outlier", "shapes", "fewest rows", "flagged, mean", "worst fit"]
    return "\n\n".join(
        [
            table(header, rows),
            "Student noise (three degrees of freedom) is beyond the model and has no bar: some of "
            "its rows are five standard deviations away or more, and whether these are outliers is "
            "a matter of words.",
        ]
    )


def bars(result: Result) -> list[Bar]:
    """A bar for each shape with outliers, and one for all rows without."""
    rows = judged(result)
    found = []
    for shape in dict.fromkeys(_shape(row) for row in rows):
        some = [row for row in rows if _shape(row) == shape]
        least = min(some, key=lambda row: row["ratio"]["mean"])
        note = ""
        if least["ratio"]["mean"] < least["bar"]:
            note = f"; {least['true_odds_ratio']:.3f} with the true odds"
        D, c, n = shape
        what = f"F1 over the best F1, {D} features, codimension {c}, {n:,} inliers"
        values = [row["ratio"]["mean"] for row in some]
        found.append(at_least(what, values, some[0]["bar"], note=note))
    clean = [row for row in result["clean"] if row["bar"] is not None]
    flagged = [row["flagged"]["mean"] for row in clean]
    found.append(at_most("share flagged without an outlier", flagged, clean[0]["bar"]))
    return found


def draw(result: Result) -> dict[str, Any]:
    """Draw the mean ratio of each setting beside what the true odds reach."""
    rows = judged(result)
    names = [
        f"{row['D']} features, {row['n_inliers']:,} inliers, {percent(_share(row))}, {row['noise']}"
        for row in rows
    ]
    series = {
        "true share and noise known": Dots(
            [row["true_odds_ratio"] for row in rows], COLORS[1], "D", filled=False
        ),
        'threshold="auto"': Dots([row["ratio"]["mean"] for row in rows]),
    }
    with figure(1, 1, panel=(6.8, 0.9 + 0.22 * len(rows))) as (drawing, axes):
        ax = axes[0, 0]
        dot_plot(ax, names, series)
        upright_bar(ax, rows[0]["bar"], f"bar {rows[0]['bar']}")
        ax.set_xlabel("F1 over the best F1, mean over the seeds (outliers, noise)")
        ax.legend(loc="lower left", fontsize=8)
    return {"labels": drawing}


SECTION = Section(
    name="labels",
    title="Labels without contamination",
    command="python benchmarks/labels.py",
    keys=("mixed", "clean"),
    describe=describe,
    bars=bars,
    draw=draw,
)

"""The section on labels without a given threshold or contamination."""

from typing import Any

from _text import percent

from _page.drawing import Dots, dot_panels
from _page.section import Result, Section, Target, at_least, at_most
from perpend.plots import COLORS


def scored(result: Result) -> list[Result]:
    """Return the settings in which the subspace is found."""
    return [row for row in result["mixed"] if row["target"] is not None]


def _shape(row: Result) -> tuple[int, int, int]:
    return row["D"], row["c"], row["n_inliers"]


def _share(row: Result) -> float:
    return round(row["n_outliers"] / (row["n_outliers"] + row["n_inliers"]), 2)


def numbers(result: Result) -> dict[str, Any]:
    """Return the settings in which the subspace is found, and the rows without outliers by kind."""
    kinds = dict.fromkeys(row["kind"] for row in result["clean"])
    return {
        "rows": scored(result),
        "lost": [row for row in result["mixed"] if row["target"] is None],
        "share": _share,
        "clean": {k: [row for row in result["clean"] if row["kind"] == k] for k in kinds},
    }


def targets(result: Result) -> list[Target]:
    """A target for each shape with outliers, and one for all rows without."""
    rows = scored(result)
    found = []
    for shape in dict.fromkeys(_shape(row) for row in rows):
        some = [row for row in rows if _shape(row) == shape]
        least = min(some, key=lambda row: row["ratio"]["mean"])
        note = ""
        if least["ratio"]["mean"] < least["target"]:
            note = f"; {least['true_odds_ratio']:.3f} with the true odds"
        D, c, n = shape
        what = f"F1 over the best F1, {D} features, codimension {c}, {n:,} inliers"
        values = [row["ratio"]["mean"] for row in some]
        found.append(at_least(what, values, some[0]["target"], note=note))
    clean = [row for row in result["clean"] if row["target"] is not None]
    flagged = [row["flagged"]["mean"] for row in clean]
    found.append(at_most("share flagged without an outlier", flagged, clean[0]["target"]))
    return found


def draw(result: Result) -> dict[str, Any]:
    """Draw the mean ratio of each setting beside what the true odds reach."""
    rows = scored(result)
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
    label = "F1 over the best F1, mean over the seeds (outliers, noise)"
    lines = {f"target {rows[0]['target']}": rows[0]["target"]}
    return {"labels": dot_panels({"": series}, names, xlabel=label, lines=lines)}


SECTION = Section(
    "labels", "Labels without contamination", ("mixed", "clean"), draw, targets, numbers
)

"""The section on rows in batches."""

from typing import Any

import numpy as np

from _page.drawing import Dots, dot_panels
from _page.section import Result, Section, Target, at_most
from perpend.plots import COLORS

CHANGES = {
    "turn": "the subspace turns by 10 degrees",
    "gone": "codimension 5 becomes 4",
    "flatter": "codimension 5 becomes 6",
}


def _ratios(result: Result) -> list[float]:
    return [one["error"] / one["error_of_fit"] for one in result["noisy"]]


def targets(result: Result) -> list[Target]:
    """Codimension and error, the turn, and no false report."""
    noisy, exact, quiet = result["noisy"], result["exact"], result["quiet"]
    right = sum(one["error"] < 1 for one in noisy)
    delays = [np.inf if one["delay"] is None else one["delay"] for one in result["turn"]]
    reports = sum(quiet) + sum(one["reports"] for one in noisy + exact)
    reports += sum(one["early_reports"] for name in CHANGES for one in result[name])
    return [
        Target("right codimension", "all", f"{right} of {len(noisy)}", right == len(noisy)),
        at_most("error over that of `fit` on all rows", _ratios(result), 1.5),
        at_most("error without noise", [one["error"] for one in exact], 1e-9),
        at_most("batches until a turn by 10 degrees is reported", delays, 5),
        Target(
            "reports where nothing changes",
            "none",
            f"{reports} in {_batches(result):,}",
            not reports,
        ),
    ]


def _batches(result: Result) -> int:
    before = 50 * sum(len(result[name]) for name in CHANGES)
    return 1000 * len(result["quiet"]) + 100 * len(result["noisy"] + result["exact"]) + before


def numbers(result: Result) -> dict[str, Any]:
    """Medians for the tables."""
    changes = [
        {
            "what": what,
            "seeds": len(rows := result[name]),
            "delays": sorted({str(one["delay"]) for one in rows}),
            "more": sum(one["reports"] - 1 for one in rows),
            "right": sum(one["error"] < 1 for one in rows),
            "error": float(np.median([one["error"] for one in rows])),
            "angle": [one["angle"] for one in rows],
        }
        for name, what in CHANGES.items()
    ]
    median = {
        key: float(np.median([one[key] for one in result["noisy"]]))
        for key in ("error", "error_of_fit", "kilobytes", "ms_per_batch")
    }
    slow = {key: [one[key] for one in result["slow"]] for key in result["slow"][0]}
    return {"changes": changes, "median": median, "slow": slow, "n_batches": _batches(result)}


def draw(result: Result) -> dict[str, Any]:
    """Draw both errors of each seed."""
    ways = {"error_of_fit": ("fit on all rows", "D"), "error": ("partial_fit", ".")}
    series = {
        label: Dots([one[key] for one in result["noisy"]], COLORS[i], mark, i == 1)
        for i, (key, (label, mark)) in enumerate(ways.items())
    }
    names = [f"seed {result['first_seed'] + i}" for i in range(len(result["noisy"]))]
    return {"streaming": dot_panels({"": series}, names, xlabel="subspace error", lines={})}


SECTION = Section(
    "streaming",
    "Rows in batches",
    ("noisy", "exact", *CHANGES, "slow", "quiet"),
    draw,
    targets,
    numbers,
)

"""The numbers on the page of the experiment `codimension`, from the stored rows alone."""

from typing import Any

import numpy as np

from perpend.experiments._experiment import Results
from perpend.experiments.codimension import (
    METHODS,
    OURS,
    OURS_STARTS,
    PUBLISHED_GAP,
    PUBLISHED_LONG,
    right,
)


def numbers(results: Results) -> dict[str, Any]:
    """Return how often each rule is right, what is wrong, and what more starts bring."""
    ratios = results.values("sweep", "r")
    without_tolerance = {PUBLISHED_GAP, PUBLISHED_LONG, OURS_STARTS, OURS}
    wrong = [
        (row["r"], row["c"], row["method"], row["estimate"])
        for row in results.rows("sweep")
        if row["method"] in without_tolerance and row["estimate"] != row["c"]
    ]
    return {
        "right": {m: {r: np.mean(right(results, m, r)) for r in ratios} for m in METHODS},
        "GAP": PUBLISHED_GAP,
        "OURS": OURS,
        "wrong": sorted(wrong),
        "few": [row for row in results.rows("starts") if row["starts"] < row["c"]],
    }

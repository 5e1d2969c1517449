"""The numbers on the page of the experiment `hyperspectral`, from the stored rows alone."""

from typing import Any

import numpy as np

from perpend.experiments._experiment import Results, Row
from perpend.experiments._scene import DEFAULT, QUICK_SIDE, SIDE, SYNTHETIC
from perpend.experiments.hyperspectral import FAIR, PAPER, RATIOS

PUBLISHED = {  # the paper's table: F1 at 80 and at 90 %
    "DPCP-PSGM, c' = 10": (0.994, 0.993),
    "RSGM, c' = 10": (0.0, 0.0),
    "DPCP-IRLS, c' = 10": (0.0, 0.0),
    "RSGM, c = 5": (0.999, 0.993),
    "DPCP-IRLS, c = 5": (1.0, 0.995),
}
CREDITS = {DEFAULT.name: " (Jasper Ridge, seen by AVIRIS, as F. Zhu and others prepared it)"}


def numbers(results: Results) -> dict[str, Any]:
    """Return F1 of all methods in both parts, and what the published numbers are compared with."""
    (scene,) = results.values("scores", "scene")
    parts = {
        part: [
            {"method": name, "ratio": ratio, **_summary(results, part.bands, name, ratio)}
            for name in dict.fromkeys(r["method"] for r in results.rows("scores", bands=part.bands))
            for ratio in RATIOS
        ]
        for part in (PAPER, FAIR)
    }
    confidence = results.column("scores", "confidence", bands=PAPER.bands, method="DPCP()")
    return {
        "parts": {part: rows for part, rows in parts.items() if rows},
        "f1": {(row["method"], row["ratio"]): row for row in parts[PAPER]},
        "published": PUBLISHED,
        "ratios": RATIOS,
        "side": QUICK_SIDE if results.quick else SIDE,
        "alike": _alike,
        "scene": scene,
        "credit": CREDITS.get(scene, ""),
        "synthetic": scene == SYNTHETIC,
        "confidence": np.median(confidence),
    }


def _summary(results: Results, bands: int, method: str, ratio: float) -> Row:
    """Return mean and deviation of every F1, and the codimensions found."""
    rows = results.rows("scores", bands=bands, method=method, ratio=ratio)
    names = ("f1_outliers", "best_outliers", "f1_inliers", "best_inliers")
    values = {name: [row[name] for row in rows] for name in names}
    found = [row["codimension"] for row in rows]
    return {
        **{name: (np.mean(value), np.std(value)) for name, value in values.items()},
        "found": (min(found), max(found)),
    }


def _alike(ratio: float, positive: int) -> float:
    """Return F1 of claiming every row: precision is the share of the class, recall is one."""
    share = ratio if positive == -1 else 1 - ratio
    return 2 * share / (1 + share)

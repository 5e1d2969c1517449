"""Homographies between two views of a building: a hyperplane in R^9.

A correspondence puts two linear equations on the nine entries h of a homography, so the rows of the
inliers are orthogonal to h: codimension 1. Many scenes have several; the one with most
correspondences is sought, and the others are outliers, with a structure of their own.
"""

import time
from typing import Any

import numpy as np

from perpend._typing import Array
from perpend.experiments._experiment import Case, Results, Tables
from perpend.experiments._trials import fitted, starts_rng
from perpend.metrics import outlier_f1
from studies import _real_page as page
from studies._real_files import array_names, read_arrays
from studies._real_references import (
    homography_rows,
    ransac_homography,
    scaled_points,
)

PIXELS = 3.0  # threshold of RANSAC
DRAWS = 6000  # take about as long as `DPCP()`
FEW = ("bonython", "ladysymon", "sene")  # of the quick size


def scene_names(path: Any) -> list[str]:
    """Return the scenes of homographies; one that stands there under two names is taken once."""
    names = [name[2:-4] for name in array_names(path) if name[:2] == "H_" and name[-4:] == "_pts"]
    seen: dict[bytes, str] = {}
    for name in sorted(names):
        seen.setdefault(read_arrays(path, f"H_{name}_pts")[0].tobytes(), name)
    return sorted(seen.values())


def run(case: Case) -> Tables:
    """Search for the dominant homography of one scene."""
    from perpend import DPCP, RSGM

    scene, seed = case["scene"], case["seed"]
    points, label = read_arrays(case["path"], f"H_{scene}_pts", f"H_{scene}_label")
    truth = label == np.argmax(np.bincount(label)[1:]) + 1
    y = np.where(truth, 1, -1)
    a, _ = scaled_points(points[:, :2].astype(float))
    b, scale = scaled_points(points[:, 3:5].astype(float))
    rng = np.random.default_rng([seed, 11])
    X = turned(homography_rows(a, b), rng)

    rows = []
    models: dict[str, Any] = {
        page.OURS: DPCP(random_state=starts_rng(seed)),
        "RSGM, given c": RSGM(1),
    }
    for name, model in models.items():
        model, seconds = fitted(model, X)  # noqa: PLW2901
        both = np.all(model.labels_.reshape(-1, 2) == 1, axis=1)
        rows.append(
            {
                "method": name,
                "codimension": int(model.codimension_),
                "confidence": float(model.confidence_),
                "f1": outlier_f1(y, np.where(both, 1, -1), positive=1),
                "seconds": seconds,
            }
        )
    began = time.process_time()
    errors = ransac_homography(a, b, PIXELS * scale, DRAWS, rng)
    rows.append(
        {
            "method": "RANSAC, given c",
            "codimension": 1,
            "confidence": None,
            "f1": outlier_f1(y, np.where(errors < PIXELS * scale, 1, -1), positive=1),
            "seconds": time.process_time() - began,
        }
    )
    given = {"scene": scene, "seed": seed, "n": len(y), "share": float(truth.mean())}
    planes = int(label.max())
    return {"homographies": [{**given, "planes": planes, **row} for row in rows]}


def turned(rows: Array, rng: np.random.Generator) -> Array:
    """Turn each pair of rows by a random angle.

    The two rows of a correspondence have three zeros each, at places of their own: half of all rows
    would lie, exactly, on a subspace of codimension 3, which is not the one sought. A turned pair
    spans the same plane and is as orthogonal to h, without the zeros.
    """
    angle = rng.uniform(0, 2 * np.pi, len(rows) // 2)[:, None]
    first, second = rows[::2], rows[1::2]
    pairs = [
        np.cos(angle) * first + np.sin(angle) * second,
        np.cos(angle) * second - np.sin(angle) * first,
    ]
    return np.stack(pairs, axis=1).reshape(rows.shape)


# -- looking at the results --------------------------------------------------------------------


def draw(results: Results) -> dict[str, Any]:
    """Draw F1 over the scenes."""
    from perpend import plots

    lines = {
        method: page.over_items(results, "homographies", "f1", "scene", method)
        for method in results.values("homographies", "method")
    }
    figure = plots.dots({"": lines}, xlabel="F1, one dot a scene", highlight=page.OURS)
    return {"homographies": figure}


def numbers(results: Results) -> dict[str, Any]:
    """Return the methods with their mean F1, and what RANSAC is given."""
    means = {
        method: np.mean(page.over_items(results, "homographies", "f1", "scene", method))
        for method in results.values("homographies", "method")
    }
    return {"means": means, "draws": DRAWS, "pixels": PIXELS}

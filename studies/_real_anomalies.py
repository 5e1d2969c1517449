"""Anomalies in hyperspectral scenes: pixels far from the background, off its subspace or within it.

Spectra of a scene mix a few materials, so the background is near a subspace of perhaps ten
dimensions; planes, boats and cars are not. Variances decay, so no dimension is sure, and the call
that the domain page documents scores off the subspace and within it. The Euclidean distances to
the affine and the linear subspace stand beside it: an anomaly is often bright, and its angle alone
hides it.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from perpend._typing import Array
from perpend.experiments._experiment import Case, Results, Row, Tables
from perpend.experiments._trials import fitted, starts_rng
from perpend.metrics import outlier_auc, outlier_f1
from studies import _real_page as page
from studies._real_files import read_arrays
from studies._real_references import (
    principal_axes,
    residuals,
    reweighted_pca,
    rx_scores,
)

if TYPE_CHECKING:
    from perpend.estimator import SubspaceEstimator

SHOWN = "abu-airport-4"  # the scene that is drawn
GIVEN = 12  # dimensions, for methods that need them
BOTH = 'DPCP(affine=True, outliers="both")'  # the documented call
AFFINE = "DPCP(affine=True)"
RX, PCA, LINEAR = "RX", "PCA residual, same d", "PCA residual, same d, not centred"
ROBUST_GIVEN, PCA_GIVEN = f"reweighted PCA, d = {GIVEN}", f"PCA residual, d = {GIVEN}"


def run(case: Case) -> Tables:
    """Score all pixels of one scene by every method."""
    from perpend import DPCP

    scene, seed, side = Path(case["path"]).stem, case["seed"], case["side"]
    cube, mask = read_arrays(case["path"], "cube", "mask")
    if side is not None:
        window = around_an_anomaly(mask, side)
        cube, mask = cube[window], mask[window]
    X = cube.reshape(-1, cube.shape[2]).astype(float)
    fits = {
        BOTH: fitted(DPCP(affine=True, outliers="both", random_state=starts_rng(seed)), X),
        AFFINE: fitted(DPCP(affine=True, random_state=starts_rng(seed)), X),
        page.OURS: fitted(DPCP(random_state=starts_rng(seed)), X),
    }
    d = {name: int(model.n_components_) for name, (model, _) in fits.items()}
    centred = X - X.mean(axis=0)
    scores = {
        BOTH: -fits[BOTH][0].score_samples(X),
        **{name: fits[name][0].distance(X) for name in (AFFINE, page.OURS)},
        PCA: residuals(centred, principal_axes(centred, d[AFFINE])),
        LINEAR: residuals(X, principal_axes(X, d[page.OURS])),
        RX: rx_scores(X),
        ROBUST_GIVEN: residuals(X, reweighted_pca(X, GIVEN)),
        PCA_GIVEN: residuals(centred, principal_axes(centred, GIVEN)),
    }
    given = {"scene": scene, "seed": seed, "bands": X.shape[1]}
    rows = [
        {**given, "method": name, **_row(mask, score, *fits.get(name, (None, None)))}
        for name, score in scores.items()
    ]
    tables: Tables = {"anomalies": rows}
    if scene == SHOWN and seed == 0:
        tables["maps"] = _maps(mask, {name: scores[name] for name in (BOTH, PCA, RX)})
    return tables


def around_an_anomaly(mask: Array, side: int) -> tuple[slice, slice]:
    """Return a square window that holds the anomaly nearest to the middle of them all."""
    places = np.argwhere(mask == 1)
    middle = places[np.argmin(np.linalg.norm(places - places.mean(axis=0), axis=1))]
    starts = [max(0, min(m - side // 2, n - side)) for m, n in zip(middle, mask.shape, strict=True)]
    return slice(starts[0], starts[0] + side), slice(starts[1], starts[1] + side)


def _row(
    mask: Array, score: Array, model: "SubspaceEstimator | None", seconds: float | None
) -> Row:
    truth = np.where(mask.ravel() == 1, -1, 1)
    return {
        "codimension": None if model is None else int(model.codimension_),
        "dimension": None if model is None else int(model.n_components_),
        "confidence": None if model is None else float(model.confidence_),
        "auc": outlier_auc(truth, -score),
        "f1": None if model is None else outlier_f1(truth, model.labels_),
        "best_f1": best_f1(truth, score),
        "seconds": seconds,
    }


def best_f1(truth: Array, score: Array) -> float:
    """Return the outliers' largest F1 over all thresholds on a score.

    >>> best_f1(np.array([-1, 1, -1, 1]), np.array([4.0, 3.0, 2.0, 1.0]))
    0.8
    """
    order = np.argsort(-score, kind="stable")
    found = np.cumsum(truth[order] == -1)
    return float(np.max(2 * found / (np.arange(1, len(truth) + 1) + found[-1])))


def _maps(mask: Array, scores: dict[str, Array]) -> list[Row]:
    """Return pictures, line by line: the mask, and the share of pixels that score lower."""
    images = {"truth": mask.astype(float)}
    for name, score in scores.items():
        ranks = np.empty(len(score))
        ranks[np.argsort(score, kind="stable")] = np.arange(len(score)) / max(len(score) - 1, 1)
        images[name] = ranks.reshape(mask.shape)
    return [
        {"panel": name, "line": i, "pixels": page.hex_line(line)}
        for name, image in images.items()
        for i, line in enumerate(image)
    ]


# -- looking at the results --------------------------------------------------------------------


def draw(results: Results) -> dict[str, Any]:
    """Draw AUC for each scene, and one scene's scores beside the truth."""
    from perpend import plots

    panels = {
        scene: {
            method: page.numbers(results, "anomalies", "auc", scene=scene, method=method)
            for method in results.values("anomalies", "method")
        }
        for scene in results.values("anomalies", "scene")
    }
    figures = {"anomalies": plots.dots(panels, xlabel="AUC", highlight=BOTH)}
    if results.rows("maps"):
        images = {}
        for name in results.values("maps", "panel"):
            image = page.image(results, "maps", name)
            # The upper tenth of the ranks is what a detector shows; all below is background.
            images["anomalies" if name == "truth" else name] = (
                image if name == "truth" else np.maximum(10 * image - 9, 0)
            )
        figures["map"] = plots.images(images, limits=(0.0, 1.0), cmap="inferno", columns=4)
    return figures


def numbers(results: Results) -> dict[str, Any]:
    """Return how the documented call does beside RX and PCA."""
    means = {
        method: np.mean(page.over_items(results, "anomalies", "auc", "scene", method))
        for method in (BOTH, AFFINE, PCA, RX, page.OURS, LINEAR)
    }
    f1, best = (
        np.mean(page.over_items(results, "anomalies", column, "scene", BOTH))
        for column in ("f1", "best_f1")
    )
    return {
        "AFFINE": AFFINE,
        "BOTH": BOTH,
        "means": means,
        "f1": f1,
        "best_f1": best,
        "above_it": [name for name in (PCA, RX) if means[name] > means[BOTH]],
        "shown": SHOWN if results.rows("maps") else "",
    }

"""Anomalies in hyperspectral scenes: pixels far from the background.

Spectra of a scene mix a few materials, so the background is near a subspace of perhaps ten
dimensions; planes, boats and cars are not. All bands are used, and every pixel is a row.
"""

from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from perpend._typing import Array
from perpend.experiments._experiment import Case, Results, Row, Settings, Tables
from perpend.experiments._trials import fitted, starts_rng
from perpend.metrics import outlier_auc, outlier_f1
from studies.boards import _board as base
from studies.boards._files import files, read_arrays
from studies.boards._references import principal_axes, residuals, rx_scores, student_scores

OPTIONS: dict[str, Any] = {"affine": True, "outliers": "both"}  # the call: change it here
OWN = 'DPCP(affine=True, outliers="both")'
RX, STUDENT, FOREST = "RX", "Mahalanobis, Student scatter", "isolation forest"
GIVEN = 12  # dimensions of the PCA residual, which finds none by itself
PCA = f"PCA residual, d = {GIVEN}"
FALSE_ALARMS = 1e-3  # of RX and of the Student scatter, if pixels were Gaussian
SHOWN = "abu-airport-4"  # the scene that is drawn
LEAD, SHARE = 0.005, 0.8


def items(settings: Settings) -> list[Case]:
    """Return every scene; a window of it for a quick run."""
    side = 40 if settings.quick else None
    return [{**file, "side": side} for file in files("scenes")]


def targets(board: base.Board, results: Results) -> list[base.Target]:
    """Better than RX, with labels one can use."""
    labels, best = (board.value(results, column) for column in ("f1", "best_f1"))
    return [
        base.Target(
            f"mean AUC at least {LEAD} above RX",
            board.value(results, "auc"),
            board.value(results, "auc", RX) + LEAD,
        ),
        base.Target(
            f"mean F1 of `labels_` at least {SHARE} of that of the best threshold on the score",
            labels,
            SHARE * best,
        ),
    ]


BOARD = base.Board(
    name="boards/scenes",
    title="Anomalies in hyperspectral scenes",
    about="four scenes, beside RX, a robust Mahalanobis distance and others",
    own=OWN,
    item="scene",
    measures=(
        base.Measure("auc", "AUC"),
        base.Measure("f1", "F1 of the labels"),
        base.Measure("best_f1", "F1 at the best threshold"),
    ),
    targets=targets,
    items=items,
    sources=("scenes",),
)


def run(case: Case) -> Tables:
    """Score all pixels of one scene by every method; those without chance only once."""
    from perpend import DPCP

    scene, seed, side = Path(case["path"]).stem, case["seed"], case["side"]
    cube, mask = read_arrays(case["path"], "cube", "mask")
    if side is not None:
        window = around_an_anomaly(mask, side)
        cube, mask = cube[window], mask[window]
    X, anomaly = cube.reshape(-1, cube.shape[2]).astype(float), mask.ravel() == 1
    model, seconds = fitted(DPCP(**OPTIONS, random_state=starts_rng(seed)), X)
    maps = {OWN: -model.score_samples(X)}
    rows = [{"method": OWN, "seconds": seconds, **_row(anomaly, maps[OWN], model.labels_ == -1)}]
    forest, seconds = base.timed(lambda: _forest(X, seed))
    rows.append({"method": FOREST, "seconds": seconds, **_row(anomaly, *forest)})
    if seed == 0:
        centred = X - X.mean(axis=0)
        references = {
            RX: lambda: rx_scores(X),
            STUDENT: lambda: student_scores(X),
            PCA: lambda: residuals(centred, principal_axes(centred, GIVEN)),
        }
        limit = stats.chi2.isf(FALSE_ALARMS, X.shape[1])
        for name, score in references.items():
            maps[name], seconds = base.timed(score)
            flagged = None if name == PCA else maps[name] > limit
            rows.append({"method": name, "seconds": seconds, **_row(anomaly, maps[name], flagged)})
    given = {"item": scene, "seed": seed, "bands": X.shape[1]}
    tables: Tables = {base.SCORES: BOARD.rows(given, rows)}
    if scene == SHOWN and seed == 0:
        tables["maps"] = base.stored_images(
            {"anomalies": mask.astype(float)}
            | {name: _ranks(maps[name]).reshape(mask.shape) for name in (OWN, RX, STUDENT)}
        )
    return tables


def around_an_anomaly(mask: Array, side: int) -> tuple[slice, slice]:
    """Return a square window that holds the anomaly nearest to the middle of them all."""
    places = np.argwhere(mask == 1)
    middle = places[np.argmin(np.linalg.norm(places - places.mean(axis=0), axis=1))]
    starts = [max(0, min(m - side // 2, n - side)) for m, n in zip(middle, mask.shape, strict=True)]
    return slice(starts[0], starts[0] + side), slice(starts[1], starts[1] + side)


def _row(anomaly: Array, score: Array, flagged: Array | None) -> Row:
    y = np.where(anomaly, -1, 1)
    labels = None if flagged is None else outlier_f1(y, np.where(flagged, -1, 1))
    auc = outlier_auc(y, -score)
    return {"auc": auc, "f1": labels, "best_f1": base.best_f1(anomaly, score)}


def _forest(X: Array, seed: int) -> tuple[Array, Array]:
    from sklearn.ensemble import IsolationForest

    forest = IsolationForest(random_state=seed).fit(X)
    return -forest.score_samples(X), forest.predict(X) == -1


def _ranks(score: Array) -> Array:
    """Return the share of pixels that score lower."""
    ranks = np.empty(len(score))
    ranks[np.argsort(score, kind="stable")] = np.arange(len(score)) / max(len(score) - 1, 1)
    return ranks


def draw(results: Results) -> dict[str, Any]:
    """Draw one scene's scores beside the truth."""
    from perpend import plots

    if not results.rows("maps"):
        return {}
    images = {}
    for name in results.values("maps", "panel"):
        image = base.image(results, "maps", name)
        # The upper tenth of the ranks is what a detector shows; all below is background.
        images[name] = image if name == "anomalies" else np.maximum(10 * image - 9, 0)
    return {"map": plots.images(images, limits=(0.0, 1.0), cmap="inferno", columns=4)}


def numbers(results: Results) -> dict[str, Any]:
    """Return the numbers of the page."""
    shown = SHOWN if results.rows("maps") else ""
    return {
        **base.facts(BOARD, results),
        "RX": RX,
        "shown": shown,
        "false_alarms": FALSE_ALARMS,
    }


EXPERIMENT = BOARD.experiment(run, draw=draw, cost=lambda _: 10.0)

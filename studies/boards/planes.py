"""One plane in a scan: roads in LiDAR frames and table tops in depth images.

Most points of a road frame lie elsewhere. Points are in metres, in a random order for each seed.
The plane of least squares through the marked points is what a plane can reach. The published
methods see the points as rows (x, y, z, 1) of unit length, as in the experiments of their authors.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from perpend._typing import Array
from perpend.experiments._experiment import Case, Results, Row, Settings, Tables
from perpend.experiments._trials import dpcp_psgm, fitted, starts_rng
from perpend.metrics import outlier_auc, outlier_f1
from studies.boards import _board as base
from studies.boards._files import files, read_arrays
from studies.boards._peers import OPEN3D, distances, planes, row_of
from studies.boards._references import pca_plane

OPTIONS: dict[str, Any] = {"affine": True}  # as docs/domains/point_cloud.md has it
OWN = "DPCP(affine=True)"
TRUTH = {"roads": "is_road", "tabletops": "is_table"}
GROUPS = {"roads": "roads, within 10 cm", "tabletops": "table tops, within 1 cm"}
THRESHOLD = {"roads": 0.1, "tabletops": 0.01}  # metres, given to RANSAC
DRAWS = 1000
MARKED, PCA = "least squares on the marked points", "least squares on all points"
CLASSIC = "classic DPCP, one normal"
PSGM, GEOMETRIC = "DPCP-PSGM, line search", "DPCP-PSGM, geometric steps"
PUBLISHED_SEEDS = 3  # of PSGM, each with two starts
NEAR = 0.01  # of F1 to the plane of the marked points
FROM_ABOVE = "kitti_0929_0071_0221"  # the frame that is drawn
REACH, CELL, FAR = 40.0, 1.0, 0.5  # metres: the picture, a pixel of it, and the brightest distance


def items(settings: Settings) -> list[Case]:
    """Return every scan; a part of its points for a quick run."""
    rows = 4000 if settings.quick else None
    return [{**file, "rows": rows} for file in files("roads", "tabletops")]


def targets(board: base.Board, results: Results) -> list[base.Target]:
    """As good as the plane of the marked points, and as quick as Open3D."""
    group = GROUPS["roads"]
    f1 = board.value(results, "f1", group=group)
    marked = board.value(results, "f1", MARKED, group)
    return [
        base.Target(
            f"roads: mean F1 within 10 cm at most {NEAR} below a plane fitted to the marked road",
            f1,
            marked - NEAR,
        ),
        base.Target(
            f"roads: median CPU seconds at most those of {OPEN3D}",
            board.seconds(results, group=group),
            board.seconds(results, OPEN3D, group),
            sign=-1,
        ),
    ]


BOARD = base.Board(
    name="boards/planes",
    title="One plane in a scan",
    about="roads and table tops, beside Open3D, pyransac3d and scikit-learn",
    own=OWN,
    item="scan",
    measures=(
        base.Measure("f1", "F1 within the distance"),
        base.Measure("auc", "AUC", digits=4),
        base.Measure("labels_f1", "F1 of `labels_`"),
    ),
    targets=targets,
    items=items,
    sources=("roads", "tabletops"),
    seeds=20,
    xlim=(0.0, 1.0),
    yardsticks=frozenset({MARKED}),
)


def run(case: Case) -> Tables:
    """Find the plane of one scan by every method; those without chance only once."""
    from perpend import DPCP

    kind, scan, seed = case["kind"], Path(case["path"]).stem, case["seed"]
    points, truth = read_arrays(case["path"], "points", TRUTH[kind])
    order = np.random.default_rng([seed, 7]).permutation(len(points))[: case["rows"]]
    points, y = points[order].astype(float), np.where(truth[order] == 1, 1, -1)
    threshold = THRESHOLD[kind]

    def measured(distance: Array) -> Row:
        near = np.where(distance < threshold, 1, -1)
        return {"f1": outlier_f1(y, near, positive=1), "auc": outlier_auc(y, -distance)}

    model, seconds = fitted(DPCP(**OPTIONS, random_state=starts_rng(seed)), points)
    seen = {OWN: model.distance(points)}
    rows: list[Row] = [
        {
            "method": OWN,
            **measured(seen[OWN]),
            "labels_f1": outlier_f1(y, model.labels_, positive=1),
            "seconds": seconds,
        }
    ]
    peers = dict(planes(points, threshold, DRAWS, seed))
    if seed == 0:
        peers |= {MARKED: lambda: pca_plane(points[y == 1]), PCA: lambda: pca_plane(points)}
    peers |= published(points, seed)
    for name, find in peers.items():

        def far(plane: Array, name: str = name) -> Row:
            seen[name] = distances(points, plane)
            return measured(seen[name])

        rows.append(row_of(name, find, far))
    given = {"group": GROUPS[kind], "item": scan, "seed": seed}
    tables: Tables = {base.SCORES: BOARD.rows(given, rows)}
    if scan == FROM_ABOVE and seed == 0:
        shown = {name: distance / FAR for name, distance in seen.items() if name in (OWN, OPEN3D)}
        images = {"share of road points": y == 1, **shown}
        tables["from_above"] = base.stored_images(_from_above(points, images))
    return tables


def published(points: Array, seed: int) -> dict[str, Callable[[], Array]]:
    """Return the l1 methods for one normal: the classic one, and PSGM by both of its step rules."""
    from perpend import DPCP

    rows = np.column_stack([points, np.ones(len(points))])
    models: dict[str, Any] = {}
    if seed == 0:
        models[CLASSIC] = DPCP(codimension=1, n_starts=1, init="spectral", refine=False)
    if seed < PUBLISHED_SEEDS:
        models[PSGM] = dpcp_psgm(2, seed, codimension=1)
        models[GEOMETRIC] = dpcp_psgm(2, seed, codimension=1, step="geometric")

    def plane(model: Any) -> Array:
        return fitted(model, rows)[0].normals_[0]

    return {name: partial(plane, model) for name, model in models.items()}


def _from_above(points: Array, values: dict[str, Array]) -> dict[str, Array]:
    """Return pictures: the mean of values in a cell, from 0 to 1; x is ahead and goes up."""
    n = round(2 * REACH / CELL)
    cells = np.floor((points[:, :2] + REACH) / CELL).astype(int)
    inside = np.all((cells >= 0) & (cells < n), axis=1)
    flat = cells[inside, 0] * n + cells[inside, 1]
    count = np.bincount(flat, minlength=n * n)
    images = {}
    for name, each in values.items():
        total = np.bincount(flat, np.minimum(each[inside], 1), minlength=n * n)
        mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
        images[name] = mean.reshape(n, n)[::-1, ::-1]  # y is left
    return images


def draw(results: Results) -> dict[str, Any]:
    """Draw the road from above."""
    from perpend import plots

    if not results.rows("from_above"):
        return {}
    panels = results.values("from_above", "panel")
    images = {name: base.image(results, "from_above", name) for name in panels}
    return {"road": plots.images(images, limits=(0.0, 1.0), cmap="viridis")}


def numbers(results: Results) -> dict[str, Any]:
    """Return the numbers of the page."""
    return {
        **base.facts(BOARD, results),
        "draws": DRAWS,
        "from_above": FROM_ABOVE if results.rows("from_above") else "",
        "width": 2 * REACH,
        "far": FAR,
        "MARKED": MARKED,
        "published_seeds": PUBLISHED_SEEDS,
        "apart": {kind: _apart(results, group) for kind, group in GROUPS.items()},
    }


def _apart(results: Results, group: str) -> float:
    """Return how much F1 of the published methods differs on a scan, at most; 0 if none ran."""
    scans: dict[str, list[float]] = {}
    for name in (CLASSIC, PSGM, GEOMETRIC):
        for row in results.rows(base.SCORES, group=group, method=name):
            scans.setdefault(row["item"], []).append(row["f1"])
    return max((max(f1) - min(f1) for f1 in scans.values()), default=0.0)


EXPERIMENT = BOARD.experiment(run, draw=draw, cost=lambda _: 4.0)
